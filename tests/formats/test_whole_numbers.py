"""Zero against thresholds next to it: data of whole numbers that is mostly zero, through every importer and exporter.

A split between -1 and 0, or between 0 and 1, is where tools write thresholds such as -1e-35, -0.0 or a denormal.
"""

from __future__ import annotations

import ctypes
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import elasticsearch, es_ltr, lightgbm_json, quickrank, ranklib, solr
from rankwood.formats.ranklib_quickrank import parse_ranklib
from rankwood.formats.registry import EXPORTERS
from rankwood.scoring.c_library import find_compiler
from strategies.adversarial_rows import TINY, adversarial_rows, assert_close, whole_number_data, whole_numbers
from strategies.exports import exported, telling

OPTIONS = {"missing": "ignore"}
READ_AS_ZERO = 1.0000000180025095e-35  # LightGBM
SLACK = 3e-6  # Solr: values closer to zero than this may go the other way, zero itself may not


def lightgbm_model(X, y, **parameters):
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    options = {"objective": "lambdarank", "num_leaves": 12, "verbose": -1, "min_data_in_leaf": 3, "num_threads": 1}
    return lightgbm.train(options | parameters, lightgbm.Dataset(X, y, group=[20] * 30), 10)


def xgboost_model(X, y, **parameters):
    xgboost = pytest.importorskip("xgboost", reason="XGBOOST ABSENT: pip install 'rankwood[formats]'")
    data = xgboost.DMatrix(X, y)
    data.set_group([20] * 30)
    return xgboost.train({"objective": "rank:ndcg", "max_depth": 5, "nthread": 1} | parameters, data, 10)


def catboost_model(X, y, **parameters):
    catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    options = {"iterations": 10, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoost(options | parameters).fit(catboost.Pool(X, y))


def sklearn_model(X, y, kind):
    import sklearn.ensemble

    return getattr(sklearn.ensemble, kind)(random_state=0, max_leaf_nodes=20).fit(X, y)


def own_model(X, y, **parameters):
    return rw.LambdaMART(n_trees=10, n_leaves=8, **parameters).fit(X, y, group=[20] * 30)


SOURCES = {
    "lightgbm": (lightgbm_model, {}),
    "lightgbm zero_as_missing": (lightgbm_model, {"zero_as_missing": True}),
    "lightgbm use_missing=false": (lightgbm_model, {"use_missing": False}),
    "xgboost hist": (xgboost_model, {"tree_method": "hist"}),
    "xgboost exact": (xgboost_model, {"tree_method": "exact"}),
    "catboost": (catboost_model, {}),
    "catboost lossguide": (catboost_model, {"grow_policy": "Lossguide"}),
    "sklearn trees": (sklearn_model, {"kind": "RandomForestRegressor"}),
    "sklearn histograms": (sklearn_model, {"kind": "HistGradientBoostingRegressor"}),
    "rankwood": (own_model, {}),
}


def predict(theirs, X):
    if type(theirs).__module__.startswith("xgboost"):
        import xgboost

        return theirs.predict(xgboost.DMatrix(X), output_margin=True)
    return theirs.predict(X)


@pytest.mark.parametrize("source", SOURCES)
def test_imported_models_send_zero_where_the_tool_does(source):
    X, y = whole_number_data()
    train, parameters = SOURCES[source]
    theirs = train(X, y, **parameters)
    model = rw.load_model(theirs)
    near = adversarial_rows(model, 400, missing="missing" in source, infinite=False)
    for rows in (X, near, near.astype(np.float32)):
        assert_close(predict(theirs, rows), model, rows)


def names(model):
    return [f"f{number}" for number in range(model.n_features)]


def by_lightgbm(content, X, model):
    return pytest.importorskip("lightgbm").Booster(model_str=content).predict(X)


def by_xgboost(content, X, model):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.Booster(model_file=bytearray(content)).predict(xgboost.DMatrix(X))


def by_onnx(content, X, model):
    session = pytest.importorskip("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X.astype(np.float64)})[0][:, 0]


def by_python(content, X, model):
    module: dict = {}
    exec(compile(content, "model.py", "exec"), module)
    return [module["score"](row) for row in X]


def by_numpy(content, X, model):
    module: dict = {}
    exec(compile(content, "model.py", "exec"), module)
    return module["score"](X)


READERS = {
    "lightgbm": by_lightgbm,
    "lightgbm-json": lambda content, X, model: lightgbm_json.score(content, X),
    "vespa": lambda content, X, model: lightgbm_json.score(content, X, vespa=True),
    "xgboost": by_xgboost,
    "xgboost-dump": lambda content, X, model: es_ltr.score(content, X, names(model)),
    "elasticsearch": lambda content, X, model: elasticsearch.score(content, X, names(model)),
    "ranklib": lambda content, X, model: ranklib.score(content, X),
    "quickrank": lambda content, X, model: quickrank.score(content, X),
    "solr": lambda content, X, model: solr.score(content, X, names(model)),
    "onnx": by_onnx,
    "python": by_python,
    "numpy": by_numpy,
}


def test_every_format_is_tried():
    assert set(READERS) | {"rankwood", "c", "so"} == set(EXPORTERS)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("source", ["lightgbm", "xgboost exact", "sklearn trees", "rankwood"])
def test_exported_models_send_whole_numbers_where_they_go_here(source, name):
    X, y = whole_number_data()
    train, parameters = SOURCES[source]
    model = telling(rw.load_model(train(X, y, **parameters)))
    content, _ = exported(model, name, **OPTIONS)
    assert_array_equal(READERS[name](content, X[:200], model), model.score(X[:200]))


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=25)
@given(data=st.data())
def test_thresholds_next_to_zero(name, data):
    n_nodes = data.draw(st.integers(1, 6))
    pool = st.one_of(st.sampled_from(TINY), st.floats(-1e-5, 1e-5), st.sampled_from([-1.0, 1.0, -0.99999994]))
    trees = [(node % 2, data.draw(pool), 1.0, 2.0) for node in range(n_nodes)]
    model = rw.Ensemble.from_trees(trees, n_features=2)
    model = model.replace(leaf_value=2.0 ** np.arange(model.n_leaves))  # the score tells every leaf
    content, _ = exported(model, name, **OPTIONS)
    whole = whole_numbers(50, 2)
    assert_array_equal(READERS[name](content, whole, model), model.score(whole))
    near = np.resize(near_zero(name), (len(TINY) + 4, 2))
    if name == "solr":
        near = np.where(np.abs(near) <= SLACK, 0, near)
    assert_array_equal(READERS[name](content, near, model), model.score(near))


READABLE = ("lightgbm", "lightgbm-json", "vespa", "xgboost", "xgboost-dump", "ranklib", "quickrank", "onnx")


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("threshold", TINY)
def test_thresholds_next_to_zero_come_back(name, threshold, tmp_path):
    if name == "onnx":
        pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    model = rw.Ensemble.from_trees([(0, threshold, 1.0, 2.0, threshold >= 0)])
    path = tmp_path / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rw.ConversionWarning)
        rw.save_as(model, path, name)
    again = rw.load_model(path)
    rows = near_zero(name)
    assert_array_equal(again.score(rows), model.score(rows))
    assert_array_equal(again.score([[np.nan]]), model.score([[np.nan]]))


def near_zero(name):
    with np.errstate(under="ignore"):
        rows = np.array([*TINY, -1, 1, 2], dtype=np.float32)[:, None]
    return np.where(np.abs(rows) <= READ_AS_ZERO, 0, rows) if name.startswith("lightgbm") else rows


def test_ranklib_sends_what_is_missing_where_it_sends_zero():
    """Also when a threshold is negative in the text and zero in float32."""
    text = exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), "ranklib", **OPTIONS)[0].replace("0.5", "-1e-50")
    model = parse_ranklib(text.encode())
    assert_array_equal(model.score([[np.nan], [0.0]]), ranklib.score(text, np.array([[np.nan], [0.0]])))


def test_lightgbm_says_when_a_threshold_lies_among_what_it_reads_as_zero():
    for threshold in TINY:
        model = rw.Ensemble.from_trees([(0, threshold, 1.0, 2.0)])
        with np.errstate(under="ignore"):
            near = np.array(TINY)[:, None]
        goes = by_lightgbm(exported(model, "lightgbm")[0], near, model) == model.score(near)
        said = bool(exported(model, "lightgbm")[1])
        assert said == (not goes.all() if threshold else False)


@pytest.mark.skipif(isinstance(find_compiler(), str), reason="NO C COMPILER")
def test_thresholds_next_to_zero_in_c(tmp_path):
    trees = [(0, threshold, 1.0, 2.0) for threshold in TINY]
    model = rw.Ensemble.from_trees(trees, n_features=1)
    model = model.replace(leaf_value=2.0 ** np.arange(model.n_leaves) % 1e15)
    rw.save_as(model, tmp_path / "tiny.so", name="tiny")
    library = ctypes.CDLL(str(tmp_path / "tiny.so"))
    library.tiny_score.restype = ctypes.c_double
    with np.errstate(under="ignore"):
        rows = np.concatenate([np.array(TINY, dtype=np.float32), np.float32([-2, -1, 1, 2])])
    scores = [library.tiny_score(row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))) for row in rows[:, None]]
    assert_array_equal(scores, model.score(rows[:, None]))
