"""The search within a scoring budget. Times are made up: a microsecond per 100 nodes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab import tune as tune_module
from rankwood.lab.search import Point, best_within, front_of
from rankwood.lab.tune import TrialSetup

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


def test_what_is_said_of_the_winner_is_of_queries_that_chose_nothing(result, parts):
    train, valid, _ = parts
    assert result.reported_on == "test"
    assert result.reported == result.chosen.test
    assert f"nDCG@10 {result.reported:.4f} on 60 test queries" in result.summary()
    default = rw.evaluate(result.models["trial-000"], parts[2]) if "trial-000" in result.models else None
    if default is not None:
        chosen = rw.evaluate(result.ensemble, parts[2])
        values = [found.per_query["nDCG@10"] for found in (default, chosen)]
        assert result.proofs["default"] == rw.Proof.of(*values, rw.Acceptance())
    assert result.proofs.keys() == result.comparisons.keys()

    aside = search(parts, judge=0.4, n_trials=2, margin=0.01)
    chooses, reports = valid.split(0.6, seed=0)
    assert aside.reported_on == "aside"
    assert aside.chosen.test is None
    assert aside.n_reporting == reports.n_queries == 24
    assert aside.chosen.valid == pytest.approx(rw.evaluate(aside.ensemble, chooses)["nDCG@10"], abs=1e-12)
    assert aside.reported == pytest.approx(rw.evaluate(aside.ensemble, reports)["nDCG@10"], abs=1e-12)
    assert {proof.margin for proof in aside.proofs.values()} == {0.01}
    assert f"{aside.reported:.4f} on 24 validation queries that chose nothing" in aside.summary()
    assert aside.points == search((train, chooses, None), n_trials=2).points  # these queries have no part in the search

    alone = search(parts, n_trials=1)
    assert (alone.reported, alone.reported_on, alone.proofs) == (None, None, {})
    assert "on the validation queries that chose it, so expect less elsewhere" in alone.summary()
    many = rw.make_ranking(n_queries=1000, docs_per_query=3, n_features=12, seed=1)
    assert search((train, many, None), n_trials=1, rates=()).n_reporting == 500


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
    monkeypatch.setattr("rankwood.lab.search.RANDOM_TRIALS", 3)
    path = tmp_path / "study.log"
    for n_trials in (4, 6):
        resumed = search(parts, n_trials=n_trials, study=path, rates=())
    assert resumed.trials == search(parts, n_trials=6, rates=()).trials


def test_a_finished_study_answers_for_another_budget_without_training(parts, tmp_path, monkeypatch):
    path = tmp_path / "study.log"
    search(parts, study=path)
    monkeypatch.setattr(TrialSetup, "run", lambda *_: pytest.fail("trained again"))
    wide = search(parts, study=path, budget_us=100.0)
    assert wide.chosen.valid == max(point.valid for point in wide.points)


def test_ctrl_c_keeps_the_trials_before_it(parts, tmp_path, monkeypatch, result):
    path, run = tmp_path / "study.log", TrialSetup.run

    def interrupted(bench, number, *rest):
        if number == 2:
            raise KeyboardInterrupt
        return run(bench, number, *rest)

    monkeypatch.setattr(TrialSetup, "run", interrupted)
    found = search(parts, study=path, on_interrupt="keep")
    assert found.interrupted
    assert found.n_trials == 2
    with pytest.raises(KeyboardInterrupt):
        search(parts, study=path)
    monkeypatch.setattr(TrialSetup, "run", run)
    assert search(parts, study=path, n_trials=4, test=parts[2]).trials == result.trials


def test_ctrl_c_in_the_first_trial_keeps_nothing(parts, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrialSetup, "run", interrupted)
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
        ({"judge": 1.5}, "judge is a share of the validation queries between 0 and 1"),
        ({"judge": 0.01}, r"judge=0\.01 sets 1 of 60 validation queries aside"),
        ({"margin": 0.0}, "margin must be a positive number"),
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


def with_more(data, **given):
    return rw.Dataset(data.X, data.y, qid=data.qid, **given)


def test_a_study_of_other_weights_is_refused(parts, tmp_path):
    train, valid, _ = parts
    path = tmp_path / "study.log"
    search(parts, n_trials=1, study=path)
    heavy = with_more(train, weights=np.linspace(0.5, 1.5, train.n_docs))
    with pytest.raises(rw.RankwoodError, match="was made with other training data: choose another file"):
        search((heavy, valid, None), n_trials=1, study=path)


def test_a_study_of_another_convention_of_the_same_name_is_refused(parts, tmp_path):
    path = tmp_path / "study.log"
    search(parts, n_trials=1, study=path)
    changed = replace(rw.Convention.get("rankwood"), gain="linear")
    with pytest.raises(rw.RankwoodError, match="was made with other convention: choose another file"):
        search(parts, n_trials=1, study=path, convention=changed)


def test_a_second_search_in_the_same_file_is_refused(parts, tmp_path, monkeypatch):
    path, link, run = tmp_path / "study.log", tmp_path / "link.log", TrialSetup.run
    link.symlink_to(path)
    refused = []

    def second_search(bench, number, *rest):
        monkeypatch.setattr(TrialSetup, "run", run)
        for name in (path, link):
            with pytest.raises(rw.RankwoodError) as caught:
                search(parts, study=name)
            refused.append(str(caught.value).replace(str(name), name.name))
        return run(bench, number, *rest)

    monkeypatch.setattr(TrialSetup, "run", second_search)
    first = search(parts, study=path)
    assert refused == [
        f"another search is using the study {name}: wait for it, or choose another file"
        for name in ("study.log", "link.log")
    ]
    assert search(parts, study=path).trials == first.trials  # and it is free again
    assert {file.name for file in tmp_path.iterdir()} == {"study.log", "link.log", "study.log.models"}


HOLD = """
import sys
from pathlib import Path
from rankwood.lab.search import only_search_in
with only_search_in(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_search_sets_the_file_free(parts, tmp_path):
    path = tmp_path / "study.log"
    paths = os.pathsep.join([str(Path(rw.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    try:
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(rw.RankwoodError, match="another search is using the study"):
            search(parts, study=path)
    finally:
        holder.kill()
        holder.communicate()
    assert search(parts, study=path, n_trials=1).n_trials == 1
    assert not (tmp_path / "study.log.models" / "search.lock").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_file_system_without_locks_is_named(parts, tmp_path, monkeypatch):
    import fcntl

    def no_locks(file, operation):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(rw.RankwoodError, match=r"cannot be locked \(Function not implemented\): choose a file"):
        search(parts, study=tmp_path / "study.log")


def test_rates_within_a_percent_are_models_of_their_own(parts, monkeypatch, tmp_path):
    """The best within the budget is the second: names that say whole percents give the last one's model."""
    whole = rw.LambdaMART(n_trees=6, n_leaves=4).fit(parts[0]).ensemble_

    def run(bench, number, parameters, on_share):
        models = [(rate, whole.select(range(n))) for rate, n in ((0.0, 6), (0.498, 4), (0.5, 3), (0.504, 2))]
        return [
            (Point(number, parameters, rate, "refit", model.n_trees, model.n_nodes, model.n_trees / 10, us), model)
            for (rate, model), us in zip(models, (9.0, 3.0, 2.0, 1.0), strict=True)
        ]

    monkeypatch.setattr(TrialSetup, "run", run)
    for study in (None, tmp_path / "study.log"):
        found = search(parts, study=study, n_trials=1, budget_us=3.0, latency=lambda model, X: 1.0)
        assert (found.chosen.name, found.chosen.n_trees, found.ensemble.n_trees) == ("trial-000-49.8", 4, 4)
    kept = {file.name for file in (tmp_path / "study.log.models").iterdir()}
    assert kept == {"trial-000.rw", "trial-000-49.8.rw", "trial-000-50.rw", "trial-000-50.4.rw"}


@pytest.mark.parametrize(
    ("rate", "name"),
    [(0.0, ""), (0.07, "-07"), (0.3, "-30"), (0.85, "-85"), (0.504, "-50.4"), (1e-7, "-00.00001"), (1 / 3, None)],
)
def test_names_have_the_digits_that_a_rate_needs(rate, name):
    found = replace(point(0.5, 1.0), rate=rate).name
    assert name is None or found == f"trial-000{name}"
    assert rate == 0 or found != replace(point(0.5, 1.0), rate=np.nextafter(rate, 1)).name


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
    with pytest.raises(rw.RankwoodError, match=r"tuning needs the package optuna: pip install 'rankwood\[lab\]'"):
        search(parts)


def point(valid, us):
    return Point(0, {}, 0.0, "whole", 1, 1, valid, us)


def test_fronts_and_budgets():
    points = [point(0.5, 3.0), point(0.4, 1.0), point(0.4, 2.0), point(0.6, 3.0), point(0.6, 4.0)]
    assert [(p.valid, p.us_per_doc) for p in front_of(points)] == [(0.4, 1.0), (0.6, 3.0)]
    assert best_within(points, 2.5) == point(0.4, 1.0)
    assert best_within(points, 0.5) == point(0.4, 1.0)
    assert best_within(points, 9.0) == point(0.6, 3.0)
    assert tune_module.BATCH == 1000


# A given model: the path of shrink, in the same form.


@pytest.fixture(scope="module")
def given(parts):
    return rw.LambdaMART(n_trees=24, n_leaves=8, learning_rate=0.2).fit(parts[0]).ensemble_


@pytest.fixture
def times_by_leaves(monkeypatch):
    """A microsecond per 100 leaves."""
    from rankwood.pruning import judging
    from rankwood.scoring.timing import Timing

    def timings(models, **_):
        times = [model.n_leaves / 100 for model, _ in models]
        return [Timing(time, time, time, n_calls=1, batch=4096, engine="bitslice") for time in times]

    monkeypatch.setattr(judging, "time_models", timings)


def test_a_given_model_is_shrunk_into_the_budget(parts, given, times_by_leaves):
    train, valid, test = parts
    result = rw.tune(train, valid, model=given, test=test, judge=0.5, budget_us=0.5, margin=0.4)
    shrunk = result.shrunk
    assert result.within_budget
    assert result.ensemble.n_leaves <= 50 < given.n_leaves
    assert result.chosen.us_per_doc == result.ensemble.n_leaves / 100
    assert result.ensemble.metadata["tune"]["budget_us"] == 0.5
    assert [point.valid for point in result.points] == [row.valid for row in shrunk.rows]
    assert {point.name for point in result.front} <= set(result.models)
    assert result.models[result.chosen.name].fingerprint() == shrunk.chosen.ensemble.fingerprint()
    assert (result.reported, result.reported_on, result.n_reporting) == (shrunk.chosen.test, "test", 60)
    assert result.reported == pytest.approx(rw.evaluate(result.ensemble, test)["nDCG@10"], abs=1e-12)
    assert result.proofs == {"input": shrunk.test_proof}
    assert result.comparisons["input"].difference == shrunk.test.difference
    assert "0.4" in result.summary()
    assert "(budget 0.5)" in result.summary()
    assert len(json.loads(json.dumps(result.as_dict()))["path"]) == len(shrunk.rows)
    assert set(result.curves()) == {"front", "shrink"}


def test_a_model_that_cannot_be_shown_to_be_good_enough_within_the_budget(parts, given, times_by_leaves):
    train, valid, _ = parts
    result = rw.tune(train, valid, model=given, budget_us=0.5, margin=1e-9)
    assert not result.within_budget
    assert not result.shrunk.accepted
    assert result.proofs == result.comparisons == {}
    assert result.ensemble.fingerprint() == given.fingerprint()
    assert result.summary().startswith("no model within 0.5 us per document was shown to be good enough: no smaller")


def test_a_model_that_is_within_the_budget_stays_where_nothing_smaller_is_shown(parts, given, times_by_leaves):
    train, valid, _ = parts
    result = rw.tune(train, valid, model=given, budget_us=100.0, margin=1e-9)
    assert result.within_budget
    assert result.ensemble.fingerprint() == given.fingerprint()


def test_settings_of_trainings_are_refused_with_a_model(parts, given):
    train, valid, _ = parts
    with pytest.raises(rw.RankwoodError, match="n_trials and space say how models are trained and pruned"):
        rw.tune(train, valid, model=given, budget_us=1.0, n_trials=3, space=SPACE)
