"""Growing and pruning by turns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rankwood as rw

pytestmark = pytest.mark.native
SHORT = rw.LineSearch(iterations=4)


@pytest.fixture(scope="module")
def parts():
    data = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=8, seed=4)
    return data.select_queries(range(30)), data.select_queries(range(30, 60))


def ranker():
    return rw.LambdaMART(n_leaves=6, learning_rate=0.2)


def test_every_stage_grows_and_prunes(parts):
    train, valid = parts
    stages = []
    model, told = rw.grow_and_prune(
        ranker(), train, valid, 10, grow=8, keep=4, settings=rw.PruningSettings(search=SHORT), on_stage=stages.append
    )
    assert stages == told
    assert [stage.n_trees <= goal for stage, goal in zip(told, (4, 8, 10), strict=True)] == [True] * 3
    assert [stage.n_grown for stage in told] == [8, told[0].n_trees + 8, told[1].n_trees + 8]
    assert told[-1].valid == rw.evaluate(model, valid)["nDCG@10"]
    assert model.metadata["grow_and_prune"]["size"] == 10


def test_settings_count(parts):
    """Victims are chosen by the data asked for, of at most so many queries, drawn by the seed."""
    train, valid = parts
    seen = []

    def watch(outputs, weights, queries, k):
        seen.append((queries.n_queries, outputs.n_docs))
        return np.arange(outputs.n_trees - k)

    for settings in (
        rw.PruningSettings(search=SHORT),
        rw.PruningSettings(victims="train", search=SHORT),
        *(rw.PruningSettings(search=SHORT, max_queries=7, seed=seed) for seed in (0, 1)),
    ):
        rw.grow_and_prune(ranker(), train, valid, 3, grow=6, keep=3, strategy=watch, settings=settings)
    assert seen[:2] == [(30, valid.n_docs), (30, train.n_docs)]
    assert [n_queries for n_queries, _ in seen[2:]] == [7, 7]
    assert seen[2] != seen[3]


class Mine(rw.LambdaMART):
    """A ranker of somebody's own."""


def pull(scores, labels, offsets, weights):
    return scores - labels, np.ones(len(scores))


@pytest.mark.parametrize(
    "learner",
    [
        rw.MART(n_leaves=6, learning_rate=0.2, missing="zero"),
        rw.MART(n_leaves=6, learning_rate=0.2, objective=pull),
        rw.LambdaMART(n_leaves=6, learning_rate=0.2, objective=pull, early_stopping_rounds=1, on_interrupt="keep"),
        rw.DART(n_leaves=6, rate=0.2, record_sizes=[400]),
        rw.DART(n_leaves=6, rate=0.2, loss="mart"),
        rw.XDART(n_leaves=6),
        rw.InitializedMART(forest=rw.RandomForest(n_trees=5, max_depth=3), learning_rate=0.2),
        Mine(n_leaves=6),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_any_boosted_ranker_with_any_loss(parts, learner):
    train, valid = parts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, stages = rw.grow_and_prune(
            learner, train, valid, 6, grow=6, keep=3, settings=rw.PruningSettings(search=SHORT)
        )
    assert [stage.n_trees <= goal for stage, goal in zip(stages, (3, 6), strict=True)] == [True, True]
    assert 1 <= model.n_trees <= 6
    assert stages[-1].valid == rw.evaluate(model, valid)["nDCG@10"]


def test_a_loss_of_ones_own_that_is_marts_gives_marts_model(parts):
    found = [
        rw.grow_and_prune(
            rw.MART(n_leaves=6, **more), *parts, 4, grow=4, keep=2, settings=rw.PruningSettings(search=SHORT)
        )[1]
        for more in ({}, {"objective": pull})
    ]
    assert [stage.n_trees for stage in found[0]] == [stage.n_trees for stage in found[1]]
    assert [stage.valid for stage in found[0]] == pytest.approx([stage.valid for stage in found[1]], abs=0.02)


def test_mistakes_are_told_in_one_sentence(parts):
    with pytest.raises(rw.RankwoodError, match="1 <= keep <= grow"):
        rw.grow_and_prune(rw.LambdaMART(), *parts, 10, grow=2, keep=4)
    with pytest.raises(rw.RankwoodError, match="give a boosted ranker such as LambdaMART"):
        rw.grow_and_prune(rw.RandomForest(), *parts, 5)
    with pytest.raises(rw.RankwoodError, match="no longer tells grades apart: use task='regression'"):
        rw.grow_and_prune(rw.MART(task="ordinal"), *parts, 5)
    with pytest.raises(rw.RankwoodError, match="settings must be a PruningSettings, got LineSearch"):
        rw.grow_and_prune(rw.LambdaMART(), *parts, 5, settings=SHORT)
