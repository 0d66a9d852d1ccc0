"""rankwood's own rows of the table: every engine that can score the model, and "auto", in both precisions."""

from __future__ import annotations

import inspect
from typing import Any

from scoring.models import Subject
from scoring.peers import Peer
from scoring.timing import Scorer

import rankwood as rw

PRECISIONS = ("single", "double")
DEFAULT_PRECISION: str = inspect.signature(rw.Ensemble.score).parameters["precision"].default


class Rankwood(Peer):
    """One engine in one precision, called as users call it."""

    packages = ()
    takes_forests = True

    def __init__(self, engine: str, precision: str) -> None:
        self.engine, self.precision = engine, precision
        self.name = f"rankwood {engine}, {precision}"

    def convert(self, subject: Subject) -> Any:
        # The same trees with nothing prepared; "auto" is asked for a block, as its engines for blocks prepare more.
        model = subject.ensemble
        return model.select(range(model.n_trees)), subject.source.X[: 1000 if self.engine == "auto" else 1]

    def load(self, converted: Any) -> None:
        self.model, rows = converted
        self.scorer(1)(rows)

    def scorer(self, n_threads: int) -> Scorer:
        model, engine, precision = self.model, self.engine, self.precision
        return lambda X: model.score(X, engine=engine, precision=precision, n_threads=n_threads)

    def close(self) -> None:
        del self.model


def rankwood_rows(subject: Subject, engines: list[str]) -> list[Rankwood]:
    """In the default precision first: its "auto" is what the others are compared with."""
    able = ["auto", *rw.available_engines(subject.ensemble)]
    precisions = sorted(PRECISIONS, key=lambda precision: precision != DEFAULT_PRECISION)
    return [Rankwood(engine, precision) for engine in able if engine in engines for precision in precisions]
