"""Hypothesis strategies: models and small data sets that pruning may meet."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import rankwood as rw
from strategies.ensembles import ensembles


@st.composite
def rankings(draw, n_features: int, *, max_queries: int = 5, weighted: bool = True, labels=range(5)) -> rw.Dataset:
    """Few documents with tied and missing features; queries may be empty, of one document, and stand mixed up."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 7, 14, 30]), min_size=1, max_size=max_queries))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = sum(sizes)
    X = rng.integers(-3, 4, (n, n_features)).astype(np.float32)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    y = rng.choice(list(labels), n)
    weights = rng.integers(0, 4, len(sizes)) + 1.0 if weighted and draw(st.booleans()) else None
    if draw(st.booleans()):
        return rw.Dataset(X, y, group=sizes, query_weights=weights)
    return rw.Dataset(X, y, qid=rng.permutation(np.repeat(np.arange(len(sizes)), sizes)), query_weights=weights)


@st.composite
def tied_models_and_data(draw, *, weighted: bool = True) -> tuple[rw.Ensemble, rw.Dataset]:
    """Few trees of few values on features of two values: without a tree, many documents have the very same score.

    Values are no sums of powers of 2, so that a tree which is subtracted leaves the rounding of its addition behind.
    """
    n_features = draw(st.integers(1, 4))
    values = st.sampled_from([0.1, 0.2, 0.3, 0.7, -0.1, -0.6, 1 / 3, 1.1, 0.0])
    stumps = st.tuples(st.integers(0, n_features - 1), st.just(0.5), values, values)
    trees = draw(st.lists(st.one_of(stumps, stumps, values), min_size=2, max_size=8))
    weights = st.sampled_from([0.1, 0.1, 0.05, 1.0, -0.3, 0.0])
    model = rw.Ensemble.from_trees(
        trees,
        n_features=n_features,
        tree_weights=draw(st.lists(weights, min_size=len(trees), max_size=len(trees))),
        base=draw(st.sampled_from([0.0, 0.1, 5.3])),
    )
    sizes = draw(st.lists(st.sampled_from([5, 14, 30]), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, 2, (sum(sizes), n_features)).astype(np.float32)
    query_weights = rng.integers(0, 4, len(sizes)) + 1.0 if weighted and draw(st.booleans()) else None
    return model, rw.Dataset(X, rng.integers(0, 5, sum(sizes)), group=sizes, query_weights=query_weights)


@st.composite
def models_and_data(draw, **how) -> tuple[rw.Ensemble, rw.Dataset]:
    model = draw(ensembles(max_trees=6))
    return model, draw(rankings(model.n_features, **how))
