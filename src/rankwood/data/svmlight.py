"""Ranking data as SVMlight text: `label qid:ID feature:value feature:value ... # comment`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwood import _native
from rankwood.data.dataset import Dataset
from rankwood.data.disk import MAX_EXPANSION
from rankwood.data.queries import Queries
from rankwood.data.side_files import read_sizes, read_weights, side_file
from rankwood.data.svmlight_stream import Options, Progress, SvmlightStream
from rankwood.data.text import PathLike, as_paths
from rankwood.dtypes import OFFSET, AnyArray, FeatureMatrix, FloatArray, OffsetArray
from rankwood.errors import DataError
from rankwood.isa import active_isa
from rankwood.threads import resolve_threads

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
    """Read SVMlight text, plain or gzip, from one file or from several that follow each other.

    n_features     number of features; else the largest feature id decides
    absent         value of a feature that a line leaves out: 0.0, or NaN for missing
    zero_based     feature ids start at 0, not at 1
    beyond         what to do with feature ids larger than n_features
    doc_ids        keep document ids: what follows `docid =` in a comment, else the whole comment
    query_file     file with the sizes of the queries, for lines without `qid:ID`; else `FILE.query` or `FILE.group`
                   is looked for beside the data. `FILE.weight` beside it gives weights of documents or of queries
    queries        "optional": lines without `qid:ID` and without such a file make up one query
    max_expansion  a gzip file may unpack to so many times its size, and to 64 MB in any case: data sets come nowhere
                   near, files that are made to fill a machine do
    progress       called now and then with the number of bytes read and the number there are

    Values are the nearest float32 to what is written: beyond its range an infinity, below its smallest number 0.
    `nan`, `na`, `null` and `?` in any case are missing values, `inf` is infinity. Query ids are int64 when every one is
    written as a plain whole number, else strings. A line that is wrong is a DataError with its number and what was
    expected; it is the first such line, whatever the number of threads.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:1 1:0.5 3:7 # first\\n0 qid:1 2:1e-3\\n")
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
    data = _as_dataset(X, y, np.asarray(ids), lengths)
    data.doc_ids = None if names is None else np.array(names, dtype=object)
    _add_weights(data, files, ends)
    return data


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a data file. `qid` is None when lines have none, `doc_ids` when no row has one."""

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
    """Read SVMlight text in blocks of at most `rows_per_block` rows, holding no more than a few at a time.

    Options are those of `read_svmlight`. A query may go on in the next block.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("0 qid:1 1:0.5\\n0 qid:1 2:1\\n1 qid:2 1:3\\n")
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
    """Where the sizes of queries come from when lines have no query id."""

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
        """Sizes of all queries. `ends` are the numbers of rows before each file, and in all."""
        parts = []
        for file, side, n_rows in zip(self._files, self._side, np.diff(ends).tolist(), strict=True):
            part = np.array([n_rows], dtype=OFFSET) if side is None else read_sizes(side)
            if part.sum() != n_rows:
                raise DataError(
                    f"{side}: the sizes of queries add up to {part.sum()}, but {file} has {n_rows} documents"
                )
            parts.append(part)
        return np.concatenate(parts)


def _as_dataset(X: FeatureMatrix, y: FloatArray, ids: AnyArray, lengths: OffsetArray) -> Dataset:
    """A data set from runs of rows with one query id. A query may have several runs."""
    unique, run_query = np.unique(ids, return_inverse=True)
    if len(unique) == len(ids):
        data = Dataset(X, y, group=lengths)
        data.queries = Queries(ids=ids, offsets=data.queries.offsets, order=None)
        return data
    data = Dataset(X, y, qid=np.repeat(run_query.astype(OFFSET), lengths))
    data.queries = Queries(ids=unique[data.queries.ids], offsets=data.queries.offsets, order=data.queries.order)
    return data


def _add_weights(data: Dataset, files: list[Path], ends: list[int]) -> None:
    """Weights from the files beside the data: of documents, or else of queries."""
    side = [side_file(file, ".weight") for file in files]
    found = [path for path in side if path is not None]
    if not found:
        return
    if len(found) < len(files):
        raise DataError(f"{found[0]} gives weights, but {files[side.index(None)]} has no such file beside it")
    parts = [read_weights(path) for path in found]
    weights = np.concatenate(parts)
    if [len(part) for part in parts] == np.diff(ends).tolist():
        data.weights = weights
    elif len(weights) == data.n_queries:
        data.query_weights = weights
    else:
        sizes = f"the {data.n_docs} documents nor the {data.n_queries} queries"
        raise DataError(f"{found[0]}: {len(weights)} weights fit neither {sizes}")
