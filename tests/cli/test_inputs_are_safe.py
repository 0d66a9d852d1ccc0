"""No command writes over a file that it reads."""

from __future__ import annotations

import pytest

import rankwood as rw

LEARN = ["--train", "train.txt", "--valid", "valid.txt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rw.make_ranking(n_queries=8, docs_per_query=6, n_features=3, seed=0)
    for name in ("train", "valid", "judge"):
        rw.write_svmlight(data, f"{name}.txt")
    rw.MART(n_trees=2, n_leaves=3, min_docs_per_leaf=1).fit(data).ensemble_.save("model.rw")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["report", "model.rw", "--data", "valid.txt", "-o"], "valid.txt"),
        (["report", "model.rw", "--data", "valid.txt", "-o"], "model.rw"),
        (["score", "model.rw", "--data", "valid.txt", "-o"], "./valid.txt"),
        (["train", "mart", *LEARN, "-o"], "valid.txt"),
        (["train", "mart", *LEARN, "-o"], "train.txt"),
        (["tune", *LEARN, "--budget-us", "1", "-o"], "train.txt"),
        (["prune", "model.rw", *LEARN, "-o"], "model.rw"),
        (["prune", "model.rw", *LEARN, "--judge", "judge.txt", "-o"], "judge.txt"),
        (["convert", "model.rw", "--to", "lightgbm"], "model.rw"),
    ],
)
def test_an_input_is_not_overwritten(folder, rankwood, command, output):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    outcome = rankwood(*command, output)
    assert outcome.status == 2
    assert "is read by this command: write to another file" in outcome.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
