"""Comparisons of other tools as `x <= threshold` in float64, exactly.

Many tools round a value to float32 before they compare it. Rounding is monotone, so the values that round to f or less
are those up to the middle between f and its successor, where the tie goes to the even one. That middle needs 25 bits
and so is a float64: with it as threshold, a float64 value is decided as its rounding would be, and a float32 value as
ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray

INFINITY = np.float32(np.inf)
LARGEST = np.finfo(np.float32).max


def at_most_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when float32(x) <= value, for every float64 x. A NaN stays one.

    >>> thresholds = at_most_float32([1.0])
    >>> [bool(np.float32(x) <= 1.0) == bool(x <= thresholds[0]) for x in (1.0, 1.00000005, 1.00000006, 1.0000001)]
    [True, True, True, True]
    """
    exact = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        below = exact.astype(np.float32)
        below = np.where(below.astype(np.float64) > exact, np.nextafter(below, -INFINITY), below)  # largest <= value
        above = np.nextafter(below, INFINITY)
        # Beyond the largest float32, rounding goes on as if there were one more: at 2**128, which becomes infinity.
        middle = 0.5 * (below.astype(np.float64) + np.where(np.isinf(above), 2.0**128, above.astype(np.float64)))
        middle = np.where(below == -INFINITY, 0.5 * (-(2.0**128) - np.float64(LARGEST)), middle)
        is_even = (np.abs(below).view(np.uint32) & 1) == 0
        middle = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    result: FloatArray = np.where(below == INFINITY, np.inf, middle)
    return result


def at_most_of_float32(values: Any) -> FloatArray:
    """Thresholds of values that the tool holds in float32, whatever their text says: x <= T just when
    float32(x) <= float32(value)."""
    with np.errstate(all="ignore"):
        return at_most_float32(np.asarray(values).astype(np.float32))


def less_than_float32(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when float32(x) < float32(value); NaN where no x is less: below -infinity.

    >>> thresholds = less_than_float32([0.0])
    >>> bool(0.0 <= thresholds[0]), bool(-1e-45 <= thresholds[0])
    (False, True)
    """
    with np.errstate(all="ignore"):
        limits = np.atleast_1d(np.asarray(values)).astype(np.float32)
        below = np.nextafter(limits, -INFINITY)
    return np.where(limits == -INFINITY, np.nan, at_most_float32(below))


def less_than(values: Any) -> FloatArray:
    """Thresholds T so that x <= T just when x < value, in float64; NaN where no x is less."""
    limits = np.atleast_1d(np.asarray(values, dtype=np.float64))
    with np.errstate(all="ignore"):
        result: FloatArray = np.where(limits == -np.inf, np.nan, np.nextafter(limits, -np.inf))
    return result
