"""How relevant a synthetic document is: a fixed function of its features and of the query, and labels drawn from it.

Main effects alone would suit a linear model. Most of the variance comes from 216 products of waves over two features,
each of them small, so that an ensemble keeps finding more of them for a thousand trees. Queries differ in how relevant
their documents are on the whole and in how closely relevance follows the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from rankwood.data.synthetic_world import COLUMN, QueryTraits, Values
from rankwood.dtypes import FloatArray, IndexArray


@dataclass(frozen=True)
class Signal:
    """A feature that relevance depends on, squashed to -1..1: -1 at zero, 0 at `half`, steep by `power`."""

    feature: str
    half: float
    power: int = 1
    weight: float = 0.0  # of its main effect


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
    effects = np.zeros(signals.shape[1], dtype=np.float32)
    for definition, signal in zip(SIGNALS, signals, strict=True):
        if definition.weight:
            effects += np.float32(definition.weight) * signal
    return effects


def interactions(signals: Values) -> Values:
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
    """Signals x documents."""
    signals = np.empty((len(SIGNALS), features.shape[1]), dtype=np.float32)
    for definition, signal in zip(SIGNALS, signals, strict=True):
        np.abs(features[COLUMN[definition.feature]], out=signal)
        half = np.float32(abs(definition.half))
        signal[...] = 1 - 2 / (1 + (signal / half) ** definition.power)
    return signals


def known_relevance(features: Values, queries: QueryTraits, query_of: IndexArray) -> Values:
    """Relevance without noise. Within a query it orders documents as well as anything can."""
    signals = squash(features)
    explained = (main_effects(signals) - MAIN_MEAN) * MAIN_SCALE + (interactions(signals) - WAVES_MEAN) * WAVES_SCALE
    return OFFSET_SCALE * queries.offset[query_of] + queries.sharpness[query_of] * explained


def draw_labels(rng: Generator, relevance: Values, noise: float) -> FloatArray:
    """Labels 0 to 4. The thresholds move with the noise, so that the shares of the labels stay about the same."""
    noisy = relevance + np.float32(noise) * rng.standard_normal(len(relevance), dtype=np.float32)
    spread = math.sqrt(OFFSET_SCALE**2 + SHARPNESS_SQUARED + noise**2)
    labels: FloatArray = np.searchsorted(np.array(THRESHOLDS) * spread, noisy).astype(np.float64)
    return labels
