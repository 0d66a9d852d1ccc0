"""Models that XGBoost trains here, read from its JSON, UBJSON, dump and objects."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.ubjson import parse_ubjson
from rankwood.formats.xgboost import base_margin, from_xgboost_dump, from_xgboost_json
from strategies.adversarial_rows import adversarial_rows, assert_close, same_partition, training_data

xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")
NAMES = ["bm25(title)", "größe", 'a"b\\c', "#clicks=", "x y"]


def train(n_rounds=6, X=None, y=None, types=None, names=None, **parameters):
    if X is None:
        X, y = training_data()
    objective = parameters.get("objective", "rank:ndcg")
    y = (y > 1).astype(int) if "binary" in objective else y + 1 if "gamma" in objective else y
    data = xgboost.DMatrix(X, y, feature_types=types, feature_names=names, enable_categorical=types is not None)
    if "rank" in objective:
        data.set_group([20] * 30)
    options = {"objective": objective, "max_depth": 4, "nthread": 1, "seed": 1}
    return xgboost.train(options | parameters, data, n_rounds)


def matrix(booster, rows):
    names, types = booster.feature_names, booster.feature_types
    return xgboost.DMatrix(rows, feature_names=names, feature_types=types, enable_categorical=types is not None)


def check(booster, rows) -> rw.Ensemble:
    model = rw.load_model(booster)
    data = matrix(booster, rows)
    assert_close(booster.predict(data, output_margin=True), model, rows)
    assert from_xgboost_json(json.loads(booster.save_raw("json"))) == model
    assert from_xgboost_json(parse_ubjson(bytes(booster.save_raw("ubj")))) == model
    return model


PARAMETERS = [
    {},
    {"objective": "rank:pairwise", "base_score": 1.5},
    {"objective": "reg:squarederror"},
    {"objective": "reg:squarederror", "base_score": -3.25, "num_parallel_tree": 3, "subsample": 0.5},
    {"objective": "binary:logistic"},
    {"objective": "binary:logistic", "base_score": 0.1},
    {"objective": "binary:logitraw", "base_score": 0.2},
    {"objective": "count:poisson"},
    {"objective": "reg:gamma"},
    {"objective": "reg:tweedie"},
    {"objective": "reg:absoluteerror"},
    {"booster": "dart", "rate_drop": 0.5},
    {"max_depth": 0, "max_leaves": 100, "grow_policy": "lossguide", "min_child_weight": 0},
    {"max_depth": 1},
    {"tree_method": "exact", "gamma": 2.0},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_scores_and_leaves(parameters):
    X, y = training_data()
    booster = train(X=X, y=y, **parameters)
    rows = np.concatenate([X, adversarial_rows(rw.load_model(booster), infinite=False)])
    model = check(booster, rows)
    leaves = booster.predict(matrix(booster, rows), pred_leaf=True)
    assert same_partition(leaves, model.leaves(rows))
    single = rows.astype(np.float32)
    assert same_partition(leaves, model.leaves(single))


@settings(max_examples=20)
@given(
    depth=st.integers(1, 7),
    missing=st.sampled_from([0.0, 0.3]),
    base=st.sampled_from([0.0, 0.5, 100.0, -1e-3]),
    parallel=st.integers(1, 3),
    dart=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_parameters(depth, missing, base, parallel, dart, seed):
    X, y = training_data(300, seed=seed, missing=missing)
    options = {"booster": "dart", "rate_drop": 0.4} if dart else {}
    options |= {"max_depth": depth, "base_score": base, "num_parallel_tree": parallel}
    booster = train(3, X=X, y=y, objective="reg:squarederror", **options)
    check(booster, adversarial_rows(rw.load_model(booster), 300, seed=seed, infinite=False))


@pytest.mark.parametrize("parameters", [{"max_cat_to_onehot": 1}, {"max_cat_to_onehot": 100}], ids=str)
def test_categories(parameters):
    X, _ = training_data()
    rng = np.random.default_rng(0)
    X[:, 4] = rng.integers(0, 30, len(X))
    y = np.clip((X[:, 4] % 3) + np.nan_to_num(X[:, 0]), 0, 4).astype(int)
    booster = train(X=X, y=y, types=["q"] * 4 + ["c"], tree_method="hist", **parameters)
    assert '"categories_nodes":[]' not in booster.save_raw("json").decode().split('"id":1,')[0]
    rows = np.concatenate([X, X])
    rows[:, 4] = rng.choice([0, 1, 2.7, 3, 29, 30, 31, 1e9, -0.5, -1, np.nan, 1e-36, 0.99999999, 2**24], size=len(rows))
    check(booster, rows)


def test_dump(tmp_path):
    X, y = training_data()
    booster = train(X=X, y=y, names=NAMES, base_score=0.0, objective="reg:squarederror")
    model = rw.load_model(booster)
    assert list(model.feature_names) == NAMES
    rows = adversarial_rows(model, infinite=False)
    trees = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    dumped = from_xgboost_dump(trees, NAMES)
    np.testing.assert_array_equal(dumped.score(rows), model.score(rows))
    assert dumped.feature_names == model.feature_names
    by_name = from_xgboost_dump({"objective": "rank:pairwise", "splits": trees})
    assert list(by_name.feature_names) == sorted(by_name.feature_names)
    import pandas

    frame = pandas.DataFrame(rows, columns=NAMES)[list(by_name.feature_names)]
    np.testing.assert_array_equal(by_name.score(frame), model.score(rows))
    path = tmp_path / "dump.json"
    booster.dump_model(path, dump_format="json")
    assert rw.load_model(path, feature_names=NAMES) == dumped
    with pytest.raises(ModelError, match="which is not among the names given"):
        rw.load_model(path, feature_names=["other"] * 1)


def test_dump_of_numbered_features(tmp_path):
    X, y = training_data(n_features=6)
    X[:, 5] = 0.0
    booster = train(X=X, y=y, base_score=0.0, objective="reg:squarederror")
    booster.dump_model(tmp_path / "dump.json", dump_format="json")
    model = rw.load_model(tmp_path / "dump.json", n_features=6)
    assert model.n_features == 6
    assert_close(booster.predict(xgboost.DMatrix(X)), model, X)


def test_estimators():
    X, y = training_data()
    qid = np.repeat(np.arange(30), 20)
    ranker = xgboost.XGBRanker(n_estimators=60, early_stopping_rounds=2, learning_rate=1.0, n_jobs=1)
    ranker.fit(X[:300], y[:300], qid=qid[:300], eval_set=[(X[300:], y[300:])], eval_qid=[qid[300:]], verbose=False)
    model = rw.load_model(ranker)
    assert model.n_trees == ranker.best_iteration + 1 < 60
    assert_close(ranker.predict(X), model, X)
    odd = xgboost.XGBRegressor(n_estimators=2, missing=-999.0).fit(np.nan_to_num(X), y)
    with pytest.raises(ModelError, match=r"takes -999.0 for a missing value"):
        rw.load_model(odd)
    with pytest.raises(ModelError, match="cannot be imported"):
        rw.load_model(xgboost.XGBRanker())


@pytest.mark.parametrize("text", ["5E-1", "0.5", "[5E-1]", "[0.5]", 0.5, " [5.0E-1] "])
def test_base_score_of_every_version(text):
    assert base_margin(text, "rank:ndcg") == 0.5


@pytest.mark.parametrize(
    ("text", "objective"), [("0", "binary:logistic"), ("-1", "reg:gamma"), ("[1,2]", "x"), ("", "x")]
)
def test_base_scores_that_are_none(text, objective):
    with pytest.raises(ModelError, match=r"base.score"):
        base_margin(text, objective)


EMPTY = ("left_children", "right_children", "split_indices", "split_conditions", "default_left")


def edited(change):
    """A small model with something in it changed."""
    value = json.loads(train(2, max_depth=2).save_raw("json"))
    change(value["learner"], value["learner"]["gradient_booster"]["model"]["trees"][0])
    return value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, t: x["learner_model_param"].update(num_class="3"), "the model has 3 classes"),
        (lambda x, t: x["learner_model_param"].update(num_target="2"), "the model has 2 targets"),
        (lambda x, t: x["gradient_booster"].update(name="gblinear"), "the booster is gblinear: only trees"),
        (lambda x, t: t["tree_param"].update(size_leaf_vector="4"), "tree 0 has vectors in its leaves"),
        (lambda x, t: t.pop("left_children"), "tree 0 has no entry 'left_children'"),
        (lambda x, t: t["left_children"].__setitem__(1, 0), "tree 0"),
        (lambda x, t: t["left_children"].__setitem__(0, 10**6), "tree 0: a node has the child 1000000"),
        (lambda x, t: t["split_indices"].pop(), "tree 0: its arrays have different lengths"),
        (lambda x, t: t["split_indices"].__setitem__(0, 99), "there is no feature 99"),
        (lambda x, t: t["split_conditions"].__setitem__(0, float("nan")), "a threshold is NaN"),
        (lambda x, t: t["split_conditions"].__setitem__(0, "a"), "split_conditions of tree 0 cannot be read"),
        (lambda x, t: x["learner_model_param"].pop("base_score"), "base_score must be a number, got None"),
        (lambda x, t: x.pop("objective"), "no entry 'objective'"),
        (lambda x, t: t.update({name: [] for name in EMPTY}), "tree 0 has no nodes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change, message):
    with pytest.raises(ModelError, match=message):
        from_xgboost_json(edited(change))


def test_a_file_that_lacks_trees_is_refused(tmp_path):
    path = tmp_path / "m.json"
    rw.save_as(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)] * 3), path, "xgboost")
    content = json.loads(path.read_text())
    content["learner"]["gradient_booster"]["model"]["gbtree_model_param"]["num_trees"] = "7"
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="it has 3 trees and says 7"):
        rw.load_model(path)


def test_an_early_stop_is_told(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = xgboost.XGBRegressor(n_estimators=20, early_stopping_rounds=2, learning_rate=1.0, n_jobs=1)
    model.fit(X, X[:, 0], eval_set=[(X[:50], -X[:50, 0])], verbose=False)
    model.save_model(tmp_path / "m.json")
    with pytest.warns(UserWarning, match="stopped early"):
        whole = rw.load_model(tmp_path / "m.json")
    assert rw.load_model(model).n_trees < whole.n_trees
