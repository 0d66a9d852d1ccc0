"""Splits on sets, such as categories: every engine decides them as counting thresholds does, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import ensemble as oracle
from rankwood import _native
from rankwood.model.unfold import without_sets
from rankwood.scoring.engines import ENGINES, exit_rule
from strategies.ensembles import big_ensemble, values_near, with_sets

pytestmark = pytest.mark.native

NATIVE = [name for name, engine in ENGINES.items() if not engine.limits.needs_compiler]
ROWS = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257, 530]


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def rows_of(model, n_rows, dtype=np.float64, seed=0):
    """Rows on thresholds and beside them, of whole numbers, missing, infinite."""
    rng = np.random.default_rng(seed)
    near = np.concatenate([values_near(model.trees.all_thresholds()[1], np.dtype(dtype)), np.arange(-3, 15)])
    return rng.choice(near, (n_rows, model.n_features)).astype(dtype)


def stumps(sets, n_features=3, *, seed=0):
    """A stump for every set, on some feature."""
    rng = np.random.default_rng(seed)
    trees = [
        (int(rng.integers(n_features)), list(thresholds), 0.0, float(rng.normal()), bool(rng.integers(2)))
        for thresholds in sets
    ]
    return rw.Ensemble.from_trees(trees, n_features=n_features)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("n_leaves", [2, 8, 31, 64, 200])
def test_batches_of_every_size(name, n_leaves):
    model = with_sets(big_ensemble(n_leaves, n_trees=20, n_leaves=n_leaves, n_features=4), n_leaves)
    assert model.topology().n_sets > 5
    for dtype in (np.float32, np.float64):
        X = rows_of(model, max(ROWS), dtype)
        leaves, scores = oracle.leaves(model, X), oracle.score(model, X)
        singles = oracle.score_single(model, X)
        prepared = rw.get_engine(name).prepare(model)
        for n in ROWS:
            assert_array_equal(prepared.leaves(X[:n]), leaves[:n])
            assert_array_equal(bits(prepared.score(X[:n])), bits(scores[:n]))
            assert_array_equal(bits(prepared.score(X[:n], precision="single")), bits(singles[:n]))
            assert_array_equal(bits(prepared.score(np.asfortranarray(X[:n]))), bits(scores[:n]))


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("n_sets", [1, 7, 8, 9, 255, 256, 257, 1024, 1025, 2600])
def test_every_number_of_sets(name, n_sets):
    """Columns of a byte's number and beyond, and several tables of a feature; some sets are there twice."""
    rng = np.random.default_rng(n_sets)
    sets = [np.unique(rng.integers(-20, 40, rng.integers(2, 12)) / 2) for _ in range(n_sets - n_sets // 5)]
    sets += [sets[i] for i in range(n_sets // 5)]
    model = stumps([thresholds for thresholds in sets if len(thresholds) > 1], n_features=1 if n_sets % 2 else 3)
    X = rows_of(model, 70)
    assert_array_equal(rw.get_engine(name).prepare(model).leaves(X), oracle.leaves(model, X))
    for row in X[:5]:
        assert_array_equal(rw.get_engine(name).prepare(model).leaves(row[None]), oracle.leaves(model, row[None]))


@pytest.mark.parametrize("n_categories", [2, 300, 70_000])
def test_many_categories(n_categories):
    rng = np.random.default_rng(n_categories)
    trees = []
    for _ in range(12):
        members = np.flatnonzero(np.diff(rng.random(n_categories + 1) < 0.5))
        trees.append((0, np.nextafter(np.append(members, n_categories + 1.0), -np.inf).tolist(), 1.0, rng.normal()))
    model = rw.Ensemble.from_trees(trees)
    X = rng.integers(-2, n_categories + 3, (500, 1)) + rng.choice([0.0, 0.5, 1 - 1e-9], (500, 1))
    expected = bits(rw.get_engine("reference").prepare(model).score(X))
    assert_array_equal(expected[:60], bits(oracle.score(model, X[:60])))
    for name in NATIVE:
        assert_array_equal(bits(rw.get_engine(name).prepare(model).score(X)), expected)


@pytest.mark.parametrize("name", NATIVE)
def test_infinite_thresholds_and_missing_values(name):
    sets = [[-np.inf, 0.0], [-np.inf, -1e308, 1e308], [-0.0, 5e-324], [1.0, np.nextafter(1.0, 2.0)]]
    trees = [(0, thresholds, 1.0, 2.0, missing) for thresholds in sets for missing in (False, True)]
    model = rw.Ensemble.from_trees(trees)
    values = [-np.inf, -1.7e308, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1e-320, 1.0, 1.0000000000000002, 1e308]
    X = np.array([*values, 1.7e308, np.inf, np.nan])[:, None]
    assert_array_equal(rw.get_engine(name).prepare(model).leaves(X), oracle.leaves(model, X))


def test_sets_beside_thresholds_of_the_same_feature():
    model = rw.Ensemble.from_trees(
        [(0, t / 7, 1.0, 2.0, t % 3 == 0) for t in range(600)] + [(0, [0.5, 2.0, 9.0], 1.0, 2.0)] * 3, n_features=2
    )
    X = rows_of(model, 200)
    for name in NATIVE:
        assert_array_equal(rw.get_engine(name).prepare(model).leaves(X), oracle.leaves(model, X))


@pytest.mark.parametrize("name", NATIVE)
def test_early_exit(name):
    model = with_sets(big_ensemble(3, n_trees=70, n_leaves=16, n_features=5), 1)
    model = model.replace(exit=rw.EarlyExit((16, 32, 48), (0.5, np.inf, 0.1), top=7))
    X = rows_of(model, 400, np.float32)
    group = [1, 0, 99, 200, 100]
    scores = model.score(X, group=group, engine=name)
    assert_array_equal(bits(scores), bits(without_sets(model).score(X, group=group, engine="reference")))
    assert (model.trees_evaluated(X, group=group, engine=name) < 70).any()


def test_the_scorer_of_librankwood():
    model = with_sets(big_ensemble(4, n_trees=40, n_leaves=20, n_features=5), 2)
    rule = exit_rule(model.replace(exit=rw.EarlyExit((), (), top=1)))
    arrays = (*model.trees.native(), model.n_features, model.tree_weights, model.base)
    scorer = _native.Scorer(*arrays, *rule, 0)
    X = rows_of(model, max(ROWS))
    expected = model.score(X, engine="reference")
    for n in ROWS[1:]:
        scores = np.empty(n)
        scorer.score(X[:n], scores, False)
        assert_array_equal(bits(scores), bits(expected[:n]))


def test_what_is_no_set_is_refused():
    good = {"set_offsets": [0, 1], "set_thresholds": [1.0]}
    stump = {"feature": [0], "threshold": [0.5], "left": [-1], "right": [-2], "missing_left": [False],
             "leaf_value": [1.0, 2.0], "node_offsets": [0, 1], "tree_weights": [1.0], "n_features": 1}  # fmt: skip
    assert rw.Ensemble(**stump, **good).score([[0.5], [0.7], [1.0], [1.5]]).tolist() == [1.0, 2.0, 2.0, 1.0]
    for change, message in [
        ({"set_thresholds": [0.5]}, "tree 0, node 0: the thresholds of its set do not rise"),
        ({"set_thresholds": [np.nan]}, "tree 0, node 0: the thresholds of its set do not rise"),
        ({"set_thresholds": [np.inf]}, "the last threshold of its set is infinite"),
        ({"set_offsets": [0, 2]}, "set_offsets must rise from 0 to the number of set_thresholds"),
        ({"set_offsets": [1, 1]}, "set_offsets must rise from 0"),
        ({"set_offsets": [0, -1, 1]}, r"set_offsets must have one entry per inner node and one more \(2\), got 3"),
        ({"set_offsets": None}, "go together"),
        ({"set_thresholds": None}, "go together"),
    ]:
        with pytest.raises(rw.ModelError, match=message):
            rw.Ensemble(**stump, **good | change)
    none = rw.Ensemble(**stump, set_offsets=[0, 0], set_thresholds=[])
    assert none.set_offsets is None
    assert none == rw.Ensemble(**stump)


def test_a_list_of_one_threshold_is_a_plain_split():
    assert rw.Ensemble.from_trees([(0, [0.5], 1.0, 2.0)]) == rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])


def test_models_are_joined_cut_and_selected():
    sets = with_sets(big_ensemble(5, n_trees=6, n_leaves=9, n_features=3), 3)
    plain = big_ensemble(6, n_trees=4, n_leaves=5, n_features=3)
    X = rows_of(sets, 100)
    both = plain.concat(sets, plain)
    assert_array_equal(both.leaves(X), np.hstack([plain.leaves(X), sets.leaves(X), plain.leaves(X)]))
    assert both.select(np.arange(4)).replace(tree_weights=plain.tree_weights, base=plain.base) == plain
    chosen = both.select([12, 5, 4, 0])
    assert_array_equal(chosen.leaves(X), both.leaves(X)[:, [12, 5, 4, 0]])
    again = rw.Ensemble.from_trees(
        [both.tree(t) for t in range(14)], tree_weights=both.tree_weights, base=both.base, n_features=3
    )
    assert again == both
    assert both.select([0, 1]).set_offsets is None


def test_more_sets_than_bitslice_has_columns():
    n = 50_001
    begin = np.arange(n, dtype=float)
    model = rw.Ensemble(
        feature=np.zeros(n, int), threshold=begin, left=np.full(n, -1), right=np.full(n, -2),
        missing_left=np.zeros(n, bool), leaf_value=np.tile([0.0, 1.0], n), node_offsets=np.arange(n + 1),
        tree_weights=np.ones(n), n_features=1, set_offsets=np.arange(n + 1), set_thresholds=begin + 2.5,
    )  # fmt: skip
    assert "bitslice" not in rw.available_engines(model)
    X = np.array([[-1.0], [0.5], [2.2], [2.5], [30_000.7], [1e9], [np.nan]])
    assert_array_equal(model.score(np.repeat(X, 10, axis=0))[::10], [0, 1, 3, 3, 2, 0, n])
