"""The classification setting: binary problems that are boosted side by side and make one model."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

import rankwood as rw
from rankwood.training import tasks as ordinal
from strategies.learners import SAMPLED, SMALL

pytestmark = pytest.mark.native
MOODS = {"plain": SMALL, "sampled": SMALL | SAMPLED}
every_mood = pytest.mark.parametrize("mood", MOODS.values(), ids=MOODS.keys())


def mart(**parameters) -> rw.MART:
    return rw.MART(**SMALL | {"task": "ordinal"} | parameters)


def problems_apart(data: rw.Dataset, parameters: dict, **fitting) -> list[rw.Ensemble]:
    """The oracle: a MART of its own for each c, on whether the label is below c."""
    models = []
    for c in range(1, int(data.y.max()) + 1):
        weights = {"weights": data.weights, "query_weights": data.query_weights}
        below = rw.Dataset(data.X, data.y < c, qid=data.qid, feature_names=data.feature_names, **weights)
        models.append(rw.MART(**parameters).fit(below, **fitting).ensemble_)
    return models


@every_mood
def test_problems_that_are_learnt_apart_give_the_same(mood, data):
    """Every tree bit for bit, sampling included; their scores, which are summed in another order, to rounding."""
    ranker = rw.MART(**mood, task="ordinal").fit(data)
    apart = problems_apart(data, mood)
    assert len(apart) == 4
    assert ordinal.split(ranker.ensemble_) == apart
    expected = sum(1.0 - model.score(data.X) for model in apart)
    assert_allclose(ranker.predict(data), expected, rtol=0, atol=1e-12)
    model = ranker.ensemble_
    assert model.base == 4 - sum(problem.base for problem in apart)
    assert_array_equal(model.tree_weights, np.full(32, -0.3))
    assert model.metadata["ordinal"]["problem_of_tree"] == [1, 2, 3, 4] * 8
    assert (ranker.n_trees_, ranker.best_iteration_) == (32, 8)


def test_weights_reach_every_problem(data):
    rng = np.random.default_rng(0)
    weighted = rw.Dataset(
        data.X, data.y, qid=data.qid, weights=rng.random(data.n_docs), query_weights=rng.random(data.n_queries)
    )
    assert ordinal.split(mart().fit(weighted).ensemble_) == problems_apart(weighted, SMALL)


@every_mood
def test_measures_are_of_the_expected_grade(mood, parts):
    train, valid = parts
    ranker = rw.MART(**mood, task="ordinal").fit(train, eval_set=[train, valid])
    for name, part in (("train", train), ("valid_1", valid)):
        assert ranker.evals_result_[name]["nDCG@10"][-1] == rw.evaluate(ranker.ensemble_, part)["nDCG@10"]
        first = mart(**mood | {"n_trees": 1}).fit(train)
        assert ranker.evals_result_[name]["nDCG@10"][0] == first.score(part)


def test_early_stopping_goes_by_the_ranking(parts):
    train, valid = parts
    ranker = mart(n_trees=60, early_stopping_rounds=5).fit(train, valid=valid)
    values = ranker.evals_result_["valid"]["nDCG@10"]
    assert len(values) < 60
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1 == ranker.n_trees_ / 4
    assert ranker.score(valid) == max(values) == ranker.best_score_["valid"]["nDCG@10"]
    assert ranker.ensemble_ == mart(n_trees=ranker.best_iteration_).fit(train).ensemble_


@every_mood
def test_going_on_equals_training_at_once(mood, parts):
    train, valid = parts
    whole = mart(**mood | {"n_trees": 12}).fit(train, valid=valid)
    first = mart(**mood | {"n_trees": 7}).fit(train)
    second = mart(**mood | {"n_trees": 5}).fit(train, valid=valid, init_model=first)
    assert second.ensemble_ == whole.ensemble_
    assert second.ensemble_.metadata["ordinal"] == whole.ensemble_.metadata["ordinal"]
    assert second.evals_result_["valid"]["nDCG@10"] == whole.evals_result_["valid"]["nDCG@10"][7:]
    assert second.ensemble_.metadata["init_model"]["parameters"]["n_trees"] == 7


@every_mood
def test_a_checkpoint_goes_on_to_the_very_model(mood, parts, tmp_path):
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=3)

    def fail(env):
        if env.iteration == 7:
            raise RuntimeError("power cut")

    ranker = mart(**mood | {"n_trees": 12})
    with pytest.raises(RuntimeError, match="power cut"):
        ranker.fit(train, valid=valid, checkpoint=checkpoint, callbacks=[fail])
    assert rw.load_model(checkpoint.path).n_trees == 4 * 6
    seen = []
    ranker.fit(train, valid=valid, checkpoint=checkpoint, callbacks=[lambda env: seen.append(env.replayed)])
    assert seen == [True] * 6 + [False] * 6
    plain = clone(ranker).fit(train, valid=valid)
    for fitted, file in ((ranker, tmp_path / "resumed.rw"), (plain, tmp_path / "plain.rw")):
        fitted.ensemble_.save(file)
    assert (tmp_path / "resumed.rw").read_bytes() == (tmp_path / "plain.rw").read_bytes()
    assert ranker.evals_result_ == plain.evals_result_
    with pytest.raises(rw.RankwoodError, match=r"made with other .*task"):
        clone(ranker).set_params(task="regression").fit(train, valid=valid, checkpoint=checkpoint)


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_ctrl_c_keeps_whole_rounds(data):
    def press(env):
        if env.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    ranker = mart(n_trees=9, on_interrupt="keep").fit(data, callbacks=[press])
    assert ranker.interrupted_
    assert ranker.ensemble_ == mart(n_trees=3).fit(data).ensemble_


def test_callbacks_see_a_model_that_tells_grades(data):
    models = []
    ranker = mart(n_trees=3).fit(data, callbacks=[lambda env: models.append(env.model.whole())])
    assert models[-1] == ranker.ensemble_
    assert [ordinal.split(model)[0].n_trees for model in models] == [1, 2, 3]


def test_the_number_of_threads_changes_nothing():
    data = rw.make_ranking(n_queries=220, docs_per_query=100, n_features=10, seed=2)
    assert data.n_docs > 20_000
    one, two = (mart(n_trees=2, n_jobs=n_jobs).fit(data, eval_set=[data]) for n_jobs in (1, 2))
    assert one.ensemble_ == two.ensemble_
    assert one.evals_result_ == two.evals_result_


# Grades


def test_probabilities_sum_to_one_and_agree_with_the_score(parts):
    train, valid = parts
    ranker = mart(learning_rate=0.5, n_trees=20).fit(train)
    assert ranker.classes_.tolist() == [0, 1, 2, 3, 4]
    for part in (train, valid):
        probabilities = ranker.predict_proba(part)
        assert probabilities.shape == (part.n_docs, 5)
        assert probabilities.min() >= 0.0
        assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
        below = np.stack([problem.score(part.X) for problem in ordinal.split(ranker.ensemble_)], axis=1)
        unclipped = (below.min(axis=1) >= 0.0) & (below.max(axis=1) <= 1.0)
        repaired = (np.diff(below, axis=1) < 0.0).any(axis=1)
        assert unclipped.any()
        assert (unclipped & repaired).any()
        assert not unclipped.all()
        expected = probabilities @ ranker.classes_
        assert_allclose(expected[unclipped], ranker.predict(part)[unclipped], atol=1e-12)
        fine = unclipped & ~repaired
        assert_allclose(probabilities[fine][:, 1:4], np.diff(below[fine], axis=1), atol=1e-15)
        assert_array_equal(probabilities[fine][:, 0], below[fine][:, 0])
    assert_array_equal(ranker.predict_proba(valid.X), probabilities)
    assert (np.argmax(ranker.predict_proba(train), axis=1) == train.y).mean() > 0.7


def test_a_saved_model_tells_grades(data, tmp_path):
    ranker = mart().fit(data)
    ranker.ensemble_.save(tmp_path / "model.rw")
    model = rw.load_model(tmp_path / "model.rw")
    assert_array_equal(rw.grade_probabilities(model, data.X), ranker.predict_proba(data))
    with pytest.raises(rw.ModelError, match="has 31 trees but was trained with 32"):
        rw.grade_probabilities(model.select(range(31)), data.X)
    with pytest.raises(rw.ModelError, match="was not trained with task='ordinal'"):
        rw.grade_probabilities(rw.MART(**SMALL).fit(data).ensemble_, data.X)


@given(arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 6)), elements=st.floats(-1.5, 2.5)))
def test_the_nearest_distribution(below):
    found = ordinal.nearest_distribution(below)
    expected = [isotonic_regression(row, y_min=0.0, y_max=1.0) for row in below]
    assert_allclose(found, np.reshape(expected, below.shape), atol=1e-12)
    assert (np.diff(found, axis=1) >= 0.0).all()
    assert_array_equal(ordinal.nearest_distribution(found), found)


@given(arrays(np.float64, (3, 4), elements=st.floats(0.0, 1.0)))
def test_splitting_is_the_inverse_of_combining(leaves):
    problems = [
        rw.Ensemble.from_trees([(0, 0.5, *row[:2]), (1, 0.5, *row[2:])], base=row[0], tree_weights=[0.1, row[1]])
        for row in leaves
    ]
    assert ordinal.split(ordinal.combine(problems)) == problems
    extended = ordinal.extend(ordinal.combine(problems), ordinal.combine(problems[:3]).select([0, 2, 4]))
    assert [problem.n_trees for problem in ordinal.split(extended)] == [3, 3, 3]


def test_grades_with_gaps_and_without_any(data):
    gaps = rw.Dataset(data.X, np.where(data.y >= 2, 4.0, 1.0), qid=data.qid)
    ranker = mart().fit(gaps)
    assert ranker.classes_.tolist() == [0, 1, 2, 3, 4]
    probabilities = ranker.predict_proba(gaps)
    assert not probabilities[:, [0, 2, 3]].any()
    with pytest.warns(UserWarning, match="no tree has a split"):
        nothing = mart().fit(rw.Dataset(data.X, np.zeros(data.n_docs), qid=data.qid))
    assert nothing.classes_.tolist() == [0, 1]
    assert not nothing.predict(data).any()


# The estimator


def test_only_ordinal_models_have_classes(data):
    ranker = rw.MART(**SMALL).fit(data)
    assert not hasattr(ranker, "predict_proba")
    assert not hasattr(ranker, "classes_")
    unfitted = mart()
    assert hasattr(unfitted, "predict_proba")
    assert not hasattr(unfitted, "classes_")
    with pytest.raises(ValueError, match="not fitted yet"):
        unfitted.predict_proba(data)
    assert not hasattr(rw.LambdaMART(), "predict_proba")


def test_the_parameters_are_scikit_learns(data):
    ranker = mart(missing="zero")
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.task == "ordinal"
    assert (
        copy.set_params(task="regression").fit(data).ensemble_ == rw.MART(**SMALL, missing="zero").fit(data).ensemble_
    )
    notes = ranker.fit(data).ensemble_.metadata
    assert notes["parameters"]["task"] == "ordinal"


def test_wrong_use_is_refused(data):
    def relabelled(y):
        return rw.Dataset(data.X, y, qid=data.qid)

    labels = data.y.copy()
    for label in (1.5, -1.0):
        labels[7] = label
        with pytest.raises(rw.DataError, match=f"label {label:g} of row 7 is no grade: .* whole numbers from 0 up"):
            mart().fit(relabelled(labels))
    labels[7] = 101.0
    with pytest.raises(rw.DataError, match="label 101 would make as many binary problems"):
        mart().fit(relabelled(labels))
    with pytest.raises(rw.RankwoodError, match="task='ordinal' learns probabilities by squared error"):
        mart(objective=lambda *given: given).fit(data)
    with pytest.raises(rw.RankwoodError, match="task must be 'regression' or 'ordinal', got 'rank'"):
        mart(task="rank").fit(data)
    with pytest.raises(rw.ModelError, match="was not trained with task='ordinal'"):
        mart().fit(data, init_model=rw.MART(**SMALL).fit(data))
    few = mart().fit(relabelled(np.minimum(data.y, 2.0)))
    with pytest.raises(rw.RankwoodError, match="the data has grade 4, the model to start from knows 2 at most"):
        mart().fit(data, init_model=few)
    more = mart().fit(relabelled(np.minimum(data.y, 2.0)), init_model=mart().fit(data))
    assert more.classes_.tolist() == [0, 1, 2, 3, 4]


def test_regression_may_go_on_from_an_ordinal_model(data):
    first = mart().fit(data)
    ranker = rw.MART(**SMALL).fit(data, init_model=first)
    assert ranker.ensemble_.select(range(32)) == first.ensemble_
    assert "ordinal" not in ranker.ensemble_.metadata
