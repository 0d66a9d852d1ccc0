"""With scikit-learn: cloning, pipelines, searches and cross-validation that keep queries together."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwood as rw

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def frame(data) -> pd.DataFrame:
    return pd.DataFrame(data.X, columns=[f"f{j}" for j in range(data.n_features)]).assign(qid=data.qid)


@pytest.fixture
def ranker() -> rw.LambdaMART:
    return rw.LambdaMART(n_trees=5, n_leaves=4, min_docs_per_leaf=5)


def fold_scores(ranker, data) -> list[float]:
    """What cross-validation must give, done by hand."""
    found = []
    for train, test in GroupKFold(3).split(data.X, data.y, groups=data.qid):
        found.append(clone(ranker).fit(data[train]).score(data[test]))
    return found


@pytest.mark.parametrize("learner", [rw.MART, rw.LambdaMART])
def test_parameters_round_trip(learner, data):
    ranker = learner(7, 5, 0.2, l2=0.5, measure=["nDCG@5", "AP"], random_state=np.random.RandomState(0))
    assert (ranker.n_trees, ranker.n_leaves, ranker.learning_rate) == (7, 5, 0.2)
    copy = clone(ranker.fit(data))
    assert not hasattr(copy, "ensemble_")
    same = {name: value for name, value in ranker.get_params().items() if name != "random_state"}
    assert same.items() <= copy.get_params().items()
    assert copy.set_params(n_leaves=9).n_leaves == 9
    with pytest.raises(ValueError, match="Invalid parameter 'leaves'"):
        copy.set_params(leaves=9)
    with pytest.raises(TypeError):
        learner(leaves=9)
    assert repr(learner(n_trees=3)) == f"{learner.__name__}(n_trees=3)"


def test_lambdamart_has_the_parameters_of_mart_and_of_its_loss():
    extra = set(rw.LambdaMART().get_params()) - set(rw.MART().get_params())
    assert extra == {
        *("truncation", "sigma", "normalize", "gains", "cut_discounts"),
        *("loss", "loss_measure", "permutations", "noise"),
    }


def test_unfitted(ranker, data):
    for use in (ranker.predict, ranker.score):
        with pytest.raises(NotFittedError):
            use(data)
    for name in ("feature_importances_", "n_trees_", "n_estimators_", "ensemble_", "best_iteration_"):
        assert not hasattr(ranker, name)


def test_a_failed_fit_leaves_the_model_before_it(ranker, data):
    model = ranker.fit(data).ensemble_
    with pytest.raises(rw.DataError):
        ranker.fit(data.X, data.y, qid=data.qid[:-1])
    assert ranker.ensemble_ is model


def test_a_pipeline_passes_queries(ranker, data):
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", ranker)])
    pipeline.fit(data.X, data.y, rank__qid=data.qid)
    assert pipeline.predict(data.X).shape == (data.n_docs,)
    assert pipeline[-1].n_features_in_ == data.n_features


def test_a_pipeline_keeps_the_column_qid(ranker, data, frame):
    features = [name for name in frame.columns if name != "qid"]
    scale = ColumnTransformer([("scale", StandardScaler(), features)], remainder="passthrough",
                              verbose_feature_names_out=False).set_output(transform="pandas")  # fmt: skip
    pipeline = make_pipeline(scale, ranker).fit(frame, data.y)
    assert pipeline[-1].feature_names_in_.tolist() == features
    assert pipeline.score(frame, data.y) > 0.5


def test_cross_validation_with_a_column_qid(ranker, data, frame):
    scores = cross_val_score(ranker, frame, data.y, cv=GroupKFold(3), groups=frame.qid, error_score="raise")
    assert scores.tolist() == fold_scores(ranker, data)


def test_cross_validation_with_routing(ranker, data):
    with config_context(enable_metadata_routing=True):
        routed = ranker.set_fit_request(qid=True).set_score_request(qid=True)
        result = cross_validate(
            routed, data.X, data.y, cv=GroupKFold(3), params={"qid": data.qid, "groups": data.qid}, error_score="raise"
        )
    assert result["test_score"].tolist() == fold_scores(rw.LambdaMART(**ranker.get_params()), data)


def test_a_search_with_routing_finds_the_best(ranker, data):
    with config_context(enable_metadata_routing=True):
        routed = ranker.set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(routed, {"n_leaves": [2, 6]}, cv=GroupKFold(3), error_score="raise")
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
        assert search.score(data.X, data.y, qid=data.qid) == search.best_estimator_.score(data)
    means = [np.mean(fold_scores(clone(ranker).set_params(n_leaves=n), data)) for n in (2, 6)]
    assert search.cv_results_["mean_test_score"].tolist() == means
    assert search.best_params_ == {"n_leaves": (2, 6)[int(np.argmax(means))]}


def test_a_search_with_a_column_qid(ranker, data, frame):
    search = GridSearchCV(ranker, {"learning_rate": [0.1, 0.3], "measure": ["nDCG@5"]}, cv=GroupKFold(3), n_jobs=2)
    with joblib.parallel_config("threading"):
        search.fit(frame, data.y, groups=frame.qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(frame).shape == (data.n_docs,)
    assert "qid" not in search.best_estimator_.feature_names_in_


def test_a_search_with_plain_fit_parameters(ranker, data):
    """Without routing scikit-learn passes qid to fit and not to score: score by something that needs no queries."""

    def spread(estimator, X, y):
        return float(np.std(estimator.predict(X)))

    search = GridSearchCV(ranker, {"n_leaves": [2, 4]}, cv=GroupKFold(3), scoring=spread, error_score="raise")
    search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
    assert search.best_estimator_.n_trees_ == 5
    with pytest.raises(rw.DataError, match="queries are missing"):
        GridSearchCV(ranker, {"n_leaves": [2]}, cv=GroupKFold(3), error_score="raise").fit(
            data.X, data.y, qid=data.qid, groups=data.qid
        )


def test_a_data_set_can_be_cross_validated_by_indexing(ranker, data):
    for train, test in GroupKFold(2).split(data.X, groups=data.qid):
        assert 0 < clone(ranker).fit(data[train]).score(data[test]) <= 1


def test_feature_names_are_checked(ranker, data, frame):
    ranker.fit(frame, data.y)
    assert ranker.n_features_in_ == data.n_features
    assert ranker.feature_names_in_.tolist() == list(ranker.ensemble_.feature_names) == [f"f{j}" for j in range(8)]
    scores = ranker.predict(frame)
    assert_array_equal(ranker.predict(frame.drop(columns="qid")), scores)
    with pytest.raises(ValueError, match="feature names should match"):
        ranker.predict(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(ranker.predict(data.X), scores)
    with pytest.raises(rw.DataError, match="X names its features differently than the model: there is no 'f0'"):
        ranker.predict(data)
    with pytest.raises(ValueError, match="3 features"):
        ranker.predict(data.X[:, :3])


@pytest.mark.filterwarnings("error")
def test_a_data_set_and_its_matrix_are_the_same(ranker, data):
    ranker.fit(data)
    assert ranker.feature_names_in_.tolist() == list(data.feature_names)
    assert_array_equal(ranker.predict(data.X), ranker.predict(data))
    assert rw.evaluate(ranker, data)["nDCG@10"] == ranker.score(data)
    with pytest.raises(rw.DataError, match="8"):
        ranker.predict(data.X[:, :3])
    nameless = rw.Dataset(data.X, data.y, qid=data.qid)
    assert not hasattr(ranker.fit(nameless), "feature_names_in_")
    narrow = rw.Dataset(data.X[:, :3], data.y, qid=data.qid)
    with pytest.raises(rw.DataError, match="X has 3 features, but LambdaMART is expecting 8"):
        ranker.predict(narrow)


def test_importances(data):
    ranker = rw.LambdaMART(n_trees=10, n_leaves=5, min_docs_per_leaf=5).fit(data)
    gains = ranker.feature_importances_
    assert gains.sum() == pytest.approx(1.0)
    model = ranker.ensemble_
    expected = [model.split_gain[model.feature == j].sum() for j in range(data.n_features)]
    assert gains == pytest.approx(np.array(expected) / np.sum(expected))
    splits = ranker.set_params(importance_type="split").feature_importances_
    assert splits == pytest.approx(np.bincount(model.feature, minlength=data.n_features) / model.n_nodes)
    with pytest.raises(rw.RankwoodError, match="importance_type must be 'gain' or 'split', got 'cover'"):
        ranker.set_params(importance_type="cover").feature_importances_


def test_permutation_importance_finds_the_signal(data, frame):
    X = frame.assign(f0=data.y + 0.01 * frame.f0)
    ranker = rw.MART(n_trees=5, n_leaves=4, min_docs_per_leaf=5).fit(X, data.y)
    importances = permutation_importance(ranker, X, data.y, n_repeats=2, random_state=0).importances_mean
    assert X.columns[np.argmax(importances)] == "f0"


def test_every_fitted_attribute_survives_pickling(parts):
    train, valid = parts
    ranker = rw.LambdaMART(n_trees=6, n_leaves=4, min_docs_per_leaf=5).fit(train, valid=valid)
    copy = pickle.loads(pickle.dumps(ranker))
    for name in ("best_iteration_", "best_score_", "evals_result_", "n_trees_", "n_estimators_", "n_features_in_"):
        assert getattr(copy, name) == getattr(ranker, name)
    assert copy.ensemble_.metadata == ranker.ensemble_.metadata


def test_the_model_knows_how_it_was_made(data):
    ranker = rw.LambdaMART(n_trees=3, n_leaves=4, gains=(0, 1, 3, 7, 15), measure=["AP"], random_state=5, n_jobs=2)
    metadata = ranker.fit(data).ensemble_.metadata
    assert metadata["learner"] == "LambdaMART"
    assert (metadata["seed"], metadata["version"]) == (5, rw.__version__)
    parameters = metadata["parameters"]
    assert (parameters["n_trees"], parameters["gains"], parameters["measure"]) == (3, [0, 1, 3, 7, 15], ["AP"])
    assert "n_jobs" not in parameters  # it does not change the model


def test_random_state_as_in_scikit_learn(data):
    sampled = rw.MART(n_trees=3, n_leaves=4, query_fraction=0.5)
    models = [sampled.set_params(random_state=state).fit(data).ensemble_
              for state in (np.random.RandomState(4), np.random.RandomState(4), np.int64(4), 4)]  # fmt: skip
    assert models[0] == models[1]
    assert models[2] == models[3]
    generator = np.random.RandomState(4)
    sampled.set_params(random_state=generator)
    assert sampled.fit(data).ensemble_ != sampled.fit(data).ensemble_
    sampled.set_params(random_state=None).fit(data)
