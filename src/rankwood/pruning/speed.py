"""How much faster a smaller model scores, with the engine that is fastest for it."""

from __future__ import annotations

import itertools
import time

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
    size = min(batch, len(X))
    batches = [np.ascontiguousarray(X[start : start + size]) for start in range(0, min(len(X), ROWS) - size + 1, size)]
    model.score(batches[0])
    times: list[float] = []
    for rows in itertools.cycle(batches):
        start_time = time.perf_counter()
        model.score(rows)
        times.append(time.perf_counter() - start_time)
        if len(times) >= CALLS and sum(times) >= seconds:
            break
    return float(np.median(times)) / size
