"""Finished runs in a file that only grows.

The file is an SQLite database, because that is one file which several processes may write to at once, which a kill in
the middle of a write leaves whole, and which anyone can query; Python brings it along.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.errors import RankwoodError

Config = Mapping[str, Any]  # what JSON can hold; all that a result depends on
Result = dict[str, Any]

APPLICATION = 0x726B7764  # "rkwd": what SQLite notes in the file, so that another's database is not taken for ours
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
    """Short name of a configuration: the same for the same entries in any order.

    >>> run_key({"fold": 1, "seed": 0}) == run_key({"seed": 0, "fold": 1}) != run_key({"seed": 0, "fold": 2})
    True
    """
    text = json.dumps(config, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class RunTable:
    """Finished runs: key, config, result, seconds, time it finished, environment. The first result of a key stays.

    Every call opens the file and closes it again, so a table may be sent to other processes.

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
        """Keep the result of one run, unless there is one already."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row = (run_key(config), _json(config), _json(result), seconds, now, _json(environment))
        with self._open(create=True) as database:
            _insert(database, [row])

    def get(self, key: str) -> Result | None:
        """The result of a configuration, by its key."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT result FROM runs WHERE key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def results(self) -> dict[str, Result]:
        """All results, by key."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT key, result FROM runs ORDER BY number")
        return {key: json.loads(result) for key, result in rows}

    def entries(self) -> list[dict[str, Any]]:
        """All runs with all that is known of them, in the order in which they finished."""
        return list(self._entries())

    def environments(self, keys: Collection[str]) -> list[dict[str, Any]]:
        """What each of these runs was made with."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT key, environment FROM runs ORDER BY number")
        return [json.loads(environment) for key, environment in rows if key in keys]

    def studies(self) -> set[str]:
        """Names of the studies that the runs are of."""
        with self._open() as database:
            rows = [] if database is None else _select(database, "SELECT config FROM runs")
        return {str(json.loads(config).get("study")) for (config,) in rows}

    def __len__(self) -> int:
        with self._open() as database:
            return 0 if database is None else int(_select(database, "SELECT count(*) FROM runs")[0][0])

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write every run as a line of JSON; `take_over` reads such a file."""
        with atomic_write(path, "w") as file:
            for entry in self._entries():
                file.write(_json(entry) + "\n")

    def take_over(self, path: str | os.PathLike[str]) -> int:
        """Add the runs of a file of JSON lines that the table lacks; their number.

        Such files were what runs were kept in before there was a table. What a kill left unfinished of one is skipped.
        """
        rows = []
        for line in Path(path).read_bytes().split(b"\n"):
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                entry = json.loads(line)
                rows.append(
                    (
                        run_key(entry["config"]),
                        _json(dict(entry["config"])),
                        _json(dict(entry["result"])),
                        float(entry.get("seconds", 0.0)),
                        str(entry.get("finished", "")),
                        _json(entry.get("environment", {})),
                    )
                )
        if not rows:
            return 0
        before = len(self)
        with self._open(create=True) as database:
            _insert(database, rows)
        return len(self) - before

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
        """The database, for one transaction; None when there is no file and none is to be made."""
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
        """Make the table in a new file; refuse a file that is something else."""
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
    """What an error of SQLite means for the file."""
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
