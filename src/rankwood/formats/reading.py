"""What readers of model files share: budgets, safe numbers and JSON, thresholds, splits unfolded, trees."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import NODE, AnyArray, FloatArray
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import COLUMNS, MAX_FEATURES, NEEDED, Tree, Trees, offsets_of
from rankwood.scoring.c_source import round_down

# What an import may ask for, in proportion to its file: no small file takes hours or gigabytes.
#
# Nodes and trees take bytes in every format, so there are no more of them than bytes. Two things do not: the number
# of features, which may be a mere number in a header, and the nodes of splits that unfold into several (`unfold`).

MIN_FEATURES = 2**20  # that any file may speak of
MIN_NODES = 2**20  # that the trees of any file may unfold to
NODES_PER_BYTE = 4  # a split has 50 bytes or more in any format, so it may unfold to some hundreds on average


class Budget:
    """What is left for one import. An object in memory, of no known size, may have anything.

    >>> Budget(n_bytes=500).check_features(136)
    """

    def __init__(self, n_bytes: float = math.inf, n_features: int | None = None) -> None:
        """`n_features` is what the user says that the model has, and so may have."""
        self.n_bytes = n_bytes
        self.features = max(MIN_FEATURES, n_bytes, n_features or 0)
        self.most = max(MIN_NODES, NODES_PER_BYTE * n_bytes)  # nodes that trees may unfold to, together
        self.unfolded = self.most  # what is left of it

    def check_features(self, n_features: int) -> None:
        """Refuse a number of features that is out of all proportion."""
        if self.features < n_features <= MAX_FEATURES:  # more are refused anyway
            raise ModelError(
                f"the model is of {n_features} features, too many to believe of a file of {self.n_bytes:.0f} bytes: "
                f"if it is, give n_features={n_features}"
            )

    def check_trees(self, n_trees: int, n_nodes: int) -> None:
        """Refuse more trees or inner nodes than a file has bytes."""
        for number, what in ((n_trees, "trees"), (n_nodes, "nodes")):
            if number > self.n_bytes:
                raise ModelError(f"the file is damaged: {number} {what} do not fit in {self.n_bytes:.0f} bytes")

    def take_unfolded(self, n_nodes: int) -> None:
        """Note the nodes that a tree has unfolded to, or the work that it was when that was more."""
        self.unfolded -= n_nodes


UNLIMITED = Budget()


# Values and columns of files that may be damaged or hostile.

NUMBER = (int, float)


def parse_json(content: bytes) -> Any:
    """The value that the text holds. Python's own limit on nesting keeps hostile files small."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ModelError(
            "the JSON is nested too deeply to be read: the trees are too deep, or the file is no model"
        ) from None
    except ValueError as error:
        raise ModelError(f"the file is damaged or cut off: {one_line(error)}") from None


def entry(value: Any, *keys: str | int, kind: type | tuple[type, ...] = object, where: str = "the model") -> Any:
    """What stands under `keys`, one inside the other, if it is of the `kind` expected."""
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


def number(value: Any, what: str) -> float:
    """A number, also one that is written as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ModelError(f"{what} must be a number, got {one_line(value)}") from None


def json_float(value: Any, what: str) -> float:
    """A number of JSON, where whole numbers may be too large for a float."""
    try:
        if isinstance(value, bool) or not isinstance(value, NUMBER):
            raise TypeError
        return float(value)
    except (TypeError, OverflowError):
        raise ModelError(f"{what} is {one_line(value)}") from None


def whole(value: Any, what: str, default: int | None = None) -> int:
    """A whole number, also one that is written as text."""
    if value is None and default is not None:
        return default
    result = number(value, what)
    if result != result or abs(result) > 2**53 or result != int(result):
        raise ModelError(f"{what} must be a whole number, got {one_line(value)}")
    return int(result)


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


def numbers(text: bytes, dtype: Any, what: str) -> AnyArray:
    """Numbers between spaces, all at once: a model has millions."""
    if not text.strip():
        return np.zeros(0, dtype=dtype)
    try:
        values: AnyArray = np.fromstring(text, dtype=dtype, sep=" ")
    except ValueError:
        raise ModelError(f"{what} holds something that is not a number") from None
    return values


def texts(value: Any, what: str) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ModelError(f"{what} must be texts")
    return value


def check_one_score(n_outputs: Any, what: str, whose: str = "the model has") -> None:
    """Refuse a model of several classes, targets or outputs."""
    if n_outputs > 1:
        raise ModelError(f"{whose} {n_outputs} {what}: a ranker has one score per document")


# Comparisons of other tools as `x <= threshold` in float64, exactly.
#
# Many tools round a value to float32 before they compare it. Rounding is monotone, so the values that round to f or
# less are those up to the middle between f and its successor, where the tie goes to the even one. That middle needs
# 25 bits and so is a float64: with it as threshold, a float64 value is decided as its rounding would be, and a
# float32 value as ever.

INFINITY = np.float32(np.inf)


def at_most_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when float32(x) <= value, for every float64 x. A NaN stays one.

    >>> thresholds = at_most_float32([1.0])
    >>> [bool(np.float32(x) <= 1.0) == bool(x <= thresholds[0]) for x in (1.0, 1.00000005, 1.00000006, 1.0000001)]
    [True, True, True, True]
    """
    exact = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        below = round_down(exact)
        above = np.nextafter(below, INFINITY)
        # Beyond the largest float32, rounding goes on as if there were one more: at 2**128, which becomes infinity.
        middle = 0.5 * (below.astype(np.float64) + np.where(np.isinf(above), 2.0**128, above.astype(np.float64)))
        middle = np.where(below == -INFINITY, 0.5 * (-(2.0**128) - float(np.finfo(np.float32).max)), middle)
        is_even = (np.abs(below).view(np.uint32) & 1) == 0
        middle = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    result: FloatArray = np.where(below == INFINITY, np.inf, middle)
    return result


def at_most_of_float32(values: Any) -> FloatArray:
    """Thresholds of values that the tool holds in float32, whatever their text says: x <= T just when
    float32(x) <= float32(value)."""
    with np.errstate(all="ignore"):
        return at_most_float32(np.asarray(values).astype(np.float32))


def less_than_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when float32(x) < float32(value); NaN where no x is less: below -infinity.

    >>> thresholds = less_than_float32([0.0])
    >>> bool(0.0 <= thresholds[0]), bool(-1e-45 <= thresholds[0])
    (False, True)
    """
    with np.errstate(all="ignore"):
        limits = np.atleast_1d(np.asarray(values)).astype(np.float32)
        below = np.nextafter(limits, -INFINITY)
    return np.where(limits == -INFINITY, np.nan, at_most_float32(below))


def less_than(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when x < value, in float64; NaN where no x is less."""
    limits = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        result: FloatArray = np.where(limits == -np.inf, np.nan, np.nextafter(limits, -np.inf))
    return result


# Splits that are no single threshold, as subtrees of thresholds that decide the same.
#
# LightGBM's zero-as-missing sends a window around zero to one side, a set of categories is a union of intervals, an
# equality a single point. Such a split cuts the line into pieces that go left or right in turn. Its node becomes a
# small tree over the pieces, each with a copy of the subtree on its side. What the copies above have decided about a
# feature is remembered, so a copy keeps only what can still be reached.

# Copies of copies grow exponentially with depth in the worst case.
MAX_GROWTH = 64
MIN_ALLOWANCE = 20_000  # nodes that any tree may have, however small it was
STEPS_PER_NODE = 8  # nodes of copies that may be met, most of them decided already, for one that is kept

Side: TypeAlias = bool  # True: left


@dataclass(frozen=True)
class Pieces:
    """A split by pieces of the line: the first goes up to cuts[0], its end included, the last one has no end."""

    cuts: Sequence[float]  # ascending
    left: Sequence[Side]  # of each piece, one more than cuts
    missing_left: Side


Splits: TypeAlias = Mapping[int, Pieces]  # by number of the inner node
NO_SPLITS: Splits = MappingProxyType({})


# Values of a feature that can come to a node: above the first number (None: from -infinity on, itself included) and up
# to the second; and whether missing ones can. By feature; what is not there is not restricted.
Domain: TypeAlias = tuple[float | None, float, bool]
Domains: TypeAlias = dict[int, Domain]
ANY: Domain = (None, math.inf, True)


def unfold(tree: Tree, splits: Splits, name_of: Mapping[int, str] | None = None, budget: Budget = UNLIMITED) -> Tree:
    """The tree with the nodes in `splits` written as thresholds. Numbers nodes and leaves anew, in preorder.

    Gains and counts of nodes mean nothing after that; the copies of a leaf share its cover.

    >>> tree = Tree.from_nested((0, 0.0, 1.0, 2.0))
    >>> new = unfold(tree, {0: Pieces([-1.0, 1.0], [False, True, False], True)})  # left just when -1 < x <= 1
    >>> new.threshold, new.leaf_value
    (array([ 1., -1.]), array([2., 1., 2.]))
    """
    n_nodes = len(tree.feature)
    features, thresholds, lefts, rights = (
        column.tolist() for column in (tree.feature, tree.threshold, tree.left, tree.right)
    )
    missing_lefts = [False] * n_nodes if tree.missing_left is None else tree.missing_left.tolist()
    new: dict[str, list[Any]] = {name: [] for name in NEEDED}
    feature, threshold, left, right, missing_left, leaves = new.values()  # leaves: which one each is a copy of
    allowance = min(max(MIN_ALLOWANCE, MAX_GROWTH * n_nodes), budget.unfolded)
    simple = _simplified(splits)
    watched = {features[node] for node in splits}  # other features decide the same in every copy
    domains: Domains = {}
    n_steps = 0
    # What is to be done, the next thing last: a node with its parent and place there, or a domain to be set on the way.
    pending: list[tuple[int, int, list[int]] | tuple[int, Domain]] = [(0 if n_nodes else -1, -1, left)]
    while pending:
        task = pending.pop()
        if len(task) == 2:
            domains[task[0]] = task[1]
            continue
        node, parent, place = task
        if node < 0:
            if parent >= 0:
                place[parent] = ~len(leaves)
            leaves.append(~node)
            continue
        column, number = features[node], len(feature)
        n_steps += 1
        if number >= allowance or n_steps > STEPS_PER_NODE * allowance:
            name = (name_of or {}).get(column, str(column))
            most = f"{allowance} nodes" if allowance < budget.unfolded else f"{budget.most:.0f} nodes in all trees"
            raise ModelError(
                f"the splits of feature {one_line(name)} on zero-as-missing or categories would need more than {most} "
                "as thresholds: train the model without them"
            )
        if column not in watched:
            cut, missing = thresholds[node], missing_lefts[node]
            pending += [(rights[node], number, right), (lefts[node], number, left)]
        else:
            domain = domains.get(column, ANY)
            split = simple.get(node)
            if split is None:
                decision = _decide((thresholds[node],), (True, False), missing_lefts[node], domain)
            else:
                decision = _decide(split.cuts, split.left, split.missing_left, domain)
            if isinstance(decision, bool):  # by what was decided above
                pending.append((lefts[node] if decision else rights[node], parent, place))
                continue
            cut, missing = decision
            # The same node again on both sides, with less to decide; and then the domain is what it was.
            pending += [(column, domain), (node, number, right), (column, _above(domain, cut, not missing))]
            pending += [(node, number, left), (column, _up_to(domain, cut, missing))]
        if parent >= 0:
            place[parent] = number
        feature.append(column)
        threshold.append(cut)
        missing_left.append(missing)
        left.append(0)
        right.append(0)
    budget.take_unfolded(max(len(feature), n_steps // STEPS_PER_NODE))
    copied = np.array(leaves)
    shares = None
    if tree.leaf_cover is not None:
        shares = (tree.leaf_cover / np.maximum(1, np.bincount(copied, minlength=n_nodes + 1)))[copied]
    return Tree(**(new | {"leaf_value": tree.leaf_value[copied]}), leaf_cover=shares)


def _simplified(splits: Splits) -> dict[int, Pieces]:
    """The splits without pieces that hold no value, and with neighbours on the same side as one. Then every cut parts
    left from right, and needs a node. A split that many nodes share is looked at once."""
    known: dict[int, Pieces] = {}
    for split in splits.values():
        if id(split) not in known:
            known[id(split)] = _simplify(split)
    return {node: known[id(split)] for node, split in splits.items()}


def _simplify(split: Pieces) -> Pieces:
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


def _decide(
    cuts: Sequence[float], left: Sequence[Side], missing_left: Side, domain: Domain
) -> bool | tuple[float, bool]:
    """Which side all of the domain goes to; or a cut inside it, and whether missing values go below the cut."""
    low, high, can_miss = domain
    if low is not None and low >= high:  # missing values alone
        return missing_left
    first = 0 if low is None else bisect_right(cuts, low)
    n_cuts = bisect_left(cuts, high) - first
    if n_cuts == 0:
        if can_miss and missing_left != left[first]:
            return high, False  # missing values apart, everything else is looked at again
        return left[first]
    middle = n_cuts // 2
    return cuts[first + middle], can_miss and (middle > 0 or missing_left == left[first])


def _up_to(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return low, min(high, cut), can_miss and missing


def _above(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return cut if low is None else max(low, cut), high, can_miss and missing


# From nodes and tables of other tools to `Trees`, and from these to an `Ensemble`.


class TreeBuilder:
    """Collects trees that come node by node, from nested text or objects.

    Attributes
    ----------
    sizes : list of int
        Inner nodes of each tree so far.
    splits : dict
        Splits that are no single threshold, by number of the inner node.
    """

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in NEEDED}
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

    def trees(self, threshold: Callable[[AnyArray], AnyArray] | None = None) -> Trees:
        """All trees; `threshold` converts the thresholds of plain splits, all at once."""
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
    """Trees from tables that number nodes and leaves of a tree together, root first. `columns` are the others of
    `Trees`, with an entry for every node and leaf.

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
    nodes, leaves = np.flatnonzero(inner), np.flatnonzero(is_leaf)
    kept = {name: column[leaves if COLUMNS[name].per == "leaf" else nodes] for name, column in columns.items()}
    for name, side in (("left", left), ("right", right)):
        kept[name] = number[offsets[own[nodes]] + side[nodes]]
    return Trees.from_columns(kept, offsets_of(np.bincount(own[nodes], minlength=len(sizes)))), nodes, leaves


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


def renumbered(trees: Trees, splits: Splits, node_number: AnyArray, leaf_number: AnyArray) -> tuple[Trees, Splits]:
    """The trees, and their splits, with the numbers that nodes and leaves shall have inside their trees; as they are
    when these are not just the numbers from 0 on, with the root as number 0."""
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
    """The trees, where nodes whose threshold is NaN, which no value is at most, send every value the other way."""
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
    """The trees with what a tool says of how much data each leaf holds: a number, or None where it says nothing.

    It counts if it is said of every leaf; one that is all of its tree can do without.
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


def mean_weights(n_trees: int) -> FloatArray:
    """Weights with which the score is the mean over all trees."""
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
    """The model of trees that another tool made.

    Parameters
    ----------
    trees : Trees
        With thresholds that compare as ours do.
    splits : mapping of int to Pieces
        Splits that are no single threshold, by number of the inner node: they are unfolded.
    source : mapping
        What is noted of the tool in the metadata, beside nodes and leaves if they are not as many there.
    n_features : int, optional
        Number of features. None: the tool does not say, so there are as many as splits need, and this is noted.
    tree_weights, base, feature_names
        As of `Ensemble`; every weight is 1 unless given.
    budget : Budget
        What the file may ask for.
    """
    notes = dict(source)
    if n_features is None:
        n_features = int(trees.feature.max(initial=-1)) + 1
        notes["n_features"] = "at least"
    if splits:
        notes |= {"n_nodes": trees.n_nodes, "n_leaves": trees.n_leaves}
    budget.check_features(n_features)
    budget.check_trees(trees.n_trees, trees.n_nodes)
    return Ensemble.of(
        _unfolded(trees, splits, feature_names, budget) if splits else trees,
        tree_weights=tree_weights,
        n_features=n_features,
        base=base,
        feature_names=None if feature_names is None else [str(name) for name in feature_names],
        metadata={"source": notes},
    )


def _unfolded(trees: Trees, splits: Splits, feature_names: Sequence[str] | None, budget: Budget) -> Trees:
    """The trees with all splits as thresholds; trees that have no others stay as they are."""
    # Before anything walks along them: links such as cycles, and thresholds that are none.
    trees.replace(feature=np.zeros_like(trees.feature), leaf_value=np.zeros_like(trees.leaf_value)).checked(1)
    by_tree: dict[int, dict[int, Pieces]] = {}
    tree_of = trees.tree_of_node
    for node, pieces in splits.items():
        number = int(tree_of[node])
        by_tree.setdefault(number, {})[node - int(trees.node_offsets[number])] = pieces
    names = dict(enumerate(feature_names or ()))
    return Trees.from_trees(
        [
            unfold(trees.tree(number), by_tree[number], names, budget) if number in by_tree else trees.tree(number)
            for number in range(trees.n_trees)
        ]
    )
