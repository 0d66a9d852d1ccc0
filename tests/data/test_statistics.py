"""Statistics of data sets: counted by hand, by a slow twin, and as papers print them of public data."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    n_features=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_statistics_equal_those_of_a_slow_twin(sizes, n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, 2.5, math.nan], size=(sum(sizes), n_features))
    y = rng.integers(0, 3, sum(sizes)).astype(float)
    found = rw.statistics(rw.Dataset(X, y, group=sizes))
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
    found = rw.statistics(rw.Dataset(np.empty((0, 3)), [], group=[]))
    assert (found.n_docs, found.n_queries, found.docs_per_query, found.absent, found.labels) == (0, 0, 0.0, 0.0, ())


def test_labels_are_named_as_long_as_they_are_few():
    few, many = (rw.statistics(rw.Dataset(np.zeros((n, 1)), np.arange(n) / 2, group=[n])) for n in (3, 43))
    assert few.labels_text == "0, 0.5, 1"
    assert many.labels_text == "43 from 0 to 21"
    assert few.as_dict()["labels"] == [0.0, 0.5, 1.0]
    assert few.as_dict()["absent"] == 1.0
