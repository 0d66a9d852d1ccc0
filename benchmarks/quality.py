"""Held-out quality of LambdaMART against LightGBM's lambdarank, same settings, same data, same run.

    python benchmarks/quality.py [--data FOLDER] [--synthetic-rows 360000] [--json FILE]

On MQ2008 and OHSUMED (five folds each, below FOLDER): 50 leaves, learning rate 0.05, up to 500 trees, early stopping
after 100 rounds on validation data, for at least 1 and at least 20 documents per leaf. Where validation data is small
the size that it picks is half chance, so the mean over all sizes from 50 to 500 trees is shown too, and all test
queries are compared pairwise (randomisation test). On synthetic data shaped like MSLR-WEB: 64 leaves, 200 trees.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import rankwood as rw
from rankwood.data.folds import find_folds

SIZES = range(50, 501, 50)
MEASURE = "nDCG@10"


def per_query(scores: np.ndarray, data: rw.Dataset) -> np.ndarray:
    return rw.evaluate(scores, data, MEASURE).per_query[MEASURE]


def train_rankwood(train: rw.Dataset, valid: rw.Dataset, n_trees: int, n_leaves: int, min_docs: int) -> Any:
    ranker = rw.LambdaMART(n_trees, n_leaves, 0.05, min_docs_per_leaf=min_docs).fit(train, valid=valid)
    curve = ranker.evals_result_["valid"][MEASURE]
    model = ranker.ensemble_
    return curve, lambda X, n: model.select(np.arange(n)).score(X)


def train_lightgbm(train: rw.Dataset, valid: rw.Dataset, n_trees: int, n_leaves: int, min_docs: int) -> Any:
    parameters = {"objective": "lambdarank", "num_leaves": n_leaves, "learning_rate": 0.05, "verbose": -1,
                  "min_data_in_leaf": min_docs, "metric": "ndcg", "eval_at": [10]}  # fmt: skip
    data = lgb.Dataset(train.X, train.y, group=train.queries.sizes)
    held_out = lgb.Dataset(valid.X, valid.y, group=valid.queries.sizes, reference=data)
    curve: dict[str, Any] = {}
    model = lgb.train(parameters, data, n_trees, valid_sets=[held_out], callbacks=[lgb.record_evaluation(curve)])
    return curve["valid_0"]["ndcg@10"], lambda X, n: model.predict(X, num_iteration=n)


TRAINERS = {"rankwood": train_rankwood, "lightgbm": train_lightgbm}


def stopped_at(curve: list[float], rounds: int = 100) -> int:
    """The size that early stopping would have kept."""
    best = 0
    for t, value in enumerate(curve):
        if value > curve[best]:
            best = t
        if t - best >= rounds:
            break
    return best + 1


def folds_of(folder: Path) -> list[tuple[rw.Dataset, rw.Dataset, rw.Dataset]]:
    return [
        tuple(rw.read_svmlight(part) for part in (fold.train, fold.valid, fold.test)) for fold in find_folds(folder)
    ]


def compare_on_folds(name: str, folder: Path, min_docs: int) -> dict[str, Any]:
    stopped: dict[str, list[np.ndarray]] = {trainer: [] for trainer in TRAINERS}
    every: dict[str, list[np.ndarray]] = {trainer: [] for trainer in TRAINERS}
    seconds = dict.fromkeys(TRAINERS, 0.0)
    for train, valid, test in folds_of(folder):
        for trainer, run in TRAINERS.items():
            start = time.perf_counter()
            curve, score = run(train, valid, max(SIZES), 50, min_docs)
            seconds[trainer] += time.perf_counter() - start
            stopped[trainer].append(per_query(score(test.X, stopped_at(curve)), test))
            every[trainer].append(np.mean([per_query(score(test.X, n), test) for n in SIZES], axis=0))
    result: dict[str, Any] = {"data": name, "min_docs": min_docs, "seconds": seconds}
    for kind, values in (("early stopping", stopped), ("mean of 50..500 trees", every)):
        pooled = {trainer: np.concatenate(parts) for trainer, parts in values.items()}
        result[kind] = {trainer: float(np.mean([part.mean() for part in parts])) for trainer, parts in values.items()}
        result[kind]["p"] = rw.randomisation_test(pooled["lightgbm"], pooled["rankwood"]).p_value
    return result


def compare_on_synthetic(rows: int, n_trees: int = 200) -> dict[str, Any]:
    data = rw.make_ranking(n_queries=round(rows / 120 * 1.5), seed=0)
    train, rest = data.split(2 / 3, seed=0)
    valid, test = rest.split(0.5, seed=0)
    values = {}
    for trainer, run in TRAINERS.items():
        _, score = run(train, valid, n_trees, 64, 20)
        values[trainer] = per_query(score(test.X, n_trees), test)
    found: dict[str, Any] = {trainer: float(value.mean()) for trainer, value in values.items()}
    found["p"] = rw.randomisation_test(values["lightgbm"], values["rankwood"]).p_value
    return {"data": f"synthetic, {train.n_docs:,} rows", "min_docs": 20, f"{n_trees} trees": found}


def show(result: dict[str, Any]) -> None:
    for kind, found in result.items():
        if isinstance(found, dict) and "p" in found:
            ours, theirs = found["rankwood"], found["lightgbm"]
            print(
                f"{result['data']:24} min docs {result['min_docs']:2d}  {kind:22}: rankwood {ours:.4f}, "
                f"lightgbm {theirs:.4f}, difference {ours - theirs:+.4f} (p {found['p']:.3f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds mq2008/ and ohsumed/QueryLevelNorm/")
    parser.add_argument("--synthetic-rows", type=int, default=360_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"rankwood {rw.__version__}, lightgbm {lgb.__version__}; {MEASURE}, {rw.Convention.get('rankwood').describe()}"
    )
    results = []
    if options.data is not None:
        for name in ("mq2008", "ohsumed/QueryLevelNorm"):
            for min_docs in (1, 20):
                results.append(compare_on_folds(name, options.data / name, min_docs))
                show(results[-1])
    if options.synthetic_rows:
        results.append(compare_on_synthetic(options.synthetic_rows))
        show(results[-1])
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
