"""Runs are kept as soon as they are done, and never done again."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from rankwood.studies.runs import RunFile, environment, run_all, run_key

CONFIGS = [{"fold": fold, "seed": seed} for fold in (1, 2) for seed in (0, 1, 2)]


class Counting:
    """A run that notes how often it was called, and may die."""

    def __init__(self, dies_at=None):
        self.calls, self.dies_at = [], dies_at

    def __call__(self, config):
        if len(self.calls) == self.dies_at:
            raise KeyboardInterrupt
        self.calls.append(dict(config))
        return {"value": config["fold"] + config["seed"] / 7}


def test_a_study_goes_on_after_a_kill(tmp_path):
    whole = run_all(CONFIGS, Counting(), RunFile(tmp_path / "whole.jsonl"))
    runs, killed, second = RunFile(tmp_path / "runs.jsonl"), Counting(dies_at=4), Counting()
    with pytest.raises(KeyboardInterrupt):
        run_all(CONFIGS, killed, runs)
    told = []
    assert run_all(CONFIGS, second, runs, on_run=lambda *now: told.append(now)) == whole
    assert killed.calls + second.calls == CONFIGS
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    third = Counting()
    assert run_all(CONFIGS, third, runs) == whole
    assert third.calls == []


def test_a_line_that_a_kill_cut_off_is_done_again_and_harms_no_other(tmp_path):
    runs = RunFile(tmp_path / "runs.jsonl")
    whole = run_all(CONFIGS, Counting(), runs)
    text = runs.path.read_bytes()
    runs.path.write_bytes(text[:-20])
    again = Counting()
    assert run_all(CONFIGS, again, runs) == whole
    assert again.calls == CONFIGS[-1:]
    assert len(runs.entries()) == len(CONFIGS)


def test_every_run_says_how_it_was_made(tmp_path):
    runs = RunFile(tmp_path / "runs.jsonl")
    run_all(CONFIGS[:1], Counting(), runs, environment=environment(1))
    (entry,) = (json.loads(line) for line in runs.path.read_text().splitlines())
    assert entry["config"] == CONFIGS[0]
    assert entry["key"] == run_key(CONFIGS[0])
    assert entry["result"] == {"value": 1.0}
    assert entry["environment"]["threads"] == 1
    assert {"rankwood", "numpy", "cpu", "instruction_set"} <= entry["environment"].keys()
    assert entry["seconds"] >= 0


def _add_many(path, first):
    runs = RunFile(path)
    for number in range(first, first + 40):
        runs.add({"number": number}, {"text": "x" * 5000}, seconds=0.0, environment={})


def test_two_writers_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "runs.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add_many, args=(path, first)) for first in (0, 1000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    numbers = [entry["config"]["number"] for entry in RunFile(path).entries()]
    assert sorted(numbers) == [*range(40), *range(1000, 1040)]


def test_a_result_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        run_all([{"a": 1}], lambda config: {"value": float("nan")}, RunFile(tmp_path / "runs.jsonl"))
