"""Runs are kept as soon as they are done and never done again, by one process or several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import rankwood as rw
from rankwood.lab.papers.xdart import XdartStudy
from rankwood.lab.runs import Kept, RunTable, run_all
from rankwood.lab.study import SyntheticFolds
from rankwood.lab.workers import share_threads

CONFIGS = [{"fold": fold, "seed": seed} for fold in (1, 2) for seed in (0, 1, 2)]


class Counting:
    """A run that notes how often it was called, and may die."""

    def __init__(self, dies_at=None):
        self.calls, self.dies_at = [], dies_at

    def __call__(self, config):
        if len(self.calls) == self.dies_at:
            raise KeyboardInterrupt
        self.calls.append(dict(config))
        return {"value": config["fold"] + config["seed"] / 7}


@dataclass(frozen=True)
class Noting:
    """A run that leaves a file for every call, and fails where it is told to."""

    folder: Path
    fails_at: int | None = None

    def __call__(self, config):
        (self.folder / f"{config['fold']}-{config['seed']}-{time.monotonic_ns()}").touch()
        if config["seed"] == self.fails_at:
            raise ZeroDivisionError("of all things")
        return {"value": config["fold"] + config["seed"] / 7, "process": os.getpid()}

    @property
    def calls(self):
        return sorted(path.name.rsplit("-", 1)[0] for path in self.folder.iterdir())


@dataclass(frozen=True)
class Slow:
    """A run that tells which process does it; all but the first take very long."""

    folder: Path

    def __call__(self, config):
        (self.folder / f"{config['number']}-{os.getpid()}").touch()
        time.sleep(0 if config["number"] == 0 else 60)
        return {"value": 1}


@pytest.fixture
def table(tmp_path):
    return RunTable(tmp_path / "runs.sqlite")


@pytest.fixture
def noting(tmp_path):
    (tmp_path / "calls").mkdir()
    return Noting(tmp_path / "calls")


def test_a_study_goes_on_after_a_kill(table, tmp_path):
    whole = run_all(CONFIGS, Counting(), RunTable(tmp_path / "whole.sqlite"))
    killed, second = Counting(dies_at=4), Counting()
    with pytest.raises(KeyboardInterrupt):
        run_all(CONFIGS, killed, table)
    told = []
    assert run_all(CONFIGS, second, table, on_run=lambda *now: told.append(now)) == whole
    assert killed.calls + second.calls == CONFIGS
    assert told == [(4, 6), (5, 6), (6, 6), (6, 6)]
    third = Counting()
    assert run_all(CONFIGS, third, table) == whole
    assert third.calls == []


def test_a_configuration_that_is_there_twice_is_run_once(table):
    counting = Counting()
    results = run_all([CONFIGS[0], CONFIGS[1], CONFIGS[0]], counting, table)
    assert counting.calls == CONFIGS[:2]
    assert results[0] == results[2] != results[1]


def test_what_another_process_finished_meanwhile_is_taken_from_it(table):
    def run(config):
        for other in CONFIGS[1:]:
            table.add(other, {"value": "another's"}, seconds=0.0, environment={})
        return {"value": "mine"}

    results = run_all(CONFIGS, run, table)
    assert [result["value"] for result in results] == ["mine"] + ["another's"] * 5


def test_workers_are_processes_and_give_the_same(table, noting, tmp_path):
    told = []
    found = run_all(CONFIGS, noting, table, n_workers=2, environment={"cpu": 1}, on_run=lambda *now: told.append(now))
    assert [result["value"] for result in found] == [config["fold"] + config["seed"] / 7 for config in CONFIGS]
    assert os.getpid() not in {result["process"] for result in found}
    assert len(noting.calls) == len(table) == 6
    assert told[0] == (0, 6)
    assert told[-2:] == [(6, 6), (6, 6)]
    assert {entry["environment"]["cpu"] for entry in table.entries()} == {1}
    assert run_all(CONFIGS, noting, table, n_workers=2) == found
    assert len(noting.calls) == 6


def test_workers_go_where_their_parent_has_gone(noting, tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert len(run_all(CONFIGS[:3], noting, RunTable("runs.sqlite"), n_workers=2)) == 3


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_run_that_fails_is_named_and_the_others_are_kept(table, noting, n_workers):
    failing = replace(noting, fails_at=2)
    with pytest.raises(rw.RankwoodError, match=r"^ZeroDivisionError: of all things \(the run with fold 1, seed 2\)$"):
        run_all(CONFIGS[:4], failing, table, n_workers=n_workers)
    kept = [f"{entry['config']['fold']}-{entry['config']['seed']}" for entry in table.entries()]
    assert "1-2" not in kept
    if n_workers == 1:  # with more, the others may not have been done yet
        assert kept == ["1-0", "1-1"]
    assert len(run_all(CONFIGS, noting, table, n_workers=n_workers)) == 6
    assert [noting.calls.count(run) for run in kept] == [1] * len(kept)


def test_errors_of_ours_keep_their_words(table):
    def run(config):
        raise rw.DataError("line 3 of it has no label")

    with pytest.raises(rw.RankwoodError, match=r"^line 3 of it has no label \(the run with fold 1, seed 0\)$"):
        run_all(CONFIGS, run, table)


def test_results_that_json_cannot_hold_are_refused(table):
    with pytest.raises(ValueError, match="JSON"):
        run_all([{"a": 1}], lambda config: {"value": float("nan")}, table)


def test_a_study_is_the_same_with_any_number_of_workers(tmp_path):
    source = SyntheticFolds(n_queries=40, docs_per_query=10, n_features=8, seed=5)
    study = XdartStudy(source, (1, 2), n_trees=6, full_trees=8, patience=4, n_leaves=4,
                       methods=("LambdaMART", "DART 1.5%", "X-DART fixed 1"))  # fmt: skip
    found = [study.runs(RunTable(tmp_path / f"{n}.sqlite"), n_workers=n) for n in (1, 2)]
    for (one, first), (two, second) in zip(*found, strict=True):
        assert one == two
        assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_workers_share_the_cpus(monkeypatch):
    monkeypatch.setattr("rankwood.lab.workers.resolve_threads", lambda n: 8)
    assert [share_threads(None, n) for n in (1, 2, 3, 9)] == [None, 4, 2, 1]
    assert share_threads(5, 4) == 5
    study = XdartStudy(SyntheticFolds(n_queries=10), (1,)).with_threads(2)
    assert (study.n_threads, study.source.n_threads) == (2, 2)


def test_what_is_kept_stays_in_its_process():
    import pickle

    kept, made = Kept(), []
    for key in (1, 1, 2, 1):
        assert kept.get("data", key, lambda key=key: made.append(key) or key) == key
    assert made == [1, 2, 1]
    assert pickle.loads(pickle.dumps(kept)).get("data", 1, lambda: "anew") == "anew"
    source = SyntheticFolds(n_queries=50)
    source.load(1)
    assert len(pickle.dumps(source)) < 2000


STUDY = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from rankwood.lab.runs import run_all
    from rankwood.lab.runs import RunTable

    def run(config):
        while config["number"] >= int(sys.argv[3]) and not Path(sys.argv[4]).exists():
            time.sleep(0.01)
        return {"value": config["number"] / 7}

    results = run_all([{"number": n} for n in range(int(sys.argv[2]))], run, RunTable(sys.argv[1]))
    print(*(result["value"] for result in results))
    """
)


def start_study(table, n_runs, waits_at=None):
    """A process that does runs; from `waits_at` on they wait until there is a file `go` beside the table."""
    waits_at = n_runs if waits_at is None else waits_at
    command = [sys.executable, "-c", STUDY, *map(str, (table.path, n_runs, waits_at, table.path.with_name("go")))]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=paths)


def test_two_commands_on_one_table_both_finish_with_the_same(table):
    commands = [start_study(table, 30, waits_at=1) for _ in range(2)]
    deadline = time.monotonic() + 60
    while len(table) < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    table.path.with_name("go").touch()
    outputs = [command.communicate(timeout=60) for command in commands]
    assert outputs[0][0] == outputs[1][0] == " ".join(str(n / 7) for n in range(30)) + "\n", outputs
    assert len(table) == 30


def test_a_killed_command_goes_on(table):
    command = start_study(table, 20, waits_at=3)
    deadline = time.monotonic() + 60
    while len(table) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    command.kill()
    command.communicate()
    before = table.entries()
    assert [entry["config"]["number"] for entry in before] == [0, 1, 2]
    output, _ = start_study(table, 20).communicate(timeout=60)
    assert output.split() == [str(n / 7) for n in range(20)]
    assert table.entries()[:3] == before


def test_a_worker_whose_parent_is_gone_already_ends():
    """As when the parent was killed while the worker started, which then waits for its first run."""
    code = "import time; from rankwood.lab.workers import end_with; end_with(999_999_999); time.sleep(600)"
    done = subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
    assert done.returncode == 1


WITH_WORKERS = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from test_execute import Slow, run_all, RunTable

    run_all([{"number": n} for n in range(5)], Slow(Path(sys.argv[2])), RunTable(sys.argv[1]), n_workers=2)
    """
)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in Linux's way")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])  # the latter is not there on Windows
def test_workers_end_with_their_parent(table, tmp_path, name):
    """Ctrl-C reaches all processes of a terminal, a kill the parent alone."""
    number = getattr(signal, name)
    notes = tmp_path / "notes"
    notes.mkdir()
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", WITH_WORKERS, str(table.path), str(notes)]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=paths, start_new_session=True)
    deadline = time.monotonic() + 90
    while len(list(notes.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = {int(path.name.split("-")[1]) for path in notes.iterdir()}
    assert len(workers) == 2
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    _, told = parent.communicate(timeout=60)
    assert parent.returncode != 0
    if number == signal.SIGINT:
        assert told.rstrip().endswith("KeyboardInterrupt")
        assert told.count("Traceback") == 1  # the parent's, and none of the workers'
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))
    assert [entry["config"]["number"] for entry in table.entries()] == [0]
