"""Ranking data as SVMlight text, with the side files of LightGBM and XGBoost: read whole, read in blocks, written."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset
from rankwood.data.queries import Queries, queries_of_runs
from rankwood.data.text import MAX_EXPANSION, PathLike, Progress, TextFile, as_paths, existing_file, text_writer
from rankwood.dtypes import LABEL, OFFSET, WEIGHT, AnyArray, FeatureMatrix, FloatArray, OffsetArray
from rankwood.errors import DataError
from rankwood.system import active_isa, resolve_threads

# The files that LightGBM and XGBoost keep beside a data file: sizes of queries, and weights.
#
# `FILE.query` (LightGBM) or `FILE.group` (XGBoost) has the number of documents of each query, one per line.
# `FILE.weight` has one weight per document (LightGBM) or per query (XGBoost). For `FILE.gz` they are looked for
# as `FILE.gz.query` and `FILE.query`.


Number = TypeVar("Number", int, float)


def side_file(path: Path, *suffixes: str) -> Path | None:
    """The first existing file beside `path` with one of the suffixes, or None."""
    stems = [path.name] + ([path.name[: -len(".gz")]] if path.name.endswith(".gz") else [])
    for stem in stems:
        for suffix in suffixes:
            beside = path.with_name(stem + suffix)
            if beside.is_file():
                return beside
    return None


def read_sizes(path: Path) -> OffsetArray:
    """Sizes of queries, one per line of a file."""
    return np.array(_numbers(path, _size, "the number of documents of a query"), dtype=OFFSET)


def read_weights(path: Path) -> FloatArray:
    """Weights, one per line of a file."""
    return np.array(_numbers(path, _weight, "a weight, a number that is not negative"), dtype=WEIGHT)


def _size(text: str) -> int:
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**62:
        raise ValueError
    return value


def _weight(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError
    return value


def _numbers(path: Path, convert: Callable[[str], Number], expected: str) -> list[Number]:
    numbers = []
    with open(existing_file(path), encoding="utf-8-sig", errors="backslashreplace") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text:
                continue
            try:
                numbers.append(convert(text))
            except ValueError:
                raise DataError(f"{path}, line {number}: expected {expected}, got {text[:40]!r}") from None
    return numbers


# Feeding SVMlight text to its native parser: windows of whole lines, read from files one after another.


_FIRST_WINDOW = 1 << 20  # enough to learn the shape of the data
_LONGEST_LINE = 256 << 20
_MOST_FEATURES = 10_000_000
_MATRIX_PER_TEXT = 256  # a matrix this much larger than its text comes from a wrong feature id ...
_SMALL_MATRIX = 256 << 20  # ... unless it is small all the same


@dataclass(frozen=True)
class Options:
    """Settings of the parser of SVMlight text.

    The first ones are those of `read_svmlight`.

    Parameters
    ----------
    window : int
        Bytes of text that are parsed at a time.
    chunk : int
        Bytes of text that are worth a thread.
    careful : bool
        Whether the fast parser is left out.
    max_rows : int, optional
        Most rows that are parsed at a time, when rows are taken as they come: short lines make large matrices of wide
        data.
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
    careful: bool = False
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
    """A parser of files whose rows pile up in `reader` until they are taken."""

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
    """Most bytes that the matrix may have, and the words for it: one wrong feature id must not ask for terabytes."""
    memory = 1 << 46
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    is_known = n_features is None and all(file.is_file() for file in files)  # a pipe has no size
    text = sum(os.stat(file).st_size * (20 if file.suffix == ".gz" else 1) for file in files)
    proportion = max(_SMALL_MATRIX, _MATRIX_PER_TEXT * text)
    if is_known and proportion < memory:
        return proportion, f"{_MATRIX_PER_TEXT} times its text; if that is right, pass n_features"
    return memory, f"the memory of this machine ({memory / 1e9:.1f} GB)"


# Ranking data as SVMlight text: `label qid:ID feature:value feature:value ... # comment`.


_SCANNED_ROWS = 65536
_PARSED_AT_ONCE = 4 << 20  # bytes of matrix, if blocks are smaller than that


def read_svmlight(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    absent: float = 0.0,
    zero_based: bool = False,
    beyond: Literal["error", "ignore"] = "error",
    doc_ids: bool = True,
    query_file: PathLike | Iterable[PathLike] | None = None,
    queries: Literal["required", "optional"] = "required",
    max_expansion: float = MAX_EXPANSION,
    n_threads: int | None = None,
    progress: Progress | None = None,
    _tuning: dict[str, Any] | None = None,  # for tests: fields of Options
) -> Dataset:
    r"""The data set in SVMlight text, plain or gzip, of one file or of several that follow each other.

    A line is `label qid:ID feature:value feature:value ... # comment`. Values are the nearest float32 to what is
    written: beyond its range an infinity, below its smallest number 0. `nan`, `na`, `null` and `?` in any case are
    missing values, `inf` is infinity. Query ids are int64 when every one is written as a plain whole number, else
    strings.

    `FILE.query` or `FILE.group` beside a data file gives the sizes of queries, for lines without `qid:ID`;
    `FILE.weight` gives weights of documents or of queries.

    Parameters
    ----------
    paths : path-like or iterable of path-like
    n_features : int, optional
        Number of features; the largest feature id decides unless given.
    absent : float, default 0.0
        Value of a feature that a line leaves out: 0.0, or NaN for missing.
    zero_based : bool, default False
        Whether feature ids start at 0, not at 1.
    beyond : {"error", "ignore"}, default "error"
        What happens to feature ids larger than `n_features`.
    doc_ids : bool, default True
        Whether document ids are kept: what follows `docid =` in a comment, else the whole comment.
    query_file : path-like or iterable of path-like, optional
        Files with the sizes of queries, one per data file, instead of those beside the data.
    queries : {"required", "optional"}, default "required"
        With "optional", a file without `qid:ID` and without sizes of queries is one query.
    max_expansion : float, default 200
        Most times its size that a gzip file may unpack to; 64 MB are always allowed. Data sets come nowhere near, files
        that are made to fill a machine do.
    n_threads : int, optional
        Every CPU is used unless given.
    progress : callable, optional
        Called now and then with the number of bytes read, and the number there are.

    Returns
    -------
    Dataset
        All documents, in the order of the files.

    Raises
    ------
    DataError
        A line is wrong; its number and what was expected stand in the message. It is the first such line, whatever the
        number of threads.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:1 1:0.5 3:7 # first\n0 qid:1 2:1e-3\n")
    >>> data = read_svmlight(path)
    >>> data.X.tolist(), data.y.tolist(), data.doc_ids.tolist()
    ([[0.5, 0.0, 7.0], [0.0, 0.0010000000474974513, 0.0]], [2.0, 0.0], ['first', ''])
    """
    if queries not in ("required", "optional"):
        raise DataError(f"queries must be 'required' or 'optional', got {queries!r}")
    active_isa()  # complains about a wrong RANKWOOD_ISA, which is no fault of the files
    files = as_paths(paths)
    side = _QuerySizes(files, query_file)
    threads = resolve_threads(n_threads)
    options = Options(n_features, absent, zero_based, beyond, doc_ids, threads, max_expansion, **(_tuning or {}))
    stream = SvmlightStream(files, options, progress)
    ends = [0]  # rows up to the end of each file
    for file in files:
        for _ in stream.parse(file):
            if queries == "required" and stream.reader.n_rows and not stream.reader.has_qid:
                side.require(file)  # before all the rest is read in vain
        ends.append(stream.reader.n_rows)
    has_qid = stream.reader.has_qid
    X, y, ids, lengths, names = stream.reader.take()
    if len(y) == 0:
        raise DataError(f"{files[0]}: there is no document, only blank lines and comments")
    if X.shape[1] == 0:
        raise DataError(f"{files[0]}: no line has a feature; expected lines such as '1 qid:7 1:0.5 2:3'")
    if has_qid:
        side.refuse()
    else:
        lengths = side.sizes(ends)
        ids = np.arange(len(lengths), dtype=OFFSET)
    data = Dataset(X, y, group=lengths).replace(queries=_queries(np.asarray(ids), lengths))
    return data.replace(doc_ids=names, **_find_weights(data, files, ends))


def open_svmlight(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    absent: float = 0.0,
    zero_based: bool = False,
    query_file: PathLike | Iterable[PathLike] | None = None,
    queries: Literal["required", "optional"] = "required",
    max_expansion: float = MAX_EXPANSION,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data set of `read_svmlight`, without names of documents, whose features are left in the files.

    The files are read once here, for labels, queries and the number of features, and once more whenever features are
    wanted; they may be larger than memory.

    Parameters
    ----------
    paths, n_features, absent, zero_based, query_file, queries, max_expansion, n_threads, progress
        As for `read_svmlight`.
    """
    if queries not in ("required", "optional"):
        raise DataError(f"queries must be 'required' or 'optional', got {queries!r}")
    active_isa()
    files = as_paths(paths)
    side = _QuerySizes(files, query_file)
    threads = resolve_threads(n_threads)
    options = Options(n_features, absent, zero_based, "error", False, threads, max_expansion, max_rows=_SCANNED_ROWS)
    stream = SvmlightStream(files, options, progress)
    width, ends = 0, [0]
    taken: list[tuple[FloatArray, AnyArray, OffsetArray]] = []
    for file in files:
        n_rows = 0
        for _ in stream.parse(file):
            if stream.reader.n_rows == 0:
                continue
            if queries == "required" and not stream.reader.has_qid:
                side.require(file)
            X, y, ids, lengths, _names = stream.reader.take()
            taken.append((y, np.asarray(ids), lengths))
            width, n_rows = max(width, X.shape[1]), n_rows + len(y)
        ends.append(ends[-1] + n_rows)
    if ends[-1] == 0:
        raise DataError(f"{files[0]}: there is no document, only blank lines and comments")
    if width == 0:
        raise DataError(f"{files[0]}: no line has a feature; expected lines such as '1 qid:7 1:0.5 2:3'")
    if stream.reader.has_qid:
        side.refuse()
        ids, lengths = np.concatenate([ids for _, ids, _ in taken]), np.concatenate([sizes for _, _, sizes in taken])
    else:
        lengths = side.sizes(ends)
        ids = np.arange(len(lengths), dtype=OFFSET)
    features = partial(
        iter_svmlight,
        files,
        n_features=width,
        rows_per_block=min(max(_BLOCK // (4 * width), 1), _SCANNED_ROWS),
        absent=absent,
        zero_based=zero_based,
        max_expansion=max_expansion,
        n_threads=n_threads,
    )
    data = Dataset.without_matrix(
        np.concatenate([y for y, _, _ in taken]),
        n_features=width,
        queries=_queries(ids, lengths),
        read_blocks=partial(_features_of, features),
    )
    return data.replace(**_find_weights(data, files, ends))


def _features_of(blocks: Callable[[], Iterator[Block]]) -> Iterator[FeatureMatrix]:
    for block in blocks():
        yield block.X


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a data file.

    Parameters
    ----------
    X : float32 matrix
        Features.
    y : array of float64
        Labels.
    qid : array or None
        Query ids; None when lines have none.
    doc_ids : list of str or None
        Document ids; None when no row has one.
    """

    X: FeatureMatrix
    y: FloatArray
    qid: AnyArray | None
    doc_ids: list[str] | None


def iter_svmlight(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int,
    rows_per_block: int = 65536,
    absent: float = 0.0,
    zero_based: bool = False,
    beyond: Literal["error", "ignore"] = "error",
    doc_ids: bool = False,
    max_expansion: float = MAX_EXPANSION,
    n_threads: int | None = None,
    progress: Progress | None = None,
    _tuning: dict[str, Any] | None = None,  # for tests: fields of Options
) -> Iterator[Block]:
    r"""The rows of SVMlight text in blocks, so that files may be larger than memory.

    Parameters
    ----------
    paths : path-like or iterable of path-like
    n_features : int
        Number of features of every block.
    rows_per_block : int, default 65536
        Most rows of a block. A query may go on in the next block.
    absent : float, default 0.0
        Value of a feature that a line leaves out: 0.0, or NaN for missing.
    zero_based : bool, default False
        Whether feature ids start at 0, not at 1.
    beyond : {"error", "ignore"}, default "error"
        What happens to feature ids larger than `n_features`.
    doc_ids : bool, default False
        Whether document ids are kept.
    max_expansion : float, default 200
        Most times its size that a gzip file may unpack to; 64 MB are always allowed.
    n_threads : int, optional
        Every CPU is used unless given.
    progress : callable, optional
        Called now and then with the number of bytes read, and the number there are.

    Yields
    ------
    Block
        With attributes `X`, `y`, `qid` (None when lines have none) and `doc_ids` (None when there are none).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("0 qid:1 1:0.5\n0 qid:1 2:1\n1 qid:2 1:3\n")
    >>> [block.X.tolist() for block in iter_svmlight(path, n_features=2, rows_per_block=2)]
    [[[0.5, 0.0], [0.0, 1.0]], [[3.0, 0.0]]]
    """
    if n_features is None or not isinstance(rows_per_block, (int, np.integer)) or rows_per_block < 1:
        raise DataError("iter_svmlight needs n_features, and at least 1 row per block")
    active_isa()  # as above
    files = as_paths(paths)
    threads = resolve_threads(n_threads)
    options = Options(n_features, absent, zero_based, beyond, doc_ids, threads, max_expansion, **(_tuning or {}))
    if options.max_rows is None:
        options = replace(options, max_rows=max(int(rows_per_block), _PARSED_AT_ONCE // (4 * n_features)))
    stream = SvmlightStream(files, options, progress)
    for file in files:
        for _ in stream.parse(file):
            if stream.reader.n_rows >= rows_per_block:
                yield from _blocks(stream.reader, rows_per_block)
    yield from _blocks(stream.reader, rows_per_block)


def _blocks(reader: _native.SvmlightReader, rows_per_block: int) -> Iterator[Block]:
    has_qid = reader.has_qid
    X, y, run_ids, run_lengths, names = reader.take()
    qid = np.repeat(np.asarray(run_ids), run_lengths) if has_qid else None
    for start in range(0, len(y), rows_per_block):
        rows = slice(start, start + rows_per_block)
        yield Block(
            X=X[rows],
            y=y[rows],
            qid=None if qid is None else qid[rows],
            doc_ids=None if names is None else names[rows],
        )


class _QuerySizes:
    """Sizes of queries from side files, for lines that have no query id."""

    def __init__(self, files: list[Path], query_file: PathLike | Iterable[PathLike] | None) -> None:
        self._files = files
        self._given = query_file is not None
        self._side: list[Path | None]
        if query_file is None:
            self._side = [side_file(file, ".query", ".group") for file in files]
        else:
            self._side = list(as_paths(query_file))
            if len(self._side) != len(files):
                raise DataError(f"query_file has {len(self._side)} files for {len(files)} data files")

    def require(self, file: Path) -> None:
        if self._side[self._files.index(file)] is None:
            raise DataError(
                f"{file}: lines have no 'qid:ID', and there is no {file.name}.query beside it: "
                "give query_file, or queries='optional' to take the file as one query"
            )

    def refuse(self) -> None:
        if self._given:
            raise DataError(f"{self._files[0]}: lines have query ids, so query_file cannot be used; leave it out")

    def sizes(self, ends: list[int]) -> OffsetArray:
        """Sizes of all queries; `ends` are the numbers of rows before each file, and in all."""
        parts = []
        for file, side, n_rows in zip(self._files, self._side, np.diff(ends).tolist(), strict=True):
            part = np.array([n_rows], dtype=OFFSET) if side is None else read_sizes(side)
            if part.sum() != n_rows:
                raise DataError(
                    f"{side}: the sizes of queries add up to {part.sum()}, but {file} has {n_rows} documents"
                )
            parts.append(part)
        return np.concatenate(parts)


def _queries(ids: AnyArray, lengths: OffsetArray) -> Queries:
    """Rows grouped by query, from runs of rows with one query id; a query may have several runs, one may be empty."""
    if len(ids) and (lengths == 0).any():  # sizes in a file beside the data
        return Queries(ids=ids, offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(OFFSET), order=None)
    return queries_of_runs(ids, lengths)


def _find_weights(data: Dataset, files: list[Path], ends: list[int]) -> dict[str, FloatArray]:
    """Weights from the files beside the data, by argument of `Dataset`: of documents, or else of queries."""
    side = [side_file(file, ".weight") for file in files]
    found = [path for path in side if path is not None]
    if not found:
        return {}
    if len(found) < len(files):
        raise DataError(f"{found[0]} gives weights, but {files[side.index(None)]} has no such file beside it")
    parts = [read_weights(path) for path in found]
    weights = np.concatenate(parts)
    if [len(part) for part in parts] == np.diff(ends).tolist():
        return {"weights": weights}
    if len(weights) == data.n_queries:
        return {"query_weights": weights}
    sizes = f"the {data.n_docs} documents nor the {data.n_queries} queries"
    raise DataError(f"{found[0]}: {len(weights)} weights fit neither {sizes}")


# Writing SVMlight text.


_BLOCK = 16 << 20  # about as many bytes of text are made at a time


def write_svmlight(
    data: Dataset,
    path: PathLike,
    *,
    absent: float | None = None,
    zero_based: bool = False,
    doc_ids: bool = True,
    n_threads: int | None = None,
) -> None:
    r"""Write a data set as SVMlight text, which `read_svmlight` reads back as the same data.

    Every value has as many digits as it takes to read back the same float32. Data without labels get label 0. Weights
    go to a file of their own beside it, with `.weight` added to the name.

    Parameters
    ----------
    data : Dataset
        What is written.
    path : path-like
        The file, written whole or not at all; packed when its name ends in `.gz`.
    absent : float, optional
        Features with this value, 0.0 or NaN, are left out, as `read_svmlight(absent=...)` expects; none unless given.
    zero_based : bool, default False
        Whether the first feature is 0, not 1.
    doc_ids : bool, default True
        Whether document ids are written as comments.
    n_threads : int, optional
        Every CPU is used unless given.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> rw.write_svmlight(rw.Dataset([[0.1, 0.0]], [1], qid=[7], doc_ids=["a"]), path)
    >>> path.read_text()
    '1 qid:7 1:0.1 2:0 # a\n'
    """
    _check_weights(data, path)
    text = svmlight_text(data, absent=absent, zero_based=zero_based, doc_ids=doc_ids, n_threads=n_threads)
    with text_writer(path) as file:
        file.writelines(text)
    weights = data.weights if data.weights is not None else data.query_weights
    if weights is not None:
        _write_weights(os.fspath(path) + ".weight", weights)


def svmlight_text(
    data: Dataset,
    *,
    absent: float | None = None,
    zero_based: bool = False,
    doc_ids: bool = True,
    n_threads: int | None = None,
) -> Iterator[bytes]:
    r"""Yield a data set as pieces of SVMlight text, without weights.

    Parameters
    ----------
    data, absent, zero_based, doc_ids, n_threads
        As for `write_svmlight`.

    Examples
    --------
    >>> import rankwood as rw
    >>> b"".join(svmlight_text(rw.Dataset([[0.1, 0.0]], [1], qid=[7]), absent=0.0))
    b'1 qid:7 1:0.1\n'
    """
    threads = resolve_threads(n_threads)
    id_text, id_ends = _joined([_query_id(value) for value in data.queries.ids.tolist()])
    labels = data.y if data.has_labels else np.zeros(data.n_docs, dtype=LABEL)
    query = data.queries.index
    names = data.doc_ids if doc_ids else None
    block = max(1, _BLOCK // (16 + 12 * data.n_features))
    for start in range(0, data.n_docs, block):
        rows = slice(start, start + block)
        comment_text, comment_ends = _comments(names, start, rows)
        yield from _native.format_svmlight(
            np.ascontiguousarray(data.X[rows]),
            np.ascontiguousarray(labels[rows]),
            np.ascontiguousarray(query[rows]),
            id_text,
            id_ends,
            comment_text,
            comment_ends,
            zero_based=zero_based,
            absent=None if absent is None else float(absent),
            n_threads=threads,
        )


def _query_id(value: object) -> bytes:
    text = str(value)
    if not text or "#" in text or any(character <= " " for character in text):
        raise DataError(f"query id {text!r} cannot be written: it must have no blanks and no '#'")
    return text.encode("utf-8", errors="surrogatepass")


def _comments(names: AnyArray | None, start: int, rows: slice) -> tuple[bytes, OffsetArray | None]:
    if names is None:
        return b"", None
    texts = [str(name) for name in names[rows]]
    for row, text in enumerate(texts, start):
        if "\n" in text:
            raise DataError(f"document id {text!r} of row {row} cannot be written: it has a line feed")
    return _joined([text.encode("utf-8", errors="surrogatepass") for text in texts])


def _joined(texts: list[bytes]) -> tuple[bytes, OffsetArray]:
    return b"".join(texts), np.cumsum([len(text) for text in texts], dtype=OFFSET)


def _check_weights(data: Dataset, path: PathLike) -> None:
    """Refuse two kinds of weights, and a weight file of other data that would be read with this data."""
    if data.weights is not None and data.query_weights is not None:
        raise DataError("weights of documents and weights of queries cannot both be written: set one of them to None")
    stale = side_file(Path(path), ".weight")
    if stale is not None and data.weights is None and data.query_weights is None:
        raise DataError(f"{stale} would be read as the weights of {os.fspath(path)}, which has none: remove it first")


def _write_weights(path: str, weights: FloatArray) -> None:
    with atomic_write(path, "w") as file:
        file.writelines(f"{weight!r}\n" for weight in weights.tolist())
