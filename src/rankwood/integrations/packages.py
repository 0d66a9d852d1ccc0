"""Imports of the tools, none of which rankwood itself needs."""

from __future__ import annotations

import importlib
from typing import Any

from rankwood.errors import MissingPackageError


def need(module: str, needed_for: str, package: str | None = None) -> Any:
    """Import a module of a tool, or raise an error that says what needs it and how to install it.

    Parameters
    ----------
    module : str
        What is imported.
    needed_for : str
        What needs it, as the subject of the sentence.
    package : str, optional
        What is installed, where it is not called as the module is.

    Examples
    --------
    >>> need("json", "this example").__name__
    'json'
    >>> need("nothing.at_all", "this")
    Traceback (most recent call last):
    rankwood.errors.MissingPackageError: this needs the package nothing: pip install nothing
    """
    root = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != root:
            raise  # the tool is there, and lacks something itself
        raise MissingPackageError(package or root, needed_for) from None
