"""Exports for search engines, read by evaluators written from what those engines do."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import elasticsearch, es_ltr, lightgbm_json, quickrank, ranklib, solr
from rankwood.formats.writing import plain
from strategies.exports import exported, models_and_rows, outputs, single_bound, telling

few = settings(max_examples=30)


def names(model):
    return [f"f{number}" for number in range(model.n_features)]


def within(X, messages, largest):
    """Rows without values that a warning speaks of: infinities, and those as large as the largest number."""
    speaks = any("infinite thresholds" in message for message in messages)
    return np.where(np.abs(X) >= largest, 1, X) if speaks else X


@few
@given(models_and_rows(dtype=np.float32))
def test_plugins_route_dumps_alike_and_add_up_in_float32(given_):
    model, X = given_
    content, messages = exported(telling(model), "xgboost-dump")
    X = within(X, messages, np.float32(3.4028234e38))
    assert_array_equal(es_ltr.outputs(content, X, names(model)), outputs(telling(model), X))
    content, _ = exported(model, "xgboost-dump", objective="rank:pairwise")
    assert_allclose(es_ltr.score(content, X, names(model)), model.score(X), rtol=0, atol=single_bound(model))


def test_dump_is_an_array_or_names_its_objective():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    assert isinstance(json.loads(exported(model, "xgboost-dump")[0]), list)
    assert json.loads(exported(model, "xgboost-dump", objective="rank:ndcg")[0])["objective"] == "rank:ndcg"
    with pytest.raises(rw.ModelError, match="objective must leave scores as they are"):
        exported(model, "xgboost-dump", objective="binary:logistic")


@few
@given(models_and_rows())
def test_elasticsearch_scores_alike(given_):
    model, X = given_
    X = np.where(np.isinf(X), 1, X)  # which it reads as missing
    content, messages = exported(model, "elasticsearch")
    assert messages == []
    exact = elasticsearch.score(content, X, names(model))  # but for the order of sums
    assert_allclose(exact, model.score(X), rtol=0, atol=single_bound(model) * 2.0**-29)
    routed = elasticsearch.outputs(exported(telling(model), "elasticsearch")[0], X, names(model))
    assert_array_equal(routed, outputs(telling(model), X))


def test_elasticsearch_takes_both_zeros_for_zero():
    """It holds -0.0 to be less than 0.0, as its real classes showed."""
    model = rw.Ensemble.from_trees([(0, -0.0, 1.0, 2.0)])
    content = exported(model, "elasticsearch")[0]
    assert "-0.0" not in content
    assert elasticsearch.score(content, np.array([[0.0], [-0.0]]), ["f0"]).tolist() == [1.0, 1.0]


def test_elasticsearch_body_has_the_extractors():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["title_bm25"])
    extractors = [{"query_extractor": {"feature_name": "title_bm25", "query": {"match": {"title": "{{query}}"}}}}]
    body = json.loads(exported(model, "elasticsearch", feature_extractors=extractors)[0])
    assert body["inference_config"] == {"learning_to_rank": {"feature_extractors": extractors}}
    assert "input" not in body  # which Elasticsearch refuses beside extractors
    assert "trained_model" in json.loads(exported(model, "elasticsearch", definition_only=True)[0])


@few
@given(models_and_rows(), st.booleans())
def test_dumps_score_alike_under_both_comparisons(given_, vespa):
    model, X = given_
    content, messages = exported(model, "vespa" if vespa else "lightgbm-json")
    X = within(X, messages, np.finfo(np.float64).max)
    assert_array_equal(lightgbm_json.score(content, X, vespa=vespa), model.score(X))
    content, _ = exported(telling(model), "vespa" if vespa else "lightgbm-json")
    routed = lightgbm_json.outputs(content, X, vespa=vespa)
    assert_array_equal(routed, outputs(telling(model), X))


@few
@given(models_and_rows())
def test_a_file_for_vespa_read_back_scores_as_vespa_does(given_):
    model, X = given_
    content, messages = exported(model, "vespa")
    again = read_json(content)
    assert again.metadata["source"]["format"] == "vespa"
    assert_array_equal(again.score(X), lightgbm_json.score(content, X, vespa=True))
    if not messages:
        assert again == plain(model.replace(threshold=model.threshold + 0.0))  # -0.0 is 0.0 then
    assert exported(again, "vespa")[0] == content


def read_json(content, format=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(content)
        return rw.load_model(path, format=format)


def test_a_file_for_vespa_is_not_taken_for_lightgbms():
    content, _ = exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 5.25)]), "vespa")
    assert read_json(content).score([[0.5]]) == [1.0]
    with pytest.raises(rw.ModelError, match="this is no lightgbm-json model but looks like vespa"):
        read_json(content, "lightgbm-json")
    plain_dump, _ = exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 5.25)]), "lightgbm-json")
    assert read_json(plain_dump).metadata["source"]["format"] == "lightgbm-json"


@pytest.mark.parametrize("name", ["f1", "1a", "a.b", "bm25(title)", "fieldMatch(title).proximity", "term(0).weight",
                                  "attribute(tags{red})", "nativeRank(title,body)", "f(N,bm25(N),true,sum)",
                                  'f("a b")', "f(-1)", "_x@y", "inf"])  # fmt: skip
def test_vespa_takes_names_of_rank_features(name):
    content, _ = exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=[name]), "vespa")
    assert json.loads(content)["feature_names"] == [name]


@pytest.mark.parametrize("name", ["a-b", "x+y", "a/b", "7", "1e5", "-1", "true", "x<y", "title bm25", "über", "f(a-b)",
                                  "a:b", "[x]", "(a)", "!a", "$x", "attribute(a)b", "f(a;b)", "f(a<b)"])  # fmt: skip
def test_names_that_vespa_would_compute_with_are_refused(name):
    """In Vespa itself these are not parsed, or silently taken for numbers and operators."""
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=2, feature_names=[name, "unused name"])
    with pytest.raises(rw.ModelError, match=r"Vespa would not take .* for the name of a feature"):
        exported(model, "vespa")


def test_a_dump_can_be_read_as_vespa_would():
    """As one that was written for Vespa before such files were marked."""
    dump = json.loads(exported(rw.Ensemble.from_trees([(0, 0.5, 1.0, 5.25)]), "lightgbm-json")[0])
    assert read_json(json.dumps(dump), "vespa").score([[0.5], [0.4]]).tolist() == [5.25, 1.0]
    node = dump["tree_info"][0]["tree_structure"]
    node |= {"decision_type": "==", "threshold": "0||3", "default_left": True}
    X = [[0.0], [1.0], [2.0], [3.0], [4.0], [np.nan]]
    assert read_json(json.dumps(dump), "vespa").score(X).tolist() == [1.0, 5.25, 5.25, 1.0, 5.25, 1.0]


def test_the_mark_adds_one_entry_to_the_dump():
    """Vespa looks at entries by name and passes over those that it does not know."""
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, -2.5, 2.0, 3.0))])
    for_vespa, dump = (json.loads(exported(model, name)[0]) for name in ("vespa", "lightgbm-json"))
    assert set(for_vespa) - set(dump) == {"rankwood"}
    assert for_vespa["rankwood"] == "vespa"


def test_dump_holds_what_lightgbm_dumps():
    lightgbm = pytest.importorskip("lightgbm")
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, -2.5, 2.0, 3.0)), 7.0], base=0.5)
    ours = json.loads(exported(model, "lightgbm-json")[0])
    theirs = lightgbm.Booster(model_str=exported(model, "lightgbm")[0]).dump_model()

    def same(one, other):
        if isinstance(one, dict):
            return all(same(one[key], other[key]) for key in one if key in other)
        return one == other

    assert set(ours) <= set(theirs) | {"pandas_categorical"}
    assert all(same(a, b) for a, b in zip(ours["tree_info"], theirs["tree_info"], strict=True))


@few
@given(models_and_rows(dtype=np.float32))
def test_ranklib_routes_alike_and_adds_up_in_float32(given_):
    model, X = given_
    X = np.where(np.isnan(X), 0, X)
    content, _ = exported(telling(model), "ranklib", missing="ignore")
    assert_array_equal(ranklib.outputs(content, X), outputs(telling(model), X))
    content, _ = exported(model, "ranklib", missing="ignore")
    assert_allclose(ranklib.score(content, X), model.score(X), rtol=0, atol=single_bound(model))


@few
@given(models_and_rows(dtype=np.float32))
def test_ranklib_reads_missing_values_as_zero(given_):
    model, X = given_
    model = telling(model).replace(missing_left=model.threshold >= 0)
    content, _ = exported(model, "ranklib")  # nothing to refuse
    assert_array_equal(ranklib.outputs(content, X), outputs(model, X))


@few
@given(models_and_rows(dtype=np.float32))
def test_quickrank_scores_alike(given_):
    model, X = given_
    X = np.where(np.isnan(X), 0, X)
    content, messages = exported(model, "quickrank", missing="ignore")
    X = within(X, messages, np.float32(3.4028234e38))
    assert_array_equal(quickrank.score(content, X), model.score(X))


@st.composite
def models_for_solr(draw):
    """Thresholds that Solr's sum can give: positive ones that are not tiny, and zero."""
    model, _ = draw(models_and_rows(dtype=np.float32))
    pool = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e30)), min_size=1, max_size=5))
    threshold = np.resize(np.array(pool), model.n_nodes)
    return model.replace(threshold=threshold)


@few
@given(models_for_solr(), st.data())
def test_solr_routes_alike_in_spite_of_its_slack(model, data):
    from strategies.ensembles import rows_near_thresholds

    X = data.draw(rows_near_thresholds(model, dtype=np.float32))
    content, messages = exported(telling(model), "solr")
    assert messages == [] or (len(messages) == 1 and "Solr 9.2 and later" in messages[0])
    assert_array_equal(solr.outputs(content, X, names(model)), outputs(telling(model), X))
    X = np.where(np.isnan(X), 0, X)
    content, messages = exported(telling(model), "solr", missing="ignore")
    assert messages == []
    assert_array_equal(solr.outputs(content, X, names(model)), outputs(telling(model), X))
    content, _ = exported(model, "solr", missing="ignore")
    assert_allclose(solr.score(content, X, names(model)), model.score(X), rtol=0, atol=single_bound(model))


@few
@given(models_and_rows(dtype=np.float32))
def test_solr_is_exact_unless_a_warning_says_how_far_it_is_off(given_):
    model, X = given_
    X = np.where(np.isnan(X), 0, X)
    content, messages = exported(telling(model), "solr", missing="ignore")
    routed = solr.outputs(content, X, names(model))
    if not any("may go the other way" in message for message in messages):
        assert_array_equal(routed, outputs(telling(model), X))
    finite = model.threshold[np.isfinite(model.threshold)]
    far = np.array([np.abs(row[:, None].astype(float) - finite).min(initial=np.inf) for row in X]) > 1e-6
    assert_array_equal(routed[far], outputs(telling(model), X)[far])


def test_solr_names_the_model_and_lists_used_features():
    model = rw.Ensemble.from_trees([(1, 0.5, 1.0, 2.0)], feature_names=["a", 'odd "name" \\ ü', "c"])
    written = json.loads(exported(model, "solr", missing="ignore", name="mine", store="shop")[0])
    assert (written["name"], written["store"]) == ("mine", "shop")
    assert written["features"] == [{"name": 'odd "name" \\ ü'}]
    assert written["params"]["trees"][0]["root"]["feature"] == 'odd "name" \\ ü'


def test_solr_is_told_where_missing_values_go_from_9_2_on():
    """Every split must say it: Solr stops at one that does not."""
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 1.0, 2.0, 4.0, True), False)])
    content, (message,) = exported(model, "solr")
    assert "for Solr 9.2 and later" in message
    assert '"defaultValue": "NaN"' in message
    params = json.loads(content)["params"]
    assert params["isNullSameAsZero"] is False
    root = params["trees"][0]["root"]
    assert (root["missing"], root["right"]["missing"]) == ("right", "left")
    assert solr.score(content, np.array([[np.nan, np.nan], [np.nan, 3.0]]), names(model)).tolist() == [2.0, 4.0]
    for version in ("9.2", "9.10.1", 10):
        assert exported(model, "solr", version=version)[0] == content


def test_solr_before_9_2_takes_missing_values_for_zero():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 1.0, 2.0, 4.0, True), False)])
    for version in ("9.1.1", "8.11.4", 9):
        with pytest.raises(
            rw.ModelError, match=r"Solr before 9\.2 reads a missing value as 0 at every split, and 1 of 2"
        ):
            exported(model, "solr", version=version)
        content, messages = exported(model, "solr", version=version, missing="ignore")
        assert messages == []
        assert "isNullSameAsZero" not in content
        assert '"missing"' not in content
    with_zero = model.replace(missing_left=model.threshold >= 0)
    assert exported(with_zero, "solr", version="8.11")[0] == content
    for version in ("new", 9.2, ""):
        with pytest.raises(rw.ModelError, match="version must be one of Solr's as text"):
            exported(model, "solr", version=version)


@pytest.mark.parametrize("name", ["ranklib", "quickrank"])
def test_directions_of_missing_values_that_cannot_be_said_are_refused(name):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, True), (0, 0.5, 1.0, (0, 1.0, 2.0, 3.0), True)])
    with pytest.raises(
        rw.ModelError, match=r"reads a missing value as 0 at every split, and 1 of 3 .* node 1 of tree 1"
    ):
        exported(model, name)
    exported(model, name, missing="ignore")
