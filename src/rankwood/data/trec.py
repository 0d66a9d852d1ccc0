"""Writing TREC files: runs and relevance judgements, as trec_eval and similar tools read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset, docnos, one_word
from rankwood.data.text import PathLike
from rankwood.dtypes import SCORE, IndexArray
from rankwood.errors import DataError


def write_run(data: Dataset, scores: Any, path: PathLike, *, tag: str = "rankwood") -> None:
    """Write a TREC run: lines `qid Q0 docno rank score tag`, query by query, documents by descending score.

    Documents with equal scores keep their order, and scores have all their digits. (trec_eval itself looks at the score
    alone and orders equal ones by docno, as `evaluate` does with convention="trec".)

    Parameters
    ----------
    data : Dataset
        The documents. One without an id is called `d` and its row number, from 0.
    scores : array-like of float
        Score of every document, in input order.
    path : path-like
        The file, written whole or not at all.
    tag : str, default "rankwood"
        Name of the run: one word.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_run(rw.Dataset([[0.0], [1.0]], qid=["q", "q"]), [0.25, 1.5], path, tag="model")
    >>> print(path.read_text(), end="")
    q Q0 d1 1 1.5 model
    q Q0 d0 2 0.25 model
    """
    values = np.asarray(scores, dtype=SCORE)
    if values.shape != (data.n_docs,):
        raise DataError(f"scores must have one value per document ({data.n_docs}), got shape {values.shape}")
    if np.isnan(values).any():
        raise DataError(f"the score of row {int(np.flatnonzero(np.isnan(values))[0])} is NaN: it has no place in a run")
    if not tag or any(character <= " " for character in tag):
        raise DataError(f"tag must be one word, got {tag!r}")
    names = docnos(data)
    with _ids_are_text(), atomic_write(path, "w") as file:
        for qid, rows in _rows_by_query(data):
            best_first = rows[np.argsort(-values[rows], kind="stable")].tolist()
            _check_docnos(qid, [names[row] for row in best_first])
            for rank, row in enumerate(best_first, start=1):
                file.write(f"{qid} Q0 {names[row]} {rank} {values[row].item()!r} {tag}\n")


def write_qrels(data: Dataset, path: PathLike) -> None:
    """Write TREC relevance judgements: lines `qid 0 docno label`.

    Parameters
    ----------
    data : Dataset
        The documents; their labels must be whole numbers. One without an id is called `d` and its row number, from 0.
    path : path-like
        The file, written whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, rankwood as rw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(rw.Dataset([[0.0], [1.0]], [0, 2], qid=[3, 3], doc_ids=["a", "b c"]), path)
    >>> print(path.read_text(), end="")
    3 0 a 0
    3 0 b_c 2
    """
    fractional = np.flatnonzero(data.y != np.floor(data.y))
    if len(fractional):
        row = int(fractional[0])
        raise DataError(f"the label of row {row} is {data.y[row]}: TREC judgements are whole numbers")
    names = docnos(data)
    with _ids_are_text(), atomic_write(path, "w") as file:
        for qid, rows in _rows_by_query(data):
            _check_docnos(qid, [names[row] for row in rows.tolist()])
            for row in rows.tolist():
                file.write(f"{qid} 0 {names[row]} {int(data.y[row])}\n")


@contextmanager
def _ids_are_text() -> Iterator[None]:
    """Raise a DataError for ids that UTF-8 cannot hold."""
    try:
        yield
    except UnicodeEncodeError as error:
        word = error.object[max(error.start - 20, 0) : error.end + 20].split()
        raise DataError(f"an id cannot be written, as it is no text: {' '.join(word)!a}") from None


def _rows_by_query(data: Dataset) -> Iterator[tuple[str, IndexArray]]:
    offsets = data.queries.offsets.tolist()
    for number, qid in enumerate(data.queries.ids.tolist()):
        rows = np.arange(offsets[number], offsets[number + 1])
        yield one_word(str(qid)), rows if data.queries.order is None else data.queries.order[rows]


def _check_docnos(qid: str, docnos: list[str]) -> None:
    if len(set(docnos)) < len(docnos):
        twice = next(docno for docno in docnos if docnos.count(docno) > 1)
        raise DataError(
            f"document id {twice!r} stands twice in query {qid!r}, which TREC files cannot have; "
            "with doc_ids = None documents are named by row"
        )
