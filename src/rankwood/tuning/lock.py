"""One search at a time in the file of a study: two would delete each other's models."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rankwood.errors import RankwoodError

_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # what systems say of a lock that another has


@contextmanager
def only_search_in(study: Path | None) -> Iterator[None]:
    """Have the file of a study for oneself while the block runs; None is in memory, and nobody else's.

    The file itself is locked, so other names of it (links) are covered and nothing is left beside it. The system lifts
    the lock when the process ends, however it does.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.log"
    >>> with only_search_in(path), only_search_in(path):
    ...     pass  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    rankwood.errors.RankwoodError: another search is using the study ...: wait for it, or choose another file
    """
    if study is None:
        yield
        return
    study.parent.mkdir(parents=True, exist_ok=True)
    with open(study, "ab") as file:  # creates it, and leaves what is there
        try:
            _lock(file.fileno())
        except OSError as error:
            if error.errno in _HELD:
                raise RankwoodError(
                    f"another search is using the study {study}: wait for it, or choose another file"
                ) from None
            raise RankwoodError(
                f"the study {study} cannot be locked ({error.strerror}): choose a file on another file system"
            ) from None
        yield


if sys.platform == "win32":

    def _lock(file: int) -> None:
        import msvcrt

        # Locked bytes cannot be read or written by others, Optuna's own handle among them: take one far behind the end.
        os.lseek(file, 2**31 - 2, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:

    def _lock(file: int) -> None:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
