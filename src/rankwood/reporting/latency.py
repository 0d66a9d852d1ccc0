"""How long models take to score: all in turn, so that a busy moment of the machine does not fall on one of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import numpy as np

from rankwood.dtypes import FeatureMatrix
from rankwood.engines.base import PreparedModel
from rankwood.engines.bench import Budget, no_garbage_collection
from rankwood.engines.bench_result import FEWEST_CALLS, Quantity
from rankwood.engines.registry import ENGINES, get_engine
from rankwood.ensemble import Ensemble
from rankwood.reporting.facts import Estimate, Timing

BATCH = 4096  # documents per call
BUDGET = Budget(calls=20, seconds=0.1, most_seconds=0.8)  # of a model
TRIALS = 3  # calls that choose the engine


def time_models(
    models: Sequence[tuple[Ensemble, FeatureMatrix]],
    engine: str = "auto",
    *,
    budget: Budget = BUDGET,
    on_model: Callable[[int], None] = lambda done: None,
) -> list[Timing]:
    """Time models, each on the rows it is given, with `engine` or the fastest that needs no compiler; on one thread.

    `on_model` is called with the number of models whose calls are made.

    >>> model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> (timing,) = time_models([(model, np.zeros((10, 1), np.float32))])
    >>> timing.batch, timing.us_per_doc.value > 0.0
    (10, True)
    """
    runners = [_Runner(_prepare(model, X, engine), X) for model, X in models]
    n_enough = 0
    with no_garbage_collection():
        while n_enough < len(runners):
            # A model that has calls enough goes on while others need more, unless it is slow.
            for runner in runners:
                if sum(runner.times) < 1e9 * budget.most_seconds or len(runner.times) < FEWEST_CALLS:
                    runner.call()
            before, n_enough = n_enough, sum(budget.is_spent(len(one.times), sum(one.times)) for one in runners)
            if n_enough > before:
                on_model(n_enough)
    return [runner.timing() for runner in runners]


def _prepare(model: Ensemble, X: FeatureMatrix, engine: str) -> PreparedModel:
    """The model made ready by the engine, or by the one that is fastest in a trial."""
    if engine != "auto":
        return get_engine(engine).prepare(model)
    able = [
        one
        for one in ENGINES.values()
        if one.name != "reference" and not one.limits.needs_compiler and one.obstacle(model) is None
    ]
    prepared = [one.prepare(model) for one in able or [ENGINES["reference"]]]
    return prepared[0] if len(prepared) == 1 else min(prepared, key=lambda one: _trial(one, X[:BATCH]))


def _trial(prepared: PreparedModel, rows: FeatureMatrix) -> float:
    prepared.score(rows)
    times = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        prepared.score(rows)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


class _Runner:
    """Calls of one model, on ever other documents."""

    def __init__(self, prepared: PreparedModel, X: FeatureMatrix) -> None:
        self.prepared, self.times = prepared, list[int]()
        self.batch = min(BATCH, len(X))
        # Whole batches only: every call does the same work.
        starts = range(0, len(X) - self.batch + 1, self.batch)
        self._rows = itertools.cycle([np.ascontiguousarray(X[start : start + self.batch]) for start in starts[:64]])
        prepared.score(next(self._rows))

    def call(self) -> None:
        rows = next(self._rows)
        start = time.perf_counter_ns()
        self.prepared.score(rows)
        self.times.append(time.perf_counter_ns() - start)

    def timing(self) -> Timing:
        found = Quantity.of_calls(self.times, self.batch)
        return Timing(
            Estimate(found.us_per_doc, found.low, found.high), self.prepared.engine, found.n_calls, self.batch
        )
