"""Contributions of features to scores: exactly Shapley values, whatever the model, the threads and the rows beside."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import explanations as slow
from rankwood import DataError, Ensemble, ModelError
from rankwood.system import available_isas
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds, with_sets

pytestmark = pytest.mark.native


def size_of(model):
    """What contributions of a model can be as large as: errors are compared with it."""
    leaves = np.repeat(np.abs(model.tree_weights), np.diff(model.leaf_offsets)) * np.abs(model.leaf_value)
    return leaves.sum() + abs(model.base) + 1e-300


def assert_near(found, expected, model):
    assert_allclose(found, expected, rtol=0, atol=1e-13 * size_of(model))


@given(model=ensembles(max_leaves=9), data=st.data())
@settings(max_examples=60)
def test_by_cover_they_are_shapley_values(model, data):
    X = data.draw(rows_near_thresholds(model, max_rows=11))
    covers = st.one_of(st.integers(0, 3), st.floats(0, 1e6))
    cover = np.array(data.draw(st.lists(covers, min_size=model.n_leaves, max_size=model.n_leaves)), dtype=float)
    found = rw.explain(model.replace(leaf_cover=cover), X)
    for row, values in zip(X, found.values, strict=True):
        base, expected = slow.by_cover(model, cover, row)
        assert_near(values, expected, model)
        assert_near(found.base_value, base, model)
    assert_near(found.scores, model.score(X), model)


@given(model=ensembles(max_leaves=9), data=st.data())
@settings(max_examples=60)
def test_against_a_background_they_are_shapley_values(model, data):
    X = data.draw(rows_near_thresholds(model, max_rows=11))
    background = data.draw(rows_near_thresholds(model, max_rows=5))
    found = rw.explain(model, X, background=background)
    for row, values in zip(X, found.values, strict=True):
        base, expected = slow.by_background(model, background, row)
        assert_near(values, expected, model)
        assert_near(found.base_value, base, model)
    assert_near(found.scores, model.score(X), model)


def deep_model():
    """Sets, missing values, chains, many features on a path, trees of one leaf and weights of both signs."""
    wide = big_ensemble(1, n_trees=3, n_leaves=200, n_features=150, shape="chain")
    bushy = with_sets(big_ensemble(2, n_trees=9, n_leaves=40, n_features=150), 3)
    single = Ensemble.from_trees([3.0], n_features=150, base=0.5)
    model = wide.concat(bushy, single)
    return model.replace(leaf_cover=np.random.default_rng(4).integers(0, 50, model.n_leaves).astype(float))


def rows_of(model, n_rows, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, model.n_features)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("background", [None, 40])
def test_bits_do_not_depend_on_threads_rows_beside_or_memory(background):
    model = deep_model()
    X = rows_of(model, 301)
    options = {} if background is None else {"background": rows_of(model, background, seed=1)}
    found = rw.explain(model, X, n_threads=1, **options)
    assert_near(found.scores, model.score(X), model)
    for threads in (2, 3, 7):
        assert_array_equal(rw.explain(model, X, n_threads=threads, **options).values, found.values)
    assert_array_equal(rw.explain(model, np.asfortranarray(X)[::-1], **options).values, found.values[::-1])
    assert_array_equal(rw.explain(model, X[77:78].tolist(), **options).values, found.values[77:78])
    single = X.astype(np.float32)
    assert_array_equal(
        rw.explain(model, single, **options).values, rw.explain(model, single.astype(np.float64), **options).values
    )


def digest():
    model = deep_model()
    X, background = rows_of(model, 43), rows_of(model, 9, seed=1)
    found = rw.explain(model, X), rw.explain(model, X, background=background)
    bits = hashlib.sha256(b"".join(one.values.tobytes() + one.base_value.hex().encode() for one in found))
    return bits.hexdigest()


def test_bits_do_not_depend_on_the_instruction_set():
    code = "from test_explain import digest; print(digest())"
    for name in available_isas():
        paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
        env = os.environ | {"RANKWOOD_ISA": name, "PYTHONPATH": paths}
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert result.stdout.strip() == digest(), name


def test_paths_of_more_features_than_a_word_has_bits():
    """Where the twin's sets of features would be too many: one document against one that differs in few features."""
    model = big_ensemble(5, n_trees=2, n_leaves=140, n_features=139, shape="chain").replace(
        feature=np.tile(np.arange(139), 2)
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=139)
    for _ in range(5):
        other = x.copy()
        other[rng.choice(139, 3, replace=False)] = rng.normal(size=3)
        found = rw.explain(model, [x], background=[other])
        differ = np.flatnonzero(x != other)

        def game(known, other=other, differ=differ):
            mixed = other.copy()
            mixed[differ[list(known)]] = x[differ[list(known)]]
            return model.score([mixed])[0]

        assert_near(found.values[0][differ], slow.shapley(len(differ), game)[1], model)
        assert not np.delete(found.values[0], differ).any()


def test_equal_background_documents_count_as_often_as_they_are_there():
    model = big_ensemble(7, n_trees=5, n_leaves=12)
    background = rows_of(model, 9)
    X = rows_of(model, 20, seed=2)
    once = rw.explain(model, X, background=background)
    many = rw.explain(model, X, background=np.tile(background, (70, 1)))
    assert_near(many.values, once.values, model)
    assert_near(many.base_value, once.base_value, model)


def test_counts_of_other_data():
    model = big_ensemble(8, n_trees=4, n_leaves=10)
    data, X = rows_of(model, 500), rows_of(model, 30, seed=1)
    cover = np.zeros(model.n_leaves)
    np.add.at(cover, model.leaf_offsets[:-1] + model.leaves(data).astype(int), 1.0)
    counted = rw.explain(model, X, data=data)
    noted = rw.explain(model.replace(leaf_cover=cover), X)
    assert_array_equal(counted.values, noted.values)
    assert_allclose(counted.base_value, model.score(data).mean(), rtol=1e-12)


def test_early_exit_is_left_aside_and_learners_are_taken():
    data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=5, seed=1)
    ranker = rw.LambdaMART(n_trees=20, n_leaves=6, min_docs_per_leaf=3).fit(data)
    found = rw.explain(ranker, data.X)
    assert_allclose(found.scores, ranker.ensemble_.score(data.X), rtol=1e-12, atol=1e-12)
    swift = ranker.ensemble_.replace(exit=rw.EarlyExit([16], [0.0], top=1))
    assert_array_equal(rw.explain(swift, data.X).values, found.values)


def test_views_of_an_explanation():
    pd = pytest.importorskip("pandas", reason="PANDAS ABSENT: pip install pandas")
    model = big_ensemble(9, n_trees=4, n_leaves=10, n_features=4).replace(feature_names=["a", "b", "c", "d"])
    X = rows_of(model, 6)
    found = rw.explain(model, pd.DataFrame(X, columns=["a", "b", "c", "d"])[["d", "a", "c", "b"]], data=X)
    frame = found.to_frame()
    assert list(frame.columns) == ["a", "b", "c", "d", "base value", "score"]
    assert_allclose(frame["score"], model.score(X))
    one = found.to_frame(2)
    assert sorted(one.index) == ["a", "b", "c", "d"]
    assert one["contribution"].abs().is_monotonic_decreasing
    assert_array_equal(one["value"].loc[["a", "b", "c", "d"]], X[2])
    assert_array_equal(found.importance, np.abs(found.values).mean(axis=0))
    pair = found.pair(1, 4)
    assert_array_equal(pair.difference, found.values[1] - found.values[4])
    assert_allclose(pair.score_difference, model.score(X[1:2])[0] - model.score(X[4:5])[0])
    table = pair.to_frame()
    assert table["difference"].abs().is_monotonic_decreasing
    assert_allclose(table["contribution above"] - table["contribution below"], table["difference"])
    assert_array_equal(table["value below"].loc[["a", "b", "c", "d"]], X[4])


def test_what_is_wrong_is_said():
    model = big_ensemble(1, n_trees=2, n_leaves=5)
    X = rows_of(model, 3)
    with pytest.raises(ModelError, match="does not know how much training data its leaves hold"):
        rw.explain(model, X)
    with pytest.raises(DataError, match="background or data, not both"):
        rw.explain(model, X, background=X, data=X)
    with pytest.raises(DataError, match="background has no rows"):
        rw.explain(model, X, background=X[:0])
    with pytest.raises(DataError, match="data has no rows"):
        rw.explain(model, X, data=X[:0])
    with pytest.raises(DataError, match="X has 2 features but the model was built on 8"):
        rw.explain(model, X[:, :2], background=X)
    with pytest.raises(ModelError, match=r"got str; models of other .* come in with rankwood\.load_model"):
        rw.explain("lgb.txt", [[0.0]])
    with pytest.raises(ModelError, match="takes an Ensemble or a fitted learner, got dict"):
        rw.explain({}, X)
    with pytest.raises(DataError, match="there is no row 3: 3 documents"):
        rw.explain(model, X, background=X).pair(0, 3)
    assert rw.explain(model, X[:0], background=X).values.shape == (0, 8)
    assert_array_equal(
        rw.explain(Ensemble.from_trees([], n_features=2, base=3.0), [[1.0, 2.0]], data=[[0.0, 0.0]]).values, 0
    )
