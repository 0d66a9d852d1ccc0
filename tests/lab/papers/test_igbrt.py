"""The study of boosting from a forest: its numbers recomputed slowly, its tables and figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.data.bins import CodedDataset
from rankwood.lab.papers.igbrt import (
    BOOSTED,
    PAPER,
    PAPER_DATA,
    WAYS,
    Filling,
    IgbrtResults,
    IgbrtStudy,
    boost_in_three,
    err_bound,
    make_report,
    rmse,
    with_gaps,
)
from rankwood.lab.runs import RunTable
from rankwood.lab.study import FewerQueries


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


@pytest.mark.parametrize("method", ["GBRT", "RF", "iGBRT"])
def test_grades_are_those_of_the_chosen_model(igbrt_study, igbrt_results, method):
    """Theorem 1's table: predicted grades by `grade_probabilities`, errors and ERR counted slowly."""
    found = []
    for fold in igbrt_study.folds:
        for seed in range(igbrt_study.n_seeds):
            model, convention = slow_model(igbrt_study, method, "ordinal", fold, seed, "ERR")
            test = igbrt_study.source.load(fold).test
            grades = rw.grade_probabilities(getattr(model, "ensemble_", model), test.X).argmax(axis=1)
            wrong = [
                sum(grades[row] != test.y[row] for row in range(test.n_docs) if test.qid[row] == query)
                for query in dict.fromkeys(test.qid.tolist())
            ]
            reached, ideal = (
                rw.evaluate(scores, test, "ERR", convention=convention)["ERR"]
                for scores in (grades.astype(float), test.y)
            )
            bound = np.mean([15 * np.pi / (16 * np.sqrt(6)) * np.sqrt(n) for n in wrong])
            found.append([sum(wrong) / test.n_docs, np.mean(wrong), bound, ideal, reached])
    expected = dict(zip(("wrong", "wrong_per_query", "bound", "ideal", "reached"), np.mean(found, axis=0), strict=True))
    assert igbrt_results.grades(method) == pytest.approx(expected)


@given(st.data())
def test_the_bound_of_err_holds(data):
    """Theorem 1, also for other highest grades than the paper's 4: ideal ERR less ERR, ranked by predicted grades."""
    highest = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(1, 12))
    labels, grades = (
        np.array(data.draw(st.lists(st.integers(0, highest), min_size=n, max_size=n)), dtype=float) for _ in range(2)
    )
    query = rw.Dataset(np.zeros((n, 1)), labels, group=[n])
    convention = replace(rw.Convention.get("yahoo"), max_grade=float(highest))
    ideal, reached = (rw.evaluate(scores, query, "ERR", convention=convention)["ERR"] for scores in (labels, grades))
    n_wrong = int((labels != grades).sum())
    assert ideal - reached <= err_bound(n_wrong, highest) + 1e-12
    if highest == 4:
        assert err_bound(n_wrong) == pytest.approx(15 * np.pi / (16 * np.sqrt(6)) * np.sqrt(n_wrong))


@pytest.mark.parametrize("highest", range(1, 9))
def test_a_wrong_document_is_allowed_more_than_it_can_cost(highest):
    share = 1 - 2.0**-highest
    largest = -share * np.log(share) / (1 - share)  # ERR of endlessly many documents of the highest grade
    assert largest == pytest.approx(sum(share * (1 - share) ** (i - 1) / i for i in range(1, 200)))
    assert err_bound(1 if highest > 1 else 2, highest) > largest
    assert err_bound(1, highest) > (1 - 2.0**-highest)


def test_boosting_in_three_is_mart_when_nothing_is_missing():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 40, size=(400, 6)).astype(np.float32)
    y = X[:, 0] / 20 + (X[:, 1] > 12) + rng.normal(size=400)
    data = rw.Dataset(X, y, group=[20] * 20)
    start = rw.MART(3, 4).fit(data).ensemble_
    for ranker in rw.MART(8, learning_rate=0.3, **BOOSTED), rw.InitializedMART(8, learning_rate=0.3, forest=start):
        theirs = ranker.set_params(**BOOSTED).fit(data).ensemble_
        before = start.score(X) if isinstance(ranker, rw.InitializedMART) else theirs.base
        ours = boost_in_three(CodedDataset.make(data), y - before, 8, 0.3, n_threads=1)
        expected = theirs.score(X) - before
        assert ours.n_trees == 8
        assert ours.topology().max_depth == 4
        np.testing.assert_allclose(ours.score(X), expected, atol=1e-5)


def test_boosting_in_three_has_a_side_for_missing_values():
    """Whether a value is missing says everything, and which value it is says something else: one split has both."""
    X = np.array([[np.nan], [1.0], [2.0], [3.0]] * 5, dtype=np.float32)
    y = np.array([5.0, 0.0, 1.0, 2.0] * 5)
    model = boost_in_three(CodedDataset.make(rw.Dataset(X, y, group=[20])), y, 1, 1.0)
    np.testing.assert_allclose(model.score(X), y)


def test_ways_to_treat_missing_values_are_compared_on_validation_data(source, tmp_path):
    study = IgbrtStudy(source, (1,), n_trees=4, boosted_trees=3, learning_rates=(0.3, 0.5), gaps="zero")
    table = RunTable(tmp_path / "runs.sqlite")
    results = IgbrtResults(study, study.runs(table))
    fold = study.source.load(1)
    train, valid = with_gaps(fold.train, "zero"), with_gaps(fold.valid, "zero")
    assert 0.05 < np.isnan(train.X).mean() < 0.95
    convention = replace(rw.Convention.get("yahoo"), max_grade=4.0)
    for way in WAYS[:-1]:
        (found,) = results.filled(way)
        assert found["missing"] == pytest.approx(np.isnan(train.X).mean())
        forest = rw.RandomForest(4, max_features=0.1, missing=way).fit(train)
        assert found["valid"]["RF"]["ERR"] == rw.evaluate(forest, valid, "ERR", convention=convention)["ERR"]
        values = [
            rw.evaluate(
                rw.MART(rounds, learning_rate=rate, missing=way, **BOOSTED).fit(train), valid, convention=convention
            )["nDCG@10"]
            for rate in (0.3, 0.5)
            for rounds in (1, 2, 3)
        ]
        assert found["valid"]["GBRT"]["nDCG@10"] == pytest.approx(max(values))
        assert all(found["valid"]["iGBRT"][name] >= found["valid"]["RF"][name] for name in ("ERR", "nDCG@10"))
    (apart,) = results.filled("three-way")
    forest = rw.RandomForest(4, max_features=0.1, missing="three-way").fit(train).ensemble_
    coded, values = CodedDataset.make(train), [rw.evaluate(forest, valid, convention=convention)["nDCG@10"]]
    for rate in (0.3, 0.5):
        for rounds in (1, 2, 3):
            model = forest.concat(boost_in_three(coded, train.y - forest.score(train.X), rounds, rate))
            values.append(rw.evaluate(model, valid, convention=convention)["nDCG@10"])
    assert apart["valid"]["iGBRT"]["nDCG@10"] == pytest.approx(max(values))
    tables = {one.name: one for one in make_report(results).tables}
    assert [row[0] for row in tables["missing"].rows] == list(WAYS)
    assert tables["missing"].rows[-1][6] == f"{max(values):.5f}"


def test_ways_to_treat_missing_values_may_be_compared_on_fewer_queries(source):
    study = IgbrtStudy(source, (1,), n_trees=4, boosted_trees=1, learning_rates=(0.3,), gaps="zero", gap_queries=7)
    found = study.perform(study.filling(1, 0, "mean"))
    fold = source.load(1)
    train = with_gaps(FewerQueries(source, 7).load(1).train, "zero")
    assert found["queries"] == train.n_queries == 7 < fold.train.n_queries
    forest = rw.RandomForest(4, max_features=0.1, missing="mean").fit(train)
    convention = replace(rw.Convention.get("yahoo"), max_grade=4.0)
    valid = with_gaps(fold.valid, "zero")
    assert found["valid"]["RF"]["ERR"] == rw.evaluate(forest, valid, "ERR", convention=convention)["ERR"]
    assert study.filling(1, 0, "mean") != replace(study, gap_queries=8).filling(1, 0, "mean")


def test_ways_to_treat_missing_values_may_be_left_out(source, tmp_path):
    study = IgbrtStudy(source, (1,), n_trees=4, boosted_trees=1, learning_rates=(0.3,), gaps="zero", gap_queries=0)
    assert not any(isinstance(run, Filling) for run in study.plan())
    report = make_report(IgbrtResults(study, study.runs(RunTable(tmp_path / "runs.sqlite"))))
    (table,) = (one for one in report.tables if one.name == "missing")
    assert table.rows == [["Not compared: --gap-queries is 0."]]
    with pytest.raises(rw.RankwoodError, match="gap_queries must be at least 0, got -1"):
        replace(study, gap_queries=-1)


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
    assert list(tables) == ["table3", "order", "table1", "missing", "bound", "table4", "data"]
    assert tables["missing"].rows == [["No value of the training data is missing."]]
    assert [row[0] for row in tables["bound"].rows] == ["GBRT(C)", "RF(C)", "iGBRT(C)"]
    test = igbrt_study.source.load(2).test
    counted = next(row for row in tables["data"].rows if row[0] == "fold 2 test")
    assert counted[1:4] == [f"{test.n_queries:,}", f"{test.n_docs:,}", "12"]
    assert tables["data"].rows[0][1:3] == ["60", f"{igbrt_study.source.data.n_docs:,}"]
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
    assert PAPER_DATA[2] == ["paper: MSLR 1 train", "6,000", "723,412", "136", "–", "119.569", "–", "0.37228", "–"]
    assert len(PAPER_DATA) == 14


def test_a_study_needs_trees(source):
    with pytest.raises(rw.RankwoodError, match="at least one seed"):
        IgbrtStudy(source, (1,), boosted_trees=0)
