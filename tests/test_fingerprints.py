"""The tool that tells whether moved modules still compute, write and print the same."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "fingerprints.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("fingerprints", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_recordings_are_equal_and_a_change_is_found(tmp_path):
    paths, only = [tmp_path / "a.json", tmp_path / "b.json"], ("--only", "data/[cs]*")
    for path in paths:
        found = run("record", path, *only)
        assert found.returncode == 0, found.stderr
    first, second = (json.loads(path.read_text()) for path in paths)
    assert first == second
    assert {"data/csv", "data/svmlight", "data/synthetic"} < set(first["digests"])

    first["digests"] |= {"data/csv": "0" * 64, "data/cards": "0" * 64}
    first["texts"]["data/csv"] += "\nanother line"
    paths[0].write_text(json.dumps(first))
    found = run("compare", paths[0], *only)
    assert found.returncode == 1, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0] == "data/csv: differs"
    assert "    -another line" in lines
    assert lines[-2:] == ["data/cards: is gone", f"compared {len(first['digests'])} fingerprints: 2 differ"]

    found = run("compare", paths[1], "--only", "data/csv")
    assert (found.returncode, found.stdout) == (0, "compared 1 fingerprints: 0 differ\n"), found.stderr


def test_commands_are_run(tmp_path):
    found = run("record", tmp_path / "a.json", "--only", "help/inspect")
    assert found.returncode == 0, found.stderr
    result = json.loads(json.loads((tmp_path / "a.json").read_text())["texts"]["help/inspect"])
    assert result["status"] == 0
    assert "Usage: python -m rankwood inspect" in "".join(result["out"])


def test_bits_count(tool):
    import numpy as np

    import rankwood as rw

    one, other = (rw.Ensemble.from_trees([(0, 0.5, 1.0, value)]) for value in (2.0, np.nextafter(2.0, 3.0)))
    assert tool.plain(one) == tool.plain(one.replace())
    assert tool.plain(one) != tool.plain(other)
    assert tool.plain(one.score([[0.7]])) != tool.plain(other.score([[0.7]]))
    assert tool.plain({"a": (1, 0.1 + 0.2)}) == {"a": [1, 0.1 + 0.2]}


def test_times_are_masked_and_other_numbers_are_not(tool):
    def run_of(seconds: float, value: float) -> dict:
        return {
            "seconds": seconds,
            "nDCG@10": value,
            "summary": f"{1 / seconds:.1f}x as fast",
            "environment": {"cpus": seconds},
            "tables": {"columns": ["trees", "us/doc"], "rows": [[f"{value}", f"{seconds}"]], "note": ""},
        }

    assert tool.masked(run_of(0.2, 0.5)) == tool.masked(run_of(0.3, 0.5))
    assert tool.masked(run_of(0.2, 0.5)) != tool.masked(run_of(0.2, 0.6))
    assert tool.printed("nDCG@10 0.5\nruns: 3 (50 %)\nin 4 s", exact=True) == ["nDCG@10 0.5", "in # s"]
