"""What people give a learner in their first hour: it works, or the sentence says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def data():
    return rw.make_ranking(n_queries=30, docs_per_query=8, n_features=3, seed=4)


@pytest.fixture
def frame(data):
    pd = pytest.importorskip("pandas", reason="PANDAS IS ABSENT")
    columns = pd.DataFrame(np.asarray(data.X), columns=["price", "age", "colour"])
    return columns.assign(qid=data.queries.index, label=data.y)


def small(**parameters):
    return rw.LambdaMART(**{"n_trees": 3, "n_leaves": 4, "n_jobs": 1, **parameters})


def test_a_column_of_texts_is_named(frame):
    frame["colour"] = "red"
    with pytest.raises(rw.DataError, match=r"column 'colour' holds texts: .* categories \(categorical_features\)"):
        small().fit(frame.drop(columns="label"), frame["label"])
    with pytest.raises(
        rw.DataError, match=r"column 'colour' holds .* leave it out, or train with it among categorical"
    ):
        small().fit(frame)
    with pytest.raises(rw.DataError, match=r"column 1 \(from 0\) holds the text 'red': features must be numbers"):
        small().fit([[1, "red"], [2, "blue"]], [0, 1], group=[2])
    assert small(min_docs_per_leaf=1).fit([["1", "2"], ["2", "5"]], [0, 1], group=[2]).n_trees_ == 3  # texts of numbers


def test_a_column_of_categories_is_named(frame):
    frame["colour"] = frame["colour"].round().astype(str).astype("category")
    with pytest.raises(
        rw.DataError, match=r"column 'colour' holds categories: only fit of boosted learners, .*\.cat\.codes"
    ):
        rw.RandomForest(3).fit(frame.drop(columns="label"), frame["label"])
    frame["colour"] = frame["colour"].cat.codes
    small().fit(frame)


def test_a_lazy_frame_is_collected(frame):
    pl = pytest.importorskip("polars", reason="POLARS IS ABSENT")
    eager = pl.from_pandas(frame)
    expected = small().fit(eager, valid=eager)
    ranker = small().fit(eager.lazy(), valid=eager.lazy())
    assert ranker.ensemble_ == expected.ensemble_
    np.testing.assert_array_equal(ranker.predict(eager.lazy().drop("label")), expected.predict(eager.drop("label")))
    features = eager.drop("label", "qid")
    np.testing.assert_array_equal(expected.ensemble_.score(features.lazy()), expected.ensemble_.score(features))
    assert rw.Dataset(eager.lazy()).fingerprint() == rw.Dataset(eager).fingerprint()


def test_several_sets_for_validation(data):
    first, second = data.split(0.5)
    listed = small().fit(data, valid=[first, second])
    assert list(listed.evals_result_) == ["valid_0", "valid_1"]
    named = small().fit(data, valid={"old": first, "new": second})
    assert list(named.evals_result_) == ["old", "new"]
    alone = small().fit(data, valid=second)
    assert named.evals_result_["new"] == alone.evals_result_["valid"] == listed.evals_result_["valid_1"]


def test_the_first_of_several_sets_stops(data):
    train, rest = rw.make_ranking(n_queries=120, docs_per_query=12, n_features=5, seed=2).split(0.5)
    sets = rest.split(0.5)

    def stopped(*valid):
        settings = {"n_trees": 60, "early_stopping_rounds": 5, "learning_rate": 0.3}
        return small(**settings).fit(train, valid=valid[0] if len(valid) == 1 else list(valid)).best_iteration_

    alone = [stopped(one) for one in sets]
    assert alone[0] != alone[1]
    assert [stopped(*sets), stopped(*sets[::-1])] == alone


def test_a_function_as_measure(data):
    def mine(labels, scores, offsets):
        return float(scores.mean())

    for measure in (mine, ["nDCG@10", mine]):
        with pytest.raises(rw.RankwoodError, match=r"fit\(\.\.\., eval_metric=function\)"):
            small(measure=measure).fit(data)
    assert "mine" in small().fit(data, valid=data, eval_metric=mine).evals_result_["train"]


def test_trees_of_one_leaf(data):
    for learner in (rw.LambdaMART, rw.XDART, rw.RandomForest):
        with pytest.raises(rw.RankwoodError, match="without a split"):
            learner(n_leaves=1, n_trees=2).fit(data)


def test_a_refused_checkpoint_names_the_parameter(data, tmp_path):
    small().fit(data, checkpoint=tmp_path / "steps")
    with pytest.raises(rw.RankwoodError, match=r"other tree rules \(n_leaves 4, now 5\): delete it"):
        small(n_leaves=5).fit(data, checkpoint=tmp_path / "steps")
    with pytest.raises(
        rw.RankwoodError, match=r"other loss \(sigma 1.0, now 2.0\), other seed \(0, now 7\): delete it"
    ):
        small(sigma=2.0, random_state=7).fit(data, checkpoint=tmp_path / "steps")
    with pytest.raises(rw.RankwoodError, match=r"other loss \(LambdaLoss, now SquaredLoss\): delete it"):
        rw.MART(n_trees=3, n_leaves=4, n_jobs=1).fit(data, init_model=None, checkpoint=tmp_path / "steps")
