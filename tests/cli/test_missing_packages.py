"""What needs a package of the extra `lab` and does not find it says so in one sentence, before the work."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sklearn.base  # noqa: F401 (scikit-learn itself needs joblib: imported before it is taken away)

import rankwood as rw
from rankwood.errors import MissingPackageError

TUNE = ("tune", "--train", "absent", "--valid", "absent", "--budget-us", 1, "-o", "m.rw")
FETCH = ("datasets", "fetch", "MQ2008", "--to", "data", "--url", "http://127.0.0.1:9/no.zip")
SWEEP = ("sweep", "sweep.toml", "--workers", 2, "--out", "out")
REPRODUCE = ("reproduce", "subsampling", "--quick", "--trees", 2, "--sweep", 2, "--workers", 2, "--out", "out")
REPORT = ("report", "absent.rw", "--data", "absent.txt", "-o", "r.html", "--figures", "figures")
TOML = """learner = "lambdamart"
grid.n_leaves = [4, 6]
parameters.n_trees = 2
data.synthetic = {n_queries = 20, docs_per_query = 5, n_features = 3}
"""


@pytest.mark.parametrize(
    ("package", "command", "needed_for"),
    [
        ("optuna", TUNE, "tuning"),
        ("filelock", (*TUNE, "--study", "s.log"), "keeping a study in a file"),
        ("filelock", FETCH, "fetching a data set"),
        ("pooch", FETCH, "downloading a data set"),
        ("requests", FETCH, "downloading a data set"),
        ("joblib", SWEEP, "doing runs in several processes"),
        ("joblib", REPRODUCE, "doing runs in several processes"),
        ("matplotlib", REPORT, "drawing figures"),
    ],
)
def test_the_package_is_named(rankwood, tmp_path, monkeypatch, package, command, needed_for):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(TOML)
    monkeypatch.setitem(sys.modules, package, None)
    outcome = rankwood(*command)
    assert outcome.status == 2
    said = f"rankwood: {needed_for} needs the package {package}: pip install 'rankwood[lab]' ('.[lab]' in a checkout)"
    assert outcome.err.splitlines()[-1] == said
    assert {path.name for path in tmp_path.iterdir()} <= {"sweep.toml", "out"}  # nothing half-made


PRUNE = ("prune", "absent.rw", "--train", "absent", "--valid", "absent", "-o")


@pytest.mark.parametrize(
    "command",
    [
        (*PRUNE, "small.onnx"),
        (*PRUNE, "small", "--to", "onnx"),
        ("convert", "absent.rw", "small.onnx"),
    ],
)
def test_a_format_s_package_is_named_before_files_are_read(rankwood, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    outcome = rankwood(*command)
    assert outcome.status == 2
    said = "rankwood: writing ONNX models needs the package onnx: pip install 'rankwood[formats]' "
    assert outcome.err == f"{said}('.[formats]' in a checkout)\n"


def test_a_compiler_is_missed_before_files_are_read(rankwood, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "'no-such-compiler', is not there" in rankwood(*PRUNE, "small.so").err


def test_a_study_is_done_without_the_extra(tmp_path):
    """Tables without figures, one run after the other."""
    (tmp_path / "sweep.toml").write_text(TOML)
    code = (
        "import sys\n"
        "for name in ('filelock', 'matplotlib', 'optuna', 'pooch', 'requests'): sys.modules[name] = None\n"
        "from rankwood.cli import main\n"
        "main()\n"
    )
    command = ["sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        "drawing figures needs the package matplotlib: pip install 'rankwood[lab]' ('.[lab]' in a checkout); tables are"
        in done.stderr
    )
    assert (tmp_path / "out" / "sweep.csv").exists()


def test_from_python(tmp_path, monkeypatch):
    data = rw.make_ranking(20, 5, 3)
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingPackageError, match="keeping a study in a file needs the package filelock"):
        rw.tune(data, data, budget_us=1.0, study=tmp_path / "new" / "s.log")
    assert not any(tmp_path.iterdir())
