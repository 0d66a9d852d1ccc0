"""ONNX graphs of trees: `TreeEnsembleRegressor` (ai.onnx.ml 1 and 3) and `TreeEnsemble` (5).

Around the trees a graph may cast, reshape, add and multiply by constants, and sum several of them; anything else is
refused by name. Values are compared in the type of the graph's input: float32, or float64 if it says so. Scores are
what stands before a final transformation (`post_transform`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import MissingPackageError, ModelError
from rankwood.formats.node_tables import one_line
from rankwood.formats.onnx_tables import TreeNode, attributes_of, tables_of

FLOAT, DOUBLE = 1, 11  # onnx.TensorProto
SAME = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
TREES = ("TreeEnsembleRegressor", "TreeEnsemble")


def is_onnx(start: bytes) -> bool:
    """Whether it can be ONNX: the first field of the message is the version of the representation, a small number."""
    return len(start) > 4 and start[0] == 0x08 and 1 <= start[1] < 64


def parse_onnx(content: bytes) -> Ensemble:
    """From the bytes of a `.onnx` file."""
    try:
        import onnx
    except ImportError:
        raise MissingPackageError("onnx", "reading an ONNX model", "formats") from None
    from google.protobuf.message import DecodeError

    try:
        return from_onnx_model(onnx.load_model_from_string(content))
    except (DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None


def from_onnx_model(model: Any) -> Ensemble:
    """From an `onnx.ModelProto`."""
    graph = _Graph(model.graph)
    output = _one(graph.outputs, "output")
    score = graph.score_of(output)
    parts = [ensemble.reweigh(ensemble.tree_weights * factor) for ensemble, factor in score.parts]
    if not parts:
        raise ModelError("there are no trees in the ONNX graph")
    first, *rest = parts
    whole = first.concat(*rest) if rest else first
    base = sum(ensemble.base * factor for ensemble, factor in score.parts) + score.base
    return whole.replace(base=base, metadata=first.metadata)


@dataclass(frozen=True)
class _Score:
    """A weighted sum of ensembles, and a constant."""

    parts: tuple[tuple[Ensemble, float], ...]
    base: float = 0.0

    def times(self, factor: float) -> _Score:
        return replace(self, parts=tuple((e, w * factor) for e, w in self.parts), base=self.base * factor)

    def plus(self, other: _Score) -> _Score:
        return _Score(self.parts + other.parts, self.base + other.base)


class _Graph:
    def __init__(self, graph: Any) -> None:
        self.outputs = [value.name for value in graph.output]
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.inputs = {value.name: value for value in graph.input if value.name not in self.constants}
        self.makers = {name: node for node in graph.node for name in node.output if name}
        if len(graph.node) > 10_000:
            raise ModelError(f"the ONNX graph has {len(graph.node)} nodes: it is more than trees")

    def score_of(self, name: str, depth: int = 0) -> _Score:
        node = self.makers.get(name)
        if node is None or depth > 50:
            raise ModelError(f"the output of the ONNX graph does not come from trees but from {one_line(name)!r}")
        kind, inputs = node.op_type, list(node.input)
        if kind in TREES:
            return _Score(((self._trees(node), 1.0),))
        if kind in SAME and inputs:
            return self.score_of(inputs[0], depth + 1)
        if kind in ("Add", "Sub", "Sum"):
            sign = -1.0 if kind == "Sub" else 1.0
            terms = [self._term(part, depth) for part in inputs]
            total = terms[0]
            for term in terms[1:]:
                total = total.plus(term.times(sign))
            return total
        if kind in ("Mul", "Div") and len(inputs) == 2:
            return self._product(inputs, kind == "Div", depth)
        raise ModelError(f"the ONNX graph has an operator {one_line(kind)} after its trees: only sums can be imported")

    def _term(self, name: str, depth: int) -> _Score:
        constant = self._constant(name)
        return self.score_of(name, depth + 1) if constant is None else _Score((), constant)

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
        if tensor is None or not hasattr(tensor, "dims"):
            return None
        values = as_array(tensor)
        if values.size != 1:
            raise ModelError(f"the constant {one_line(name)} has {values.size} entries: a ranker has one score")
        return float(np.ravel(values)[0])

    def _trees(self, node: Any) -> Ensemble:
        name = node.input[0] if node.input else ""
        is_cast_to: int | None = None
        while name in self.makers and self.makers[name].op_type in ("Identity", "Cast"):
            if self.makers[name].op_type == "Cast":
                is_cast_to = int(attributes_of(self.makers[name]).get("to", 0)) if is_cast_to is None else is_cast_to
            name = self.makers[name].input[0]
        if name not in self.inputs:
            raise ModelError(f"the trees of the ONNX graph do not look at its input but at {one_line(name)!r}")
        kind = self.inputs[name].type.tensor_type
        types = {kind.elem_type, kind.elem_type if is_cast_to is None else is_cast_to}
        if not types <= {FLOAT, DOUBLE}:
            raise ModelError("the input of the ONNX graph must be a tensor of floats or doubles")
        tables = tables_of(node, as_array, is_float32=FLOAT in types)
        return _ensemble(tables, kind.shape.dim)


def _ensemble(tables: TreeNode, shape: Any) -> Ensemble:
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
    )


def as_array(tensor: Any) -> AnyArray:
    """A tensor that the file itself holds, as an array."""
    from onnx import numpy_helper

    if tensor.data_location == 1 or len(tensor.external_data):
        raise ModelError("the ONNX file keeps numbers in other files: save it as one")
    n_entries = 1
    for dim in tensor.dims:
        n_entries *= max(int(dim), 0)
    if n_entries > 2**31:
        raise ModelError("the ONNX file is damaged: a tensor is too large")
    try:
        array: AnyArray = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise ModelError(f"the ONNX file is damaged: {one_line(error)}") from None
    return array


def _one(names: list[str], what: str) -> str:
    if len(names) != 1:
        raise ModelError(f"the ONNX graph has {len(names)} {what}s, not one: it is no ranker")
    return names[0]
