"""The study of sub-samples: its numbers recomputed slowly from the runs, its tables and figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.subsampling import (
    BASELINE,
    PAPER,
    PAPER_DATA,
    Sample,
    SubsamplingResults,
    SubsamplingStudy,
    make_report,
    nearest_to_bootstrap,
    paper_grid,
)
from rankwood.lab.runs import RunTable
from rankwood.lab.study import PartialFolds, open_source

ONE, FIVE = Sample(1), Sample(5)
TENTH = Sample(10, percent=True, what="documents")


def read_png(path):
    from matplotlib.image import imread

    return imread(path)[:, :, :3]


def slow_values(study, setting, part, measure):
    """Seeds x folds, from forests trained anew."""
    table = np.zeros((study.n_seeds, len(study.folds)))
    for seed in range(study.n_seeds):
        for column, number in enumerate(study.folds):
            fold = study.source.load(number)
            forest = rw.RandomForest(
                study.n_trees,
                criterion="entropy",
                max_features="ceil-sqrt",
                redraw=True,
                random_state=seed,
                **(
                    {"docs_per_query": setting.number / 100}
                    if setting.what == "documents"
                    else {"queries_per_tree": setting.of(fold.train.n_queries)}
                ),
            ).fit(fold.train)
            table[seed, column] = rw.evaluate(forest, getattr(fold, part), measure, convention="letor")[measure]
    return table


@pytest.mark.parametrize("setting", [ONE, BASELINE, TENTH], ids=lambda one: f"{one.name} {one.what}")
@pytest.mark.parametrize(("part", "measure"), [("valid", "nDCG@10"), ("test", "AP")])
def test_means_and_deviations(subsampling_study, subsampling_results, setting, part, measure):
    runs = slow_values(subsampling_study, setting, part, measure).mean(axis=1)
    mean, std = subsampling_results.mean_and_std(setting, part, measure)
    assert mean == pytest.approx(runs.mean(), abs=1e-12)
    assert std == pytest.approx(runs.std(ddof=1), abs=1e-12)


def test_the_best_is_chosen_on_validation_data(subsampling_study, subsampling_results):
    means = {s: subsampling_results.mean_and_std(s, "valid", "nDCG@10")[0] for s in subsampling_study.sweep}
    assert means[subsampling_results.best] == max(means.values())


def test_the_contrast_pools_the_queries_of_all_folds(subsampling_study, subsampling_results):
    found = subsampling_results.contrast(FIVE, "AP")
    values = []
    for setting in (BASELINE, FIVE):
        by_fold = [
            np.mean([result["test"]["AP"] for result in subsampling_results.of(setting, fold)], axis=0)
            for fold in (1, 3)
        ]
        values.append(np.concatenate(by_fold))
    assert found.n_queries == sum(subsampling_study.source.load(fold).test.n_queries for fold in (1, 3))
    assert found.difference == pytest.approx((values[1] - values[0]).mean())
    assert found.p_randomisation == rw.randomisation_test(*values).p_value
    assert subsampling_results.contrast(BASELINE, "AP").p_randomisation == 1.0


def test_trees_are_more_alike_and_stronger_when_they_see_more(subsampling_results):
    assert subsampling_results.correlation(ONE) < subsampling_results.correlation(BASELINE)
    assert subsampling_results.strength(ONE, "nDCG@10") < subsampling_results.strength(BASELINE, "nDCG@10")


def test_documents_of_every_query(subsampling_study, subsampling_results):
    """A tree sees about the share of documents asked for, at least one of every query."""
    results = subsampling_results.of(TENTH)
    assert [result["n_queries"] for result in results] == [result["n_train_queries"] for result in results]
    assert 0.08 < subsampling_results.mean_of(TENTH, "share_of_docs") < 0.2
    assert subsampling_results.mean_of(BASELINE, "share_of_docs") == pytest.approx(0.63, abs=0.05)
    report = make_report(subsampling_results)
    (table,) = (table for table in report.tables if table.name == "documents")
    assert [row[0].split(",")[0] for row in table.rows] == ["documents", "queries"] * 2
    runs = slow_values(subsampling_study, TENTH, "valid", "nDCG@10").mean(axis=1)
    assert table.rows[0][2] == f"{runs.mean():.4f} ({runs.std(ddof=1):.4f})"


def test_lambdamart_is_run(subsampling_study, subsampling_results):
    values, best = [], []
    for number in subsampling_study.folds:
        fold = subsampling_study.source.load(number)
        ranker = rw.LambdaMART(9, n_leaves=7, learning_rate=0.5, convention="letor").fit(fold.train, valid=fold.valid)
        values.append(rw.evaluate(ranker, fold.test, "AP", convention="letor")["AP"])
        on_valid = [
            rw.evaluate(ranker.ensemble_.select(range(n)), fold.valid, "nDCG@10", convention="letor")["nDCG@10"]
            for n in range(1, 10)
        ]
        best.append(1 + int(np.argmax(np.round(on_valid, 12))))
    assert subsampling_results.boosted("all", "AP") == pytest.approx(np.mean(values))
    assert subsampling_results.n_boosted() == best
    table = next(table for table in make_report(subsampling_results).tables if table.name == "table4")
    assert table.rows[0][2:] == [f"{np.mean(values):.4f}", "ours"]


def test_the_grid_of_the_paper(source):
    """22, 25 and 22 settings, of which 40, 301 and 651 queries are the baselines of tables 2 and 3."""
    sizes = {"OHSUMED": (63, 22, 40), "MQ2008": (470, 25, 301), "MQ2007": (1015, 22, 651), "MQ2007 (partial)": (1017, 22, 651)}  # fmt: skip  # noqa: E501
    for name, (n_queries, n_settings, baseline) in sizes.items():
        grid = paper_grid(name, n_queries)
        assert len(grid) == n_settings
        assert nearest_to_bootstrap(grid, n_queries) == Sample(baseline)
        assert grid[-1].of(n_queries) == n_queries
    assert [sample.number for sample in paper_grid("MQ2007", 1015)[:3]] == [1, 51, 101]
    assert 20 <= len(paper_grid("mine", 6000)) <= 26
    assert len(paper_grid("mine", 3)) == 3


def test_a_data_set_that_is_not_complete(tmp_path):
    """Four parts: a fold trains on three and halves the fourth; tables say what is missing, beside the paper's."""
    data = rw.make_ranking(n_queries=48, docs_per_query=8, n_features=5, seed=1)
    folder = tmp_path / "mq2007-partial"
    folder.mkdir()
    for part in range(4):
        rw.write_svmlight(data.select_queries(range(12 * part, 12 * part + 12)), folder / f"S{part + 1}.partial.txt")
    source = open_source(folder)
    assert isinstance(source, PartialFolds)
    assert (source.name, source.n_folds) == ("MQ2007 (partial)", 4)
    tested = []
    for number in range(1, 5):
        fold = source.load(number)
        assert (fold.train.n_queries, fold.valid.n_queries, fold.test.n_queries) == (36, 6, 6)
        parts = [set(part.qid.tolist()) for part in (fold.train, fold.valid, fold.test)]
        assert len(set.union(*parts)) == 48
        tested += parts[2]
    assert len(set(tested)) == 24
    assert source.identify(1)["digest"] != source.identify(2)["digest"]
    study = SubsamplingStudy(source, (1,), [ONE, BASELINE], n_seeds=1, n_trees=2, documents=(), boosted_trees=2)
    found = SubsamplingResults(study, study.runs(RunTable(tmp_path / "runs.sqlite")))
    report = make_report(found)
    assert f"4 of five parts, {data.n_docs:,} of its 69,623 documents and 48 of its 1,692 queries" in report.summary
    assert "0.4363 (0.0010)" in report.tables[0].rows[-1]
    assert "documents" not in [table.name for table in report.tables]


def test_a_killed_study_ends_as_one_that_was_not(subsampling_study, subsampling_results, tmp_path, monkeypatch):
    runs, calls = RunTable(tmp_path / "runs.sqlite"), []
    run = SubsamplingStudy.run

    def dying(self, config):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(config)
        return run(self, config)

    monkeypatch.setattr(SubsamplingStudy, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        subsampling_study.runs(runs)

    def counting(self, config):
        calls.append(config)
        return run(self, config)

    monkeypatch.setattr(SubsamplingStudy, "run", counting)
    resumed = SubsamplingResults(subsampling_study, subsampling_study.runs(runs))
    assert calls == subsampling_study.configs()
    for setting in subsampling_study.sweep:
        for part in ("valid", "test"):
            one, two = (found.mean_and_std(setting, part, "AP") for found in (subsampling_results, resumed))
            assert one == two


def test_the_report(subsampling_study, subsampling_results, tmp_path):
    report = make_report(subsampling_results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert all(path.stat().st_size > 0 for path in written)
    assert {"table2.csv", "table3.tex", "figure1.png", "figure1.svg", "report.md"} <= {path.name for path in written}
    sweep = next(table for table in report.tables if table.name == "sweep")
    assert len(sweep.rows) == len(subsampling_study.sweep)
    runs = slow_values(subsampling_study, Sample(10), "test", "AP").mean(axis=1)
    assert sweep.rows[2][sweep.columns.index("test MAP")] == f"{runs.mean():.4f} ({runs.std(ddof=1):.4f})"
    page = (tmp_path / "report.md").read_text()
    assert "What differs from the paper" in page
    assert report.tables[0].markdown() in page
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["tables"]["sweep"]["rows"][2] == list(sweep.rows[2])
    assert saved["facts"]["best"] == subsampling_results.best.name
    figures = [read_png(path) for path in written if path.suffix == ".png"]
    assert len(figures) == 5
    for figure in figures:
        assert min(figure.shape[:2]) > 300
        assert 0.01 < (figure < 0.9).any(axis=2).mean() < 0.5  # neither empty nor a mess


def test_the_paper_stands_beside_its_data(source, subsampling_results, tmp_path):
    class Named:
        name = "OHSUMED"
        n_folds = 5
        identify, load = source.identify, source.load

    study = replace(subsampling_results.study, source=Named())
    report = make_report(type(subsampling_results)(study, subsampling_results.runs))
    test = report.tables[0]
    row = next(row for row in test.rows if row[0].startswith("1 ("))
    assert "0.4443 (0.0022)" in row
    assert "0.4473 (0.0009)" in row
    mean = subsampling_results.mean_and_std(ONE, "test", "nDCG@10")[0]
    assert f"{mean - 0.4443:+.4f}" in row
    assert any(line.endswith("more than 0.005.") for line in report.differences)
    contrast = subsampling_results.contrast(ONE, "AP")
    assert any(f"{contrast.difference:+.4f}" in row for row in report.tables[1].rows)
    assert [table.name for table in report.tables] == [
        "table3", "significance", "table2", "sweep", "documents", "table4", "data"
    ]  # fmt: skip


def test_the_paper_is_copied_rightly():
    assert PAPER["MQ2008"].values["test", Sample(21), "nDCG@10"] == (0.2292, 0.0008)
    assert PAPER["MQ2008"].values["test", BASELINE, "AP"] == (0.4701, 0.0012)
    assert PAPER["OHSUMED"].values["valid", BASELINE, "nDCG@10"] == (0.4187, 0.0039)
    assert PAPER["MQ2007"].others["LambdaMART"] == (0.4484, 0.4675)
    assert PAPER["MQ2007"].values["test", Sample(101), "AP"] == (0.4624, 0.0004)
    assert PAPER["MQ2007"].values["valid", Sample(51), "AP"] == (0.4619, 0.0011)
    assert PAPER["MQ2007"].values["test", BASELINE, "nDCG@10"] == (0.4363, 0.0010)
    assert PAPER["MQ2007"].speed_ups == {Sample(51): 17, Sample(101): 9}
    assert PAPER_DATA[1][:4] == ["paper: MQ2008", "784", "15,000", "46"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sweep": (ONE, FIVE)}, "must be part of it"),
        ({"sweep": (BASELINE, BASELINE)}, "two different settings"),
        ({"n_seeds": 0}, "at least one seed"),
    ],
)
def test_studies_that_make_no_sense_are_refused(source, changes, words):
    with pytest.raises(rw.RankwoodError, match=words):
        SubsamplingStudy(**{"source": source, "folds": (1,), "sweep": (ONE, BASELINE), **changes})


@pytest.mark.parametrize(("setting", "words"), [("100", "cannot see 100"), ("x", "number of queries"), ("0", "number")])
def test_settings_that_make_no_sense_are_refused(setting, words):
    with pytest.raises(rw.RankwoodError, match=words):
        Sample.parse(setting).of(50)
