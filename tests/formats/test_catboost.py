"""Models that CatBoost trains here."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.catboost import from_catboost_json
from strategies.adversarial_rows import adversarial_rows, assert_close, same_partition, training_data

catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")


def train(X=None, y=None, **parameters):
    if X is None:
        X, y = training_data()
    options = {"iterations": 8, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoost(options | parameters)
    group = np.repeat(np.arange(30), 20) if "loss_function" in parameters else None
    return model.fit(catboost.Pool(X, y, group_id=group))


PARAMETERS = [
    {},
    {"nan_mode": "Max"},
    {"nan_mode": "Forbidden"},
    {"grow_policy": "Depthwise"},
    {"grow_policy": "Lossguide", "nan_mode": "Max", "max_leaves": 20},
    {"loss_function": "YetiRank"},
    {"loss_function": "QueryRMSE", "depth": 1},
    {"depth": 8},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_scores_and_leaves(parameters, tmp_path):
    allowed = parameters.get("nan_mode") != "Forbidden"
    X, y = training_data(missing=0.1 if allowed else 0.0)
    theirs = train(X, y, **parameters)
    model = rw.load_model(theirs)
    rows = np.concatenate([X, adversarial_rows(model, missing=allowed)])
    assert_close(theirs.predict(rows), model, rows)
    leaves = theirs.calc_leaf_indexes(catboost.Pool(rows))
    assert same_partition(leaves, model.leaves(rows))
    if "grow_policy" not in parameters:
        np.testing.assert_array_equal(leaves, model.leaves(rows))
    for name in ("model.json", "model.cbm") if parameters in PARAMETERS[4:6] else ("model.json",):  # .cbm takes seconds
        theirs.save_model(str(tmp_path / name), format=name[6:])
        assert rw.load_model(tmp_path / name) == model


def test_scale_and_bias():
    X, y = training_data()
    theirs = train(X, y)
    theirs.set_scale_and_bias(0.25, -7.0)
    model = rw.load_model(theirs)
    assert model.base == -7.0
    assert_close(theirs.predict(X), model, X)


def test_names_survive():
    import pandas

    X, y = training_data()
    names = ["bm25(title)", "größe", "a/b=c", "#clicks", "x y"]
    theirs = train(pandas.DataFrame(X, columns=names), y)
    model = rw.load_model(theirs)
    assert list(model.feature_names) == names
    assert rw.load_model(train()).feature_names is None


def test_categories_and_classes_are_refused():
    X, y = training_data(missing=0.0)
    X = X.astype(object)
    X[:, 4] = np.where(y > 1, "a", "b")
    options = {"iterations": 3, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**options, cat_features=[4]).fit(X, y)
    with pytest.raises(ModelError, match="of feature 4, whose texts the file does not have: save the model with"):
        rw.load_model(model)
    X, y = training_data()
    with pytest.raises(ModelError, match=r"classes|more than one value per leaf"):
        rw.load_model(catboost.CatBoostClassifier(**options).fit(X, y))


def test_a_damaged_binary_file_is_refused(tmp_path):
    """Also one that ends CatBoost's process."""
    path = tmp_path / "model.cbm"
    train(depth=2).save_model(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:300])
    with pytest.raises(ModelError, match=r"model.cbm: CatBoost cannot read the file: "):
        rw.load_model(path)
    path.write_bytes(whole[:40] + b"\xff" * 200 + whole[240:])
    with pytest.raises(ModelError, match=r"model.cbm: CatBoost cannot read the file: "):
        rw.load_model(path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as Linux does")
@pytest.mark.parametrize("limit", ["MEMORY", "JSON_SIZE"])
def test_a_binary_file_that_asks_for_much_is_refused(tmp_path, monkeypatch, limit):
    path = tmp_path / "model.cbm"
    train(depth=2).save_model(str(path))
    assert rw.load_model(path).n_trees
    monkeypatch.setattr(f"rankwood.formats.catboost.{limit}", (1000, 0))
    with pytest.raises(ModelError, match=r"model.cbm: CatBoost cannot read the file: "):
        rw.load_model(path)


def test_estimator_that_is_not_fitted():
    with pytest.raises(ModelError, match="the CatBoostRanker cannot be imported: There is no trained model"):
        rw.load_model(catboost.CatBoostRanker())


def content(tmp_path):
    path = tmp_path / "model.json"
    train(depth=2).save_model(str(path), format="json")
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["oblivious_trees"][0].update(leaf_values=[1.0, 2.0]), "tree 0 is damaged: 2 splits and 2 values"),
        (lambda v: v["oblivious_trees"][0].update(leaf_values=[1.0] * 8), "tree 0 has more than one value per leaf"),
        (lambda v: v["oblivious_trees"][0].update(splits=[{}] * 60), "tree 0 has 60 levels"),
        (lambda v: v["oblivious_trees"][0]["splits"][0].update(border=float("nan")), "the threshold is NaN"),
        (lambda v: v["oblivious_trees"][0]["splits"][0].update(float_feature_index=77), "there is no float feature 77"),
        (lambda v: v["features_info"]["float_features"][0].update(flat_feature_index=10**9), "an impossible number"),
        (lambda v: v["features_info"].pop("float_features"), "there is no float feature"),
        (lambda v: v.update(scale_and_bias=[1, [1, 2]]), "the model has 2 classes"),
        (lambda v: v.update(oblivious_trees=3), "the trees are 3, not a list"),
    ],
)
def test_what_is_wrong_is_said(change, message, tmp_path):
    value = content(tmp_path)
    change(value)
    with pytest.raises(ModelError, match=message):
        from_catboost_json(value)
