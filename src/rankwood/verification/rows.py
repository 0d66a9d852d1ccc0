"""What two models are compared on: data, and rows at every threshold, categories among their values as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray
from rankwood.errors import DataError, ModelError, listed, one_line
from rankwood.formats.writing import whole_members
from rankwood.matrix import as_array, column_order, feature_names_of
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.agreement import adversarial_rows

MAX_VALUES = 2**25  # in a matrix of rows at thresholds

Categories: TypeAlias = Literal["auto", "whole", "any"]


def matrices(
    models: list[Ensemble],
    data: Any,
    single: bool,
    max_rows: int,
    seed: int,
    notes: list[str],
    categories: Categories,
) -> Iterator[tuple[str, AnyArray]]:
    """Matrices of rows to compare on, each with its source."""
    widths = {model.n_features for model in models}
    if len(widths) > 1:
        raise ModelError(
            f"the models are of {' and '.join(map(str, sorted(widths)))} features: they read different data"
        )
    if data is not None:
        X = _features(data, models)
        if widths and X.shape[1] not in widths:
            raise DataError(f"the data has {X.shape[1]} features but the model was built on {widths.pop()}")
        with np.errstate(over="ignore"):
            yield "data", X.astype(np.float32) if single and X.dtype != np.float32 else X
    if models:
        room = max(1000, min(max_rows, MAX_VALUES // max(1, *widths)))
        rows = adversarial_rows(models, max_rows=room, seed=seed)
        left = [
            what for what, all_of in (("thresholds", rows.every_threshold), ("nodes", rows.every_node)) if not all_of
        ]
        if left:
            notes.append(f"{room:,} rows cannot try all {' and '.join(left)}: those tried were left to chance")
        whole = _whole_features(models, categories)
        if whole:
            names = models[0].feature_names
            named = [f"feature {f + 1} (from 1)" if names is None else one_line(names[f]) for f in whole]
            notes.append(
                f"{listed(named, 5)}: categories, of which rows at thresholds have whole numbers from 0 on or nothing, "
                "as tools do not agree on other numbers"
            )
        yield "float32", _with_whole(rows.single, whole)
        if not single:
            yield "float64", _with_whole(rows.double, whole)


def _whole_features(models: list[Ensemble], categories: Categories) -> list[int]:
    """Features of which rows at thresholds get categories alone."""
    if categories == "any" or (categories == "auto" and len(models) < 2):
        return []
    of_models = [_category_features(model) for model in models]
    if categories == "whole":
        return sorted(set[int]().union(*of_models))
    both = set.intersection(*of_models)
    bounds = [model.trees.all_thresholds() for model in models]

    def is_bounded_alike(feature: int) -> bool:
        a, b = (np.unique(thresholds[features == feature]) for features, thresholds in bounds)
        return np.array_equal(a, b)

    return sorted(feature for feature in both if not is_bounded_alike(feature))


def _category_features(model: Ensemble) -> set[int]:
    """Features that only splits on sets of categories look at: of whole numbers from 0 on."""
    trees, others = model.trees, model.trees.set_sizes == 0
    for node in trees.set_nodes.tolist():
        others[node] = whole_members(trees.thresholds_of(node)) is None
    return set(model.feature.tolist()) - set(model.feature[others].tolist())


def _with_whole(rows: AnyArray, features: list[int]) -> AnyArray:
    """Rows whose values of these features are categories: whole numbers from 0 on, and NaN for infinities."""
    values = rows[:, features]
    with np.errstate(invalid="ignore"):
        rows[:, features] = np.where(np.isinf(values), np.nan, np.maximum(np.trunc(values), 0.0))
    return rows


def _features(data: Any, models: list[Ensemble]) -> AnyArray:
    """Matrix of the data in float32 or float64, with columns in the order of the models' names."""
    names = next((model.feature_names for model in models if model.feature_names is not None), None)
    if isinstance(data, Dataset):
        X, order = data.X, column_order(data.feature_names, names)
    else:
        X, order = as_array(data), column_order(feature_names_of(data), names)
    X = X if order is None else X[:, order]
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
