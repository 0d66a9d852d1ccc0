"""The same trees as LightGBM, where the answer is unambiguous.

Few distinct values, so that both learners have a bin for each and look at the same splits; targets that are random real
numbers, so that no two splits gain the same. Thresholds may differ inside a gap between two values, so the trees are
compared by what they do to the training documents.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankwood as rw

lgb = pytest.importorskip("lightgbm")

COMMON = {
    "learning_rate": 0.1,
    "min_data_in_leaf": 1,
    "min_data_in_bin": 1,
    "min_sum_hessian_in_leaf": 1e-3,
    "max_bin": 255,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
}


def problem(seed: int, n_queries: int = 20, size: int = 15) -> rw.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.integers(25, size=(n_queries * size, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    relevance = np.nan_to_num(X[:, 0]) / 10 + np.nan_to_num(X[:, 1] > 12) + rng.normal(size=len(X))
    return rw.Dataset(X, relevance, group=[size] * n_queries)


def leaves_agree(ours: rw.Ensemble, theirs, X) -> int:
    """Number of leading trees that put all documents into the same groups."""
    mine, other = ours.leaves(X), theirs.predict(X, pred_leaf=True).reshape(len(X), -1)
    for t in range(ours.n_trees):
        pairs = set(zip(mine[:, t].tolist(), other[:, t].tolist(), strict=True))
        if len(pairs) != len({a for a, _ in pairs}) or len(pairs) != len({b for _, b in pairs}):
            return t
    return ours.n_trees


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_leaves", [2, 8, 20])
def test_regression_trees_are_the_same(seed, n_leaves):
    data = problem(seed)
    parameters = COMMON | {"objective": "regression", "num_leaves": n_leaves, "boost_from_average": True}
    theirs = lgb.train(parameters, lgb.Dataset(data.X, data.y, params=parameters), 10)
    ours = rw.MART(10, n_leaves, 0.1, min_docs_per_leaf=1, n_jobs=1).fit(data).ensemble_
    assert leaves_agree(ours, theirs, data.X) == 10
    assert_allclose(ours.score(data.X), theirs.predict(data.X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_first_lambdamart_trees_are_the_same(seed, norm):
    """LightGBM looks its sigmoid up in a table and sums in floats, so later trees may come to differ."""
    data = problem(seed)
    labels = np.clip(np.round(data.y), 0, 4)
    data = rw.Dataset(data.X, labels, group=data.queries.sizes)
    parameters = COMMON | {"objective": "lambdarank", "num_leaves": 6, "lambdarank_norm": norm}
    theirs = lgb.train(parameters, lgb.Dataset(data.X, labels, group=data.queries.sizes, params=parameters), 3)
    ours = rw.LambdaMART(3, 6, 0.1, min_docs_per_leaf=1, normalize=norm, n_jobs=1).fit(data).ensemble_
    assert leaves_agree(ours, theirs, data.X) >= 1
    first = ours.select([0]).score(data.X)
    assert_allclose(first, theirs.predict(data.X, num_iteration=1), rtol=1e-3, atol=1e-5)
