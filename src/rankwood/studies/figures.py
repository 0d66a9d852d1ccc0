"""What several figures need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwood.dtypes import FloatArray

SMOOTHED_FROM = 5  # points that a smoothing spline needs


def smooth(x: Sequence[float], y: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """A smooth curve through points, over the logarithm of x; with fewer than five, straight lines.

    A cubic smoothing spline, its penalty chosen by generalised cross-validation.

    >>> curve_x, curve_y = smooth([1, 10, 100], [0.0, 1.0, 0.0])
    >>> curve_y.max().round(2).item(), len(curve_x) == len(curve_y)
    (1.0, True)
    """
    order = np.argsort(x, kind="stable")
    at, values = np.log(np.asarray(x, dtype=np.float64)[order]), np.asarray(y, dtype=np.float64)[order]
    at, first = np.unique(at, return_index=True)
    values = values[first]
    dense = np.linspace(at[0], at[-1], 201)
    if len(at) < SMOOTHED_FROM:
        return np.exp(dense), np.interp(dense, at, values)
    from scipy.interpolate import make_smoothing_spline

    return np.exp(dense), make_smoothing_spline(at, values)(dense)
