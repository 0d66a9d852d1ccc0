"""What boosting that starts from a forest (iGBRT) should learn: residuals of documents that trees have seen, or not.

python examples/forest_residuals.py [FOLDER] [--train-queries 1000] [--queries 1000] [--trees 100]

FOLDER has the folds of a data set, as `rankwood reproduce` takes them; else the data is synthetic. Trees of full
depth give the documents that they were grown on their own labels, so a forest leaves less over of these than of
others. Beside GBRT and iGBRT as the paper has it, boosting learns what the forest leaves over out of the bag: of
every document by those trees only that have not seen it. The number of rounds is chosen on validation data.
"""

from __future__ import annotations

import argparse

import numpy as np

import rankwood as rw
from rankwood.lab.study import fewer_queries, open_source, p_text

STEPS = (25, 50, 75, 100, 150, 200, 300)
MEASURE = "nDCG@10"


def boosted(train: rw.Dataset, left: np.ndarray, rate: float) -> rw.Ensemble:
    """Trees of depth 4 that learn what is left over."""
    ranker = rw.MART(max(STEPS), 16, rate, max_depth=4, min_docs_per_leaf=1, missing="zero")
    return ranker.fit(train.replace(y=left)).ensemble_


def per_query(scores: np.ndarray, data: rw.Dataset) -> np.ndarray:
    return rw.evaluate(scores, data, MEASURE, convention="yahoo").per_query[MEASURE]


def main(
    folder: str | None = None,
    train_queries: int = 1000,
    queries: int = 1000,
    n_trees: int = 100,
    rate: float = 0.1,
    leaves_of: tuple[int, ...] = (1, 10),
) -> None:
    fold = open_source(folder, quick=True, train_queries=train_queries).load(1)
    train, valid, test = fold.train, fewer_queries(fold.valid, queries), fewer_queries(fold.test, 2 * queries)
    nothing = np.zeros(train.n_docs)
    starts = {"nothing (GBRT)": (None, nothing)}
    for least in leaves_of:
        forest = rw.RandomForest(n_trees, max_features=0.1, min_docs_per_leaf=least, missing="zero", out_of_bag=True)
        forest.fit(train)
        unseen = forest.oob_scores_
        seen = forest.ensemble_.score(train.X)
        unseen = np.where(np.isnan(unseen), seen, unseen)
        name = f"forest, {least} a leaf"
        starts[f"{name}: seen"] = (forest.ensemble_, seen)
        starts[f"{name}: out of the bag"] = (forest.ensemble_, unseen)
    print("| start: residuals | their RMSE | start alone | boosted | rounds | difference from GBRT (p) |")
    print("| :--- | ---: | ---: | ---: | ---: | ---: |")
    gbrt = None
    for name, (model, scores) in starts.items():
        before = [0.0 if model is None else model.score(data.X) for data in (valid, test)]
        trees = boosted(train, train.y - scores, rate)
        on_valid = {n: per_query(before[0] + trees.select(np.arange(n)).score(valid.X), valid).mean() for n in STEPS}
        best = max(on_valid, key=on_valid.__getitem__)
        values = per_query(before[1] + trees.select(np.arange(best)).score(test.X), test)
        alone = "" if model is None else f"{per_query(before[1], test).mean():.4f}"
        gbrt = values if gbrt is None else gbrt
        told = rw.randomisation_test(gbrt, values)
        difference = "" if gbrt is values else f"{told.mean_difference:+.4f} ({p_text(told.p_value)})"
        left = float(np.sqrt(np.mean((train.y - scores) ** 2)))
        print(f"| {name} | {left:.3f} | {alone} | {values.mean():.4f} | {best} | {difference} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--train-queries", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=1000, help="of validation; twice as many are for test")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.1)
    given = parser.parse_args()
    main(given.folder, given.train_queries, given.queries, given.trees, given.rate)
