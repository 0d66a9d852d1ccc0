"""`rankwood sweep`: a study of one's own from one file, which goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rankwood.lab.runs import RunTable

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.toml"


def test_the_example_and_going_on(rankwood, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = rankwood("sweep", EXAMPLE, "--quick")
    assert outcome.status == 0
    assert "small-trees: test data, synthetic" in outcome.out
    assert "balanced, n_leaves 8, pruned" in outcome.out
    folder = tmp_path / "rankwood-small-trees"
    names = {path.name for path in folder.iterdir()}
    assert {"report.md", "results.json", "runs.jsonl", "runs.sqlite", "sweep.csv", "sweep.tex", "sweep.md",
            "quality-cost.png", "quality-cost.svg"} <= names  # fmt: skip
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert len(lines) == len(RunTable(folder / "runs.sqlite")) == 2 * 4 * 2  # trainings and timings
    assert {"rankwood", "numpy", "cpu", "threads", "workers"} <= lines[0]["environment"].keys()
    assert lines[0]["config"]["seed"] == 0
    again = rankwood("sweep", EXAMPLE, "--quick", "--json")
    assert json.loads(again.out)["facts"]["rows"][0]["configuration"] == "plain, n_leaves 16"
    assert len(RunTable(folder / "runs.sqlite")) == 16


def test_workers_change_nothing(rankwood, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwood.lab.study.write_figure", lambda figure, folder: [])  # which takes a while
    (tmp_path / "c.toml").write_text(
        "learner = 'lambdamart'\nspeed = false\nfolds = [1, 2]\nseeds = 2\nparameters = {n_trees = 4, n_leaves = 4, "
        "query_fraction = 0.5}\ngrid.balance = [0.0, 0.5]\n"
        "data.synthetic = {n_queries = 40, docs_per_query = 8, n_features = 6}\n"
    )
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        outcome = rankwood(
            "sweep", tmp_path / "c.toml", "--workers", workers, "--train-queries", 20, "--out", out, "--json"
        )
        assert outcome.status == 0
        assert {run["config"]["train_queries"] for run in RunTable(out / "runs.sqlite").entries()} == {20}
        rows = json.loads(outcome.out)["facts"]["rows"]
        found.append([{key: value for key, value in row.items() if "seconds" not in key} for row in rows])
        assert ("8 of 8 runs were made several at a time" in (out / "report.md").read_text()) == (workers == 2)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [("learner = 'mart'\ncolour = 3", "colour is not known"), ("learner = 'mart'", "data must be one of")],
)
def test_mistakes_are_one_sentence(rankwood, tmp_path, text, words):
    (tmp_path / "c.toml").write_text(text)
    outcome = rankwood("sweep", tmp_path / "c.toml", "--out", tmp_path / "new")
    assert outcome.status == 2
    assert words in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_parameter_out_of_range_is_found_before_any_run(rankwood, tmp_path):
    (tmp_path / "c.toml").write_text(
        "learner = 'mart'\nfolds = 1\ngrid.n_trees = [2, -1]\ndata.synthetic = {n_queries = 20, docs_per_query = 4}\n"
    )
    outcome = rankwood("sweep", tmp_path / "c.toml", "--out", tmp_path)
    assert outcome.status == 2
    assert "n_trees -1" in outcome.err.splitlines()[-1]
    assert not (tmp_path / "runs.sqlite").exists()


def test_a_file_that_is_not_there(rankwood, tmp_path):
    outcome = rankwood("sweep", tmp_path / "none.toml")
    assert outcome.status == 2
    assert "none.toml: No such file" in outcome.err


def test_the_timed_runs_may_wait(rankwood, tmp_path):
    (tmp_path / "c.toml").write_text(
        "learner = 'mart'\nfolds = [1, 2]\nparameters = {n_trees = 3, n_leaves = 4}\n"
        "data.synthetic = {n_queries = 40, docs_per_query = 8, n_features = 6}\n"
        "[[configurations]]\nname = 'plain'\n"
        "[[configurations]]\nname = 'chosen'\n[configurations.search]\nn_leaves = [3, 5]\n"
    )
    given = ["sweep", tmp_path / "c.toml", "--out", tmp_path / "new"]
    table = RunTable(tmp_path / "new" / "runs.sqlite")
    outcome = rankwood(*given, "--search-only", "--workers", 2)
    assert outcome.status == 0
    assert "which are timed, are left to the same command" in " ".join(outcome.out.split())
    searched = table.entries()
    assert [entry["config"]["kind"] for entry in searched] == ["searching"] * 6
    facts = json.loads((tmp_path / "new" / "results.json").read_text())["facts"]
    assert (facts["folds"], facts["data"], facts["measure"]) == ([1, 2], "synthetic", "nDCG@10")
    assert rankwood(*given).status == 0
    assert table.entries()[:6] == searched
    assert [entry["config"]["kind"] for entry in table.entries()[6:]] == ["final"] * facts["left"]
    assert 2 <= facts["left"] <= 4  # a fold may choose what another configuration is
    assert {entry["environment"]["workers"] for entry in table.entries()[6:]} == {1}


def test_without_a_search_there_is_none_to_do_alone(rankwood, tmp_path):
    (tmp_path / "c.toml").write_text("learner = 'mart'\ndata.synthetic = {n_queries = 20, docs_per_query = 4}\n")
    outcome = rankwood("sweep", tmp_path / "c.toml", "--search-only", "--out", tmp_path / "new")
    assert outcome.status == 2
    assert "no configuration has a search" in outcome.err
    assert not (tmp_path / "new").exists()
