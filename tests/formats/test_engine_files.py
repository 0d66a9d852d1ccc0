"""Files of search engines, read: they score as the engines do, by evaluators written from what those do."""

from __future__ import annotations

import base64
import gzip
import json
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_array_equal
from test_fuzz import NAMED, plugin_body

import rankwood as rw
from oracles import elasticsearch, es_ltr, solr
from rankwood.formats.registry import load_served
from rankwood.scoring.agreement import adversarial_rows
from strategies.exports import exported, models_and_rows, outputs, telling

few = settings(max_examples=30)


def read(content, format=None, name="model.json"):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder) / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return rw.load_model(path, format=format)


def names(model):
    return [f"f{number}" for number in range(model.n_features)]


def widened(model, n_features):
    return model.replace(n_features=max(n_features, model.n_features))


# Solr.


@few
@given(models_and_rows(dtype=np.float32))
def test_solr_files_score_as_solr_does(given_):
    model, X = given_
    content, _ = exported(telling(model), "solr", missing="ignore")
    again = widened(read(content), model.n_features)
    assert again.metadata["source"]["format"] == "solr"
    assert_array_equal(outputs(again, X)[~np.isnan(X).any(axis=1)],
                       solr.outputs(content, X[~np.isnan(X).any(axis=1)], names(model)))  # fmt: skip
    assert_array_equal(again.leaves(X), again.leaves(np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf)))


SOLR = {
    "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
    "name": "mine",
    "store": "shop",
    "features": [{"name": "title", "norm": {"class": "org.apache.solr.ltr.norm.IdentityNormalizer"}}, {"name": "age"}],
    "params": {
        "trees": [
            {"weight": "1f", "root": {"feature": "title", "threshold": "0.5f", "left": {"value": "-100"}, "right": {
                "feature": "age", "threshold": 10.0, "left": {"value": 50}, "right": {"value": "75"}}}},
            {"weight": "2", "root": {"value": "-10"}},
        ]
    },
}  # fmt: skip


def changed(**params):
    return SOLR | {"params": SOLR["params"] | params}


@pytest.mark.parametrize(
    "stored",
    [SOLR, [SOLR], {"responseHeader": {"status": 0}, "models": [SOLR]}, {"initArgs": {}, "managedList": [SOLR]}],
    ids=["uploaded", "list", "downloaded", "file"],
)
def test_solr_models_as_they_are_uploaded_downloaded_and_kept(stored):
    model = read(json.dumps(stored))
    assert model.feature_names == ("title", "age")
    assert model.score([[0.5, 0], [0.500001, 0], [1, 11], [1, 10], [1, np.nan]]).tolist() == [-120, -120, 55, 30, 30]


def test_solr_follows_missing_from_9_2_on():
    root = {"feature": "title", "threshold": "0", "left": {"value": "1"}, "right": {"value": "2"}}
    trees = [{"weight": "1", "root": root | {"missing": side}} for side in ("left", "right")]
    model = read(json.dumps(changed(trees=trees, isNullSameAsZero="false")))
    assert model.leaves([[np.nan, 0.0]]).tolist() == [[0, 1]]
    assert read(json.dumps(changed(trees=trees))).leaves([[np.nan, 0.0]]).tolist() == [[0, 0]]


def test_a_feature_that_solr_does_not_know_ends_the_tree_with_0(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(SOLR | {"features": [{"name": "title"}]}))
    with pytest.warns(UserWarning, match="such a tree adds 0"):
        model = rw.load_model(tmp_path / "model.json")
    assert model.score([[0.0], [1.0]]).tolist() == [-120, -20]


NORM = {"name": "age", "norm": {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": {"avg": "1"}}}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ([SOLR, SOLR], "the file has 2 models of Solr, not one: keep one of them (mine, mine)"),
        (SOLR | {"class": "org.apache.solr.ltr.model.LinearModel"}, "this is Solr's LinearModel"),
        (SOLR | {"class": "x.DefaultWrapperModel"}, "import that file"),
        (SOLR | {"features": [NORM]}, "Solr changes feature age by StandardNormalizer"),
        (changed(trees=[{"root": {"value": "1"}}]), "tree 0 has no entry 'weight'"),
        (changed(trees=[{"weight": "1", "root": {"value": "1", "left": {}}}]), "children but no feature"),
        (changed(trees=[{"weight": "1", "root": {"value": "NaN"}}]), "tree 0: a leaf is NaN"),
    ],
)
def test_solr_refusals(model, message):
    with pytest.raises(rw.ModelError, match=re.escape(message)):
        read(json.dumps(model))


# Elasticsearch.


@few
@given(models_and_rows())
def test_elasticsearch_files_score_as_elasticsearch_does(given_):
    model, X = given_
    X = np.where(np.isinf(X), 1, X)
    content, _ = exported(model, "elasticsearch")
    again = read(content)
    # Elasticsearch adds trees up with what rounding lost; what each tree says is the same
    assert_array_equal(outputs(again, X), elasticsearch.outputs(content, X, names(model)))
    assert_array_equal(again.leaves(X), model.leaves(X))


def test_elasticsearch_models_as_they_are_uploaded_and_downloaded():
    body = json.loads(exported(NAMED, "elasticsearch")[0])
    packed = base64.b64encode(gzip.compress(json.dumps(body["definition"]).encode())).decode()
    stored = {"model_id": "m", "compressed_definition": packed}
    forms = [body, body["definition"], stored, {"count": 1, "trained_model_configs": [body]},
             {"trained_model_configs": [stored]}]  # fmt: skip
    for form in forms:
        model = read(json.dumps(form))
        assert model.feature_names == NAMED.feature_names
        assert model == NAMED


def test_elasticsearch_comparisons_names_and_weights():
    def tree(kind, feature_names):
        nodes = [{"node_index": 2, "leaf_value": [2.0]}, {"node_index": 1, "leaf_value": 1.0},
                 {"node_index": 0, "decision_type": kind, "threshold": 0.5, "split_feature": 0, "left_child": 1,
                  "right_child": 2, "default_left": True}]  # fmt: skip
        return {"tree": {"feature_names": feature_names, "tree_structure": nodes}}

    trees = [tree(kind, ["b"]) for kind in ("lt", "lte", "gt", "gte")]
    model = {"feature_names": ["a", "b"], "trained_models": trees, "aggregate_output": {"weighted_sum": {}}}
    read_ = read(json.dumps({"trained_model": {"ensemble": model}}))
    one, two = 1.0, 2.0
    expected = {0.4: [one, one, two, two], 0.5: [two, one, two, one], 0.6: [two, two, one, one], np.nan: [one] * 4}
    for value, values in expected.items():
        assert outputs(read_, np.array([[7.0, value]])).tolist() == [values]
    model["aggregate_output"] = {"logistic_regression": {"weights": [1, 2, 3, 4]}}
    assert read(json.dumps({"trained_model": {"ensemble": model}})).tree_weights.tolist() == [1, 2, 3, 4]
    model["aggregate_output"] = {"weighted_mode": {}}
    with pytest.raises(rw.ModelError, match="joined by weighted_mode"):
        read(json.dumps({"trained_model": {"ensemble": model}}))


def test_a_packed_definition_does_not_grow_without_bound():
    packed = base64.b64encode(gzip.compress(b" " * (100 << 20))).decode()
    with pytest.raises(rw.ModelError, match="cut off, or too large to believe"):
        read(json.dumps({"compressed_definition": packed}))


# Plugins.


def test_plugins_give_the_names_of_the_feature_set():
    X = adversarial_rows(NAMED).single
    for kind, definition in (("xgboost+json", "xgboost-dump"), ("ranklib", "ranklib")):
        content, _ = exported(NAMED, definition, missing="ignore")
        model = read(plugin_body(f"model/{kind}", content))
        assert model.feature_names == NAMED.feature_names
        rows = X if kind == "xgboost+json" else X[~np.isnan(X).any(axis=1)]
        assert_array_equal(model.score(rows), NAMED.score(rows))
        assert model.metadata["source"]["type"] == f"model/{kind}"
    body = {"model": {"name": "m", "model": {"type": "model/xgboost+json", "definition": json.loads(
        exported(NAMED, "xgboost-dump", objective="rank:ndcg")[0])}}}  # fmt: skip
    assert read(json.dumps(body)).feature_names == ("age", "clicks", "length")  # in the order of the alphabet


@few
@given(models_and_rows(dtype=np.float32))
def test_plugin_bodies_score_as_plugins_do(given_):
    model, X = given_
    content, messages = exported(telling(model), "xgboost-dump")
    if messages:  # infinite thresholds
        return
    body = {"model": {"type": "model/xgboost+json", "definition": content}}
    again = widened(read(json.dumps(body)), model.n_features)
    assert_array_equal(outputs(again, X), es_ltr.outputs(content, X, names(model)))


def test_raw_models_have_their_leaves_in_base_weights_and_no_base_score():
    content = json.loads(exported(NAMED.replace(base=0.25), "xgboost", suffix=".json")[0])
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    content["learner"]["learner_model_param"]["base_score"] = "7"
    model = read(plugin_body("model/xgboost+json+raw", json.dumps(content)))
    X = adversarial_rows(NAMED).single
    assert_array_equal(model.score(X), NAMED.score(X) + 0.25)
    tree["base_weights"] = [100 + weight for weight in tree["base_weights"]]
    assert_array_equal(read(plugin_body("model/xgboost+json+raw", json.dumps(content))).score(X), model.score(X) + 100)


def test_missing_values_taken_for_0_by_opensearch():
    dump = json.loads(exported(NAMED, "xgboost-dump")[0])
    body = {"type": "model/xgboost+json", "definition": {"splits": dump, "missing_as_zero": True}}
    model = read(json.dumps(body))
    assert_array_equal(model.leaves(np.full((1, 3), np.nan)), model.leaves(np.zeros((1, 3))))


@pytest.mark.parametrize(
    ("kind", "message"),
    [("linear", "type model/linear is not read"), ("ranklib", "Coordinate|damaged|XML"), ("xgboost+json", "damaged")],
)
def test_plugin_refusals(kind, message):
    with pytest.raises(rw.ModelError, match=message):
        read(plugin_body(f"model/{kind}", "{no model"))


def test_normalised_features_are_refused():
    body = {"type": "model/ranklib", "definition": "", "feature_normalizers": {"a": {"standard": {}}}}
    with pytest.raises(rw.ModelError, match="normalises features"):
        read(json.dumps(body))


# Vespa.


def vespa_expression(node, row):
    """Vespa's `if (x < t, yes, no)`, or `if (!(x >= t), yes, no)` where a missing value goes with yes."""
    while "children" in node:
        yes, no = node["children"]
        value, threshold = row[int(node["split"][1:])], float(np.float32(node["split_condition"]))
        node = yes if (not value >= threshold if node["missing"] == node["yes"] else value < threshold) else no
    return node["leaf"]


@few
@given(models_and_rows())
def test_dumps_of_xgboost_in_vespa(given_):
    model, X = given_
    content, messages = exported(telling(model), "xgboost-dump")
    if messages:
        return
    again = widened(read(content, "vespa"), model.n_features)
    expected = [[vespa_expression(tree, row) for tree in json.loads(content)] for row in X.astype(np.float64)]
    assert_array_equal(outputs(again, X), expected)


def test_models_of_xgboost_in_vespa_compare_with_the_float32_before():
    content, _ = exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), "xgboost", suffix=".ubj")
    written = np.nextafter(np.float32(0.5), np.float32(1))
    below = np.nextafter(written, np.float32(0))  # 0.5 itself, which so goes right
    model = read(content, "vespa", "model.ubj")
    assert model.score([[0.5], [np.nextafter(0.5, 0)]]).tolist() == [2.0, 1.0]
    assert below == 0.5


def as_expression(node, names):
    """What Vespa's importer of LightGBM makes of a node."""
    if "leaf_value" in node:
        return repr(float(node["leaf_value"]))
    name, limit = names[node["split_feature"]], repr(float(node["threshold"]))
    condition = f"!({name} >= {limit})" if node["default_left"] else f"{name} < {limit}"
    sides = [as_expression(node[side], names) for side in ("left_child", "right_child")]
    return f"if ({condition}, {sides[0]}, {sides[1]})"


@few
@given(models_and_rows())
def test_ranking_expressions_score_as_the_dump_they_were_made_of(given_):
    model, X = given_
    content, messages = exported(model, "vespa")
    if messages:  # infinite thresholds
        return
    dump = json.loads(content)
    trees = [as_expression(tree["tree_structure"], names(model)) for tree in dump["tree_info"]]
    if not any(tree.startswith("if") for tree in trees[:1]):
        return
    again = widened(read(" + \n".join(trees), name="model.expression"), model.n_features)
    assert_array_equal(again.score(X), read(content).score(X))


def test_names_and_comparisons_of_ranking_expressions():
    text = """sigmoid(if (attribute(age) <= 2.5, 1, if(fieldMatch(title, x).proximity > -1.0E-2, 2.0, -3)) +
        if ( query(a) >= 7 , 10, 20 ) + 0.5)"""
    model = read(text)
    assert model.feature_names == ("fieldMatch(title, x).proximity", "attribute(age)", "query(a)")
    X = [[0, 2.5, 7], [-0.01, 3, 6], [0, 3, np.nan], [np.nan, np.nan, 8]]
    assert model.score(X).tolist() == [11.5, 17.5, 22.5, 7.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if (a < 1, 2, 3) * 2", "at character 17 '+' was expected, not * 2"),
        ("if (a < b, 2, 3)", "the condition a < b compares no feature with a number"),
        ('if (a in ["x"], 2, 3)', "compares no feature with a number"),
        ("if (isNan(a) || (a < 1), 2, 3)", "compares no feature with a number"),
        ("if (a < 1, 2", "',' was expected, not its end"),
        ("if (a < 1, 2, b)", "a number or if (...) was expected, not b)"),
        ("if (" * 5000, "compares no feature|nested too deeply"),
        ("if (a < 1, 1," + "if (a < 1, 1," * 5000, "nested too deeply"),
    ],
)
def test_expressions_that_are_no_trees(text, message):
    with pytest.raises(rw.ModelError) as refused:
        read(text)
    assert any(part in str(refused.value) for part in message.split("|"))


def test_what_engines_take(tmp_path):
    rw.save_as(NAMED, tmp_path / "m.json", "xgboost")
    rw.save_as(NAMED, tmp_path / "m.txt")
    NAMED.save(tmp_path / "m.rw")
    with pytest.raises(rw.ModelError, match="Vespa takes XGBoost's model as UBJSON"):
        load_served(tmp_path / "m.json", "vespa")
    with pytest.raises(rw.ModelError, match="Vespa takes no lightgbm file"):
        load_served(tmp_path / "m.txt", "vespa")
    with pytest.raises(rw.ModelError, match=r"m.rw: Solr takes no rankwood file: it takes solr; rankwood convert"):
        load_served(tmp_path / "m.rw", "solr")
    with pytest.raises(rw.ModelError, match="there is no search engine 'lucene'"):
        load_served(tmp_path / "m.rw", "lucene")


# Names: a file that names only the features that it uses.


def test_a_file_that_names_used_features_fits_a_model_that_names_all(tmp_path):
    model = NAMED.replace(threshold=[0.5, 1.0, 0.25, 0.0])  # thresholds that Solr can compare with
    rw.save_as(model, tmp_path / "solr.json", "solr", missing="ignore")
    used = rw.load_model(tmp_path / "solr.json")
    assert used.feature_names == ("clicks", "age", "length")
    whole = rw.load_model(tmp_path / "solr.json", feature_names=model.feature_names)
    X = np.nan_to_num(adversarial_rows(model).single)
    assert_array_equal(whole.score(X), model.score(X))
    assert rw.verify(model, used, dtype="float32", missing="ignore")


# Verification of what is deployed.


@pytest.mark.parametrize("engine", ["solr", "elasticsearch", "opensearch", "vespa"])
def test_what_is_deployed_is_verified(engine, tmp_path):
    from rankwood.formats.registry import SERVING

    path = tmp_path / "model.json"
    rw.save_as(NAMED, path, SERVING[engine].written, missing="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert rw.verify(NAMED, path, served_by=engine, missing="ignore")
        other = NAMED.replace(leaf_value=[*NAMED.leaf_value[:-1], 6.001])
        assert not rw.verify(other, path, served_by=engine, missing="ignore")
        moved = NAMED.replace(threshold=[*NAMED.threshold[:-2], 0.251, 0.0])
        result = rw.verify(moved, path, served_by=engine)
    assert not result
    assert f"model.json in {SERVING[engine].title}" in str(result)


def test_a_ranking_expression_is_verified(tmp_path):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, True)], feature_names=["bm25(title)"])
    (tmp_path / "m.expression").write_text("if (!(bm25(title) >= 0.5000000000000001), 1.0, 2.0)")
    with pytest.warns(UserWarning, match="columns are taken as they appear"):
        assert rw.verify(model, tmp_path / "m.expression", served_by="vespa")


def test_missing_values_that_solr_takes_for_0_are_found(tmp_path):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, False)])
    rw.save_as(model, tmp_path / "solr.json", "solr", missing="ignore")
    result = rw.verify(model, tmp_path / "solr.json", served_by="solr")
    assert not result
    assert "takes a missing value for 0" in str(result)
    assert rw.verify(model, tmp_path / "solr.json", served_by="solr", missing="ignore")


def test_thresholds_that_solr_cannot_reach_are_said_and_no_difference(tmp_path):
    model = rw.Ensemble.from_trees([(0, -1e-35, 1.0, 2.0, False)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rw.save_as(model, tmp_path / "solr.json", "solr")
    result = rw.verify(model, tmp_path / "solr.json", served_by="solr")
    assert result
    assert "rows were left out: values within" in str(result)


def test_sums_in_float32_are_no_difference(tmp_path):
    rng = np.random.default_rng(0)
    trees = [(0, 0.5, *rng.normal(size=2)) for _ in range(300)]
    model = rw.Ensemble.from_trees(trees).replace(missing_left=np.ones(300, bool))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rw.save_as(model, tmp_path / "solr.json", "solr")
        result = rw.verify(model, tmp_path / "solr.json", served_by="solr")
    assert result
    assert result.rounding > 0


def test_wrong_use(tmp_path):
    with pytest.raises(rw.ModelError, match="B must be the file that solr serves, got function"):
        rw.verify(NAMED, lambda X: X, served_by="solr")
    with pytest.raises(rw.RankwoodError, match="missing must be 'compare' or 'ignore', got 'no'"):
        rw.verify(NAMED, NAMED, missing="no")
