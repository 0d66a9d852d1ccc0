"""How long pruning takes: CLEaVER on the shapes that other tools were timed on, and against plain numpy.

    python benchmarks/cleaver.py [--quick] [--large] [--threads 2] [--iterations 10]

1. The whole of `cleaver` at one rate, 50 %: 150 trees of 50 leaves, 300 training and 100 validation queries of about
   122 documents, 136 features. quality-loss searches twice, skip once. QuickRank took 52 s and 16 s for this.
2. The measure along the weight of every tree, 20 samples each, against a straightforward numpy version that adds, sorts
   (one lexsort for all queries) and sums anew for every sample; results are compared, the numpy time is of a few trees.
3. Growth with the number of trees and of documents.
4. --large: 700 trees, 360,000 documents, nine rates.

Times are wall-clock, best of a few; CPU seconds of all threads stand beside them, and are what to believe on a machine
that is shared.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.outputs import unsigned_weights
from rankwood.pruning.line_search import LineSearch, Point, promising_weights
from rankwood.system import active_isa, available_isas, cpu_name

DOCS = 122


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Best wall-clock and CPU seconds, and the result."""
    wall, cpu, result = [], [], None
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        result = call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return min(wall), min(cpu), result


def make_model(train: rw.Dataset, n_trees: int, n_leaves: int) -> rw.Ensemble:
    return rw.LambdaMART(n_trees=n_trees, n_leaves=n_leaves, learning_rate=0.1).fit(train).ensemble_


def numpy_quality(scores: np.ndarray, labels: np.ndarray, offsets: np.ndarray, k: int = 10) -> float:
    """Mean nDCG@k, every step a numpy call over all documents."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rank = np.arange(len(labels)) - np.repeat(offsets[:-1], np.diff(offsets))
    discount = np.where(rank < k, 1.0 / np.log2(rank + 2.0), 0.0)
    gains = 2.0**labels - 1.0
    sums = [
        np.add.reduceat(gains[np.lexsort((-by, query))] * discount, offsets[:-1]) for by in (scores, labels)
    ]  # fmt: skip
    return float(np.mean(np.divide(*sums, out=np.zeros_like(sums[0]), where=sums[1] > 0)))


def numpy_along(part: Part, weights: np.ndarray, trees: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    scores = part.outputs.scores(weights)
    return np.array([
        [numpy_quality(scores + delta * part.outputs.output(tree), part.queries.labels, part.queries.offsets)
         for delta in row]
        for tree, row in zip(trees, deltas, strict=True)
    ])  # fmt: skip


def issue_shape(args: argparse.Namespace, train: rw.Dataset, valid: rw.Dataset, model: rw.Ensemble) -> None:
    print(f"\n1. {model.n_trees} trees of {model.n_leaves / model.n_trees:.0f} leaves, {train.n_docs:,} training and "
          f"{valid.n_docs:,} validation documents, {args.iterations} iterations, {args.threads} threads, half "
          "of the trees pruned")  # fmt: skip
    search = LineSearch(iterations=args.iterations, patience=args.iterations)
    settings = rw.PruningSettings(victims="train", search=search, measure_speed=False)
    for strategy, theirs in (("quality-loss", 52.0), ("skip", 16.0)):
        wall, cpu, result = timed(
            lambda strategy=strategy: rw.cleaver(
                model, train, valid, strategy=strategy, rates=(0.5,), variants="line-search", judge=None,
                settings=settings, n_threads=args.threads,
            ),
            args.repeats,
        )  # fmt: skip
        row = result.rows[1]
        print(f"  {strategy:14}{wall:8.3f} s wall{cpu:8.3f} s CPU   QuickRank {theirs:.0f} s: {theirs / wall:5.0f}x   "
              f"valid nDCG@10 {result.valid_before:.4f} -> {row.valid:.4f} with {row.n_trees} trees")  # fmt: skip


def against_numpy(args: argparse.Namespace, part: Part, weights: np.ndarray) -> None:
    n_trees = len(weights)
    trees = np.arange(n_trees)
    radius = 2.0 * weights.mean()
    deltas = np.linspace(np.maximum(weights - radius, 0.0), weights + radius, 20, axis=1) - weights[:, None]
    scores = part.outputs.scores(weights)
    wall, cpu, (found, _) = timed(lambda: part.queries.along(part.outputs, scores, trees, deltas), 5)
    few = np.linspace(0, n_trees - 1, args.numpy_trees).astype(int)
    slow, slow_cpu, expected = timed(lambda: numpy_along(part, weights, few, deltas[few]), 1)
    assert np.abs(found[few] - expected).max() < 1e-12
    scale = n_trees / len(few)
    print(f"\n2. nDCG@10 at 20 weights of each of {n_trees} trees, {part.outputs.n_docs:,} documents")
    print(f"  rankwood {1e3 * wall:10.1f} ms wall{1e3 * cpu:10.1f} ms CPU, {part.queries.n_threads} threads")
    print(f"  numpy    {1e3 * slow * scale:10.1f} ms wall{1e3 * slow_cpu * scale:10.1f} ms CPU, from {len(few)} trees")
    print(f"  ratio    {slow * scale / wall:10.0f}x wall{slow_cpu * scale / cpu:10.0f}x CPU")


def growth(args: argparse.Namespace, train: rw.Dataset, model: rw.Ensemble) -> None:
    print(
        "\n3. One iteration's search of directions, by trees and documents: ms CPU, and per million trees x documents"
    )
    for share in (0.25, 0.5, 1.0):
        for queries in (0.25, 0.5, 1.0):
            some = model.select(np.arange(max(1, int(share * model.n_trees))))
            data = train.select_queries(range(max(1, int(queries * train.n_queries))))
            part = Part.of(some, Evaluator(data, by_query=True, n_threads=args.threads))
            weights = unsigned_weights(some)
            trees, radius, start = np.arange(some.n_trees), 2 * weights.mean(), Point.at(part, weights)
            call = lambda part=part, s=start, t=trees, r=radius: promising_weights(part, s, t, r, 20)  # noqa: E731
            _, cpu, _ = timed(call, 3)
            size = some.n_trees * data.n_docs / 1e6
            print(f"  {some.n_trees:5} trees{data.n_docs:9,} documents{1e3 * cpu:9.1f} ms{1e3 * cpu / size:9.2f} ms")


def large(args: argparse.Namespace) -> None:
    data = rw.make_ranking(n_queries=3600, docs_per_query=120, n_features=136, seed=1)
    train, valid = data.select_queries(range(3000)), data.select_queries(range(3000, 3600))
    model = make_model(train, 700, 64)
    start = time.perf_counter()
    result = rw.cleaver(model, train, valid, n_threads=args.threads)
    print(f"\n4. {model.n_trees} trees, {train.n_docs:,} documents, nine rates: {time.perf_counter() - start:.0f} s, "
          f"{result.needed_bytes / 1e6:,.0f} MB; {result.summary()}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer trees for numpy")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=10)
    args = parser.parse_args()
    args.repeats, args.numpy_trees = (1, 2) if args.quick else (5, 10)
    print(f"{cpu_name()}; instruction set {active_isa()} of {', '.join(available_isas())}")
    print(f"rankwood {rw.__version__}, numpy {np.__version__}, python {platform.python_version()}")
    data = rw.make_ranking(n_queries=400, docs_per_query=DOCS, n_features=136, seed=0)
    train, valid = data.select_queries(range(300)), data.select_queries(range(300, 400))
    model = make_model(train, 150, 50)
    issue_shape(args, train, valid, model)
    part = Part.of(model, Evaluator(train, by_query=True, n_threads=args.threads))
    against_numpy(args, part, unsigned_weights(model))
    if not args.quick:
        growth(args, train, model)
    if args.large:
        large(args)


if __name__ == "__main__":
    main()
