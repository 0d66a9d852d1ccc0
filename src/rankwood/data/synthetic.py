"""Synthetic ranking data: shaped like MSLR-WEB, of any size, with known relevance."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FEATURE, LABEL, OFFSET, FeatureMatrix, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError, RankwoodError
from rankwood.system import resolve_threads

# The world that synthetic ranking data is drawn from: queries, documents and their 136 features.
#
# It is modelled on web search. A query has terms of some rarity; a document has text in four streams (body, anchor,
# title, url), links and visitors. Most features say how the query's terms occur in each stream and in the whole
# document.
#
# Arrays are float32 with documents along the last axis; those of a `Match` have five rows: the streams and the whole.


Values: TypeAlias = Any  # a float32 array; numpy's type stubs do not follow float32 arithmetic

_MAX_TERMS = 8
_MAX_RANK = 65535.0


@dataclass(frozen=True)
class Stream:
    """One kind of text of a document.

    Parameters
    ----------
    name : str
        Such as "title".
    present : float
        Log odds that a document of middling popularity has it.
    popularity : float
        What a unit of popularity adds to them.
    log_length : tuple of float
        Mean and spread of the logarithm of its length in words.
    match : tuple of float
        Log odds that it covers a term of the query: bias, and gain per unit of topicality.
    density : float
        Further occurrences of the query's terms, per word.
    rarity : float
        IDF of a term on top of its IDF in the body.
    """

    name: str
    present: float
    popularity: float
    log_length: tuple[float, float]
    match: tuple[float, float]
    density: float
    rarity: float


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
    """Occurrences of the terms of a query in its documents."""

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
    """Properties of documents: how much they are about the query, and how well known they are."""

    topicality: Values
    popularity: Values


@dataclass(frozen=True)
class MatchFamily:
    """A feature of how terms occur, once per stream and once for the whole document."""

    name: str
    values: Callable[[Match], Values]
    decimals: int


@dataclass(frozen=True)
class DocumentFeature:
    """A feature of a document that does not depend on how terms occur."""

    name: str
    values: Callable[[Documents, Values], Values]  # of the documents and the feature's own noise
    decimals: int = 0
    source: str = ""  # features of one source are missing together; "" is never missing


def _cosine(m: Match) -> Values:
    """Cosine between the occurrences of the terms and a query that names each term once."""
    return m.mean / np.sqrt(np.maximum(m.mean * m.mean + m.variance, 1e-6))


def _bm25(m: Match) -> Values:
    relative_length = m.length / AVERAGE_LENGTH
    return m.n_terms * m.term_idf * m.mean * 2.2 / (m.mean + 1.2 * (0.25 + 0.75 * relative_length))


def _log_likelihood(m: Match, frequency: Values, weight: Values | float) -> Values:
    """Log likelihood of the query's terms; 0 for documents that have none of them.

    `frequency` is mixed with the frequency in the collection, which has the weight `weight`.
    """
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
    """Links to a page: many pages have none, a few have hundreds of millions."""
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
    """Properties of `n` random queries."""
    n_terms = np.minimum(1 + rng.poisson(1.5, n), _MAX_TERMS).astype(np.float32)
    body_idf = 0.8 + rng.gamma(4.0, 1.3, n).astype(np.float32) / np.sqrt(n_terms)  # long queries hold common words
    rarity = np.array([[*(stream.rarity for stream in STREAMS), 0.0]], dtype=np.float32).T
    spread = 1 + 0.15 * rng.standard_normal((len(rarity), n), dtype=np.float32)
    offset, sharpness = rng.standard_normal((2, n), dtype=np.float32)
    return QueryTraits(n_terms, body_idf + rarity * spread, offset, np.exp(0.3 * sharpness))


def draw_features(rng: Generator, queries: QueryTraits, query_of: IndexArray, features: Values) -> None:
    """Fill `features` (136 x documents) at random; document i belongs to query `query_of[i]`."""
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
    """Length of a stream in every document, terms that it covers, and total, fewest and most occurrences of a term."""
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
    """Write values to `out`, rounded to a number of decimals; counts are rounded down."""
    if decimals == 0:
        np.floor(values, out=out)
        return
    np.multiply(values, np.float32(10.0**decimals), out=out)
    np.rint(out, out=out)
    out /= np.float32(10.0**decimals)


# How relevant a synthetic document is: a fixed function of its features and of the query, and labels drawn from it.
#
# Main effects alone would suit a linear model. Most of the variance comes from 216 products of waves over two
# features, each of them small, so that an ensemble keeps finding more of them for a thousand trees. Queries differ in
# how relevant their documents are on the whole and in how closely relevance follows the features.


@dataclass(frozen=True)
class Signal:
    """A feature that relevance depends on, squashed to -1..1.

    Parameters
    ----------
    feature : str
        Its name.
    half : float
        Value that becomes 0; 0 becomes -1.
    power : int, default 1
        How steep it is.
    weight : float, default 0.0
        Weight of its main effect.
    """

    feature: str
    half: float
    power: int = 1
    weight: float = 0.0


SIGNALS = (
    Signal("bm25_whole", 16.0, 2, 0.5),
    Signal("length_body", 430.0),
    Signal("page_rank", 9000.0, 1, 0.2),
    Signal("bm25_title", 10.0, 1, 0.35),
    Signal("quality_1", 6.0, 1, 0.1),
    Signal("url_length", 40.0, 3, -0.1),
    Signal("tf_per_word_min_whole", 0.01, 1, 0.3),
    Signal("idf_whole", 9.0, 2),
    Signal("site_rank", 36000.0, 2, 0.1),
    Signal("lm_jelinek_mercer_body", -10.0, 2, -0.3),
    Signal("inlinks", 8.0, 1, 0.1),
    Signal("length_title", 7.0, 2),
    Signal("tf_idf_mean_body", 20.0, 1, 0.1),
    Signal("quality_2", 7.0, 1, -0.1),
    Signal("outlinks", 2.0),
    Signal("lm_dirichlet_title", -16.0, 2, -0.15),
    Signal("url_slashes", 3.0, 3, -0.1),
    Signal("lm_absolute_whole", -10.0, 2, -0.1),
    Signal("bm25_url", 8.0, 1, 0.15),
    Signal("covered_ratio_title", 0.5, 1, 0.2),
    Signal("covered_ratio_whole", 0.5, 1, 0.2),
    Signal("cosine_body", 0.8, 1, 0.2),
    Signal("url_clicks", 1.0, 1, 0.1),
    Signal("url_dwell_time", 10.0, 1, 0.1),
    Signal("bm25_anchor", 5.0, 1, 0.15),
    Signal("query_url_clicks", 1.0, 1, 0.3),
)
N_WAVING = 18  # the signals from the top that interact; the others are mostly zero or have few values
FREQUENCIES = (1.0, 1.5, 2.0, 2.5)  # waves over the range of a signal
PARTNERS = ((1, 6, 10), (2, 9, 13), (3, 11, 16), (4, 7, 14))  # distances to the signals whose next wave it meets

# Measured on a large sample of the world, so that the part that features explain has mean 0 and variance 1.
MAIN_MEAN, MAIN_SCALE = -0.695, 0.692
WAVES_MEAN, WAVES_SCALE = 0.537, 0.0962
OFFSET_SCALE = 1.3  # of the query
SHARPNESS_SQUARED = 1.2  # its mean over queries
THRESHOLDS = (0.047, 0.669, 1.279, 1.890)  # between labels, in standard deviations of the noisy relevance

_GOLDEN = (math.sqrt(5) - 1) / 2
_PHASES = 2 * np.pi * (_GOLDEN * np.arange(1, N_WAVING * len(FREQUENCIES) + 1) % 1)
_WAVE_PHASES = _PHASES.reshape(len(FREQUENCIES), N_WAVING, 1).astype(np.float32)
_WAVE_NUMBERS = np.array(FREQUENCIES, dtype=np.float32)[:, None, None] * np.float32(np.pi)


def main_effects(signals: Values) -> Values:
    """Weighted sum of the signals, per document."""
    effects = np.zeros(signals.shape[1], dtype=np.float32)
    for definition, signal in zip(SIGNALS, signals, strict=True):
        if definition.weight:
            effects += np.float32(definition.weight) * signal
    return effects


def interactions(signals: Values) -> Values:
    """Sum of products of waves over pairs of signals, per document."""
    waves = _WAVE_NUMBERS * signals[:N_WAVING]
    waves += _WAVE_PHASES
    np.sin(waves, out=waves)
    total = np.zeros(signals.shape[1], dtype=np.float32)
    for number, distances in enumerate(PARTNERS):
        wave, following = waves[number], waves[(number + 1) % len(waves)]
        for distance in distances:
            total += np.einsum("sd,sd->d", wave[:-distance], following[distance:])
            total += np.einsum("sd,sd->d", wave[-distance:], following[:distance])
    return total


def squash(features: Values) -> Values:
    """Signals of documents, signals x documents: the features of `SIGNALS`, squashed to -1..1."""
    signals = np.empty((len(SIGNALS), features.shape[1]), dtype=np.float32)
    for definition, signal in zip(SIGNALS, signals, strict=True):
        np.abs(features[COLUMN[definition.feature]], out=signal)
        half = np.float32(abs(definition.half))
        signal[...] = 1 - 2 / (1 + (signal / half) ** definition.power)
    return signals


def known_relevance(features: Values, queries: QueryTraits, query_of: IndexArray) -> Values:
    """Relevance without noise: within a query it orders documents as well as anything can."""
    signals = squash(features)
    explained = (main_effects(signals) - MAIN_MEAN) * MAIN_SCALE + (interactions(signals) - WAVES_MEAN) * WAVES_SCALE
    return OFFSET_SCALE * queries.offset[query_of] + queries.sharpness[query_of] * explained


def draw_labels(rng: Generator, relevance: Values, noise: float) -> FloatArray:
    """Labels 0 to 4 from noisy relevance; thresholds move with the noise, so that shares of labels hardly change."""
    noisy = relevance + np.float32(noise) * rng.standard_normal(len(relevance), dtype=np.float32)
    spread = math.sqrt(OFFSET_SCALE**2 + SHARPNESS_SQUARED + noise**2)
    labels: FloatArray = np.searchsorted(np.array(THRESHOLDS) * spread, noisy).astype(np.float64)
    return labels


_DOCS_PER_BLOCK = 4096  # about; a block's arrays fit the second-level cache
_SIZE_SPREAD = 0.5  # of the logarithm of a query's number of documents
_STRIDE = 45  # order in which few features are chosen; has no divisor in common with 136
_FIRST = FEATURE_NAMES.index("bm25_whole")

# Every purpose has its own random stream, so that changing one option leaves what the others draw as it is.
_SIZES, _WORLD, _LABELS, _MISSING, _DISTRACTORS = range(5)


@overload
def make_ranking(
    n_queries: int = ...,
    docs_per_query: int = ...,
    n_features: int = ...,
    *,
    seed: int = ...,
    missing: float = ...,
    noise: float = ...,
    fixed_size: bool = ...,
    return_relevance: Literal[False] = ...,
    n_threads: int | None = ...,
) -> Dataset: ...
@overload
def make_ranking(
    n_queries: int = ...,
    docs_per_query: int = ...,
    n_features: int = ...,
    *,
    seed: int = ...,
    missing: float = ...,
    noise: float = ...,
    fixed_size: bool = ...,
    return_relevance: Literal[True],
    n_threads: int | None = ...,
) -> tuple[Dataset, FloatArray]: ...
def make_ranking(
    n_queries: int = 1000,
    docs_per_query: int = 120,
    n_features: int = 136,
    *,
    seed: int = 0,
    missing: float = 0.05,
    noise: float = 1.2,
    fixed_size: bool = False,
    return_relevance: bool = False,
    n_threads: int | None = None,
) -> Dataset | tuple[Dataset, FloatArray]:
    """Random ranking data like that of web search: counts, ratios, log-probabilities, heavy tails; labels 0 to 4.

    Every seed draws from the same world, so data of another seed is a fair test set. With the same seed and
    `docs_per_query`, fewer queries are the first ones of more. The result is the same for any number of threads.

    Parameters
    ----------
    n_queries : int, default 1000
        Number of queries.
    docs_per_query : int, default 120
        Mean number of documents. It varies between queries: some have one, some several times the mean.
    n_features : int, default 136
        Of 136 some are constant within a query; fewer leave some out, more add distractors.
    seed : int, default 0
        Same seed, same data.
    missing : float, default 0.05
        Share of missing values (NaN) in the features that may miss: links, site rank, quality, click log.
    noise : float, default 1.2
        Standard deviation of the noise on relevance; what the features explain has 1.
    fixed_size : bool, default False
        Whether every query has `docs_per_query` documents.
    return_relevance : bool, default False
        Whether relevance is returned, too.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    Dataset, or tuple of Dataset and array
        With `return_relevance` also the relevance without noise, one value per document: the best possible score.

    Examples
    --------
    >>> data = make_ranking(n_queries=20, docs_per_query=10)
    >>> data.n_queries, data.n_features
    (20, 136)
    >>> train, rest = data.split(0.6)
    >>> valid, test = rest.split(0.5)
    """
    _check(n_queries, docs_per_query, n_features, seed, missing, noise)
    _check_memory(int(n_queries) * int(docs_per_query), int(n_features))
    per_block = max(1, _DOCS_PER_BLOCK // docs_per_query)
    n_blocks = -(-n_queries // per_block)
    # whole blocks are drawn, even when only part of the last one is kept
    sizes = _draw_sizes(seed, n_blocks * per_block, docs_per_query, fixed_size)
    offsets = np.concatenate([[0], np.cumsum(sizes[:n_queries])]).astype(OFFSET)
    n_docs = int(offsets[-1])
    X = np.empty((n_docs, n_features), dtype=FEATURE)
    y = np.empty(n_docs, dtype=LABEL)
    relevance = np.empty(n_docs, dtype=np.float64)
    columns = _choose_columns(n_features)

    def fill(block: int) -> None:
        first, last = block * per_block, (block + 1) * per_block
        features, known, labels = _draw_block(seed, block, sizes[first:last], missing, noise)
        rows = slice(offsets[first], offsets[min(last, n_queries)])
        n_rows = rows.stop - rows.start
        for column, feature in enumerate(columns):
            X[rows, column] = features[feature, :n_rows]
        y[rows], relevance[rows] = labels[:n_rows], known[:n_rows]
        if n_features > len(columns):
            X[rows, len(columns) :] = _draw_distractors(seed, block, features.shape[1], n_features)[:n_rows]

    with ThreadPoolExecutor(resolve_threads(n_threads)) as pool:
        list(pool.map(fill, range(n_blocks)))  # the list makes errors surface
    names = [FEATURE_NAMES[column] for column in columns]
    names += [f"distractor_{number}" for number in range(1, n_features - len(columns) + 1)]
    data = Dataset(X, y, group=sizes[:n_queries], feature_names=names)
    return (data, relevance) if return_relevance else data


def _draw_block(
    seed: int, block: int, sizes: OffsetArray, missing: float, noise: float
) -> tuple[FeatureMatrix, FeatureMatrix, FloatArray]:
    """Features (x documents), relevance and labels of the queries of one block."""
    rng = _stream(seed, _WORLD, block)
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    queries = draw_queries(rng, len(sizes))
    features = np.empty((len(FEATURE_NAMES), len(query_of)), dtype=FEATURE)
    draw_features(rng, queries, query_of, features)
    relevance = known_relevance(features, queries, query_of)
    labels = draw_labels(_stream(seed, _LABELS, block), relevance, noise)
    _drop_values(_stream(seed, _MISSING, block), features, missing)
    return features, relevance, labels


def _draw_sizes(seed: int, n: int, docs_per_query: int, fixed_size: bool) -> OffsetArray:
    if fixed_size:
        return np.full(n, docs_per_query, dtype=OFFSET)
    z = _stream(seed, _SIZES, 0).standard_normal((n, 2))
    sizes = 1.022 * docs_per_query * np.exp(_SIZE_SPREAD * z[:, 0] - _SIZE_SPREAD**2 / 2)
    sizes[z[:, 1] > 2] *= 0.05  # the 2.3 % of queries that found next to nothing; 1.022 makes up for them
    whole: OffsetArray = np.clip(np.rint(sizes), 1, 10 * docs_per_query).astype(OFFSET)
    return whole


def _drop_values(rng: Generator, features: FeatureMatrix, share: float) -> None:
    if share == 0:
        return
    sources = sorted({feature.source for feature in DOCUMENT_FEATURES if feature.source})
    lost = dict(zip(sources, rng.random((len(sources), features.shape[1]), dtype=np.float32) < share, strict=True))
    for number, feature in enumerate(DOCUMENT_FEATURES):
        if feature.source:
            features[N_MATCH_FEATURES + number, lost[feature.source]] = np.nan


def _draw_distractors(seed: int, block: int, n_docs: int, n_features: int) -> FeatureMatrix:
    """Features that have nothing to do with relevance, documents x features; adding one changes no other."""
    streams = [_stream(seed, _DISTRACTORS, block, number) for number in range(n_features - len(FEATURE_NAMES))]
    return np.stack([np.round(np.exp(rng.standard_normal(n_docs, dtype=np.float32)), 3) for rng in streams], axis=1)


def _choose_columns(n_features: int) -> IndexArray:
    """Numbers of the features to keep, in order: spread over the families, beginning with BM25."""
    n = len(FEATURE_NAMES)
    return np.sort((_FIRST + _STRIDE * np.arange(min(n_features, n))) % n)


def _stream(seed: int, *key: int) -> Generator:
    return Generator(SFC64(SeedSequence(seed, spawn_key=key)))


def _check_memory(n_docs: int, n_features: int) -> None:
    """Refuse data that would not fit into memory, before anything is drawn."""
    needed = n_docs * (n_features * np.dtype(FEATURE).itemsize + np.dtype(LABEL).itemsize + 8)  # 8: relevance
    try:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        return
    if 0 < present < needed:
        gib = 1 << 30
        raise RankwoodError(
            f"{n_docs} documents with {n_features} features need {needed / gib:,.1f} GiB of memory, "
            f"and this machine has {present / gib:,.1f}: ask for fewer queries, documents or features"
        )


def _check(n_queries: int, docs_per_query: int, n_features: int, seed: int, missing: float, noise: float) -> None:
    for name, value in (("n_queries", n_queries), ("docs_per_query", docs_per_query), ("n_features", n_features)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise DataError(f"{name} must be a whole number of at least 1, got {value}")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"seed must be a whole number of at least 0, got {seed}")
    if not 0 <= missing <= 1:
        raise DataError(f"missing is a share and must lie between 0 and 1, got {missing}")
    if not 0 <= noise < math.inf:
        raise DataError(f"noise must be a number of at least 0, got {noise}")
