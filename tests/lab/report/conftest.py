"""Models and data that the tests of reports share."""

from __future__ import annotations

import pytest

import rankwood as rw
from rankwood.lab.report.write import gather
from rankwood.scoring.timing import Budget

QUICK = Budget(calls=6, seconds=0.0, most_seconds=0.05)


@pytest.fixture(scope="session")
def data() -> rw.Dataset:
    return rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6, seed=1)


@pytest.fixture(scope="session")
def models(data) -> dict[str, object]:
    """A fitted learner with learning curves, a smaller one, and a model that knows nothing of its making."""
    train, valid = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6, seed=2).split(0.7)
    sets = {"eval_set": [train, valid], "eval_names": ["train", "valid"]}
    large = rw.LambdaMART(12, 8, 0.1, min_docs_per_leaf=5).fit(train, **sets)
    small = rw.LambdaMART(4, 6, 0.2, min_docs_per_leaf=5, balance=0.1).fit(train, **sets)
    stump = rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)], n_features=6)
    return {"large": large, "small": small.ensemble_, "stump": stump}


@pytest.fixture(scope="session")
def facts(models, data):
    return gather(models, data, measures=["nDCG@10", "AP"], budget=QUICK)
