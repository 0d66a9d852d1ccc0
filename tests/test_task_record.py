"""The record of parallel tasks: the same results, nothing started, and times that add up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood import _native
from rankwood.training.losses import LambdaLoss

pytestmark = pytest.mark.native

PLACE, FUNCTION, THREADS, STARTED, START, PYTHON, NATIVE, NATIVE_HERE, TASKS = range(9)


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    _native.record_tasks(False)


def recorded(call):
    """What a call returns, and its regions."""
    _native.record_tasks(True)
    result = call()
    _native.record_tasks(False)
    return result, _native.recorded_tasks()


def queries(n_queries=300, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 100, n_queries))])
    return rng.normal(size=offsets[-1]), rng.integers(0, 5, offsets[-1]).astype(float), offsets


def lambdas(n_threads, n_queries=300):
    scores, labels, offsets = queries(n_queries)
    out = np.empty((2, len(scores)))
    LambdaLoss().prepare(labels, offsets, n_threads=n_threads).gradients(scores, *out)
    return out


def test_tasks_are_cut_as_for_the_threads_that_are_asked_for():
    result, regions = recorded(lambda: lambdas(64))
    assert_array_equal(result, lambdas(1))
    region, after = regions
    assert region[:4] == ("lambdas.hpp", "compute", 64, False)
    assert len(region[TASKS]) > 1
    assert min(region[TASKS]) > 0.0
    assert after[:4] == ("", "", 1, False)
    assert after[TASKS] == []


def test_one_thread_has_no_regions():
    assert len(recorded(lambda: lambdas(1))[1]) == 1


def test_times_add_up():
    def some():
        lambdas(8)
        _native.add_leaf_values(np.zeros(50_000, np.uint16), np.ones(1), 1.0, np.zeros(50_000), 4)

    regions = recorded(some)[1]
    assert [(r[FUNCTION], r[THREADS], r[STARTED], len(r[TASKS])) for r in regions[1:]] == [
        ("add_leaf_values", 4, True, 4),
        ("", 1, False, 0),
    ]
    slack = 1e-4  # tasks are timed by another clock than starts
    assert 0.0 < regions[0][PYTHON] + regions[0][NATIVE] <= regions[0][START] + slack
    for region, after in pairwise(regions):
        assert 0.0 <= region[NATIVE_HERE] <= region[NATIVE]
        end = region[START] + sum(region[TASKS])
        assert end + after[PYTHON] + after[NATIVE] <= after[START] + slack


def test_regions_use_the_threads_that_the_training_has():
    leaves, scores = np.zeros(50_000, np.uint16), np.zeros(50_000)

    def add(n_threads):
        return recorded(lambda: _native.add_leaf_values(leaves, np.ones(1), 1.0, scores, n_threads))[1][0][STARTED]

    assert add(3)
    _, labels, offsets = queries()
    loss = LambdaLoss().prepare(labels, offsets, n_threads=3)
    assert not add(3)
    assert add(2)
    del loss
    assert add(3)


@pytest.mark.parametrize("held", [False, True])
def test_the_first_failure_is_told_on_any_threads(held):
    _, labels, offsets = queries()
    loss = LambdaLoss().prepare(labels, offsets, n_threads=3) if held else None
    leaves, scores = np.zeros(100_000, np.uint16), np.zeros(100_000)
    for row in (0, 50_000, 99_999):
        leaves[:] = 0
        leaves[row] = 7
        with pytest.raises(ValueError, match="leaf out of range"):
            _native.add_leaf_values(leaves, np.ones(1), 1.0, scores, 3)
    leaves[:] = 0
    scores[:] = 0.0
    _native.add_leaf_values(leaves, np.ones(1), 1.0, scores, 3)
    assert_array_equal(scores, 1.0)
    del loss


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to count threads")
def test_no_thread_is_started():
    def count():
        scores, labels, offsets = queries()
        loss = LambdaLoss().prepare(labels, offsets, n_threads=50)
        loss.gradients(scores, np.empty_like(scores), np.empty_like(scores))
        return len(list(Path("/proc/self/task").iterdir()))

    before = len(list(Path("/proc/self/task").iterdir()))
    assert recorded(count)[0] == before


def test_a_recorded_training_gives_the_same_model():
    data = rw.make_ranking(n_queries=250, docs_per_query=100, n_features=20, seed=0)
    train, valid = data.split(0.85, seed=0)

    def fit(n_jobs):
        return rw.LambdaMART(3, 8, n_jobs=n_jobs).fit(train, valid=valid).ensemble_

    model, regions = recorded(lambda: fit(16))
    assert model.fingerprint() == fit(1).fingerprint()
    places = {region[PLACE] for region in regions}
    assert {"lambdas.hpp", "grower.hpp", "binned_tree.hpp"} <= places


def test_the_length_of_a_query_does_not_hide_its_tasks():
    scores, labels, offsets = np.arange(40_000.0) % 977, np.arange(40_000.0) % 3, np.array([0, 40_000])
    out = np.empty((2, 40_000))
    loss = recorded(lambda: LambdaLoss().prepare(labels, offsets, n_threads=4).gradients(scores, *out))
    whole = sum(sum(region[TASKS]) for region in loss[1])
    largest = max(max(region[TASKS], default=0.0) for region in loss[1])
    assert sum(len(region[TASKS]) for region in loss[1]) > 40
    assert largest < whole


def test_other_threads_are_not_recorded():
    found = []

    def elsewhere():
        found.append(lambdas(2))
        with pytest.raises(ValueError, match="the thread that began to record tasks must end it"):
            _native.record_tasks(False)

    def call():
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()

    assert len(recorded(call)[1]) == 1
    assert_array_equal(found[0], lambdas(1))


def test_misuse():
    _native.record_tasks(True)
    with pytest.raises(ValueError, match="tasks are being recorded already"):
        _native.record_tasks(True)
    with pytest.raises(ValueError, match="tasks are still being recorded"):
        _native.recorded_tasks()
    _native.record_tasks(False)
    _native.record_tasks(False)
    assert len(_native.recorded_tasks()) == 1
    assert _native.region_seconds(2, 10, 0.0) > 0.0
