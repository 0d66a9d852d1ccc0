"""Categories in training data of any kind: the same codes, however the data comes and is cut.

The code of a category is its place among all that occur in the data, numbers before texts, each in their order::

    categories_in, categories_of_part    of every piece: a table in memory, or a part of a file
    coding_of                            of all pieces, sorted: the coding that the model keeps
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.coding import MAX_CATEGORIES, MISSING_TEXTS, Codes, Coding
from rankwood.data.tables import (
    ArrowSource,
    CsvSource,
    ParquetSource,
    columns_of_categories,
    import_pyarrow,
    source_tables,
)
from rankwood.errors import DataError, one_line
from rankwood.matrix import NO_FEATURES, column_kinds, column_names

if TYPE_CHECKING:
    from rankwood.data.parts import TablePart

_MOST_KEPT = 1 << 16  # values of a column, after which there are too many in any case


@dataclass(frozen=True)
class Categories:
    """The categories that some rows have.

    Parameters
    ----------
    features : tuple of str or int
        Names of the features, or their numbers where columns have no names.
    found : mapping of str or int to set
        Values that occur, of each feature that holds categories.
    as_written : bool, default False
        Whether values are what a file that is all text has: a column of numbers alone then holds codes.
    is_known : bool, default True
        Whether there were rows, which have columns.
    """

    features: tuple[str | int, ...]
    found: Mapping[str | int, set[Any]]
    as_written: bool = False
    is_known: bool = True


def categories_in(X: Any, wanted: Collection[str | int] = (), apart: Collection[str] = NO_FEATURES) -> Categories:
    """The categories of columns that are categories by their type, and of wanted ones that hold texts.

    Parameters
    ----------
    X : DataFrame or Arrow table
        Anything else has no categories.
    wanted : collection of str or int
        Names or numbers of features.
    apart : collection of str, default ("qid", "label")
        Columns of tables in memory that are no features.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"price": [1.5, 2.0], "shop": ["b", "a"]})
    >>> categories_in(frame).found, sorted(categories_in(frame, ["shop"]).found["shop"])
    ({}, ['a', 'b'])
    """
    names = None if isinstance(X, np.ndarray) else column_names(X)
    if names is None or hasattr(X, "npartitions"):
        return Categories((), {})
    labels = X.column_names if hasattr(X, "column_names") else X.columns
    is_named = all(isinstance(label, str) for label in labels)
    places = [place for place, name in enumerate(names) if name not in apart]
    features = tuple(names[place] if is_named else number for number, place in enumerate(places))
    kinds = column_kinds(X)
    found = {}
    for number, (feature, place) in enumerate(zip(features, places, strict=True)):
        is_wanted = feature in wanted or number in wanted
        if kinds[place] == "category" or (kinds[place] == "text" and is_wanted):
            found[feature] = _checked(names[place], _values(X, place))
    return Categories(features, found)


def _values(X: Any, place: int) -> Iterable[Any]:
    """Values that occur in a column of a DataFrame or table."""
    if hasattr(X, "iloc"):  # pandas
        column = X.iloc[:, place]
        if str(column.dtype) != "category":
            return list(column.dropna().unique().tolist())
        codes = np.unique(column.cat.codes.to_numpy())
        return list(column.cat.categories[codes[codes >= 0]].tolist())
    if hasattr(X, "column_names"):  # pyarrow
        return _arrow_values(X.column(place))
    return list(X[:, place].drop_nulls().unique().to_list())  # polars


def _arrow_values(column: Any) -> Iterable[Any]:
    pa = import_pyarrow("categories of tables")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return list(column.unique().to_pylist())


def categories_of_part(part: TablePart, wanted: Collection[str | int] = ()) -> Categories:
    """The categories of a part of a table, as `categories_in` has those of a table in memory; it is read for them.

    Parameters
    ----------
    part : TablePart
        A file, or a piece of one.
    wanted : collection of str or int
        Names or numbers of features.
    """
    source, as_written = part.source, isinstance(part.source, CsvSource)
    typed, texts = set[str](), set(part.features)
    if isinstance(source, (ParquetSource, ArrowSource)):
        typed, texts = columns_of_categories(source), columns_of_categories(source, texts=True)
    columns = [
        name
        for number, name in enumerate(part.features)
        if name in typed or (name in texts and (name in wanted or number in wanted))
    ]
    found: dict[str | int, set[Any]] = {name: set() for name in columns}
    if columns:
        as_texts = replace(source, codes=dict.fromkeys(columns, Codes({})))  # type: ignore[type-var]
        for table, _ in source_tables(as_texts, columns):
            for name in columns:
                values = _arrow_values(table.column(name))
                found[name] |= _checked(name, (v for v in values if not (as_written and v in MISSING_TEXTS)))
                _refuse_many(name, found[name], _MOST_KEPT)
    return Categories(tuple(part.features), found, as_written)


def _checked(name: str, values: Iterable[Any]) -> set[Any]:
    """Values without missing ones, which must be texts or numbers."""
    known = {value for value in values if value is not None and value == value}
    if not all(isinstance(value, (str, int, float)) for value in known):
        raise DataError(f"column {one_line(repr(name))} has categories that are neither texts nor numbers")
    return known


def _refuse_many(name: str | int, known: Collection[Any], most: int = MAX_CATEGORIES) -> None:
    if len(known) > most:
        count = f"{len(known):,}" if most == MAX_CATEGORIES else f"more than {most:,}"
        raise DataError(
            f"column {one_line(repr(name))} has {count} categories, and a feature has at most {MAX_CATEGORIES}: merge "
            "rare ones, or leave the column out"
        )


def coding_of(pieces: Sequence[Categories], start: Coding | None = None) -> Coding | None:
    """The coding of all categories that pieces of the data have; None when there are none.

    Parameters
    ----------
    pieces : sequence of Categories
        In any order.
    start : Coding, optional
        That of a model to go on from: its codes stay, categories that it does not know get the next ones.

    Examples
    --------
    >>> coding_of([Categories(("a", "b"), {"b": {"red"}}), Categories(("a", "b"), {"b": {"blue", "red"}})])
    Coding(lists=(('blue', 'red'),), columns=(1,), feature_names=('a', 'b'))
    """
    features = next((piece.features for piece in pieces if piece.features), ())
    found: dict[str | int, set[Any]] = {}
    for piece in pieces:
        for feature, values in piece.found.items():
            found[feature] = found.get(feature, set()) | values
    if any(piece.as_written for piece in pieces):
        found = {feature: values for feature, values in found.items() if not _are_numbers(values)}
    lists = {features.index(feature): sorted(values, key=_order) for feature, values in found.items()}
    if start is not None:
        lists = _going_on(lists, features, start)
    for number, known in lists.items():
        _refuse_many(features[number] if number < len(features) else number, known)
    if not lists:
        return None
    columns = tuple(sorted(lists))
    names = tuple(feature for feature in features if isinstance(feature, str))
    return Coding(tuple(tuple(lists[number]) for number in columns), columns, names or None)


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _are_numbers(texts: Collection[str]) -> bool:
    """Whether all texts of a column are numbers, or all are truth values; such a column holds codes."""
    if all(text.lower() in ("true", "false") for text in texts):
        return True
    try:
        for text in texts:
            float(text)
    except ValueError:
        return False
    return True


def _going_on(lists: dict[int, list[Any]], features: Sequence[str | int], start: Coding) -> dict[int, list[Any]]:
    """Lists that begin with those of a model to go on from."""
    columns = start.columns
    if columns is None:
        if len(lists) != len(start.lists):
            raise DataError(
                f"{len(lists)} columns hold categories, the model to go on from has {len(start.lists)}, and its file "
                "does not say which"
            )
        columns = tuple(sorted(lists))
    place = {name: number for number, name in enumerate(features)}
    joined = dict(lists)
    for column, known in zip(columns, start.lists, strict=True):
        name = start.feature_names[column] if start.feature_names is not None else None
        number = place.get(name, column) if name is not None else column
        joined[number] = [*known, *(value for value in lists.get(number, ()) if value not in known)]
    return joined
