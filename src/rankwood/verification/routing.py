"""Routing: where two models with the same shapes of trees send a row to different leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, IndexArray
from rankwood.errors import listed, one_line
from rankwood.formats.writing import whole_members
from rankwood.model.ensemble import Ensemble

SHOWN = 10  # differences to describe


@dataclass(frozen=True)
class RoutingDifference:
    """A node at which models A and B send a row to different sides.

    Parameters
    ----------
    source, row : str, int
        The row, as in `WorstRow`.
    tree, node : int
        The node inside its tree, numbered as in A.
    feature, value : int, float
        The feature that the node splits on, and the row's value of it.
    threshold_a, threshold_b : float
        Thresholds of the node; of a split on a set the first ones.
    left_a, left_b : bool
        Whether each model sends the row left.
    split_a, split_b : str
        What the node asks, in words: its threshold, or its set.
    name : str or None
        Name of the feature.
    """

    source: str
    row: int
    tree: int
    node: int
    feature: int
    value: float
    threshold_a: float
    threshold_b: float
    left_a: bool
    left_b: bool
    split_a: str = ""
    split_b: str = ""
    name: str | None = None

    def __str__(self) -> str:
        a, b = (("left" if left else "right") for left in (self.left_a, self.left_b))
        feature = f"feature {self.feature + 1} (from 1)" if self.name is None else one_line(self.name)
        return (
            f"{self.source} row {self.row}: tree {self.tree}, node {self.node}: {feature} = {self.value!r}"
            f"; A goes {a} ({self.split_a}), B goes {b} ({self.split_b})"
        )


def _split_in_words(model: Ensemble, node: int) -> str:
    """What an inner node asks: its threshold, or the numbers that its set sends right."""
    thresholds = model.trees.thresholds_of(node)
    if len(thresholds) == 1:
        return f"threshold {float(thresholds[0])!r}"
    members = whole_members(thresholds)
    if members is not None:
        return f"categories {listed(list(map(str, members.tolist())), 5)} go right"
    ends = [repr(end) for end in thresholds.tolist()] + ["inf"] * (len(thresholds) % 2)
    pieces = [f"above {low} up to {high}" for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return f"a set, {listed(pieces, 5)}, goes right"


@dataclass(frozen=True, eq=False)
class Routes:
    """Two models whose trees have the same shapes, though nodes and leaves may be numbered differently.

    Parameters
    ----------
    a, b : Ensemble
    partner : array of int
        For each leaf of A, the number inside its tree of the leaf of B at the same place.
    """

    a: Ensemble
    b: Ensemble
    partner: IndexArray

    @classmethod
    def of(cls, a: Ensemble, b: Ensemble) -> Routes | None:
        """Routes of two models; None when the shapes of their trees differ."""
        if a.n_trees != b.n_trees or not np.array_equal(a.node_offsets, b.node_offsets):
            return None
        shape_a, rank_a = _shape(a)
        shape_b, rank_b = _shape(b)
        if shape_a != shape_b:
            return None
        starts = np.repeat(a.leaf_offsets[:-1], np.diff(a.leaf_offsets))
        by_rank = np.empty_like(rank_b)
        by_rank[starts + rank_b] = np.arange(b.n_leaves) - starts
        return cls(a, b, by_rank[starts + rank_a])

    def differences(
        self, X: AnyArray, source: str, *, n_threads: int | None = None
    ) -> tuple[int, list[RoutingDifference]]:
        """Number of pairs of a row and a tree that end in different leaves, and a description of the first few."""
        first, second = (model.leaves(X, n_threads=n_threads) for model in (self.a, self.b))
        starts = self.a.leaf_offsets
        if not np.array_equal(self.partner, np.arange(self.a.n_leaves) - np.repeat(starts[:-1], np.diff(starts))):
            first = first.copy()
            for tree in range(self.a.n_trees):
                first[:, tree] = self.partner[starts[tree] : starts[tree + 1]][first[:, tree]]
        places = np.argwhere(first != second)
        return len(places), [
            self._describe(X[row], int(row), int(tree), source) for row, tree in places[:SHOWN].tolist()
        ]

    def _describe(self, values: AnyArray, row: int, tree: int, source: str) -> RoutingDifference:
        """The node of a tree at which the models send a row to different sides."""
        start = int(self.a.node_offsets[tree])
        here = there = start
        while True:
            left_a, left_b = _goes_left(self.a, here, values), _goes_left(self.b, there, values)
            if left_a != left_b:
                feature, names = int(self.a.feature[here]), self.a.feature_names
                return RoutingDifference(
                    source, row, tree, here - start, feature, float(values[feature]),
                    float(self.a.threshold[here]), float(self.b.threshold[there]), left_a, left_b,
                    _split_in_words(self.a, here), _split_in_words(self.b, there),
                    None if names is None else names[feature],
                )  # fmt: skip
            here = start + int((self.a.left if left_a else self.a.right)[here])
            there = start + int((self.b.left if left_b else self.b.right)[there])


def _goes_left(model: Ensemble, node: int, values: Any) -> bool:
    return model.trees.goes_left(node, float(values[model.feature[node]]))


def _shape(model: Ensemble) -> tuple[bytes, NDArray[np.int64]]:
    """Nodes of all trees in preorder, 1 for a leaf and 0 for others; and the rank of each leaf in its tree."""
    shape, rank = bytearray(), np.zeros(model.n_leaves, dtype=np.int64)
    left, right = model.left.tolist(), model.right.tolist()
    for tree, (start, stop) in enumerate(
        zip(model.node_offsets[:-1].tolist(), model.node_offsets[1:].tolist(), strict=True)
    ):
        pending, met = [0 if stop > start else -1], 0
        while pending:
            child = pending.pop()
            shape.append(child < 0)
            if child < 0:
                rank[start + tree + ~child] = met
                met += 1
            else:
                pending += [right[start + child], left[start + child]]
    return bytes(shape), rank
