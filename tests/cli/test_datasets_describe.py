"""`rankwood datasets describe`: statistics of files as a table and as JSON."""

from __future__ import annotations

import json
import sys

import rankwood as rw


def test_a_row_for_every_file(rankwood, data, data_file, tmp_path):
    other = tmp_path / "three.txt"
    other.write_text("0 qid:1 1:0 2:5\n2 qid:1 1:3 2:5\n1 qid:2 1:1 2:5\n")
    outcome = rankwood("datasets", "describe", data_file, other)
    assert outcome.status == 0
    assert f"{data.n_docs:,}" in outcome.out
    row = next(line for line in outcome.out.splitlines() if "three.txt" in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")] == [
        "three.txt", "2", "3", "2", "1", "0, 1, 2", "1.5 (1-2)", "1.0", "16.7 %", "0.0 %", "16.7 %"
    ]  # fmt: skip


def test_json_without_the_extra_of_the_lab(rankwood, data, data_file, monkeypatch):
    for name in ("filelock", "matplotlib", "optuna", "pooch", "requests", "tomli"):
        monkeypatch.setitem(sys.modules, name, None)
    outcome = rankwood("datasets", "describe", data_file, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    (found,) = json.loads(outcome.out)["files"]
    assert found["file"] == str(data_file)
    assert found == {"file": str(data_file), **rw.statistics(rw.read_data(data_file)).as_dict()}


def test_feature_ids_from_zero(rankwood, tmp_path):
    path = tmp_path / "zero.txt"
    path.write_text("1 qid:1 0:1 1:2\n")
    assert rankwood("datasets", "describe", path).status == 2
    outcome = rankwood("datasets", "describe", path, "--zero-based", "--json")
    assert json.loads(outcome.out)["files"][0]["n_features"] == 2
