"""Parts of a data set: consecutive rows of tables that may be larger than memory, read one after another or anywhere.

A part can be pickled when it is a piece of a file. Three passes make binned data of parts, each part by itself::

    part.rows()     ->  Layout.of                      labels, weights, and where each row belongs
    part.blocks()   ->  BinSketch.of, BinSketch.merge  the edges of bins
    part.blocks()   ->  encode_rows                    bins
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rankwood.coding import Codes, Coding, forget_unseen, tell_unseen
from rankwood.data.dataset import Dataset
from rankwood.data.queries import Queries, find_queries, find_runs, queries_of_runs
from rankwood.data.tables import (
    ArrowSource,
    ParquetSource,
    Source,
    file_sources,
    numbers_if_plain,
    shown_files,
    source_columns,
    source_features,
    source_roles,
)
from rankwood.data.text import Progress
from rankwood.dtypes import LABEL, OFFSET, WEIGHT, AnyArray, FeatureMatrix, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError, listed
from rankwood.lazily import cached_property

ROWS_PER_PART = 1 << 18


@dataclass(frozen=True)
class PartRows:
    """Rows of a part without their features.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    ids : array or None
        Query ids of runs of rows that have the same; None when there are none.
    lengths : array of int64
        Number of rows of each run.
    y, weights : array of float64 or None
        Label and weight of every row.
    from_text : bool
        Whether ids were read as texts and may be numbers.
    """

    n_rows: int
    ids: AnyArray | None
    lengths: OffsetArray
    y: FloatArray | None
    weights: FloatArray | None
    from_text: bool = False


class Part(Protocol):
    """Consecutive rows of a larger data set."""

    def rows(self) -> PartRows:
        """The rows without their features."""

    def blocks(self) -> Iterator[FeatureMatrix]:
        """The features of the rows, some rows at a time."""


@dataclass(frozen=True)
class TablePart:
    """A table, or a piece of one.

    Parameters
    ----------
    source : Source
        Where it is read from.
    roles : dict
        Names of the columns of query ids, labels and weights, by role.
    features : list of str
        The columns that are features.
    """

    source: Source
    roles: dict[str, str]
    features: list[str]

    def rows(self) -> PartRows:
        if not self.roles:
            n_rows = sum(len(X) for X, _ in source_features(self.source, self.features[:1]))
            return PartRows(n_rows, None, np.zeros(0, OFFSET), None, None)
        found: dict[str, list[AnyArray]] = {role: [] for role in self.roles}
        lengths: list[OffsetArray] = [np.zeros(0, OFFSET)]
        n_rows = 0
        for columns in source_roles(self.source, self.roles):
            n_rows += len(next(iter(columns.values())))
            if "qid" in columns:
                columns["qid"], of_runs = find_runs(columns["qid"])
                lengths.append(of_runs)
            for role, values in columns.items():
                found[role].append(values)
        if n_rows == 0:
            raise DataError(f"{self.source.file}: the table has no rows")
        joined = {role: np.concatenate(values) for role, values in found.items()}
        y, weights = joined.get("label"), joined.get("weight")
        return PartRows(
            n_rows,
            joined.get("qid"),
            np.concatenate(lengths),
            None if y is None else y.astype(LABEL),
            None if weights is None else weights.astype(WEIGHT),
            from_text=not isinstance(self.source, (ArrowSource, ParquetSource)),
        )

    def blocks(self) -> Iterator[FeatureMatrix]:
        for X, _ in source_features(self.source, self.features):
            yield X


@dataclass(frozen=True)
class ArrayPart:
    """Rows in memory.

    Parameters
    ----------
    X : float32 matrix
        Features.
    y, qid, weights : array or None
        Label, query id and weight of every row.
    """

    X: FeatureMatrix
    y: AnyArray | None = None
    qid: AnyArray | None = None
    weights: AnyArray | None = None

    def rows(self) -> PartRows:
        ids, lengths = (None, np.zeros(0, OFFSET)) if self.qid is None else find_runs(np.asarray(self.qid))
        y = None if self.y is None else np.asarray(self.y, dtype=LABEL)
        weights = None if self.weights is None else np.asarray(self.weights, dtype=WEIGHT)
        return PartRows(len(self.X), ids, lengths, y, weights)

    def blocks(self) -> Iterator[FeatureMatrix]:
        yield self.X


@dataclass(frozen=True)
class Layout:
    """Where the rows of parts belong.

    Parameters
    ----------
    queries : Queries
        All rows grouped by query; a query may go on from one part to the next.
    first_rows : array of int64
        Number of the first row of every part, and of all rows.
    """

    queries: Queries
    first_rows: OffsetArray

    @classmethod
    def of(cls, parts: Sequence[PartRows], *, shuffle: bool = False) -> Layout:
        """The layout of parts that follow each other.

        Parameters
        ----------
        parts : sequence of PartRows
            The parts, in order.
        shuffle : bool, default False
            Whether rows of a query may stand apart: queries are in the order of their first rows then, and the rows of
            a query in the order that they have. Else it is an error.
        """
        first_rows = np.concatenate([[0], np.cumsum([part.n_rows for part in parts])]).astype(OFFSET)
        ids = [part.ids for part in parts if part.ids is not None]
        if not ids:
            return cls(find_queries(int(first_rows[-1]), group=[int(first_rows[-1])]), first_rows)
        if len(ids) < len(parts):
            raise DataError("some parts of the data have query ids and some have none: give all of them ids")
        run_ids = np.concatenate(ids)
        if parts[0].from_text:
            run_ids = numbers_if_plain(run_ids)
        queries = queries_of_runs(run_ids, np.concatenate([part.lengths for part in parts]))
        if queries.order is not None and not shuffle:
            refuse_scattered(queries)
        return cls(queries, first_rows)

    @property
    def n_rows(self) -> int:
        return int(self.first_rows[-1])

    def places(self, part: int) -> slice | IndexArray:
        """Where the rows of a part stand when all rows stand query by query."""
        rows = slice(int(self.first_rows[part]), int(self.first_rows[part + 1]))
        return rows if self._places is None else self._places[rows]

    @cached_property
    def _places(self) -> IndexArray | None:
        return self.queries.places


def refuse_scattered(queries: Queries) -> None:
    """Raise a DataError that names the first query whose rows stand apart."""
    index = queries.index
    returns = np.flatnonzero((index[1:] != index[:-1]) & (index[1:] < np.maximum.accumulate(index)[:-1]))
    row = int(returns[0]) + 1
    before = int(np.flatnonzero(index[:row] == index[row])[-1])
    raise DataError(
        f"the rows of query {queries.ids[index[row]]} stand apart: rows {before + 1:,} and {row + 1:,} belong to it, "
        "those between do not; sort the data by query, or give shuffle=True (--shuffle) to have rows moved together"
    )


def file_parts(
    files: list[Path],
    kind: Literal["csv", "parquet"],
    *,
    queries: Literal["required", "optional"] = "required",
    rows_per_part: int = ROWS_PER_PART,
    coding: Coding | None = None,
    exact: bool = False,
    n_threads: int | None = None,
) -> list[TablePart]:
    """The parts of table files: groups of rows of Parquet files, and whole CSV files.

    Parameters
    ----------
    files : list of Path
        Files with the same columns.
    kind : {"csv", "parquet"}
        What they are.
    queries : {"required", "optional"}, default "required"
        Whether a column of query ids must be there.
    rows_per_part : int, default 262144
        Most rows of a part, if groups of rows are so small.
    coding : Coding, optional
        How texts of categories become numbers.
    exact : bool, default False
        Whether blocks are float64 where float32 would round some value.
    n_threads : int, optional
        Every CPU is used unless given.
    """
    sources = file_sources(files, kind, coding=coding, exact=exact, n_threads=n_threads)
    roles, features = source_columns(sources)
    if "qid" not in roles and queries == "required":
        raise DataError(f"{files[0]}: no column is named qid or query_id; there are: {listed(sources[0].names)}")
    roles.pop("docid", None)
    cut = [source.cut(rows_per_part) if isinstance(source, ParquetSource) else [source] for source in sources]
    return [TablePart(source, roles, features) for pieces in cut for source in pieces]


def arrow_part(data: Any) -> TablePart:
    """Anything with the Arrow PyCapsule interface as a part; columns `qid` and `label` are what they say.

    Parameters
    ----------
    data : object with `__arrow_c_stream__`
        A table, a DataFrame, a reader of record batches.
    """
    source = ArrowSource.of(data)
    roles = {name: name for name in source.names if name in ("qid", "label")}
    features = [name for name in source.names if name not in roles]
    if not features:
        raise DataError(f"there is no feature column; there are: {listed(source.names)}")
    return TablePart(source, roles, features)


@dataclass(frozen=True)
class Blocks:
    """The features of parts, one part after another, as `Dataset.without_matrix` takes them."""

    parts: Sequence[Part]

    def __call__(self) -> Iterator[FeatureMatrix]:
        forget_unseen(_table_codes(self.parts))
        for part in self.parts:
            yield from part.blocks()
        tell_unseen_of(self.parts)


def tell_unseen_of(parts: Sequence[Any]) -> None:
    """Warn of values in the blocks of parts that are no categories of the model."""
    files = list(dict.fromkeys(part.source.file for part in parts if isinstance(part, TablePart)))
    if files:
        tell_unseen(_table_codes(parts), shown_files(files))


def _table_codes(parts: Sequence[Any]) -> Mapping[str, Codes]:
    """Codes of the columns of tables, which all parts share."""
    return next((part.source.codes for part in parts if isinstance(part, TablePart)), {})


def as_dataset(
    parts: Sequence[Part], n_features: int, feature_names: Sequence[str] | None, progress: Progress | None = None
) -> Dataset:
    """The data set that parts make up, with its features left where they are.

    Parameters
    ----------
    parts : sequence of Part
        The parts, in order. Rows of a query may stand apart, as in memory.
    n_features : int
        Number of features.
    feature_names : sequence of str or None
        Their names.
    progress : callable, optional
        Called with the number of parts whose rows were read, and that there are.
    """
    rows = []
    for part in parts:
        rows.append(part.rows())
        if progress is not None:
            progress(len(rows), len(parts))
    return Dataset.without_matrix(
        _joined([of_part.y for of_part in rows], "labels"),
        n_features=n_features,
        queries=Layout.of(rows, shuffle=True).queries,
        weights=_joined([of_part.weights for of_part in rows], "weights"),
        feature_names=feature_names,
        read_blocks=Blocks(parts),
    )


def _joined(values: Sequence[FloatArray | None], what: str) -> FloatArray | None:
    known = [some for some in values if some is not None]
    if known and len(known) < len(values):
        raise DataError(f"some parts of the data have {what} and some have none")
    return np.concatenate(known) if known else None
