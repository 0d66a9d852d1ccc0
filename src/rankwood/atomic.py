"""Files that are either written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "wb", *, permissions: int | None = None
) -> Iterator[IO[Any]]:
    """Open `path` for writing: bytes, or with mode "w" UTF-8 text with line feeds as they are given.

    What is written goes to a temporary name in the same folder, which takes the place of `path` when the block ends,
    and is removed when it fails. So a full disk or Ctrl-C leaves an older file as it was.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.txt"
    >>> with atomic_write(path, "w") as file:
    ...     _ = file.write("0.5\\n")
    >>> path.read_text()
    '0.5\\n'
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', got {mode!r}")
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a pipe: there is nothing to rename
        with _open(os.fspath(path), mode) as file:
            yield file
        return
    target = os.path.realpath(path)  # a link keeps pointing to the file
    folder, name = os.path.split(target)
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name[:100]}.", suffix=".part")
    except OSError as error:  # about what the caller named, not about the temporary name
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with _open(handle, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a full disk shows now, not after the rename
        os.chmod(temporary, _permissions(target) if permissions is None else permissions)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if a file cannot be written at `path`; before long work whose result it is to hold."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        return
    target = os.path.realpath(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), suffix=".part")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    os.close(handle)
    os.unlink(temporary)


def _open(file: int | str, mode: str) -> IO[Any]:
    if mode == "w":
        return open(file, "w", encoding="utf-8", newline="\n")
    return open(file, "wb")


def _permissions(target: str) -> int:
    """Those of the file that is replaced, or what a new file would have (mkstemp's are for its owner alone)."""
    try:
        return os.stat(target).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
