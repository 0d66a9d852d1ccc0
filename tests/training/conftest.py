from __future__ import annotations

import pytest

import rankwood as rw


@pytest.fixture(scope="session")
def data() -> rw.Dataset:
    return rw.make_ranking(n_queries=40, docs_per_query=15, n_features=8, seed=0)


@pytest.fixture(scope="session")
def parts(data) -> tuple[rw.Dataset, rw.Dataset]:
    """Training and validation data."""
    return data.split(0.6, seed=1)
