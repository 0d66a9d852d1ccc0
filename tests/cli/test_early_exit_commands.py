"""Models with early exit on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwood as rw
from rankwood.scoring import timing as bench_module


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    monkeypatch.setattr(bench_module, "largest_cache", lambda: 1 << 16)


@pytest.fixture(scope="module")
def swift(tmp_path_factory):
    data = rw.make_ranking(n_queries=40, docs_per_query=15, n_features=6, seed=1)
    model = rw.MART(n_trees=40, n_leaves=4).fit(data).ensemble_
    path = tmp_path_factory.mktemp("swift") / "swift.rw"
    model.replace(exit=rw.EarlyExit((16, 32), (0.05, 0.01), top=3)).save(path)
    return path


def test_evaluate_tells_trees_and_loss(rankwood, swift, data_file, data):
    outcome = rankwood("evaluate", swift, "--data", data_file, "--json")
    (row,) = json.loads(outcome.out)["models"]
    model = rw.load_model(swift)
    with_exit, without = rw.evaluate(model, data)["nDCG@10"], rw.evaluate(model.replace(exit=None), data)["nDCG@10"]
    assert row["measures"]["nDCG@10"] == pytest.approx(with_exit)
    assert row["exit"]["measures_without"]["nDCG@10"] == pytest.approx(without)
    assert row["exit"]["loss"]["nDCG@10"] == pytest.approx(without - with_exit)
    trees = model.trees_evaluated(data.X, qid=data.qid)
    assert row["exit"]["trees_evaluated"] == pytest.approx(trees.mean() / 40)
    assert 0.4 < row["exit"]["trees_evaluated"] < 1
    shown = rankwood("evaluate", swift, "--data", data_file).out
    assert "Early exit" in shown
    assert f"{100 * trees.mean() / 40:.1f} %" in shown


def test_models_without_exit_are_shown_as_ever(rankwood, models, data_file):
    assert "exit" not in rankwood("evaluate", models[0], "--data", data_file).out.lower()
    assert "exit" not in json.loads(rankwood("evaluate", models[0], "--data", data_file, "--json").out)["models"][0]


def test_score_uses_the_queries(rankwood, swift, data_file, data, tmp_path):
    model = rw.load_model(swift)
    printed = [float(line) for line in rankwood("score", swift, "--data", data_file).out.split()]
    assert printed == model.score(data.X, qid=data.qid).tolist()
    outcome = rankwood("score", swift, "--data", data_file, "--no-exit", "-o", tmp_path / "scores.txt")
    assert outcome.status == 0
    plain = [float(line) for line in (tmp_path / "scores.txt").read_text().split()]
    assert plain == model.score(data.X).tolist() != printed
    rankwood("score", swift, "--data", data_file, "--engine", "traverse", "-o", tmp_path / "scores.txt")
    assert [float(line) for line in (tmp_path / "scores.txt").read_text().split()] == printed


def test_score_needs_queries_for_it(rankwood, swift, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("0 1:0.5\n1 2:1.5\n")
    outcome = rankwood("score", swift, "--data", path)
    assert outcome.status == 2
    assert "--no-exit" in outcome.err
    assert rankwood("score", swift, "--data", path, "--no-exit").status == 0


def test_bench_times_it(rankwood, swift, data_file):
    outcome = rankwood("bench", swift, "--data", data_file, "--repeats", 6, "--batch", 100, "--json")
    result = json.loads(outcome.out)
    assert [times["engine"] for times in result["exits"]] == ["reference", "bitslice", "traverse"]
    for times in result["exits"]:
        assert times["us_per_doc"] > 0
        assert times["us_per_doc_without"] > 0
    assert 0.4 < result["trees_evaluated"] < 1
    shown = rankwood("bench", swift, "--data", data_file, "--repeats", 6, "--batch", 100, "--engine", "bitslice").out
    assert "with exit" in shown


def test_bench_compares_scores_with_exit(rankwood, swift, data_file, monkeypatch):
    from rankwood.scoring.engines import ENGINES, Engine

    right = ENGINES["bitslice"]

    class Wrong:
        n_bytes = 0

        def __init__(self, model, kernel):
            self.kernel = right.make_exit(model, kernel)

        def score(self, X, offsets, order, scores, trees, single, n_threads):
            self.kernel.score(X, offsets, order, scores, trees, single, n_threads)
            scores[0] = np.nextafter(scores[0], np.inf)

    wrong = Engine(right.name, right.purpose, right.limits, right.make_kernel, make_exit=Wrong)
    monkeypatch.setitem(ENGINES, "bitslice", wrong)
    outcome = rankwood("bench", swift, "--data", data_file, "--repeats", 6, "--engine", "bitslice")
    assert outcome.status == 1
    assert "bitslice" in outcome.err


def test_inspect_shows_it(rankwood, swift):
    assert json.loads(rankwood("inspect", swift, "--json").out)["exit"] == {
        "checkpoints": [16, 32], "margins": [0.05, 0.01], "top": 3,
    }  # fmt: skip
    shown = rankwood("inspect", swift).out
    assert "exit after 16 trees" in shown
    assert "more than 0.05 below number 3" in shown


def test_convert_says_what_is_lost(rankwood, swift, tmp_path):
    outcome = rankwood("convert", swift, tmp_path / "model.txt")
    assert outcome.status == 0
    assert "warning: LightGBM cannot hold early exit" in outcome.err
    assert rw.load_model(tmp_path / "model.txt").exit is None
    outcome = rankwood("compile", swift, "-o", tmp_path / "model.c")
    assert "cannot hold early exit" in outcome.err
    outcome = rankwood("convert", swift, tmp_path / "copy.rw")
    assert "early exit" not in outcome.err
    assert rw.load_model(tmp_path / "copy.rw") == rw.load_model(swift)
