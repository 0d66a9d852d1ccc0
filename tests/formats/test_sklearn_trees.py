"""Fitted estimators of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import (
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import rankwood as rw
from rankwood.errors import ModelError
from strategies.adversarial_rows import adversarial_rows, assert_close, same_partition, training_data

MODELS = [
    DecisionTreeRegressor(max_depth=6),
    DecisionTreeRegressor(max_depth=1),
    RandomForestRegressor(10, max_leaf_nodes=30, random_state=0),
    ExtraTreesRegressor(10, max_depth=6, random_state=0),
    GradientBoostingRegressor(n_estimators=10),
    GradientBoostingRegressor(n_estimators=10, init="zero", learning_rate=0.3),
    GradientBoostingRegressor(n_estimators=10, loss="quantile"),
    HistGradientBoostingRegressor(max_iter=10),
    HistGradientBoostingRegressor(max_iter=5, loss="poisson", max_leaf_nodes=60, min_samples_leaf=2),
    GradientBoostingClassifier(n_estimators=5),
    HistGradientBoostingClassifier(max_iter=5),
    RandomForestClassifier(5, random_state=0),
    DecisionTreeClassifier(max_depth=4),
]


def raw_scores(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)[:, 1]
    if isinstance(model, HistGradientBoostingRegressor):
        return model._raw_predict(rows).ravel()
    return model.predict(rows)


@pytest.mark.parametrize("estimator", MODELS, ids=str)
def test_scores_and_leaves(estimator):
    missing = not type(estimator).__name__.startswith("Gradient")
    X, y = training_data(missing=0.1 if missing else 0.0)
    y = y > 1 if hasattr(estimator, "predict_proba") else y
    estimator.fit(X, y)
    model = rw.load_model(estimator)
    rows = np.concatenate([X, adversarial_rows(model, missing=missing, infinite=False)])
    for typed in (rows, rows.astype(np.float32)):
        assert_close(raw_scores(estimator, typed), model, typed)
        if hasattr(estimator, "apply"):
            assert same_partition(estimator.apply(typed), model.leaves(typed))


def test_names_survive():
    import pandas

    X, y = training_data()
    names = ["bm25(title)", "größe", "a/b=c", "#clicks", "x y"]
    frame = pandas.DataFrame(X, columns=names)
    forest = RandomForestRegressor(3, random_state=0).fit(frame, y)
    model = rw.load_model(forest)
    assert list(model.feature_names) == names
    np.testing.assert_array_equal(model.score(frame[names[::-1]]), model.score(X))


def test_what_cannot_be_imported_is_said():
    X, y = training_data(missing=0.0)
    with pytest.raises(ModelError, match="LinearRegression cannot be imported; of scikit-learn these can: Decision"):
        rw.load_model(LinearRegression().fit(X, y))
    with pytest.raises(ModelError, match="AdaBoostRegressor cannot be imported"):
        rw.load_model(AdaBoostRegressor(n_estimators=2).fit(X, y))
    with pytest.raises(ModelError, match="the RandomForestRegressor is not fitted"):
        rw.load_model(RandomForestRegressor())
    with pytest.raises(ModelError, match="has 2 outputs"):
        rw.load_model(RandomForestRegressor(2).fit(X, np.stack([y, y], axis=1)))
    with pytest.raises(ModelError, match="has 5 classes"):
        rw.load_model(GradientBoostingClassifier(n_estimators=1).fit(X, y))
    with pytest.raises(ModelError, match="the boosting starts from LinearRegression"):
        rw.load_model(GradientBoostingRegressor(n_estimators=1, init=LinearRegression()).fit(X, y))
    pandas = pytest.importorskip("pandas", reason="PANDAS ABSENT")
    frame = pandas.DataFrame(X, columns=[f"n{i}" for i in range(X.shape[1])])
    frame["n4"] = np.random.default_rng(0).choice(["red", "green"], len(X))
    hist = HistGradientBoostingRegressor(max_iter=3, categorical_features=["n4"]).fit(frame, y)
    with pytest.raises(ModelError, match="feature n4 has categories that are no numbers"):
        rw.load_model(hist)


@pytest.mark.parametrize("categories", [[4], [0, 4], [1, 2, 3]], ids=str)
def test_categories_of_histogram_boosting(categories):
    """Values that are none of the categories go where missing ones go, however near they are."""
    rng = np.random.default_rng(1)
    X, y = training_data(missing=0.1)
    for place, column in enumerate(categories):
        X[:, column] = rng.choice([[0, 1, 2, 3, 7.5, 40], [-3, -0.0, 1e6, 0.1], list(range(90))][place], len(X))
        X[rng.random(len(X)) < 0.1, column] = np.nan
        y = y + np.nan_to_num(X[:, column]) % 3
    fitted = HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=3, categorical_features=categories).fit(X, y)
    model = rw.load_model(fitted)
    assert model.topology().n_sets > 0
    assert model.n_leaves == sum(predictors[0].get_n_leaf_nodes() for predictors in fitted._predictors)
    rows = np.concatenate([X, adversarial_rows(model, infinite=False)])
    assert_array_equal(model.score(rows), fitted.predict(rows))
