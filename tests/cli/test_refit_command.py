"""`rankwood refit`: the same trees with other leaves, what validation and test data say, and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refit")
    data = rw.make_ranking(n_queries=90, docs_per_query=12, n_features=6, seed=2)
    parts = [data.select_queries(range(30 * number, 30 * number + 30)) for number in range(3)]
    for name, part in zip(("train", "valid", "test"), parts, strict=True):
        rw.write_svmlight(part, folder / f"{name}.txt")
    model = rw.LambdaMART(n_trees=12, n_leaves=5, learning_rate=0.2).fit(parts[0]).ensemble_
    model.save(folder / "model.rw")
    rw.save_as(model, folder / "model.txt", "lightgbm")
    return folder


def arguments(folder, out, model="model.rw"):
    return ("refit", folder / model, "--train", folder / "train.txt", "--valid", folder / "valid.txt", "-o", out)


def test_a_better_model(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "better.rw"), "--test", folder / "test.txt")
    assert outcome.status == 0
    better = rw.load_model(tmp_path / "better.rw")
    note = better.metadata["refit"]
    assert f"{note['valid_before']:.4f} -> {note['valid_after']:.4f} on validation queries" in outcome.out
    assert f"which chose {note['passes']} passes: too favourable" in outcome.out
    assert "on 30 test queries:" in outcome.out
    assert "95 % interval" in outcome.out
    assert "better.rw (rankwood)" in outcome.err
    train, valid = (rw.read_svmlight(folder / f"{name}.txt", n_features=6) for name in ("train", "valid"))
    assert better == rw.refit(rw.load_model(folder / "model.rw"), train, valid)


def test_json(rankwood, folder, tmp_path):
    how = ("--passes", 5, "--rate", 1, "--patience", 2, "--json")
    outcome = rankwood(*arguments(folder, tmp_path / "better.rw"), "--test", folder / "test.txt", *how)
    assert (outcome.status, outcome.err) == (0, "")
    answer = json.loads(outcome.out)
    assert answer["written"] == "refitted"
    assert answer["valid_after"] > answer["valid_before"]
    assert answer["settings"] == {"passes": 5, "rate": 1.0, "l2": 1.0, "patience": 2}
    assert answer["test"]["n_queries"] == 30
    assert answer["test_loss"] is False
    assert json.loads(rankwood(*arguments(folder, tmp_path / "better.rw"), "--json").out)["test"] is None


def test_the_format_of_the_input_is_kept(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "better.txt", "model.txt"))
    assert outcome.status == 0
    assert "better.txt (lightgbm)" in outcome.err
    trees = rw.load_model(tmp_path / "better.txt")
    assert trees.metadata["source"]["format"] == "lightgbm"
    outcome = rankwood(*arguments(folder, tmp_path / "better.json", "model.txt"), "--to", "xgboost")
    assert outcome.status == 0
    assert "better.json (xgboost)" in outcome.err


def test_a_model_that_stays_is_copied_or_converted(rankwood, folder, tmp_path):
    stump = rw.Ensemble.from_trees([(0, 0.5, 0.0, 0.0)], tree_weights=[0.0], n_features=6)
    stump.save(tmp_path / "stump.rw")
    outcome = rankwood(*arguments(folder, tmp_path / "same.rw", tmp_path / "stump.rw"), "--test", folder / "test.txt")
    assert "no pass raised the measure on validation queries: the model stays as it is" in outcome.out
    assert "the input itself, byte for byte" in outcome.err
    assert (tmp_path / "same.rw").read_bytes() == (tmp_path / "stump.rw").read_bytes()
    outcome = rankwood(*arguments(folder, tmp_path / "same.txt", tmp_path / "stump.rw"), "--to", "lightgbm", "--json")
    answer = json.loads(outcome.out)
    assert (answer["written"], answer["passes"]) == ("converted", 0)


def test_a_loss_on_test_data_is_warned_of(rankwood, folder, tmp_path):
    """Test data that wants the opposite."""
    train = rw.read_svmlight(folder / "train.txt", n_features=6)
    better = rw.refit(rw.load_model(folder / "model.rw"), train, train)
    moved = better.score(train.X) - rw.load_model(folder / "model.rw").score(train.X)
    labels = np.digitize(-moved, np.quantile(-moved, [0.5, 0.8, 0.9, 0.97]))
    rw.write_svmlight(train.replace(y=labels.astype(float)), tmp_path / "opposite.txt")
    command = ("refit", folder / "model.rw", "--train", folder / "train.txt", "--valid", folder / "train.txt")
    outcome = rankwood(*command, "--test", tmp_path / "opposite.txt", "-o", tmp_path / "better.rw")
    assert outcome.status == 0
    assert "the refitted model is significantly worse on test data: nDCG@10 -" in outcome.err


def test_too_few_test_queries(rankwood, folder, tmp_path):
    one = rw.read_svmlight(folder / "test.txt", n_features=6).select_queries([0])
    rw.write_svmlight(one, tmp_path / "one.txt")
    outcome = rankwood(*arguments(folder, tmp_path / "better.rw"), "--test", tmp_path / "one.txt")
    assert outcome.status == 0
    assert "too few test queries for a test" in outcome.out or "on 1 test queries" in outcome.out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--rate", 0), "a refit needs"),
        (("--measure", "nDCG@x"), "nDCG@x"),
        (("--to", "lightgbn"), "lightgbn"),
    ],
)
def test_mistakes_are_one_sentence(rankwood, folder, tmp_path, more, words):
    outcome = rankwood(*arguments(folder, tmp_path / "better.rw"), *more)
    assert outcome.status == 2
    assert words in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "better.rw").exists()


def test_ctrl_c_writes_nothing(rankwood, folder, tmp_path, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwood.fitting.refit.refit_model", interrupted)
    outcome = rankwood(*arguments(folder, tmp_path / "better.rw"))
    assert outcome.status == 130
    assert "interrupted: no model was written" in outcome.err
    assert not (tmp_path / "better.rw").exists()
