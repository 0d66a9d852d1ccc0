"""Runs of a study: each a pure function of its configuration, its result kept in a file as soon as it is there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwood.environment import environment as environment
from rankwood.errors import RankwoodError

Config = Mapping[str, Any]  # what JSON can hold; all that a result depends on
Result = dict[str, Any]
OnRun = Callable[[int, int], None]  # (runs done, runs in all)


def run_key(config: Config) -> str:
    """Short name of a configuration: the same for the same entries in any order.

    >>> run_key({"fold": 1, "seed": 0}) == run_key({"seed": 0, "fold": 1}) != run_key({"seed": 0, "fold": 2})
    True
    """
    text = json.dumps(config, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class RunFile:
    """Finished runs in a file of JSON lines, one object each: key, config, result, seconds, environment.

    A line is written at once and at the end of the file, under a lock, so two processes may add to it. A line that a
    kill left unfinished is not read, and what is written next starts on a new line.

    >>> import tempfile
    >>> runs = RunFile(Path(tempfile.mkdtemp()) / "runs.jsonl")
    >>> runs.add({"seed": 1}, {"nDCG@10": 0.5}, seconds=0.1, environment={})
    >>> runs.results()[run_key({"seed": 1})]
    {'nDCG@10': 0.5}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def add(self, config: Config, result: Result, *, seconds: float, environment: Mapping[str, Any]) -> None:
        """Keep the result of one run."""
        entry = {
            "key": run_key(config),
            "config": dict(config),
            "result": result,
            "seconds": seconds,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "environment": dict(environment),
        }
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            with _locked(handle):
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    line = b"\n" + line  # after what a kill left
                _write_all(handle, line)
                os.fsync(handle)
        finally:
            os.close(handle)

    def entries(self) -> list[dict[str, Any]]:
        """All finished runs, in the order of the file."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return []
        found = []
        for line in text.split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # empty, or cut off by a kill
            if isinstance(entry, dict) and {"key", "config", "result"} <= entry.keys():
                found.append(entry)
        return found

    def results(self) -> dict[str, Result]:
        """Results by key; the first when a run was done twice."""
        found: dict[str, Result] = {}
        for entry in self.entries():
            found.setdefault(entry["key"], entry["result"])
        return found


def run_all(
    configs: Sequence[Config],
    run: Callable[[Config], Result],
    runs: RunFile,
    *,
    environment: Mapping[str, Any] | None = None,
    on_run: OnRun | None = None,
) -> list[Result]:
    """The result of every configuration, in order. Those that the file has are not run again, nor is one run twice."""
    known = runs.results()
    noted = {} if environment is None else environment
    results = []
    for number, config in enumerate(configs):
        if on_run is not None:
            on_run(number, len(configs))
        key = run_key(config)
        if key not in known:
            start = time.perf_counter()
            result = json.loads(json.dumps(run(config), allow_nan=False))  # as it will be read again
            runs.add(config, result, seconds=time.perf_counter() - start, environment=noted)
            known[key] = result
        results.append(known[key])
    if on_run is not None:
        on_run(len(configs), len(configs))
    return results


@contextlib.contextmanager
def _locked(handle: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on this system; a single write at the end of a file is the best there is
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _write_all(handle: int, line: bytes) -> None:
    written = os.write(handle, line)
    if written != len(line):
        raise RankwoodError(f"the disk took {written} of {len(line)} bytes of a result: is it full?")
