"""The OpenAPI description is true: schemathesis sends what it allows and what it forbids to a server."""

from __future__ import annotations

import subprocess
import sys

import pytest
from server_process import serving

import rankwood as rw
from strategies.ensembles import big_ensemble

pytest.importorskip("schemathesis", reason="SCHEMATHESIS ABSENT: pip install '.[test]', from Python 3.11 on")
pytest.importorskip("uvicorn", reason="UVICORN ABSENT: pip install 'rankwood[serve]'")

# JSON Schema cannot say that lists are as long as each other or that sizes add up, so not all that it allows is taken.
SETTINGS = """
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = [400, 401, 404, 405, 413, 415, 422]
"""
NAMES = ["bm25", "x y", "é"]


def test_the_description_is_true(tmp_path):
    big_ensemble(1, n_trees=20, n_leaves=8, n_features=3).replace(feature_names=NAMES).save(tmp_path / "a.rw")
    rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).save(tmp_path / "b.rw")
    (tmp_path / "token").write_text("a-token-of-sixteen")
    (tmp_path / "settings.toml").write_text(SETTINGS)
    run = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
    run += ["--config-file", str(tmp_path / "settings.toml"), "run"]
    options = ["--phases", "coverage,fuzzing", "--max-examples", "20", "--generation-deterministic", "--no-shrink"]
    options += ["--no-color", "-H", "Authorization: Bearer a-token-of-sixteen"]
    with serving(tmp_path / "a.rw", tmp_path / "b.rw", "--admin-token", tmp_path / "token", "--max-rows", 20) as server:
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        done = subprocess.run(
            [*run, url, *options], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
        assert server.stop() == 0
    assert "10 selected / 10 total" in done.stdout
    assert not any("defect" in line for line in server.log), server.log
