"""evaluate and compare: models, learners and plain scores against data sets in any row order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.evaluation.evaluator import aligned_features, scores_of


@pytest.fixture
def data() -> rw.Dataset:
    rng = np.random.default_rng(0)
    return rw.Dataset(rng.normal(size=(90, 3)), rng.integers(4, size=90), qid=rng.integers(8, size=90))


def test_values_do_not_depend_on_the_order_of_queries(data):
    scores = np.random.default_rng(1).normal(size=90)
    grouped = data.select_queries(np.arange(data.n_queries))
    by_row = {tuple(row): score for row, score in zip(data.X.tolist(), scores, strict=True)}
    same = np.array([by_row[tuple(row)] for row in grouped.X.tolist()])
    mixed, tidy = rw.evaluate(scores, data, ["nDCG@10", "AP"]), rw.evaluate(same, grouped, ["nDCG@10", "AP"])
    for name in mixed:
        assert_array_equal(mixed.per_query[name], tidy.per_query[name])


def test_an_ensemble_a_learner_and_its_scores_are_alike(data):
    model = rw.Ensemble.from_trees([(0, 0.0, 1.0, 2.0), (1, 0.5, 0.0, 0.5)], n_features=3)

    class Learner:
        def predict(self, X):
            return model.score(X)

    results = [rw.evaluate(m, data, "nDCG@5")["nDCG@5"] for m in (model, Learner(), model.score(data.X))]
    assert results[0] == results[1] == results[2]


def test_query_weights_weigh_the_mean(data):
    scores = data.X[:, 0]
    plain = rw.evaluate(scores, data, "AP")
    weights = np.arange(1.0, data.n_queries + 1)
    weighted = rw.Dataset(data.X, data.y, qid=data.qid, query_weights=weights)
    assert_allclose(rw.evaluate(scores, weighted, "AP")["AP"], np.average(plain.per_query["AP"], weights=weights))


def test_measures_are_found_by_any_of_their_names(data):
    result = rw.evaluate(data.X[:, 0], data, ["ndcg@10", "map"])
    assert list(result) == ["nDCG@10", "AP"]
    assert result["ndcg@10"] == result["nDCG@10"]
    assert len(result) == 2
    assert "convention rankwood" in repr(result)


def test_the_better_model_has_the_positive_difference(data):
    comparison = rw.compare(np.zeros(90), data.y, data, "nDCG@10")
    assert comparison.difference > 0
    assert comparison.difference == pytest.approx(comparison.other_mean - comparison.mean)
    assert comparison.interval[0] > 0
    assert comparison.p_randomisation < 0.05
    back = rw.compare(data.y, np.zeros(90), data, "nDCG@10")
    assert back.difference == -comparison.difference


def test_a_model_does_not_differ_from_itself(data):
    comparison = rw.compare(data.X[:, 0], data.X[:, 0], data)
    assert (comparison.difference, comparison.interval) == (0.0, (0.0, 0.0))
    assert (comparison.p_randomisation, comparison.p_wilcoxon, comparison.p_t) == (1.0, 1.0, 1.0)


def test_wrong_scores_are_refused(data):
    with pytest.raises(rw.DataError, match=r"one value per row \(90\), got shape \(3,\)"):
        rw.evaluate([1, 2, 3], data)
    bad = np.zeros(90)
    bad[7] = np.nan
    with pytest.raises(rw.RankwoodError, match="7"):
        rw.evaluate(bad, data)
    with pytest.raises(rw.DataError, match="no labels"):
        rw.evaluate(np.zeros(2), rw.Dataset([[1.0], [2.0]], group=[2]))


def test_values_of_two_conventions_are_not_compared(data):
    from rankwood.evaluation.evaluator import compare_values

    first, second = (rw.evaluate(data.y, data, convention=name) for name in ("rankwood", "lightgbm"))
    with pytest.raises(rw.RankwoodError, match="cannot compare rankwood values with lightgbm values"):
        compare_values(first, second, "nDCG@10")


def test_features_are_found_by_name():
    names = ["bm25", "clicks", "age"]
    model = rw.Ensemble.from_trees([(0, 0.0, 1.0, 2.0), (1, 0.5, 0.0, 0.5)], feature_names=names)
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, group = np.arange(40) % 3, [20, 20]
    data = rw.Dataset(X, y, group=group, feature_names=names)
    turned = rw.Dataset(X[:, ::-1], y, group=group, feature_names=names[::-1])
    assert_array_equal(scores_of(model, turned), model.score(X))
    assert_array_equal(aligned_features(model, turned), data.X)
    assert aligned_features(model, data) is data.X
    assert_array_equal(scores_of(model, rw.Dataset(X, y, group=group)), model.score(X))  # without names by position
    nameless = rw.Ensemble.from_trees([(0, 0.0, 1.0, 2.0)], n_features=3)
    assert_array_equal(scores_of(nameless, turned), nameless.score(turned.X))
    other = rw.Dataset(X, y, group=group, feature_names=["bm25", "clicks", "Age"])
    with pytest.raises(rw.DataError, match="there is no 'age' and the model does not know 'Age'"):
        rw.evaluate(model, other)


def test_a_learner_finds_features_by_name():
    data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=4)
    turned = data.select_features([2, 0, 3, 1])
    ranker = rw.MART(n_trees=5, n_leaves=4).fit(data)
    assert_array_equal(ranker.predict(turned), ranker.predict(data))
    assert ranker.score(turned) == ranker.score(data) == rw.evaluate(ranker, turned)["nDCG@10"]
    watched = rw.MART(n_trees=5, n_leaves=4).fit(data, valid=turned).evals_result_["valid"]["nDCG@10"]
    assert watched[-1] == ranker.score(data)
    renamed = rw.Dataset(data.X, data.y, qid=data.qid, feature_names=["a", "b", "c", "d"])
    with pytest.raises(rw.DataError, match=r"the model does not know 'a', 'b', 'c' and 1 more"):
        ranker.predict(renamed)
    with pytest.raises(rw.DataError, match="BinnedDataset stand in another order"):
        ranker.predict(rw.BinnedDataset.make(turned))


def test_a_comparison_weighs_queries_as_an_evaluation_does(data):
    weights = np.where(np.arange(data.n_queries) == 0, 100.0, 1.0)
    weighted = rw.Dataset(data.X, data.y, qid=data.qid, query_weights=weights)
    ideal_in_first = np.where(data.queries.index == 0, data.y, -data.y)
    plain, heavy = (rw.compare(-ideal_in_first, ideal_in_first, one) for one in (data, weighted))
    assert plain.difference < 0 < heavy.difference
    means = [rw.evaluate(scores, weighted)["nDCG@10"] for scores in (-ideal_in_first, ideal_in_first)]
    assert (heavy.mean, heavy.other_mean) == tuple(means)
    assert_allclose(heavy.difference, means[1] - means[0])
    assert heavy.n_queries == data.n_queries
    alike = rw.Dataset(data.X, data.y, qid=data.qid, query_weights=np.full(data.n_queries, 0.5))
    assert rw.compare(-ideal_in_first, ideal_in_first, alike) == plain  # only the proportions of weights count


def test_comparisons_that_weights_forbid(data):
    from rankwood.evaluation.evaluator import compare_values

    n = data.n_queries
    weighted, unweighted, zero = (
        rw.evaluate(data.y, rw.Dataset(data.X, data.y, qid=data.qid, query_weights=weights))
        for weights in (np.arange(n), None, np.zeros(n))
    )
    with pytest.raises(rw.RankwoodError, match="other weights"):
        compare_values(weighted, unweighted, "nDCG@10")
    with pytest.raises(rw.DataError, match="weight above 0"):
        compare_values(zero, zero, "nDCG@10")


def test_queries_left_out_have_no_weight():
    data = rw.Dataset(np.zeros((6, 1)), [0, 1, 0, 0, 0, 1], group=[2, 2, 2], query_weights=[1, 50, 3])
    result = rw.compare([2, 1, 2, 1, 1, 2], [1, 2, 2, 1, 2, 1], data, "RR(empty='skip')")
    assert result.n_queries == 2
    assert_allclose([result.mean, result.other_mean, result.difference], [0.875, 0.625, -0.25])


def test_a_measure_asked_for_twice_is_given_once(data):
    assert list(rw.evaluate(data.y, data, ["nDCG@10", "AP", "ndcg@10"])) == ["nDCG@10", "AP"]


def test_data_must_be_a_dataset(data):
    with pytest.raises(rw.DataError, match="evaluation needs a Dataset, with labels and queries, got ndarray"):
        rw.evaluate(data.y, data.X)


def test_training_watches_what_evaluate_says_about_ties():
    rng = np.random.default_rng(0)
    data = rw.Dataset(rng.integers(2, size=(60, 2)), rng.integers(3, size=60), qid=rng.integers(4, size=60))
    ranker = rw.MART(n_trees=2, n_leaves=2, min_docs_per_leaf=1, convention="trec").fit(data, valid=data[::-1])
    watched = ranker.evals_result_["valid"]["nDCG@10"][-1]
    assert watched == rw.evaluate(ranker, data[::-1], convention="trec")["nDCG@10"]
