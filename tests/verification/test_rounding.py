"""Scores that are summed in float32: their rounding is no difference, and hides none."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw
from rankwood.scoring.agreement import adversarial_rows
from strategies.ensembles import big_ensemble

N_ROWS = 3000


@pytest.fixture(scope="module", params=[150, 400])
def pair(request):
    """An XGBoost model of many trees, and what is imported of it."""
    xgb = pytest.importorskip("xgboost", reason="PEER LEFT OUT: xgboost is not installed")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=2000)
    parameters = {"max_depth": 4, "eta": 0.05, "base_score": 10.0, "nthread": 1}
    booster = xgb.train(parameters, xgb.DMatrix(X, y), request.param)
    return rw.load_model(booster), booster


def test_a_right_import_agrees(pair):
    model, booster = pair
    result = rw.verify(model, booster, max_rows=N_ROWS)
    assert result.max_relative > result.tolerance  # so it is the rounding that is allowed for
    assert result, result
    assert 0.0 < result.rounding < 1e-3
    assert result.as_dict()["rounding"] == result.rounding
    assert "sums in float32" in str(result)
    assert rw.verify(booster, model, max_rows=N_ROWS)
    assert rw.verify(model, booster, max_rows=N_ROWS, tolerance=0.0)  # to the last bit


@pytest.mark.parametrize("tree", [0, 1, 75, 148, 149])
def test_one_wrong_leaf_is_found(pair, tree):
    """By its sign, or by a tenth: of late trees that is less than what float32 could round away in the worst case."""
    model, booster = pair
    rows = adversarial_rows(model, max_rows=N_ROWS).single
    counts = np.bincount(model.leaves(rows[np.isfinite(rows).all(axis=1)])[:, tree])
    leaf = int(model.leaf_offsets[tree]) + int(counts.argsort()[-3])
    for factor in (-1.0, 1.1):
        values = model.leaf_value.copy()
        values[leaf] *= factor
        result = rw.verify(model.replace(leaf_value=values), booster, max_rows=N_ROWS)
        assert not result, f"leaf {leaf}: {model.leaf_value[leaf]} times {factor}: {result}"


def test_a_wrong_leaf_that_most_rows_reach_is_found():
    """Seven of ten rows differ by less than the worst order could; the others tell which order it is."""
    model = big_ensemble(3, n_trees=300, n_leaves=8)
    values = model.leaf_value.astype(np.float32).astype(np.float64)
    values[-2:] = 1e-4, -1e-4
    trees = [*(model.tree(number) for number in range(299)), (0, 0.7, *values[-2:].tolist())]
    model = rw.Ensemble.from_trees(trees, n_features=model.n_features, base=10.0)
    X = np.random.default_rng(0).uniform(size=(2000, model.n_features)).astype(np.float32)
    wrong = model.leaf_value.copy()
    wrong[-2] = 2e-4

    def score(rows):
        return WAYS["in order"](terms(model, rows), np.float32(model.base))

    assert rw.verify(model, score, X, max_rows=1000)
    assert rw.verify(model.replace(leaf_value=wrong), score, X, max_rows=1000).n_disagree["data"] > 1000


def test_a_moved_threshold_is_found(pair):
    model, booster = pair
    node = int(model.node_offsets[-2])  # the root of the last tree, which adds least
    threshold = model.threshold.copy()
    threshold[node] = np.nextafter(np.float32(threshold[node]), np.float32(np.inf))
    assert not rw.verify(model.replace(threshold=threshold), booster, max_rows=N_ROWS)


def terms(model, X):
    weights = np.repeat(model.tree_weights, np.diff(model.leaf_offsets))
    return (weights * model.leaf_value)[model.leaf_offsets[:-1] + model.leaves(X)].astype(np.float32)


WAYS = {
    "in order": lambda t, base: np.cumsum(np.insert(t, 0, base, axis=1), axis=1, dtype=np.float32)[:, -1],
    "base last": lambda t, base: np.cumsum(t, axis=1, dtype=np.float32)[:, -1] + base,
    "from the end": lambda t, base: np.cumsum(t[:, ::-1], axis=1, dtype=np.float32)[:, -1] + base,
    "by size": lambda t, base: np.cumsum(-np.sort(-t, axis=1), axis=1, dtype=np.float32)[:, -1] + base,
    "pairwise": lambda t, base: np.ascontiguousarray(t).sum(axis=1) + base,
    "rounded once": lambda t, base: (t.astype(np.float64).sum(axis=1) + base).astype(np.float32),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_trees", [1, 3, 300])
def test_any_order_agrees_and_a_wrong_leaf_does_not(way, n_trees):
    model = big_ensemble(3, n_trees=n_trees, n_leaves=8)
    single = model.leaf_value.astype(np.float32).astype(np.float64)
    model = model.replace(leaf_value=single, tree_weights=np.ones(n_trees), base=float(np.float32(1e3)))

    def score(X):
        return WAYS[way](terms(model, X), np.float32(model.base))

    result = rw.verify(model, score, max_rows=N_ROWS, dtype="float32")
    assert result, result
    wrong = single.copy()
    wrong[-3] = -wrong[-3] + 0.5
    assert not rw.verify(model.replace(leaf_value=wrong), score, max_rows=N_ROWS, dtype="float32")


def test_sums_in_float64_are_allowed_nothing():
    model = big_ensemble(3, n_trees=300, n_leaves=8)
    for wrong in (lambda X: WAYS["by size"](terms(model, X), model.base).astype(np.float64), model.replace()):
        assert rw.verify(model, wrong, max_rows=N_ROWS).rounding == 0.0
    off = 3e-6 * float(np.abs(model.score(np.zeros((1, model.n_features))))[0])
    assert not rw.verify(model, lambda X: model.score(X) + off, max_rows=N_ROWS)


def test_a_model_without_trees():
    model = rw.Ensemble.from_trees([], n_features=2, base=0.1)
    assert rw.verify(model, lambda X: np.full(len(X), 0.1, dtype=np.float32))
    assert not rw.verify(model, lambda X: np.full(len(X), 0.2, dtype=np.float32))
