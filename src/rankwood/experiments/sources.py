"""Where the folds of a study come from: files, or synthetic data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.data.folds import Fold, find_folds
from rankwood.errors import DataError, RankwoodError
from rankwood.experiments.kept import Kept


@dataclass(frozen=True)
class FoldData:
    """The three parts of one fold."""

    train: Dataset
    valid: Dataset
    test: Dataset


class Source(Protocol):
    """Folds, by number from 1. `identify` says which data a fold is, for the configuration of a run."""

    @property
    def name(self) -> str: ...
    @property
    def n_folds(self) -> int: ...
    def identify(self, fold: int) -> dict[str, Any]: ...
    def load(self, fold: int) -> FoldData: ...


@dataclass(frozen=True)
class FileFolds:
    """Folds in files. A fold is known by the digest of its files."""

    name: str
    folds: Sequence[Fold]
    n_threads: int | None = None
    _digests: dict[Path, str] = field(default_factory=dict, repr=False, compare=False)
    _loaded: Kept = field(default_factory=Kept, repr=False, compare=False)  # one at a time

    def __post_init__(self) -> None:
        for fold in self.folds:
            if not (fold.valid and fold.test):
                lacking = "test" if fold.valid else "validation"
                raise DataError(f"{fold.name} of {self.name} has no {lacking} data, which a study needs")

    @classmethod
    def find(cls, directory: str | Path, *, n_threads: int | None = None) -> FileFolds:
        """The folds in a folder, as `find_folds` finds them, under the paper's name when the path has one."""
        folder = Path(directory)
        return cls(known_name(folder) or folder.resolve().name, tuple(find_folds(folder)), n_threads)

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    def identify(self, fold: int) -> dict[str, Any]:
        files = self.folds[fold - 1]
        digest = hashlib.sha256()
        for part in (files.train, files.valid, files.test):
            digest.update(b"|" + "".join(self._digest(path) for path in part).encode())
        return {"data": self.name, "fold": fold, "digest": digest.hexdigest()[:16]}

    def load(self, fold: int) -> FoldData:
        return self._loaded.get("fold", fold, lambda: self._read(self.folds[fold - 1]))  # type: ignore[no-any-return]

    def _read(self, files: Fold) -> FoldData:
        from rankwood.data.files import read_data

        train = read_data(files.train, n_threads=self.n_threads)
        parts = (files.valid, files.test)
        return FoldData(train, *(read_data(p, n_features=train.n_features, n_threads=self.n_threads) for p in parts))

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            with open(path, "rb") as file:
                digest = hashlib.sha256()
                while block := file.read(1 << 20):
                    digest.update(block)
            self._digests[path] = digest.hexdigest()
        return self._digests[path]


@dataclass(frozen=True)
class SyntheticFolds:
    """Synthetic data in five parts, of which fold i trains on three, validates on the next and tests on the last.

    >>> source = SyntheticFolds(n_queries=50, docs_per_query=5, n_features=4)
    >>> fold = source.load(2)
    >>> fold.train.n_queries, fold.valid.n_queries, fold.test.n_queries
    (30, 10, 10)
    """

    n_queries: int = 1000
    docs_per_query: int = 120
    n_features: int = 136
    seed: int = 0
    n_folds: int = 5
    n_threads: int | None = None
    _made: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def name(self) -> str:
        return "synthetic"

    @property
    def data(self) -> Dataset:
        from rankwood.data.synthetic import make_ranking

        shape = self.n_queries, self.docs_per_query, self.n_features
        make = partial(make_ranking, *shape, seed=self.seed, n_threads=self.n_threads)
        return self._made.get("data", None, make)  # type: ignore[no-any-return]

    def identify(self, fold: int) -> dict[str, Any]:
        shape = {"n_queries": self.n_queries, "docs_per_query": self.docs_per_query, "n_features": self.n_features}
        return {"data": self.name, "fold": fold, **shape, "data_seed": self.seed}

    def load(self, fold: int) -> FoldData:
        parts = np.array_split(np.arange(self.n_queries), 5)
        order = [parts[(fold - 1 + step) % 5] for step in range(5)]
        train, valid, test = np.concatenate(order[:3]), order[3], order[4]
        return FoldData(*(self.data.select_queries(queries) for queries in (train, valid, test)))


def open_source(directory: str | Path | None, *, quick: bool = False, n_threads: int | None = None) -> Source:
    """The folds in `directory`; MSLR-shaped synthetic data when there is none."""
    if directory is not None:
        return FileFolds.find(directory, n_threads=n_threads)
    if quick:
        return SyntheticFolds(n_queries=100, docs_per_query=20, n_features=20, n_threads=n_threads)
    return SyntheticFolds(n_queries=500, docs_per_query=60, n_features=136, n_threads=n_threads)


def known_name(path: str | Path) -> str | None:
    """The data set of the papers that a path is about, if any.

    The folder's name counts, and that of the one it lies in.

    >>> known_name("data/ohsumed/QueryLevelNorm"), known_name("MQ2008/"), known_name("ohsumed-2/data/mine")
    ('OHSUMED', 'MQ2008', None)
    """
    for part in reversed(Path(path).resolve().parts[-2:]):
        for name in ("OHSUMED", "MQ2008", "MQ2007", "MSLR-WEB10K", "MSLR-WEB30K", "MSLR"):
            if re.search(name, part, re.I):
                return name
    return None


def parse_folds(text: str | Sequence[int] | None, n_folds: int) -> list[int]:
    """Numbers of folds from text such as `1..5`, `1-3` or `1,4`; all when there is none.

    >>> parse_folds("1..3", 5), parse_folds("1,4", 5), parse_folds(None, 2)
    ([1, 2, 3], [1, 4], [1, 2])
    """
    if text is None:
        return list(range(1, n_folds + 1))
    numbers: list[int] = []
    if isinstance(text, str):
        for part in text.split(","):
            match = re.fullmatch(r"\s*(\d+)(?:\s*(?:\.\.|-)\s*(\d+))?\s*", part)
            if match is None:
                raise RankwoodError(f"folds are written like 1..5 or 1,3, got {text!r}")
            numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    else:
        numbers = list(text)
    wrong = [number for number in numbers if not 1 <= number <= n_folds]
    if wrong or not numbers:
        raise RankwoodError(f"there are folds 1 to {n_folds}, got {text!r}")
    return sorted(set(numbers))
