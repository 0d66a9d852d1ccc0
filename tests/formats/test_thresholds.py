"""Comparisons in float32 as thresholds in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwood.formats.reading import at_most_float32, at_most_of_float32, less_than, less_than_float32

SINGLE = st.floats(width=32, allow_nan=False)
DOUBLE = st.floats(allow_nan=False)
EDGES = [0.0, -0.0, 1e-45, -1e-45, 3.4028234663852886e38, -3.4028234663852886e38, np.inf, -np.inf, 1.0, 2.0**-126]


def around(value: float) -> np.ndarray:
    """Float64 values near which float32 rounding changes its mind."""
    with np.errstate(all="ignore"):
        single = np.float32(value)
        neighbours = [np.nextafter(single, np.float32(side)) for side in (np.inf, -np.inf)]
        points = np.array([value, single, *neighbours], dtype=np.float64)
        middles = np.array([(points[1] + other) / 2 for other in points[2:]])
        limit = 0.5 * (2.0**128 + float(np.finfo(np.float32).max))
        points = np.concatenate([points, middles, [0.0, -0.0, np.inf, -np.inf, limit, -limit, 1e308, -1e308]])
        return np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])


def rounded(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(np.float32)


@given(DOUBLE)
@example(1e39)
@example(-1e39)
def test_at_most(value):
    x = around(value)
    x = x[~np.isnan(x)]
    np.testing.assert_array_equal(x <= at_most_float32([value])[0], rounded(x).astype(np.float64) <= value)


@given(SINGLE)
def test_less_than(value):
    x = around(value)
    x = x[~np.isnan(x)]
    threshold = less_than_float32([value])[0]
    assert np.isnan(threshold) == (value == -np.inf)
    np.testing.assert_array_equal(x <= threshold, rounded(x) < np.float32(value))


@pytest.mark.parametrize("value", EDGES)
def test_edges(value):
    test_at_most.hypothesis.inner_test(value)
    test_less_than.hypothesis.inner_test(value)


@given(DOUBLE)
def test_less_than_in_double(value):
    x = around(value)
    x = x[~np.isnan(x)]
    np.testing.assert_array_equal(x <= less_than([value])[0], x < value)


def test_values_are_taken_as_float32():
    assert at_most_of_float32([0.1])[0] == at_most_float32([np.float32(0.1)])[0] > 0.1


def test_nan_stays_for_the_model_to_refuse():
    assert np.isnan(at_most_float32([np.nan])).all()
