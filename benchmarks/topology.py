"""The rows of Asadi & Lin's Table 1: what cost-sensitive growth and pruning while boosting do to the trees.

    python benchmarks/topology.py [--queries 1500] [--seeds 2] [--trees 1500] [--data FOLDER] [--json FILE]

The paper's settings: LambdaMART with 70 leaves, learning rate 0.05, 30 % of the data and of the features sampled (whole
queries per tree, features per split), at least 0.5 % of the documents in a leaf; early stopping on validation data.
Synthetic data shaped like MSLR-WEB unless FOLDER holds LETOR folds. Columns as in the paper: average maximum depth,
trees, their product, nodes of the ensemble (leaves counted too), NDCG, and microseconds per document on one thread, in
double precision, here with the reference traversal (the paper's if-else code is another engine). A star marks a
difference from the plain model by a Wilcoxon signed-rank test over all test queries, p < 0.05.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import rankwood as rw
from rankwood.scoring.timing import time_models

LAMBDAS = (0.0, 0.4, 0.8, 0.95)
ALPHAS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6)
CUTOFFS = (1, 3, 5, 10, 20)
MEASURES = [f"nDCG@{k}" for k in CUTOFFS]

Parts = tuple[rw.Dataset, rw.Dataset, rw.Dataset]


def synthetic(n_queries: int, seed: int) -> Parts:
    data = rw.make_ranking(n_queries=n_queries, docs_per_query=100, seed=seed)
    train, rest = data.split(0.5, seed=seed)
    return (train, *rest.split(0.5, seed=seed))


def from_folds(folder: Path, number: int) -> Parts:
    from rankwood.data.folds import find_folds

    folds = find_folds(folder)
    fold = folds[number % len(folds)]
    return rw.read_svmlight(fold.train), rw.read_svmlight(fold.valid), rw.read_svmlight(fold.test)


def run(parts: Parts, binned: rw.BinnedDataset, n_trees: int, seed: int, **parameters: float) -> dict[str, Any]:
    _, valid, test = parts
    ranker = rw.LambdaMART(
        n_trees,
        70,
        0.05,
        measure="nDCG",  # of whole lists: steadier than the top alone, so that it says more about when to stop
        early_stopping_rounds=200,
        min_docs_per_leaf=0.005,
        query_fraction=0.3,
        feature_fraction=0.3,
        feature_sampling="split",
        random_state=seed,
        **parameters,
    ).fit(binned, valid=valid)
    model = ranker.ensemble_
    (timing,) = time_models([(model, test.X)], "reference")
    topology = model.topology()
    return {
        "depth": topology.mean_depth,
        "trees": topology.n_trees,
        "path": topology.path_length,
        "nodes": topology.n_nodes + topology.n_leaves,
        "latency": timing.us_per_doc,
        "values": rw.evaluate(model, test, MEASURES).per_query,
    }


def summarise(setting: str, value: float, runs: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {setting: value}
    for name in ("depth", "trees", "path", "nodes", "latency"):
        row[name] = float(np.mean([one[name] for one in runs]))
    for measure in MEASURES:
        ours, theirs = (np.concatenate([one["values"][measure] for one in many]) for many in (runs, plain))
        row[measure] = float(ours.mean())
        row[f"{measure} p"] = rw.wilcoxon_test(theirs, ours).p_value
    return row


def show(title: str, setting: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}\n{setting:>7} {'d_avg':>6} {'T_avg':>7} {'p_avg':>7} {'n_avg':>8}", end="")
    print("".join(f"{'@' + str(k):>8}" for k in CUTOFFS) + f"{'us/doc':>9}{'change':>8}")
    for row in rows:
        print(
            f"{row[setting]:7} {row['depth']:6.1f} {row['trees']:7.1f} {row['path']:7.0f} {row['nodes']:8.0f}", end=""
        )
        for measure in MEASURES:
            star = "*" if row[f"{measure} p"] < 0.05 else " "
            print(f" {row[measure]:.4f}{star}"[:8].rjust(8), end="")
        print(f"{row['latency']:9.2f}{100 * (row['latency'] / rows[0]['latency'] - 1):+7.0f}%")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trees", type=int, default=1500)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    settings = [("lambda", value) for value in LAMBDAS] + [("alpha", value) for value in ALPHAS if value]
    parameter = {"lambda": "depth_relaxation", "alpha": "balance"}
    runs: dict[tuple[str, float], list[dict[str, Any]]] = {setting: [] for setting in settings}
    for seed in range(options.seeds):
        parts = from_folds(options.data, seed) if options.data else synthetic(options.queries, seed)
        binned = rw.BinnedDataset.make(parts[0])
        for name, value in settings:
            found = run(parts, binned, options.trees, seed, **{parameter[name]: value})
            runs[name, value].append(found)
    plain = runs["lambda", 0.0]
    runs["alpha", 0.0] = plain
    tables = {
        name: [summarise(name, value, runs[name, value], plain) for value in values]
        for name, values in (("lambda", LAMBDAS), ("alpha", ALPHAS))
    }
    show("(a) cost-sensitive growth", "lambda", tables["lambda"])
    show("(b) pruning while boosting", "alpha", tables["alpha"])
    if options.json is not None:
        options.json.write_text(json.dumps(tables, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
