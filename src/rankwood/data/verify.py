"""Is this really the data set that the catalogue describes?"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from rankwood.data.catalogue import Entry
from rankwood.data.folds import find_folds
from rankwood.errors import DataError


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Checksum of a file, in hexadecimal."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1024 * 1024):
            digest.update(chunk)
    return digest.hexdigest()


def check_contents(entry: Entry, folder: Path) -> str:
    """Compare unpacked files with what is published; returns what could be compared: 'files', 'counts' or 'nothing'.

    A folder that differs is a DataError.
    """
    if entry.file_sha256:
        _check_files(entry, folder)
        return "files"
    if entry.rows is None or entry.queries is None:
        return "nothing"
    rows, queries = count_rows(folder)
    if (rows, queries) != (entry.rows, entry.queries):
        raise DataError(
            f"{entry.name} should have {entry.rows:,} rows in {entry.queries:,} queries, "
            f"but {rows:,} rows in {queries:,} queries were found: the data is incomplete or another version"
        )
    return "counts"


def count_rows(folder: Path) -> tuple[int, int]:
    """Rows and queries of the data set in a folder, each row counted once although five folds repeat it."""
    folds = find_folds(folder)
    # Cross-validation: any one fold has every row. Otherwise the folds are sets of their own.
    chosen = folds[:1] if folds[0].name.startswith("Fold") else folds
    counts = [_count_file(file) for fold in chosen for file in (*fold.train, *fold.valid, *fold.test)]
    return sum(rows for rows, _ in counts), sum(queries for _, queries in counts)


def _count_file(path: Path) -> tuple[int, int]:
    rows, queries = 0, set()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            words = line.split(maxsplit=2)
            if words and not words[0].startswith(b"#"):
                rows += 1
                queries.add(words[1] if len(words) > 1 else b"")
    return rows, len(queries)


def _check_files(entry: Entry, folder: Path) -> None:
    """Every file with a published checksum must be there; an archive may wrap them in a folder of its own."""
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name, expected in entry.file_sha256.items():
        matches = [path for relative, path in present.items() if f"/{relative}".endswith(f"/{name}")]
        if len(matches) != 1:
            found = "is missing" if not matches else "is there more than once"
            raise DataError(f"{name} of {entry.name} {found}: the data is incomplete or another version")
        actual = file_digest(matches[0])
        if actual != expected:
            raise DataError(
                f"{name} of {entry.name} differs from the published file (sha256 {actual}, expected {expected})"
            )
