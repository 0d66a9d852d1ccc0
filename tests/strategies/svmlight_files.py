"""Small SVMlight files for the tests that read them."""

from __future__ import annotations

from pathlib import Path

import rankwood as rw

TINY = {"window": 1, "chunk": 1}  # every line is a window of its own


def write(folder: Path, content: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, **options) -> rw.Dataset:
    return rw.read_svmlight(write(folder, content), **options)
