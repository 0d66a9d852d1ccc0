"""Runs the scorers of a shape, one after another: agreement first, then the times."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scoring.models import Subject
from scoring.ours import Rankwood, rankwood_rows
from scoring.peers import Matrix, Peer, Unavailable
from scoring.timing import Budget, Cell

TOLERANCE = 1e-5  # relative; what sums in float32 of a thousand trees may differ by
N_CHECKED = 5000  # documents


@dataclass(frozen=True)
class Plan:
    batches: list[int]
    threads: list[int]
    budget: Budget


@dataclass
class Row:
    """Everything measured of one scorer."""

    shape: str
    scorer: str
    isa: str | None = None  # of rankwood
    note: str = ""
    prepare_s: float | None = None
    deviation: float | None = None  # None: another model
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)  # by threads and batch
    left_out: str | None = None  # why there are no times

    def as_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name != "cells"}
        cells = [{"threads": threads, "batch": batch} | asdict(cell) for (threads, batch), cell in self.cells.items()]
        return facts | {"cells": cells}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Row:
        cells = {(cell.pop("threads"), cell.pop("batch")): Cell(**cell) for cell in facts.pop("cells")}
        return cls(**facts, cells=cells)


def run_shape(subject: Subject, peers: list[Peer], engines: list[str], plan: Plan, isa: str) -> Iterator[Row]:
    """Rows of the table of one model: ours, then the peers that take such models."""
    X = subject.source.X
    checked = X[: N_CHECKED if not subject.is_forest else N_CHECKED // 5]
    expected = subject.ensemble.score(checked, engine="reference", precision="double", n_threads=None)
    wake(subject, checked[:100])
    able = [peer for peer in peers if (peer.takes_forests if subject.is_forest else peer.takes_boosted)]
    for scorer in [*rankwood_rows(subject, engines), *able]:
        ours = isinstance(scorer, Rankwood)
        row = Row(subject.shape, scorer.name, isa if ours else None)
        print(f"{subject.shape}: {scorer.name}{f' [{isa}]' if ours else ''} ...", file=sys.stderr, flush=True)
        try:
            run_scorer(scorer, subject, X, checked, expected, plan, row)
        except ImportError as error:
            row.left_out = f"not installed ({error})"
        except Exception as error:  # a peer that fails must not end the others
            row.left_out = f"{'' if isinstance(error, Unavailable) else type(error).__name__ + ': '}{error}"
        finally:
            scorer.close()
        yield row


def wake(subject: Subject, rows: Matrix, seconds: float = 1.0) -> None:
    """Some work before the first row, which is what the others are compared with: a processor at rest is slow."""
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        subject.ensemble.score(rows)


def run_scorer(
    scorer: Peer, subject: Subject, X: Matrix, checked: Matrix, expected: NDArray[np.float64], plan: Plan, row: Row
) -> None:
    scorer.prepare(subject)
    row.prepare_s, row.note = scorer.prepare_s, scorer.note
    scores = scorer.scores(checked)
    if scorer.same_model:
        row.deviation = deviation(scores, expected)
        if not row.deviation <= TOLERANCE:
            raise Unavailable(f"its scores of the same model differ by up to {row.deviation:.1e} of their size")
    for threads in plan.threads:
        for batch in plan.batches:
            row.cells[threads, batch] = scorer.measure(X, batch, threads, plan.budget)


def deviation(scores: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """Largest difference, relative to the score or to the mean size of scores, whichever is larger."""
    size = np.maximum(np.abs(expected), np.abs(expected).mean())
    return float((np.abs(scores - expected) / size).max())
