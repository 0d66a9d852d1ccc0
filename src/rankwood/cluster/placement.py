"""Data on the workers of a Dask cluster: whole queries in bins, consecutive ones on each worker.

Three passes over the partitions make it, as ordinary Dask tasks; features are read again in each and never kept::

    rankwood-rows     query ids of every partition          ->  client: where every row belongs, who gets which queries
    rankwood-bins     a sketch of every partition, merged   ->  edges of bins, those that one machine finds
    rankwood-encode   the rows of every partition in bins   ->  a piece for each worker that gets some of them
    rankwood-share    on each worker: its pieces, joined

Features themselves can be placed, too: the second pass is left out then. Queries and their documents stand in the
order that they have when the partitions are read one after another.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwood.cluster.client import check_memory, workers_of
from rankwood.cluster.sources import (
    Here,
    NamedPart,
    Partition,
    Source,
    Spread,
    categories_of,
    is_empty,
    naming,
    same_columns,
)
from rankwood.data.bins import (
    MAX_BINS,
    BinEdges,
    BinnedDataset,
    BinSketch,
    empty_bins,
    encode_rows,
    find_edges,
    sketch_blocks,
)
from rankwood.data.categories import Categories
from rankwood.data.dataset import Dataset
from rankwood.data.parts import Layout, PartRows
from rankwood.data.queries import Queries, find_queries
from rankwood.data.text import Progress
from rankwood.dtypes import FEATURE, LABEL, OFFSET, WEIGHT, FeatureMatrix, FloatArray, IndexArray, OffsetArray
from rankwood.errors import ClusterError, DataError
from rankwood.matrix import column_order
from rankwood.tasks import import_distributed
from rankwood.training.constraints import numbers_of

if TYPE_CHECKING:
    from distributed import Client, Future

    from rankwood.model.ensemble import Ensemble

T = TypeVar("T")
_Values: TypeAlias = NDArray[Any]  # of a group of features, a row and a place in the group: bins, or float32
TICK = 0.2  # seconds between two looks at tasks
LOOK = 5  # ticks between two looks at workers
MERGED_AT_ONCE = 16  # sketches


@dataclass(frozen=True)
class Placed:
    """A data set that is spread over workers, in bins or with its features, as the client knows it.

    Parameters
    ----------
    n_docs, n_queries, n_features : int
        Numbers of documents, queries and features of all workers together.
    feature_names : tuple of str or None
        Names of the features.
    edges : BinEdges or None
        Upper ends of the bins; None of features as they are.
    has_weights, has_query_weights : bool
        Whether documents and queries have weights.
    n_bytes : dict
        Size of every worker's share, by address.
    shares : dict
        Future of every worker's share, by address, in the order of queries: a `BinnedDataset` without features, or a
        `Dataset` with them, which may have no documents. What is missing anywhere is marked in all `BinnedDataset`s,
        whose `Share` is to be set there.
    """

    n_docs: int
    n_queries: int
    n_features: int
    feature_names: tuple[str, ...] | None
    edges: BinEdges | None
    has_weights: bool
    has_query_weights: bool
    n_bytes: dict[str, int]
    shares: dict[str, Future]

    def release(self) -> None:
        """Let the workers forget their shares."""
        for future in self.shares.values():
            future.release()


def place(
    client: Client,
    workers: Sequence[str],
    source: Source,
    *,
    edges: BinEdges | None = None,
    max_bins: int = MAX_BINS,
    categories: Sequence[int | str] | None = None,
    shuffle: bool = False,
    start: Ensemble | None = None,
    missing_as: FeatureMatrix | None = None,
    feature_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Placed:
    """Put data into bins on workers, about as many documents on each; the bins are those of one machine.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    workers : sequence of str
        Addresses of those that get the data, in order of ranks; no others are made use of.
    source : Spread or Here
        The data, from `open_source`.
    edges : BinEdges, optional
        Upper ends of the bins: those of the training data for validation data. Found in the data unless given.
    max_bins : int, default 255
        Most bins of a feature, unless there are edges.
    categories : sequence of int or str, optional
        Features whose values are codes of categories, each of which gets a bin, unless there are edges.
    shuffle : bool, default False
        Whether rows of a query may stand apart in the partitions: they are moved together. Else that is an error.
    start : Ensemble, optional
        Model to go on from; its scores go with the documents.
    missing_as : array of float32, optional
        What missing values of each feature become.
    feature_names : sequence of str, optional
        The features that there must be, in this order, if columns have names: those of the training data.
    progress : callable, optional
        Called now and then with the number of tasks that are done, and that there are.

    Raises
    ------
    DataError
        When something is wrong with the data; it names the partition or the file.
    ClusterError
        When a worker was lost; `workers` of the error are those to do without.
    """
    if isinstance(source, Here):
        binned = _in_bins(source.data, edges, max_bins, categories, start, missing_as, feature_names)
        return _sent(client, workers, binned)
    n_passes = 2 if edges is None else 1  # after the first one
    n_tasks = len(source.partitions) * (1 + n_passes) + n_passes - 1 + len(workers)
    with _Tasks(client, workers, progress, n_tasks) as tasks:
        table = _looked_at(tasks, source, shuffle, feature_names)
        tasks.n_tasks -= n_passes * (len(source.partitions) - len(table.partitions))
        if edges is None:
            codes = _numbers_of(categories, table.n_features, table.names)
            edges = _found_edges(tasks, table, max_bins, missing_as)
            edges = edges.with_categories(codes) if codes else edges
        if table.n_features != edges.n_features:
            raise DataError(f"the bins are of {edges.n_features} features, the data has {table.n_features}")
        return _made(tasks, table, _Encoding(edges, start, missing_as, table.names), pinned=source.in_files)


def place_features(
    client: Client, workers: Sequence[str], source: Source, *, shuffle: bool = False, progress: Progress | None = None
) -> Placed:
    """Put data on workers with its features as they are, about as many documents on each.

    Parameters
    ----------
    client, workers, source, shuffle, progress
        As of `place`.
    """
    if isinstance(source, Here):
        data = source.data.data if isinstance(source.data, BinnedDataset) else source.data
        _ = data.y  # which there must be
        return _sent(client, workers, data.in_memory())
    n_tasks = 2 * len(source.partitions) + len(workers)
    with _Tasks(client, workers, progress, n_tasks) as tasks:
        table = _looked_at(tasks, source, shuffle, None)
        tasks.n_tasks -= len(source.partitions) - len(table.partitions)
        return _made(tasks, table, _Encoding(None, None, None, table.names), pinned=source.in_files)


def find_categories(
    client: Client, workers: Sequence[str], source: Spread, wanted: Collection[str | int]
) -> list[Categories]:
    """The categories that the rows of every partition have: of columns that are categories, and of wanted ones.

    When none are wanted, and the first partition that has rows has no such columns, no others are computed for it.
    """
    with _Tasks(client, workers, None, len(source.partitions)) as tasks:

        def found_in(partitions: Sequence[Partition], first: int = 0) -> list[Categories]:
            arguments = [(number, wanted) for number in range(first, first + len(partitions))]
            found: list[Categories] = tasks.results(tasks.each("categories", _categories, partitions, arguments))
            return found

        if wanted:
            return found_in(source.partitions)
        for number, partition in enumerate(source.partitions):
            (first,) = found_in([partition], number)
            if first.found:
                return [first, *found_in(source.partitions[number + 1 :], number + 1)]
            if first.is_known:
                break
        return []


def _numbers_of(features: Sequence[int | str] | None, n_features: int, names: Sequence[str] | None) -> list[int]:
    return [] if features is None else numbers_of(features, n_features, names, "categorical_features")


def over_partitions(
    client: Client,
    workers: Sequence[str],
    source: Source,
    function: Callable[[Iterator[FeatureMatrix]], T],
    *,
    name: str = "values",
    progress: Progress | None = None,
) -> list[T]:
    """What a function gives for the features of every partition that has rows; it is called where they are.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    workers : sequence of str
        Addresses of those that call it.
    source : Spread or Here
        The data, from `open_source`. What is here is one partition.
    function : callable
        Takes an iterator of float32 matrices of consecutive rows.
    name : str
        What the tasks are called on the dashboard, `rankwood-{name}`.
    progress : callable, optional
        Called now and then with the number of tasks that are done, and that there are.
    """
    if isinstance(source, Here):
        data = source.data.data if isinstance(source.data, BinnedDataset) else source.data
        return [function(X for _, X in data.feature_blocks())]
    with _Tasks(client, workers, progress, len(source.partitions)) as tasks:
        arguments = [(number, function) for number in range(len(source.partitions))]
        found = tasks.results(tasks.each(name, _on_features, source.partitions, arguments))
    return [of_part[0] for of_part in found if of_part]


def cut_evenly(offsets: OffsetArray, n_shares: int) -> OffsetArray:
    """Number of the first query of every share, and of all queries: consecutive whole queries, about as many documents.

    Examples
    --------
    >>> cut_evenly(np.array([0, 3, 4, 5, 20]), 3).tolist()
    [0, 3, 4, 4]
    """
    n_docs, n_queries = int(offsets[-1]), len(offsets) - 1
    aims = np.arange(1, n_shares) * n_docs / n_shares
    above = np.searchsorted(offsets, aims).clip(1, max(n_queries, 1))
    nearer_below = aims - offsets[above - 1] < offsets[above] - aims if n_queries else np.zeros(len(aims), dtype=bool)
    inner = np.where(nearer_below, above - 1, above).clip(0, n_queries)
    return np.concatenate([[0], inner, [n_queries]]).astype(OFFSET)


# Data of this process: it is put into bins here, and sent.


def _in_bins(
    data: Dataset | BinnedDataset,
    edges: BinEdges | None,
    max_bins: int,
    categories: Sequence[int | str] | None,
    start: Ensemble | None,
    missing_as: FeatureMatrix | None,
    feature_names: Sequence[str] | None,
) -> BinnedDataset:
    """The data in bins: those that it came in, if these are to be its bins."""
    came_in = data if isinstance(data, BinnedDataset) else None
    data = data.data if isinstance(data, BinnedDataset) else data
    _ = data.y  # which there must be
    order = column_order(data.feature_names, feature_names)
    if came_in is not None:
        is_wanted = edges is None or np.array_equal(came_in.edges.flat, edges.flat)
        edges = came_in.edges if edges is None else edges
        if not is_wanted or order is not None or (missing_as is not None and came_in.has_missing.any()):
            came_in = None
    if order is not None:
        data = data.select_features(order)
    if missing_as is not None and came_in is None:
        data = data.without_features().replace(read_blocks=partial(_filled_blocks, data, missing_as))
    codes = _numbers_of(categories, data.n_features, data.feature_names) if edges is None else []
    if came_in is None:
        edges = find_edges(data, max_bins).with_categories(codes) if edges is None else edges
        came_in = BinnedDataset.encode(data, edges)
    if not came_in.edges.has_categories(codes):
        raise DataError(
            "the data comes in bins that are not those of categorical_features: make them with "
            "BinnedDataset.make(data, categories=[...]), or give the data without bins"
        )
    if start is None or not data.can_read_features:
        return came_in
    return replace(came_in, known_scores=((start, data.per_row(start.score)),))


def _filled_blocks(data: Dataset, missing_as: FeatureMatrix) -> Iterator[FeatureMatrix]:
    for _, X in data.feature_blocks():
        yield _filled(X, missing_as)


def _sent(client: Client, workers: Sequence[str], held: BinnedDataset | Dataset) -> Placed:
    data, edges = (held.data, held.edges) if isinstance(held, BinnedDataset) else (held, None)
    cut = cut_evenly(data.offsets, len(workers))
    placed = _described(data, edges, workers, cut, has_weights=data.weights is not None)
    check_memory(client, placed.n_bytes)
    held, run, shares = held.without_features() if isinstance(held, BinnedDataset) else held, uuid.uuid4().hex, {}
    try:
        for rank, worker in enumerate(workers):
            key, share = f"rankwood-share-{run}-{rank}", held.select_queries(np.arange(cut[rank], cut[rank + 1]))
            shares[worker] = client.scatter({key: share}, workers=[worker])[key]
    except Exception:
        refuse_loss(client, workers)
        raise
    return replace(placed, shares=shares)


def _described(
    data: Dataset, edges: BinEdges | None, workers: Sequence[str], cut: OffsetArray, *, has_weights: bool
) -> Placed:
    """What is known of data before it is placed."""
    per_row = _room(edges, 1, data.n_features).nbytes + np.dtype(LABEL).itemsize
    per_row += has_weights * np.dtype(WEIGHT).itemsize
    n_rows = np.diff(data.offsets[cut])
    return Placed(
        n_docs=data.n_docs,
        n_queries=data.n_queries,
        n_features=data.n_features,
        feature_names=data.feature_names,
        edges=edges,
        has_weights=has_weights,
        has_query_weights=data.query_weights is not None,
        n_bytes={worker: int(n) * per_row for worker, n in zip(workers, n_rows, strict=True)},
        shares={},
    )


# Data in partitions: what the client does.


@dataclass(frozen=True)
class _Table:
    """What is known of partitions after a look at their rows: those that have rows, and how their rows make queries."""

    partitions: list[Partition]
    numbers: list[int]  # of these among all
    layout: Layout
    data: Dataset  # of all rows, query by query, without features, labels and weights
    has_weights: bool

    @property
    def queries(self) -> Queries:
        return self.data.queries

    @property
    def n_features(self) -> int:
        return self.data.n_features

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.data.feature_names

    def n_rows(self, place: int) -> int:
        return int(self.layout.first_rows[place + 1] - self.layout.first_rows[place])


def _looked_at(tasks: _Tasks, source: Spread, shuffle: bool, feature_names: Sequence[str] | None) -> _Table:
    heads = tasks.results(tasks.each("rows", _look, source.partitions, [(n,) for n in range(len(source.partitions))]))
    numbers = [number for number, head in enumerate(heads) if head.rows.n_rows]
    if not numbers:
        raise DataError("the data has no rows")
    heads = [heads[number] for number in numbers]
    names = same_columns(numbers, [head.names for head in heads], [head.n_features for head in heads])
    if (order := column_order(names, feature_names)) is not None and names is not None:
        names = [names[number] for number in order]
    if any(head.has_weights != heads[0].has_weights for head in heads):
        raise DataError("some partitions of the data have weights and some have none")
    layout = _layout(source, [head.rows for head in heads], shuffle)
    data = Dataset.without_matrix(
        n_features=heads[0].n_features,
        queries=replace(layout.queries, order=None),
        query_weights=source.query_weights,
        feature_names=names,
    )
    return _Table([source.partitions[number] for number in numbers], numbers, layout, data, heads[0].has_weights)


def _layout(source: Spread, rows: Sequence[PartRows], shuffle: bool) -> Layout:
    if source.group is None and any(part.ids is not None for part in rows):
        return Layout.of(rows, shuffle=shuffle)
    layout = Layout.of([replace(part, ids=None) for part in rows])
    if source.group is None and not source.alone:
        raise DataError("queries are missing: there is no column qid or query_id, and neither qid nor group is given")
    group = np.ones(layout.n_rows, dtype=OFFSET) if source.group is None else source.group
    return replace(layout, queries=find_queries(layout.n_rows, group=group))


def _found_edges(tasks: _Tasks, table: _Table, max_bins: int, missing_as: FeatureMatrix | None) -> BinEdges:
    n_rows, starts = table.layout.n_rows, table.layout.first_rows.tolist()
    arguments = [
        (number, table.names, starts[place], starts[place + 1], n_rows, max_bins, missing_as)
        for place, number in enumerate(table.numbers)
    ]
    sketches = merged = tasks.each("bins", _sketch, table.partitions, arguments)
    while len(merged) > 1:
        some = [merged[first : first + MERGED_AT_ONCE] for first in range(0, len(merged), MERGED_AT_ONCE)]
        merged = [tasks.call("bins-merge", BinSketch.merge, of_some) for of_some in some]
    found = tasks.call("bins-edges", BinSketch.edges, merged[0])
    tasks.done(sketches)
    edges: BinEdges = tasks.results([found])[0]
    return edges


def _made(tasks: _Tasks, table: _Table, encoding: _Encoding, *, pinned: bool) -> Placed:
    """The data on the workers."""
    cut = cut_evenly(table.queries.offsets, len(tasks.workers))
    placed = _described(table.data, encoding.edges, tasks.workers, cut, has_weights=table.has_weights)
    needed = {worker: 2 * n_bytes for worker, n_bytes in placed.n_bytes.items()}  # pieces, and all of them joined
    check_memory(tasks.client, needed)
    shares = _encoded(tasks, table, tasks.call("encode-how", _itself, encoding), cut, pinned=pinned)
    tasks.keep(shares)
    return replace(placed, shares=dict(zip(tasks.workers, shares, strict=True)))


def _encoded(tasks: _Tasks, table: _Table, how: Future, cut: OffsetArray, *, pinned: bool) -> list[Future]:
    """The shares of all workers; with `pinned`, partitions are read where most of their rows are to be."""
    bounds = table.queries.offsets[cut]
    moves = [_moves(table.layout.places(place), bounds) for place in range(len(table.partitions))]
    owners = [[tasks.workers[max(of_part, key=lambda move: move.n_rows).rank]] for of_part in moves]
    arguments = [
        (number, table.n_rows(place), how, table.layout.places(place), bounds)
        for place, number in enumerate(table.numbers)
    ]
    encoded = tasks.each("encode", _encode, table.partitions, arguments, owners if pinned else None)
    missing = [tasks.call("encode-missing", _item, one, 0) for one in encoded]
    has_missing = tasks.call("encode-missing", _any, missing)
    pieces: list[list[Future]] = [[] for _ in tasks.workers]
    for one, of_part in zip(encoded, moves, strict=True):
        for number, move in enumerate(of_part, 1):
            pieces[move.rank].append(tasks.call("encode-piece", _item, one, number))
    shares = []
    for rank, worker in enumerate(tasks.workers):
        data = table.data.select_queries(np.arange(cut[rank], cut[rank + 1]))
        arguments_of_share = pieces[rank], data, table.has_weights, how, has_missing
        shares.append(tasks.call("share", _share, *arguments_of_share, workers=[worker]))
    tasks.forget(but=[*missing, *shares])  # pieces go when they are joined
    tasks.done([*missing, *shares])
    return shares


@dataclass(frozen=True)
class _Move:
    """Rows of a partition that go to one rank, and where they stand there."""

    rank: int
    n_rows: int
    rows: slice | IndexArray
    places: slice | IndexArray


def _moves(places: slice | IndexArray, bounds: OffsetArray) -> list[_Move]:
    """Where the rows of a partition go that stand at `places` among all; a rank's begin at its bound."""
    moves = []
    for rank, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if isinstance(places, slice):
            low, high = max(first, places.start), min(last, places.stop)
            if low < high:
                rows, there = slice(low - places.start, high - places.start), slice(low - first, high - first)
                moves.append(_Move(rank, high - low, rows, there))
        elif len(chosen := np.flatnonzero((places >= first) & (places < last))):
            moves.append(_Move(rank, len(chosen), chosen, places[chosen] - first))
    return moves


# Data in partitions: what tasks do.


@dataclass(frozen=True)
class _Head:
    """Query ids of a partition's rows, and what else there is."""

    rows: PartRows
    names: list[str] | None
    n_features: int
    has_weights: bool


@dataclass(frozen=True)
class _Encoding:
    """What all partitions are encoded by; without edges features stay as they are."""

    edges: BinEdges | None
    start: Ensemble | None
    missing_as: FeatureMatrix | None
    names: tuple[str, ...] | None

    def put(self, X: FeatureMatrix, values: _Values, here: slice) -> NDArray[np.uint8]:
        """Encode rows into `values`; returns for every feature whether bins mark a missing value."""
        if self.edges is None:
            values[0, here] = X
            return np.zeros(X.shape[1], dtype=np.uint8)
        return encode_rows(X, self.edges, values, here, feature_names=self.names, n_threads=1)


def _room(edges: BinEdges | None, n_rows: int, n_features: int) -> _Values:
    """Room for bins; or for the features themselves, all of which then make up one group."""
    return np.empty((1, n_rows, n_features), dtype=FEATURE) if edges is None else empty_bins(n_rows, n_features)


@dataclass(frozen=True)
class _Piece:
    """Encoded rows of a partition, and where they stand in the share of a rank."""

    places: slice | IndexArray
    values: _Values
    y: FloatArray
    weights: FloatArray | None
    scores: FloatArray | None


def _look(partition: Partition, number: int) -> _Head:
    if is_empty(partition):
        return _Head(PartRows(0, None, np.zeros(0, OFFSET), None, None), None, 0, False)
    with naming(number, partition):
        part = NamedPart.of(partition)
        rows, _, weights = part.rows()
        return _Head(rows, part.names, part.n_features, weights is not None)


def _categories(partition: Partition, number: int, wanted: Collection[str | int]) -> Categories:
    if is_empty(partition):
        return Categories((), {}, is_known=False)
    with naming(number, partition):
        return categories_of(partition, wanted)


def _on_features(partition: Partition, number: int, function: Callable[[Iterator[FeatureMatrix]], Any]) -> list[Any]:
    if is_empty(partition):
        return []
    with naming(number, partition):
        return [function(NamedPart.of(partition).part.blocks())]


def _sketch(
    partition: Partition,
    number: int,
    names: Sequence[str] | None,
    first_row: int,
    last_row: int,
    n_rows: int,
    max_bins: int,
    missing_as: FeatureMatrix | None,
) -> BinSketch:
    with naming(number, partition):
        blocks = _blocks(NamedPart.of(partition, names), last_row - first_row, missing_as)
        return sketch_blocks(blocks, first_row, n_rows, max_bins, n_threads=1)


def _encode(
    partition: Partition,
    number: int,
    n_rows: int,
    how: _Encoding,
    places: slice | IndexArray,
    bounds: OffsetArray,
) -> list[Any]:
    """For every feature whether a value is missing, and the pieces for ranks."""
    with naming(number, partition):
        part = NamedPart.of(partition, how.names)
        _, y, weights = part.rows()
        values, scores = _room(how.edges, n_rows, part.n_features), np.empty(n_rows)
        has_missing, first = np.zeros(part.n_features, dtype=np.uint8), 0
        for X in _blocks(part, n_rows, how.missing_as):
            here = slice(first, first + len(X))
            has_missing |= how.put(X, values, here)
            if how.start is not None:
                scores[here] = how.start.score(X)
            first += len(X)
    pieces = [
        _Piece(
            move.places,
            np.ascontiguousarray(values[:, move.rows]),
            y[move.rows],
            None if weights is None else weights[move.rows],
            None if how.start is None else scores[move.rows],
        )
        for move in _moves(places, bounds)
    ]
    return [has_missing, *pieces]


def _blocks(part: NamedPart, n_rows: int, missing_as: FeatureMatrix | None) -> Iterator[FeatureMatrix]:
    """The features of a part, which must have as many rows as it had at first."""
    n_seen = 0
    for X in part.part.blocks():
        n_seen += len(X)
        if n_seen > n_rows:
            break
        yield X if missing_as is None else _filled(X, missing_as)
    if n_seen != n_rows:
        raise DataError(
            f"there were {n_rows} rows, and other ones when it was read again: its data must not change; "
            "persist a collection that comes out differently each time"
        )


def _filled(X: FeatureMatrix, missing_as: FeatureMatrix) -> FeatureMatrix:
    return np.where(np.isnan(X), missing_as, X)


def _share(
    pieces: Sequence[_Piece], data: Dataset, has_weights: bool, how: _Encoding, has_missing: NDArray[np.uint8]
) -> BinnedDataset | Dataset:
    values, y = _room(how.edges, data.n_docs, data.n_features), np.empty(data.n_docs, dtype=LABEL)
    weights = np.empty(data.n_docs, dtype=WEIGHT) if has_weights else None
    scores = np.empty(data.n_docs)
    for piece in pieces:
        values[:, piece.places], y[piece.places] = piece.values, piece.y
        if weights is not None:
            weights[piece.places] = piece.weights
        if piece.scores is not None:
            scores[piece.places] = piece.scores
    data = data.replace(y=y, weights=weights)
    if how.edges is None:
        return data.replace(X=values[0])
    known = () if how.start is None else ((how.start, scores),)
    return BinnedDataset(data, how.edges, values, has_missing, None, known)


def _itself(value: Any) -> Any:
    return value


def _item(values: Sequence[Any], number: int) -> Any:
    return values[number]


def _any(has_missing: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = np.bitwise_or.reduce(has_missing)
    return found


# Tasks and their ends.


class _Tasks:
    """Tasks of one placing, on some workers; at the end of the block those that are not kept are forgotten.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    workers : sequence of str
        Where tasks may run.
    progress : callable or None
        Called now and then with the number of tasks that are done, and that there are.
    n_tasks : int
        How many tasks will be waited for.
    """

    def __init__(self, client: Client, workers: Sequence[str], progress: Progress | None, n_tasks: int) -> None:
        import_distributed("a Dask cluster")
        self.client, self.workers, self.progress = client, list(workers), progress
        self.n_tasks, self._n_done, self._n_keys, self._run = n_tasks, 0, 0, uuid.uuid4().hex
        self._futures: dict[str, Future] = {}

    def __enter__(self) -> _Tasks:
        return self

    def __exit__(self, *error: object) -> None:
        open_ones = [future for future in self._futures.values() if not future.done()]
        with contextlib.suppress(OSError):  # the scheduler is gone
            if open_ones:
                self.client.cancel(open_ones, force=True)
        self.forget()

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, workers: Sequence[str] = ()) -> Future:
        """A task that calls a function; futures in arguments, and in lists of them, are replaced by what they hold."""
        options = {"workers": list(workers) or self.workers, "allow_other_workers": False, "pure": False}
        future = self.client.submit(function, *arguments, key=self._key(name), **options)
        self._futures[future.key] = future
        return future

    def each(
        self,
        name: str,
        function: Callable[..., Any],
        partitions: Sequence[Partition],
        arguments: Sequence[tuple[Any, ...]],
        workers: Sequence[Sequence[str]] | None = None,
    ) -> list[Future]:
        """A task for every partition, which may be a collection of Dask's that is computed for it."""
        from dask import delayed
        from dask.base import is_dask_collection

        if not any(is_dask_collection(value) for partition in partitions for value in partition):
            places = [self.workers] * len(partitions) if workers is None else workers
            return [
                self.call(name, _on_partition, function, *partition, *more, workers=where)
                for partition, more, where in zip(partitions, arguments, places, strict=True)
            ]
        calls = [
            delayed(_on_partition, pure=False)(function, *partition, *more, dask_key_name=self._key(name))
            for partition, more in zip(partitions, arguments, strict=True)
        ]
        futures: list[Future] = self.client.compute(calls, workers=self.workers, allow_other_workers=False)
        self._futures |= {future.key: future for future in futures}
        return futures

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """What tasks gave; they are forgotten."""
        self.done(futures)
        found: list[Any] = self.client.gather(list(futures))
        self.forget()
        return found

    def done(self, futures: Collection[Future]) -> None:
        """Wait for tasks; raise the error of one that failed, or a ClusterError when a worker is lost."""
        from distributed import wait

        open_ones, n_ticks = list(futures), 0
        while open_ones:
            with self.client.as_current(), contextlib.suppress(TimeoutError):  # it need not be the default client
                wait(open_ones, timeout=TICK)
            for future in open_ones:
                if future.status == "error":
                    raise future.exception()
                if future.status in ("cancelled", "lost"):
                    refuse_loss(self.client, self.workers)
                    raise CancelledError(f"the task {future.key} was cancelled")
            open_ones = [future for future in open_ones if not future.done()]
            if self.progress is not None:
                self.progress(self._n_done + len(futures) - len(open_ones), self.n_tasks)
            n_ticks += 1
            if n_ticks % LOOK == 0:
                refuse_loss(self.client, self.workers)
        self._n_done += len(futures)

    def forget(self, but: Iterable[Future] = ()) -> None:
        """Let go of tasks; those go on that others wait for."""
        kept = {future.key for future in but}
        for key in [key for key in self._futures if key not in kept]:
            self._futures.pop(key).release()

    def keep(self, futures: Iterable[Future]) -> None:
        """Leave tasks alone at the end of the block."""
        for future in futures:
            del self._futures[future.key]

    def _key(self, name: str) -> str:
        self._n_keys += 1
        return f"rankwood-{name}-{self._run}-{self._n_keys}"


def refuse_loss(client: Client, workers: Sequence[str]) -> None:
    """Raise a ClusterError when workers are not there any more."""
    lost = sorted(set(workers) - set(workers_of(client)))
    if lost:
        raise ClusterError(f"worker {' and '.join(lost)} has left the cluster while data was prepared", lost)


def _on_partition(function: Callable[..., Any], X: Any, y: Any, qid: Any, weights: Any, *arguments: Any) -> Any:
    return function((X, y, qid, weights), *arguments)
