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
