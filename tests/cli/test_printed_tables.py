"""Tables and sentences on a terminal: no line is wider than it, no needed column is lost, words stay whole."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwood.cli import console


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Standard output and error as a terminal of some width; returns what was printed there, without styles."""

    def shown(width, show):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        capsys.readouterr()
        show()
        captured = capsys.readouterr()
        return re.sub(r"\x1b\[[\d;]*m", "", captured.out), captured.err

    return shown


COLUMNS = ["model", "nDCG@10", "diff.", "interval", "p", "p (t)"]
ROWS = [["a.rw", "0.4592", "", "", "", ""], ["b.rw", "0.4587", "-0.0005", "-0.0383 .. +0.0354", "0.9815", "0.9799"]]


def test_details_are_left_out_and_named(terminal):
    def show():
        console.print_table("t", COLUMNS, ROWS, caption="c", details=["p (t)", "interval"])

    wide, _ = terminal(120, show)
    assert "p (t)" in wide.splitlines()[2]
    assert "leave out" not in wide
    narrow, _ = terminal(66, show)
    assert narrow.splitlines()[-1] == "66 columns leave out: p (t); `| less -S` shows all."
    assert "interval" in narrow.splitlines()[2]
    assert "p (t)" not in narrow.splitlines()[2]
    narrower, _ = terminal(50, show)
    assert "50 columns leave out: interval; `| less -S`" in narrower  # p (t) has room, now that interval is gone
    for text, width in ((wide, 120), (narrow, 66), (narrower, 50)):
        assert max(map(len, text.splitlines())) <= width


def test_what_is_needed_goes_on_below(terminal):
    shown, _ = terminal(30, lambda: console.print_table("t", COLUMNS, ROWS))
    assert max(map(len, shown.splitlines())) <= 30
    assert shown.count("model") > 1
    assert all(heading in shown for heading in COLUMNS)


def test_output_that_is_no_terminal_has_all_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    console.print_table("t", COLUMNS, ROWS, details=["p (t)"])
    headings = capsys.readouterr().out.splitlines()[2]
    assert all(heading in headings for heading in COLUMNS)


def test_names_are_cut_only_while_they_differ(terminal):
    long = ["experiments_of_november_lambdamart_" + name + "_with_many_trees_and_leaves.rw" for name in "ab"]
    same, _ = terminal(60, lambda: console.print_table("t", ["model", "AP"], [[name, "0.5"] for name in long]))
    assert all(name in same.replace("\n", "") for name in long)
    other, _ = terminal(
        60, lambda: console.print_table("t", ["model", "AP"], [[name[::-1], "0"] for name in ("x" * 99,)])
    )
    assert "..." in other
    assert max(map(len, other.splitlines())) <= 60


@given(
    st.lists(st.integers(1, 25), min_size=1, max_size=9),
    st.integers(20, 150),
    st.data(),
)
def test_fitted(widths, room, data):
    n_keys = data.draw(st.integers(1, min(2, len(widths))))
    details = data.draw(st.permutations(range(n_keys, len(widths))))[: data.draw(st.integers(0, len(widths) - n_keys))]
    parts, left_out = console.fitted(widths, room, details, n_keys)
    assert set(left_out) <= set(details)
    keys = list(range(n_keys))
    assert all(part[:n_keys] == keys for part in parts)
    assert sorted(keys + [number for part in parts for number in part[n_keys:]] + left_out) == list(range(len(widths)))
    for part in parts:  # too wide only where one column besides the keys does not fit
        assert len(part) <= n_keys + 1 or sum(widths[number] + 3 for number in part) + 1 <= room
    if sum(width + 3 for width in widths) + 1 <= room:
        assert not left_out
        assert len(parts) == 1


def test_sentences_break_between_words(terminal):
    sentence = (
        "the checkpoint /a/very/long-path-with-hyphens/" + "x" * 40 + " belongs to another training of these data"
    )
    _, err = terminal(40, lambda: console.tell(sentence))
    assert err.split() == sentence.split()
    assert len(err.splitlines()) > 1
    assert all(len(line) <= 40 for line in err.splitlines() if "/" not in line)


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_of_a_command_is_wider_than_the_terminal(models, data_file, columns):
    command = ["evaluate", *map(str, models), "--data", str(data_file), "-m", "nDCG@10", "AP", "RR", "ERR"]
    shown = in_a_terminal(command, columns)
    assert "two.rw" in shown
    assert max(map(len, shown.splitlines())) <= columns
    assert ("80 columns leave out: p (Wilcoxon)" in shown) == (columns == 80)


def in_a_terminal(command: list[str], columns: int) -> str:
    """What `rankwood COMMAND` shows on a terminal of so many columns, without styles."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    run = [sys.executable, "-m", "rankwood", *command]
    with subprocess.Popen(
        run, stdout=theirs, stderr=theirs, stdin=theirs, env=environment | {"TERM": "xterm"}
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    assert process.returncode == 0
    text = b"".join(parts).decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).rpartition("\r")[2]
