"""`rankwood grow-and-prune`: a model of a given size, the stages that led to it, and JSON."""

from __future__ import annotations

import json

import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grow-and-prune")
    data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=2)
    for number, name in enumerate(("train", "valid", "test")):
        rw.write_svmlight(data.select_queries(range(20 * number, 20 * number + 20)), folder / f"{name}.txt")
    return folder


def arguments(folder, out, learner="lambdamart"):
    return ("grow-and-prune", learner, "--train", folder / "train.txt", "--valid", folder / "valid.txt", "--size", 5,
            "--grow", 6, "--keep", 3, "-p", "n_leaves=5", "--iterations", 4, "-o", out)  # fmt: skip


def test_the_command_does_what_the_function_does(rankwood, folder, tmp_path):
    path = tmp_path / "model.rw"
    outcome = rankwood(*arguments(folder, path), "--test", folder / "test.txt", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    answer = json.loads(outcome.out)
    train, valid, test = (rw.read_data(folder / f"{name}.txt", n_features=6) for name in ("train", "valid", "test"))
    settings = rw.PruningSettings(search=rw.LineSearch(iterations=4, patience=20))
    model, stages = rw.grow_and_prune(rw.LambdaMART(n_leaves=5), train, valid, 5, grow=6, keep=3, settings=settings)
    assert [stage["valid"] for stage in answer["stages"]] == [stage.valid for stage in stages]
    assert [stage["n_grown"] for stage in answer["stages"]] == [stage.n_grown for stage in stages]
    written = rw.load_model(path)
    assert answer["n_trees"] == written.n_trees == model.n_trees
    assert (written.score(test.X) == model.score(test.X)).all()
    assert answer["test"] == rw.evaluate(written, test)["nDCG@10"]
    assert written.metadata["data"]["train"] == ["train.txt"]


def test_a_table_of_the_stages(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "model.rw", "mart"), "--test", folder / "test.txt", "-m", "ERR")
    assert outcome.status == 0
    assert "stage 2 of 2: " in outcome.err
    assert "ERR on validation data" in outcome.out
    assert "on test data 0." in outcome.out


@pytest.mark.parametrize(
    ("learner", "more", "words"),
    [
        ("forest", (), "give a boosted ranker such as LambdaMART or MART, got RandomForest"),
        ("mart", ("-p", "task=ordinal"), "no longer tells grades apart: use task='regression'"),
        ("mart", ("-p", "n_trees=7"), "n_trees has an option of its own: --size"),
        ("mart", ("--keep", 7), "needs 1 <= keep <= grow"),
        ("mart", ("--strategy", "worst"), "worst"),
        ("mart", ("-m", "nDGC"), "nDGC"),
    ],
)
def test_mistakes_are_told_in_one_sentence(rankwood, folder, tmp_path, learner, more, words):
    command = ["grow-and-prune", learner, "--train", "nowhere.txt", "--valid", "nowhere.txt", "--size", 5, "--grow", 6,
               "--keep", 3, "-o", tmp_path / "model.rw"]  # fmt: skip
    outcome = rankwood(*command, *more)
    assert outcome.status == 2
    assert words in outcome.err.splitlines()[-1]
    assert not (tmp_path / "model.rw").exists()


def test_ctrl_c_writes_nothing(rankwood, folder, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwood.pruning.grow_and_prune._grown", interrupted)
    outcome = rankwood(*arguments(folder, tmp_path / "model.rw"))
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == "rankwood: interrupted: no model was written"
    assert not (tmp_path / "model.rw").exists()
