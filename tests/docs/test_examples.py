"""The scripts of examples/ run, on little data."""

from __future__ import annotations

import importlib.util
import inspect
import warnings

import pytest
from blocks import ROOT

SMALL = {"n_queries": 40, "n_trees": 12, "rates": (0.5,), "folds": 2}
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_example_runs(path, capsys):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{path.name} needs {missing.name}")
    taken = inspect.signature(module.main).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.main(**{name: value for name, value in SMALL.items() if name in taken})
    assert capsys.readouterr().out.strip()


def test_there_are_examples():
    assert len(SCRIPTS) >= 4
