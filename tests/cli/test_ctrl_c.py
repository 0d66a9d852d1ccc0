"""Ctrl-C while a command reads, and while it writes: status 130, one sentence, and nothing half-written.

What it does in the middle of work is in the tests of each command, and of native calls in tests/test_interruption.py.
"""

from __future__ import annotations

import os
import signal

import pytest

import rankwood as rw
from rankwood.data.text import TextFile

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SENDS ITSELF A SIGNAL, IN POSIX'S WAY")

LEARN = "--train train.txt --valid valid.txt"
READING = {
    "inspect": "inspect model.rw --data test.txt",
    "evaluate": "evaluate model.rw --data test.txt",
    "bench": "bench model.rw --data test.txt --engine reference --batch 1 --repeats 6",
    "verify": "verify model.rw model.rw --data test.txt",
}
WRITING = {
    "train": f"train mart {LEARN} -p n_trees=2 -o out/m.rw",
    "prune": f"prune model.rw {LEARN} --rates 0.5 --iterations 1 -o out/m.rw",
    "refit": f"refit model.rw {LEARN} -o out/m.rw",
    "shrink": f"shrink model.rw {LEARN} --factor 2 -o out/m.rw",
    "grow-and-prune": f"grow-and-prune mart {LEARN} --size 2 --grow 2 --keep 1 -o out/m.rw",
    "tune": f"tune {LEARN} --budget-us 1e6 --trials 1 --max-trees 2 -o out/m.rw",
    "score": "score model.rw --data test.txt -o out/scores",
    "report": "report model.rw --data test.txt -m AP -o out/r.html",
}
NOT_READING = {
    "convert": "convert model.rw out/m.txt",
    "compile": "compile model.rw -o out/m.c",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rw.make_ranking(n_queries=24, docs_per_query=6, n_features=3, seed=0)
    for number, name in enumerate(("train", "valid", "test")):
        rw.write_svmlight(data.select_queries(range(8 * number, 8 * number + 8)), f"{name}.txt")
    rw.MART(n_trees=4, n_leaves=3, min_docs_per_leaf=1).fit(data).ensemble_.save("model.rw")
    os.mkdir("out")


def pressed(*_: object, **__: object) -> None:
    signal.raise_signal(signal.SIGINT)


def assert_interrupted(outcome) -> None:
    assert outcome.status == 130, outcome.err
    last = outcome.err.splitlines()[-1]
    assert last.startswith("rankwood: interrupted"), outcome.err
    assert "Traceback" not in outcome.err
    assert os.listdir("out") == []


@pytest.mark.parametrize("name", READING | WRITING)
def test_while_data_is_read(rankwood, monkeypatch, name):
    monkeypatch.setattr(TextFile, "read_into", pressed)
    assert_interrupted(rankwood(*(READING | WRITING)[name].split()))


@pytest.mark.parametrize("name", WRITING | NOT_READING)
def test_while_the_output_is_written(rankwood, monkeypatch, name):
    if name == "tune":
        pytest.importorskip("optuna", reason="OPTUNA ABSENT: pip install 'rankwood[lab]'")
    monkeypatch.setattr(os, "fsync", pressed)
    assert_interrupted(rankwood(*(WRITING | NOT_READING)[name].split()))
