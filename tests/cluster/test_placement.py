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
from rankwood.cluster.placement import cut_evenly, place
from rankwood.cluster.sources import open_source
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.errors import ClusterError, DataError

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
        assert share.rows is None and not share.data.can_read_features
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


@pytest.mark.parametrize("cuts", [[], [1], [250, 250, 251], [0, 0, 100, 100, 500], [7 * k for k in range(1, 70)]])
def test_odd_partitions(client, workers, cuts):
    """A query goes over several borders, partitions are empty: at the beginning, in the middle, at the end."""
    data = some_data()
    source = open_source(partitions_of(frame_of(data), cuts))
    assert_same(client, workers[: 1 + len(cuts) % 5], source, data, max_bins=255)
