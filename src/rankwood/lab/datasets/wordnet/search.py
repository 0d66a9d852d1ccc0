"""Queries, drawn from the words about a synset, and their candidates, the best documents by BM25."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwood.dtypes import IndexArray
from rankwood.lab.datasets.wordnet.index import K1, WHOLE, B, Index
from rankwood.lab.datasets.wordnet.rules import Rules, generator
from rankwood.lab.datasets.wordnet.text import STOP_WORDS, Texts


class Candidates(NamedTuple):
    """Documents of a query in the order of the rows, and the best of them by BM25."""

    documents: IndexArray
    best: IndexArray


class Search:
    """Makes queries and finds their candidates.

    Parameters
    ----------
    texts : Texts
    terms : dict of str to int
        Numbers of the words.
    index : Index
    rules : Rules
    """

    def __init__(self, texts: Texts, terms: dict[str, int], index: Index, rules: Rules) -> None:
        self._lemmas, self._glosses = texts.lemmas, texts.glosses
        self._terms, self._index, self._rules = terms, index, rules
        self._scores = np.zeros(len(texts.lemmas))  # all 0 between two searches

    def query(self, synset: int) -> list[str]:
        """Return the words that somebody who looks for a synset might type, always the same.

        In 30 % of the queries that is its name and at most one word of the gloss, in 40 % the name and two to four, in
        30 % three to seven words without the name. Words are added where too few documents match.
        """
        rng = generator("query", synset)
        lemmas = self._lemmas[synset]
        name = list(lemmas[int(rng.integers(len(lemmas)))])
        names = {word for lemma in lemmas for word in lemma}
        body = [word for word in dict.fromkeys(self._glosses[synset]) if word not in names]
        kind = rng.random()
        if kind < 0.30:
            n_words = int(rng.integers(0, 2))
        elif kind < 0.70:
            n_words = int(rng.integers(2, 5))
        else:
            name, n_words = [], int(rng.integers(3, 8))
        shuffled = [body[place] for place in rng.permutation(len(body))]
        chosen = set(shuffled[:n_words])
        words = name + [word for word in body if word in chosen]  # in the order of the gloss
        n_matches = sum(self._n_documents(word) for word in set(words))
        for word in shuffled[n_words:]:
            if words and n_matches >= 2 * self._rules.fewest:
                break
            words.append(word)
            n_matches += self._n_documents(word)
        return words

    def terms_of(self, words: list[str]) -> list[int]:
        """Return the numbers of the words that count, each once."""
        return [self._terms[word] for word in dict.fromkeys(words) if word not in STOP_WORDS and word in self._terms]

    def candidates(self, synset: int, terms: list[int]) -> Candidates | None:
        """Return the candidates of a synset's query, without the synset itself; None if too few documents match."""
        if not terms:
            return None
        rules = self._rules
        matching = np.unique(np.concatenate([self._add_scores(term) for term in terms]))
        scores = np.round(self._scores[matching], 4)
        self._scores[matching] = 0
        others = matching != synset
        matching, scores = matching[others], scores[others]
        if len(matching) < rules.fewest // 2:
            return None
        best = np.lexsort((matching, -scores))[: rules.most]
        n_near = int((scores[best] >= rules.near_best * scores[best[0]]).sum())
        documents = np.sort(matching[best[: max(rules.fewest, n_near)]]).astype(np.int64)
        order = generator("order", synset).permutation(len(documents))
        return Candidates(documents[order], matching[best[: rules.feedback]])

    def _add_scores(self, term: int) -> IndexArray:
        """Add the term's part of BM25 to the scores of the documents that have it, and return them."""
        index = self._index
        documents, counts = index.posting(WHOLE, term)
        norm = K1 * (1 - B + B * index.lengths[WHOLE, documents] / index.mean_length[WHOLE])
        self._scores[documents] += index.idf[WHOLE, term] * counts * (K1 + 1) / (counts + norm)
        return documents

    def _n_documents(self, word: str) -> int:
        return int(self._index.n_documents[self._terms[word]]) if word in self._terms else 0
