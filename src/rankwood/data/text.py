"""Text files as windows of bytes: plain or gzip, without ever holding a whole file in memory."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.atomic import atomic_write
from rankwood.errors import DataError
from rankwood.printable import human_bytes

# Ranking data as text packs to a tenth or so; deflate cannot exceed 1032, which only made-up files reach.
MAX_EXPANSION = 200
SMALL = 64 * 1024 * 1024  # what is packed may always swell to this

PathLike: TypeAlias = "str | os.PathLike[str]"

Progress: TypeAlias = Callable[[int, int], None]  # bytes of the files read so far, and of all files

_GZIP = b"\x1f\x8b"
_OTHER_COMPRESSION = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
_COMPRESSED_BLOCK = 1 << 18


def as_paths(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """One path or several, as a list of existing files; a folder stands for the Parquet files in it, by name.

    Examples
    --------
    >>> as_paths("no/such.txt")
    Traceback (most recent call last):
        ...
    rankwood.errors.DataError: no/such.txt: there is no such file
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise DataError("no data file was given")
    in_folders = [sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [] for path in several]
    return [
        existing_file(file) for path, found in zip(several, in_folders, strict=True) for file in found or [Path(path)]
    ]


def existing_file(path: PathLike) -> Path:
    """The path of a file that can be read, or a DataError that says why it cannot."""
    file = Path(path)
    try:
        mode = os.stat(file).st_mode
    except OSError as error:
        raise DataError(_refusal(file, error)) from None
    except ValueError as error:  # a NUL character
        raise DataError(f"{os.fspath(path)!r} cannot be the name of a file: {error}") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{file}: this is a folder, a file was expected")
    if stat.S_ISREG(mode) and os.stat(file).st_size == 0:
        raise DataError(f"{file}: the file is empty")
    if not os.access(file, os.R_OK):
        raise DataError(f"{file}: no permission to read it")
    return file


State: TypeAlias = tuple[int, int, int]  # of a file: what changes when it is written or another one takes its place


def file_state(path: PathLike) -> State | None:
    """What changes when a file is written or replaced; None when it is not there."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _refusal(file: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{file}: there is no such file"
    if isinstance(error, PermissionError):
        return f"{file}: no permission to read it"
    return f"{file}: cannot be read: {error.strerror or error}"


@contextmanager
def text_writer(path: PathLike) -> Iterator[BinaryIO]:
    """A file opened for bytes, packed when its name ends in `.gz`; it appears when all is written."""
    with atomic_write(path) as file:
        if not os.fspath(path).endswith(".gz"):
            yield cast(BinaryIO, file)
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
            yield cast(BinaryIO, packed)


class TextFile:
    """A plain or gzip file (told by its first bytes), read from front to back.

    Parameters
    ----------
    path : Path
    n_threads : int, default 1
        How many threads read at the same time.
    max_expansion : float, default 200
        Packed text may be so many times as large as the file, and 64 MB in any case.

    Attributes
    ----------
    size, position : int
        Its size on disk, and how much of that has been read: what a progress bar shows.
    """

    def __init__(self, path: Path, n_threads: int = 1, max_expansion: float = MAX_EXPANSION) -> None:
        self.path = path
        self._n_threads = n_threads
        self._file: BinaryIO
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by close()
            status = os.fstat(self._file.fileno())
            self._head = b"" if stat.S_ISREG(status.st_mode) else self._peek_stream()
            head = self._head or self._peek()
        except OSError as error:
            raise DataError(_refusal(path, error)) from None
        self.size = status.st_size
        self.position = 0
        self._in_parallel = stat.S_ISREG(status.st_mode) and hasattr(_native, "read_at")
        self.is_gzip = head.startswith(_GZIP)
        self._gzip = _Gunzip(path, self._read_block, self._most_text) if self.is_gzip else None
        self._max_expansion = max_expansion
        for magic, name in _OTHER_COMPRESSION.items():
            if head.startswith(magic):
                self.close()
                raise DataError(f"{path}: this is {name} data; unpack it first (only gzip is read as it is)")

    def close(self) -> None:
        self._file.close()

    def read_into(self, to: NDArray[np.uint8]) -> int:
        """Fill `to` from its start and return the number of bytes, less than its size only at the end of the file."""
        try:
            if self._gzip is not None:
                return self._gzip.read_into(to)
            if self._in_parallel:
                return self._read_in_parallel(to)
            n = 0
            while n < len(to) and (block := self._read_block(len(to) - n)):
                to[n : n + len(block)] = np.frombuffer(block, np.uint8)
                n += len(block)
            return n
        except OSError as error:
            raise DataError(_refusal(self.path, error)) from None

    def _most_text(self) -> float:
        """Most bytes that packed text may have; of a pipe it goes by what has come so far."""
        return max(SMALL, self._max_expansion * max(self.size, self.position))

    def _read_in_parallel(self, to: NDArray[np.uint8]) -> int:
        n = _native.read_at(self._file.fileno(), self.position, to, self._n_threads)
        if n < 0:
            raise OSError(-n, os.strerror(-n))
        self.position += n
        return n

    def _read_block(self, size: int) -> bytes:
        if self._head:
            block, self._head = self._head[:size], self._head[size:]
        else:
            block = self._file.read(size) or b""
        self.position += len(block)
        return block

    def _peek(self) -> bytes:
        head = self._file.read(8) or b""
        self._file.seek(0)
        return head

    def _peek_stream(self) -> bytes:
        head = b""
        while len(head) < 8 and (more := self._file.read(8 - len(head))):
            head += more
        return head


class _Gunzip:
    """Unpacks gzip data of any number of members; `most_text` returns how many bytes it may be in all."""

    def __init__(self, path: Path, read_block: Callable[[int], bytes], most_text: Callable[[], float]) -> None:
        self._path = path
        self._read_block = read_block
        self._most_text = most_text
        self._total = 0
        self._member = zlib.decompressobj(wbits=31)
        self._inside = False  # between the start and the end of a member
        self._packed = b""

    def read_into(self, to: NDArray[np.uint8]) -> int:
        n = 0
        while n < len(to) and self._has_packed():
            try:
                text = self._member.decompress(self._packed, len(to) - n)
            except zlib.error as error:
                raise DataError(f"{self._path}: damaged gzip data: {error}") from None
            self._inside = not self._member.eof
            self._packed = self._member.unconsumed_tail
            to[n : n + len(text)] = np.frombuffer(text, np.uint8)
            n += len(text)
            self._total += len(text)
            if self._total > self._most_text():
                raise DataError(
                    f"{self._path}: the gzip data swells beyond reason, to more than {human_bytes(self._most_text())}; "
                    "if that is right, unpack it first, or pass a larger max_expansion"
                )
            if self._member.eof:
                self._packed = self._member.unused_data.lstrip(b"\0")  # members may be padded
                self._member = zlib.decompressobj(wbits=31)
        return n

    def _has_packed(self) -> bool:
        """Read packed data to go on with; False at a proper end."""
        while not self._packed:
            more = self._read_block(_COMPRESSED_BLOCK)
            if not more and self._inside:
                raise DataError(f"{self._path}: the gzip data ends too early; is the file complete?")
            if not more:
                return False
            self._packed = more if self._inside else more.lstrip(b"\0")
        if not self._inside and not _GZIP.startswith(self._packed[:2]):
            raise DataError(f"{self._path}: something that is not gzip follows the gzip data")
        return True


def kind_of_all(files: list[Path]) -> Literal["csv", "parquet", "svmlight"]:
    """Kind of files that are all of one kind, by their names; else an error."""
    kinds = [file_kind(file) for file in files]
    if len(set(kinds)) > 1:
        other = next(file for file, kind in zip(files, kinds, strict=True) if kind != kinds[0])
        raise DataError(f"{files[0]} and {other} are files of different kinds; give files of one kind")
    return kinds[0]


def file_kind(path: Path) -> Literal["csv", "parquet", "svmlight"]:
    """Kind of a data file, by its name.

    Examples
    --------
    >>> file_kind(Path("train.csv.gz")), file_kind(Path("train.parquet")), file_kind(Path("S1.txt"))
    ('csv', 'parquet', 'svmlight')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in (".csv", ".tsv"):
        return "csv"
    return "parquet" if last == ".parquet" else "svmlight"
