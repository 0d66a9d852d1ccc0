"""Correlation, strength, curves and importance of the trees of a model, against slow twins."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.evaluation import diagnostics
from rankwood.evaluation.diagnostics import (
    impurity_importance,
    measure_curve,
    permutation_importance,
    tree_correlation,
    tree_outputs,
    tree_strength,
)

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def data() -> rw.Dataset:
    made = rw.make_ranking(n_queries=25, docs_per_query=12, n_features=6, seed=4)
    shuffled = np.random.default_rng(0).permutation(made.n_docs)  # queries do not stand together
    return rw.Dataset(made.X[shuffled], made.y[shuffled], qid=made.qid[shuffled])


@pytest.fixture(scope="module")
def model(data) -> rw.Ensemble:
    ranker = rw.MART(n_trees=12, n_leaves=6, min_docs_per_leaf=3, query_fraction=0.3, learning_rate=0.7)
    constant = rw.Ensemble.from_trees([5.0], n_features=6)
    return ranker.fit(data).ensemble_.concat(constant)


def outputs(model, data):
    """Documents x trees."""
    return np.stack([model.select([t]).replace(base=0.0).score(data.X) for t in range(model.n_trees)], axis=1)


def test_outputs_in_blocks_add_up_to_the_score(model, data, monkeypatch):
    monkeypatch.setattr(diagnostics, "_BLOCK_BYTES", 2 * data.n_docs * 5)  # five trees at a time
    rows = list(tree_outputs(model, data))
    assert [tree for tree, _ in rows] == list(range(model.n_trees))
    assert_array_equal(np.stack([values for _, values in rows], axis=1), outputs(model, data))


@pytest.mark.parametrize("within", [False, True])
def test_correlation_is_the_mean_over_all_pairs(model, data, within):
    table = outputs(model, data)
    if within:
        for query in range(data.n_queries):
            rows = data.queries.index == query
            table[rows] -= table[rows].mean(axis=0)
    varying = [t for t in range(model.n_trees) if np.ptp(table[:, t]) > 1e-9]
    pairs = [np.corrcoef(table[:, s], table[:, t])[0, 1] for s, t in itertools.combinations(varying, 2)]
    found = tree_correlation(model, data, within_queries=within)
    assert_allclose(found.mean, np.mean(pairs), atol=1e-12)
    assert (found.n_trees, found.n_constant) == (len(varying), 1)


def test_no_pair_no_correlation(data):
    stump = (0, float(np.median(data.X[:, 0])), 0.0, 1.0)
    found = tree_correlation(rw.Ensemble.from_trees([stump, 3.0], n_features=6), data)
    assert np.isnan(found.mean)
    assert (found.n_trees, found.n_constant) == (1, 1)


def test_strength_is_that_of_each_tree_alone_with_ties_averaged(model, data):
    found = tree_strength(model, data, ["nDCG@10", "AP"], convention="letor")
    average = dataclasses.replace(rw.Convention.get("letor"), ties="average")
    for tree in range(model.n_trees):
        alone = rw.evaluate(model.select([tree]), data, ["nDCG@10", "AP"], convention=average)
        assert [found["nDCG@10"][tree], found["AP"][tree]] == pytest.approx([alone["nDCG@10"], alone["AP"]], abs=1e-12)


def test_strength_does_not_depend_on_the_order_of_documents(model, data):
    turned = data[np.arange(data.n_docs)[::-1]]
    assert_allclose(tree_strength(model, data)["nDCG@10"], tree_strength(model, turned)["nDCG@10"], atol=1e-12)


def test_the_curve_is_that_of_the_first_trees(model, data):
    found = measure_curve(model, data, ["nDCG@5", "AP"], sizes=[1, 4, 13])
    for size, ndcg, ap in zip(found.sizes, found.values["nDCG@5"], found.values["AP"], strict=True):
        part = rw.evaluate(model.select(range(size)), data, ["nDCG@5", "AP"])
        assert [ndcg, ap] == pytest.approx([part["nDCG@5"], part["AP"]], abs=1e-12)
    assert measure_curve(model, data).sizes.tolist() == list(range(1, 14))


def test_out_of_the_bag_only_trees_that_have_not_seen_a_document_count(model, data):
    bags = [np.flatnonzero(data.queries.index % 3 == tree % 3) for tree in range(model.n_trees)]
    found = measure_curve(model, data, "nDCG@10", sizes=[1, 2, 7], in_bag=bags.__getitem__)
    table = outputs(model, data)
    for size, value in zip(found.sizes, found.values["nDCG@10"], strict=True):
        seen = np.stack([np.isin(np.arange(data.n_docs), bags[t]) for t in range(size)], axis=1)
        with np.errstate(invalid="ignore"):
            scores = (table[:, :size] * ~seen).sum(axis=1) / (~seen).sum(axis=1)
        known = [q for q in range(data.n_queries) if not np.isnan(scores[data.queries.index == q]).any()]
        per_query = rw.evaluate(np.nan_to_num(scores), data).per_query["nDCG@10"]
        assert value == pytest.approx(per_query[known].mean(), abs=1e-12)


def test_sizes_that_the_model_does_not_have_are_refused(model, data):
    with pytest.raises(rw.DataError, match=r"between 1 and the number of trees \(13\), got 1 to 14"):
        measure_curve(model, data, sizes=[1, 14])


def test_gains_are_summed_by_feature(data):
    model = rw.MART(n_trees=3, n_leaves=4).fit(data).ensemble_
    sums = np.zeros(6)
    for feature, gain in zip(model.feature, model.split_gain, strict=True):
        sums[feature] += gain
    assert_allclose(impurity_importance(model), sums / sums.sum())
    with pytest.raises(rw.ModelError, match="knows no gains"):
        impurity_importance(rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)]))


def test_shuffling_within_queries_keeps_the_values_of_each_query(data):
    from rankwood.evaluation.diagnostics import _shuffled

    column = np.arange(data.n_docs, dtype=np.float32)
    shuffled = _shuffled(column, data, "query", np.random.default_rng(0))
    assert not np.array_equal(shuffled, column)
    for query in range(data.n_queries):
        rows = data.queries.index == query
        assert_array_equal(np.sort(shuffled[rows]), column[rows])


def test_a_feature_that_queries_share_matters_among_all_documents_only():
    rng = np.random.default_rng(0)
    X = np.stack([np.repeat(rng.random(50), 4), rng.random(200)], axis=1)
    data = rw.Dataset(X, (X[:, 1] > 0.5).astype(float), group=[4] * 50)
    # Which way feature 1 ranks depends on feature 0.
    model = rw.Ensemble.from_trees([(0, 0.5, (1, 0.5, 0.0, 1.0), (1, 0.5, 1.0, 0.0))])
    inside = permutation_importance(model, data, n_repeats=3)
    across = permutation_importance(model, data, n_repeats=3, within="data")
    assert inside.mean[0] == 0.0
    assert across.std[0] > 0.0
    assert inside.drops.shape == (3, 2)


def test_importance_is_the_fall_of_the_measure_and_leaves_the_data_alone(model, data):
    before = data.X.copy()
    one, two = (permutation_importance(model, data, seed=3, n_repeats=2, n_threads=n) for n in (1, 2))
    assert_array_equal(one.drops, two.drops)
    assert_array_equal(data.X, before)
    assert one.baseline == rw.evaluate(model, data)["nDCG@10"]
    assert (one.mean[np.unique(model.feature)] != 0).any()
    for bad, words in ({"within": "rows"}, "must be 'query' or 'data'"), ({"n_repeats": 0}, "at least 1"):
        with pytest.raises(rw.RankwoodError, match=words):
            permutation_importance(model, data, **bad)


def test_something_without_trees_is_refused(data):
    for function in (tree_correlation, tree_strength, measure_curve, permutation_importance):
        with pytest.raises(rw.ModelError, match="Ensemble or a fitted ranker"):
            function(data.y, data)
