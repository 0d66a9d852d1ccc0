"""Vectors of terms and texts by random indexing: terms that occur in like texts have like vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.lab.datasets.wordnet.arrays import unit
from rankwood.lab.datasets.wordnet.rules import SEED

DIMENSIONS = 256


@dataclass(frozen=True)
class Vectors:
    """Vectors of terms, weighted by idf, and of texts, of length 1.

    Parameters
    ----------
    terms : array (terms, 256)
    text, lemmas, gloss, head, mentions : array (documents, 256)
        Of all text of a document but mentions, of one stream, and of the first two words of the gloss.
    """

    terms: AnyArray
    text: AnyArray
    lemmas: AnyArray
    gloss: AnyArray
    head: AnyArray
    mentions: AnyArray

    @classmethod
    def of(cls, counts: list[Any], head: Any, idf: FloatArray) -> Vectors:
        """Make them of how often documents have terms in the four streams, and in the head of the gloss."""
        lemmas, gloss, examples, mentions = counts
        text = (lemmas + gloss + examples).tocsr()
        terms = _term_vectors(text, idf)

        def of_texts(counts: Any) -> AnyArray:
            return unit(counts.tocsr() @ terms).astype(np.float32)

        return cls(terms, *map(of_texts, (text, lemmas, gloss, head, mentions)))


def _term_vectors(text: Any, idf: FloatArray) -> AnyArray:
    """A text is the sum of random vectors of its terms, a term the sum of the texts it is in."""
    from scipy import sparse

    weighted = text.multiply(idf[None]).tocsr()
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(1)).ravel())
    weighted = (sparse.diags(1 / np.maximum(norms, 1e-9)) @ weighted).tocsr()
    random = np.random.default_rng(SEED).integers(-1, 2, (len(idf), DIMENSIONS)).astype(np.float64)
    terms = unit(weighted.T.tocsr() @ (weighted @ random))
    terms = unit(terms - terms.mean(0))  # what all terms have in common tells nothing
    return (terms * idf[:, None]).astype(np.float32)
