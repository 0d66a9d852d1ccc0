"""Disk space: asked for in advance, and named plainly when it runs out."""

from __future__ import annotations

import errno
import shutil
from io import FileIO
from pathlib import Path

from rankwood.errors import DataError

# Ranking data as text packs to a tenth or so; deflate cannot exceed 1032, which only made-up files reach.
MAX_EXPANSION = 200
SMALL = 64 * 1024 * 1024  # what is packed may always swell to this

# Left free beside what is asked for: file systems need a little for themselves.
_RESERVE = 16 * 1024 * 1024


class NoRoom(DataError):
    """The disk is full, or cannot be written: nothing is wrong with the data."""


def human_bytes(count: float) -> str:
    """A size as people write it.

    >>> human_bytes(999), human_bytes(472_129_615), human_bytes(26_499_490_813)
    ('999 B', '472.1 MB', '26.5 GB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def require_space(folder: Path, needed: int, purpose: str) -> None:
    """Raise NoRoom when the disk that holds `folder` has less than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed + _RESERVE:
        raise NoRoom(
            f"not enough disk space to {purpose}: {folder} has {human_bytes(free)} free, "
            f"{human_bytes(needed)} are needed; free some space or choose another folder"
        )


def write(file: FileIO, data: bytes) -> None:
    """Write all of `data` to a file without a buffer, so that a full disk shows here and not at some later close."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def writing_failed(error: OSError, place: Path) -> str:
    """What went wrong while writing, as the first half of a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk that holds {place} is full"
    return f"{place} cannot be written ({error.strerror or error})"
