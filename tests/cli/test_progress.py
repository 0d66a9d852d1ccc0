"""Progress of long work: a share and an honest time left, as lines or as a bar."""

from __future__ import annotations

import pytest

from rankwood.cli import console


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


def test_lines_with_the_time_left(clock, capsys):
    with console.progress("shrinking") as advance:
        advance(1.0, 10.0)  # too early for a line
        clock[0] += 20.0
        advance(2.0, 10.0)
        clock[0] += 40.0
        advance(8.0, 10.0)
        clock[0] += 5.0
        advance(10.0, 10.0)
    assert capsys.readouterr().err.splitlines() == [
        "shrinking: 20 %, 1:20 min left",
        "shrinking: 80 %, 15 s left",
        "shrinking: 100 %",
    ]


def test_lines_with_a_unit(clock, capsys):
    with console.progress("pruning", unit="searches") as advance:
        for done, total in ((0, None), (1, None), (3, 12)):
            clock[0] += 6.0
            advance(done, total)
    assert capsys.readouterr().err.splitlines() == [
        "pruning: 0 searches",
        "pruning: 1 searches",
        "pruning: 3 searches (25 %), 54 s left",
    ]


def test_work_that_is_all_done_already(clock, capsys):
    with console.progress("shrinking") as advance:
        clock[0] += 6.0
        advance(0.0, 0.0)
    assert capsys.readouterr().err.splitlines() == ["shrinking: 100 %"]


def test_the_time_left_as_it_is_told(clock, capsys):
    with console.progress("pruning", unit="searches") as advance:
        for done, seconds in ((0.5, None), (1, 300.0), (2, 75.0), (4, 0.0)):
            clock[0] += 6.0
            advance.time_left(seconds)
            advance(done, 4)
    assert capsys.readouterr().err.splitlines() == [
        "pruning: 0 searches (12 %)",
        "pruning: 1 searches (25 %), 5:00 min left",
        "pruning: 2 searches (50 %), 1:15 min left",
        "pruning: 4 searches (100 %)",
    ]
