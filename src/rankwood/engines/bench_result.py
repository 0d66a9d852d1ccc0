"""What a benchmark of engines found, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.engines.agreement import Disagreement
from rankwood.engines.base import Precision

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
