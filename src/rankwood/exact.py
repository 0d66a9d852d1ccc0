"""Sums of floating-point numbers that do not depend on the order, nor on who adds up which part."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from rankwood import _native
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.group import ALONE, Group

DIGITS = _native.EXACT_DIGITS  # of 32 bits each, in a sum that is not rounded
SMALLEST = 1074  # every finite double is a whole multiple of 2^-1074


def exact_sum(values: FloatArray, group: Group = ALONE) -> Fraction:
    """The sum of finite numbers, not rounded: `float()` of it is the double nearest to it.

    Parameters
    ----------
    values : array of float
        Finite numbers.
    group : Group
        Processes whose values are added up together.

    Examples
    --------
    >>> float(exact_sum(np.array([1e16, 1.0, -1e16])))
    1.0
    """
    return Fraction(_whole(group.sum(_sums(values, None))[0, 0]), 1 << SMALLEST)


def exact_mean(values: FloatArray, weights: FloatArray | None = None, group: Group = ALONE) -> float:
    """The mean of numbers, rounded once: `exact_means` of a single row.

    Examples
    --------
    >>> exact_mean(np.array([0.1] * 10))
    0.1
    """
    return float(exact_means(np.asarray(values)[None], weights, group)[0])


def exact_means(values: FloatArray, weights: FloatArray | None = None, group: Group = ALONE) -> FloatArray:
    """The mean of every row of numbers, rounded once; products with weights are rounded before.

    Parameters
    ----------
    values : array of float, rows x numbers
        Those that are NaN are left out.
    weights : array of float, optional
        Weight of every number of a row, from 0 up.
    group : Group
        Processes whose numbers count together: each has its part of every row.

    Returns
    -------
    array of float
        One per row; NaN where nothing counts, or all that counts weighs 0.

    Examples
    --------
    >>> exact_means(np.array([[1.0, np.nan, 0.0], [3.0, 2.0, 1.0]]), np.array([3.0, 1.0, 1.0])).tolist()
    [0.75, 2.4]
    """
    means = []
    for total, *weight in group.sum(_sums(values, weights)):
        divisor = _whole(weight[0]) if weight else int(total[DIGITS:].sum()) << SMALLEST
        means.append(_divided(total, divisor) if divisor else math.nan)
    return np.array(means, dtype=np.float64)


def rounded(sums: IndexArray) -> FloatArray:
    """Sums that a kernel left as digits, each rounded once to the nearest double.

    Parameters
    ----------
    sums : array of int, rows x digits
        As `_native.exact_sums` writes them, perhaps added up over processes.
    """
    return np.array([_divided(row, 1 << SMALLEST) for row in sums], dtype=np.float64)


def in_units(arrays: list[FloatArray], group: Group = ALONE) -> list[tuple[IndexArray, float]]:
    """Numbers as whole multiples of a unit, so small that the sum of all of them just fits into 63 bits.

    Parameters
    ----------
    arrays : list of array of float
        Each is given a unit of its own. All have the same length.
    group : Group
        Processes that have other parts of the same arrays: they get the same units.

    Returns
    -------
    list of (array of int, float)
        The multiples and the unit, which is a power of two; NaN, with multiples 0, when a number is not finite.

    Examples
    --------
    >>> (whole, unit), = in_units([np.array([0.25, -1.0])])
    >>> whole.sum() * unit
    np.float64(-0.75)
    """
    largest = [float(max(one.max(initial=0.0), -one.min(initial=0.0))) for one in arrays]  # NaN where there is one
    told = group.gather((largest, len(arrays[0])))
    n_digits = max(sum(count for _, count in told) - 1, 1).bit_length()
    found = []
    for place, one in enumerate(arrays):
        most = float(np.max([numbers[place] for numbers, _ in told]))
        if not math.isfinite(most):
            found.append((np.zeros(len(one), np.int64), math.nan))
            continue
        shift = min(62 - n_digits - math.frexp(most)[1], 1000)  # beyond that even the largest is as good as 0
        found.append((np.rint(one * 2.0**shift).astype(np.int64), 2.0**-shift))
    return found


def _sums(values: FloatArray, weights: FloatArray | None) -> IndexArray:
    """Sums of rows that are not rounded, as digits."""
    rows = np.ascontiguousarray(values, dtype=np.float64)
    rows = rows if rows.ndim == 2 else rows[None]
    sums: IndexArray = np.empty((len(rows), 1 if weights is None else 2, _native.EXACT_WIDTH), np.int64)
    _native.exact_sums(rows, None if weights is None else np.ascontiguousarray(weights, dtype=np.float64), sums)
    return sums


def _divided(row: Any, divisor: int) -> float:
    """A sum over a divisor, both in units of the smallest double, rounded once."""
    _, above, below = row[DIGITS:]
    if above or below:
        return math.nan if above and below else math.inf if above else -math.inf
    try:
        return _whole(row) / divisor
    except OverflowError:
        return math.copysign(math.inf, _whole(row))


def _whole(row: Any) -> int:
    """The number that digits stand for, of 32 bits each with room for carries: those but the last are not negative."""
    digits = np.ascontiguousarray(row[:DIGITS], dtype="<i8")
    even, odd = (int.from_bytes(digits[start : DIGITS - 1 : 2].tobytes(), "little") for start in (0, 1))
    return even + (odd << 32) + (int(digits[-1]) << 32 * (DIGITS - 1))
