"""Where two models of the same shape send a row to different leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, IndexArray
from rankwood.ensemble import Ensemble

SHOWN = 10  # differences that are described


@dataclass(frozen=True)
class RoutingDifference:
    """A row that two models part on: the node, numbered as in the first model, and what each compares with there."""

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

    def __str__(self) -> str:
        a, b = (("left" if left else "right") for left in (self.left_a, self.left_b))
        return (
            f"{self.source} row {self.row}: tree {self.tree}, node {self.node}: feature {self.feature} = {self.value!r}"
            f"; A goes {a} (threshold {self.threshold_a!r}), B goes {b} (threshold {self.threshold_b!r})"
        )


@dataclass(frozen=True, eq=False)
class Routes:
    """Two models with the same shape of trees, whatever the numbers of their nodes and leaves."""

    a: Ensemble
    b: Ensemble
    partner: IndexArray  # of each leaf of A: the number, inside its tree, of the leaf of B in its place

    @classmethod
    def of(cls, a: Ensemble, b: Ensemble) -> Routes | None:
        """None when the shapes differ."""
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
        """How often a row and a tree part the models, and the first few times."""
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
        start = int(self.a.node_offsets[tree])
        here = there = start
        while True:
            left_a, left_b = _goes_left(self.a, here, values), _goes_left(self.b, there, values)
            if left_a != left_b:
                feature = int(self.a.feature[here])
                return RoutingDifference(
                    source, row, tree, here - start, feature, float(values[feature]),
                    float(self.a.threshold[here]), float(self.b.threshold[there]), left_a, left_b,
                )  # fmt: skip
            here = start + int((self.a.left if left_a else self.a.right)[here])
            there = start + int((self.b.left if left_b else self.b.right)[there])


def _goes_left(model: Ensemble, node: int, values: Any) -> bool:
    value = float(values[model.feature[node]])
    return bool(model.missing_left[node]) if value != value else value <= float(model.threshold[node])


def _shape(model: Ensemble) -> tuple[bytes, NDArray[np.int64]]:
    """The nodes of all trees from left to right, True for a leaf; and the rank of each leaf within its tree."""
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
