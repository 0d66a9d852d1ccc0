"""Fetching of public data sets: download or take what a person placed, verify, unpack, and put it in place."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from rankwood.data.folds import find_folds
from rankwood.errors import DataError
from rankwood.lab.datasets.catalogue import Entry, find_entry
from rankwood.lab.datasets.download import (
    DOWNLOADING,
    DownloadError,
    NoRoom,
    Progress,
    ResumingDownloader,
    require_space,
    writing_failed,
)
from rankwood.lab.datasets.unpack import CorruptArchive, RarArchive, unpack
from rankwood.lab.extra import Held, locked, need
from rankwood.printable import human_bytes

# The receipt that `fetch` leaves in a data set's folder.


NAME = ".rankwood.json"


@dataclasses.dataclass(frozen=True)
class Receipt:
    """Where a fetched data set came from, and which files belong to it.

    Parameters
    ----------
    name : str
        The data set.
    archive : str or None
        Name of its archive; None when a person unpacked it.
    url : str or None
        Where it came from; None when a person placed it.
    sha256 : str or None
        Checksum of the archive; None when a person unpacked it.
    verified_by : str
        What was compared: "sha256", "md5", "files" (checksums of the files inside), "counts" or "nothing".
    files : dict of str to int
        Size of every file, by its path below the folder.
    """

    name: str
    archive: str | None
    url: str | None
    sha256: str | None
    verified_by: str
    files: dict[str, int]

    def write(self, folder: Path) -> None:
        """Write the receipt into a folder."""
        text = json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)
        (folder / NAME).write_text(text + "\n", encoding="utf-8")

    def intact(self, folder: Path) -> bool:
        """Whether every file is still there, with its size."""
        return all(_size(folder / path) == size for path, size in self.files.items())


def read_receipt(folder: str | Path) -> Receipt | None:
    """Return the receipt of a fetched data set; None when there is none that can be read."""
    try:
        record: Any = json.loads((Path(folder) / NAME).read_text(encoding="utf-8"))
        receipt = Receipt(**record)
    except (OSError, ValueError, TypeError):
        return None
    return receipt if isinstance(receipt.files, dict) and receipt.files else None


def list_files(folder: Path) -> dict[str, int]:
    """Return the size of every file below a folder but the receipt, by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / NAME)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _size(path: Path) -> int | None:
    """Return the size of a file, None when it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return None


# Verification: whether files are those that the catalogue describes.


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file in hexadecimal."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1024 * 1024):
            digest.update(chunk)
    return digest.hexdigest()


def check_contents(entry: Entry, folder: Path) -> str:
    """Compare unpacked files with what is published, and return what could be compared.

    Returns
    -------
    str
        "files" (checksums), "counts" (of rows and queries) or "nothing".

    Raises
    ------
    DataError
        When the files differ.
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
    """Return the numbers of rows and queries in a folder, each row counted once although folds repeat it."""
    folds = find_folds(folder)
    # In cross-validation any one fold has every row; otherwise every fold is a data set of its own.
    chosen = folds[:1] if folds[0].name.startswith("Fold") else folds
    counts = [_count_file(file) for fold in chosen for file in (*fold.train, *fold.valid, *fold.test)]
    return sum(rows for rows, _ in counts), sum(queries for _, queries in counts)


def _count_file(path: Path) -> tuple[int, int]:
    """Return the numbers of rows and queries of a file."""
    rows, queries = 0, set()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            words = line.split(maxsplit=2)
            if words and not words[0].startswith(b"#"):
                rows += 1
                queries.add(words[1] if len(words) > 1 else b"")
    return rows, len(queries)


def _check_files(entry: Entry, folder: Path) -> None:
    """Raise an error unless every file with a published checksum is there, perhaps inside another folder."""
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


# Fetching.


WORK_FOLDER = ".rankwood-download"
_COMPARED = {
    "files": "the files inside have their published checksums",
    "counts": "only its numbers of rows and queries were compared",
    "nothing": "and nothing else is published to compare it with",
}

Notify = Callable[[str], None]


def fetch(
    name: str | Entry,
    to: str | Path,
    *,
    progress: Progress | None = None,
    notify: Notify | None = None,
    url: str | None = None,
    sha256: str | None = None,
    keep_archive: bool = False,
) -> Path:
    """Bring a data set into a folder, and return the path of its own folder there.

    Returns at once when it is there already. A download that was interrupted is resumed, and the folder appears only
    when it is complete.

    Parameters
    ----------
    name : str or Entry
        A name of the catalogue, or an entry of your own.
    to : path-like
        The data set comes into `to/NAME`. An archive that a person placed in `to` is used instead of a download.
    progress : callable, optional
        Called with the bytes done and the bytes in total, None when unknown, while downloading.
    notify : callable, optional
        Called with sentences about what is done and what could not be verified; without it the latter is a
        UserWarning.
    url : str, optional
        Download from here instead of the published address.
    sha256 : str, optional
        Checksum that the archive must have, instead of the published one.
    keep_archive : bool, default False
        Whether to leave the archive in `to`.

    Returns
    -------
    Path
        `to/NAME`.

    Raises
    ------
    DataError
        When the data set cannot be fetched or verified; the message says what to do.
    """
    entry = name if isinstance(name, Entry) else find_entry(name)
    if entry.made_from is not None:
        raise DataError(f"{entry.name} is not downloaded but made of {entry.made_from}: {entry.instructions}")
    job = _Job(entry, Path(to), progress, notify, url, _checked_sha256(sha256), keep_archive)
    if job.is_done():
        return job.target
    with _working_folder(job.root) as work, _only_one(work / f"{entry.name}.lock", entry.name, job.root):
        job.tidy(work)
        if not job.adopt_folder():
            job.run(work)
    return job.target


@dataclasses.dataclass
class _Archive:
    """An archive that is ready to be unpacked."""

    path: Path
    url: str | None  # None: a person placed it, so it is not ours to delete
    verified_by: str | None  # None: there was nothing to compare it with


@dataclasses.dataclass
class _Job:
    """One call of `fetch`: its arguments and its steps."""

    entry: Entry
    root: Path
    progress: Progress | None
    notify: Notify | None
    url: str | None
    sha256: str | None
    keep_archive: bool

    @property
    def target(self) -> Path:
        """The folder of the data set."""
        return self.root / self.entry.name

    @property
    def checksum(self) -> tuple[str, str] | None:
        """Algorithm and checksum of the archive, when they are known."""
        if self.sha256 or self.entry.sha256:
            return "sha256", self.sha256 or str(self.entry.sha256)
        return ("md5", self.entry.md5) if self.entry.md5 else None

    def is_done(self) -> bool:
        """Whether the data set is there, complete."""
        receipt = read_receipt(self.target)
        if receipt is None or (self.sha256 is not None and receipt.sha256 != self.sha256):
            return False
        return receipt.intact(self.target)

    def adopt_folder(self) -> bool:
        """Take a folder that a person made when it is the data set, and return whether there is one."""
        if not self.target.exists() or read_receipt(self.target) is not None:
            return False
        if self.target.is_dir() and not any(self.target.iterdir()):
            self.target.rmdir()
            return False
        try:
            verified_by = check_contents(self.entry, self.target)
        except DataError as error:
            raise DataError(
                f"{self.target} is there already but cannot be taken as {self.entry.name} ({error}): "
                "complete it or move it away, and run the same command again"
            ) from None
        if verified_by == "nothing" or self.sha256 is not None:
            raise DataError(
                f"{self.target} is there already, was not made by rankwood and cannot be verified: "
                "move it away, and run the same command again"
            )
        with contextlib.suppress(PermissionError):  # then it is verified again next time
            Receipt(self.entry.name, None, None, None, verified_by, list_files(self.target)).write(self.target)
        return True

    def tidy(self, work: Path) -> None:
        """Remove what a killed process left behind."""
        for staging in work.glob(f"{self.entry.name}-unpacking-*"):
            if (staging / "old").exists() and not self.target.exists():
                os.rename(staging / "old", self.target)
            shutil.rmtree(staging, ignore_errors=True)
        for unverified in work.glob(f"{self.entry.name}-????????/tmp*"):  # pooch's
            unverified.unlink()

    def run(self, work: Path) -> None:
        """Get the archive, install it, and clean up."""
        archive = self.placed_by_hand() or self.download(work)
        ours = archive.url is not None
        try:
            receipt = self.install(archive, work)
        except (NoRoom, OSError) as error:
            reason = writing_failed(error, self.root) if isinstance(error, OSError) else str(error)
            kept = "; the downloaded archive is kept: run the same command again then" if ours else ""
            raise DataError(f"{reason}{kept}") from None
        except DataError:
            if ours:
                archive.path.unlink(missing_ok=True)  # another run must not meet the same bad file
            raise
        if ours and self.keep_archive:
            os.replace(archive.path, self.root / self.entry.archive_name)
        for leftover in work.glob(f"{self.entry.name}-????????"):
            shutil.rmtree(leftover, ignore_errors=True)
        if archive.verified_by is None:
            self.say_unverified(receipt)

    def install(self, archive: _Archive, work: Path) -> Receipt:
        """Unpack beside the target, verify, and rename; returns the receipt."""
        self.say(f"unpacking {archive.path.name}")
        called = str(archive.path) if archive.url is None else f"the archive from {archive.url}"
        prefix = f"{self.entry.name}-unpacking-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=work, ignore_cleanup_errors=True) as staging:
            folder = Path(staging) / "data"
            try:
                unpack(archive.path, folder, called=called)
            except CorruptArchive as error:
                raise DataError(f"{error}: {self.what_to_do()}") from None
            except RarArchive as error:
                raise DataError(f"{error}: {self.unpack_by_hand()}, and run the same command again") from None
            receipt = self.verified(archive, folder)
            receipt.write(folder)
            _put_in_place(Path(staging), self.target)
        return receipt

    def verified(self, archive: _Archive, folder: Path) -> Receipt:
        """Return the receipt of what was unpacked, after comparing the files if the archive has no checksum."""
        if archive.verified_by == "sha256" and self.checksum is not None:
            digest = self.checksum[1]
        else:
            digest = file_digest(archive.path)
        try:
            verified_by = archive.verified_by or check_contents(self.entry, folder)
        except DataError as error:
            raise DataError(f"{error}; give sha256={digest} to take this archive nevertheless") from None
        return Receipt(self.entry.name, archive.path.name, archive.url, digest, verified_by, list_files(folder))

    def placed_by_hand(self) -> _Archive | None:
        """Return the archive that a person put into the folder, verified; None when there is none."""
        names = [self.entry.archive_name, self.entry.manual_name or self.entry.archive_name]
        path = next((self.root / name for name in names if (self.root / name).is_file()), None)
        if path is None or self.url is not None:
            return None
        if self.checksum is None:
            return _Archive(path, None, None)
        self.say(f"verifying {path.name}")
        algorithm, expected = self.checksum
        actual = file_digest(path, algorithm)
        if actual != expected:
            size, published = path.stat().st_size, self.entry.archive_bytes
            cut = f" ({size} bytes where {published} are published)" if published and size != published else ""
            trust = f", or give sha256={actual} if you trust it" if algorithm == "sha256" else ""
            raise DataError(
                f"{path} is not the published archive{cut}: its {algorithm} is {actual}, expected {expected}; "
                f"delete it and download it again{trust}"
            )
        return _Archive(path, None, algorithm)

    def download(self, work: Path) -> _Archive:
        """Download the archive from the first address that works."""
        urls = (self.url,) if self.url is not None else self.entry.urls
        if not urls:
            raise DataError(f"{self.entry.name} cannot be downloaded by a program: {self.what_to_do()}")
        if self.entry.archive_bytes is not None and self.url is None:
            kept = sum(part.stat().st_size for part in work.glob(f"{self.entry.name}-????????/*"))
            # The archive, and at least as much again when it is unpacked.
            require_space(work, max(2 * self.entry.archive_bytes - kept, 0), f"download and unpack {self.entry.name}")
        for package in ("pooch", "requests"):
            need(package, DOWNLOADING)  # said before the server is asked
        self.say(f"terms of {self.entry.name}: {self.entry.terms}")
        reasons = []
        for url in urls:
            try:
                return self.download_from(url, work)
            except DownloadError as error:
                reasons.append(error.reason)
                if error.local or error.kept:
                    raise DataError(f"{self.failed(reasons)}; {self.how_to_resume(error, work)}") from None
        raise DataError(f"{self.failed(reasons)}; {self.what_to_do()}")

    def download_from(self, url: str, work: Path) -> _Archive:
        """Download the archive from one address, and verify it if there is a checksum."""
        pooch = need("pooch", DOWNLOADING)
        address = _parsed_url(url)
        folder = work / f"{self.entry.name}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        file_name = re.sub(r"[^\w.-]", "_", Path(unquote(address.path)).name) or self.entry.archive_name
        as_published = self.url is None and self.sha256 is None
        downloader = ResumingDownloader(
            folder / "archive.part",
            expected_bytes=self.entry.archive_bytes if as_published else None,
            checked_later=self.checksum is not None,
            progress=self.progress,
        )
        self.say(f"downloading {self.entry.name} from {url}")
        known_hash = ":".join(self.checksum) if self.checksum else None
        try:
            with _quiet(pooch.get_logger()):
                path = pooch.retrieve(url, known_hash, fname=file_name, path=folder, downloader=downloader)
        except DataError:
            raise
        except ValueError as error:  # pooch: the checksum differs; it has deleted the file
            actual = re.search(r"but got ['\"]?([0-9a-f]{32,64})", str(error))
            got = f", got {actual[1]}" if actual else ""
            raise DataError(
                f"what {url} sent is not the published archive of {self.entry.name}: expected {known_hash}{got}; "
                "run the same command again, and if it happens again the file on the server has changed"
            ) from None
        except OSError as error:
            raise DataError(f"{self.failed([writing_failed(error, folder)])}; make room or choose another") from None
        return _Archive(Path(path), url, self.checksum[0] if self.checksum else None)

    def failed(self, reasons: list[str]) -> str:
        """Why there was no download."""
        return f"{self.entry.name} could not be downloaded: {'; '.join(dict.fromkeys(reasons))}"

    def how_to_resume(self, error: DownloadError, work: Path) -> str:
        """What the user can do after a download that stopped in the middle."""
        if not error.kept:
            return "make room there or choose another folder"
        room = "make room there, then " if error.local else ""
        return f"{room}run the same command again to resume after the {human_bytes(error.kept)} kept in {work}"

    def what_to_do(self) -> str:
        """What the user can do when a program cannot download the file."""
        name = self.entry.manual_name or self.entry.archive_name
        place = self.unpack_by_hand() if name.endswith(".rar") else f"put {name} into {self.root}"
        return f"{self.entry.instructions}, {place}, and run the same command again"

    def unpack_by_hand(self) -> str:
        """What the user can do with a RAR archive."""
        return f"unpack it with 7z or unrar into {self.target}"

    def say(self, sentence: str) -> None:
        """Tell what is being done."""
        if self.notify is not None:
            self.notify(sentence)

    def say_unverified(self, receipt: Receipt) -> None:
        """Tell or warn that the archive could not be verified."""
        sentence = (
            f"the archive of {self.entry.name} has no published checksum and could not be verified; "
            f"{_COMPARED[receipt.verified_by]}; to insist on this very file another time, give sha256={receipt.sha256}"
        )
        if self.notify is not None:
            self.notify(sentence)
        elif receipt.verified_by != "files":
            warnings.warn(sentence, stacklevel=4)


def _put_in_place(staging: Path, target: Path) -> None:
    """Rename `staging/data` to the target; an older, damaged folder goes, but a user's own files in it move along."""
    old = staging / "old"
    receipt = read_receipt(target)
    if target.exists():
        os.rename(target, old)
    try:
        os.rename(staging / "data", target)
    except BaseException:
        if old.exists():
            os.rename(old, target)
        raise
    if receipt is not None:
        for extra in list_files(old).keys() - receipt.files.keys():
            if not (target / extra).exists():
                (target / extra).parent.mkdir(parents=True, exist_ok=True)
                os.rename(old / extra, target / extra)


def _parsed_url(url: str) -> SplitResult:
    """Return the parts of an HTTP address, or raise an error."""
    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise DataError(f"{url} is not an address that can be downloaded: it must start with https:// or http://")
    return address


def _checked_sha256(sha256: str | None) -> str | None:
    """Return a checksum in lower case without prefix, or raise an error."""
    if sha256 is None:
        return None
    plain = sha256.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", plain):
        raise DataError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return plain


@contextlib.contextmanager
def _working_folder(root: Path) -> Iterator[Path]:
    """Make the folder for downloads and unpacking; it and new folders above it are removed when they are empty."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    work = root / WORK_FOLDER
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{writing_failed(error, root)}: choose another folder") from None
    try:
        yield work
    finally:
        for folder in (*work.glob("*-????????"), work, *missing):
            with contextlib.suppress(OSError):
                folder.rmdir()  # refuses when something is in it


@contextlib.contextmanager
def _only_one(lock: Path, name: str, root: Path) -> Iterator[None]:
    """Hold a lock, as two downloads into one part file would spoil each other."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, "fetching a data set"))
        except Held:
            raise DataError(f"{name} is being fetched into {root} by another process: wait for it") from None
        except OSError as error:
            raise DataError(f"{writing_failed(error, root)}: choose another folder") from None
        yield


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch, which announces downloads on standard error."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
