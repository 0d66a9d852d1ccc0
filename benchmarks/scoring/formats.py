"""Ensembles as models of other tools, so that all score the same trees."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwood as rw


@dataclass(frozen=True)
class NumberedTree:
    """A tree as other tools want it, in float32: nodes and leaves are numbered together, the root is 0, and a right
    child follows its left sibling. What inner nodes or leaves do not have is 0, a child of a leaf -1."""

    is_leaf: NDArray[np.bool_]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]  # the largest float32 that goes left: decides float32 values as the exact one does
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]  # of leaves, with the weight of the tree

    @property
    def next_threshold(self) -> NDArray[np.float32]:
        """For tools that go left when x < threshold."""
        above: NDArray[np.float32] = np.nextafter(self.threshold, np.float32(np.inf))
        return above


def numbered_trees(model: rw.Ensemble) -> Iterator[NumberedTree]:
    for number, weight in enumerate(model.tree_weights):
        yield number_together(model.tree(number), weight)


def number_together(tree: rw.Tree, weight: float) -> NumberedTree:
    n_inner = len(tree.feature)
    n_nodes, order = 2 * n_inner + 1, np.arange(n_inner)
    # New numbers of inner nodes, then of leaves from the last to the first: child ~leaf counts from the end.
    number_of = np.zeros(n_nodes, dtype=np.int32)
    number_of[tree.left], number_of[tree.right] = 2 * order + 1, 2 * order + 2
    inner, leaves = number_of[:n_inner], number_of[n_inner:][::-1]

    def spread(places: Any, values: Any, dtype: Any, rest: int = 0) -> Any:
        whole = np.full(n_nodes, rest, dtype=dtype)
        whole[places] = values
        return whole

    return NumberedTree(
        is_leaf=spread(leaves, True, bool),
        feature=spread(inner, tree.feature, np.int32),
        threshold=spread(inner, float32_at_most(tree.threshold), np.float32),
        left=spread(inner, number_of[tree.left], np.int32, rest=-1),
        right=spread(inner, number_of[tree.right], np.int32, rest=-1),
        missing_left=spread(inner, tree.missing_left, bool),
        value=spread(leaves, weight * tree.leaf_value, np.float64),
    )


def float32_at_most(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each value."""
    rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def lightgbm_in_float32(text: str) -> str:
    """LightGBM's text with thresholds that float32 can hold and that decide float32 values as before."""

    def rounded(line: str) -> str:
        if not line.startswith("threshold="):
            return line
        values = np.array(line.removeprefix("threshold=").split(), dtype=np.float64)
        return "threshold=" + " ".join(map(repr, float32_at_most(values).tolist()))

    return "\n".join(map(rounded, text.split("\n")))


def to_xgboost(model: rw.Ensemble) -> Any:
    """An XGBoost booster with these trees: its own JSON for one small tree, with the trees exchanged."""
    import xgboost

    sample = np.random.default_rng(0).random((10, model.n_features))
    booster = xgboost.train({"base_score": 0.0, "max_depth": 1}, xgboost.DMatrix(sample, sample[:, 0]), 1)
    document = json.loads(booster.save_raw("json"))
    forest = document["learner"]["gradient_booster"]["model"]
    pattern = forest["trees"][0]
    forest["trees"] = [
        pattern | xgboost_fields(tree, pattern) | {"id": number} for number, tree in enumerate(numbered_trees(model))
    ]
    forest["gbtree_model_param"]["num_trees"] = str(model.n_trees)
    forest["tree_info"] = [0] * model.n_trees
    forest["iteration_indptr"] = list(range(model.n_trees + 1))
    document["learner"]["learner_model_param"]["base_score"] = f"[{model.base!r}]"
    return xgboost.Booster(model_file=bytearray(json.dumps(document).encode()))


def xgboost_fields(tree: NumberedTree, pattern: dict[str, Any]) -> dict[str, Any]:
    n_nodes = len(tree.is_leaf)
    parents = np.full(n_nodes, 2**31 - 1)
    inner = np.flatnonzero(~tree.is_leaf)
    parents[tree.left[inner]] = parents[tree.right[inner]] = inner
    return {
        "left_children": tree.left.tolist(),
        "right_children": tree.right.tolist(),
        "parents": parents.tolist(),
        "split_indices": tree.feature.tolist(),
        "split_conditions": np.where(tree.is_leaf, tree.value, tree.next_threshold).tolist(),
        "default_left": tree.missing_left.astype(int).tolist(),
        "split_type": [0] * n_nodes,
        "base_weights": [0.0] * n_nodes,
        "loss_changes": [0.0] * n_nodes,
        "sum_hessian": [1.0] * n_nodes,
        "tree_param": pattern["tree_param"] | {"num_nodes": str(n_nodes)},
    }


def to_onnx(model: rw.Ensemble) -> bytes:
    """An ONNX model with one TreeEnsembleRegressor, float32 in and out."""
    import onnx
    from onnx import helper

    columns: dict[str, list[Any]] = defaultdict(list)
    for number, tree in enumerate(numbered_trees(model)):
        leaves = np.flatnonzero(tree.is_leaf)
        columns["nodes_treeids"] += [number] * len(tree.is_leaf)
        columns["nodes_nodeids"] += range(len(tree.is_leaf))
        columns["nodes_featureids"] += tree.feature.tolist()
        columns["nodes_modes"] += np.where(tree.is_leaf, "LEAF", "BRANCH_LEQ").tolist()
        columns["nodes_values"] += tree.threshold.tolist()
        columns["nodes_truenodeids"] += np.maximum(tree.left, 0).tolist()
        columns["nodes_falsenodeids"] += np.maximum(tree.right, 0).tolist()
        columns["nodes_missing_value_tracks_true"] += tree.missing_left.astype(int).tolist()
        columns["target_treeids"] += [number] * len(leaves)
        columns["target_nodeids"] += leaves.tolist()
        columns["target_weights"] += tree.value[leaves].tolist()
    columns["target_ids"] = [0] * len(columns["target_weights"])
    settings = {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE", "base_values": [model.base]}
    attributes: dict[str, Any] = settings | columns
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["scores"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, model.n_features])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    whole: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return whole


def to_ydf(model: rw.Ensemble) -> Any:
    """A ydf regression model with these trees, put one by one in the place of those of a model of one tree."""
    import ydf

    ydf.verbose(0)
    rng = np.random.default_rng(0)
    sample = {"X": rng.random((100, model.n_features)), "y": rng.random(100)}
    learner = ydf.GradientBoostedTreesLearner("y", task=ydf.Task.REGRESSION, num_trees=1, validation_ratio=0.0)
    made = learner.train(sample)
    columns = [feature.column_idx for feature in made.input_features()]
    for number, tree in enumerate(numbered_trees(model)):
        if number == 0:
            made.set_tree(0, ydf_tree(tree, columns))
        else:
            made.add_tree(ydf_tree(tree, columns))
    made.set_initial_predictions([model.base])
    return made


def ydf_tree(tree: NumberedTree, columns: list[int]) -> Any:
    """ydf asks whether x >= threshold; the positive child is our right one."""
    from ydf import tree as ydf

    thresholds = tree.next_threshold.tolist()

    def node(number: int) -> Any:
        if tree.is_leaf[number]:
            return ydf.Leaf(value=ydf.RegressionValue(num_examples=1.0, value=float(tree.value[number])))
        condition = ydf.NumericalHigherThanCondition(
            missing=not tree.missing_left[number],
            score=0.0,
            attribute=columns[tree.feature[number]],
            threshold=thresholds[number],
        )
        right, left = node(int(tree.right[number])), node(int(tree.left[number]))
        return ydf.NonLeaf(condition=condition, pos_child=right, neg_child=left)

    return ydf.Tree(root=node(0))
