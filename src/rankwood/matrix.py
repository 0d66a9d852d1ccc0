"""Feature matrices of any kind that users have, as one array or as blocks of rows."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.dtypes import FEATURE, AnyArray, FeatureMatrix, FloatArray
from rankwood.errors import DataError, listed

if TYPE_CHECKING:
    from rankwood.coding import Codes, Coding, Kind

# Columns of tables that are no features, by what they say.
ROLES = {
    "qid": ("qid", "query_id"),
    "label": ("label", "relevance"),
    "docid": ("docid", "doc_id"),
    "weight": ("weight",),
}


def find_roles(names: Sequence[str]) -> dict[str, str]:
    """Name of the column of each role, of those that are there; of two with one meaning an error.

    Examples
    --------
    >>> find_roles(["query_id", "bm25", "label"])
    {'qid': 'query_id', 'label': 'label'}
    """
    roles = {}
    for role, known in ROLES.items():
        present = [name for name in known if name in names]
        if len(present) > 1:
            raise DataError(f"columns {' and '.join(present)} mean the same: keep one of them")
        if present:
            roles[role] = present[0]
    return roles


# As one array: from arrays, DataFrames, Arrow tables and sparse matrices.


def collected(X: Any) -> Any:
    """The data frame that a lazy one of polars gives; anything else as it is."""
    is_lazy = hasattr(X, "collect_schema") and hasattr(X, "collect")
    return X.collect() if is_lazy else X


def column_names(X: Any) -> list[str] | None:
    """Column names of a DataFrame or table (pandas, polars, pyarrow); None for anything else.

    Examples
    --------
    >>> column_names(np.zeros((2, 3))) is None
    True
    """
    names = getattr(X, "column_names", None)  # pyarrow, whose `columns` are the data
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def feature_names_of(X: Any) -> list[str] | None:
    """Column names of a DataFrame or table if all are texts, else None: pandas numbers columns without names."""
    labels = getattr(X, "column_names", None)
    if labels is None:
        labels = getattr(X, "columns", None)
    return None if labels is None or not all(isinstance(label, str) for label in labels) else list(labels)


def drop_column(X: Any, name: str) -> tuple[AnyArray, Any]:
    """Values of one column of a DataFrame or table, and the table without that column."""
    values = np.asarray(X[name])
    if hasattr(X, "drop_columns"):  # pyarrow
        return values, X.drop_columns([name])
    return values, X[[column for column in X.columns if str(column) != name]]


def refuse_text(X: Any) -> None:
    """Refuse texts, and categories that are texts, among features, and name the column that holds them.

    Examples
    --------
    >>> refuse_text(np.array([[1.0, "red"]], dtype=object))
    Traceback (most recent call last):
    rankwood.errors.DataError: column 1 (from 0) holds the text 'red': features must be numbers; leave it out
    """
    names = None if isinstance(X, np.ndarray) else column_names(X)
    if names is not None and hasattr(X, "iloc"):
        for name, dtype in zip(names, X.dtypes, strict=True):
            if str(dtype) == "category" and dtype.categories.dtype.kind not in "biuf":
                raise _categories_error(name)
        odd = [j for j, dtype in enumerate(X.dtypes) if dtype.kind not in "biuf" and str(dtype) != "category"]
        _refuse_text([names[j] for j in odd], [X.iloc[:, j].to_numpy() for j in odd])
    elif names is not None and hasattr(X, "column_names"):
        _refuse_text(names, [np.asarray(column.to_numpy()) for column in X.columns])
    elif names is not None and hasattr(X, "to_numpy"):
        _refuse_text(names, [X[name].to_numpy() for name in names])
    elif isinstance(X, (list, tuple, np.ndarray)):
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths, which others refuse
            return
        if array.ndim == 2 and array.dtype.kind in "OU":
            _refuse_text_in(array)


def _refuse_text_in(array: AnyArray) -> None:
    """Refuse texts in a matrix that are no numbers; texts of numbers are read as numbers."""
    for column in range(array.shape[1]):
        for value in array[:, column]:
            if isinstance(value, str) and not _is_number(value):
                raise DataError(
                    f"column {column} (from 0) holds the text {str(value)!r:.40}: features must be numbers; "
                    "leave it out"
                )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _categories_error(name: str) -> DataError:
    return DataError(
        f"column {name!r} holds categories: only fit of boosted learners, and models that were trained on them, take "
        "such columns as they are, as a Dataset does with coding=model.coding; forests need numbers, such as "
        f"frame[{name!r}].cat.codes"
    )


def as_array(X: Any) -> AnyArray:
    """Matrix `X` as a numpy array of numbers, in the number type and memory order that it has."""
    X = collected(X)
    names = column_names(X)
    if hasattr(X, "tocsr"):  # scipy sparse: what is not stored is 0
        X = X.toarray()
    elif names is not None and hasattr(X, "column_names"):  # pyarrow
        X = _from_columns(names, list(X.columns), X.num_rows)
    elif names is not None and hasattr(X, "iloc"):  # pandas: its own missing values become NaN
        for name, dtype in zip(names, X.dtypes, strict=True):
            if str(dtype) == "category":
                raise _categories_error(name)
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
    """Matrix `X` as float32 in C order, without a copy if it is that already.

    A float64 value beyond the range of float32 becomes infinite, which trees still order correctly.
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
            held = "texts" if array.dtype.kind in "USTO" else f"{array.dtype}"
            raise DataError(
                f"column {name!r} holds {held}: features must be numbers; leave it out"
                + (", or have boosted learners take it as categories (categorical_features)" if held == "texts" else "")
            )


# As blocks of rows, for scoring: nothing is converted or copied as a whole.

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
BLOCK_BYTES = 16 << 20  # rows that must be converted are converted in blocks of about this size


def row_blocks(
    X: Any,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    *,
    coding: Callable[[], Coding | None] = lambda: None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[int, Iterator[tuple[slice, AnyArray]]]:
    """Number of rows of `X`, and its rows in blocks: their slice and their values as float32 or float64.

    A float32 or float64 array is one block, without a copy, in any memory order. Everything else is converted block by
    block, exactly (64-bit integers: to the nearest float64). What a sparse matrix does not store is 0; what a DataFrame
    or masked array marks as missing is NaN.

    Parameters
    ----------
    X : array, DataFrame, table or sparse matrix
    n_features : int
        Number of columns that `X` must have.
    feature_names : sequence of str, optional
        Names of the model's features. If the columns of `X` have names (texts, not numbers), they must be the same ones
        and are found by name; else columns count by position.
    coding : callable
        Gives the coding of the model's categories; asked for DataFrames and tables alone.
    block_bytes : int
        Size of a block that is converted.

    Examples
    --------
    >>> n_rows, blocks = row_blocks([[1, 2], [3, 4]], 2)
    >>> n_rows, [block.tolist() for _, block in blocks]
    (2, [[[1.0, 2.0], [3.0, 4.0]]])
    """
    X = collected(X)
    n_rows, n_columns, take = _open(X, feature_names, n_features, coding)
    if n_columns != n_features:
        raise DataError(f"X has {n_columns} features but the model was built on {n_features}")
    if isinstance(X, np.ndarray) and _fits_kernels(X):
        return n_rows, iter([(slice(0, n_rows), X)] if n_rows else [])
    step = max(1, block_bytes // (8 * max(1, n_features)))
    slices = (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))
    return n_rows, ((rows, _as_floats(take(rows))) for rows in slices)


def one_block(
    X: Any,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    *,
    coding: Callable[[], Coding | None] = lambda: None,
) -> AnyArray:
    """All rows of `X` as one array that kernels read, for what must see whole queries; without a copy if it is that.

    Examples
    --------
    >>> one_block([[1, 2], [3, 4]], 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if is_plain(X, n_features):
        plain: AnyArray = X
        return plain
    n_rows, blocks = row_blocks(X, n_features, feature_names, coding=coding, block_bytes=sys.maxsize)
    return next((block for _, block in blocks), np.empty((n_rows, n_features)))


def is_plain(X: Any, n_features: int) -> bool:
    """Whether `X` can be scored as it is, without `row_blocks`: a float array of the right width, in C order.

    It is a quick check, since a call for one document must not spend more time on checks than on scoring.

    Examples
    --------
    >>> is_plain(np.zeros((1, 2)), 2), is_plain(np.zeros((2, 2), order="F"), 2), is_plain([[0.0, 0.0]], 2)
    (True, False, False)
    """
    if type(X) is not np.ndarray or (X.dtype is not FLOAT32 and X.dtype is not FLOAT64):
        return False
    shape, flags = X.shape, X.flags
    return len(shape) == 2 and shape[1] == n_features and shape[0] > 0 and flags.c_contiguous and flags.aligned


def _open(
    X: Any, feature_names: Sequence[str] | None, n_features: int, coding: Callable[[], Coding | None]
) -> tuple[int, int, Callable[[slice], AnyArray]]:
    """Number of rows, number of columns, and a function from a slice of rows to an array of numbers."""
    if hasattr(X, "queries") and hasattr(X, "X"):
        raise DataError("X is a Dataset: give its features, data.X")
    columns = None if isinstance(X, np.ndarray) else column_names(X)
    if columns is not None:
        order = column_order(feature_names_of(X), feature_names)
        return len(X), len(columns), _frame_reader(X, order, coding() if len(columns) == n_features else None)
    if hasattr(X, "tocsr") and len(X.shape) == 2:
        csr = X.tocsr()
        if csr.nnz and not 0 <= csr.indices.min() <= csr.indices.max() < csr.shape[1]:
            raise DataError(f"X is a damaged sparse matrix: an index lies outside its {csr.shape[1]} columns")
        return int(csr.shape[0]), int(csr.shape[1]), lambda rows: as_array(csr[rows])
    array = as_array(X)
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        return *array.shape, lambda rows: np.where(mask[rows], np.nan, array[rows])
    return *array.shape, lambda rows: array[rows]


def column_order(names: Sequence[str] | None, feature_names: Sequence[str] | None, of: str = "X") -> list[int] | None:
    """Position in `names` of each of the model's `feature_names`; None when columns count by position.

    Columns count by position when either side has no names, or both have the same names in the same order. Where names
    differ only in characters that tools write as underscores, and no two become the same, columns are found by these; a
    warning says so. Errors are of what `of` calls the table.

    Examples
    --------
    >>> column_order(["clicks", "bm25"], ["bm25", "clicks"])
    [1, 0]
    """
    if names is None or feature_names is None or list(names) == list(feature_names):
        return None
    names, given = respelled(names, feature_names), list(names)
    missing, unknown = Counter(feature_names) - Counter(names), Counter(names) - Counter(feature_names)
    if not missing and not unknown and names != given:
        pairs = [f"{old!r} is {new!r}" for old, new in zip(given, names, strict=True) if old != new]
        warnings.warn(
            f"columns are matched by names with underscores, as LightGBM writes them: {listed(pairs, 3)}", stacklevel=2
        )
    if missing or unknown:
        differ = [
            f"{what} {listed([repr(name) for name in odd], 3)}"
            for what, odd in (("there is no", missing), ("the model does not know", unknown))
            if odd
        ]
        raise DataError(
            f"{of} has {len(names)} features but the model was built on {len(feature_names)}: {' and '.join(differ)}"
            if len(names) != len(feature_names)
            else f"{of} names its features differently than the model: {' and '.join(differ)}; "
            "Ensemble.rename_features, on the command line --rename OLD=NEW, makes names fit"
        )
    place = {name: number for number, name in enumerate(names)}
    return [place[name] for name in feature_names]


def respelled(names: Sequence[str], feature_names: Sequence[str]) -> Sequence[str]:
    """Names of columns as a model spells them, where that is not in doubt: LightGBM writes spaces as underscores.

    Examples
    --------
    >>> respelled(["query length", "bm25"], ["bm25", "query_length"])
    ['query_length', 'bm25']
    """
    here, known = set(names), set(feature_names)
    wanted, left = [name for name in feature_names if name not in here], [name for name in names if name not in known]
    for_whom, whose = (Counter(map(_plain_name, side)) for side in (wanted, left))
    spelled = {_plain_name(name): name for name in wanted}
    sure = {name: spelled[key] for name in left if for_whom[key := _plain_name(name)] == 1 == whose[key]}
    return [sure.get(name, name) for name in names]


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


NO_FEATURES = ("qid", "label")  # columns of tables in memory that `fit` leaves alone


def with_codes(X: Any, coding: Coding | None, apart: Collection[str] = NO_FEATURES) -> Any:
    """A DataFrame or table with codes in place of the categories of a model; anything else as it is.

    A category that the model does not know is a missing value.

    Parameters
    ----------
    X : DataFrame, table or matrix
        The features, and what stands beside them.
    coding : Coding or None
        `Ensemble.coding` of the model.
    apart : collection of str, default ("qid", "label")
        Columns that are no features.
    """
    names = None if coding is None or isinstance(X, np.ndarray) else column_names(X)
    if coding is None or names is None or hasattr(X, "npartitions"):
        return X
    places = [place for place, name in enumerate(names) if name not in apart]
    is_named = feature_names_of(X) is not None
    order = column_order([names[place] for place in places] if is_named else None, coding.feature_names)
    places = places if order is None else [places[number] for number in order]
    kinds = column_kinds(X)
    here = replace(coding, feature_names=tuple(names[place] for place in places))
    codes = here.codes([kinds[place] for place in places])
    return _with_codes(X, {places[number]: known for number, known in codes.items()})


def _frame_reader(X: Any, order: list[int] | None, coding: Coding | None) -> Callable[[slice], AnyArray]:
    """Function from a slice of rows of a DataFrame or table to an array, with columns in this order."""
    if order is not None:
        if hasattr(X, "iloc"):
            X = X.iloc[:, order]
        elif hasattr(X, "column_names"):  # pyarrow
            X = X.select(order)
        else:
            X = X[:, order]
    names = tuple(column_names(X) or ())
    codes = {} if coding is None else replace(coding, feature_names=names).codes(column_kinds(X))
    if hasattr(X, "iloc"):
        return lambda rows: as_array(_with_codes(X.iloc[rows], codes))
    return lambda rows: as_array(_with_codes(X.slice(rows.start, rows.stop - rows.start), codes))


def column_kinds(X: Any) -> list[Kind]:
    """What the columns of a DataFrame or table hold."""
    if hasattr(X, "iloc"):
        return [_kind(str(dtype), X.iloc[:, number]) for number, dtype in enumerate(X.dtypes)]
    types = X.schema.types if hasattr(X, "column_names") else X.dtypes
    return [_kind(str(dtype).lower(), ()) for dtype in types]


TEXT_TYPES = ("str", "large_string", "utf8")
CATEGORY_TYPES = ("category", "dictionary", "categorical", "enum")  # of pandas, Arrow, polars


def _kind(dtype: str, values: Iterable[Any]) -> Kind:
    if dtype == "object":
        return "text" if any(isinstance(value, str) for value in values) else "number"
    return "category" if dtype.startswith(CATEGORY_TYPES) else "text" if dtype.startswith(TEXT_TYPES) else "number"


def _with_codes(X: Any, codes: Mapping[int, Codes]) -> Any:
    """Rows of a DataFrame or table with the codes of categories in place of some columns."""
    for number, known in codes.items():
        if hasattr(X, "iloc"):
            column = X.iloc[:, number]
            X = X.copy(deep=False)
            is_category = str(column.dtype) == "category"
            places, values = (column.cat.codes, column.cat.categories) if is_category else column.factorize()
            X.isetitem(number, known.of_numbered(np.asarray(places), values))
        elif hasattr(X, "column_names"):  # pyarrow
            X = X.set_column(number, X.column_names[number], [arrow_codes(X.column(number), known)])
        else:
            column = X[:, number]
            X = X.with_columns(type(column)(column.name, known.of(column.to_list())))
    return X


def arrow_codes(column: Any, codes: Codes) -> FloatArray:
    """Codes of a column of categories of an Arrow table."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = pa.chunked_array(column.dictionary_encode().chunks, pa.dictionary(pa.int32(), column.type))
    parts = [
        codes.of_numbered(chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False), chunk.dictionary.to_pylist())
        for chunk in encoded.unify_dictionaries().chunks
    ]
    return np.concatenate([np.empty(0), *parts])


def _fits_kernels(array: AnyArray) -> bool:
    """Whether the kernels read the array as it is."""
    return (
        array.dtype in (np.float32, np.float64)  # in this machine's byte order
        and not isinstance(array, np.ma.MaskedArray)
        and array.flags.aligned
        and all(stride % array.itemsize == 0 for stride in array.strides)
    )


def _as_floats(array: AnyArray) -> AnyArray:
    if _fits_kernels(array):
        return array
    dtype = np.float32 if array.dtype.kind == "f" and array.itemsize < 8 else np.float64
    return np.require(array, dtype, ["C", "ALIGNED"])
