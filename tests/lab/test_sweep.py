"""A study of one's own: its numbers recomputed, its table, and every learner in it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.evaluation import conventions
from rankwood.lab.drawing import pareto_front
from rankwood.lab.runs import RunTable
from rankwood.lab.study import SyntheticFolds
from rankwood.lab.sweep import Pruning, Setting, SweepStudy
from rankwood.lab.sweep_report import SweepResults, make_report
from rankwood.scoring.timing import Timing

COMMON = {"n_trees": 8, "learning_rate": 0.2, "query_fraction": 0.7}
MEASURES = ("nDCG@10", "ERR")


@pytest.fixture(scope="module")
def study():
    source = SyntheticFolds(n_queries=60, docs_per_query=12, n_features=10, seed=4)
    settings = (
        Setting("large", "lambdamart", {**COMMON, "n_leaves": 8}),
        Setting("small", "lambdamart", {**COMMON, "n_leaves": 4}),
        Setting("one tree", "mart", {"n_trees": 1, "n_leaves": 2}),
    )
    pruning = Pruning(rates=(0.25, 0.5), variants=("line-search",), iterations=3)
    return SweepStudy(source, (1, 3), settings, seeds=(0, 7), measures=MEASURES, pruning=pruning, speed=False)


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    return SweepResults(study, study.runs(RunTable(tmp_path_factory.mktemp("sweep") / "runs.sqlite")))


def trained(study, number, fold, seed, pruned=False):
    """A model of the sweep, made anew."""
    setting, data = study.settings[number], study.source.load(fold)
    kind = {"lambdamart": rw.LambdaMART, "mart": rw.MART}[setting.learner]
    model = kind(**setting.parameters, random_state=seed).fit(data.train).ensemble_
    if pruned:
        how = rw.PruningSettings(search=rw.LineSearch(iterations=3), seed=seed)
        pruned = rw.cleaver(model, data.train, data.valid, rates=(0.25, 0.5), accept="quality", variants="line-search",
                            settings=how)  # fmt: skip
        model = pruned.ensemble
    return model, data


@pytest.mark.parametrize("row", [(0, "model"), (1, "pruned"), (2, "model")])
def test_numbers_are_those_of_models_trained_anew(study, results, row):
    sizes, nodes, means, values = [], [], [], []
    for fold in study.folds:
        of_fold = []
        for seed in study.seeds:
            model, data = trained(study, row[0], fold, seed, row[1] == "pruned")
            found = rw.evaluate(model, data.test, MEASURES)
            sizes.append(model.n_trees)
            nodes.append(model.n_nodes)
            means.append(found["ERR"])
            of_fold.append(found.per_query["ERR"])
        values.append(np.mean(of_fold, axis=0))
    assert results.mean(row, "n_trees") == np.mean(sizes)
    assert results.mean(row, "n_nodes") == np.mean(nodes)
    assert results.mean_and_std(row, "ERR") == pytest.approx((np.mean(means), np.std(means, ddof=1)))
    np.testing.assert_array_equal(results.values(row, "ERR"), np.concatenate(values))


def test_all_rows_are_tested_against_the_first(study, results):
    assert results.rows[:2] == [(0, "model"), (0, "pruned")]
    assert len(results.contrasts) == 5 * 2
    p_values = []
    for (row, measure), contrast in results.contrasts.items():
        base, values = results.values((0, "model"), measure), results.values(row, measure)
        test = rw.randomisation_test(base, values)
        assert (contrast.difference, contrast.p_value) == (test.mean_difference, test.p_value)
        p_values.append(test.p_value)
    assert [c.p_holm for c in results.contrasts.values()] == rw.holm(p_values).tolist()


def test_the_report(study, results, tmp_path):
    report = make_report(results)
    written = {path.name for path in report.write(tmp_path, environment={"rankwood": "0"})}
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["sweep", "significance", "configurations"]
    for name in tables:
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= written
    assert {"quality-cost.png", "quality-cost.svg", "results.json", "report.md"} <= written
    main = tables["sweep"]
    assert [row[0] for row in main.rows][:3] == ["large", "large, pruned", "small"]
    assert main.columns == ["configuration", "nDCG@10", "ERR", "trees", "nodes", "training s"]
    mean, std = results.mean_and_std((2, "model"), "nDCG@10")
    contrast = results.contrasts[(2, "model"), "nDCG@10"]
    mark = " -" if contrast.p_holm <= 0.05 else ""
    assert main.rows[4][1] == f"{mean:.4f} ({std:.4f}){mark}"
    assert tables["configurations"].rows[2][1:3] == ["mart", "n_trees 1, n_leaves 2"]
    facts = json.loads((tmp_path / "results.json").read_text())["facts"]
    assert facts["rows"][4]["measures"]["nDCG@10"]["test"] == mean
    page = (tmp_path / "report.md").read_text()
    assert "paper" not in page


def test_many_rows_are_numbered_in_the_figure(study, results, tmp_path):
    many = replace(study, settings=study.settings[:2] * 4)
    report = make_report(SweepResults(many, results.runs))
    assert "Numbers are those of the first table" in report.figures[0].caption
    assert [row[0] for row in report.tables[0].rows][12:15] == ["13. large", "14. large, pruned", "15. small"]
    report.write(tmp_path, environment={})


def test_the_front_has_what_nothing_surpasses():
    assert pareto_front([1.0, 1.0, 2.0, 3.0], [0.5, 0.6, 0.6, 0.7]) == [1, 3]
    assert pareto_front([1.0], [0.5]) == [0]


@pytest.mark.parametrize(
    ("learner", "parameters"),
    [
        ("mart", {"task": "ordinal"}),
        ("lambdamart", {"early_stopping_rounds": 2, "max_bins": 15}),
        ("dart", {"rate": 0.3}),
        ("xdart", {"strategy": "fixed", "k": 1}),
        ("forest", {"queries_per_tree": 5}),
        ("igbrt", {"initial_trees": 3}),
    ],
)
def test_every_learner(learner, parameters, tmp_path):
    source = SyntheticFolds(n_queries=30, docs_per_query=8, n_features=6)
    setting = Setting(learner, learner, {"n_trees": 4, **parameters})
    study = SweepStudy(source, (2,), (setting,), pruning=Pruning(rate=0.5, variants=("distil",)))
    (_, result), (_, times) = runs = study.runs(RunTable(tmp_path / "runs.sqlite"))
    whole, pruned = result["model"], result["pruned"]
    assert 0 < whole["n_trees"] <= 4 * 4 + 3
    assert pruned["n_trees"] <= round(0.5 * whole["n_trees"])
    assert min(times["model"], times["pruned"]) > 0
    assert len(whole["test"]["nDCG@10"]) == 6
    assert make_report(SweepResults(study, runs)).tables[0].rows[0][0] == learner


def test_times_are_taken_one_by_one_after_the_trainings(tmp_path, monkeypatch):
    """Also those of a command that had several workers, and by the process that has them."""
    source = SyntheticFolds(n_queries=30, docs_per_query=8, n_features=6)
    settings = (Setting("a", "mart", {"n_trees": 4}), Setting("b", "mart", {"n_trees": 6}))
    study = SweepStudy(source, (1, 2), settings, pruning=Pruning(rate=0.5, variants=("line-search",), iterations=2))
    timed, table, told = [], RunTable(tmp_path / "runs.sqlite"), []

    def clock(models):
        timed.append([model.n_trees for model, _ in models])
        return [Timing(model.n_trees, 0.0, 9.0, 20, len(X), "traverse") for model, X in models]

    monkeypatch.setattr("rankwood.lab.study.time_models", clock)  # in this process alone
    runs = study.runs(table, n_workers=2, on_run=lambda *now: told.append(now))
    assert timed == [[4, 2], [6, 3], [4, 2], [6, 3]]
    entries = table.entries()
    assert [(entry["config"]["kind"], entry["environment"]["workers"]) for entry in entries] == (
        [("training", 2)] * 4 + [("timing", 1)] * 4
    )
    assert {total for _, total in told} == {8}
    results = SweepResults(study, runs)
    assert [results.mean(row, "us_per_doc") for row in results.rows] == pytest.approx([4, 2, 6, 3])
    assert study.runs(table) == runs
    assert len(timed) == 4


@pytest.mark.parametrize("kept", [True, False])
def test_the_models_that_are_timed_are_those_that_were_measured(tmp_path, monkeypatch, kept):
    setting = Setting("a", "mart", {"n_trees": 3, "query_fraction": 0.5})
    study = SweepStudy(SyntheticFolds(n_queries=30, docs_per_query=8, n_features=6), (1,), (setting,))
    timed, trained = [], []
    training, timing = study.configs()
    ready = SweepStudy._training

    def noted(*given):
        train = ready(*given)
        return lambda: trained.append(train()) or trained[-1]

    monkeypatch.setattr(SweepStudy, "_training", noted)
    timing_of = Timing(1.0, 0.9, 1.1, 20, 100, "traverse")
    monkeypatch.setattr("rankwood.lab.study.time_models", lambda models: timed.append(models[0][0]) or [timing_of])
    study = replace(study, models=tmp_path / "models" if kept else None)
    study.run(training)
    study.run(timing)
    assert len(trained) == (1 if kept else 2)
    assert timed[0] == trained[0]


def test_points_and_bars_are_of_all_queries(study, results):
    """Folds of different sizes: the mean of their means is not the mean of their queries."""
    from matplotlib.figure import Figure

    runs = json.loads(json.dumps(list(results.runs)))
    for config, result in runs:
        if config["fold"] == 3:
            for found in result.values():
                found["test"] = {measure: [values[0] / 2] for measure, values in found["test"].items()}
    changed = SweepResults(study, runs)
    canvas = Figure()
    make_report(changed).figures[0].draw(canvas)
    (axes,) = canvas.axes
    points = [
        line.get_ydata()[0]
        for line in axes.lines
        if line.get_linestyle() == "None" and line.get_marker() not in ("_", "|")
    ]
    pooled = [np.mean(changed.values(row, "nDCG@10")) for row in changed.rows]
    assert points == pytest.approx(pooled)
    assert points[0] != pytest.approx(changed.mean_and_std(changed.rows[0], "nDCG@10")[0])
    for row, bar in zip(changed.rows, axes.collections, strict=True):
        values = changed.values(row, "nDCG@10")
        interval = rw.bootstrap_interval(np.zeros(len(values)), values)
        assert bar.get_segments()[0][:, 1] == pytest.approx([interval.low, interval.high])


def test_a_first_try_is_small(study):
    settings = (Setting("a", "igbrt", {}), Setting("b", "forest", {"n_trees": 9}))
    quick = replace(study, folds=(1, 2, 3), settings=settings).quick()
    assert (quick.folds, quick.seeds, quick.source.n_queries) == ((1, 2), (0,), 60)
    assert [config["parameters"] for config in quick.configs()[:2]] == [
        {"n_trees": 20, "initial_trees": 20},
        {"n_trees": 9},
    ]


def test_queries_that_the_convention_leaves_out(tmp_path, monkeypatch):
    skipping = replace(rw.Convention.get("rankwood"), name="skipping", empty="skip")
    monkeypatch.setitem(conventions.CONVENTIONS, "skipping", skipping)
    source = SyntheticFolds(n_queries=30, docs_per_query=3, n_features=5, seed=1)
    setting = Setting("s", "mart", {"n_trees": 3, "n_leaves": 3})
    study = SweepStudy(source, (1, 2), (setting, replace(setting, label="t", parameters={"n_trees": 1})),
                       convention="skipping", speed=False)  # fmt: skip
    runs = study.runs(RunTable(tmp_path / "runs.sqlite"))
    assert None in runs[0][1]["model"]["test"]["nDCG@10"]
    results = SweepResults(study, runs)
    model = rw.MART(3, 3).fit(source.load(1).train)
    expected = rw.evaluate(model, source.load(1).test, convention=skipping)["nDCG@10"]
    assert np.nanmean(results.values((0, "model"), "nDCG@10")[:6]) == pytest.approx(expected)
    make_report(results).write(tmp_path, environment={})


def test_pruning_that_makes_no_sense_is_refused():
    for wrong, words in (
        ({"rates": (1.5,)}, "from 0 to below 1"),
        ({"rate": -0.5}, "from 0 to below 1"),
        ({"strategy": "quality-los"}, "did you mean quality-loss"),
        ({"accept": "yes"}, "accept must be one of"),
        ({"variants": ("magic",)}, "variants are"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            Pruning(**wrong)
