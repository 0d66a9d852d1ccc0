"""Fitted tree models of scikit-learn, from the objects themselves; files of them are pickles, which run code.

Trees and forests round values to float32 and go left when they are at most the threshold, a float64. Histogram
boosting compares float64. Scores are raw: of a classifier, the log-odds or share of votes of its second class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import ModelError
from rankwood.formats.reading import Forest, at_most_float32, mixed_forest
from rankwood.model.ensemble import Ensemble

TREES = ("DecisionTreeRegressor", "ExtraTreeRegressor", "DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor", "RandomForestClassifier", "ExtraTreesClassifier")
BOOSTERS = ("GradientBoostingRegressor", "GradientBoostingClassifier")
HISTOGRAM = ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
KNOWN = (*TREES, *FORESTS, *BOOSTERS, *HISTOGRAM)


def kind_of(model: Any) -> str | None:
    """The known class that `model` is of, or that its class derives from."""
    names = [base.__name__ for base in type(model).__mro__ if base.__module__.startswith("sklearn.")]
    return next((name for name in names if name in KNOWN), None)


def from_estimator(model: Any) -> Ensemble:
    """From a fitted estimator."""
    kind = kind_of(model)
    if kind is None:
        raise ModelError(f"{type(model).__name__} cannot be imported; of scikit-learn these can: {', '.join(KNOWN)}")
    if not hasattr(model, "n_features_in_") or not (
        hasattr(model, "tree_") or hasattr(model, "n_iter_") or hasattr(model, "estimators_")
    ):
        raise ModelError(f"the {kind} is not fitted")
    _refuse_many_outputs(model, kind)
    if kind in HISTOGRAM:
        return _from_histogram(model, kind)
    base, weight = 0.0, 1.0
    if kind in TREES:
        trees = [model.tree_]
    elif kind in FORESTS:
        trees = [estimator.tree_ for estimator in model.estimators_]
        weight = 1.0 / len(trees)
    else:
        trees = [estimator.tree_ for estimator in model.estimators_[:, 0]]
        base, weight = _initial(model), float(model.learning_rate)
    votes = kind.endswith("Classifier") and kind not in BOOSTERS
    forest = _forest(trees, votes)
    return _ensemble(model, kind, forest, np.full(len(trees), weight), base)


def _ensemble(model: Any, kind: str, forest: Forest, weights: AnyArray, base: float) -> Ensemble:
    names = getattr(model, "feature_names_in_", None)
    return forest.ensemble(
        source={"format": "sklearn", "estimator": kind},
        n_features=int(model.n_features_in_),
        tree_weights=weights,
        base=base,
        feature_names=None if names is None else [str(name) for name in names],
    )


def _refuse_many_outputs(model: Any, kind: str) -> None:
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelError(f"the {kind} has {model.n_outputs_} outputs: a ranker has one score per document")
    if kind.endswith("Classifier") and len(model.classes_) != 2:
        raise ModelError(f"the {kind} has {len(model.classes_)} classes: a ranker has one score per document")


def _initial(model: Any) -> float:
    """The raw score before any tree, when it does not depend on the features."""
    initial = model.init_
    if initial == "zero":
        return 0.0
    if not type(initial).__name__.startswith("Dummy"):
        raise ModelError(f"the boosting starts from {type(initial).__name__}, whose predictions are not trees")
    return float(np.ravel(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32)))[0])


def _forest(trees: Sequence[Any], votes: bool) -> Forest:
    def join(name: str) -> AnyArray:
        return np.concatenate([getattr(tree, name) for tree in trees])

    left = join("children_left").astype(np.int64)
    values = [tree.value[:, 0, :] for tree in trees]
    if votes:  # counts in older versions, shares in newer ones
        leaf_value = np.concatenate([value[:, 1] / value.sum(axis=1) for value in values])
    else:
        leaf_value = np.concatenate([value[:, 0] for value in values])
    n_nodes = np.array([tree.node_count for tree in trees], dtype=np.int64)
    has_missing = all(hasattr(tree, "missing_go_to_left") for tree in trees)
    missing_left = join("missing_go_to_left") if has_missing else np.zeros(len(left), dtype=bool)
    forest, nodes, leaves = mixed_forest(
        left=left,
        right=join("children_right").astype(np.int64),
        is_leaf=left < 0,
        sizes=n_nodes,
        columns={
            "feature": join("feature").astype(np.int64),
            "threshold": join("threshold"),
            "missing_left": missing_left,
            "leaf_value": leaf_value,
        },
    )
    forest.threshold = at_most_float32(forest.threshold)
    forest.node_count = join("n_node_samples")[nodes].astype(np.int64)
    forest.note_covers(join("weighted_n_node_samples")[leaves])
    return forest


def _from_histogram(model: Any, kind: str) -> Ensemble:
    tables = [predictors[0].nodes for predictors in model._predictors]
    categorical = getattr(model, "is_categorical_", None)
    if categorical is not None and np.any(categorical):
        names = getattr(model, "feature_names_in_", None)
        feature = int(np.flatnonzero(categorical)[0])
        raise ModelError(
            f"feature {feature if names is None else names[feature]} has categories, "
            "which scikit-learn numbers anew: encode it as a number and train again"
        )
    table = np.concatenate(tables) if tables else np.zeros(0, dtype=[])
    base = float(np.ravel(model._baseline_prediction)[0])
    if not tables:
        empty = np.zeros(0)
        whole = empty.astype(np.int64)
        forest = Forest(whole, empty, whole, whole, empty.astype(bool), empty, whole)
        return _ensemble(model, kind, forest, empty, base)
    forest, nodes, leaves = mixed_forest(
        left=table["left"].astype(np.int64),
        right=table["right"].astype(np.int64),
        is_leaf=table["is_leaf"].astype(bool),
        sizes=np.array([len(part) for part in tables], dtype=np.int64),
        columns={
            "feature": table["feature_idx"].astype(np.int64),
            "threshold": table["num_threshold"],
            "missing_left": table["missing_go_to_left"].astype(bool),
            "leaf_value": table["value"],
        },
    )
    forest.split_gain = _finite(table["gain"][nodes])
    forest.node_count = table["count"][nodes].astype(np.int64)
    forest.note_covers(table["count"][leaves])
    return _ensemble(model, kind, forest, np.ones(len(tables)), base)


def _finite(values: AnyArray) -> AnyArray | None:
    gains: AnyArray = values.astype(np.float64)
    return gains if np.isfinite(gains).all() else None
