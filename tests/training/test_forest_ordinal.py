"""Forests in the classification setting: a forest per grade as one model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.training import tasks as ordinal
from rankwood.training.forest import mean_weight

pytestmark = pytest.mark.native

MOODS = {
    "bootstrap": {"max_features": 0.5},
    "queries": {"queries_per_tree": 0.3, "criterion": "entropy"},
    "limited": {"docs_per_tree": 0.7, "replace": False, "n_leaves": 9},
}
every_mood = pytest.mark.parametrize("mood", MOODS)


def forest(mood: str = "queries", **more) -> rw.RandomForest:
    return rw.RandomForest(**{"n_trees": 7, "random_state": 3} | MOODS[mood] | more)


def graded(mood: str = "queries", **more) -> rw.RandomForest:
    return forest(mood, task="ordinal", **more)


@pytest.fixture(scope="module")
def data() -> rw.Dataset:
    made = rw.make_ranking(n_queries=40, docs_per_query=12, n_features=6, seed=5)
    return rw.Dataset(made.X, np.minimum(made.y, 3), qid=made.qid)


@every_mood
def test_it_is_a_forest_per_grade(mood, data):
    model = graded(mood).fit(data).ensemble_
    assert (model.n_trees, model.base) == (21, 3.0)
    assert_array_equal(model.tree_weights, -mean_weight(7))
    for c, part in enumerate(ordinal.split(model), start=1):
        alone = forest(mood).fit(data.replace(y=data.y < c)).ensemble_
        assert part.fingerprint() == alone.fingerprint()
        assert_array_equal(part.split_gain, alone.split_gain)
    expected = sum(1.0 - part.score(data.X) for part in ordinal.split(model))
    assert_allclose(model.score(data.X), expected, rtol=1e-12, atol=1e-12)


@every_mood
def test_threads_and_sizes(mood, data):
    plain = graded(mood).fit(data).ensemble_
    for n_jobs in (1, 2, 5):
        assert graded(mood, n_jobs=n_jobs).fit(data).ensemble_.fingerprint() == plain.fingerprint()
    fewer = graded(mood, n_trees=4).fit(data).ensemble_
    assert fewer.fingerprint() == plain.select(range(12)).reweigh([-0.25] * 12).fingerprint()


def test_probabilities_of_grades(data):
    ranker = graded(n_trees=20).fit(data)
    assert ranker.classes_.tolist() == [0, 1, 2, 3]
    shares = ranker.predict_proba(data)
    assert (shares >= 0).all()
    assert_allclose(shares.sum(axis=1), 1.0)
    # Means of labels in leaves of one sample are never in the wrong order by much; the expected grade is the score.
    assert_allclose(shares @ ranker.classes_, ranker.predict(data), atol=1e-6)
    assert not hasattr(forest().fit(data), "predict_proba")


@every_mood
def test_out_of_bag_equals_its_slow_twin(mood, data):
    ranker = graded(mood, n_trees=15, out_of_bag=True).fit(data)
    alone = [forest(mood, n_trees=15, out_of_bag=True).fit(data.replace(y=data.y < c)) for c in (1, 2, 3)]
    expected = sum(1.0 - one.oob_scores_ for one in alone)
    assert_allclose(ranker.oob_scores_, expected, rtol=1e-12, atol=1e-12)
    curve = rw.out_of_bag_curve(ranker, data, sizes=[5, 15])
    assert curve.sizes.tolist() == [5, 15]
    assert curve.values["nDCG@10"][-1] == pytest.approx(ranker.oob_score_)


def test_what_is_watched_is_the_model_of_that_size(data):
    train, valid = data.split(0.6)
    ranker = graded(measure=["nDCG@5", "AP"]).fit(train, valid=valid)
    for n_trees in (1, 4, 7):
        model = graded(n_trees=n_trees).fit(train).ensemble_
        for name, value in rw.evaluate(model, valid, ["nDCG@5", "AP"]).means.items():
            assert ranker.evals_result_["valid"][name][n_trees - 1] == pytest.approx(value, abs=1e-12)


def test_going_on_from_a_checkpoint(data, tmp_path):
    train, valid = data.split(0.6)
    whole = graded().fit(train, valid=valid)
    path = tmp_path / "half.rw"
    graded(n_trees=3).fit(train, valid=valid, checkpoint=rw.Checkpoint(path, every=2))
    resumed = graded().fit(train, valid=valid, checkpoint=path)
    assert resumed.ensemble_.fingerprint() == whole.ensemble_.fingerprint()
    assert resumed.evals_result_ == whole.evals_result_
    with pytest.raises(rw.RankwoodError, match="was made with other training data, other task"):
        forest().fit(train, valid=valid, checkpoint=path)


def test_boosting_goes_on_from_it(data):
    start = graded().fit(data)
    ranker = rw.InitializedMART(n_trees=4, n_leaves=4, forest=forest(), task="ordinal").fit(data)
    assert ranker.initial_ensemble_.fingerprint() == start.ensemble_.fingerprint()
    assert ranker.n_trees_ == 21 + 12
    assert_allclose(ranker.predict_proba(data).sum(axis=1), 1.0)


def test_labels_that_are_no_grades(data):
    with pytest.raises(rw.DataError, match="is no grade"):
        graded().fit(data.replace(y=data.y + 0.5))
    with pytest.raises(rw.RankwoodError, match="task must be 'regression' or 'ordinal', got 'classes'"):
        forest(task="classes").fit(data)
