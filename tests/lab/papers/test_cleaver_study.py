"""The study of pruning: what is chosen, its numbers recomputed, its tables."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.cleaver import QUALITY_LOSS, CleaverResults, CleaverStudy, Way, make_report, pick
from rankwood.lab.runs import Kept, RunTable, run_key

RANDOM = Way("random")


@pytest.fixture(scope="module")
def study(source):
    return CleaverStudy(
        source, (1, 2), sizes=(6,), n_trees=10, n_leaves=5, learning_rate=0.2, early_stopping=10, rates=(0.3, 0.6),
        iterations=3, n_random=2, closing=(4, 8),
        ways=(RANDOM, Way("last"), QUALITY_LOSS, Way("quality-loss", "valid", "refit")),
    )  # fmt: skip


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    return CleaverResults(study, study.runs(RunTable(tmp_path_factory.mktemp("cleaver") / "runs.sqlite")))


def test_outcomes_are_those_of_cleaver(study, results):
    trees, tests, values = [], [], []
    for fold in study.folds:
        data = study.source.load(fold)
        small = rw.LambdaMART(6, 5, 0.2).fit(data.train).ensemble_
        settings = rw.PruningSettings(victims="train", search=rw.LineSearch(iterations=3))
        found = rw.cleaver(small, data.train, data.valid, rates=(0.3, 0.6), variants="line-search", settings=settings)
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
    assert timed == [False] * 3 + [True] * 2  # two sizes and the closing comparison; then the timings
    assert [entry["environment"]["workers"] for entry in entries] == [2] * 3 + [1] * 2
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
        model = rw.LambdaMART(4, 5, 0.2).fit(data.train)
        first.append(rw.evaluate(model, data.test).per_query["nDCG@10"])
    assert roads["trained"][1].tolist() == np.concatenate(first).tolist()


def test_the_report(results, tmp_path, monkeypatch):
    report = make_report(results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert (tmp_path / "figure.svg") in written
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["table1", "table1b", "closing", "paper"]
    assert [row[0] for row in tables["table1"].rows][:2] == ["reference", "random"]
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
