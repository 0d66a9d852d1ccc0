"""LightGBM's lambdarank and LambdaMART with the same parameters: is one better, and does either gain by small leaves?

python examples/same_parameters.py mq2008/S*.txt.gz

No early stopping and no samples: the same trees, leaves, learning rate, documents per leaf and truncation for both,
five folds of several random partitions of all queries. Differences are from LightGBM's model of the same size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import lightgbm as lgb
import numpy as np

import rankwood as rw

LEAST = (20, 1)  # documents of a leaf


def models(train: rw.Dataset, n_trees: int) -> Iterator[tuple[str, rw.Ensemble]]:
    by_query = train.select_queries(range(train.n_queries))
    sizes = np.diff(by_query.offsets)
    for least in LEAST:
        parameters = {
            "objective": "lambdarank",
            "num_leaves": 31,
            "learning_rate": 0.05,
            "min_data_in_leaf": least,
            "num_threads": 1,
            "verbosity": -1,
        }
        data = lgb.Dataset(by_query.X, by_query.y, group=sizes, params=parameters)
        booster = lgb.train(parameters, data, n_trees)
        yield f"LightGBM, {least}", rw.load_model(booster, n_features=train.n_features)
        ranker = rw.LambdaMART(n_trees, n_leaves=31, learning_rate=0.05, min_docs_per_leaf=least, n_jobs=1)
        yield f"rankwood, {least}", ranker.fit(train).ensemble_


def main(files: list[str] | None = None, n_queries: int = 200, n_trees: int = 200, partitions: int = 4) -> None:
    data = rw.read_svmlight(files) if files else rw.make_ranking(n_queries, docs_per_query=20, n_features=20, seed=0)
    data = data.select_queries(range(data.n_queries))
    sizes = sorted({max(1, n_trees // share) for share in (8, 4, 2, 1)})
    found: dict[str, np.ndarray] = {}  # by size, the sum over partitions of the values of all queries
    for seed in range(partitions):
        order = np.random.default_rng(seed).permutation(data.n_queries)
        for fold in range(5):
            part = np.sort(order[fold::5])
            train = data.select_queries(np.setdiff1d(order, part))
            test = data.select_queries(part)
            for name, model in models(train, n_trees):
                values = found.setdefault(name, np.zeros((len(sizes), data.n_queries)))
                for row, size in zip(values, sizes, strict=True):
                    smaller = model.select(np.arange(size))
                    row[part] += rw.evaluate(smaller, test, "nDCG@10").per_query["nDCG@10"]
    first = found["LightGBM, 20"] / partitions
    print(f"nDCG@10 and difference with its standard error, {partitions} partitions of {data.n_queries} queries")
    print(f"{'trees':15}" + "".join(f"{size:>26}" for size in sizes))
    for name, total in found.items():
        values = total / partitions
        cells = []
        for mean, change in zip(values.mean(axis=1), values - first, strict=True):
            cells.append(f"{mean:.4f} {change.mean():+.4f} +- {change.std() / np.sqrt(len(change)):.4f}")
        print(f"{name:15}" + "".join(f"{cell:>26}" for cell in cells))


if __name__ == "__main__":
    main(sys.argv[1:])
