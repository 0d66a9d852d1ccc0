"""Early exit as it is learnt: the loss on the data that chose is within what was allowed, and trees are saved."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankwood as rw
from rankwood.shrinking import early_exit
from rankwood.shrinking.early_exit import CHECKPOINTS, as_checkpoints


@pytest.fixture(scope="module")
def parts():
    train, rest = rw.make_ranking(n_queries=240, docs_per_query=60, n_features=10, seed=4).split(0.4)
    return train, rest


@pytest.fixture(scope="module")
def model(parts):
    return rw.LambdaMART(n_trees=90, n_leaves=12, learning_rate=0.15).fit(parts[0]).ensemble_


@pytest.fixture(autouse=True)
def free_checkpoints(monkeypatch):
    """Checkpoints that take no time, so that they are worth it in small models, too."""
    monkeypatch.setattr(early_exit, "CHECKPOINT_LEAVES", 0.0)


@pytest.mark.parametrize(("measure", "level"), [("nDCG@10", 0.95), ("nDCG@5", 0.95), ("nDCG@10", 0.5), ("P@3", 0.9)])
def test_the_loss_is_within_what_is_allowed(parts, model, measure, level):
    valid = parts[1]
    swift = rw.early_exit(model, valid, measure=measure, loss=0.002, level=level)
    notes = swift.metadata["early_exit"]
    lost = rw.evaluate(model, valid, measure)[measure] - rw.evaluate(swift, valid, measure)[measure]
    assert notes["lost"] == pytest.approx(lost, abs=1e-12)
    assert notes["lost_at_most"] >= notes["lost"]
    assert notes["lost_at_most"] <= 0.002
    trees = swift.trees_evaluated(valid.X, qid=valid.qid)
    assert notes["trees_evaluated"] == pytest.approx(trees.mean() / 90)
    assert notes["trees_evaluated"] < 0.95
    assert swift.exit.top == {"nDCG@10": 10, "nDCG@5": 5, "P@3": 3}[measure]
    assert swift.replace(exit=None) == model


def test_more_loss_saves_more_trees_and_results_repeat(parts, model):
    shares = [rw.early_exit(model, parts[1], loss=loss) for loss in (0.0, 0.002, 0.02)]
    evaluated = [one.metadata["early_exit"]["trees_evaluated"] for one in shares]
    assert evaluated[0] >= evaluated[1] >= evaluated[2] < evaluated[0]
    assert rw.early_exit(model, parts[1], loss=0.002, n_threads=1) == shares[1]


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_may_be_lost_the_best_go_through_all_trees(parts, model, seed):
    """Also the one whose gap is the margin, however that is rounded."""
    rng = np.random.default_rng(seed)
    valid = parts[1].select_queries(rng.permutation(parts[1].n_queries)[:20])
    uneven = model.replace(leaf_value=model.leaf_value * rng.uniform(0.5, 2.0, model.n_leaves))
    swift = rw.early_exit(uneven, valid, loss=0.0, checkpoints=CHECKPOINTS)
    trees, scores = swift.trees_evaluated(valid.X, qid=valid.qid), uneven.score(valid.X)
    assert trees.min() < 90
    for query in range(valid.n_queries):
        rows = valid.queries.rows_of(np.array([query]))
        best = rows[np.argsort(-scores[rows], kind="stable")[:10]]
        assert (trees[best] == 90).all()


def test_checkpoints_are_worth_their_time(parts, model, monkeypatch):
    def cost(rule, price):
        """Leaves of the trees that a document goes through, and the price of every checkpoint that it comes to."""
        trees = model.replace(exit=rule).trees_evaluated(parts[1].X, qid=parts[1].qid)
        leaves = [model.select(np.arange(n)).n_leaves + price * sum(c <= n for c in rule.checkpoints) for n in trees]
        return np.mean(leaves)

    found = {}
    for price in (0.0, 60.0, 150.0, 1e9):
        monkeypatch.setattr(early_exit, "CHECKPOINT_LEAVES", price)
        found[price] = rw.early_exit(model, parts[1], loss=0.02).exit
    assert found[0.0] == rw.early_exit(model, parts[1], loss=0.02, checkpoints=CHECKPOINTS).exit
    assert found[1e9] == rw.EarlyExit((), ())
    numbers = [len(rule.checkpoints) for rule in found.values()]
    assert numbers == sorted(numbers, reverse=True)
    assert 0 < numbers[2] < numbers[0]
    for price in (60.0, 150.0):
        assert cost(found[price], price) <= min(cost(found[0.0], price), model.n_leaves)


def test_rows_may_be_scattered(parts, model):
    valid = parts[1]
    mixed = valid[np.random.default_rng(0).permutation(valid.n_docs)]
    assert rw.early_exit(model, mixed, loss=0.002).exit == rw.early_exit(model, valid, loss=0.002).exit


def test_a_learner_and_query_weights_will_do(parts):
    train, valid = parts
    learner = rw.LambdaMART(n_trees=40, n_leaves=6).fit(train)
    weighted = valid.replace(query_weights=np.arange(valid.n_queries) + 1.0)
    swift = rw.early_exit(learner, weighted, loss=0.002)
    lost = rw.evaluate(learner, weighted)["nDCG@10"] - rw.evaluate(swift, weighted)["nDCG@10"]
    assert swift.metadata["early_exit"]["lost"] == pytest.approx(lost, abs=1e-12)
    assert lost <= 0.002


def test_where_nobody_may_stop(parts, model):
    few = parts[1].select_queries(np.arange(5))
    small = rw.Dataset(few.X[:8], few.y[:8], group=[4, 4])  # no query has more documents than `top`
    assert rw.early_exit(model, small).exit.never
    tiny = model.select(np.arange(16))  # there is no checkpoint before the last tree
    assert rw.early_exit(tiny, parts[1]).exit == rw.EarlyExit((), ())
    # AP looks at every document: whoever stops costs something, and nothing may be lost.
    never = rw.early_exit(model, parts[1], measure="AP", loss=0.0, top=1)
    assert never.exit.never or never.metadata["early_exit"]["lost_at_most"] <= 0
    assert all(math.isinf(margin) for margin in never.exit.margins) == never.exit.never


def test_wrong_use(parts, model):
    valid = parts[1]
    for arguments, message in (
        ({"loss": -1}, "loss must be a number of 0 or more"),
        ({"level": 1.0}, "level must lie between 0.5 and 1"),
        ({"checkpoints": [0]}, "a checkpoint is a share of the trees or a number of them"),
        ({"measure": ["nDCG@10", "AP"]}, "one measure"),
    ):
        with pytest.raises(rw.RankwoodError, match=message):
            rw.early_exit(model, valid, **arguments)
    with pytest.raises(rw.ModelError, match="got str"):
        rw.early_exit("model.rw", valid)


def test_checkpoints():
    assert as_checkpoints((0.1, 0.2, 0.3, 0.45, 0.65), 390) == (32, 80, 112, 176, 256)
    assert as_checkpoints((1, 16, 24, 40), 40) == (16, 32)
    assert as_checkpoints((0.99,), 64) == ()
