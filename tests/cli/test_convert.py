"""`rankwood convert`, and models of other formats in other commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwood as rw

RANKLIB = """## LambdaMART
## No. of trees = 1
<ensemble>
<tree id="1" weight="0.5"><split><feature> 2 </feature><threshold> 0.5 </threshold>
<split pos="left"><output> 1.0 </output></split><split pos="right"><output> 2.0 </output></split></split></tree>
</ensemble>
"""


@pytest.fixture
def ranklib_file(tmp_path):
    path = tmp_path / "lambdamart.txt"
    path.write_text(RANKLIB)
    return path


def test_convert_to_our_own_format(rankwood, ranklib_file, tmp_path):
    outcome = rankwood("convert", ranklib_file, tmp_path / "out.rw")
    assert outcome.status == 0, outcome.err
    assert f"from {ranklib_file} (ranklib): 1 trees, 2 leaves" in outcome.err
    assert rw.Ensemble.load(tmp_path / "out.rw") == rw.load_model(ranklib_file)
    outcome = rankwood("convert", ranklib_file, tmp_path / "wide.rw", "--features", 136, "--from", "ranklib")
    assert outcome.status == 0, outcome.err
    assert rw.Ensemble.load(tmp_path / "wide.rw").n_features == 136


def test_convert_says_what_is_wrong(rankwood, ranklib_file, tmp_path):
    outcome = rankwood("convert", ranklib_file, tmp_path / "out.model")
    assert outcome.status == 2
    assert (
        "the name does not tell the format; choose with --to (in Python: format=) one of: rankwood, lightgbm"
        in outcome.err
    )
    outcome = rankwood("convert", ranklib_file, tmp_path / "out.rw", "--from", "lightgbm")
    assert outcome.status == 2
    assert "lambdamart.txt: this is no lightgbm model but looks like ranklib" in outcome.err
    outcome = rankwood("convert", ranklib_file, tmp_path / "out.x", "--to", "pmml")
    assert outcome.status == 2
    assert "pmml" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["lambdamart.txt"]


def test_convert_to_other_formats(rankwood, ranklib_file, tmp_path):
    model = rw.load_model(ranklib_file)
    for name, more in (("m.txt", ()), ("m.json", ("--to", "xgboost")), ("m.onnx", ("--option", "version=5"))):
        outcome = rankwood("convert", ranklib_file, tmp_path / name, *more)
        assert outcome.status == 0, outcome.err
        assert rw.verify(model, tmp_path / name, dtype="float32"), name
    mixed = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0, True), (0, 0.5, 1.0, 2.0, False)])
    mixed.save(tmp_path / "mixed.rw")
    to_solr = ("convert", tmp_path / "mixed.rw", tmp_path / "solr.json", "--to", "solr")
    refused = rankwood(*to_solr, "--option", "version=8.11.4")
    assert (refused.status, (tmp_path / "solr.json").exists()) == (2, False)
    told = rankwood(*to_solr, "--option", "version=8.11.4", "--missing", "ignore")
    assert (told.status, "Solr 9.2" in told.err) == (0, False)
    newer = rankwood(*to_solr)
    assert (newer.status, "for Solr 9.2 and later" in newer.err) == (0, True)
    wrong = rankwood("convert", ranklib_file, tmp_path / "m.onnx", "--option", "version")
    assert wrong.status == 2
    assert "NAME=VALUE" in wrong.err


def test_other_commands_read_any_format(rankwood, ranklib_file, data, data_file, models, tmp_path):
    """The file names two features, the data has six."""
    model = rw.load_model(ranklib_file, n_features=6)
    outcome = rankwood("evaluate", ranklib_file, models[0], "--data", data_file, "--json")
    assert outcome.status == 0, outcome.err
    found = json.loads(outcome.out)["models"][0]["measures"]["nDCG@10"]
    assert found == pytest.approx(rw.evaluate(model, data, ["nDCG@10"]).means["nDCG@10"])
    outcome = rankwood("score", ranklib_file, "--data", data_file)
    np.testing.assert_array_equal(np.array(outcome.out.split(), dtype=float), model.score(data.X))
    rw.write_csv(data, tmp_path / "data.csv")
    outcome = rankwood("score", ranklib_file, "--data", tmp_path / "data.csv")
    np.testing.assert_array_equal(np.array(outcome.out.split(), dtype=float), model.score(data.X))
    assert rankwood("compile", ranklib_file, "-o", tmp_path / "model.c").status == 0
    for command in (["inspect", ranklib_file, "--data", data_file, "--json"], ["inspect", ranklib_file]):
        assert rankwood(*command).status == 0
    outcome = rankwood("bench", ranklib_file, "--data", data_file, "--engine", "traverse", "--batch", 1, "--json")
    assert outcome.status == 0, outcome.err


def test_a_model_that_needs_more_features_than_the_data_has(rankwood, ranklib_file, tmp_path):
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    outcome = rankwood("evaluate", ranklib_file, "--data", narrow)
    assert outcome.status == 0, outcome.err
    assert "those after number 1 are 0 in all of the data" in outcome.err
