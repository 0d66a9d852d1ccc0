"""Models that LightGBM trains here, read from its text, its JSON dump and its objects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.lightgbm import BELOW_ZERO, ZERO, from_lightgbm_json, parse_lightgbm_text
from strategies.adversarial_rows import adversarial_rows, assert_close, training_data

lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")


def train(n_rounds=8, categorical="auto", X=None, y=None, names="auto", **parameters):
    if X is None:
        X, y = training_data()
    options = {"objective": "lambdarank", "num_leaves": 12, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}
    data = lightgbm.Dataset(X, y, group=[20] * 30, categorical_feature=categorical, feature_name=names)
    return lightgbm.train(options | parameters, data, n_rounds)


def check(booster, rows, raw=True) -> rw.Ensemble:
    """Text, dump and object give one model, whose scores are LightGBM's."""
    model = parse_lightgbm_text(booster.model_to_string().encode())
    theirs = booster.predict(rows, raw_score=raw)
    assert_close(theirs, model, rows)
    assert from_lightgbm_json(booster.dump_model()) == model
    assert rw.load_model(booster) == model
    return model


PARAMETERS = [
    {},
    {"objective": "rank_xendcg"},
    {"objective": "regression"},
    {"objective": "binary"},
    {"objective": "poisson"},
    {"boosting": "dart", "drop_rate": 0.5},
    {"use_missing": False},
    {"zero_as_missing": True},
    {"num_leaves": 200, "min_data_in_leaf": 1},
    {"max_depth": 1},
    {"max_bin": 15, "extra_trees": True},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_scores_and_leaves(parameters):
    X, y = training_data()
    y = (y > 1).astype(int) if parameters.get("objective") == "binary" else y
    booster = train(X=X, y=y, **parameters)
    model = parse_lightgbm_text(booster.model_to_string().encode())
    rows = np.concatenate([X, adversarial_rows(model)])
    model = check(booster, rows)
    if not parameters.get("zero_as_missing"):
        np.testing.assert_array_equal(model.leaves(rows), booster.predict(rows, pred_leaf=True))
    single = rows.astype(np.float32)
    assert_close(booster.predict(single, raw_score=True), model, single)


@settings(max_examples=25)
@given(
    missing=st.sampled_from([0.0, 0.2]),
    zero_as_missing=st.booleans(),
    use_missing=st.booleans(),
    n_leaves=st.integers(2, 40),
    seed=st.integers(0, 1000),
)
def test_any_way_of_missing(missing, zero_as_missing, use_missing, n_leaves, seed):
    X, y = training_data(seed=seed, missing=missing)
    booster = train(
        4, X=X, y=y, zero_as_missing=zero_as_missing, use_missing=use_missing, num_leaves=n_leaves, seed=seed
    )
    model = parse_lightgbm_text(booster.model_to_string().encode())
    check(booster, adversarial_rows(model, 400, seed=seed))


def one_split(threshold: str, decision: int) -> bytes:
    lines = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0", "max_feature_idx=0",
             "objective=regression", "feature_names=a", "feature_infos=[-1:1]", "", "Tree=0", "num_leaves=2",
             "num_cat=0", "split_feature=0", "split_gain=1", f"threshold={threshold}", f"decision_type={decision}",
             "left_child=-1", "right_child=-2", "leaf_value=1 2", "leaf_weight=1 1", "leaf_count=1 1",
             "internal_value=0", "internal_weight=0", "internal_count=2", "is_linear=0", "shrinkage=1", "", "",
             "end of trees", ""]  # fmt: skip
    return "\n".join(lines).encode()


THRESHOLDS = ["-inf", "-1", "-2e-35", repr(BELOW_ZERO), repr(-ZERO), "-1e-36"]
THRESHOLDS += ["0", "-0", "1e-36", repr(ZERO), "1", "inf"]


@pytest.mark.parametrize("decision", [0, 2, 4, 6, 8, 10])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_decision_type_near_zero(threshold, decision):
    content = one_split(threshold, decision)
    points = np.array([0.0, ZERO, 1e-36, 2e-35, 1.0, 5e-324, np.inf, 1e-35])
    points = np.concatenate([points, -points])
    x = np.concatenate([points, np.nextafter(points, 9e9), np.nextafter(points, -9e9), [np.nan]])[:, None]
    theirs = lightgbm.Booster(model_str=content.decode()).predict(x)
    np.testing.assert_array_equal(parse_lightgbm_text(content).score(x), theirs)


@pytest.mark.parametrize("parameters", [{}, {"max_cat_to_onehot": 50}, {"zero_as_missing": True}], ids=str)
def test_categories(parameters):
    X, _ = training_data()
    rng = np.random.default_rng(0)
    X[:, 4] = rng.integers(0, 40, len(X))
    y = np.clip((X[:, 4] % 3) + np.nan_to_num(X[:, 0]), 0, 4).astype(int)
    booster = train(X=X, y=y, categorical=[4], min_data_per_group=5, cat_smooth=1, **parameters)
    assert "num_cat=0" not in booster.model_to_string().split("Tree=1")[0]
    rows = np.concatenate([X, X])
    rows[:, 4] = rng.choice([0, 1, 2.7, 3, 39, 40, 41, 1e9, -0.5, -1, -3, np.nan, 1e-36, 0.9999], size=len(rows))
    check(booster, rows)


def test_forest_is_an_average():
    X, y = training_data()
    booster = train(X=X, y=y, objective="regression", boosting="rf", bagging_freq=1, bagging_fraction=0.5)
    model = check(booster, X, raw=False)
    np.testing.assert_allclose(model.tree_weights, 1 / 8)


def test_estimator_that_stopped_early():
    X, y = training_data()
    ranker = lightgbm.LGBMRanker(n_estimators=50, verbose=-1, num_leaves=31, learning_rate=0.5, n_jobs=1)
    stop = [lightgbm.early_stopping(2, verbose=False)]
    ranker.fit(X[:300], y[:300], group=[20] * 15, eval_set=[(X[300:], y[300:])], eval_group=[[20] * 15], callbacks=stop)
    model = rw.load_model(ranker)
    assert model.n_trees == ranker.best_iteration_ < 50
    assert_close(ranker.predict(X), model, X)


def test_estimator_that_is_not_fitted():
    with pytest.raises(ModelError, match="the LGBMRanker is not fitted"):
        rw.load_model(lightgbm.LGBMRanker())


def test_names_survive(tmp_path):
    names = ["bm25(title)", "größe", "a/b=c", "#clicks", "x.y"]
    booster = train(names=names)
    booster.save_model(tmp_path / "model.txt")
    model = rw.load_model(tmp_path / "model.txt")
    assert list(model.feature_names) == names
    import pandas

    X, _ = training_data()
    frame = pandas.DataFrame(X, columns=names)
    assert_close(booster.predict(X, raw_score=True), model, frame[names[::-1]])
    with pytest.raises(rw.DataError, match=r"X names its features differently than the model: there is no 'x\.y'"):
        model.score(frame.rename(columns={"x.y": "other"}))
    assert parse_lightgbm_text(train().model_to_string().encode()).feature_names is None


def test_gains_and_counts_survive():
    booster = train()
    model = rw.load_model(booster)
    assert model.node_count[0] == 600
    assert model.split_gain.min() >= 0


def test_lines_that_end_as_on_windows():
    text = train().model_to_string().encode()
    assert parse_lightgbm_text(text.replace(b"\n", b"\r\n")) == parse_lightgbm_text(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("version=v4", "version=v9"), "version v9 of LightGBM's text is not known"),
        (("num_class=1", "num_class=3"), "the model has 3 classes"),
        (("is_linear=0", "is_linear=1"), "tree 0 has linear models in its leaves: train with linear_tree=false"),
        (("end of trees", "end"), "cut off: LightGBM's 'end of trees' is not there"),
        (("left_child=-1", "left_child=0"), "tree 0, node 0: node 0 is its child but already has another place"),
        (("left_child=-1", "left_child=7"), "node 7 does not exist"),
        (("threshold=0.5", "threshold=nan"), "tree 0, node 0: the threshold is NaN"),
        (("threshold=0.5", "threshold=0.5 0.5"), "tree 0 has 2 entries of threshold, not 1"),
        (("threshold=0.5", "threshold=abc"), "threshold holds something that is not a number"),
        (("threshold=0.5", "nothing=1"), "tree 0 has no line threshold"),
        (("num_leaves=2", "num_leaves=999999999999"), "tree 0 has 1 entries of split_feature, not 999999999998"),
        (("num_leaves=2", "num_leaves=x"), "num_leaves is b'x', not a whole number"),
        (("split_feature=0", "split_feature=5"), "there is no feature 5"),
        (("max_feature_idx=0", "max_feature_idx=99999999999"), "100000000000 features have 1 names"),
        (("leaf_value=1 2", "leaf_value=1 inf"), "tree 0, leaf 1: the value is not a finite number"),
        (("decision_type=8", "decision_type=12"), "missing type 3"),
        (("decision_type=8", "decision_type=1"), "tree 0: a split on categories has no set of them"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(change, message):
    content = one_split("0.5", 8).decode()
    assert change[0] in content
    with pytest.raises(ModelError, match=message):
        parse_lightgbm_text(content.replace(*change).encode())


def test_linear_trees_and_classes_are_refused():
    X, y = training_data()
    booster = lightgbm.train(
        {"objective": "regression", "linear_tree": True, "verbose": -1}, lightgbm.Dataset(np.nan_to_num(X), y), 2
    )
    with pytest.raises(ModelError, match="linear models in its leaves"):
        rw.load_model(booster)
    with pytest.raises(ModelError, match="linear models in its leaves"):
        from_lightgbm_json(booster.dump_model())
    classes = lightgbm.train({"objective": "multiclass", "num_class": 5, "verbose": -1}, lightgbm.Dataset(X, y), 2)
    with pytest.raises(ModelError, match="the model has 5 classes: a ranker has one score per document"):
        rw.load_model(classes)
    with pytest.raises(ModelError, match="the model has 5 classes"):
        from_lightgbm_json(classes.dump_model())
