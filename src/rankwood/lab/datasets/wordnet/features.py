"""The 136 features of a query and its candidates: 18 for each text stream, and 46 others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import FEATURE, AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.lab.datasets.wordnet.arrays import Lists, first_places, marked, unit
from rankwood.lab.datasets.wordnet.database import Synset
from rankwood.lab.datasets.wordnet.index import K1, STREAMS, WHOLE, B, Index
from rankwood.lab.datasets.wordnet.search import Candidates
from rankwood.lab.datasets.wordnet.text import Texts, phrases_in
from rankwood.lab.datasets.wordnet.vectors import Vectors

OF_STREAM = (
    "covered_terms", "covered_ratio", "length", "idf_covered", "tf_sum", "tf_max", "tf_mean", "tf_var", "ntf_sum",
    "tfidf_sum", "tfidf_max", "tfidf_mean", "tfidf_var", "cosine", "bm25", "lm_abs", "lm_dir", "lm_jm",
)  # fmt: skip
OTHERS = (
    "ri_cosine_text", "ri_cosine_lemmas", "ri_cosine_gloss", "ri_cosine_head", "ri_cosine_mentions", "ri_first_lemmas",
    "ri_first_head", "ri_rarest_text", "ri_last_text", "ri_term_min", "ri_term_max", "ri_term_var", "feedback_ri_text",
    "feedback_ri_lemmas", "feedback_ri_head", "feedback_gloss", "feedback_lemmas", "whole_boolean_and", "tri_jaccard",
    "tri_in_query", "tri_in_lemmas", "gloss_ordered_bigrams", "gloss_min_gap", "gloss_first_match", "gloss_head_idf",
    "lemma_phrase_terms", "lemma_best_cover", "matched_idf_max", "lemma_count", "lemma_chars", "gloss_chars",
    "example_count", "gloss_idf_mean", "gloss_idf_max", "gloss_idf_min", "polysemy_max", "polysemy_mean",
    "mention_count", "capital_share", "gloss_punctuation", "is_noun", "is_verb", "is_adjective", "is_adverb",
    "query_terms", "query_idf_sum",
)  # fmt: skip
FEATURES = tuple(f"{stream}_{name}" for stream in STREAMS for name in OF_STREAM) + OTHERS
MISSING_IF_EMPTY = ("ntf_sum", "cosine", "bm25", "lm_abs", "lm_dir", "lm_jm")  # NaN where the stream is empty
DISCOUNT, MIXED = 0.7, 0.3  # of the language models with absolute discounting and of Jelinek and Mercer
DIGITS = 5  # of every value
HEAD = 3  # words at the beginning of a gloss
_GLOSS, _MENTIONS = STREAMS.index("gloss"), STREAMS.index("mentions")
_COLUMN = {name: column for column, name in enumerate(FEATURES)}

Columns = Iterator[tuple[str, Any]]  # names of features and their values for the candidates


@dataclass(frozen=True)
class _Match:
    """A query and its candidates, and what most features need of them."""

    words: list[str]
    terms: list[int]
    documents: IndexArray
    best: IndexArray
    counts: FloatArray  # (streams, terms, documents)
    idf: FloatArray  # (streams, terms, 1)
    empty: AnyArray  # (streams, documents)

    @property
    def n(self) -> int:
        return len(self.documents)


class Features:
    """Computes the features of candidates.

    Nothing here knows WordNet's relations, its files, the order of senses, or how often they are used.

    Parameters
    ----------
    synsets : sequence of Synset
        Of which only the text and the part of speech are used.
    texts : Texts
    terms : dict of str to int
        Numbers of the words.
    index : Index
    vectors : Vectors
    """

    def __init__(
        self, synsets: Sequence[Synset], texts: Texts, terms: dict[str, int], index: Index, vectors: Vectors
    ) -> None:
        self._index, self._vectors, self._phrases = index, vectors, texts.phrases
        unknown = len(terms)  # the number of words that are in no stream
        self._gloss = Lists.of([terms[word] for word in gloss] for gloss in texts.glosses)
        lemmas = [[lemma for lemma in its_lemmas if lemma] or [("",)] for its_lemmas in texts.lemmas]
        self._lemmas = Lists.of(
            [terms.get(word, unknown) for lemma in its_lemmas for word in lemma] for its_lemmas in lemmas
        )
        sizes = np.array([len(lemma) for its_lemmas in lemmas for lemma in its_lemmas])
        self._lemma_of_word = np.repeat(np.arange(len(sizes)), sizes)
        self._lemma_size = sizes
        self._trigram_numbers: dict[str, int] = {}
        self._trigrams = Lists.of(
            sorted(self._trigram_number(one) for one in _trigrams(*(lemma.lower() for lemma in synset.lemmas)))
            for synset in synsets
        )
        self._of_documents = {
            name: np.asarray(values, np.float32)
            for name, values in document_features(synsets, texts, terms, index.idf[WHOLE]).items()
        }
        # What is looked up for one query, and cleared again.
        self._place = np.full(len(synsets), -1)
        self._term_place = np.full(unknown + 1, -1)
        self._term_weight = np.zeros(unknown + 1)
        self._is_in_query = np.zeros(len(self._trigram_numbers) + 1, bool)

    def _trigram_number(self, trigram: str) -> int:
        return self._trigram_numbers.setdefault(trigram, len(self._trigram_numbers))

    def rows(self, words: list[str], terms: list[int], candidates: Candidates) -> FeatureMatrix:
        """Return the features of a query's candidates, a row for each."""
        with marked(self._place, candidates.documents, np.arange(len(candidates.documents))):
            match = self._match(words, terms, candidates)
            values = np.zeros((len(FEATURES), match.n))
            of_streams = values[: len(STREAMS) * len(OF_STREAM)].reshape(len(STREAMS), len(OF_STREAM), match.n)
            for name, of_stream in self._of_streams(match):
                missing = match.empty if name in MISSING_IF_EMPTY else False
                of_streams[:, OF_STREAM.index(name)] = np.where(missing, np.nan, of_stream)
            for family in (
                self._similarities, self._feedback, self._characters, self._positions, self._lemma_cover,
                self._whole_lemmas, self._alone,
            ):  # fmt: skip
                for name, column in family(match):
                    values[_COLUMN[name]] = column
        features: FeatureMatrix = rounded(values).T.astype(FEATURE)
        return features

    def _match(self, words: list[str], terms: list[int], candidates: Candidates) -> _Match:
        index, (documents, best) = self._index, candidates
        counts = np.zeros((len(STREAMS), len(terms), len(documents)))
        for stream in range(len(STREAMS)):
            for number, term in enumerate(terms):
                found, its_counts = index.posting(stream, term)
                place = self._place[found]
                counts[stream, number, place[place >= 0]] = its_counts[place >= 0]
        empty = index.lengths[:, documents] == 0
        return _Match(words, terms, documents, best, counts, index.idf[:, terms][:, :, None], empty)

    def _of_streams(self, match: _Match) -> Columns:
        """Features that each stream has: arrays (streams, documents)."""
        index, counts, idf = self._index, match.counts, match.idf
        length = index.lengths[:, match.documents]
        divisor = np.maximum(length, 1)
        hit, weighted = counts > 0, counts * idf
        yield "covered_terms", hit.sum(1)
        yield "covered_ratio", hit.sum(1) / len(match.terms)
        yield "length", length
        yield "idf_covered", (hit * idf).sum(1)
        yield "tf_sum", counts.sum(1)
        yield "tf_max", counts.max(1)
        yield "tf_mean", counts.mean(1)
        yield "tf_var", counts.var(1)
        yield "ntf_sum", counts.sum(1) / divisor
        yield "tfidf_sum", weighted.sum(1)
        yield "tfidf_max", weighted.max(1)
        yield "tfidf_mean", weighted.mean(1)
        yield "tfidf_var", weighted.var(1)
        norms = index.norms[:, match.documents] * np.sqrt((idf**2).sum(1))
        yield "cosine", (weighted * idf).sum(1) / np.maximum(norms, 1e-9)
        norm = K1 * (1 - B + B * length / index.mean_length[:, None])[:, None]
        yield "bm25", (idf * counts * (K1 + 1) / (counts + norm)).sum(1)
        background = index.background[:, match.terms][:, :, None]
        left_over = DISCOUNT * index.n_unique[:, match.documents] / divisor
        discounted = np.maximum(counts - DISCOUNT, 0) / divisor[:, None]
        yield "lm_abs", np.log(discounted + np.where(match.empty, 1.0, left_over)[:, None] * background).sum(1)
        mu = 2 * index.mean_length[:, None, None]
        yield "lm_dir", np.log((counts + mu * background) / (length[:, None] + mu)).sum(1)
        yield "lm_jm", np.log((1 - MIXED) * counts / divisor[:, None] + MIXED * background).sum(1)

    def _similarities(self, match: _Match) -> Columns:
        """Cosines of the query, and of single terms of it, with texts, by random indexing."""
        documents, vectors = match.documents, self._vectors
        terms = vectors.terms[match.terms].astype(np.float64)
        (query,) = unit(terms.sum(0, keepdims=True))
        terms = unit(terms)
        text, lemmas, head = vectors.text[documents], vectors.lemmas[documents], vectors.head[documents]
        no_gloss, no_mentions = match.empty[_GLOSS], match.empty[_MENTIONS]
        yield "ri_cosine_text", (text * query).sum(1)
        yield "ri_cosine_lemmas", (lemmas * query).sum(1)
        yield "ri_cosine_gloss", np.where(no_gloss, np.nan, (vectors.gloss[documents] * query).sum(1))
        yield "ri_cosine_head", np.where(no_gloss, np.nan, (head * query).sum(1))
        yield "ri_cosine_mentions", np.where(no_mentions, np.nan, (vectors.mentions[documents] * query).sum(1))
        yield "ri_first_lemmas", (lemmas * terms[0]).sum(1)
        yield "ri_first_head", np.where(no_gloss, np.nan, (head * terms[0]).sum(1))
        of_terms = np.stack([(text * term).sum(1) for term in terms])
        yield "ri_rarest_text", of_terms[int(np.argmax(match.idf[WHOLE]))]
        yield "ri_last_text", of_terms[-1]
        yield "ri_term_min", of_terms.min(0)
        yield "ri_term_max", of_terms.max(0)
        yield "ri_term_var", of_terms.var(0)

    def _feedback(self, match: _Match) -> Columns:
        """Closeness to the best documents by BM25, as if they were relevant; a document is not close to itself."""
        vectors, is_best = self._vectors, np.isin(match.documents, match.best)[:, None]
        for name, of_all in (("text", vectors.text), ("lemmas", vectors.lemmas), ("head", vectors.head)):
            own = of_all[match.documents]
            centre = of_all[match.best].astype(np.float64).sum(0) - np.where(is_best, own, 0)
            yield f"feedback_ri_{name}", (own * unit(centre)).sum(1)
        found, n_times = np.unique(self._gloss.values[self._gloss.places(match.best)], return_counts=True)
        weights = np.log1p(n_times - 1.0) * self._index.idf[WHOLE, found]
        with marked(self._term_weight, found, weights):
            for name, lists in (("gloss", self._gloss), ("lemmas", self._lemmas)):
                sizes = lists.sizes(match.documents)
                of_words = self._term_weight[lists.values[lists.places(match.documents)]]
                sums = np.bincount(np.repeat(np.arange(match.n), sizes), of_words, match.n)
                yield f"feedback_{name}", sums / np.maximum(sizes, 1)

    def _characters(self, match: _Match) -> Columns:
        """Trigrams of characters that the query and the lemmas share."""
        of_query = _trigrams(" ".join(match.words))
        known = [self._trigram_numbers[one] for one in of_query if one in self._trigram_numbers]
        sizes = self._trigrams.sizes(match.documents)
        with marked(self._is_in_query, known, True):
            shared = self._is_in_query[self._trigrams.values[self._trigrams.places(match.documents)]]
        common = np.add.reduceat(shared.astype(np.int64), first_places(sizes))
        yield "tri_jaccard", common / np.maximum(len(of_query) + sizes - common, 1)
        yield "tri_in_query", common / len(of_query)
        yield "tri_in_lemmas", common / np.maximum(sizes, 1)

    def _positions(self, match: _Match) -> Columns:
        """Where the glosses have terms of the query.

        All glosses stand one after the other; what is kept is the document, the term and the position of each hit::

            gloss      0  1  2  3 | 0  1  2
            term       .  1  2  . | 2  .  1        one ordered bigram in the first, a gap of 2 in the second
        """
        n = match.n
        sizes = self._gloss.sizes(match.documents)
        with marked(self._term_place, match.terms, np.arange(len(match.terms))):
            term = self._term_place[self._gloss.values[self._gloss.places(match.documents)]]
        document = np.repeat(np.arange(n), sizes)
        position = np.arange(len(document)) - np.repeat(first_places(sizes), sizes)
        document, term, position = (values[term >= 0] for values in (document, term, position))
        first = np.full(n, np.nan)
        first[document[::-1]] = position[::-1]
        yield "gloss_first_match", first
        at_head = position < HEAD
        of_term = self._index.idf[WHOLE, match.terms]
        yield "gloss_head_idf", np.bincount(document[at_head], of_term[term[at_head]], n)
        step = np.diff(position)
        together = np.diff(document) == 0
        in_order = together & (step == 1) & (np.diff(term) == 1)
        yield "gloss_ordered_bigrams", np.bincount(document[1:][in_order], minlength=n)
        differ = together & (np.diff(term) != 0)
        gap = np.full(n, np.inf)
        np.minimum.at(gap, document[1:][differ], step[differ])
        yield "gloss_min_gap", np.where(np.isinf(gap), np.nan, gap)

    def _lemma_cover(self, match: _Match) -> Columns:
        """Greatest share of the words of one lemma that the query has."""
        places = self._lemmas.places(match.documents)
        with marked(self._term_place, match.terms, 0):
            is_hit = self._term_place[self._lemmas.values[places]] >= 0
        lemma = self._lemma_of_word[places]
        starts = np.flatnonzero(np.r_[True, np.diff(lemma) != 0])
        cover = np.add.reduceat(is_hit.astype(np.int64), starts) / self._lemma_size[lemma[starts]]
        best = np.zeros(match.n)
        np.maximum.at(best, np.repeat(np.arange(match.n), self._lemmas.sizes(match.documents))[starts], cover)
        yield "lemma_best_cover", best

    def _whole_lemmas(self, match: _Match) -> Columns:
        """Words of the longest lemma that stands in the query as a phrase."""
        longest = np.zeros(match.n)
        for phrase in phrases_in(match.words):
            for document in self._phrases.get(phrase, ()):
                place = self._place[document]
                if place >= 0:
                    longest[place] = max(longest[place], len(phrase))
        yield "lemma_phrase_terms", longest

    def _alone(self, match: _Match) -> Columns:
        """Whether and which terms match at all, and what the document alone and the query alone have."""
        hit, idf = match.counts[WHOLE] > 0, match.idf[WHOLE]
        yield "whole_boolean_and", hit.all(0)
        yield "matched_idf_max", (hit * idf).max(0)
        for name, values in self._of_documents.items():
            yield name, values[match.documents]
        yield "query_terms", len(match.terms)
        yield "query_idf_sum", float(idf.sum())


def document_features(
    synsets: Sequence[Synset], texts: Texts, terms: dict[str, int], idf: FloatArray
) -> dict[str, Any]:
    """Return the features that documents have without a query, a value for every document."""
    polysemy = [[len(texts.phrases[lemma]) for lemma in lemmas] for lemmas in texts.lemmas]
    gloss_idf = [[idf[terms[word]] for word in gloss] or [np.nan] for gloss in texts.glosses]
    n_characters = [sum(map(len, synset.lemmas)) for synset in synsets]
    n_capitals = [sum(character.isupper() for lemma in synset.lemmas for character in lemma) for synset in synsets]
    return {
        "lemma_count": [len(synset.lemmas) for synset in synsets],
        "lemma_chars": [n / len(synset.lemmas) for n, synset in zip(n_characters, synsets, strict=True)],
        "gloss_chars": [len(synset.gloss) for synset in synsets],
        "example_count": [len(synset.examples) for synset in synsets],
        "gloss_idf_mean": [np.mean(values) for values in gloss_idf],
        "gloss_idf_max": [max(values) for values in gloss_idf],
        "gloss_idf_min": [min(values) for values in gloss_idf],
        "polysemy_max": [max(values) for values in polysemy],
        "polysemy_mean": [sum(values) / len(values) for values in polysemy],
        "mention_count": texts.n_mentions,
        "capital_share": [capitals / n for capitals, n in zip(n_capitals, n_characters, strict=True)],
        "gloss_punctuation": [sum(character in ",;()-" for character in synset.gloss) for synset in synsets],
        "is_noun": [synset.part == "n" for synset in synsets],
        "is_verb": [synset.part == "v" for synset in synsets],
        "is_adjective": [synset.part == "a" for synset in synsets],
        "is_adverb": [synset.part == "r" for synset in synsets],
    }


def rounded(values: FloatArray) -> FloatArray:
    """Return values rounded to five significant digits, so that the last bits of a sum do not matter.

    Examples
    --------
    >>> rounded(np.array([0.123456789, -98765.4321, 0.0])).tolist()
    [0.12346, -98765.0, 0.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** (DIGITS - 1 - np.where(np.isfinite(exponent), exponent, 0))
        return np.where(values == 0, 0, np.round(values * scale) / scale)


def _trigrams(*texts: str) -> list[str]:
    """Return the runs of three characters of texts with a blank at either end, each once, in the order met."""
    padded = [f" {text} " for text in texts]
    return list(dict.fromkeys(text[at : at + 3] for text in padded for at in range(len(text) - 2)))
