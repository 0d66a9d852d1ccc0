"""Splits on categories stay splits on sets, there and back; formats without sets get thresholds, and a sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.formats.reading import category_pieces, less_than, less_than_float32
from rankwood.formats.registry import EXPORTERS, PARSERS
from rankwood.formats.writing import ConversionWarning, categories_of
from rankwood.model.unfold import without_sets
from strategies.adversarial_rows import adversarial_rows
from strategies.exports import exported, models_and_rows, outputs, telling

lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")

CARDINALITIES = (12, 200)
FRACTIONS = [2.7, -0.5, -0.9999, 3e9, -7.0, 1e300, 199.5, 0.9999999999999999, 1.9999999, 2**24 + 1.0]


def categorical_data(n_rows=1500, seed=0):
    """Two features of categories, one of them with many, and three numeric ones; missing values anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    y = X[:, 3].copy()
    for feature, n_categories in enumerate(CARDINALITIES):
        codes = rng.integers(0, n_categories, n_rows)
        X[:, feature] = codes
        y += rng.normal(size=n_categories)[codes] * (1 + 0.5 * X[:, 2])
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def train_lightgbm(**options):
    X, y = categorical_data()
    parameters = {"objective": "regression", "num_leaves": 12, "verbose": -1, "num_threads": 1, "cat_smooth": 1,
                  "min_data_per_group": 5, "min_data_in_leaf": 3, "max_cat_threshold": 64}  # fmt: skip
    data = lightgbm.Dataset(X, y, categorical_feature=options.pop("categories", [0, 1]))
    return lightgbm.train(parameters | options, data, 8)


def train_xgboost(**options):
    X, y = categorical_data()
    data = xgboost.DMatrix(X, y, feature_types=["c", "c", "float", "float", "float"], enable_categorical=True)
    return xgboost.train({"max_depth": 5, "nthread": 1} | options, data, 8)


def rows_for(model):
    """Adversarial rows, and odd values in the place of categories."""
    rows = np.concatenate([adversarial_rows(model), categorical_data(seed=1)[0]])
    rng = np.random.default_rng(2)
    odd = rng.random((len(rows), 2)) < 0.1
    rows[:, :2][odd] = rng.choice(FRACTIONS, int(odd.sum()))
    return rows


LIGHTGBM = [{}, {"max_cat_to_onehot": 300}, {"zero_as_missing": True}, {"use_missing": False}, {"categories": [1]}]


@pytest.mark.parametrize("options", LIGHTGBM, ids=str)
def test_lightgbm_there_and_back(options, tmp_path):
    booster = train_lightgbm(**options)
    model = rw.load_model(booster)
    assert model.n_leaves == sum(tree["num_leaves"] for tree in booster.dump_model()["tree_info"])
    assert model.topology().n_sets > 0
    rows = rows_for(model)
    assert_array_equal(model.score(rows), booster.predict(rows))
    assert_array_equal(model.leaves(rows), booster.predict(rows, pred_leaf=True))
    text, said = exported(model, "lightgbm")
    assert not said
    assert_array_equal(lightgbm.Booster(model_str=text).predict(rows), booster.predict(rows))
    assert PARSERS["lightgbm"](text.encode()) == model
    dump, said = exported(model, "lightgbm-json")
    assert not said
    (tmp_path / "model.json").write_text(dump)
    again = rw.load_model(tmp_path / "model.json")
    assert again == model
    assert_array_equal(again.leaves(rows), model.leaves(rows))


def test_xgboost_there_and_back(tmp_path):
    for options in ({}, {"max_cat_to_onehot": 500}, {"grow_policy": "lossguide", "max_leaves": 20}):
        booster = train_xgboost(**options)
        model = rw.load_model(booster)
        assert model.topology().n_sets > 0
        with np.errstate(all="ignore"):
            rows = rows_for(model).astype(np.float32)
        rows = rows[~np.isinf(rows).any(axis=1)]
        theirs = booster.predict(xgboost.DMatrix(rows, feature_types=booster.feature_types, enable_categorical=True))
        np.testing.assert_allclose(model.score(rows), theirs, rtol=1e-5, atol=1e-5)
        for name in ("model.ubj", "model.json"):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                rw.save_as(model, tmp_path / name, "xgboost")
            assert all("sums leaf values in float32" in str(warning.message) for warning in said)
            again = rw.load_model(tmp_path / name)
            assert again.n_leaves == model.n_leaves
            assert_array_equal(np.sort(again.set_thresholds), np.sort(model.set_thresholds))
            written = xgboost.Booster(model_file=tmp_path / name)
            ours = written.predict(xgboost.DMatrix(rows))
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_lightgbms_categories_in_xgboost():
    """Whole numbers and missing values go the same way; a warning says which do not."""
    model = rw.load_model(train_lightgbm())
    content, said = exported(model, "xgboost")
    assert any("values that are no whole numbers, next below one or between -1 and 0" in text for text in said)
    rows = categorical_data(seed=1)[0].astype(np.float32)
    rows[:5, 0] = [12, 13, 500, 2**20, -1]
    ours = xgboost.Booster(model_file=bytearray(content)).predict(xgboost.DMatrix(rows))
    np.testing.assert_allclose(ours, model.score(rows), rtol=1e-5, atol=1e-5)


def test_xgboosts_categories_in_lightgbm():
    model = rw.load_model(train_xgboost())
    text, said = exported(model, "lightgbm")
    rows = categorical_data(seed=1)[0]
    held = np.array([line.startswith("num_cat=") for line in text.splitlines()])
    assert held.any()
    assert_array_equal(lightgbm.Booster(model_str=text).predict(rows), model.score(rows))
    assert said


def test_growth_is_said_in_one_sentence(tmp_path):
    model = rw.load_model(train_lightgbm(num_leaves=6))
    for name, exporter in EXPORTERS.items():
        if exporter.sets:
            continue
        with pytest.warns(ConversionWarning) as said:
            rw.save_as(model, tmp_path / f"model{exporter.suffix[0]}", name, missing="ignore")
        (sentence,) = [str(warning.message) for warning in said if "splits on sets" in str(warning.message)]
        assert exporter.title in sentence
        grown = f"{without_sets(model).n_leaves:,} leaves of {model.n_leaves:,}"
        assert grown in sentence
        assert "\n" not in sentence


@settings(max_examples=30)
@given(models_and_rows(sets=True, max_leaves=7))
def test_any_sets_in_any_format_that_runs_here(given_):
    model, X = given_
    model = telling(model)
    expected = outputs(model, X.astype(np.float64))
    text, _ = exported(model, "lightgbm")
    theirs = PARSERS["lightgbm"](text.encode())
    tiny = (np.abs(X) <= 1e-35).any(axis=1)  # LightGBM's zero
    assert_array_equal(outputs(theirs, X)[~tiny], expected[~tiny])
    for name in ("python", "numpy"):
        module: dict = {}
        exec(exported(model, name)[0], module)
        if name == "numpy":
            assert_array_equal(module["leaves"](X), model.leaves(X))
        else:
            assert_array_equal([module["leaves"](row) for row in X.tolist()], model.leaves(X))


@settings(max_examples=30)
@given(models_and_rows(sets=True, max_leaves=7, infinite_thresholds=False), st.sampled_from([3, 5]))
def test_onnx_of_any_sets(given_, version):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT")
    model, X = given_
    model = telling(model.select([0]))
    content, _ = exported(model, "onnx", version=version)
    session = onnxruntime.InferenceSession(content)
    scores = session.run(None, {"X": np.ascontiguousarray(X, dtype=np.float64)})[0].ravel()
    assert_array_equal(scores, model.score(X))


def test_onnx_holds_members(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT")
    model = rw.load_model(train_lightgbm())
    content, said = exported(model, "onnx", version=5, whole_numbers=True)
    assert not said
    (tmp_path / "model.onnx").write_bytes(content)
    again = rw.load_model(tmp_path / "model.onnx")
    assert again.n_leaves == model.n_leaves
    rows = categorical_data(seed=1)[0]
    assert_array_equal(again.score(rows), model.score(rows))
    theirs = onnxruntime.InferenceSession(content).run(None, {"X": rows})[0].ravel()
    np.testing.assert_allclose(theirs, model.score(rows), rtol=1e-12, atol=1e-12)
    # Sets of single values need no promise.
    once_more, said = exported(again, "onnx", version=5)
    assert not said
    (tmp_path / "again.onnx").write_bytes(once_more)
    assert rw.load_model(tmp_path / "again.onnx") == again


@given(st.sets(st.integers(0, 60), min_size=1), st.sampled_from([less_than, less_than_float32]))
def test_categories_are_found_again(members, below):
    pieces = category_pieces(np.array(sorted(members)), below, members_left=True, missing_left=False)
    assert categories_of(np.array(pieces.cuts)).tolist() == sorted(members)


@pytest.mark.parametrize(
    "thresholds", [[0.5, 2.0], [-2.5, 1.0], [1.0, 2.0], [0.9999999, 1.9999999, 2.9999999], [-1.0, 2.0**30]], ids=str
)
def test_what_is_no_set_of_categories(thresholds):
    assert categories_of(np.array(thresholds)) is None
