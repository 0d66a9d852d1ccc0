"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import rankwood as rw
from rankwood.cli import main


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def rankwood(capsys, monkeypatch) -> Callable[..., Outcome]:
    """Run `rankwood ARGUMENTS`: exit status, standard output and standard error."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["rankwood", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def data() -> rw.Dataset:
    return rw.make_ranking(n_queries=40, docs_per_query=15, n_features=6, seed=1)


@pytest.fixture(scope="session")
def data_file(data, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.txt"
    rw.write_svmlight(data, path)
    return path


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> tuple[Path, Path]:
    """Two small models; the second is the first with another tree."""
    folder = tmp_path_factory.mktemp("models")
    one = rw.Ensemble.from_trees([(0, 1.0, 0.0, (1, 2.0, 1.0, 2.0))], n_features=6)
    two = one.concat(rw.Ensemble.from_trees([(2, 0.5, 0.0, 0.7)], n_features=6))
    paths = folder / "one.rw", folder / "two.rw"
    one.save(paths[0])
    two.save(paths[1])
    return paths
