"""Thresholds for engines that compare otherwise than we do: `<` for `<=`, float32, a slack that is added.

We say left when `x <= t`, in float64. Each function gives the thresholds with which an engine says left for the same x.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray
from rankwood.engines.c_numbers import round_down

Floats = NDArray[np.float32]
LARGEST = float(np.finfo(np.float64).max)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
SOLR_SLACK = np.float32(1e-6)


def at_most_single(thresholds: FloatArray) -> Floats:
    """For `x <= t` with x and t in float32."""
    return round_down(thresholds)


def below_single(thresholds: FloatArray) -> Floats:
    """For `x < t` with x and t in float32. From the largest float32 on it is infinity, which no infinite x is below.

    >>> below_single(np.array([1.0, 0.1, -0.0, 1e300, -np.inf])).tolist()
    [1.0000001192092896, 0.10000000149011612, 1.401298464324817e-45, inf, -3.4028234663852886e+38]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: Floats = np.nextafter(round_down(thresholds), np.float32(np.inf))
    return above


def below_double(thresholds: FloatArray) -> FloatArray:
    """For `x < t` with x and t in float64.

    >>> below_double(np.array([1.0, 0.0])).tolist()
    [1.0000000000000002, 5e-324]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: FloatArray = np.nextafter(thresholds, np.inf)
    return above


def solr(thresholds: FloatArray) -> tuple[Floats, Floats]:
    """For Solr's `x <= t + 1e-6` in float32: the t to write, and what each sum comes to.

    The sum shall be the threshold rounded down to float32. Where no float32 gives it (the sum's neighbours lie closer
    than t's: below zero and near it), it is the nearest that one gives.

    >>> written, reached = solr(np.array([0.5, 100.0, 0.0]))
    >>> written.tolist(), reached.tolist()
    ([0.4999989867210388, 100.0, -9.999999974752427e-07], [0.5, 100.0, 0.0])
    """
    wanted = round_down(thresholds)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        best = wanted - SOLR_SLACK
        reached = best + SOLR_SLACK
        for direction in (-np.inf, np.inf):
            tried = np.nextafter(wanted - SOLR_SLACK, np.float32(direction))
            for _ in range(2):
                closer = np.abs((tried + SOLR_SLACK).astype(np.float64) - wanted) < np.abs(
                    reached.astype(np.float64) - wanted
                )
                best = np.where(closer, tried, best)
                reached = np.where(closer, tried + SOLR_SLACK, reached)
                tried = np.nextafter(tried, np.float32(direction))
    return best, reached
