"""How long LambdaMART's gradients take, against LightGBM and a double loop in Python.

    python benchmarks/lambdas.py [--queries 1500] [--docs 120] [--truncation 30] [--rounds 40]

LightGBM does not tell the time of its gradients. It is the difference between a round of `lambdarank` and a round of
`regression`, whose gradient is one subtraction, on the same data with a single binary feature and trees of two leaves.
LightGBM starts from the same scores as initial scores. Best of many rounds. On a machine that is shared, believe the
ratio of CPU times at one thread: waiting for a core makes the longer task look worse than it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankwood.system import active_isa
from rankwood.training.losses import LambdaLoss, label_gains

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles.losses import lambdas


def make_data(n_queries: int, n_docs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, labels with the proportions of MSLR-WEB30K, and offsets; list lengths vary by two thirds."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(n_docs // 3, 2 * n_docs - n_docs // 3 + 1, n_queries)
    n = int(sizes.sum())
    labels = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
    scores = rng.normal(size=n) + labels
    return scores, labels, np.concatenate([[0], np.cumsum(sizes)])


class Times(NamedTuple):
    """Milliseconds, best of many rounds."""

    wall: float
    cpu: float  # of all threads together


def best(call: Callable[[], object], rounds: int) -> Times:
    wall, cpu = [], []
    for _ in range(rounds):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return Times(1000.0 * min(wall), 1000.0 * min(cpu))


def rankwood_times(loss: LambdaLoss, data: tuple[np.ndarray, ...], n_threads: int, rounds: int) -> Times:
    scores, labels, offsets = data
    prepared = loss.prepare(labels, offsets, n_threads=n_threads)
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    return best(lambda: prepared.gradients(scores, gradient, hessian), rounds)


def lightgbm_times(loss: LambdaLoss, data: tuple[np.ndarray, ...], n_threads: int, rounds: int) -> Times:
    import lightgbm

    scores, labels, offsets = data
    feature = np.random.default_rng(1).integers(0, 2, (len(scores), 1)).astype(np.float32)
    per_round = {}
    for objective in ("lambdarank", "regression"):
        params = {"objective": objective, "lambdarank_truncation_level": loss.truncation,
                  "lambdarank_norm": loss.normalize, "num_leaves": 2, "learning_rate": 1e-3, "num_threads": n_threads,
                  "metric": "none", "boost_from_average": False, "verbose": -1}  # fmt: skip
        dataset = lightgbm.Dataset(feature, labels, group=np.diff(offsets), init_score=scores, params=params)
        booster = lightgbm.Booster(params, dataset)
        per_round[objective] = best(booster.update, rounds)
    both = zip(per_round["lambdarank"], per_round["regression"], strict=True)
    return Times(*(ranking - regression for ranking, regression in both))


def oracle_ms(loss: LambdaLoss, data: tuple[np.ndarray, ...], n_queries: int) -> float:
    """The double loop on the first queries only, scaled up: it takes minutes for all."""
    scores, labels, offsets = data
    some = offsets[: n_queries + 1]
    n = int(some[-1])
    gains = label_gains(labels[:n], loss.gains)
    start = time.perf_counter()
    lambdas(scores[:n], gains, some, truncation=loss.truncation, sigma=loss.sigma, normalize=loss.normalize,
            cut_discounts=loss.cut_discounts)  # fmt: skip
    return 1000.0 * (time.perf_counter() - start) * len(scores) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1500)
    parser.add_argument("--docs", type=int, default=120, help="mean number of documents per query")
    parser.add_argument("--truncation", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()

    data = make_data(options.queries, options.docs)
    print(f"{len(data[0])} documents, {options.queries} queries, truncation {options.truncation}, {active_isa()}")
    print(f"{'':12}{'threads':>8}{'rankwood':>14}{'LightGBM':>14}{'ratio':>8}{'ratio of CPU times':>22}")
    for normalize in (False, True):
        loss = LambdaLoss(options.truncation, normalize=normalize)
        for n_threads in (1, 2):
            ours = rankwood_times(loss, data, n_threads, options.rounds)
            theirs = lightgbm_times(loss, data, n_threads, options.rounds)
            name = "normalized" if normalize else "plain"
            print(f"{name:12}{n_threads:>8}{ours.wall:>11.2f} ms{theirs.wall:>11.2f} ms"
                  f"{theirs.wall / ours.wall:>7.1f}x{theirs.cpu / ours.cpu:>21.1f}x")  # fmt: skip
    loss = LambdaLoss(options.truncation, normalize=False)
    ours, slow = rankwood_times(loss, data, 1, options.rounds), oracle_ms(loss, data, n_queries=10)
    print(f"double loop in Python: {slow:.0f} ms, {slow / ours.wall:.0f}x")


if __name__ == "__main__":
    main()
