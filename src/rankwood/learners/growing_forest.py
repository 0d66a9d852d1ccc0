"""The forest while it grows."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.learners.callbacks import Result
from rankwood.learners.tasks import Task
from rankwood.model_arrays import TYPE_OF, offsets_of
from rankwood.trees.fulldepth import TreeBatch


class GrowingForest:
    """The trees so far, batch by batch, and the measures after each round: one tree of every problem of the task."""

    boosters: ClassVar[tuple[Any, ...]] = ()  # as in GrowingEnsemble: for LightGBM's callbacks

    def __init__(self, start: Ensemble, task: Task) -> None:
        self.start, self.task = start, task
        self.sizes: list[int] = []  # inner nodes of every tree
        self.history: list[list[Result]] = []  # of the rounds that count; a batch may have more
        self._columns: dict[str, list[AnyArray]] = {name: [] for name in TreeBatch.NAMES}

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    def add(self, batch: TreeBatch) -> None:
        """More trees. Their rounds count one by one, when their measures are noted in `history`."""
        self.sizes += batch.sizes.tolist()
        for name, parts in self._columns.items():
            parts.append(batch.arrays[name])

    def whole(self, n_rounds: int | None = None, *, last: bool = False) -> Ensemble:
        """The forest of the first `n_rounds`; of all unless told otherwise. Every problem is the mean of its trees."""
        n_rounds = self.n_rounds if n_rounds is None else n_rounds
        return self.task.extend(self.start, self.trees(n_rounds, self.task.sign * mean_weight(n_rounds), last=last))

    def trees(self, n_rounds: int, weight: float, *, last: bool = False) -> Ensemble:
        """The trees of the first `n_rounds` with this weight. `last`: nothing more is asked of this object.

        Trees of full depth are large: the last time, every array is let go of as soon as it is copied.
        """
        n_trees = n_rounds * self.task.n_problems
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
            tree_weights=np.full(n_trees, weight),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )


def mean_weight(n_trees: int) -> float:
    """Weight of a tree in a mean of `n_trees`, cut to 24 bits.

    Labels are small whole numbers and leaves of full depth hold single labels. Times 24 bits these are exact, and so is
    their sum: documents that the trees do not tell apart have equal scores, in whichever order trees are added.

    >>> mean_weight(8), mean_weight(10)
    (0.125, 0.09999999403953552)
    """
    share, exponent = math.frexp(1.0 / max(n_trees, 1))
    return math.ldexp(math.floor(share * 2**24), exponent - 24)


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
