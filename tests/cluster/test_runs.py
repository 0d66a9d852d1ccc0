"""Runs of studies on a Dask cluster: the same results as in one process, kept by the client, whatever dies."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rankwood as rw
from rankwood.cluster.client import open_client
from rankwood.data.folds import Fold
from rankwood.lab import study as studies
from rankwood.lab import workers as lab_workers
from rankwood.lab.runs import RunTable, run_all
from rankwood.lab.study import FewerQueries, FileFolds, SentFolds, SyntheticFolds, source_for
from rankwood.lab.sweep import Setting, SweepStudy

CONFIGS = [{"fold": fold, "seed": seed} for fold in (1, 2) for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def client():
    """Client of two processes with one thread each."""
    with open_client("local:2") as opened:
        yield opened


@dataclass(frozen=True)
class Noting:
    """A run that leaves a file for every call; it may fail, or kill its process the first time."""

    folder: Path
    fails_at: int | None = None
    dies_at: int | None = None
    always: bool = False

    def __call__(self, config):
        name = f"{config['fold']}-{config['seed']}"
        first = not list(self.folder.glob(f"{name}-*"))
        (self.folder / f"{name}-{time.monotonic_ns()}").touch()
        if config["seed"] == self.dies_at and (first or self.always):
            os.kill(os.getpid(), signal.SIGKILL)
        if config["seed"] == self.fails_at:
            raise ZeroDivisionError("of all things")
        return {"value": config["fold"] + config["seed"] / 7, "process": os.getpid()}

    @property
    def calls(self):
        return sorted(path.name.rsplit("-", 1)[0] for path in self.folder.iterdir())


@pytest.fixture
def table(tmp_path):
    return RunTable(tmp_path / "runs.sqlite")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "calls").mkdir()
    return tmp_path / "calls"


def test_results_are_those_of_one_process_and_are_not_made_again(client, table, folder):
    noting, told = Noting(folder), []
    found = run_all(CONFIGS, noting, table, client=client, on_run=lambda *now: told.append(now))
    assert [one["value"] for one in found] == [config["fold"] + config["seed"] / 7 for config in CONFIGS]
    assert os.getpid() not in {one["process"] for one in found}
    assert len(noting.calls) == len(table) == 6
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert all("cpu" in entry["environment"] for entry in table.entries())
    assert run_all(CONFIGS, noting, table, client=client) == found
    assert len(noting.calls) == 6


def test_functions_of_a_notebook_are_sent_as_well(client, table):
    assert run_all([{"x": 2}, {"x": 3}], lambda config: {"square": config["x"] ** 2}, table, client=client) == [
        {"square": 4},
        {"square": 9},
    ]


def test_a_run_that_fails_is_named_and_the_others_are_kept(client, table, folder):
    with pytest.raises(rw.RankwoodError, match=r"^ZeroDivisionError: of all things \(the run with fold 1, seed 2\)$"):
        run_all(CONFIGS[:3], Noting(folder, fails_at=2), table, client=client)
    kept = [entry["config"]["seed"] for entry in table.entries()]
    assert 2 not in kept
    assert len(run_all(CONFIGS, Noting(folder), table, client=client)) == 6


def test_a_client_and_processes_are_refused_together(client, table, folder):
    with pytest.raises(rw.RankwoodError, match="n_workers=2 and client both"):
        run_all(CONFIGS, Noting(folder), table, n_workers=2, client=client)


def test_the_run_of_a_worker_that_dies_is_done_again(table, folder):
    noting = Noting(folder, dies_at=1)
    with open_client("local:2") as own:
        found = run_all(CONFIGS, noting, table, client=own)
    assert [one["value"] for one in found] == [config["fold"] + config["seed"] / 7 for config in CONFIGS]
    assert noting.calls.count("1-1") >= 2
    assert len(table) == 6


def test_a_run_that_kills_every_worker_ends_in_a_sentence(table, folder):
    with (
        open_client("local:2") as own,
        pytest.raises(rw.RankwoodError, match=r"workers died .* want of memory: \d runs are kept in .*runs.sqlite; go"),
    ):
        run_all(CONFIGS[:2], Noting(folder, dies_at=1, always=True), table, client=own)
    assert [entry["config"]["seed"] for entry in table.entries()] in ([0], [])


def test_no_worker_at_all_ends_in_a_sentence(client, table, folder, monkeypatch):
    monkeypatch.setattr(lab_workers, "PATIENCE", 0.1)
    monkeypatch.setattr(client, "nthreads", dict)
    with pytest.raises(rw.RankwoodError, match="no worker"):
        run_all(CONFIGS, Noting(folder), table, client=client)


def test_ctrl_c_keeps_what_is_done_and_cancels_the_rest(client, table, folder):
    def interrupt(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(CONFIGS, Noting(folder), table, client=client, on_run=interrupt)
    assert len(table) == 2
    time.sleep(0.5)
    assert len(Noting(folder).calls) <= 4  # those that were running, and no more
    assert len(run_all(CONFIGS, Noting(folder), table, client=client)) == 6


def sweep(source, folds=(1, 2)):
    settings = [Setting(f"{n} leaves", "lambdamart", {"n_leaves": n, "n_trees": 5}) for n in (4, 8)]
    return SweepStudy(source, folds, settings=settings)


def without_times(runs):
    times = {"seconds", "wall_seconds", "timing", "model", "pruned"}
    return [
        (config, {k: {n: v for n, v in one.items() if n not in times} for k, one in result.items()})
        for config, result in runs
        if config["kind"] == "training"
    ]


SOURCE = SyntheticFolds(n_queries=30, docs_per_query=10, n_features=6)


def test_a_study_is_the_same_and_is_timed_here(client, tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here = sweep(SOURCE).runs(RunTable(tmp_path / "here" / "runs.sqlite"))
    table = RunTable(tmp_path / "there" / "runs.sqlite")
    there = sweep(SOURCE).runs(table, client=client)
    assert without_times(here) == without_times(there)
    workers = {entry["config"]["kind"]: entry["environment"]["workers"] for entry in table.entries()}
    assert workers == {"training": 2, "timing": 1}
    models = sorted(path.name for path in (tmp_path / "there" / "models").iterdir())
    assert models == sorted(path.name for path in (tmp_path / "here" / "models").iterdir())
    for name in models:
        assert np.array_equal(
            *(rw.Ensemble.load(tmp_path / at / "models" / name).leaf_value for at in ("here", "there"))
        )


@pytest.fixture
def files(tmp_path):
    data = rw.make_ranking(n_queries=30, docs_per_query=10, n_features=6)
    paths = [tmp_path / f"{name}.txt" for name in ("train", "valid", "test")]
    for number, path in enumerate(paths):
        rw.write_svmlight(data.select_queries(np.arange(10 * number, 10 * number + 10)), path)
    return FileFolds("mine", [Fold("Fold1", *((path,) for path in paths))])


def test_workers_read_files_that_they_see_and_are_sent_others(client, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = FileFolds("mine", [Fold("Fold1", (Path("train.txt"),), (Path("valid.txt"),), (Path("test.txt"),))])
    with source_for(client, relative, [1]) as seen:
        assert isinstance(seen, FileFolds)
        assert all(path.is_absolute() for path in seen.paths)
    with source_for(client, FewerQueries(relative, 4), [1]) as fewer:
        assert all(path.is_absolute() for path in fewer.source.paths)
        assert fewer.load(1).train.fingerprint() == FewerQueries(files, 4).load(1).train.fingerprint()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here = sweep(files, (1,)).runs(RunTable(tmp_path / "here" / "runs.sqlite"))

    class Blind:
        """A client whose workers see none of our files."""

        def __getattr__(self, name):
            return getattr(client, name)

        def run(self, function, paths):
            return {"there": [None for _ in paths]}

    with source_for(Blind(), files, [1]) as sent:
        assert isinstance(sent, SentFolds)
    there = sweep(files, (1,)).runs(RunTable(tmp_path / "there" / "runs.sqlite"), client=Blind())
    assert without_times(here) == without_times(there)
    models = sorted(path.name for path in (tmp_path / "there" / "models").iterdir())
    assert models == sorted(path.name for path in (tmp_path / "here" / "models").iterdir())
    assert client.list_datasets() == ()
    assert studies._is_seen(client, tmp_path / "models")


def test_tuning_trains_on_workers_and_finds_the_same(client, monkeypatch):
    data = rw.make_ranking(n_queries=90, docs_per_query=12, n_features=8, seed=4)
    train, valid = data.split(0.6)
    space = rw.SearchSpace(n_trees=(4, 12), n_leaves=(4, 8), min_docs_per_leaf=(5, 10), patience=8)
    settings = {"budget_us": 0.5, "n_trials": 3, "space": space, "rates": (0.5,)}
    one = rw.tune(train, valid, latency=nodes, **settings)
    monkeypatch.setattr("rankwood.lab.tune.cleaver", lambda *_, **__: pytest.fail("pruned here"))
    two = rw.tune(train, valid, latency=nodes, client=client, **settings)
    assert one.trials == two.trials
    assert one.ensemble.fingerprint() == two.ensemble.fingerprint()


def nodes(model, X):
    return model.n_nodes / 100
