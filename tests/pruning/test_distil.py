"""Leaf values fitted to the scores of the whole model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.fitting.outputs import TreeOutputs, unsigned_weights
from rankwood.fitting.ridge import Distil, distil_leaves

pytestmark = pytest.mark.native

EXACT = {"passes": 2000, "tolerance": 1e-11}


def one_hot(outputs: TreeOutputs, trees) -> np.ndarray:
    """Documents x leaves of all trees: 1 where a document is in a leaf of one of `trees`."""
    table = np.zeros((outputs.n_docs, len(outputs.values)))
    for tree in trees:
        table[np.arange(outputs.n_docs), outputs.leaf_offsets[tree] + outputs.codes[tree]] = 1.0
    return table


@settings(max_examples=30)
@given(data=st.data())
def test_it_is_least_squares(data):
    seed, n_trees = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(2, 8))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    trees = [
        (int(rng.integers(3)), float(rng.normal()), float(rng.normal()), float(rng.normal())) for _ in range(n_trees)
    ]
    model = rw.Ensemble.from_trees(trees, n_features=3, tree_weights=rng.choice([-0.5, 0.25, 1.0], n_trees), base=3.0)
    outputs = TreeOutputs.of(model, rw.Dataset(X, np.zeros(40), group=[40]), n_threads=data.draw(st.integers(1, 3)))
    weights, damping = unsigned_weights(model), data.draw(st.sampled_from([0.5, 10.0]))
    stay = np.sort(rng.choice(n_trees, data.draw(st.integers(1, n_trees)), replace=False))
    found = distil_leaves(outputs, weights, stay, Distil(damping=damping, **EXACT))
    A, here = one_hot(outputs, stay), np.zeros(n_trees)
    here[stay] = 1.0
    lacking = outputs.scores(weights) - outputs.scores(weights * here)
    change = np.linalg.solve(A.T @ A + damping * np.eye(A.shape[1]), A.T @ lacking)
    per_leaf = np.repeat(weights, 2)
    assert_allclose(found, outputs.values + change / per_leaf, rtol=1e-6, atol=1e-8)


def test_what_there_is_to_say_can_be_said(data_and_model):
    train, model = data_and_model
    outputs, weights = TreeOutputs.of(model, train), unsigned_weights(model)
    stay = np.arange(0, model.n_trees, 2)
    gone = weights.copy()
    gone[1::2] = 0.0
    whole, plain = outputs.scores(weights), outputs.scores(gone)
    near = outputs.with_values(distil_leaves(outputs, weights, stay)).scores(gone)
    assert np.square(near - whole).mean() < 0.2 * np.square(plain - whole).mean()
    assert_array_equal(distil_leaves(outputs, weights, np.arange(model.n_trees)), outputs.values)
    assert_array_equal(distil_leaves(outputs, weights, stay, Distil(passes=0)), outputs.values)
    others = np.repeat(np.isin(np.arange(model.n_trees), stay), np.diff(model.leaf_offsets))
    assert_array_equal(distil_leaves(outputs, weights, stay)[~others], outputs.values[~others])


def test_threads_and_labels_have_no_part_in_it(data_and_model):
    train, model = data_and_model
    stay = np.arange(0, model.n_trees, 3)
    expected = distil_leaves(TreeOutputs.of(model, train, n_threads=1), unsigned_weights(model), stay)
    for n_threads in (2, 5):
        outputs = TreeOutputs.of(model, train, n_threads=n_threads)
        assert_array_equal(distil_leaves(outputs, unsigned_weights(model), stay), expected)
    flat = rw.Dataset(train.X, np.zeros(train.n_docs), qid=train.qid)
    assert_array_equal(distil_leaves(TreeOutputs.of(model, flat), unsigned_weights(model), stay), expected)


def test_the_smallest_shares_go(data_and_model):
    train, model = data_and_model
    loud = model.reweigh(model.tree_weights * np.where(np.arange(model.n_trees) < 5, 10.0, 1e-3))
    result = rw.cleaver(loud, train, train, rates=(0.8,), variants="distil", judge=None,
                        settings=rw.PruningSettings(measure_speed=False))  # fmt: skip
    (row,) = result.rows[1:]
    assert row.n_trees == model.n_trees - round(0.8 * model.n_trees)
    assert_array_equal(row.ensemble.tree_weights[:5], loud.tree_weights[:5])
    assert row.valid == rw.evaluate(row.ensemble, train)["nDCG@10"]


@pytest.mark.parametrize("wrong", [{"passes": -1}, {"damping": -1.0}, {"damping": np.inf}, {"tolerance": 1.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(rw.RankwoodError, match="distilling needs passes from 0"):
        Distil(**wrong)


@pytest.fixture(scope="module")
def data_and_model():
    data = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8, seed=4)
    return data, rw.LambdaMART(n_trees=30, n_leaves=8, learning_rate=0.1).fit(data).ensemble_
