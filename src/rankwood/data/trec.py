"""Runs and relevance judgements: as TREC files, and as the objects that ir_datasets and ir-measures speak of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.data.dataset import Dataset, docnos, one_word
from rankwood.data.text import PathLike
from rankwood.dtypes import SCORE, FloatArray, IndexArray
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
    if not tag or any(character <= " " for character in tag):
        raise DataError(f"tag must be one word, got {tag!r}")
    values = _checked_scores(data, scores)
    with _ids_are_text(), atomic_write(path, "w") as file:
        for qid, names, rows in _ranked(data, values):
            for rank, (name, row) in enumerate(zip(names, rows, strict=True), start=1):
                file.write(f"{qid} Q0 {name} {rank} {values[row].item()!r} {tag}\n")


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
    judgements = iter_qrels(data)
    with _ids_are_text(), atomic_write(path, "w") as file:
        for one in judgements:
            file.write(f"{one.query_id} {one.iteration} {one.doc_id} {one.relevance}\n")


class Qrel(NamedTuple):
    """Judgement of a document for a query, with the names of ir_datasets and ir-measures."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class ScoredDoc(NamedTuple):
    """Score of a document for a query, with the names of ir_datasets and ir-measures."""

    query_id: str
    doc_id: str
    score: float


def iter_qrels(data: Dataset) -> Iterator[Qrel]:
    """Judgements of a data set, query by query, as ir-measures takes them.

    Parameters
    ----------
    data : Dataset
        The documents; their labels must be whole numbers. One without an id is called `d` and its row number, from 0.

    Returns
    -------
    iterator of Qrel
        Each has `query_id`, `doc_id`, `relevance` and `iteration`.

    Examples
    --------
    >>> import rankwood as rw
    >>> list(rw.iter_qrels(rw.Dataset([[0.0], [1.0]], [0, 2], qid=[3, 3], doc_ids=["a", "b"])))
    [Qrel(query_id='3', doc_id='a', relevance=0, iteration='0'), Qrel(query_id='3', doc_id='b', relevance=2, ...)]
    """
    fractional = np.flatnonzero(data.y != np.floor(data.y))
    if len(fractional):
        row = int(fractional[0])
        raise DataError(f"the label of row {row} is {data.y[row]}: TREC judgements are whole numbers")
    return _qrels(data)


def _qrels(data: Dataset) -> Iterator[Qrel]:
    docno_of_row = docnos(data)
    for qid, rows in _rows_by_query(data):
        names = [docno_of_row[row] for row in rows.tolist()]
        _check_docnos(qid, names)
        for name, row in zip(names, rows.tolist(), strict=True):
            yield Qrel(qid, name, int(data.y[row]))


def iter_run(data: Dataset, scores: Any) -> Iterator[ScoredDoc]:
    """A run, query by query and the best documents first, as ir-measures takes it.

    Parameters
    ----------
    data : Dataset
        The documents. One without an id is called `d` and its row number, from 0.
    scores : array-like of float
        Score of every document, in input order.

    Returns
    -------
    iterator of ScoredDoc
        Each has `query_id`, `doc_id` and `score`.

    Examples
    --------
    >>> import rankwood as rw
    >>> list(rw.iter_run(rw.Dataset([[0.0], [1.0]], qid=["q", "q"]), [0.25, 1.5]))
    [ScoredDoc(query_id='q', doc_id='d1', score=1.5), ScoredDoc(query_id='q', doc_id='d0', score=0.25)]
    """
    values = _checked_scores(data, scores)
    return (
        ScoredDoc(qid, name, values[row].item())
        for qid, names, rows in _ranked(data, values)
        for name, row in zip(names, rows, strict=True)
    )


def apply_qrels(data: Dataset, qrels: Any, *, unjudged: float = 0.0) -> Dataset:
    """The data set with labels from relevance judgements, found by the ids of queries and documents.

    Parameters
    ----------
    data : Dataset
        Documents with ids (`doc_ids`).
    qrels : ir_datasets data set, DataFrame, mapping or iterable of judgements
        Judgements that have `query_id`, `doc_id` and `relevance`, or what has `qrels_iter()`, as a data set of
        ir_datasets; a DataFrame with such columns, or with `qid`, `docno` and `label` as PyTerrier names them; or the
        relevance by query and then document, as in pytrec_eval. Below 0 counts as 0, as in trec_eval.
    unjudged : float, default 0.0
        Label of documents that are not judged.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[0.0], [1.0], [2.0]], qid=["q1", "q1", "q2"], doc_ids=["a", "b", "a"])
    >>> rw.apply_qrels(data, {"q1": {"b": 2}, "q2": {"a": 1}}).y
    array([0., 2., 1.])
    """
    if data.doc_ids is None:
        raise DataError("judgements are found by the ids of documents: give doc_ids to the data set")
    label_of: dict[tuple[str, str], float] = {}
    for qid, docno, relevance in _judgements(qrels):
        key = one_word(str(qid)), one_word(str(docno))
        label = max(float(relevance), 0.0)
        if label_of.setdefault(key, label) != label:
            raise DataError(f"document {key[1]!r} is judged twice for query {key[0]!r}, as {label_of[key]} and {label}")
    names = docnos(data)
    labels = np.full(data.n_docs, float(unjudged))
    for qid, rows in _rows_by_query(data):
        for row in rows.tolist():
            labels[row] = label_of.get((qid, names[row]), unjudged)
    return data.replace(y=labels)


def _judgements(qrels: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Query, document and relevance of all judgements."""
    if hasattr(qrels, "qrels_iter"):
        qrels = qrels.qrels_iter()
    if isinstance(qrels, Mapping):
        return ((qid, docno, value) for qid, documents in qrels.items() for docno, value in documents.items())
    columns = list(getattr(qrels, "columns", ()))
    for names in (("query_id", "doc_id", "relevance"), ("qid", "docno", "label")):
        if set(names) <= set(columns):
            return zip(*(qrels[name] for name in names), strict=True)
    if columns or isinstance(qrels, (str, bytes)) or not isinstance(qrels, Iterable):
        found = f"a table of {', '.join(map(str, columns))}" if columns else type(qrels).__name__
        raise DataError(f"judgements have query_id, doc_id and relevance, or qid, docno and label, got {found}")
    return ((one.query_id, one.doc_id, one.relevance) for one in qrels)


def _checked_scores(data: Dataset, scores: Any) -> FloatArray:
    values = np.asarray(scores, dtype=SCORE)
    if values.shape != (data.n_docs,):
        raise DataError(f"scores must have one value per document ({data.n_docs}), got shape {values.shape}")
    if np.isnan(values).any():
        raise DataError(f"the score of row {int(np.flatnonzero(np.isnan(values))[0])} is NaN: it has no place in a run")
    return values


def _ranked(data: Dataset, values: FloatArray) -> Iterator[tuple[str, list[str], list[int]]]:
    """Every query with the names and rows of its documents, by descending score."""
    docno_of_row = docnos(data)
    for qid, rows in _rows_by_query(data):
        best_first = rows[np.argsort(-values[rows], kind="stable")].tolist()
        names = [docno_of_row[row] for row in best_first]
        _check_docnos(qid, names)
        yield qid, names, best_first


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
