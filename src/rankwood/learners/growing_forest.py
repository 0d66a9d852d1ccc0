"""The forest while it grows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.ensemble import Ensemble
from rankwood.learners.callbacks import Result
from rankwood.learners.tasks import Regression, Task
from rankwood.model_arrays import TYPE_OF, offsets_of
from rankwood.trees.fulldepth import TreeBatch


class GrowingForest:
    """The trees so far, batch by batch, and the measures after each."""

    boosters: ClassVar[tuple[Any, ...]] = ()  # as in GrowingEnsemble: for LightGBM's callbacks
    task: ClassVar[Task] = Regression()

    def __init__(self, n_features: int, feature_names: tuple[str, ...] | None) -> None:
        self.n_features, self.feature_names = n_features, feature_names
        self.sizes: list[int] = []  # inner nodes of every tree
        self.history: list[list[Result]] = []  # of the trees that count; a batch may have more
        self._columns: dict[str, list[AnyArray]] = {name: [] for name in TreeBatch.NAMES}

    @property
    def n_trees(self) -> int:
        return len(self.history)

    def add(self, batch: TreeBatch) -> None:
        """More trees. They count one by one, when their measures are noted in `history`."""
        self.sizes += batch.sizes.tolist()
        for name, parts in self._columns.items():
            parts.append(batch.arrays[name])

    def whole(self, n_trees: int | None = None) -> Ensemble:
        """The forest of the first `n_trees` trees; all unless told otherwise. Its score is their mean."""
        n_trees = self.n_trees if n_trees is None else n_trees
        return self.ensemble(n_trees, np.full(n_trees, 1.0 / max(n_trees, 1)))

    def ensemble(self, n_trees: int, weights: FloatArray, *, last: bool = False) -> Ensemble:
        """The first `n_trees` trees with these weights. `last`: nothing more is asked of this object.

        Trees of full depth are large: the last time, every array is let go of as soon as it is copied.
        """
        n_nodes = sum(self.sizes[:n_trees])
        arrays: dict[str, Any] = {}
        for name in TreeBatch.NAMES:
            parts = self._columns.pop(name) if last else self._columns[name]
            length = n_nodes + n_trees * (name == "leaf_value")
            arrays[name] = _joined(parts, TYPE_OF[name], length)
            del parts
        return Ensemble(
            **arrays,
            node_offsets=offsets_of(self.sizes[:n_trees]),
            tree_weights=weights,
            n_features=self.n_features,
            feature_names=self.feature_names,
        )


def _joined(parts: list[AnyArray], dtype: Any, length: int) -> AnyArray:
    """The first `length` entries of all parts; never to be changed, so that an Ensemble can share them."""
    array = np.empty(length, dtype=dtype)
    done = 0
    for part in parts:
        some = part[: length - done]
        array[done : done + len(some)] = some
        done += len(some)
    array.flags.writeable = False
    return array
