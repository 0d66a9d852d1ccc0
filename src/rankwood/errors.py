"""Errors a user can act on: one clear sentence each. The command line prints it and exits with status 2."""

from __future__ import annotations

from reprlib import Repr
from typing import Any


class RankwoodError(ValueError):
    """Base of every error that rankwood raises on purpose."""


class DataError(RankwoodError):
    """Ranking data that cannot be used: says which file, line, row or argument, and what was expected."""


class ModelError(RankwoodError):
    """A model or model file that cannot be used."""


class MeasureError(RankwoodError):
    """A measure or convention that is not known, or that does not fit the labels."""


class MissingPackageError(RankwoodError, ImportError):
    """An optional package is needed; the message names it and how to install it."""

    def __init__(self, package: str, needed_for: str, extra: str) -> None:
        super().__init__(f"{needed_for} needs the package {package}: pip install 'rankwood[{extra}]'")


def one_line(value: Any, limit: int = 80) -> str:
    """Text of something from a file that may hold anything: on one line, not too long, however large the thing is.

    >>> one_line("much   too long for a line", 12), one_line([[[[[[1]]]]]])
    ('much too ...', '[[[[...]]]]')
    """
    text = value if isinstance(value, str) else str(value) if isinstance(value, Exception) else _REPR.repr(value)
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


_REPR = Repr()  # looks at few entries and levels
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 4, 400, 400, 400
