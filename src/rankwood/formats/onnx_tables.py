"""The attributes of ONNX's tree operators as a forest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import ModelError, one_line
from rankwood.formats.node_tables import Forest, ForestBuilder, as_column, never_left
from rankwood.formats.thresholds import at_most_float32, less_than, less_than_float32
from rankwood.formats.unfold import Pieces

# By number in version 5; versions 1 and 3 write BRANCH_ before the name.
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

ToArray = Callable[[Any], AnyArray]


@dataclass(frozen=True)
class TreeNode:
    """What an operator of trees says."""

    operator: str
    forest: Forest
    is_average: bool
    base: float
    post_transform: str


def attributes_of(node: Any) -> dict[str, Any]:
    """Attributes by name: numbers, texts, tensors, or lists of them."""
    import onnx

    try:
        return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    except (ValueError, NotImplementedError) as error:
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None


def is_tensor(value: Any) -> bool:
    """Whether an attribute is a tensor: a sparse one or a type has some fields of one, too."""
    import onnx

    return isinstance(value, onnx.TensorProto)


def integer(attributes: dict[str, Any], name: str, default: int) -> int:
    """An attribute that must be a whole number."""
    value = attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"the ONNX file is damaged: the attribute {name} is {one_line(value)}, not a whole number")
    return value


def tables_of(node: Any, as_array: ToArray, *, is_float32: bool) -> TreeNode:
    """The forest of a `TreeEnsembleRegressor` or `TreeEnsemble` node."""
    attributes = attributes_of(node)
    reader = _Version5(attributes, as_array) if node.op_type == "TreeEnsemble" else _Version3(attributes, as_array)
    n_targets = integer(attributes, "n_targets", 1)
    if n_targets != 1:
        raise ModelError(f"the trees have {n_targets} targets: a ranker has one score per document")
    if reader.aggregate not in ("SUM", "AVERAGE"):
        raise ModelError(f"the trees are joined by {reader.aggregate}: only sums and averages can be imported")
    if reader.post_transform not in ("NONE", "LOGISTIC"):
        raise ModelError(f"scores go through {reader.post_transform}: only NONE and LOGISTIC can be imported")
    builder = ForestBuilder()
    budget = [2 * reader.n_entries + len(reader.roots)]  # of nodes and leaves, if no node has two parents
    for root in reader.roots:
        builder.add(root, lambda item: _limited(reader, item, is_float32, budget))
    n_left = reader.n_entries - sum(2 * size + 1 for size in builder.sizes)
    if isinstance(reader, _Version3) and n_left:
        raise ModelError(f"the nodes of the ONNX file form no trees: no path leads to {n_left} of them")
    forest = builder.forest()
    never_left(forest)
    return TreeNode(node.op_type, forest, reader.aggregate == "AVERAGE", reader.base, reader.post_transform)


def _limited(reader: _Version3 | _Version5, item: int, is_float32: bool, budget: list[int]) -> Any:
    """Read a node, unless there have been so many that some were met twice: such nodes form no trees."""
    budget[0] -= 1
    if budget[0] < 0:
        raise ModelError("the nodes of the ONNX file form no trees: two paths lead to the same node")
    return reader.read(item, is_float32)


def split(
    mode: str, feature: int, value: float, members: list[float], children: list[int], tracks: bool, is_float32: bool
) -> tuple[Any, ...]:
    """A node for `ForestBuilder`: whether x (mode) value holds decides between the two children, true first. A
    missing value compares false with everything (true with NEQ), unless the node tracks it to true."""
    at_most, below = (at_most_float32, less_than_float32) if is_float32 else (np.atleast_1d, less_than)
    if mode != "MEMBER" and np.isnan(value):
        raise ModelError("a threshold is NaN")
    true, false = children
    missing_true = tracks or mode == "NEQ"
    if mode in ("LEQ", "LT"):
        return feature, float((at_most if mode == "LEQ" else below)(value)[0]), true, false, missing_true
    if mode in ("GT", "GTE"):
        return feature, float((at_most if mode == "GT" else below)(value)[0]), false, true, not missing_true
    points = [value] if mode in ("EQ", "NEQ") else sorted(set(members))
    sides = (false, true) if mode == "NEQ" else (true, false)
    cuts: list[float] = []
    left: list[bool] = [False]
    for point in points:
        if is_float32 and float(np.float32(point)) != point:
            continue  # no float32 equals it
        start, end = float(below(point)[0]), float(at_most(point)[0])
        if np.isnan(start):  # -infinity: nothing lies below
            left[0] = True
            cuts.append(end)
            left.append(False)
        else:
            cuts += [start, end]
            left += [True, False]
    missing_left = missing_true != (mode == "NEQ")
    return feature, Pieces(cuts, left, missing_left), *sides


class _Columns:
    """Attributes as columns, with checks."""

    def __init__(self, attributes: dict[str, Any], as_array: ToArray) -> None:
        self.attributes = attributes
        self.as_array = as_array

    def column(self, name: str, dtype: Any, length: int | None = None) -> AnyArray:
        """An attribute, or its form of higher precision as a tensor; zeros where it is not given."""
        value = self.attributes.get(f"{name}_as_tensor", self.attributes.get(name))
        if value is None:
            if length is None:
                raise ModelError(f"the trees of the ONNX file have no {name}")
            return np.zeros(length, dtype=dtype)
        if is_tensor(value):
            value = np.ravel(self.as_array(value))
        values = as_column(value, dtype, name)
        if length is not None and len(values) != length:
            if len(values) == 0:
                return np.zeros(length, dtype=dtype)
            raise ModelError(f"{name} has {len(values)} entries, not {length}")
        return values

    def text(self, name: str, default: str) -> str:
        value = self.attributes.get(name, default.encode())
        if not isinstance(value, bytes):
            raise ModelError(f"the ONNX file is damaged: the attribute {name} is {one_line(value)}, not a text")
        return one_line(value.decode(errors="replace"))

    def texts(self, name: str) -> list[str]:
        values = self.attributes.get(name, [])
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, bytes) for value in values):
            raise ModelError(f"the ONNX file is damaged: the attribute {name} is {one_line(values)}, not texts")
        return [value.decode(errors="replace") for value in values]

    def choice(self, name: str, names: tuple[str, ...], default: int) -> str:
        number = integer(self.attributes, name, default)
        return names[number] if 0 <= number < len(names) else f"number {number}"


class _Version3(_Columns):
    """`TreeEnsembleRegressor`: nodes by tree and number, leaves among them, values of leaves apart."""

    def __init__(self, attributes: dict[str, Any], as_array: ToArray) -> None:
        super().__init__(attributes, as_array)
        self.aggregate = self.text("aggregate_function", "SUM")
        self.post_transform = self.text("post_transform", "NONE")
        trees = self.column("nodes_treeids", np.int64)
        n = self.n_entries = len(trees)
        numbers = self.column("nodes_nodeids", np.int64, n)
        self.modes = self.texts("nodes_modes")
        if len(self.modes) != n:
            raise ModelError(f"nodes_modes has {len(self.modes)} entries, not {n}")
        self.feature = self.column("nodes_featureids", np.int64, n).tolist()
        self.value = self.column("nodes_values", np.float64, n).tolist()
        self.true = self.column("nodes_truenodeids", np.int64, n).tolist()
        self.false = self.column("nodes_falsenodeids", np.int64, n).tolist()
        self.tracks = self.column("nodes_missing_value_tracks_true", np.bool_, n).tolist()
        self.tree = trees.tolist()
        self.place = {key: entry for entry, key in enumerate(zip(self.tree, numbers.tolist(), strict=True))}
        if len(self.place) != n:
            raise ModelError("the file is damaged: two nodes of a tree have the same number")
        self.weights = self._weights()
        self.roots = self._roots()
        base = self.column("base_values", np.float64, 0) if not self._has("base_values") else None
        values = self.column("base_values", np.float64) if base is None else base
        if len(values) > 1:
            raise ModelError(f"the trees have {len(values)} base values: a ranker has one score per document")
        self.base = float(values[0]) if len(values) else 0.0

    def _has(self, name: str) -> bool:
        return f"{name}_as_tensor" in self.attributes or name in self.attributes

    def _weights(self) -> list[float]:
        trees = self.column("target_treeids", np.int64)
        numbers = self.column("target_nodeids", np.int64, len(trees))
        targets = self.column("target_ids", np.int64, len(trees))
        values = self.column("target_weights", np.float64, len(trees))
        if (targets != 0).any():
            raise ModelError("a leaf adds to more than one target: a ranker has one score per document")
        weights = [0.0] * self.n_entries
        for key, value in zip(zip(trees.tolist(), numbers.tolist(), strict=True), values.tolist(), strict=True):
            if key not in self.place:
                raise ModelError(f"the file is damaged: tree {key[0]} has a value for node {key[1]}, which it lacks")
            weights[self.place[key]] += value
        return weights

    def _roots(self) -> list[int]:
        """The node of every tree that is nobody's child, trees in order of appearance."""
        children = {
            self.place.get((self.tree[entry], child), -1)
            for entry in range(self.n_entries)
            if self.modes[entry] != "LEAF"
            for child in (self.true[entry], self.false[entry])
        }
        roots: dict[int, int] = {}
        for entry in range(self.n_entries):
            if entry not in children:
                if self.tree[entry] in roots:
                    raise ModelError(f"tree {self.tree[entry]} has two roots")
                roots[self.tree[entry]] = entry
        lacking = set(self.tree) - set(roots)
        if lacking:
            raise ModelError(f"tree {min(lacking)} has no root")
        return list(roots.values())

    def read(self, entry: int, is_float32: bool) -> Any:
        mode = self.modes[entry].removeprefix("BRANCH_")
        if mode == "LEAF":
            return self.weights[entry]
        if mode not in MODES or mode == "MEMBER":
            raise ModelError(f"there is no mode {one_line(self.modes[entry])}")
        children = []
        for number in (self.true[entry], self.false[entry]):
            child = self.place.get((self.tree[entry], number))
            if child is None:
                raise ModelError(f"tree {self.tree[entry]} has no node {number}")
            children.append(child)
        return split(mode, self.feature[entry], self.value[entry], [], children, bool(self.tracks[entry]), is_float32)


class _Version5(_Columns):
    """`TreeEnsemble`: inner nodes and leaves apart, for all trees together, and the numbers of the roots."""

    def __init__(self, attributes: dict[str, Any], as_array: ToArray) -> None:
        super().__init__(attributes, as_array)
        self.aggregate = self.choice("aggregate_function", AGGREGATES, 1)
        self.post_transform = self.choice("post_transform", TRANSFORMS, 0)
        self.base = 0.0
        modes = self.column("nodes_modes", np.int64)
        n = self.n_entries = len(modes)
        if ((modes < 0) | (modes >= len(MODES))).any():
            raise ModelError("the file is damaged: there is a node of an unknown mode")
        self.modes = [MODES[mode] for mode in modes.tolist()]
        self.feature = self.column("nodes_featureids", np.int64, n).tolist()
        self.value = self.column("nodes_splits", np.float64, n).tolist()
        self.children = [self._child(f"nodes_{side}nodeids", f"nodes_{side}leafs", n) for side in ("true", "false")]
        self.tracks = self.column("nodes_missing_value_tracks_true", np.bool_, n).tolist()
        self.leaf = self.column("leaf_weights", np.float64)
        if (self.column("leaf_targetids", np.int64, len(self.leaf)) != 0).any():
            raise ModelError("a leaf adds to more than one target: a ranker has one score per document")
        self.members = self._members()
        roots = self.column("tree_roots", np.int64)
        if ((roots < 0) | (roots >= n)).any():
            raise ModelError("the file is damaged: a root does not exist")
        self.roots = roots.tolist()

    def _child(self, nodes: str, leaves: str, n: int) -> tuple[list[int], list[bool]]:
        return self.column(nodes, np.int64, n).tolist(), self.column(leaves, np.bool_, n).tolist()

    def _members(self) -> dict[int, list[float]]:
        """The set of every node of mode MEMBER: sets follow each other in one list, NaN between them."""
        nodes = [entry for entry, mode in enumerate(self.modes) if mode == "MEMBER"]
        if not nodes:
            return {}
        sets: list[list[float]] = [[]]
        for value in self.column("membership_values", np.float64).tolist():
            if value != value:
                sets.append([])
            else:
                sets[-1].append(value)
        if len(sets) < len(nodes):
            raise ModelError("the file is damaged: there are fewer sets of members than nodes that use them")
        return dict(zip(nodes, sets, strict=False))

    def read(self, entry: int, is_float32: bool) -> Any:
        if entry < 0:
            return float(self.leaf[~entry])
        (true_ids, true_leaf), (false_ids, false_leaf) = self.children
        pair = []
        for number, is_leaf in ((true_ids[entry], true_leaf[entry]), (false_ids[entry], false_leaf[entry])):
            if not 0 <= number < (len(self.leaf) if is_leaf else self.n_entries):
                raise ModelError(f"the file is damaged: node {entry} has a child that does not exist")
            pair.append(~number if is_leaf else number)
        if pair[0] == pair[1] < 0:  # how a lone leaf is written
            return float(self.leaf[~pair[0]])
        members = self.members.get(entry, [])
        return split(
            self.modes[entry],
            self.feature[entry],
            self.value[entry],
            members,
            pair,
            bool(self.tracks[entry]),
            is_float32,
        )
