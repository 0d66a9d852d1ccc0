"""Scores of a data set out of which trees can be taken again: the leaf of every document in every live tree is kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.learners.steps import Live, Step
from rankwood.tree import Tree

EXACT_EVERY = 50  # iterations after which scores are summed up anew, so that rounding errors do not pile up


class KeptLeaves:
    """Changes `scores` in place. One byte per document and tree, two for trees of more than 256 leaves.

    `start` has the scores before the first tree.
    """

    def __init__(self, scores: FloatArray, start: FloatArray, *, n_threads: int) -> None:
        self.scores, self.start, self.n_threads = scores, start, n_threads
        self._kept: dict[int, tuple[AnyArray, FloatArray]] = {}

    def keep(self, number: int, tree: Tree, leaf_of_row: NDArray[np.uint16]) -> None:
        """Remember a tree. It is not added."""
        n_leaves = len(tree.leaf_value)
        self._kept[number] = (leaf_of_row.astype(np.uint8) if n_leaves <= 256 else leaf_of_row, tree.leaf_value)

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of trees that were removed."""
        for number in numbers:
            del self._kept[number]

    @property
    def n_bytes(self) -> int:
        return sum(leaves.nbytes for leaves, _ in self._kept.values())

    @property
    def trees(self) -> list[int]:
        return list(self._kept)

    def take_out(self, numbers: Iterable[int], live: Live) -> None:
        """Take trees out of the scores; `live` has the weights that they are in with."""
        self._add([(number, -live[number]) for number in numbers])

    def put_in(self, step: Step, live: Live) -> None:
        """The new tree of a step and the trees that it had dropped; `live` has the weights after it."""
        dropped = () if step.removed else step.dropped
        self._add([(number, live[number]) for number in (step.iteration, *dropped)])
        if step.removed:
            self.forget(step.dropped)

    def sum_up(self, live: Live) -> None:
        """Scores anew: the start, and all live trees in their order, which is how a model sums."""
        self.scores[:] = self.start
        self._add(list(live.items()))

    def _add(self, weighted: list[tuple[int, float]]) -> None:
        if weighted:
            leaves, values = zip(*(self._kept[number] for number, _ in weighted), strict=True)
            weights = [weight for _, weight in weighted]
            _native.add_trees(list(leaves), list(values), weights, self.scores, self.n_threads)
