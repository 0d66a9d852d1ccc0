"""The study of dropout and pruning: its numbers recomputed slowly, its table and figure."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.papers.xdart import METHODS, PAPER, REFERENCE, XdartResults, XdartStudy, _differences, make_report
from rankwood.lab.runs import RunTable


def slow_values(study, method, size, fold) -> np.ndarray:
    """Values of the test queries, mean over seeds, of models that were trained for this very size."""
    data, found = study.source.load(fold), []
    for seed in range(study.n_seeds):
        given = METHODS[method].parameters | {
            "n_leaves": 6,
            "random_state": seed,
            "normalize": False,
            "truncation": None,
        }
        learner = getattr(rw, METHODS[method].learner)
        if METHODS[method].learner != "LambdaMART":
            given["rounding"] = "floor"
        given.setdefault("learning_rate", 1.0)
        model = learner(n_trees=size, **given).fit(data.train, valid=data.valid)
        found.append(rw.evaluate(model, data.test, "nDCG@10").per_query["nDCG@10"])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("method", ["LambdaMART", "DART 1.5%", "X-DART fixed 2", "X-DART adaptive 5"])
def test_every_size_is_the_model_that_training_for_it_gives(xdart_study, xdart_results, method):
    for size in (4, 12):
        expected = [slow_values(xdart_study, method, size, fold) for fold in xdart_study.folds]
        values = xdart_results.test_values(method, size)
        if values is None:  # LambdaMART stopped before
            assert method == "LambdaMART"
            continue
        np.testing.assert_allclose(values, np.concatenate(expected), rtol=1e-12)
        assert xdart_results.mean(method, size) == pytest.approx(np.mean([np.mean(part) for part in expected]))


def test_equivalence_is_a_test_on_all_queries(xdart_study, xdart_results):
    found = xdart_results.equivalence("X-DART adaptive 5", 8)
    ours = xdart_results.test_values("X-DART adaptive 5", 8)
    theirs = xdart_results.test_values(REFERENCE, 20)
    test = rw.randomisation_test(theirs, ours, n_permutations=10_000)
    assert (found.difference, found.p_value) == (test.mean_difference, test.p_value)
    assert found.p_inferior == rw.non_inferiority_test(theirs, ours, margin=0.005).p_value
    assert found.holds == (found.p_value > 0.05 or found.difference > 0)
    smallest = xdart_results.smallest("X-DART adaptive 5")
    tried = [xdart_results.equivalence("X-DART adaptive 5", size) for size in xdart_study.sizes]
    assert smallest == next((one for one in tried if one.holds), None)
    assert xdart_results.equivalence(REFERENCE, 20).p_value == 1.0


def test_a_study_that_was_killed_ends_as_one_that_was_not(xdart_study, xdart_results, tmp_path, monkeypatch):
    runs, calls = RunTable(tmp_path / "runs.sqlite"), []
    run = XdartStudy.run

    def dying(self, config):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(config)
        return run(self, config)

    monkeypatch.setattr(XdartStudy, "run", dying)
    with pytest.raises(KeyboardInterrupt):
        xdart_study.runs(runs)
    monkeypatch.setattr(XdartStudy, "run", lambda self, config: calls.append(config) or run(self, config))
    resumed = XdartResults(xdart_study, xdart_study.runs(runs))
    assert calls == xdart_study.configs()
    for method in xdart_study.methods:
        assert resumed.mean(method, 8) == xdart_results.mean(method, 8)


def test_the_report(xdart_study, xdart_results, tmp_path):
    report = make_report(xdart_results)
    written = report.write(tmp_path, environment={"rankwood": "0"})
    assert all(path.stat().st_size > 1000 for path in written if path.suffix in (".png", ".svg"))
    tables = {table.name: table for table in report.tables}
    assert list(tables) == ["table1", "saved", "paper-mslr-web30k-f1", "paper-istella-s"]
    row = next(row for row in tables["table1"].rows if row[0] == "X-DART adaptive 5")
    for size, cell in zip(xdart_study.sizes, row[1:6], strict=True):
        star = "*" if xdart_results.equivalence(row[0], size).holds else ""
        assert cell == f"{xdart_results.mean(row[0], size):.4f}{star}"
    assert [row[0] for row in tables["saved"].rows] == list(xdart_study.methods)
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["facts"]["sizes"] == [4, 8, 12, 16, 20]
    assert "What differs from the paper" in (tmp_path / "report.md").read_text()


def test_nothing_is_dropped_while_the_share_is_below_one_tree(xdart_study):
    run = xdart_study.training(1, 0, REFERENCE)
    assert run.rounding == "floor"
    data = xdart_study.source.load(1)
    ranker = xdart_study._learner(run).set_params(n_trees=70, record_sizes=None).fit(data.train, valid=data.valid)
    drops = [len(step.dropped) for step in ranker.log_]
    assert drops == [int(0.015 * i) for i in range(70)]  # the first at 67 trees


def test_normalized_gradients_are_an_option(xdart_study):
    for method in xdart_study.methods:
        plain, scaled = (replace(xdart_study, normalize=on).training(1, 0, method) for on in (False, True))
        learners = [xdart_study._learner(run) for run in (plain, scaled)]
        assert [(one.normalize, one.truncation) for one in learners] == [(False, None), (True, 30)]
    assert any("--normalize" in text for text in _differences(XdartResults(replace(xdart_study, normalize=True), ())))


def test_the_paper_is_copied_rightly():
    assert set(PAPER["MSLR-WEB30K-F1"]) == set(PAPER["Istella-S"]) == set(METHODS)
    assert PAPER["MSLR-WEB30K-F1"]["X-DART adaptive 5"][:5] == (0.4729, 0.4777, 0.4794, 0.4805, 0.4802)
    assert PAPER["Istella-S"]["LambdaMART"][-1] == 0.7530
    assert {len(values) for table in PAPER.values() for values in table.values()} == {6}


def test_a_study_needs_trees_and_dart(source):
    with pytest.raises(rw.RankwoodError, match="at least one seed, 5 trees"):
        XdartStudy(source, (1,), n_trees=4)
    with pytest.raises(rw.RankwoodError, match=r"methods are LambdaMART, .*, and DART 1.5% must be one"):
        XdartStudy(source, (1,), methods=["LambdaMART"])
