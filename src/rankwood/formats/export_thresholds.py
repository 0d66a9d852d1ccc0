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
    than t's: below zero and near it), it is one of the two next to it that some t gives, and that for which 0, whole
    numbers and other short ones go where they shall.

    >>> written, reached = solr(np.array([0.5, 100.0, 0.0, -1e-35]))
    >>> written.tolist(), reached.tolist()[:3], bool(0.0 <= reached[3])
    ([0.4999989867210388, 100.0, -9.999999974752427e-07, -1.0000001111620804e-06], [0.5, 100.0, 0.0], False)
    """
    wanted, place = np.unique(round_down(thresholds), return_inverse=True)
    below, above = _solr_neighbours(wanted)
    with np.errstate(over="ignore", under="ignore"):
        low, high = below + SOLR_SLACK, above + SOLR_SLACK
        takes_above = low != wanted
        for number in np.flatnonzero(takes_above & (high != wanted)).tolist():
            takes_above[number] = _takes_above(low[number], wanted[number], high[number])
        written = np.where(takes_above, above, below)
        return written[place], (written + SOLR_SLACK)[place]


def _solr_neighbours(wanted: Floats) -> tuple[Floats, Floats]:
    """The numbers whose sums with the slack are the largest up to each one wanted, and the smallest from it on."""
    with np.errstate(over="ignore", under="ignore"):
        tried = [wanted - SOLR_SLACK]
        for direction in (-np.inf, np.inf):
            step = tried[0]
            for _ in range(3):  # rounding of difference and sum cannot lead further astray
                step = np.nextafter(step, np.float32(direction))
                tried.append(step)
        sums = np.stack(tried) + SOLR_SLACK
    below = np.where(sums <= wanted, sums, np.float32(-np.inf)).argmax(axis=0)
    above = np.where(sums >= wanted, sums, np.float32(np.inf)).argmin(axis=0)
    columns = np.arange(len(wanted))
    return np.stack(tried)[below, columns], np.stack(tried)[above, columns]


def _takes_above(low: np.float32, wanted: np.float32, high: np.float32) -> bool:
    """Whether to compare with `high`, which sends what lies above `wanted` left, and not with `low`, which sends what
    lies up to `wanted` right. The smaller gap decides unless zero lies in it; of equal gaps the one with longer numbers
    at the threshold, since data holds short ones."""
    if wanted < 0 <= high:
        return False
    upper, lower = float(high) - float(wanted), float(wanted) - float(low)
    if upper != lower:
        return upper < lower
    return len(str(wanted)) <= len(str(np.nextafter(wanted, high)))
