"""Which trees stay: every strategy against its slow twin, and the rules for functions of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from oracles import cleaver as oracle
from rankwood.pruning.outputs import unsigned_weights
from rankwood.pruning.queries import Part
from rankwood.pruning.strategies import STRATEGIES, Chooser, score_shares, skip
from strategies.pruning import models_and_data

pytestmark = pytest.mark.native


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=25)
@given(st.data())
def test_strategies_are_their_slow_twins(strategy, data):
    model, ranking = data.draw(models_and_data())
    k = data.draw(st.integers(0, model.n_trees - 1))
    part = Part.of(model, ranking, "nDCG@10", "rankwood", n_threads=1)
    weights = unsigned_weights(model)
    if strategy == "score-loss":  # sums in another order: only where they are exact or clear
        shares = np.sort(score_shares(part.outputs, weights))
        close = np.diff(shares)
        if (close[close > 0] < 1e-9).any():
            return
        if k and k < len(shares) and shares[k] - shares[k - 1] < 1e-9 and shares[k] > 0:
            return
    chooser = Chooser(strategy, model.n_trees - 1, seed=3)
    found = chooser.stay(part.outputs, weights, part.queries, k)
    assert found.tolist() == oracle.stay(strategy, model, ranking, weights, k, seed=3)


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
    return Part.of(model, data, "nDCG@10", "rankwood", n_threads=1), unsigned_weights(model)


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
