"""CLEaVER for any measure and any additive model: equal to what it does for trees where both can be asked."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator

QUICK = rw.PruningSettings(search=rw.LineSearch(iterations=6), measure_speed=False)


def ndcg(labels, scores, offsets):
    """nDCG@10 once more, as a function of the user's own."""
    measured = rw.Dataset(np.zeros((len(labels), 1)), labels, group=np.diff(offsets))
    return Evaluator(measured, "nDCG@10", n_threads=1).values(scores)[0]


def negative_squares(labels, scores, offsets):
    """Squared error of every query, negated."""
    return -np.add.reduceat((labels - scores) ** 2, offsets[:-1]) / np.diff(offsets)


@pytest.fixture(scope="module")
def problem():
    data = rw.make_ranking(n_queries=90, docs_per_query=12, n_features=6, seed=4)
    train, valid = data.split(0.6, seed=1)
    return rw.LambdaMART(n_trees=15, n_leaves=5, learning_rate=0.3).fit(train).ensemble_, train, valid


@pytest.mark.parametrize("strategy", ["quality-loss", "score-loss", "quality-loss-greedy", "skip"])
def test_a_function_that_is_ndcg_prunes_as_ndcg_does(problem, strategy):
    model, train, valid = problem
    given = {"rates": (0.0, 0.3, 0.6), "strategy": strategy, "variants": ("line-search", "gradient"), "settings": QUICK}
    ours = rw.cleaver(model, train, valid, measure=ndcg, **given)
    built_in = rw.cleaver(model, train, valid, measure="nDCG@10", **given)
    assert ours.measure == "ndcg"
    for one, other in zip(ours.rows, built_in.rows, strict=True):
        assert (one.rate, one.variant, one.accepted) == (other.rate, other.variant, other.accepted)
        if one.variant != "gradient":  # whose gains are of labels, not of nDCG
            assert_array_equal(one.ensemble.tree_weights, other.ensemble.tree_weights)
            assert_allclose([one.train, one.valid], [other.train, other.valid], rtol=1e-12)


def test_a_loss_is_lowered(problem):
    """Squared error, for which no measure of ranking is asked."""
    _, train, valid = problem
    model = rw.MART(n_trees=15, n_leaves=5, learning_rate=0.1).fit(train).ensemble_
    result = rw.cleaver(
        model, train, valid, measure=negative_squares, rates=(0.0, 0.4), accept="quality", settings=QUICK
    )
    assert result.accepted
    assert result.valid_after > result.valid_before  # trees that were not grown to the end gain from larger weights
    on_valid = rw.evaluate(result.ensemble, valid, rw.MeasureFunction(negative_squares, "-MSE"))
    assert result.valid_after == pytest.approx(on_valid["-MSE"])
    with_one_document = rw.Dataset(train.X, train.y, group=np.ones(train.n_docs, int))  # nothing to rank
    assert rw.cleaver(model, with_one_document, with_one_document, measure=negative_squares, settings=QUICK, rates=0.5)


def test_functions_that_return_something_else_are_refused(problem):
    model, train, valid = problem
    with pytest.raises(rw.MeasureError, match=r"must return one value per query \(\d+\), got a single number"):
        rw.cleaver(model, train, valid, measure=lambda y, s, at: 1.0)
    with pytest.raises(rw.MeasureError, match="finite numbers"):
        rw.evaluate(model, valid, rw.MeasureFunction(lambda y, s, at: np.full(len(at) - 1, np.inf), "endless"))


def test_measures_of_both_kinds_together(problem):
    model, _, valid = problem
    both = rw.evaluate(model, valid, ["RR", ndcg, "nDCG@10"])
    assert list(both) == ["RR", "ndcg", "nDCG@10"]
    assert_allclose(both.per_query["ndcg"], both.per_query["nDCG@10"])


def members_of(model, data):
    """What every tree says of every document, in float32, as a data set of predictions."""
    columns = [model.select([t]).reweigh([1.0]).replace(base=0.0).score(data.X) for t in range(model.n_trees)]
    return data.replace(X=np.stack(columns, axis=1).astype(np.float32), feature_names=None)


@pytest.fixture(scope="module")
def predictions(problem):
    """The same model as trees whose values float32 holds, and as a matrix of what they say."""
    model, train, valid = problem
    model = model.replace(leaf_value=model.leaf_value.astype(np.float32), base=0.5)
    additive = rw.AdditiveModel(model.tree_weights, base=0.5)
    return model, additive, (train, valid), (members_of(model, train), members_of(model, valid))


@pytest.mark.parametrize("strategy", ["quality-loss", "score-loss", "low-weights", "last", "random"])
def test_trees_as_members_are_pruned_as_trees(predictions, strategy):
    model, additive, data, matrices = predictions
    given = {"rates": (0.2, 0.5), "strategy": strategy, "variants": "line-search", "settings": QUICK}
    ours, trees = rw.cleaver(additive, *matrices, **given), rw.cleaver(model, *data, **given)
    for one, other in zip(ours.rows, trees.rows, strict=True):
        left = one.ensemble.weights[one.ensemble.members]
        assert_array_equal(left, other.ensemble.tree_weights)
        assert (one.n_trees, one.train, one.valid, one.accepted) == (
            other.n_trees, other.train, other.valid, other.accepted)  # fmt: skip
    assert_array_equal(additive.score(matrices[1].X), model.score(data[1].X))


def test_negative_weights_keep_their_signs(predictions):
    _, additive, _, (train, valid) = predictions
    signs = np.where(np.arange(additive.n_members) % 2, -1.0, 1.0)
    flipped = [data.replace(X=data.X * signs.astype(np.float32)) for data in (train, valid)]
    plain = rw.cleaver(additive, train, valid, rates=(0.4,), settings=QUICK)
    negative = rw.cleaver(additive.reweigh(additive.weights * signs), *flipped, rates=(0.4,), settings=QUICK)
    assert_array_equal(negative.rows[1].ensemble.weights, plain.rows[1].ensemble.weights * signs)


def test_what_an_additive_model_cannot_do_is_said(predictions):
    _, additive, _, (train, valid) = predictions
    with pytest.raises(rw.RankwoodError, match="no leaves to fit: its variants are line-search, gradient"):
        rw.cleaver(additive, train, valid, variants="refit")
    with pytest.raises(rw.DataError, match=r"predictions of 15 members need as many columns, got shape \(\d+, 14\)"):
        rw.cleaver(additive, train.replace(X=train.X[:, :14]), valid)
    with pytest.raises(rw.ModelError, match="one finite weight per member"):
        rw.AdditiveModel([1.0, np.nan])
    with pytest.raises(rw.ModelError, match="2 members need as many names, got 1"):
        rw.AdditiveModel([1.0, 2.0], names=["a"])
