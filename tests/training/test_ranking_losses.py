"""Losses besides LambdaMART's nDCG: gradients against double loops and differences; the same bits whatever computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_losses import SCORES, assert_close, gradients, make_queries

import rankwood as rw
from oracles import ranking_losses as oracle
from oracles.losses import pair_loss
from rankwood.errors import RankwoodError
from rankwood.training.losses import (
    CrossEntropyLoss,
    LambdaLoss,
    PairwiseLoss,
    Setting,
    StochasticLoss,
    label_gains,
)

pytestmark = pytest.mark.native

MEASURES = ["nDCG", "MAP", "MRR", "ERR"]
SEED, DRAW = 5, 17


def drawn(loss, scores, labels, offsets, *weights, setting=None, n_threads=1, draw=DRAW):
    found = np.full((2, len(scores)), np.nan)
    bound = loss.prepare(labels, offsets, *weights, setting=setting or Setting(SEED), n_threads=n_threads)
    bound.gradients(scores, *found, draw)
    return found


def expected(loss, scores, labels, offsets, weights=None, query_weights=None, first_query=0):
    """What the slow twins say of any loss."""
    gains = label_gains(labels, loss.gains)
    largest, depth = gains.max(initial=0.0), getattr(loss, "truncation", None) or max(1, len(scores))

    def of_query(q, rows):
        own, theirs, key = scores[rows], gains[rows], oracle.draw_key(SEED, DRAW, first_query + q)
        if isinstance(loss, CrossEntropyLoss):
            if len(own) < 2:
                return np.zeros(len(own)), np.zeros(len(own)), 0.0
            terms, hessian = oracle.cross_entropy_terms(own, theirs, oracle.fractions(key, len(own)))
            return sum(terms), hessian, 0.0
        if isinstance(loss, StochasticLoss):
            pairs = oracle.drawn_pairs(own, theirs, loss.measure, depth, cut=loss.cut_discounts, largest=largest,
                                       key=key, permutations=loss.permutations, noise=loss.noise)  # fmt: skip
        elif isinstance(loss, PairwiseLoss):
            pairs = oracle.pairs_of_query(own, theirs, None, depth)
        else:
            pairs = oracle.pairs_of_query(own, theirs, loss.measure, depth, cut=loss.cut_discounts,
                                          divide=loss.normalize, largest=largest)  # fmt: skip
        return oracle.pair_gradients(own, pairs, loss.sigma)

    scaled = getattr(loss, "normalize", False)
    return oracle.by_query(of_query, scores, offsets, normalize=scaled, weights=weights, query_weights=query_weights)


LOSSES = [
    *(LambdaLoss(5, measure=measure, cut_discounts=cut) for measure in MEASURES for cut in (False, True)),
    *(LambdaLoss(None, measure=measure, normalize=False, sigma=0.7) for measure in MEASURES),
    PairwiseLoss(),
    PairwiseLoss(4, normalize=False, sigma=2.0),
    *(StochasticLoss(6, measure=measure, cut_discounts=measure == "MAP") for measure in MEASURES),
    StochasticLoss(None, normalize=False, sigma=1.5, noise=0.3, permutations=3),
    CrossEntropyLoss(),
    CrossEntropyLoss("linear"),
]
DRAWING = [StochasticLoss(), CrossEntropyLoss()]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_equal_the_slow_twin(loss):
    scores, labels, offsets = make_queries([1, 2, 5, 8, 0, 9, 23, 3, 16], seed=1)
    weights = np.random.default_rng(2).random(len(scores)), np.random.default_rng(3).random(len(offsets) - 1)
    for given_weights in ((), weights):
        actual = drawn(loss, scores, labels, offsets, *given_weights)
        assert_close(actual, expected(loss, scores, labels, offsets, *given_weights), offsets, atol=1e-7)


def slopes(function, scores, step=1e-5):
    moves = step * np.eye(len(scores))
    return np.array([(function(scores + move) - function(scores - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("measure", MEASURES)
def test_lambdas_descend_the_loss_of_their_pairs(measure):
    scores, labels, offsets = make_queries([15], seed=6)
    gains, loss = label_gains(labels), LambdaLoss(8, sigma=1.3, normalize=False, measure=measure)
    pairs = oracle.pairs_of_query(scores, gains, measure, 8)
    gradient, hessian = gradients(loss, scores, labels, offsets)
    assert_allclose(gradient, -slopes(lambda s: pair_loss(s, pairs, 1.3), scores), atol=1e-6)
    curved = slopes(lambda s: pair_loss(s, pairs, 1.3), scores, 1e-3)
    assert_allclose(curved, -gradient, atol=1e-4)
    assert (hessian >= 0).all()


def test_pairwise_is_the_gradient_of_all_logistic_pairs():
    scores, labels, offsets = make_queries([14], seed=7)
    pairs = [(i, j, 1.0) for i in range(14) for j in range(14) if labels[i] > labels[j]]
    gradient, hessian = gradients(PairwiseLoss(None, normalize=False, sigma=0.8), scores, labels, offsets)
    assert_allclose(gradient, -slopes(lambda s: pair_loss(s, pairs, 0.8), scores), atol=1e-5)
    by_difference = [
        -slopes(lambda s, i=i: gradients(PairwiseLoss(None, normalize=False, sigma=0.8), s, labels, offsets)[0][i],
                scores, 1e-2)[i]
        for i in range(14)
    ]  # fmt: skip
    assert_allclose(hessian, by_difference, rtol=1e-3, atol=1e-4)


def test_stochastic_descends_the_loss_of_the_drawn_pairs():
    scores, labels, offsets = make_queries([12], seed=8)
    pairs = oracle.drawn_pairs(scores, label_gains(labels), "nDCG", 12, cut=False, largest=None, permutations=10,
                               noise=1.0, key=oracle.draw_key(SEED, DRAW, 0))  # fmt: skip
    gradient, _ = drawn(StochasticLoss(None, normalize=False), scores, labels, offsets)
    assert_allclose(gradient, -slopes(lambda s: pair_loss(s, pairs, 1.0), scores), atol=1e-6)


def test_the_first_term_of_xendcg_is_the_gradient_of_the_cross_entropy():
    scores, labels, offsets = make_queries([12], seed=9)
    gains, random = label_gains(labels), oracle.fractions(oracle.draw_key(SEED, DRAW, 0), 12)
    (first, second, third), hessian = oracle.cross_entropy_terms(scores, gains, random)
    assert_allclose(first, -slopes(lambda s: oracle.cross_entropy(s, gains, random), scores), atol=1e-8)
    gradient, found = drawn(CrossEntropyLoss(), scores, labels, offsets)
    assert_allclose(gradient, first + second + third, rtol=1e-10)
    assert_allclose(found, hessian, rtol=1e-10)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_swap_weighs_what_the_evaluation_says(measure):
    # The oracle's measures are those of rankwood.evaluate, for binary labels and the largest grade 1.
    rng = np.random.default_rng(4)
    labels, scores = rng.integers(0, 2, 9).astype(float), rng.normal(size=9)
    data = rw.Dataset(np.zeros((9, 1)), labels, group=[9])
    name = {"nDCG": "nDCG@4", "MAP": "AP@4", "MRR": "RR@4", "ERR": "ERR(max_grade=1)@4"}[measure]
    found = next(iter(rw.evaluate(scores, data, name).means.values()))
    ranked = list(labels[np.argsort(-scores)])
    assert oracle.measure_of(measure, ranked, 4, 4, 1.0) == pytest.approx(found)


# Ties, empty queries and those of one document, equal labels, enormous scores.
QUERY = st.lists(st.tuples(SCORES, st.integers(0, 3).map(float)), max_size=9)
ANY_LOSS = st.one_of(
    st.builds(LambdaLoss, truncation=st.integers(1, 10), normalize=st.booleans(), cut_discounts=st.booleans(),
              measure=st.sampled_from(MEASURES)),
    st.builds(PairwiseLoss, truncation=st.integers(1, 10), normalize=st.booleans()),
    st.builds(StochasticLoss, truncation=st.integers(1, 10), normalize=st.booleans(), cut_discounts=st.booleans(),
              measure=st.sampled_from(MEASURES), permutations=st.integers(1, 3)),
)  # fmt: skip


@settings(max_examples=60)
@given(queries=st.lists(QUERY, max_size=4), loss=ANY_LOSS)
def test_degenerate_queries(queries, loss):
    offsets = np.cumsum([0, *map(len, queries)])
    scores = np.array([score for query in queries for score, _ in query])
    labels = np.array([label for query in queries for _, label in query])
    with np.errstate(over="ignore"):
        wanted = expected(loss, scores, labels, offsets)
    assert_close(drawn(loss, scores, labels, offsets), wanted, offsets, atol=1e-6)


@settings(max_examples=40)
@given(
    query=st.lists(st.tuples(st.floats(), st.integers(0, 3).map(float)), min_size=1, max_size=12),
    loss=st.one_of(ANY_LOSS, st.builds(CrossEntropyLoss)),
)
def test_no_score_gives_nan(query, loss):
    scores, labels = np.array(query).T
    gradient, hessian = drawn(loss, np.ascontiguousarray(scores), labels, np.array([0, len(query)]))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert (hessian >= 0).all()


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, CrossEntropyLoss)], ids=repr)
def test_queries_without_pairs_have_no_gradient(loss):
    offsets = np.array([0, 1, 4, 4, 7])
    labels = np.array([3.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0])
    assert_array_equal(drawn(loss, np.arange(7.0), labels, offsets), 0.0)
    assert drawn(loss, np.empty(0), np.empty(0), np.array([0])).shape == (2, 0)


@pytest.mark.parametrize("labels", [[1023.0, 0.0, 1022.0], [0.0, 0.5, 1.0]])
@pytest.mark.parametrize("loss", [LambdaLoss(measure="ERR"), LambdaLoss(measure="MAP"), *DRAWING], ids=repr)
def test_labels_of_any_size(loss, labels):
    assert np.isfinite(drawn(loss, np.zeros(3), np.array(labels), np.array([0, 3]))).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bits_do_not_depend_on_threads_and_processes(loss):
    scores, labels, offsets = make_queries(np.random.default_rng(9).integers(0, 60, 300), seed=10)
    alone = drawn(loss, scores, labels, offsets)
    assert_array_equal(drawn(loss, scores, labels, offsets, n_threads=3), alone)
    if isinstance(loss, (StochasticLoss, CrossEntropyLoss)):
        cut = int(offsets[100])
        rest = drawn(loss, scores[cut:], labels[cut:], offsets[100:] - cut, setting=Setting(SEED, 100))
        assert_array_equal(rest, alone[:, cut:])


@pytest.mark.parametrize("loss", [LambdaLoss(measure="MAP"), LambdaLoss(measure="ERR"), PairwiseLoss(3)], ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_long_queries_give_the_same_bits_on_many_threads(loss, normalize):
    scores, labels, offsets = make_queries([16384 + 3, 40], seed=11)
    loss = replace(loss, normalize=normalize)
    assert_array_equal(drawn(loss, scores, labels, offsets, n_threads=3), drawn(loss, scores, labels, offsets))


@pytest.mark.parametrize("loss", DRAWING, ids=repr)
def test_a_draw_is_its_own_whatever_was_drawn_before(loss):
    scores, labels, offsets = make_queries([20, 30], seed=12)
    first, second = (drawn(loss, scores, labels, offsets, draw=draw) for draw in (1, 2))
    assert (first != second).any()
    bound, again = loss.prepare(labels, offsets, setting=Setting(SEED)), np.empty((2, 50))
    for draw in (2, 0, 1):
        bound.gradients(scores, *again, draw)
    assert_array_equal(again, first)
    assert (drawn(loss, scores, labels, offsets, setting=Setting(SEED + 1), draw=1) != first).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LambdaLoss(measure="P"), "must be one of nDCG, MAP, MRR, ERR, got 'P'"),
        (lambda: StochasticLoss(permutations=0), "permutations must lie between 1 and 10000, got 0"),
        (lambda: StochasticLoss(noise=-1.0), "noise must lie between 0 and 1e6, got -1.0"),
        (lambda: CrossEntropyLoss("square"), "gains must be None, 'linear' or a table, got 'square'"),
        (lambda: PairwiseLoss(0), "truncation must be a rank from 1 on, got 0"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(RankwoodError, match=message):
        make()


# The learners with each loss.
CHOICES = [
    {"loss_measure": "MAP"},
    {"loss_measure": "ERR"},
    {"loss": "pairwise"},
    {"loss": "xendcg"},
    {"loss": "stochastic", "permutations": 2},
    {"loss": "stochastic", "loss_measure": "MRR", "permutations": 2},
]
SMALL = {"n_trees": 8, "n_leaves": 6, "min_docs_per_leaf": 5}


@pytest.fixture(scope="module")
def data():
    return rw.make_ranking(n_queries=50, docs_per_query=12, n_features=5, seed=3).split(0.6)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda **p: rw.LambdaMART(**SMALL, depth_relaxation=0.5, balance=0.3, query_fraction=0.8, **p),
        lambda **p: rw.LambdaMART(**SMALL, corrective=rw.Corrective(every=3, passes=2), **p),
        lambda **p: rw.DART(**SMALL, rate=0.3, **p),
        lambda **p: rw.XDART(**SMALL, **p),
    ],
    ids=["cost-sensitive", "corrective", "DART", "X-DART"],
)
def test_learners_learn_and_go_on_to_the_same_bits(make, choice, data, tmp_path):
    train, valid = data
    whole = make(**choice).fit(train, valid=valid)
    assert make(n_jobs=2, **choice).fit(train, valid=valid).ensemble_ == whole.ensemble_
    assert whole.ensemble_ != make().fit(train, valid=valid).ensemble_
    file = rw.Checkpoint(tmp_path / "half.rw", every=1)

    def stop(env):
        if env.iteration == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(**choice).fit(train, valid=valid, callbacks=[stop], checkpoint=file)
    assert make(**choice).fit(train, valid=valid, checkpoint=file).ensemble_ == whole.ensemble_


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_early_stopping_and_refit(choice, data):
    train, valid = data
    ranker = rw.LambdaMART(n_trees=30, n_leaves=4, early_stopping_rounds=5, refit=rw.Refit(passes=4), **choice)
    first = ranker.fit(train, valid=valid).ensemble_
    assert ranker.fit(train, valid=valid).ensemble_ == first
    untrained = rw.evaluate(np.zeros(train.n_docs), train, "nDCG@10").means["nDCG@10"]
    assert ranker.score(train) > untrained


def test_a_loss_of_your_own_goes_before(data):
    train, _ = data
    ranker = rw.LambdaMART(**SMALL, loss="xendcg", objective=lambda s, y, offsets, w: (s - y, np.ones(len(s))))
    assert ranker.fit(train).ensemble_ != rw.LambdaMART(**SMALL, loss="xendcg").fit(train).ensemble_
