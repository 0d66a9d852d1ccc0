"""`rankwood tune`: a model within a budget, the front, and JSON."""

from __future__ import annotations

import json
import sys

import pytest

import rankwood as rw
from rankwood.cli.tune import describe
from rankwood.lab.search import Point, only_search_in
from rankwood.lab.tune import MeasuredLatency, TrialSetup


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=2)
    for number, name in enumerate(("train", "valid", "test")):
        rw.write_svmlight(data.select_queries(range(20 * number, 20 * number + 20)), folder / f"{name}.txt")
    return folder


@pytest.fixture(autouse=True)
def made_up_times(monkeypatch):
    monkeypatch.setattr(MeasuredLatency, "__call__", lambda self, model, X: model.n_trees / 10)


def arguments(folder, out, budget=1.0):
    return ("tune", "--train", folder / "train.txt", "--valid", folder / "valid.txt", "--budget-us", budget,
            "--trials", 2, "--max-trees", 12, "-o", out)  # fmt: skip


def test_a_front_and_a_model(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--test", folder / "test.txt")
    assert outcome.status == 0
    for text in ("us/doc", "chosen", "(budget 1)", "of 2 trials", "against the default LambdaMART", "convention",
                 "on 20 test queries", "it loses less than 0.005 of nDCG@10"):  # fmt: skip
        assert text in outcome.out
    assert "wrote" in outcome.err
    model = rw.load_model(tmp_path / "m.rw")
    assert model.n_trees <= 10
    assert model.metadata["tune"]["us_per_doc"] == model.n_trees / 10


def test_json(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--json", "--test", folder / "test.txt")
    assert outcome.status == 0
    assert outcome.err == ""
    answer = json.loads(outcome.out)
    assert answer["chosen"]["us_per_doc"] <= answer["budget_us"] == 1.0
    assert answer["model"] == str(tmp_path / "m.rw")
    assert {"front", "trials", "comparisons"} <= answer.keys()
    assert answer["proofs"].keys() == answer["comparisons"].keys()
    assert (answer["reported_on"], answer["reported"]) == ("test", answer["chosen"]["test"])


def test_queries_may_be_set_aside(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--judge-share", 0.5, "--margin", 0.02)
    assert outcome.status == 0, outcome.err
    assert "on 10 validation queries that chose nothing" in outcome.out
    assert "0.02 of nDCG@10" in outcome.out


def test_no_model_within_the_budget(rankwood, folder, tmp_path):
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw", budget=0.01))
    assert outcome.status == 1
    sentence = outcome.err.splitlines()[-1]
    assert "rankwood: no model scores a document within 0.01 us: the fastest of" in sentence
    assert not (tmp_path / "m.rw").exists()
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw", budget=0.01), "--json")
    assert outcome.status == 1
    assert json.loads(outcome.out)["model"] is None


def test_ctrl_c_keeps_the_best_so_far(rankwood, folder, tmp_path, monkeypatch):
    run = TrialSetup.run

    def interrupted(bench, number, *rest):
        if number == 1:
            raise KeyboardInterrupt
        return run(bench, number, *rest)

    monkeypatch.setattr(TrialSetup, "run", interrupted)
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--study", tmp_path / "s.log")
    assert outcome.status == 130
    assert "interrupted after 1 of 2 trials: wrote the best so far" in outcome.err
    assert (tmp_path / "m.rw").exists()
    monkeypatch.setattr(TrialSetup, "run", run)
    outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--study", tmp_path / "s.log")
    assert outcome.status == 0
    assert "of 2 trials" in outcome.out


def test_ctrl_c_before_a_model_is_within_the_budget(rankwood, folder, tmp_path, monkeypatch):
    run = TrialSetup.run

    def interrupted(bench, number, *rest):
        if number == 1:
            raise KeyboardInterrupt
        return run(bench, number, *rest)

    monkeypatch.setattr(TrialSetup, "run", interrupted)
    given = arguments(folder, tmp_path / "m.rw", budget=0.0001)
    outcome = rankwood(*given)
    assert outcome.status == 130
    assert "rankwood: interrupted after 1 of 2 trials: no model scores a document within 0.0001 us" in outcome.err
    assert rankwood(*given, "--json").status == 130
    assert not (tmp_path / "m.rw").exists()


def test_optuna_is_asked_for_before_files_are_read(rankwood, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    outcome = rankwood("tune", "--train", "absent", "--valid", "absent", "--budget-us", 1, "-o", tmp_path / "m.rw")
    assert outcome.status == 2
    assert (
        outcome.err
        == "rankwood: tuning needs the package optuna: pip install 'rankwood[lab]' ('.[lab]' in a checkout)\n"
    )


def test_a_study_in_use_is_refused_in_one_sentence(rankwood, folder, tmp_path):
    study = tmp_path / "s.log"
    with only_search_in(study):
        outcome = rankwood(*arguments(folder, tmp_path / "m.rw"), "--study", study)
    assert outcome.status == 2
    said = f"rankwood: another search is using the study {study}: wait for it, or choose another file"
    assert outcome.err.splitlines()[-1] == said
    assert not (tmp_path / "m.rw").exists()


def test_tables_tell_rates_within_a_percent_apart():
    parameters = {"learner": "lambdamart", "shape": "plain", "n_leaves": 8}
    shown = [describe(Point(0, parameters, rate, "refit", 2, 6, 0.4, 1.0)) for rate in (0.5, 0.504)]
    assert shown == ["lambdamart 8 leaves -50 %", "lambdamart 8 leaves -50.4 %"]


# A given model.


@pytest.fixture
def times_by_leaves(monkeypatch):
    """A microsecond per 100 leaves."""
    from rankwood.pruning import judging
    from rankwood.scoring.timing import Timing

    def timings(models, **_):
        times = [model.n_leaves / 100 for model, _ in models]
        return [Timing(time, time, time, n_calls=1, batch=4096, engine="bitslice") for time in times]

    monkeypatch.setattr(judging, "time_models", timings)


@pytest.fixture(scope="module")
def given(folder):
    train = rw.read_svmlight(folder / "train.txt", n_features=6)
    rw.LambdaMART(n_trees=16, n_leaves=8, min_docs_per_leaf=5).fit(train).ensemble_.save(folder / "given.rw")
    return folder / "given.rw"


def with_model(folder, model, out, budget):
    return ("tune", "--model", model, "--train", folder / "train.txt", "--valid", folder / "valid.txt",
            "--budget-us", budget, "--judge-share", 0.5, "--margin", 0.9, "-o", out)  # fmt: skip


def test_a_given_model_is_brought_within_the_budget(rankwood, folder, given, tmp_path, times_by_leaves, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # nothing is searched
    before = rw.load_model(given).n_leaves
    arguments = with_model(folder, given, tmp_path / "m.rw", before / 200)
    outcome = rankwood(*arguments, "--test", folder / "test.txt")
    assert outcome.status == 0, outcome.err
    after = rw.load_model(tmp_path / "m.rw")
    assert after.n_leaves <= before / 2
    assert after.metadata["data"]["train"] == ["train.txt"]
    for text in ("us/doc", "chosen", f"{after.n_leaves} leaves", f"{after.n_leaves} of {before} leaves",
                 "it loses less than 0.9 of nDCG@10, 95 % sure, on 10 queries that chose nothing", "; on test data",
                 "model: how it came about, and its leaves; over"):  # fmt: skip
        assert text in outcome.out
    answer = json.loads(rankwood(*arguments, "--json").out)
    assert answer["chosen"]["us_per_doc"] == after.n_leaves / 100
    assert answer["proofs"]["input"]["holds"]
    assert [row["route"] for row in answer["path"]][:2] == ["input", "refitted input"]
    assert len(answer["path"]) == len(answer["trials"])


def test_a_given_model_that_cannot_be_brought_there(rankwood, folder, given, tmp_path, times_by_leaves):
    outcome = rankwood(*with_model(folder, given, tmp_path / "m.rw", 0.001))
    assert outcome.status == 1
    assert "rankwood: no model within 0.001 us per document was shown to be good enough" in outcome.err
    assert not (tmp_path / "m.rw").exists()


def test_options_of_trainings_are_refused_with_a_model(rankwood, folder, given, tmp_path):
    outcome = rankwood(*with_model(folder, given, tmp_path / "m.rw", 1), "--trials", 3, "--batch", 10)
    assert outcome.status == 2
    assert "--trials and --batch: nothing is trained when there is a --model, so leave it out" in outcome.err


def test_the_given_model_is_not_written_over(rankwood, folder, given):
    outcome = rankwood(*with_model(folder, given, given, 1))
    assert outcome.status == 2
    assert "is read by this command: write to another file" in outcome.err
