"""ONNX graphs of trees: `TreeEnsembleRegressor` (ai.onnx.ml 1 and 3) and `TreeEnsemble` (5).

Around the trees a graph may cast, reshape, add and multiply by constants, and sum several of them; anything else is
refused by name. Values are compared in the type of the graph's input: float32, or float64 if it says so. Scores are
what stands before a final transformation (`post_transform`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import MissingPackageError, ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.onnx_tables import TreeNode, attributes_of, integer, is_tensor, tables_of

FLOAT, DOUBLE = 1, 11  # onnx.TensorProto
MAX_OPERATORS = 10_000
MAX_DEPTH = 50  # of operators after the trees
MAX_SUMS = 1_000_000  # terms of all sums together
ENTRIES_PER_BYTE = 8  # of a tensor: there are types of less than a byte
SAME = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
TREES = ("TreeEnsembleRegressor", "TreeEnsemble")


def is_onnx(start: bytes) -> bool:
    """Whether it can be ONNX: the first field of the message is the version of the representation, a small number."""
    return len(start) > 4 and start[0] == 0x08 and 1 <= start[1] < 64


def parse_onnx(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    """From the bytes of a `.onnx` file."""
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
    """From an `onnx.ModelProto`."""
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
    """A weighted sum of the outputs of tree operators, by name, and a constant."""

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
    """What a graph makes of its trees, from its output back to them. Every value is looked at once, however many
    others are made of it."""

    def __init__(self, graph: Any, budget: Budget) -> None:
        if len(graph.node) > MAX_OPERATORS:
            raise ModelError(f"the ONNX graph has {len(graph.node)} nodes: it is more than trees")
        self.outputs = [value.name for value in graph.output]
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = {value.name: value for value in graph.input if value.name not in self.constants}
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.budget = budget
        self.scores: dict[str, _Score | None] = {}  # None: it is being looked at
        self.ensembles: dict[str, Ensemble] = {}
        self.n_sums = 0

    def score_of(self, name: str, depth: int = 0) -> _Score:
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
        """The trees of the operator that makes `name`."""
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
        tables = tables_of(node, as_array, is_float32=FLOAT in types)
        return _ensemble(tables, kind.shape.dim, self.budget)


def _first_input(node: Any) -> str:
    if not len(node.input):
        raise ModelError(f"the ONNX file is damaged: an operator {one_line(node.op_type)} has no input")
    return str(node.input[0])


def _ensemble(tables: TreeNode, shape: Any, budget: Budget) -> Ensemble:
    forest = tables.forest
    width = int(shape[1].dim_value) if len(shape) == 2 else 0
    needed = int(forest.feature.max(initial=-1)) + 1
    n_trees = len(forest.n_nodes)
    source: dict[str, Any] = {"format": "onnx", "operator": tables.operator, "post_transform": tables.post_transform}
    if not width:
        source["n_features"] = "at least"
    return forest.ensemble(
        source=source,
        n_features=width or needed,
        tree_weights=np.full(n_trees, 1.0 / max(1, n_trees)) if tables.is_average else None,
        base=tables.base,
        budget=budget,
    )


def as_array(tensor: Any) -> AnyArray:
    """A tensor that the file itself holds, as an array."""
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
