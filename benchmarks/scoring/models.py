"""The data and the models that are scored. Models are trained once and kept in the cache directory."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

import rankwood as rw

SHAPES = {"1000x64": (1000, 64), "1000x16": (1000, 16), "300x32": (300, 32), "100x8": (100, 8), "forest": (1000, None)}
DOCS_PER_QUERY = 120
N_TRAIN, N_SCORED, N_FOREST = 60_000, 60_000, 20_000  # documents


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "rankwood-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Source:
    """Where documents come from: made up, shaped like MSLR-WEB, or from a file, one half to learn from."""

    file: str | None = None
    missing: float = 0.0  # share of missing values in the made-up features that may miss; MSLR-WEB has none

    @cached_property
    def _halves(self) -> tuple[rw.Dataset, rw.Dataset]:
        if self.file is not None:
            return rw.read_svmlight(self.file).split(0.5, seed=0)
        # a little more than asked for: the number of documents of a query varies
        sizes = [round(1.03 * n / DOCS_PER_QUERY) for n in (N_TRAIN, N_SCORED)]
        train, scored = (rw.make_ranking(n, DOCS_PER_QUERY, missing=self.missing, seed=i) for i, n in enumerate(sizes))
        return train, scored

    @property
    def train(self) -> rw.Dataset:
        return self._halves[0]

    @cached_property
    def X(self) -> NDArray[np.float32]:
        """The documents to score."""
        return np.ascontiguousarray(self._halves[1].X[:N_SCORED])

    @property
    def key(self) -> str:
        """What the cached models depend on."""
        if self.file is None:
            return f"synthetic-{self.missing:g}"
        facts = os.stat(self.file)
        return hashlib.sha256(f"{Path(self.file).resolve()} {facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()[
            :12
        ]


@dataclass(frozen=True)
class Subject:
    """One model to score, as its learner gave it and as an ensemble."""

    shape: str
    n_trees: int
    n_leaves: int | None  # None: full depth
    path: Path  # LightGBM's text, or the pickled forest
    source: Source

    @property
    def is_forest(self) -> bool:
        return self.n_leaves is None

    @cached_property
    def original(self) -> Any:
        """lightgbm.Booster or RandomForestRegressor."""
        return joblib.load(self.path) if self.is_forest else lightgbm.Booster(model_file=str(self.path))

    @cached_property
    def ensemble(self) -> rw.Ensemble:
        return rw.load_model(self.original)


def subject(shape: str, source: Source) -> Subject:
    """The model of that shape, trained now unless an earlier run did."""
    n_trees, n_leaves = SHAPES[shape]
    folder = cache_directory() / source.key
    folder.mkdir(exist_ok=True)
    path = folder / (f"{shape}.txt" if n_leaves else f"{shape}.joblib")
    if not path.exists():
        print(f"training {shape}, kept in {path}", file=sys.stderr, flush=True)
        partial = path.with_name(f"{os.getpid()}-{path.name}")
        if n_leaves is None:
            joblib.dump(train_forest(source.train, n_trees), partial)
        else:
            train_lightgbm(source.train, n_trees, n_leaves).save_model(partial)
        partial.rename(path)
    return Subject(shape, n_trees, n_leaves, path, source)


def train_lightgbm(data: rw.Dataset, n_trees: int, n_leaves: int) -> lightgbm.Booster:
    parameters = {
        "objective": "lambdarank",
        "num_leaves": n_leaves,
        "learning_rate": 0.05,
        "min_data_in_leaf": 20,
        "verbose": -1,
        "deterministic": True,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(data.X, data.y, group=data.queries.sizes), n_trees)


def train_forest(data: rw.Dataset, n_trees: int) -> RandomForestRegressor:
    forest = RandomForestRegressor(n_trees, max_features="sqrt", n_jobs=-1, random_state=0)
    return forest.fit(data.X[:N_FOREST], data.y[:N_FOREST])
