"""The search within a scoring budget. Times are made up: a microsecond per 100 nodes."""

from __future__ import annotations

import json
import logging
import sys
import warnings

import numpy as np
import pytest

import rankwood as rw
from rankwood.tuning import tune as tune_module
from rankwood.tuning.points import Point, best_within, pareto_front
from rankwood.tuning.trial import Bench

SPACE = rw.SearchSpace(n_trees=(4, 16), n_leaves=(4, 12), min_docs_per_leaf=(5, 20), patience=8)


def latency(model, X):
    return model.n_nodes / 100


@pytest.fixture(scope="module")
def parts():
    data = rw.make_ranking(n_queries=180, docs_per_query=15, n_features=12, seed=4)
    return tuple(data.select_queries(range(60 * i, 60 * i + 60)) for i in range(3))


def search(parts, **given):
    train, valid, _ = parts
    settings = {"budget_us": 0.5, "n_trials": 3, "space": SPACE, "rates": (0.5, 0.75), "latency": latency, **given}
    return rw.tune(train, valid, **settings)


@pytest.fixture(scope="module")
def result(parts):
    return search(parts, test=parts[2], n_trials=4)


def test_the_winner_is_the_best_on_validation_data_of_those_within_the_budget(result, parts):
    within = [point for point in result.points if point.us_per_doc <= 0.5]
    assert result.within_budget
    assert 0 < len(within) < len(result.points)
    assert result.chosen.valid == max(point.valid for point in within)
    assert result.ensemble.n_nodes / 100 <= 0.5
    assert rw.evaluate(result.ensemble, parts[1])["nDCG@10"] == pytest.approx(result.chosen.valid, abs=1e-12)
    assert result.ensemble.metadata["tune"]["budget_us"] == 0.5


def test_the_front(result):
    worse = [
        (point.name, other.name)
        for point in result.front
        for other in result.points
        if other.valid >= point.valid and other.us_per_doc < point.us_per_doc
    ]
    assert worse == []
    assert set(result.models) >= {point.name for point in result.front}
    for point in result.front:
        assert result.models[point.name].n_trees == point.n_trees
        assert point.test is not None


def test_a_training_gives_several_points_and_the_defaults_come_first(result):
    first = [point for point in result.points if point.trial == 0]
    assert [point.rate for point in first] == [0.0, 0.5, 0.75]
    assert first[0].parameters == {
        "learner": "lambdamart", "shape": "plain", "n_trees": 16, "n_leaves": 12, "min_docs_per_leaf": 20,
        "learning_rate": 0.05,
    }  # fmt: skip
    second = next(point for point in result.points if point.trial == 1)
    assert (second.parameters["learner"], second.parameters["xdart_learning_rate"]) == ("xdart", 1.0)


def test_comparisons_are_on_test_data(result, parts):
    found = result.comparisons["default"]
    assert found.n_queries == 60
    assert found.other_mean == result.chosen.test == rw.evaluate(result.ensemble, parts[2])["nDCG@10"]


def test_trials_and_curves_and_json(result):
    json.dumps(result.as_dict(), allow_nan=False)
    assert [row["chosen"] for row in result.trials].count(True) == 1
    assert result.curves()["front"]["us_per_doc"] == sorted(result.curves()["front"]["us_per_doc"])
    assert sum(len(one["valid"]) for name, one in result.curves().items() if name != "front") == len(result.points)


def test_same_seed_same_search_whatever_the_threads(parts):
    one, two = (search(parts, n_trials=4, n_threads=n, seed=7) for n in (1, 2))
    assert one.trials == two.trials
    assert one.ensemble.fingerprint() == two.ensemble.fingerprint()
    other = search(parts, n_trials=4, seed=8)
    assert [p.parameters for p in one.points] != [p.parameters for p in other.points]


def test_a_resumed_study_goes_on_as_it_would_have(parts, tmp_path, result):
    path = tmp_path / "study.log"
    search(parts, n_trials=2, study=path)
    resumed = search(parts, n_trials=4, study=path, test=parts[2])
    assert resumed.trials == result.trials
    kept = {file.stem for file in (tmp_path / "study.log.models").iterdir()}
    assert kept == {point.name for point in resumed.front} | {"trial-000"}


def test_the_sampler_goes_on_as_it_would_have(parts, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.tuning.study.RANDOM_TRIALS", 3)
    path = tmp_path / "study.log"
    for n_trials in (4, 6):
        resumed = search(parts, n_trials=n_trials, study=path, rates=())
    assert resumed.trials == search(parts, n_trials=6, rates=()).trials


def test_a_finished_study_answers_for_another_budget_without_training(parts, tmp_path, monkeypatch):
    path = tmp_path / "study.log"
    search(parts, study=path)
    monkeypatch.setattr(Bench, "run", lambda *_: pytest.fail("trained again"))
    wide = search(parts, study=path, budget_us=100.0)
    assert wide.chosen.valid == max(point.valid for point in wide.points)


def test_ctrl_c_keeps_the_trials_before_it(parts, tmp_path, monkeypatch, result):
    path, run = tmp_path / "study.log", Bench.run

    def interrupted(bench, number, *rest):
        if number == 2:
            raise KeyboardInterrupt
        return run(bench, number, *rest)

    monkeypatch.setattr(Bench, "run", interrupted)
    found = search(parts, study=path, on_interrupt="keep")
    assert found.interrupted
    assert found.n_trials == 2
    with pytest.raises(KeyboardInterrupt):
        search(parts, study=path)
    monkeypatch.setattr(Bench, "run", run)
    assert search(parts, study=path, n_trials=4, test=parts[2]).trials == result.trials


def test_ctrl_c_in_the_first_trial_keeps_nothing(parts, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(parts, on_interrupt="keep")


def test_no_model_within_the_budget(parts):
    found = search(parts, budget_us=1e-3, n_trials=1)
    assert not found.within_budget
    assert found.chosen.us_per_doc == min(point.us_per_doc for point in found.points)
    assert "no model scores a document within 0.001 us: the fastest of 3 takes" in found.summary()


def test_a_winner_that_was_lucky_once_is_timed_again(parts):
    timed = set()

    def lucky(model, X):
        """The first time every model is fast; then those of many trees are not."""
        again = model.fingerprint() in timed
        timed.add(model.fingerprint())
        return 1.0 + (model.n_trees > 8 and again)

    found = search(parts, budget_us=1.5, latency=lucky, n_trials=1)
    assert found.ensemble.n_trees <= 8 or not found.within_budget


def test_a_timeout_leaves_one_trial(parts):
    assert search(parts, timeout=1e-9).n_trials == 1


def test_without_pruning(parts):
    assert [point.variant for point in search(parts, rates=(), n_trials=2).points] == ["whole", "whole"]


def test_real_times_and_progress(parts):
    train, valid, _ = parts
    told = []
    found = rw.tune(
        train, valid, budget_us=1e4, n_trials=1, space=SPACE, rates=(0.5,), batch=50,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert found.chosen.us_per_doc > 0
    assert told[-1] == (1.0, 1)
    assert told == sorted(told)


def test_optuna_is_silent_and_left_as_it_was(parts, capfd):
    import optuna

    before = optuna.logging.get_verbosity()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(parts, n_trials=2)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before != logging.ERROR


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget_us": 0}, "the budget is a number of microseconds per document above 0, got 0"),
        ({"budget_us": np.nan}, "the budget is a number"),
        ({"n_trials": 0}, "n_trials must be at least 1"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
        ({"batch": 0}, "a batch is at least 1 document"),
        ({"rates": (0.0, 0.5)}, "a pruning rate of 0 is the whole model"),
        ({"rates": (1.0,)}, "rates are shares of the trees"),
        ({"test": 3}, "test must be a Dataset"),
        ({"measure": "nope"}, "nope"),
    ],
)
def test_wrong_arguments(parts, given, message):
    with pytest.raises(rw.RankwoodError, match=message):
        search(parts, **given)


def test_wrong_spaces():
    with pytest.raises(rw.RankwoodError, match="learners to search are lambdamart and xdart, got"):
        rw.SearchSpace(learners=("forest",))
    with pytest.raises(rw.RankwoodError, match="n_leaves must be a range"):
        rw.SearchSpace(n_leaves=(8, 4))


def test_a_study_of_other_data_is_refused(parts, tmp_path):
    path = tmp_path / "study.log"
    search(parts, n_trials=1, study=path)
    with pytest.raises(rw.RankwoodError, match="was made with other seed, other batch: choose another file"):
        search(parts, n_trials=1, study=path, seed=1, batch=10)
    with pytest.raises(rw.RankwoodError, match="was made with other validation data"):
        search((parts[0], parts[2], None), n_trials=1, study=path)


def test_what_is_not_a_study_is_refused(parts, tmp_path):
    (tmp_path / "notes.txt").write_text("milk")
    with pytest.raises(rw.RankwoodError, match=r"notes\.txt is not the file of a study"):
        search(parts, study=tmp_path / "notes.txt")


def test_a_model_that_is_gone_is_named(parts, tmp_path):
    path = tmp_path / "study.log"
    search(parts, n_trials=1, study=path)
    for file in (tmp_path / "study.log.models").iterdir():
        file.unlink()
    with pytest.raises(rw.ModelError, match=r"trial-000.*\.rw, a model of the study, is gone"):
        search(parts, n_trials=1, study=path)


def test_without_optuna(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(rw.RankwoodError, match=r"tuning needs the package optuna: pip install 'rankwood\[tune\]'"):
        search(parts)


def point(valid, us):
    return Point(0, {}, 0.0, "whole", 1, 1, valid, us)


def test_fronts_and_budgets():
    points = [point(0.5, 3.0), point(0.4, 1.0), point(0.4, 2.0), point(0.6, 3.0), point(0.6, 4.0)]
    assert [(p.valid, p.us_per_doc) for p in pareto_front(points)] == [(0.4, 1.0), (0.6, 3.0)]
    assert best_within(points, 2.5) == point(0.4, 1.0)
    assert best_within(points, 0.5) == point(0.4, 1.0)
    assert best_within(points, 9.0) == point(0.6, 3.0)
    assert tune_module.BATCH == 1000
