"""LightGBM's text model, read by LightGBM."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal

import rankwood as rw
from strategies.ensembles import big_ensemble
from strategies.exports import exported, models_and_rows

lightgbm = pytest.importorskip("lightgbm")
READ_AS_ZERO = 1.0000000180025095e-35


@settings(max_examples=40)
@given(models_and_rows())
def test_lightgbm_reaches_the_same_leaves_and_scores(given_):
    model, X = given_
    X = np.where(np.abs(X) <= READ_AS_ZERO, 0, X)  # as LightGBM reads such values
    booster = lightgbm.Booster(model_str=exported(model, "lightgbm")[0])
    leaves = booster.predict(X, pred_leaf=True).reshape(len(X), -1)
    assert_array_equal(leaves, model.leaves(X))
    assert_array_equal(booster.predict(X, raw_score=True), model.score(X))
    assert_array_equal(booster.predict(X), model.score(X))  # the objective changes nothing


def test_large_model_in_a_file(tmp_path):
    model = big_ensemble(3, n_trees=50, n_leaves=64)
    named = model.replace(feature_names=["bm25", "größe", "a-b", "c.d", "e(f)", "g|h", "i'j", "k=l"])
    rw.save_as(named, tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    X = np.random.default_rng(0).normal(size=(500, 8)).round(2)
    assert_array_equal(booster.predict(X, raw_score=True), model.score(X))
    assert booster.feature_name() == list(named.feature_names)
    assert booster.num_trees() == 50
    again = lightgbm.Booster(model_str=booster.model_to_string())  # and it can write it
    assert_array_equal(again.predict(X, raw_score=True), model.score(X))


def test_gains_are_lightgbms_importances():
    data = rw.make_ranking(n_queries=30, docs_per_query=15, n_features=5, seed=2)
    model = rw.LambdaMART(n_trees=5, n_leaves=6).fit(data).ensemble_
    booster = lightgbm.Booster(model_str=exported(model, "lightgbm")[0])
    gains = np.bincount(model.feature, weights=model.split_gain, minlength=5)
    np.testing.assert_allclose(booster.feature_importance("gain"), gains, rtol=1e-5)


@pytest.mark.parametrize("name", ["two words", "tab\tbed", "a:b", 'quo"ted', "brace{", "", "new\nline"])
def test_names_that_lightgbm_cannot_hold_are_refused(name):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=[name])
    with pytest.raises(rw.ModelError, match="feature name"):
        exported(model, "lightgbm")


def test_refusals_and_warnings():
    model = rw.Ensemble.from_trees([(0, 1e-40, 1.0, 2.0)])
    assert "within 1e-35 of 0" in exported(model, "lightgbm")[1][0]
    with pytest.raises(rw.ModelError, match="objective must leave scores as they are"):
        exported(model, "lightgbm", objective="binary")
    assert exported(rw.Ensemble.from_trees([], n_features=2, base=3.0), "lightgbm")[1] == []
