"""Which trees stay: every strategy against its slow twin, and the rules for functions of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from oracles import cleaver as oracle
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.outputs import unsigned_weights
from rankwood.pruning.strategies import STRATEGIES, Chooser, score_shares, skip, without_each
from strategies.pruning import models_and_data, tied_models_and_data

pytestmark = pytest.mark.native


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=25)
@given(st.data())
def test_strategies_are_their_slow_twins(strategy, data):
    model, ranking = data.draw(st.one_of(models_and_data(), tied_models_and_data()))
    k = data.draw(st.integers(0, model.n_trees - 1))
    part = Part.of(model, Evaluator(ranking, by_query=True, n_threads=1))
    weights = unsigned_weights(model)
    chooser = Chooser(strategy, model.n_trees - 1, seed=3)
    found = chooser.stay(part.outputs, weights, part.queries, k)
    assert found.tolist() == oracle.stay(strategy, model, ranking, weights, k, seed=3)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP"])
@given(st.data())
def test_ties_without_a_tree_are_ties(measure, data):
    """Documents that only this tree tells apart, or that others raise alike, stand in document order without it."""
    model, ranking = data.draw(tied_models_and_data())
    part = Part.of(model, Evaluator(ranking, measure, by_query=True, n_threads=1))
    weights = unsigned_weights(model)
    found = without_each(part.outputs, weights, part.queries, np.arange(model.n_trees))
    for tree in range(model.n_trees):
        scores = oracle.without(model, ranking.X, weights, tree)
        assert found[tree] == oracle.quality(ranking, scores, measure)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_without_a_tree_is_what_the_pruned_model_gives(seed):
    """On features of three values many documents differ in one tree of eight at most."""
    rng = np.random.default_rng(seed)
    ranking = rw.Dataset(rng.integers(0, 3, (200, 4)), rng.integers(0, 4, 200), group=[20] * 10)
    model = rw.LambdaMART(8, 4, 0.1, min_docs_per_leaf=5).fit(ranking).ensemble_
    part = Part.of(model, Evaluator(ranking, by_query=True, n_threads=1))
    found = without_each(part.outputs, unsigned_weights(model), part.queries, np.arange(8))
    for tree in range(8):
        left = model.select(np.delete(np.arange(8), tree))
        assert found[tree] == pytest.approx(rw.evaluate(left, ranking)["nDCG@10"], abs=1e-12)


@settings(max_examples=25)
@given(st.data())
def test_shares_do_not_hang_on_the_numbers_of_leaves(data):
    """A tree whose leaves are numbered otherwise, or one of which is split in two alike, has the very same share."""
    model, ranking = data.draw(tied_models_and_data())
    trees = [model.tree(t) for t in range(model.n_trees)]
    twins = [(0, 0.25, 0.7, (1 % model.n_features, 0.5, 0.7, 0.7)), (0, 0.5, 0.7, 0.7), 0.7]
    whole = rw.Ensemble.from_trees(
        [*trees, *twins],
        n_features=model.n_features,
        tree_weights=[*model.tree_weights, 0.1, 0.1, 0.1],
        base=model.base,
    )
    part = Part.of(whole, Evaluator(ranking, by_query=True, n_threads=1))
    shares = score_shares(part.outputs, unsigned_weights(whole))
    assert shares[-1] == shares[-2] == shares[-3]


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_skip_spreads_evenly(sizes):
    n, k = sizes

    class Outputs:
        n_trees = n

    kept = skip(Outputs(), None, None, k)
    assert len(np.unique(kept)) == n - k
    assert kept[-1] == n - 1
    assert np.diff(kept, prepend=-1).max() - np.diff(kept, prepend=-1).min() <= 1


@pytest.fixture(scope="module")
def case():
    data = rw.make_ranking(n_queries=20, docs_per_query=15, n_features=5, seed=2)
    model = rw.LambdaMART(n_trees=8, n_leaves=5).fit(data).ensemble_
    return Part.of(model, Evaluator(data, by_query=True, n_threads=1)), unsigned_weights(model)


def test_a_function_of_ones_own(case):
    part, weights = case

    def even(outputs, weights, queries, k):
        return np.arange(0, outputs.n_trees, 2)

    chooser = Chooser(even, 4)
    assert (chooser.name, chooser.goes_by_weights) == ("even", True)
    assert chooser.stay(part.outputs, weights, part.queries, 4).tolist() == [0, 2, 4, 6]
    mask = Chooser(lambda *_: np.arange(8) > 2, 3)
    assert mask.stay(part.outputs, weights, part.queries, 3).tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("answer", [[0, 1], [0, 1, 2, 8], [0.5, 1, 2, 3], [0, 0, 1, 2], None, [[0, 1, 2, 3]]])
def test_a_function_that_answers_wrongly(case, answer):
    part, weights = case
    with pytest.raises(rw.RankwoodError, match="must return the 4 different trees of 0 to 7"):
        Chooser(lambda *_: answer, 4).stay(part.outputs, weights, part.queries, 4)


def test_unknown_strategies():
    with pytest.raises(rw.RankwoodError, match=r"no strategy 'quality' \(did you mean quality-loss\?\)"):
        Chooser("quality", 1)
    with pytest.raises(rw.RankwoodError, match="a name or a function, got int"):
        Chooser(3, 1)
