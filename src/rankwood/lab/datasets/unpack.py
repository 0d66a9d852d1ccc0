"""Unpacking of archives that are not trusted.

Only plain files and folders below the target are made; names that lead outside it, links, devices, and archives that
expand too much are refused. The kind of archive is told by its bytes, not by its name.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, cast

from rankwood.data.text import MAX_EXPANSION, SMALL
from rankwood.errors import DataError
from rankwood.lab.datasets.download import NoRoom, require_space, write, writing_failed
from rankwood.printable import human_bytes

CHUNK = 1024 * 1024
MAX_FILES = 10_000

_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError)


class CorruptArchive(DataError):
    """The bytes are not a complete archive; downloading it again may help."""


class RarArchive(DataError):
    """A RAR archive, which only a person can unpack."""


def unpack(archive: Path, target: Path, *, called: str | None = None) -> list[Path]:
    """Unpack a zip, tar.gz, tar.bz2, tar or gz archive into a new folder, and return the files made.

    Parameters
    ----------
    archive : Path
    target : Path
        The folder. Files that were unpacked before an error stay in it; the caller removes it.
    called : str, optional
        What errors call the archive; its path unless given.

    Raises
    ------
    CorruptArchive, RarArchive, NoRoom, DataError
        When it is damaged, a RAR archive, larger than the disk, or unsafe.
    """
    called = called or str(archive)
    kind = archive_kind(archive, called)
    limit = max(MAX_EXPANSION * archive.stat().st_size, SMALL)
    writer = _Writer(called, target, limit)
    try:
        target.mkdir(parents=True)
        with archive.open("rb") as file:
            if kind == "zip":
                _unpack_zip(file, writer)
            elif kind == "gz":
                writer.add(archive.name.removesuffix(".gz"), _gunzipped(file))
            else:
                _unpack_tar(file, kind, writer)
    except _BROKEN as error:
        raise CorruptArchive(f"{called} is damaged or incomplete ({_brief(error)})") from None
    except (NotImplementedError, RuntimeError) as error:  # zipfile: an exotic method, or a password
        raise DataError(f"{called} cannot be unpacked ({_brief(error)})") from None
    except OSError as error:
        if error.errno is None:  # from a decompressor: gzip's bad header or checksum, bz2's bad data
            raise CorruptArchive(f"{called} is damaged or incomplete ({_brief(error)})") from None
        raise NoRoom(f"{called} could not be unpacked: {writing_failed(error, target.parent)}") from None
    if not writer.files:
        raise CorruptArchive(f"{called} is an empty archive")
    return writer.files


def archive_kind(path: Path, called: str) -> str:
    """Return "zip", "tar", "tar.gz", "tar.bz2" or "gz" by the first bytes, or raise a DataError."""
    with path.open("rb") as file:
        head = file.read(tarfile.BLOCKSIZE)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "tar.gz" if _is_tar(_first_gunzipped_block(path)) else "gz"
    if head.startswith(b"BZh"):
        return "tar.bz2"
    if head.startswith(b"Rar!"):
        raise RarArchive(f"{called} is a RAR archive, which Python cannot unpack")
    if head.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise CorruptArchive(f"{called} is a web page, not an archive")
    if _is_tar(head):
        return "tar"
    raise CorruptArchive(f"{called} is not a zip, tar.gz, tar.bz2 or gz archive")


def _gunzipped(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=file))


def _first_gunzipped_block(path: Path) -> bytes:
    """Return the first block of what is inside a gzip file; nothing when it is damaged."""
    with path.open("rb") as file:
        try:
            return _gunzipped(file).read(tarfile.BLOCKSIZE)
        except (OSError, EOFError, zlib.error):
            return b""


def _is_tar(block: bytes) -> bool:
    """Whether a block is the header of a tar archive."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")  # compares the header's checksum
    except tarfile.HeaderError:
        return False
    return True


class _Writer:
    """Writes members of an archive below a folder, within limits of size and number."""

    def __init__(self, called: str, target: Path, limit: int) -> None:
        self.called, self.target, self.limit = called, target, limit
        self.total = 0
        self.files: list[Path] = []

    def add(self, name: str, content: IO[bytes]) -> None:
        """Write one member."""
        path = self.target.joinpath(*self.parts(name))
        if len(self.files) >= MAX_FILES:
            raise DataError(f"{self.called} holds more than {MAX_FILES} files: it is no ranking data set")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("xb", buffering=0)
        except (FileExistsError, NotADirectoryError):
            raise DataError(f"{self.called} holds {name!r} twice, or as a file and a folder") from None
        with file, content:
            while chunk := content.read(CHUNK):
                self.total += len(chunk)
                if self.total > self.limit:
                    raise DataError(
                        f"{self.called} swells beyond reason, to more than {human_bytes(self.limit)}: "
                        "refused as a likely attack"
                    )
                write(file, chunk)
        self.files.append(path)

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the parts of a member's path, or raise a DataError when it leads outside the folder."""
        path = PurePosixPath(name.replace("\\", "/"))
        outside = path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts)
        if outside or not path.parts or "\0" in name:
            raise DataError(f"{self.called} holds the unsafe name {name!r}, which leads outside its folder: refused")
        return path.parts

    def refuse(self, name: str, what: str) -> DataError:
        """Return the error for a member that is no plain file."""
        return DataError(f"{self.called} holds {name!r}, {what} and not a plain file: refused as unsafe")


def _unpack_zip(file: IO[bytes], writer: _Writer) -> None:
    """Unpack a zip archive."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        require_space(writer.target.parent, sum(member.file_size for member in members), "unpack the archive")
        for member in members:
            mode = member.external_attr >> 16
            if member.is_dir():
                writer.parts(member.filename)
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise writer.refuse(member.filename, "a link" if stat.S_ISLNK(mode) else "a special file")
            else:
                writer.add(member.filename, archive.open(member))


def _unpack_tar(file: IO[bytes], kind: str, writer: _Writer) -> None:
    """Unpack a tar archive, compressed or not."""
    with _decompressed(file, kind) as plain:
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            for member in archive:
                if member.isdir():
                    if PurePosixPath(member.name).parts:  # "." itself is harmless
                        writer.parts(member.name)
                elif not member.isfile():
                    raise writer.refuse(member.name, "a link" if member.issym() or member.islnk() else "a special file")
                else:
                    content = archive.extractfile(member)
                    if content is None:
                        raise writer.refuse(member.name, "something unreadable")
                    writer.add(member.name, content)
        # Read to the end, so that the decompressor compares its checksum and a truncated file is an error.
        while plain.read(CHUNK):
            pass


def _decompressed(file: IO[bytes], kind: str) -> IO[bytes]:
    if kind == "tar.gz":
        return _gunzipped(file)
    return bz2.BZ2File(file) if kind == "tar.bz2" else file


def _brief(error: BaseException) -> str:
    return str(error) or type(error).__name__
