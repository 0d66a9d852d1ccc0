"""Queries with their candidates, features and grades, made in this process or in several."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import NamedTuple

from rankwood.dtypes import AnyArray, FeatureMatrix
from rankwood.errors import RankwoodError
from rankwood.lab.datasets.wordnet.database import Database
from rankwood.lab.datasets.wordnet.features import Features
from rankwood.lab.datasets.wordnet.index import WHOLE, Index, count_terms, vocabulary
from rankwood.lab.datasets.wordnet.relations import Relations
from rankwood.lab.datasets.wordnet.rules import Rules
from rankwood.lab.datasets.wordnet.search import Search
from rankwood.lab.datasets.wordnet.text import read_texts
from rankwood.lab.datasets.wordnet.vectors import Vectors
from rankwood.lab.workers import end_with

CHUNK = 50  # synsets that a worker process tries at a time
START = "fork" if sys.platform == "linux" else None  # of worker processes: forked ones share memory


class Query(NamedTuple):
    """A query: its words, and the documents' numbers, grades and features, a row each."""

    text: str
    documents: AnyArray
    labels: AnyArray
    features: FeatureMatrix


Made = Generator[Query | None, None, None]  # for one synset after the other; None where there is no query


class QueryMaker:
    """Makes queries of synsets.

    Parameters
    ----------
    search : Search
    features : Features
    relations : Relations
    """

    def __init__(self, search: Search, features: Features, relations: Relations) -> None:
        self.search, self.features, self.relations = search, features, relations

    @classmethod
    def of(cls, database: Database, rules: Rules, on_share: Callable[[float], None]) -> QueryMaker:
        """Index the whole database.

        Parameters
        ----------
        database : Database
        rules : Rules
        on_share : callable
            Called with the share of the work that is done: the time that steps take with WordNet 3.0.
        """
        texts = read_texts(database)
        on_share(0.4)
        terms = vocabulary(texts)
        counts = [count_terms(words, terms) for words in (texts.titles, texts.glosses, texts.examples, texts.mentions)]
        index = Index.of(counts)
        on_share(0.5)
        head = count_terms([gloss[:2] for gloss in texts.glosses], terms)
        vectors = Vectors.of(counts, head, index.idf[WHOLE])
        on_share(0.7)
        features = Features(database.synsets, texts, terms, index, vectors)
        on_share(0.85)
        relations = Relations(database.synsets, rules)
        on_share(1.0)
        return cls(Search(texts, terms, index, rules), features, relations)

    def make(self, synset: int) -> Query | None:
        """Return the query of a synset; None unless it has enough candidates, one of grade 2 and three of grade 1."""
        words = self.search.query(synset)
        terms = self.search.terms_of(words)
        candidates = self.search.candidates(synset, terms)
        if candidates is None:
            return None
        labels = self.relations.grades(synset, candidates.documents)
        if labels.max() < 2 or (labels >= 1).sum() < 3:
            return None
        return Query(" ".join(words), candidates.documents, labels, self.features.rows(words, terms, candidates))


@contextlib.contextmanager
def hired(maker: QueryMaker, n_workers: int) -> Iterator[Callable[[Sequence[int]], Made]]:
    """Context manager of a function that makes queries of synsets, in their order, whoever makes them.

    Parameters
    ----------
    maker : QueryMaker
    n_workers : int
        Processes; 1 is this process alone. On Linux they share the memory of this one.

    Yields
    ------
    callable
        Generator function; closing a generator forgets queries that nobody has asked for.
    """
    if n_workers == 1:
        yield lambda synsets: (maker.make(synset) for synset in synsets)
        return
    with ProcessPoolExecutor(n_workers, multiprocessing.get_context(START), _begin, (maker, os.getpid())) as pool:
        yield lambda synsets: _in_order(pool, synsets, ahead=2 * n_workers)


def _in_order(pool: ProcessPoolExecutor, synsets: Sequence[int], ahead: int) -> Made:
    """Make queries in the processes of a pool, a few chunks ahead of who takes them."""
    chunks = iter([synsets[start : start + CHUNK] for start in range(0, len(synsets), CHUNK)])
    waiting: deque[Future[list[Query | None]]] = deque()
    try:
        while True:
            while len(waiting) < ahead and (chunk := next(chunks, None)) is not None:
                waiting.append(pool.submit(_make, chunk))
            if not waiting:
                return
            yield from waiting.popleft().result()
    except BrokenExecutor:
        raise RankwoodError(
            "a worker process was killed, perhaps for want of memory: use fewer workers (--workers)"
        ) from None
    finally:
        for future in waiting:
            future.cancel()


_MAKER: QueryMaker | None = None  # of a worker process


def _begin(maker: QueryMaker, parent: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and does not outlive it."""
    global _MAKER
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    _MAKER = maker


def _make(synsets: Sequence[int]) -> list[Query | None]:
    assert _MAKER is not None
    return [_MAKER.make(synset) for synset in synsets]
