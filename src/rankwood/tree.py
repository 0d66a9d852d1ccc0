"""One tree as arrays: what importers and learners hand to an ensemble, and what exporters get back from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray, IndexArray, NodeArray
from rankwood.errors import ModelError
from rankwood.model_arrays import PER_LEAF, TYPE_OF, as_entries


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree. Node 0 is the root; a child c >= 0 is inner node c, c < 0 is leaf ~c; no inner node: leaf 0 alone.

    >>> tree = Tree.from_nested((0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)))
    >>> tree.feature, tree.left, tree.right, tree.leaf_value
    (array([0, 1], dtype=int32), array([-1, -2], dtype=int32), array([ 1, -3], dtype=int32), array([1., 2., 3.]))
    """

    feature: NodeArray
    threshold: FloatArray
    left: NodeArray
    right: NodeArray
    leaf_value: FloatArray
    missing_left: NDArray[np.bool_] | None = None
    split_gain: FloatArray | None = None
    node_count: IndexArray | None = None
    leaf_cover: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, dtype in TYPE_OF.items():
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, as_entries(values, dtype, name))
        n_nodes = len(self.feature)
        for name in TYPE_OF:
            values, expected = getattr(self, name), n_nodes + (name in PER_LEAF)
            if values is not None and len(values) != expected:
                raise ModelError(f"a tree of {n_nodes} inner nodes needs {expected} {name} entries, got {len(values)}")

    @classmethod
    def from_nested(cls, nested: Any) -> Tree:
        """From nested tuples `(feature, threshold, left, right)` or `(feature, threshold, left, right, missing_left)`,
        where a leaf is a number. Nodes and leaves are numbered in preorder, left before right."""
        nodes: list[list[Any]] = []  # feature, threshold, left, right, missing_left
        leaves: list[float] = []
        pending: list[tuple[Any, int, int]] = [(nested, -1, 0)]  # subtree, its parent, where the parent notes it
        while pending:
            subtree, parent, place = pending.pop()
            is_leaf = not isinstance(subtree, (tuple, list))
            number = ~len(leaves) if is_leaf else len(nodes)
            if parent >= 0:
                nodes[parent][place] = number
            if is_leaf:
                leaves.append(subtree)
                continue
            if len(subtree) not in (4, 5):
                raise ModelError(f"a node must be (feature, threshold, left, right[, missing_left]), got {subtree!r}")
            nodes.append([subtree[0], subtree[1], 0, 0, subtree[4] if len(subtree) == 5 else False])
            pending += [(subtree[3], number, 3), (subtree[2], number, 2)]
        columns: list[Any] = list(zip(*nodes, strict=True)) if nodes else [()] * 5
        feature, threshold, left, right, missing_left = columns
        return cls(feature, threshold, left, right, leaf_value=np.array(leaves), missing_left=missing_left)
