"""Writing SVMlight text."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from rankwood import _native
from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset
from rankwood.data.side_files import side_file
from rankwood.data.text import PathLike
from rankwood.dtypes import LABEL, OFFSET, AnyArray, FloatArray, OffsetArray
from rankwood.errors import DataError
from rankwood.threads import resolve_threads

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
    """Write `data` as SVMlight text, packed when the name ends in `.gz`. `read_svmlight` gives back the same data.

    absent      leave out features with this value, 0.0 or NaN, as `read_svmlight(absent=...)` expects; None: none
    zero_based  the first feature is 0, not 1
    doc_ids     write document ids as comments

    Every value has as many digits as it takes to read back the same float32. Data without labels get label 0.
    Weights go to a file of their own beside it, with `.weight` added to the name.

    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> rw.write_svmlight(rw.Dataset([[0.1, 0.0]], [1], qid=[7], doc_ids=["a"]), path)
    >>> path.read_text()
    '1 qid:7 1:0.1 2:0 # a\\n'
    """
    threads = resolve_threads(n_threads)
    _check_weights(data, path)
    id_text, id_ends = _joined([_query_id(value) for value in data.queries.ids.tolist()])
    labels = data.y if data.has_labels else np.zeros(data.n_docs, dtype=LABEL)
    query = data.queries.index
    names = data.doc_ids if doc_ids else None
    block = max(1, _BLOCK // (16 + 12 * data.n_features))
    with text_writer(path) as file:
        for start in range(0, data.n_docs, block):
            rows = slice(start, start + block)
            comment_text, comment_ends = _comments(names, start, rows)
            for piece in _native.format_svmlight(
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
            ):
                file.write(piece)
    weights = data.weights if data.weights is not None else data.query_weights
    if weights is not None:
        _write_weights(os.fspath(path) + ".weight", weights)


@contextmanager
def text_writer(path: PathLike) -> Iterator[BinaryIO]:
    """Open `path` for bytes, packed when its name ends in `.gz`; it appears when all is written."""
    with atomic_write(path) as file:
        if not os.fspath(path).endswith(".gz"):
            yield cast(BinaryIO, file)
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
            yield cast(BinaryIO, packed)


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
    """There is room for one kind of weights; and a file left from other data would be read with these."""
    if data.weights is not None and data.query_weights is not None:
        raise DataError("weights of documents and weights of queries cannot both be written: set one of them to None")
    stale = side_file(Path(path), ".weight")
    if stale is not None and data.weights is None and data.query_weights is None:
        raise DataError(f"{stale} would be read as the weights of {os.fspath(path)}, which has none: remove it first")


def _write_weights(path: str, weights: FloatArray) -> None:
    with atomic_write(path, "w") as file:
        file.writelines(f"{weight!r}\n" for weight in weights.tolist())
