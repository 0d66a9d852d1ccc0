"""`rankwood bench`: the table, the JSON, and the exit status when engines disagree."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwood as rw
from rankwood.scoring import timing as bench_module
from rankwood.scoring.engines import ENGINES, Engine, Limits

QUICK = ("--repeats", 6)


class Wrong:
    """The reference, one bit off in the score of the first document."""

    n_bytes = 1

    def __init__(self, model):
        self.reference = ENGINES["reference"].make_kernel(model)
        self.leaves = self.reference.leaves

    def score(self, X, scores, single, n_threads):
        self.reference.score(X, scores, single, n_threads)
        scores[0] = np.nextafter(scores[0], np.inf)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    monkeypatch.setattr(bench_module, "largest_cache", lambda: 1 << 16)


def test_json(rankwood, models, data_file, data):
    outcome = rankwood("bench", models[1], "--data", data_file, *QUICK, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    model = rw.load_model(models[1])
    assert [times["engine"] for times in result["engines"]] == rw.available_engines(model)
    for times in result["engines"]:
        assert times["us_per_doc"] > 0
        assert times["prepare_s"] > 0
        assert times["n_bytes"] == rw.get_engine(times["engine"]).prepare(model).n_bytes
        assert [cell["batch"] for cell in times["batches"]] == [1, 10, 100, data.n_docs]
    assert result["agree"] is True
    assert result["skipped_batches"] == [1000]
    assert (result["n_docs"], result["n_trees"], result["n_threads"], result["precision"]) == (
        data.n_docs, 2, 1, "double",
    )  # fmt: skip
    assert result["isa"] in result["available_isas"]
    assert result["cpu"]
    assert result["versions"]["rankwood"] == rw.__version__
    assert [entry["batch"] for entry in result["fastest"]] == [1, 10, 100, data.n_docs]


def test_table(rankwood, models, data_file, monkeypatch):
    monkeypatch.setitem(ENGINES, "flat", Engine("flat", "for a test", Limits(max_depth=0), Wrong))
    outcome = rankwood("bench", models[1], "--data", data_file, *QUICK, "--threads", 2, "--precision", "single")
    assert outcome.status == 0
    assert "so there is no batch of 1,000" in outcome.err
    for text in (
        "Microseconds per document",
        "reference",
        "cold",
        "95 %",
        "fastest",
        "2 threads, not pinned; sums in single precision",
        f"instruction set {rw.system.active_isa()}",
        "agree with the reference in every bit",
        "flat cannot score this model: a tree is 2 deep and engine 'flat' takes 0",
    ):
        assert text in outcome.out


def test_named_engines_and_batches(rankwood, models, data_file):
    arguments = ("bench", models[1], "--data", data_file, "--engine", "auto", "--engine", "reference")
    outcome = rankwood(*arguments, "--batch", "all", "--batch", 7, *QUICK, "--json")
    result = json.loads(outcome.out)
    assert [times["engine"] for times in result["engines"]] == ["auto", "reference"]
    n_docs = result["n_docs"]
    assert [cell["batch"] for cell in result["engines"][0]["batches"]] == [7, n_docs]
    assert result["engines"][0]["batches"][0]["chosen"] in ENGINES
    shown = rankwood(*arguments, "--batch", 7, *QUICK).out
    assert "takes" in shown


def test_disagreement_is_status_1(rankwood, models, data_file, monkeypatch):
    monkeypatch.setitem(ENGINES, "wrong", Engine("wrong", "for a test", Limits(), Wrong))
    outcome = rankwood("bench", models[1], "--data", data_file, *QUICK)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.splitlines()[-1].startswith("rankwood: engine 'wrong' scores document 0 ")
    outcome = rankwood("bench", models[1], "--data", data_file, *QUICK, "--json")
    assert outcome.status == 1
    result = json.loads(outcome.out)
    assert result["agree"] is False
    assert result["disagreements"][0]["engine"] == "wrong"
    assert all(times["us_per_doc"] is None for times in result["engines"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "warp"), "there is no engine 'warp'; choose one of: auto, reference"),
        (("--engine", "flat"), "engine 'flat' cannot score this model: a tree is 2 deep"),
        (("--batch", "0"), "--batch takes a number of documents or 'all', got '0'"),
        (("--batch", "many"), "got 'many'"),
        (("--batch", "1000000"), "documents: no batch is as small"),
    ],
)
def test_wrong_use_is_one_sentence(rankwood, models, data_file, monkeypatch, arguments, message):
    monkeypatch.setitem(ENGINES, "flat", Engine("flat", "for a test", Limits(max_depth=0), Wrong))
    outcome = rankwood("bench", models[1], "--data", data_file, *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_too_few_repeats_are_wrong_use(rankwood, models, data_file):
    assert rankwood("bench", models[1], "--data", data_file, "--repeats", 5).status == 2
