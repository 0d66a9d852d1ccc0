"""The scripts of examples/ run, on little data."""

from __future__ import annotations

import importlib.util
import inspect
import runpy
import warnings

import numpy as np
import pytest
from blocks import ROOT

import rankwood as rw

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


def test_an_example_takes_data_from_a_folder(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow", reason="PARQUET FILES NEED pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    data = rw.make_ranking(60, docs_per_query=10, n_features=4, seed=1)
    for part, queries in (("train", range(30)), ("vali", range(30, 45)), ("test", range(45, 60))):
        frame = {"qid": data.qid, "label": data.y, **dict(zip("abcd", data.X.T, strict=True))}
        chosen = np.isin(data.qid, data.queries.ids[list(queries)])
        pq.write_table(pa.table({name: values[chosen] for name, values in frame.items()}), tmp_path / f"{part}.parquet")
    runpy.run_path(str(ROOT / "examples" / "small_by_training.py"))["main"](str(tmp_path), n_trees=12)
    assert "X-DART" in capsys.readouterr().out


def test_there_are_examples():
    assert len(SCRIPTS) >= 4
