"""Synthetic ranking data: shaped like the MSLR-WEB data sets, of any size, with known relevance."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, overload

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from rankwood.data.dataset import Dataset
from rankwood.data.synthetic_relevance import draw_labels, known_relevance
from rankwood.data.synthetic_world import (
    DOCUMENT_FEATURES,
    FEATURE_NAMES,
    N_MATCH_FEATURES,
    draw_features,
    draw_queries,
)
from rankwood.dtypes import FEATURE, LABEL, OFFSET, FeatureMatrix, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError, RankwoodError
from rankwood.threads import resolve_threads

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
    """Draw web-search-like ranking data: counts, ratios, log-probabilities, heavy tails; labels 0 to 4.

    Every seed draws from the same world, so data of another seed is a fair test set. With the same seed and
    `docs_per_query`, fewer queries are the first ones of more. The result is the same for any number of threads.

    docs_per_query    mean number of documents; it varies between queries (some have one, some several times the mean)
                      unless `fixed_size`
    n_features        136, of which some are constant within a query; fewer leave some out, more add distractors
    missing           share of missing values (NaN) in the features that may miss: links, site rank, quality, click log
    noise             standard deviation of the noise on relevance; what the features explain has 1
    return_relevance  also return the relevance without noise, one value per document: the best possible score

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
    """Features x documents, relevance and labels of the queries of one block."""
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
    """Documents x features that have nothing to do with relevance. One stream each: more of them change no others."""
    streams = [_stream(seed, _DISTRACTORS, block, number) for number in range(n_features - len(FEATURE_NAMES))]
    return np.stack([np.round(np.exp(rng.standard_normal(n_docs, dtype=np.float32)), 3) for rng in streams], axis=1)


def _choose_columns(n_features: int) -> IndexArray:
    """Numbers of the features to keep, in order: spread over the families, beginning with BM25."""
    n = len(FEATURE_NAMES)
    return np.sort((_FIRST + _STRIDE * np.arange(min(n_features, n))) % n)


def _stream(seed: int, *key: int) -> Generator:
    return Generator(SFC64(SeedSequence(seed, spawn_key=key)))


def _check_memory(n_docs: int, n_features: int) -> None:
    """Refuse now what would otherwise end in the middle, or end other programs."""
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
