"""Losses: gradients against double loops, numerical differences and LightGBM; the same bits whatever computes them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from oracles.losses import lambdas, pair_loss, weighted_pairs
from rankwood import system as isa
from rankwood.errors import DataError, RankwoodError
from rankwood.training.losses import (
    CrossEntropyLoss,
    CustomLoss,
    LambdaLoss,
    PairwiseLoss,
    SquaredLoss,
    StochasticLoss,
    document_weights,
    label_gains,
)

pytestmark = pytest.mark.native


def make_queries(sizes, seed=0, spread=2.0, n_labels=5):
    """Scores, labels and offsets of queries of the given sizes; some scores are tied."""
    rng = np.random.default_rng(seed)
    n = int(np.sum(sizes))
    scores = rng.normal(size=n) * spread
    tied = rng.random(n) < 0.2
    scores[tied] = scores[tied].round()
    labels = np.minimum(rng.geometric(0.5, n) - 1.0, n_labels - 1)
    return scores, labels, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def gradients(loss, scores, labels, offsets, weights=None, query_weights=None, n_threads=1):
    gradient, hessian = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    loss.prepare(labels, offsets, weights, query_weights, n_threads=n_threads).gradients(scores, gradient, hessian)
    return gradient, hessian


def by_pairs(loss, scores, labels, offsets, weights=None, query_weights=None):
    return lambdas(
        scores,
        label_gains(labels, loss.gains),
        offsets,
        truncation=loss.truncation or len(scores),
        sigma=loss.sigma,
        normalize=loss.normalize,
        cut_discounts=loss.cut_discounts,
        weights=weights,
        query_weights=query_weights,
    )


def assert_close(actual, expected, offsets, atol=0.0):
    """Within 1e-5 of the largest value of the query."""
    for begin, end in pairwise(offsets):
        for values, wanted in zip(actual, expected, strict=True):
            largest = np.abs(wanted[begin:end]).max(initial=0.0)
            assert_allclose(values[begin:end], wanted[begin:end], rtol=0, atol=1e-5 * largest + atol)


VARIANTS = [(normalize, cut) for normalize in (False, True) for cut in (False, True)]


@pytest.mark.parametrize("truncation", [1, 3, 10, 35, None])
@pytest.mark.parametrize(("normalize", "cut_discounts"), VARIANTS)
def test_lambdas_equal_a_double_loop_over_pairs(normalize, cut_discounts, truncation):
    scores, labels, offsets = make_queries([1, 2, 5, 8, 9, 40, 3, 77, 16])
    loss = LambdaLoss(truncation, normalize=normalize, cut_discounts=cut_discounts)
    assert_close(gradients(loss, scores, labels, offsets), by_pairs(loss, scores, labels, offsets), offsets)


@pytest.mark.parametrize("sigma", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("gains", [None, "linear", (0, 1, 1, 10, 1e6)])
@pytest.mark.parametrize("normalize", [False, True])
def test_sigma_and_gains(sigma, gains, normalize):
    scores, labels, offsets = make_queries([12, 30, 50], seed=1)
    loss = LambdaLoss(20, sigma=sigma, gains=gains, normalize=normalize)
    assert_close(gradients(loss, scores, labels, offsets), by_pairs(loss, scores, labels, offsets), offsets)


@pytest.mark.parametrize("normalize", [False, True])
def test_weights_of_documents_and_queries(normalize):
    scores, labels, offsets = make_queries([12, 30, 50], seed=2)
    rng = np.random.default_rng(2)
    weights, query_weights = rng.random(len(scores)), np.array([1.0, 0.0, 7.0])
    loss = LambdaLoss(20, normalize=normalize)
    expected = by_pairs(loss, scores, labels, offsets, weights, query_weights)
    assert_close(gradients(loss, scores, labels, offsets, weights, query_weights), expected, offsets)


@pytest.mark.parametrize(("normalize", "cut_discounts"), VARIANTS)
@pytest.mark.parametrize("spread", [0.1, 30.0, 1000.0])
def test_long_lists_and_far_apart_scores(normalize, cut_discounts, spread):
    scores, labels, offsets = make_queries([1300], seed=3, spread=spread)
    loss = LambdaLoss(40, normalize=normalize, cut_discounts=cut_discounts)
    assert_close(gradients(loss, scores, labels, offsets), by_pairs(loss, scores, labels, offsets), offsets)


def test_real_labels_of_any_size():
    scores, _, offsets = make_queries([40], seed=4)
    labels = np.random.default_rng(4).random(40) * 500.0
    for loss in (LambdaLoss(10), LambdaLoss(10, gains="linear")):
        assert_close(gradients(loss, scores, labels, offsets), by_pairs(loss, scores, labels, offsets), offsets)
    loss = LambdaLoss(10, gains="linear")  # gains that differ in the ninth digit only
    labels = 1e9 + np.random.default_rng(4).integers(0, 3, 40)
    assert_close(gradients(loss, scores, labels, offsets), by_pairs(loss, scores, labels, offsets), offsets)


def test_a_known_pair():
    # The better document stands second: rho = 1/2, d = (1 - 1/log2(3)) * 3 / 3.
    gradient, hessian = gradients(LambdaLoss(normalize=False), np.zeros(2), np.array([0.0, 2.0]), np.array([0, 2]))
    d = 1.0 - 1.0 / np.log2(3.0)
    assert_allclose(gradient, [-d / 2, d / 2], rtol=1e-6)
    assert_allclose(hessian, [d / 4, d / 4], rtol=1e-6)


def test_the_cut_makes_d_the_change_of_ndcg():
    # Documents at ranks 2 and 3 with truncation 2: only rank 2 counts for NDCG@2.
    scores, labels, offsets = np.array([3.0, 2.0, 2.0]), np.array([0.0, 0.0, 1.0]), np.array([0, 3])
    cut, _ = gradients(LambdaLoss(2, normalize=False, cut_discounts=True), scores, labels, offsets)
    kept, _ = gradients(LambdaLoss(2, normalize=False, cut_discounts=False), scores, labels, offsets)
    assert_allclose(cut[1], -0.5 / np.log2(3.0), rtol=1e-6)
    assert_allclose(kept[1], -0.5 * (1 / np.log2(3.0) - 1 / 2), rtol=1e-6)


@pytest.mark.parametrize(("normalize", "cut_discounts"), VARIANTS)
def test_lambdas_of_a_query_sum_to_zero(normalize, cut_discounts):
    scores, labels, offsets = make_queries([5, 40, 200, 1500], seed=5)
    gradient, _ = gradients(LambdaLoss(30, normalize=normalize, cut_discounts=cut_discounts), scores, labels, offsets)
    sums = np.add.reduceat(gradient, offsets[:-1])
    assert_allclose(sums, 0.0, atol=1e-6 * np.abs(gradient).sum())


def test_lambdas_descend_the_pair_loss():
    scores, labels, offsets = make_queries([15], seed=6)
    sigma, step = 1.3, 1e-5
    gradient, _ = gradients(LambdaLoss(8, sigma=sigma, normalize=False, cut_discounts=True), scores, labels, offsets)
    pairs = weighted_pairs(scores, label_gains(labels), 8, normalize=False, cut_discounts=True)
    for i in range(15):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        slope = (pair_loss(up, pairs, sigma) - pair_loss(down, pairs, sigma)) / (2 * step)
        assert gradient[i] == pytest.approx(-slope, abs=1e-6)


# Degenerate queries. Scores and labels come from small sets, so that ties are common; some scores are enormous.
SCORES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5]),
    st.floats(-5, 5),
    st.sampled_from([1e9, -1e9, 1e9 + 1, 1e308, -1e308, 90.0, 1e-310]),
)
QUERY = st.lists(st.tuples(SCORES, st.integers(0, 3).map(float)), max_size=20)
LOSSES = st.builds(
    LambdaLoss,
    truncation=st.integers(1, 25),
    sigma=st.sampled_from([0.5, 1.0, 2.0]),
    normalize=st.booleans(),
    cut_discounts=st.booleans(),
)


@given(queries=st.lists(QUERY, max_size=4), loss=LOSSES)
def test_degenerate_queries(queries, loss):
    offsets = np.cumsum([0, *map(len, queries)])
    scores = np.array([score for query in queries for score, _ in query])
    labels = np.array([label for query in queries for _, label in query])
    with np.errstate(over="ignore"):
        expected = by_pairs(loss, scores, labels, offsets)
    # Discounts are single precision: 1e-7 of the largest possible d, which is 1.
    assert_close(gradients(loss, scores, labels, offsets), expected, offsets, atol=1e-7)


@given(query=st.lists(st.tuples(st.floats(), st.integers(0, 3).map(float)), min_size=1, max_size=20), loss=LOSSES)
def test_no_score_gives_nan(query, loss):
    scores, labels = np.array(query).T
    gradient, hessian = gradients(loss, np.ascontiguousarray(scores), labels, np.array([0, len(query)]))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert (hessian >= 0).all()


def test_queries_without_pairs_have_no_gradient():
    offsets = np.array([0, 1, 4, 4, 7])
    labels = np.array([3.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0])
    for values in gradients(LambdaLoss(), np.arange(7.0), labels, offsets):
        assert_array_equal(values, 0.0)
    for values in gradients(LambdaLoss(), np.empty(0), np.empty(0), np.array([0])):
        assert len(values) == 0


@pytest.mark.parametrize("outlier", [1e6, -1e6, 1e15, np.inf, -np.inf])
def test_one_outlier_does_not_disturb_the_ranking(outlier):
    scores, labels, offsets = make_queries([300], seed=7)
    scores[17] = outlier
    loss = LambdaLoss(30, normalize=False)
    actual = gradients(loss, scores, labels, offsets)
    scores[17] = np.clip(outlier, -1e15, 1e15)
    assert_close(actual, by_pairs(loss, scores, labels, offsets), offsets)


def test_sorted_and_reversed_scores():
    _, labels, offsets = make_queries([400], seed=8)
    loss = LambdaLoss(30, normalize=False)
    for scores in (np.arange(400.0), -np.arange(400.0), np.exp(np.arange(400.0) / 2), np.zeros(400)):
        # Where all pairs are right and far apart the kernel has 1e-28 or less instead of less still.
        expected = by_pairs(loss, scores, labels, offsets)
        assert_close(gradients(loss, scores, labels, offsets), expected, offsets, atol=1e-25)


# The same bits whatever computes them.
def digest(n_threads: int) -> str:
    sizes = np.random.default_rng(9).integers(1, 200, 400)
    scores, labels, offsets = make_queries([*sizes, 3000], seed=9)
    scores *= np.repeat(np.random.default_rng(9).choice([0.1, 1.0, 20.0], len(sizes) + 1), np.diff(offsets))
    bits = hashlib.sha256()
    losses = [LambdaLoss(50, sigma=1.1, normalize=normalize, cut_discounts=cut) for normalize, cut in VARIANTS]
    losses += [LambdaLoss(50, measure=measure) for measure in ("MAP", "MRR", "ERR")]
    losses += [LambdaLoss(50, measure="ERR", normalize=False), PairwiseLoss(50), StochasticLoss(), CrossEntropyLoss()]
    for loss in losses:
        for values in gradients(loss, scores, labels, offsets, n_threads=n_threads):
            bits.update(values.tobytes())
    return bits.hexdigest()


def test_bits_do_not_depend_on_threads():
    assert digest(1) == digest(2) == digest(3)


def test_bits_do_not_depend_on_the_instruction_set():
    code = "from test_losses import digest; print(digest(1))"
    here = os.path.dirname(__file__)
    digests = set()
    for name in isa.available_isas():
        paths = os.pathsep.join([here, *filter(None, sys.path)])
        env = os.environ | {"RANKWOOD_ISA": name, "PYTHONPATH": paths}
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        digests.add(result.stdout.strip())
    assert digests == {digest(1)}


# Queries from 16384 documents on are worked on by all threads together. The kernel for one thread is its twin.
LONG = 16384


def assert_same_bits(loss, scores, labels, offsets, *weights, threads=(2, 5)):
    alone = gradients(loss, scores, labels, offsets, *weights)
    for n_threads in threads:
        together = gradients(loss, scores, labels, offsets, *weights, n_threads=n_threads)
        for values, expected in zip(together, alone, strict=True):
            assert_array_equal(values.view(np.int64), expected.view(np.int64))
    return alone


@settings(max_examples=12)
@given(
    sizes=st.lists(st.one_of(st.integers(LONG, LONG + 40), st.integers(0, 200), st.just(5 * LONG)), max_size=3),
    spread=st.sampled_from([0.01, 1.0, 30.0, 1000.0]),
    digits=st.sampled_from([0, 2, 20]),
    loss=st.builds(
        LambdaLoss,
        truncation=st.sampled_from([1, 30, 75]),
        sigma=st.sampled_from([0.5, 1.0]),
        normalize=st.booleans(),
        cut_discounts=st.booleans(),
    ),
    weighted=st.booleans(),
)
def test_long_queries_give_the_same_bits_on_many_threads(sizes, spread, digits, loss, weighted):
    scores, labels, offsets = make_queries([LONG, *sizes], seed=len(sizes), spread=spread)
    rng = np.random.default_rng(1)
    weights = (rng.random(len(scores)), rng.random(len(offsets) - 1)) if weighted else ()
    assert_same_bits(loss, scores.round(digits), labels, offsets, *weights)


@pytest.mark.parametrize("normalize", [False, True])
def test_long_queries_equal_a_double_loop_over_pairs(normalize):
    scores, labels, offsets = make_queries([7, LONG + 3, 20], seed=20)
    loss = LambdaLoss(2, normalize=normalize)
    actual = gradients(loss, scores, labels, offsets, n_threads=2)
    assert_close(actual, by_pairs(loss, scores, labels, offsets), offsets)


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores * 0.0,
        np.sort,
        lambda scores: np.sort(scores)[::-1].copy(),
        lambda scores: np.where(scores > 1.0, np.inf, scores),
        lambda scores: np.where(scores > 1.0, -np.inf, np.where(scores < -1.0, np.nan, scores)),
        lambda scores: np.where(np.arange(len(scores)) == 100, 1e15, scores),
        lambda scores: np.where(scores > 0.0, 0.0, -0.0),
        lambda scores: np.exp(np.abs(scores) * 40.0),
    ],
    ids=["equal", "rising", "falling", "infinite", "NaN", "outlier", "two zeros", "far apart"],
)
def test_long_queries_of_odd_scores(change):
    scores, labels, offsets = make_queries([3 * LONG + 5], seed=21)
    for values in assert_same_bits(LambdaLoss(), change(scores), labels, offsets):
        assert np.isfinite(values).all()


def test_a_long_query_without_pairs_has_no_gradient():
    scores, labels, offsets = make_queries([LONG, LONG], seed=22)
    labels[LONG:] = 3.0
    gradient, hessian = assert_same_bits(LambdaLoss(), scores, labels, offsets)
    assert gradient[:LONG].any()
    assert not gradient[LONG:].any()
    assert not hessian[LONG:].any()


def test_the_whole_of_a_long_list():
    scores, labels, offsets = make_queries([LONG], seed=23)
    labels[np.argsort(-scores)[300:]] = 0.0  # so that not all pairs count
    assert_same_bits(LambdaLoss(None), scores, labels, offsets, threads=(3,))


def test_a_call_leaves_no_trace_in_the_next():
    scores, labels, offsets = make_queries([50, 20], seed=10)
    data = LambdaLoss().prepare(labels, offsets, n_threads=2)
    first, second, scratch = np.empty((2, 70)), np.empty((2, 70)), np.empty((2, 70))
    data.gradients(scores, *first)
    data.gradients(-scores * 100, *scratch)
    data.gradients(scores, *second)
    assert_array_equal(first, second)


# LightGBM. A tree of two leaves on a feature that singles out one document has there the leaf value
# lambda / (w + l2); two values of l2 tell lambda and w. Its sigmoid comes from a table of step 5e-5 and its sums are in
# single precision: hence the tolerance. No leaf needs documents, since LightGBM guesses their number from hessians.
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_lambdas_equal_lightgbm(normalize, tied):
    lightgbm = pytest.importorskip("lightgbm")
    scores, labels, offsets = make_queries([9, 6], seed=11)
    if tied:
        scores[:] = 0.0

    def leaf(document: int, l2: float) -> float:
        X = (np.arange(len(scores)) == document).astype(float)[:, None]
        params = {"objective": "lambdarank", "lambdarank_truncation_level": 5, "lambdarank_norm": normalize,
                  "num_leaves": 2, "min_data_in_leaf": 0, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 1e-10,
                  "lambda_l2": l2, "learning_rate": 1.0, "num_threads": 1, "verbose": -1}  # fmt: skip
        data = lightgbm.Dataset(X, labels, group=np.diff(offsets), init_score=scores, params=params)
        booster = lightgbm.train(params, data, num_boost_round=1)
        return float(booster.predict([[1.0]], raw_score=True)[0])

    loss = LambdaLoss(5, normalize=normalize, cut_discounts=False)
    gradient, hessian = gradients(loss, scores, labels, offsets)
    for i in range(len(scores)):
        for l2 in (0.05, 1.0):
            assert leaf(i, l2) == pytest.approx(gradient[i] / (hessian[i] + l2), rel=1e-4, abs=2e-5)


# Squared loss.
def test_squared_loss_by_numerical_differences():
    rng = np.random.default_rng(12)
    y, scores, weights, query_weights = rng.normal(size=6), rng.normal(size=6), rng.random(6), np.array([2.0, 0.5])
    offsets = np.array([0, 2, 6])
    gradient, hessian = gradients(SquaredLoss(), scores, y, offsets, weights, query_weights)
    w = document_weights(offsets, weights, query_weights)

    def losses(scores):
        return w * (y - scores) ** 2 / 2

    step = 1e-4
    up, here, down = losses(scores + step), losses(scores), losses(scores - step)
    assert_allclose(gradient, -(up - down) / (2 * step), atol=1e-8)
    assert_allclose(hessian, (up - 2 * here + down) / step**2, atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 32768, 70_001])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_loss_on_threads(n_rows, weighted):
    rng = np.random.default_rng(13)
    y, scores, offsets = rng.normal(size=n_rows), rng.normal(size=n_rows), np.array([0, n_rows])
    weights = rng.random(n_rows) if weighted else None
    for n_threads in (1, 3):
        gradient, hessian = gradients(SquaredLoss(), scores, y, offsets, weights, n_threads=n_threads)
        assert_array_equal(gradient, (y - scores) * (1.0 if weights is None else weights))
        assert_array_equal(hessian, np.ones(n_rows) if weights is None else weights)


def test_squared_loss_starts_at_the_mean_label():
    y = np.array([1.0, 2.0, 6.0])
    loss = SquaredLoss()
    assert loss.constant_hessian
    assert loss.base_score(y, None) == 3.0
    assert loss.base_score(y, np.array([0.0, 1.0, 1.0])) == 4.0
    assert loss.base_score(y, np.zeros(3)) == 0.0
    assert loss.base_score(np.empty(0), None) == 0.0
    _, hessian = gradients(loss, np.zeros(3), y, np.array([0, 3]))
    assert_array_equal(hessian, 1.0)


def test_document_weights():
    offsets, weights = np.array([0, 1, 3]), np.array([1.0, 2.0, 3.0])
    assert document_weights(offsets, None, None) is None
    assert document_weights(offsets, weights, None) is weights
    assert_array_equal(document_weights(offsets, weights, np.array([10.0, 100.0])), [10.0, 200.0, 300.0])


# A user's function.
def test_a_custom_loss_sees_everything_and_its_sign_is_turned():
    seen = {}

    def pull(scores, labels, offsets, weights):
        seen.update(scores=scores, labels=labels, offsets=offsets, weights=weights)
        return (scores - labels) * weights, weights

    scores, y, offsets = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 5.0]), np.array([0, 1, 3])
    weights, query_weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 10.0])
    loss = CustomLoss(pull, base=0.25)
    assert loss.base_score(y, None) == 0.25
    actual = gradients(loss, scores, y, offsets, weights, query_weights)
    for values, expected in zip(
        actual, gradients(SquaredLoss(), scores, y, offsets, weights, query_weights), strict=True
    ):
        assert_array_equal(values, expected)
    assert_array_equal(seen["weights"], [1.0, 20.0, 40.0])
    assert_array_equal(seen["offsets"], offsets)
    assert not any(array.flags.writeable for array in seen.values())


ONES = np.ones(3)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (ONES, r"'custom' must return a tuple \(gradient, hessian\), got ndarray"),
        ((ONES, ONES, ONES), "must return a tuple"),
        ((np.ones(2), ONES), r"gradient of shape \(2,\) for 3 documents"),
        ((ONES, np.ones((3, 1))), r"hessian of shape \(3, 1\) for 3 documents"),
        ((np.array([0.0, np.nan, 0.0]), ONES), "gradient nan for document 1"),
        ((ONES, np.array([0.0, 0.0, np.inf])), "hessian inf for document 2"),
        ((ONES, np.array([0.0, -2.0, -1.0])), "hessian -2 for document 1: it must not be negative"),
        ((["a", "b", "c"], ONES), "gradient that is no array of numbers"),
    ],
)
def test_a_custom_loss_is_checked(result, message):
    loss = CustomLoss(lambda *_: result)
    with pytest.raises(RankwoodError, match=message):
        gradients(loss, np.zeros(3), np.zeros(3), np.array([0, 3]))


def test_a_custom_loss_needs_a_function():
    with pytest.raises(RankwoodError, match="needs a function, got str"):
        CustomLoss("lambdarank")
    with pytest.raises(RankwoodError, match="base score of a custom loss must be finite"):
        CustomLoss(lambda *_: (ONES, ONES), base=np.nan)


# Errors.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"truncation": 0}, "truncation must be a rank from 1 on, got 0"),
        ({"truncation": 2.5}, "truncation must be a rank from 1 on, got 2.5"),
        ({"sigma": 0.0}, "sigma must lie between 1e-6 and 1e6, got 0.0"),
        ({"sigma": np.nan}, "sigma must lie between"),
        ({"gains": "exponential"}, "gains must be None, 'linear' or a table, got 'exponential'"),
        ({"gains": []}, "a gain table needs"),
        ({"gains": [0, 3, 1]}, r"gains from 0 upwards that never fall, got \(0.0, 3.0, 1.0\)"),
        ({"gains": [-1, 0]}, "a gain table needs"),
        ({"gains": [0, np.inf]}, "a gain table needs finite gains"),
    ],
)
def test_parameters_are_checked(arguments, message):
    with pytest.raises(RankwoodError, match=message):
        LambdaLoss(**arguments)


@pytest.mark.parametrize(
    ("gains", "labels", "message"),
    [
        (None, [0.0, 1024.0], r"label 1024 is too large for the gain 2\^label - 1: use gains='linear' or a gain table"),
        (None, [0.0, -1.0], "label -1 has a negative gain"),
        ("linear", [0.0, -0.5], "label -0.5 has a negative gain"),
        (None, [0.0, np.nan], "label nan has no gain"),
        ((0.0, 1.0), [0.0, 2.0], "label 2 is not in the gain table, which is for 0, 1, ..., 1"),
        ((0.0, 1.0), [0.0, 0.5], "label 0.5 is not in the gain table"),
    ],
)
def test_labels_without_a_gain(gains, labels, message):
    with pytest.raises(DataError, match=message):
        LambdaLoss(gains=gains).prepare(np.array(labels), np.array([0, 2]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"offsets": np.array([0, 3])}, "offsets must end with the number of rows"),
        ({"offsets": np.array([1, 2])}, "offsets must start with 0"),
        ({"offsets": np.array([0, 2, 1, 2])}, "offsets must not decrease"),
        ({"weights": np.ones(3)}, "weights have the wrong length"),
        ({"query_weights": np.ones(2)}, "weights have the wrong length"),
    ],
)
def test_shapes_are_checked(arguments, message):
    given = {"y": np.array([0.0, 1.0]), "offsets": np.array([0, 2])} | arguments
    with pytest.raises(DataError, match=message):
        LambdaLoss().prepare(**given)


def test_the_largest_labels_work():
    labels, offsets = np.array([1023.0, 0.0, 1022.0]), np.array([0, 3])
    loss = LambdaLoss(normalize=False)
    scaled = LambdaLoss(normalize=False, gains=(0.0, 1.0, 2.0))
    actual = gradients(loss, np.zeros(3), labels, offsets)
    assert_close(actual, by_pairs(scaled, np.zeros(3), np.array([2.0, 0.0, 1.0]), offsets), offsets)


@pytest.mark.parametrize("loss", [LambdaLoss(), SquaredLoss()])
def test_wrong_scores_are_refused(loss):
    data = loss.prepare(np.array([0.0, 1.0]), np.array([0, 2]))
    with pytest.raises(ValueError, match="one score per row is needed"):
        data.gradients(np.zeros(3), np.empty(2), np.empty(2))
    with pytest.raises(ValueError, match="one gradient and hessian per row are needed"):
        data.gradients(np.zeros(2), np.empty(3), np.empty(2))
