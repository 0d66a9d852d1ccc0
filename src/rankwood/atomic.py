"""Files, and folders, that are written whole or not at all.

Content goes to a temporary file, which is locked (`flock`) while it is written and then renamed. The system releases a
lock when its process ends, however it ends. So a temporary file that can be locked was left by a writer that was
killed, and the next writer of the same file removes it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

if sys.platform != "win32":
    import fcntl

PART = ".part"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what only writing meets
ATTEMPTS = 100  # to lock a new temporary file before another writer removes it


class _Swept(OSError):
    """Another writer has locked or removed the temporary file."""


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "wb", *, permissions: int | None = None
) -> Iterator[IO[Any]]:
    r"""Context manager that opens a file for writing, and puts it in place only when the block ends without an error.

    Content goes to a temporary file in the same folder, which replaces `path` when the block ends and is removed when
    the block fails. So a full disk or Ctrl-C leaves an older file as it was. A process that is killed leaves its
    temporary file, which the next write of `path` on the same machine removes.

    Parameters
    ----------
    path : str or path
        The file. A pipe or device, such as /dev/stdout, is written directly.
    mode : {"wb", "w"}, default "wb"
        Bytes, or UTF-8 text whose line feeds stay as they are.
    permissions : int, optional
        Permissions of the file; unless given, those of the file that is replaced, or what a new file has.

    Yields
    ------
    file
        The open file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.txt"
    >>> with atomic_write(path, "w") as file:
    ...     _ = file.write("0.5\n")
    >>> path.read_text()
    '0.5\n'
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', got {mode!r}")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe cannot be renamed
        with _naming(path), _open(os.fspath(path), mode) as file:
            yield file
        return
    target = _target(path)
    try:
        handle, temporary = _new_part(target, tempfile.mkstemp)
    except OSError as error:
        raise _error_of(path, error) from None
    lock: int | None = None
    try:
        with _naming(path), _open(handle, mode) as file:
            if sys.platform != "win32":
                lock = os.dup(handle)  # keeps the lock until the file is renamed
            yield file
            file.flush()
            os.fsync(file.fileno())  # an error of a full disk comes now, not after the rename
        os.chmod(temporary, _permissions(target) if permissions is None else permissions)
        try:
            os.replace(temporary, target)
        except OSError:
            if lock is None:
                raise
            os.close(lock)  # some file systems do not rename an open file
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


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Context manager of a new folder, which is put in place only when the block ends without an error.

    A process that is killed leaves its temporary folder, which the next write of `path` on the same machine removes.

    Parameters
    ----------
    path : str or path
        The folder; it must not be there, unless it is empty.

    Yields
    ------
    Path
        A temporary folder beside it, to write to.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp()) / "scores"
    >>> with atomic_folder(folder) as parts:
    ...     _ = (parts / "part-0.txt").write_text("0.5")
    >>> [file.name for file in folder.iterdir()]
    ['part-0.txt']
    """
    target = _target(path)
    if os.path.exists(target) and not (os.path.isdir(target) and not os.listdir(target)):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    try:
        lock, temporary = _new_part(target, _make_folder)
    except OSError as error:
        raise _error_of(path, error) from None
    try:
        with _naming(path):
            yield Path(temporary)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o777 & ~mask)
        if os.path.isdir(target):
            os.rmdir(target)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    _remove_parts_left(target)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if a file cannot be written at `path`, to be called before long work."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        return
    target = _target(path)
    try:
        handle, temporary = _new_part(target, tempfile.mkstemp)
    except OSError as error:
        raise _error_of(path, error) from None
    os.close(handle)
    with contextlib.suppress(FileNotFoundError):  # another writer has removed it just now
        os.unlink(temporary)


def _target(path: str | os.PathLike[str]) -> str:
    """The file that is written: a link keeps pointing to it. Links that lead in a circle lead to none."""
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, "a link that leads to itself: remove it, or choose another file", os.fspath(path))
    return target


def _error_of(path: str | os.PathLike[str], error: OSError) -> OSError:
    """The error with the path of the caller, not the temporary one; it names the folder if that is what is missing."""
    folder = os.path.dirname(path)
    is_absent = error.errno == errno.ENOENT and folder and not os.path.exists(folder)
    return type(error)(error.errno, f"there is no folder {folder}" if is_absent else error.strerror, os.fspath(path))


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give errors of a full disk the path, which the system does not tell."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM and PART in str(error.filename or PART):
            error.filename = os.fspath(path)
        raise


def _open(file: int | str, mode: str) -> IO[Any]:
    if mode == "w":
        return open(file, "w", encoding="utf-8", newline="\n")
    return open(file, "wb")


def _permissions(target: str) -> int:
    """Permissions of the file that is replaced, or of a new file; those of mkstemp are for the owner alone."""
    try:
        return os.stat(target).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _make_folder(**name: str) -> tuple[int | None, str]:
    """A new folder like the file of `tempfile.mkstemp`: its handle, which Windows has not, and its path."""
    path = tempfile.mkdtemp(**name)
    return None if sys.platform == "win32" else os.open(path, os.O_RDONLY), path


Handle = TypeVar("Handle", int, int | None)


def _new_part(target: str, make: Callable[..., tuple[Handle, str]]) -> tuple[Handle, str]:
    """Handle and path of a new temporary file or folder beside the target, locked unless the file system has no locks.

    `make` is `tempfile.mkstemp` or `_make_folder`.
    """
    folder, shown = os.path.dirname(target), _shown(target)
    for _ in range(ATTEMPTS):
        handle, part = make(dir=folder, prefix=shown + _owner(target), suffix=PART)
        try:
            if handle is not None:
                _lock(handle, part)
            return handle, part
        except OSError as error:
            if handle is not None:
                os.close(handle)
            with contextlib.suppress(FileNotFoundError):
                _remove(part)
            if not isinstance(error, _Swept):
                break
    return make(dir=folder, prefix=shown, suffix=PART)  # without the mark, so that no writer removes it


def _remove(part: str) -> None:
    shutil.rmtree(part) if os.path.isdir(part) else os.unlink(part)


def _lock(handle: int, part: str) -> None:
    """Lock an open temporary file, or raise `_Swept` if it is another's or no longer called `part`."""
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
    """Remove temporary files and folders that killed writers of the target left on this machine."""
    if sys.platform == "win32":
        return
    name = re.compile(re.escape(_shown(target) + _owner(target)) + r"\w+" + re.escape(PART))
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(target)) as entries:
        for part in [entry.path for entry in entries if name.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_unless_written(part)


def _remove_unless_written(part: str) -> None:
    """Remove a temporary file or folder, unless its writer still holds the lock."""
    kind = os.lstat(part).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return
    access = os.O_RDONLY if stat.S_ISDIR(kind) else os.O_RDWR  # some file systems lock only what may be written
    handle = os.open(part, access | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _lock(handle, part)  # raises while its writer has the lock
        _remove(part)
    finally:
        os.close(handle)


def _shown(target: str) -> str:
    """Beginning of the names of temporary files: the target's name, cut to 100 bytes."""
    return f".{os.fsencode(os.path.basename(target))[:100].decode(errors='ignore')}."


def _owner(target: str) -> str:
    """Mark in the names of temporary files that all writers of the target on this machine share, and no others."""
    name = os.fsencode(os.path.basename(target))
    return hashlib.sha256(_machine().encode() + b"\n" + name).hexdigest()[:12] + "-"


@functools.cache
def _machine() -> str:
    """Identity of the running system: only its own processes are sure to see each other's locks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        import platform

        return platform.node()
