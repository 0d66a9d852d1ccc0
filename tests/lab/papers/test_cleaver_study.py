"""The study of pruning: what is chosen, its numbers recomputed, its tables."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.cleaver import (
    METHODS,
    QUALITY_LOSS,
    Candidate,
    CleaverResults,
    CleaverStudy,
    Sweep,
    Way,
    make_report,
    pick,
)
from rankwood.lab.runs import Kept, RunTable, run_key

RANDOM = Way("random")
PLAIN = {"normalize": False, "truncation": None}
SEARCH = rw.LineSearch(iterations=3, negative="exclude")


@pytest.fixture(scope="module")
def study(source):
    return CleaverStudy(
        source, (1, 2), sizes=(6,), n_trees=10, learners=("LambdaMART",), leaves=(5,), learning_rates=(0.2,),
        early_stopping=10, rates=(0.0, 0.3, 0.6), iterations=3, n_random=2, closing=(4, 8), n_bags=2,
        ways=(RANDOM, Way("last"), QUALITY_LOSS, Way("quality-loss", "valid", "refit")),
    )  # fmt: skip


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    return CleaverResults(study, study.runs(RunTable(tmp_path_factory.mktemp("cleaver") / "runs.sqlite")))


def test_outcomes_are_those_of_cleaver(study, results):
    trees, tests, values = [], [], []
    for fold in study.folds:
        data = study.source.load(fold)
        small = rw.LambdaMART(6, 5, 0.2, **PLAIN).fit(data.train).ensemble_
        settings = rw.PruningSettings(victims="train", search=SEARCH)
        found = rw.cleaver(
            small,
            data.train,
            data.valid,
            judge=None,
            accept="quality",
            rates=(0.0, 0.3, 0.6),
            variants="line-search",
            settings=settings,
        )
        trees.append(found.ensemble.n_trees)
        measured = rw.evaluate(found.ensemble, data.test)
        tests.append(measured["nDCG@10"])
        values.append(measured.per_query["nDCG@10"])
    outcome = results.outcome(6, QUALITY_LOSS)
    assert outcome.n_full == 6
    assert outcome.n_trees == np.mean(trees)
    assert outcome.test == pytest.approx(np.mean(tests))
    assert outcome.test_values.tolist() == np.concatenate(values).tolist()


def test_random_is_averaged(study, results):
    runs = results.of("full", RANDOM, 1)
    assert len(runs) == 2
    assert runs[0]["table"] != runs[1]["table"]
    chosen = [run["values"][pick(run["table"], "quality")] for run in runs]
    outcome = results.outcome("full", RANDOM)
    assert outcome.test_values[: len(chosen[0])].tolist() == np.mean(chosen, axis=0).tolist()


def test_workers_prune_and_models_are_timed_alone_afterwards(study, results, tmp_path, monkeypatch):
    small = replace(study, folds=(1,), ways=(QUALITY_LOSS,))
    table = RunTable(tmp_path / "runs.sqlite")
    runs = small.runs(table, n_workers=2)
    entries = table.entries()
    timed = ["pruning" in entry["config"] for entry in entries]
    assert sorted(timed) == [False] * 5 + [True] * 2  # sweep, two sizes, closing, related methods; then the timings
    assert timed[-2:] == [True] * 2
    assert [entry["environment"]["workers"] for entry in entries] == [2] * 5 + [1] * 2
    monkeypatch.setattr(CleaverStudy, "_prune", None)  # the models were saved
    monkeypatch.setattr(CleaverStudy, "_train", None)
    replace(small, models=tmp_path / "models", _kept=Kept()).run(runs[-1][0])
    found, expected = CleaverResults(small, runs).of(6, QUALITY_LOSS, 1), results.of(6, QUALITY_LOSS, 1)
    assert found == expected  # with one worker


def test_a_model_that_neither_rule_prunes_is_as_fast_as_before(study, results, monkeypatch):
    monkeypatch.setattr("rankwood.lab.papers.cleaver.pick", lambda table, rule: 0)
    timed = replace(study, _kept=Kept()).perform(study.timings()[0])
    assert timed["speed_up"] == {"quality": 1.0, "not-significant": 1.0}


def test_looser_rules_leave_fewer_trees(study, results):
    for way in study.ways:
        strict, loose = (results.outcome("full", way, rule) for rule in ("quality", "not-significant"))
        assert loose.n_trees <= strict.n_trees


def test_the_closing_comparison(study, results):
    roads = results.closing()
    assert list(roads) == ["trained", "line-searched", "pruned"]
    assert roads["trained"][0] == 4
    assert roads["pruned"][0] <= 4
    first = []
    for fold in study.folds:
        data = study.source.load(fold)
        model = rw.LambdaMART(4, 5, 0.2, **PLAIN).fit(data.train)
        first.append(rw.evaluate(model, data.test).per_query["nDCG@10"])
    assert roads["trained"][1].tolist() == np.concatenate(first).tolist()


def test_the_reference_is_the_best_of_a_sweep(study, source, tmp_path):
    wide = replace(
        study, folds=(1,), learners=("MART", "LambdaMART"), leaves=(3, 6), n_trees=40, early_stopping=5, min_gain=0.01,
        models=tmp_path, _kept=Kept(),
    )  # fmt: skip
    names = [candidate.name for candidate in wide.candidates]
    assert names[::2] == ["MART, 3 leaves, learning rate 0.2", "LambdaMART, 3 leaves, learning rate 0.2"]
    found, data = wide.perform(wide.sweep(1)), source.load(1)
    values = []
    for candidate, result in zip(wide.candidates, found["candidates"], strict=True):
        ranker = rw.MART() if candidate.learner == "MART" else rw.LambdaMART(**PLAIN)
        ranker.set_params(n_trees=40, n_leaves=candidate.n_leaves, learning_rate=0.2)
        ranker.fit(data.train, valid=data.valid)
        curve = ranker.evals_result_["valid"]["nDCG@10"]
        best, at = curve[0], 0
        for number, value in enumerate(curve):
            if value > best * 1.01:
                best, at = value, number
            if number - at >= 5:
                break
        assert (result["n_trees"], result["valid"]) == (at + 1, pytest.approx(best))
        values.append(best)
    assert found["best"] == int(np.argmax(values))
    again = replace(wide, _kept=Kept())  # from the saved models
    full, longer = (again._reference(again.sweep(1), which) for which in ("full", "longer"))
    assert full.n_trees == found["candidates"][found["best"]]["n_trees"]
    assert longer.n_trees == max(8, full.n_trees)
    n_same = min(full.n_trees, longer.n_trees)
    assert full.select(np.arange(n_same)) == longer.select(np.arange(n_same))


def test_the_defaults_are_the_papers(source):
    study = CleaverStudy(source, (1,))
    assert study.rates == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert Way("signed-score-loss") in study.ways
    sweep = study.sweep(1)
    assert (sweep.patience, sweep.min_gain, sweep.normalize, sweep.n_trees) == (50, 0.0005, False, 1500)
    assert {candidate.learner for candidate in sweep.candidates} == {"MART", "LambdaMART"}
    assert study.prunings(1, 100, QUALITY_LOSS)[0].negative == study.closing_of(1).negative == "exclude"
    scaled = replace(study, normalize=True).sweep(1)
    assert isinstance(scaled, Sweep)
    assert scaled.normalize
    assert Candidate("MART", 50, 0.05) in scaled.candidates


def test_rate_0_is_line_search_alone(study, results):
    data = study.source.load(1)
    small = rw.LambdaMART(6, 5, 0.2, **PLAIN).fit(data.train).ensemble_
    settings = rw.PruningSettings(search=SEARCH, measure_speed=False)
    found = rw.cleaver(
        small, data.train, data.valid, judge=None, rates=0.0, variants="line-search", settings=settings
    ).rows[1].ensemble  # fmt: skip
    n_trees, rate, values = results.searched(6)
    expected = rw.evaluate(found, data.test).per_query["nDCG@10"]
    assert values[: len(expected)].tolist() == expected.tolist()
    assert rate == pytest.approx(1 - n_trees / 6)
    table = make_report(results).tables[0]
    assert table.rows[1][0] == "line search alone (0 %)"
    assert table.rows[1][3].startswith(f"{np.mean(values):.4f}")


def test_a_better_model_of_as_many_trees_counts():
    rows = [{"n_trees": n, "valid": valid, "p_valid": p} for n, valid, p in ((9, 0.5, None), (9, 0.6, 0.3))]
    assert pick(rows, "quality") == 1
    rows[1]["valid"] = 0.5
    assert pick(rows, "quality") == 0


def test_related_methods_have_the_size_of_the_pruned_model(study, results):
    related = results.related()
    assert tuple(related) == METHODS
    trees, leaves = ({method: one[i] for method, one in related.items()} for i in (0, 1))
    n_pruned = trees["pruned"]
    assert n_pruned <= 0.6 * trees["reference"]
    assert n_pruned == trees["prefix"] == trees["bagged LambdaMART"] == trees["extremely randomised trees"]
    assert trees["Lasso"] <= n_pruned
    assert leaves["nodes collapsed"] <= leaves["pruned"]
    for number, fold in enumerate(study.folds):
        data, n_trees = study.source.load(fold), results.result(study.related_of(fold))["pruned"]["n_trees"]
        prefix = rw.LambdaMART(n_trees, 5, 0.2, **PLAIN).fit(data.train)
        forest = rw.RandomForest(n_trees, thresholds="random", docs_per_tree=1.0, replace=False).fit(data.train)
        n = data.test.n_queries
        for method, model in (("prefix", prefix), ("extremely randomised trees", forest)):
            expected = rw.evaluate(model, data.test).per_query["nDCG@10"]
            assert related[method][2][number * n : (number + 1) * n].tolist() == expected.tolist()
    table = next(table for table in make_report(results).tables if table.name == "related")
    assert [row[0] for row in table.rows][:2] == ["reference", "pruned by 50%, quality-loss"]
    test = rw.randomisation_test(related["reference"][2], related["Lasso"][2])
    assert table.rows[3][4:] == [f"{test.mean_difference:+.4f}", f"{test.p_value:.3f}"]


def test_the_report(results, tmp_path, monkeypatch):
    report = make_report(results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert (tmp_path / "figure.svg") in written
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["table1", "table1b", "closing", "related", "sweep", "paper"]
    assert [row[0] for row in tables["table1"].rows][:3] == ["reference", "line search alone (0 %)", "random"]
    assert tables["sweep"].rows[0][0] == "LambdaMART, 5 leaves, learning rate 0.2"
    assert tables["sweep"].rows[0][-1] == "2"
    assert {len(row) for row in tables["table1"].rows} == {len(tables["table1"].columns)}
    assert tables["closing"].rows[2][-1] == "0.7329"
    saved = json.loads((tmp_path / "results.json").read_text())
    assert len(saved["facts"]["outcomes"]) == 2 * 2 * 4
    assert "MSN-1 and Istella" in (tmp_path / "report.md").read_text()


def test_sizes_are_part_of_what_a_full_model_is_known_by(study):
    # The full model has at least as many trees as the smaller ones: other sizes, another full model.
    other = replace(study, sizes=(*study.sizes, study.n_trees))
    keys, others = ({run_key(config) for config in one.configs()} for one in (study, other))
    assert not keys & others


def test_a_study_needs_trees(source):
    with pytest.raises(rw.RankwoodError, match="a study needs trees"):
        CleaverStudy(source, (1,), rates=())
    with pytest.raises(rw.RankwoodError, match="a sweep needs at least one learner"):
        CleaverStudy(source, (1,), leaves=())
