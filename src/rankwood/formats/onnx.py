"""ONNX graphs of trees: `TreeEnsembleRegressor` (ai.onnx.ml 1 and 3) and `TreeEnsemble` (5), read and written.

Around its trees a graph may cast, reshape, add constants and multiply by them, and sum several operators of trees; any
other operator is refused by name. Values are compared in the type of the graph's input: float32 or float64. Scores are
those before a final transformation (`post_transform`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rankwood._version import __version__
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import MissingPackageError, ModelError, one_line
from rankwood.formats.reading import (
    UNLIMITED,
    Budget,
    Pieces,
    Splits,
    TreeBuilder,
    as_column,
    at_most_float32,
    check_one_score,
    ensemble_of,
    less_than,
    less_than_float32,
    mean_weights,
    never_left,
)
from rankwood.formats.writing import categories_of, on_thresholds, plain
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees, offsets_of
from rankwood.model.unfold import MIN_ALLOWANCE

FLOAT, DOUBLE = 1, 11  # onnx.TensorProto
MAX_OPERATORS = 10_000
MAX_DEPTH = 50  # operators after the trees, one behind the other
MAX_SUMS = 1_000_000  # terms of all sums together
ENTRIES_PER_BYTE = 8  # entries of a tensor: some types are smaller than a byte
SAME = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
TREES = ("TreeEnsembleRegressor", "TreeEnsemble")
# Version 5 gives their numbers in these lists; versions 1 and 3 give names, modes with BRANCH_ before them.
MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


# Reading a graph, from its output back to the trees.


def is_onnx(start: bytes) -> bool:
    """Whether a file that begins so can be ONNX: its first field is the version of the format, a small number."""
    return len(start) > 4 and start[0] == 0x08 and 1 <= start[1] < 64


def parse_onnx(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """Ensemble of a `.onnx` file."""
    try:
        import onnx
    except ImportError:
        raise MissingPackageError("onnx", "reading an ONNX model", "formats") from None
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError, RecursionError) as error:
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None
    return from_onnx_model(model, budget)


def from_onnx_model(model: Any, budget: Budget | None = None) -> Ensemble:
    """Ensemble of an `onnx.ModelProto`."""
    graph = _Graph(model.graph, Budget(model.ByteSize()) if budget is None else budget)
    score = graph.score_of(_one(graph.outputs, "output"))
    if not score.factors:
        raise ModelError("there are no trees in the ONNX graph")
    parts = [(graph.trees_of(name), factor) for name, factor in score.factors.items()]
    first, *rest = (ensemble.reweigh(ensemble.tree_weights * factor) for ensemble, factor in parts)
    whole = first.concat(*rest) if rest else first
    base = sum(ensemble.base * factor for ensemble, factor in parts) + score.base
    return whole.replace(base=base, metadata=first.metadata)


@dataclass(frozen=True)
class _Score:
    """Weighted sum of the outputs of tree operators, by name of the output, and of a constant."""

    factors: dict[str, float]
    base: float = 0.0

    def times(self, factor: float) -> _Score:
        return _Score({name: own * factor for name, own in self.factors.items()}, self.base * factor)

    def plus(self, other: _Score) -> _Score:
        factors = dict(self.factors)
        for name, factor in other.factors.items():
            factors[name] = factors.get(name, 0.0) + factor
        return _Score(factors, self.base + other.base)


class _Graph:
    """Graph that is followed from its output back to its trees.

    Every value is looked at once, however many others are computed from it.
    """

    def __init__(self, graph: Any, budget: Budget) -> None:
        if len(graph.node) > MAX_OPERATORS:
            raise ModelError(f"the ONNX graph has {len(graph.node)} nodes: it is more than trees")
        self.outputs = [value.name for value in graph.output]
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = {value.name: value for value in graph.input if value.name not in self.constants}
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.budget = budget
        self.scores: dict[str, _Score | None] = {}  # None while it is being followed
        self.ensembles: dict[str, Ensemble] = {}
        self.n_sums = 0

    def score_of(self, name: str, depth: int = 0) -> _Score:
        """Value of this name as a sum of tree operators."""
        if name in self.scores:
            known = self.scores[name]
            if known is None:
                raise ModelError(f"the ONNX graph runs in a circle at {one_line(name)!r}")
            return known
        node = self.makers.get(name)
        if node is None:
            raise ModelError(f"the output of the ONNX graph does not come from trees but from {one_line(name)!r}")
        if depth > MAX_DEPTH:
            raise ModelError(f"more than {MAX_DEPTH} operators follow each other in the ONNX graph: it is no ranker")
        self.scores[name] = None
        score = self.scores[name] = self._made_by(node, name, depth)
        return score

    def _made_by(self, node: Any, name: str, depth: int) -> _Score:
        """Output of an operator as a sum of tree operators."""
        kind, inputs = node.op_type, list(node.input)
        if kind in TREES:
            return _Score({name: 1.0})
        if kind in SAME:
            return self.score_of(_first_input(node), depth + 1)
        if kind in ("Add", "Sub", "Sum"):
            _first_input(node)
            sign = -1.0 if kind == "Sub" else 1.0
            total, *terms = (self._term(part, depth) for part in inputs)
            for term in terms:
                self.n_sums += 1 + len(total.factors)
                if self.n_sums > MAX_SUMS:
                    raise ModelError("the ONNX graph has too many sums of sums of its trees: it is no ranker")
                total = total.plus(term.times(sign))
            return total
        if kind in ("Mul", "Div") and len(inputs) == 2:
            return self._product(inputs, kind == "Div", depth)
        raise ModelError(f"the ONNX graph has an operator {one_line(kind)} after its trees: only sums can be imported")

    def _term(self, name: str, depth: int) -> _Score:
        constant = self._constant(name)
        return self.score_of(name, depth + 1) if constant is None else _Score({}, constant)

    def _product(self, inputs: list[str], divide: bool, depth: int) -> _Score:
        factors = [self._constant(name) for name in inputs]
        if factors[1] is not None and not (divide and factors[1] == 0.0):
            return self.score_of(inputs[0], depth + 1).times(1.0 / factors[1] if divide else factors[1])
        if factors[0] is not None and not divide:
            return self.score_of(inputs[1], depth + 1).times(factors[0])
        raise ModelError("the ONNX graph multiplies its trees with something that is no constant")

    def _constant(self, name: str) -> float | None:
        """Number that the graph holds under this name; None if it is computed."""
        tensor = self.constants.get(name)
        node = self.makers.get(name)
        if tensor is None and node is not None and node.op_type == "Constant":
            tensor = attributes_of(node).get("value")
        if tensor is None or not is_tensor(tensor):
            return None
        values = as_array(tensor)
        if values.size != 1 or values.dtype.kind not in "biuf":
            raise ModelError(f"the constant {one_line(name)} has {values.size} entries: a ranker has one score")
        return float(np.ravel(values)[0])

    def trees_of(self, name: str) -> Ensemble:
        """Trees of the operator whose output has this name."""
        node = self.makers[name]
        source = _first_input(node)
        seen: set[str] = set()
        is_cast_to: int | None = None
        while source in self.makers and self.makers[source].op_type in ("Identity", "Cast"):
            if source in seen:
                raise ModelError(f"the ONNX graph runs in a circle at {one_line(source)!r}")
            seen.add(source)
            maker = self.makers[source]
            if maker.op_type == "Cast" and is_cast_to is None:
                is_cast_to = integer(attributes_of(maker), "to", 0)
            source = _first_input(maker)
        if source not in self.inputs:
            raise ModelError(f"the trees of the ONNX graph do not look at its input but at {one_line(source)!r}")
        kind = self.inputs[source].type.tensor_type
        types = {kind.elem_type, kind.elem_type if is_cast_to is None else is_cast_to}
        if not types <= {FLOAT, DOUBLE}:
            raise ModelError("the input of the ONNX graph must be a tensor of floats or doubles")
        tables = tables_of(node, is_float32=FLOAT in types)
        return _ensemble(tables, kind.shape.dim, self.budget)


def _first_input(node: Any) -> str:
    if not len(node.input):
        raise ModelError(f"the ONNX file is damaged: an operator {one_line(node.op_type)} has no input")
    return str(node.input[0])


def _ensemble(tables: TreeNode, shape: Any, budget: Budget) -> Ensemble:
    width = int(shape[1].dim_value) if len(shape) == 2 else 0
    return ensemble_of(
        tables.trees,
        tables.splits,
        source={"format": "onnx", "operator": tables.operator, "post_transform": tables.post_transform},
        n_features=width or None,
        tree_weights=mean_weights(tables.trees.n_trees) if tables.is_average else None,
        base=tables.base,
        budget=budget,
    )


def as_array(tensor: Any) -> AnyArray:
    """Array of a tensor; refused if its numbers are in another file."""
    from onnx import numpy_helper

    if tensor.data_location == 1 or len(tensor.external_data):
        raise ModelError("the ONNX file keeps numbers in other files: save it as one")
    n_entries = 1
    for dim in tensor.dims:
        n_entries *= max(int(dim), 0)
    if n_entries > ENTRIES_PER_BYTE * tensor.ByteSize():
        raise ModelError("the ONNX file is damaged: a tensor is larger than its content")
    try:
        array: AnyArray = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None
    return array


def _one(names: list[str], what: str) -> str:
    if len(names) != 1:
        raise ModelError(f"the ONNX graph has {len(names)} {what}s, not one: it is no ranker")
    return names[0]


# Reading the operators of trees.


@dataclass(frozen=True)
class TreeNode:
    """Trees of one operator, and how they become a score."""

    operator: str
    trees: Trees
    splits: Splits
    is_average: bool
    base: float
    post_transform: str


def attributes_of(node: Any) -> dict[str, Any]:
    """Attributes of a node by name: numbers, texts, tensors, or lists of them."""
    import onnx

    try:
        return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    except (ValueError, NotImplementedError) as error:
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None


def is_tensor(value: Any) -> bool:
    """Whether an attribute is a tensor, and not a sparse one or a type, which have some of the same fields."""
    import onnx

    return isinstance(value, onnx.TensorProto)


def integer(attributes: dict[str, Any], name: str, default: int) -> int:
    """Attribute that must be a whole number."""
    value = attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"the ONNX file is damaged: the attribute {name} is {one_line(value)}, not a whole number")
    return value


def tables_of(node: Any, *, is_float32: bool) -> TreeNode:
    """Trees of a `TreeEnsembleRegressor` or `TreeEnsemble` node."""
    attributes = attributes_of(node)
    reader = _Version5(attributes) if node.op_type == "TreeEnsemble" else _Version3(attributes)
    n_targets = integer(attributes, "n_targets", 1)
    if n_targets != 1:
        raise ModelError(f"the trees have {n_targets} targets: a ranker has one score per document")
    if reader.aggregate not in ("SUM", "AVERAGE"):
        raise ModelError(f"the trees are joined by {reader.aggregate}: only sums and averages can be imported")
    if reader.post_transform not in ("NONE", "LOGISTIC"):
        raise ModelError(f"scores go through {reader.post_transform}: only NONE and LOGISTIC can be imported")
    builder = TreeBuilder()
    # Nodes and leaves that there can be if none has two parents, and some for copies of those that have.
    budget = [2 * reader.n_entries + len(reader.roots) + MIN_ALLOWANCE]
    read = cache(lambda item: reader.read(item, is_float32))  # for copies
    for root in reader.roots:
        builder.add(root, lambda item: _limited(read, item, budget))
    n_left = reader.n_entries - len(reader.met)
    if isinstance(reader, _Version3) and n_left:
        raise ModelError(f"the nodes of the ONNX file form no trees: no path leads to {n_left} of them")
    return TreeNode(
        node.op_type,
        never_left(builder.trees()),
        builder.splits,
        reader.aggregate == "AVERAGE",
        reader.base,
        reader.post_transform,
    )


def _limited(read: Callable[[int], Any], item: int, budget: list[int]) -> Any:
    """Read a node once more for every path that leads to it, and refuse when these are too many, or run in a circle."""
    budget[0] -= 1
    if budget[0] < 0:
        raise ModelError(
            "the nodes of the ONNX file form no trees: two paths lead to the same node, too often for copies; import "
            "the model that the file was made from"
        )
    return read(item)


def split(
    mode: str, feature: int, value: float, members: list[float], children: list[int], tracks: bool, is_float32: bool
) -> tuple[Any, ...]:
    """A node as `TreeBuilder.add` takes it: "x mode value" leads to the first child if it holds, else to the second.

    A missing value compares false, except with NEQ; with `tracks` it goes where a true comparison leads.
    """
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
        if np.isnan(start):  # the point is -infinity: nothing lies below
            left[0] = True
            cuts.append(end)
            left.append(False)
        else:
            cuts += [start, end]
            left += [True, False]
    missing_left = missing_true != (mode == "NEQ")
    return feature, Pieces(cuts, left, missing_left), *sides


class _Columns:
    """Attributes of a tree operator, read with checks."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes

    def column(self, name: str, dtype: Any, length: int | None = None) -> AnyArray:
        """Array of an attribute, or of its form as a tensor; zeros if neither is given and `length` is known."""
        value = self.attributes.get(f"{name}_as_tensor", self.attributes.get(name))
        if value is None:
            if length is None:
                raise ModelError(f"the trees of the ONNX file have no {name}")
            return np.zeros(length, dtype=dtype)
        if is_tensor(value):
            value = np.ravel(as_array(value))
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
        """Name that a number stands for."""
        number = integer(self.attributes, name, default)
        return names[number] if 0 <= number < len(names) else f"number {number}"


class _Version3(_Columns):
    """Reads `TreeEnsembleRegressor`: nodes are known by tree and number, leaves are among them, their values apart."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__(attributes)
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
        self.met: set[int] = set()  # nodes that paths have led to
        self.weights = self._weights()
        self.roots = self._roots()
        has_base = "base_values" in attributes or "base_values_as_tensor" in attributes
        values = self.column("base_values", np.float64) if has_base else np.zeros(0)
        check_one_score(len(values), "base values", "the trees have")
        self.base = float(values[0]) if len(values) else 0.0

    def _weights(self) -> list[float]:
        """Value of every node: that of a leaf, 0 for others."""
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
        """Node of every tree that is no other's child; trees in order of appearance."""
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
        self.met.add(entry)
        mode = self.modes[entry].removeprefix("BRANCH_")
        if mode == "LEAF":
            return self.weights[entry]
        if mode not in MODES or mode == "MEMBER":
            raise ModelError(f"there is no mode {one_line(self.modes[entry])}")
        children = [self._child(entry, number) for number in (self.true[entry], self.false[entry])]
        values = [self.value[entry]]
        # Converters write a set of categories as a chain: x == 1 leads to A, else x == 4 leads to A, else ... to B.
        while mode == "EQ" and self._goes_on(entry, children[1]) and len(values) <= self.n_entries:
            self.met.add(children[1])
            values.append(self.value[children[1]])
            children[1] = self._child(children[1], self.false[children[1]])
        if len(values) > 1:
            mode = "MEMBER"
            if any(value != value for value in values):
                raise ModelError("a threshold is NaN")
        tracks = bool(self.tracks[entry])
        return split(mode, self.feature[entry], values[0], values, children, tracks, is_float32)

    def _child(self, entry: int, number: int) -> int:
        child = self.place.get((self.tree[entry], number))
        if child is None:
            raise ModelError(f"tree {self.tree[entry]} has no node {number}")
        return child

    def _goes_on(self, entry: int, other: int) -> bool:
        """Whether a node asks for another value of the same feature, and leads to the same node if it is that."""
        return self.modes[other] == self.modes[entry] and all(
            column[other] == column[entry] for column in (self.feature, self.true, self.tracks)
        )


class _Version5(_Columns):
    """Reads `TreeEnsemble`: inner nodes and leaves of all trees stand in two lists, and roots are given by number."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__(attributes)
        self.aggregate = self.choice("aggregate_function", AGGREGATES, 1)
        self.post_transform = self.choice("post_transform", TRANSFORMS, 0)
        self.base = 0.0
        self.met: set[int] = set()
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
        """Set of every node of mode MEMBER; the attribute lists all sets, with NaN between them."""
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
        if pair[0] == pair[1] < 0:  # how a tree of one leaf is written
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


# Writing a graph of one operator.


def check_package() -> None:
    """Raise a `MissingPackageError` if the package that writes ONNX files is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise MissingPackageError("onnx", "writing ONNX models", "formats") from None


def export_onnx(model: Ensemble, path: Path, *, version: int = 3, whole_numbers: bool = False) -> bytes:
    """Content of an ONNX file: a graph of one tree operator, from the input `X` to the output `score`.

    Parameters
    ----------
    version : {3, 5}, default 3
        Version of ai.onnx.ml. Most runtimes know 3; 5 does not round scores to float32.
    whole_numbers : bool, default False
        Whether values of features with categories are always whole numbers from 0 on, or missing: version 5 then holds
        sets of categories as such. Otherwise it holds sets of single whole numbers only, and the model grows by others.
    """
    check_package()
    import onnx
    from onnx import TensorProto, helper

    if version not in (3, 5):
        raise ModelError(f"version must be 3 or 5, got {version!r}")
    members: dict[int, AnyArray] = {}
    if version == 3:
        model = plain(on_thresholds(model, "ONNX of version 3", level=5))
    else:
        model, members = _with_members(model, whole_numbers)
    output = TensorProto.FLOAT if version == 3 else TensorProto.DOUBLE
    node = _regressor(model, helper) if version == 3 else _tree_ensemble(model, members, helper)
    graph = helper.make_graph(
        [node],
        "rankwood",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, model.n_features])],
        [helper.make_tensor_value_info("score", output, [None, 1])],
    )
    opsets = [helper.make_opsetid("", 17 if version == 3 else 21), helper.make_opsetid("ai.onnx.ml", version)]
    proto = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=8 if version == 3 else 10,
        producer_name="rankwood",
        producer_version=__version__,
    )
    if model.feature_names is not None:
        helper.set_model_props(proto, {"feature_names": json.dumps(model.feature_names)})
    onnx.checker.check_model(proto)
    content: bytes = proto.SerializeToString()
    return content


def _with_members(model: Ensemble, whole_numbers: bool) -> tuple[Ensemble, dict[int, AnyArray]]:
    """The model with weights and base in the leaves, and members of sets by node; other sets became thresholds."""

    def members_of(thresholds: FloatArray) -> AnyArray | None:
        begin, end = thresholds[::2], thresholds[1::2]
        singles = len(begin) == len(end) and np.array_equal(np.nextafter(begin, np.inf), end)
        if singles and (end == np.floor(end)).all() and (np.abs(end) < 2.0**31).all():  # all that ONNX Runtime takes
            return end
        return categories_of(thresholds) if whole_numbers else None

    def find(model: Ensemble) -> dict[int, AnyArray]:
        found = {node: members_of(model.trees.thresholds_of(node)) for node in model.trees.set_nodes.tolist()}
        return {node: members for node, members in found.items() if members is not None}

    keep = np.zeros(model.n_nodes, dtype=bool)
    keep[list(find(model))] = True
    model = plain(on_thresholds(model, "ONNX", keep, level=6))
    return model, find(model)


def _regressor(model: Ensemble, helper: Any) -> Any:
    """Operator of version 3, where the nodes of each tree are its inner nodes, then its leaves."""
    inner = model.trees.sizes
    total = 2 * inner + 1
    n_all = int(total.sum())
    tree_of = np.repeat(np.arange(model.n_trees), total)
    ids = np.arange(n_all) - offsets_of(total)[tree_of]
    is_inner = ids < inner[tree_of]
    n_inner = inner[model.trees.tree_of_node]

    def spread(values: AnyArray, fill: float = 0) -> AnyArray:
        spread = np.full(n_all, fill, dtype=np.asarray(values).dtype)
        spread[is_inner] = values
        return spread

    children = [np.where(c >= 0, c, n_inner + ~c) for c in (model.left, model.right)]
    return helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["score"],
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        n_targets=1,
        post_transform="NONE",
        nodes_treeids=tree_of.tolist(),
        nodes_nodeids=ids.tolist(),
        nodes_featureids=spread(model.feature.astype(np.int64)).tolist(),
        nodes_modes=np.where(is_inner, "BRANCH_LEQ", "LEAF").tolist(),
        nodes_values_as_tensor=_doubles(helper, "nodes_values", spread(model.threshold)),
        nodes_truenodeids=spread(children[0].astype(np.int64)).tolist(),
        nodes_falsenodeids=spread(children[1].astype(np.int64)).tolist(),
        nodes_missing_value_tracks_true=spread(model.missing_left.astype(np.int64)).tolist(),
        target_treeids=tree_of[~is_inner].tolist(),
        target_nodeids=ids[~is_inner].tolist(),
        target_ids=[0] * model.n_leaves,
        target_weights_as_tensor=_doubles(helper, "target_weights", model.leaf_value),
    )


def _tree_ensemble(model: Ensemble, members: dict[int, AnyArray], helper: Any) -> Any:
    """Operator of version 5, where inner nodes and leaves of all trees stand in two lists.

    A tree needs an inner node there, so a tree of one leaf gets a node with that leaf twice. (One leaf for both sides
    is allowed, too, but ONNX Runtime scores other trees wrongly then, up to 1.29.) Leaves are numbered from the first
    number with which no node has a leaf and a node of the same number below it, since ONNX Runtime takes them for the
    same up to 1.23. What is before has no part in any tree. The members of a set go right here, and
    where a true comparison leads there.
    """
    from onnx import TensorProto

    alone = np.flatnonzero(model.trees.sizes == 0)  # trees of one leaf
    tree_of = model.trees.tree_of_node
    first, first_leaf = model.node_offsets[tree_of], model.leaf_offsets[tree_of]
    has_set = np.zeros(model.n_nodes, dtype=bool)
    has_set[list(members)] = True
    left, right = np.where(has_set, model.right, model.left), np.where(has_set, model.left, model.right)
    missing_true = model.missing_left ^ has_set
    is_leaf, target = [], []
    leaf, twin = model.leaf_offsets[alone], model.n_leaves + np.arange(len(alone))
    for children, of_alone in ((left, leaf), (right, twin)):
        to = np.where(children >= 0, first + children, first_leaf + ~children)
        is_leaf.append(np.concatenate([children < 0, np.ones(len(alone), dtype=bool)]))
        target.append(np.concatenate([to, of_alone]))
    gaps = np.where(is_leaf[0], target[1] - target[0], target[0] - target[1])[is_leaf[0] != is_leaf[1]]
    start = next(number for number in range(len(gaps) + 1) if number not in set(gaps.tolist()))
    target = [np.where(leafs, to + start, to) for leafs, to in zip(is_leaf, target, strict=True)]
    leaf_values = np.concatenate([np.zeros(start), model.leaf_value, model.leaf_value[leaf]])
    roots = model.node_offsets[:-1].copy()
    roots[alone] = model.n_nodes + np.arange(len(alone))
    none = np.zeros(len(alone), dtype=np.int64)
    n_nodes = model.n_nodes + len(alone)
    modes = np.full(n_nodes, MODES.index("LEQ"))
    modes[list(members)] = MODES.index("MEMBER")
    sets: dict[str, Any] = {}
    if members:  # one after the other, with NaN between them
        listed = np.concatenate([np.append(members[node], np.nan) for node in sorted(members)])[:-1]
        sets["membership_values"] = _doubles(helper, "membership_values", listed)
    return helper.make_node(
        "TreeEnsemble",
        ["X"],
        ["score"],
        domain="ai.onnx.ml",
        aggregate_function=1,
        n_targets=1,
        post_transform=0,
        tree_roots=roots.tolist(),
        nodes_splits=_doubles(helper, "nodes_splits", np.concatenate([model.threshold, none])),
        nodes_featureids=np.concatenate([model.feature, none]).tolist(),
        nodes_modes=helper.make_tensor("nodes_modes", TensorProto.UINT8, [n_nodes], modes.tolist()),
        nodes_truenodeids=target[0].tolist(),
        nodes_trueleafs=is_leaf[0].astype(int).tolist(),
        nodes_falsenodeids=target[1].tolist(),
        nodes_falseleafs=is_leaf[1].astype(int).tolist(),
        nodes_missing_value_tracks_true=np.concatenate([missing_true, none]).astype(int).tolist(),
        leaf_targetids=[0] * len(leaf_values),
        leaf_weights=_doubles(helper, "leaf_weights", leaf_values),
        **sets,
    )


def _doubles(helper: Any, name: str, values: AnyArray) -> Any:
    from onnx import TensorProto

    return helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values.astype(np.float64).tolist())


# Limits of what is written: what is exact and what is not.

ONNX_LIMITS = (
    "Every float64 value goes the same way (input X: float64, documents x features). Version 3 gives scores as "
    "float32, rounded once at the end, for want of another output; version 5 gives float64. Runtimes may add up "
    "trees in another order. Sets of single whole numbers are held by version 5, sets of categories with "
    "whole_numbers=True; others become thresholds."
)
