"""Imports of packages that rankwood itself does not need: where they are used, or one sentence on how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from rankwood.errors import MissingPackageError


def need(module: str, needed_for: str, package: str | None = None, *, extra: str | None = None) -> Any:
    """Import a module, or raise an error that says what needs it and how to install it.

    Parameters
    ----------
    module : str
        What is imported.
    needed_for : str
        What needs it, as the subject of the sentence.
    package : str, optional
        What is installed, where it is not called as the module is.
    extra : str, optional
        Extra of rankwood that brings it.

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
            raise  # the package is there, and lacks something itself
        raise MissingPackageError(package or root, needed_for, extra) from None
