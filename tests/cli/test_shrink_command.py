"""`rankwood shrink`: a smaller model, a table, a figure, JSON, and going on after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import rankwood as rw
from rankwood.cli import console
from rankwood.shrinking import path as paths

STORED = Path(__file__).parents[1] / "formats" / "data"
ROUTES = (rw.Route("selected", "refitted", trees=0.6), rw.Route("grown", "input"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two routes and two sizes: the command has no options for these."""
    defaults = rw.ShrinkSettings

    def settings(**given):
        return defaults(routes=ROUTES, factors=(2.0, 4.0), refit=rw.Refit(passes=4, patience=2), **given)

    monkeypatch.setattr(paths, "ShrinkSettings", settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shrink")
    data = rw.make_ranking(n_queries=140, docs_per_query=12, n_features=6, seed=2)
    for name, queries in (("train", range(60)), ("valid", range(60, 110)), ("test", range(110, 140))):
        rw.write_svmlight(data.select_queries(queries), folder / f"{name}.txt")
    model = rw.LambdaMART(n_trees=12, n_leaves=6, learning_rate=0.2).fit(data.select_queries(range(60))).ensemble_
    model.save(folder / "model.rw")
    return folder


def arguments(folder, out, model="model.rw"):
    return ("shrink", folder / model, "--train", folder / "train.txt", "--valid", folder / "valid.txt", "-o", out)


LOOSE = ("--margin", 0.5)
NEVER = ("--margin", 1e-9, "--alpha", 1e-9)


def test_a_target_that_is_missed_is_warned_of(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *LOOSE, "--budget-us", 1e-9)
    assert outcome.status == 0, outcome.err
    n_leaves = rw.load_model(tmp_path / "small.rw").n_leaves
    (warning,) = [line for line in outcome.err.splitlines() if "asked for" in line]
    assert warning.startswith("warning: no model as small or as fast as was asked for")
    assert f"the one written has {n_leaves} leaves, {72 / n_leaves:.1f} times fewer" in warning


def test_a_table_and_a_model(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *LOOSE, "--test", folder / "test.txt")
    assert outcome.status == 0, outcome.err
    small = rw.load_model(tmp_path / "small.rw")
    lines = outcome.out.splitlines()
    table = [line for line in lines if line.startswith(("┃", "│"))]
    assert max(map(len, table)) <= 80
    assert [line.split()[1] for line in table[1:3]] == ["input", "refitted"]
    (chosen,) = [line for line in table if "chosen" in line]
    assert f" {small.n_leaves} " in chosen
    assert f" {small.n_trees} " in chosen
    assert f"small.rw: {small.metadata['shrink']['route']}" in lines
    assert lines[-1].startswith(f"{small.n_leaves} of 72 leaves, {small.n_trees} of 12 trees, ")
    assert "it loses less than 0.5 of nDCG@10, 95 % sure, on 50 queries by cross-validation" in lines[-1]
    assert "on test data" in lines[-1]
    assert "convention rankwood" in outcome.out
    said = " ".join(outcome.out.split())
    assert "sure of this model alone. A model passes if it is shown to be above -.5000 at a level of its own" in said
    assert "all together are wrong in 5 % at most: half of that is for the first, the others share the rest" in said
    assert outcome.err.splitlines()[-1] == f"wrote {tmp_path / 'small.rw'} (rankwood)"


def test_json(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *LOOSE, "--test", folder / "test.txt", "--json",
                       "--factor", 2)  # fmt: skip
    assert (outcome.status, outcome.err) == (0, "")
    answer = json.loads(outcome.out)
    assert answer.keys() == {
        "model", "accepted", "reached", "route", "written", "interrupted", "measure", "convention", "margin", "alpha",
        "judging", "proof", "n_trees_before", "n_trees_after", "n_leaves_source", "n_leaves_before", "n_leaves_after",
        "n_features_before", "n_features_after", "bytes_before", "bytes_after", "valid_before", "valid_after",
        "us_before", "us_after", "factor", "speed_up", "exit", "timing", "test_before", "test_after", "test_difference",
        "test_interval", "p_test", "test_loss", "test_proof", "table",
    }  # fmt: skip
    small = rw.load_model(tmp_path / "small.rw")
    assert (answer["accepted"], answer["reached"], answer["written"]) == (True, True, "shrunk")
    assert answer["n_leaves_after"] == small.n_leaves <= 36
    assert answer["n_features_after"] == len(np.unique(small.feature))
    assert answer["factor"] == 72 / small.n_leaves
    assert answer["speed_up"] == answer["us_before"] / answer["us_after"]
    assert answer["proof"]["holds"]
    valid = rw.read_svmlight(folder / "valid.txt", n_features=6)
    assert answer["valid_after"] == rw.evaluate(small, valid)["nDCG@10"]
    assert [row["route"] for row in answer["table"][:2]] == ["input", "refitted input"]


def test_data_of_other_roles(rankwood, folder, tmp_path):
    """Other queries judge; documents without labels teach, whatever their kind of file."""
    pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")
    logs = rw.read_svmlight(folder / "test.txt", n_features=6)
    names = rw.load_model(folder / "model.rw").feature_names
    rw.write_csv(rw.Dataset(logs.X, qid=logs.qid, feature_names=names), tmp_path / "logs.csv")
    assert "label" not in (tmp_path / "logs.csv").read_text().splitlines()[0]
    models = {}
    for name, more in {
        "none": (),
        "text": ("--unlabelled", folder / "test.txt"),
        "csv": ("--unlabelled", tmp_path / "logs.csv"),
        "judge": ("--judge", folder / "test.txt", folder / "valid.txt"),
        "budget": ("--budget-us", 1e6, "--cost", "us", "--max-queries", 20, "--seed", 3, "--threads", 1),
    }.items():
        out = tmp_path / f"{name}.rw"
        outcome = rankwood(*arguments(folder, out), *LOOSE, "--json", *more)
        assert outcome.status == 0, outcome.err
        models[name] = rw.load_model(out)
        judged = json.loads(outcome.out)["proof"]
        expected = (80, "unseen") if name == "judge" else (50, "folds")
        assert (judged["n_queries"], judged["queries"]) == expected
    assert models["text"] == models["csv"] != models["none"]


@pytest.fixture(scope="module")
def given_models(tmp_path_factory):
    """Stored models of other tools, and one of rankwood, all of four features."""
    model = rw.load_model(STORED / "xgboost-3.2.0.json")
    folder = tmp_path_factory.mktemp("given")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rw.ConversionWarning)
        rw.save_as(model, folder / "ranklib.txt", "ranklib", missing="ignore")
    model.save(folder / "model.rw")
    return {"rankwood": folder / "model.rw", "ranklib": folder / "ranklib.txt",
            "lightgbm": STORED / "lightgbm-4.7.0-zero.txt", "xgboost": STORED / "xgboost-3.2.0.json"}  # fmt: skip


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("narrow") / "data.txt", np.random.default_rng(1)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    rw.write_svmlight(rw.Dataset(X, rng.integers(0, 3, len(X)), group=[10] * 60), path)
    return "--train", path, "--valid", path


@pytest.mark.parametrize(
    ("source", "out"),
    [("rankwood", "small.rw"), ("ranklib", "small.txt"), ("lightgbm", "small.txt"), ("xgboost", "small.json")],
)
def test_formats_are_kept(rankwood, given_models, narrow, tmp_path, source, out):
    given = ("shrink", given_models[source], *narrow, "-o", tmp_path / out, "--missing", "ignore")
    outcome = rankwood(*given, "--margin", 1)
    assert outcome.status == 0, outcome.err
    assert outcome.err.splitlines()[-1] == f"wrote {tmp_path / out} ({source})"
    small = rw.load_model(tmp_path / out, source)
    assert small.n_leaves < rw.load_model(given_models[source]).n_leaves

    outcome = rankwood(*given, *NEVER)
    assert outcome.status == 0, outcome.err
    assert "no smaller model was accepted" in outcome.out
    assert (tmp_path / out).read_bytes() == given_models[source].read_bytes()
    assert outcome.err.splitlines()[-1].endswith(f"({source}): the input itself, byte for byte")


def test_another_format_on_demand(rankwood, folder, tmp_path):
    for name, limits, written in (("small.txt", LOOSE, "shrunk"), ("same.txt", NEVER, "converted")):
        outcome = rankwood(*arguments(folder, tmp_path / name), *limits, "--to", "lightgbm", "--json")
        assert outcome.status == 0, outcome.err
        assert json.loads(outcome.out)["written"] == written
        rw.load_model(tmp_path / name, "lightgbm")


@pytest.fixture(scope="module")
def long_queries(tmp_path_factory):
    """Queries long enough, and a model of enough trees, that documents can stop."""
    folder = tmp_path_factory.mktemp("long")
    data = rw.make_ranking(n_queries=150, docs_per_query=40, n_features=6, seed=2)
    for name, part in zip(
        ("train", "valid", "test"), (*data.split(0.4)[0].split(0.7), data.split(0.4)[1]), strict=True
    ):
        rw.write_svmlight(part, folder / f"{name}.txt")
    train = rw.read_svmlight(folder / "train.txt", n_features=6)
    rw.LambdaMART(n_trees=60, n_leaves=6, learning_rate=0.2).fit(train).ensemble_.save(folder / "model.rw")
    return folder


def test_early_exit(rankwood, long_queries, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.shrinking.early_exit.CHECKPOINT_LEAVES", 0.0)  # a small model will do
    given = (*arguments(long_queries, tmp_path / "small.rw"), "--judge", long_queries / "test.txt", "--margin", 0.5,
             "--factor", 2, "--exit")  # fmt: skip
    outcome = rankwood(*given)
    assert outcome.status == 0, outcome.err
    small = rw.load_model(tmp_path / "small.rw")
    assert small.exit is not None
    assert max(len(line) for line in outcome.out.splitlines() if line.startswith(("┃", "│"))) <= 80
    (chosen,) = [line for line in outcome.out.splitlines() if "chosen" in line]
    assert chosen.split()[1:3] == ["+", "exit"]
    assert "% evaluated, with early exit)" in outcome.out.splitlines()[-1]
    answer = json.loads(rankwood(*given, "--json").out)
    assert answer["exit"]["accepted"]
    assert answer["exit"]["trees_evaluated"] < 1
    assert answer["proof"] == answer["exit"]["proof"]

    outcome = rankwood(*given, "--to", "lightgbm", "-o", tmp_path / "small.txt")
    assert outcome.status == 0, outcome.err
    assert outcome.err.splitlines()[-2:] == [
        "warning: LightGBM cannot hold early exit: the model is written without, so every document goes through all "
        "trees",
        f"wrote {tmp_path / 'small.txt'} (lightgbm)",
    ]
    assert "exit" not in outcome.out


@pytest.fixture(scope="module")
def misled(tmp_path_factory):
    """A model whose second and third trees count on test data alone."""
    folder = tmp_path_factory.mktemp("misled")
    X = np.random.default_rng(0).normal(size=(800, 2)).astype(np.float32)
    for name, column in (("train", 0), ("valid", 0), ("test", 1)):
        rw.write_svmlight(rw.Dataset(X, (X[:, column] > 0).astype(int), group=[8] * 100), folder / f"{name}.txt")
    trees = [(0, 0.0, 0.0, 0.5), (1, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0)]
    rw.Ensemble.from_trees(trees).save(folder / "model.rw")
    return folder


def test_a_loss_on_test_data_is_warned_of(rankwood, misled, tmp_path):
    outcome = rankwood(*arguments(misled, tmp_path / "small.rw"), "--test", misled / "test.txt", "--leaves", 2)
    assert outcome.status == 0, outcome.err
    (warning,) = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    assert warning.startswith("warning: the smaller model is significantly worse on test data: nDCG@10 ")
    assert outcome.out.splitlines()[-1].endswith("a significant loss")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--leaves", 5, "--factor", 2), "--leaves and --factor both say how small the model is to be"),
        (("--factor", -1), "factor must be a positive number"),
        (("--leaves", 500), "the model has 72 leaves"),
        (("--margin", 0), "margin must be a positive number"),
        (("--measure", "nDGC@10"), "nDGC@10"),
        (("--convention", "letr"), "letr"),
        (("--cost", "time"), "is not one of"),
        (("--figure", "path.jpg"), "a figure is written as .png or .svg"),
        (("--figure", "absent/path.png"), "absent"),
        (("--checkpoint", "absent/steps.rw"), "absent"),
    ],
)
def test_mistakes(rankwood, folder, tmp_path, more, words):
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *more)
    assert outcome.status == 2
    assert words in outcome.err
    assert not (tmp_path / "small.rw").exists()


def test_files_that_are_written_are_different_ones(rankwood, folder, tmp_path):
    out = tmp_path / "small.rw"
    outcome = rankwood(*arguments(folder, out), "--checkpoint", tmp_path / "." / "small.rw")
    assert outcome.status == 2
    assert "is both --output and --checkpoint: write to another file" in outcome.err


def test_a_model_is_no_checkpoint(rankwood, folder, tmp_path):
    (tmp_path / "finished.rw").write_bytes((folder / "model.rw").read_bytes())
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), "--checkpoint", tmp_path / "finished.rw")
    assert outcome.status == 2
    assert "is a finished model, not a checkpoint: choose another file" in outcome.err
    assert (tmp_path / "finished.rw").read_bytes() == (folder / "model.rw").read_bytes()


# Ctrl-C.


def press(monkeypatch, at, times=1):
    """Ctrl-C so many times while the so many-th model is fitted to labels."""
    refit, calls = paths.Path._refitted, []

    def pressed(self, student):
        calls.append(student)
        if len(calls) == at:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return refit(self, student)

    monkeypatch.setattr(paths.Path, "_refitted", pressed)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_ctrl_c_writes_the_best_so_far_and_a_checkpoint_goes_on(rankwood, folder, tmp_path):
    whole = rankwood(*arguments(folder, tmp_path / "whole.rw"), *LOOSE, "--json")
    given = (*arguments(folder, tmp_path / "small.rw"), *LOOSE, "--checkpoint", tmp_path / "steps.rw")
    with pytest.MonkeyPatch.context() as patch:
        press(patch, at=4)
        outcome = rankwood(*given)
    assert outcome.status == 0
    early = rw.load_model(tmp_path / "small.rw")
    assert early.n_leaves > rw.load_model(tmp_path / "whole.rw").n_leaves
    (warning,) = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    assert warning == (
        f"warning: interrupted: models of less than {early.n_leaves} leaves were not tried; {tmp_path / 'steps.rw'} "
        "keeps the finished steps, and the same command goes on from there"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "PLAIN_LINE_SECONDS", 0.0)
        assert "shrinking, what was left: " in rankwood(*given).err
    again = json.loads(rankwood(*given, "--json").out)
    assert not again["interrupted"]
    assert rw.load_model(tmp_path / "small.rw") == rw.load_model(tmp_path / "whole.rw")
    assert again["proof"] == json.loads(whole.out)["proof"]


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize(("at", "times"), [(1, 1), (4, 2)])
def test_ctrl_c_before_a_model_or_twice(rankwood, folder, tmp_path, monkeypatch, at, times):
    press(monkeypatch, at, times)
    outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *LOOSE)
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1].startswith("rankwood: interrupted before the first size was finished: no model")
    assert list(tmp_path.iterdir()) == []


# The figure.


@pytest.mark.parametrize("limits", [LOOSE, NEVER])
def test_the_figure(rankwood, folder, tmp_path, limits):
    pytest.importorskip("matplotlib", reason="MATPLOTLIB ABSENT: pip install 'rankwood[lab]'")
    for name in ("path.svg", "path.PNG"):
        more = ("--figure", tmp_path / name, "--test", folder / "test.txt")
        outcome = rankwood(*arguments(folder, tmp_path / "small.rw"), *limits, *more)
        assert outcome.status == 0, outcome.err
        assert outcome.err.splitlines()[-1] == f"wrote {tmp_path / name}"
    ElementTree.parse(tmp_path / "path.svg")
    text = (tmp_path / "path.svg").read_text(encoding="utf-8")
    assert ("<!-- chosen -->" in text) == (limits is LOOSE)
    assert f"<!-- margin {limits[1]:g} -->" in text
    assert (tmp_path / "path.PNG").read_bytes().startswith(b"\x89PNG")


def test_matplotlib_is_asked_for_before_the_search(rankwood, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "small.rw"
    outcome = rankwood("shrink", folder / "model.rw", "--train", "absent", "--valid", "absent", "-o", out, "--figure",
                       tmp_path / "path.png")  # fmt: skip
    assert outcome.status == 2
    assert "drawing figures needs the package matplotlib: pip install 'rankwood[lab]'" in outcome.err
