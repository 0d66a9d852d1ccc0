"""Synthetic data: how long it takes to draw, and how models learn from it.

python benchmarks/synthetic.py draw [--queries 8334]     time and memory for about a million documents
python benchmarks/synthetic.py learn [--queries 2000]    held-out nDCG@10 by number of LightGBM trees, of a linear
                                                         model, and of the known relevance, which nothing can beat
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import rankwood as rw


def draw(options: argparse.Namespace) -> None:
    for n_threads in (1, 2):
        start = time.perf_counter()
        data = rw.make_ranking(options.queries or 8334, n_threads=n_threads)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # kilobytes on Linux
        size = data.X.nbytes / 2**20
        print(
            f"{data}: {seconds:.2f} s with {n_threads} thread(s), matrix {size:.0f} MB, peak {peak:.0f} MB", flush=True
        )
        del data


def mean_ndcg(scores: np.ndarray, data: rw.Dataset, k: int = 10) -> float:
    """Gain 2^label - 1, discount 1 / log2(1 + rank); a query without relevant documents counts 0."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    total = 0.0
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        gain = 2 ** data.y[start:stop] - 1
        ranked = gain[np.argsort(-scores[start:stop], kind="stable")][:k]
        ideal = np.sort(gain)[::-1][:k] @ discount[: min(k, len(gain))]
        total += ranked @ discount[: len(ranked)] / ideal if ideal > 0 else 0
    return total / data.n_queries


def linear_scores(train: rw.Dataset, test: rw.Dataset) -> np.ndarray:
    """Ridge regression of gains on logarithms of the features."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    logarithm = FunctionTransformer(lambda X: np.sign(X) * np.log1p(np.abs(X)))
    model = make_pipeline(SimpleImputer(), logarithm, StandardScaler(), Ridge(10.0))
    return model.fit(train.X, 2**train.y - 1).predict(test.X)


def learn(options: argparse.Namespace) -> None:
    import lightgbm

    train = rw.make_ranking(options.queries or 2000, seed=1, noise=options.noise)
    test, relevance = rw.make_ranking(1000, seed=2, noise=options.noise, return_relevance=True)
    rng = np.random.default_rng(0)
    print(f"train {train}\ntest  {test}")
    bm25 = test.X[:, test.feature_names.index("bm25_whole")]
    print(f"random order     {mean_ndcg(rng.random(len(test)), test):.4f}")
    print(f"BM25             {mean_ndcg(bm25, test):.4f}")
    print(f"linear           {mean_ndcg(linear_scores(train, test), test):.4f}")
    print(f"known relevance  {mean_ndcg(relevance, test):.4f}", flush=True)
    parameters = {
        "objective": "lambdarank",
        "num_leaves": options.leaves,
        "learning_rate": options.learning_rate,
        "min_data_in_leaf": 50,
        "num_threads": options.threads,
        "feature_fraction": options.feature_fraction,
        "verbose": -1,
    }
    start = time.perf_counter()
    groups = lightgbm.Dataset(train.X, train.y, group=np.diff(train.offsets))
    model = lightgbm.train(parameters, groups, options.trees)
    print(f"LightGBM {parameters} trained in {time.perf_counter() - start:.0f} s")
    for n_trees in (10, 30, 100, 300, 600, 1000):
        if n_trees <= options.trees:
            print(
                f"{n_trees:4d} trees       {mean_ndcg(model.predict(test.X, num_iteration=n_trees), test):.4f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "learn"])
    parser.add_argument("--queries", type=int)
    parser.add_argument("--noise", type=float, default=1.2)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--feature-fraction", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    {"draw": draw, "learn": learn}[options.what](options)


if __name__ == "__main__":
    main()
