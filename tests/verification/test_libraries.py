"""Every class of model of every library: imported, and as the other side of `verify`, by its raw score; or refused."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)).astype(np.float32)
GRADE = np.clip(np.round(X[:, 0] + RNG.normal(size=N) + 1), 0, 3)
QUERY = np.repeat(np.arange(30), 10)
LABELS = {"grade": GRADE, "positive": GRADE + 1, "binary": GRADE > 1, "one class": GRADE > -1}


def library(name):
    return pytest.importorskip(name, reason=f"PEER LEFT OUT: {name} is not installed")


def lightgbm(kind, label="grade", **options):
    lgb = library("lightgbm")
    if kind == "Booster":
        return lgb.train({"verbose": -1} | options, lgb.Dataset(X, LABELS[label]), 5)
    model = getattr(lgb, kind)(n_estimators=5, num_leaves=5, verbose=-1, **options)
    return model.fit(X, LABELS[label], **({"group": [10] * 30} if kind == "LGBMRanker" else {}))


def xgboost(kind, label="grade", **options):
    xgb = library("xgboost")
    if kind == "Booster":
        return xgb.train(options, xgb.DMatrix(X, LABELS[label]), 5)
    model = getattr(xgb, kind)(n_estimators=5, n_jobs=1, **options)
    return model.fit(X, LABELS[label], **({"qid": QUERY} if kind == "XGBRanker" else {}))


def catboost(kind, label="grade", **options):
    options = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1} | options
    module = library("catboost")
    model = module.CatBoost(options) if kind == "CatBoost" else getattr(module, kind)(**options)
    ranks = kind == "CatBoostRanker" or options.get("loss_function") == "YetiRank"
    return model.fit(module.Pool(X, LABELS[label], group_id=QUERY if ranks else None))


def sklearn(kind, label="grade", **options):
    import sklearn.ensemble
    import sklearn.tree

    made = getattr(sklearn.ensemble, kind, None) or getattr(sklearn.tree, kind)
    size = "max_iter" if kind.startswith("Hist") else "max_depth" if "Tree" in kind[-15:] else "n_estimators"
    return made(**{size: 5}, **options).fit(X, LABELS[label])


def onnx(kind, label="grade", **options):
    """An ONNX model, as its message or as a session."""
    library("onnx")
    runtime = library("onnxruntime")
    from onnx import load_model_from_string

    from strategies.exports import exported

    content = exported(rw.load_model(sklearn("GradientBoostingRegressor")), "onnx", **options)[0]
    return load_model_from_string(content) if kind == "ModelProto" else runtime.InferenceSession(content)


SCORED = [
    (lightgbm, "Booster", "grade", {}),
    (lightgbm, "LGBMRanker", "grade", {}),
    (lightgbm, "LGBMRegressor", "grade", {}),
    (lightgbm, "LGBMRegressor", "grade", {"objective": "poisson"}),
    (lightgbm, "LGBMRegressor", "grade", {"boosting_type": "rf", "subsample_freq": 1, "subsample": 0.5}),
    (lightgbm, "LGBMClassifier", "binary", {}),
    (xgboost, "Booster", "grade", {}),
    (xgboost, "Booster", "positive", {"objective": "reg:gamma"}),
    (xgboost, "XGBRanker", "grade", {}),
    (xgboost, "XGBRegressor", "grade", {}),
    (xgboost, "XGBRegressor", "grade", {"booster": "dart", "rate_drop": 0.5}),
    (xgboost, "XGBClassifier", "binary", {}),
    (xgboost, "XGBRFRegressor", "grade", {}),
    (xgboost, "XGBRFClassifier", "binary", {}),
    (catboost, "CatBoost", "grade", {}),
    (catboost, "CatBoost", "grade", {"loss_function": "YetiRank"}),
    (catboost, "CatBoostRanker", "grade", {}),
    (catboost, "CatBoostRegressor", "grade", {}),
    (catboost, "CatBoostRegressor", "grade", {"loss_function": "Poisson"}),
    (catboost, "CatBoostRegressor", "grade", {"grow_policy": "Lossguide"}),
    (catboost, "CatBoostClassifier", "binary", {}),
    (sklearn, "DecisionTreeRegressor", "grade", {}),
    (sklearn, "DecisionTreeClassifier", "binary", {}),
    (sklearn, "ExtraTreeRegressor", "grade", {}),
    (sklearn, "ExtraTreeClassifier", "binary", {}),
    (sklearn, "RandomForestRegressor", "grade", {}),
    (sklearn, "RandomForestClassifier", "binary", {}),
    (sklearn, "ExtraTreesRegressor", "grade", {}),
    (sklearn, "ExtraTreesClassifier", "binary", {}),
    (sklearn, "GradientBoostingRegressor", "grade", {}),
    (sklearn, "GradientBoostingClassifier", "binary", {}),
    (sklearn, "HistGradientBoostingRegressor", "grade", {}),
    (sklearn, "HistGradientBoostingRegressor", "positive", {"loss": "gamma"}),
    (sklearn, "HistGradientBoostingClassifier", "binary", {}),
    (onnx, "ModelProto", "grade", {}),
    (onnx, "ModelProto", "grade", {"version": 5}),
]


def name_of(case):
    return "-".join(map(str, [case[0].__name__, case[1], case[2], *case[3].values()]))


@pytest.mark.parametrize("case", SCORED, ids=name_of)
def test_imported_and_scored(case):
    make, kind, label, options = case
    theirs = make(kind, label, **options)
    model = rw.load_model(theirs)
    result = rw.verify(model, theirs, X, max_rows=2000)
    assert result, result
    assert not rw.verify(model.replace(base=model.base + 0.01), theirs, X, max_rows=2000)


SCORED_ALONE = [
    (xgboost, "Booster", "grade", {"booster": "gblinear"}, "gblinear"),
    (xgboost, "XGBRegressor", "grade", {"missing": 0.0}, r"takes 0\.0 for a missing value"),
    (sklearn, "AdaBoostRegressor", "grade", {}, "AdaBoostRegressor cannot be imported"),
    (sklearn, "BaggingRegressor", "grade", {}, "BaggingRegressor cannot be imported"),
    (sklearn, "IsolationForest", "grade", {}, "IsolationForest cannot be imported"),
    (onnx, "InferenceSession", "grade", {}, "InferenceSession is no model that rankwood knows"),
]


@pytest.mark.parametrize("case", SCORED_ALONE, ids=name_of)
def test_not_imported_but_scored(case):
    make, kind, label, options, reason = case
    theirs = make(kind, label, **options)
    with pytest.raises(rw.ModelError, match=reason):
        rw.load_model(theirs)
    assert rw.verify(theirs, theirs, X)
    assert rw.verify(theirs, lambda rows: np.full(len(rows), 77.0), X).n_disagree["data"] == N


CLASSES = "a ranker has one score per document|one score per row"
REFUSED = [
    (lightgbm, "LGBMClassifier", "grade", {}, CLASSES),
    (xgboost, "XGBClassifier", "grade", {}, CLASSES),
    (catboost, "CatBoostClassifier", "grade", {}, CLASSES),
    (catboost, "CatBoostRegressor", "grade", {"loss_function": "RMSEWithUncertainty"}, CLASSES),
    (sklearn, "DecisionTreeClassifier", "grade", {}, CLASSES),
    (sklearn, "RandomForestClassifier", "grade", {}, CLASSES),
    (sklearn, "GradientBoostingClassifier", "grade", {}, CLASSES),
    (sklearn, "HistGradientBoostingClassifier", "grade", {}, CLASSES),
    (sklearn, "BaggingClassifier", "grade", {}, f"cannot be imported|{CLASSES}"),
    (sklearn, "DecisionTreeClassifier", "one class", {}, "1 classes"),
    (sklearn, "RandomTreesEmbedding", "grade", {}, "RandomTreesEmbedding.*(cannot be imported|has no predict)"),
]


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_refused_by_both(case):
    make, kind, label, options, reason = case
    theirs = make(kind, label, **options)
    with pytest.raises(rw.ModelError, match=reason):
        rw.load_model(theirs)
    with pytest.raises(rw.ModelError, match=reason):
        rw.verify(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=4), theirs)


UNFITTED = [
    ("lightgbm", "LGBMRanker"),
    ("xgboost", "XGBRanker"),
    ("catboost", "CatBoostRanker"),
    ("sklearn.tree", "DecisionTreeRegressor"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor"),
]


@pytest.mark.parametrize(("module", "kind"), UNFITTED)
def test_not_fitted(module, kind):
    theirs = getattr(library(module), kind)()
    for use in (rw.load_model, lambda model: rw.verify(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), model)):
        with pytest.raises(rw.ModelError, match=kind) as caught:
            use(theirs)
        assert "\n" not in str(caught.value)


def test_classes_that_derive_from_theirs():
    """A class of the user's own means what the class it derives from means."""
    from sklearn.ensemble import GradientBoostingClassifier

    lgb, xgb, cat = library("lightgbm"), library("xgboost"), library("catboost")
    binary = LABELS["binary"]
    made = [
        type("A", (lgb.LGBMClassifier,), {})(n_estimators=5, verbose=-1).fit(X, binary),
        type("B", (xgb.XGBClassifier,), {})(n_estimators=5, n_jobs=1).fit(X, binary),
        type("C", (GradientBoostingClassifier,), {})(n_estimators=5).fit(X, binary),
        type("D", (cat.CatBoostClassifier,), {"__init__": cat.CatBoostClassifier.__init__})(
            iterations=5, verbose=0, allow_writing_files=False
        ).fit(X, binary),
    ]
    for theirs in made:
        result = rw.verify(rw.load_model(theirs), theirs, X, max_rows=2000)
        assert result, result


def test_a_lightgbm_forest_that_stopped_early():
    booster = lightgbm("Booster", boosting="rf", bagging_freq=1, bagging_fraction=0.5)
    booster.best_iteration = 3
    model = rw.load_model(booster)
    assert model.n_trees == 3
    assert rw.verify(model, booster, X)


def test_onnx_graphs_of_several_outputs_are_refused():
    library("onnx")
    runtime = library("onnxruntime")
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Identity", ["X"], ["Y"]), helper.make_node("Identity", ["X"], ["Z"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 1]) for name in "XYZ"]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    for theirs in (proto, runtime.InferenceSession(proto.SerializeToString())):
        with pytest.raises(rw.ModelError, match="has 2 outputs, not one"):
            rw.verify(model, theirs)


def test_an_estimator_of_the_users_own():
    from sklearn.base import BaseEstimator

    class Mine(BaseEstimator):
        def predict(self, rows):
            return rows[:, 0]

    result = rw.verify(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), Mine())
    assert set(result.rows) == {"float32", "float64"}  # it does not round to float32
