"""Errors a user can act on: one clear sentence each. The command line prints it and exits with status 2."""

from __future__ import annotations


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
