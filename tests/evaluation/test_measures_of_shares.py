"""Measures over processes that have a share of the queries each: the same bits as one process that has them all."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.group import ALONE
from rankwood.training.correction import correct
from rankwood.training.losses import LambdaLoss, SquaredLoss
from rankwood.training.tasks import Ordinal
from rankwood.training.watch import KeptLeaves, Measures, ScoredData
from thread_group import odd_shares, run

pytestmark = pytest.mark.native

MEASURES = ["nDCG@10", "AP", "RR"]


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def data(request):
    made = rw.make_ranking(n_queries=83, docs_per_query=12, n_features=4, seed=2)
    weights = np.random.default_rng(0).random(83) if request.param else None
    return made.replace(query_weights=weights)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_means_are_those_of_all_queries(data, size):
    shares = odd_shares(data, size)
    whole = Evaluator(data, MEASURES)

    def of_share(group):
        evaluator = Evaluator(shares[group.rank], MEASURES, group=group)
        scores = shares[group.rank].X[:, 0]
        found = evaluator.evaluate(scores)
        return evaluator.means(scores).tolist(), evaluator.values(scores), dict(found), found.per_query["AP"].tolist()

    found, expected = run(size, of_share), whole.evaluate(data.X[:, 0])
    for means, _, by_name, average_precisions in found:
        assert means == whole.means(data.X[:, 0]).tolist()
        assert by_name == dict(expected)
        assert average_precisions == expected.per_query["AP"].tolist()
    local = np.concatenate([values for _, values, _, _ in found], axis=1)
    assert local.tolist() == whole.values(data.X[:, 0]).tolist()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_watched_measures_and_functions_of_users(data, size):
    calls = []

    def spread(labels, scores, offsets):
        calls.append(len(labels))
        return "spread", float(np.abs(np.diff(scores)).sum() + len(offsets)), False

    measures, shares = Measures(["nDCG@5", spread], "rankwood"), odd_shares(data, size)
    expected = ScoredData(data, data.X[:, 0], n_threads=1).results("valid", measures)

    def of_share(group):
        share = shares[group.rank]
        return ScoredData(share, share.X[:, 0], n_threads=1, group=group).results("valid", measures)

    assert all(one == expected for one in run(size, of_share))
    assert set(calls) == {data.n_docs}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_base_scores_and_grades(data, size):
    shares, y = odd_shares(data, size), data.y * np.pi
    weights = np.random.default_rng(1).random(data.n_docs)
    cuts = np.cumsum([share.n_docs for share in shares])[:-1]
    labels, parts = np.split(y, cuts), np.split(weights, cuts)

    def of_share(group):
        mine, own = labels[group.rank], parts[group.rank]
        bases = [SquaredLoss().base_score(mine, one, group) for one in (None, own)]
        return *bases, Ordinal.of(shares[group.rank].y, group).n_problems

    expected = *(SquaredLoss().base_score(y, one) for one in (None, weights)), Ordinal.of(data.y).n_problems
    assert all(one == expected for one in run(size, of_share))
    assert expected[0] == float(sum(map(Fraction, y)) / len(y))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_corrections_of_leaves(data, size):
    """Leaf sums, and the joint Newton steps from them, are those of all documents."""
    ranker = rw.LambdaMART(n_trees=6, n_leaves=7, min_docs_per_leaf=3).fit(data.replace(query_weights=None))
    model, live = ranker.ensemble_, dict.fromkeys(range(6), 0.3)

    def corrected(share, group=ALONE):
        kept = KeptLeaves(np.zeros(share.n_docs), n_threads=2, group=group)
        for number in live:
            kept.keep(number, model.trees.tree(number), model.leaves(share.X)[:, number].astype(np.uint16))
        kept.put_in(live, live)
        objective = LambdaLoss().prepare(share.y, share.offsets, None, share.query_weights)
        values = correct(kept, objective, live, rw.Corrective(passes=3))
        return {number: of_tree.tolist() for number, of_tree in values.items()}, kept.scores

    shares = odd_shares(data, size)
    expected, scores = corrected(data)
    found = run(size, lambda group: corrected(shares[group.rank], group))
    assert all(one == expected for one, _ in found)
    assert np.concatenate([own for _, own in found]).tolist() == scores.tolist()


def test_the_mean_of_many_queries_is_the_oracles():
    rng = np.random.default_rng(5)
    y, scores = rng.integers(0, 5, 200_000).astype(float), rng.random(200_000)
    data = rw.Dataset(np.zeros((200_000, 1)), y, group=[8] * 25_000)
    found = rw.evaluate(scores, data)
    oracle = math.fsum(found.per_query["nDCG@10"]) / 25_000  # rounded twice
    assert abs(found["nDCG@10"] - oracle) <= math.ulp(oracle)
    assert found["nDCG@10"] == float(sum(map(Fraction, found.per_query["nDCG@10"])) / 25_000)
