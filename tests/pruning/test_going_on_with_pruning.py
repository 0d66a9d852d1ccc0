"""A pruning that was stopped, killed or out of time goes on to the very result that it would have had."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import rankwood as rw
from rankwood.model.file import model_bytes
from rankwood.pruning import course as courses
from rankwood.pruning import notebook as notebooks

pytestmark = pytest.mark.native
QUICK = rw.PruningSettings(search=rw.LineSearch(iterations=5, samples=6), refit=rw.Refit(passes=4), measure_speed=False)
RATES = (0.2, 0.4, 0.6, 0.8)
LOOSE = rw.Acceptance(margin=0.5)


@pytest.fixture(scope="module")
def parts():
    data = rw.make_ranking(n_queries=150, docs_per_query=10, n_features=6, seed=4)
    return [data.select_queries(range(start, end)) for start, end in ((0, 40), (40, 100), (100, 150))]


@pytest.fixture(scope="module")
def model(parts):
    return rw.LambdaMART(n_trees=12, n_leaves=5, learning_rate=0.2).fit(parts[0]).ensemble_


@pytest.fixture(autouse=True)
def saves_often(monkeypatch):
    monkeypatch.setattr(notebooks, "EVERY", 0.02)


def pruned(model, parts, **how):
    train, valid, test = parts
    return rw.cleaver(model, train, valid, **{"test": test, "rates": RATES, "accept": LOOSE, "settings": QUICK} | how)


def told(result):
    """All that a result has, down to the bytes of its models."""
    models = [model_bytes(one) for one in (result.ensemble, *(row.ensemble for row in result.rows))]
    test = None if result.test is None else repr(result.test)
    return models, result.table, result.summary(), test, result.timed_out, result.rates_left


class Stopped(Exception):
    pass


def stop_after(calls):
    """A `progress` that raises an exception when it is called so often."""
    count = 0

    def progress(done, total):
        nonlocal count
        count += 1
        if count == calls:
            raise Stopped

    return progress


# Stopped, killed.


@pytest.mark.parametrize(
    "how",
    [
        {"judge": "folds"},
        {"judge": 0.5, "variants": ("gradient", "refit")},
        {"judge": "folds", "strategy": "last", "variants": ("line-search", "gradient")},  # folds share their searches
        {"judge": None, "strategy": "quality-loss-greedy", "rates": (0.0, 0.5, 0.51), "accept": "quality"},
        {"judge": "folds", "variants": "distil", "measure": "AP", "n_threads": 3},
    ],
    ids=["folds", "unseen", "last", "greedy", "distil"],
)
def test_stopped_anywhere_it_goes_on_to_the_same_bytes(parts, model, tmp_path, how):
    calls = []
    expected = told(pruned(model, parts, progress=lambda *done: calls.append(done), **how))
    assert calls[-1][0] == calls[-1][1]
    moments = random.Random(0).sample(range(1, len(calls)), 4)
    path = tmp_path / "steps"
    for moment in moments:  # each from the start
        path.unlink(missing_ok=True)
        with pytest.raises(Stopped):
            pruned(model, parts, checkpoint=path, progress=stop_after(moment), **how)
        assert told(pruned(model, parts, checkpoint=path, **{**how, "n_threads": 2})) == expected
    path.unlink()
    n_stops = 0
    while n_stops < 200:  # again and again, until it is done; what is known counts as calls, too
        try:
            found = pruned(model, parts, checkpoint=path, progress=stop_after(60 * (n_stops + 1)), **how)
            break
        except Stopped:
            n_stops += 1
    assert told(found) == expected


def test_what_is_known_is_not_searched_again(parts, model, tmp_path, monkeypatch):
    searches = []
    monkeypatch.setattr(
        "rankwood.pruning.line_search.promising_weights",
        lambda train, point, *_: searches.append(point) or point.weights,
    )
    pruned(model, parts, checkpoint=tmp_path / "steps")
    n_searches = len(searches)
    seen = []
    again = pruned(model, parts, checkpoint=tmp_path / "steps", progress=lambda *done: seen.append(done))
    assert len(searches) == n_searches
    assert seen[-1][0] == seen[-1][1]
    assert len(again.rows) == 1 + 3 * len(RATES)
    pruned(model, parts, checkpoint=tmp_path / "steps", rates=(0.4, 0.5), variants="line-search", accept="quality")
    n_more = len(searches) - n_searches
    assert 0 < n_more <= 6 * 5  # one rate, of all queries and of five folds


def test_the_search_over_all_trees_is_shared_by_folds(parts, model, monkeypatch):
    starts = []
    from rankwood.pruning import line_search as searching

    promising = searching.promising_weights

    def watched(train, point, trees, radius, how):
        starts.append((len(trees), radius))
        return promising(train, point, trees, radius, how)

    monkeypatch.setattr(searching, "promising_weights", watched)
    pruned(model, parts, judge="folds", variants="line-search", rates=(0.5,))
    assert len([start for start in starts if start[0] == 12]) <= 5  # the iterations of one search, not of six


SCRIPT = """
import os, random, signal, sys
import rankwood as rw
from rankwood.pruning import notebook
notebook.EVERY = 0.01
folder, seed = sys.argv[1:]
parts = [rw.read_data(f"{folder}/{name}.txt") for name in ("train", "valid", "test")]
calls, last = 0, random.Random(int(seed)).randint(1, 40 * int(seed) + 1)
def progress(done, total):
    global calls
    calls += 1
    if calls == last:
        os.kill(os.getpid(), signal.SIGKILL)
result = rw.cleaver(
    rw.load_model(f"{folder}/model.rw"), *parts[:2], test=parts[2], rates=(0.2, 0.4, 0.6, 0.8),
    accept=rw.Acceptance(margin=0.5), checkpoint=f"{folder}/steps", progress=progress if int(seed) else None,
    settings=rw.PruningSettings(search=rw.LineSearch(iterations=5), measure_speed=False),
)
result.ensemble.save(f"{folder}/small-{seed}.rw")
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL IS OF POSIX")
def test_killed_it_goes_on_to_the_same_bytes(parts, model, tmp_path):
    for name, data in zip(("train", "valid", "test"), parts, strict=True):
        rw.write_svmlight(data, tmp_path / f"{name}.txt")
    model.save(tmp_path / "model.rw")

    def run(seed):
        return subprocess.run([sys.executable, "-c", SCRIPT, tmp_path, str(seed)], check=False).returncode

    assert run(0) == 0
    (tmp_path / "steps").unlink()
    statuses = [run(1)]
    while statuses[-1] == -signal.SIGKILL and len(statuses) < 40:
        statuses.append(run(len(statuses) + 1))
    assert statuses[-1] == 0
    assert len(statuses) > 3
    small = tmp_path / f"small-{len(statuses)}.rw"
    assert small.read_bytes() == (tmp_path / "small-0.rw").read_bytes()
    left = {path.name for path in tmp_path.iterdir()} - {"train.txt", "valid.txt", "test.txt", "model.rw"}
    assert left == {"steps", "small-0.rw", small.name}  # no half-written files


# What is refused.


def other_weights(data):
    return data.replace(weights=np.linspace(1.0, 2.0, data.n_docs))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda model, parts: (model.reweigh(2 * model.tree_weights), parts, {}), "other model:"),
        (lambda model, parts: (model, [parts[2], parts[1], parts[2]], {}), "other training data:"),
        (lambda model, parts: (model, [parts[0], other_weights(parts[1]), parts[2]], {}), "other validation data:"),
        (lambda model, parts: (model, parts, {"measure": "nDCG@5"}), r"other measure \('nDCG@10', now 'nDCG@5'\):"),
        (
            lambda model, parts: (model, parts, {"convention": "lightgbm"}),
            r"other convention \(name 'rankwood', now 'lightgbm'.*\):",
        ),
        (lambda model, parts: (model, parts, {"strategy": "last"}), r"other strategy \('quality-loss', now 'last'\):"),
        (lambda model, parts: (model, parts, {"judge": 0.5}), r"other queries to judge by \('auto', now 0.5\):"),
        (
            lambda model, parts: (model, parts, {"settings": replace(QUICK, seed=1)}),
            r"other settings \(seed 0, now 1\):",
        ),
        (
            lambda model, parts: (model, parts, {"measure": "AP", "judge": None}),
            r"other measure \('nDCG@10', now 'AP'\), other queries to judge by \('auto', now None\):",
        ),
    ],
)
def test_other_data_models_and_settings_are_refused(parts, model, tmp_path, changed, words):
    path = tmp_path / "steps"
    with pytest.raises(Stopped):
        pruned(model, parts, checkpoint=path, progress=stop_after(9))
    before = path.read_bytes()
    model, parts, how = changed(model, parts)
    with pytest.raises(rw.RankwoodError, match=f"the checkpoint .*steps was made with {words} delete it to start anew"):
        pruned(model, parts, checkpoint=path, **how)
    assert path.read_bytes() == before


def test_what_is_no_checkpoint_is_refused_and_stays(parts, model, tmp_path):
    path = tmp_path / "steps"
    with pytest.raises(Stopped):
        pruned(model, parts, checkpoint=path, progress=stop_after(9))
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[-3] ^= 1
    for wrong in (model_bytes(model), b"", b"not a checkpoint", content[:-9], content[:40], bytes(damaged)):
        path.write_bytes(wrong)
        with pytest.raises(rw.RankwoodError, match="steps is no checkpoint of pruning: choose another file"):
            pruned(model, parts, checkpoint=path)
        assert path.read_bytes() == wrong
    with pytest.raises(OSError, match="there is no folder"):
        pruned(model, parts, checkpoint=tmp_path / "absent" / "steps")


def test_an_additive_model(parts, tmp_path):
    rankers = [rw.MART(n_trees=3, n_leaves=4, random_state=seed, query_fraction=0.5).fit(parts[0]) for seed in range(6)]
    columns = [
        part.replace(X=np.column_stack([ranker.predict(part) for ranker in rankers]), feature_names=None)
        for part in parts
    ]
    additive = rw.AdditiveModel(np.full(6, 0.5))

    def weights(**how):
        result = pruned(additive, columns, **how)
        return [row.ensemble.weights.tolist() for row in result.rows], result.table

    with pytest.raises(Stopped):
        weights(checkpoint=tmp_path / "steps", progress=stop_after(30))
    assert weights(checkpoint=tmp_path / "steps") == weights()
    with pytest.raises(rw.RankwoodError, match="other model"):
        pruned(rw.AdditiveModel(np.full(6, 0.25)), columns, checkpoint=tmp_path / "steps")


# Out of time.


def clock(monkeypatch, seconds):
    """Time that goes by `seconds` whenever a step or an iteration looks at it."""
    now = [0.0]

    def monotonic():
        now[0] += seconds
        return now[0]

    monkeypatch.setattr(courses, "time", SimpleNamespace(monotonic=monotonic))


@pytest.mark.parametrize("judge", ["folds", 0.5])
def test_a_time_limit_ends_with_the_best_so_far(parts, model, tmp_path, judge):
    whole = pruned(model, parts, judge=judge)
    rows = {(row.rate, row.variant): row for row in whole.rows}
    for timeout in (30, 150, 400):
        with pytest.MonkeyPatch.context() as patch:
            clock(patch, 1.0)
            path = tmp_path / f"steps{timeout}"
            result = pruned(model, parts, judge=judge, timeout=timeout, checkpoint=path)
        left = set(result.rates_left)
        assert result.timed_out == bool(left)
        for row in result.rows:
            same = rows[row.rate, row.variant]
            assert (row.train, row.valid, row.judged, row.test) == (same.train, same.valid, same.judged, same.test)
            assert model_bytes(row.ensemble) == model_bytes(same.ensemble)
        assert {row.rate for row in result.rows[1:]} | left == set(RATES)
        if result.timed_out:
            assert "the time was up before the search came to its end" in result.summary()
        if result.timed_out and result.accepted:
            note = result.ensemble.metadata["cleaver"]
            assert (note["timed_out"], note["rates_left"]) == (True, list(result.rates_left))
            assert result.proof.n_models == len(result.rows) - 1
        assert told(pruned(model, parts, judge=judge, checkpoint=path)) == told(whole)
    assert not whole.timed_out
    assert "timed_out" not in whole.ensemble.metadata["cleaver"]


def test_the_rates_that_are_tried_first_are_spread(parts, model):
    seen = []

    def first(outputs, weights, queries, k):
        seen.append(k)
        return np.arange(outputs.n_trees - k)

    rates = [0.1 * i for i in range(1, 10)]
    result = pruned(model, parts, judge=0.5, strategy=first, variants="line-search", rates=rates)
    assert seen == [round(12 * rate) for rate in (0.5, 0.3, 0.8, 0.2, 0.4, 0.7, 0.9, 0.1, 0.6)]
    assert [row.rate for row in result.rows[1:]] == rates


def test_no_time_at_all(parts, model):
    result = pruned(model, parts, timeout=1e-9)
    assert (result.ensemble, result.accepted, result.timed_out) == (model, False, True)
    assert (len(result.rows), result.rates_left) == (1, RATES)
    assert result.summary().endswith("before the search came to its end: no rate was tried in full")
    for timeout in (0, -1.0, float("nan"), True):
        with pytest.raises(rw.RankwoodError, match="timeout is a number of seconds above 0"):
            pruned(model, parts, timeout=timeout)


def test_short_times_again_and_again_come_to_the_end(parts, model, tmp_path, monkeypatch):
    """Also when no search is done within one of them, as the search under way is kept."""
    whole = told(pruned(model, parts, judge="folds"))
    clock(monkeypatch, 1.0)
    for _ in range(400):
        result = pruned(model, parts, judge="folds", timeout=12, checkpoint=tmp_path / "steps")
        if not result.timed_out:
            break
    assert told(result) == whole


# How long it will take.


def test_the_time_left_is_that_of_searches_measured(monkeypatch):
    now = [50.0]
    monkeypatch.setattr(courses, "time", SimpleNamespace(monotonic=lambda: now[0]))
    steps = courses.plan_steps([5, 2], ("line-search", "refit"), 10, n_folds=1)
    assert len(steps) == 2 * (1 + 2 * 2)
    heard = []
    course = courses.Course(steps, time_left=heard.append)
    cost = {"choose": 2.0, "search": 1.0, "refit": 3.0}

    def do(step):
        def make():
            now[0] += cost[step.kind] * step.n_trees / (1 + step.part)
            return {}

        course.do(step, make)

    def truth(done):
        return sum(cost[step.kind] * step.n_trees / (1 + step.part) for step in steps[done:])

    steps.sort(key=lambda step: (step.k != 0, -step.k, step.part))
    for number, step in enumerate(steps):
        assert (course.seconds_left() is None) == (number < 6)  # until each kind was measured, of all and of a fold
        if number >= 6:
            assert course.seconds_left() == pytest.approx(truth(number))
        do(step)
    assert course.seconds_left() == 0.0
    assert heard[0] is None
    assert heard[-1] == 0.0


def test_no_time_is_told_before_there_is_something_to_go_by(parts, model, tmp_path):
    heard = []
    result = pruned(model, parts, judge="folds", time_left=heard.append, checkpoint=tmp_path / "steps")
    known = [number for number, seconds in enumerate(heard) if seconds is not None]
    assert 0 < known[0] < len(heard) / 2
    assert known == list(range(known[0], len(heard)))
    assert heard[-1] == 0.0
    assert json.dumps(result.table)
    again = []
    pruned(model, parts, judge="folds", time_left=again.append, checkpoint=tmp_path / "steps")
    assert set(again) == {0.0}  # nothing is left
