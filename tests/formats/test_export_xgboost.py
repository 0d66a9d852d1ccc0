"""XGBoost's model file, JSON and UBJSON, read by XGBoost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.formats.xgboost import xgboost_order
from strategies.ensembles import big_ensemble
from strategies.exports import exported, models_and_rows, single_bound

xgboost = pytest.importorskip("xgboost")


def load(content):
    return xgboost.Booster(model_file=bytearray(content))


@settings(max_examples=40)
@given(models_and_rows(dtype=np.float32), st.booleans())
def test_xgboost_reaches_the_same_leaves(given_, binary):
    model, X = given_
    X = np.where(np.isinf(X), np.float32(1), X)  # which XGBoost refuses
    content, messages = exported(model, "xgboost", binary=binary)
    booster, matrix = load(content), xgboost.DMatrix(X)
    leaves = booster.predict(matrix, pred_leaf=True).reshape(len(X), -1)
    expected = [xgboost_order(model, tree).leaves[model.leaves(X)[:, tree]] for tree in range(model.n_trees)]
    assert_array_equal(leaves, np.column_stack(expected))
    scores = booster.predict(matrix, output_margin=True)
    assert_allclose(scores, model.score(X), rtol=0, atol=single_bound(model))
    if not messages:
        assert_array_equal(scores, model.score(X))


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror"])
@pytest.mark.parametrize("suffix", [".ubj", ".json"])
def test_large_model_in_a_file(tmp_path, objective, suffix):
    model = big_ensemble(3, n_trees=30, n_leaves=64)
    named = model.replace(feature_names=["bm25", "größe", "a b", 'c"d', "e(f)", "g|h", "i'j", "k=l"])
    path = tmp_path / f"model{suffix}"
    with pytest.warns(rw.ConversionWarning, match="XGBoost sums leaf values in float32: scores differ by up to"):
        rw.save_as(named, path, "xgboost", objective=objective)
    booster = xgboost.Booster(model_file=path)
    X = np.random.default_rng(0).normal(size=(500, 8)).round(2).astype(np.float32)
    assert booster.feature_names == list(named.feature_names)
    scores = booster.predict(xgboost.DMatrix(X, feature_names=list(named.feature_names)))
    assert_allclose(scores, model.score(X), rtol=0, atol=single_bound(model))
    assert booster.num_boosted_rounds() == 30


def test_model_without_trees_scores_its_base(tmp_path):
    content, _ = exported(rw.Ensemble.from_trees([], n_features=2, base=3.0), "xgboost")
    assert load(content).predict(xgboost.DMatrix(np.zeros((2, 2)))).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", ["a[b", "a<b", "new\nline", "bell\a", "half \ud800", ""])
def test_names_that_xgboost_cannot_hold_are_refused(name):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=[name])
    with pytest.raises(rw.ModelError, match="XGBoost cannot hold"):
        exported(model, "xgboost")


def test_refusals():
    huge = rw.Ensemble.from_trees([(0, 0.5, 1e39, 2.0)])
    with pytest.raises(rw.ModelError, match="too large"):
        exported(huge, "xgboost")
    with pytest.raises(rw.ModelError, match="objective must leave scores as they are"):
        exported(rw.Ensemble.from_trees([1.0]), "xgboost", objective="binary:logistic")
