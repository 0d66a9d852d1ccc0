"""XGBoost's model file, as JSON or UBJSON: what `xgboost.Booster(model_file=...)` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.export_covers import leaf_covers, node_sums
from rankwood.formats.export_parts import plain, refuse_names, single_leaves
from rankwood.formats.export_thresholds import below_single
from rankwood.formats.export_ubjson import to_ubjson
from rankwood.formats.export_xgboost_order import xgboost_order

LIMITS = (
    "Every finite float32 value and NaN go the same way (`x < threshold` in float32, threshold one step higher; "
    "XGBoost itself refuses infinite values); leaves are float32 and so is their sum. Contributions (SHAP) go by the "
    "documents at each leaf, or their weight, where the model knows them; else every leaf counts alike."
)
NO_PARENT = 2**31 - 1
LAMBDARANK = {
    "lambdarank_bias_norm": "1",
    "lambdarank_normalization": "1",
    "lambdarank_num_pair_per_sample": "4294967295",
    "lambdarank_pair_method": "topk",
    "lambdarank_score_normalization": "1",
    "lambdarank_unbiased": "0",
    "ndcg_exp_gain": "1",
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "rank:ndcg": {"lambdarank_param": LAMBDARANK},
    "rank:map": {"lambdarank_param": LAMBDARANK},
    "rank:pairwise": {"lambdarank_param": LAMBDARANK},
    "reg:squarederror": {"reg_loss_param": {"scale_pos_weight": "1"}},
}


def export_xgboost(model: Ensemble, path: Path, *, objective: str = "rank:ndcg", binary: bool | None = None) -> bytes:
    """UBJSON when `binary` or the name ends in .ubj, else JSON. Weights and base are in the leaves; the base score is
    0, because some readers ignore it."""
    if objective not in OBJECTIVES:
        raise ModelError(f"objective must leave scores as they are: {', '.join(OBJECTIVES)}; got {objective!r}")
    model = plain(model)
    names = list(model.feature_names or ())
    refuse_names(names, "XGBoost", "[]<")
    values = single_leaves(model, "XGBoost")
    thresholds = below_single(model.threshold)
    covers = leaf_covers(model)
    hessians = covers, node_sums(model, covers)
    trees = [_tree(model, tree, thresholds, values, *hessians) for tree in range(model.n_trees)]
    whole = {
        "learner": {
            "attributes": {},
            "feature_names": names,
            "feature_types": ["float"] * len(names),
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(model.n_trees)},
                    "iteration_indptr": list(range(model.n_trees + 1)),
                    "tree_info": [0] * model.n_trees,
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(model.n_features),
                "num_target": "1",
            },
            "objective": {"name": objective, **OBJECTIVES[objective]},
        },
        "version": [2, 1, 0],
    }
    if binary or (binary is None and path.suffix == ".ubj"):
        return to_ubjson(whole)
    return json.dumps(whole, default=_as_list, ensure_ascii=False).encode()  # XGBoost does not read \u escapes


def _tree(
    model: Ensemble, tree: int, thresholds: AnyArray, values: AnyArray, leaf_cover: AnyArray, node_cover: AnyArray
) -> dict[str, Any]:
    nodes, leaves = slice(*model.node_offsets[tree : tree + 2]), slice(*model.leaf_offsets[tree : tree + 2])
    order = xgboost_order(model, tree)
    n_all = len(order.nodes) + len(order.leaves)
    left, right = (np.full(n_all, -1, dtype=np.int32) for _ in range(2))
    numbers = np.concatenate([order.nodes, order.leaves[::-1]])  # leaf 0 is child -1
    parents = np.full(n_all, NO_PARENT, dtype=np.int32)
    for side, children in ((left, model.left[nodes]), (right, model.right[nodes])):
        side[order.nodes] = numbers[children]
        parents[side[order.nodes]] = order.nodes
    weights, gains, conditions, covers = (np.zeros(n_all, dtype=np.float32) for _ in range(4))
    covers[order.leaves], covers[order.nodes] = leaf_cover[leaves], node_cover[nodes]
    if model.split_gain is not None:
        with np.errstate(over="ignore", under="ignore"):
            gains[order.nodes] = model.split_gain[nodes]
    weights[order.leaves] = conditions[order.leaves] = values[leaves]
    conditions[order.nodes] = thresholds[nodes]
    indices, default_left = np.zeros(n_all, dtype=np.int32), np.zeros(n_all, dtype=np.uint8)
    indices[order.nodes], default_left[order.nodes] = model.feature[nodes], model.missing_left[nodes]
    return {
        "base_weights": weights,
        "categories": np.zeros(0, dtype=np.int32),
        "categories_nodes": np.zeros(0, dtype=np.int32),
        "categories_segments": np.zeros(0, dtype=np.int64),
        "categories_sizes": np.zeros(0, dtype=np.int64),
        "default_left": default_left,
        "id": tree,
        "left_children": left,
        "loss_changes": gains,
        "parents": parents,
        "right_children": right,
        "split_conditions": conditions,
        "split_indices": indices,
        "split_type": np.zeros(n_all, dtype=np.uint8),
        "sum_hessian": covers,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(model.n_features),
            "num_nodes": str(n_all),
            "size_leaf_vector": "1",
        },
    }


def _as_list(array: Any) -> list[Any]:
    """Floats with as few digits as tell them from other float32."""
    if array.dtype == np.float32:
        return [float(str(value)) for value in array]
    values: list[Any] = array.tolist()
    return values
