"""Scores of a data set out of which trees can be taken again: the leaf of every document in every live tree is kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.learners.steps import Live, Step
from rankwood.tree import Tree


class KeptLeaves:
    """Changes `scores` in place. One byte per document and tree, two for trees of more than 256 leaves.

    A score is the exact sum of what it was at the start and of its trees' values, rounded once: see kept_leaves.hpp.
    So it does not matter which trees came and went before, nor in what order. Documents that no tree tells apart have
    equal scores, and training that goes on from a checkpoint has the scores that it had.
    """

    def __init__(self, scores: FloatArray, *, n_threads: int) -> None:
        self.scores, self.n_threads = scores, n_threads
        self.rests = np.zeros(len(scores))
        small = np.abs(scores) < 2.0**-28
        scores[small] = np.rint(scores[small] * 2.0**80) * 2.0**-80  # as the values of leaves are
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
    def trees(self) -> list[int]:
        """Numbers of the trees that are remembered."""
        return list(self._kept)

    @property
    def n_bytes(self) -> int:
        """Memory of their leaves."""
        return sum(leaves.nbytes for leaves, _ in self._kept.values())

    def put_in(self, numbers: Iterable[int], live: Live) -> None:
        """Add trees to the scores, with their weights in `live`."""
        self._add({number: live[number] for number in numbers})

    def take_out(self, numbers: Iterable[int], live: Live) -> None:
        """Take trees out of the scores, in which they are with their weights in `live`."""
        self._add({number: -live[number] for number in numbers})

    def settle(self, step: Step, live: Live) -> None:
        """Add the new tree of a step and the trees that it had dropped, or forget these; `live` is after the step."""
        if step.removed:
            self.forget(step.dropped)
        self.put_in([step.iteration, *(() if step.removed else step.dropped)], live)

    def _add(self, weights: Live) -> None:
        if weights:
            leaves, values = zip(*(self._kept[number] for number in weights), strict=True)
            weighted = list(leaves), list(values), list(weights.values())
            _native.add_trees(*weighted, self.scores, self.rests, self.n_threads)
