"""From the tables of other tools to an `Ensemble`: nodes renumbered, splits unfolded, errors in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwood.dtypes import NODE, AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.unfold import Columns, Pieces, unfold
from rankwood.model_arrays import offsets_of

COLUMNS = ("feature", "threshold", "left", "right", "missing_left")
DTYPES = {"feature": np.int64, "threshold": np.float64, "left": np.int64, "right": np.int64, "missing_left": np.bool_}


@dataclass
class Forest:
    """Inner nodes and leaves of all trees, tree after tree, as `Ensemble` has them."""

    feature: AnyArray
    threshold: AnyArray
    left: AnyArray
    right: AnyArray
    missing_left: AnyArray
    leaf_value: AnyArray
    n_nodes: AnyArray  # inner nodes of each tree
    splits: dict[int, Pieces] = field(default_factory=dict)  # by number of the node in the forest: what is no threshold
    split_gain: AnyArray | None = None
    node_count: AnyArray | None = None
    leaf_cover: AnyArray | None = None

    def note_covers(self, covers: Any) -> None:
        """Note what the tool says of how much data each leaf holds: a number, or None where it says nothing. It counts
        if it is said of every leaf; one that is all of its tree can do without."""
        if isinstance(covers, list):
            covers = [np.nan if cover is None else cover for cover in covers]
        try:
            column = as_column(covers, np.float64, "covers")
        except ModelError:
            return
        if len(column) == len(self.leaf_value):
            alone = np.repeat(self.n_nodes == 0, self.n_nodes + 1)
            column = np.where(alone & np.isnan(column), 0.0, column)
            self.leaf_cover = column if (np.isfinite(column) & (column >= 0)).all() else None

    def ensemble(
        self,
        *,
        source: Mapping[str, Any],
        n_features: int,
        tree_weights: Any = None,
        base: float = 0.0,
        feature_names: Sequence[str] | None = None,
        budget: Budget = UNLIMITED,
    ) -> Ensemble:
        """The model; `source` is noted in its metadata, with the nodes and leaves it has there if they are not as many
        here."""
        budget.check_features(n_features)
        budget.check_trees(len(self.n_nodes), len(self.feature))
        forest = self.unfolded(feature_names, budget) if self.splits else self
        counts = {"n_nodes": len(self.feature), "n_leaves": len(self.leaf_value)} if self.splits else {}
        names = None if feature_names is None else [str(name) for name in feature_names]
        return Ensemble(
            **{name: getattr(forest, name) for name in COLUMNS},
            leaf_value=forest.leaf_value,
            node_offsets=offsets_of(forest.n_nodes),
            tree_weights=np.ones(len(self.n_nodes)) if tree_weights is None else tree_weights,
            n_features=n_features,
            base=base,
            feature_names=names,
            metadata={"source": {**source, **counts}},
            split_gain=forest.split_gain,
            node_count=forest.node_count,
            leaf_cover=forest.leaf_cover,
        )

    def unfolded(self, feature_names: Sequence[str] | None = None, budget: Budget = UNLIMITED) -> Forest:
        """The forest with all splits as thresholds. Only trees that have others are touched; gains and counts of nodes
        mean nothing after that, and the copies of a leaf share its data."""
        self.check_trees()
        names = dict(enumerate(feature_names or ()))
        offsets = offsets_of(self.n_nodes)
        by_tree: dict[int, dict[int, Pieces]] = {}
        for node, pieces in self.splits.items():
            tree = int(np.searchsorted(offsets, node, side="right")) - 1
            by_tree.setdefault(tree, {})[node - int(offsets[tree])] = pieces
        trees, covers = [], []
        for tree in range(len(self.n_nodes)):
            nodes = slice(offsets[tree], offsets[tree + 1])
            leaves = slice(offsets[tree] + tree, offsets[tree + 1] + tree + 1)
            parts: list[Any] = [getattr(self, name)[nodes] for name in COLUMNS]
            n_leaves = int(self.n_nodes[tree]) + 1
            copied = np.arange(n_leaves)  # which leaf each one is a copy of
            if tree in by_tree:
                columns = unfold(Columns(*(part.tolist() for part in (*parts, copied))), by_tree[tree], names, budget)
                parts = [np.asarray(getattr(columns, name), DTYPES[name]) for name in COLUMNS]
                copied = np.array(columns.leaf_value, dtype=np.int64)
            trees.append([*parts, self.leaf_value[leaves][copied]])
            if self.leaf_cover is not None:
                covers.append(
                    (self.leaf_cover[leaves] / np.maximum(1, np.bincount(copied, minlength=n_leaves)))[copied]
                )
        forest = _concatenate(trees)
        forest.leaf_cover = np.concatenate(covers) if covers else None
        return forest

    def check_trees(self) -> None:
        """Refuse trees that are none, such as those with cycles, and thresholds that are none, before anything walks
        along them."""
        Ensemble(
            feature=np.zeros(len(self.feature), dtype=NODE),
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            missing_left=self.missing_left,
            leaf_value=np.zeros(len(self.leaf_value)),
            node_offsets=offsets_of(self.n_nodes),
            tree_weights=np.ones(len(self.n_nodes)),
            n_features=1,
        )


def _concatenate(trees: list[list[Any]]) -> Forest:
    arrays: dict[str, Any] = {}
    for position, name in enumerate((*COLUMNS, "leaf_value")):
        dtype = DTYPES.get(name, np.float64)
        arrays[name] = np.concatenate([np.zeros(0, dtype), *(tree[position] for tree in trees)]).astype(dtype)
    return Forest(**arrays, n_nodes=np.array([len(tree[0]) for tree in trees], dtype=np.int64))


class ForestBuilder:
    """Collects trees that come node by node, from nested text or objects."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, "leaf_value")}
        self.sizes: list[int] = []
        self.splits: dict[int, Pieces] = {}

    def add(self, root: Any, read: Callable[[Any], Any]) -> None:
        """Add a tree. `read(node)` is the value of a leaf, or (feature, threshold, left, right, missing_left), or
        (feature, Pieces, left, right). Nodes and leaves are numbered in preorder, left before right."""
        feature, threshold, left, right, missing_left, leaf_value = self.columns.values()
        start, first_leaf = len(feature), len(leaf_value)
        pending: list[tuple[Any, int, list[Any]]] = [(root, -1, left)]
        while pending:
            item, parent, place = pending.pop()
            node = self._read(item, read)
            is_leaf = not isinstance(node, tuple)
            if parent >= 0:
                place[parent] = ~(len(leaf_value) - first_leaf) if is_leaf else len(feature) - start
            if is_leaf:
                leaf_value.append(node)
                continue
            number = len(feature)
            is_plain = len(node) == 5
            if not is_plain:
                self.splits[number] = node[1]
            feature.append(node[0])
            threshold.append(node[1] if is_plain else 0.0)
            missing_left.append(bool(node[4]) if is_plain else False)
            left.append(0)
            right.append(0)
            pending.append((node[3], number, right))
            pending.append((node[2], number, left))
        self.sizes.append(len(feature) - start)

    def _read(self, item: Any, read: Callable[[Any], Any]) -> Any:
        try:
            return read(item)
        except (RankwoodError, Warning, MemoryError, RecursionError):
            raise
        except Exception as error:  # what the reader did not foresee; the registry says in which format
            what = f"{type(error).__name__}: {one_line(error)}"
            raise ModelError(f"tree {len(self.sizes)}: a node cannot be read: {what}") from error

    def forest(self, threshold: Callable[[AnyArray], AnyArray] | None = None) -> Forest:
        """All trees; `threshold` converts the thresholds of plain splits, all at once."""
        arrays = {name: as_column(values, DTYPES.get(name, np.float64), name) for name, values in self.columns.items()}
        if threshold is not None:
            arrays["threshold"] = threshold(arrays["threshold"])
        return Forest(**arrays, n_nodes=np.array(self.sizes, dtype=np.int64), splits=self.splits)

    def n_features(self) -> int:
        """As many features as the splits need."""
        return 1 + max(self.columns["feature"], default=-1)


def as_column(values: Any, dtype: Any, what: str) -> AnyArray:
    """A one-dimensional array of numbers, or a ModelError. What is too large for a float becomes infinite."""
    try:
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
            raise TypeError("not a list of numbers")
        with np.errstate(all="ignore"):
            if np.dtype(dtype).kind == "i" and array.dtype.kind == "f":
                whole = array.astype(np.int64)
                if not np.array_equal(whole, array):
                    raise TypeError("not a list of whole numbers")
                array = whole
            return array.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what} cannot be read: {one_line(error)}") from None


def mixed_forest(
    *, left: AnyArray, right: AnyArray, is_leaf: AnyArray, sizes: AnyArray, columns: Mapping[str, AnyArray]
) -> tuple[Forest, AnyArray, AnyArray]:
    """A forest from tables that number nodes and leaves of a tree together, root first. `columns` holds feature,
    threshold, missing_left and leaf_value, with an entry for every node and leaf.

    Also gives, for later use, which entries of the table became the inner nodes, and which the leaves.
    """
    offsets = offsets_of(sizes)
    if len(sizes) and (sizes < 1).any():
        raise ModelError(f"tree {int(np.flatnonzero(sizes < 1)[0])} has no nodes")
    own = np.repeat(np.arange(len(sizes)), sizes)  # the tree of each entry
    inner = ~is_leaf
    for side in (left, right):
        bad = np.flatnonzero(inner & ((side < 0) | (side >= sizes[own])))
        if len(bad):
            raise ModelError(f"tree {own[bad[0]]}: a node has the child {side[bad[0]]}, which does not exist")
    alive = np.ones(len(own), dtype=bool)
    n_inner, n_leaf = (np.bincount(own[mask], minlength=len(sizes)) for mask in (inner, is_leaf))
    for tree in np.flatnonzero(n_leaf != n_inner + 1):  # some entries are out of use, or it is no tree
        entries = slice(offsets[tree], offsets[tree + 1])
        alive[entries] = _reached(left[entries], right[entries], is_leaf[entries], tree)
    inner, is_leaf = inner & alive, is_leaf & alive
    # Numbers of nodes and of leaves inside their tree.
    number = np.where(is_leaf, ~_count_within(is_leaf, own, offsets), _count_within(inner, own, offsets))
    number = np.where(alive, number, np.iinfo(NODE).max)
    base = offsets[own]
    nodes, leaves = np.flatnonzero(inner), np.flatnonzero(is_leaf)
    forest = Forest(
        feature=columns["feature"][nodes],
        threshold=columns["threshold"][nodes],
        left=number[base[nodes] + left[nodes]],
        right=number[base[nodes] + right[nodes]],
        missing_left=columns["missing_left"][nodes].astype(bool),
        leaf_value=columns["leaf_value"][leaves],
        n_nodes=np.bincount(own[nodes], minlength=len(sizes)),
    )
    return forest, nodes, leaves


def _count_within(mask: AnyArray, own: AnyArray, offsets: AnyArray) -> AnyArray:
    """How many entries of the same tree before each one are in the mask."""
    before = np.concatenate([[0], np.cumsum(mask)])
    counts: AnyArray = before[:-1] - before[offsets[own]]
    return counts


def _reached(left: AnyArray, right: AnyArray, is_leaf: AnyArray, tree: Any) -> AnyArray:
    """The entries that paths from the root lead to."""
    reached = np.zeros(len(left), dtype=bool)
    pending = [0]
    while pending:
        entry = pending.pop()
        if reached[entry]:
            raise ModelError(f"tree {tree}: two paths lead to node {entry}")
        reached[entry] = True
        if not is_leaf[entry]:
            pending += [int(left[entry]), int(right[entry])]
    return reached


def renumbered(forest: Forest, node_number: AnyArray, leaf_number: AnyArray) -> Forest:
    """The forest with the numbers that its nodes and leaves shall have inside their trees; as it is when these are not
    just the numbers from 0 on, with the root as number 0."""
    offsets = offsets_of(forest.n_nodes)
    trees = np.arange(len(forest.n_nodes))
    node_tree, leaf_tree = np.repeat(trees, forest.n_nodes), np.repeat(trees, forest.n_nodes + 1)
    nodes, leaves = offsets[node_tree] + node_number, offsets[leaf_tree] + leaf_tree + leaf_number
    roots = offsets[:-1][forest.n_nodes > 0]
    for new, tree, number, size in (
        (nodes, node_tree, node_number, forest.n_nodes),
        (leaves, leaf_tree, leaf_number, forest.n_nodes + 1),
    ):
        if ((number < 0) | (number >= size[tree])).any() or len(np.unique(new)) != len(new):
            return forest
    if node_number[roots].any():
        return forest
    order, leaf_order = np.argsort(nodes), np.argsort(leaves)
    base = offsets[node_tree]

    def child(side: AnyArray) -> AnyArray:
        is_leaf = side < 0
        inner = node_number[base + np.where(is_leaf, 0, side)]
        outer = leaf_number[base + node_tree + np.where(is_leaf, ~side, 0)]
        return np.where(is_leaf, ~outer, inner)[order]

    return Forest(
        feature=forest.feature[order],
        threshold=forest.threshold[order],
        left=child(forest.left),
        right=child(forest.right),
        missing_left=forest.missing_left[order],
        leaf_value=forest.leaf_value[leaf_order],
        n_nodes=forest.n_nodes,
        splits={int(nodes[node]): pieces for node, pieces in forest.splits.items()},
        leaf_cover=None if forest.leaf_cover is None else forest.leaf_cover[leaf_order],
    )


def swap_children(forest: Forest, where: AnyArray) -> None:
    """Turn some nodes round: what went left goes right. Thresholds are the caller's to change."""
    forest.left, forest.right = (
        np.where(where, forest.right, forest.left),
        np.where(where, forest.left, forest.right),
    )
    forest.missing_left = forest.missing_left ^ where


def never_left(forest: Forest) -> None:
    """Make nodes whose threshold is NaN, which no value is at most, send every value the other way."""
    where = np.isnan(forest.threshold)
    if where.any():
        swap_children(forest, where)
        forest.threshold = np.where(where, np.inf, forest.threshold)
