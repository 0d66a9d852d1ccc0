"""Learners with refit: the leaves of all their trees fitted jointly once training has ended."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.training.losses import LambdaLoss

pytestmark = pytest.mark.native

SMALL = {"n_trees": 12, "n_leaves": 6, "min_docs_per_leaf": 5, "learning_rate": 0.2}
LEARNERS = {
    "LambdaMART": lambda **more: rw.LambdaMART(**SMALL | more),
    "MART": lambda **more: rw.MART(**SMALL | more),
    "DART": lambda **more: rw.DART(**SMALL | {"rate": 0.2} | more),
    "XDART": lambda **more: rw.XDART(**SMALL | {"upper_bound": 2} | more),
    "corrective": lambda **more: rw.LambdaMART(**SMALL | {"corrective": 4} | more),
    "missing": lambda **more: rw.LambdaMART(**SMALL | {"missing": "zero"} | more),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


@every_learner
def test_it_is_the_model_refitted(learner, parts):
    train, valid = parts
    plain = learner().fit(train, eval_set=[train, valid])
    ranker = learner(refit=rw.Refit(rate=0.7, passes=40)).fit(train, eval_set=[train, valid])
    assert ranker.evals_result_ == plain.evals_result_
    assert ranker.best_iteration_ == plain.best_iteration_
    assert_array_equal(ranker.ensemble_.threshold, plain.ensemble_.threshold)
    for name, part in (("train", train), ("valid_1", valid)):
        assert ranker.best_score_[name]["nDCG@10"] == rw.evaluate(ranker.ensemble_, part)["nDCG@10"]
    note = ranker.ensemble_.metadata.get("refit")
    before, after = (one.best_score_["valid_1"]["nDCG@10"] for one in (plain, ranker))
    if note is None:
        assert ranker.ensemble_ == plain.ensemble_
    else:
        assert after == pytest.approx(note["valid_after"], rel=1e-12)
        assert before == pytest.approx(note["valid_before"], rel=1e-12)
        assert after > before


def test_of_lambdamart_it_is_the_function(parts):
    """Whose gradients are the same when gains, cutoff and weights are."""
    train, valid = parts
    model = rw.LambdaMART(**SMALL).fit(train, valid=valid).ensemble_
    ranker = rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid)
    assert ranker.ensemble_ == rw.refit(model, train, valid)
    assert "refit" in ranker.ensemble_.metadata


def test_an_objective_of_ones_own(parts):
    train, valid = parts

    def objective(scores, labels, offsets, weights):
        gradient, hessian = np.empty_like(scores), np.empty_like(scores)
        LambdaLoss().prepare(labels, offsets, weights).gradients(scores, gradient, hessian)
        return -gradient, hessian

    own = rw.LambdaMART(**SMALL, objective=objective, refit=True).fit(train, valid=valid)
    assert own.ensemble_ == rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid).ensemble_


def test_the_trees_of_a_model_to_go_on_from_stay(parts):
    train, valid = parts
    start = rw.LambdaMART(n_trees=4, n_leaves=4).fit(train)
    ranker = rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid, init_model=start)
    plain = rw.LambdaMART(**SMALL).fit(train, valid=valid, init_model=start)
    assert ranker.ensemble_.select(range(4)) == start.ensemble_
    assert ranker.ensemble_.select(range(4, 16)) != plain.ensemble_.select(range(4, 16))
    forest = rw.RandomForest(n_trees=5).fit(train)
    boosted = rw.InitializedMART(n_trees=6, forest=forest, refit=rw.Refit(passes=5)).fit(train, valid=valid)
    assert boosted.ensemble_.select(range(5)) == boosted.initial_ensemble_


def test_early_stopping_comes_first(parts):
    train, valid = parts
    given = {**SMALL, "n_trees": 80, "early_stopping_rounds": 5}
    plain = rw.LambdaMART(**given).fit(train, valid=valid)
    ranker = rw.LambdaMART(**given, refit=True).fit(train, valid=valid)
    assert ranker.best_iteration_ == plain.best_iteration_ < 80
    assert ranker.ensemble_ == rw.refit(plain, train, valid)


def test_with_a_checkpoint_it_is_the_very_model(parts, tmp_path):
    train, valid = parts
    for _ in range(2):
        ranker = rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
        assert ranker.ensemble_ == rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid).ensemble_


def test_missing_values_count_as_they_did_in_training(parts):
    rng = np.random.default_rng(1)
    train, valid = (part.replace(X=np.where(rng.random(part.X.shape) < 0.3, np.nan, part.X)) for part in parts)
    ranker = rw.LambdaMART(**SMALL, missing="median", refit=True).fit(train, valid=valid)
    assert ranker.best_score_["valid"]["nDCG@10"] == rw.evaluate(ranker.ensemble_, valid)["nDCG@10"]


def test_bins_and_threads_change_nothing(parts):
    train, valid = parts
    binned = rw.BinnedDataset.make(train)
    found = [
        rw.LambdaMART(**SMALL, refit=True, n_jobs=n_jobs).fit(data, valid=other).ensemble_.fingerprint()
        for data, other in ((train, valid), (binned, rw.BinnedDataset.encode(valid, binned.edges)))
        for n_jobs in (1, 2, 3)
    ]
    assert len(set(found)) == 1


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_after_ctrl_c_nothing_is_refitted(parts):
    train, valid = parts

    def press(env) -> None:
        if env.iteration == 4:
            os.kill(os.getpid(), signal.SIGINT)

    ranker = rw.LambdaMART(**SMALL, refit=True, on_interrupt="keep").fit(train, valid=valid, callbacks=[press])
    assert ranker.interrupted_
    assert ranker.ensemble_ == rw.LambdaMART(**SMALL | {"n_trees": 5}).fit(train).ensemble_


def test_ctrl_c_while_refitting_keeps_the_trees(parts, monkeypatch):
    train, valid = parts

    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwood.training.refitting.refit_model", interrupted)
    ranker = rw.LambdaMART(**SMALL, refit=True, on_interrupt="keep").fit(train, valid=valid)
    assert ranker.interrupted_
    assert ranker.ensemble_ == rw.LambdaMART(**SMALL).fit(train).ensemble_
    with pytest.raises(KeyboardInterrupt):
        rw.LambdaMART(**SMALL, refit=True).fit(train, valid=valid)


def test_what_cannot_be(parts):
    train, valid = parts
    no_validation = "refit chooses its number of passes on validation data, of which there is none"
    for given, words in (
        ({}, no_validation),
        ({"eval_set": [train]}, no_validation),
        ({"valid": valid, "eval_metric": lambda labels, scores, offsets: 0.0}, "must be one of rankwood's"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.LambdaMART(**SMALL, refit=True).fit(train, **given)
    with pytest.raises(rw.RankwoodError, match="refit fits all trees jointly to one target, and task='ordinal'"):
        rw.MART(**SMALL, task="ordinal", refit=True).fit(train, valid=valid)
