"""Tree models of scikit-learn, from fitted objects: their files are pickles, which could run any code.

Trees and forests round a value to float32 and send it left when it is at most the threshold, a float64. Histogram
boosting compares in float64; its categories are numbers that a value must equal, and any other value counts as missing.
Scores are raw: those of a classifier are the log-odds of its second class or, of trees
and forests, its share of votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import ModelError
from rankwood.formats.reading import (
    NO_SPLITS,
    Pieces,
    Splits,
    at_most_float32,
    ensemble_of,
    members_of_bitset,
    mixed_trees,
    with_covers,
)
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees

TREES = ("DecisionTreeRegressor", "ExtraTreeRegressor", "DecisionTreeClassifier", "ExtraTreeClassifier")
FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor", "RandomForestClassifier", "ExtraTreesClassifier")
BOOSTERS = ("GradientBoostingRegressor", "GradientBoostingClassifier")
HISTOGRAM = ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
KNOWN = (*TREES, *FORESTS, *BOOSTERS, *HISTOGRAM)


def kind_of(model: Any) -> str | None:
    """Name of the known class of scikit-learn that the model's class is or derives from, or None."""
    names = [base.__name__ for base in type(model).__mro__ if base.__module__.startswith("sklearn.")]
    return next((name for name in names if name in KNOWN), None)


def from_estimator(model: Any) -> Ensemble:
    """Ensemble of a fitted estimator."""
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
        tables = [model.tree_]
    elif kind in FORESTS:
        tables = [estimator.tree_ for estimator in model.estimators_]
        weight = 1.0 / len(tables)
    else:
        tables = [estimator.tree_ for estimator in model.estimators_[:, 0]]
        base, weight = _initial(model), float(model.learning_rate)
    votes = kind.endswith("Classifier") and kind not in BOOSTERS
    return _ensemble(model, kind, _trees(tables, votes), weight, base)


def _ensemble(model: Any, kind: str, trees: Trees, weight: float, base: float, splits: Splits = NO_SPLITS) -> Ensemble:
    return ensemble_of(
        trees,
        splits,
        source={"format": "sklearn", "estimator": kind},
        n_features=int(model.n_features_in_),
        tree_weights=np.full(trees.n_trees, weight),
        base=base,
        feature_names=getattr(model, "feature_names_in_", None),
    )


def _refuse_many_outputs(model: Any, kind: str) -> None:
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelError(f"the {kind} has {model.n_outputs_} outputs: a ranker has one score per document")
    if kind.endswith("Classifier") and len(model.classes_) != 2:
        raise ModelError(f"the {kind} has {len(model.classes_)} classes: a ranker has one score per document")


def _initial(model: Any) -> float:
    """Raw score before any tree; refused when it depends on the features."""
    initial = model.init_
    if initial == "zero":
        return 0.0
    if not type(initial).__name__.startswith("Dummy"):
        raise ModelError(f"the boosting starts from {type(initial).__name__}, whose predictions are not trees")
    return float(np.ravel(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32)))[0])


def _trees(tables: Sequence[Any], votes: bool) -> Trees:
    """Trees of scikit-learn's `Tree` objects; with `votes` a leaf's value is its share of the second class."""

    def join(name: str) -> AnyArray:
        return np.concatenate([getattr(table, name) for table in tables])

    left = join("children_left")
    values = [table.value[:, 0, :] for table in tables]
    if votes:  # older versions hold counts, newer ones shares
        leaf_value = np.concatenate([value[:, 1] / value.sum(axis=1) for value in values])
    else:
        leaf_value = np.concatenate([value[:, 0] for value in values])
    has_missing = all(hasattr(table, "missing_go_to_left") for table in tables)
    trees, _, leaves = mixed_trees(
        left=left,
        right=join("children_right"),
        is_leaf=left < 0,
        sizes=np.array([table.node_count for table in tables]),
        feature=join("feature"),
        threshold=at_most_float32(join("threshold")),
        missing_left=join("missing_go_to_left").astype(bool) if has_missing else np.zeros(len(left), dtype=bool),
        leaf_value=leaf_value,
        node_count=join("n_node_samples"),
    )
    return with_covers(trees, join("weighted_n_node_samples")[leaves])


def _from_histogram(model: Any, kind: str) -> Ensemble:
    """Ensemble of a fitted histogram boosting estimator."""
    tables = [predictors[0].nodes for predictors in model._predictors]
    feature_of, categories = _categories(model)
    base = float(np.ravel(model._baseline_prediction)[0])
    if not tables:
        return _ensemble(model, kind, Trees.join([]), 1.0, base)
    table = np.concatenate(tables)
    trees, nodes, leaves = mixed_trees(
        left=table["left"].astype(np.int64),
        right=table["right"].astype(np.int64),
        is_leaf=table["is_leaf"].astype(bool),
        sizes=np.array([len(part) for part in tables]),
        feature=feature_of[table["feature_idx"]],
        threshold=table["num_threshold"],
        missing_left=table["missing_go_to_left"].astype(bool),
        leaf_value=table["value"],
        node_count=table["count"].astype(np.int64),
    )
    gains = table["gain"][nodes].astype(np.float64)
    if np.isfinite(gains).all():
        trees = trees.replace(split_gain=gains)
    splits: dict[int, Pieces] = {}
    if categories:
        bitsets = [predictors[0].raw_left_cat_bitsets for predictors in model._predictors]
        for node, place in enumerate(nodes.tolist()):
            if table["is_categorical"][place]:
                goes_left = bitsets[trees.tree_of_node[node]][table["bitset_idx"][place]]
                values, known = categories[int(table["feature_idx"][place])]
                splits[node] = _points(values, known, goes_left, bool(table["missing_go_to_left"][place]))
    return _ensemble(model, kind, with_covers(trees, table["count"][leaves]), 1.0, base, splits)


def _categories(model: Any) -> tuple[AnyArray, dict[int, tuple[AnyArray, AnyArray]]]:
    """Column of each feature as trees number them; by that number the values of categories, and bits of those known."""
    categorical = getattr(model, "is_categorical_", None)
    if categorical is None or not np.any(categorical):
        return np.arange(model.n_features_in_), {}
    columns = np.flatnonzero(categorical)
    names = getattr(model, "feature_names_in_", None)
    preprocessor = getattr(model, "_preprocessor", None)  # numbers categories, and puts their features first
    encoder = None if preprocessor is None else preprocessor.named_transformers_["encoder"]
    known, place = model._bin_mapper.make_known_categories_bitsets()
    categories: dict[int, tuple[AnyArray, AnyArray]] = {}
    for number, column in enumerate(columns.tolist()):
        values = None if encoder is None else np.asarray(encoder.categories_[number])
        if values is None or values.dtype.kind not in "biuf":
            raise ModelError(
                f"feature {column if names is None else names[column]} has categories that are no numbers, or was "
                "fitted by scikit-learn before 1.4: encode it as a number and train again"
            )
        categories[number] = values.astype(np.float64), known[place[number]]
    return np.concatenate([columns, np.flatnonzero(~np.asarray(categorical))]), categories


def _points(values: AnyArray, known: AnyArray, goes_left: AnyArray, missing_left: bool) -> Pieces:
    """Split on a set of categories, given as bits of their numbers; values that are no known category are missing."""
    left, there = members_of_bitset(goes_left), members_of_bitset(known)
    apart = np.setdiff1d(there, left) if missing_left else left  # from missing values
    points = values[apart[apart < len(values)]]
    points = np.sort(points[np.isfinite(points)])
    cuts = np.stack([np.nextafter(points, -np.inf), points], axis=1).ravel()
    return Pieces(cuts.tolist(), [missing_left, *[not missing_left, missing_left] * len(points)], missing_left)
