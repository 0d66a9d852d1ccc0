"""ONNX: `TreeEnsembleRegressor` (ai.onnx.ml 3) with doubles, or `TreeEnsemble` (ai.onnx.ml 5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rankwood._version import __version__
from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import MissingPackageError, ModelError
from rankwood.formats.export_parts import plain

LIMITS = (
    "Every float64 value goes the same way (input X: float64, documents x features). Version 3 gives scores as "
    "float32, rounded once at the end, for want of another output; version 5 gives float64. Runtimes may add up "
    "trees in another order."
)
LESS_OR_EQUAL = 0  # of nodes_modes in version 5


def export_onnx(model: Ensemble, path: Path, *, version: int = 3) -> bytes:
    """A graph from X to `score`, by `version` of the tree operator. Most runtimes know 3; 5 does not round scores."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise MissingPackageError("onnx", "writing ONNX models", "formats") from None
    if version not in (3, 5):
        raise ModelError(f"version must be 3 or 5, got {version!r}")
    model = plain(model)
    output = TensorProto.FLOAT if version == 3 else TensorProto.DOUBLE
    node = _regressor(model, helper) if version == 3 else _tree_ensemble(model, helper)
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


def _regressor(model: Ensemble, helper: Any) -> Any:
    """Version 3: nodes of each tree are its inner nodes, then its leaves."""
    inner, total = np.diff(model.node_offsets), 2 * np.diff(model.node_offsets) + 1
    starts = np.concatenate([[0], np.cumsum(total)])[:-1]
    n_all = int(total.sum())
    tree_of = np.repeat(np.arange(model.n_trees), total)
    ids = np.arange(n_all) - starts[tree_of]
    is_inner = ids < inner[tree_of]
    n_inner = np.repeat(inner, inner)  # of the tree of each inner node

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


def _tree_ensemble(model: Ensemble, helper: Any) -> Any:
    """Version 5: inner nodes and leaves of all trees in two lists. A tree needs an inner node there, so one without is
    given one whose sides both lead to its leaf."""
    from onnx import TensorProto

    alone = np.flatnonzero(np.diff(model.node_offsets) == 0)  # trees of one leaf
    tree_of = np.repeat(np.arange(model.n_trees), np.diff(model.node_offsets))
    first, first_leaf = model.node_offsets[tree_of], model.leaf_offsets[tree_of]
    is_leaf, target = [], []
    for children in (model.left, model.right):
        to = np.where(children >= 0, first + children, first_leaf + ~children)
        is_leaf.append(np.concatenate([children < 0, np.ones(len(alone), dtype=bool)]))
        target.append(np.concatenate([to, model.leaf_offsets[alone]]))
    roots = model.node_offsets[:-1].copy()
    roots[alone] = model.n_nodes + np.arange(len(alone))
    none = np.zeros(len(alone), dtype=np.int64)
    n_nodes = model.n_nodes + len(alone)
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
        nodes_modes=helper.make_tensor("nodes_modes", TensorProto.UINT8, [n_nodes], [LESS_OR_EQUAL] * n_nodes),
        nodes_truenodeids=target[0].tolist(),
        nodes_trueleafs=is_leaf[0].astype(int).tolist(),
        nodes_falsenodeids=target[1].tolist(),
        nodes_falseleafs=is_leaf[1].astype(int).tolist(),
        nodes_missing_value_tracks_true=np.concatenate([model.missing_left, none]).astype(int).tolist(),
        leaf_targetids=[0] * model.n_leaves,
        leaf_weights=_doubles(helper, "leaf_weights", model.leaf_value),
    )


def _doubles(helper: Any, name: str, values: AnyArray) -> Any:
    from onnx import TensorProto

    return helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values.astype(np.float64).tolist())
