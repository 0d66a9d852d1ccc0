"""Models with categories in `convert`, `verify` and `inspect`: codes, names, and the check that convert advises."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import rankwood as rw

NEAR = [float(np.nextafter(number, 0)) for number in range(8)]
COLOURS = ["blue", "green, dark", "red", "white", "black", "pink"]


def coloured(thresholds=(-1.0, NEAR[2], NEAR[5], NEAR[6])):
    """A model as LightGBM's are read: blue, green and pink go right, the rest and missing values left."""
    return rw.Ensemble.from_trees(
        [(1, list(thresholds), 1.0, (0, 0.5, 2.0, (1, [NEAR[1], NEAR[2]], 5.0, 7.0, True)), True)],
        feature_names=["title bm25", "colour"],
        metadata={"categories": {"lists": [COLOURS], "columns": [1]}},
    )


@pytest.fixture
def model(tmp_path):
    coloured().save(tmp_path / "model.rw")
    return tmp_path / "model.rw"


@pytest.mark.filterwarnings("ignore::rankwood.ConversionWarning")
def test_the_check_that_convert_advises_tells_good_from_bad(rankwood, model, tmp_path):
    outcome = rankwood("convert", model, tmp_path / "m.ubj")
    assert outcome.status == 0, outcome.err
    (advised,) = re.findall(r"check with: rankwood (.*)", outcome.err)
    outcome = rankwood(*advised.split())
    assert outcome.status == 0, outcome.out
    assert "colour: categories, of which rows at thresholds have whole numbers from 0 on or nothing" in outcome.out
    assert rankwood(*advised.split(), "--categories", "any").status == 1
    for wrong in ([-1.0, NEAR[2]], [-1.0, NEAR[3], NEAR[5], NEAR[6]], [NEAR[1], NEAR[2], NEAR[5], NEAR[6]]):
        rw.save_as(coloured(wrong), tmp_path / "m.ubj")
        outcome = rankwood(*advised.split())
        assert outcome.status == 1
        assert "A goes left (categories 0, 1, 5 go right)" in outcome.out or "A goes right (categories" in outcome.out


def test_whole_numbers_in_onnx(rankwood, model, tmp_path):
    pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    options = ("--option", "version=5", "--option", "whole_numbers=True")
    assert rankwood("convert", model, tmp_path / "m.onnx", *options).status == 0
    assert rankwood("verify", model, tmp_path / "m.onnx").status == 0
    coloured([-1.0, NEAR[2]]).save(model)
    assert rankwood("verify", model, tmp_path / "m.onnx").status == 1


def test_convert_tells_of_codes_and_counts_the_leaves_of_the_file(rankwood, model, tmp_path):
    outcome = rankwood("convert", model, tmp_path / "solr.json", "--to", "solr")
    assert outcome.status == 0, outcome.err
    written = rw.load_model(tmp_path / "solr.json")
    assert written.n_leaves > coloured().n_leaves
    assert f"(solr) from {model} (rankwood): 1 trees, {written.n_leaves} leaves" in outcome.err
    assert "note: Solr compares codes of categories in colour, not texts, and NaN for what has no code" in outcome.err
    assert f"rankwood inspect {model} --categories" in outcome.err
    outcome = rankwood("convert", model, tmp_path / "model.txt", "--rename", "title bm25=bm25")
    assert outcome.status == 0, outcome.err  # it keeps the texts
    assert "note: " not in outcome.err
    assert rw.load_model(tmp_path / "model.txt").coding.lists == (tuple(COLOURS),)


def test_inspect_lists_codes(rankwood, model, models):
    outcome = rankwood("inspect", model, "--categories")
    assert outcome.status == 0, outcome.err
    assert re.search(r"colour +│ +1 │ +green, dark ", outcome.out)
    outcome = rankwood("inspect", model, "--categories", "--json")
    assert json.loads(outcome.out) == {"model": "model.rw", "categories": {"colour": COLOURS}}
    outcome = rankwood("inspect", models[0], "--categories")
    assert outcome.status == 2
    assert "one.rw does not list categories" in outcome.err


def test_other_names_for_an_engine(rankwood, model, tmp_path):
    vespa = ("convert", model, tmp_path / "vespa.json", "--to", "vespa")
    outcome = rankwood(*vespa)
    assert outcome.status == 2
    assert "Vespa would not take 'title bm25'" in outcome.err
    assert "give other names (rankwood convert --rename OLD=NEW, in Python feature_names=[...])" in outcome.err
    outcome = rankwood(*vespa, "--rename", "title bm25=bm25(title)", "--rename", "colour=attribute(colour)")
    assert outcome.status == 0, outcome.err
    names = ("bm25(title)", "attribute(colour)")
    assert rw.load_model(tmp_path / "vespa.json").feature_names == names
    (tmp_path / "names.json").write_text(json.dumps({"title bm25": names[0], "colour": names[1]}))
    first = (tmp_path / "vespa.json").read_bytes()
    assert rankwood(*vespa, "--rename", tmp_path / "names.json").status == 0
    assert (tmp_path / "vespa.json").read_bytes() == first
    renamed = coloured().replace(feature_names=names)
    assert rw.verify(renamed, tmp_path / "vespa.json", served_by="vespa")
    outcome = rankwood(*vespa, "--rename", "price=attribute(price)")
    assert outcome.status == 2
    assert "no feature 'price' to rename; its names are: title bm25, colour" in outcome.err


def test_a_file_that_vespa_does_not_take_is_told_why(rankwood, model, tmp_path):
    assert rankwood("convert", model, tmp_path / "m.ubj").status == 0
    outcome = rankwood("verify", model, tmp_path / "m.ubj", "--as", "vespa")
    assert outcome.status == 2
    assert "tree 0 splits by categories, which the engine does not read in this format" in outcome.err
    assert "leave the format out" not in outcome.err


def test_texts_from_training_to_every_command(rankwood, tmp_path):
    """Trained on a CSV file with texts; score, evaluate, verify, explain and inspect take the texts."""
    pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")
    rng = np.random.default_rng(3)
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    for path in (train, test):
        codes, price = rng.integers(len(COLOURS), size=400), rng.normal(size=400).round(3)
        labels = (codes * 5 % 6 // 2 + (price > 0.7)).tolist()
        rows = [f'{row // 10},{labels[row]},{price[row]},"{COLOURS[code]}"' for row, code in enumerate(codes.tolist())]
        path.write_text("qid,label,price,colour\n" + "\n".join(rows) + "\n")
    small = ("-p", "n_trees=5", "-p", "n_leaves=5", "-p", "category_smoothing=1")
    out, other = tmp_path / "model.rw", tmp_path / "refit.rw"
    learn = ("train", "lambdamart", "--train", train, "--valid", test, "--test", test, *small)
    refused = rankwood(*learn, "-o", out)
    assert refused.status == 2
    assert "column 'colour' holds string values such as" in refused.err
    assert "categorical_features" in refused.err
    outcome = rankwood(*learn, "-o", out, "-p", "categorical_features=colour", "--json")
    assert outcome.status == 0, outcome.err
    model = rw.load_model(out)
    assert model.coding.lists == (tuple(sorted(COLOURS)),)
    assert model.metadata["parameters"]["categorical_features"] == ["colour"]
    data = rw.read_csv(test, coding=model.coding)
    measured = rw.evaluate(model, data, "nDCG@10").means["nDCG@10"]
    assert json.loads(outcome.out)["measures"]["nDCG@10"] == pytest.approx(measured, abs=1e-12)
    told = json.loads(rankwood("evaluate", out, "--data", test, "--json").out)
    assert f'"nDCG@10": {measured}' in json.dumps(told)
    assert rankwood("score", out, "--data", test, "-o", tmp_path / "scores.txt").status == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), model.score(data.X), rtol=1e-12)
    assert rankwood("refit", out, "--train", train, "--valid", test, "-o", other).status == 0
    assert rw.load_model(other).coding == model.coding
    assert rankwood("verify", out, out, "--data", test).status == 0
    shown = rankwood("explain", out, "--data", test, "--query", "3", "--pair", "1", "2").out
    pair = [line for line in shown.splitlines() if "colour" in line]
    assert pair
    assert any(colour[:10] in pair[0] for colour in COLOURS)
    told = json.loads(rankwood("explain", out, "--data", test, "--query", "3", "--pair", "1", "2", "--json").out)
    (values,) = [one["values"] for one in told["features"] if one["feature"] == "colour"]
    assert set(values) <= set(COLOURS)
    assert "not in {" in rankwood("inspect", out, "--tree", "0").out
    assert "green, dark" in rankwood("inspect", out, "--categories").out
