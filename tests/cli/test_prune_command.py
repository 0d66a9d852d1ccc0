"""`rankwood prune`: a smaller model, a table, and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prune")
    data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=2)
    for number, name in enumerate(("train", "valid", "test")):
        rw.write_svmlight(data.select_queries(range(20 * number, 20 * number + 20)), folder / f"{name}.txt")
    rw.LambdaMART(n_trees=12, n_leaves=5, learning_rate=0.2).fit(data.select_queries(range(20))).ensemble_.save(
        folder / "model.rw"
    )
    return folder


def arguments(folder, out):
    return ("prune", folder / "model.rw", "--train", folder / "train.txt", "--valid", folder / "valid.txt",
            "-o", out, "--iterations", 5)  # fmt: skip


def test_a_table_and_a_model(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), "--rates", "0.25,0.5", "--test", folder / "test.txt",
                       "--refit", "--accept", "non-inferior", "--margin", 0.9)  # fmt: skip
    assert outcome.status == 0
    assert "50%" in outcome.out
    assert "p (inferior)" in outcome.out
    assert "refit" in outcome.out
    assert "convention rankwood" in outcome.out
    small = rw.load_model(tmp_path / "small.rw")
    assert small.n_trees <= 6
    assert f"{small.n_trees} of 12 trees" in outcome.out
    assert small.metadata["cleaver"]["accept"] == "non-inferior"


def test_json(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), "--rates", "0.5", "--strategy", "skip", "--json",
                       "--test", folder / "test.txt")  # fmt: skip
    assert outcome.status == 0
    assert outcome.err == ""
    answer = json.loads(outcome.out)
    assert {"n_trees_before", "n_trees_after", "valid_before", "valid_after", "table"} <= answer.keys()
    assert answer["n_trees_before"] == 12
    assert [(row["rate"], row["variant"]) for row in answer["table"]] == [
        (0.0, "input"), (0.5, "line-search"), (0.5, "refit"), (0.5, "distil")
    ]  # fmt: skip
    assert answer["n_trees_after"] == rw.load_model(tmp_path / "small.rw").n_trees
    valid = rw.read_svmlight(folder / "valid.txt", n_features=6)
    after = rw.evaluate(rw.load_model(tmp_path / "small.rw"), valid)["nDCG@10"]
    assert answer["valid_after"] == after >= answer["valid_before"]


def test_other_data_judges(rankwood, folder, tmp_path):
    files = folder / "test.txt", folder / "valid.txt"
    outcome = rankwood(
        *arguments(folder, tmp_path / "small.rw"), "--rates", "0.5", "--judge", *files, "--no-refit", "--no-distil"
    )
    assert outcome.status == 0
    assert "judged" in outcome.out
    assert "refit" not in outcome.out


def test_nothing_accepted_is_said(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "same.rw"), "--rates", "0.9", "--accept", "non-inferior",
                       "--margin", 1e-9)  # fmt: skip
    assert outcome.status == 0
    assert "no smaller model was accepted" in outcome.out
    assert rw.load_model(tmp_path / "same.rw") == rw.load_model(folder / "model.rw")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--rates", "half"), "--rates takes numbers"),
        (("--rates", "1.5"), "rates are shares"),
        (("--strategy", "quality"), "did you mean quality-loss?"),
        (("--accept", "non-inferior"), "needs a margin"),
        (("--measure", "nDGC@10"), "nDGC@10"),
    ],
)
def test_mistakes(rankwood, folder, tmp_path, more, words):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *more)
    assert outcome.status == 2
    assert words in outcome.err.splitlines()[-1]
    assert not (tmp_path / "small.rw").exists()


def test_a_lightgbm_model_stays_one(rankwood, folder, tmp_path):
    lgb = pytest.importorskip("lightgbm", reason="PEER LEFT OUT: lightgbm is not installed")
    train = rw.read_svmlight(folder / "train.txt", n_features=6)
    parameters = {"objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 5, "verbose": -1}
    given = lgb.train(parameters, lgb.Dataset(train.X, train.y, group=train.queries.sizes), 12)
    given.save_model(tmp_path / "given.txt")
    files = ("--train", folder / "train.txt", "--valid", folder / "valid.txt")
    outcome = rankwood("prune", tmp_path / "given.txt", *files, "--rates", "0.5", "--iterations", 3, "-o",
                       tmp_path / "small.txt", "--json")  # fmt: skip
    assert outcome.status == 0, outcome.err
    small = lgb.Booster(model_file=tmp_path / "small.txt")
    assert small.num_trees() == json.loads(outcome.out)["n_trees_after"]
    ours = rw.load_model(tmp_path / "small.txt")
    np.testing.assert_allclose(small.predict(train.X, raw_score=True), ours.score(train.X), rtol=1e-12)
    valid = rw.read_svmlight(folder / "valid.txt", n_features=6)
    assert rw.evaluate(ours, valid)["nDCG@10"] >= rw.evaluate(rw.load_model(given), valid)["nDCG@10"]
