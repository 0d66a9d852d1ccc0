"""Errors that a user can act on, with one clear sentence each.

The command line prints the sentence and exits with status 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import Repr
from typing import Any


class RankwoodError(ValueError):
    """Base class of all errors that rankwood raises on purpose."""


class DataError(RankwoodError):
    """Error of ranking data that cannot be used; it names the file, line, row or argument and what was expected."""


class ModelError(RankwoodError):
    """Error of a model or model file that cannot be used, read or written."""


class MeasureError(RankwoodError):
    """Error of a measure or convention that is not known, or that does not fit the labels."""


class ClusterError(RankwoodError):
    """Error of a cluster: a worker that is lost or silent, or work that cannot be started there.

    Parameters
    ----------
    sentence : str
        What happened.
    workers : sequence of str
        Addresses of the workers that are lost or silent: those to do without.
    """

    def __init__(self, sentence: str, workers: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.workers = tuple(workers)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.workers)


class MissingPackageError(RankwoodError, ImportError):
    """Error of an optional package that is needed but missing; it tells how to install the package.

    Parameters
    ----------
    package : str
        Name of the package.
    needed_for : str
        What needs it: the beginning of the message.
    extra : str, optional
        Extra of rankwood that brings it; without one, the package is installed by its own name.
    """

    def __init__(self, package: str, needed_for: str, extra: str | None = None) -> None:
        install = f"pip install {package}"
        if extra is not None:
            install = f"pip install 'rankwood[{extra}]' ('.[{extra}]' in a checkout)"
        super().__init__(f"{needed_for} needs the package {package}: {install}")
        self._parts = package, needed_for, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


def one_line(value: Any, limit: int = 80) -> str:
    """Text of any value from a file, on one line and cut to `limit` characters, however large the value is.

    Examples
    --------
    >>> one_line("much   too long for a line", 12), one_line([[[[[[1]]]]]])
    ('much too ...', '[[[[...]]]]')
    """
    text = value if isinstance(value, str) else str(value) if isinstance(value, Exception) else _REPR.repr(value)
    text = " ".join(text[: 4 * limit].split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(words: Sequence[str], most: int = 12) -> str:
    """Words in a row, for a message: the first few of many, and how many more there are.

    Examples
    --------
    >>> listed(["bm25", "clicks"]), listed(["bm25", "clicks", "age"], 2)
    ('bm25, clicks', 'bm25, clicks and 1 more')
    """
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if len(words) > most else "")


_REPR = Repr()  # shows few entries and levels
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 4, 400, 400, 400
