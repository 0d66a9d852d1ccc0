"""Scores of data in partitions: of Dask collections, as lazy as these, and of pieces of files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import SCORE, AnyArray, FloatArray
from rankwood.errors import DataError
from rankwood.matrix import ROLES, column_order

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


def is_lazy(X: Any) -> bool:
    """Whether a matrix is a Dask collection, without an import of Dask."""
    return hasattr(X, "__dask_graph__")


def feature_columns_of(X: Any, feature_names: Any = None) -> list[Any]:
    """Columns of a Dask DataFrame that are features: all that are not query ids, labels, weights or names.

    Parameters
    ----------
    X : dask.dataframe.DataFrame
        The table.
    feature_names : sequence of str, optional
        Names that are features in any case.
    """
    others = {name for names in ROLES.values() for name in names} - set(feature_names or ())
    return [name for name in X.columns if name not in others]


def lazy_scores(model: Ensemble, X: Any, **settings: Any) -> Any:
    """Scores of a Dask DataFrame as a Series, or of a Dask array as an array, with the same partitions.

    Parameters
    ----------
    model : Ensemble
        What scores.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows. Columns of a DataFrame are found by name; query ids, labels, weights and names of documents are no
        features.
    **settings
        Engine, precision and threads of `Ensemble.score`.
    """
    shared = import_module("dask").delayed(model)  # once in the graph, not with every partition
    if hasattr(X, "map_partitions"):
        columns = feature_columns_of(X, model.feature_names)
        if len(columns) != model.n_features:
            column_order([str(name) for name in columns], model.feature_names)  # names what is amiss
            raise DataError(f"X has {len(columns)} features but the model was built on {model.n_features}")
        if all(isinstance(name, str) for name in columns):
            column_order(columns, model.feature_names)
        meta = import_module("pandas").Series([], dtype=SCORE, name="score")
        return X[columns].map_partitions(_frame_scores, shared, settings, meta=meta)
    if getattr(X, "ndim", 0) != 2 or not hasattr(X, "map_blocks"):
        raise DataError(f"X must be a Dask DataFrame or a Dask array of two dimensions, got {type(X).__name__}")
    if X.shape[1] != model.n_features:
        raise DataError(f"X has {X.shape[1]} features but the model was built on {model.n_features}")
    rows = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return rows.map_blocks(_array_scores, shared, settings, drop_axis=1, dtype=SCORE, meta=np.empty(0, SCORE))


def _frame_scores(frame: Any, model: Ensemble, settings: dict[str, Any]) -> Any:
    return import_module("pandas").Series(model.score(frame, **settings), index=frame.index, name="score")


def _array_scores(block: AnyArray, model: Ensemble, settings: dict[str, Any]) -> AnyArray:
    return model.score(block, **settings)


def part_scores(part: Any, model: Ensemble, settings: dict[str, Any]) -> FloatArray:
    """Scores of the rows of a piece of a data file, some rows at a time.

    Parameters
    ----------
    part : TextPart or TablePart
        The piece (`rankwood.data.partitions`).
    model : Ensemble
        What scores.
    settings : dict
        Engine, precision and threads of `Ensemble.score`.
    """
    order = column_order(part.features, model.feature_names)
    scores = [np.empty(0, SCORE)]
    for X in part.blocks():
        scores.append(model.score(X if order is None else np.ascontiguousarray(X[:, order]), **settings))
    return np.concatenate(scores)
