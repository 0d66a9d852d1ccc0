"""Sketches of parts of a data set give the bins of the whole, bit for bit, however it is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rankwood import _native
from rankwood.data.bins import BinEdges, BinSketch, sampled_rows

VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 3e38, -3e38, 1e-45, np.inf, -np.inf, np.nan]) | st.floats(width=32)


def same_edges(first: BinEdges, second: BinEdges) -> bool:
    return first.flat.tobytes() == second.flat.tobytes() and first.offsets.tobytes() == second.offsets.tobytes()


def sketched(X, cuts, max_bins, order=None):
    ends = [0, *sorted(cuts), len(X)]
    parts = [BinSketch.of(X[a:b], a, len(X), max_bins, n_threads=1) for a, b in pairwise(ends)]
    parts = parts if order is None else [parts[place] for place in order.permutation(len(parts))]
    return BinSketch.merge(parts).edges(n_threads=1)


@given(
    npst.arrays(np.float32, npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=30), elements=VALUES),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(2, 12),
    st.randoms(use_true_random=False),
)
@settings(max_examples=300, deadline=None)
def test_edges_are_those_of_the_whole(X, cuts, max_bins, random):
    order = np.random.default_rng(random.randrange(2**32))
    found = sketched(X, [cut for cut in cuts if cut <= len(X)], max_bins, order)
    assert same_edges(found, BinEdges.find(X, max_bins, n_threads=1))


@pytest.mark.parametrize("n_rows", [199_999, 200_000, 200_001, 333_333])
def test_rows_are_sampled_by_their_number_in_the_whole(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1] * 20)  # some hundred values
    X[rng.random(X.shape) < 0.1] = np.nan
    assert same_edges(sketched(X, [1, 70_000, 70_003, 150_000], 255, rng), BinEdges.find(X, 255, n_threads=1))


@given(st.integers(1, 2_000_000), st.data())
@settings(max_examples=100, deadline=None)
def test_every_sampled_row_is_in_one_part(n_rows, data):
    n_sample = min(n_rows, _native.BIN_SAMPLE_ROWS)
    cuts = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=3)))
    ends = [0, *cuts, n_rows]
    found = [sampled_rows(a, b - a, n_rows) + a for a, b in pairwise(ends)]
    assert np.array_equal(np.concatenate(found), np.arange(n_sample) * n_rows // n_sample)


def test_the_two_zeros_are_one_value_whichever_comes_first():
    X = np.array([[-0.0], [0.0], [np.inf]], dtype=np.float32)
    assert [np.signbit(BinEdges.find(x).flat).tolist() for x in (X, X[[1, 0, 2]])] == [[False], [False]]
