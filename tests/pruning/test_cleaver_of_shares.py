"""CLEaVER over processes that have a share of the queries each: the result of one process that has them all."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

import rankwood as rw
from thread_group import odd_shares, run

pytestmark = pytest.mark.native

QUICK = rw.PruningSettings(measure_speed=False, search=rw.LineSearch(iterations=3, samples=6), refit=rw.Refit(passes=3))


@pytest.fixture(scope="module")
def parts():
    made = rw.make_ranking(n_queries=190, docs_per_query=9, n_features=5, seed=4)
    made = made.replace(query_weights=np.random.default_rng(3).random(made.n_queries))
    train, rest = made.split(0.4)
    valid, test = rest.split(0.7)
    model = rw.LambdaMART(n_trees=9, n_leaves=5, learning_rate=0.2, min_docs_per_leaf=3).fit(train).ensemble_
    return model, train, valid, test


def told(result):
    """All that a result has, as numbers that can be compared."""
    rows = [{**vars(row), "ensemble": row.ensemble.fingerprint(), "proof": row.proof} for row in result.rows]
    test = None if result.test is None else asdict(result.test)
    tested = result.test_proof, test, result.needed_bytes
    return result.ensemble.fingerprint(), result.ensemble.metadata.get("cleaver"), rows, *tested


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(
    "how",
    [
        {"judge": 0.5, "accept": rw.Acceptance(margin=0.3)},
        {"judge": "folds", "accept": "quality", "measure": "AP"},
        {"judge": None, "accept": "not-significant", "strategy": "score-loss", "measure": "DCG@5"},
        {"judge": 0.5, "accept": "quality", "strategy": "signed-score-loss", "variants": "gradient"},
        {"judge": 0.4, "accept": "quality", "strategy": "quality-loss-greedy", "variants": "refit"},
    ],
    ids=lambda how: f"{how['judge']}-{how.get('strategy', 'quality-loss')}",
)
def test_the_result_is_that_of_one_process(parts, how, size):
    model, *data = parts
    how = {"rates": (0.3, 0.6), "variants": "line-search", "settings": QUICK, **how}
    expected = rw.cleaver(model, data[0], data[1], test=data[2], n_threads=2, **how)
    shares = [odd_shares(one, size) for one in data]

    def prune(group):
        train, valid, test = (one[group.rank] for one in shares)
        return rw.cleaver(model, train, valid, test=test, n_threads=1, group=group, **how)

    for result in run(size, prune):
        assert told(result) == told(expected)


def test_samples_of_queries_are_drawn_of_all(parts):
    model, train, valid, _ = parts
    how = {"rates": (0.5,), "variants": "line-search", "judge": None, "accept": "quality"}
    how["settings"] = rw.PruningSettings(measure_speed=False, search=QUICK.search, max_queries=20)
    shares = [odd_shares(one, 3) for one in (train, valid)]
    found = run(3, lambda group: rw.cleaver(model, *(one[group.rank] for one in shares), group=group, **how))
    assert all(told(one) == told(rw.cleaver(model, train, valid, **how)) for one in found)


def test_a_measure_that_is_a_function(parts):
    model, train, valid, _ = parts

    def error(y, scores, offsets):
        sizes = np.diff(offsets)
        return -np.array([np.square(y[a:b] - scores[a:b]).sum() for a, b in pairwise(offsets)]) / sizes

    how = {"rates": (0.5,), "variants": "line-search", "judge": None, "accept": "quality", "measure": error}
    how["settings"] = QUICK
    shares = [odd_shares(one, 3) for one in (train, valid)]
    found = run(3, lambda group: rw.cleaver(model, *(one[group.rank] for one in shares), group=group, **how))
    assert all(told(one) == told(rw.cleaver(model, train, valid, **how)) for one in found)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"variants": ("line-search", "distil")}, "the variant 'distil' needs all documents in one process"),
        (
            {"variants": "refit", "strategy": lambda outputs, weights, queries, k: []},
            "a strategy of your own would see",
        ),
    ],
)
def test_what_processes_cannot_do_together(parts, how, words):
    model, train, valid, _ = parts
    shares = [odd_shares(one, 2) for one in (train, valid)]
    with pytest.raises(rw.RankwoodError, match=words):
        run(2, lambda group: rw.cleaver(model, *(one[group.rank] for one in shares), group=group, **how))
