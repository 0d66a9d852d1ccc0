"""Runs of a study: their configurations, the file that keeps their results, and doing those that are left."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.errors import RankwoodError
from rankwood.lab.workers import Config, Here, Run, named_after, workers_of
from rankwood.tasks import WorkerLost

Result = dict[str, Any]


class Kept:
    """A cache of one thing of each kind, such as the data of a fold, for runs of the same process.

    A pickled copy, which a worker gets, is empty.

    Examples
    --------
    >>> kept = Kept()
    >>> [kept.get("data", fold, lambda: [fold]) for fold in (1, 2)]
    [[1], [2]]
    >>> kept.get("data", 2, lambda: "is not made again")
    [2]
    """

    def __init__(self) -> None:
        self._things: dict[str, tuple[Any, Any]] = {}

    def get(self, what: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return the thing of a kind and key; when another key was kept, that is dropped and `make` called.

        Parameters
        ----------
        what : str
            The kind of thing.
        key : object
            Which one of the kind.
        make : callable
            Makes it.
        """
        if what not in self._things or self._things[what][0] != key:
            self._things.pop(what, None)  # two large ones may not fit into memory
            self._things[what] = (key, make())
        return self._things[what][1]

    def clear(self) -> None:
        """Drop everything."""
        self._things.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()


def expand(
    grid: Mapping[str, Sequence[Any]] | None = None, listed: Sequence[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Return every listed setting with every point of a grid; the last name of the grid varies fastest.

    Parameters
    ----------
    grid : mapping, optional
        Lists of values by name.
    listed : sequence of mappings, optional
        Settings that are not part of the grid.

    Examples
    --------
    >>> expand({"n_leaves": [8, 16], "balance": [0.0, 0.5]}, [{"n_trees": 10}])[:2]
    [{'n_trees': 10, 'n_leaves': 8, 'balance': 0.0}, {'n_trees': 10, 'n_leaves': 8, 'balance': 0.5}]
    >>> expand(listed=[{"seed": 1}, {"seed": 2}])
    [{'seed': 1}, {'seed': 2}]
    >>> expand()
    [{}]
    """
    names = list(grid or ())
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(grid or {}).values())]
    settings = [dict(one) for one in (listed or [{}])]
    for setting in settings:
        both = [name for name in setting if name in names]
        if both:
            raise RankwoodError(f"{both[0]} is part of the grid and of a configuration of the list: give it in one")
    found = [{**setting, **point} for setting in settings for point in points]
    for number, setting in enumerate(found):
        if setting in found[:number]:
            raise RankwoodError(f"the configuration {setting} is there twice")
    return found


# The table of finished runs: an SQLite database, because that is one file which several processes may write to at once,
# which a kill in the middle of a write leaves whole, and which anyone can query; it comes with Python.


APPLICATION = 0x726B7764  # "rkwd", by which SQLite tells our database from any other
VERSION = 1
PATIENCE = 60.0  # seconds to wait for other writers, of which each needs milliseconds

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,
    result TEXT NOT NULL,
    seconds REAL NOT NULL,
    finished TEXT NOT NULL,
    environment TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS rows_stay BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'runs are only added'); END;
CREATE TRIGGER IF NOT EXISTS rows_stay_so BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'runs are only added'); END;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""


def run_key(config: Config) -> str:
    """Return a short digest of a configuration, which does not depend on the order of its entries.

    Examples
    --------
    >>> run_key({"fold": 1, "seed": 0}) == run_key({"seed": 0, "fold": 1}) != run_key({"seed": 0, "fold": 2})
    True
    """
    text = json.dumps(config, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class RunTable:
    """Finished runs in a file: key, configuration, result, seconds, time of day and environment of each.

    Runs are only added, and of two results of one configuration the first stays. Every call opens the file and closes
    it again, so a table may be sent to other processes.

    Parameters
    ----------
    path : path-like
        The file, which is made when the first run is added.

    Examples
    --------
    >>> import tempfile
    >>> table = RunTable(Path(tempfile.mkdtemp()) / "runs.sqlite")
    >>> table.add({"seed": 1}, {"nDCG@10": 0.5}, seconds=0.1, environment={})
    >>> table.add({"seed": 1}, {"nDCG@10": 0.6}, seconds=0.1, environment={})
    >>> table.results()[run_key({"seed": 1})], len(table)
    ({'nDCG@10': 0.5}, 1)
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def add(self, config: Config, result: Result, *, seconds: float, environment: Mapping[str, Any]) -> None:
        """Keep the result of a run, unless there is one already.

        Parameters
        ----------
        config, result
            What JSON can hold.
        seconds : float
            Wall-clock time of the run.
        environment : mapping
            Machine and versions.
        """
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row = (run_key(config), _json(config), _json(result), seconds, now, _json(environment))
        with self._open(create=True) as database:
            _insert(database, [row])

    def get(self, key: str) -> Result | None:
        """Return the result of the configuration with this key; None when there is none."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT result FROM runs WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def results(self) -> dict[str, Result]:
        """Return all results by key."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT key, result FROM runs ORDER BY number")
        return {key: json.loads(result) for key, result in rows}

    def entries(self) -> list[dict[str, Any]]:
        """Return all columns of all runs, in the order in which they finished."""
        return list(self._entries())

    def environments(self, keys: Collection[str]) -> list[dict[str, Any]]:
        """Return the environments of the runs with these keys."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT key, environment FROM runs ORDER BY number")
        return [json.loads(environment) for key, environment in rows if key in keys]

    def studies(self) -> set[str]:
        """Return the names of the studies that the runs belong to."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT config FROM runs")
        return {str(json.loads(config).get("study")) for (config,) in rows}

    def __len__(self) -> int:
        with self._open() as database:
            return 0 if database is None else int(_select(database, "SELECT count(*) FROM runs")[0][0])

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write every run as a line of JSON to another file."""
        with atomic_write(path, "w") as file:
            for entry in self._entries():
                file.write(_json(entry) + "\n")

    def _entries(self) -> Iterator[dict[str, Any]]:
        wanted = "SELECT key, config, result, seconds, finished, environment FROM runs ORDER BY number"
        with self._open() as database:
            rows = [] if database is None else _select(database, wanted)
        for key, config, result, seconds, finished, environment in rows:
            yield {
                "key": key,
                "config": json.loads(config),
                "result": json.loads(result),
                "seconds": seconds,
                "finished": finished,
                "environment": json.loads(environment),
            }

    @contextlib.contextmanager
    def _open(self, *, create: bool = False) -> Iterator[Any]:
        """Open the database for one transaction; None when there is no file and none is to be made."""
        if not create and not self.path.exists():
            yield None
            return
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as database:
                self._prepare(database)
                yield database
        except sqlite3.Error as error:
            raise RankwoodError(f"{self.path} {_in_words(str(error))}") from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make the table in a new file, or raise an error when the file is something else."""
        application, version = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _NOTES)
        if application == APPLICATION and version == VERSION:
            return
        if application == APPLICATION:
            raise RankwoodError(f"{self.path} is a table of runs of another version of rankwood: use another folder")
        if application or version or database.execute("SELECT 1 FROM sqlite_master").fetchone():
            # Perhaps another process made the table between the questions.
            if database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION:
                return
            raise RankwoodError(f"{self.path} {_NO_TABLE}")
        database.executescript(_SCHEMA)


_NOTES = ("application_id", "user_version")
_NO_TABLE = "is not a table of runs: move it away, or use another folder"


def _insert(database: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        columns = "key, config, result, seconds, finished, environment"
        database.executemany(f"INSERT OR IGNORE INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _select(database: sqlite3.Connection, text: str, *values: Any) -> list[tuple[Any, ...]]:
    return database.execute(text, values).fetchall()


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _in_words(error: str) -> str:
    """Return what an error of SQLite means, as the end of a sentence about the file."""
    meanings = {
        "not a database": _NO_TABLE,
        "malformed": "is damaged: move it away; runs.jsonl beside it has the runs of the last complete report",
        "no such column": _NO_TABLE,
        "disk is full": "cannot grow: the disk is full; make room and run the same command again, which goes on",
        "disk I/O": "cannot be read or written: the disk or the network has failed",
        "locked": "is held by another process for a minute: end that, and run the same command again, which goes on",
        "unable to open": "cannot be opened: is the folder there, and may it be written to?",
        "readonly": "may not be written to: change its permissions, or use another folder",
    }
    return next((words for part, words in meanings.items() if part in error), f"cannot be used: {error}")


# Doing runs: each is a pure function of its configuration, and is kept as soon as it is done.


OnRun = Callable[[int, int], None]  # (runs done, runs in all)


def run_all(
    configs: Sequence[Config],
    run: Run,
    table: RunTable,
    *,
    n_workers: int = 1,
    client: Any = None,
    receive: Callable[[Any], Result] | None = None,
    environment: Mapping[str, Any] | None = None,
    on_run: OnRun | None = None,
) -> list[Result]:
    """Do every run that the table does not have yet, and return the results of all configurations in order.

    Parameters
    ----------
    configs : sequence of mappings
        What to run; a configuration that is there twice is run once.
    run : callable
        From a configuration to its result. Other processes get a pickled copy of it.
    table : RunTable
        Where this process keeps results as soon as they are there, so that a kill loses only what was not finished. All
        results come from it, so they are the same with any workers and for two callers at once.
    n_workers : int, default 1
        Processes of this machine that do runs at the same time.
    client : distributed.Client, optional
        A Dask cluster that does them instead, one at a time on each of its workers.
    receive : callable, optional
        Called in this process with what a run returned, to make the result of it.
    environment : mapping, optional
        Machine and versions to note with every run.
    on_run : callable, optional
        Called with the number of runs done and of all.

    Raises
    ------
    RankwoodError
        When a run fails; the message names its configuration.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> table = RunTable(pathlib.Path(tempfile.mkdtemp()) / "runs.sqlite")
    >>> run_all([{"x": 2}, {"x": 3}], lambda config: {"square": config["x"] ** 2}, table)
    [{'square': 4}, {'square': 9}]
    """
    keys = [run_key(config) for config in configs]
    known = table.results()
    left = {key: config for key, config in zip(keys, configs, strict=True) if key not in known}
    tell: OnRun = on_run or (lambda done, total: None)
    n_before = len(configs) - len(left)
    tell(n_before, len(configs))
    # Another command may have done some of them meanwhile.
    waiting = (config for key, config in left.items() if table.get(key) is None)
    workers = workers_of(n_workers, client)
    finished = (Here() if client is None and len(left) < 2 else workers).finished(run, waiting)
    with contextlib.closing(finished), _with_advice(table):
        for number, (config, done) in enumerate(finished, start=1):
            with named_after(config):
                result = json.loads(_json(done.value if receive is None else receive(done.value)))
            noted = {**(environment or {}), **done.environment}
            table.add(config, result, seconds=done.seconds, environment=noted)
            tell(n_before + number, len(configs))
    if left:
        known = table.results()
    tell(len(configs), len(configs))
    return [known[key] for key in keys]


@contextlib.contextmanager
def _with_advice(table: RunTable) -> Iterator[None]:
    """Say after the loss of a worker what is kept, and how to go on."""
    try:
        yield
    except WorkerLost as error:
        kept = f"{len(table)} runs are kept in {table.path}"
        raise RankwoodError(f"{error.args[0]}: {kept}; {error.advice}") from None
