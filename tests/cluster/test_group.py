"""What all groups derive from `exchange`, with ranks as threads."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwood.exact import exact_mean, exact_sum
from rankwood.group import ALONE, LARGE
from thread_group import run_threads

sizes = st.integers(1, 5)
shapes = st.sampled_from([(), (1,), (7,), (3, 5), (LARGE // 8,), (3, LARGE // 8 + 1)])


@given(size=sizes, shape=shapes, seed=st.integers(0, 99))
def test_sums_and_maxima_are_those_of_all_arrays(size, shape, seed):
    parts = np.random.default_rng(seed).integers(-(2**40), 2**40, (size, *shape))

    def program(group, share):
        return group.sum(share), group.max(share)

    for total, largest in run_threads(program, list(parts)):
        np.testing.assert_array_equal(total, parts.sum(axis=0))
        np.testing.assert_array_equal(largest, parts.max(axis=0))


@given(values=st.lists(st.integers(), min_size=1, max_size=5))
def test_gather_broadcast_and_exchange(values):
    def program(group, share):
        crossed = group.exchange([(group.rank, to) for to in range(group.size)])
        return group.gather(share), group.broadcast(share), crossed

    for rank, (gathered, first, crossed) in enumerate(run_threads(program, values)):
        assert gathered == values
        assert first == values[0]
        assert crossed == [(sender, rank) for sender in range(len(values))]


@given(values=st.lists(st.floats(-1e300, 1e300), max_size=20), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_exact_sums_do_not_depend_on_shares(values, cuts):
    shares = np.split(np.array(values, dtype=np.float64), sorted(cuts))

    def program(group, share):
        return exact_sum(share, group), exact_mean(share, None, group)

    mean = exact_mean(np.array(values, dtype=np.float64), None, ALONE)
    for total, one_mean in run_threads(program, shares):
        assert total == sum(map(Fraction, values), Fraction(0))
        np.testing.assert_equal(one_mean, mean)


def test_an_error_of_one_thread_ends_all():
    def program(group, share):
        if share == 1:
            raise LookupError("one")
        group.gather(share)

    with pytest.raises(LookupError, match="one"):
        run_threads(program, [0, 1, 2])
