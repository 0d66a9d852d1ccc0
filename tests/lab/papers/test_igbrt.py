"""The study of boosting from a forest: its numbers recomputed slowly, its tables and figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.igbrt import PAPER, IgbrtResults, IgbrtStudy, make_report, rmse
from rankwood.lab.runs import RunTable


def slow_model(study, method, task, fold, seed, measure):
    """The model that validation data chooses, by training with every number of rounds and learning rate."""
    data = study.source.load(fold)
    convention = replace(rw.Convention.get("yahoo"), max_grade=4.0)
    forest = rw.RandomForest(study.n_trees, task=task, max_features=0.1, missing="zero", random_state=seed)
    forest = forest.fit(data.train).ensemble_
    if method == "RF":
        return forest, convention
    best = None
    common = {"n_leaves": 16, "max_depth": 4, "min_docs_per_leaf": 1, "missing": "zero", "task": task}
    for rate in study.learning_rates:
        for rounds in range(0 if method == "iGBRT" else 1, study.boosted_trees + 1):
            if rounds == 0:
                model = forest
            elif method == "GBRT":
                model = rw.MART(rounds, learning_rate=rate, random_state=seed, **common).fit(data.train)
            else:
                model = rw.InitializedMART(rounds, learning_rate=rate, random_state=seed, forest=forest, **common)
                model.fit(data.train)
            value = rw.evaluate(model, data.valid, measure, convention=convention)[measure]
            if best is None or value > best[0] + 1e-12:
                best = (value, model)
    return best[1], convention


def test_the_forests_of_all_grades_are_one(source):
    train = source.load(1).train
    model = rw.RandomForest(5, task="ordinal", random_state=3).fit(train).ensemble_
    expected = np.zeros(train.n_docs)
    for grade in range(1, int(train.y.max()) + 1):
        below = rw.Dataset(train.X, train.y < grade, qid=train.qid)
        expected += 1 - rw.RandomForest(5, random_state=3).fit(below).predict(train)
    np.testing.assert_allclose(model.score(train.X), expected, atol=1e-12)
    assert rw.grade_probabilities(model, train.X).shape == (train.n_docs, int(train.y.max()) + 1)


@pytest.mark.parametrize("method", ["GBRT", "RF", "iGBRT"])
@pytest.mark.parametrize(("task", "measure"), [("regression", "nDCG@10"), ("ordinal", "ERR")])
def test_test_values_are_those_of_what_validation_data_chooses(igbrt_study, igbrt_results, method, task, measure):
    fold, values = 1, []
    for seed in range(2):
        model, convention = slow_model(igbrt_study, method, task, fold, seed, measure)
        test = igbrt_study.source.load(fold).test
        values.append(rw.evaluate(model, test, measure, convention=convention).per_query[measure])
    np.testing.assert_allclose(igbrt_results.test_values(method, task, measure, fold), np.mean(values, axis=0))


def test_findings_are_tests_on_all_queries(igbrt_study, igbrt_results):
    findings = igbrt_results.findings()
    assert len(findings) == 18
    one = next(f for f in findings if f.better == ("iGBRT", "ordinal") and f.worse[0] == "RF" and f.measure == "ERR")
    values = [
        np.concatenate([igbrt_results.test_values(*which, "ERR", fold) for fold in igbrt_study.folds])
        for which in (one.worse, one.better)
    ]
    test = rw.randomisation_test(*values)
    assert (one.difference, one.p_value) == (test.mean_difference, test.p_value)
    expected = rw.holm([finding.p_value for finding in findings])
    assert [finding.p_holm for finding in findings] == expected.tolist()


def test_curves_end_where_the_whole_model_is(igbrt_study, igbrt_results):
    run = igbrt_study.boostings(1, 0, "regression", 0)[1]
    result = igbrt_results.result(run)
    assert run.learning_rate == 0.5
    data = igbrt_study.source.load(1)
    model = rw.MART(run.n_trees, 16, 0.5, max_depth=4, min_docs_per_leaf=1, missing="zero").fit(data.train)
    assert result["curves"]["rounds"] == [1, 2, 3, 4, 5, 6]
    expected = rmse(data.test.y, model.predict(data.test), data.test.offsets)[1]
    assert result["curves"]["test"]["RMSE"][-1] == pytest.approx(expected, abs=1e-6)


def test_a_study_that_was_killed_ends_as_one_that_was_not(igbrt_study, igbrt_results, tmp_path, monkeypatch):
    runs, calls = RunTable(tmp_path / "runs.sqlite"), []
    run = IgbrtStudy.run

    def dying(self, config):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(config)
        return run(self, config)

    monkeypatch.setattr(IgbrtStudy, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        igbrt_study.runs(runs)
    monkeypatch.setattr(IgbrtStudy, "run", lambda self, config: calls.append(config) or run(self, config))
    resumed = IgbrtResults(igbrt_study, igbrt_study.runs(runs))
    assert calls == igbrt_study.configs()
    assert [f.difference for f in resumed.findings()] == [f.difference for f in igbrt_results.findings()]


def test_the_report(igbrt_study, igbrt_results, tmp_path):
    report = make_report(igbrt_results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert all(path.stat().st_size > 1000 for path in written if path.suffix in (".png", ".svg"))
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["table3", "order", "table1", "table4"]
    row = next(row for row in tables["table3"].rows if row[:2] == ["ERR iGBRT", "C"])
    means = [igbrt_results.fold_mean("iGBRT", "ordinal", "ERR", fold) for fold in (1, 2)]
    assert row[2:5] == [f"{value:.5f}" for value in (*means, np.mean(means))]
    assert row[5] == f"{np.mean([0.36232, 0.36198, 0.35486, 0.36744, 0.37430]):.5f}"
    assert [row[0] for row in tables["table1"].rows] == ["0", "3", "8"]
    assert len(tables["order"].rows) == 18
    saved = json.loads((tmp_path / "results.json").read_text())
    assert len(saved["facts"]["findings"]) == 18
    assert "RF(C) above GBRT(C)" in (tmp_path / "report.md").read_text()


def test_the_paper_is_copied_rightly():
    assert PAPER["nDCG@10", "iGBRT", "ordinal"][2:] == (0.48366, 0.48858, 0.47868, 0.49084, 0.49581)
    assert {len(values) for values in PAPER.values()} == {7}
    assert len(PAPER) == 12


def test_a_study_needs_trees(source):
    with pytest.raises(rw.RankwoodError, match="at least one seed"):
        IgbrtStudy(source, (1,), boosted_trees=0)
