"""Data that can be spread over the workers of a Dask cluster, in any form that it comes in, as partitions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankwood.coding import Coding
from rankwood.data.bins import BinnedDataset
from rankwood.data.categories import Categories, categories_in, categories_of_part
from rankwood.data.dataset import Dataset
from rankwood.data.parts import ArrayPart, PartRows, TablePart, file_parts
from rankwood.data.queries import find_queries
from rankwood.data.tables import feature_columns, import_pyarrow
from rankwood.data.text import PathLike, as_paths, file_kind, kind_of_all
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, listed
from rankwood.matrix import as_feature_matrix, column_names, drop_column, feature_names_of, find_roles, with_codes
from rankwood.tasks import import_distributed

if TYPE_CHECKING:
    from distributed import Client

Partition: TypeAlias = tuple[Any, Any, Any, Any]  # features, labels, query ids, weights; or a future of each of these


@dataclass(frozen=True)
class Spread:
    """Data in partitions, which workers read or compute, as often as they are asked to.

    Parameters
    ----------
    partitions : list of tuples
        Features, labels, query ids and weights of every partition, or what Dask makes them of; all but the first may be
        None, and are then looked for in the first.
    in_files : bool
        Whether partitions are read from files, equally well by any worker.
    group : array or None
        Sizes of consecutive queries, when there are no ids.
    query_weights : array or None
        Weight of every query, in order of first appearance.
    alone : bool
        Whether every row is a query of its own when there are no queries; else that is an error.
    """

    partitions: list[Partition]
    in_files: bool = False
    group: Any = None
    query_weights: Any = None
    alone: bool = False

    def coded(self, coding: Coding) -> Spread:
        """The same with codes in place of categories, where workers compute partitions; files are opened with it."""
        if self.in_files:
            return self
        from dask.delayed import delayed

        in_codes = delayed(_in_codes, pure=False)
        return replace(self, partitions=[(in_codes(X, coding), *rest) for X, *rest in self.partitions])


@dataclass(frozen=True)
class Here:
    """Data of the client's own process, whose features are in memory, in files that it reads, or in bins."""

    data: Dataset | BinnedDataset


Source: TypeAlias = Spread | Here


def open_source(
    data: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    alone: bool = False,
    client: Client | None = None,
    coding: Coding | None = None,
) -> Source:
    """Data in any form as what can be placed on workers; nothing is read yet but the heads of files.

    Parameters
    ----------
    data : Dask DataFrame or array, list of delayed values or futures, path or paths, Dataset, DataFrame or matrix
        A delayed value or future gives a DataFrame, an Arrow table, or `(X, y, qid)` or `(X, y, qid, weights)` of its
        rows. Columns of DataFrames and tables are known by name as those of `read_parquet` are. Of a folder all Parquet
        files are taken, in the order of their names. Workers read files themselves.
    y, qid, sample_weight : Dask array or series, or array, optional
        Label, query id and weight of every row, partitioned as the features are.
    group : array-like of int, optional
        Sizes of consecutive queries.
    query_weight : array-like of float, optional
        Weight of every query, in order of first appearance.
    alone : bool, default False
        Whether every row is a query of its own when there are no queries; else that is an error.
    client : distributed.Client, optional
        What computes `group` and `query_weight`, when Dask is to make them.
    coding : Coding, optional
        How the categories of a model in files become numbers.
    """
    queries = {"group": _computed(group, client), "query_weights": _computed(query_weight, client), "alone": alone}
    given = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight, "query_weight": query_weight}
    if _is_paths(data) or isinstance(data, (Dataset, BinnedDataset)):
        for name, values in given.items():
            if values is not None and not (name == "query_weight" and _is_paths(data)):
                raise DataError(f"files and Datasets hold their own labels, queries and weights: leave {name} out")
        return _of_files(data, queries, coding) if _is_paths(data) else Here(data)
    if qid is not None and group is not None:
        raise DataError("give qid (one id per row) or group (rows per query), not both")
    distributed = import_distributed("data on a Dask cluster")
    from dask.base import is_dask_collection
    from dask.delayed import Delayed

    if isinstance(data, (list, tuple)) and data and all(isinstance(one, (Delayed, distributed.Future)) for one in data):
        for name in ("y", "qid", "sample_weight"):
            if given[name] is not None:
                raise DataError(
                    f"partitions must give (X, y, qid) or (X, y, qid, weights) themselves: leave {name} out"
                )
        return Spread([(one, None, None, None) for one in data], **queries)
    if not is_dask_collection(data):
        if is_dask_collection(y) or is_dask_collection(qid):
            raise DataError("y or qid is a Dask collection and X is not: give X as one, too")
        if alone and qid is None and group is None and "qid" not in (column_names(data) or ()):
            group = np.ones(len(data), dtype=np.int64)
        return Here(Dataset(data, y, qid=qid, group=group, weights=sample_weight, query_weights=query_weight))
    if getattr(data, "ndim", None) != 2:
        raise DataError(f"X must be a Dask DataFrame or a Dask array of two dimensions, got {type(data).__name__}")
    data = data.rechunk({1: -1}) if hasattr(data, "chunks") else data
    sizes = data.chunks[0] if hasattr(data, "chunks") else None
    features = list(np.ravel(data.to_delayed()))
    columns = [
        _cut(values, name, len(features), sizes)
        for name, values in (("y", y), ("qid", qid), ("sample_weight", sample_weight))
    ]
    return Spread(list(zip(features, *columns, strict=True)), **queries)


def _is_paths(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(one, (str, os.PathLike)) for one in data)
    return isinstance(data, (str, os.PathLike))


def _of_files(paths: PathLike | Iterable[PathLike], queries: dict[str, Any], coding: Coding | None) -> Source:
    if isinstance(paths, (str, os.PathLike)) and Path(paths).is_dir():
        folder = Path(paths)
        found = sorted(path for path in folder.iterdir() if file_kind(path) == "parquet" and path.is_file())
        if not found:
            raise DataError(f"{folder}: there is no Parquet file in this folder")
        paths = [file for file in found if _has_rows(file)] or found
    files = [file.absolute() for file in as_paths(paths)]
    kind = kind_of_all(files)
    if kind == "svmlight":
        raise DataError(f"{files[0]}: workers read tables, not SVMlight text: give rankwood.open_data of these files")
    parts = file_parts(files, kind, coding=coding, n_threads=1)
    return Spread([(part, None, None, None) for part in parts], in_files=True, **queries)


def _has_rows(file: Path) -> bool:
    """Whether a Parquet file has rows; one that cannot be read has, and is refused later."""
    pa = import_pyarrow("reading Parquet")
    from pyarrow import parquet

    try:
        return bool(parquet.read_metadata(str(file)).num_rows)
    except (pa.ArrowException, OSError):
        return True


def _computed(values: Any, client: Client | None) -> Any:
    """The values of what may be a Dask array or series."""
    if values is None or not hasattr(values, "__dask_graph__"):
        return values
    return values.compute() if client is None else client.compute(values, sync=True)


def _cut(values: Any, name: str, n_parts: int, sizes: Sequence[float] | None) -> Sequence[Any]:
    """One value per row as one piece per partition of the features, which have these sizes, if they are known."""
    if values is None:
        return [None] * n_parts
    known = sizes is not None and not any(np.isnan(size) for size in sizes)
    if not hasattr(values, "to_delayed"):
        if sizes is None or not known:
            raise DataError(
                f"{name} is in memory, but how many rows the partitions of X have is not known: give {name} as a Dask "
                "array or series with the partitions of X, or as a column of X"
            )
        array = np.asarray(values)
        if len(array) != sum(sizes):
            raise DataError(f"{name} must have one value per row ({sum(sizes)}), got shape {array.shape}")
        return np.split(array, np.cumsum(sizes[:-1]).astype(np.int64))
    if known and hasattr(values, "chunks") and not any(np.isnan(size) for size in values.chunks[0]):
        if sum(values.chunks[0]) != sum(sizes or ()):
            raise DataError(f"{name} must have one value per row ({sum(sizes or ())}), got shape {values.shape}")
        values = values.rechunk({0: sizes})
    pieces = list(np.ravel(values.to_delayed()))
    if len(pieces) != n_parts:
        raise DataError(f"{name} has {len(pieces)} partitions and X has {n_parts}: row by row they must be the same")
    return pieces


# On a worker: a partition as a part of a data set.


@dataclass(frozen=True)
class NamedPart:
    """A part of a data set with the names of its features.

    Parameters
    ----------
    part : ArrayPart or TablePart
        The part.
    names : list of str or None
        Names of its features.
    n_features : int
        Number of its features.
    """

    part: ArrayPart | TablePart
    names: list[str] | None
    n_features: int

    @classmethod
    def of(cls, partition: Partition, names: Sequence[str] | None = None) -> NamedPart:
        """The part that a partition is, with its features in the order of `names`."""
        X, y, qid, weights = partition
        if isinstance(X, TablePart):
            return cls._of_file(X, names)
        if isinstance(X, tuple):
            if not 2 <= len(X) <= 4:
                raise DataError(f"(X, y, qid) or (X, y, qid, weights) was expected, got {len(X)} values")
            X, y, qid, weights = (*X, None, None)[:4]
        if column_names(X) is not None:
            X, y, qid, weights = _without_roles(X, y, qid, weights)
        own = feature_names_of(X)
        matrix = as_feature_matrix(X)
        for name, values in (("y", y), ("qid", qid), ("weights", weights)):
            if values is not None and len(values) != len(matrix):
                raise DataError(f"{name} must have one value per row ({len(matrix)}), got {len(values)}")
        if own is not None and names is not None and own != list(names):
            place = {name: number for number, name in enumerate(own)}
            matrix, own = np.ascontiguousarray(matrix[:, [place[name] for name in names]]), list(names)
        return cls(ArrayPart(matrix, y, None if qid is None else _plain(qid), weights), own, matrix.shape[1])

    @classmethod
    def _of_file(cls, part: TablePart, names: Sequence[str] | None) -> NamedPart:
        if not part.source.file.exists():
            raise DataError(
                f"{part.source.file}: worker {_worker()} has no such file; workers read the data themselves: "
                "put it where all of them see it, at the same path"
            )
        if names is not None:
            part = replace(part, features=list(names))
        return cls(part, part.features, len(part.features))

    def rows(self) -> tuple[PartRows, FloatArray, FloatArray | None]:
        """The rows without their features, and their labels and weights, which are checked."""
        rows = self.part.rows()
        one_query = find_queries(rows.n_rows, group=[rows.n_rows])
        data = Dataset.without_matrix(rows.y, n_features=self.n_features, queries=one_query, weights=rows.weights)
        return replace(rows, y=None, weights=None), data.y, data.weights


def _in_codes(X: Any, coding: Coding) -> Any:
    """Features of a partition, or all that it gives, with codes in place of categories."""
    if isinstance(X, tuple) and X:
        return (_in_codes(X[0], coding), *X[1:])
    return X if is_empty((X, None, None, None)) else with_codes(X, coding, _apart(X))


def categories_of(partition: Partition, wanted: Collection[str | int]) -> Categories:
    """The categories that the rows of a partition have."""
    X = partition[0][0] if isinstance(partition[0], tuple) and partition[0] else partition[0]
    return categories_of_part(X, wanted) if isinstance(X, TablePart) else categories_in(X, wanted, _apart(X))


def _apart(X: Any) -> Collection[str]:
    """Columns of a DataFrame or table that are no features."""
    names = None if isinstance(X, np.ndarray) else column_names(X)
    return () if names is None else find_roles(names).values()


def is_empty(partition: Partition) -> bool:
    """Whether a partition has no rows; then it may have anything for columns."""
    X = partition[0][0] if isinstance(partition[0], tuple) and partition[0] else partition[0]
    return isinstance(getattr(X, "shape", None), tuple) and X.shape[0] == 0


def _without_roles(X: Any, y: Any, qid: Any, weights: Any) -> Partition:
    """A DataFrame or table with its features only, and the columns that are labels, query ids and weights."""
    names = column_names(X) or []
    roles, _ = feature_columns([Path("the table")], [names])
    given = {"label": y, "qid": qid, "weight": weights}
    for role, name in roles.items():
        values, X = drop_column(X, name)
        if role == "docid":
            continue
        if given[role] is not None:
            raise DataError(f"X has a column {name!r}, and {role} is given, too: drop one of them")
        given[role] = values
    return X, given["label"], given["qid"], given["weight"]


def _plain(qid: Any) -> AnyArray:
    ids = np.asarray(qid)
    if ids.dtype.kind == "O":
        for row, one in enumerate(ids):
            if one is None or type(one).__name__ == "NAType" or one != one:  # None, pandas.NA, NaN
                raise DataError(f"qid of row {row} is missing: every row needs a query id")
    return ids


def _worker() -> str:
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return "here"


@contextmanager
def naming(number: int, partition: Partition) -> Iterator[None]:
    """Have errors in the block name the partition, unless they name its file."""
    try:
        yield
    except DataError as error:
        is_file = isinstance(partition[0], TablePart)
        raise DataError(str(error) if is_file else f"partition {number}: {error}") from None


def same_columns(
    numbers: Sequence[int], names: Sequence[list[str] | None], n_features: Sequence[int]
) -> list[str] | None:
    """Names of the features of partitions, which must all have the same; in the order of the first.

    Parameters
    ----------
    numbers : sequence of int
        Numbers of the partitions.
    names : sequence of lists or None
        Names of the features of each.
    n_features : sequence of int
        Number of the features of each.
    """
    first = f"partition {numbers[0]}"
    for number, own, n in zip(numbers, names, n_features, strict=True):
        if n != n_features[0]:
            raise DataError(f"partition {number}: it has {n} features, {first} has {n_features[0]}")
        if sorted(own or ()) != sorted(names[0] or ()):
            odd = sorted(set(own or ()) ^ set(names[0] or ()))
            raise DataError(f"partition {number}: its columns are not those of {first}: {listed(odd)}")
    return names[0]
