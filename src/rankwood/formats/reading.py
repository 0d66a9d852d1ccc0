"""Shared by all readers of model files: budgets, checked values, thresholds, splits on sets, building of trees."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from rankwood.coding import Coding
from rankwood.dtypes import NODE, AnyArray, FloatArray
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import COLUMNS, MAX_FEATURES, NEEDED, Trees, offsets_of, sets_of
from rankwood.scoring.c_source import round_down

# Budgets: the memory and time that an import takes stay in proportion to the size of its file.
#
# In every format a node or tree takes at least a byte of the file, so a file cannot hold more of them than bytes. Two
# things are not bounded that way: the number of features, which may be a mere number in a header, and the thresholds of
# sets, as nodes may share a set in the file.

MIN_FEATURES = 2**20  # a file of any size may have that many
MIN_THRESHOLDS = 2**20  # the sets of a file of any size may have that many
THRESHOLDS_PER_BYTE = 4  # as bits of a number, a category takes a third of a byte


class Budget:
    """Limits of one import: features, trees and thresholds of sets that a file of this size may have.

    Parameters
    ----------
    n_bytes : float, default inf
        Size of the file. Infinite for a model object in memory, which is not limited.
    n_features : int, optional
        Number of features that the user says the model has; that many are allowed.

    Examples
    --------
    >>> Budget(n_bytes=500).check_features(136)
    """

    def __init__(self, n_bytes: float = math.inf, n_features: int | None = None) -> None:
        self.n_bytes = n_bytes
        self.features = max(MIN_FEATURES, n_bytes, n_features or 0)
        self.thresholds = max(MIN_THRESHOLDS, THRESHOLDS_PER_BYTE * n_bytes)

    def check_features(self, n_features: int) -> None:
        """Refuse more features than a file of this size can be believed to have."""
        if self.features < n_features <= MAX_FEATURES:  # more are refused anyway
            raise ModelError(
                f"the model is of {n_features} features, too many to believe of a file of {self.n_bytes:.0f} bytes: "
                f"if it is, give n_features={n_features}"
            )

    def check_trees(self, n_trees: int, n_nodes: int) -> None:
        """Refuse more trees or inner nodes than the file has bytes."""
        for number, what in ((n_trees, "trees"), (n_nodes, "nodes")):
            if number > self.n_bytes:
                raise ModelError(f"the file is damaged: {number} {what} do not fit in {self.n_bytes:.0f} bytes")

    def check_sets(self, n_thresholds: int) -> None:
        """Refuse sets with more thresholds than a file of this size can be believed to have."""
        if n_thresholds > self.thresholds:
            raise ModelError(
                f"the splits on categories have {n_thresholds} ends of runs, too many to believe of a file of "
                f"{self.n_bytes:.0f} bytes"
            )


UNLIMITED = Budget()


# Checked values and columns: files may be damaged or hostile.

NUMBER = (int, float)


def parse_json(content: bytes) -> Any:
    """Value of a JSON text, or a ModelError; Python's limit on recursion refuses hostile nesting."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ModelError(
            "the JSON is nested too deeply to be read: the trees are too deep, or the file is no model"
        ) from None
    except ValueError as error:
        raise ModelError(f"the file is damaged or cut off: {one_line(error)}") from None


def entry(value: Any, *keys: str | int, kind: type | tuple[type, ...] = object, where: str = "the model") -> Any:
    """Entry of nested dictionaries and lists under `keys`, checked to be of `kind`; `where` begins error messages."""
    for key in keys:
        if isinstance(key, str):
            if not isinstance(value, dict) or key not in value:
                raise ModelError(f"{where} has no entry {one_line(key)!r}")
        elif not isinstance(value, list) or key >= len(value):
            raise ModelError(f"{where} has too few entries")
        value = value[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object and kind is not bool):
        raise ModelError(f"{where}: entry {one_line(str(keys[-1]))!r} is {one_line(value)}")
    return value


def number(value: Any, what: str, *, text: bool = False) -> float:
    """Value as a float, or a ModelError; a number that is written as text counts only with `text`."""
    try:
        if isinstance(value, bool) or not isinstance(value, (*NUMBER, str) if text else NUMBER):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):  # whole numbers of JSON may be too large for a float
        shown = repr(one_line(value)) if isinstance(value, str) else one_line(value)
        raise ModelError(f"{what} must be a number, got {shown}") from None


def whole(value: Any, what: str, default: int | None = None) -> int:
    """Value as a whole number, also if it is written as text; `default` stands for None."""
    if value is None and default is not None:
        return default
    result = number(value, what, text=True)
    if result != result or abs(result) > 2**53 or result != int(result):
        raise ModelError(f"{what} must be a whole number, got {one_line(value)}")
    return int(result)


def as_column(values: Any, dtype: Any, what: str) -> AnyArray:
    """Values as a one-dimensional array, or a ModelError; numbers too large for a float become infinite."""
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


def numbers(text: bytes, dtype: Any, what: str) -> AnyArray:
    """Array of the numbers in a text, separated by spaces; one call reads millions."""
    if not text.strip():
        return np.zeros(0, dtype=dtype)
    try:
        values: AnyArray = np.fromstring(text, dtype=dtype, sep=" ")
    except ValueError:
        raise ModelError(f"{what} holds something that is not a number") from None
    return values


def texts(value: Any, what: str) -> list[str]:
    """Value as a list of texts, or a ModelError."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ModelError(f"{what} must be texts")
    return value


def check_one_score(n_outputs: Any, what: str, whose: str = "the model has") -> None:
    """Refuse a model of several classes, targets or outputs."""
    if n_outputs > 1:
        raise ModelError(f"{whose} {n_outputs} {what}: a ranker has one score per document")


# Thresholds: comparisons of other tools as `x <= threshold` in float64, exactly.
#
# Many tools round a value to float32 before they compare it. Rounding is monotone, so the float64 values that round to
# f or less are those up to the middle between f and its successor; the middle itself rounds to whichever of the two is
# even. The middle needs 25 bits, so it is a float64. With it as threshold, a float64 value goes where its rounded value
# would go, and a float32 value goes where it went before.

INFINITY = np.float32(np.inf)


def at_most_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T exactly when float32(x) <= value, for every float64 x; NaN stays NaN.

    Examples
    --------
    >>> thresholds = at_most_float32([1.0])
    >>> [bool(np.float32(x) <= 1.0) == bool(x <= thresholds[0]) for x in (1.0, 1.00000005, 1.00000006, 1.0000001)]
    [True, True, True, True]
    """
    exact = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        below = round_down(exact)
        above = np.nextafter(below, INFINITY)
        # Beyond the largest float32, values round as if 2**128 were the next one, and that becomes infinity.
        middle = 0.5 * (below.astype(np.float64) + np.where(np.isinf(above), 2.0**128, above.astype(np.float64)))
        middle = np.where(below == -INFINITY, 0.5 * (-(2.0**128) - float(np.finfo(np.float32).max)), middle)
        is_even = (np.abs(below).view(np.uint32) & 1) == 0
        middle = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    result: FloatArray = np.where(below == INFINITY, np.inf, middle)
    return result


def at_most_of_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T exactly when float32(x) <= float32(value): for tools that hold both in float32."""
    with np.errstate(all="ignore"):
        return at_most_float32(np.asarray(values).astype(np.float32))


def less_than_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T exactly when float32(x) < float32(value); NaN for -infinity, as no x is less.

    Examples
    --------
    >>> thresholds = less_than_float32([0.0])
    >>> bool(0.0 <= thresholds[0]), bool(-1e-45 <= thresholds[0])
    (False, True)
    """
    with np.errstate(all="ignore"):
        limits = np.atleast_1d(np.asarray(values)).astype(np.float32)
        below = np.nextafter(limits, -INFINITY)
    return np.where(limits == -INFINITY, np.nan, at_most_float32(below))


def less_than(values: Any) -> FloatArray:
    """Thresholds T so that x <= T exactly when x < value, in float64; NaN for -infinity, as no x is less."""
    limits = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        result: FloatArray = np.where(limits == -np.inf, np.nan, np.nextafter(limits, -np.inf))
    return result


# Sets: splits that are no single threshold.
#
# LightGBM's zero-as-missing sends an interval around zero to one side, a set of categories is a union of intervals, an
# equality is a single point. Such a split cuts the line into pieces that go left or right in turn: `Trees` has it as
# several thresholds of a node, the first piece going left.

Side: TypeAlias = bool  # True: left


@dataclass(frozen=True)
class Pieces:
    """A split by pieces of the line, which cuts part.

    Parameters
    ----------
    cuts : sequence of float
        Ascending ends of the pieces. The first piece goes up to cuts[0], which belongs to it; the last has no end.
    left : sequence of bool
        Whether each piece goes left: one more than cuts.
    missing_left : bool
        Whether missing values go left.
    """

    cuts: Sequence[float]
    left: Sequence[Side]
    missing_left: Side


Splits: TypeAlias = Mapping[int, Pieces]  # by number of the inner node
NO_SPLITS: Splits = MappingProxyType({})


def category_pieces(
    members: AnyArray, below: Callable[[FloatArray], FloatArray], *, members_left: Side, missing_left: Side
) -> Pieces:
    """Split that parts the values whose whole part is in a set of categories from all others.

    Parameters
    ----------
    members : array of int
        The set: numbers from 0 on.
    below : callable
        Thresholds T for `x < value` as the tool compares, such as `less_than`.
    members_left, missing_left : bool
        Whether the members, and missing values, go left.

    Examples
    --------
    >>> category_pieces(np.array([1, 2, 5]), less_than, members_left=True, missing_left=False).cuts
    [0.9999999999999999, 2.9999999999999996, 4.999999999999999, 5.999999999999999]
    """
    members = np.unique(members)
    first = members[np.diff(members, prepend=-2) > 1]  # of each run of neighbours
    last = members[np.diff(members, append=2**62) > 1]
    cuts = below(np.stack([first, last + 1], axis=1).ravel().astype(np.float64))
    return Pieces(cuts.tolist(), [not members_left, *[members_left, not members_left] * len(first)], missing_left)


def members_of_bitset(words: AnyArray) -> AnyArray:
    """Numbers of the bits that are set in 32-bit words, lowest first."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    members: AnyArray = np.flatnonzero(bits)
    return members


def with_sets(trees: Trees, splits: Splits, budget: Budget = UNLIMITED) -> Trees:
    """Trees whose nodes in `splits` part the line as told there; nodes whose first piece goes right are turned round.

    Examples
    --------
    >>> from rankwood.model.trees import Tree
    >>> trees = Trees.from_trees([Tree.from_nested((0, 0.0, 1.0, 2.0))])
    >>> new = with_sets(trees, {0: Pieces([-1.0, 1.0], [False, True, False], True)})  # left exactly when -1 < x <= 1
    >>> new.threshold, new.set_thresholds, new.left, new.missing_left
    (array([-1.]), array([1.]), array([-2], dtype=int32), array([False]))
    """
    if not splits:
        return trees
    known: dict[int, Pieces] = {}  # by identity: many nodes may share a split
    n_thresholds = 0
    threshold, missing_left = trees.threshold.copy(), trees.missing_left.copy()
    turned = np.zeros(trees.n_nodes, dtype=bool)
    further: list[Sequence[float]] = [()] * trees.n_nodes
    for node, split in splits.items():
        if id(split) not in known:
            known[id(split)] = _simplify(split)
        pieces = known[id(split)]
        n_thresholds += len(pieces.cuts)
        budget.check_sets(n_thresholds)
        threshold[node] = pieces.cuts[0] if pieces.cuts else np.inf
        further[node] = pieces.cuts[1:]
        turned[node] = not pieces.left[0]
        missing_left[node] = pieces.missing_left != turned[node]
    return trees.replace(
        threshold=threshold,
        left=np.where(turned, trees.right, trees.left),
        right=np.where(turned, trees.left, trees.right),
        missing_left=missing_left,
        **sets_of(further),
    )


def _simplify(split: Pieces) -> Pieces:
    """Split without pieces that hold no value, and with neighbours on the same side joined."""
    cuts: list[float] = []
    left: list[Side] = []
    low: float | None = None
    for cut, side in zip((*split.cuts, math.inf), split.left, strict=True):
        if low is not None and low >= cut:  # holds no value
            continue
        if not left:
            left.append(side)
        elif left[-1] != side and low is not None:
            cuts.append(low)
            left.append(side)
        low = cut
    return Pieces(cuts, left, split.missing_left)


# Building: from nodes and tables of other tools to `Trees`, and from these to an `Ensemble`.


class TreeBuilder:
    """Collects trees that are read node by node, from nested text or objects.

    Attributes
    ----------
    sizes : list of int
        Number of inner nodes of each tree so far.
    splits : dict of int to Pieces
        Splits that are no single threshold, by number of the inner node in all trees.
    """

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in NEEDED}
        self.sizes: list[int] = []
        self.splits: dict[int, Pieces] = {}

    def add(self, root: Any, read: Callable[[Any], Any]) -> None:
        """Add a tree, with nodes and leaves numbered in preorder, left before right.

        Parameters
        ----------
        root : object
            The root, in whatever form `read` takes.
        read : callable
            From a node to the value of a leaf, or to (feature, threshold, left, right, missing_left), or to
            (feature, Pieces, left, right).
        """
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

    def trees(self, threshold: Callable[[AnyArray], AnyArray] | None = None) -> Trees:
        """All trees that were added; `threshold` converts the thresholds of plain splits, all in one call."""
        columns = {
            name: as_column(values, np.int64 if COLUMNS[name].dtype is NODE else COLUMNS[name].dtype, name)
            for name, values in self.columns.items()  # Trees refuses whole numbers that are too large for it
        }
        if threshold is not None:
            columns["threshold"] = threshold(columns["threshold"])
        return Trees.from_columns(columns, offsets_of(self.sizes))


def mixed_trees(
    *, left: AnyArray, right: AnyArray, is_leaf: AnyArray, sizes: AnyArray, **columns: AnyArray
) -> tuple[Trees, AnyArray, AnyArray]:
    """Trees from a table whose entries are inner nodes and leaves mixed, numbered together in each tree, root first.

    Parameters
    ----------
    left, right : array of int
        Children by number inside the tree.
    is_leaf : array of bool
    sizes : array of int
        Number of entries of each tree.
    **columns : array
        The other columns of `Trees`, with an entry for every node and leaf.

    Returns
    -------
    trees : Trees
    nodes, leaves : array of int
        The entries of the table that became the inner nodes, and the leaves.
    """
    offsets = offsets_of(sizes)
    if len(sizes) and (sizes < 1).any():
        raise ModelError(f"tree {int(np.flatnonzero(sizes < 1)[0])} has no nodes")
    own = np.repeat(np.arange(len(sizes)), sizes)  # number of each entry's tree
    inner = ~is_leaf
    for side in (left, right):
        bad = np.flatnonzero(inner & ((side < 0) | (side >= sizes[own])))
        if len(bad):
            raise ModelError(f"tree {own[bad[0]]}: a node has the child {side[bad[0]]}, which does not exist")
    alive = np.ones(len(own), dtype=bool)
    n_inner, n_leaf = (np.bincount(own[mask], minlength=len(sizes)) for mask in (inner, is_leaf))
    for tree in np.flatnonzero(n_leaf != n_inner + 1):  # some entries are not in use, or it is no tree
        entries = slice(offsets[tree], offsets[tree + 1])
        alive[entries] = _reached(left[entries], right[entries], is_leaf[entries], tree)
    inner, is_leaf = inner & alive, is_leaf & alive
    # Numbers of nodes and of leaves inside their tree.
    number = np.where(is_leaf, ~_count_within(is_leaf, own, offsets), _count_within(inner, own, offsets))
    number = np.where(alive, number, np.iinfo(NODE).max)
    nodes, leaves = np.flatnonzero(inner), np.flatnonzero(is_leaf)
    kept = {name: column[leaves if COLUMNS[name].per == "leaf" else nodes] for name, column in columns.items()}
    for name, side in (("left", left), ("right", right)):
        kept[name] = number[offsets[own[nodes]] + side[nodes]]
    return Trees.from_columns(kept, offsets_of(np.bincount(own[nodes], minlength=len(sizes)))), nodes, leaves


def _count_within(mask: AnyArray, own: AnyArray, offsets: AnyArray) -> AnyArray:
    """Number of entries in the mask that stand before each entry in its tree."""
    before = np.concatenate([[0], np.cumsum(mask)])
    counts: AnyArray = before[:-1] - before[offsets[own]]
    return counts


def _reached(left: AnyArray, right: AnyArray, is_leaf: AnyArray, tree: Any) -> AnyArray:
    """Mask of the entries that paths from the root lead to."""
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


def renumbered(trees: Trees, splits: Splits, node_number: AnyArray, leaf_number: AnyArray) -> tuple[Trees, Splits]:
    """Trees and splits with nodes and leaves in another order, given by the new number of each inside its tree.

    Unchanged when the new numbers of some tree are not 0, 1, 2, ... in some order, with 0 for the root.
    """
    node_tree, leaf_tree = trees.tree_of_node, trees.tree_of_leaf
    base = trees.node_offsets[node_tree]
    nodes, leaves = base + node_number, trees.leaf_offsets[leaf_tree] + leaf_number
    for new, number, size in (
        (nodes, node_number, trees.sizes[node_tree]),
        (leaves, leaf_number, trees.sizes[leaf_tree] + 1),
    ):
        if ((number < 0) | (number >= size)).any() or len(np.unique(new)) != len(new):
            return trees, splits
    if node_number[trees.node_offsets[:-1][trees.sizes > 0]].any():
        return trees, splits
    order, leaf_order = np.argsort(nodes), np.argsort(leaves)

    def child(side: AnyArray) -> AnyArray:
        is_leaf = side < 0
        inner = node_number[base + np.where(is_leaf, 0, side)]
        outer = leaf_number[base + node_tree + np.where(is_leaf, ~side, 0)]
        return np.where(is_leaf, ~outer, inner).astype(NODE)

    linked = trees.replace(left=child(trees.left), right=child(trees.right)).arrays()
    columns = {
        name: linked[name][leaf_order if column.per == "leaf" else order]
        for name, column in COLUMNS.items()
        if name in linked
    }
    return trees.replace(**columns), {int(nodes[node]): pieces for node, pieces in splits.items()}


def never_left(trees: Trees) -> Trees:
    """Trees without thresholds of NaN: such a node sends every value right, so it is turned round, with infinity.

    `less_than` and `less_than_float32` give such thresholds.
    """
    where = np.isnan(trees.threshold)
    if not where.any():
        return trees
    return trees.replace(
        left=np.where(where, trees.right, trees.left),
        right=np.where(where, trees.left, trees.right),
        missing_left=trees.missing_left ^ where,
        threshold=np.where(where, np.inf, trees.threshold),
    )


def with_covers(trees: Trees, covers: Any) -> Trees:
    """Trees with the amount of training data at each leaf, if the tool tells it for every leaf; else unchanged.

    `covers` has a number per leaf, or None where the tool does not tell. A leaf that is its whole tree may lack one.
    """
    if isinstance(covers, list):
        covers = [np.nan if cover is None else cover for cover in covers]
    try:
        column = as_column(covers, np.float64, "covers")
    except ModelError:
        return trees
    if len(column) != trees.n_leaves:
        return trees
    alone = trees.sizes[trees.tree_of_leaf] == 0
    column = np.where(alone & np.isnan(column), 0.0, column)
    return trees.replace(leaf_cover=column) if (np.isfinite(column) & (column >= 0)).all() else trees


NUMBERED = re.compile(r"f(0|[1-9][0-9]{0,7})")


def numbered(names: Iterable[str]) -> dict[str, int] | None:
    """Column of each feature where all are named by numbers, as in f0, f12: such names are invented. Else None.

    Examples
    --------
    >>> numbered(["f3", "f0"]), numbered(["f3", "bm25"])
    ({'f3': 3, 'f0': 0}, None)
    """
    found = {name: NUMBERED.fullmatch(name) for name in names}
    return {name: int(match[1]) for name, match in found.items() if match} if all(found.values()) else None


USED_ONLY = "used only"  # what `source["features"]` says when a file names just the features that it uses


def with_categories(model: Ensemble, lists: Sequence[Sequence[Any]], columns: Sequence[int] | None) -> Ensemble:
    """Model that notes which categories its features have, in the order of their codes.

    Parameters
    ----------
    model : Ensemble
    lists : sequence of sequence
        Categories of each feature that has some.
    columns : sequence of int or None
        Numbers of these features; None when the tool does not tell.
    """
    coding = Coding(tuple(map(tuple, lists)), None if columns is None else tuple(columns))
    return model.with_metadata(categories=coding.as_note())


def mean_weights(n_trees: int) -> FloatArray:
    """Tree weights that make the score the mean of the trees' outputs."""
    return np.full(n_trees, 1.0 / max(1, n_trees))


def ensemble_of(
    trees: Trees,
    splits: Splits = NO_SPLITS,
    *,
    source: Mapping[str, Any],
    n_features: int | None,
    tree_weights: Any = None,
    base: float = 0.0,
    feature_names: Sequence[str] | None = None,
    budget: Budget = UNLIMITED,
) -> Ensemble:
    """Ensemble made of trees of another tool.

    Parameters
    ----------
    trees : Trees
        Trees whose thresholds compare as rankwood does: left when x <= threshold.
    splits : mapping of int to Pieces
        Splits that are no single threshold, by number of the inner node.
    source : mapping
        What the metadata shall note of the tool.
    n_features : int or None
        Number of features. None: the tool does not tell, so it is what splits need, and the metadata notes this.
    tree_weights, base, feature_names
        As of `Ensemble`; every weight is 1 unless given.
    budget : Budget
        Limits of the import.
    """
    notes = dict(source)
    if n_features is None:
        n_features = int(trees.feature.max(initial=-1)) + 1
        notes["n_features"] = "at least"
    budget.check_features(n_features)
    budget.check_trees(trees.n_trees, trees.n_nodes)
    return Ensemble.of(
        with_sets(trees, splits, budget),
        tree_weights=tree_weights,
        n_features=n_features,
        base=base,
        feature_names=None if feature_names is None else [str(name) for name in feature_names],
        metadata={"source": notes},
    )
