"""Codes of values tell on which side of every threshold a value lies, whatever the search and the memory order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood import _native
from strategies.ensembles import AWKWARD_THRESHOLDS, values_near, with_sets

pytestmark = pytest.mark.native


def stumps(thresholds, missing_left, n_features):
    """One stump for every threshold of every feature in use: `thresholds` by feature."""
    trees = [
        (feature, float(t), 0.0, 1.0, bool(left))
        for feature, own in thresholds.items()
        for t, left in zip(own, missing_left[feature], strict=True)
    ]
    return rw.Ensemble.from_trees(trees, n_features=n_features)


def assert_codes_decide(model, X):
    """At every node a document goes left just when its code is at most the node's: in all layouts and widths."""
    values = X[:, model.feature].astype(np.float64)
    below = np.array(
        [np.searchsorted(model.trees.thresholds_of(node), values[:, node]) for node in range(model.n_nodes)]
    )
    goes_left = np.where(np.isnan(values), model.missing_left.astype(bool), below.T % 2 == 0)
    for dtype in (np.uint8, np.uint16):
        codes = _native.Codes(*model.trees.native(), model.n_features, int(np.iinfo(dtype).max))
        column, cut = np.array([codes.node(i) for i in range(len(model.feature))]).reshape(-1, 2).T
        wide = np.full((len(X), 2 * X.shape[1] + 3), np.nan, dtype=X.dtype)
        wide[:, 3::2] = X
        for rows in (X, np.asfortranarray(X), wide[:, 3::2], X[::-1].copy()[::-1], np.repeat(X, 3, axis=0)[::3]):
            by_row = np.empty((len(X), codes.n_columns), dtype=dtype)
            codes.by_row(rows, by_row)
            assert_array_equal(by_row[:, column] <= cut, goes_left)
            if dtype == np.uint8:
                by_column = np.empty((codes.n_columns, len(X)), dtype=np.int8)
                codes.by_column(rows, by_column)
                assert_array_equal(by_column.T.astype(int) + 128, by_row)


def draw_thresholds(rng, n):
    """Distinct ones: some float32 numbers, some between two of them, some that share the same two."""
    near = rng.normal(size=4 * n + 8) * 10.0 ** rng.integers(-3, 4, 4 * n + 8)
    near[::2] = near[::2].astype(np.float32)
    near[1::4] = np.nextafter(near[::4], np.inf)
    return np.sort(rng.choice(np.unique(near), n, replace=False))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_thresholds", [*range(1, 71), 127, 128, 254, 255, 256, 257, 600])
def test_every_number_of_thresholds(n_thresholds, dtype):
    # Six features, one without thresholds; NaN left, right, and the codes in between; more rows than a block has.
    rng = np.random.default_rng(n_thresholds)
    thresholds = {f: draw_thresholds(rng, n_thresholds) for f in (0, 1, 3, 4, 5)}
    if n_thresholds % 2:
        thresholds = {f: np.unique(own.astype(np.float32)) for f, own in thresholds.items()}  # none is rounded
    missing = {
        0: np.ones(len(thresholds[0])),
        1: np.zeros(len(thresholds[1])),
        3: thresholds[3] > np.median(thresholds[3]),
        4: np.arange(len(thresholds[4])) % 2,
        5: thresholds[5] >= 0,
    }
    model = stumps(thresholds, missing, n_features=6)
    near = [values_near(own, np.dtype(dtype)) for own in thresholds.values()]
    X = np.column_stack([rng.choice(near[f % len(near)], 140) for f in range(6)]).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    assert_codes_decide(model, X)


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 9, 37])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_of_rows(n_features, dtype):
    # Features in use here and there, each with another number of thresholds.
    rng = np.random.default_rng(n_features)
    used = np.unique(np.concatenate([rng.integers(0, n_features, 12), [n_features - 1]]))
    sizes = rng.choice([1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 31, 40, 100, 200, 300], len(used))
    thresholds = {int(f): draw_thresholds(rng, n) for f, n in zip(used, sizes, strict=True)}
    model = stumps(thresholds, {f: own > 0 for f, own in thresholds.items()}, n_features)
    pool = np.concatenate([values_near(own, np.dtype(dtype)) for own in thresholds.values()])
    for n_rows in [*range(41), 63, 64, 65, 95, 96, 97, 130]:
        assert_codes_decide(model, rng.choice(pool, (n_rows, n_features)).astype(dtype))


@given(data=st.data())
def test_awkward_thresholds_and_values(data):
    n_features = data.draw(st.integers(1, 6))
    threshold = st.one_of(st.sampled_from(AWKWARD_THRESHOLDS), st.floats(allow_nan=False))
    used = data.draw(st.lists(st.integers(0, n_features - 1), min_size=1, unique=True))
    thresholds = {f: np.array(data.draw(st.lists(threshold, min_size=1, max_size=40))) for f in sorted(used)}
    seed = data.draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    missing = {f: rng.random(len(own)) < rng.choice([0.0, 0.5, 1.0]) for f, own in thresholds.items()}
    dtype = np.dtype(data.draw(st.sampled_from([np.float32, np.float64])))
    pool = np.concatenate([values_near(own, dtype) for own in thresholds.values()])
    X = rng.choice(pool, (data.draw(st.integers(1, 80)), n_features)).astype(dtype)
    assert_codes_decide(stumps(thresholds, missing, n_features), X)


def test_rows_between_the_same_two_float32_numbers():
    # Every value shares its float32 neighbours with a threshold: none is told by rounded numbers.
    rng = np.random.default_rng(0)
    for n in (1, 5, 9, 30, 200):
        own = np.sort(rng.uniform(1.0, 2.0, n))
        X = np.repeat(np.nextafter(own, rng.choice([-np.inf, np.inf], n)), 3)[:, None]
        X = np.concatenate([X, own[:, None]])
        assert_codes_decide(stumps({0: own}, {0: own > 1.5}, 1), rng.permutation(X))


def test_what_does_not_fit_is_refused():
    model = stumps({0: [1.0]}, {0: [True]}, 2)
    native = (*model.trees.native(), 2)
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="max_code"):
        _native.Codes(*native, 7)
    codes = _native.Codes(*native, 255)
    with pytest.raises(ValueError, match="no such inner node"):
        codes.node(1)
    with pytest.raises(ValueError, match="one row per document"):
        codes.by_row(X, np.empty((2, 1), dtype=np.uint8))
    with pytest.raises(ValueError, match="max_code"):
        codes.by_row(X, np.empty((3, 1), dtype=np.uint16))
    with pytest.raises(ValueError, match="one column per document"):
        codes.by_column(X, np.empty((1, 2), dtype=np.int8))
    with pytest.raises(ValueError, match="255"):
        _native.Codes(*native, 65535).by_column(X, np.empty((1, 3), dtype=np.int8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splits_on_sets(dtype):
    rng = np.random.default_rng(0)
    thresholds = {f: draw_thresholds(rng, 40) for f in range(4)}
    plain = stumps(thresholds, {f: np.arange(40) % 2 for f in thresholds}, 4)
    for share in (0.1, 0.6, 1.0):
        model = with_sets(plain, 1, share=share)
        pool = values_near(model.trees.all_thresholds()[1], np.dtype(dtype))
        for n_rows in [*range(20), 63, 64, 65, 130]:
            assert_codes_decide(model, rng.choice(pool, (n_rows, 4)).astype(dtype))
