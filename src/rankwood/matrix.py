"""Feature matrices from whatever the caller has: arrays, DataFrames, Arrow tables, sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.dtypes import FEATURE, AnyArray, FeatureMatrix
from rankwood.errors import DataError


def column_names(X: Any) -> list[str] | None:
    """Column names of a DataFrame or table (pandas, polars, pyarrow); None for anything else.

    >>> column_names(np.zeros((2, 3))) is None
    True
    """
    names = getattr(X, "column_names", None)  # pyarrow, whose `columns` are the data
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def feature_names_of(X: Any) -> list[str] | None:
    """Column names, if they are texts: numbers, as pandas gives to columns without names, name nothing."""
    labels = getattr(X, "column_names", None)
    if labels is None:
        labels = getattr(X, "columns", None)
    return None if labels is None or not all(isinstance(label, str) for label in labels) else list(labels)


def drop_column(X: Any, name: str) -> tuple[AnyArray, Any]:
    """Take one column out of a DataFrame or table: its values, and the rest."""
    values = np.asarray(X[name])
    if hasattr(X, "drop_columns"):  # pyarrow
        return values, X.drop_columns([name])
    return values, X[[column for column in X.columns if str(column) != name]]


def as_array(X: Any) -> AnyArray:
    """Return `X` as a numpy matrix of numbers, in whatever number type and memory order it comes."""
    names = column_names(X)
    if hasattr(X, "tocsr"):  # scipy sparse: what is not stored is 0
        X = X.toarray()
    elif names is not None and hasattr(X, "column_names"):  # pyarrow
        X = _from_columns(names, list(X.columns), X.num_rows)
    elif names is not None and hasattr(X, "iloc"):  # pandas: its own missing values become NaN
        for name, dtype in zip(names, X.dtypes, strict=True):
            if str(dtype) == "category":
                raise DataError(
                    f"column {name!r} holds categories: trees compare numbers, so give their codes "
                    f"(frame[{name!r}].cat.codes), which is also what LightGBM and XGBoost learn from"
                )
        odd = [j for j, dtype in enumerate(X.dtypes) if dtype.kind not in "biuf"]
        _refuse_text([names[j] for j in odd], [X.iloc[:, j].to_numpy() for j in odd])
        X = X.to_numpy(dtype=FEATURE if all(d == FEATURE for d in X.dtypes) else np.float64, na_value=np.nan)
    elif names is not None and hasattr(X, "to_numpy"):  # polars
        X = _from_columns(names, [X[name] for name in names], len(X))
    try:
        array = np.asarray(X)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X must be a matrix of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"X must be a matrix of numbers, got {array.dtype}")
    if array.ndim != 2:
        hint = "; for one document write X.reshape(1, -1)" if array.ndim == 1 else ""
        raise DataError(f"X must have two dimensions (documents x features), got shape {array.shape}{hint}")
    return array


def as_feature_matrix(X: Any) -> FeatureMatrix:
    """Return `X` as a float32 matrix in C order, without a copy when it is one already.

    A float64 value beyond the range of float32 becomes infinity, which trees still order correctly.
    """
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(as_array(X), dtype=FEATURE)


def _from_columns(names: list[str], columns: list[Any], n_rows: int) -> AnyArray:
    arrays = [np.asarray(column.to_numpy()) for column in columns]
    _refuse_text(names, arrays)
    dtype = FEATURE if all(array.dtype == FEATURE for array in arrays) else np.dtype(np.float64)
    matrix = np.empty((n_rows, len(names)), dtype=dtype)
    for j, array in enumerate(arrays):
        matrix[:, j] = array
    return matrix


def _refuse_text(names: list[str], arrays: list[AnyArray]) -> None:
    for name, array in zip(names, arrays, strict=True):
        if array.dtype.kind in "USTM" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array)):
            raise DataError(f"column {name!r} holds {array.dtype}: features must be numbers; leave it out or encode it")
