"""Contributions of imported models are those of LightGBM and shap, and shap explains what rankwood exports alike.

Unambiguous: both compute Shapley values of the same game by the counts in the model file. XGBoost adds covers up in
single precision, and shap's weights against a background are in single precision, so these agree to about 1e-6.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankwood as rw
from strategies.adversarial_rows import training_data
from strategies.exports import exported

lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of shap, about numpy and LightGBM
GROUP = [20] * 30


def train_lightgbm(n_rounds=8, categories=(), **parameters):
    X, y = training_data()
    if categories:
        X[:, 4] = np.random.default_rng(0).integers(0, 12, len(X))
        y = y + X[:, 4] % 3
    options = {"objective": "lambdarank", "num_leaves": 12, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}
    data = lightgbm.Dataset(X, y, group=GROUP, categorical_feature=list(categories))
    return lightgbm.train(options | parameters, data, n_rounds), X


def assert_same(found, values, base_value, rtol):
    """Relative to the largest contribution: those near zero are differences of others."""
    scale = np.abs(values).max()
    assert_allclose(found.values, values, rtol=0, atol=rtol * scale)
    assert_allclose(found.base_value, base_value, rtol=0, atol=rtol * scale)


LIGHTGBM = [
    {},
    {"boosting": "dart", "drop_rate": 0.5},
    {"objective": "regression", "num_leaves": 40},
    {"objective": "regression", "zero_as_missing": True},
    {"objective": "regression", "categories": (4,), "max_cat_to_onehot": 1},
    {"boosting": "rf", "objective": "regression", "bagging_freq": 1, "bagging_fraction": 0.5},
]


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm-json"])
@pytest.mark.parametrize("parameters", LIGHTGBM, ids=str)
def test_lightgbms_own(parameters, name, tmp_path):
    booster, X = train_lightgbm(**parameters)
    path = tmp_path / "model"
    path.write_text(booster.model_to_string() if name == "lightgbm" else json.dumps(booster.dump_model()))
    theirs = booster.predict(X, pred_contrib=True)
    if (
        parameters.get("boosting") == "rf"
    ):  # whose score is the mean of its trees; LightGBM's contributions make the sum
        theirs /= booster.num_trees()
        assert_allclose(theirs.sum(axis=1), booster.predict(X))
    assert_same(rw.explain(rw.load_model(path), X), theirs[:, :-1], theirs[0, -1], 1e-10)


def shap_of(model, X, background=None):
    """Contributions and base value by shap's own code, not by the library that it would call."""
    shap = pytest.importorskip("shap", reason="SHAP ABSENT: pip install shap")
    kind = "tree_path_dependent" if background is None else "interventional"
    explainer = shap.TreeExplainer(model, background, feature_perturbation=kind)
    explainer.model.model_type = "internal"
    values = explainer.shap_values(X, check_additivity=False)
    return values, float(np.ravel(explainer.expected_value)[0])


@pytest.mark.parametrize("parameters", LIGHTGBM[:3], ids=str)
def test_shaps_of_lightgbm(parameters):
    booster, X = train_lightgbm(**parameters)
    model = rw.load_model(booster)
    assert_same(rw.explain(model, X), *shap_of(booster, X), 1e-10)
    assert_same(rw.explain(model, X, background=X[:50]), *shap_of(booster, X, X[:50]), 1e-6)


def test_shaps_of_scikit_learn():
    """Whose trees shap reads with their weights, and compares in float32, so rows are such."""
    from sklearn.ensemble import RandomForestRegressor

    X, y = training_data(missing=0.0)
    X = X.astype(np.float32).astype(np.float64)
    forest = RandomForestRegressor(5, max_depth=6, random_state=0).fit(X, y)
    model = rw.load_model(forest)
    assert_same(rw.explain(model, X), *shap_of(forest, X), 1e-10)
    assert_same(rw.explain(model, X, background=X[:50]), *shap_of(forest, X, X[:50]), 1e-6)


def own_model():
    data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5, seed=3)
    model = rw.XDART(n_trees=8, n_leaves=10, min_docs_per_leaf=3, judge="train").fit(data).ensemble_
    return model.reweigh(np.linspace(0.5, -2.0, model.n_trees)), data.X[:200].astype(np.float64)


def test_shap_explains_exports_to_lightgbm():
    model, X = own_model()
    found = rw.explain(model, X)
    booster = lightgbm.Booster(model_str=exported(model.replace(feature_names=None), "lightgbm")[0])
    theirs = booster.predict(X, pred_contrib=True)
    assert_same(found, theirs[:, :-1], theirs[0, -1], 1e-10)
    assert_same(found, *shap_of(booster, X), 1e-10)
    assert_same(rw.explain(model, X, background=X[:40]), *shap_of(booster, X, X[:40]), 1e-6)


def test_shap_explains_exports_to_xgboost():
    xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")
    model, X = own_model()
    booster = xgboost.Booster(model_file=bytearray(exported(model.replace(feature_names=None), "xgboost")[0]))
    theirs = booster.predict(xgboost.DMatrix(X), pred_contribs=True)
    assert_same(rw.explain(model, X), theirs[:, :-1], theirs[0, -1], 1e-5)
    # Before a call shap takes the root's base_weight for the base value, which is another thing in XGBoost, too.
    assert_same(rw.explain(model, X), shap_of(booster, X)[0], theirs[0, -1], 1e-5)
    assert_same(rw.explain(model, X, background=X[:40]), *shap_of(booster, X, X[:40]), 1e-5)


def test_xgboosts_own():
    xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")
    X, y = training_data()
    data = xgboost.DMatrix(X, y)
    data.set_group(GROUP)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1}, data, 6)
    theirs = booster.predict(data, pred_contribs=True)
    found = rw.explain(rw.load_model(booster), X.astype(np.float32))
    assert_same(found, theirs[:, :-1], theirs[0, -1], 1e-5)


def test_plots_of_shap_take_explanations():
    shap = pytest.importorskip("shap", reason="SHAP ABSENT: pip install shap")
    model, X = own_model()
    found = rw.explain(model, X)
    given = found.to_shap()
    assert isinstance(given, shap.Explanation)
    assert_allclose(given[3].values.sum() + given[3].base_values, model.score(X[3:4])[0])
