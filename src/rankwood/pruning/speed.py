"""How much faster a smaller model scores, with the engine that is fastest for it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble

ROWS = 4096  # scored at a time, and gone round at most
SECONDS = 0.03  # spent on a model, at least
CALLS = 5  # at least


def seconds_per_document(model: Ensemble, X: AnyArray, *, batch: int = ROWS, seconds: float = SECONDS) -> float:
    """Time of scoring one document in a batch, one thread, the model made ready before: the median of a few calls.

    The calls go round the rows of `X`, as far as these make up full batches: a small batch is not known by heart.

    >>> model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> 0.0 < seconds_per_document(model, np.zeros((10, 1), np.float32)) < 1.0
    True
    """
    return seconds_in_turn([model], X, batch=batch, seconds=seconds)[0]


def seconds_in_turn(
    models: Sequence[Ensemble], X: AnyArray, *, batch: int = ROWS, seconds: float = SECONDS
) -> list[float]:
    """The same of several models that are to be compared: called in turn, so that a slow moment of the machine falls
    on all of them."""
    size = min(batch, len(X))
    batches = [np.ascontiguousarray(X[start : start + size]) for start in range(0, min(len(X), ROWS) - size + 1, size)]
    for model in models:
        model.score(batches[0])
    times: list[list[float]] = []  # a list per round, of a time per model
    left = seconds * len(models)
    for rows in itertools.cycle(batches):
        times.append([_timed(model, rows) for model in models])
        left -= sum(times[-1])
        if len(times) >= CALLS and left <= 0:
            break
    return [float(median) / size for median in np.median(times, axis=0)]


def _timed(model: Ensemble, rows: AnyArray) -> float:
    start = time.perf_counter()
    model.score(rows)
    return time.perf_counter() - start
