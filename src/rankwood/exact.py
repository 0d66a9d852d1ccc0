"""Sums of floating-point numbers that do not depend on the order, nor on who adds up which part."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.group import ALONE, Group

LOWEST = -1075  # exponents that `frexp` gives of doubles lie above it
N_EXPONENTS = 1024 - LOWEST + 1
PIECE = 1 << 24  # values added up at a time: 2^24 halves of mantissas, each below 2^27, sum to less than 2^53


def exact_sum(values: FloatArray, group: Group = ALONE) -> Fraction:
    """The sum of finite numbers, not rounded: `float()` of it is the double nearest to it.

    Mantissas are whole numbers. They are added up separately for every exponent, in two halves.

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
    sums = np.zeros((2, N_EXPONENTS), dtype=np.int64)
    for start in range(0, len(values), PIECE):
        sums += _sums_by_exponent(np.asarray(values[start : start + PIECE], dtype=np.float64)).astype(np.int64)
    total = Fraction(0)
    for upper, lower in group.gather(_nonzero(sums)):
        for exponent, value in (*upper, *lower):
            total += value * Fraction(2) ** exponent
    return total


def exact_mean(values: FloatArray, weights: FloatArray | None = None, group: Group = ALONE) -> float:
    """The mean of finite numbers, rounded once; products with weights are rounded before. 0 over 0 is NaN.

    Parameters
    ----------
    values : array of float
        Finite numbers.
    weights : array of float, optional
        Weight of every value.
    group : Group
        Processes whose values count together.

    Examples
    --------
    >>> exact_mean(np.array([0.1] * 10))
    0.1
    """
    if weights is None:
        total, weight = exact_sum(values, group), Fraction(int(group.sum(np.array([len(values)]))[0]))
    else:
        total, weight = exact_sum(values * weights, group), exact_sum(weights, group)
    return float(total / weight) if weight else float("nan")


def _sums_by_exponent(values: FloatArray) -> FloatArray:
    """Sums of the upper and lower halves of mantissas, for every exponent: 2 x exponents, whole numbers."""
    mantissas, exponents = np.frexp(values)
    scaled = mantissas * 2.0**26
    upper = np.trunc(scaled)
    lower = (scaled - upper) * 2.0**27
    places = exponents - LOWEST
    return np.stack([np.bincount(places, half, N_EXPONENTS) for half in (upper, lower)])


def _nonzero(sums: IndexArray) -> list[list[tuple[int, int]]]:
    """Exponents of two, and how often, of all that is not 0."""
    return [
        [(int(place) + LOWEST - digits, int(row[place])) for place in np.flatnonzero(row)]
        for row, digits in zip(sums, (26, 53), strict=True)
    ]
