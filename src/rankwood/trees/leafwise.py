"""Best-first growth, with the cost-sensitive choice of Asadi & Lin (2013, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.trees.tree import GrowingTree

MAX_LEAVES = 65_536  # leaf numbers of training documents are kept in two bytes


@dataclass(frozen=True)
class GrowthRules:
    """When a tree stops growing, and which leaf is split next.

    n_leaves, max_depth    limits of a tree (max_depth None: no limit)
    min_docs_per_leaf      smallest number of documents of a leaf; below 1, a fraction of those that the tree sees
    min_gain, min_hessian  smallest gain of a split, smallest sum of hessians of a leaf
    l2                     added to the sum of hessians wherever it divides
    depth_relaxation       Asadi & Lin's lambda in [0, 1]: how much gain may be given up for a shallower tree
    gain                   "newton" or "variance" (their equation 2, on the pseudo-responses)
    """

    n_leaves: int = 64
    max_depth: int | None = None
    min_docs_per_leaf: float = 1
    min_gain: float = 0.0
    min_hessian: float = 1e-3
    l2: float = 0.0
    depth_relaxation: float = 0.0
    gain: str = "newton"

    def __post_init__(self) -> None:
        if not 1 <= self.n_leaves <= MAX_LEAVES:
            raise RankwoodError(f"n_leaves must lie between 1 and {MAX_LEAVES}, got {self.n_leaves}")
        if self.max_depth is not None and self.max_depth < 0:
            raise RankwoodError(f"max_depth must be at least 0, or None for no limit, got {self.max_depth}")
        if not self.min_docs_per_leaf > 0:
            raise RankwoodError(f"min_docs_per_leaf must be above 0, got {self.min_docs_per_leaf}")
        if not 0.0 <= self.depth_relaxation <= 1.0:
            raise RankwoodError(f"depth_relaxation must lie between 0 and 1, got {self.depth_relaxation}")
        if self.gain not in ("newton", "variance"):
            raise RankwoodError(f"gain must be 'newton' or 'variance', got {self.gain!r}")
        for name in ("min_gain", "min_hessian", "l2"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise RankwoodError(f"{name} must be a number of at least 0, got {getattr(self, name)}")

    def min_docs(self, n_docs: int) -> int:
        """Smallest number of documents of a leaf when a tree is grown on `n_docs`."""
        if self.min_docs_per_leaf >= 1:
            return int(self.min_docs_per_leaf)
        return max(1, int(np.ceil(self.min_docs_per_leaf * n_docs)))


def grow_leafwise(
    grower: _native.TreeGrower,
    gradient: FloatArray,
    hessian: FloatArray,
    rows: NDArray[np.uint32],
    features: NDArray[np.uint8],
    rules: GrowthRules,
    *,
    hessian_is_count: bool = False,
    draw_features: Callable[[], NDArray[np.uint8]] | None = None,
) -> GrowingTree:
    """Grow one tree on `rows`: split the chosen leaf until there are `n_leaves`, or no split gains.

    `features` marks what may be split on at the root, and everywhere unless `draw_features` gives new marks for the
    two children of each split. `hessian_is_count` says that every hessian is 1.
    """
    max_depth = rules.max_depth if rules.max_depth is not None else rules.n_leaves
    root_gain = grower.start(
        gradient,
        hessian,
        rows,
        features,
        rules.l2,
        rules.min_hessian,
        rules.min_gain,
        rules.min_docs(len(rows)),
        hessian_is_count,
        rules.n_leaves > 1 and max_depth > 0,
    )
    tree = GrowingTree(gain=[root_gain], depth=[0])
    gain, depth = tree.gain, tree.depth
    splittable = [0] if root_gain > 0 else []
    for n_leaves in range(2, rules.n_leaves + 1):
        if not splittable:
            break
        leaf = choose_leaf(splittable, tree, rules.depth_relaxation)
        splittable.remove(leaf)
        child_depth = depth[leaf] + 1
        marks = None if draw_features is None else draw_features()
        gains = grower.split(leaf, n_leaves < rules.n_leaves and child_depth < max_depth, marks)
        left = len(gain)
        tree.first_child[leaf] = left
        tree.max_depth = max(tree.max_depth, child_depth)
        for child, child_gain in enumerate(gains, start=left):
            gain.append(child_gain)
            depth.append(child_depth)
            if child_gain > 0:
                splittable.append(child)
    return tree


def choose_leaf(splittable: list[int], tree: GrowingTree, depth_relaxation: float) -> int:
    """The leaf to split next: of largest gain; or, relaxed, of least tree depth among those of nearly that gain.

    Equations 3 to 5: among the leaves whose gain exceeds (1 - lambda) times the best, take the one that leaves the
    tree shallowest, ties by gain. Equal gains go to the older node.
    """
    gain = tree.gain
    best = max(splittable, key=gain.__getitem__)
    if depth_relaxation == 0.0 or tree.depth[best] < tree.max_depth:  # splitting it does not deepen the tree
        return best
    floor = (1.0 - depth_relaxation) * gain[best]
    shallow = [leaf for leaf in splittable if tree.depth[leaf] < tree.max_depth and gain[leaf] > floor]
    return max(shallow, key=gain.__getitem__, default=best)
