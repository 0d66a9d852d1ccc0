"""The scorer of librankwood: the reference's bits for batches of every size, and Python's choice of engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood import _native
from rankwood.scoring.engines import choose_engine, exit_rule
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pytestmark = pytest.mark.native

# One vector and eight of them are 16 and 128, 32 and 256 or 64 and 512 rows.
BORDERS = [15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1025]


def scorer_of(model, max_query_rows=0):
    rule = exit_rule(model) if model.exit else (np.zeros(0, np.int64), np.zeros(0), 1)
    arrays = (*model.trees.native(), model.n_features, model.tree_weights, model.base)
    return _native.Scorer(*arrays, *rule, max_query_rows)


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def assert_like_reference(scorer, model, X):
    for precision in ("double", "single"):
        scores = np.full(len(X), np.nan)
        scorer.score(X, scores, precision == "single")
        assert_array_equal(bits(scores), bits(model.score(X, engine="reference", precision=precision)))


def rows_for(model, n_rows, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, model.n_features)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    ("n_leaves", "shape", "n_features"),
    [(1, "random", 3), (2, "random", 70), (8, "random", 136), (30, "chain", 8), (32, "full", 200), (64, "random", 64),
     (65, "chain", 65), (66, "random", 129), (128, "random", 300), (300, "random", 8), (700, "full", 8)],
)  # fmt: skip
def test_batches_of_every_size(n_leaves, shape, n_features):
    model = big_ensemble(n_leaves, n_trees=37, n_leaves=n_leaves, n_features=n_features, shape=shape)
    scorer, X = scorer_of(model), rows_for(model, 1025)
    smallest = _native.smallest_bitslice_batch(model.n_trees, model.n_leaves, n_leaves) or 30
    for n_rows in sorted({0, *range(1, 13), smallest - 1, smallest, smallest + 1, *BORDERS}):
        rows = X[len(X) - n_rows :]
        assert_like_reference(scorer, model, rows)
        assert_like_reference(scorer, model, np.asfortranarray(rows, dtype=np.float32))


@given(data=st.data())
def test_any_model(data):
    model = data.draw(ensembles(max_trees=40, max_leaves=20))
    X = data.draw(rows_near_thresholds(model, max_rows=60))
    scorer = scorer_of(model)
    for n_rows in (len(X), 1, min(3, len(X))):
        assert_like_reference(scorer, model, X[:n_rows])


@pytest.mark.parametrize("n_leaves", [2, 8, 40, 66, 600])
@pytest.mark.parametrize("checkpoints", [(16,), (16, 48, 96)])
def test_early_exit_is_that_of_the_reference(n_leaves, checkpoints):
    rule = rw.EarlyExit(checkpoints, tuple(0.5 * (i + 1) for i in range(len(checkpoints))), top=4)
    model = big_ensemble(n_leaves, n_trees=100, n_leaves=n_leaves).replace(exit=rule)
    rng = np.random.default_rng(n_leaves)
    groups = {
        "many of few documents": rng.integers(0, 3, 1500),  # more queries than a batch takes
        "mixed": np.array([0, 1, 300, 0, 5, 8, 9, 200, 11, 64, 100, 1, 0]),
        "one": np.array([700]),
        "none": np.zeros(3, dtype=np.int64),
    }
    for group in groups.values():
        X, offsets = rows_for(model, int(group.sum())), np.concatenate([[0], np.cumsum(group)]).astype(np.int64)
        scorer = scorer_of(model, int(group.max()))
        for precision in ("double", "single"):
            scores, trees = np.full(len(X), np.nan), np.zeros(len(X), np.int32)
            scorer.score_queries(X, offsets, scores, trees, precision == "single")
            options = {"group": group, "engine": "reference", "precision": precision}
            if len(X):
                assert_array_equal(bits(scores), bits(model.score(X, **options)))
                assert_array_equal(trees, model.trees_evaluated(X, **options))
            without = np.full(len(X), np.nan)
            scorer.score_queries(X, offsets, without, None, precision == "single")
            assert_array_equal(bits(without), bits(scores))


def test_a_query_too_large_for_the_workspace_is_refused():
    model = big_ensemble(9, n_trees=40, n_leaves=8).replace(exit=rw.EarlyExit((16,), (0.5,)))
    scorer, X = scorer_of(model, 10), np.zeros((11, model.n_features))
    with pytest.raises(ValueError, match="more rows than there is room"):
        scorer.score_queries(X, np.array([0, 11]), np.zeros(11), None, False)


@pytest.mark.parametrize("n_leaves", [1, 8, 9, 16, 32, 64, 65, 100, 256, 400, 513, 9000])
def test_python_and_the_scorer_choose_alike(n_leaves):
    model = big_ensemble(1, n_trees=2, n_leaves=n_leaves)
    scorer = scorer_of(model)
    chosen = [choose_engine(model, n_rows) for n_rows in range(1, 120)]
    assert [scorer.is_bitsliced(n_rows) for n_rows in range(1, 120)] == [name == "bitslice" for name in chosen]
    assert n_leaves > 64 or set(chosen) == {"bitslice", "traverse"}
    assert _native.active_isa() == "baseline" or n_leaves > 512 or "bitslice" in chosen
    assert n_leaves <= 512 or set(chosen) == {"traverse"}


def test_the_engines_share_what_they_can():
    model = big_ensemble(3, n_trees=20, n_leaves=32)
    alone = [rw.get_engine(name).prepare(model).n_bytes for name in ("bitslice", "traverse")]
    assert max(alone) < scorer_of(model).n_bytes < sum(alone)
