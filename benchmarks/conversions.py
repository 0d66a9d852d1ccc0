"""Models of other tools as ensembles, for the benchmarks that compare speed on the same trees."""

from __future__ import annotations

from typing import Any

import numpy as np

import rankwood as rw


def from_lightgbm(booster: Any) -> rw.Ensemble:
    """Trees of a LightGBM booster without categories. A value that was never missing in training counts as 0 when it
    is missing later: that is LightGBM's rule."""

    def nested(node: dict[str, Any]) -> tuple[Any, ...] | float:
        if "leaf_value" in node:
            return float(node["leaf_value"])
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise ValueError("categories and zero_as_missing are not converted here")
        missing_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0.0
        children = nested(node["left_child"]), nested(node["right_child"])
        return node["split_feature"], node["threshold"], *children, missing_left

    trees = booster.dump_model()["tree_info"]
    return rw.Ensemble.from_trees((nested(tree["tree_structure"]) for tree in trees), n_features=booster.num_feature())


def from_forest(forest: Any) -> rw.Ensemble:
    """Trees of a scikit-learn RandomForestRegressor. It compares as we do: float32 values with float64 thresholds."""
    trees = [tree_from_sklearn(estimator.tree_) for estimator in forest.estimators_]
    weights = np.full(len(trees), 1.0 / len(trees))
    return rw.Ensemble.from_trees(trees, tree_weights=weights, n_features=forest.n_features_in_)


def tree_from_sklearn(tree: Any) -> rw.Tree:
    is_leaf = tree.children_left < 0
    inner = np.flatnonzero(~is_leaf)
    # scikit-learn numbers nodes and leaves together; we number them apart, leaves from ~0 downwards
    number = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    return rw.Tree(
        feature=tree.feature[inner],
        threshold=tree.threshold[inner],
        left=number[tree.children_left[inner]],
        right=number[tree.children_right[inner]],
        leaf_value=tree.value[is_leaf, 0, 0],
        missing_left=tree.missing_go_to_left[inner].astype(bool),
    )
