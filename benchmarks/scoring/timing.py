"""How a cell of the table is timed. Needs numpy alone: the worker in lleaves' own environment uses it too.

This is not the stopwatch of the library (`rankwood.scoring.timing`), which times models of rankwood alone and is not
installed beside lleaves. Peers score with threads of their own, whose CPU time the caller's clock does not show, so all
cells are medians of wall-clock time, ours too; `cpu_share` tells when the machine was busy.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scorer = Callable[[NDArray[np.float32]], Any]  # documents x features -> one score per document


@dataclass(frozen=True)
class Budget:
    """How long a cell may take."""

    seconds: float = 0.4  # to repeat within, after the warm-up
    few: int = 3  # calls that are made even when they take longer than that,
    longest: float = 5.0  # but no more of them once so many seconds are over
    longest_call: float = 5.0  # a batch that would take longer is cut down


@dataclass(frozen=True)
class Cell:
    """Time of one scorer for one size of batch."""

    us_per_doc: float  # median of the calls
    spread: float  # 90th less 10th percentile, over the median
    n_docs: int  # per call
    n_calls: int
    cpu_share: float  # CPU time of the process over wall-clock time: below 1 for a thread that had to wait its turn
    elsewhere: float  # share of that CPU time in other threads than the caller's


def measure(score: Scorer, X: NDArray[np.float32], batch: int, budget: Budget) -> Cell:
    """Median time of a call with `batch` rows, other rows in every call as long as there are any."""
    n_docs = min(batch, len(X))
    if n_docs > 1000:  # is it slow? then fewer documents will do
        n_docs = affordable(n_docs, one_call(score, X[:1000]) / 1000, budget.longest_call)
    blocks = [X[start : start + n_docs] for start in range(0, min(len(X) - n_docs + 1, 4096 * n_docs), n_docs)]
    warm_up(score, blocks, budget)
    times: list[float] = []
    started, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    elapsed = 0.0
    while elapsed < budget.seconds or (len(times) < budget.few and elapsed < budget.longest):
        times.append(one_call(score, blocks[len(times) % len(blocks)]))
        elapsed = time.perf_counter() - started
    cpu, own = time.process_time() - cpu, time.thread_time() - own
    elsewhere = max(0.0, 1.0 - own / cpu) if cpu > 0 else 0.0
    median = statistics.median(times)
    low, high = np.quantile(times, [0.1, 0.9])
    return Cell(1e6 * median / n_docs, float(high - low) / median, n_docs, len(times), cpu / elapsed, elsewhere)


def affordable(n_docs: int, seconds_per_doc: float, longest: float) -> int:
    """As many documents as fit the time, in steps that can be compared between scorers."""
    for part in (1, 3, 10, 30):
        if n_docs / part * seconds_per_doc <= longest:
            return n_docs // part
    return min(n_docs, 1000)


def warm_up(score: Scorer, blocks: list[NDArray[np.float32]], budget: Budget) -> None:
    """A few calls, or one, or for a tenth of the time: whichever is over first."""
    started = time.perf_counter()
    for block in blocks[:20]:
        score(block)
        if time.perf_counter() - started > budget.seconds / 10:
            break


def one_call(score: Scorer, rows: NDArray[np.float32]) -> float:
    start = time.perf_counter()
    score(rows)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Calls:
    """Times of the calls of several threads that score at once."""

    us: NDArray[np.float64]
    per_second: float  # of all threads together
    cpu_share: float  # as in `Cell`

    def summary(self) -> dict[str, float]:
        p50, p99, p999 = np.quantile(self.us, [0.5, 0.99, 0.999])
        facts = {"p50": p50, "p99": p99, "p99.9": p999, "per_second": self.per_second, "cpu_share": self.cpu_share}
        return {name: float(value) for name, value in facts.items()} | {"n_calls": len(self.us)}


def call_times(score: Scorer, X: NDArray[np.float32], batch: int, n_threads: int, seconds: float) -> Calls:
    """Time of every call with `batch` rows, by threads of Python that start together; each begins elsewhere in X."""
    blocks = [X[start : start + batch] for start in range(0, len(X) - batch + 1, batch)]
    warm_up(score, blocks, Budget(seconds=seconds))
    barrier, times = threading.Barrier(n_threads + 1), [list[float]() for _ in range(n_threads)]

    def work(own: list[float], first: int) -> None:
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            own.append(one_call(score, blocks[(first + len(own)) % len(blocks)]))

    threads = [
        threading.Thread(target=work, args=(own, number * len(blocks) // n_threads)) for number, own in enumerate(times)
    ]
    for thread in threads:
        thread.start()
    barrier.wait()
    started, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
    us = 1e6 * np.concatenate(times)
    return Calls(us, len(us) / elapsed, cpu / elapsed)
