"""Commands that time models say so when the machine was busy: once, on standard error, and in their JSON."""

from __future__ import annotations

import importlib
import json

import pytest

import rankwood as rw

SENTENCE = "warning: the machine was busy while this was timed: "


@pytest.fixture(params=[True, False], ids=["busy", "quiet"])
def busy(request, monkeypatch):
    if request.param:
        monkeypatch.setattr("rankwood.scoring.timing.BUSY", -1.0)
    return request.param


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Data of three kinds and a model, in the folder where commands are run."""
    monkeypatch.chdir(tmp_path)
    data = rw.make_ranking(n_queries=90, docs_per_query=10, n_features=6, seed=3)
    parts = [data.select_queries(range(30 * i, 30 * i + 30)) for i in range(3)]
    for name, part in zip(("train", "valid", "test"), parts, strict=True):
        rw.write_svmlight(part, f"{name}.txt")
    rw.LambdaMART(8, 6, 0.2).fit(parts[0]).ensemble_.save("model.rw")
    files = "train = ['train.txt'], valid = ['valid.txt'], test = ['test.txt']"
    (tmp_path / "sweep.toml").write_text(
        f"learner = 'mart'\ngrid.n_leaves = [4, 6]\nparameters.n_trees = 4\ndata = {{ {files} }}"
    )


BOTH = "--train train.txt --valid valid.txt"


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("bench model.rw --data test.txt --repeats 6 --json", "busy"),
        (f"prune model.rw {BOTH} --rates 0.5,0.7 --iterations 1 -o small.rw --json", "timing.busy"),
        (f"tune {BOTH} --budget-us 1000 --trials 2 --max-trees 8 -o best.rw --json", "busy"),
        ("sweep sweep.toml --out sweep --json", None),
        ("report model.rw model.rw --data test.txt -o page.html", None),
    ],
    ids=lambda given: (given or "").partition(" ")[0],
)
def test_it_is_said_once(rankwood, inputs, busy, command, where):
    if command.startswith("tune"):
        pytest.importorskip("optuna")
    outcome = rankwood(*command.split())
    assert outcome.status == 0
    assert outcome.err.count(SENTENCE) == busy
    if where is not None:
        found = json.loads(outcome.out)
        for name in where.split("."):
            found = found[name]
        assert found is busy


def test_a_sweep_and_a_report_remember_it(rankwood, inputs, busy, tmp_path):
    rankwood("sweep", "sweep.toml", "--out", "sweep")
    runs = [json.loads(line) for line in (tmp_path / "sweep" / "runs.jsonl").read_text().splitlines()]
    timed = [run["result"]["timing"] for run in runs if run["config"]["kind"] == "timing"]
    assert [(one["busy"], one["precision"], one["n_threads"]) for one in timed] == [(busy, "double", 1)] * 2
    rankwood("report", "model.rw", "--data", "test.txt", "-o", "page.html")
    assert f'"busy":{json.dumps(busy)}' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_demo_says_it_too(rankwood, busy, tmp_path, monkeypatch):
    demo = importlib.import_module("rankwood.cli.demo")
    tiny = demo.Size(60, 8, 0, 4, 4, 0.2, 5, 2, 4, 0.2, factors=(2.0,), margin=0.9)
    monkeypatch.setattr(demo, "QUICK", tiny)
    outcome = rankwood("demo", "--quick", "--out", tmp_path / "demo")
    assert outcome.err.count(SENTENCE) == busy
    assert "sums in double precision" in outcome.out
