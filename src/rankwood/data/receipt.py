"""The note that `fetch` leaves in a data set's folder: where it came from, and which files belong to it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

NAME = ".rankwood.json"


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What was fetched.

    name, archive, url     which data set, from which file, from where (None when the file was placed by hand)
    sha256                 of the archive (None when the folder was unpacked by hand)
    verified_by            what was compared: 'sha256', 'md5', 'files' (checksums inside), 'counts' or 'nothing'
    files                  size of every file, by its path below the folder
    """

    name: str
    archive: str | None
    url: str | None
    sha256: str | None
    verified_by: str
    files: dict[str, int]

    def write(self, folder: Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)
        (folder / NAME).write_text(text + "\n", encoding="utf-8")

    def intact(self, folder: Path) -> bool:
        """Is every file still there, with its size?"""
        return all(_size(folder / path) == size for path, size in self.files.items())


def read_receipt(folder: str | Path) -> Receipt | None:
    """The receipt of a fetched data set; None when there is none that can be read."""
    try:
        record: Any = json.loads((Path(folder) / NAME).read_text(encoding="utf-8"))
        receipt = Receipt(**record)
    except (OSError, ValueError, TypeError):
        return None
    return receipt if isinstance(receipt.files, dict) and receipt.files else None


def list_files(folder: Path) -> dict[str, int]:
    """Size of every file below a folder, by relative path, the receipt itself left out."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / NAME)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
