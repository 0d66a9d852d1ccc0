"""The stopwatch: how long models and engines take to score, in microseconds per document."""

from __future__ import annotations

import gc
import inspect
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.matrix import as_feature_matrix
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.agreement import Disagreement, ReferenceResults
from rankwood.scoring.engines import ENGINES, Engine, Precision, PreparedModel, choose_engine, get_engine
from rankwood.system import largest_cache, resolve_threads

# The stopwatch. All commands and studies that state a time of scoring take it here.
#
#   turn:     model A        model B        model C        model A   ...   until each has calls enough
#   calls:    | | | | |      | |            |              | | | | |       each timed on its own, on other documents
#
# Every call goes from a matrix in memory to scores, the way Python sees it. On one thread its time is wall-clock time
# or the thread's CPU time, whichever is less: other work on the machine stretches the first alone. Reading the CPU
# clock takes about as long as scoring a document, so short calls, which are seldom interrupted, are made several to a
# turn and have it read around the turn. With more threads the time of a call is wall-clock time, as CPU times add up.
#
# The figure is the lower quartile of the calls, because whatever else happens makes calls longer, never shorter. Its
# 95 % interval goes by order statistics, which assume nothing of how times are distributed.


BATCH = 4096  # documents per call
QUARTILE = 0.25
FEWEST_CALLS = 6  # below, a quartile says nothing
BUSY = 0.2  # share of the time without a CPU from which on the machine counts as busy
_TURN = 50_000  # nanoseconds of calls that make up a turn
_MOST_CALLS = 32  # of a turn
_MOST_ROW_SETS = 4096  # different batches that a model goes round
_MOST_ROWS = 1 << 18  # in them, or one batch


@dataclass(frozen=True)
class Budget:
    """The number of calls that a model is timed with.

    Parameters
    ----------
    calls : int, default 20
        At least so many calls.
    seconds : float, default 0.1
        At least so long.
    most_seconds : float, default 0.8
        When calls are slow, no more of them than make up this time; but at least six.
    """

    calls: int = 20
    seconds: float = 0.1
    most_seconds: float = 0.8

    def is_spent(self, n_calls: int, nanoseconds: int) -> bool:
        """Whether a model has calls enough."""
        if n_calls < min(self.calls, FEWEST_CALLS):
            return False
        return (n_calls >= self.calls and nanoseconds >= 1e9 * self.seconds) or self.is_exceeded(n_calls, nanoseconds)

    def is_exceeded(self, n_calls: int, nanoseconds: int) -> bool:
        """Whether a model must not be called any more."""
        return n_calls >= FEWEST_CALLS and nanoseconds >= 1e9 * self.most_seconds


@dataclass(frozen=True)
class Timing:
    """Microseconds per document of one model in one engine, and the conditions they were measured under.

    Attributes
    ----------
    us_per_doc : float
        The lower quartile of the calls.
    low, high : float
        Its 95 % interval. With fewer than 13 calls `low` is the fastest of them, and holds less often than that.
    wall_us : float
        The median wall-clock time: what a caller saw, other work on the machine included.
    waited : float
        The share of the wall-clock time in which the calls had no CPU.
    n_calls, batch : int
        Timed calls, and documents in each.
    engine : str
        The engine that did the work; with "auto" the one that was taken.
    precision : {"double", "single"}
    n_threads : int
    """

    us_per_doc: float
    low: float
    high: float
    n_calls: int
    batch: int
    engine: str
    precision: Precision = "double"
    n_threads: int = 1
    wall_us: float = 0.0
    waited: float = 0.0

    @property
    def busy(self) -> bool:
        """Whether other work kept the calls from a CPU for more than a fifth of their time."""
        return self.waited > BUSY

    @property
    def conditions(self) -> dict[str, Any]:
        """What was measured, as JSON can hold it."""
        return {name: getattr(self, name) for name in ("batch", "engine", "precision", "n_threads", "busy")}


@dataclass(frozen=True)
class OtherModel:
    """A model of another library, timed by its own `predict`.

    Parameters
    ----------
    engine : str
        Name of the library.
    predict : callable
        Takes rows and a number of threads.
    """

    engine: str
    predict: Callable[[AnyArray, int], Any]

    def score(self, X: AnyArray, *, precision: Precision, n_threads: int) -> Any:
        """Have the library predict, in whatever precision it has."""
        return self.predict(X, n_threads)


def time_models(
    models: Sequence[tuple[Ensemble | PreparedModel | OtherModel, AnyArray]],
    engine: str = "auto",
    *,
    batch: int = BATCH,
    precision: Precision = "double",
    n_threads: int | None = 1,
    group: AnyArray | None = None,
    budget: Budget | None = None,
    before: Callable[[], None] | None = None,
    on_model: Callable[[int], None] = lambda done: None,
) -> list[Timing]:
    """Times of several models, called in turn so that a busy moment of the machine falls on all of them.

    Parameters
    ----------
    models : sequence of (model, rows)
        Rows are those that the model is to score. A prepared model is timed in the engine that made it ready, a model
        of another library by its own means.
    engine : str, default "auto"
        Engine for the models that are not prepared; "auto" is what `Ensemble.score` takes by itself.
    batch : int, default 4096
        Documents per call; all rows when there are fewer.
    precision, n_threads
        As for `Ensemble.score`.
    group : array of int, optional
        Sizes of the queries of the rows. Calls are then of whole queries, up to `batch` documents of them or a single
        query, and a model with early exit is timed with it.
    budget : Budget, optional
        How many calls each model takes.
    before : callable, optional
        Called before every call, which is then alone in its turn; not timed.
    on_model : callable, optional
        Called with the number of models that have calls enough.

    Returns
    -------
    list of Timing
        One per model, in the order given.

    Examples
    --------
    >>> model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    >>> (found,) = time_models([(model, np.zeros((10, 1), np.float32))])
    >>> found.batch, found.precision, found.low <= found.us_per_doc <= found.high
    (10, 'double', True)
    """
    threads, allowed = resolve_threads(n_threads), budget or Budget()
    runners = [_Runner(model, X, group, engine, batch, precision, threads, before) for model, X in models]
    n_enough = 0
    with no_garbage_collection():
        while n_enough < len(runners):
            # A model that has calls enough goes on while others need more, unless it is slow.
            for runner in runners:
                if not allowed.is_exceeded(len(runner.wall), runner.spent):
                    runner.turn(allowed)
            now = sum(allowed.is_spent(len(runner.wall), runner.spent) for runner in runners)
            if now > n_enough:
                on_model(now)
            n_enough = now
    return [runner.timing() for runner in runners]


def speed_up(base: Timing, other: Timing) -> tuple[float, float | None, float | None]:
    """How many times as fast as `base` the other model is, and the ends of the 95 % interval.

    Parameters
    ----------
    base, other : Timing
        Times of the two models.

    Returns
    -------
    (float, float or None, float or None)
        The quotient of the times, and its interval; None where an interval of a time begins at 0.

    Notes
    -----
    The interval of a quotient out of those of its parts, on the logarithmic scale (MOVER, Donner and Zou 2012), which
    takes the two for independent. Models that are timed in turn see the same busy moments: it is rather too wide.

    Examples
    --------
    >>> base, other = Timing(3.0, 2.4, 3.6, 20, 4096, "traverse"), Timing(1.0, 1.0, 1.0, 20, 4096, "traverse")
    >>> [round(value, 6) for value in speed_up(base, other)]
    [3.0, 2.4, 3.6]
    """
    value = base.us_per_doc / other.us_per_doc if other.us_per_doc > 0 else math.inf
    if not min(base.low, other.low) > 0:
        return value, None, None
    down = math.hypot(math.log(base.us_per_doc / base.low), math.log(other.high / other.us_per_doc))
    up = math.hypot(math.log(base.high / base.us_per_doc), math.log(other.us_per_doc / other.low))
    return value, value * math.exp(-down), value * math.exp(up)


def warn_if_busy(timings: Iterable[Timing]) -> None:
    """Warn, in a sentence, when the machine had other work to do while models were timed."""
    if any(timing.busy for timing in timings):
        warnings.warn(
            "the machine was busy while this was timed: calls waited for a CPU in more than a fifth of their time, so "
            "times and speed-ups are less certain than their intervals say",
            stacklevel=_level_of_caller(),
        )


def _level_of_caller() -> int:
    """The `stacklevel` of a warning of the function that calls this, so that it shows the line that called rankwood."""
    frame, level = inspect.currentframe(), 0  # here; the function that warns is level 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rankwood":
        frame, level = frame.f_back, level + 1
    return level


class _Runner:
    """The calls of one model, each on other documents than the one before."""

    def __init__(
        self,
        model: Ensemble | PreparedModel | OtherModel,
        X: AnyArray,
        group: AnyArray | None,
        engine: str,
        batch: int,
        precision: Precision,
        n_threads: int,
        before: Callable[[], None] | None,
    ) -> None:
        self._precision, self._n_threads, self._before = precision, n_threads, before
        sets = (
            [(rows, {}) for rows in _row_sets(X, min(batch, len(X)))] if group is None else _query_sets(X, group, batch)
        )
        self._batch = round(float(np.mean([len(rows) for rows, _ in sets])))
        if engine != "auto" and isinstance(model, Ensemble):
            model = get_engine(engine).prepare(model)
        self._engine = choose_engine(model, self._batch) if isinstance(model, Ensemble) else model.engine
        score: Callable[..., Any] = partial(model.score, precision=precision, n_threads=n_threads)
        # Another library may have one thread of its own do the work.
        one_thread = n_threads == 1 and not isinstance(model, OtherModel)
        self._cpu_clock = time.thread_time_ns if one_thread else time.process_time_ns
        self._calls = itertools.cycle([(partial(score, rows, **queries), len(rows)) for rows, queries in sets])
        self.wall: list[int] = []  # nanoseconds of each call
        self._docs: list[int] = []  # documents of each call
        self.spent = 0  # nanoseconds of all turns
        self._turns: list[tuple[int, int, int]] = []  # number of calls, and nanoseconds of wall-clock and CPU time
        self._calls_per_turn = 1 if before is not None else self._warm_up()

    def _warm_up(self) -> int:
        """Make a few calls, and return how many of them make up a turn."""
        times = []
        for call, _ in itertools.islice(self._calls, 3):
            start = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - start)
        return int(np.clip(_TURN // max(1, min(times)), 1, _MOST_CALLS))

    def turn(self, budget: Budget) -> None:
        """Make the calls of a turn, as long as the budget lasts."""
        if self._before is not None:
            self._before()
        clock, n_before = time.perf_counter_ns, len(self.wall)
        cpu_start, turn_start = self._cpu_clock(), clock()
        for _ in range(self._calls_per_turn):
            call, n_docs = next(self._calls)
            start = clock()
            call()
            stop = clock()
            self.wall.append(stop - start)
            self._docs.append(n_docs)
            if budget.is_spent(len(self.wall), self.spent + stop - turn_start):
                break
        cpu = self._cpu_clock() - cpu_start
        self._turns.append((len(self.wall) - n_before, stop - turn_start, cpu))
        self.spent += stop - turn_start

    def timing(self) -> Timing:
        n_calls, wall, cpu = np.maximum(self._turns, (1, 1, 0)).T  # a clock may be too coarse for a turn
        times = np.asarray(self.wall, dtype=np.float64)
        # A CPU clock that stood still in a turn ticks too coarsely to time one.
        if self._n_threads == 1 and cpu.min() > 0:
            alone = np.repeat(n_calls == 1, n_calls)
            times[alone] = np.minimum(times[alone], cpu[n_calls == 1])
        docs = np.asarray(self._docs)
        times = np.sort(times / 1000 / docs)
        low, high = interval_ranks(len(times))
        return Timing(
            us_per_doc=float(np.quantile(times, QUARTILE, method="inverted_cdf")),
            low=float(times[low - 1]),
            high=float(times[high - 1]),
            n_calls=len(times),
            batch=self._batch,
            engine=self._engine,
            precision=self._precision,
            n_threads=self._n_threads,
            wall_us=float(np.median(self.wall / docs)) / 1000,
            waited=_waited(wall, cpu, self._n_threads),
        )


def _row_sets(X: AnyArray, size: int) -> list[AnyArray]:
    """Whole batches, spread over the rows, so that neither the cache nor the branch predictor knows them by heart."""
    n_sets, most = len(X) // size, min(_MOST_ROW_SETS, max(1, _MOST_ROWS // size))
    numbers = range(n_sets) if n_sets <= most else range(0, n_sets, -(-n_sets // most))
    return [np.ascontiguousarray(X[number * size : (number + 1) * size]) for number in numbers]


def _query_sets(X: AnyArray, group: AnyArray, size: int) -> list[tuple[AnyArray, dict[str, AnyArray]]]:
    """Whole queries one after the other, up to `size` documents of them or a single query, with their sizes."""
    offsets = np.concatenate([[0], np.cumsum(group)])
    sets, first = [], 0
    while first < len(group) and offsets[first] < _MOST_ROWS:
        end = max(first + 1, int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1)
        rows = np.ascontiguousarray(X[offsets[first] : offsets[end]])
        if len(rows):
            sets.append((rows, {"group": np.asarray(group[first:end])}))
        first = end
    return sets


def _waited(wall: AnyArray, cpu: AnyArray, n_threads: int) -> float:
    """Share of the wall-clock time without a CPU; the best turns show how many CPUs several threads can use."""
    n_cpus = 1.0 if n_threads == 1 else max(1.0, float(np.quantile(cpu / wall, 0.9)))
    return max(0.0, 1.0 - float(cpu.sum()) / (n_cpus * float(wall.sum())))


def interval_ranks(n: int, share: float = QUARTILE) -> tuple[int, int]:
    """Ranks of the two of `n` values between which a quantile of their distribution lies with a probability of 95 %.

    The number of values below the quantile is binomial. Where so few values tell no lower bound, the rank is 1.

    Examples
    --------
    >>> interval_ranks(6), interval_ranks(20), interval_ranks(100)
    ((1, 5), (2, 10), (17, 35))
    """
    from scipy.special import bdtr

    at_most = bdtr(np.arange(n, dtype=np.float64), n, share)  # the chance that so many lie below it, or fewer
    low = int(np.searchsorted(at_most, 0.025, side="right"))
    return max(low, 1), min(int(np.searchsorted(at_most, 0.975)) + 1, n)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off for a while, as timeit does: a collection would land in some call by chance."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# What a benchmark of engines found.


@dataclass(frozen=True)
class Cell:
    """Times of one engine at one size of batch; `cold` is None when cold calls were not timed."""

    warm: Timing
    cold: Timing | None

    @property
    def batch(self) -> int:
        return self.warm.batch

    @property
    def chosen(self) -> str:
        """The engine that did the work; not the one that was asked for only when that was "auto"."""
        return self.warm.engine

    def as_dict(self) -> dict[str, Any]:
        names = ("us_per_doc", "low", "high", "n_calls")
        warm = {name: getattr(self.warm, name) for name in (*names, "wall_us", "waited")}
        cold = {} if self.cold is None else {f"cold_{name}": getattr(self.cold, name) for name in names}
        return {"batch": self.batch, "chosen": self.chosen, **warm, **cold}


@dataclass(frozen=True)
class EngineTimes:
    """Times of one engine.

    Attributes
    ----------
    engine : str
        Its name.
    prepare_s : float
        Seconds to prepare the model afresh.
    from_cache : bool
        Whether it took what an earlier run had compiled.
    n_bytes : int
        Memory that the prepared model takes.
    cells : tuple of Cell
        Times by size of batch.
    """

    engine: str
    prepare_s: float
    from_cache: bool
    n_bytes: int
    cells: tuple[Cell, ...]

    @property
    def us_per_doc(self) -> float | None:
        """Warm microseconds per document at the largest batch."""
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
class ExitTimes:
    """Times of one engine with and without early exit, on the same batches of whole queries."""

    engine: str
    exit: Timing
    plain: Timing

    def as_dict(self) -> dict[str, Any]:
        times = {name: getattr(self.exit, name) for name in ("us_per_doc", "low", "high", "n_calls", "batch")}
        return {"engine": self.engine, **times, "us_per_doc_without": self.plain.us_per_doc}


@dataclass(frozen=True)
class Bench:
    """Times of engines for a model: what `bench` returns.

    An engine that disagrees with the reference is not timed, and then nothing is.

    Attributes
    ----------
    engines : tuple of EngineTimes
        One per engine.
    unavailable : dict of str to str
        Engines that cannot score the model, and why.
    disagreements : tuple of Disagreement
        Differences from the reference.
    skipped : tuple of int
        Sizes of batches that the data is too small for.
    precision, n_threads
        As for `Ensemble.score`.
    n_docs, n_compared : int
        Documents, and those whose scores were compared with the reference.
    evicted_bytes : int
        Size of the buffer that pushes everything else out of the caches.
    exits : tuple of ExitTimes
        Times with early exit, of models that have it and engines that can.
    trees_evaluated : float or None
        Share of the trees that documents go through on average with early exit.
    """

    engines: tuple[EngineTimes, ...]
    unavailable: dict[str, str]
    disagreements: tuple[Disagreement, ...]
    skipped: tuple[int, ...]
    precision: Precision
    n_threads: int
    n_docs: int
    n_compared: int
    evicted_bytes: int
    exits: tuple[ExitTimes, ...] = ()
    trees_evaluated: float | None = None

    @property
    def agree(self) -> bool:
        return not self.disagreements

    @property
    def timings(self) -> list[Timing]:
        """Warm times of all cells: cold calls wait for memory, which counts as CPU time."""
        cells = [cell.warm for times in self.engines for cell in times.cells]
        return cells + [timing for times in self.exits for timing in (times.exit, times.plain)]

    @property
    def busy(self) -> bool:
        """Whether the machine had other work to do meanwhile."""
        return any(timing.busy for timing in self.timings)

    def fastest(self) -> dict[int, str]:
        """For every size of batch, the engine with the lowest warm time."""
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
            **(
                {}
                if self.trees_evaluated is None
                else {"exits": [times.as_dict() for times in self.exits], "trees_evaluated": self.trees_evaluated}
            ),
            "busy": self.busy,
        }


# How long engines take for a model on this machine, by size of batch.
#
# Warm calls follow each other. Before each cold call, a buffer of twice the largest cache (64 MB if its size is
# unknown) is written through, which leaves nothing of the model, the rows, the code or the interpreter in the caches of
# the calling thread's CPU.


BATCHES: tuple[int | None, ...] = (1, 10, 100, 1000, None)  # None: all documents
BENCH_BUDGET = Budget(calls=20, seconds=0.2, most_seconds=2.0)
_EVICTED_IF_UNKNOWN = 64 << 20
_PREPARATIONS, _QUICK = 5, 0.2  # how often a preparation is timed when it takes less than so many seconds


def bench(
    model: Ensemble,
    X: Any,
    engines: Sequence[str | Engine] | None = None,
    batches: Sequence[int | None] = BATCHES,
    *,
    group: AnyArray | None = None,
    precision: Precision = "double",
    n_threads: int = 1,
    repeats: int | None = None,
    cold: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Bench:
    """Times of engines on the rows of `X`, after checking that they agree with the reference on them.

    Parameters
    ----------
    model : Ensemble
    X : matrix of documents x features
        Taken as float32.
    engines : sequence of str or Engine, optional
        Engines or their names, "auto" among them if wanted; every one that can score the model unless given.
    batches : sequence of int or None
        Documents per call, None for all of them; sizes that `X` has too few rows for are left out.
    group : array of int, optional
        Sizes of the queries of the rows: a model with early exit is also timed with it.
    precision, n_threads
        As for `Ensemble.score`.
    repeats : int, optional
        Calls per figure; unless given at least 20 and 0.2 s of them, fewer than 20 when they take more than 2 s.
    cold : bool, default True
        Whether cold calls are timed too, which takes longer than warm ones.
    progress : callable, optional
        Called with the number of cells (engine and size of batch) timed, and of all.

    Examples
    --------
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
        raise RankwoodError(f"repeats must be at least {FEWEST_CALLS}: fewer calls tell too little")
    sizes, skipped = _sizes(batches, len(rows))
    unavailable = {} if engines is not None else _obstacles(model)
    wanted = list(dict.fromkeys(engines if engines is not None else ENGINES))
    contestants = [_Contestant.make(engine, model, sizes) for engine in wanted if engine not in unavailable]
    reference = ReferenceResults(model, rows, precision, threads)
    checks = (reference.check(prepared, sizes) for one in contestants for prepared in one.prepared)
    disagreements = tuple(dict.fromkeys(found for found in checks if found is not None))
    exits = _exit_models(model, contestants, group)
    if exits and not disagreements:
        disagreements = _exit_disagreements(model, exits, rows, group, precision, threads)
    evict = Evictor()
    budget = BENCH_BUDGET if repeats is None else Budget(repeats, 0.0, np.inf)
    few = Budget(budget.calls, 0.0, budget.most_seconds)
    total, done = len(contestants) * len(sizes), itertools.count(1)
    results = []
    for one in contestants:
        cells = []
        for batch in sizes if not disagreements else ():
            run = partial(time_models, [(one.subject, rows)], batch=batch, precision=precision, n_threads=threads)
            (warm,) = run(budget=budget)
            cells.append(Cell(warm, run(budget=few, before=evict)[0] if cold else None))
            if progress is not None:
                progress(next(done), total)
        results.append(EngineTimes(one.name, one.prepare_s, one.from_cache, one.n_bytes, tuple(cells)))
    exit_times = [
        ExitTimes(prepared.engine, *time_models(
            [(prepared, rows), (get_engine(prepared.engine).prepare(model.replace(exit=None)), rows)],
            precision=precision, n_threads=threads, group=group, budget=budget))
        for prepared in (exits if not disagreements else ())
    ]  # fmt: skip
    trees = model.trees_evaluated(rows, group=group, precision=precision, n_threads=threads) if exits else None
    found = Bench(
        engines=tuple(results),
        unavailable=unavailable,
        disagreements=disagreements,
        skipped=skipped,
        precision=precision,
        n_threads=threads,
        n_docs=len(rows),
        n_compared=reference.n_docs,
        evicted_bytes=evict.n_bytes,
        exits=tuple(exit_times),
        trees_evaluated=None if trees is None else float(trees.mean()) / max(1, model.n_trees),
    )
    warn_if_busy(found.timings)
    return found


def _exit_models(model: Ensemble, contestants: Sequence[_Contestant], group: AnyArray | None) -> list[PreparedModel]:
    """The model in every engine that is timed and has early exit; empty when the model has none."""
    if model.exit is None or group is None:
        return []
    engines = [get_engine(name) for name in dict.fromkeys(p.engine for one in contestants for p in one.prepared)]
    return [engine.prepare(model) for engine in engines if engine.make_exit is not None]


def _exit_disagreements(
    model: Ensemble, exits: Sequence[PreparedModel], rows: AnyArray, group: Any, precision: Precision, threads: int
) -> tuple[Disagreement, ...]:
    """The first difference of each engine from the reference in scores with early exit."""
    expected = model.score(rows, group=group, engine="reference", precision=precision, n_threads=threads)
    found = []
    for prepared in exits:
        scores = prepared.score(rows, group=group, precision=precision, n_threads=threads)
        for row in np.flatnonzero(scores.view(np.int64) != expected.view(np.int64))[:1].tolist():
            found.append(Disagreement(prepared.engine, len(rows), row, None, float(expected[row]), float(scores[row])))
    return tuple(found)


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
    """Engines that cannot score the model, and why."""
    reasons = {name: engine.obstacle(model) for name, engine in ENGINES.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


@dataclass(frozen=True)
class _Contestant:
    """An engine, ready to score; "auto" may take several engines, whose preparations add up."""

    name: str
    prepared: tuple[PreparedModel, ...]
    subject: Ensemble | PreparedModel  # that is timed
    prepare_s: float
    from_cache: bool

    @classmethod
    def make(cls, engine: str | Engine, model: Ensemble, sizes: list[int]) -> _Contestant:
        name = engine.name if isinstance(engine, Engine) else engine
        if isinstance(engine, Engine):
            engines = [engine]
        else:
            chosen = dict.fromkeys(choose_engine(model, size) for size in sizes) if name == "auto" else [name]
            engines = [get_engine(one) for one in chosen]
        timed = [_time_preparation(one, model) for one in engines]
        prepared = tuple(one for one, _, _ in timed)
        return cls(
            name=name,
            prepared=prepared,
            subject=model if name == "auto" else prepared[0],
            prepare_s=sum(seconds for _, seconds, _ in timed),
            from_cache=any(from_cache for _, _, from_cache in timed),
        )

    @property
    def n_bytes(self) -> int:
        return sum(prepared.n_bytes for prepared in self.prepared)


def _time_preparation(engine: Engine, model: Ensemble) -> tuple[PreparedModel, float, bool]:
    """The prepared model, the seconds it took (the median, if it is quick), and whether it was compiled before."""
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


class Evictor:
    """A call pushes everything else out of the caches, by writing through a buffer larger than them."""

    def __init__(self) -> None:
        cache = largest_cache()
        self.n_bytes = _EVICTED_IF_UNKNOWN if cache is None else 2 * cache
        self._buffer: FloatArray | None = None  # made when it is needed first

    def __call__(self) -> None:
        if self._buffer is None:
            self._buffer = np.zeros(self.n_bytes // 8)
        self._buffer += 1.0
