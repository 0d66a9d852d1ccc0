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
def models_and_data(draw, **how) -> tuple[rw.Ensemble, rw.Dataset]:
    model = draw(ensembles(max_trees=6))
    return model, draw(rankings(model.n_features, **how))
