"""Why trees that see few queries gain on some data and lose on other: forests on data changed one thing at a time.

python examples/few_queries_why.py [FOLDER] [--train-queries 500] [--test-queries 2000] [--trees 200] [--seed 0]

FOLDER has the folds of a data set, as `rankwood reproduce` takes them; else the data is synthetic. For each change of
the training data, forests with 2 % and 63 % of the queries per tree, and forests of 63 % whose leaves hold 10 documents
at least, are compared on test data. Components: see `components`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

import rankwood as rw
from rankwood.lab.study import FoldData, fewer_queries, open_source, p_text

Change = Callable[[FoldData, np.random.Generator], tuple[rw.Dataset, rw.Dataset]]


def as_it_is(fold: FoldData, rng: np.random.Generator) -> tuple[rw.Dataset, rw.Dataset]:
    return fold.train, fold.test


def features(n: int) -> Change:
    """Only so many features, drawn."""

    def change(fold: FoldData, rng: np.random.Generator) -> tuple[rw.Dataset, rw.Dataset]:
        kept = np.sort(rng.permutation(fold.train.n_features)[:n])
        train, test = (rw.Dataset(one.X[:, kept], one.y, group=one.queries.sizes) for one in (fold.train, fold.test))
        return train, test

    return change


def documents(n: int) -> Change:
    """At most so many documents of a training query, drawn."""

    def change(fold: FoldData, rng: np.random.Generator) -> tuple[rw.Dataset, rw.Dataset]:
        data = fold.train
        chosen = [
            begin + np.sort(rng.permutation(size)[:n])
            for begin, size in zip(data.offsets[:-1], data.queries.sizes, strict=True)
        ]
        rows = np.concatenate(chosen)
        return rw.Dataset(data.X[rows], data.y[rows], group=[len(one) for one in chosen]), fold.test

    return change


def three_grades(fold: FoldData, rng: np.random.Generator) -> tuple[rw.Dataset, rw.Dataset]:
    return tuple(one.replace(y=np.minimum(one.y, 2)) for one in (fold.train, fold.test))  # type: ignore[return-value]


def noise(share: float) -> Change:
    """So many training labels change places among each other, within their queries."""

    def change(fold: FoldData, rng: np.random.Generator) -> tuple[rw.Dataset, rw.Dataset]:
        y = fold.train.y.copy()
        for begin, end in zip(fold.train.offsets[:-1], fold.train.offsets[1:], strict=True):
            moved = begin + np.flatnonzero(rng.random(end - begin) < share)
            y[moved] = y[rng.permutation(moved)]
        return fold.train.replace(y=y), fold.test

    return change


CHANGES: dict[str, Change] = {
    "as it is": as_it_is,
    "46 features": features(46),
    "20 features": features(20),
    "10 features": features(10),
    "20 documents a query": documents(20),
    "grades 0 to 2": three_grades,
    "a quarter of labels moved": noise(0.25),
    "half of labels moved": noise(0.5),
    "all but a quarter moved": noise(0.75),
}


def components(train: rw.Dataset, share: float = 0.9, n_queries: int = 100) -> int:
    """How many principal components hold most of the variance of the features' ranks within queries."""
    ranks = []
    for begin, end in zip(train.offsets[:n_queries], train.offsets[1 : n_queries + 1], strict=False):
        X = np.nan_to_num(train.X[begin:end], nan=-np.inf)
        at = [np.unique(values, return_inverse=True)[1] for values in X.T]
        order = [np.argsort(np.argsort(values, kind="stable")) for values in X.T]
        mean = [(np.bincount(i, j) / np.bincount(i))[i] for i, j in zip(at, order, strict=True)]  # of equal values
        ranks.append((np.transpose(mean) - (end - begin - 1) / 2) / (end - begin))
    ranked = np.concatenate(ranks)
    ranked = ranked[:, ranked.std(axis=0) > 0]
    held = np.linalg.eigvalsh(np.corrcoef(ranked.T))[::-1].cumsum()
    return int(np.searchsorted(held, share * ranked.shape[1]) + 1)


def per_query(train: rw.Dataset, test: rw.Dataset, n_trees: int, **how: float) -> tuple[np.ndarray, float]:
    """nDCG@10 of every test query, and the mean of what single trees have."""
    forest = rw.RandomForest(n_trees, max_features="ceil-sqrt", criterion="entropy", replace=False, redraw=True, **how)
    model = forest.fit(train).ensemble_
    values = rw.evaluate(model, test, "nDCG@10", convention="letor").per_query["nDCG@10"]
    few = fewer_queries(test, 500)
    return values, float(rw.tree_strength(model, few, ["nDCG@10"], convention="letor")["nDCG@10"].mean())


def main(
    folder: str | None = None,
    names: Sequence[str] = tuple(CHANGES),
    train_queries: int = 500,
    test_queries: int = 2000,
    n_trees: int = 200,
    seed: int = 0,
) -> None:
    source = open_source(folder, quick=True, train_queries=train_queries)
    print("| data | components | 63 % | 2 % | difference (p) | 63 %, 10 a leaf | difference (p) | a tree, 63 % | 2 % |")
    print("| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        values: list[list[np.ndarray]] = [[], [], []]
        alone, n_components = np.zeros(3), []
        for number in range(1, source.n_folds + 1):
            fold = source.load(number)
            fold = FoldData(fold.train, fold.valid, fewer_queries(fold.test, test_queries))
            train, test = CHANGES[name](fold, np.random.default_rng(number + 100 * seed))
            n_components.append(components(train))
            for at, how in enumerate((
                {"queries_per_tree": 0.63}, {"queries_per_tree": 0.02},
                {"queries_per_tree": 0.63, "min_docs_per_leaf": 10},
            )):  # fmt: skip
                found, strength = per_query(train, test, n_trees, **how)
                values[at].append(found)
                alone[at] += strength / source.n_folds
        whole, few, large = (np.concatenate(one) for one in values)
        tests = [rw.randomisation_test(whole, other) for other in (few, large)]
        told = [f"{test.mean_difference:+.4f} ({p_text(test.p_value)})" for test in tests]
        n_held = f"{np.mean(n_components):.0f}"
        print(
            f"| {name} | {n_held} | {whole.mean():.4f} | {few.mean():.4f} | {told[0]} | {large.mean():.4f} | {told[1]} "
            f"| {alone[0]:.3f} | {alone[1]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--changes", nargs="*", choices=[*CHANGES], default=[*CHANGES])
    parser.add_argument("--train-queries", type=int, default=500)
    parser.add_argument("--test-queries", type=int, default=2000)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, default=0, help="of what is drawn from the data: features, documents, labels"
    )
    given = parser.parse_args()
    main(given.folder, given.changes, given.train_queries, given.test_queries, given.trees, given.seed)
