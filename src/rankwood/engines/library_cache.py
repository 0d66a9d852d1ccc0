"""Compiled libraries, kept under the user's cache folder.

The name of a file is the key of what was compiled, and the SHA-256 of its content. A file whose content is not what its
name says is damaged and not loaded: that could end the process. So nothing is ever overwritten, and a library that
another process has loaded stays as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
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
        """Libraries of that key that are as they were written: one or none, mostly. Damaged ones are removed."""
        if not self.folder.is_dir():
            return []
        self._check_owner()
        found = []
        for path in sorted(self.folder.glob(f"{key}-*.so")):
            with contextlib.suppress(OSError):  # somebody else removed it
                if path.name != _name_of(key, path.read_bytes()):
                    self.remove(path)
                    continue
                found.append(path)
                os.utime(path)  # it is in use
        return found

    def add(self, key: str, library: Path) -> Path:
        """Keep a library. Processes that do so at the same time do not disturb each other."""
        content = library.read_bytes()
        path = self.folder / _name_of(key, content)
        with atomic_write(path) as file:
            file.write(content)
        self._remove_old()
        return path

    def remove(self, path: Path) -> None:
        """Forget a library."""
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def build_folder(self) -> Iterator[Path]:
        """An empty folder beside the libraries, which is gone afterwards."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._check_owner()
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

    def _check_owner(self) -> None:
        """What is found here is run, so only the user (or root) may have put it here."""
        if not hasattr(os, "getuid"):
            return
        facts = self.folder.stat()
        if facts.st_uid not in (os.getuid(), 0) or facts.st_mode & 0o002:
            raise RankwoodError(
                f"compiled models are kept in {self.folder}, where others may write: set RANKWOOD_CACHE to a folder "
                f"that only you can write"
            )

    def _remove_old(self) -> None:
        now = time.time()
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                age = (now - path.stat().st_mtime) / DAY
                if path.suffix == ".so" and age > UNUSED_DAYS:
                    self.remove(path)
                elif path.name.startswith(".") and age > BUILD_DAYS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _name_of(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.so"
