"""What the examples in the documentation refer to: small files in a folder, and small objects by their usual names."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT

import rankwood as rw
from rankwood.training.estimators import BoostedRanker

FEW_TREES = 20  # that learners grow at most when snippets ask for hundreds


def _parts() -> dict[str, rw.Dataset]:
    data = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=8, seed=3)
    train, rest = data.split(0.5)
    valid, test = rest.split(0.5)
    return {"train": train, "valid": valid, "test": test}


@pytest.fixture(scope="session")
def objects() -> dict[str, Any]:
    """Data and models under the names that snippets use without saying where they come from."""
    import numpy as np

    parts = _parts()
    train = parts["train"]
    fit = rw.LambdaMART(n_trees=15, n_leaves=6, learning_rate=0.2, min_docs_per_leaf=5)
    model = fit.fit(train).ensemble_
    other = rw.MART(n_trees=10, n_leaves=6, min_docs_per_leaf=5).fit(train).ensemble_
    forest = rw.RandomForest(n_trees=15, queries_per_tree=0.3).fit(train)
    shown = {"X": train.X, "y": train.y, "qid": train.qid, "data": parts["valid"]}
    return {"rw": rw, "np": np, **parts, **shown, "model": model, "other": other, "forest": forest}


def write_parquet(data: rw.Dataset, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {"qid": data.qid, "label": data.y} | {f"f{number}": column for number, column in enumerate(data.X.T)}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=100)


@pytest.fixture(scope="session")
def stage(objects: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that snippets read."""
    folder = tmp_path_factory.mktemp("stage")
    for name, part in ("train", "train"), ("valid", "valid"), ("vali", "valid"), ("test", "test"):
        rw.write_svmlight(objects[part], folder / f"{name}.txt")
        if importlib.util.find_spec("pyarrow") is not None:
            write_parquet(objects[part], folder / f"{name}.parquet")
    with gzip.open(folder / "train.txt.gz", "wb") as file:
        file.write((folder / "train.txt").read_bytes())
    for fold in ("Fold1", "Fold2"):
        (folder / "mydata" / fold).mkdir(parents=True)
        for name in ("train", "vali", "test"):
            shutil.copy(folder / f"{name}.txt", folder / "mydata" / fold)
    (folder / "rankwood-demo").mkdir()
    for name in ("train", "valid", "test"):
        shutil.copy(folder / f"{name}.txt", folder / "rankwood-demo")
    objects["other"].save(folder / "rankwood-demo" / "shrunk.rw")
    objects["model"].save(folder / "model.rw")
    objects["other"].save(folder / "other.rw")
    objects["forest"].ensemble_.save(folder / "forest.rw")
    rw.save_as(objects["model"], folder / "model.txt")
    named = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0))], feature_names=["bm25", "clicks"])
    rw.save_as(named, folder / "dump.json", "xgboost-dump")
    return folder


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners stop at a few trees, unless models of given sizes are asked for."""
    for learner in (BoostedRanker, rw.RandomForest):
        whole = learner.fit

        @functools.wraps(whole)
        def fit(self: Any, *data: Any, whole: Any = whole, **others: Any) -> Any:
            if getattr(self, "record_sizes", None) is None:
                self.n_trees = min(self.n_trees, FEW_TREES)
            return whole(self, *data, **others)

        monkeypatch.setattr(learner, "fit", fit)


@pytest.fixture
def scene(
    objects: dict[str, Any], stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_trees: None
) -> Callable[[], dict[str, Any]]:
    """Go to a copy of the folder; the namespace of a page, whose blocks follow each other."""

    def enter() -> dict[str, Any]:
        folder = tmp_path / "scene"
        shutil.copytree(stage, folder)
        monkeypatch.chdir(folder)
        return {"__name__": "snippet", **objects}

    return enter


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `mkdocs build --strict` does: a warning is an error."""
    pytest.importorskip("mkdocs", reason="the documentation's packages are absent: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder
