"""Packages that some views of explanations need and that rankwood does not bring: imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rankwood.errors import RankwoodError


def import_package(package: str, needed_for: str) -> Any:
    """The package, or one sentence on how to get it.

    Examples
    --------
    >>> import_package("no_such_package", "a table")
    Traceback (most recent call last):
    rankwood.errors.RankwoodError: a table needs no_such_package: pip install no_such_package
    """
    try:
        return import_module(package)
    except ImportError:
        raise RankwoodError(f"{needed_for} needs {package}: pip install {package}") from None
