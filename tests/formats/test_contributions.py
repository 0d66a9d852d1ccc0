"""What features contribute to a score (SHAP), as LightGBM and XGBoost tell of models that were written for them.

Both weigh the two sides of a split by how much data went there, so a model must say so of every node and leaf.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.formats.writing import node_sums, whole_covers
from rankwood.model.unfold import without_sets
from strategies.adversarial_rows import training_data, whole_numbers
from strategies.ensembles import big_ensemble, ensembles
from strategies.exports import exported

lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")
GROUP = [20] * 30


def train_lightgbm(n_rounds=6, **parameters):
    X, y = training_data()
    options = {"objective": "lambdarank", "num_leaves": 12, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}
    return lightgbm.train(options | parameters, lightgbm.Dataset(X, y, group=GROUP), n_rounds)


def train_xgboost(n_rounds=6, **parameters):
    X, y = training_data()
    data = xgboost.DMatrix(X, y)
    data.set_group(GROUP)
    return xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1} | parameters, data, n_rounds)


def by_lightgbm(booster, X):
    booster = booster if isinstance(booster, lightgbm.Booster) else lightgbm.Booster(model_str=booster)
    return booster.predict(X, pred_contrib=True)


def by_xgboost(booster, X):
    booster = booster if isinstance(booster, xgboost.Booster) else xgboost.Booster(model_file=bytearray(booster))
    return booster.predict(xgboost.DMatrix(X), pred_contribs=True)


UNDERFLOW = 1e-37  # what single precision may lose of a value near 0


def check(model, X, *, rtol=2e-5) -> None:
    """Contributions in both libraries are finite and add up to the score."""
    model = model.replace(feature_names=None)
    scores = model.score(X)
    scale = np.abs(scores).max() + np.abs(model.tree_weights).sum() * np.abs(model.leaf_value).max() + abs(model.base)
    single = X.astype(np.float32)
    for contributions, expected in (
        (by_lightgbm(exported(model, "lightgbm")[0], X), scores),
        (by_xgboost(exported(model, "xgboost")[0], single), model.score(single)),
    ):
        assert np.isfinite(contributions).all()
        assert_allclose(contributions.sum(axis=1), expected, rtol=0, atol=rtol * scale + UNDERFLOW)


LIGHTGBM = [{}, {"boosting": "dart", "drop_rate": 0.5}, {"bagging_fraction": 0.5, "bagging_freq": 1}, {"max_depth": 2}]


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm-json"])
@pytest.mark.parametrize("parameters", LIGHTGBM, ids=str)
def test_lightgbms_contributions_come_back(parameters, name, tmp_path):
    booster, (X, _) = train_lightgbm(**parameters), training_data()
    path = tmp_path / "model"
    path.write_text(booster.model_to_string() if name == "lightgbm" else json.dumps(booster.dump_model()))
    model = rw.load_model(path)
    again = by_lightgbm(exported(model, "lightgbm")[0], X)
    assert_allclose(again, by_lightgbm(booster, X), rtol=1e-9, atol=1e-12)
    check(model, X)


@pytest.mark.parametrize("parameters", [{"zero_as_missing": True}, {"max_cat_to_onehot": 50}], ids=str)
def test_contributions_of_splits_on_sets_come_back(parameters):
    """As thresholds nearly: a leaf that cannot be reached any more leaves its data to the other copies."""
    X, y = training_data(missing=0.0)
    X[:, 4] = np.random.default_rng(0).integers(0, 12, len(X))
    categories = [] if "zero_as_missing" in parameters else [4]
    options = {"objective": "regression", "num_leaves": 8, "verbose": -1, "num_threads": 1, "cat_smooth": 1}
    data = lightgbm.Dataset(X, y + X[:, 4] % 3, categorical_feature=categories)
    booster = lightgbm.train(options | parameters, data, 4)
    model = rw.load_model(booster)
    assert model.n_leaves == 4 * 8
    assert_allclose(model.leaf_cover.sum(), 4 * len(X))
    again = by_lightgbm(exported(model, "lightgbm")[0], X)
    assert_allclose(again, by_lightgbm(booster, X), rtol=1e-9, atol=1e-12)
    unfolded = without_sets(model)
    assert unfolded.n_leaves > 4 * 8
    assert_allclose(unfolded.leaf_cover.sum(), 4 * len(X))
    again = by_lightgbm(exported(unfolded, "lightgbm")[0], X)
    assert_allclose(again, by_lightgbm(booster, X), rtol=0, atol=5e-3)  # of contributions up to 1
    check(unfolded, X)


def test_lightgbms_counts_come_back_whole():
    booster = train_lightgbm()
    again = lightgbm.Booster(model_str=exported(rw.load_model(booster), "lightgbm")[0])
    for name in ("leaf_count", "internal_count"):
        theirs, ours = (
            [line for line in text.splitlines() if line.startswith(name)]
            for text in (booster.model_to_string(), again.model_to_string())
        )
        assert ours == theirs


XGBOOST = [{}, {"objective": "reg:squarederror", "base_score": 2.0}, {"min_child_weight": 0, "max_depth": 7}]


@pytest.mark.parametrize("suffix", ["json", "ubj", "dump"])
@pytest.mark.parametrize("parameters", XGBOOST, ids=str)
def test_xgboosts_contributions_come_back(parameters, suffix, tmp_path):
    booster, (X, _) = train_xgboost(**parameters), training_data()
    path = tmp_path / "model"
    if suffix == "dump":
        path.write_text(f"[{','.join(booster.get_dump(dump_format='json', with_stats=True))}]")
    else:
        path.write_bytes(booster.save_raw(suffix))
    model = rw.load_model(path, n_features=5 if suffix == "dump" else None)
    theirs = by_xgboost(booster, X)
    base = theirs.sum(axis=1)[0] - model.score(X[:1])[0] if suffix == "dump" else 0.0  # which a dump does not have
    again = by_xgboost(exported(model, "xgboost")[0], X)
    again[:, -1] += base
    assert_allclose(again, theirs, rtol=1e-3, atol=2e-5)
    check(model, X)


def test_own_models_know_their_leaves():
    data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5, seed=3)
    for learner in (
        rw.LambdaMART(n_trees=8, n_leaves=10, min_docs_per_leaf=3),
        rw.LambdaMART(n_trees=8, n_leaves=10, query_fraction=0.5, balance=0.5),
        rw.XDART(n_trees=8, n_leaves=6, judge="train"),
    ):
        model = learner.fit(data).ensemble_
        assert_array_equal(node_sums(model, model.leaf_cover), model.node_count)
        check(model, data.X)


def test_forests_know_their_nodes():
    """What a node counts its leaf counts too, but for two leaves below the same node, which share its documents."""
    data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5, seed=3)
    model = rw.RandomForest(n_trees=5, n_jobs=1).fit(data).ensemble_
    assert model.leaf_cover is None
    leaves, nodes = whole_covers(model)
    assert_array_equal(nodes, model.node_count)
    assert leaves.min() > 0
    check(model, data.X[:100])


@pytest.mark.parametrize("parameters", [{}, {"grow_policy": "Lossguide"}], ids=str)
def test_leaves_without_data(parameters):
    """CatBoost's oblivious trees have many."""
    catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    X, y = training_data(missing=0.0)
    options = {"iterations": 8, "depth": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = rw.load_model(catboost.CatBoost(options | parameters).fit(catboost.Pool(X, y)))
    assert model.leaf_cover.sum() == 8 * len(X)
    if not parameters:
        assert (model.leaf_cover == 0).any()
    check(model, X, rtol=1e-4)


def test_scikit_learns_counts():
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    X, y = training_data(missing=0.0)
    weights = np.resize([0.25, 1.0, 2.5], len(y))
    forest = rw.load_model(RandomForestRegressor(3, max_depth=4, bootstrap=False).fit(X, y, sample_weight=weights))
    assert_allclose(forest.leaf_cover.sum(), 3 * weights.sum())
    check(forest, X)
    boosted = rw.load_model(HistGradientBoostingRegressor(max_iter=3).fit(X, y))
    assert_array_equal(node_sums(boosted, boosted.leaf_cover), boosted.node_count)


@settings(max_examples=40)
@given(ensembles(infinite_thresholds=False))
def test_models_that_know_nothing(model):
    assert_array_equal(whole_covers(model)[0], 1)
    check(model, whole_numbers(20, model.n_features))


def test_covers_of_any_size_are_written():
    model = big_ensemble(1, n_trees=6, n_leaves=16)
    rng = np.random.default_rng(0)
    for covers in (
        rng.random(model.n_leaves),
        rng.random(model.n_leaves) * 1e-30,
        rng.random(model.n_leaves) * 1e30,
        np.zeros(model.n_leaves),
        10.0 ** rng.integers(-300, 300, model.n_leaves),
        np.full(model.n_leaves, 1e9),
    ):
        known = model.replace(leaf_cover=covers)
        leaves, nodes = whole_covers(known)
        assert leaves.min() >= 1
        assert nodes.max() < 2**31
        assert_array_equal(nodes, node_sums(known, leaves))
        check(known, rng.normal(size=(50, 8)), rtol=1e-3)


def test_trees_of_one_leaf():
    model = rw.Ensemble.from_trees([3.0, (0, 0.5, 1.0, 2.0), 4.0], base=1.0)
    check(model, np.array([[0.0], [1.0]]))
    X, y = training_data()
    constant = lightgbm.train({"objective": "regression", "min_data_in_leaf": 400, "verbose": -1},
                              lightgbm.Dataset(X, y), 2)  # fmt: skip
    assert rw.load_model(constant).leaf_cover.tolist() == [600.0]
    text = constant.model_to_string().replace("leaf_count=600\n", "")
    assert rw.load_model(lightgbm.Booster(model_str=text)).leaf_cover is not None
