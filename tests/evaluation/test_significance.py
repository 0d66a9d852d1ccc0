"""Tests of significance against scipy, slow twins and hand-computed answers."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from oracles import significance as oracle
from rankwood import _native
from rankwood.errors import DataError, RankwoodError

pytestmark = pytest.mark.native

ALTERNATIVES = ["two-sided", "greater", "less"]
MIRROR = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
TESTS = [rw.randomisation_test, rw.wilcoxon_test, rw.paired_t_test]
MARGIN_TESTS = [rw.non_inferiority_test, rw.equivalence_test]

values = st.one_of(
    st.integers(0, 8).map(lambda k: k / 8), st.floats(0, 1), st.floats(-1e6, 1e6), st.sampled_from([0.1, 0.2, 0.3])
)
pairs = st.lists(st.tuples(values, values), min_size=2, max_size=40).map(lambda rows: np.array(rows).T)
few_whole_pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=9)


def draw(n: int, seed: int = 0, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.uniform(0, 1, n)
    return a, np.clip(a + rng.normal(shift, 0.1, n), 0, 1)


# ---- the kernels and their twins ----


def test_the_twin_generator_is_splitmix64():
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [oracle.splitmix64(1234567, i) for i in range(4)] == expected


@settings(max_examples=40)
@given(
    magnitudes=st.lists(st.integers(0, 2**50), max_size=20),
    bound=st.integers(-(2**52), 2**52),
    two_sided=st.booleans(),
    n_permutations=st.integers(1, 50),
    seed=st.integers(0, 2**64 - 1),
)
def test_sampled_sign_flips_equal_the_twin(magnitudes, bound, two_sided, n_permutations, seed):
    expected = oracle.count_random_sign_flips(magnitudes, bound, two_sided, n_permutations, seed)
    array = np.array(magnitudes, dtype=np.int64)
    assert _native.count_sign_flips(array, bound, two_sided, n_permutations, False, seed, 1) == expected


@settings(max_examples=40)
@given(
    numbers=st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=30),
    seed=st.integers(0, 2**64 - 1),
    n_threads=st.integers(1, 3),
)
def test_bootstrap_sums_equal_the_twin(numbers, seed, n_threads):
    sums = np.empty(7, dtype=np.int64)
    _native.bootstrap_sums(np.array(numbers, dtype=np.int64), seed, n_threads, sums)
    assert sums.tolist() == oracle.bootstrap_sums(numbers, seed, 7)


def test_kernels_refuse_what_would_overflow():
    huge = np.array([2**61 - 1, 1], dtype=np.int64)
    with pytest.raises(ValueError, match="add up to less than"):
        _native.count_sign_flips(huge, 0, True, 10, False, 0, 1)
    with pytest.raises(ValueError, match="must not be negative"):
        _native.count_sign_flips(np.array([-1]), 0, True, 10, False, 0, 1)
    with pytest.raises(ValueError, match="would overflow"):
        _native.bootstrap_sums(2 * huge, 0, 1, np.empty(1, dtype=np.int64))
    with pytest.raises(ValueError, match="would overflow"):
        _native.bootstrap_sums(np.array([-(2**63)]), 0, 1, np.empty(1, dtype=np.int64))
    with pytest.raises(ValueError, match="too many"):
        _native.count_sign_flips(np.ones(64, dtype=np.int64), 0, True, 10, True, 0, 1)


# ---- known answers and other tools ----


def test_randomisation_known_answer():
    # differences 1, 2, 4: of the 8 sums +-1 +-2 +-4 only +7 is >= 7, and only -7 is <= -7
    result = rw.randomisation_test([0, 0, 0], [1, 2, 4])
    assert (result.p_value, result.exact, result.n_permutations) == (2 / 8, True, 8)
    assert rw.randomisation_test([0, 0, 0], [1, 2, 4], alternative="greater").p_value == 1 / 8
    assert rw.randomisation_test([0, 0, 0], [1, 2, 4], alternative="less").p_value == 1
    assert result.mean_difference == result.statistic == pytest.approx(7 / 3)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(rows=few_whole_pairs)
def test_exact_p_values_equal_enumeration_in_fractions(alternative, rows):
    a, b = np.array(rows).T
    differences = [int(d) for d in b - a]
    # tenths: in floating point 0.3 - 0.2 is not 0.1, yet they must tie
    found = rw.randomisation_test(a / 10, b / 10, alternative=alternative)
    assert found.exact
    assert found.p_value == float(oracle.exact_randomisation_p(differences, alternative))
    ranked = rw.wilcoxon_test(a / 10, b / 10, alternative=alternative)
    assert ranked.p_value == pytest.approx(float(oracle.exact_wilcoxon_p(differences, alternative)), rel=1e-14)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [2, 5, 12])
def test_randomisation_equals_scipy_when_exact(n, alternative):
    from scipy import stats

    a, b = draw(n, seed=n, shift=0.05)
    expected = stats.permutation_test(
        (b, a),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        alternative=alternative,
        n_resamples=np.inf,
        vectorized=True,
    )
    found = rw.randomisation_test(a, b, alternative=alternative)
    assert found.exact
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == pytest.approx(expected.statistic)


def test_sampled_p_value_is_close_to_the_exact_one():
    a, b = draw(16, seed=3, shift=0.05)
    exact = rw.randomisation_test(a, b, n_permutations=2**16)
    sampled = rw.randomisation_test(a, b, n_permutations=2**16 - 1)
    assert exact.exact
    assert not sampled.exact
    assert sampled.p_value == pytest.approx(exact.p_value, abs=5 * math.sqrt(exact.p_value / 2**16))
    assert sampled.p_value != rw.randomisation_test(a, b, n_permutations=2**16 - 1, seed=1).p_value


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [4, 30, 50, 51, 400])
def test_wilcoxon_equals_scipy(n, alternative):
    from scipy import stats

    rng = np.random.default_rng(n)
    a, b = rng.uniform(size=(2, n))
    method = "exact" if n <= 50 else "approx"
    expected = stats.wilcoxon(b, a, alternative=alternative, method=method)
    found = rw.wilcoxon_test(a, b, alternative=alternative)
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.exact == (n <= 50)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_equals_scipy_with_zeros_and_ties(alternative):
    from scipy import stats

    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 8, (2, 300)).astype(float)
    expected = stats.wilcoxon(b, a, alternative=alternative, method="approx", zero_method="wilcox")
    found = rw.wilcoxon_test(a, b, alternative=alternative)
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.n_nonzero == np.count_nonzero(a != b)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [2, 10, 1000])
def test_t_test_equals_scipy(n, alternative):
    from scipy import stats

    a, b = draw(n, seed=n, shift=0.02)
    expected = stats.ttest_rel(b, a, alternative=alternative)
    found = rw.paired_t_test(a, b, alternative=alternative)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-11)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_interval_equals_scipy_on_the_same_samples(method):
    from dataclasses import dataclass

    from scipy import stats

    rng = np.random.default_rng(8)
    a = rng.integers(0, 64, 80) / 64
    b = a + rng.integers(0, 64, 80) ** 3 / 2**18  # skewed; all of it exact in fixed point
    sums = np.empty(2000, dtype=np.int64)
    _native.bootstrap_sums(np.sort(((b - a) * 2**18).astype(np.int64)), 4, 1, sums)

    @dataclass
    class Earlier:
        bootstrap_distribution: np.ndarray

    expected = stats.bootstrap(
        (np.sort(b - a),),
        np.mean,
        n_resamples=0,
        method={"percentile": "percentile", "bca": "BCa"}[method],
        bootstrap_result=Earlier(sums / 2**18 / 80),
    ).confidence_interval
    found = rw.bootstrap_interval(a, b, n_resamples=2000, seed=4, method=method)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_interval_covers_the_truth_about_as_often_as_it_says(method):
    rng = np.random.default_rng(9)
    covered = 0
    for seed in range(300):
        d = rng.normal(0.1, 1.0, 60)
        interval = rw.bootstrap_interval(np.zeros(60), d, confidence=0.9, n_resamples=1000, seed=seed, method=method)
        covered += interval.low <= 0.1 <= interval.high
    assert 0.83 < covered / 300 < 0.96


def test_non_inferiority_and_equivalence_equal_one_sample_t_tests():
    from scipy import stats

    a, b = draw(50, seed=2, shift=-0.005)
    margin = 0.03
    not_worse = stats.ttest_1samp(b - a, -margin, alternative="greater").pvalue
    not_better = stats.ttest_1samp(b - a, margin, alternative="less").pvalue
    assert rw.non_inferiority_test(a, b, margin=margin).p_value == pytest.approx(not_worse, rel=1e-9)
    found = rw.equivalence_test(a, b, margin=margin)
    assert (found.p_lower, found.p_upper) == pytest.approx((not_worse, not_better), rel=1e-9)
    assert found.p_value == max(found.p_lower, found.p_upper)
    assert found.statistic < 0 if not_better > not_worse else found.statistic > 0


def test_randomisation_based_margin_tests_agree_with_t_based_ones():
    a, b = draw(300, seed=2, shift=-0.005)
    for test in MARGIN_TESTS:
        by_t, by_signs = (test(a, b, margin=0.015, method=method).p_value for method in ("t", "randomisation"))
        assert by_signs == pytest.approx(by_t, abs=0.02)


def test_holm_known_answers():
    # 0.01*4, 0.02*3, 0.03*2, 0.04*1, each at least as large as the one before
    np.testing.assert_allclose(rw.holm([0.01, 0.02, 0.03, 0.04]), [0.04, 0.06, 0.06, 0.06])
    np.testing.assert_allclose(rw.holm([0.04, 0.001, 0.5, 0.8]), [0.12, 0.004, 1.0, 1.0])
    np.testing.assert_allclose(rw.holm([0.02, 0.02]), [0.04, 0.04])
    assert rw.holm([]).shape == (0,)
    assert rw.holm([0.3]).tolist() == [0.3]


@given(st.lists(st.floats(0, 1), max_size=20), st.randoms(use_true_random=False))
def test_holm_keeps_the_order_and_never_lowers(p, random):
    adjusted = rw.holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p)]) >= 0)
    shuffled = random.sample(range(len(p)), len(p))
    np.testing.assert_array_equal(rw.holm(np.array(p)[shuffled]), adjusted[shuffled])


# ---- properties ----


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=50)
@given(ab=pairs)
def test_swapping_mirrors_and_p_is_a_probability(test, alternative, ab):
    options = {"n_permutations": 300} if test is rw.randomisation_test else {}
    found = test(*ab, alternative=alternative, **options)
    mirrored = test(*ab[::-1], alternative=MIRROR[alternative], **options)
    assert found.p_value == mirrored.p_value
    assert found.mean_difference == -mirrored.mean_difference
    assert 0 <= found.p_value <= 1
    assert found.p_value > 0 or test is rw.paired_t_test


@settings(max_examples=50)
@given(ab=pairs, random=st.randoms(use_true_random=False))
def test_the_order_of_queries_does_not_matter(ab, random):
    shuffled = ab[:, random.sample(range(ab.shape[1]), ab.shape[1])]
    assert rw.randomisation_test(*ab, n_permutations=300) == rw.randomisation_test(*shuffled, n_permutations=300)
    assert rw.wilcoxon_test(*ab) == rw.wilcoxon_test(*shuffled)
    assert rw.paired_t_test(*ab) == rw.paired_t_test(*shuffled)
    assert rw.bootstrap_interval(*ab, n_resamples=30) == rw.bootstrap_interval(*shuffled, n_resamples=30)
    assert rw.equivalence_test(*ab, margin=0.5) == rw.equivalence_test(*shuffled, margin=0.5)


@pytest.mark.parametrize("n_permutations", [1, 7, 1023, 1025, 5000])
def test_the_number_of_threads_does_not_matter(n_permutations):
    a, b = draw(333, shift=0.01)
    one = rw.randomisation_test(a, b, n_permutations=n_permutations, n_threads=1)
    assert one == rw.randomisation_test(a, b, n_permutations=n_permutations, n_threads=3)
    assert one == rw.randomisation_test(a, b, n_permutations=n_permutations)
    boot = rw.bootstrap_interval(a, b, n_resamples=n_permutations, method="bca", n_threads=1)
    assert boot == rw.bootstrap_interval(a, b, n_resamples=n_permutations, method="bca", n_threads=3)


@settings(max_examples=50)
@given(ab=pairs, method=st.sampled_from(["percentile", "bca"]), n_resamples=st.integers(1, 40))
def test_bootstrap_interval_lies_among_the_differences(ab, method, n_resamples):
    a, b = ab
    found = rw.bootstrap_interval(a, b, method=method, n_resamples=n_resamples)
    slack = 1e-12 * max(np.abs(ab).max(), 1e-300)
    assert (b - a).min() - slack <= found.low <= found.high <= (b - a).max() + slack


@given(ab=pairs, margin=st.floats(1e-3, 1e3))
def test_equivalence_is_non_inferiority_both_ways(ab, margin):
    a, b = ab
    found = rw.equivalence_test(a, b, margin=margin)
    assert found.p_lower == rw.non_inferiority_test(a, b, margin=margin).p_value
    assert found.p_upper == rw.non_inferiority_test(b, a, margin=margin).p_value
    assert found.p_value == rw.equivalence_test(b, a, margin=margin).p_value
    assert rw.non_inferiority_test(a, b, margin=2 * margin).p_value <= found.p_lower * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_uniform_under_the_null_hypothesis(test):
    from scipy import stats

    rng = np.random.default_rng(11)
    p = []
    for seed in range(400):
        a, b = rng.normal(size=(2, 40))
        p.append(test(a, b, **({"seed": seed, "n_permutations": 999} if test is rw.randomisation_test else {})).p_value)
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


def test_margin_tests_hold_their_level_at_the_margin():
    rng = np.random.default_rng(12)
    rejected = dict.fromkeys(MARGIN_TESTS, 0)
    for _ in range(400):
        b = rng.normal(-0.5, 1.0, 30)
        for test in MARGIN_TESTS:
            rejected[test] += test(np.zeros(30), b, margin=0.5).p_value <= 0.05
    assert all(count / 400 < 0.09 for count in rejected.values())
    assert rejected[rw.non_inferiority_test] / 400 > 0.02


# ---- edges ----


@pytest.mark.parametrize("n", [2, 100])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_equal_values_give_p_one(n, alternative):
    a = np.linspace(0, 1, n)
    for test in TESTS:
        found = test(a, a, alternative=alternative)
        assert found.mean_difference == 0
        assert found.p_value == 1
    for method in ("percentile", "bca"):
        found = rw.bootstrap_interval(a, a, method=method)
        assert (found.low, found.high) == (0, 0)


def test_a_model_compared_with_itself_is_equivalent():
    a = np.linspace(0, 1, 50)
    for test in MARGIN_TESTS:
        assert test(a, a, margin=0.01).p_value == 0
        assert test(a, a, margin=0.01, method="randomisation").p_value < 0.001
    assert rw.non_inferiority_test(a, a - 0.5, margin=0.01).p_value > 0.999


def test_equal_differences_make_the_t_statistic_infinite():
    found = rw.paired_t_test([0, 0, 0], [1, 1, 1])
    assert (found.statistic, found.p_value) == (math.inf, 0)


def test_tiny_and_large_values_are_no_special_case():
    for scale in (5e-320, 1e-160, 1e-5, 1e140):
        a, b = np.array([1.0, 2.0, 3.0, 4.0]) * scale, np.array([2.0, 4.0, 4.0, 6.0]) * scale
        assert rw.randomisation_test(a, b).p_value == 0.125
        assert rw.wilcoxon_test(a, b).p_value == 0.125
        assert rw.paired_t_test(a, b).p_value == pytest.approx(0.01384, rel=1e-3)
        assert rw.bootstrap_interval(a, b, method="bca").low > 0


def test_pairs_with_nan_are_left_out():
    a, b = draw(20, shift=0.05)
    a_gaps, b_gaps = np.append(a, [np.nan, 1.0]), np.append(b, [0.5, np.nan])
    for test in TESTS:
        assert test(a_gaps, b_gaps) == test(a, b)
    assert rw.bootstrap_interval(a_gaps, b_gaps) == rw.bootstrap_interval(a, b)
    assert rw.equivalence_test(a_gaps, b_gaps, margin=0.1) == rw.equivalence_test(a, b, margin=0.1)


def test_lists_and_other_number_types_are_welcome():
    a, b = np.array([1, 2, 3, 5], dtype=np.int32), np.array([2, 2, 4, 9], dtype=np.float32)
    for test in TESTS:
        assert test(a, b) == test(a.tolist(), b.tolist())


@pytest.mark.parametrize("test", [*TESTS, rw.bootstrap_interval, *MARGIN_TESTS])
def test_bad_values_are_named(test):
    options = {"margin": 0.1} if test in MARGIN_TESTS else {}
    with pytest.raises(DataError, match="a has 2 values and b has 3"):
        test([1, 2], [1, 2, 3], **options)
    with pytest.raises(DataError, match=r"at least 2 queries .* there are 1"):
        test([1, np.nan], [1, 2], **options)
    with pytest.raises(DataError, match="b of query 1 is inf"):
        test([1, 2], [1, np.inf], **options)
    with pytest.raises(DataError, match=r"a must have one value per query, got shape \(1, 2\)"):
        test([[1, 2]], [1, 2], **options)
    with pytest.raises(DataError, match="b must hold one number per query"):
        test([1, 2], ["x", "y"], **options)


def test_bad_options_are_named():
    a, b = draw(5)
    for test in TESTS:
        with pytest.raises(RankwoodError, match=r"alternative must be .* got 'bigger'"):
            test(a, b, alternative="bigger")
    with pytest.raises(RankwoodError, match="n_permutations must be a whole number of at least 1, got 0"):
        rw.randomisation_test(a, b, n_permutations=0)
    with pytest.raises(RankwoodError, match=r"n_permutations must be a whole number .* got 10000\.0"):
        rw.randomisation_test(a, b, n_permutations=1e4)
    for seed in (-1, 2**64, 0.5):
        with pytest.raises(RankwoodError, match="seed must be a whole number between"):
            rw.randomisation_test(a, b, seed=seed)
    with pytest.raises(RankwoodError, match="n_threads must be at least 1"):
        rw.randomisation_test(a, b, n_threads=0)
    with pytest.raises(RankwoodError, match=r"confidence must lie between 0 and 1, got 95"):
        rw.bootstrap_interval(a, b, confidence=95)
    with pytest.raises(RankwoodError, match="n_resamples must be a whole number of at least 1"):
        rw.bootstrap_interval(a, b, n_resamples=0)
    with pytest.raises(RankwoodError, match="method must be 'percentile' or 'bca'"):
        rw.bootstrap_interval(a, b, method="basic")
    for test in MARGIN_TESTS:
        with pytest.raises(RankwoodError, match="margin must be a positive number, got 0"):
            test(a, b, margin=0)
        with pytest.raises(RankwoodError, match="margin must be a positive number, got nan"):
            test(a, b, margin=math.nan)
        with pytest.raises(RankwoodError, match="method must be 't' or 'randomisation'"):
            test(a, b, margin=0.1, method="z")
    with pytest.raises(DataError, match="p-value 1 is nan"):
        rw.holm([0.1, np.nan])
    with pytest.raises(DataError, match="one dimension"):
        rw.holm(0.1)


def test_scipy_is_not_imported_with_the_module():
    code = "import sys, rankwood; rankwood.randomisation_test; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
