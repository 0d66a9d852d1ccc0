"""How long engines take for a model on this machine: microseconds per document, by size of batch.

Every call is timed on its own, from a matrix in memory to scores, the way Python sees it. A figure is the median of
the calls; its 95 % interval holds the true median unless as few of the calls lie on one side of it as happens in 5 % of
all cases (order statistics: nothing is assumed of how times are distributed).

Warm calls follow each other, on ever other documents, so that neither the cache nor the branch predictor knows the rows
by heart. Before each cold call, a buffer of twice the largest cache (64 MB if its size is unknown) is written through,
which leaves nothing of the model, the rows, the code or the interpreter in the caches of the calling thread's CPU.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.engines.agreement import Judge
from rankwood.engines.base import Engine, Precision, PreparedModel
from rankwood.engines.bench_result import FEWEST_CALLS, Bench, Cell, EngineTimes, Quantity
from rankwood.engines.registry import ENGINES, choose_engine, get_engine
from rankwood.errors import DataError, RankwoodError
from rankwood.machine import largest_cache
from rankwood.matrix import as_feature_matrix
from rankwood.threads import resolve_threads

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

BATCHES: tuple[int | None, ...] = (1, 10, 100, 1000, None)  # None: all documents
_EVICTED_IF_UNKNOWN = 64 << 20
_MOST_ROW_SETS = 4096  # different batches that a cell goes round
_PREPARATIONS, _QUICK = 5, 0.2  # how often a preparation is timed when it takes less than so many seconds


@dataclass(frozen=True)
class Budget:
    """How many calls a cell takes: at least `calls` and `seconds`, but when they are slow, no more than make up
    `most_seconds`; six in any case."""

    calls: int = 20
    seconds: float = 0.2
    most_seconds: float = 2.0

    def is_spent(self, n_calls: int, nanoseconds: int) -> bool:
        if n_calls < min(self.calls, FEWEST_CALLS):
            return False
        return (n_calls >= self.calls and nanoseconds >= 1e9 * self.seconds) or nanoseconds >= 1e9 * self.most_seconds


def bench(
    model: Ensemble,
    X: Any,
    engines: Sequence[str] | None = None,
    batches: Sequence[int | None] = BATCHES,
    *,
    precision: Precision = "single",
    n_threads: int = 1,
    repeats: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bench:
    """Time engines on the rows of `X`, taken as float32, after checking that they agree with the reference on them.

    engines    names, "auto" among them if wanted; every engine that can score the model unless given
    batches    documents per call, None for all of them; sizes that `X` has too few rows for are left out
    repeats    calls per figure; else at least 20 and 0.2 s of them, fewer than 20 when they take more than 2 s
    progress   called with the number of cells (engine and size of batch) timed, and of all

    >>> import numpy as np, rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> found = bench(model, np.zeros((8, 1)), ["reference"], [1, None], repeats=6)
    >>> found.agree, [cell.batch for cell in found.engines[0].cells]
    (True, [1, 8])
    """
    rows, threads = as_feature_matrix(X), resolve_threads(n_threads)
    if len(rows) == 0:
        raise DataError("X has no rows: there is nothing to score")
    if repeats is not None and repeats < FEWEST_CALLS:
        raise RankwoodError(f"repeats must be at least {FEWEST_CALLS}: fewer calls have no 95 % interval")
    sizes, skipped = _sizes(batches, len(rows))
    unavailable = {} if engines is not None else _obstacles(model)
    names = list(dict.fromkeys(engines if engines is not None else ENGINES))
    contestants = [
        _Contestant.make(name, model, sizes, precision, threads) for name in names if name not in unavailable
    ]
    judge = Judge(model, rows, precision, threads)
    checks = (judge.check(prepared, sizes) for one in contestants for prepared in one.prepared)
    disagreements = tuple(dict.fromkeys(found for found in checks if found is not None))
    evict = Evictor()
    timer = _Timer(rows, Budget() if repeats is None else Budget(repeats, 0.0, np.inf), evict)
    total, done = len(contestants) * len(sizes), itertools.count(1)
    results = []
    for one in contestants:
        cells = []
        for batch in sizes if not disagreements else ():
            cells.append(timer.cell(one, batch))
            if progress is not None:
                progress(next(done), total)
        results.append(EngineTimes(one.name, one.prepare_s, one.from_cache, one.n_bytes, tuple(cells)))
    return Bench(
        engines=tuple(results),
        unavailable=unavailable,
        disagreements=disagreements,
        skipped=skipped,
        precision=precision,
        n_threads=threads,
        n_docs=len(rows),
        n_compared=judge.n_docs,
        evicted_bytes=evict.n_bytes,
    )


def _sizes(batches: Sequence[int | None], n_docs: int) -> tuple[list[int], tuple[int, ...]]:
    """Sizes of batches in increasing order, and those that there are too few documents for."""
    for batch in batches:
        if batch is not None and (not hasattr(batch, "__index__") or isinstance(batch, bool) or batch < 1):
            raise RankwoodError(f"a batch is at least 1 document, or None for all of them, got {batch!r}")
    wanted = {n_docs if batch is None else int(batch) for batch in batches}
    sizes = sorted(batch for batch in wanted if batch <= n_docs)
    if not sizes:
        raise DataError(f"the data has {n_docs:,} documents: no batch is as small")
    return sizes, tuple(sorted(wanted - set(sizes)))


def _obstacles(model: Ensemble) -> dict[str, str]:
    reasons = {name: engine.obstacle(model) for name, engine in ENGINES.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


@dataclass(frozen=True)
class _Contestant:
    """An engine, ready to score. "auto" may take several: their preparations add up."""

    name: str
    prepared: tuple[PreparedModel, ...]
    chosen: dict[int, str]  # by size of batch
    score: Callable[[AnyArray], FloatArray]
    prepare_s: float
    from_cache: bool

    @classmethod
    def make(cls, name: str, model: Ensemble, sizes: list[int], precision: Precision, threads: int) -> _Contestant:
        chosen = {size: choose_engine(model, size) if name == "auto" else get_engine(name).name for size in sizes}
        timed = [_time_preparation(get_engine(engine), model) for engine in dict.fromkeys(chosen.values())]
        prepared = tuple(one for one, _, _ in timed)
        scorer = partial(model.score, engine="auto") if name == "auto" else prepared[0].score
        return cls(
            name=name,
            prepared=prepared,
            chosen=chosen,
            score=partial(scorer, precision=precision, n_threads=threads),
            prepare_s=sum(seconds for _, seconds, _ in timed),
            from_cache=any(from_cache for _, _, from_cache in timed),
        )

    @property
    def n_bytes(self) -> int:
        return sum(prepared.n_bytes for prepared in self.prepared)


def _time_preparation(engine: Engine, model: Ensemble) -> tuple[PreparedModel, float, bool]:
    """The prepared model, seconds that took (the median, if it is quick), and whether the first came from a cache."""
    times: list[float] = []
    from_cache = False
    while True:
        fresh = model.select(np.arange(model.n_trees))  # shares nothing that an engine may have prepared before
        start = time.perf_counter()
        prepared = engine.prepare(fresh)
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            from_cache = prepared.from_cache
        # What is compiled once comes from a cache the next time.
        if engine.limits.needs_compiler or times[0] > _QUICK or len(times) == _PREPARATIONS:
            return prepared, float(np.median(times)), from_cache


class _Timer:
    """Times calls on the rows of a matrix."""

    def __init__(self, rows: AnyArray, budget: Budget, evict: Evictor) -> None:
        self._rows, self._budget, self._evict = rows, budget, evict

    def cell(self, one: _Contestant, batch: int) -> Cell:
        n_sets = len(self._rows) // batch
        numbers = range(n_sets) if n_sets <= _MOST_ROW_SETS else range(0, n_sets, n_sets // _MOST_ROW_SETS)
        sets = [self._rows[number * batch : (number + 1) * batch] for number in numbers]
        for rows in sets[:3]:
            one.score(rows)
        with no_garbage_collection():
            warm = self._time(one.score, sets, None, self._budget)
            cold_budget = Budget(self._budget.calls, 0.0, self._budget.most_seconds)
            cold = self._time(one.score, sets, self._evict, cold_budget)
        return Cell(batch, one.chosen[batch], Quantity.of_calls(warm, batch), Quantity.of_calls(cold, batch))

    @staticmethod
    def _time(
        score: Callable[[AnyArray], Any], sets: list[AnyArray], before: Callable[[], None] | None, budget: Budget
    ) -> list[int]:
        """Nanoseconds of each call."""
        clock = time.perf_counter_ns
        times: list[int] = []
        started = clock()
        for rows in itertools.cycle(sets):
            if before is not None:
                before()
            start = clock()
            score(rows)
            stop = clock()
            times.append(stop - start)
            if budget.is_spent(len(times), stop - started):
                break
        return times


class Evictor:
    """Pushes everything else out of the caches by writing through a buffer larger than them."""

    def __init__(self) -> None:
        cache = largest_cache()
        self.n_bytes = _EVICTED_IF_UNKNOWN if cache is None else 2 * cache
        self._buffer: FloatArray | None = None  # made when it is needed first

    def __call__(self) -> None:
        if self._buffer is None:
            self._buffer = np.zeros(self.n_bytes // 8)
        self._buffer += 1.0


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """As timeit does it: a collection would land in some call by chance."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
