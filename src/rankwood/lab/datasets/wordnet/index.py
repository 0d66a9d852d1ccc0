"""The inverted index of the five text streams, with the statistics that scores need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.lab.datasets.wordnet.arrays import Lists
from rankwood.lab.datasets.wordnet.text import Texts, Words

STREAMS = ("lemmas", "gloss", "examples", "mentions", "whole")
WHOLE = STREAMS.index("whole")
K1, B = 1.2, 0.75  # parameters of BM25


def vocabulary(texts: Texts) -> dict[str, int]:
    """Return a number for every word that is no stop word, in the order in which they are met."""
    terms: dict[str, int] = {}
    for documents in (texts.titles, texts.glosses, texts.examples):
        for words in documents:
            for word in words:
                terms.setdefault(word, len(terms))
    return terms


def count_terms(documents: Words, terms: dict[str, int]) -> Any:
    """Return how often every document has every term, as a sparse matrix."""
    from scipy import sparse

    lists = Lists.of([terms[word] for word in words] for words in documents)
    ones = np.ones(len(lists.values), np.float32)
    counts = sparse.csr_matrix((ones, lists.values, lists.offsets), (len(documents), len(terms)))
    counts.sum_duplicates()
    return counts


@dataclass(frozen=True)
class Index:
    """Postings and statistics; the first axis of every array is that of the streams.

    Parameters
    ----------
    postings : list of sparse matrices
        Documents by terms, stored by terms.
    lengths, n_unique, norms : array (streams, documents)
        Terms, different terms, and length of the tf-idf vector.
    mean_length : array (streams,)
        Mean length of the documents that have the stream.
    idf, background : array (streams, terms)
        Inverse document frequency, and probability of the term in the whole stream.
    n_documents : array (terms,)
        Documents that have a term anywhere.
    """

    postings: list[Any]
    lengths: FloatArray
    n_unique: FloatArray
    norms: FloatArray
    mean_length: FloatArray
    idf: FloatArray
    background: FloatArray
    n_documents: IndexArray

    @classmethod
    def of(cls, counts: list[Any]) -> Index:
        """Index the streams, given how often documents have terms; their sum is the stream `whole`."""
        whole = sum(counts[1:], start=counts[0]).tocsr()
        whole.sort_indices()
        streams = [*counts, whole]
        n_docs, n_terms = whole.shape
        lengths = np.stack([_flat(one.sum(1)) for one in streams]).astype(np.float64)
        documents = np.stack([np.bincount(one.indices, minlength=n_terms) for one in streams])
        idf = np.log(1 + (n_docs - documents + 0.5) / (documents + 0.5))
        weighted = [one.multiply(its_idf[None]) for one, its_idf in zip(streams, idf, strict=True)]
        return cls(
            postings=[_by_terms(one) for one in streams],
            lengths=lengths,
            n_unique=np.stack([np.diff(one.indptr) for one in streams]).astype(np.float64),
            norms=np.stack([np.sqrt(_flat(one.power(2).sum(1))) for one in weighted]),
            mean_length=np.array([one[one > 0].mean() if one.any() else 1.0 for one in lengths]),
            idf=idf,
            background=np.stack([(_flat(one.sum(0)) + 0.5) / (one.sum() + 0.5 * n_terms) for one in streams]),
            n_documents=documents[WHOLE],
        )

    def posting(self, stream: int, term: int) -> tuple[IndexArray, FloatArray]:
        """Return the documents that have a term in a stream, and how often."""
        postings = self.postings[stream]
        here = slice(postings.indptr[term], postings.indptr[term + 1])
        return postings.indices[here], postings.data[here]


def _by_terms(counts: Any) -> Any:
    postings = counts.tocsc().astype(np.float64)
    postings.sort_indices()
    return postings


def _flat(matrix: Any) -> AnyArray:
    return np.asarray(matrix).ravel()
