"""Engine traverse where it changes its ways: sizes of nodes, of tiles of paths, of blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pytestmark = pytest.mark.native


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def assert_like_reference(model, X, n_threads=(1, 3)):
    prepared, reference = rw.get_engine("traverse").prepare(model), rw.get_engine("reference").prepare(model)
    for threads in n_threads:
        assert_array_equal(prepared.leaves(X, n_threads=threads), reference.leaves(X))
        for precision in ("single", "double"):
            scores = prepared.score(X, precision=precision, n_threads=threads)
            assert_array_equal(bits(scores), bits(reference.score(X, precision=precision)))


def search_tree(thresholds):
    """A balanced tree of one feature whose leaf number is the number of thresholds below a value."""
    n = len(thresholds)
    threshold, left, right = np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32)
    pending = [(0, n, None, 0)]  # thresholds [first, end), the side that leads here, and from which node
    used = 0
    while pending:
        first, end, side, parent = pending.pop()
        if first == end:
            side[parent] = ~first
            continue
        node, middle = used, (first + end) // 2
        used += 1
        threshold[node] = thresholds[middle]
        if side is not None:
            side[parent] = node
        pending += [(first, middle, left, node), (middle + 1, end, right, node)]
    tree = rw.Tree(np.zeros(n, np.int32), threshold, left, right, leaf_value=np.arange(n + 1) / 8)
    return rw.Ensemble.from_trees([tree, 1.0, tree])


@given(data=st.data())
def test_many_small_trees(data):
    # More trees than paths that are walked side by side, and than a sum in single precision takes.
    model = data.draw(ensembles(max_trees=20, max_leaves=6))
    X = data.draw(rows_near_thresholds(model, max_rows=40))
    assert_like_reference(model, X)


@pytest.mark.parametrize("n_trees", [0, 1, 7, 8, 9, 16, 33, 1025])
@pytest.mark.parametrize("n_rows", [1, 2, 8, 31, 63, 64, 127, 129])
def test_tiles_of_every_size(n_trees, n_rows):
    model = big_ensemble(n_trees, n_trees=n_trees, n_leaves=9, n_features=5, decimals=1)
    X = np.random.default_rng(n_rows).normal(size=(n_rows, 5)).round(1)
    assert_like_reference(model, X)


def test_several_blocks_of_rows():
    model = big_ensemble(1, n_trees=9, n_leaves=30, n_features=400)
    X = np.random.default_rng(0).normal(size=(4500, 400)).astype(np.float32)
    assert_like_reference(model, X, n_threads=(1, 2, 5))


@pytest.mark.parametrize("n_leaves", [127, 128, 129, 130])
def test_the_largest_trees_of_small_nodes(n_leaves):
    for shape in ("chain", "full", "random"):
        model = big_ensemble(n_leaves, n_trees=10, n_leaves=n_leaves, shape=shape, decimals=1)
        X = np.random.default_rng(0).normal(size=(70, model.n_features)).round(1)
        assert_like_reference(model, X)


@pytest.mark.parametrize("n_features", [254, 255, 256, 300])
def test_more_columns_than_small_nodes_can_name(n_features):
    rng = np.random.default_rng(n_features)
    trees = [(f, rng.normal(), 0.0, 1.0 + f, bool(f % 2)) for f in range(n_features)]
    X = rng.normal(size=(50, n_features))
    X[rng.random(X.shape) < 0.2] = np.nan
    assert_like_reference(rw.Ensemble.from_trees(trees), X)


@pytest.mark.parametrize("n_thresholds", [255, 256, 32_766, 32_767, 32_768, 65_535, 65_536, 100_000])
def test_a_feature_with_so_many_thresholds(n_thresholds):
    rng = np.random.default_rng(n_thresholds)
    thresholds = np.unique(rng.normal(size=n_thresholds + 100))[:n_thresholds]
    prepared = rw.get_engine("traverse").prepare(search_tree(thresholds))
    on = rng.choice(thresholds, 300)
    x = np.concatenate(
        [on, np.nextafter(on, np.inf), np.nextafter(on, -np.inf), thresholds[[0, -1]], [np.inf, -np.inf]]
    )
    for values in (x, x.astype(np.float32)):
        below = np.searchsorted(thresholds, values.astype(np.float64))
        assert_array_equal(prepared.leaves(values[:, None]), np.column_stack([below, np.zeros_like(below), below]))
        assert_array_equal(prepared.score(values[:, None], precision="double"), below / 4 + 1)


def test_a_chain_through_70_000_features():
    # More columns than 16 bits can name. Every row leaves the chain at one node, given by the only 1 in it.
    n = 70_000
    left = np.append(np.arange(1, n), ~n).astype(np.int32)
    right = ~np.arange(n, dtype=np.int32)
    chain = rw.Tree(np.arange(n), np.full(n, 0.5), left, right, leaf_value=np.arange(n + 1.0))
    model = rw.Ensemble.from_trees([chain])
    X = np.zeros((5, n), dtype=np.float32)
    X[np.arange(4), [0, 7, 65_536, n - 1]] = 1
    prepared = rw.get_engine("traverse").prepare(model)
    assert prepared.leaves(X)[:, 0].tolist() == [0, 7, 65_536, n - 1, n]
    assert prepared.score(X).tolist() == [0, 7, 65_536, n - 1, n]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_stride(dtype):
    model = big_ensemble(2, n_trees=20, n_leaves=200, n_features=6)
    wide = np.random.default_rng(0).normal(size=(400, 18)).round(2).astype(dtype)
    for X in (wide[:, ::3], wide[::-1, 5::-1], wide[::2, 17:5:-2], np.asfortranarray(wide[:, :6]), wide[:0, :6]):
        assert_like_reference(model, X)
