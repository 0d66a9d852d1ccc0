"""Sums that do not depend on the order, nor on who adds up which part: against exact rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwood.exact import exact_mean, exact_means, exact_sum, in_units
from thread_group import run

pytestmark = pytest.mark.native

FINITE = st.floats(allow_nan=False, allow_infinity=False)
EXTREMES = st.sampled_from(
    [5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**31, -0.0]
)


@given(st.lists(st.one_of(FINITE, EXTREMES), max_size=40))
def test_sums_are_those_of_rational_numbers(values):
    assert exact_sum(np.array(values, dtype=float)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.one_of(FINITE, st.just(math.nan)), min_size=1, max_size=40), st.randoms())
def test_means_are_rounded_once_whatever_the_order(values, random):
    counted = [Fraction(value) for value in values if not math.isnan(value)]
    expected = float(sum(counted) / len(counted)) if counted else math.nan
    for _ in range(3):
        np.testing.assert_equal(exact_mean(np.array(values)), expected)
        random.shuffle(values)


def test_weights_and_what_is_left_out():
    values = np.array([[1.0, np.nan, 0.0], [np.nan] * 3, [1.0, 1.0, 1.0]])
    np.testing.assert_equal(exact_means(values, np.array([3.0, 5.0, 1.0])), [0.75, np.nan, 1.0])
    np.testing.assert_equal(exact_means(values, np.zeros(3)), [np.nan] * 3)
    np.testing.assert_equal(exact_means(np.empty((2, 0))), [np.nan] * 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, math.inf], math.inf), ([-math.inf, 1e308], -math.inf), ([math.inf, -math.inf], math.nan)],
)
def test_infinite_values(values, expected):
    np.testing.assert_equal(exact_mean(np.array(values)), expected)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_processes_add_up_to_the_same(size):
    rng = np.random.default_rng(size)
    values = rng.normal(size=(3, 1000)) * 10.0 ** rng.integers(-200, 200, 1000)
    weights = rng.random(1000)
    cuts = np.sort(rng.integers(0, 1000, size - 1))
    parts = list(zip(np.split(values, cuts, axis=1), np.split(weights, cuts), strict=True))
    expected = exact_means(values, weights).tolist(), exact_sum(values[0]), in_units([values[0], weights])

    def of_part(group):
        mine, own = parts[group.rank]
        return exact_means(mine, own, group).tolist(), exact_sum(mine[0], group), in_units([mine[0], own], group)

    found = run(size, of_part)
    assert all(one[:2] == expected[:2] for one in found)
    for place, (whole, unit) in enumerate(expected[2]):
        assert all(one[2][place][1] == unit for one in found)
        assert np.concatenate([one[2][place][0] for one in found]).tolist() == whole.tolist()


@given(st.lists(FINITE, min_size=1, max_size=50))
def test_units_hold_any_sum(values):
    array = np.array(values)
    ((whole, unit),) = in_units([array])
    assert sum(map(abs, whole.tolist())) < 2**63
    largest = np.abs(array).max()
    assert np.abs(whole * unit - array).max() <= max(largest * (len(values) * 2.0**-60), 2.0**-1000)


def test_a_number_that_is_not_finite_has_no_unit():
    (whole, unit), (_, fine) = in_units([np.array([1.0, np.nan]), np.array([1.0, 2.0])])
    assert math.isnan(unit)
    assert whole.tolist() == [0, 0]
    assert math.isfinite(fine)
