"""Which candidate is taken: every query judges what the others chose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.refit import refit_passes
from rankwood.shrinking.choice import Candidate, Choosers, best_of, best_pass, has_stopped
from rankwood.shrinking.path import refitted

values = st.floats(-1, 1) | st.just(math.nan)


@st.composite
def choosers(draw):
    n = draw(st.integers(1, 30))
    weights = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n, max_size=n)))
    return Choosers(weights, draw(st.sampled_from([0, 2, 3, 5])), draw(st.integers(0, 5)))


def test_queries_are_dealt_out_evenly():
    dealt = Choosers(np.ones(23), 5, seed=1)
    assert sorted(np.bincount(dealt.fold)) == [4, 4, 5, 5, 5]
    assert_array_equal(dealt.choose[0], np.ones(23, bool))
    for number in range(5):
        assert_array_equal(dealt.choose[number + 1], dealt.fold != number)
    assert (Choosers(np.ones(23), 5, seed=2).fold != dealt.fold).any()


@given(choosers(), st.data())
def test_means(choosing, data):
    n = len(choosing.weights)
    given_values = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))
    found = choosing.means(given_values)
    assert len(found) == choosing.n_folds + 1
    for number, mean in enumerate(found):
        total = count = 0.0
        for query in range(n):
            if (number == 0 or choosing.fold[query] != number - 1) and not math.isnan(given_values[query]):
                total += choosing.weights[query] * given_values[query]
                count += choosing.weights[query]
        assert mean == (pytest.approx(total / count, abs=1e-12) if count else -math.inf)


@given(choosers())
def test_out_of_fold(choosing):
    n = len(choosing.weights)
    of_chooser = [np.arange(n) + 100.0 * number for number in range(choosing.n_folds + 1)]
    expected = [query + 100.0 * (choosing.fold[query] + 1 if choosing.n_folds else 0) for query in range(n)]
    assert_array_equal(choosing.out_of_fold(of_chooser), expected)


@pytest.mark.parametrize(
    ("means", "patience", "best", "stopped"),
    [
        ([0.1], 2, 0, False),
        ([0.1, 0.3, 0.2, 0.3], 2, 1, True),
        ([0.1, 0.3, 0.2, 0.4], 2, 3, False),
        ([0.3, 0.1, 0.2, 0.9], 2, 0, False),  # stopped before the last one, which is better
        ([0.3, 0.1, 0.2, 0.9], 3, 3, False),
        ([0.2, 0.2, 0.2], 2, 0, True),
    ],
)
def test_early_stopping(means, patience, best, stopped):
    assert (best_pass(means, patience), has_stopped(means, patience)) == (best, stopped)


def test_each_fold_takes_its_own():
    choosing = Choosers(np.ones(4), 2, seed=0)
    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)])
    made = [
        Candidate(model, np.array(means), np.full(4, float(number)), np.full(4, 10.0 + number))
        for number, means in enumerate([[0.5, 0.1, 0.9], [0.4, 0.3, 0.2], [0.5, 0.2, 0.9]])
    ]
    taken, unseen = best_of(made, [one.means for one in made], choosing)
    assert taken == 0
    assert_array_equal(unseen, np.where(choosing.fold == 0, 11.0, 10.0))


@pytest.fixture(scope="module")
def parts():
    train, valid = rw.make_ranking(n_queries=80, docs_per_query=10, n_features=5, seed=6).split(0.5)
    model = rw.LambdaMART(n_trees=12, n_leaves=6, learning_rate=0.3).fit(train).ensemble_
    return model.replace(tree_weights=np.ones(12)), train, valid


def test_passes_are_chosen_fold_by_fold(parts):
    """The out-of-fold values, and the model, are those of an obvious recomputation."""
    model, train, valid = parts
    how, choosing = rw.Refit(passes=12, rate=3.0, patience=3), Choosers(np.ones(valid.n_queries), 4, seed=3)
    on_train, on_valid = (Part.of(model, Evaluator(data, "nDCG@10", by_query=True)) for data in (train, valid))
    found = refitted(model, on_train, on_valid, choosing, how)

    passes = [model.leaf_value, *refit_passes(on_train, np.ones(12), how)]
    of_pass = np.array([
        rw.evaluate(model.replace(leaf_value=leaf_values), valid).per_query["nDCG@10"] for leaf_values in passes
    ])  # fmt: skip

    def taken_by(queries):
        return best_pass(of_pass[:, queries].mean(axis=1).tolist(), how.patience)

    everyone = np.ones(valid.n_queries, bool)
    assert_array_equal(found.ensemble.leaf_value, passes[taken_by(everyone)])
    assert_array_equal(found.values, of_pass[taken_by(everyone)])
    for query in range(valid.n_queries):
        others = choosing.fold != choosing.fold[query]
        assert found.unseen[query] == of_pass[taken_by(others), query]
    assert found.means[0] == pytest.approx(of_pass[taken_by(everyone)].mean())
