"""Trees as flat arrays: what the columns are, and how they are checked, cut, selected and joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import (
    LEAF_VALUE,
    NODE,
    OFFSET,
    THRESHOLD,
    AnyArray,
    FloatArray,
    IndexArray,
    NodeArray,
    OffsetArray,
)
from rankwood.errors import ModelError

MAX_FEATURES = 2**24  # no ranker comes near; a damaged file shall not ask for gigabytes

# feature, threshold, left, right, missing_left as bytes, leaf_value, node_offsets, set_offsets, set_thresholds
NativeTrees: TypeAlias = tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]


class Column(NamedTuple):
    """One array of the trees.

    Parameters
    ----------
    dtype : numpy dtype
        How it is stored.
    per : {"node", "leaf"}, default "node"
        Whether it has an entry per inner node or per leaf.
    optional : bool, default False
        Whether it is a note from training, on which scores do not depend.
    """

    dtype: Any
    per: Literal["node", "leaf"] = "node"
    optional: bool = False


COLUMNS: dict[str, Column] = {
    "feature": Column(NODE),
    "threshold": Column(THRESHOLD),
    "left": Column(NODE),
    "right": Column(NODE),
    "missing_left": Column(np.bool_),
    "leaf_value": Column(LEAF_VALUE, "leaf"),
    "split_gain": Column(np.float64, optional=True),
    "node_count": Column(np.int64, optional=True),
    "leaf_cover": Column(np.float64, "leaf", optional=True),
}
NEEDED = tuple(name for name, column in COLUMNS.items() if not column.optional)
OPTIONAL = tuple(name for name, column in COLUMNS.items() if column.optional)
SETS = {"set_offsets": OFFSET, "set_thresholds": THRESHOLD}  # arrays of models with splits on sets, and their types


NO_OFFSETS, NO_THRESHOLDS = np.zeros(0, OFFSET), np.zeros(0, THRESHOLD)


@dataclass(frozen=True, eq=False)
class Trees:
    """Binary trees, one after another, as flat arrays that never change.

    Tree t owns the inner nodes from `node_offsets[t]` to `node_offsets[t + 1]`, and one leaf more than it has inner
    nodes. Its root is its node 0; without inner nodes it is its only leaf.

    ::

        node_offsets   0           3     4           (tree 0 has 3 inner nodes, tree 1 has 1)
        feature        7  2  2  |  5  |
        left           1 ~0 ~2  | ~0  |              (c >= 0: inner node c of the tree; c < 0: its leaf ~c)
        right          2 ~1 ~3  | ~1  |
        leaf_value     a  b  c  d | e  f |           (leaves of tree t start at node_offsets[t] + t)

    A split on a set, such as categories, has further thresholds, which rise. A document goes left when an even number
    of the thresholds of its node lies below its value, so the set that goes right is a union of intervals; a split with
    one threshold is the same thing::

        -------left-------]--right--]--left--]----right--->  x
                     threshold     set_thresholds

    Parameters
    ----------
    feature : array of int32
        Number of the feature that each inner node looks at.
    threshold : array of float64
        What the feature is compared with: a document goes left when `x <= threshold`.
    left, right : arrays of int32
        Children, numbered inside the tree.
    missing_left : array of bool
        Whether a missing value (NaN) goes left.
    leaf_value : array of float64
        Value of each leaf.
    node_offsets : array of int64
        Where the inner nodes of each tree start, and their number at the end.
    split_gain, node_count : arrays, optional
        What training knew of each inner node: gain of the split, documents that met it.
    leaf_cover : array of float64, optional
        Documents that reached each leaf in training, or their weight; explanations (SHAP) build on it.
    set_offsets : array of int64, optional
        Where the further thresholds of each inner node start in `set_thresholds`, and their number at the end. Both are
        None where no node has any.
    set_thresholds : array of float64, optional
        Further thresholds of splits on sets.
    known_depths : array of int32, optional
        Depth of each tree, once `checked` has walked them.
    """

    feature: NodeArray
    threshold: FloatArray
    left: NodeArray
    right: NodeArray
    missing_left: NDArray[np.bool_]
    leaf_value: FloatArray
    node_offsets: OffsetArray
    split_gain: FloatArray | None = None
    node_count: IndexArray | None = None
    leaf_cover: FloatArray | None = None
    set_offsets: OffsetArray | None = None
    set_thresholds: FloatArray | None = None
    known_depths: NodeArray | None = None

    def __post_init__(self) -> None:
        if self.set_thresholds is not None and len(self.set_thresholds) == 0 and self.set_offsets is not None:
            object.__setattr__(self, "set_offsets", None)
            object.__setattr__(self, "set_thresholds", None)
        for array in self.arrays().values():
            array.flags.writeable = False

    @classmethod
    def from_columns(cls, columns: dict[str, Any], node_offsets: Any) -> Trees:
        """Trees from anything that numpy takes for arrays.

        Parameters
        ----------
        columns : dict
            The entries of `COLUMNS` and `SETS` by name; optional ones may be absent or None.
        node_offsets : array-like of int
            Where the inner nodes of each tree start, and their number at the end.

        Raises
        ------
        ModelError
            A column is missing, is not a list of numbers, or would change a value when stored.
        """
        arrays: dict[str, Any] = {
            name: None
            if column.optional and columns.get(name) is None
            else as_entries(columns[name], column.dtype, name)
            for name, column in COLUMNS.items()
        }
        for name, dtype in SETS.items():
            arrays[name] = None if columns.get(name) is None else as_entries(columns[name], dtype, name)
        return cls(**arrays, node_offsets=as_entries(node_offsets, OFFSET, "node_offsets"))

    @classmethod
    def from_trees(cls, trees: Sequence[Tree]) -> Trees:
        """Trees made of single ones, in the order given; optional columns are kept when every tree has them."""
        parts = [
            tree
            if tree.missing_left is not None
            else dataclasses.replace(tree, missing_left=np.zeros(len(tree.feature), bool))
            for tree in trees
        ]
        columns: dict[str, Any] = {
            name: join([getattr(tree, name) for tree in parts], column.dtype) for name, column in COLUMNS.items()
        }
        columns |= _joined_sets([(len(tree.feature), tree.set_offsets, tree.set_thresholds) for tree in parts])
        return cls.from_columns(columns, offsets_of([len(tree.feature) for tree in parts]))

    @property
    def n_trees(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Number of inner nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_value)

    @property
    def sizes(self) -> IndexArray:
        """Inner nodes of each tree."""
        return np.diff(self.node_offsets)

    @property
    def leaf_offsets(self) -> OffsetArray:
        """Where the leaves of each tree start: a tree has one leaf more than inner nodes."""
        offsets: OffsetArray = self.node_offsets + np.arange(len(self.node_offsets), dtype=OFFSET)
        return offsets

    @property
    def tree_of_node(self) -> IndexArray:
        """Number of the tree that each inner node belongs to."""
        return np.repeat(np.arange(self.n_trees), self.sizes)

    @property
    def tree_of_leaf(self) -> IndexArray:
        """Number of the tree that each leaf belongs to."""
        return np.repeat(np.arange(self.n_trees), self.sizes + 1)

    @property
    def depths(self) -> NodeArray:
        """Depth of each tree: its longest path in splits."""
        if self.known_depths is None:
            raise ModelError("the trees were not checked, so that their depths are not known")
        return self.known_depths

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, AnyArray]:
        """The arrays by name, without optional ones that are absent."""
        found = {name: getattr(self, name) for name in (*COLUMNS, *SETS, "node_offsets", "known_depths")}
        return {name: array for name, array in found.items() if array is not None}

    def nodes_of(self, tree: int) -> slice:
        """The slice of the inner nodes of a tree."""
        return slice(int(self.node_offsets[tree]), int(self.node_offsets[tree + 1]))

    def leaves_of(self, tree: int) -> slice:
        """The slice of the leaves of a tree."""
        return slice(int(self.node_offsets[tree]) + tree, int(self.node_offsets[tree + 1]) + tree + 1)

    def tree(self, number: int) -> Tree:
        """One tree by itself."""
        nodes, leaves = self.nodes_of(number), self.leaves_of(number)
        columns = {name: _cut(getattr(self, name), column, nodes, leaves) for name, column in COLUMNS.items()}
        return Tree(**columns, **self._picked_sets(nodes))

    def part(self, begin: int, end: int) -> Trees:
        """The trees from number `begin` to before `end`, as views: nothing is copied."""
        nodes = slice(int(self.node_offsets[begin]), int(self.node_offsets[end]))
        leaves = slice(nodes.start + begin, nodes.stop + end)
        return self._picked(nodes, leaves, self.node_offsets[begin : end + 1] - nodes.start, slice(begin, end))

    def select(self, numbers: IndexArray) -> Trees:
        """Some trees by number, in the order given."""
        sizes = self.sizes[numbers]
        nodes = runs(self.node_offsets[numbers], sizes)
        leaves = runs(self.leaf_offsets[numbers], sizes + 1)
        return self._picked(nodes, leaves, offsets_of(sizes), numbers)

    @classmethod
    def join(cls, parts: Sequence[Trees]) -> Trees:
        """All trees of several `Trees`, in the order given; optional columns are kept when every part has them."""
        columns: dict[str, Any] = {
            name: join([getattr(part, name) for part in parts], column.dtype) for name, column in COLUMNS.items()
        }
        columns |= _joined_sets([(part.n_nodes, part.set_offsets, part.set_thresholds) for part in parts])
        depths = join([part.known_depths for part in parts], NODE)
        sizes = np.concatenate([np.zeros(0, OFFSET), *(part.sizes for part in parts)])
        return cls(**columns, node_offsets=offsets_of(sizes), known_depths=depths)

    @classmethod
    def join_and_release(cls, parts: list[Trees]) -> Trees:
        """All trees of several `Trees`, as `join` gives them; `parts` is emptied to save memory.

        Every array is released as soon as it is copied: two copies of many trees of full depth may not fit into memory.
        """
        sizes = np.concatenate([np.zeros(0, OFFSET), *(part.sizes for part in parts)])
        sets = _joined_sets([(part.n_nodes, part.set_offsets, part.set_thresholds) for part in parts])
        columns = {name: [getattr(part, name) for part in parts] for name in COLUMNS}
        parts.clear()
        joined: dict[str, Any] = {name: join(columns.pop(name), column.dtype) for name, column in COLUMNS.items()}
        joined |= sets
        return cls(**joined, node_offsets=offsets_of(sizes))

    def replace(self, **arrays: Any) -> Trees:
        """The trees with other arrays in some columns, named by keyword.

        Nothing is checked. Depths are forgotten when links or sizes change; `checked` finds them again.
        """
        if set(arrays) & {"left", "right", "node_offsets"}:
            arrays["known_depths"] = None
        return dataclasses.replace(self, **arrays)

    def checked(self, n_features: int) -> Trees:
        """The same trees with their depths, after checking that they are valid trees over `n_features` features.

        Raises
        ------
        ModelError
            A link, a feature, a threshold, a value or a number of entries is wrong.
        """
        depths = np.zeros(max(len(self.node_offsets) - 1, 0), dtype=NODE)
        if (self.set_offsets is None) != (self.set_thresholds is None):
            raise ModelError("set_offsets and set_thresholds go together: one of them is missing")
        try:
            _native.check_trees(depths, *self.native(), n_features)
            for name in OPTIONAL:
                notes, per_leaf = getattr(self, name), COLUMNS[name].per == "leaf"
                if notes is not None:
                    n_expected = self.n_leaves if per_leaf else self.n_nodes
                    _native.check_notes(name, notes, n_expected, per_leaf, name != "split_gain")
        except ValueError as error:
            raise ModelError(str(error)) from None
        return dataclasses.replace(self, known_depths=depths)

    def native(self) -> NativeTrees:
        """The arrays that scores depend on, in the order in which kernels take them."""
        missing_left = self.missing_left.view(np.uint8)
        set_offsets = NO_OFFSETS if self.set_offsets is None else self.set_offsets
        set_thresholds = NO_THRESHOLDS if self.set_thresholds is None else self.set_thresholds
        return (
            self.feature, self.threshold, self.left, self.right, missing_left, self.leaf_value, self.node_offsets,
            set_offsets, set_thresholds,
        )  # fmt: skip

    @property
    def set_sizes(self) -> IndexArray:
        """Number of further thresholds of each inner node: 0 unless it splits on a set."""
        return np.zeros(self.n_nodes, OFFSET) if self.set_offsets is None else np.diff(self.set_offsets)

    @property
    def set_nodes(self) -> IndexArray:
        """Numbers of the inner nodes that split on sets."""
        return np.flatnonzero(self.set_sizes)

    def thresholds_of(self, node: int) -> FloatArray:
        """All thresholds of an inner node, numbered over all trees."""
        first = self.threshold[node : node + 1]
        if self.set_offsets is None or self.set_thresholds is None:
            return first
        return np.concatenate([first, self.set_thresholds[self.set_offsets[node] : self.set_offsets[node + 1]]])

    def goes_left(self, node: int, value: float) -> bool:
        """Whether a value goes left at an inner node, numbered over all trees."""
        if value != value:
            return bool(self.missing_left[node])
        return int(np.searchsorted(self.thresholds_of(node), value)) % 2 == 0

    def all_thresholds(self) -> tuple[NodeArray, FloatArray]:
        """Feature and value of every threshold there is, those of sets behind the first ones of all nodes."""
        if self.set_thresholds is None:
            return self.feature, self.threshold
        features = np.concatenate([self.feature, np.repeat(self.feature, self.set_sizes)])
        return features, np.concatenate([self.threshold, self.set_thresholds])

    def fit_single(self, tree_weights: FloatArray) -> bool:
        """Whether float32 holds every weighted leaf value, and every sum of them, to full precision."""
        return _native.fits_single(self.leaf_value, self.node_offsets, tree_weights)

    def links(self) -> tuple[IndexArray, IndexArray]:
        """Left and right child of each inner node, numbered over all trees: c >= 0 is inner node c, c < 0 leaf ~c."""
        tree, leaves = self.tree_of_node, self.leaf_offsets
        first = self.node_offsets[tree], leaves[tree]
        return tuple(np.where(c >= 0, c + first[0], c - first[1]) for c in (self.left, self.right))  # type: ignore[return-value]

    def rewired(self, instead: IndexArray, new_leaves: FloatArray | None = None) -> Trees:
        """The trees with some inner nodes taken out, each replaced by another node or by a leaf.

        Nodes of a tree come level by level, leaves as they are met; notes of training that no longer hold are dropped.

        Parameters
        ----------
        instead : array of int
            For each inner node what stands in its place, numbered as in `links`: itself, to keep it, something below
            it, or a new leaf.
        new_leaves : array of float, optional
            Values of leaves that are added, numbered after those there are.

        Examples
        --------
        >>> trees = Trees.from_trees([Tree.from_nested((0, 0.5, (1, 2.0, 1.0, 2.0), 3.0))])
        >>> trees.rewired(np.array([0, ~3]), np.array([1.5])).leaf_value
        array([1.5, 3. ])
        """
        values = self.leaf_value if new_leaves is None else np.concatenate([self.leaf_value, new_leaves])
        children = np.stack(self.links())
        roots = np.where(self.sizes > 0, self.node_offsets[:-1], ~self.leaf_offsets[:-1])
        level, trees = _followed(roots, instead), np.arange(self.n_trees)
        nodes, node_trees, leaves, leaf_trees = [], [], [], []
        while len(level):
            inner = level >= 0
            nodes.append(level[inner])
            node_trees.append(trees[inner])
            leaves.append(~level[~inner])
            leaf_trees.append(trees[~inner])
            level, trees = _followed(children[:, level[inner]].T.ravel(), instead), np.repeat(trees[inner], 2)
        node_order = np.argsort(np.concatenate([*node_trees, np.zeros(0, int)]), kind="stable")
        leaf_order = np.argsort(np.concatenate([*leaf_trees, np.zeros(0, int)]), kind="stable")
        kept = np.concatenate([*nodes, np.zeros(0, int)])[node_order]
        leaf = np.concatenate([*leaves, np.zeros(0, int)])[leaf_order]
        sizes = np.bincount(np.concatenate([*node_trees, np.zeros(0, int)]), minlength=self.n_trees)
        offsets = offsets_of(sizes)
        number = np.zeros(self.n_nodes, dtype=OFFSET)  # of what is kept, inside its tree
        number[kept] = np.arange(len(kept)) - np.repeat(offsets[:-1], sizes)
        leaf_number = np.zeros(len(values), dtype=OFFSET)
        leaf_number[leaf] = np.arange(len(leaf)) - np.repeat(offsets[:-1] + np.arange(self.n_trees), sizes + 1)
        below = _followed(children[:, kept].ravel(), instead).reshape(2, -1)
        inner = below >= 0
        links = np.empty(below.shape, dtype=NODE)
        links[inner], links[~inner] = number[below[inner]], ~leaf_number[~below[~inner]]
        left, right = links
        return Trees(
            feature=self.feature[kept],
            threshold=self.threshold[kept],
            left=left,
            right=right,
            missing_left=self.missing_left[kept],
            leaf_value=values[leaf],
            node_offsets=offsets,
            split_gain=None if self.split_gain is None else self.split_gain[kept],
            node_count=None if self.node_count is None else self.node_count[kept],
            **self._picked_sets(kept),
        )

    def _picked(self, nodes: Any, leaves: Any, node_offsets: OffsetArray, trees: Any) -> Trees:
        columns = {name: _cut(getattr(self, name), column, nodes, leaves) for name, column in COLUMNS.items()}
        depths = None if self.known_depths is None else self.known_depths[trees]
        return Trees(**columns, **self._picked_sets(nodes), node_offsets=node_offsets, known_depths=depths)

    def _picked_sets(self, nodes: slice | IndexArray) -> dict[str, Any]:
        """The arrays of sets of some nodes."""
        if self.set_offsets is None or self.set_thresholds is None:
            return {}
        if isinstance(nodes, slice):
            offsets = self.set_offsets[nodes.start : nodes.stop + 1]
            thresholds = self.set_thresholds[offsets[0] : offsets[-1]]
            return {"set_offsets": offsets - offsets[0], "set_thresholds": thresholds}
        sizes = self.set_sizes[nodes]
        thresholds = self.set_thresholds[runs(self.set_offsets[nodes], sizes)]
        return {"set_offsets": offsets_of(sizes), "set_thresholds": thresholds}


@dataclass(frozen=True, eq=False)
class Tree:
    """One binary tree by itself, as `Ensemble.from_trees` takes it and `Ensemble.tree` returns it.

    Node 0 is the root. A child c >= 0 is inner node c, c < 0 is leaf ~c. A tree without inner nodes is leaf 0 alone.

    Parameters
    ----------
    feature : array-like of int
        Number of the feature that each inner node looks at.
    threshold : array-like of float
        What the feature is compared with: a document goes left when `x <= threshold`.
    left, right : array-like of int
        Children of each inner node.
    leaf_value : array-like of float
        Value of each leaf: one more than there are inner nodes.
    missing_left : array-like of bool, optional
        Whether a missing value (NaN) goes left; otherwise it goes right.
    split_gain : array-like of float, optional
        Gain of each split in training.
    node_count : array-like of int, optional
        Documents that met each inner node in training.
    leaf_cover : array-like of float, optional
        Documents that reached each leaf in training, or their weight.
    set_offsets : array-like of int, optional
        Where the further thresholds of each inner node that splits on a set start, and their number at the end.
    set_thresholds : array-like of float, optional
        Further thresholds: a document goes left when an even number of the thresholds of a node lies below its value.

    Examples
    --------
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
    set_offsets: OffsetArray | None = None
    set_thresholds: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, dtype in ({name: column.dtype for name, column in COLUMNS.items()} | SETS).items():
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, as_entries(values, dtype, name))
        n_nodes = len(self.feature)
        for name, column in COLUMNS.items():
            values, expected = getattr(self, name), n_nodes + (column.per == "leaf")
            if values is not None and len(values) != expected:
                raise ModelError(f"a tree of {n_nodes} inner nodes needs {expected} {name} entries, got {len(values)}")

    @classmethod
    def from_nested(cls, nested: Any) -> Tree:
        """A tree from nested tuples.

        Parameters
        ----------
        nested : tuple or float
            A node is `(feature, threshold, left, right)` or `(feature, threshold, left, right, missing_left)`, a leaf
            is a number. A node that splits on a set has a list of thresholds.

        Returns
        -------
        Tree
            Nodes and leaves are numbered in preorder, left before right.
        """
        nodes: list[list[Any]] = []  # feature, threshold, left, right, missing_left
        further: list[Sequence[float]] = []
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
            first, *more = subtree[1] if isinstance(subtree[1], (list, tuple)) and subtree[1] else [subtree[1]]
            nodes.append([subtree[0], first, 0, 0, subtree[4] if len(subtree) == 5 else False])
            further.append(more)
            pending += [(subtree[3], number, 3), (subtree[2], number, 2)]
        columns: list[Any] = list(zip(*nodes, strict=True)) if nodes else [()] * 5
        feature, threshold, left, right, missing_left = columns
        return cls(
            feature,
            threshold,
            left,
            right,
            leaf_value=np.array(leaves),
            missing_left=missing_left,
            **sets_of(further),
        )


def _followed(links: IndexArray, instead: IndexArray) -> IndexArray:
    """What stands in the place of nodes and leaves, after all replacements."""
    while True:
        inner = links >= 0
        there = np.where(inner, instead[np.where(inner, links, 0)] if len(instead) else links, links)
        if np.array_equal(there, links):
            return links
        links = there


def sets_of(further: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The arrays `SETS` by name, of the further thresholds of each inner node; none where there are none."""
    if not any(further):
        return {}
    thresholds = [threshold for of_node in further for threshold in of_node]
    return {"set_offsets": offsets_of([len(of_node) for of_node in further]), "set_thresholds": np.array(thresholds)}


def _joined_sets(parts: Sequence[tuple[int, OffsetArray | None, FloatArray | None]]) -> dict[str, Any]:
    """The arrays of sets of several parts, each given by its number of nodes and its own arrays or None."""
    if all(thresholds is None for _, _, thresholds in parts):
        return {}
    sizes = [np.zeros(n_nodes, OFFSET) if offsets is None else np.diff(offsets) for n_nodes, offsets, _ in parts]
    thresholds = [thresholds for _, _, thresholds in parts if thresholds is not None]
    return {"set_offsets": offsets_of(np.concatenate(sizes)), "set_thresholds": np.concatenate(thresholds)}


def offsets_of(sizes: Any) -> OffsetArray:
    """Offsets of consecutive runs of the given sizes: where each starts, and where the last one ends."""
    offsets: OffsetArray = np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)
    return offsets


def runs(starts: IndexArray, sizes: IndexArray) -> IndexArray:
    """Concatenated ranges: `sizes[0]` numbers from `starts[0]` on, then `sizes[1]` from `starts[1]` on, and so on."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    positions: IndexArray = np.arange(total, dtype=OFFSET) + np.repeat(starts - (ends - sizes), sizes)
    return positions


def join(parts: Sequence[AnyArray | None], dtype: Any) -> AnyArray | None:
    """The parts in one array, or None when one of them is None; a part that alone has entries is not copied."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return None
    filled = [part for part in there if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate([np.zeros(0, dtype), *filled])


def as_entries(values: Any, dtype: Any, name: str) -> AnyArray:
    """A read-only one-dimensional copy of `values` in type `dtype`.

    An array that is so already, and owns its data, is not copied: a forest may have gigabytes.

    Raises
    ------
    ModelError
        The type would change a value; `name` stands in the message.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ModelError(f"{name} must be a list of numbers: {error}") from None
    if array.ndim != 1:
        raise ModelError(f"{name} must have one dimension, got shape {array.shape}")
    if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ModelError(f"{name} must hold {np.dtype(dtype).name} values, got {array.dtype}")
    if array.dtype == dtype and array.base is None and array.flags.c_contiguous and not array.flags.writeable:
        return array
    entries = array.astype(dtype, order="C", copy=True)
    if entries.dtype.kind == "i" and not np.array_equal(entries, array):
        raise ModelError(f"{name} holds numbers too large for {entries.dtype}")
    entries.flags.writeable = False
    return entries


def as_tree_numbers(trees: Any, n_trees: int) -> IndexArray:
    """Numbers of trees that are chosen by number (negative: from the end) or by boolean mask, in the order given.

    Raises
    ------
    ModelError
        There is no such tree, or one is chosen twice.
    """
    numbers = np.asarray(trees)
    if numbers.dtype == bool:
        if numbers.shape != (n_trees,):
            raise ModelError(f"a mask of trees must have {n_trees} entries, got shape {numbers.shape}")
        return np.flatnonzero(numbers).astype(OFFSET)
    if numbers.size == 0:
        return np.zeros(0, dtype=OFFSET)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise ModelError("trees must be whole numbers or a boolean mask")
    if numbers.min() < -n_trees or numbers.max() >= n_trees:
        raise ModelError(f"trees must lie between 0 and {n_trees - 1}, got {numbers.min()} to {numbers.max()}")
    numbers = np.where(numbers < 0, numbers + n_trees, numbers).astype(OFFSET)
    if len(np.unique(numbers)) != len(numbers):
        twice = np.flatnonzero(np.bincount(numbers) > 1)[0]
        raise ModelError(f"tree {twice} is chosen twice; change its weight instead")
    return numbers


def _cut(array: AnyArray | None, column: Column, nodes: Any, leaves: Any) -> Any:
    return None if array is None else array[leaves if column.per == "leaf" else nodes]
