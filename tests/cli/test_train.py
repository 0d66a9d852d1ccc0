"""`rankwood train`: the model that Python would train, written with a note of how it came about."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.cli import console
from rankwood.cli.console import Watcher
from rankwood.cli.train import OPTION_OF
from rankwood.training.callbacks import CallbackEnv, Result
from rankwood.training.names import learner_class

COMMAND = importlib.import_module("rankwood.cli.train")  # the module; the package has the function of that name
SMALL = ("-p", "n_trees=6", "-p", "n_leaves=4", "-p", "min_docs_per_leaf=5")


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    """Training, validation and test data, and their files."""
    folder = tmp_path_factory.mktemp("parts")
    train, rest = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=3).split(0.6)
    sets = dict(zip(("train", "valid", "test"), (train, *rest.split(0.5)), strict=True))
    files = {}
    for name, part in sets.items():
        files[name] = folder / f"{name}.txt"
        rw.write_svmlight(part, files[name])
    return {name: rw.read_svmlight(file) for name, file in files.items()}, files


def test_a_forest(rankwood, parts, tmp_path):
    sets, files = parts
    given = ("train", "forest", "--train", files["train"], "--valid", files["valid"], "-p", "n_trees=12", "-p",
             "queries_per_tree=0.5", "-p", "criterion=entropy", "-p", "out_of_bag=true", "--seed", 5)  # fmt: skip
    outcome = rankwood(*given, "-o", tmp_path / "m.rw")
    assert (outcome.status, outcome.out) == (0, "")
    expected = rw.RandomForest(12, queries_per_tree=0.5, criterion="entropy", random_state=5, out_of_bag=True)
    expected.fit(sets["train"], valid=sets["valid"])
    assert rw.load_model(tmp_path / "m.rw") == expected.ensemble_
    assert re.fullmatch(
        r"12 of 12 trees: nDCG@10 valid 0\.\d{4}, best 0\.\d{4} at tree \d+, 0 s left\n"
        r"trained 12 trees with nDCG@10 0\.\d{4} on valid, nDCG@10 0\.\d{4} out of the bag in \d s; wrote .*m\.rw\n",
        outcome.err,
    )
    found = json.loads(rankwood(*given, "--json", "-o", tmp_path / "m.rw").out)
    assert found["valid"] == expected.best_score_["valid"]
    assert found["out_of_bag"] == expected.oob_evaluation_.means
    checkpoint = ("--checkpoint", tmp_path / "c.rw", "--every", "5")
    for n_trees in (7, 12):
        assert rankwood(*given, *checkpoint, "-p", f"n_trees={n_trees}", "-o", tmp_path / "again.rw").status == 0
    assert rw.load_model(tmp_path / "again.rw") == expected.ensemble_
    plain = rankwood("train", "forest", "--train", files["train"], "-p", "n_trees=3", "-o", tmp_path / "m.rw")
    assert re.fullmatch(r"3 of 3 trees: 0 s left\ntrained 3 trees in \d s; wrote .*m\.rw\n", plain.err)
    wrong = rankwood("train", "forest", "--train", files["train"], "-p", "learning_rate=1", "-o", tmp_path / "m.rw")
    assert wrong.status == 2
    assert "RandomForest has no parameter 'learning_rate'" in wrong.err


def test_a_forest_of_grades(rankwood, parts, tmp_path):
    sets, files = parts
    outcome = rankwood("train", "forest", "--task", "ordinal", "--train", files["train"], "-p", "n_trees=4", "-o",
                       tmp_path / "m.rw")  # fmt: skip
    assert outcome.status == 0
    assert rw.load_model(tmp_path / "m.rw") == rw.RandomForest(4, task="ordinal").fit(sets["train"]).ensemble_


def test_queries_that_judge_removals_are_said(rankwood, tmp_path):
    data = rw.make_ranking(n_queries=120, docs_per_query=6, n_features=4, seed=1)
    for name, queries in (("train", range(20)), ("valid", range(20, 120))):
        rw.write_svmlight(data.select_queries(queries), tmp_path / f"{name}.txt")
    given = ("train", "xdart", "--train", tmp_path / "train.txt", "--valid", tmp_path / "valid.txt", *SMALL, "-o",
             tmp_path / "m.rw")  # fmt: skip
    assert "on valid (without the 50 queries that judged removals) in" in rankwood(*given).err
    assert json.loads(rankwood(*given, "--json").out)["judge_queries"] == 50
    plain = rankwood(*given, "-p", "judge=valid", "--json")
    assert json.loads(plain.out)["judge_queries"] == 0


def test_dart_and_x_dart(rankwood, parts, tmp_path):
    sets, files = parts
    given = ("--train", files["train"], "--valid", files["valid"], *SMALL, "-p", "n_trees=20", "--seed", 5)
    outcome = rankwood("train", "xdart", *given, "-p", "upper_bound=0.1", "-o", tmp_path / "m.rw")
    assert (outcome.status, outcome.out) == (0, "")
    expected = rw.XDART(n_trees=20, n_leaves=4, min_docs_per_leaf=5, upper_bound=0.1, random_state=5)
    expected.fit(sets["train"], valid=sets["valid"])
    assert rw.load_model(tmp_path / "m.rw") == expected.ensemble_
    n_iterations = len(expected.log_)
    assert n_iterations > 20
    assert re.fullmatch(
        r"20 of 20 trees: nDCG@10 train 0\.\d{4}, valid 0\.\d{4}, best 0\.\d{4} at tree \d+, "
        rf"{n_iterations - 20} removed, 0 s left\n"
        rf"trained 20 trees in {n_iterations} iterations, {n_iterations - 20} removed again with "
        r"nDCG@10 0\.\d{4} on train, nDCG@10 0\.\d{4} on valid in \d s; wrote .*m\.rw\n",
        outcome.err,
    )
    found = json.loads(rankwood("train", "dart", *given, "-p", "rate=0.2", "--json", "-o", tmp_path / "m.rw").out)
    assert (found["n_trees"], found["iterations"], found["trees_removed"]) == (20, 20, 0)
    stopped = rankwood("train", "dart", *given, "-p", "early_stopping_rounds=3", "-o", tmp_path / "m.rw")
    assert re.search(r"trained \d+ trees in \d+ iterations, 0 removed again, the best after \d+, with", stopped.err)
    alone = rankwood("train", "xdart", "--train", files["train"], *SMALL, "-o", tmp_path / "m.rw")
    assert "warning: there is no validation data, so training data judges" in alone.err
    wrong = rankwood("train", "xdart", *given, "-p", "strategy=bold", "-o", tmp_path / "m.rw")
    assert "strategy must be 'ratio', 'fixed' or 'adaptive', got 'bold'" in wrong.err


@pytest.mark.parametrize(("name", "learner"), [("mart", rw.MART), ("lambdamart", rw.LambdaMART)])
def test_the_model_is_what_python_trains(rankwood, parts, tmp_path, name, learner):
    sets, files = parts
    outcome = rankwood("train", name, "--train", files["train"], *SMALL, "-p", "query_fraction=0.5", "--seed", 5,
                       "-o", tmp_path / "m.rw")  # fmt: skip
    assert (outcome.status, outcome.out) == (0, "")
    expected = learner(n_trees=6, n_leaves=4, min_docs_per_leaf=5, query_fraction=0.5, random_state=5)
    model = rw.load_model(tmp_path / "m.rw")
    assert model == expected.fit(sets["train"]).ensemble_
    assert re.fullmatch(
        r"6 of 6 trees: nDCG@10 train 0\.\d{4}, 0 s left\n"
        r"trained 6 trees with nDCG@10 0\.\d{4} on train in \d s; wrote .*m\.rw\n",
        outcome.err,
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
@pytest.mark.parametrize("settings", [(), ("-p", "missing=mean")])
def test_files_are_trained_from_some_rows_at_a_time(rankwood, parts, tmp_path, suffix, settings):
    for name, data in parts[0].items():
        (rw.write_parquet if suffix == "parquet" else rw.write_csv)(data, tmp_path / f"{name}.{suffix}")
    train, valid, test = (tmp_path / f"{name}.{suffix}" for name in ("train", "valid", "test"))
    outcome = rankwood("train", "mart", "--train", train, "--valid", valid, "--test", test, *SMALL, *settings, "--json",
                       "-o", tmp_path / "m.rw")  # fmt: skip
    ranker = rw.MART(n_trees=6, n_leaves=4, min_docs_per_leaf=5, missing="mean" if settings else "native")
    expected = ranker.fit(rw.read_data(train)).ensemble_
    assert rw.load_model(tmp_path / "m.rw") == expected
    found = json.loads(outcome.out)["measures"]["nDCG@10"]
    assert found == rw.evaluate(expected, rw.read_data(test), "nDCG@10").means["nDCG@10"]


def test_grades_are_learnt_side_by_side(rankwood, parts, tmp_path):
    sets, files = parts
    ordinal = ("train", "mart", "--task", "ordinal", "--train", files["train"], *SMALL)
    outcome = rankwood(*ordinal, "--valid", files["valid"], "-p", "n_trees=60",
                       "-p", "early_stopping_rounds=4", "-o", tmp_path / "m.rw")  # fmt: skip
    assert outcome.status == 0
    ranker = rw.MART(n_trees=60, n_leaves=4, min_docs_per_leaf=5, task="ordinal", early_stopping_rounds=4)
    ranker.fit(sets["train"], valid=sets["valid"])
    model = rw.load_model(tmp_path / "m.rw")
    assert model == ranker.ensemble_
    assert_array_equal(rw.grade_probabilities(model, sets["test"].X), ranker.predict_proba(sets["test"]))
    n_trees, n_grown = ranker.n_trees_, 4 * len(ranker.evals_result_["valid"]["nDCG@10"])
    assert f"trained {n_trees} trees, the best of {n_grown}, with nDCG@10 " in outcome.err
    shown = rankwood(
        "train", "mart", "--task", "ordinal", "--train", files["train"], *SMALL, "-o", tmp_path / "n.rw"
    ).err
    assert re.match(r"24 of 24 trees: nDCG@10 train 0\.\d{4}, 0 s left\ntrained 24 trees with ", shown)


def test_boosting_from_a_forest(rankwood, parts, tmp_path, monkeypatch):
    sets, files = parts
    for task in ("regression", "ordinal"):
        forest = rw.MART(n_trees=3, n_leaves=8, learning_rate=0.5, task=task).fit(sets["train"]).ensemble_
        forest.save(tmp_path / "forest.rw")
        arguments = ("train", "igbrt", "--task", task, "--forest", tmp_path / "forest.rw", "--train", files["train"],
                     *SMALL, "--checkpoint", tmp_path / f"{task}.rw", "-o", tmp_path / "m.rw")  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(COMMAND, "training_progress", press_at(3))
            assert rankwood(*arguments).status == 130
        assert rankwood(*arguments).status == 0
        ranker = rw.InitializedMART(n_trees=6, n_leaves=4, min_docs_per_leaf=5, forest=forest, task=task)
        model = rw.load_model(tmp_path / "m.rw")
        assert model == ranker.fit(sets["train"]).ensemble_
        assert model.metadata["parameters"]["task"] == task


@pytest.mark.parametrize("task", ["regression", "ordinal"])
def test_a_forest_is_grown_to_boost_from(rankwood, parts, tmp_path, task):
    from rankwood.training.initial_forest import paper_forest

    sets, files = parts
    outcome = rankwood("train", "igbrt", "--task", task, "--initial-trees", 10, "--train", files["train"], *SMALL,
                       "--seed", 3, "-o", tmp_path / "m.rw")  # fmt: skip
    assert outcome.status == 0
    assert outcome.err.startswith("growing a forest of 10 trees to start from\n")
    small = {"n_trees": 6, "n_leaves": 4, "min_docs_per_leaf": 5, "random_state": 3, "task": task}
    ranker = rw.InitializedMART(**small, forest=paper_forest(10, random_state=3)).fit(sets["train"])
    assert rw.load_model(tmp_path / "m.rw") == ranker.ensemble_


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
@pytest.mark.parametrize(("task", "missing"), [("regression", "native"), ("ordinal", "native"), ("regression", "zero")])
def test_the_forest_is_kept_alike_in_python_and_on_the_command_line(
    rankwood, parts, tmp_path, monkeypatch, task, missing
):
    """Each goes on from the other's files: from half a forest, and from a whole one."""
    from rankwood.training.initial_forest import fit_initial_forest, paper_forest

    sets, files = parts
    given = {"n_trees": 6, "n_leaves": 4, "min_docs_per_leaf": 5, "random_state": 3, "task": task, "missing": missing}
    ranker = rw.InitializedMART(**given, forest=paper_forest(10, random_state=3))
    whole = ranker.fit(sets["train"], eval_set=[sets["train"]])
    n_problems = whole.initial_ensemble_.n_trees // 10

    def command(checkpoint):
        return rankwood(
            "train", "igbrt", "--task", task, "--initial-trees", 10, "--train", files["train"], *SMALL, "--seed", 3,
            "-p", f"missing={missing}", "--checkpoint", checkpoint, "--every", 3, "-o", tmp_path / "m.rw",
        )  # fmt: skip

    def fit(checkpoint):
        return ranker.fit(sets["train"], eval_set=[sets["train"]], checkpoint=rw.Checkpoint(checkpoint, every=3))

    def n_kept(checkpoint):
        return rw.load_model(f"{checkpoint}.forest").n_trees // n_problems

    begun_there = tmp_path / "there.rw"
    with monkeypatch.context() as patch:
        patch.setattr(COMMAND, "training_progress", press_at(4))
        assert command(begun_there).status == 130
    assert n_kept(begun_there) in range(5, 10)
    assert not begun_there.exists()
    assert fit(begun_there).ensemble_ == whole.ensemble_
    assert n_kept(begun_there) == 10
    assert command(begun_there).status == 0
    assert rw.load_model(tmp_path / "m.rw") == whole.ensemble_

    begun_here = tmp_path / "here.rw"
    with pytest.raises(RuntimeError, match="power cut"):
        fit_initial_forest(
            ranker.forest,
            ranker,
            sets["train"],
            checkpoint=rw.Checkpoint(begun_here, every=3),
            callbacks=[power_cut_at(4)],
        )
    assert n_kept(begun_here) == 3
    assert command(begun_here).status == 0
    assert n_kept(begun_here) == 10
    assert rw.load_model(tmp_path / "m.rw") == whole.ensemble_
    assert fit(begun_here).ensemble_ == whole.ensemble_


def power_cut_at(tree: int):
    """A callback that fails after a tree."""

    def fail(env):
        if env.iteration == tree:
            raise RuntimeError("power cut")

    return fail


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("lambdamart", "--task", "ordinal"),
            "--task is for mart, forest and igbrt, not for lambdamart",
        ),
        (("mart", "--forest", "f.rw"), "--forest is for igbrt, not mart"),
        (("mart", "--initial-trees", 5), "--initial-trees is for igbrt, not mart"),
        (("mart", "-p", "task=ordinal"), "task has an option of its own: --task"),
        (("igbrt", "-p", "forest=f.rw"), "forest has an option of its own: --forest"),
        (("igbrt", "--forest", "f.rw", "--initial-trees", 5), "--forest one that is grown: give one of them"),
        (("igbrt", "--forest", "missing.rw"), "missing.rw"),
    ],
)
def test_options_of_one_learner(rankwood, parts, tmp_path, arguments, message):
    outcome = rankwood("train", *arguments, "--train", parts[1]["train"], "-o", tmp_path / "m.rw")
    assert outcome.status == 2
    assert message in outcome.err
    assert not (tmp_path / "m.rw").exists()


def test_the_model_notes_how_it_was_made(rankwood, parts, tmp_path):
    _, files = parts
    rankwood("train", "lambdamart", "--train", files["train"], files["test"], "--valid", files["valid"], *SMALL,
             "--seed", 7, "--threads", 2, "-m", "ERR", "-o", tmp_path / "m.rw")  # fmt: skip
    model = rw.load_model(tmp_path / "m.rw")
    metadata = model.metadata
    assert metadata["learner"] == "LambdaMART"
    assert (metadata["seed"], metadata["version"]) == (7, rw.__version__)
    assert metadata["data"] == {"train": ["train.txt", "test.txt"], "valid": ["valid.txt"]}
    assert metadata["parameters"]["n_trees"] == 6
    assert metadata["parameters"]["measure"] == ["ERR"]
    assert str(files["train"].parent) not in json.dumps(metadata)
    shown = rankwood("inspect", tmp_path / "m.rw").out
    assert re.search(r"parameters min_docs_per_leaf.*\b5\b", shown)
    assert re.search(r"data train.*train\.txt, test\.txt", shown)


def test_json(rankwood, parts, tmp_path):
    sets, files = parts
    outcome = rankwood("train", "lambdamart", "--train", files["train"], "--valid", files["valid"], "--test",
                       files["test"], *SMALL, "-p", "n_trees=60", "-p", "early_stopping_rounds=5",
                       "--measure", "AP", "--measure", "nDCG@5", "-o", tmp_path / "m.rw", "--json")  # fmt: skip
    assert (outcome.status, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    model = rw.load_model(tmp_path / "m.rw")
    assert result == {
        "model": str(tmp_path / "m.rw"),
        "n_trees": model.n_trees,
        "best_iteration": model.n_trees,
        "interrupted": False,
        "valid": dict(rw.evaluate(model, sets["valid"], ["AP", "nDCG@5"])),
        "measures": dict(rw.evaluate(model, sets["test"], ["AP", "nDCG@5"])),
    }
    assert model.n_trees < 60
    bare = rankwood("train", "mart", "--train", files["train"], *SMALL, "-o", tmp_path / "m.rw", "--json")
    assert json.loads(bare.out)["measures"] == json.loads(bare.out)["valid"] == {}


def test_measures_on_test_data_are_a_table(rankwood, parts, tmp_path):
    sets, files = parts
    outcome = rankwood("train", "lambdamart", "--train", files["train"], "--valid", files["valid"], "--test",
                       files["test"], *SMALL, "-p", "n_trees=60", "-p", "early_stopping_rounds=5",
                       "-p", "convention=lightgbm", "-m", "nDCG@10", "-m", "AP", "-o", tmp_path / "m.rw")  # fmt: skip
    expected = rw.evaluate(rw.load_model(tmp_path / "m.rw"), sets["test"], ["nDCG@10", "AP"], convention="lightgbm")
    for value in expected.values():
        assert f"{value:.4f}" in outcome.out
    for text in ("m.rw", "nDCG@10", "AP", "convention lightgbm", f"{sets['test'].n_queries} queries"):
        assert text in outcome.out
    assert re.search(r"trained \d+ trees, the best of \d+, with nDCG@10 .* on train, nDCG@10 .* on valid", outcome.err)


def test_training_goes_on_from_a_checkpoint(rankwood, parts, tmp_path, monkeypatch):
    _, files = parts
    arguments = ("train", "lambdamart", "--train", files["train"], *SMALL, "-p", "feature_fraction=0.5")
    rankwood(*arguments, "-p", "n_trees=20", "-o", tmp_path / "whole.rw")
    checkpointed = (*arguments, "--checkpoint", tmp_path / "training.rw", "--every", 3)
    with monkeypatch.context() as patch:
        patch.setattr(COMMAND, "training_progress", press_at(7))
        outcome = rankwood(*checkpointed, "-p", "n_trees=20", "-o", tmp_path / "resumed.rw")
    assert outcome.status == 130
    assert "run the same command again to go on from " in outcome.err
    assert not (tmp_path / "resumed.rw").exists()
    assert rw.load_model(tmp_path / "training.rw").n_trees == 8
    assert rankwood(*checkpointed, "-p", "n_trees=20", "-o", tmp_path / "resumed.rw").status == 0
    assert (tmp_path / "resumed.rw").read_bytes() == (tmp_path / "whole.rw").read_bytes()
    outcome = rankwood(*checkpointed, "-p", "n_leaves=5", "-o", tmp_path / "resumed.rw")
    assert outcome.status == 2
    assert "was made with other tree rules" in outcome.err


def press_at(tree: int):
    """In place of the progress: somebody presses Ctrl-C after a tree."""

    def press(env):
        if env.iteration == tree:
            os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def progress(description, *, quiet=False):
        yield [press]

    return progress


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_ctrl_c(rankwood, parts, tmp_path, monkeypatch):
    sets, files = parts
    monkeypatch.setattr(COMMAND, "training_progress", press_at(2))
    arguments = ("train", "mart", "--train", files["train"], *SMALL, "-o", tmp_path / "m.rw")
    outcome = rankwood(*arguments)
    assert (outcome.status, outcome.out) == (130, "")
    assert outcome.err == "rankwood: interrupted: no model was written\n"
    assert os.listdir(tmp_path) == []
    outcome = rankwood(*arguments, "--keep-on-interrupt", "--test", files["test"])
    assert outcome.status == 130
    assert "interrupted: kept 3 trees" in outcome.err
    assert "documents for testing" in outcome.out
    expected = rw.MART(n_trees=3, n_leaves=4, min_docs_per_leaf=5).fit(sets["train"]).ensemble_
    assert rw.load_model(tmp_path / "m.rw") == expected
    outcome = rankwood(*arguments, "--keep-on-interrupt", "--json")
    found = json.loads(outcome.out)
    assert (outcome.status, found["n_trees"], found["interrupted"]) == (130, 3, True)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise there")
@pytest.mark.parametrize("learner", ["lambdamart", "xdart", "forest", "igbrt"])
def test_the_status_of_a_process_that_keeps_its_model(parts, tmp_path, learner):
    """A script must see that the training did not end by itself."""
    _, files = parts
    begun, output = tmp_path / "training.rw", tmp_path / "m.rw"
    given = [learner, "--train", files["train"], "-p", "n_trees=1000000", "--keep-on-interrupt", "-o", output,
             "--checkpoint", begun, "--every", 1, "--threads", 1, "--json"]  # fmt: skip
    if learner == "igbrt":
        rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)], n_features=6).save(tmp_path / "start.rw")
        given += ["--forest", tmp_path / "start.rw"]
    command = [sys.executable, "-m", "rankwood", "train", *map(str, given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 120
            while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "")
    found = json.loads(out)
    assert found["interrupted"]
    assert 0 < found["n_trees"] < 1_000_000
    model = rw.load_model(output)
    assert model.n_trees == found["n_trees"]


def test_data_with_fewer_and_more_features(rankwood, parts, tmp_path):
    _, files = parts
    few, many = tmp_path / "few.txt", tmp_path / "many.txt"
    few.write_text("1 qid:1 1:0.5\n0 qid:1 2:1\n")
    many.write_text("1 qid:1 9:0.5\n0 qid:1 2:1\n")
    arguments = ("train", "mart", "--train", files["train"], *SMALL, "-o", tmp_path / "m.rw")
    assert rankwood(*arguments, "--valid", few).status == 0
    outcome = rankwood(*arguments, "--test", many)
    assert outcome.status == 2
    assert "feature id 9 is beyond the 6 features of --train: give --features" in outcome.err
    assert rankwood(*arguments, "--test", many, "--features", 9).status == 0
    assert rw.load_model(tmp_path / "m.rw").n_features == 9


def test_a_learner_that_may_have_been_meant_is_named(rankwood):
    outcome = rankwood("train", "lambdamrt", "--train", "a.txt", "-o", "m.rw")
    assert outcome.status == 2
    assert "(did you mean lambdamart?)" in " ".join(outcome.err.replace("│", " ").split())


def test_a_warning_is_a_line(rankwood, parts, tmp_path):
    _, files = parts
    outcome = rankwood("train", "mart", "--train", files["train"], "-p", "n_trees=2", "-p", "min_docs_per_leaf=5000",
                       "-o", tmp_path / "m.rw")  # fmt: skip
    assert outcome.status == 0
    assert "warning: no tree has a split" in outcome.err
    assert "UserWarning" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--train", "missing.txt"), "missing.txt"),
        (("-p", "n_tree=3"), "LambdaMART has no parameter 'n_tree' (did you mean n_trees?)"),
        (("-p", "n_trees"), "a parameter is written name=value, got 'n_trees'"),
        (("-p", "n_trees=many"), "n_trees must be a whole number, got 'many'"),
        (("-p", "n_trees=0"), "n_trees must be at least 1, got 0"),
        (("-p", "objective=mse"), "objective can be given in Python only"),
        (("-p", "random_state=1"), "random_state has an option of its own: --seed"),
        (("-p", "n_jobs=1"), "n_jobs has an option of its own: --threads"),
        (("-p", "early_stopping_rounds=5"), "early stopping needs validation data: give --valid"),
        (("--measure", "nDGC"), "unknown measure 'nDGC'"),
        (("--every", "5"), "--every says how often a checkpoint is saved: give --checkpoint, too"),
        (("--checkpoint", "model.rw"), "--checkpoint and --output name the same file"),
        (("--checkpoint", "no/such/c.rw", "--train", "missing.txt"), "no/such/c.rw: there is no folder no/such"),
        (
            ("-o", "no/such/folder/m.rw", "--train", "missing.txt"),
            "no/such/folder/m.rw: there is no folder no/such/folder",
        ),
        (("-o", ".", "--train", "missing.txt"), ".: Is a directory"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(rankwood, parts, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    _, files = parts
    given = () if "--train" in arguments else ("--train", files["train"])
    target = () if "-o" in arguments else ("-o", "model.rw")
    outcome = rankwood("train", "lambdamart", *given, *target, *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("rankwood: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [("mart",), ("mart", "--train", "x"), ("svm", "--train", "x", "-o", "y")])
def test_wrong_use_is_status_2(rankwood, arguments):
    outcome = rankwood("train", *arguments)
    assert outcome.status == 2
    assert "Usage" in outcome.err


def test_progress_as_lines(monkeypatch):
    """Elsewhere than on a terminal: now and then, and at the end. Time left counts only what is grown now."""
    clock = iter(np.arange(0.0, 100.0, 2.0))  # two seconds per tree
    monkeypatch.setattr("rankwood.cli.console.time.monotonic", lambda: float(next(clock)))
    shown = []
    watcher = Watcher(lambda *given: shown.append(given), every=5.0)
    env = CallbackEnv(None, {}, 0, 0, 10, train_name="train")
    for env.iteration, value in enumerate([0.1, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.2, 0.6, 0.4]):
        env.replayed = env.iteration < 4
        env.evaluation_result_list = [
            Result("train", "AP", 0.9, True),
            Result("train", "RR", 0.8, True),
            Result("valid", "AP", value, True),
        ]
        watcher(env)
    assert shown == [
        (5, 10, "AP train 0.9000, valid 0.2000, best 0.5000 at tree 2", "10 s left"),
        (8, 10, "AP train 0.9000, valid 0.2000, best 0.5000 at tree 2", "4 s left"),
        (10, 10, "AP train 0.9000, valid 0.4000, best 0.6000 at tree 9", "0 s left"),
    ]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal(parts, tmp_path):
    """A bar with trees, measures and time left, which is gone at the end."""
    import pty

    _, files = parts
    command = ["train", "lambdamart", "--train", files["train"], "--valid", files["valid"], "-o", tmp_path / "m.rw"]
    main, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rankwood", *map(str, command), *SMALL],
        stderr=terminal,
        stdout=subprocess.PIPE,
        env=environment,
    )
    os.close(terminal)
    shown = b""
    try:
        while block := os.read(main, 4096):
            shown += block
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait() == 0
    assert process.stdout is not None
    assert process.stdout.read() == b""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"lambdamart ━+ 6/6\s+trees, 0 s left", text)
    assert re.search(r"nDCG@10 train 0\.\d{4}, valid 0\.\d{4}, best 0\.\d{4} at tree \d", text)
    assert re.search(r"(?m)^trained 6 trees", text.replace("\r", ""))


@pytest.mark.parametrize("learner", ["mart", "lambdamart", "dart", "xdart", "igbrt", "forest"])
def test_help_has_the_parameters_of_the_learner(rankwood, learner, monkeypatch):
    """With their defaults, and what the docstrings say."""
    monkeypatch.setenv("COLUMNS", "80")
    for order in (("train", learner, "--help"), ("train", "--help", learner)):
        shown = rankwood(*order).out
        assert max(map(len, shown.splitlines())) <= 80
        listed = shown.partition(f"Parameters of {learner}")[2].partition("\n\n")[0].splitlines()[1:]
        names = [line.partition("=")[0] for line in listed if not line.startswith(" ")]
        kind = learner_class(learner)
        by_text = {field.name for field in dataclasses.fields(kind)} - {*OPTION_OF, "objective"}
        assert set(names) == by_text
        assert f"n_trees={kind.n_trees}" in listed
        for name, line in itertools.pairwise(listed):  # each has a meaning
            assert name.startswith(" ") or line.startswith("    ")
    assert f"\n    {learner}: n_trees" in rankwood("train", "--help").out


def test_lines_of_progress_count_trees_upwards(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    shown = []
    watcher = console.Watcher(lambda done, total, told, left: shown.append((done, total, told)), every=1.0)
    for iteration, n_trees in enumerate((1, 2, 3, 2, 1, 2, 3, 4)):
        now[0] += 2.0
        step = SimpleNamespace(n_trees=n_trees)
        watcher(SimpleNamespace(
            model=None, iteration=iteration, end_iteration=40, step=step, n_trees=10, evaluation_result_list=[],
            train_name="train", replayed=False,
        ))  # fmt: skip
    assert shown == [(1, 10, ""), (2, 10, ""), (3, 10, ""), (3, 10, "4 removed"), (4, 10, "4 removed")]
