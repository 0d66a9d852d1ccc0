"""What every learner promises."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from strategies.learners import CORRECTED, DROPPING, LEARNERS

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:no tree has a split")]
EVERY = LEARNERS | DROPPING | CORRECTED
every_learner = pytest.mark.parametrize("learner", EVERY.values(), ids=EVERY.keys())


def assert_same_model(one: rw.Ensemble, other: rw.Ensemble) -> None:
    """Bit for bit, gains and counts included."""
    assert one.fingerprint() == other.fingerprint()
    assert_array_equal(one.split_gain, other.split_gain)
    assert_array_equal(one.node_count, other.node_count)


@every_learner
def test_the_same_seed_gives_the_same_model(learner, data):
    assert_same_model(learner().fit(data).ensemble_, learner().fit(data).ensemble_)


@pytest.mark.parametrize("learner", [LEARNERS["MART-sampled"], LEARNERS["LambdaMART-sampled"]])
def test_another_seed_gives_another_sample(learner, data):
    assert learner(random_state=1).fit(data).ensemble_ != learner(random_state=2).fit(data).ensemble_


@every_learner
def test_the_number_of_threads_changes_nothing(learner, tmp_path):
    # Small data is handled by one thread whatever is asked for.
    train, valid = rw.make_ranking(n_queries=260, docs_per_query=100, n_features=20, seed=2).split(0.9)
    assert train.n_docs > 20_000
    files = []
    for n_jobs in (1, 2, 3):
        ranker = learner(n_jobs=n_jobs, n_trees=3).fit(train, valid=valid)
        files.append(tmp_path / f"{n_jobs}.rw")
        ranker.ensemble_.save(files[-1])
    contents = {file.read_bytes() for file in files}
    assert len(contents) == 1


@every_learner
def test_a_saved_model_scores_the_same(learner, data, tmp_path):
    ranker = learner().fit(data)
    scores = ranker.predict(data)
    ranker.ensemble_.save(tmp_path / "model.rw")
    assert_array_equal(rw.load_model(tmp_path / "model.rw").score(data.X), scores)
    joblib.dump(ranker, tmp_path / "ranker")
    for copy in (pickle.loads(pickle.dumps(ranker)), joblib.load(tmp_path / "ranker")):
        assert_array_equal(copy.predict(data), scores)
        assert copy.get_params() == ranker.get_params()
        assert copy.evals_result_ == ranker.evals_result_


@every_learner
def test_predictions_are_what_training_saw(learner, parts):
    """The scores that were summed up tree by tree, in bins, are those of the model on values."""
    train, valid = parts
    ranker = learner().fit(train, eval_set=[train, valid])
    for name, part in (("train", train), ("valid_1", valid)):
        assert ranker.evals_result_[name]["nDCG@10"][-1] == rw.evaluate(ranker.ensemble_, part)["nDCG@10"]
        assert ranker.score(part) == ranker.best_score_[name]["nDCG@10"]


@every_learner
def test_rows_of_queries_may_be_mixed(learner, data):
    """Any order of rows that keeps the order inside queries, and the order in which queries appear."""
    rng = np.random.default_rng(0)
    rank = np.empty(data.n_docs)
    for q in range(data.n_queries):
        rows = slice(*data.offsets[q : q + 2])
        rank[rows] = np.sort(rng.random(rows.stop - rows.start) + 0.02 * q)
        rank[rows.start] = -1.0 + q / data.n_queries  # first rows first: they decide the order of queries
    mixed = data[np.argsort(rank)]
    assert mixed.order is not None
    plain, ranker = learner().fit(data), learner().fit(mixed)
    assert_same_model(ranker.ensemble_, plain.ensemble_)
    assert_array_equal(ranker.predict(mixed), plain.predict(data)[np.argsort(rank)])


@pytest.mark.parametrize("learner", [LEARNERS["MART"], LEARNERS["LambdaMART"], LEARNERS["LambdaMART-cheap"]])
def test_the_order_of_queries_hardly_matters(learner, data):
    """Without sampling. Sums over a leaf are in double, so the last bit may depend on the order."""
    shuffled = data.select_queries(np.random.default_rng(0).permutation(data.n_queries))
    plain, ranker = learner().fit(data), learner().fit(shuffled)
    assert_array_equal(ranker.ensemble_.feature, plain.ensemble_.feature)
    assert_array_equal(ranker.ensemble_.threshold, plain.ensemble_.threshold)
    assert_allclose(ranker.predict(data), plain.predict(data), rtol=1e-12, atol=1e-12)


@every_learner
def test_queries_of_one_document(learner, data):
    alone = rw.Dataset(data.X, data.y, group=np.ones(data.n_docs, dtype=int))
    ranker = learner().fit(alone, valid=alone)
    assert np.isfinite(ranker.predict(alone)).all()
    if isinstance(ranker, rw.LambdaMART):  # no pair, nothing to learn
        assert not ranker.predict(alone).any()


@every_learner
def test_empty_queries(learner, data):
    group = [0, *np.diff(data.offsets), 0, 0]
    ranker = learner(query_fraction=1.0).fit(data.X, data.y, group=group)
    assert ranker.ensemble_ == learner(query_fraction=1.0).fit(rw.Dataset(data.X, data.y, qid=data.qid)).ensemble_


@every_learner
def test_no_validation_rows_is_an_error(learner, data):
    with pytest.raises(rw.DataError, match="'valid' has no rows"):
        learner().fit(data, valid=data.select_queries([]))
    with pytest.raises(rw.DataError, match=r"'valid_0'.*0 sample"):
        learner().fit(data.X, data.y, qid=data.qid, eval_set=[(data.X[:0], data.y[:0])], eval_qid=[data.qid[:0]])
    with pytest.raises(rw.DataError, match="no rows"):
        learner().fit(data.select_queries([]))


@every_learner
def test_constant_features_are_left_alone(learner, data):
    X = np.hstack([data.X, np.full((data.n_docs, 1), 7.0), np.full((data.n_docs, 1), np.nan)])
    ranker = learner(feature_fraction=1.0).fit(X, data.y, qid=data.qid)
    assert ranker.feature_importances_[-2:].tolist() == [0.0, 0.0]
    assert ranker.ensemble_.feature.max() < data.n_features
    only = learner(feature_fraction=1.0).fit(X[:, -2:], data.y, qid=data.qid)
    assert only.ensemble_.n_nodes == 0
    assert only.feature_importances_.tolist() == [0.0, 0.0]


@every_learner
def test_missing_and_infinite_values(learner, data):
    """Where a value is missing, or infinite, says what the label is: trees must find that."""
    good = data.y >= 2
    for special in (np.nan, np.inf, -np.inf):
        X = np.random.default_rng(0).normal(size=(data.n_docs, 2)).astype(np.float32)
        X[good, 0] = special
        ranker = learner(feature_fraction=1.0).fit(X, good.astype(int), qid=data.qid)
        scores = ranker.predict(X)
        assert np.isfinite(scores).all()
        assert scores[good].min() > scores[~good].max()
        assert ranker.feature_importances_[0] > 0.5


@every_learner
def test_equal_labels_make_trees_of_one_leaf(learner, data):
    """There is nothing to learn, and n_trees trees that say so: the number of trees is what was asked for."""
    even = rw.Dataset(data.X, np.full(data.n_docs, 2.0), qid=data.qid)
    with pytest.warns(UserWarning, match="no tree has a split"):
        ranker = learner().fit(even)
    assert ranker.n_trees_ == 8
    assert ranker.ensemble_.n_leaves == 8
    assert not np.ptp(ranker.predict(even))
    assert ranker.predict(even)[0] == (2.0 if isinstance(ranker, rw.MART) else 0.0)


@every_learner
def test_a_query_of_ten_thousand_documents(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=len(X)), [0.0, 1.0, 2.0])
    long = rw.Dataset(X, y, group=[len(X)])
    ranker = learner(feature_fraction=1.0, n_trees=5).fit(long)
    assert ranker.score(long) > 0.9
    assert ranker.n_trees_ == 5


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_early_stopping_restores_the_best_size(learner, parts):
    train, valid = parts
    ranker = learner(n_trees=60, early_stopping_rounds=5).fit(train, valid=valid)
    values = ranker.evals_result_["valid"]["nDCG@10"]
    assert len(values) < 60
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1 == ranker.n_trees_ == ranker.n_estimators_
    assert ranker.best_score_ == {"valid": {"nDCG@10": max(values)}}
    assert rw.evaluate(ranker.ensemble_, valid)["nDCG@10"] == max(values)
    shorter = learner(n_trees=ranker.best_iteration_).fit(train)
    assert_same_model(ranker.ensemble_, shorter.ensemble_)


@every_learner
def test_bins_may_be_reused(learner, parts):
    train, valid = parts
    binned = rw.BinnedDataset.make(train)
    plain = learner().fit(train, valid=valid)
    for _ in range(2):
        ranker = learner().fit(binned, valid=rw.BinnedDataset.encode(valid, binned.edges))
        assert_same_model(ranker.ensemble_, plain.ensemble_)
        assert ranker.evals_result_ == plain.evals_result_
    some = np.arange(10)
    subset = learner().fit(binned.select_queries(some), valid=valid)
    assert subset.ensemble_ != plain.ensemble_
    assert subset.n_trees_ == plain.n_trees_
