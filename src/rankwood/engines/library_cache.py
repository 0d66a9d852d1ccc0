"""Compiled libraries, kept under the user's cache folder.

The name of a file is the key of what was compiled, and the SHA-256 of its content. A file whose content is not what its
name says is damaged and not loaded: that could end the process. So nothing is ever overwritten, and a library that
another process has loaded stays as it is.

What is loaded is run. So only the user (or root) may be able to write the folder and the file: a folder that others may
write is refused, a file that others may have written is not loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rankwood.atomic import atomic_write
from rankwood.errors import RankwoodError

UNUSED_DAYS = 30  # a library that was not used for so long is removed when another is added
BUILD_DAYS = 1  # a folder of a build that was killed
DAY = 86400.0


def cache_folder() -> Path:
    """Where rankwood may keep files that it can make again: RANKWOOD_CACHE, or `rankwood` in XDG_CACHE_HOME or in the
    system's place for caches."""
    named = os.environ.get("RANKWOOD_CACHE")
    if named:
        return Path(named).absolute()
    common = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(common):  # the specification says to ignore a relative one
        return Path(common) / "rankwood"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "rankwood" / "cache"
    try:
        home = Path.home()
    except RuntimeError:
        raise RankwoodError("there is no home folder for the cache: set RANKWOOD_CACHE to a folder") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rankwood"


class LibraryCache:
    """Libraries in one folder of the cache."""

    def __init__(self, name: str) -> None:
        self.folder = cache_folder() / name

    def find(self, key: str) -> list[Path]:
        """Libraries called by that key: one or none, mostly. What they really are, `load` looks at."""
        try:
            with self._opened():
                return sorted(self.folder.glob(f"{key}-*.so"))
        except OSError:  # there is no such folder, or it cannot be read
            return []

    def load(self, path: Path) -> ctypes.CDLL | str:
        """A library of this folder, when it is as it was written and nobody else may have written it; else why not."""
        try:
            with self._opened() as folder:
                # The system's loader takes libraries of one name for one; this name says what the content is.
                found = folder / path.name
                library = _why_not(found) or load_library(found)
                named = str(folder), str(self.folder)
                return library.replace(*named) if isinstance(library, str) else library
        except OSError as error:  # somebody else removed it
            return str(error.strerror)

    def add(self, key: str, library: Path) -> Path:
        """Keep a library. Processes that do so at the same time do not disturb each other."""
        content = library.read_bytes()
        path = self.folder / _name_of(key, content)
        with atomic_write(path, permissions=0o600) as file:
            file.write(content)
        self._remove_old()
        return path

    def remove(self, path: Path) -> None:
        """Forget a library, where that is possible."""
        with contextlib.suppress(OSError):
            path.unlink()

    @contextlib.contextmanager
    def build_folder(self) -> Iterator[Path]:
        """An empty folder beside the libraries, which is gone afterwards."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._opened():
                pass
            build = tempfile.mkdtemp(prefix=".build-", dir=self.folder)
        except OSError as error:
            raise RankwoodError(
                f"compiled models are kept in {self.folder}, which cannot be written ({error.strerror}): "
                f"set RANKWOOD_CACHE to another folder"
            ) from None
        try:
            yield Path(build)
        finally:
            shutil.rmtree(build, ignore_errors=True)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Path]:
        """The folder, which only the user (or root) may write, by a name that is lost when it is closed.

        The name is that of the open folder where there is such a thing: so what is found by it is in the very folder
        that was looked at, also when another is put in its place meanwhile.
        """
        if not hasattr(os, "getuid"):
            yield self.folder
            return
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            facts = os.fstat(handle)
            if _others_may_write(facts):
                raise RankwoodError(
                    f"compiled models are kept in {self.folder}, where others may write: set RANKWOOD_CACHE to a "
                    f"folder that only you can write"
                )
            by_handle = Path(f"/proc/self/fd/{handle}")
            same = by_handle.exists() and os.path.samestat(by_handle.stat(), facts)
            yield by_handle if same else self.folder
        finally:
            os.close(handle)

    def _remove_old(self) -> None:
        now = time.time()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                age = (now - path.stat().st_mtime) / DAY
                if path.suffix == ".so" and age > UNUSED_DAYS:
                    self.remove(path)
                elif path.name.startswith(".") and age > BUILD_DAYS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def load_library(path: Path) -> ctypes.CDLL | str:
    """The library, or why it cannot be loaded."""
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError as error:
        return str(error)


def _why_not(path: Path) -> str | None:
    """Why a library of the cache must not be loaded, if so; otherwise it is noted that it is in use."""
    with open(path, "rb", opener=_open_itself) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return "it is not a file"
        if hasattr(os, "getuid") and _others_may_write(facts):
            return "others may write it: set RANKWOOD_CACHE to a folder that only you can write"
        if path.name != _name_of(path.name.rpartition("-")[0], file.read()):
            return "it is damaged"
    with contextlib.suppress(OSError):  # root's
        os.utime(path)
    return None


def _open_itself(path: str, flags: int) -> int:
    """Open a file, but not what a link points to, and without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _others_may_write(facts: os.stat_result) -> bool:
    """Whether somebody besides the user and root can write; the rights of a list of access show in the group's."""
    return facts.st_uid not in (os.getuid(), 0) or bool(facts.st_mode & 0o022)


def _name_of(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.so"
