"""Grouping of the rows of a data set by query: from ids in any order, or from sizes of consecutive queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import OFFSET, AnyArray, IndexArray, OffsetArray
from rankwood.errors import DataError


@dataclass(frozen=True)
class Queries:
    """Rows grouped by query, queries numbered in order of first appearance.

    Parameters
    ----------
    ids : array
        Id of every query.
    offsets : array of int64
        The rows of query q are `order[offsets[q]:offsets[q + 1]]`.
    order : array of int64 or None
        Rows query by query, in input order inside a query; None when rows of a query already stand together.
    """

    ids: AnyArray
    offsets: OffsetArray
    order: IndexArray | None

    @property
    def n_queries(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> OffsetArray:
        sizes: OffsetArray = np.diff(self.offsets)
        return sizes

    @property
    def index(self) -> IndexArray:
        """Number of the query of every row, in input order."""
        grouped = np.repeat(np.arange(self.n_queries, dtype=OFFSET), self.sizes)
        if self.order is None:
            return grouped
        index = np.empty_like(grouped)
        index[self.order] = grouped
        return index

    @property
    def places(self) -> IndexArray | None:
        """Where every row stands when rows stand query by query; None when they do."""
        if self.order is None:
            return None
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    def rows_of(self, queries: IndexArray) -> IndexArray:
        """Rows of the given queries, query by query in the order given."""
        starts, sizes = self.offsets[queries], self.sizes[queries]
        ends = np.cumsum(sizes)
        # position inside its own query, shifted to where that query starts
        rows: IndexArray = np.arange(int(ends[-1]) if len(ends) else 0, dtype=OFFSET) + np.repeat(
            starts - (ends - sizes), sizes
        )
        return rows if self.order is None else self.order[rows]


def find_queries(n_rows: int, qid: Any = None, group: Any = None) -> Queries:
    """Rows grouped by `qid` or `group`.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    qid : array-like, optional
        Id of the query of every row, in any order.
    group : array-like of int, optional
        Sizes of consecutive queries. Ids are recognised, too, unless they add up to the number of rows.

    Examples
    --------
    >>> find_queries(5, qid=["b", "a", "b", "b", "a"]).order
    array([0, 2, 3, 1, 4])
    >>> find_queries(5, group=[2, 3]).offsets
    array([0, 2, 5])
    """
    if qid is not None and group is not None:
        raise DataError("give qid (one id per row) or group (rows per query), not both")
    if qid is None and group is None:
        raise DataError("queries are missing: give qid (one id per row) or group (rows per query)")
    name = "qid" if qid is not None else "group"
    values = np.asarray(qid if qid is not None else group)
    if values.ndim != 1:
        raise DataError(f"{name} must have one dimension, got shape {values.shape}")
    fits_ids, fits_sizes = len(values) == n_rows, _sums_to(values, n_rows)
    if name == "group" and fits_sizes:
        return _from_sizes(values)
    if fits_ids:
        return _from_ids(values)
    if fits_sizes:
        found = f"qid must have one id per row ({n_rows}), got {len(values)}"
        raise DataError(f"{found}; if they are sizes of queries, pass them as group=")
    raise DataError(_misfit(name, values, n_rows))


def _sums_to(values: AnyArray, n_rows: int) -> bool:
    return values.dtype.kind in "iuf" and bool(np.all(values >= 0)) and float(values.sum(dtype=np.float64)) == n_rows


def _misfit(name: str, values: AnyArray, n_rows: int) -> str:
    text = f"{name} does not fit the {n_rows} rows: as ids there are {len(values)} of them"
    if values.dtype.kind in "iuf":
        if len(values) and not np.all(values >= 0):
            return text + ", and sizes of queries cannot be negative or NaN"
        return text + f", as sizes of queries they add up to {values.sum():g}"
    return text + ", and sizes of queries must be numbers"


def _from_sizes(sizes: AnyArray) -> Queries:
    if sizes.dtype.kind == "f" and not np.all(sizes == np.floor(sizes)):
        raise DataError("group must hold whole numbers (rows per query)")
    offsets = np.zeros(len(sizes) + 1, dtype=OFFSET)
    np.cumsum(sizes.astype(OFFSET), out=offsets[1:])
    return Queries(ids=np.arange(len(sizes), dtype=OFFSET), offsets=offsets, order=None)


def _from_ids(ids: AnyArray) -> Queries:
    return queries_of_runs(*find_runs(ids))


def find_runs(ids: AnyArray) -> tuple[AnyArray, OffsetArray]:
    """Ids of runs of rows with the same id, and the lengths of these runs.

    Examples
    --------
    >>> find_runs(np.array([7, 7, 3, 7]))
    (array([7, 3, 7]), array([2, 1, 1]))
    """
    is_first = np.ones(len(ids), dtype=np.bool_)
    is_first[1:] = ids[1:] != ids[:-1]
    starts = np.flatnonzero(is_first)
    return ids[starts], np.diff(np.append(starts, len(ids))).astype(OFFSET)


def queries_of_runs(ids: AnyArray, lengths: OffsetArray) -> Queries:
    """Rows grouped by query, from runs of rows with the same id; neighbouring runs, and others, may have the same.

    Parameters
    ----------
    ids : array
        Id of every run.
    lengths : array of int64
        Number of rows of every run.
    """
    ids = _comparable(ids, lengths)
    if len(ids) == 0:
        return Queries(ids=ids, offsets=np.zeros(1, dtype=OFFSET), order=None)
    ids, n_joined = find_runs(ids)  # some are alike only now
    lengths = np.add.reduceat(lengths, np.cumsum(n_joined) - n_joined)
    unique, first_run, run_query = np.unique(ids, return_index=True, return_inverse=True)
    if len(unique) == len(ids):  # every query stands together
        return Queries(ids=ids, offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(OFFSET), order=None)
    appearance = np.argsort(first_run, kind="stable")
    rank = np.empty(len(unique), dtype=OFFSET)
    rank[appearance] = np.arange(len(unique))
    index = np.repeat(rank[run_query], lengths)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=len(unique)))]).astype(OFFSET)
    return Queries(ids=unique[appearance], offsets=offsets, order=np.argsort(index, kind="stable").astype(OFFSET))


def _comparable(ids: AnyArray, lengths: OffsetArray) -> AnyArray:
    """Ids of runs of rows as one type that can be sorted."""
    if ids.dtype.kind == "f":
        if not np.all(np.isfinite(ids)):
            run = int(np.flatnonzero(~np.isfinite(ids))[0])
            raise DataError(f"qid of row {lengths[:run].sum()} is {ids[run]}: every row needs a query id")
        if np.all(ids == np.floor(ids)) and np.all(np.abs(ids) < 2**53):
            return ids.astype(np.int64)
        return ids
    if ids.dtype.kind == "O":
        for run, value in enumerate(ids):
            if value is None or value != value:
                raise DataError(f"qid of row {lengths[:run].sum()} is missing: every row needs a query id")
        kinds = {type(value) for value in ids}
        if kinds <= {str}:
            return ids.astype(np.str_) if len(ids) else ids
        if all(issubclass(kind, (int, np.integer)) for kind in kinds):
            return ids.astype(np.int64)
        return np.array([str(value) for value in ids])
    if ids.dtype.kind in "iuUSbT":
        return ids
    raise DataError(f"qid must hold numbers or strings, got {ids.dtype}")
