"""Statistics of data sets: counted by hand, by a slow twin, and as papers print them of public data."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.data.statistics import statistics


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    n_features=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_statistics_equal_those_of_a_slow_twin(sizes, n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, 2.5, math.nan], size=(sum(sizes), n_features))
    y = rng.integers(0, 3, sum(sizes)).astype(float)
    found = statistics(rw.Dataset(X, y, group=sizes))
    values = [x for row in X.tolist() for x in row]
    assert (found.n_docs, found.n_queries, found.n_features) == (sum(sizes), len(sizes), n_features)
    assert (found.fewest_docs, found.most_docs) == (min(sizes), max(sizes))
    assert found.docs_per_query == sum(sizes) / len(sizes)
    assert found.labels == tuple(sorted(set(y.tolist())))
    assert found.relevant_per_query == sum(label > 0 for label in y) / len(sizes)
    assert found.missing == sum(map(math.isnan, values)) / len(values)
    assert found.zero == values.count(0.0) / len(values)
    assert found.absent == found.missing + found.zero
    columns = [{x for x in column if not math.isnan(x)} for column in X.T.tolist()]
    assert found.constant_features == sum(len(column) <= 1 for column in columns)


def test_nothing_has_statistics_too():
    found = statistics(rw.Dataset(np.empty((0, 3)), [], group=[]))
    assert (found.n_docs, found.n_queries, found.docs_per_query, found.absent, found.labels) == (0, 0, 0.0, 0.0, ())
