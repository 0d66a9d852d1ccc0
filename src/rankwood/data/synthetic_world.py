"""The world that synthetic ranking data is drawn from: queries, documents and their 136 features.

It is modelled on web search. A query has terms of some rarity; a document has text in four streams (body, anchor,
title, url), links and visitors. Most features say how the query's terms occur in each stream and in the whole document.

Arrays are float32 with documents along the last axis; those of a `Match` have five rows: the streams and the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from rankwood.dtypes import IndexArray

Values: TypeAlias = Any  # a float32 array; numpy's type stubs do not follow float32 arithmetic

_MAX_TERMS = 8
_MAX_RANK = 65535.0


@dataclass(frozen=True)
class Stream:
    """One kind of text of a document."""

    name: str
    present: float  # log odds that a document of middling popularity has it
    popularity: float  # what a unit of popularity adds to them
    log_length: tuple[float, float]  # mean and spread; the length is in words
    match: tuple[float, float]  # log odds that it covers a term of the query: bias, and gain per unit of topicality
    density: float  # further occurrences of the query's terms, per word
    rarity: float  # IDF of a term on top of its IDF in the body


STREAMS = (
    Stream("body", 4.0, 0.0, (6.1, 1.0), (2.3, 2.4), 0.035, 0.0),
    Stream("anchor", -1.3, 1.0, (1.0, 1.1), (0.3, 2.5), 0.05, 4.6),
    Stream("title", 4.0, 0.0, (1.9, 0.65), (0.2, 2.8), 0.02, 3.9),
    Stream("url", 9.0, 0.0, (2.0, 0.35), (-1.8, 3.0), 0.004, 4.4),
)
WHOLE = len(STREAMS)  # number of the row for the whole document
N_ROWS = len(STREAMS) + 1
_MEANS = [math.exp(mean + spread**2 / 2) for mean, spread in (stream.log_length for stream in STREAMS)]
AVERAGE_LENGTH = np.array([[*_MEANS, sum(_MEANS)]], dtype=np.float32).T


@dataclass(frozen=True)
class QueryTraits:
    """Properties of some queries: one entry per query, `term_idf` also one row per stream."""

    n_terms: Values
    term_idf: Values
    offset: Values  # how relevant its documents are on the whole
    sharpness: Values  # how closely relevance follows the features: small for a difficult query


@dataclass(frozen=True)
class Match:
    """How the terms of a query occur in its documents."""

    n_terms: Values
    term_idf: Values
    length: Values  # words
    covered: Values  # terms that occur
    total: Values  # occurrences of all terms, of the rarest and of the most frequent one
    smallest: Values
    largest: Values
    mean: Values
    variance: Values
    per_word: Values  # 1 / length


@dataclass(frozen=True)
class Documents:
    """What documents are like: how much they are about the query, and how well known."""

    topicality: Values
    popularity: Values


@dataclass(frozen=True)
class MatchFamily:
    name: str
    values: Callable[[Match], Values]
    decimals: int


@dataclass(frozen=True)
class DocumentFeature:
    name: str
    values: Callable[[Documents, Values], Values]  # of the documents and the feature's own noise
    decimals: int = 0
    source: str = ""  # features of one source are missing together; "" is never missing


def _cosine(m: Match) -> Values:
    """Between the occurrences of the terms and a query that names each term once."""
    return m.mean / np.sqrt(np.maximum(m.mean * m.mean + m.variance, 1e-6))


def _bm25(m: Match) -> Values:
    relative_length = m.length / AVERAGE_LENGTH
    return m.n_terms * m.term_idf * m.mean * 2.2 / (m.mean + 1.2 * (0.25 + 0.75 * relative_length))


def _log_likelihood(m: Match, frequency: Values, weight: Values | float) -> Values:
    """Of the query's terms, `frequency` mixed with the collection's by `weight`; 0 for documents without any."""
    mixed = frequency + weight * np.exp(-0.6 * m.term_idf - 2)
    return m.n_terms * np.log(np.minimum(mixed, 1)) * (m.covered[WHOLE] > 0)


def _lm_absolute(m: Match) -> Values:
    kept = np.maximum(m.mean - 0.7, 0) * m.per_word
    return _log_likelihood(m, kept, 0.02 + 0.7 * m.covered * m.per_word)


def _lm_dirichlet(m: Match) -> Values:
    return _log_likelihood(m, m.mean / (m.length + 2000), 2000 / (m.length + 2000))


def _lm_jelinek_mercer(m: Match) -> Values:
    return _log_likelihood(m, 0.9 * m.mean * m.per_word, 0.1)


def _idf(m: Match) -> Values:
    return m.n_terms * m.term_idf


# In column order; each is one feature per stream and one for the whole document.
MATCH_FAMILIES = (
    MatchFamily("covered_terms", lambda m: m.covered, 0),
    MatchFamily("covered_ratio", lambda m: m.covered / m.n_terms, 6),
    MatchFamily("length", lambda m: m.length, 0),
    MatchFamily("idf", _idf, 6),
    MatchFamily("tf_sum", lambda m: m.total, 0),
    MatchFamily("tf_min", lambda m: m.smallest, 0),
    MatchFamily("tf_max", lambda m: m.largest, 0),
    MatchFamily("tf_mean", lambda m: m.mean, 6),
    MatchFamily("tf_variance", lambda m: m.variance, 6),
    MatchFamily("tf_per_word_sum", lambda m: m.total * m.per_word, 6),
    MatchFamily("tf_per_word_min", lambda m: m.smallest * m.per_word, 6),
    MatchFamily("tf_per_word_max", lambda m: m.largest * m.per_word, 6),
    MatchFamily("tf_per_word_mean", lambda m: m.mean * m.per_word, 6),
    MatchFamily("tf_per_word_variance", lambda m: m.variance * m.per_word * m.per_word, 6),
    MatchFamily("tf_idf_sum", lambda m: m.total * m.term_idf, 4),
    MatchFamily("tf_idf_min", lambda m: m.smallest * m.term_idf * 0.8, 4),
    MatchFamily("tf_idf_max", lambda m: m.largest * m.term_idf * 1.1, 4),
    MatchFamily("tf_idf_mean", lambda m: m.mean * m.term_idf, 4),
    MatchFamily("tf_idf_variance", lambda m: m.variance * m.term_idf * m.term_idf, 2),
    MatchFamily("all_terms", lambda m: (m.covered == m.n_terms).astype(np.float32), 0),
    MatchFamily("cosine", _cosine, 4),
    MatchFamily("bm25", _bm25, 4),
    MatchFamily("lm_absolute", _lm_absolute, 4),
    MatchFamily("lm_dirichlet", _lm_dirichlet, 4),
    MatchFamily("lm_jelinek_mercer", _lm_jelinek_mercer, 4),
)


def _log_normal(log_mean: Values | float, spread: float, noise: Values, high: float) -> Values:
    return np.minimum(np.exp(log_mean + spread * noise), high)


def _rank(log_odds: Values) -> Values:
    return _MAX_RANK * _sigmoid(log_odds)


def _inlinks(d: Documents, noise: Values) -> Values:
    """Many pages have none, a few have hundreds of millions."""
    fame = 0.8 * d.popularity + 0.6 * noise
    return np.clip(np.exp(1.8 + fame * (3.2 + 0.5 * np.maximum(fame, 0))) - 1, 0, 3e8)


def _query_url_clicks(d: Documents, noise: Values) -> Values:
    return _log_normal(-8.0 + 2.5 * d.topicality + 2.0 * d.popularity, 3.5, noise, 1e5)


def _url_clicks(d: Documents, noise: Values) -> Values:
    return _log_normal(-2.8 + 3.0 * d.popularity, 2.5, noise, 1e7)


def _url_dwell_time(d: Documents, noise: Values) -> Values:
    visited = 0.8 * d.popularity + 0.6 * noise > 0.6
    return np.where(visited, _log_normal(3.2 + 0.3 * d.topicality, 1.1, noise, 600.0), 0)


DOCUMENT_FEATURES = (
    DocumentFeature("url_slashes", lambda d, noise: 1 + _log_normal(0.7 - 0.2 * d.popularity, 0.5, noise, 25)),
    DocumentFeature("url_length", lambda d, noise: 5 + _log_normal(3.5 - 0.1 * d.popularity, 0.55, noise, 250)),
    DocumentFeature("inlinks", _inlinks, source="links"),
    DocumentFeature("outlinks", lambda d, noise: _log_normal(0.2, 1.8, noise, 200), source="links"),
    DocumentFeature("page_rank", lambda d, noise: 100 + 0.998 * _rank(-1.8 + 1.8 * d.popularity + 1.4 * noise)),
    DocumentFeature("site_rank", lambda d, noise: 1 + _rank(0.2 + 1.0 * d.popularity + 1.6 * noise), source="site"),
    DocumentFeature("quality_1", lambda d, noise: 1 + _log_normal(1.6, 1.4, noise, 254), source="quality"),
    DocumentFeature("quality_2", lambda d, noise: 1 + _log_normal(1.8, 1.6, noise, 254), source="quality"),
    DocumentFeature("query_url_clicks", _query_url_clicks),
    DocumentFeature("url_clicks", _url_clicks, source="log"),
    DocumentFeature("url_dwell_time", _url_dwell_time, 1, "log"),
)

_ROW_NAMES = (*(stream.name for stream in STREAMS), "whole")
FEATURE_NAMES = (
    *(f"{family.name}_{row}" for family in MATCH_FAMILIES for row in _ROW_NAMES),
    *(feature.name for feature in DOCUMENT_FEATURES),
)
N_MATCH_FEATURES = N_ROWS * len(MATCH_FAMILIES)
COLUMN = {name: column for column, name in enumerate(FEATURE_NAMES)}


def draw_queries(rng: Generator, n: int) -> QueryTraits:
    n_terms = np.minimum(1 + rng.poisson(1.5, n), _MAX_TERMS).astype(np.float32)
    body_idf = 0.8 + rng.gamma(4.0, 1.3, n).astype(np.float32) / np.sqrt(n_terms)  # long queries hold common words
    rarity = np.array([[*(stream.rarity for stream in STREAMS), 0.0]], dtype=np.float32).T
    spread = 1 + 0.15 * rng.standard_normal((len(rarity), n), dtype=np.float32)
    offset, sharpness = rng.standard_normal((2, n), dtype=np.float32)
    return QueryTraits(n_terms, body_idf + rarity * spread, offset, np.exp(0.3 * sharpness))


def draw_features(rng: Generator, queries: QueryTraits, query_of: IndexArray, features: Values) -> None:
    """Fill `features` (136 x documents); document i belongs to query `query_of[i]`."""
    n_docs = len(query_of)
    topicality, popularity = rng.standard_normal((2, n_docs), dtype=np.float32)
    match = _draw_match(rng, queries.n_terms[query_of], queries.term_idf[:, query_of], topicality, popularity)
    for number, family in enumerate(MATCH_FAMILIES):
        _round(family.values(match), family.decimals, features[number * N_ROWS : (number + 1) * N_ROWS])
    documents = Documents(topicality, popularity)
    noise = rng.standard_normal((len(DOCUMENT_FEATURES), n_docs), dtype=np.float32)
    for number, feature in enumerate(DOCUMENT_FEATURES):
        _round(feature.values(documents, noise[number]), feature.decimals, features[N_MATCH_FEATURES + number])


def _draw_match(
    rng: Generator,
    n_terms: Values,
    term_idf: Values,
    topicality: Values,
    popularity: Values,
) -> Match:
    counts = np.empty((5, N_ROWS, len(n_terms)), dtype=np.float32)
    for row, stream in enumerate(STREAMS):
        counts[:, row] = _draw_stream(rng, stream, n_terms, topicality, popularity)
    counts[:, WHOLE] = counts[:, :WHOLE].sum(axis=1)
    length, covered, total, smallest, largest = counts
    # what one stream lacks another may have
    covered[WHOLE] = np.minimum(n_terms, np.ceil(0.75 * covered[:WHOLE].max(axis=0) + 0.25 * covered[WHOLE]))
    smallest[WHOLE] = np.where(covered[WHOLE] < n_terms, 0, np.maximum(smallest[WHOLE], 1))
    mean = total / n_terms
    # exact for one or two terms, an upper bound for more (Bhatia and Davis)
    variance = np.maximum(largest - mean, 0) * np.maximum(mean - smallest, 0)
    return Match(
        n_terms, term_idf, length, covered, total, smallest, largest, mean, variance, 1 / np.maximum(length, 1)
    )


def _draw_stream(
    rng: Generator, stream: Stream, n_terms: Values, topicality: Values, popularity: Values
) -> tuple[Values, ...]:
    """Length, covered terms, and total, smallest and largest number of occurrences."""
    z = rng.standard_normal((3, len(n_terms)), dtype=np.float32)
    u = rng.random((4, len(n_terms)), dtype=np.float32)
    present = u[0] < _sigmoid(stream.present + stream.popularity * popularity)
    length = np.floor(np.exp(stream.log_length[0] + stream.log_length[1] * z[0]) + 1) * present
    bias, gain = stream.match
    chance = _sigmoid(bias + gain * (0.8 * topicality + 0.9 * z[1]))
    covered = np.minimum(np.floor(n_terms * chance + u[1]), length)
    more = stream.density * length * np.exp(0.3 * topicality + 0.7 * z[2]) * covered / n_terms
    total = np.minimum(covered + np.floor(more + u[2]), length)
    # the most frequent term has between an even share and all but one occurrence of each other covered term
    even = total / np.maximum(covered, 1)
    skew = u[3] * u[3]
    largest = np.where(covered > 1, np.ceil(even + (total - covered + 1 - even) * skew), total)
    smallest = np.where(covered < n_terms, 0, np.where(covered > 1, np.maximum(np.floor(even * (1 - skew)), 1), total))
    return length, covered, total, smallest, largest


def _sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


def _round(values: Values, decimals: int, out: Values) -> None:
    """To a number of decimals; counts are rounded down, as what has not quite happened has not happened."""
    if decimals == 0:
        np.floor(values, out=out)
        return
    np.multiply(values, np.float32(10.0**decimals), out=out)
    np.rint(out, out=out)
    out /= np.float32(10.0**decimals)
