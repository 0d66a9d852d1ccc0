"""`rankwood runtime`: what it writes is told, and so is an installation without the library."""

from __future__ import annotations

from rankwood.scoring import runtime


def test_it_says_what_it_wrote(rankwood, tmp_path, monkeypatch):
    carried = tmp_path / "carried"
    carried.mkdir()
    for name in ("rankwood.h", "example.c", "librankwood.so.1"):
        (carried / name).write_text(name)
    monkeypatch.setattr(runtime, "FOLDER", carried)
    outcome = rankwood("runtime", "--to", tmp_path / "here")
    assert outcome.status == 0
    for name in ("rankwood.h", "example.c", "librankwood.so.1", "librankwood.so"):
        assert str(tmp_path / "here" / name) in outcome.err.replace("\n", "")
    assert "cc -std=c99 -O2 example.c -I. -L. -lrankwood" in outcome.err.replace("\n", "")
    assert (tmp_path / "here" / "librankwood.so").read_text() == "librankwood.so.1"
    outcome = rankwood("runtime", "--to", carried / "rankwood.h")
    assert outcome.status == 2
    assert "rankwood.h: this is a file: the library is written to a folder" in outcome.err.replace("\n", " ")


def test_an_installation_without_it(rankwood, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime, "FOLDER", tmp_path)
    outcome = rankwood("runtime", "--to", tmp_path / "here")
    assert outcome.status == 2
    assert "this installation carries no librankwood: build it from the sources" in outcome.err
    assert not (tmp_path / "here").exists()
