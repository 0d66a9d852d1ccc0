"""No command writes over a file that it reads, and data in two roles is warned of."""

from __future__ import annotations

import sys

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
        (["refit", "model.rw", *LEARN, "-o"], "model.rw"),
        (["refit", "model.rw", *LEARN, "-o"], "valid.txt"),
        (["shrink", "model.rw", *LEARN, "-o"], "model.rw"),
        (["shrink", "model.rw", *LEARN, "--unlabelled", "judge.txt", "-o"], "judge.txt"),
        (["shrink", "model.rw", *LEARN, "-o", "out.rw", "--checkpoint"], "valid.txt"),
        (["shrink", "model.rw", *LEARN, "-o", "out.rw", "--figure"], "model.rw"),
        (["convert", "model.rw", "--to", "lightgbm"], "model.rw"),
    ],
)
def test_an_input_is_not_overwritten(folder, rankwood, command, output):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    outcome = rankwood(*command, output)
    assert outcome.status == 2
    assert "is read by this command: write to another file" in outcome.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


CHOSEN = "models are chosen by queries that they were fitted to, so the choice and its measures are too favourable"
TWICE = "its documents are learnt twice, as if there were two of each"
TESTED = "measures on test data are of queries that had a part in making the model, so they are too favourable"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["train", "mart", "--train", "train.txt", "--valid", "train.txt"],
         f"train.txt is given as --train and --valid: {CHOSEN}"),
        (["train", "mart", *LEARN, "--test", "./valid.txt"],
         f"valid.txt is given as --valid and --test: {TESTED}"),
        (["prune", "model.rw", "--train", "train.txt", "--valid", "valid.txt", "train.txt"],
         f"train.txt is given as --train and --valid: {CHOSEN}"),
        (["prune", "model.rw", *LEARN, "--judge", "valid.txt", "--test", "valid.txt"],
         f"valid.txt is given as --valid, --judge and --test: {TESTED}"),
        (["shrink", "model.rw", *LEARN, "--unlabelled", "valid.txt"],
         f"valid.txt is given as --valid and --unlabelled: {CHOSEN}"),
        (["shrink", "model.rw", *LEARN, "--unlabelled", "train.txt"],
         f"train.txt is given as --train and --unlabelled: {TWICE}"),
        (["shrink", "model.rw", *LEARN, "--unlabelled", "judge.txt", "--test", "judge.txt"],
         f"judge.txt is given as --test and --unlabelled: {TESTED}"),
        (["tune", "--train", "train.txt", "--valid", "link.txt", "--budget-us", "1"],
         f"train.txt and link.txt are the same file and given as --train and --valid: {CHOSEN}"),
        (["grow-and-prune", "mart", "--train", "train.txt", "--valid", "train.txt", "--size", "2"],
         f"train.txt is given as --train and --valid: {CHOSEN}"),
        (["refit", "model.rw", *LEARN, "--test", "valid.txt"],
         f"valid.txt is given as --valid and --test: {TESTED}"),
        (["train", "mart", *LEARN, "--test", "judge.txt"], None),
    ],
)  # fmt: skip
def test_data_in_two_roles_is_warned_of(folder, rankwood, command, said, monkeypatch):
    (folder / "link.txt").symlink_to("train.txt")
    monkeypatch.setattr("rankwood.cli.models.load_data", _stop)
    for name in ("train", "smaller", "refit", "tune", "grow_and_prune"):
        monkeypatch.setattr(sys.modules[f"rankwood.cli.{name}"], "load_data", _stop)
    outcome = rankwood(*command, "-o", "out.rw")
    assert outcome.err.splitlines() == [*([f"warning: {said}"] if said else []), "rankwood: data is read"]


def _stop(*arguments, **options):
    raise rw.RankwoodError("data is read")
