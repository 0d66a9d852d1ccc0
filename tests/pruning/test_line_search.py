"""The line search and its kernel against a slow twin, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankwood as rw
from oracles import cleaver as oracle
from rankwood import _native
from rankwood.evaluation.evaluator import Evaluator
from rankwood.evaluation.per_query import resolve
from rankwood.fitting.measured import MeasuredQueries, Part
from rankwood.fitting.outputs import unsigned_weights
from rankwood.pruning.line_search import LineSearch, Point, best_on_segment, line_search, promising_weights
from strategies.pruning import models_and_data, rankings, tied_models_and_data

pytestmark = pytest.mark.native

# The kernel of nDCG@k and DCG@k, and what takes the long way.
FAST = [
    ("nDCG@10", "rankwood"),
    ("nDCG@1", "lightgbm"),
    ("nDCG@3", "letor"),
    ("DCG@5", "yahoo"),
    ("nDCG@64", "rankwood"),
]
SLOW = [("nDCG", "rankwood"), ("nDCG@10", "trec"), ("nDCG@5", "sklearn"), ("AP", "rankwood"), ("ERR@10", "rankwood"),
        ("RR", "xgboost"), ("P@3", "rankwood"), ("nDCG@65", "rankwood")]  # fmt: skip


def part(model, data, measure="nDCG@10", convention="rankwood", n_threads=1):
    return Part.of(model, Evaluator(data, measure, convention, by_query=True, n_threads=n_threads))


@pytest.mark.parametrize(("measure", "convention"), FAST + SLOW)
@settings(max_examples=25)
@given(st.data())
def test_lines_are_followed_to_the_bit(measure, convention, data):
    model, ranking = data.draw(models_and_data())
    weights = unsigned_weights(model)
    n_deltas = data.draw(st.sampled_from([1, 2, 4, 5, 20, 21, 47]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    deltas = rng.choice([0.0, 0.5, -1.0, 2.0, 1e-3, 100.0], (model.n_trees, n_deltas)) * rng.choice([1.0, 0.37])
    one = part(model, ranking, measure, convention)
    found, still = one.queries.along(one.outputs, one.outputs.scores(weights), np.arange(model.n_trees), deltas)
    how = {"measure": measure, "convention": convention}
    for tree in range(model.n_trees):
        assert found[tree].tolist() == oracle.along(model, ranking, weights, tree, deltas[tree], **how)
    assert still == oracle.along(model, ranking, weights, 0, [0.0], **how)[0]


def fits_two_doubles(model, weights):
    """Whether no tree adds less than kept_leaves.hpp promises to keep: a sum of -2.3 and 1e-313 needs more than two."""
    added = np.abs(np.repeat(weights, np.diff(model.leaf_offsets)) * model.leaf_value)
    return not ((added > 0.0) & (added < 2.0**-80)).any()


@pytest.mark.parametrize(("measure", "convention"), FAST + SLOW)
@settings(max_examples=25)
@given(st.data())
def test_new_weights_of_a_tree_are_measured_to_the_bit(measure, convention, data):
    """Whether documents are equal without the tree is not left to rounding."""
    model, ranking = data.draw(st.one_of(models_and_data(), tied_models_and_data()))
    weights = unsigned_weights(model)
    assume(fits_two_doubles(model, weights))
    n_tried = data.draw(st.sampled_from([1, 2, 4, 5, 20, 21, 47]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    tried = rng.choice([0.0, 0.0, 0.1, 0.2, 1.0, 1e-3, 100.0], (model.n_trees, n_tried))
    one = part(model, ranking, measure, convention)
    exact = one.outputs.exact_scores(weights)
    assert exact[0].tolist() == one.outputs.scores(weights).tolist()
    found, still = one.queries.reweighed(one.outputs, weights, exact, np.arange(model.n_trees), tried)
    how = {"measure": measure, "convention": convention}
    for tree in range(model.n_trees):
        assert found[tree].tolist() == oracle.reweighed(model, ranking, weights, tree, tried[tree], **how)
    assert still == oracle.along(model, ranking, weights, 0, [0.0], **how)[0]


@pytest.mark.parametrize("measure", ["nDCG@10", "AP"])
def test_threads_do_not_matter(measure):
    data = rw.make_ranking(n_queries=60, docs_per_query=40, n_features=10, seed=3)
    model = rw.LambdaMART(n_trees=12, n_leaves=8).fit(data).ensemble_
    weights = unsigned_weights(model)
    found = []
    for n_threads in (1, 2, 3, 7, 13):
        one = part(model, data, measure, n_threads=n_threads)
        start = Point.at(one, weights)
        promising = promising_weights(one, start, np.arange(12), 0.2, LineSearch())
        moved = best_on_segment(one, start, promising, 20)
        searched = line_search(one, one, weights, settings=LineSearch(iterations=4))
        found.append((promising.tolist(), moved.weights.tolist(), moved.quality, searched))
    for other in found[1:]:
        assert other[:3] == found[0][:3]
        assert other[3].weights.tolist() == found[0][3].weights.tolist()
        assert other[3].history == found[0][3].history


@settings(max_examples=25)
@given(st.data())
def test_the_search_is_its_slow_twin(data):
    model, train = data.draw(st.one_of(models_and_data(weighted=False), tied_models_and_data(weighted=False)))
    valid = data.draw(rankings(model.n_features, weighted=False))
    weights = unsigned_weights(model)
    trees = np.flatnonzero(np.random.default_rng(data.draw(st.integers(0, 99))).random(model.n_trees) < 0.8)
    trees = trees if len(trees) else np.arange(1)
    how = {"samples": data.draw(st.sampled_from([2, 5, 20])), "shrink": 0.9, "iterations": 4, "patience": 2}
    how["negative"] = data.draw(st.sampled_from(["clip", "exclude"]))
    radius = 2 * weights[trees].mean() if weights[trees].any() else 1.0
    settings_ = LineSearch(**how)
    found = line_search(part(model, train), part(model, valid), weights, trees, settings=settings_)
    expected = oracle.line_search(model, train, valid, weights, trees, radius=radius, measure="nDCG@10", **how)
    assert found.weights.tolist() == expected.tolist()
    assert (found.weights >= 0).all()
    assert found.valid >= found.valid_before
    others = np.setdiff1d(np.arange(model.n_trees), trees)
    assert found.weights[others].tolist() == weights[others].tolist()
    assert found.valid == part(model, valid).quality(found.weights)
    assert found.train == part(model, train).quality(found.weights)


@pytest.mark.parametrize("seed", [5, 13, 14, 26])
def test_the_search_is_its_slow_twin_where_documents_are_equal_without_a_tree(seed):
    rng = np.random.default_rng(seed)
    data = rw.Dataset(rng.integers(0, 3, (200, 4)), rng.integers(0, 4, 200), group=[20] * 10)
    model = rw.LambdaMART(8, 4, 0.1, min_docs_per_leaf=5).fit(data).ensemble_
    weights, one, how = unsigned_weights(model), part(model, data), {"samples": 20, "shrink": 0.95, "patience": 5}
    found = line_search(one, one, weights, settings=LineSearch(iterations=2, **how))
    expected = oracle.line_search(
        model, data, data, weights, np.arange(8), radius=2 * weights.mean(), iterations=2, measure="nDCG@10", **how
    )
    assert found.weights.tolist() == expected.tolist()


def test_a_known_answer():
    """Tree 0 is noise and tree 1 the label: the search turns tree 0 off and keeps tree 1."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300).astype(float)
    X = np.stack([rng.integers(0, 2, 300), y], axis=1)
    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 5.0), (1, 0.5, 0.0, (1, 1.5, 1.0, 2.0))])
    data = rw.Dataset(X, y, group=[30] * 10)
    one = part(model, data)
    found = line_search(one, one, np.ones(2))
    assert found.valid == 1.0 > found.valid_before
    assert 2 * 1 * found.weights[1] > 5 * found.weights[0]
    assert found.n_iterations <= 21  # one that succeeds, and patience


def test_only_accepted_weights_come_back():
    """Validation data that contradicts training data: the weights are those the search started from."""
    y = np.array([0.0, 1.0] * 20)
    X = np.stack([np.arange(40) % 2, 1 - np.arange(40) % 2], axis=1)
    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0), (1, 0.5, 0.0, 1.1)])
    train = rw.Dataset(X, y, group=[2] * 20)
    valid = rw.Dataset(X, 1 - y, group=[2] * 20)
    start = np.ones(2)
    found = line_search(part(model, train), part(model, valid), start)
    assert found.weights.tolist() == [1.0, 1.0]
    assert (found.train, found.valid) == (found.train_before, found.valid_before)
    assert found.history[-1][0] > found.train_before
    assert found.n_iterations == 20


def test_quality_is_that_of_evaluate():
    data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5, seed=1)
    model = rw.MART(n_trees=5, n_leaves=6, task="ordinal").fit(data).ensemble_
    assert (model.tree_weights < 0).all()
    one = part(model, data)
    assert one.quality(unsigned_weights(model)) == rw.evaluate(model, data)["nDCG@10"]
    assert one.outputs.scores(unsigned_weights(model)).tolist() == model.score(data.X).tolist()


def test_outputs_are_checked():
    data = rw.make_ranking(n_queries=3, docs_per_query=5, n_features=5, seed=1)
    outputs = part(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=5), data).outputs
    with pytest.raises(rw.ModelError, match="one entry per leaf"):
        outputs.with_values(np.ones(3))
    with pytest.raises(rw.ModelError, match="tree 0 has no leaf 2"):
        replace(outputs, codes=np.full_like(outputs.codes, 2))
    with pytest.raises(ValueError, match="trees must hold numbers of trees"):
        outputs.leaf_sums(np.ones(outputs.n_docs), np.array([1]))
    with pytest.raises(ValueError, match="weights must have one entry per tree"):
        outputs.scores(np.ones(2))
    with pytest.raises(ValueError, match="deltas must have one row per tree"):
        MeasuredQueries(Evaluator(data, by_query=True)).along(
            outputs, outputs.scores([1.0]), np.array([0]), np.ones((2, 3))
        )


def test_queries_that_count_for_nothing():
    data = rw.Dataset([[0.0], [1.0]], [0, 0], group=[2])
    with pytest.raises(rw.DataError, match="counts no query of the data"):
        MeasuredQueries(Evaluator(data, "nDCG@10", rw.Convention("mine", empty="skip"), by_query=True))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"radius": 0.0}, "radius must be a positive number"),
        ({"radius": float("nan")}, "radius must be a positive number"),
        ({"samples": 1}, "samples must be a whole number of at least 2"),
        ({"shrink": 1.5}, "shrink must be above 0 and at most 1"),
        ({"iterations": -1}, "iterations must be a whole number"),
        ({"patience": 0}, "patience must be a whole number"),
    ],
)
def test_wrong_settings(wrong, words):
    with pytest.raises(rw.RankwoodError, match=words):
        LineSearch(**wrong)


@pytest.mark.parametrize("n_queries", [10, 2**22 - 1, 2**30])
def test_units_leave_room_for_all_queries(n_queries, monkeypatch):
    """2^-40 of a query; coarser where so many queries would not fit into 63 bits."""
    data = rw.make_ranking(n_queries=10, docs_per_query=5, n_features=2, seed=1).replace(query_weights=[0.75] * 10)
    monkeypatch.setattr("rankwood.group.Alone.total", lambda group, count: n_queries)
    units = []
    monkeypatch.setattr("rankwood._native.LineMeasure.set_scale", lambda lines, scale: units.append(1.0 / scale))
    MeasuredQueries(Evaluator(data, by_query=True))
    assert n_queries * 0.75 / units[0] < 2**63
    assert units[0] <= max(2.0**-40, n_queries * 2.0**-61)


def test_units_that_sums_have_no_room_for_are_refused():
    spec, labels = resolve(rw.parse_measure("nDCG@10"), rw.Convention.get("rankwood")), np.array([0.0, 1.0])
    lines = _native.LineMeasure(spec, labels, np.array([0, 2]), np.array([3.0]), _native.Ties.ORDER, None, False)
    assert lines.bound() == 3.0
    lines.set_scale(2.0**38)
    with pytest.raises(ValueError, match="units must not be so small"):
        lines.set_scale(2.0**39)
