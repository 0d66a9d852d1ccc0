"""Bins: exact where values are few, about equally full elsewhere; edges separate what they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.data.bins import BinEdges, BinnedDataset

pytestmark = pytest.mark.native

floats32 = st.floats(width=32, allow_nan=True, allow_infinity=True)


def column(values, max_bins: int = 255) -> np.ndarray:
    X = np.asarray(values, dtype=np.float32).reshape(-1, 1)
    return BinEdges.find(np.ascontiguousarray(X), max_bins, n_threads=1).flat


@given(arrays(np.float32, st.integers(1, 60), elements=floats32))
def test_few_distinct_values_have_a_bin_each(values):
    edges = column(values)
    distinct = np.unique(values[~np.isnan(values)]).astype(np.float64)
    assert len(edges) == max(len(distinct) - 1, 0)
    for edge, below, above in zip(edges, distinct[:-1], distinct[1:], strict=True):
        assert below <= edge < above


@given(arrays(np.float32, st.integers(1, 200), elements=floats32), st.integers(2, 20))
def test_bins_are_the_number_of_edges_below(values, max_bins):
    X = values.reshape(-1, 1)
    data = rw.Dataset(X, np.zeros(len(X)), group=[len(X)])
    binned = BinnedDataset.make(data, max_bins, n_threads=1)
    edges = binned.edges.flat
    assert np.all(np.diff(edges) > 0)
    assert len(edges) < max_bins
    expected = np.where(
        np.isnan(values), len(edges) + 1, np.searchsorted(edges, values.astype(np.float64), side="left")
    )
    assert_array_equal(binned.bins[0, :, 0], expected)
    assert binned.has_missing[0] == np.isnan(values).any()


def test_an_edge_lies_midway():
    assert column([0.0, 1.0, 4.0]).tolist() == [0.5, 2.5]
    assert column([-np.inf, 0.0, np.inf]).tolist() == [np.nextafter(0.0, -1.0), 0.0]
    assert column([-0.0, 0.0]).tolist() == []


def test_many_values_fill_bins_about_equally():
    values = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    X = values.reshape(-1, 1)
    binned = BinnedDataset.make(rw.Dataset(X, np.zeros(len(X)), group=[len(X)]), 100)
    counts = np.bincount(binned.bins[0, :, 0])
    assert len(counts) == 100
    assert counts.min() > 400
    assert counts.max() < 600


def test_a_frequent_value_has_a_bin_alone():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < 0.6, 0.0, rng.normal(size=20_000)).astype(np.float32)
    edges = column(values, 32)
    bin_of_zero = np.searchsorted(edges, 0.0)
    inside = values[(np.searchsorted(edges, values.astype(np.float64)) == bin_of_zero)]
    assert (inside == 0).mean() > 0.99


@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 40])
def test_features_lie_in_groups_of_sixteen(n_features):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 9, size=(30, n_features)).astype(np.float32)
    binned = BinnedDataset.make(rw.Dataset(X, np.zeros(30), group=[30]))
    for f in range(n_features):
        expected = np.searchsorted(np.unique(X[:, f]), X[:, f])
        assert_array_equal(binned.bins[f // 16, :, f % 16], expected)


def test_threads_do_not_change_the_bins():
    X = np.random.default_rng(2).normal(size=(9000, 20)).astype(np.float32)
    data = rw.Dataset(X, np.zeros(9000), group=[9000])
    one, three = (BinnedDataset.make(data, n_threads=n) for n in (1, 3))
    assert_array_equal(one.bins, three.bins)
    assert_array_equal(one.edges.flat, three.edges.flat)


def test_rows_are_taken_query_by_query_and_folds_reuse_the_bins():
    rng = np.random.default_rng(3)
    data = rw.Dataset(rng.normal(size=(50, 3)), rng.integers(3, size=50), qid=rng.integers(6, size=50))
    binned = BinnedDataset.make(data)
    assert_array_equal(binned.by_query(data.qid), np.repeat(data.queries.ids, data.queries.sizes))
    assert_array_equal(binned.in_input_order(binned.by_query(data.y)), data.y)
    part = binned.select_queries([4, 1])
    assert_array_equal(part.bins, BinnedDataset.encode(data.select_queries([4, 1]), binned.edges).bins)


def test_wrong_use_is_refused():
    data = rw.Dataset([[1.0, 2.0]], [0], group=[1])
    with pytest.raises(rw.DataError, match="max_bins must lie between 2 and 255, got 256"):
        BinnedDataset.make(data, 256)
    edges = BinEdges.find(data.X)
    with pytest.raises(rw.DataError, match="bins are of 2 features, the data has 1"):
        BinnedDataset.encode(rw.Dataset([[1.0]], [0], group=[1]), edges)
