"""How long models and engines take to score: microseconds per document."""

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
from rankwood.errors import DataError, RankwoodError
from rankwood.matrix import as_feature_matrix
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.agreement import Disagreement, Judge
from rankwood.scoring.auto import ENGINES, choose_engine, get_engine
from rankwood.scoring.engines import Engine, Precision, PreparedModel
from rankwood.system import largest_cache, resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


# What a benchmark of engines found, and how sure that is.


FEWEST_CALLS = 6  # below, no two of the calls make a 95 % interval


@dataclass(frozen=True)
class Quantity:
    """Median of timed calls, in microseconds per document, with its 95 % interval."""

    us_per_doc: float
    low: float
    high: float
    n_calls: int

    @classmethod
    def of_calls(cls, nanoseconds: Sequence[int], batch: int) -> Quantity:
        times = np.sort(np.asarray(nanoseconds, dtype=np.float64)) / 1000 / batch
        rank = interval_rank(len(times))
        return cls(float(np.median(times)), float(times[rank - 1]), float(times[-rank]), len(times))


@dataclass(frozen=True)
class Cell:
    """One engine at one size of batch. `chosen` is the engine that did the work: another one under "auto" only.
    `cold` is None when cold calls were not timed."""

    batch: int
    chosen: str
    warm: Quantity
    cold: Quantity | None

    def as_dict(self) -> dict[str, Any]:
        names = ("us_per_doc", "low", "high", "n_calls")
        warm = {name: getattr(self.warm, name) for name in names}
        cold = {} if self.cold is None else {f"cold_{name}": getattr(self.cold, name) for name in names}
        return {"batch": self.batch, "chosen": self.chosen, **warm, **cold}


@dataclass(frozen=True)
class EngineTimes:
    """One engine: seconds to prepare the model afresh, memory that takes, and times by size of batch."""

    engine: str
    prepare_s: float
    from_cache: bool  # it took what an earlier run had compiled
    n_bytes: int
    cells: tuple[Cell, ...]

    @property
    def us_per_doc(self) -> float | None:
        """At the largest batch, warm."""
        return self.cells[-1].warm.us_per_doc if self.cells else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "us_per_doc": self.us_per_doc,
            "prepare_s": self.prepare_s,
            "from_cache": self.from_cache,
            "n_bytes": self.n_bytes,
            "batches": [cell.as_dict() for cell in self.cells],
        }


@dataclass(frozen=True)
class Bench:
    """What `bench` found. Engines that disagree with the reference are not timed, and then nothing is."""

    engines: tuple[EngineTimes, ...]
    unavailable: dict[str, str]  # engines that cannot score the model, and why
    disagreements: tuple[Disagreement, ...]
    skipped: tuple[int, ...]  # sizes of batches that the data is too small for
    precision: Precision
    n_threads: int
    n_docs: int
    n_compared: int  # documents whose scores were compared with the reference
    evicted_bytes: int  # buffer that pushes everything else out of the caches

    @property
    def agree(self) -> bool:
        return not self.disagreements

    def fastest(self) -> dict[int, str]:
        """For every size of batch, the engine with the lowest warm median."""
        best: dict[int, tuple[float, str]] = {}
        for times in self.engines:
            for cell in times.cells if times.engine != "auto" else ():
                best[cell.batch] = min(best.get(cell.batch, (np.inf, "")), (cell.warm.us_per_doc, times.engine))
        return {batch: name for batch, (_, name) in best.items()}

    def as_dict(self) -> dict[str, Any]:
        return {
            "engines": [times.as_dict() for times in self.engines],
            "agree": self.agree,
            "disagreements": [found.as_dict() for found in self.disagreements],
            "fastest": [{"batch": batch, "engine": name} for batch, name in self.fastest().items()],
            "unavailable": [{"engine": name, "reason": reason} for name, reason in self.unavailable.items()],
            "skipped_batches": list(self.skipped),
            **{name: getattr(self, name) for name in ("precision", "n_threads", "n_docs", "n_compared")},
            "evicted_bytes": self.evicted_bytes,
        }


def interval_rank(n: int) -> int:
    """The largest k such that the k-th smallest and the k-th largest of `n` values enclose the median that they were
    drawn around with a probability of 95 % at least; the calls below it are binomial.

    >>> interval_rank(6), interval_rank(20), interval_rank(100)
    (1, 6, 40)
    """
    from scipy.special import bdtr

    rank = max(0, int(n / 2 - 1.5 * np.sqrt(n)))  # three standard deviations below the middle: too low for certain
    while rank + 1 <= n // 2 and bdtr(rank, n, 0.5) <= 0.025:
        rank += 1
    return max(rank, 1)


# How long engines take for a model on this machine: microseconds per document, by size of batch.
#
# Every call is timed on its own, from a matrix in memory to scores, the way Python sees it. A figure is the median of
# the calls; its 95 % interval holds the true median unless as few of the calls lie on one side of it as happens in 5
# % of all cases (order statistics: nothing is assumed of how times are distributed).
#
# Warm calls follow each other, on ever other documents, so that neither the cache nor the branch predictor knows the
# rows by heart. Before each cold call, a buffer of twice the largest cache (64 MB if its size is unknown) is written
# through, which leaves nothing of the model, the rows, the code or the interpreter in the caches of the calling
# thread's CPU.


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
    cold: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Bench:
    """Time engines on the rows of `X`, taken as float32, after checking that they agree with the reference on them.

    engines    names, "auto" among them if wanted; every engine that can score the model unless given
    batches    documents per call, None for all of them; sizes that `X` has too few rows for are left out
    repeats    calls per figure; else at least 20 and 0.2 s of them, fewer than 20 when they take more than 2 s
    cold       whether cold calls are timed too, which takes longer than warm ones
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
    timer = _Timer(rows, Budget() if repeats is None else Budget(repeats, 0.0, np.inf), evict if cold else None)
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

    def __init__(self, rows: AnyArray, budget: Budget, evict: Evictor | None) -> None:
        self._rows, self._budget, self._evict = rows, budget, evict

    def cell(self, one: _Contestant, batch: int) -> Cell:
        n_sets = len(self._rows) // batch
        numbers = range(n_sets) if n_sets <= _MOST_ROW_SETS else range(0, n_sets, n_sets // _MOST_ROW_SETS)
        sets = [self._rows[number * batch : (number + 1) * batch] for number in numbers]
        for rows in sets[:3]:
            one.score(rows)
        with no_garbage_collection():
            warm = self._time(one.score, sets, None, self._budget)
            if self._evict is None:
                return Cell(batch, one.chosen[batch], Quantity.of_calls(warm, batch), None)
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


# How much faster a smaller model scores, with the engine that is fastest for it.


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
