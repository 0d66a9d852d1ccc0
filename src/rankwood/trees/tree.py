"""A tree while it grows, and when it is done: over bins as well as over values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.binning import BinEdges, BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.tree import Tree


@dataclass
class GrowingTree:
    """Nodes numbered as the grower numbers them: the children of a node follow each other."""

    gain: list[float] = field(default_factory=list)  # of the best split of every node
    depth: list[int] = field(default_factory=list)
    first_child: dict[int, int] = field(default_factory=dict)  # of every split node; the other child is the next
    max_depth: int = 0

    def walk(self) -> tuple[list[int], list[int]]:
        """Inner nodes in preorder, and leaves from left to right."""
        inner, leaves, stack = [], [], [0]
        while stack:
            node = stack.pop()
            child = self.first_child.get(node)
            if child is None:
                leaves.append(node)
            else:
                inner.append(node)
                stack += [child + 1, child]
        return inner, leaves


@dataclass(frozen=True)
class GrownTree:
    """A finished tree, and the bins behind its thresholds. Leaves are numbered from left to right."""

    tree: Tree
    bins: NDArray[np.int32]  # of every inner node: bins up to this one go left

    def leaves_of(self, binned: BinnedDataset, *, n_threads: int = 1) -> NDArray[np.uint16]:
        """Leaf of every document of a data set in the bins that the tree was grown on."""
        leaf = np.empty(binned.n_docs, dtype=np.uint16)
        tree = self.tree
        assert tree.missing_left is not None
        missing_left = tree.missing_left.view(np.uint8)
        n_values = binned.edges.n_values
        _native.reach_leaves(
            binned.bins, n_values, tree.feature, self.bins, missing_left, tree.left, tree.right, leaf, n_threads
        )
        return leaf


def finish(
    growing: GrowingTree,
    grower: _native.TreeGrower,
    edges: BinEdges,
    inner: list[int],
    leaves: list[int],
    leaf_value: FloatArray,
) -> GrownTree:
    """Arrays of a grown tree; `inner` and `leaves` are those of `growing.walk()`."""
    number_of = {node: number for number, node in enumerate(inner)}
    number_of |= {node: ~number for number, node in enumerate(leaves)}
    first = [growing.first_child[node] for node in inner]
    splits = [grower.node(node) for node in inner]
    tree = Tree(
        feature=np.array([s[0] for s in splits], dtype=np.int32),
        threshold=np.array([edges.threshold(s[0], s[1]) for s in splits], dtype=np.float64),
        left=np.array([number_of[node] for node in first], dtype=np.int32),
        right=np.array([number_of[node + 1] for node in first], dtype=np.int32),
        leaf_value=leaf_value,
        missing_left=np.array([s[2] for s in splits], dtype=np.bool_),
        split_gain=np.array([growing.gain[node] for node in inner], dtype=np.float64),
        node_count=np.array([s[3] for s in splits], dtype=np.int64),
        leaf_cover=np.array([grower.node(node)[3] for node in leaves], dtype=np.float64),
    )
    return GrownTree(tree, np.array([s[1] for s in splits], dtype=np.int32))


def regrown(tree: Tree, edges: BinEdges) -> GrownTree:
    """A tree that was grown on these bins, and the bins behind its thresholds."""
    bins = np.empty(len(tree.feature), dtype=np.int32)
    for node, (feature, threshold) in enumerate(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)):
        start, end = edges.offsets[feature : feature + 2]
        bins[node] = np.searchsorted(edges.flat[start:end], threshold)
    return GrownTree(tree, bins)
