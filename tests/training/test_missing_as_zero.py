"""missing="zero": every learner takes a missing value for 0, in training, in what it logs, and in its model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.training.out_of_bag import out_of_bag_curve
from strategies.learners import DROPPING, LEARNERS, SMALL

pytestmark = pytest.mark.native

EVERY = {
    **LEARNERS,
    **DROPPING,
    "MART-ordinal": lambda **more: rw.MART(**SMALL, task="ordinal", **more),
    "iGBRT": lambda **more: rw.InitializedMART(**SMALL, forest=rw.RandomForest(5, random_state=1), **more),
    "iGBRT-ordinal": lambda **more: rw.InitializedMART(
        **SMALL, forest=rw.RandomForest(5, random_state=1), task="ordinal", **more
    ),
    "forest": lambda **more: rw.RandomForest(8, **more),
    "forest-queries": lambda **more: rw.RandomForest(8, queries_per_tree=0.3, criterion="entropy", **more),
    "forest-ordinal": lambda **more: rw.RandomForest(4, task="ordinal", **more),
    "forest-bins": lambda **more: rw.RandomForest(8, max_bins=16, n_leaves=7, **more),
}


def with_holes(data: rw.Dataset, seed: int = 0) -> tuple[rw.Dataset, rw.Dataset]:
    """Data with missing values, and the same with 0 instead; features are centred, so that 0 is among the others."""
    X = data.X - np.median(data.X, axis=0)
    X[np.random.default_rng(seed).random(X.shape) < 0.4] = np.nan
    return tuple(rw.Dataset(part, data.y, qid=data.qid) for part in (X, np.nan_to_num(X)))


def assert_zero_is_missing(model: rw.Ensemble, plain: rw.Ensemble) -> None:
    """The trees of `plain`, bit for bit, with gains and counts; but a missing value goes where 0 goes."""
    expected = plain.replace(missing_left=plain.threshold >= 0.0)
    assert model.fingerprint() == expected.fingerprint()
    for name in ("split_gain", "node_count"):
        assert_array_equal(getattr(model, name), getattr(expected, name))


@pytest.mark.parametrize("learner", EVERY)
def test_missing_values_are_zeros(learner, parts):
    (train, filled), (valid, valid_filled) = (with_holes(part) for part in parts)
    make = EVERY[learner]
    ranker = make(missing="zero").fit(train, eval_set=[train, valid])
    plain = make().fit(filled, eval_set=[filled, valid_filled])
    assert_zero_is_missing(ranker.ensemble_, plain.ensemble_)
    assert ranker.evals_result_ == plain.evals_result_
    for part, other in ((train, filled), (valid, valid_filled)):
        assert_array_equal(ranker.predict(part), plain.predict(other))
        assert_array_equal(ranker.predict(part.X), ranker.predict(other.X))
    assert ranker.ensemble_ != make().fit(train).ensemble_


OTHERS = {
    "infinity": lambda column: np.inf,
    "mean": lambda column: np.mean(column[~np.isnan(column)].astype(np.float64)),
    "median": lambda column: np.median(column[~np.isnan(column)]),
}


@pytest.mark.parametrize("missing", OTHERS)
@pytest.mark.parametrize("learner", ["LambdaMART", "MART-ordinal", "iGBRT", "DART", "forest", "forest-bins"])
def test_missing_values_count_as_something_else(learner, missing, parts):
    """Infinity, or the mean or median of the training data: also for what is missing in validation and scoring."""
    (train, _), (valid, _) = (with_holes(part) for part in parts)
    values = np.array([OTHERS[missing](column) for column in train.X.T], dtype=np.float32)
    filled, valid_filled = (part.replace(X=np.where(np.isnan(part.X), values, part.X)) for part in (train, valid))
    make = EVERY[learner]
    ranker, plain = make(missing=missing).fit(train, valid=valid), make().fit(filled, valid=valid_filled)
    expected = plain.ensemble_.replace(missing_left=values[plain.ensemble_.feature] <= plain.ensemble_.threshold)
    assert ranker.ensemble_.fingerprint() == expected.fingerprint()
    assert ranker.evals_result_ == plain.evals_result_
    assert_array_equal(ranker.predict(valid), plain.predict(valid_filled))
    assert ranker.ensemble_ != make().fit(train).ensemble_


def test_a_forest_sets_missing_values_apart(parts):
    (train, _), (valid, _) = (with_holes(part) for part in parts)
    apart, native = (rw.RandomForest(10, missing=how).fit(train) for how in ("three-way", "native"))
    assert apart.ensemble_ != native.ensemble_
    pairs = apart.ensemble_.threshold == np.inf  # the first nodes of splits in three
    assert pairs.any()
    assert not apart.ensemble_.missing_left[pairs].any()
    assert apart.score(valid) > 0.3
    with pytest.raises(rw.RankwoodError, match="splits in three go with all thresholds and no n_leaves"):
        rw.RandomForest(missing="three-way", n_leaves=8).fit(train)


def test_a_feature_without_values_counts_as_zero(parts):
    train = parts[0].replace(X=np.where(np.arange(parts[0].n_features) == 0, np.nan, parts[0].X))
    for how in ("mean", "median"):
        ranker = rw.LambdaMART(**SMALL, missing=how).fit(train)
        assert_array_equal(ranker.predict(train), ranker.predict(np.nan_to_num(train.X)))


@pytest.mark.parametrize("learner", EVERY)
def test_values_that_are_first_missing_in_scoring_are_zeros_too(learner, parts):
    (_, filled), (valid, valid_filled) = (with_holes(part) for part in parts)
    ranker = EVERY[learner](missing="zero").fit(filled)
    assert_zero_is_missing(ranker.ensemble_, EVERY[learner]().fit(filled).ensemble_)
    assert_array_equal(ranker.predict(valid), ranker.predict(valid_filled))


def test_a_forest_knows_its_own_rows():
    X = np.array([[np.nan], [np.nan], [5.0], [6.0], [7.0]], dtype=np.float32)
    y = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    forest = rw.RandomForest(1, replace=False, missing="zero").fit(X, y)
    assert_array_equal(forest.predict(X), y)
    assert forest.predict([[0.0]]) == 1.0


@st.composite
def holed(draw) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Few rows of few values, 0 and missing ones among them, or not; labels; perhaps weights."""
    n, n_features = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from([[-2, -1, 0, 1, 2], [1, 2, 3], [-3, -1, -0.0], [-1e-40, 1e-40, 5], [0.0]]))
    X = rng.choice(np.array(values, dtype=np.float32), (n, n_features))
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))] = np.nan
    weights = rng.integers(1, 4, n) * draw(st.sampled_from([1.0, 0.3])) if draw(st.booleans()) else None
    return X, rng.integers(0, 3, n).astype(float), weights


@pytest.mark.filterwarnings("ignore:no tree has a split")
@settings(max_examples=60)
@given(
    given=holed(),
    criterion=st.sampled_from(["variance", "entropy"]),
    task=st.sampled_from(["regression", "ordinal"]),
    replace=st.booleans(),
    max_bins=st.sampled_from([None, 3, 255]),
    n_leaves=st.sampled_from([None, 4]),
)
def test_a_forest_on_missing_values_is_one_on_zeros(given, criterion, task, replace, max_bins, n_leaves):
    X, y, weights = given
    filled = np.nan_to_num(X)
    how = {"criterion": criterion, "task": task, "replace": replace, "max_bins": max_bins, "n_leaves": n_leaves}
    forest, plain, again = (
        rw.RandomForest(3, n_jobs=1, **how, **more).fit(data, y, sample_weight=weights)
        for data, more in ((X, {"missing": "zero"}), (filled, {}), (filled, {"missing": "zero"}))
    )
    assert_zero_is_missing(forest.ensemble_, plain.ensemble_)
    assert_zero_is_missing(again.ensemble_, plain.ensemble_)
    assert_array_equal(forest.predict(X), plain.predict(filled))


def test_out_of_the_bag(parts):
    (train, filled), _ = (with_holes(part) for part in parts)
    how = {"queries_per_tree": 0.3, "out_of_bag": True, "n_trees": 30}
    forest, plain = rw.RandomForest(**how, missing="zero").fit(train), rw.RandomForest(**how).fit(filled)
    assert_array_equal(forest.oob_scores_, plain.oob_scores_)
    curve, expected = (out_of_bag_curve(*one, sizes=[5, 30]) for one in ((forest, train), (plain, filled)))
    assert_array_equal(curve.values["nDCG@10"], expected.values["nDCG@10"])


def test_what_boosting_starts_from_takes_missing_values_for_zeros(parts):
    (train, filled), (valid, _) = (with_holes(part) for part in parts)
    ranker = EVERY["iGBRT"](missing="zero").fit(train)
    n_first = ranker.initial_ensemble_.n_trees
    assert ranker.initial_ensemble_ == ranker.ensemble_.select(range(n_first))
    assert_array_equal(ranker.initial_ensemble_.score(train.X), ranker.initial_ensemble_.score(filled.X))
    start = rw.Ensemble.from_trees([(0, 0.25, 1.0, (3, 0.5, 0.5, 2.5))], n_features=train.n_features)
    further = rw.MART(**SMALL, missing="zero").fit(train, init_model=start, valid=valid)
    assert_array_equal(further.predict(train), further.ensemble_.score(filled.X))
    assert further.ensemble_.select([0]).missing_left.all()
    assert further.score(valid) == further.best_score_["valid"]["nDCG@10"]


def test_missing_values_in_bins(parts):
    (train, filled), (valid, _) = (with_holes(part) for part in parts)
    binned = rw.BinnedDataset.make(train)
    seen = []
    ranker = rw.MART(**SMALL, missing="zero").fit(
        binned,
        eval_set=[binned.data, rw.BinnedDataset.encode(valid, binned.edges)],
        callbacks=[lambda env: seen.append(env.train_name)],
    )
    assert set(seen) == {"train"}
    assert_array_equal(ranker.predict(train), ranker.ensemble_.score(filled.X))
    assert ranker.score(train) == ranker.best_score_["train"]["nDCG@10"]
    forest = rw.RandomForest(8, missing="zero").fit(binned)
    assert_array_equal(forest.predict(train), forest.ensemble_.score(filled.X))
    bins = rw.BinnedDataset.make(filled)
    forest = rw.RandomForest(2, missing="zero").fit(bins)
    assert_zero_is_missing(forest.ensemble_, rw.RandomForest(2).fit(bins).ensemble_)


def test_a_checkpoint_without_gaps_serves_every_meaning(parts, tmp_path):
    """Trees of data in which nothing is missing are the same; where missing values go is settled at the end."""
    _, filled = with_holes(parts[0])
    rw.RandomForest(4).fit(filled, checkpoint=tmp_path / "forest.rw")
    further = rw.RandomForest(8, missing="zero").fit(filled, checkpoint=tmp_path / "forest.rw")
    assert further.ensemble_ == rw.RandomForest(8, missing="zero").fit(filled).ensemble_
    with_gaps, _ = with_holes(parts[0])
    with pytest.raises(rw.RankwoodError, match="was made with other training data"):
        rw.RandomForest(8).fit(with_gaps, checkpoint=tmp_path / "forest.rw")
