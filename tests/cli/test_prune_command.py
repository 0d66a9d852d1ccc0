"""`rankwood prune`: a smaller model, a table, and JSON."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import rankwood as rw
from rankwood.model.unfold import without_sets

STORED = Path(__file__).parents[1] / "formats" / "data"
NEVER = ("--accept", "non-inferior", "--margin", 1e-9, "--alpha", 1e-300, "--rates", 0.75)


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
                       "--refit", "--judge-share", 0.5, "--margin", 0.9)  # fmt: skip
    assert outcome.status == 0
    assert "50%" in outcome.out
    assert "p (loss)" in outcome.out
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


def test_what_was_shown_is_said(rankwood, folder, tmp_path):
    given = (*arguments(folder, tmp_path / "small.rw"), "--rates", "0.25,0.5", "--test", folder / "test.txt")
    answer = json.loads(rankwood(*given, "--judge-share", 0.5, "--margin", 0.9, "--json").out)
    proof = answer["proof"]
    assert (proof["holds"], proof["margin"], proof["n_queries"], proof["n_models"]) == (True, 0.9, 10, 6)
    assert proof["p_adjusted"] <= 0.05
    assert answer["test_proof"]["n_queries"] == 20
    (chosen,) = [row for row in answer["table"] if row["proof"] == proof]
    assert chosen["rate"] == answer["rate"]
    said = rankwood(*given, "--judge-share", 0.5, "--margin", 0.9).out
    assert "it loses less than 0.9 of nDCG@10, 95 % sure, on 10 queries that chose nothing, corrected for 6" in said
    few = rankwood(*given, "--json")  # 20 validation queries are too few for folds, so nothing is shown
    answer = json.loads(few.out)
    assert (answer["accepted"], answer["judging"], answer["accept"], answer["margin"]) == (
        False, "choosing", "non-inferior", 0.005)  # fmt: skip
    said = rankwood(*given).out
    assert "that it loses less than 0.005 of nDCG@10 cannot be shown with 20 queries that also chose it" in said


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
        (("--accept", "quality", "--margin", "0.1"), "margin is for accept='non-inferior'"),
        (("--judge-share", "0.5", "--judge-folds"), "--judge-share and --judge-folds both say what to judge by"),
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


@pytest.fixture(scope="module")
def misled(tmp_path_factory):
    """A model whose second tree is useless by the validation data, and all that counts by the test data."""
    folder = tmp_path_factory.mktemp("misled")
    X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    for name, column in (("train", 0), ("valid", 0), ("same", 0), ("test", 1)):
        rw.write_svmlight(rw.Dataset(X, (X[:, column] > 0).astype(int), group=[8] * 50), folder / f"{name}.txt")
    rw.Ensemble.from_trees([(0, 0.0, 0.0, 2.0), (1, 0.0, 0.0, 1.0)]).save(folder / "model.rw")
    return folder


def of_misled(folder, out, test="test.txt"):
    return ("prune", folder / "model.rw", "--train", folder / "train.txt", "--valid", folder / "valid.txt", "--test",
            folder / test, "--rates", 0.5, "--iterations", 3, "-o", out)  # fmt: skip


def test_a_loss_on_test_data_is_warned_of(rankwood, misled, tmp_path):
    outcome = rankwood(*of_misled(misled, tmp_path / "small.rw"))
    assert outcome.status == 0
    test = rw.read_svmlight(misled / "test.txt")
    found = rw.compare(rw.load_model(misled / "model.rw"), rw.load_model(tmp_path / "small.rw"), test)
    low, high = found.interval
    said = f"{found.difference:+.4f} (95 % interval {low:+.4f} .. {high:+.4f}, p = {found.p_randomisation:.4f})"
    (closing,) = [line for line in outcome.out.splitlines() if line.startswith("1 of 2 trees")]
    assert said in closing
    assert "significant loss" in closing
    (warning,) = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    assert "significantly worse on test data" in warning
    assert said in warning

    answered = rankwood(*of_misled(misled, tmp_path / "small.rw"), "--json")
    assert answered.status == 0
    assert answered.err.splitlines() == [warning]
    answer = json.loads(answered.out)
    assert answer["test_loss"] is True
    assert answer["test_difference"] == found.difference == pytest.approx(answer["test_after"] - answer["test_before"])
    assert answer["test_interval"] == [low, high]
    assert answer["p_test"] == found.p_randomisation


def test_no_loss_no_warning(rankwood, misled, tmp_path):
    outcome = rankwood(*of_misled(misled, tmp_path / "small.rw", "same.txt"), "--json")
    assert (outcome.status, outcome.err) == (0, "")
    assert json.loads(outcome.out)["test_loss"] is False


@pytest.mark.real_data
def test_the_loss_on_mq2008_is_said(rankwood, real_data, tmp_path):
    files = [real_data / "mq2008" / f"S{number}.txt.gz" for number in range(1, 6)]
    learn = ("--train", *files[:3])
    assert rankwood("train", "lambdamart", *learn, "-p", "n_trees=100", "-o", tmp_path / "model.rw").status == 0
    outcome = rankwood("prune", tmp_path / "model.rw", *learn, "--valid", files[3], "--test", files[4], "-o",
                       tmp_path / "small.rw")  # fmt: skip
    assert outcome.status == 0
    assert "no smaller model was accepted (rule 'non-inferior'): the model keeps its 100 trees" in outcome.out
    assert "cannot be shown with 157 queries by cross-validation" in outcome.out
    assert outcome.out.rstrip().endswith("would do")
    assert "warning" not in outcome.err
    outcome = rankwood("prune", tmp_path / "model.rw", *learn, "--valid", files[3], "--test", files[4], "-o",
                       tmp_path / "small.rw", "--accept", "quality", "--judge-share", 0.5)  # fmt: skip
    assert "10 of 100 trees" in outcome.out
    assert "on test data 0.4622 (before: 0.4799): -0.0177" in outcome.out
    assert "p = 0.0205), a significant loss" in outcome.out
    assert "warning: the smaller model is significantly worse on test data" in outcome.err


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Data for the stored models, which are of four features."""
    path, rng = tmp_path_factory.mktemp("narrow") / "data.txt", np.random.default_rng(1)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    rw.write_svmlight(rw.Dataset(X, rng.integers(0, 3, len(X)), group=[12] * 50), path)
    return "--train", path, "--valid", path


@pytest.fixture(scope="module")
def given_models(tmp_path_factory):
    """A model in every format that is both read and written, by name of the format."""
    folder = tmp_path_factory.mktemp("given")
    stored = {"lightgbm": "lightgbm-4.7.0-zero.txt", "lightgbm-json": "lightgbm-4.7.0-zero.json",
              "xgboost": "xgboost-3.2.0.json", "xgboost (binary)": "xgboost-3.2.0.ubj"}  # fmt: skip
    models = {name: STORED / file for name, file in stored.items()}
    model = rw.load_model(models["xgboost"])
    for name in ("rankwood", "ranklib", "quickrank", "xgboost-dump"):
        models[name] = folder / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rw.ConversionWarning)
            rw.save_as(model, models[name], name, missing="ignore")
    return models


@pytest.mark.parametrize(
    ("name", "out", "to"),
    [
        ("rankwood", "same.rw", ()),
        ("rankwood", "same", ()),
        ("lightgbm", "same.txt", ()),
        ("lightgbm-json", "same.json", ()),
        ("xgboost", "same.json", ()),
        ("xgboost (binary)", "same.ubj", ()),
        ("xgboost-dump", "same.json", ()),
        ("ranklib", "same.txt", ()),
        ("quickrank", "same.xml", ()),
        ("quickrank", "same", ("--to", "quickrank")),
        ("ranklib", "same", ()),  # the input has no suffix, either
    ],
)
def test_what_is_kept_is_the_file_itself(rankwood, given_models, files, tmp_path, name, out, to):
    arguments = ("prune", given_models[name], *files, *NEVER, "--iterations", 2, "-o", tmp_path / out, *to)
    outcome = rankwood(*arguments)
    assert outcome.status == 0, outcome.err
    assert "no smaller model was accepted" in outcome.out
    assert (tmp_path / out).read_bytes() == given_models[name].read_bytes()
    assert f"wrote {tmp_path / out} ({name.partition(' ')[0]}): the input itself, byte for byte" in outcome.err
    answer = json.loads(rankwood(*arguments, "--json").out)
    assert (answer["accepted"], answer["written"]) == (False, "copy")
    assert answer["bytes_after"] == answer["bytes_before"] == given_models[name].stat().st_size


@pytest.mark.parametrize(
    ("name", "out", "to"),
    [
        ("lightgbm", "same.rw", "rankwood"),
        ("rankwood", "same.txt", "lightgbm"),
        ("xgboost", "same.ubj", "xgboost"),
        ("xgboost (binary)", "same.json", "xgboost"),
        ("ranklib", "same.txt", "lightgbm"),
        ("lightgbm", "same.json", "lightgbm-json"),
    ],
)
def test_what_is_kept_in_another_format_is_converted(rankwood, given_models, files, tmp_path, name, out, to):
    arguments = ("prune", given_models[name], *files, *NEVER, "--iterations", 2, "-o", tmp_path / out, "--to", to)
    outcome = rankwood(*arguments)
    assert outcome.status == 0, outcome.err
    assert f"wrote {tmp_path / out} ({to}): the input, converted" in outcome.err
    data = rw.read_svmlight(arguments[3])
    scores = [rw.load_model(path, n_features=4).score(data.X) for path in (given_models[name], tmp_path / out)]
    np.testing.assert_allclose(*scores, rtol=1e-5)
    assert json.loads(rankwood(*arguments, "--json").out)["written"] == "converted"


@pytest.mark.parametrize(
    ("source", "name", "out", "found"),
    [
        ("ranklib", "model.txt", "small.txt", "ranklib"),
        ("xgboost", "model.json", "small.json", "xgboost"),
        ("lightgbm", "model.lgb", "small.lgb", "lightgbm"),
        ("lightgbm", "model.txt", "small_model", "rankwood"),
        ("xgboost", "model.json", "small.txt", "lightgbm"),
    ],
)
def test_a_smaller_model_is_of_the_input_s_format(rankwood, given_models, files, tmp_path, source, name, out, found):
    (tmp_path / name).write_bytes(given_models[source].read_bytes())
    outcome = rankwood("prune", tmp_path / name, *files, "--rates", 0.5, "--accept", "non-inferior", "--margin", 1,
                       "--iterations", 2, "-o", tmp_path / out)  # fmt: skip
    assert outcome.status == 0, outcome.err
    assert outcome.err.splitlines()[-1] == f"wrote {tmp_path / out} ({found})"
    assert rw.load_model(tmp_path / out, found).n_trees == 2


def test_a_name_that_tells_nothing_is_refused_before_data_is_read(rankwood, given_models, tmp_path):
    data = ("--train", "absent", "--valid", "absent")
    outcome = rankwood("prune", given_models["ranklib"], *data, "-o", tmp_path / "small.json")
    assert outcome.status == 2
    assert "choose with --to (in Python: format=) one of: lightgbm-json, vespa, xgboost" in outcome.err


def test_a_file_imported_before_is_of_rankwoods_own_format(rankwood, given_models, files, tmp_path):
    """Its notes say LightGBM, but its bytes are no LightGBM model."""
    rw.load_model(given_models["lightgbm"]).save(tmp_path / "imported.rw")
    for out, same in (("same.rw", True), ("same.txt", False)):
        outcome = rankwood("prune", tmp_path / "imported.rw", *files, *NEVER, "-o", tmp_path / out)
        assert outcome.status == 0, outcome.err
        assert ((tmp_path / out).read_bytes() == (tmp_path / "imported.rw").read_bytes()) is same
    assert rw.load_model(tmp_path / "same.txt", "lightgbm").n_trees == 4


def test_sizes_are_told_as_the_source_counts_them(rankwood, given_models, files, tmp_path):
    arguments = ("prune", given_models["lightgbm"], *files, "--accept", "non-inferior", "--margin", 0.99, "--rates",
                 0.25, "--iterations", 2, "-o", tmp_path / "small.txt")  # fmt: skip
    outcome = rankwood(*arguments)
    small, before = rw.load_model(tmp_path / "small.txt"), given_models["lightgbm"].stat().st_size
    after = (tmp_path / "small.txt").stat().st_size
    assert small.n_trees == 3
    assert (
        f"small.txt has {small.n_leaves} leaves and {after:,} bytes, lightgbm-4.7.0-zero.txt 24 leaves and {before:,} "
        "bytes" in outcome.out
    )
    assert "source counts" not in outcome.out
    answer = json.loads(rankwood(*arguments, "--json").out)
    assert answer["written"] == "pruned"
    assert answer["n_leaves_source"] == 24
    assert answer["n_leaves_before"] == 24
    assert answer["n_leaves_after"] == small.n_leaves
    assert (answer["bytes_before"], answer["bytes_after"]) == (before, after)


def test_files_of_before_there_were_sets_tell_what_their_source_counts(rankwood, given_models, files, tmp_path):
    """Splits around zero were several thresholds there."""
    given = rw.load_model(given_models["lightgbm"])
    source = given.metadata["source"] | {"n_leaves": given.n_leaves, "n_nodes": given.n_nodes}
    without_sets(given).with_metadata(source=source).save(tmp_path / "old.rw")
    arguments = ("prune", tmp_path / "old.rw", *files, "--accept", "non-inferior", "--margin", 0.99, "--rates",
                 0.25, "--iterations", 2, "-o", tmp_path / "small.rw")  # fmt: skip
    outcome = rankwood(*arguments)
    small = rw.load_model(tmp_path / "small.rw")
    assert "the lightgbm source counts 24 leaves, the model here 36: " in outcome.out
    assert f"warning: the model has {small.n_leaves} leaves, more than the 24 of its lightgbm source" in outcome.err
    answer = json.loads(rankwood(*arguments, "--json").out)
    assert (answer["n_leaves_source"], answer["n_leaves_before"]) == (24, 36)


def test_a_categorical_lightgbm_model_comes_back_as_it_was(rankwood, tmp_path):
    lgb = pytest.importorskip("lightgbm", reason="PEER LEFT OUT: lightgbm is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)).astype(np.float32)
    X[:, 0] = rng.integers(0, 40, len(X))
    y = np.clip(np.round(rng.normal(size=40)[X[:, 0].astype(int)] + 0.5 * X[:, 2] + 1.5), 0, 4)
    parameters = {"objective": "lambdarank", "num_leaves": 15, "min_data_in_leaf": 3, "min_data_per_group": 3,
                  "cat_smooth": 1, "verbose": -1}  # fmt: skip
    booster = lgb.train(parameters, lgb.Dataset(X, y, group=[20] * 30, categorical_feature=[0]), 8)
    booster.save_model(tmp_path / "given.txt")
    rw.write_svmlight(rw.Dataset(X, y, group=[20] * 30), tmp_path / "data.txt")
    files = ("--train", tmp_path / "data.txt", "--valid", tmp_path / "data.txt")
    outcome = rankwood("prune", tmp_path / "given.txt", *files, *NEVER, "-o", tmp_path / "same.txt", "--json")
    assert outcome.status == 0, outcome.err
    assert (tmp_path / "same.txt").read_bytes() == (tmp_path / "given.txt").read_bytes()
    answer = json.loads(outcome.out)
    counted = sum(tree["num_leaves"] for tree in booster.dump_model()["tree_info"])
    assert answer["n_leaves_source"] == counted == answer["n_leaves_before"]
    assert json.loads(rankwood("inspect", tmp_path / "given.txt", "--json").out)["n_sets"] > 0


# Stopped, and out of time.

RATES = ("--rates", "0.2,0.4,0.6,0.8", "--margin", 0.9, "--judge-share", 0.5)


def test_a_checkpoint_goes_on_to_the_same_file(rankwood, folder, tmp_path, monkeypatch):
    from rankwood.pruning import pruner

    whole = rankwood(*arguments(folder, tmp_path / "whole.rw"), *RATES, "--json")
    given = (*arguments(folder, tmp_path / "small.rw"), *RATES, "--checkpoint", tmp_path / "steps")
    calls, search = [], pruner.line_search

    def interrupted(*args, **how):
        calls.append(how)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(*args, **how)

    monkeypatch.setattr(pruner, "line_search", interrupted)
    outcome = rankwood(*given)
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == (
        "rankwood: interrupted: no model was written; run the same command again to go on from "
        f"{tmp_path / 'steps'}"
    )  # fmt: skip
    assert not (tmp_path / "small.rw").exists()
    again = rankwood(*given, "--json")
    assert again.status == 0
    assert len(calls) == 3 + 3  # the searches over all trees and at the first rate were known
    assert (tmp_path / "small.rw").read_bytes() == (tmp_path / "whole.rw").read_bytes()
    found, expected = json.loads(again.out), json.loads(whole.out)
    assert found["proof"] == expected["proof"]
    assert (found["timed_out"], found["rates_left"]) == (False, [])

    other = rankwood(*given, "--seed", 1)
    assert other.status == 2
    assert "was made with other settings (seed 0, now 1): delete it to start anew, or choose another file" in other.err


def test_a_time_limit(rankwood, folder, tmp_path):
    given = (*arguments(folder, tmp_path / "small.rw"), *RATES, "--checkpoint", tmp_path / "steps")
    outcome = rankwood(*given, "--timeout", 1e-9, "--json")
    assert outcome.status == 0
    assert outcome.err.splitlines() == [
        "warning: the time was up before the search came to its end: no rate was tried in full; "
        f"{tmp_path / 'steps'} keeps what was found, and the same command goes on from there"
    ]
    answer = json.loads(outcome.out)
    assert (answer["timed_out"], answer["rates_left"], answer["accepted"]) == (True, [0.2, 0.4, 0.6, 0.8], False)
    assert (answer["written"], len(answer["table"])) == ("copy", 1)
    assert (tmp_path / "small.rw").read_bytes() == (folder / "model.rw").read_bytes()
    said = rankwood(*arguments(folder, tmp_path / "again.rw"), *RATES, "--timeout", 1e-9)
    assert "the time was up" in said.out
    whole = rankwood(*given, "--timeout", 1e6, "--json")
    assert (whole.err, json.loads(whole.out)["timed_out"]) == ("", False)


def test_wrong_checkpoints_and_limits(rankwood, folder, tmp_path):
    given = arguments(folder, tmp_path / "small.rw")
    for more, words in (
        (("--timeout", 0), "timeout is a number of seconds above 0, got 0"),
        (("--checkpoint", tmp_path / "absent" / "steps"), "there is no folder"),
        (("--checkpoint", folder / "train.txt"), "is read by this command: write to another file"),
        (("--checkpoint", tmp_path / "." / "small.rw"), "is both --output and --checkpoint: write to another file"),
    ):
        outcome = rankwood(*given, *more)
        assert outcome.status == 2
        assert words in outcome.err
    (tmp_path / "steps").write_bytes((folder / "model.rw").read_bytes())
    outcome = rankwood(*given, "--checkpoint", tmp_path / "steps")
    assert "steps is no checkpoint of pruning: choose another file" in outcome.err
    assert not (tmp_path / "small.rw").exists()
