"""The page of a study says what its runs were made with."""

from __future__ import annotations

import json

import pytest

from rankwood.lab.study import Report

HERE = {"rankwood": "0.2", "cpu": "A", "instruction_set": "avx2", "workers": 1}


@pytest.mark.parametrize(
    ("of_runs", "words"),
    [
        ([HERE, HERE], None),
        ([], None),
        ([{**HERE, "threads": 3}], None),
        ([HERE, {**HERE, "cpu": "B"}], "Runs were made on A, avx2, rankwood 0.2 (1), and B, avx2, rankwood 0.2 (1)."),
        ([{**HERE, "instruction_set": "baseline"}] * 2, "Runs were made on A, baseline, rankwood 0.2 (2)."),
        ([HERE, HERE, {**HERE, "rankwood": "0.1"}], "(2), and A, avx2, rankwood 0.1 (1)."),
        ([HERE, {}], "(1), and an unknown machine (1)."),
        ([HERE, {**HERE, "workers": 4}], "1 of 2 runs were made several at a time; scoring is not timed in such runs"),
    ],
)
def test_machines_of_runs(tmp_path, of_runs, words):
    Report("T", "S.", [], []).write(tmp_path, environment=HERE, of_runs=of_runs)
    page, whole = (tmp_path / "report.md").read_text(), json.loads((tmp_path / "results.json").read_text())
    assert "This page: rankwood 0.2, cpu A" in page
    if words is None:
        assert "were made" not in page
        assert whole["made"] == []
    else:
        assert words in page
        assert words in whole["made"][0]
