"""Models of Yggdrasil Decision Forests, from objects of the package ydf.

A numeric condition sends a float32 value to the positive child when it is at least the threshold. Scores are raw: the
sum of trees and initial prediction for a boosted model, the mean of trees for a forest.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from rankwood.errors import ModelError
from rankwood.formats.reading import (
    TreeBuilder,
    check_one_score,
    ensemble_of,
    less_than_float32,
    mean_weights,
    never_left,
)
from rankwood.model.ensemble import Ensemble


def from_ydf_model(model: Any) -> Ensemble:
    """Ensemble of a ydf model of numeric features."""
    task = str(getattr(model.task(), "name", model.task()))
    kind = type(model).__name__
    if kind not in ("GradientBoostedTreesModel", "RandomForestModel", "CARTModel"):
        raise ModelError(f"{kind} of ydf cannot be imported: only boosted trees, random forests and CART can")
    if task not in ("REGRESSION", "RANKING"):
        raise ModelError(f"the ydf model is for {task.lower()}: only regression and ranking can be imported")
    features = model.input_features()
    column = {feature.column_idx: number for number, feature in enumerate(features)}
    names = [feature.name for feature in features]
    builder = TreeBuilder()
    for number, tree in enumerate(model.get_all_trees()):
        builder.add(tree.root, partial(_read, column=column, names=names, where=f"tree {number}"))
    trees = never_left(builder.trees(less_than_float32))
    is_boosted = kind == "GradientBoostedTreesModel"
    initial = np.ravel(model.initial_predictions()) if is_boosted else np.zeros(1)
    check_one_score(len(initial), "outputs")
    return ensemble_of(
        trees,
        source={"format": "ydf", "model": kind, "task": task.lower()},
        n_features=len(names),
        tree_weights=None if is_boosted else mean_weights(trees.n_trees),
        base=float(initial[0]) if len(initial) else 0.0,
        feature_names=names,
    )


def _read(node: Any, column: dict[int, int], names: list[str], where: str) -> Any:
    """A node as `TreeBuilder.add` takes it."""
    condition = getattr(node, "condition", None)
    if condition is None:
        return float(node.value.value)
    number = column.get(condition.attribute) if hasattr(condition, "attribute") else None
    kind = type(condition).__name__
    if kind == "NumericalHigherThanCondition" and number is not None:
        threshold = float(condition.threshold)
        if math.isnan(threshold):
            raise ModelError(f"{where}: a threshold is NaN")
        return number, threshold, node.neg_child, node.pos_child, not condition.missing
    if kind == "IsMissingInCondition" and number is not None:  # no value is less than -infinity, so all go right
        return number, -math.inf, node.pos_child, node.neg_child, True
    feature = names[number] if number is not None else str(getattr(condition, "attributes", "several features"))
    raise ModelError(f"{where} splits feature {feature} by {kind}: only numeric thresholds can be imported")
