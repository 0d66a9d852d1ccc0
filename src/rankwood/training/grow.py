"""One boosted tree: sample, grow leaf by leaf, prune to balance, give the leaves their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.data.share import Share
from rankwood.dtypes import FloatArray, OffsetArray
from rankwood.errors import RankwoodError
from rankwood.model.constraints import NO_CONSTRAINTS, Constraints
from rankwood.model.trees import Tree, Trees, offsets_of
from rankwood.training.constraints import Prices
from rankwood.training.joint_growth import JointGrower


@dataclass(frozen=True)
class Sampling:
    """What a tree gets to see: samples of queries, documents and features, drawn without replacement.

    Parameters
    ----------
    query_fraction : float
        Share of the queries, drawn for each tree.
    feature_fraction : float
        Share of the features.
    per_split : bool
        Whether features are drawn for each split instead of each tree.
    doc_fraction : float
        Probability with which each document of the queries is drawn, for each tree.
    """

    query_fraction: float = 1.0
    feature_fraction: float = 1.0
    per_split: bool = False
    doc_fraction: float = 1.0

    def __post_init__(self) -> None:
        for name in ("query_fraction", "doc_fraction", "feature_fraction"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise RankwoodError(f"{name} must lie above 0 and be at most 1, got {getattr(self, name)}")

    def rows(self, offsets: OffsetArray, share: Share, rng: Generator) -> NDArray[np.uint32] | None:
        """Rows of a sample of documents of a sample of queries, in rising order; None for all rows.

        The sample is of the queries of all processes; rows are those of this one.
        """
        whole = self._rows_of_queries(offsets, share, rng)
        if self.doc_fraction == 1.0:
            return whole
        seed = int(rng.integers(2**63))
        drawn = _words(seed, offsets, share.first_query) < np.uint64(self.doc_fraction * 2.0**64)
        return np.flatnonzero(drawn).astype(np.uint32) if whole is None else whole[drawn[whole]]

    def _rows_of_queries(self, offsets: OffsetArray, share: Share, rng: Generator) -> NDArray[np.uint32] | None:
        """Rows of a sample of whole queries; None for all rows."""
        if self.query_fraction == 1.0:
            return None
        n_drawn = max(1, round(self.query_fraction * share.n_queries))
        drawn = np.zeros(share.n_queries, dtype=bool)
        drawn[rng.choice(share.n_queries, size=n_drawn, replace=False)] = True
        here = drawn[share.first_query : share.first_query + len(offsets) - 1]
        return np.flatnonzero(np.repeat(here, np.diff(offsets))).astype(np.uint32)

    def features(self, n_features: int, rng: Generator) -> NDArray[np.uint8]:
        """A sample of features: 1 for every feature that was drawn, else 0."""
        marks = np.zeros(n_features, dtype=np.uint8)
        n_drawn = max(1, round(self.feature_fraction * n_features))
        if n_drawn == n_features:
            marks[:] = 1
        else:
            marks[rng.choice(n_features, size=n_drawn, replace=False)] = 1
        return marks


def _words(seed: int, offsets: OffsetArray, first_query: int) -> NDArray[np.uint64]:
    """A random word for every document: that of its place in the stream of its query (see native/random.hpp).

    Streams belong to a seed and the number of the query among those of all processes.
    """
    sizes = np.diff(offsets)
    of_queries = _splitmix(np.uint64(seed), np.arange(first_query, first_query + len(sizes), dtype=np.uint64))
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    return _splitmix(np.repeat(of_queries, sizes), places.astype(np.uint64))


def _splitmix(key: Any, number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Word of a number in the stream that begins at a key: splitmix64."""
    word: NDArray[np.uint64] = key + (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return word


@dataclass
class GrowingTree:
    """A tree while it grows; nodes are numbered as by the kernel, the two children of a node one after the other."""

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
    """A finished tree with the bins behind its thresholds. Leaves are numbered from left to right."""

    tree: Tree
    bins: NDArray[np.int32]  # of every inner node: bins up to this one go left; -1 where categories are split
    left_bins: NDArray[np.uint8] | None = None  # of every inner node, marks of the bins that go left there

    def leaves_of(self, binned: BinnedDataset, *, n_threads: int = 1) -> NDArray[np.uint16]:
        """Leaf that every document reaches; the data set must be in the bins that the tree was grown on."""
        leaf = np.empty(binned.n_docs, dtype=np.uint16)
        tree = self.tree
        assert tree.missing_left is not None
        missing_left = tree.missing_left.view(np.uint8)
        n_values = binned.edges.n_values
        _native.reach_leaves(
            binned.bins,
            n_values,
            tree.feature,
            self.bins,
            missing_left,
            tree.left,
            tree.right,
            self.left_bins,
            leaf,
            n_threads,
        )
        return leaf


def finish(
    growing: GrowingTree,
    grower: _native.TreeGrower | JointGrower,
    edges: BinEdges,
    inner: list[int],
    leaves: list[int],
    leaf_value: FloatArray,
) -> GrownTree:
    """The finished tree as arrays; `inner` and `leaves` are those of `growing.walk()`."""
    number_of = {node: number for number, node in enumerate(inner)}
    number_of |= {node: ~number for number, node in enumerate(leaves)}
    first = [growing.first_child[node] for node in inner]
    splits = [grower.node(node) for node in inner]
    marks = [np.frombuffer(grower.left_bins(node), np.uint8) for node in inner]
    thresholds = [
        thresholds_of(edges, s[0], of_node) if len(of_node) else [edges.threshold(s[0], s[1])]
        for s, of_node in zip(splits, marks, strict=True)
    ]
    further = [threshold for of_node in thresholds for threshold in of_node[1:]]
    tree = Tree(
        feature=np.array([s[0] for s in splits], dtype=np.int32),
        threshold=np.array([of_node[0] for of_node in thresholds], dtype=np.float64),
        left=np.array([number_of[node] for node in first], dtype=np.int32),
        right=np.array([number_of[node + 1] for node in first], dtype=np.int32),
        leaf_value=leaf_value,
        missing_left=np.array([s[2] for s in splits], dtype=np.bool_),
        split_gain=np.array([growing.gain[node] for node in inner], dtype=np.float64),
        node_count=np.array([s[3] for s in splits], dtype=np.int64),
        leaf_cover=np.array([grower.node(node)[3] for node in leaves], dtype=np.float64),
        set_offsets=offsets_of([len(of_node) - 1 for of_node in thresholds]) if further else None,
        set_thresholds=np.array(further, dtype=np.float64) if further else None,
    )
    return regrown(tree, edges) if any(map(len, marks)) else GrownTree(tree, np.array([s[1] for s in splits], np.int32))


def thresholds_of(edges: BinEdges, feature: int, left_bins: NDArray[np.uint8]) -> list[float]:
    """Thresholds of the split that sends some bins of a feature left, the first among them: edges where sides change.

    Examples
    --------
    >>> edges = BinEdges.of([[0.5, 1.5, 2.5]])
    >>> thresholds_of(edges, 0, np.array([1, 0, 0, 1], np.uint8))
    [0.5, 2.5]
    """
    start, end = edges.offsets[feature : feature + 2]
    changes = np.flatnonzero(np.diff(left_bins[: end - start + 1]))
    return [float(edge) for edge in edges.flat[start + changes]] or [float("inf")]


def regrown(tree: Tree, edges: BinEdges) -> GrownTree:
    """A tree of a checkpoint, which was grown on these bins, with the bins behind its thresholds found again."""
    bins = np.empty(len(tree.feature), dtype=np.int32)
    for node, (feature, threshold) in enumerate(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)):
        start, end = edges.offsets[feature : feature + 2]
        bins[node] = np.searchsorted(edges.flat[start:end], threshold)
    if tree.set_offsets is None or tree.set_thresholds is None:
        return GrownTree(tree, bins)
    left_bins: NDArray[np.uint8] = np.zeros((len(bins), 256), np.uint8)
    assert tree.missing_left is not None
    for node in np.flatnonzero(np.diff(tree.set_offsets)).tolist():
        start, end = edges.offsets[tree.feature[node] : tree.feature[node] + 2]
        further = tree.set_thresholds[tree.set_offsets[node] : tree.set_offsets[node + 1]]
        changes = [int(bins[node]), *np.searchsorted(edges.flat[start:end], further).tolist()]
        n_values = int(end - start) + 1
        left_bins[node, :n_values] = np.searchsorted(changes, np.arange(n_values)) % 2 == 0
        left_bins[node, n_values] = tree.missing_left[node]
        bins[node] = -1
    return GrownTree(tree, bins, left_bins)


def is_grown_on(tree: Tree, edges: BinEdges) -> bool:
    """Whether all thresholds of a tree are edges of these bins, so that bins tell where documents go."""
    features, thresholds = Trees.from_trees([tree]).all_thresholds()
    for feature, threshold in zip(features.tolist(), thresholds.tolist(), strict=True):
        start, end = edges.offsets[feature : feature + 2]
        place = int(np.searchsorted(edges.flat[start:end], threshold))
        if edges.threshold(feature, place) != threshold:
            return False
    return True


MAX_LEAVES = 65_536  # leaf numbers of training documents are kept in two bytes


@dataclass(frozen=True)
class GrowthRules:
    """When a boosted tree stops growing, and which leaf is split next.

    Parameters
    ----------
    n_leaves : int, default 64
        Most leaves of a tree.
    max_depth : int or None, default None
        Most splits between the root and a leaf; None sets no limit.
    min_docs_per_leaf : float, default 1
        Fewest documents of a leaf; below 1, a fraction of those that the tree sees.
    min_gain : float, default 0.0
        Least gain of a split.
    min_hessian : float, default 1e-3
        Least sum of hessians of a leaf.
    l2 : float, default 0.0
        Added to the sum of hessians wherever it divides.
    depth_relaxation : float, default 0.0
        Lambda of Asadi & Lin (2013), from 0 to 1: how much gain may be given up for a shallower tree.
    gain : {"newton", "variance"}, default "newton"
        What a split gains: the fall of the loss by Newton's approximation, or of the variance of the pseudo-responses
        (Asadi & Lin, equation 2).
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

    @property
    def deepest(self) -> int:
        """Most splits between the root and a leaf."""
        return self.max_depth if self.max_depth is not None else self.n_leaves

    def min_docs(self, n_docs: int) -> int:
        """Fewest documents of a leaf when a tree is grown on `n_docs`."""
        if self.min_docs_per_leaf >= 1:
            return int(self.min_docs_per_leaf)
        return max(1, int(np.ceil(self.min_docs_per_leaf * n_docs)))


def grow_leafwise(
    grower: _native.TreeGrower | JointGrower,
    root_gain: float,
    rules: GrowthRules,
    draw_features: Callable[[], NDArray[np.uint8]] | None = None,
    prices: Prices | None = None,
) -> GrowingTree:
    """Grow one tree best-first: split the chosen leaf until there are enough leaves, or no split gains.

    Parameters
    ----------
    grower : TreeGrower or JointGrower
        The kernel, which finds splits and carries them out; the tree is begun.
    root_gain : float
        What the best split of the root gains.
    rules : GrowthRules
        When to stop, and which leaf is split next.
    draw_features : callable, optional
        Draws features for the two children of each split; else they are those of the root.
    prices : Prices, optional
        What features cost; the kernel knows the costs at the root.
    """
    max_depth = rules.deepest
    tree = GrowingTree(gain=[root_gain], depth=[0])
    gain, depth = tree.gain, tree.depth
    splittable = [0] if root_gain > 0 else []
    for n_leaves in range(2, rules.n_leaves + 1):
        if not splittable:
            break
        leaf = choose_leaf(splittable, tree, rules.depth_relaxation)
        if prices is not None and prices.buy(grower.node(leaf)[0]):
            grower.reprice(prices.now())
            splittable = choose_again(tree, grower, leaf)
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
    """The leaf to split next: the one that gains most, or nearly as much where that keeps the tree shallower.

    Asadi & Lin (2013), equations 3 to 5: among the leaves whose gain exceeds (1 - lambda) times the best, take the one
    that leaves the tree shallowest, ties by gain. Equal gains go to the older node.
    """
    gain = tree.gain
    best = max(splittable, key=gain.__getitem__)
    if depth_relaxation == 0.0 or tree.depth[best] < tree.max_depth:  # splitting it does not deepen the tree
        return best
    floor = (1.0 - depth_relaxation) * gain[best]
    shallow = [leaf for leaf in splittable if tree.depth[leaf] < tree.max_depth and gain[leaf] > floor]
    return max(shallow, key=gain.__getitem__, default=best)


def choose_again(tree: GrowingTree, grower: _native.TreeGrower | JointGrower, chosen: int) -> list[int]:
    """Leaves that can be split now that costs are others; gains are set anew but for that of the chosen one."""
    leaves = [node for node in range(len(tree.gain)) if node not in tree.first_child]
    for leaf in leaves:
        if leaf != chosen:
            tree.gain[leaf] = grower.gain(leaf)
    return [leaf for leaf in leaves if tree.gain[leaf] > 0]


def prune_to_balance(tree: GrowingTree, balance: float) -> None:
    """Collapse the deepest leaves until the tree is full enough for its depth.

    Pruning while boosting, Asadi & Lin (2013), equation 6: while the number of nodes is below `balance` (their alpha)
    times that of a perfect tree of the same depth, the deepest pair of sibling leaves becomes one leaf again; of
    several, the one whose split gained least. 0 never prunes, 1 leaves a perfect tree.
    """
    n_nodes = 2 * len(tree.first_child) + 1
    while tree.first_child and n_nodes < balance * (2 ** (tree.max_depth + 1) - 1):
        # The parents of the deepest leaves: both children of such a parent are leaves.
        parents = [node for node in tree.first_child if tree.depth[node] == tree.max_depth - 1]
        victim = min(parents, key=lambda node: (tree.gain[node], -node))
        del tree.first_child[victim]
        n_nodes -= 2
        if len(parents) == 1:
            tree.max_depth -= 1


@dataclass(frozen=True)
class Categories:
    """Features of categories, and how they are split: by a set of values against all others.

    Categories are put in the order of gradient / (hessian + smoothing) in a node; sets are its first or last ones.

    Parameters
    ----------
    features : tuple of int
        Their numbers. The data has bins of categories there (`BinEdges.with_categories`).
    smoothing : float, default 10.0
        Added to hessians for the order. Categories of fewer documents, about, are on the side of all others.
    l2 : float, default 10.0
        Added to the hessian sums of both sides of such a split, besides the l2 of all splits.
    most : int, default 32
        Most categories of a set.
    """

    features: tuple[int, ...]
    smoothing: float = 10.0
    l2: float = 10.0
    most: int = 32

    def __post_init__(self) -> None:
        for name, value in (("category_smoothing", self.smoothing), ("category_l2", self.l2)):
            if not 0.0 <= value < np.inf:
                raise RankwoodError(f"{name} must be a number of at least 0, got {value}")


SMALL = 20_000  # rows below which a second thread costs more than it gives


@dataclass(frozen=True)
class TreeRules:
    """How each boosted tree is made.

    Parameters
    ----------
    growth : GrowthRules
        How it grows.
    sampling : Sampling
        What it gets to see.
    balance : float
        Asadi & Lin's alpha: how full a tree must be for its depth, or its deepest leaves are pruned.
    constraints : Constraints
        What it keeps to.
    categories : Categories or None
        Features that are split by sets of their values.
    """

    growth: GrowthRules = field(default_factory=GrowthRules)
    sampling: Sampling = field(default_factory=Sampling)
    balance: float = 0.0
    constraints: Constraints = field(default=NO_CONSTRAINTS, repr=False)  # checkpoints note them only if there are any
    categories: Categories | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.balance <= 1.0:
            raise RankwoodError(f"balance must lie between 0 and 1, got {self.balance}")


class TreeBuilder:
    """Builds trees from gradients on one data set, with threads that are kept from tree to tree."""

    def __init__(self, binned: BinnedDataset, rules: TreeRules, *, constant_hessian: bool, n_threads: int) -> None:
        self.binned, self.rules, self._group = binned, rules, binned.share.group
        self.n_threads = 1 if binned.n_docs < SMALL else n_threads
        kernel = _native.TreeGrower(binned.bins, binned.edges.n_values, self._has_missing(), self.n_threads)
        self._grower = kernel if self._group.size == 1 else JointGrower(kernel, self._group)
        # Variance gain is Newton gain over documents: every document weighs 1, whatever its hessian.
        self._count_docs = rules.growth.gain == "variance" or constant_hessian
        self._ones = np.ones(binned.n_docs) if rules.growth.gain == "variance" else None
        self._constrain()
        if (categories := rules.categories) is not None:
            marks: NDArray[np.uint8] = np.isin(np.arange(binned.data.n_features), categories.features).astype(np.uint8)
            self._grower.categorise(marks, categories.smoothing, categories.l2, categories.most)

    def _constrain(self) -> None:
        constraints, n_features = self.rules.constraints, self.binned.data.n_features
        if not constraints.monotone and not constraints.groups:
            return
        groups: NDArray[np.uint8] = np.zeros((len(constraints.groups), n_features), np.uint8)
        for marks, group in zip(groups, constraints.groups, strict=True):
            marks[list(group)] = 1
        self._grower.constrain(constraints.directions(n_features), groups)

    def build(
        self, gradient: FloatArray, hessian: FloatArray, rng: Generator, used: NDArray[np.bool_] | None = None
    ) -> tuple[GrownTree, NDArray[np.uint16]]:
        """One tree fitted to the gradients, and the leaf of every document.

        Parameters
        ----------
        gradient, hessian : array of shape (n_docs,)
            Which way, and how far, the score of each document should go.
        rng : Generator
            What samples are drawn from.
        used : array of bool, optional
            Features that other trees use, where features cost something or their number is limited; none unless given.
        """
        sampling, n_features = self.rules.sampling, self.binned.data.n_features
        rows = sampling.rows(self.binned.data.offsets, self.binned.share, rng)
        features = sampling.features(n_features, rng)
        draw = (
            (lambda: np.stack([sampling.features(n_features, rng) for _ in range(2)])) if sampling.per_split else None
        )
        grown_on = hessian if self._ones is None else self._ones
        prices = self._prices(used)
        root_gain = self._start(gradient, grown_on, rows, features, prices)
        growing = grow_leafwise(self._grower, root_gain, self.rules.growth, draw, prices)
        prune_to_balance(growing, self.rules.balance)
        inner, leaves = growing.walk()
        values, weights = self._leaf_values(leaves, gradient, hessian)
        grown = self._monotone(finish(growing, self._grower, self.binned.edges, inner, leaves, values), weights)
        if rows is not None:
            return grown, grown.leaves_of(self.binned, n_threads=self.n_threads)
        leaf_of_row = np.empty(self.binned.n_docs, dtype=np.uint16)
        self._grower.mark(leaves, leaf_of_row)
        return grown, leaf_of_row

    def _prices(self, used: NDArray[np.bool_] | None) -> Prices | None:
        """What features cost, told to the kernel; None where they cost nothing and their number is not limited."""
        constraints = self.rules.constraints
        if constraints.all_features_are_free:
            return None
        prices = Prices(constraints, np.zeros(self.binned.data.n_features, bool) if used is None else used.copy())
        self._grower.price(prices.now())
        return prices

    def _monotone(self, grown: GrownTree, weights: FloatArray) -> GrownTree:
        """The tree with leaf values that keep the directions of features.

        While it grew, bounds kept splits from gaining by values that could not be; here values are as near to the
        Newton steps as one parting value per split allows. `weights` are their denominators, by which a change costs.
        """
        if not self.rules.constraints.monotone:
            return grown
        trees = Trees.from_trees([grown.tree])
        projection = self.rules.constraints.projection(trees, self.binned.data.n_features)
        assert projection is not None
        return replace(grown, tree=replace(grown.tree, leaf_value=projection(grown.tree.leaf_value, weights)))

    def _start(
        self,
        gradient: FloatArray,
        hessian: FloatArray,
        rows: NDArray[np.uint32] | None,
        features: NDArray[np.uint8],
        prices: Prices | None,
    ) -> float:
        """Begin a tree; returns the gain of the root's best split."""
        growth, grower = self.rules.growth, self._grower
        n_docs = self.binned.share.n_docs if rows is None else int(self._group.sum(np.array([len(rows)]))[0])
        min_docs = growth.min_docs(n_docs)
        if isinstance(grower, JointGrower):
            ahead = not self.rules.sampling.per_split and (prices is None or not prices.may_change)
            return grower.start(gradient, hessian, rows, features, growth, min_docs, self._count_docs, ahead=ahead)
        return grower.start(
            gradient,
            hessian,
            rows,
            features,
            growth.l2,
            growth.min_hessian,
            growth.min_gain,
            min_docs,
            self._count_docs,
            growth.n_leaves > 1 and growth.deepest > 0,
        )

    def _has_missing(self) -> NDArray[np.uint8]:
        """For every feature, 1 if a value is missing, here or with another process."""
        found: NDArray[np.uint8] = self._group.max(self.binned.has_missing)
        return found

    def _leaf_values(
        self, leaves: list[int], gradient: FloatArray, hessian: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Newton step of every leaf, and its denominator, which has a lower bound so that values stay bounded."""
        extremes = self._grower.extremes
        if self._ones is not None:
            extremes = extremes[0], float(self._group.max(np.array([hessian.max(initial=0.0)]))[0])
        sums = np.empty((len(leaves), 4), dtype=np.int64)
        units = self._grower.sums(leaves, gradient, hessian, extremes, sums)
        # Whole numbers of any length, rounded once.
        g, h = (
            np.array([float((upper << 31) + lower) for upper, lower in part.tolist()]) * unit
            for part, unit in zip((sums[:, :2], sums[:, 2:]), units, strict=True)
        )
        growth = self.rules.growth
        denominators = np.maximum(h + growth.l2, max(growth.min_hessian, 1e-12))
        return g / denominators, denominators
