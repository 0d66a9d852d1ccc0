"""Corrective boosting: the slow twin, models after any round, going on from checkpoints and from models."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles.corrective import slow_corrective
from rankwood import _native
from rankwood.training.losses import LambdaLoss, SquaredLoss

pytestmark = pytest.mark.native

SMALL = {"n_trees": 13, "n_leaves": 5, "min_docs_per_leaf": 5, "learning_rate": 0.3}
HOW = rw.Corrective(every=4, passes=2, rate=1.5, l2=0.7)
LEARNERS = {
    "LambdaMART": lambda **more: rw.LambdaMART(**SMALL | {"corrective": HOW} | more),
    "MART": lambda **more: rw.MART(**SMALL | {"corrective": 3, "query_fraction": 0.7} | more),
    "DART": lambda **more: rw.DART(**SMALL | {"corrective": HOW, "rate": 0.3} | more),
    "XDART": lambda **more: rw.XDART(**SMALL | {"corrective": 3, "upper_bound": 3} | more),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def assert_close(one: rw.Ensemble, other: rw.Ensemble) -> None:
    assert_array_equal(one.feature, other.feature)
    assert_array_equal(one.threshold, other.threshold)
    assert_array_equal(one.tree_weights, other.tree_weights)
    assert_allclose(one.leaf_value, other.leaf_value, rtol=1e-9, atol=1e-11)


def assert_same(one, other) -> None:
    assert one.ensemble_.fingerprint() == other.ensemble_.fingerprint()
    assert one.evals_result_ == other.evals_result_
    assert one.best_score_ == other.best_score_
    assert one.best_iteration_ == other.best_iteration_


def weighted(data: rw.Dataset) -> rw.Dataset:
    rng = np.random.default_rng(5)
    return rw.Dataset(
        data.X, data.y, group=np.diff(data.offsets), weights=rng.random(data.n_docs) + 0.1,
        query_weights=rng.random(data.n_queries) + 0.5,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["LambdaMART", "MART", "weights", "init_model"])
def test_it_is_its_slow_twin(kind, data):
    train = weighted(data) if kind == "weights" else data
    start = rw.LambdaMART(n_trees=3, n_leaves=4).fit(data).ensemble_ if kind == "init_model" else None
    learner, loss = (rw.MART, SquaredLoss()) if kind == "MART" else (rw.LambdaMART, LambdaLoss())
    models = slow_corrective(
        train, loss, n_trees=13, n_leaves=5, nu=0.3, every=4, passes=2, rate=1.5, damping=0.7, start=start
    )
    seen = []
    ranker = learner(**SMALL, corrective=HOW)
    ranker.fit(train, init_model=start, callbacks=[lambda env: seen.append(env.model.whole())])
    assert_close(ranker.ensemble_, models[-1])
    for found, expected in zip(seen, models, strict=True):
        assert_close(found, expected)
    if start is not None:
        assert ranker.ensemble_.select(range(3)) == start


def test_the_first_trees_are_as_ever(data):
    """Up to the first correction; then the others are fitted to what is left by corrected trees."""
    plain = rw.LambdaMART(**SMALL).fit(data, eval_set=[data])
    ranker = rw.LambdaMART(**SMALL, corrective=6).fit(data, eval_set=[data])
    curves = [one.evals_result_["train"]["nDCG@10"] for one in (plain, ranker)]
    assert curves[0][:5] == pytest.approx(curves[1][:5], rel=1e-12)
    assert curves[0][5] != curves[1][5]
    seldom = rw.LambdaMART(**SMALL, corrective=50).fit(data)
    assert_close(seldom.ensemble_, plain.ensemble_)
    assert rw.LambdaMART(**SMALL, corrective=0).fit(data).ensemble_ == plain.ensemble_


@every_learner
def test_every_model_is_the_one_that_was_measured(learner, parts):
    """Whatever round a callback looks at, and whenever the model of that round is asked for."""
    train, valid = parts
    then, growing = [], []

    def look(env) -> None:
        then.append(env.model.whole())
        growing.append(env.model)

    ranker = learner().fit(train, eval_set=[valid, train], callbacks=[look])
    for number, model in enumerate(then):
        again = growing[0].whole(number + 1)
        assert again.fingerprint() == model.fingerprint()
        for name, part in (("valid_0", valid), ("train", train)):
            measured = ranker.evals_result_[name]["nDCG@10"][number]
            assert rw.evaluate(again, part)["nDCG@10"] == pytest.approx(measured, rel=1e-12)


@every_learner
def test_early_stopping_restores_leaf_values(learner, parts):
    train, valid = parts
    ranker = learner(n_trees=60, early_stopping_rounds=7).fit(train, valid=valid)
    values = ranker.evals_result_["valid"]["nDCG@10"]
    assert len(values) - ranker.best_iteration_ >= 7
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1
    assert rw.evaluate(ranker.ensemble_, valid)["nDCG@10"] == pytest.approx(max(values), rel=1e-12)
    if not isinstance(ranker, rw.DART):
        shorter = learner(n_trees=ranker.best_iteration_).fit(train)
        assert ranker.ensemble_.fingerprint() == shorter.ensemble_.fingerprint()


def power_cut(at: int):
    def cut(env) -> None:
        if env.iteration == at and not env.replayed:
            raise RuntimeError("power cut")

    return cut


@every_learner
@pytest.mark.parametrize("stopping", [None, 9])
def test_a_training_that_was_cut_becomes_the_very_model(learner, stopping, parts, tmp_path):
    train, valid = parts
    given = {"early_stopping_rounds": stopping, "n_trees": 25}
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=2)
    for at in (1, 4, 6, 8):
        with pytest.raises(RuntimeError, match="power cut"):
            learner(**given).fit(train, valid=valid, checkpoint=checkpoint, callbacks=[power_cut(at)])
    resumed = learner(**given).fit(train, valid=valid, checkpoint=checkpoint)
    assert_same(resumed, learner(**given).fit(train, valid=valid))
    assert_same(learner(**given).fit(train, valid=valid, checkpoint=checkpoint), resumed)  # nothing is left to do


@every_learner
def test_a_checkpoint_is_a_model_that_scores_as_the_training_stood(learner, parts, tmp_path):
    train, valid = parts
    ranker = learner().fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
    saved = rw.load_model(tmp_path / "training.rw")  # all but the base score, which is that of the start
    assert_allclose(np.diff(saved.score(train.X)), np.diff(ranker.predict(train)), rtol=1e-9, atol=1e-12)


def test_a_finished_training_is_prolonged(parts, tmp_path):
    train, valid = parts
    for n_trees in (6, 6, 9, 20):
        ranker = LEARNERS["LambdaMART"](n_trees=n_trees).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
        assert_same(ranker, LEARNERS["LambdaMART"](n_trees=n_trees).fit(train, valid=valid))


@pytest.mark.parametrize("other", [None, 4, rw.Corrective(every=4, passes=2, rate=1.0, l2=0.7)])
def test_other_corrections_are_refused(other, data, tmp_path):
    LEARNERS["LambdaMART"]().fit(data, checkpoint=tmp_path / "training.rw")
    with pytest.raises(
        rw.RankwoodError, match=r"was made with other corrections( \(.*rate 1.5, now 1.0.*\))?: delete it"
    ):
        LEARNERS["LambdaMART"](corrective=other).fit(data, checkpoint=tmp_path / "training.rw")


def test_corrections_that_no_checkpoint_holds_are_refused_before_the_first_tree(data, tmp_path):
    learner = rw.LambdaMART(n_trees=20_000, n_leaves=64, corrective=10)
    with pytest.raises(
        rw.RankwoodError, match=r"2,000 corrections of up to 20,000 trees are too many for a checkpoint"
    ):
        learner.fit(data, checkpoint=tmp_path / "training.rw")


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_ctrl_c_keeps_the_model_that_was_measured(parts):
    train, valid = parts

    def press(env) -> None:
        if env.iteration == 8:
            os.kill(os.getpid(), signal.SIGINT)

    ranker = LEARNERS["LambdaMART"](on_interrupt="keep").fit(train, valid=valid, callbacks=[press])
    assert ranker.interrupted_
    assert ranker.n_trees_ == 9
    assert ranker.ensemble_.fingerprint() == LEARNERS["LambdaMART"](n_trees=9).fit(train).ensemble_.fingerprint()


def test_it_learns_from_all_queries_whatever_trees_see(data):
    """A correction lowers the loss of MART on the training data, all of it."""
    how = {**SMALL, "n_trees": 8, "query_fraction": 0.5, "random_state": 2}
    plain, ranker = rw.MART(**how).fit(data), rw.MART(**how, corrective=8).fit(data)
    errors = [((one.predict(data) - data.y) ** 2).sum() for one in (plain, ranker)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize("change", [{"every": 0}, {"passes": 0}, {"rate": 0.0}, {"rate": np.nan}, {"l2": -1.0}])
def test_wrong_settings(change):
    with pytest.raises(rw.RankwoodError, match="a correction needs"):
        rw.Corrective(**change)


def test_grades_are_refused(data):
    with pytest.raises(rw.RankwoodError, match="corrective fits all trees jointly to one target, and task='ordinal'"):
        rw.MART(task="ordinal", corrective=3).fit(data)


# ---- the kernel


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_sums_over_leaves(n_threads):
    rng = np.random.default_rng(n_threads)
    sizes = [1, 4, 256, 300]
    leaves = [rng.integers(0, size, 500).astype(np.uint8 if size <= 256 else np.uint16) for size in sizes]
    x, y = rng.integers(-(2**50), 2**50, (2, 500))
    sums = [np.full((size, 2), -1) for size in sizes]
    _native.sum_over_leaves(leaves, x, y, n_threads, sums)
    for of_tree, leaf in zip(sums, leaves, strict=True):
        for column, values in enumerate((x, y)):
            expected = np.zeros(len(of_tree), np.int64)
            np.add.at(expected, leaf, values)
            assert_array_equal(of_tree[:, column], expected)


def test_sums_of_arrays_that_do_not_fit_are_refused():
    leaf, x = np.zeros(3, np.uint16), np.zeros(3, np.int64)
    sums = np.zeros((2, 2), np.int64)
    for arguments, message in (
        (([leaf[:2]], x, x, 1, [sums]), "one leaf per document is needed"),
        (([leaf + np.uint16(2)], x, x, 1, [sums]), "leaf out of range"),
        (([leaf.astype(np.int64)], x, x, 1, [sums]), "leaves must be uint8 or uint16"),
        (([leaf], x, x, 1, []), "trees need leaves and sums"),
        (([leaf], x, x, 1, [np.zeros((2, 3), np.int64)]), "sums must have two columns"),
        (([leaf], x, x[:2], 1, [sums]), "x and y must have one entry per document"),
    ):
        with pytest.raises(ValueError, match=message):
            _native.sum_over_leaves(*arguments)
