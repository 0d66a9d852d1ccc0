"""Do engines agree with the reference? Leaf by leaf, and bit by bit of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.engines.base import Precision, PreparedModel
from rankwood.engines.registry import get_engine

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

# Documents times trees that are looked at; of larger data, documents evenly spread over it.
_SCORED, _LEAVES = 200_000_000, 16_000_000
_CALLS = 50  # per size of batch


@dataclass(frozen=True)
class Disagreement:
    """The first thing in which an engine differs from the reference. `batch`: documents of the call."""

    engine: str
    batch: int
    row: int
    tree: int | None  # None: the score differs
    expected: float
    got: float

    def __str__(self) -> str:
        what = "scores" if self.tree is None else f"reaches leaf {self.got} of tree {self.tree} for"
        value = f" {self.got!r}" if self.tree is None else ""
        expected = f"{self.expected!r}" if self.tree is None else f"leaf {self.expected}"
        return (
            f"engine {self.engine!r} {what} document {self.row}{value} in a batch of {self.batch:,}, "
            f"where the reference has {expected}"
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "message": str(self)}


class Judge:
    """What the reference makes of some data, to compare engines with."""

    def __init__(self, model: Ensemble, X: AnyArray, precision: Precision, n_threads: int) -> None:
        self._precision, self._n_threads = precision, n_threads
        self._rows = _spread(len(X), _SCORED // max(1, model.n_trees))
        self._X = X if len(self._rows) == len(X) else X[self._rows]
        reference = get_engine("reference").prepare(model)
        self._scores = reference.score(self._X, precision=precision, n_threads=n_threads)
        self._few = _spread(len(self._X), _LEAVES // max(1, model.n_trees))
        self._leaves = reference.leaves(self._X[self._few], n_threads=n_threads)

    @property
    def n_docs(self) -> int:
        """Documents whose scores are compared."""
        return len(self._rows)

    def check(self, engine: PreparedModel, batches: Sequence[int]) -> Disagreement | None:
        """The first difference in leaves or in scores, in calls of each size of batch; None when there is none."""
        leaves = engine.leaves(self._X[self._few], n_threads=self._n_threads)
        for place, tree in zip(*np.nonzero(leaves != self._leaves), strict=True):
            row = int(self._rows[self._few[place]])
            expected, got = int(self._leaves[place, tree]), int(leaves[place, tree])
            return Disagreement(engine.engine, len(leaves), row, int(tree), expected, got)
        for batch in sorted({min(batch, self.n_docs) for batch in batches}):
            for first in _spread(self.n_docs // batch, _CALLS) * batch:
                found = self._check_scores(engine, int(first), batch)
                if found is not None:
                    return found
        return None

    def _check_scores(self, engine: PreparedModel, first: int, batch: int) -> Disagreement | None:
        rows = slice(first, first + batch)
        expected = self._scores[rows]
        scores = engine.score(self._X[rows], precision=self._precision, n_threads=self._n_threads)
        for place in np.flatnonzero(_bits(scores) != _bits(expected)):
            row = int(self._rows[first + place])
            return Disagreement(engine.engine, batch, row, None, float(expected[place]), float(scores[place]))
        return None


def _bits(scores: FloatArray) -> IndexArray:
    return scores.view(np.int64)


def _spread(n: int, most: int) -> IndexArray:
    """All of `n` numbers, or `most` of them at even distances."""
    return np.arange(n) if n <= most else np.arange(most) * n // most
