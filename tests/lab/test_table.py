"""The table of runs: it only grows, whoever writes to it, and says plainly what is wrong with its file."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import textwrap

import pytest

import rankwood as rw
from rankwood.lab.runs import RunTable, run_key
from rankwood.system import environment


@pytest.fixture
def table(tmp_path):
    return RunTable(tmp_path / "runs.sqlite")


def add(table, number, **result):
    table.add({"study": "s", "number": number}, result or {"value": number / 7}, seconds=0.5, environment={"cpu": "x"})


def test_what_was_added_is_there(table):
    assert (len(table), table.results(), table.entries(), table.studies()) == (0, {}, [], set())
    assert not table.path.exists()  # looking makes no file
    add(table, 1)
    add(table, 2)
    assert table.get(run_key({"number": 2, "study": "s"})) == {"value": 2 / 7}
    assert table.get("nothing") is None
    assert len(table) == 2
    assert table.studies() == {"s"}
    first, second = table.entries()
    assert (first["config"], first["result"]) == ({"study": "s", "number": 1}, {"value": 1 / 7})
    assert (second["seconds"], second["environment"]) == (0.5, {"cpu": "x"})
    assert second["finished"] >= first["finished"] > "2020-01-01T00:00:00Z"


def test_the_first_result_stays_and_rows_are_not_changed(table):
    add(table, 1, value=1)
    add(table, 1, value=2)
    assert table.get(run_key({"study": "s", "number": 1})) == {"value": 1}
    database = sqlite3.connect(table.path)
    for statement in ("DELETE FROM runs", "UPDATE runs SET result = '{}'"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            database.execute(statement)
    database.close()


def test_anyone_can_query_it(table):
    add(table, 1)
    add(table, 2)
    database = sqlite3.connect(table.path)
    found = database.execute(
        "SELECT json_extract(config, '$.number'), json_extract(result, '$.value') FROM runs ORDER BY 1"
    )
    assert found.fetchall() == [(1, 1 / 7), (2, 2 / 7)]
    database.close()


WRITER = textwrap.dedent(
    """
    import sys, time
    from rankwood.lab.runs import RunTable
    path, first, who = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(first, first + 40):
        RunTable(path).add({"number": number}, {"who": who, "text": "x" * 5000}, seconds=0.0, environment={})
        print(number, flush=True)
    """
)


def start_writer(table, first, who):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(table.path), str(first), who], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
    )  # fmt: skip
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_two_writers_at_once(table):
    """Both start on a file that is not there, and share 20 of their 40 keys."""
    writers = [start_writer(table, first, who) for first, who in ((0, "a"), (20, "b"))]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    entries = table.entries()
    assert sorted(entry["config"]["number"] for entry in entries) == list(range(60))
    assert {entry["result"]["who"] for entry in entries} == {"a", "b"}


def test_a_kill_in_the_middle_leaves_what_was_finished(table):
    writer = start_writer(table, 0, "a")
    writer.stdin.write("go\n")
    writer.stdin.flush()
    told = [writer.stdout.readline() for _ in range(5)]
    writer.kill()
    writer.communicate()
    numbers = [entry["config"]["number"] for entry in table.entries()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= len(told)
    add(table, 1000)
    assert len(table) == len(numbers) + 1


def test_a_journal_that_a_kill_left_is_rolled_back(table):
    """What SQLite leaves when the power fails during a write: half-written pages, and the journal to undo them."""
    add(table, 1)
    code = """
    import os, sqlite3, sys
    database = sqlite3.connect(sys.argv[1], isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN IMMEDIATE")
    for n in range(50):
        database.execute("INSERT INTO runs VALUES (NULL, ?, '{}', ?, 0, '', '{}')", (str(n), "x" * 9000))
    os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(table.path)], check=False)
    assert table.path.with_name("runs.sqlite-journal").exists()
    assert [entry["config"]["number"] for entry in table.entries()] == [1]


def test_every_run_goes_out_as_a_line(table, tmp_path):
    table.add({"a": 1}, {"value": 0.1 + 0.2}, seconds=1.5, environment=environment(1))
    table.add({"a": 2}, {"value": None}, seconds=2.5, environment={})
    table.export(tmp_path / "runs.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert lines == table.entries()
    assert {"rankwood", "numpy", "cpu", "instruction_set", "threads"} <= lines[0]["environment"].keys()


def broken_text(path):
    path.write_text("These are notes, and no table at all. " * 20)


def broken_other(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE runs (name TEXT)")
    database.commit()
    database.close()


def broken_page(path):
    for number in range(50):
        add(RunTable(path), number, text="x" * 2000)
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 20] = b"\xff" * (4096 * 19)
    path.write_bytes(content)


def broken_version(path):
    add(RunTable(path), 1)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (broken_text, "is not a table of runs: move it away"),
        (broken_other, "is not a table of runs: move it away"),
        (broken_page, "is damaged: move it away"),
        (broken_version, "of another version of rankwood"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_a_sentence(table, spoil, words):
    spoil(table.path)
    before = table.path.read_bytes()
    with pytest.raises(rw.RankwoodError, match=f"runs.sqlite {words}" if "version" not in words else words):
        table.entries()
    if spoil is not broken_page:
        with pytest.raises(rw.RankwoodError, match=words):
            add(table, 200)
    assert table.path.read_bytes() == before


def test_an_empty_file_is_a_table_that_was_just_begun(table):
    table.path.touch()
    assert len(table) == 0
    add(table, 1)
    assert len(table) == 1


def test_a_full_disk_is_told_and_harms_nothing(table, monkeypatch):
    add(table, 1)
    connect = sqlite3.connect

    def small(*arguments, **more):
        database = connect(*arguments, **more)
        database.execute("PRAGMA max_page_count = 8")  # SQLite says the same when the disk is full
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(rw.RankwoodError, match="the disk is full; make room"):
        add(table, 2, text="x" * 100_000)
    monkeypatch.undo()
    assert len(table) == 1
    add(table, 2)
    assert len(table) == 2


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(rw.RankwoodError, match="cannot be opened: is the folder there"):
        add(RunTable(tmp_path / "no" / "runs.sqlite"), 1)


def test_a_writer_that_never_ends_is_told(table, monkeypatch):
    add(table, 1)
    monkeypatch.setattr("rankwood.lab.runs.PATIENCE", 0.1)
    database = sqlite3.connect(table.path, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    with pytest.raises(rw.RankwoodError, match="is held by another process"):
        add(table, 2)
    database.close()


def test_a_result_that_json_cannot_hold_is_refused(table):
    with pytest.raises(ValueError, match="JSON"):
        add(table, 1, value=float("nan"))
