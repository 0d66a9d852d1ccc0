"""Ranking data as tables, CSV or Parquet: read whole or in blocks of rows, and written (needs the extra `arrow`)."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rankwood.coding import MISSING_TEXTS, Codes, Coding, Kind, Origin, tell_unseen
from rankwood.data.dataset import Dataset
from rankwood.data.text import PathLike, Progress, as_paths, text_writer
from rankwood.dtypes import FEATURE, AnyArray
from rankwood.errors import DataError, MissingPackageError, listed
from rankwood.matrix import ROLES, arrow_codes, column_order, find_roles, respelled
from rankwood.system import resolve_threads

# Ranking data as a table, CSV or Parquet, through pyarrow (the extra `arrow`).
#
# Columns are known by name: `qid` (or `query_id`), `label` (or `relevance`), `docid` (or `doc_id`) and `weight`.
# Every other column is a feature and must hold numbers or truth values; nulls are missing values (NaN).


_BATCH = 8192  # rows converted at a time: as many as stay in the processor's cache


def read_csv(
    paths: PathLike | Iterable[PathLike],
    *,
    delimiter: str | None = None,
    queries: Literal["required", "optional"] = "required",
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
) -> Dataset:
    r"""The data set in CSV files with a header line, plain or gzip.

    Columns are known by name: `qid` (or `query_id`), `label` (or `relevance`), `docid` (or `doc_id`) and `weight`;
    every other column is a feature and must hold numbers or truth values. Empty cells are missing values. Query ids are
    int64 when every one is written as a plain whole number, else strings. Without a label column the data has no
    labels.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Several files must have the same columns.
    delimiter : str, optional
        A comma, or a tab when the name ends in `.tsv`, unless given.
    queries : {"required", "optional"}, default "required"
        With "optional", data without query ids is one query.
    coding : Coding, optional
        How texts of a model's categories become numbers: `Ensemble.coding`. Texts are refused without it.
    exact : bool, default False
        Keep features in float64 if float32, which learning is done on, would round some value: for scoring.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Dataset
        All documents, in the order of the files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
    >>> _ = path.write_text("qid,label,bm25,clicks\n1,2,0.5,10\n1,0,,3\n")
    >>> data = read_csv(path)
    >>> data.feature_names, data.X.tolist()
    (('bm25', 'clicks'), [[0.5, 10.0], [nan, 3.0]])
    """
    files = as_paths(paths)
    pa = import_pyarrow("reading CSV")
    threads = resolve_threads(n_threads) > 1
    codes = _codes_of(pa, files, "csv", coding, delimiter)
    tables = [
        checked(pa, file, lambda file=file: _csv_table(pa, csv_layout(pa, file, delimiter, codes, exact), threads))
        for file in files
    ]
    return _as_dataset(pa, files, tables, queries, codes, exact=exact, from_text=True)


def read_parquet(
    paths: PathLike | Iterable[PathLike],
    *,
    queries: Literal["required", "optional"] = "required",
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
) -> Dataset:
    """The data set in Parquet files.

    Columns are those of `read_csv`; nulls are missing values.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Several files must have the same columns.
    queries : {"required", "optional"}, default "required"
        With "optional", data without query ids is one query.
    coding : Coding, optional
        How texts of a model's categories become numbers: `Ensemble.coding`. Texts are refused without it.
    exact : bool, default False
        Keep features in float64 if float32, which learning is done on, would round some value: for scoring.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Dataset
        All documents, in the order of the files.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.parquet"
    >>> write_parquet(rw.Dataset([[0.5], [1.5]], [0, 2], qid=["a", "a"], feature_names=["bm25"]), path)
    >>> data = read_parquet(path)
    >>> data.feature_names, data.X.tolist(), data.y.tolist()
    (('bm25',), [[0.5], [1.5]], [0.0, 2.0])
    """
    files = as_paths(paths)
    pa = import_pyarrow("reading Parquet")
    threads = resolve_threads(n_threads) > 1

    def table(file: Path) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(str(file)).read(use_threads=threads)

    tables = [checked(pa, file, lambda file=file: table(file)) for file in files]
    codes = _codes_of(pa, files, "parquet", coding)
    return _as_dataset(pa, files, tables, queries, codes, exact=exact, from_text=False)


def write_csv(data: Dataset, path: PathLike) -> None:
    """Write a data set as CSV, with the columns that `read_csv` knows.

    Parameters
    ----------
    data : Dataset
        What is written. Features without names are called f1, f2, ...
    path : path-like
        The file, written whole or not at all; tab-separated when its name ends in `.tsv`, packed when it ends in `.gz`.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
    >>> write_csv(rw.Dataset([[0.5], [1.5]], [0, 2], qid=[7, 7], feature_names=["bm25"]), path)
    >>> path.read_text().splitlines()[1:]  # below the header: qid, label, bm25
    ['7,0,0.5', '7,2,1.5']
    """
    pa = import_pyarrow("writing CSV")
    from pyarrow import csv

    options = csv.WriteOptions(delimiter=_delimiter(Path(path)), quoting_style="needed")
    table = _as_table(pa, data)
    with text_writer(path) as file:
        csv.write_csv(table, file, options)


def write_parquet(data: Dataset, path: PathLike) -> None:
    """Write a data set as Parquet, with the columns that `read_csv` knows.

    Parameters
    ----------
    data : Dataset
        What is written. Features without names are called f1, f2, ...
    path : path-like
        The file, written whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.parquet"
    >>> write_parquet(rw.Dataset([[0.5], [1.5]], [0, 2], group=[2]), path)
    >>> read_parquet(path)
    Dataset(2 documents, 1 features, 1 queries)
    """
    pa = import_pyarrow("writing Parquet")
    from pyarrow import parquet

    from rankwood.atomic import atomic_write

    table = _as_table(pa, data)
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def import_pyarrow(needed_for: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingPackageError("pyarrow", needed_for, "arrow") from None
    return pyarrow


def checked(pa: Any, file: Path, read: Any) -> Any:
    """The result of `read()`; its errors become one sentence with the name of the file."""
    try:
        return read()
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except (pa.ArrowException, OSError, UnicodeError) as error:  # pyarrow opens no path that is not UTF-8
        reason = " ".join(str(error).split())
        raise DataError(f"{file}: cannot be read: {reason[:300]}") from None


def _delimiter(file: Path) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in file.suffixes[-2:]] else ","


@dataclass(frozen=True)
class CsvLayout:
    """Columns of a CSV file, and how pyarrow is to read them.

    Parameters
    ----------
    file : Path
        The file.
    names : list of str
        All columns.
    types : dict
        Types of the columns that are numbers or ids, by name.
    parse : pyarrow.csv.ParseOptions
        How lines are cut.
    """

    file: Path
    names: list[str]
    types: dict[str, Any]
    parse: Any

    def convert(self, columns: list[str] | None = None) -> Any:
        """The pyarrow.csv.ConvertOptions for all columns or some."""
        from pyarrow import csv

        types = {name: kind for name, kind in self.types.items() if columns is None or name in columns}
        return csv.ConvertOptions(null_values=MISSING_TEXTS, column_types=types, include_columns=columns)


def csv_layout(
    pa: Any, file: Path, delimiter: str | None = None, coded: Container[str] = (), exact: bool = False
) -> CsvLayout:
    """Columns of a CSV file and their types, from its first lines; columns that are `coded` are texts in any case.

    Features are read as float32 at once, unless they are to be exact: by way of float64 they would be rounded twice.
    """
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=delimiter or _delimiter(file))
    with csv.open_csv(
        str(file), parse_options=parse, convert_options=csv.ConvertOptions(null_values=MISSING_TEXTS)
    ) as start:
        schema = start.schema
    types = {}
    for column in schema:
        role = next((role for role, names in ROLES.items() if column.name in names), None)
        if role in ("qid", "docid") or column.name in coded:
            types[column.name] = pa.string()
        elif pa.types.is_boolean(column.type):
            types[column.name] = pa.bool_()
        elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_null(column.type):
            types[column.name] = pa.float32() if role is None and not exact else pa.float64()
    return CsvLayout(file, schema.names, types, parse)


def _csv_table(pa: Any, layout: CsvLayout, threads: bool) -> Any:
    from pyarrow import csv

    options = {"parse_options": layout.parse, "convert_options": layout.convert()}
    try:
        return csv.read_csv(str(layout.file), read_options=csv.ReadOptions(use_threads=threads), **options)
    except pa.ArrowInvalid as error:
        raise DataError(f"cannot be read: {_csv_mistake(pa, str(error), layout)}") from None


_BAD_CELL = re.compile(r"In CSV column #(\d+):")


def _csv_mistake(pa: Any, reason: str, layout: CsvLayout) -> str:
    """A message of pyarrow, which counts columns from 0: with the name of the column, and the row of a bad cell."""
    column = _BAD_CELL.match(reason)
    if column is None or int(column[1]) >= len(layout.names):
        return " ".join(reason.split())[:300]
    name = layout.names[int(column[1])]
    from pyarrow import csv

    as_text = replace(layout, types={name: pa.string()}).convert([name])
    n_rows = 0
    with csv.open_csv(str(layout.file), parse_options=layout.parse, convert_options=as_text) as reader:
        for batch in reader:
            found = _first_text(batch.column(0).to_pylist())
            if found is not None:
                return f"{found[1]!r} in row {n_rows + found[0] + 1:,} of column {name!r} is no number"
            n_rows += batch.num_rows
    return f"in column {name!r}:{' '.join(reason[column.end() :].split())}"[:300]


def _odd_value(values: list[Any]) -> tuple[int, str]:
    """Place and beginning of a value that shows why a column is none of numbers."""
    first = next(((place, str(value)[:40]) for place, value in enumerate(values) if value is not None), (0, ""))
    return _first_text(values) or first


def _first_text(values: list[Any]) -> tuple[int, str] | None:
    """Place and beginning of the first text that is no number; None if all are numbers or missing."""
    for place, value in enumerate(values):
        if isinstance(value, str) and value not in MISSING_TEXTS:
            try:
                float(value)
            except ValueError:
                return place, value[:40]
    return None


def _as_dataset(
    pa: Any,
    files: list[Path],
    tables: list[Any],
    queries: str,
    codes: Mapping[str, Codes],
    *,
    exact: bool,
    from_text: bool,
) -> Dataset:
    if queries not in ("required", "optional"):
        raise DataError(f"queries must be 'required' or 'optional', got {queries!r}")
    roles, features = feature_columns(files, [table.column_names for table in tables])
    if "qid" not in roles and queries == "required":
        names = listed(tables[0].column_names)
        raise DataError(f"{files[0]}: no column is named qid or query_id; there are: {names}")
    for file, table in zip(files, tables, strict=True):
        if table.num_rows == 0:
            raise DataError(f"{file}: the table has no rows")
    numbers = [numeric_table(pa, file, table, features, codes) for file, table in zip(files, tables, strict=True)]
    tell_unseen(codes, shown_files(files))
    rounded = exact and not all(fits_float32(pa, table) for table in numbers)
    X: AnyArray = np.empty((sum(table.num_rows for table in tables), len(features)), np.float64 if rounded else FEATURE)
    start = 0
    for table in numbers:
        fill_features(pa, table, X[start : start + table.num_rows])
        start += table.num_rows
    columns = {role: _joined(pa, files, tables, name, role) for role, name in roles.items()}
    qid = columns.get("qid")
    if qid is not None and from_text:
        qid = numbers_if_plain(qid)
    try:
        data = Dataset(
            X[:, :0] if rounded else X,  # which would be rounded
            columns.get("label"),
            qid=qid,
            group=[len(X)] if qid is None else None,
            weights=columns.get("weight"),
            doc_ids=columns.get("docid"),
            feature_names=None if rounded else features,
        )
    except DataError as error:
        raise DataError(f"{files[0]}: {error}") from None
    return data.replace(X=X, feature_names=features) if rounded else data


def shown_files(files: Sequence[Path]) -> str:
    return str(files[0]) + ("" if len(files) == 1 else f" and {len(files) - 1:,} more")


def feature_columns(files: list[Path], columns: list[list[str]]) -> tuple[dict[str, str], list[str]]:
    """Column of each role, and the columns that are features; every file must have the same columns."""
    names = columns[0]
    roles = _roles(files[0], names)
    features = [name for name in names if name not in roles.values()]
    if not features:
        raise DataError(f"{files[0]}: there is no feature column; there are: {listed(names)}")
    for file, others in zip(files, columns, strict=True):
        if sorted(others) != sorted(names):
            odd = sorted(set(names) ^ set(others)) or ["one that is there twice"]
            raise DataError(f"{file}: its columns are not those of {files[0]}: {listed(odd)}")
    return roles, features


def _roles(file: Path, names: list[str]) -> dict[str, str]:
    """Name of the column of each role, of those that are there."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{file}: column {twice[0]!r} is there twice")
    try:
        return find_roles(names)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None


def _kinds(pa: Any, schema: Any) -> dict[str, Kind]:
    """What the columns of a table hold; pandas notes in a file which ones were categories."""
    try:
        noted = schema.pandas_metadata["columns"]
        categories = {column["field_name"] for column in noted if column["pandas_type"] == "categorical"}
    except (KeyError, TypeError, ValueError, RecursionError):  # there are none, or they are damaged
        categories = set()

    def kind(name: str, of: Any) -> Kind:
        is_text = any(is_kind(of) for is_kind in (*_text_types(pa), pa.types.is_dictionary))
        return "category" if name in categories else "text" if is_text else "number"

    return {column.name: kind(column.name, column.type) for column in schema}


def _text_types(pa: Any) -> list[Any]:
    """Functions that tell a type of texts."""
    return [pa.types.is_string, pa.types.is_large_string, getattr(pa.types, "is_string_view", pa.types.is_string)]


def columns_of_categories(source: ParquetSource | ArrowSource, *, texts: bool = False) -> set[str]:
    """Columns of a table that are categories by their type, or as pandas noted; with `texts` those of texts, too."""
    pa = import_pyarrow("reading tables")
    schema = checked(pa, source.file, lambda: source.schema)
    kinds = _kinds(pa, schema)
    typed = {column.name for column in schema if pa.types.is_dictionary(column.type)}
    return typed | {name for name, kind in kinds.items() if kind == "category" or (texts and kind == "text")}


def column_codes(
    coding: Coding | None, columns: Sequence[str], kinds: Mapping[str, Kind], origin: Origin
) -> dict[str, Codes]:
    """Codes of each column that holds a model's categories, by name of the column.

    Parameters
    ----------
    coding : Coding or None
        That of the model; without one there are no codes.
    columns : sequence of str
        Columns that are features.
    kinds : mapping of str to str
        What they hold.
    origin : {"frame", "file", "text"}
        Where they come from.
    """
    if coding is None:
        return {}
    names = coding.feature_names
    spelled = list(columns) if names is None else list(respelled(columns, names))
    known = dict(zip(spelled, columns, strict=True))
    ordered = [known.get(name) for name in (spelled if names is None else names)]  # columns by number of the feature
    here = tuple(
        str(name) if column is None else column for column, name in zip(ordered, names or ordered, strict=True)
    )
    told = [
        # Texts where the model has numbers are told of with their row, when they are read.
        "number" if column is None or (kinds[column] == "text" and number not in (coding.columns or (number,)))
        else kinds[column]
        for number, column in enumerate(ordered)
    ]  # fmt: skip
    codes = replace(coding, feature_names=here).codes(told, origin)
    return {str(ordered[number]): of_column for number, of_column in codes.items() if ordered[number] is not None}


def numeric_table(
    pa: Any, file: Path, table: Any, features: list[str], codes: Mapping[str, Codes], first_row: int = 0
) -> Any:
    """The features of a table, with codes in place of categories; anything else that is no number is an error.

    Parameters
    ----------
    first_row : int, default 0
        Number of the table's first row in the file.
    """
    table = table.select(features)
    for number, name in enumerate(features):
        kind = table.schema.field(name).type
        if name in codes:
            column, known = table.column(name), codes[name]
            values = checked(pa, file, lambda column=column, known=known: pa.array(arrow_codes(column, known)))
            table = table.set_column(number, name, values)
            continue
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            place, value = _odd_value(table.column(name).to_pylist())
            where = f"values such as {value!r} in row {first_row + place + 1:,}"
            raise DataError(
                f"{file}: column {name!r} holds {kind} {where}: features are numbers, so leave it out, or train with "
                "it among categorical_features"
            )
    return table


def fits_float32(pa: Any, table: Any) -> bool:
    """Whether float32 holds every number of a table of numbers."""
    return all(
        column.type in (pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16())
        or _fits(pa, column)
        for column in table.columns
    )


def _fits(pa: Any, column: Any) -> bool:
    from pyarrow import compute

    for chunk in column.chunks:
        values = compute.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32)
        if not np.array_equal(rounded, values, equal_nan=True):
            return False
    return True


def fill_features(pa: Any, table: Any, X: AnyArray) -> None:
    """Put the columns of a table of numbers into a matrix of float32 or float64."""
    from pyarrow import compute

    kind = pa.from_numpy_dtype(X.dtype)
    start = 0
    for batch in table.to_batches(max_chunksize=_BATCH):
        for number, column in enumerate(batch.columns):
            is_ready = column.type == kind  # as in CSV files: a cast would cost more than the rest
            values = column if is_ready else compute.cast(column, kind, safe=False)
            X[start : start + len(values), number] = values.to_numpy(zero_copy_only=False)
        start += batch.num_rows


def _joined(pa: Any, files: list[Path], tables: list[Any], name: str, role: str, first_row: int = 0) -> AnyArray:
    """One column of all tables: query ids as they are, names of documents as strings, the others as numbers."""
    parts = []
    for file, table in zip(files, tables, strict=True):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if role == "docid":
            parts.append(np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=object))
            continue
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise DataError(f"{file}: the {name} of row {first_row + row + 1} is missing")
        if role == "qid":
            parts.append(column.to_numpy())
            continue
        if not (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
        ):
            place, value = _odd_value(column.to_pylist())
            where = f"values such as {value!r} in row {first_row + place + 1:,}"
            raise DataError(f"{file}: column {name!r} holds {column.type} {where}: numbers were expected")
        parts.append(column.to_numpy())
    return np.concatenate(parts)


def numbers_if_plain(ids: AnyArray) -> AnyArray:
    """Ids as int64 when all are written as plain whole numbers ("7", but not "007"), else as they are."""
    unique, index = np.unique(ids.astype(np.str_), return_inverse=True)
    try:
        numbers = np.array([int(text) for text in unique.tolist()], dtype=np.int64)
    except (ValueError, OverflowError):
        return ids
    return numbers[index] if numbers.astype(np.str_).tolist() == unique.tolist() else ids


def _as_table(pa: Any, data: Dataset) -> Any:
    if data.query_weights is not None:
        raise DataError("a table has no place for weights of queries: set query_weights to None")
    names = data.feature_names or tuple(f"f{number + 1}" for number in range(data.n_features))
    reserved = [name for name in names if any(name in known for known in ROLES.values())]
    if reserved:
        raise DataError(f"a feature cannot be named {reserved[0]!r} in a table: that is the name of another column")
    columns: dict[str, Any] = {"qid": data.qid}
    if data.has_labels:
        columns["label"] = data.y
    if data.doc_ids is not None:
        columns["docid"] = data.doc_ids.astype(str)
    if data.weights is not None:
        columns["weight"] = data.weights
    columns.update(zip(names, data.X.T, strict=True))
    try:
        return pa.table({name: pa.array(_whole_texts(values)) for name, values in columns.items()})
    except UnicodeError as error:
        raise DataError(f"a name or an id cannot be written, as it is no text: {error}") from None


def _whole_texts(values: AnyArray) -> Any:
    """Texts as a list, because Arrow ends those of an array at a NUL; other values as they are."""
    return values.tolist() if values.dtype.kind == "U" else values


# Features of tables, CSV or Parquet, in blocks of rows: for tables larger than memory.


_CSV_BLOCK = 1 << 20  # bytes of text
_PARQUET_ROWS, _PARQUET_BUFFER = 8192, 1 << 16  # at a time; bytes of each column

# Record batches with just these columns, each with the number of bytes of the file read so far.
Batches = Iterator[tuple[Any, int]]


class Source(Protocol):
    """A table that is read in batches, as often as wanted; it can be pickled when it is a file.

    Attributes
    ----------
    file : Path
        Its file, or what messages call it.
    names : list of str
        Its columns.
    first_row : int
        Number of its first row in the file.
    codes : mapping of str to Codes
        Codes of the columns that hold categories.
    exact : bool
        Whether blocks are float64 where float32 would round some value.
    n_bytes : int
        Its size, as progress counts it.
    """

    @property
    def file(self) -> Path: ...

    @property
    def names(self) -> list[str]: ...

    @property
    def first_row(self) -> int: ...

    @property
    def codes(self) -> Mapping[str, Codes]: ...

    @property
    def exact(self) -> bool: ...

    @property
    def n_bytes(self) -> int: ...

    def batches(self, columns: list[str]) -> Batches:
        """Record batches with just these columns, each with the bytes of the file read so far."""


@dataclass(frozen=True)
class CsvSource:
    """A CSV file."""

    file: Path
    threads: bool = False
    first_row: int = 0
    codes: Mapping[str, Codes] = field(default_factory=dict)
    exact: bool = False

    @property
    def names(self) -> list[str]:
        return csv_layout(import_pyarrow("reading CSV"), self.file).names

    @property
    def n_bytes(self) -> int:
        return os.stat(self.file).st_size

    def batches(self, columns: list[str]) -> Batches:
        import pyarrow as pa
        from pyarrow import csv

        layout = csv_layout(pa, self.file, None, self.codes, self.exact)
        options = {
            "read_options": csv.ReadOptions(use_threads=self.threads, block_size=_CSV_BLOCK),
            "parse_options": layout.parse,
        }
        with pa.OSFile(str(self.file)) as raw:
            text = pa.CompressedInputStream(raw, "gzip") if self.file.suffix.lower() == ".gz" else raw
            try:
                with csv.open_csv(text, convert_options=layout.convert(columns), **options) as reader:
                    for batch in reader:
                        yield batch, raw.tell()
            except pa.ArrowInvalid as error:
                if _BAD_CELL.match(str(error)) is None:
                    raise
                raise DataError(_csv_mistake(pa, str(error), layout)) from None


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file, or some of its groups of rows."""

    file: Path
    threads: bool = False
    rows_at_once: int = _PARQUET_ROWS
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0
    codes: Mapping[str, Codes] = field(default_factory=dict)
    exact: bool = False

    @property
    def schema(self) -> Any:
        """Names and types of the columns, a pyarrow.Schema."""
        from pyarrow import parquet

        with parquet.ParquetFile(str(self.file)) as table:
            return table.schema_arrow

    @property
    def names(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    @property
    def n_bytes(self) -> int:
        size = os.stat(self.file).st_size
        if self.row_groups is None:
            return size
        from pyarrow import parquet

        metadata = parquet.read_metadata(str(self.file))
        return sum(metadata.row_group(number).total_byte_size for number in self.row_groups)

    def batches(self, columns: list[str]) -> Batches:
        from pyarrow import parquet

        size, n_rows = self.n_bytes, 0
        # With buffers of its own and no pre_buffer, a group of rows may be larger than memory.
        with parquet.ParquetFile(str(self.file), pre_buffer=False, buffer_size=_PARQUET_BUFFER) as table:
            numbers = range(table.num_row_groups) if self.row_groups is None else self.row_groups
            total = sum(table.metadata.row_group(number).num_rows for number in numbers)
            for batch in table.iter_batches(
                batch_size=self.rows_at_once, row_groups=list(numbers), columns=columns, use_threads=self.threads
            ):
                n_rows += batch.num_rows
                yield batch.select(columns), size * n_rows // max(total, 1)

    def cut(self, most_rows: int) -> list[ParquetSource]:
        """The file in sources of consecutive groups of rows, with no more than so many rows if groups are so small."""
        from pyarrow import parquet

        metadata = parquet.read_metadata(str(self.file))
        sources, groups, first_row, n_rows = [], list[int](), 0, 0
        for number in range(metadata.num_row_groups):
            size = metadata.row_group(number).num_rows
            if groups and n_rows + size > most_rows:
                sources.append(replace(self, row_groups=tuple(groups), first_row=first_row))
                groups, first_row, n_rows = [], first_row + n_rows, 0
            groups.append(number)
            n_rows += size
        return [*sources, replace(self, row_groups=tuple(groups), first_row=first_row)]


@dataclass(frozen=True)
class ArrowSource:
    """A table in memory, whose columns are read where they are."""

    table: Any
    file: Path = Path("the table")
    first_row: int = 0
    codes: Mapping[str, Codes] = field(default_factory=dict)
    exact: bool = False

    @classmethod
    def of(cls, data: Any) -> ArrowSource:
        """The table in any object with the Arrow PyCapsule interface: tables, DataFrames, streams of record batches."""
        pa = import_pyarrow("reading Arrow data")
        return cls(checked(pa, cls.file, lambda: pa.table(data)))

    @property
    def schema(self) -> Any:
        """Names and types of the columns, a pyarrow.Schema."""
        return self.table.schema

    @property
    def names(self) -> list[str]:
        names: list[str] = self.table.column_names
        return names

    @property
    def n_bytes(self) -> int:
        return int(self.table.nbytes)

    def batches(self, columns: list[str]) -> Batches:
        n_rows = 0
        for batch in self.table.select(columns).to_batches(max_chunksize=_PARQUET_ROWS):
            n_rows += batch.num_rows
            yield batch, self.n_bytes * n_rows // self.table.num_rows


def iter_table_features(
    files: list[Path],
    kind: Literal["csv", "parquet"],
    *,
    n_features: int,
    beyond: Literal["error", "ignore"] = "error",
    feature_names: Sequence[str] | None,
    coding: Coding | None = None,
    exact: bool = False,
    rows_per_block: int,
    n_threads: int | None,
    progress: Progress | None,
) -> Iterator[AnyArray]:
    """The features of table files, in blocks of rows: for tables larger than memory.

    Parameters
    ----------
    beyond : {"error", "ignore"}, default "error"
        What happens to columns after the first `n_features`, or to others than the `feature_names`.
    feature_names : sequence of str or None
        Columns that are taken, in this order; None takes all feature columns.
    coding : Coding or None
        How texts of categories become numbers.
    exact : bool, default False
        Whether a block is float64 where float32 would round some value.
    """
    sources = file_sources(files, kind, rows_per_block=rows_per_block, coding=coding, exact=exact, n_threads=n_threads)
    _, features = source_columns(sources)
    if beyond == "ignore":
        features = features[:n_features] if feature_names is None else named(features, feature_names)
    check_width(files[0], features, n_features, feature_names)
    order = column_order(features, feature_names, str(files[0]))
    columns = features if order is None else [features[number] for number in order]
    total, done = sum(source.n_bytes for source in sources), 0
    for source in sources:
        n_rows = 0
        for X, position in source_features(source, columns):
            n_rows += len(X)
            if progress is not None:
                progress(done + position, total)
            yield X
        if n_rows == 0:
            raise DataError(f"{source.file}: the table has no rows")
        done += source.n_bytes
    tell_unseen(sources[0].codes, shown_files(files))


def check_width(
    file: Path, features: Sequence[str], n_features: int | None, feature_names: Sequence[str] | None = None
) -> None:
    """Refuse another number of feature columns than expected, by name of those that are too many or lacking."""
    if n_features is None or len(features) == n_features:
        return
    column_order(features, feature_names, str(file))
    raise DataError(
        f"{file}: there are {len(features)} feature columns, {n_features} were expected; there are: "
        f"{listed(list(features))}"
    )


def named(columns: Sequence[str], feature_names: Sequence[str]) -> list[str]:
    """The columns that are features of a model, spelled as the table has them."""
    known = set(feature_names)
    spelled = respelled(columns, feature_names)
    return [column for column, name in zip(columns, spelled, strict=True) if name in known]


def file_sources(
    files: list[Path],
    kind: Literal["csv", "parquet"],
    *,
    rows_per_block: int = _PARQUET_ROWS,
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None,
) -> Sequence[CsvSource | ParquetSource]:
    """Table files as sources."""
    pa = import_pyarrow("reading CSV" if kind == "csv" else "reading Parquet")
    threads = resolve_threads(n_threads) > 1
    codes = _codes_of(pa, files, kind, coding)
    if kind == "csv":
        return [CsvSource(file, threads, codes=codes, exact=exact) for file in files]
    rows = min(rows_per_block, _PARQUET_ROWS)
    return [ParquetSource(file, threads, rows, codes=codes, exact=exact) for file in files]


def _codes_of(
    pa: Any, files: list[Path], kind: str, coding: Coding | None, delimiter: str | None = None
) -> Mapping[str, Codes]:
    """Codes of the columns of files, by what the beginning of the first tells of them."""

    def codes() -> Mapping[str, Codes]:
        if kind == "csv":
            layout = csv_layout(pa, files[0], delimiter)
            kinds: dict[str, Kind] = {name: "number" if name in layout.types else "text" for name in layout.names}
        else:
            from pyarrow import parquet

            kinds = _kinds(pa, parquet.read_schema(str(files[0])))
        roles = find_roles(list(kinds)).values()
        features = [name for name in kinds if name not in roles]
        return column_codes(coding, features, kinds, "text" if kind == "csv" else "file")

    return {} if coding is None else checked(pa, files[0], codes)


def source_columns(sources: Sequence[Source]) -> tuple[dict[str, str], list[str]]:
    """Column of each role, and the columns that are features, of sources that must have the same."""
    pa = import_pyarrow("reading tables")
    names = [checked(pa, source.file, lambda source=source: source.names) for source in sources]
    return feature_columns([source.file for source in sources], names)


def source_features(source: Source, columns: list[str]) -> Iterator[tuple[AnyArray, int]]:
    """The features of a source in blocks of rows, each with the number of bytes read so far."""
    pa, n_rows = import_pyarrow("reading tables"), source.first_row
    for table, position in source_tables(source, columns):
        numbers = numeric_table(pa, source.file, table, columns, source.codes, n_rows)
        n_rows += table.num_rows
        rounded = source.exact and not fits_float32(pa, numbers)
        X: AnyArray = np.empty((table.num_rows, len(columns)), np.float64 if rounded else FEATURE)
        fill_features(pa, numbers, X)
        if len(X):
            yield X, position


def source_roles(source: Source, roles: dict[str, str]) -> Iterator[dict[str, AnyArray]]:
    """The columns of some roles of a source, in blocks of rows: those that `roles` names."""
    pa, n_rows = import_pyarrow("reading tables"), source.first_row
    for table, _ in source_tables(source, list(roles.values())):
        yield {role: _joined(pa, [source.file], [table], name, role, n_rows) for role, name in roles.items()}
        n_rows += table.num_rows


def source_tables(source: Source, columns: list[str]) -> Batches:
    """Some columns of a source in blocks of rows, as tables, each with the number of bytes read so far.

    Errors in reading become one sentence, with how far it got.
    """
    pa, batches, n_rows = import_pyarrow("reading tables"), source.batches(columns), 0
    while True:
        try:
            batch, position = next(batches)
        except StopIteration:
            return
        except DataError as error:
            raise DataError(f"{source.file}: cannot be read: {error}") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            where = f" after row {n_rows:,}" if n_rows else ""
            reason = " ".join(str(error).split())[:300]
            raise DataError(f"{source.file}: cannot be read{where}: {reason}") from None
        n_rows += batch.num_rows
        yield pa.Table.from_batches([batch]), position
