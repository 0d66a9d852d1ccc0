"""The models that are served, by name, and how one takes the place of another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

from rankwood.data.text import State, file_state
from rankwood.errors import RankwoodError, one_line
from rankwood.formats.registry import load_model, width_is_open
from rankwood.model.ensemble import Ensemble
from rankwood.model.file import guarded, parse_model
from rankwood.serving.served import Served

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # what stands in a path without escapes


class Shelf:
    """The models that are served. A swap is one assignment; everything that may fail comes before it.

    Parameters
    ----------
    files : mapping of str to Path
        Model file of every name.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.files = dict(files)
        self._states: dict[str, State | None] = {}  # of the files that are served or were refused
        self._seen: dict[str, State | None] = {}  # when `changed` last looked
        self._served = {name: self.load(name) for name in self.files}

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._served.values()))

    def get(self, name: str) -> Served | None:
        """The model of a name, or None."""
        return self._served.get(name)

    @property
    def only(self) -> Served | None:
        """The only model; None if there are several."""
        return next(iter(self)) if len(self._served) == 1 else None

    def swap(self, served: Served) -> None:
        """Serve a model from now on; requests under way end with the one that they began with."""
        self._served[served.name] = served

    def load(self, name: str) -> Served:
        """The model that is in the file of a name now; a ModelError when it cannot be read."""
        self._states[name] = self._seen[name] = file_state(self.files[name])
        model = load_model(self.files[name])
        return Served(name, model, width_is_open(model))

    def changed(self) -> list[str]:
        """Names whose files are gone or others than when they were loaded, and have not changed since the last look."""
        found = []
        for name, file in self.files.items():
            state, seen = file_state(file), self._seen[name]
            self._seen[name] = state
            if state != self._states[name] and state == seen:
                found.append(name)
        return found


def from_bytes(name: str, content: bytes) -> Served:
    """The model in the content of a file of rankwood's own format; hostile content ends in a ModelError."""
    model = guarded("rankwood", lambda: parse_model(BytesIO(content), Ensemble))
    return Served(name, model, width_is_open(model))


def named_files(arguments: Sequence[str]) -> dict[str, Path]:
    """Model files by name, from `NAME=FILE`, or `FILE` when the file's own name without its suffix will do.

    Examples
    --------
    >>> named_files(["ltr=new/model.rw", "other.rw"])
    {'ltr': PosixPath('new/model.rw'), 'other': PosixPath('other.rw')}
    """
    files: dict[str, Path] = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if equals and not name:
            raise RankwoodError(f"{one_line(argument)!r} has no name before '=': write NAME=FILE")
        if not equals or not NAME.fullmatch(name):
            name, file = Path(argument).stem, argument
        if not NAME.fullmatch(name):
            raise RankwoodError(
                f"{one_line(name)!r} is no name for a path: write NAME={file}, with letters, digits, '.', '_' and '-'"
            )
        if name in files:
            raise RankwoodError(f"two models are called {name}: write NAME=FILE to name them")
        files[name] = Path(file)
    return files
