"""`rankwood verify`."""

from __future__ import annotations

import json

import pytest

import rankwood as rw


def test_equal_models_end_with_status_0(rankwood, models, data, data_file):
    outcome = rankwood("verify", models[0], models[0], "--data", data_file)
    assert outcome.status == 0
    assert "agree on" in outcome.out
    assert f"{data.n_docs} data" in outcome.out


def test_different_models_end_with_status_1(rankwood, models):
    outcome = rankwood("verify", *models)
    assert outcome.status == 1
    assert "one.rw and two.rw DISAGREE" in outcome.out
    assert "different shapes" in outcome.out


def test_json_alone_on_standard_output(rankwood, models):
    outcome = rankwood("verify", *models, "--json", "--float32", "--tolerance", "1e-3")
    found = json.loads(outcome.out)
    assert outcome.status == 1
    assert found["agree"] is False
    assert set(found["rows"]) == {"float32"}
    assert found["max_absolute"] == pytest.approx(0.7)


def test_missing_file_is_wrong_use(rankwood, models, tmp_path):
    assert rankwood("verify", models[0], tmp_path / "none.rw").status == 2


def test_a_format_that_tells_only_the_features_used(rankwood, tmp_path):
    model = rw.Ensemble.from_trees([(1, 0.5, 1.0, 2.0, True)], n_features=7)
    model.save(tmp_path / "a.rw")
    rw.save_as(model, tmp_path / "b.txt", "ranklib")
    outcome = rankwood("verify", tmp_path / "a.rw", tmp_path / "b.txt", "--float32")
    assert outcome.status == 0, outcome.err


NAMED = rw.Ensemble.from_trees(
    [(2, 0.5, 1.0, (1, 1.5, 2.0, 3.0, True), True), (0, 0.25, 0.5, -0.5, True)],
    feature_names=["bm25", "clicks", "age", "unused"],
)


@pytest.mark.parametrize("engine", ["solr", "elasticsearch", "opensearch", "vespa"])
def test_what_a_search_engine_serves(rankwood, tmp_path, engine):
    from rankwood.formats.registry import SERVING

    NAMED.save(tmp_path / "model.rw")
    rw.save_as(NAMED, tmp_path / "served.json", SERVING[engine].written)
    outcome = rankwood("verify", tmp_path / "model.rw", tmp_path / "served.json", "--as", engine)
    assert outcome.status == 0, outcome.out + outcome.err
    assert f"served.json in {SERVING[engine].title} agree" in outcome.out
    outcome = rankwood("verify", tmp_path / "model.rw", "--as", engine)
    assert outcome.status == 0, outcome.out + outcome.err
    NAMED.replace(leaf_value=[1.0, 2.0, 3.0, 0.5, -0.25]).save(tmp_path / "other.rw")
    outcome = rankwood("verify", tmp_path / "other.rw", tmp_path / "served.json", "--as", engine, "--json")
    assert outcome.status == 1
    assert json.loads(outcome.out)["agree"] is False
    assert rankwood("verify", tmp_path / "model.rw", tmp_path / "model.rw", "--as", engine).status == 2


def test_served_files_are_compared_on_data_by_name(rankwood, tmp_path):
    NAMED.save(tmp_path / "model.rw")
    rw.save_as(NAMED, tmp_path / "served.json", "solr")
    (tmp_path / "data.csv").write_text("qid,label,unused,age,bm25,clicks\n1,0,7,0.5,0.3,2\n1,1,7,0.6,,1\n")
    outcome = rankwood(
        "verify", tmp_path / "model.rw", tmp_path / "served.json", "--as", "solr", "--data", tmp_path / "data.csv"
    )
    assert outcome.status == 0, outcome.out + outcome.err
    assert "2 data" in outcome.out


def test_missing_values_can_be_left_out(rankwood, tmp_path):
    NAMED.replace(missing_left=[False] * 3).save(tmp_path / "model.rw")
    assert rankwood("verify", tmp_path / "model.rw", "--as", "solr").status == 1
    assert rankwood("verify", tmp_path / "model.rw", "--as", "solr", "--no-missing").status == 0


def test_one_model_alone_is_wrong_use(rankwood, models):
    outcome = rankwood("verify", models[0])
    assert outcome.status == 2
    assert "--as solr" in outcome.err
