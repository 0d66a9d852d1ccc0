"""The study of efficient trees: its numbers recomputed slowly, its runs of two kinds, its tables and figures."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.asadi_lin import (
    ALONE,
    AUTO,
    BASELINE,
    BEST,
    EQUAL,
    IFELSE,
    MEASURES,
    PAPER,
    STEP,
    AsadiLinResults,
    AsadiLinStudy,
    Setting,
    make_report,
)
from rankwood.lab.runs import Kept, RunTable, run_all
from rankwood.scoring.c_library import find_compiler
from rankwood.scoring.timing import bench

ALPHA = Setting("alpha", 0.6)
SETTINGS = {BASELINE: {}, Setting("lambda", 0.8): {"depth_relaxation": 0.8}, ALPHA: {"balance": 0.6}}


@pytest.fixture
def few_calls(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKWOOD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rankwood.lab.papers.asadi_lin.bench", partial(bench, repeats=6))


def slow_models(study, setting, of) -> list[tuple[rw.Ensemble, rw.Dataset]]:
    """Models trained by themselves, for fold after fold and seed after seed, with the test data of each."""
    found = []
    for fold in study.folds:
        data = study.source.load(fold)
        for seed in range(study.n_seeds):
            stop = {"n_trees": 5} if of == EQUAL else {"n_trees": 14, "early_stopping_rounds": 5, "measure": "nDCG"}
            ranker = rw.LambdaMART(
                n_leaves=10, learning_rate=0.05, gain="variance", min_docs_per_leaf=0.005, query_fraction=0.3,
                feature_fraction=0.3, feature_sampling="split", normalize=False, truncation=None, random_state=seed,
                **stop, **SETTINGS[setting],
            ).fit(data.train, valid=data.valid)  # fmt: skip
            found.append((ranker.ensemble_, data.test))
    return found


@pytest.mark.parametrize("of", [BEST, EQUAL])
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_topology_and_quality_are_those_of_models_trained_by_themselves(
    asadi_lin_study, asadi_lin_results, setting, of
):
    models = slow_models(asadi_lin_study, setting, of)
    shape = asadi_lin_results.topology(setting, of)
    depths = [model.topology().depths for model, _ in models]
    assert shape["depth"] == pytest.approx(np.mean([np.mean(one) for one in depths]))
    assert shape["trees"] == np.mean([model.n_trees for model, _ in models])
    assert shape["path"] == np.mean([one.sum() for one in depths])
    # A binary tree has one leaf more than splits.
    assert shape["nodes"] == np.mean([2 * model.n_nodes + model.n_trees for model, _ in models])
    values = [rw.evaluate(model, test, "nDCG@3").per_query["nDCG@3"] for model, test in models]
    assert asadi_lin_results.ndcg(setting, "nDCG@3", of) == pytest.approx([one.mean() for one in values])
    by_query = np.concatenate([(values[0] + values[1]) / 2, (values[2] + values[3]) / 2])  # two folds, two seeds each
    np.testing.assert_allclose(asadi_lin_results.values(setting, "nDCG@3", of), by_query, rtol=1e-12)


def test_comparisons_are_tests_on_all_queries(asadi_lin_results):
    theirs, ours = (asadi_lin_results.values(one, "nDCG@5") for one in (BASELINE, ALPHA))
    found = asadi_lin_results.compare(ALPHA, "nDCG@5")
    test = rw.wilcoxon_test(theirs, ours)
    assert (found.difference, found.p_value) == (test.mean_difference, test.p_value)
    assert found.low <= found.difference <= found.high
    assert found.star == ("*" if test.p_value < 0.05 else "")
    every = asadi_lin_results.comparisons()
    assert [(one.setting, one.measure) for one, _ in every] == [(s, m) for s in list(SETTINGS)[1:] for m in MEASURES]
    assert [p for _, p in every] == rw.holm([one.p_value for one, _ in every]).tolist()


def test_stars_of_a_fold_are_of_its_own_queries(asadi_lin_study, asadi_lin_results):
    for fold in asadi_lin_study.folds:
        values = [
            np.mean([model["test"]["nDCG@3"] for model in asadi_lin_results.models(one, BEST, fold)], axis=0)
            for one in (BASELINE, ALPHA)
        ]
        found = asadi_lin_results.compare(ALPHA, "nDCG@3", fold=fold)
        assert found.p_value == rw.wilcoxon_test(*values).p_value
        assert found.difference == pytest.approx(np.mean(values[1]) - np.mean(values[0]))


def test_stars_are_drawn_in_figure_1(asadi_lin_results, monkeypatch):
    from matplotlib.figure import Figure

    figure = next(one for one in make_report(asadi_lin_results).figures if one.name == "by-fold")

    def n_stars():
        canvas = Figure(figsize=figure.size)
        figure.draw(canvas)
        return sum(text.get_text() == "*" for axis in canvas.axes for text in axis.texts)

    pairs = [(setting, fold) for setting in list(SETTINGS)[1:] for fold in (1, 2)]
    assert n_stars() == sum(asadi_lin_results.compare(s, "nDCG@3", fold=f).star == "*" for s, f in pairs)
    monkeypatch.setattr("rankwood.lab.papers.asadi_lin.SIGNIFICANT", 2.0)
    assert n_stars() == len(pairs)


def test_gradients_are_plain_and_lightgbms_are_shown_once(asadi_lin_study, asadi_lin_results, source):
    assert {run.training.growth.normalize for run in asadi_lin_study.timings()} == {False}
    scaled = [run for run in asadi_lin_study.plan() if run.growth.normalize]
    assert [(run.fold, run.seed, run.setting) for run in scaled] == [(f, s, BASELINE) for f in (1, 2) for s in (0, 1)]
    values = []
    for fold in (1, 2):
        data, of_fold = source.load(fold), []
        for seed in (0, 1):
            model = rw.LambdaMART(
                5, 10, 0.05, gain="variance", min_docs_per_leaf=0.005, query_fraction=0.3, feature_fraction=0.3,
                feature_sampling="split", random_state=seed,
            ).fit(data.train)  # fmt: skip
            of_fold.append(rw.evaluate(model, data.test).per_query["nDCG@10"])
        values.append(np.mean(of_fold, axis=0))
    found, compared = asadi_lin_results.other_gradients("nDCG@10", EQUAL)
    np.testing.assert_allclose(found, np.concatenate(values), rtol=1e-12)
    test = rw.wilcoxon_test(asadi_lin_results.values(BASELINE, "nDCG@10", EQUAL), found)
    assert (compared.difference, compared.p_value) == (test.mean_difference, test.p_value)
    normalized = replace(asadi_lin_study, normalize=True)
    assert sorted(map(repr, normalized.plan())) != sorted(map(repr, asadi_lin_study.plan()))
    assert normalized.training(1, 0, BASELINE) == asadi_lin_study.other_gradients(1, 0)


def test_features_touched_have_an_interval(asadi_lin_results):
    shares = [model["features_touched"] for model in asadi_lin_results.models(BASELINE, BEST)]
    mean, half = asadi_lin_results.features_touched(BASELINE)
    assert mean == pytest.approx(np.mean(shares))
    assert half == pytest.approx(3.182446 * np.std(shares, ddof=1) / 2)  # Student's t of three degrees of freedom
    assert f"{mean:.1%}"[:-1] + f" % ±{100 * half:.1f} % of the features" in make_report(asadi_lin_results).summary


def test_what_the_two_ways_do_to_trees(asadi_lin_results):
    plain, relaxed, pruned = (asadi_lin_results.topology(one, EQUAL) for one in SETTINGS)
    assert relaxed["depth"] < plain["depth"]
    assert relaxed["nodes"] == plain["nodes"] == 5 * 19  # all leaves that are allowed
    assert pruned["depth"] < relaxed["depth"]
    assert pruned["nodes"] < plain["nodes"]
    assert pruned["splits_per_doc"] < plain["splits_per_doc"] <= plain["path"]


def test_latency_is_of_every_chosen_model_and_of_the_first_seed_at_equal_size(asadi_lin_study, asadi_lin_results):
    assert len(asadi_lin_results.times(ALPHA, AUTO)) == 4
    assert len(asadi_lin_results.times(ALPHA, AUTO, EQUAL)) == 2
    times = asadi_lin_results.times(ALPHA, AUTO)
    found = asadi_lin_results.latency(ALPHA, AUTO)
    assert found.us == pytest.approx(np.mean(times))
    assert found.speed_up == pytest.approx(np.mean(asadi_lin_results.times(BASELINE, AUTO)) / np.mean(times))
    assert asadi_lin_results.latency(BASELINE, AUTO).speed_up == 1.0
    assert asadi_lin_results.latency(ALPHA, AUTO, fold=1).half is None  # of two models
    timed = asadi_lin_results.timed(ALPHA)
    if isinstance(find_compiler(), str):  # the generated C cannot be timed
        assert asadi_lin_results.main_engine == AUTO
    else:
        assert asadi_lin_results.main_engine == ALONE
        assert all({ALONE, IFELSE, AUTO} <= set(one) and one[ALONE]["chosen"] == ALONE for one in timed)
    assert [one["trees"] for one in timed] == [m["trees"] for m in asadi_lin_results.models(ALPHA)]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_fewest_trees_as_good_as_the_baseline(asadi_lin_study, asadi_lin_results, setting):
    plain, ours = (slow_models(asadi_lin_study, one, BEST) for one in (BASELINE, setting))
    folds = [fold for fold in asadi_lin_study.folds for _ in range(asadi_lin_study.n_seeds)]
    reached = [one for fold in asadi_lin_study.folds for one in asadi_lin_results.reached(setting, fold)]
    for fold, (before, _), (model, test), found in zip(folds, plain, ours, reached, strict=True):
        valid = asadi_lin_study.source.load(fold).valid
        goal = rw.evaluate(before, valid, "nDCG")["nDCG"]
        sizes = [*range(STEP, model.n_trees, STEP), model.n_trees]
        good = [size for size in sizes if rw.evaluate(model.select(range(size)), valid, "nDCG")["nDCG"] >= goal]
        assert (found and found["trees"]) == (good[0] if good else None)
        if good:
            values = rw.evaluate(model.select(range(good[0])), test, "nDCG@10").per_query["nDCG@10"]
            np.testing.assert_array_equal(found["test"]["nDCG@10"], values)


def test_queries_count_once_in_the_interval_of_as_good_models(asadi_lin_study, asadi_lin_results):
    sides = []
    for setting in (BASELINE, ALPHA):
        by_fold = []
        for fold in asadi_lin_study.folds:
            pairs = zip(asadi_lin_results.reached(BASELINE, fold), asadi_lin_results.reached(ALPHA, fold), strict=True)
            kept = [one if setting == BASELINE else other for one, other in pairs if one and other]
            by_fold += [np.mean([model["test"]["nDCG@10"] for model in kept], axis=0)] if kept else []
        sides.append(by_fold)
    table = next(one for one in make_report(asadi_lin_results).tables if one.name == "reached")
    cells = next(row for row in table.rows if row[0] == ALPHA.name)
    if not sides[0]:
        assert cells[-1] == "–"
        return
    interval = rw.bootstrap_interval(*map(np.concatenate, sides))
    assert cells[-1].endswith(f"({interval.low:+.4f} to {interval.high:+.4f})")


def test_a_study_that_was_killed_ends_as_one_that_was_not(asadi_lin_study, asadi_lin_results, tmp_path, monkeypatch):
    study, runs, calls = replace(asadi_lin_study, models=None), RunTable(tmp_path / "runs.sqlite"), []

    def dying(self, config):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return run(self, config)

    def run(self, config):
        calls.append(config)
        if "training" in config:  # a timing: known from another run
            return dict(next(result for known, result in asadi_lin_results.runs if known == config))
        return original(self, config)

    original = AsadiLinStudy.run
    monkeypatch.setattr(AsadiLinStudy, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        study.runs(runs)
    monkeypatch.setattr(AsadiLinStudy, "run", run)
    resumed = AsadiLinResults(study, study.runs(runs))
    assert calls == study.configs()
    assert all(resumed.topology(one) == asadi_lin_results.topology(one) for one in SETTINGS)


def test_times_are_taken_again_without_training(asadi_lin_study, asadi_lin_runs, tmp_path, monkeypatch, few_calls):
    runs = RunTable(tmp_path / "runs.sqlite")
    runs.path.write_bytes(asadi_lin_runs.path.read_bytes())
    monkeypatch.setattr(AsadiLinStudy, "_train", None)
    study = replace(asadi_lin_study, timing="quiet machine")
    again = AsadiLinResults(study, study.runs(runs))
    before = {entry["key"] for entry in asadi_lin_runs.entries()}
    added = [entry["config"] for entry in runs.entries() if entry["key"] not in before]
    assert len(added) == 3 * 2 * 3  # settings, folds, models
    assert {one["series"] for one in added} == {"quiet machine"}
    assert len(again.times(BASELINE, AUTO)) == 4


def test_workers_train_and_do_not_disturb_timings(asadi_lin_study, asadi_lin_runs, monkeypatch):
    calls, told = [], []

    def noting(configs, *given, **more):
        calls.append(({"training" in config for config in configs}, more.get("n_workers", 1)))
        return run_all(configs, *given, **more)

    monkeypatch.setattr("rankwood.lab.study.run_all", noting)
    runs = asadi_lin_study.runs(asadi_lin_runs, n_workers=2, on_run=lambda done, total: told.append((done, total)))
    assert calls == [({False}, 2), ({False, True}, 1)]  # timings, which name their training, are done alone
    assert [config for config, _ in runs] == asadi_lin_study.configs()
    assert told[-1] == (46, 46)
    assert {total for _, total in told} == {46}


def test_a_model_that_was_not_kept_is_trained_again(asadi_lin_study, asadi_lin_results, few_calls):
    config = asadi_lin_study.config(asadi_lin_study.timings()[0])
    result = replace(asadi_lin_study, models=None, _kept=Kept()).run(config)
    assert result["trees"] == next(known["trees"] for one, known in asadi_lin_results.runs if one == config)


def test_without_a_compiler_there_is_no_generated_c(asadi_lin_study, asadi_lin_results, monkeypatch, few_calls):
    monkeypatch.setenv("CC", "no-such-compiler")
    result = asadi_lin_study.perform(asadi_lin_study.timings()[0])
    assert IFELSE not in result
    assert ALONE not in result
    assert "no-such-compiler" in result["obstacle"]
    runs = [(c, result if "series" in c else r) for c, r in asadi_lin_results.runs]
    report = asadi_lin_study.report(runs)
    assert report.tables[0].rows[1][-6:-2] == ["–", "–", "–", "–"]
    assert "No generated C: " in report.tables[0].note
    assert report.tables[0].rows[0][-1] == "1.00x"


def test_the_report(asadi_lin_study, asadi_lin_results, tmp_path):
    report = make_report(asadi_lin_results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert all(path.stat().st_size > 1000 for path in written if path.suffix in (".png", ".svg"))
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["table1", "equal", "beside", "visits", "reached", "folds", "tests", "gradients", "paper"]
    row = next(row for row in tables["table1"].rows if row[0] == "alpha 0.6")
    for measure, cell in zip(MEASURES, row[5:10], strict=True):
        star = asadi_lin_results.compare(ALPHA, measure).star
        assert cell == f"{np.mean(asadi_lin_results.ndcg(ALPHA, measure)):.4f}{star}"
    assert [row[0] for row in tables["equal"].rows] == [setting.name for setting in SETTINGS]
    assert {row[2] for row in tables["equal"].rows} == {"5.0"}
    assert [row[:2] for row in tables["folds"].rows] == [
        [f"{fold}", setting.name] for fold in (1, 2) for setting in SETTINGS
    ]
    for row in tables["folds"].rows:
        setting = next(one for one in SETTINGS if one.name == row[1])
        star = "" if setting == BASELINE else asadi_lin_results.compare(setting, "nDCG@3", fold=int(row[0])).star
        assert row[6].endswith("*") == (star == "*")
    assert [row[:2] for row in tables["gradients"].rows][:2] == [
        ["plain, as in the papers", "chosen size"],
        ["LightGBM's: scaled, truncated at 30", "chosen size"],
    ]
    assert tables["beside"].rows[1][1].endswith(" / -79.8%")  # 17.8 to 3.6
    for setting, row in zip(SETTINGS, tables["visits"].rows, strict=True):
        shape = asadi_lin_results.topology(setting, EQUAL)
        assert row[:3] == [setting.name, f"{shape['path']:,.0f}", f"{shape['splits_per_doc']:,.0f}"]
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["facts"]["topology"]["baseline"][EQUAL]["trees"] == 5.0
    assert "What differs from the paper" in (tmp_path / "report.md").read_text()


def test_the_paper_is_copied_rightly():
    assert list(PAPER) == AsadiLinStudy(None, ()).settings
    changes = [round(100 * (row.us / 42.2 - 1), 1) for row in PAPER.values()]
    assert changes == [0.0, 1.2, -1.2, -1.4, -23.2, -31.8, -39.1, -46.7, -56.2]  # the paper has -31.7
    assert all(row.depth * row.trees == pytest.approx(row.path, rel=0.06) for row in PAPER.values())
    assert all((row.n_worse > 0) == (setting.way == "alpha") for setting, row in PAPER.items())


def test_a_study_pickles_and_needs_sense(asadi_lin_study, source):
    assert pickle.loads(pickle.dumps(asadi_lin_study)).configs() == asadi_lin_study.configs()
    assert Setting("lambda", 0.95).parameters == {"depth_relaxation": 0.95}
    with pytest.raises(rw.RankwoodError, match="at least one seed, one tree, two leaves"):
        AsadiLinStudy(source, (1,), n_leaves=1)
    with pytest.raises(rw.RankwoodError, match="lambda and alpha are above 0 and at most 1"):
        AsadiLinStudy(source, (1,), alphas=(1.5,))
