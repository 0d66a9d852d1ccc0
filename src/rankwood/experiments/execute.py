"""Runs: each a pure function of its configuration, several at a time, each kept as soon as it is done."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import lru_cache
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.experiments.table import Config, Result, RunTable, run_key
from rankwood.threads import resolve_threads

Run = Callable[[Config], Result]
OnRun = Callable[[int, int], None]  # (runs done, runs in all)
Finished = Generator[None, None, None]


def run_all(
    configs: Sequence[Config],
    run: Run,
    table: RunTable,
    *,
    n_workers: int = 1,
    environment: Mapping[str, Any] | None = None,
    on_run: OnRun | None = None,
) -> list[Result]:
    """The result of every configuration, in order. Those that the table has are not run again, nor is one run twice.

    With several workers `run` is pickled and sent to as many processes, and should use `share_threads` threads there.
    Whoever finishes a run writes it to the table, so a kill loses only what was not finished. All results come from the
    table: they are the same with any number of workers, and for two callers at once. A run that fails ends the call,
    with an error that names its configuration.

    >>> import tempfile, pathlib
    >>> table = RunTable(pathlib.Path(tempfile.mkdtemp()) / "runs.sqlite")
    >>> run_all([{"x": 2}, {"x": 3}], lambda config: {"square": config["x"] ** 2}, table)
    [{'square': 4}, {'square': 9}]
    """
    if n_workers < 1:
        raise RankwoodError(f"n_workers must be at least 1, got {n_workers}")
    keys = [run_key(config) for config in configs]
    known = table.results()
    left = {key: config for key, config in zip(keys, configs, strict=True) if key not in known}
    noted = {} if environment is None else environment
    tell: OnRun = on_run or (lambda done, total: None)
    n_before = len(configs) - len(left)
    tell(n_before, len(configs))
    serial = n_workers == 1 or len(left) < 2
    finished = _one_by_one(left, run, table, noted) if serial else _at_once(left, run, table, noted, n_workers)
    with contextlib.closing(finished):
        for number, _ in enumerate(finished, start=1):
            tell(n_before + number, len(configs))
    if left:
        known = table.results()
    tell(len(configs), len(configs))
    return [known[key] for key in keys]


def share_threads(n_threads: int | None, n_workers: int) -> int | None:
    """Threads of each worker: those asked for, else so many that all workers together use every CPU once.

    >>> share_threads(3, 2), share_threads(None, 10_000)
    (3, 1)
    """
    if n_workers <= 1 or n_threads is not None:
        return n_threads
    return max(1, resolve_threads(None) // n_workers)


def _one_by_one(left: Mapping[str, Config], run: Run, table: RunTable, noted: Mapping[str, Any]) -> Finished:
    for key, config in left.items():
        _perform(key, config, run, table, noted)
        yield


def _at_once(
    left: Mapping[str, Config], run: Run, table: RunTable, noted: Mapping[str, Any], n_workers: int
) -> Finished:
    from joblib import Parallel, delayed, wrap_non_picklable_objects

    packed = pickle.dumps(wrap_non_picklable_objects(run))  # which functions of a notebook are
    parallel = Parallel(n_jobs=n_workers, backend="loky", batch_size=1, return_as="generator_unordered")
    same = (packed, table, noted, os.getpid(), os.getcwd())
    try:
        yield from parallel(delayed(_in_worker)(key, config, *same) for key, config in left.items())
    except BrokenExecutor:
        raise RankwoodError(
            f"a worker was killed, perhaps for want of memory: {len(table)} runs are kept in {table.path}; "
            "go on with fewer workers"
        ) from None


def _in_worker(
    key: str, config: Config, packed: bytes, table: RunTable, noted: Mapping[str, Any], parent: int, folder: str
) -> None:
    _end_with(parent)
    os.chdir(folder)  # joblib uses workers again, which may have begun elsewhere
    with _ctrl_c_left_to_the_parent():
        _perform(key, config, _unpacked(packed), table, noted)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Run:
    """The function that was sent; the same object for all runs of a worker, so that what it keeps is there again."""
    run: Run = pickle.loads(packed)
    return run


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this worker when its parent is gone; else it would finish its run and wait for another that never comes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)  # the table stays whole

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _ctrl_c_left_to_the_parent() -> Iterator[None]:
    """A terminal sends Ctrl-C to the workers too; it is the parent who ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _perform(key: str, config: Config, run: Run, table: RunTable, noted: Mapping[str, Any]) -> None:
    """Do a run and keep its result, unless another process has done it meanwhile."""
    if table.get(key) is not None:
        return
    start = time.perf_counter()
    try:
        result = json.loads(json.dumps(run(config), allow_nan=False))
    except Exception as error:
        what = "out of memory" if isinstance(error, MemoryError) else str(error)
        kind = "" if isinstance(error, (RankwoodError, MemoryError)) else f"{type(error).__name__}: "
        raise RankwoodError(f"{kind}{what} (the run with {in_words(config)})") from error
    table.add(config, result, seconds=time.perf_counter() - start, environment=noted)


def in_words(config: Mapping[str, Any]) -> str:
    """A configuration in a line.

    >>> in_words({"fold": 1, "parameters": {"n_trees": 5, "measure": None}})
    'fold 1, n_trees 5, measure none'
    """
    parts = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            parts.append(in_words(value))
        elif name != "digest":
            parts.append(f"{name} {'none' if value is None else value}")
    return ", ".join(filter(None, parts))
