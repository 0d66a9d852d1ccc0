"""Imports of packages that come with the extra `rankwood[lab]`, and a file lock, which needs one of them."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankwood import packages


def need(package: str, needed_for: str) -> Any:
    """Import a package of the extra, or raise an error that says what needs it and how to install it.

    Parameters
    ----------
    package : str
        Its name, or that of a module in it.
    needed_for : str
        What needs it, as the subject of the sentence, such as "tuning".

    Examples
    --------
    >>> need("json", "this example").__name__
    'json'
    >>> need("nothing", "this")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rankwood.errors.MissingPackageError: this needs the package nothing: pip install 'rankwood[lab]' ...
    """
    return packages.need(package, needed_for, extra="lab")


class Held(Exception):
    """Another process, or another part of this one, holds the lock."""


@contextlib.contextmanager
def locked(path: Path, needed_for: str) -> Iterator[None]:
    """Hold a lock while the block runs.

    The operating system lifts it when the process ends, however it does.

    Parameters
    ----------
    path : Path
        The file to lock. It and its folder are made, and it is removed afterwards.
    needed_for : str
        What needs the package `filelock`, as for `need`.

    Raises
    ------
    Held
        At once, when somebody else holds it.
    OSError
        When the file cannot be made, or the file system has no locks.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> with locked(path, "this example"), locked(path, "this example"):
    ...     pass
    Traceback (most recent call last):
    rankwood.lab.extra.Held
    """
    filelock = need("filelock", needed_for)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the soft lock, which is refused below
            lock.acquire(blocking=False)
    except filelock.Timeout:
        raise Held from None
    except NotImplementedError:  # what versions before the soft lock say
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    try:
        if isinstance(lock, filelock.SoftFileLock):  # a kill would leave it locked for good
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while we hold it, else it may be the next holder's; on Windows filelock does it itself
        lock.release()
