"""Lasso weights meet the conditions of their optimum; a bag is the mean of its models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankwood as rw
from rankwood.fitting.outputs import TreeOutputs
from rankwood.lab.papers.related import bagged, lasso_weights


@pytest.fixture(scope="module")
def ranking():
    return rw.make_ranking(n_queries=40, docs_per_query=12, n_features=6, seed=3)


@pytest.mark.parametrize("n_keep", [1, 3, 8])
def test_lasso_weights_are_optimal_for_their_penalty(ranking, n_keep):
    model = rw.LambdaMART(n_trees=12, n_leaves=5, learning_rate=0.3).fit(ranking).ensemble_
    outputs = TreeOutputs.of(model, ranking)
    labels = ranking.y
    weights = lasso_weights(outputs, labels, n_keep)
    assert 1 <= np.count_nonzero(weights) <= n_keep
    assert (weights >= 0).all()
    matrix = np.stack([outputs.output(t) for t in range(outputs.n_trees)], axis=1)
    matrix = matrix - matrix.mean(axis=0)
    slope = matrix.T @ (labels - labels.mean() - matrix @ weights)  # equal where a weight is, smaller elsewhere
    penalty = slope[weights > 0].max()
    assert_allclose(slope[weights > 0], penalty, rtol=1e-6)
    assert (slope[weights == 0] <= penalty * (1 + 1e-6)).all()


def test_the_lasso_needs_a_number_that_fits(ranking):
    model = rw.LambdaMART(n_trees=2, n_leaves=3).fit(ranking).ensemble_
    with pytest.raises(rw.RankwoodError, match="keeps 1 to 2 trees, got 3"):
        lasso_weights(TreeOutputs.of(model, ranking), ranking.y, 3)


def test_a_bag_is_the_mean_of_its_models(ranking):
    learner = rw.LambdaMART(n_trees=4, n_leaves=5)
    bag = bagged(learner, ranking, 3, seed=5)
    singles = []
    for number in range(3):
        drawn = np.sort(np.random.default_rng([5, number]).integers(ranking.n_queries, size=ranking.n_queries))
        other = rw.LambdaMART(n_trees=4, n_leaves=5, random_state=5 + number).fit(ranking.select_queries(drawn))
        singles.append(other.predict(ranking))
    assert bag.n_trees == 12
    assert_allclose(bag.score(ranking.X), np.mean(singles, axis=0), rtol=1e-12, atol=1e-12)
    assert bag == bagged(learner, ranking, 3, seed=5)


def test_trees_of_a_bag_are_shared_out(ranking):
    learner = rw.LambdaMART(n_trees=4, n_leaves=5)
    bag = bagged(learner, ranking, 3, n_trees=8)
    assert bag.n_trees == 8
    drawn = np.sort(np.random.default_rng([0, 0]).integers(ranking.n_queries, size=ranking.n_queries))
    first = rw.LambdaMART(n_trees=2, n_leaves=5).fit(ranking.select_queries(drawn)).ensemble_
    assert bag.select(np.arange(2)).leaf_value.tolist() == first.leaf_value.tolist()
    with pytest.raises(rw.RankwoodError, match="3 models need at least as many trees, got 2"):
        bagged(learner, ranking, 3, n_trees=2)
