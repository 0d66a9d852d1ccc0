"""Feeding SVMlight text to its native parser: windows of whole lines, read from files one after another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.disk import MAX_EXPANSION
from rankwood.data.text import TextFile
from rankwood.errors import DataError

Progress: TypeAlias = Callable[[int, int], None]  # bytes of the files read so far, and of all files

_FIRST_WINDOW = 1 << 20  # enough to learn the shape of the data
_LONGEST_LINE = 256 << 20
_MOST_FEATURES = 10_000_000
_MATRIX_PER_TEXT = 256  # a matrix this much larger than its text comes from a wrong feature id ...
_SMALL_MATRIX = 256 << 20  # ... unless it is small all the same


@dataclass(frozen=True)
class Options:
    """How lines are read. `window` and `chunk` are bytes of text: parsed at a time, and worth a thread.

    With `max_rows`, no more are parsed at a time, because short lines make large matrices of wide data, and rows are
    expected to be taken as they come.
    """

    n_features: int | None
    absent: float
    zero_based: bool
    beyond: Literal["error", "ignore"]
    doc_ids: bool
    n_threads: int
    max_expansion: float = MAX_EXPANSION
    window: int = 8 << 20
    chunk: int = 1 << 18
    careful: bool = False  # without the fast parser
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.n_features is not None and not _is_whole(self.n_features):
            raise DataError(f"n_features must be a whole number, got {self.n_features!r}")
        if not _is_number(self.absent):
            raise DataError(f"absent must be a number, 0.0 or NaN, got {self.absent!r}")
        if self.n_features is not None and not 1 <= self.n_features <= _MOST_FEATURES:
            raise DataError(f"n_features must lie between 1 and {_MOST_FEATURES}, got {self.n_features}")
        if not _is_number(self.max_expansion) or not self.max_expansion > 0:
            raise DataError(f"max_expansion must be a number above 0, got {self.max_expansion!r}")
        if self.beyond not in ("error", "ignore"):
            raise DataError(f"beyond must be 'error' or 'ignore', got {self.beyond!r}")


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, (str, bytes, bool))


class SvmlightStream:
    """Parses files; the rows pile up in `reader` until they are taken."""

    def __init__(self, files: list[Path], options: Options, progress: Progress | None) -> None:
        self._options = options
        self._progress = progress
        self._total = sum(os.stat(file).st_size for file in files)
        self._done = 0  # bytes of the files before this one
        max_bytes, max_text = _largest_matrix(files, options.n_features)
        self.reader = _native.SvmlightReader(
            None if options.n_features is None else int(options.n_features),
            ignore_beyond=options.beyond == "ignore",
            absent=float(options.absent),
            zero_based=options.zero_based,
            document_ids=options.doc_ids,
            max_bytes=max_bytes,
            max_text=max_text,
            max_rows=options.max_rows,
            chunk_bytes=options.chunk,
            careful_only=options.careful,
        )

    def parse(self, file: Path) -> Iterator[None]:
        """Parse one file, a window at a time; yield after each, so that the caller (and Ctrl-C) gets a turn."""
        pad = _native.TEXT_PADDING
        buffer = _padded(self._options.window)
        size = min(self._options.window, _FIRST_WINDOW)
        kept = 0  # bytes of the line that the last window cut off
        self.reader.start_file()
        text = TextFile(file, self._options.n_threads, self._options.max_expansion)
        try:
            while True:
                size_now = kept + text.read_into(buffer[pad + kept : pad + size])
                last = size_now < size
                done = 0  # bytes of the window
                while used := self._parse_window(text, buffer[done:], size_now - done, last):
                    done += used
                    yield
                    if done >= size_now:
                        break
                if last:
                    break
                kept = size_now - done
                buffer[pad : pad + kept] = buffer[pad + done : pad + size_now]
                if done == 0:  # the window is less than a line
                    buffer = _grown(buffer, 2 * size, file)
                size = len(buffer) - 2 * pad
        finally:
            text.close()
        self._done += text.size

    def _parse_window(self, text: TextFile, buffer: NDArray[np.uint8], size: int, last: bool) -> int:
        # Room for all the rest, unless rows are taken as they come.
        is_kept = self._options.max_rows is None and not text.is_gzip
        text_left = max(self._total - self._done - text.position, 0) if is_kept else 0
        try:
            used = self.reader.parse(buffer, size, last, text_left, self._options.n_threads)
        except ValueError as error:
            separator = ", " if str(error).startswith("line ") else ": "
            raise DataError(f"{text.path}{separator}{error}") from None
        except MemoryError:
            raise DataError(f"{text.path}: the matrix does not fit into memory") from None
        if self._progress is not None:
            self._progress(self._done + text.position, self._total)
        return used


def _padded(size: int) -> NDArray[np.uint8]:
    pad = _native.TEXT_PADDING
    buffer = np.empty(size + 2 * pad, dtype=np.uint8)
    buffer[:pad] = buffer[-pad:] = ord("\n")
    return buffer


def _grown(buffer: NDArray[np.uint8], size: int, file: Path) -> NDArray[np.uint8]:
    if size > _LONGEST_LINE:
        raise DataError(f"{file}: a line is longer than {_LONGEST_LINE >> 20} MB: this is no SVMlight text")
    larger = _padded(max(size, len(buffer)))
    larger[: len(buffer)] = buffer
    return larger


def _largest_matrix(files: list[Path], n_features: int | None) -> tuple[int, str]:
    """How many bytes the matrix may have, and the words for it: one wrong id must not ask for terabytes."""
    memory = 1 << 46
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    is_known = n_features is None and all(file.is_file() for file in files)  # a pipe has no size
    text = sum(os.stat(file).st_size * (20 if file.suffix == ".gz" else 1) for file in files)
    proportion = max(_SMALL_MATRIX, _MATRIX_PER_TEXT * text)
    if is_known and proportion < memory:
        return proportion, f"{_MATRIX_PER_TEXT} times its text; if that is right, pass n_features"
    return memory, f"the memory of this machine ({memory / 1e9:.1f} GB)"
