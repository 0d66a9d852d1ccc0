"""Small models of every kind: each library's, ours, pruned, with categories, with missing values, and one of edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rankwood as rw

N_QUERIES, N_DOCS = 60, 20
CATEGORY, GAPS = 5, 7  # columns: numbers of categories; values of which some are missing


def data(*, missing: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows and grades: fractions, counts, whole numbers of both signs, large and tiny numbers, categories, a flag."""
    rng = np.random.default_rng(19)
    n = N_QUERIES * N_DOCS
    columns = [
        rng.normal(size=n),
        rng.poisson(0.7, n),
        rng.integers(-5, 6, n),
        rng.lognormal(12, 3, n),
        rng.normal(scale=1e-4, size=n),
        rng.integers(0, 12, n),
        rng.integers(0, 2, n),
        rng.exponential(size=n),
    ]
    X = np.column_stack(columns).astype(np.float32).astype(np.float64)
    wanted = X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + (X[:, 4] > 0) + np.isin(X[:, CATEGORY], [1, 4, 7, 8]) + X[:, GAPS]
    y = np.digitize(wanted + rng.normal(scale=0.5, size=n), [0, 1.5, 3, 4.5])
    if missing:
        for column in (0, 2, GAPS):
            X[rng.random(n) < 0.2, column] = np.nan
    return X, y


def _package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name.upper()} ABSENT: pip install 'rankwood[formats]'")


def _lightgbm(*, missing: bool = False, **more: object) -> rw.Ensemble:
    lightgbm = _package("lightgbm")
    X, y = data(missing=missing)
    ranker = lightgbm.LGBMRanker(n_estimators=20, num_leaves=12, min_child_samples=5, verbose=-1, n_jobs=1)
    return rw.load_model(ranker.fit(X, y, group=[N_DOCS] * N_QUERIES, **more))


def _xgboost() -> rw.Ensemble:
    xgboost = _package("xgboost")
    X, y = data()
    ranker = xgboost.XGBRanker(n_estimators=20, max_depth=4, objective="rank:ndcg", n_jobs=1)
    return rw.load_model(ranker.fit(X, y, qid=np.repeat(np.arange(N_QUERIES), N_DOCS)))


def _catboost() -> rw.Ensemble:
    catboost = _package("catboost")
    X, y = data()
    ranker = catboost.CatBoostRanker(iterations=20, depth=4, verbose=False, allow_writing_files=False, thread_count=1)
    return rw.load_model(ranker.fit(X, y, group_id=np.repeat(np.arange(N_QUERIES), N_DOCS)))


def _sklearn() -> rw.Ensemble:
    from sklearn.ensemble import GradientBoostingRegressor

    return rw.load_model(GradientBoostingRegressor(n_estimators=20, max_depth=4, random_state=0).fit(*data()))


def _ours() -> rw.Ensemble:
    X, y = data()
    dataset = rw.Dataset(X, y, group=[N_DOCS] * N_QUERIES)
    return rw.LambdaMART(n_trees=20, n_leaves=12, learning_rate=0.2).fit(dataset).ensemble_


def _pruned() -> rw.Ensemble:
    X, y = data()
    train, valid = rw.Dataset(X, y, group=[N_DOCS] * N_QUERIES).split(0.6)
    full = rw.LambdaMART(n_trees=30, n_leaves=12, learning_rate=0.2).fit(train).ensemble_
    settings = rw.PruningSettings(measure_speed=False)
    rule = rw.Acceptance(margin=0.9)
    pruned = rw.cleaver(full, train, valid, judge=0.5, rates=(0.5,), accept=rule, variants="refit", settings=settings)
    assert pruned.ensemble.n_trees < full.n_trees
    return pruned.ensemble


def _edges() -> rw.Ensemble:
    """Thresholds at which tools stumble: zeros, the smallest and largest numbers, infinities; a base and weights."""
    odd = [0.0, -0.0, 1e-35, -1e-35, 5e-324, -1e-45, 1e-7, -1e-7, 0.1, -0.1, 1 / 3, -2.5, 16777217.0, 1e30, -1e30,
           3.5e38, 1e300, np.inf, -np.inf, np.nextafter(1.0, 2.0)]  # fmt: skip
    trees = [
        (f % 8, t, 0.1 * f, ((f + 1) % 8, -t, 1 / (f + 3), -1.7, f % 2 == 0), f % 3 == 0) for f, t in enumerate(odd)
    ]
    chain = 0.5
    for step in range(30):
        chain = (step % 8, step - 15.0, float(step) / 7, chain, step % 2 == 0)
    weights = [1.0 + 0.1 * number for number in range(len(trees) + 2)]
    return rw.Ensemble.from_trees([*trees, chain, 0.75], tree_weights=weights, base=1.25, n_features=8)


KINDS: dict[str, Callable[[], rw.Ensemble]] = {
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
    "scikit-learn": _sklearn,
    "ours": _ours,
    "pruned": _pruned,
    "categorical": lambda: _lightgbm(categorical_feature=[CATEGORY]),
    "missing values": lambda: _lightgbm(missing=True),
    "edges": _edges,
}


def model_of(kind: str) -> rw.Ensemble:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say of small data
        return KINDS[kind]()
