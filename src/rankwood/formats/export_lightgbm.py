"""LightGBM's text model: what `lightgbm.Booster(model_file=...)` reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rankwood.dtypes import IndexArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.export_covers import whole_covers
from rankwood.formats.export_parts import names_of, plain, refuse_names, warn
from rankwood.formats.lightgbm_decisions import ZERO

LIMITS = (
    "Exact in every bit. LightGBM itself reads values of at most 1e-35 as 0, whatever their sign. Contributions (SHAP) "
    "go by the documents at each leaf where the model knows them; else every leaf counts alike."
)
FORBIDDEN = '",:[]{}\\'  # LightGBM refuses the first seven in training; the last would break its JSON dumps
# Objectives whose scores are the raw scores.
OBJECTIVES = ("lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair", "quantile", "mape")
MISSING_IS_NAN, DEFAULT_LEFT = 8, 2  # bits of decision_type


def export_lightgbm(model: Ensemble, path: Path, *, objective: str = "lambdarank") -> str:
    """The text of a model file; weights and base are in the leaves, leaf numbers stay."""
    if objective not in OBJECTIVES:
        raise ModelError(f"objective must leave scores as they are: {', '.join(OBJECTIVES)}; got {objective!r}")
    model = plain(model)
    names = names_of(model, "Column_{}")
    check_names(names)
    tell_tiny_thresholds(model)
    counts = whole_covers(model)
    trees = [f"Tree={tree}\n{_tree(model, tree, *counts)}\n\n" for tree in range(model.n_trees)]
    used = np.bincount(model.feature, minlength=model.n_features)
    importances = [f"{names[f]}={used[f]}" for f in np.argsort(-used, kind="stable").tolist() if used[f]]
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={model.n_features - 1}",
        f"objective={objective}",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['[-inf:inf]'] * model.n_features)}",
        f"tree_sizes={_join(len(tree.encode()) for tree in trees)}",
    ]
    tail = ["end of trees", "", "feature_importances:", *importances, "", "parameters:", "[boosting: gbdt]",
            f"[objective: {objective}]", "end of parameters", "",
            "pandas_categorical:null"]  # fmt: skip
    return "\n".join(head) + "\n\n" + "".join(trees) + "\n".join(tail) + "\n"


def check_names(names: list[str]) -> None:
    """Refuse feature names that LightGBM cannot hold, and a model without features, which it cannot load."""
    if not names:
        raise ModelError("LightGBM cannot hold a model without features")
    refuse_names(names, "LightGBM", FORBIDDEN, spaces=True)


def tell_tiny_thresholds(model: Ensemble) -> None:
    """Warn of thresholds among the values that LightGBM reads as 0."""
    tiny = int(np.count_nonzero((model.threshold != 0) & (model.threshold >= -ZERO) & (model.threshold < ZERO)))
    if tiny:
        warn(
            f"LightGBM reads values within 1e-35 of 0 as 0, and {tiny} thresholds lie there: such values may go the "
            "other way"
        )


def _tree(model: Ensemble, tree: int, leaf_count: IndexArray, node_count: IndexArray) -> str:
    nodes, leaves = slice(*model.node_offsets[tree : tree + 2]), slice(*model.leaf_offsets[tree : tree + 2])
    n_nodes = nodes.stop - nodes.start
    values = [
        f"leaf_value={_join(model.leaf_value[leaves].tolist())}",
        f"leaf_count={_join(leaf_count[leaves].tolist())}",
    ]
    if n_nodes == 0:
        return "\n".join(["num_leaves=1", "num_cat=0", *values, "is_linear=0", "shrinkage=1", ""])
    gains = np.zeros(n_nodes) if model.split_gain is None else model.split_gain[nodes]
    decisions = MISSING_IS_NAN + DEFAULT_LEFT * model.missing_left[nodes]
    lines = [
        f"num_leaves={n_nodes + 1}",
        "num_cat=0",
        f"split_feature={_join(model.feature[nodes].tolist())}",
        f"split_gain={_join(gains.tolist())}",
        f"threshold={_join(model.threshold[nodes].tolist())}",
        f"decision_type={_join(decisions.tolist())}",
        f"left_child={_join(model.left[nodes].tolist())}",
        f"right_child={_join(model.right[nodes].tolist())}",
        *values,
        f"internal_count={_join(node_count[nodes].tolist())}",
    ]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", ""])


def _join(values: Iterable[float]) -> str:
    return " ".join(map(repr, values))
