"""Data placed on workers: the shares put together are what one machine has in bins, byte for byte."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import rankwood as rw
from rankwood.cluster.placement import cut_evenly, over_partitions, place
from rankwood.cluster.sources import open_source
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.errors import DataError

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
delayed = pytest.importorskip("dask").delayed

NAMES = [f"f{number}" for number in range(18)]


def some_data(n=500, *, seed=0, scattered=False, names=NAMES, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 18)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(n) < 0.1, 4] = np.nan
    X[n // 2 :, 7] = np.nan  # in some shares only
    qid = rng.integers(0, 23, n) * 7
    qid = qid if scattered else np.sort(qid)[::-1]
    return rw.Dataset(X, rng.integers(0, 5, n), qid=qid, feature_names=names, weights=rng.random(n), **more)


def frame_of(data, **more):
    return pd.DataFrame(data.X, columns=NAMES).assign(label=data.y, weight=data.weights, qid=data.qid, **more)


def partitions_of(frame, cuts):
    """A Dask DataFrame with these partitions."""
    parts = [frame.iloc[first:last] for first, last in zip([0, *cuts], [*cuts, len(frame)], strict=True)]
    return dd.from_delayed([delayed(part) for part in parts], meta=frame.iloc[:0])


def gathered(client, placed, workers):
    assert list(placed.shares) == list(workers)
    shares = client.gather(list(placed.shares.values()))
    for worker, future, share in zip(workers, placed.shares.values(), shares, strict=True):
        assert list(client.who_has([future])[future.key]) == [worker]
        assert share.rows is None
        assert not share.data.can_read_features
        assert placed.n_bytes[worker] >= share.bins.nbytes
    placed.release()
    return shares


def assert_same(client, workers, source, data, *, edges=None, max_bins=20, start=None, **options):
    placed = place(client, workers, source, edges=edges, max_bins=max_bins, start=start, **options)
    shares = gathered(client, placed, workers)
    edges = BinEdges.find(data.X, max_bins) if edges is None else edges
    whole = BinnedDataset.encode(data, edges)
    assert (placed.n_docs, placed.n_features, placed.n_queries) == (*data.shape, data.n_queries)
    assert placed.feature_names == data.feature_names
    assert placed.has_weights == (data.weights is not None)
    assert placed.has_query_weights == (data.query_weights is not None)
    assert np.concatenate([share.bins for share in shares], axis=1).tobytes() == whole.bins.tobytes()
    for name in ("y", "weights"):
        values = getattr(data, name)
        found = [getattr(share.data, name) for share in shares]
        if values is None:
            assert all(one is None for one in found)
        else:
            assert np.concatenate(found).tobytes() == whole.by_query(values).tobytes()
    if data.query_weights is not None:
        assert np.concatenate([share.data.query_weights for share in shares]).tolist() == data.query_weights.tolist()
    assert np.concatenate([share.data.queries.ids for share in shares]).tolist() == data.queries.ids.tolist()
    assert np.concatenate([share.data.queries.sizes for share in shares]).tolist() == data.queries.sizes.tolist()
    for share in [*shares, placed]:
        assert share.edges.flat.tobytes() == edges.flat.tobytes()
        assert share.edges.offsets.tolist() == edges.offsets.tolist()
    for share in shares:
        assert share.has_missing.tolist() == whole.has_missing.tolist()
        assert share.data.feature_names == data.feature_names
    if start is not None:
        scores = np.concatenate([share.known_scores[0][1] for share in shares])
        assert scores.tobytes() == whole.by_query(start.score(data.X)).tobytes()
        assert all(share.known_scores[0][0] == start for share in shares if share.n_docs)


def as_frame(data):
    return open_source(dd.from_pandas(frame_of(data), npartitions=4))


def as_array(data):
    X, y, qid = da.from_array(data.X, chunks=(61, 5)), da.from_array(data.y, chunks=100), data.qid
    return open_source(X, y, qid=qid, sample_weight=da.from_array(data.weights, chunks=500))


def as_frame_and_series(data):
    frame = dd.from_pandas(frame_of(data), npartitions=3)
    return open_source(frame[NAMES], frame["label"], qid=frame["qid"], sample_weight=frame["weight"])


def as_arrays_of_unknown_sizes(data):
    frame = dd.from_pandas(frame_of(data), npartitions=3)
    X, y, qid, weights = (frame[name].to_dask_array() for name in (NAMES, "label", "qid", "weight"))
    return open_source(X, y, qid=qid, sample_weight=weights)


def as_delayed(data):
    parts = [data[rows] for rows in np.split(np.arange(500), [3, 4, 333])]
    return open_source([delayed((part.X, part.y, part.qid, part.weights)) for part in parts])


def as_delayed_frames(data):
    frames = [frame_of(data[rows]) for rows in np.split(np.arange(500), [3, 4, 333])]
    frames[1] = frames[1][frames[1].columns[::-1]]
    return open_source([delayed(frame) for frame in frames])


def as_delayed_tables(data):
    return open_source([delayed(pa.table(frame_of(data[rows]))) for rows in np.array_split(np.arange(500), 3)])


def in_memory(data):
    return open_source(data)


def in_bins(data):
    return open_source(BinnedDataset.make(data, 20))


SOURCES = [
    as_frame,
    as_array,
    as_frame_and_series,
    as_arrays_of_unknown_sizes,
    as_delayed,
    as_delayed_frames,
    as_delayed_tables,
    in_memory,
    in_bins,
]
WITHOUT_NAMES = (as_array, as_delayed, as_arrays_of_unknown_sizes)


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_source(client, workers, source):
    data = some_data(names=None if source in WITHOUT_NAMES else NAMES)
    assert_same(client, workers, source(data), data)


@pytest.mark.parametrize("cuts", [[], [1], [250, 250, 251], [0, 0, 100, 100, 500], [17 * k for k in range(1, 29)]])
def test_odd_partitions(client, workers, cuts):
    """A query goes over several borders, partitions are empty: at the beginning, in the middle, at the end."""
    data = some_data()
    source = open_source(partitions_of(frame_of(data), cuts))
    assert_same(client, workers[: 1 + len(cuts) % 5], source, data, max_bins=255)


@pytest.mark.parametrize("kind", ["folder", "files", "csv", "txt"])
def test_files(client, workers, tmp_path, kind):
    data = some_data()
    files = [tmp_path / f"{number}.{'parquet' if kind in ('folder', 'files') else kind}" for number in range(3)]
    for file, rows in zip(files, np.split(np.arange(500), [10, 331]), strict=True):
        if kind == "txt":
            rw.write_svmlight(data.replace(weights=None)[rows], file)
        elif kind == "csv":
            rw.write_csv(data[rows], file)
        else:
            parquet.write_table(pa.table(frame_of(data[rows], docid="d")), file, row_group_size=40)
    if kind == "folder":
        parquet.write_table(pa.table(frame_of(data[:0], docid="d")), tmp_path / "empty.parquet")
    given = {"folder": tmp_path, "txt": rw.open_data(files) if kind == "txt" else None}.get(kind, files)
    assert_same(client, workers, open_source(given), rw.read_data(files, doc_ids=False))


@pytest.mark.parametrize("source", [as_frame, as_delayed, in_memory])
def test_rows_are_moved_when_asked(client, workers, source):
    data = some_data(scattered=True, names=None if source in WITHOUT_NAMES else NAMES)
    opened = source(data)
    if source is not in_memory:
        with pytest.raises(DataError, match=r"the rows of query \d+ stand apart: rows .* shuffle=True"):
            place(client, workers, opened)
    assert_same(client, workers, opened, data, shuffle=True)


def test_weights_of_queries_and_validation_data_and_scores(client, workers):
    n_queries = some_data().n_queries
    train = some_data(query_weights=np.arange(n_queries) + 1.0)
    start = rw.LambdaMART(n_trees=2, n_leaves=4, random_state=0).fit(train).ensemble_
    query_weight = da.from_array(train.query_weights)
    frame = dd.from_pandas(frame_of(train), npartitions=4)
    source = open_source(frame, query_weight=query_weight, client=client)
    assert_same(client, workers, source, train, start=start)
    assert_same(client, workers, open_source(train), train, start=start)
    valid, edges = some_data(seed=1), BinEdges.find(train.X, 20)
    turned = dd.from_pandas(frame_of(valid)[[*NAMES[::-1], "qid", "weight", "label"]], npartitions=3)
    assert_same(client, workers, open_source(turned), valid, edges=edges, start=start, feature_names=NAMES)
    other = valid.select_features(np.arange(18)[::-1])
    assert_same(client, workers, open_source(other), valid, edges=edges, start=start, feature_names=NAMES)
    with pytest.raises(DataError, match="X names its features differently than the model: there is no 'f0'"):
        place(client, workers, open_source(turned.rename(columns={"f0": "g"})), edges=edges, feature_names=NAMES)
    with pytest.raises(DataError, match="the bins are of 18 features, the data has 17"):
        place(client, workers, open_source(turned.drop(columns="f0")), edges=edges)
    with pytest.raises(DataError, match=r"query_weights must have one value per query \(23\), got shape \(2,\)"):
        place(client, workers, open_source(frame, query_weight=[1.0, 2.0]))


def test_missing_values_become_others(client, workers):
    data, missing_as = some_data(), np.linspace(-1, 1, 18, dtype=np.float32)
    full = data.replace(X=np.where(np.isnan(data.X), missing_as, data.X))
    for source in (as_frame(data), open_source(data)):
        assert_same(client, workers, source, full, missing_as=missing_as)
        sums = over_partitions(client, workers, source, count_missing)
        assert sum(sums).tolist() == np.isnan(data.X).sum(axis=0).tolist()


def test_bins_that_data_came_in(client, workers):
    data, missing_as = some_data(), np.ones(18, dtype=np.float32)
    full = data.replace(X=np.where(np.isnan(data.X), missing_as, data.X))
    start = rw.LambdaMART(n_trees=2, n_leaves=4, random_state=0).fit(data).ensemble_
    binned, edges = BinnedDataset.make(data, 20), BinEdges.find(data.X, 9)
    assert_same(client, workers, open_source(binned), data, start=start)
    assert_same(client, workers, open_source(binned), data, edges=edges)
    assert_same(client, workers, open_source(binned), full, edges=binned.edges, missing_as=missing_as)


def count_missing(blocks):
    return sum(np.isnan(X).sum(axis=0) for X in blocks)


def test_queries_by_size_and_documents_alone(client, workers):
    data = some_data(names=None).replace(weights=None)
    X, y = da.from_array(data.X, chunks=(90, 18)), da.from_array(data.y, chunks=90)
    by_size = rw.Dataset(data.X, data.y, group=[100, 0, 399, 1])
    assert_same(client, workers, open_source(X, y, group=[100, 0, 399, 1]), by_size)
    alone = rw.Dataset(data.X, data.y, group=np.ones(500, dtype=int))
    assert_same(client, workers, open_source(X, y, alone=True), alone)
    with pytest.raises(DataError, match="queries are missing: there is no column qid or query_id"):
        place(client, workers, open_source(X, y))


def test_more_workers_than_queries_and_ids_that_are_texts(client, workers):
    data = rw.Dataset(np.arange(6, dtype=np.float32)[:, None], np.arange(6), qid=list("bbbbaa"), feature_names=["f"])
    frame = pd.DataFrame({"f": data.X[:, 0], "relevance": data.y, "query_id": data.qid}, index=[5, 5, 1, 7, 0, 2])
    assert_same(client, workers, open_source(partitions_of(frame, [1, 3, 5])), data)
    categories = frame.assign(query_id=frame["query_id"].astype("category"))
    assert_same(client, workers, open_source([client.submit(lambda: categories, pure=False)]), data)


def test_columns_without_names_have_none(client, workers):
    data = some_data(names=None).replace(weights=None)
    frame = pd.DataFrame(data.X).assign(qid=data.qid, label=data.y)
    assert_same(client, workers, open_source([delayed(frame)]), data)


def broken(**changes):
    frame = frame_of(some_data())
    return open_source(partitions_of(frame.assign(**changes), [100, 200]))


def with_gap(values, row=250):
    values = np.array(values, dtype=object)
    values[row] = None
    return values


MISTAKES = {
    "no labels": (
        lambda: open_source(dd.from_pandas(frame_of(some_data()).drop(columns="label"), npartitions=2)),
        r"partition [01]: this data has no labels to learn from or to evaluate by: give a column label",
    ),
    "a label is NaN": (
        lambda: broken(label=np.where(np.arange(500) == 250, np.nan, 1.0)),
        "partition 2: y of row 50 is nan: it must be a finite number",
    ),
    "a weight is negative": (
        lambda: broken(weight=np.where(np.arange(500) == 100, -1.0, 1.0)),
        r"partition 1: weights of row 0 is -1.0: it must not be negative",
    ),
    "an id is missing": (
        lambda: broken(qid=with_gap(np.repeat("a", 500))),
        "partition 2: qid of row 50 is missing: every row needs a query id",
    ),
    "a feature is a text": (lambda: broken(f1="word"), "partition .*: column 'f1' holds .*: features must be numbers"),
    "two columns of labels": (lambda: broken(relevance=1.0), "columns label and relevance mean the same"),
    "no queries": (
        lambda: open_source(dd.from_pandas(frame_of(some_data()).drop(columns="qid"), npartitions=2)),
        "queries are missing: there is no column qid or query_id",
    ),
    "no rows": (lambda: open_source([delayed(frame_of(some_data()).iloc[:0])]), "the data has no rows"),
    "other columns": (
        lambda: open_source(
            [delayed(frame_of(some_data())), delayed(frame_of(some_data()).rename(columns={"f1": "g"}))]
        ),
        "partition 1: its columns are not those of partition 0: f1, g",
    ),
    "other widths": (
        lambda: open_source([delayed((np.ones((2, n)), [0, 1], [1, 1])) for n in (3, 4)]),
        "partition 1: it has 4 features, partition 0 has 3",
    ),
    "weights somewhere": (
        lambda: open_source([delayed((np.ones((1, 1)), [0], [1])), delayed((np.ones((1, 1)), [0], [1], [1.0]))]),
        "some partitions of the data have weights and some have none",
    ),
    "too few labels": (
        lambda: open_source([delayed((np.ones((2, 1)), [0], [1, 1]))]),
        r"partition 0: y must have one value per row \(2\), got 1",
    ),
    "no table": (lambda: open_source([delayed("text")]), "partition 0: X must be a matrix of numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_one_sentence(client, workers, mistake):
    make, sentence = MISTAKES[mistake]
    with pytest.raises(DataError, match=sentence):
        place(client, workers, make())


def test_sources_that_do_not_fit_together(tmp_path):
    data = some_data()
    X, frame = da.from_array(data.X, chunks=(90, 18)), dd.from_pandas(frame_of(data), npartitions=3)
    for arguments, sentence in [
        ((X, data.y[1:]), r"y must have one value per row \(500\), got shape \(499,\)"),
        ((X, da.from_array(data.y[1:])), r"y must have one value per row \(500\), got shape \(499,\)"),
        ((frame[NAMES], data.y), "y is in memory, but how many rows the partitions of X have is not known"),
        ((frame[NAMES], da.from_array(data.y, chunks=90)), "y has 6 partitions and X has 3"),
        ((data, data.y), "files and Datasets hold their own labels, queries and weights: leave y out"),
        ((data.X, X[:, 0]), "y or qid is a Dask collection and X is not"),
        ((X[:, 0], data.y), "X must be a Dask DataFrame or a Dask array of two dimensions, got Array"),
        ((frame["qid"], data.y), "X must be a Dask DataFrame or a Dask array of two dimensions, got Series"),
        ((tmp_path,), "there is no Parquet file in this folder"),
        ((tmp_path / "no.parquet",), "no.parquet: there is no such file"),
        (([delayed(1)], data.y), "partitions must give"),
    ]:
        with pytest.raises(DataError, match=sentence):
            open_source(*arguments)


def test_files_that_workers_do_not_see(client, workers, tmp_path):
    rw.write_parquet(some_data(), tmp_path / "a.parquet")
    source = open_source(tmp_path)
    (tmp_path / "a.parquet").rename(tmp_path / "b.parquet")
    sentence = (
        f"{re.escape(str(tmp_path))}/a.parquet: worker tcp://.* has no such file; workers read the data themselves"
    )
    with pytest.raises(DataError, match=sentence):
        place(client, workers, source)


def test_partitions_that_change_are_told(client, workers):
    def at_random():
        n = int.from_bytes(np.random.default_rng().bytes(4), "little")
        return np.zeros((n % 10_000 + 1, 1)), np.zeros(n % 10_000 + 1), np.zeros(n % 10_000 + 1)

    with pytest.raises(DataError, match=r"partition 0: there were .* rows, and other ones when it was read again"):
        place(client, workers, open_source([delayed(at_random)()]))


def test_an_error_of_the_users_is_what_it_is(client, workers):
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        place(client, workers, open_source([delayed(fails)()]))


def test_progress_counts_tasks(client, workers):
    told = []
    placed = place(client, workers, as_frame(some_data()), progress=lambda *counts: told.append(counts))
    placed.release()
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (4 + 4 + 1 + 4 + 5,) * 2
    assert {total for _, total in told} == {18}


def test_a_worker_that_dies_is_done_without(client, workers, tmp_path):
    from rankwood.cluster.launch import supervise

    data, marker = some_data(), tmp_path / "dead"

    def deadly(frame):
        import os

        if not marker.exists():
            marker.touch()
            os._exit(1)
        return frame

    source = open_source(dd.from_pandas(frame_of(data), npartitions=4).map_partitions(deadly, meta=frame_of(data)))
    attempts = []

    def attempt(workers):
        attempts.append(workers)
        assert_same(client, workers, source, data)

    supervise(client, attempt)
    assert len(attempts) == 2


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 6))
def test_shares_are_even(sizes, n_shares):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cut = cut_evenly(offsets, n_shares)
    assert len(cut) == n_shares + 1
    assert (cut[0], cut[-1]) == (0, len(sizes))
    assert np.all(np.diff(cut) >= 0)
    if sizes:
        assert np.diff(offsets[cut]).max() <= sum(sizes) / n_shares + max(sizes)
