"""Tests, on per-query values, of whether one ranker is better than another, or as good.

Every function takes two arrays with one value per query, `a` and `b`, in the same order of queries. The difference is
always `b - a`, and `alternative="greater"` asks whether `b` is greater. A query whose value is NaN in either array is
left out. Differences that are equal but for rounding count as ties, as 0.3 - 0.2 and 0.1 do: the tolerance is 2**-44 of
the largest value. When all differences are zero a test of difference answers p = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rankwood import _native
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.system import resolve_threads

_TIE_BITS = 44  # differences are multiples of 2**-44 of the largest value: well above rounding errors


@dataclass(frozen=True)
class Pairs:
    """Differences b - a of paired values: what every test starts from.

    Parameters
    ----------
    differences : array of float64
        One per query that has both values.
    fixed : array of int64
        The same in fixed point: `fixed * 2**exponent`, rounded.
    exponent : int
        Of the fixed point.
    largest : float
        Largest of the values compared, to which rounding errors are relative.
    """

    differences: FloatArray
    fixed: IndexArray
    exponent: int
    largest: float

    @classmethod
    def of(cls, a: Any, b: Any) -> Pairs:
        a, b = _values(a, "a"), _values(b, "b")
        if len(a) != len(b):
            raise DataError(f"a has {len(a)} values and b has {len(b)}: give one per query, in the same order")
        both = ~(np.isnan(a) | np.isnan(b))
        a, b = a[both], b[both]
        if len(a) < 2:
            raise DataError(f"a comparison needs at least 2 queries with a value in both a and b, there are {len(a)}")
        return cls.from_differences(b - a, float(max(np.abs(a).max(), np.abs(b).max())))

    @classmethod
    def from_differences(cls, differences: FloatArray, largest: float) -> Pairs:
        n = len(differences)
        # n times the largest difference (at most 3 * largest) stays below 2**61, as the kernels ask
        exponent = math.frexp(largest)[1] - _TIE_BITS + max(0, (n - 1).bit_length() - 15)
        fixed = np.rint(np.ldexp(differences, -exponent)).astype(np.int64)
        return cls(differences, fixed, exponent, largest)

    @property
    def n(self) -> int:
        return len(self.differences)

    @property
    def mean(self) -> float:
        return math.fsum(self.differences) / self.n  # the same in any order

    def plus(self, shift: float) -> Pairs:
        return Pairs.from_differences(self.differences + shift, max(self.largest, shift))

    def swapped(self) -> Pairs:
        return Pairs(-self.differences, -self.fixed, self.exponent, self.largest)


def _values(values: Any, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold one number per query: {error}") from None
    if array.ndim != 1:
        raise DataError(f"{name} must have one value per query, got shape {array.shape}")
    too_large = np.flatnonzero(np.abs(array) > 1e150)  # squares of differences must stay finite
    if len(too_large):
        raise DataError(
            f"{name} of query {too_large[0]} is {array[too_large[0]]}: it must be a finite number of at most 1e150"
        )
    return array


Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

_MAX_WILCOXON_EXACT = 50  # beyond it the normal approximation; 2**50 sign patterns still count exactly in float64


@dataclass(frozen=True)
class PairedResult:
    """Result of a paired test.

    Attributes
    ----------
    statistic, p_value : float
        Of the test.
    mean_difference : float
        Mean of b - a.
    n_queries : int
        Queries that have both values.
    alternative : str
        What was asked.
    """

    statistic: float
    p_value: float
    mean_difference: float
    n_queries: int
    alternative: str


@dataclass(frozen=True)
class RandomisationResult(PairedResult):
    """Result of a randomisation test: `n_permutations` were drawn or, when `exact`, are all there are."""

    n_permutations: int
    exact: bool


@dataclass(frozen=True)
class WilcoxonResult(PairedResult):
    """Result of Wilcoxon's test: `n_nonzero` differences were ranked; p is `exact` or a normal approximation."""

    n_nonzero: int
    exact: bool


@dataclass(frozen=True)
class TTestResult(PairedResult):
    """Result of a t-test, with the standard error of the mean difference."""

    standard_error: float


@dataclass(frozen=True)
class NonInferiorityResult(PairedResult):
    """Result of a test of non-inferiority: a small p-value says that b is worse by less than `margin`, if at all."""

    margin: float
    method: str


@dataclass(frozen=True)
class EquivalenceResult(PairedResult):
    """Result of a test of equivalence.

    `p_value` is the larger one of `p_lower` (b is not worse by `margin` or more) and `p_upper` (b is not better by
    `margin` or more).
    """

    margin: float
    method: str
    p_lower: float
    p_upper: float


@dataclass(frozen=True)
class BootstrapInterval:
    """Confidence interval, from `low` to `high`, of the mean of b - a."""

    low: float
    high: float
    confidence: float
    mean_difference: float
    n_queries: int
    n_resamples: int
    method: str


def randomisation_test(
    a: Any,
    b: Any,
    *,
    n_permutations: int = 10_000,
    seed: int = 0,
    alternative: Alternative = "two-sided",
    n_threads: int | None = None,
) -> RandomisationResult:
    """Fisher's paired randomisation test: how often random signs give a mean difference as large as the observed one.

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    n_permutations : int, default 10000
        How many sign patterns are drawn. With m differences that are not zero and 2**m <= `n_permutations`, all
        patterns are enumerated instead.
    seed : int, default 0
        Of the patterns.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater" asks whether `b` is greater.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    RandomisationResult
        Of all patterns p is exact; else p = (count + 1) / (n_permutations + 1). Ties with the observed mean count as at
        least as large. It depends on the seed, but neither on the order of the queries nor on the number of threads.

    Examples
    --------
    >>> randomisation_test([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.4, 0.6]).p_value
    0.125
    """
    pairs = Pairs.of(a, b)
    _check_alternative(alternative)
    p_value, n_tried, exact = _randomise(pairs, n_permutations, seed, alternative, n_threads)
    return RandomisationResult(pairs.mean, p_value, pairs.mean, pairs.n, alternative, n_tried, exact)


def wilcoxon_test(a: Any, b: Any, *, alternative: Alternative = "two-sided") -> WilcoxonResult:
    """Wilcoxon's signed-rank test of paired values.

    Zero differences are left out and tied ones share their mean rank.

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater" asks whether `b` is greater.

    Returns
    -------
    WilcoxonResult
        The statistic is, as in scipy, the sum of the ranks of positive differences, for "two-sided" the smaller one of
        that and its counterpart. Up to 50 differences p is exact, ties or not; above, it comes from the normal
        approximation without continuity correction.

    Examples
    --------
    >>> wilcoxon_test([1, 2, 3, 4, 5], [2, 4, 6, 8, 10]).p_value
    0.0625
    """
    pairs = Pairs.of(a, b)
    _check_alternative(alternative)
    signed = pairs.fixed[pairs.fixed != 0]
    n = len(signed)
    signed = signed[np.argsort(np.abs(signed))]
    tie = np.cumsum(np.diff(np.abs(signed), prepend=0) > 1)  # number of its group of ties
    counts = np.bincount(tie)
    doubled_ranks = (2 * np.cumsum(counts) - counts + 1)[tie]  # twice the mean rank: whole numbers
    positive, total = int(doubled_ranks[signed > 0].sum()), n * (n + 1)
    exact = n <= _MAX_WILCOXON_EXACT
    if exact:
        at_most = np.cumsum(_signed_rank_counts(doubled_ranks)) / 2.0**n
        p_less, p_greater = float(at_most[positive]), float(at_most[total - positive])
    else:
        from scipy.special import ndtr

        variance = (n * (n + 1) * (2 * n + 1) - float(np.sum(counts.astype(np.float64) ** 3 - counts)) / 2) / 24
        z = (positive - total / 2) / 2 / math.sqrt(variance)
        p_less, p_greater = float(ndtr(z)), float(ndtr(-z))
    p_value = {"less": p_less, "greater": p_greater, "two-sided": min(1.0, 2 * min(p_less, p_greater))}[alternative]
    statistic = (min(positive, total - positive) if alternative == "two-sided" else positive) / 2
    return WilcoxonResult(statistic, p_value, pairs.mean, pairs.n, alternative, n, exact)


def paired_t_test(a: Any, b: Any, *, alternative: Alternative = "two-sided") -> TTestResult:
    """Student's t-test of paired values.

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater" asks whether `b` is greater.

    Returns
    -------
    TTestResult
        Equal non-zero differences give an infinite statistic.

    Examples
    --------
    >>> round(paired_t_test([1, 2, 3, 4], [2, 4, 4, 6]).p_value, 4)
    0.0138
    """
    pairs = Pairs.of(a, b)
    _check_alternative(alternative)
    statistic, p_value, standard_error = _t_test(pairs, alternative)
    return TTestResult(statistic, p_value, pairs.mean, pairs.n, alternative, standard_error)


def bootstrap_interval(
    a: Any,
    b: Any,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    method: Literal["percentile", "bca"] = "percentile",
    n_threads: int | None = None,
) -> BootstrapInterval:
    """Bootstrap confidence interval of the mean difference, queries drawn with replacement (Efron).

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    confidence : float, default 0.95
        Between 0 and 1.
    n_resamples : int, default 10000
        How often queries are drawn.
    seed : int, default 0
        Of the draws.
    method : {"percentile", "bca"}, default "percentile"
        "bca" corrects for bias and skewness (bias-corrected and accelerated).
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    BootstrapInterval
        It depends on the seed, but neither on the order of the queries nor on the number of threads.

    Examples
    --------
    >>> interval = bootstrap_interval([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.4, 0.6])
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.1, 0.2)
    """
    pairs = Pairs.of(a, b)
    _check_share(confidence, "confidence")
    if method not in ("percentile", "bca"):
        raise RankwoodError(f"method must be 'percentile' or 'bca', got {method!r}")
    _check_count(n_resamples, "n_resamples")
    sums = np.empty(n_resamples, dtype=np.int64)
    _native.bootstrap_sums(np.sort(pairs.fixed), _check_seed(seed), resolve_threads(n_threads), sums)
    levels = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        levels = _bca_levels(levels, sums, pairs)
    low, high = np.ldexp(np.quantile(sums.astype(np.float64), levels) / pairs.n, pairs.exponent)
    return BootstrapInterval(float(low), float(high), confidence, pairs.mean, pairs.n, n_resamples, method)


def non_inferiority_test(
    a: Any,
    b: Any,
    *,
    margin: float,
    method: Literal["t", "randomisation"] = "t",
    n_permutations: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> NonInferiorityResult:
    """One-sided test of whether `b` is as good as `a`, up to a margin.

    The null hypothesis is "mean(b - a) <= -margin": a small p-value supports "b is worse by less than the margin, if it
    is worse at all".

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    margin : float
        The least loss that matters, above 0.
    method : {"t", "randomisation"}, default "t"
        Student's t-test or the randomisation test.
    n_permutations : int, default 10000
        Of the randomisation test.
    seed : int, default 0
        Of the randomisation test.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    NonInferiorityResult
        When all differences are equal there is nothing to estimate: p of the t-test is 0 or 1.

    Examples
    --------
    >>> non_inferiority_test([0.5, 0.4, 0.6, 0.5], [0.5, 0.41, 0.59, 0.51], margin=0.05).p_value < 0.01
    True
    """
    pairs = Pairs.of(a, b)
    statistic, p_value = _shifted_test(pairs, _check_margin(margin), method, n_permutations, seed, n_threads)
    return NonInferiorityResult(statistic, p_value, pairs.mean, pairs.n, "greater", float(margin), method)


def lower_bound(a: Any, b: Any, *, alpha: float = 0.05) -> float:
    """One-sided lower confidence bound of the mean of b - a, by Student's t.

    It is above -margin just when `non_inferiority_test` with that margin gives p below `alpha`.

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    alpha : float, default 0.05
        One less the confidence, between 0 and 1.

    Examples
    --------
    >>> round(lower_bound([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.4, 0.6]), 4)
    0.0821
    """
    from scipy.special import stdtrit

    pairs = Pairs.of(a, b)
    error = _standard_error(pairs)
    return pairs.mean + float(stdtrit(pairs.n - 1, _check_share(alpha, "alpha"))) * error if error else pairs.mean


def queries_needed(a: Any, b: Any, *, margin: float, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """About how many queries a test of non-inferiority needs to show that `b` loses less than a margin.

    Parameters
    ----------
    a, b : array-like of float
        Values of queries like those to come, one per query, in the same order; queries with NaN in either are left
        out.
    margin : float
        The least loss that matters, above 0.
    alpha : float, default 0.05
        Level of the test.
    power : float, default 0.8
        Chance that the test succeeds when mean and standard deviation of the differences are those seen here.

    Returns
    -------
    int or None
        None when the loss seen is the margin or more: then no number would do.

    Notes
    -----
    The number for Student's t-test by Guenther's (1981) correction of the normal approximation.

    Examples
    --------
    >>> a = [0.5, 0.4, 0.6, 0.5]
    >>> queries_needed(a, [0.5, 0.45, 0.55, 0.5], margin=0.01), queries_needed(a, [0.4, 0.4, 0.6, 0.4], margin=0.01)
    (105, None)
    """
    from scipy.special import ndtri

    pairs = Pairs.of(a, b)
    room = _check_margin(margin) + pairs.mean
    critical, surplus = -float(ndtri(_check_share(alpha, "alpha"))), float(ndtri(_check_share(power, "power")))
    if room <= 0.0:
        return None
    deviation = _standard_error(pairs) * math.sqrt(pairs.n)
    return max(2, math.ceil((max(critical + surplus, 0.0) * deviation / room) ** 2 + critical**2 / 2))


def equivalence_test(
    a: Any,
    b: Any,
    *,
    margin: float,
    method: Literal["t", "randomisation"] = "t",
    n_permutations: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> EquivalenceResult:
    """Test of whether `a` and `b` differ by less than a margin: two one-sided tests (TOST, Schuirmann 1987).

    A small p-value supports "-margin < mean(b - a) < margin".

    Parameters
    ----------
    a, b : array-like of float
        One value per query, in the same order; queries with NaN in either are left out.
    margin : float
        The least difference that matters, above 0.
    method : {"t", "randomisation"}, default "t"
        Student's t-test or the randomisation test.
    n_permutations : int, default 10000
        Of the randomisation test.
    seed : int, default 0
        Of the randomisation test.
    n_threads : int, optional
        Every CPU is used unless given.

    Returns
    -------
    EquivalenceResult
        The statistic is that of the test with the larger p.

    Examples
    --------
    >>> equivalence_test([0.5, 0.4, 0.6, 0.5], [0.5, 0.41, 0.59, 0.51], margin=0.05).p_value < 0.01
    True
    """
    pairs = Pairs.of(a, b)
    _check_margin(margin)
    lower = _shifted_test(pairs, margin, method, n_permutations, seed, n_threads)
    upper = _shifted_test(pairs.swapped(), margin, method, n_permutations, seed, n_threads)
    statistic = lower[0] if lower[1] >= upper[1] else -upper[0]
    p_value = max(lower[1], upper[1])
    return EquivalenceResult(
        statistic, p_value, pairs.mean, pairs.n, "within margin", float(margin), method, lower[1], upper[1]
    )


def holm(p_values: Any) -> FloatArray:
    """Adjusted p-values of many comparisons (Holm 1979): reject where the adjusted one is at most alpha.

    The chance of one false rejection or more stays below alpha, however the comparisons depend on each other.

    Parameters
    ----------
    p_values : array-like of float
        Between 0 and 1.

    Returns
    -------
    array of float64
        In the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _p_values(p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def in_sequence(p_values: Any, alpha: float = 0.05) -> list[bool]:
    """Which comparisons hold when they are made in an order fixed beforehand.

    Half of alpha is for the first, and the others share the rest. One that holds leaves all it had to the next, one
    that fails leaves nothing (fallback procedure). The chance of one false answer or more stays below alpha, and a
    comparison that fails by bad luck does not end the matter. The order must not depend on the values.

    Parameters
    ----------
    p_values : array-like of float
        In the order of the comparisons, between 0 and 1.
    alpha : float, default 0.05
        Level of all tests together.

    Returns
    -------
    list of bool
        Whether each holds.

    See Also
    --------
    holm : For comparisons without an order.

    Examples
    --------
    >>> in_sequence([0.01, 0.03, 0.2, 0.001])
    [True, True, False, True]
    """
    values, alpha = _p_values(p_values), _check_share(alpha, "alpha")
    first = alpha / 2 if len(values) > 1 else alpha
    held: list[bool] = []
    left = 0.0  # by the one before
    for number, p in enumerate(values):
        level = left + ((alpha - first) / (len(values) - 1) if number else first)
        held.append(bool(p <= level))
        left = level if held[-1] else 0.0
    return held


def _p_values(p_values: Any) -> FloatArray:
    """The p-values as an array; what is not between 0 and 1 is refused."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise DataError(f"p_values must have one dimension, got shape {p.shape}")
    bad = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(bad):
        raise DataError(f"p-value {bad[0]} is {p[bad[0]]}: it must lie between 0 and 1")
    return p


def _randomise(
    pairs: Pairs, n_permutations: int, seed: int, alternative: Alternative, n_threads: int | None
) -> tuple[float, int, bool]:
    """The p-value, the number of permutations, and whether they were all there are."""
    _check_count(n_permutations, "n_permutations")
    seed, n_threads = _check_seed(seed), resolve_threads(n_threads)
    magnitudes = np.sort(np.abs(pairs.fixed[pairs.fixed != 0]))
    observed = int(pairs.fixed.sum())
    # the null distribution is symmetric: "less" is "greater" of the swapped pair
    bound = {"greater": observed, "less": -observed, "two-sided": abs(observed)}[alternative]
    bound -= 2 * len(magnitudes)  # sums that are equal but for rounding are off by one unit per query at most
    exact = len(magnitudes) < 63 and 2 ** len(magnitudes) <= n_permutations
    n_tried = 2 ** len(magnitudes) if exact else n_permutations
    two_sided = alternative == "two-sided"
    count = _native.count_sign_flips(magnitudes, bound, two_sided, n_tried, exact, seed, n_threads)
    p_value = count / n_tried if exact else (count + 1) / (n_tried + 1)
    return p_value, n_tried, exact


def _t_test(pairs: Pairs, alternative: Alternative) -> tuple[float, float, float]:
    """Statistic, p-value and standard error."""
    from scipy.special import stdtr  # Student's distribution function

    n, mean, error = pairs.n, pairs.mean, _standard_error(pairs)
    if error == 0 and mean == 0:
        return 0.0, 1.0, error
    statistic = mean / error if error > 0 else math.copysign(math.inf, mean)
    if alternative == "two-sided":
        return statistic, float(2 * stdtr(n - 1, -abs(statistic))), error
    return statistic, float(stdtr(n - 1, statistic if alternative == "less" else -statistic)), error


def _standard_error(pairs: Pairs) -> float:
    """Standard error of the mean difference."""
    scale = pairs.largest or 1.0  # squares of tiny values would vanish
    return scale * math.sqrt(math.fsum(((pairs.differences - pairs.mean) / scale) ** 2) / (pairs.n - 1) / pairs.n)


def _shifted_test(
    pairs: Pairs, margin: float, method: str, n_permutations: int, seed: int, n_threads: int | None
) -> tuple[float, float]:
    """Statistic and p-value of the one-sided test that the mean difference is above -margin."""
    shifted = pairs.plus(margin)
    if method == "t":
        return _t_test(shifted, "greater")[:2]
    if method == "randomisation":
        return shifted.mean, _randomise(shifted, n_permutations, seed, "greater", n_threads)[0]
    raise RankwoodError(f"method must be 't' or 'randomisation', got {method!r}")


def _signed_rank_counts(doubled_ranks: IndexArray) -> FloatArray:
    """Number of the 2**n sign patterns that give each (doubled) sum of positive ranks: one convolution per rank."""
    counts = np.zeros(int(doubled_ranks.sum()) + 1)
    counts[0] = 1.0
    for rank in doubled_ranks:
        counts[rank:] += counts[:-rank].copy()
    return counts


def _bca_levels(levels: FloatArray, sums: IndexArray, pairs: Pairs) -> FloatArray:
    """Quantiles to take instead of `levels` (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    observed = int(pairs.fixed.sum())
    n = len(sums)
    below = (np.count_nonzero(sums < observed) + np.count_nonzero(sums <= observed)) / (2 * n)
    bias = ndtri(min(max(below, 0.5 / n), 1 - 0.5 / n))
    centred = (pairs.differences - pairs.mean) / (pairs.largest or 1.0)
    spread = math.fsum(centred**2)
    acceleration = math.fsum(centred**3) / (6 * spread**1.5) if spread else 0.0
    z = bias + ndtri(levels)
    corrected: FloatArray = ndtr(bias + z / (1 - acceleration * z))
    return corrected


def _check_alternative(alternative: str) -> None:
    if alternative not in ("two-sided", "greater", "less"):
        raise RankwoodError(f"alternative must be 'two-sided', 'greater' or 'less', got {alternative!r}")


def _check_count(n: int, name: str) -> None:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise RankwoodError(f"{name} must be a whole number of at least 1, got {n}")


def _check_seed(seed: int) -> int:
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise RankwoodError(f"seed must be a whole number between 0 and 2**64 - 1, got {seed}")
    return int(seed)


def _check_share(share: float, name: str) -> float:
    if not 0.0 < share < 1.0:
        raise RankwoodError(f"{name} must lie between 0 and 1, got {share}")
    return share


def _check_margin(margin: float) -> float:
    if not 0 < margin < math.inf:
        raise RankwoodError(f"margin must be a positive number, got {margin}")
    return margin
