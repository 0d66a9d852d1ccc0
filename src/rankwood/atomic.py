"""Files that are either written whole or not at all.

A file is written under another name, and locked while it is (`flock`). The system gives up the lock with the process,
however that ends: a file that can be locked is nobody's. So what a killed writer left is known, and the next writer of
the same file removes it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

PART = ".part"
ATTEMPTS = 100  # to lock a new file before others take it away


class _Swept(OSError):
    """Another has locked or removed the file."""


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "wb", *, permissions: int | None = None
) -> Iterator[IO[Any]]:
    """Open `path` for writing: bytes, or with mode "w" UTF-8 text with line feeds as they are given.

    What is written goes to a temporary name in the same folder, which takes the place of `path` when the block ends,
    and is removed when it fails. So a full disk or Ctrl-C leaves an older file as it was. A process that is killed
    leaves its temporary file, which goes with the next write of `path` on the same machine.

    permissions    of the file; else those of the file that is replaced, or what a new file has

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
    try:
        handle, temporary = _new_part(target)
    except OSError as error:  # about what the caller named, not about the temporary name
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    lock: int | None = None
    try:
        with _open(handle, mode) as file:
            if sys.platform != "win32":
                lock = os.dup(handle)  # which keeps the lock until the file has its name
            yield file
            file.flush()
            os.fsync(file.fileno())  # a full disk shows now, not after the rename
        os.chmod(temporary, _permissions(target) if permissions is None else permissions)
        try:
            os.replace(temporary, target)
        except OSError:
            if lock is None:
                raise
            os.close(lock)  # there are file systems that do not rename what is open
            lock = None
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    _remove_parts_left(target)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if a file cannot be written at `path`; before long work whose result it is to hold."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        return
    target = os.path.realpath(path)
    try:
        handle, temporary = _new_part(target)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    os.close(handle)
    with contextlib.suppress(FileNotFoundError):  # another has cleared up just now
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


def _new_part(target: str) -> tuple[int, str]:
    """A new file beside the target, open, and locked unless there are no locks here."""
    folder, shown = os.path.dirname(target), _shown(target)
    for _ in range(ATTEMPTS):
        handle, part = tempfile.mkstemp(dir=folder, prefix=shown + _owner(target), suffix=PART)
        try:
            _lock(handle, part)
            return handle, part
        except OSError as error:
            os.close(handle)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            if not isinstance(error, _Swept):
                break
    return tempfile.mkstemp(dir=folder, prefix=shown, suffix=PART)  # a name that nobody clears up


def _lock(handle: int, part: str) -> None:
    """Lock an open file that is called `part`."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.lstat(part)
    except (BlockingIOError, FileNotFoundError):
        raise _Swept from None
    if not os.path.samestat(found, os.fstat(handle)):
        raise _Swept


def _remove_parts_left(target: str) -> None:
    """Remove what writers of the target left that were killed, on this machine."""
    if sys.platform == "win32":
        return
    name = re.compile(re.escape(_shown(target) + _owner(target)) + r"\w+" + re.escape(PART))
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(target)) as entries:
        for part in [entry.path for entry in entries if name.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_unless_written(part)


def _remove_unless_written(part: str) -> None:
    handle = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(handle, part)  # fails while somebody writes it
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.unlink(part)
    finally:
        os.close(handle)


def _shown(target: str) -> str:
    """How names of temporary files begin: as that of the target, but not too long."""
    return f".{os.fsencode(os.path.basename(target))[:100].decode(errors='ignore')}."


def _owner(target: str) -> str:
    """Part of the names of temporary files: the same for all writers of the target on this machine, and no others."""
    name = os.fsencode(os.path.basename(target))
    return hashlib.sha256(_machine().encode() + b"\n" + name).hexdigest()[:12] + "-"


@functools.cache
def _machine() -> str:
    """The running system: those who share it see each other's locks on any file system, others perhaps not."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        import platform

        return platform.node()
