"""Engine `reference`: plain traversal. It judges the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.engines.base import Engine, Limits

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble


class ReferenceKernel:
    """The packed trees, which models that differ in weights share, with one model's weights and base."""

    def __init__(self, model: Ensemble) -> None:
        self._traversal = model._reference()
        self._tree_weights, self._base = model.tree_weights, model.base
        self.n_bytes = self._traversal.n_bytes

    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None:
        self._traversal.score(X, self._tree_weights, self._base, scores, single, n_threads)

    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None:
        self._traversal.leaves(X, leaves, n_threads)


REFERENCE = Engine("reference", "plain traversal, the judge of the others", Limits(), ReferenceKernel)
