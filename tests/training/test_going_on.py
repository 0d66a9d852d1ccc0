"""Training that goes on: from a model, and from a checkpoint after a kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from strategies.learners import LEARNERS

pytestmark = pytest.mark.native
posix = pytest.mark.skipif(os.name != "posix", reason="kills forked processes")


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_going_on_from_a_model_equals_training_at_once(learner, parts):
    """Also when queries and features are sampled: the stream of a tree is known by its number in the whole model."""
    train, valid = parts
    whole = learner(n_trees=50).fit(train, valid=valid)
    first = learner(n_trees=30).fit(train, valid=valid)
    for start in (first, first.ensemble_):
        second = learner(n_trees=20).fit(train, valid=valid, init_model=start)
        assert second.ensemble_ == whole.ensemble_
        assert_array_equal(second.ensemble_.split_gain, whole.ensemble_.split_gain)
        assert second.evals_result_["valid"]["nDCG@10"] == whole.evals_result_["valid"]["nDCG@10"][30:]
        assert (second.best_iteration_, second.n_trees_) == (20, 50)
    assert first.n_trees_ == 30


def test_early_stopping_keeps_the_model_to_go_on_from(parts):
    train, valid = parts
    first = LEARNERS["LambdaMART"]().fit(train)
    second = LEARNERS["LambdaMART"](n_trees=60, early_stopping_rounds=4).fit(train, valid=valid, init_model=first)
    assert second.n_trees_ == first.n_trees_ + second.best_iteration_
    assert second.ensemble_.select(range(first.n_trees_)) == first.ensemble_
    assert second.score(valid) == second.best_score_["valid"]["nDCG@10"]
    assert second.ensemble_.metadata["init_model"] == first.ensemble_.metadata


def test_going_on_from_a_model_made_elsewhere(data):
    """Its base and weights stay; gains of its splits are not known."""
    start = rw.Ensemble.from_trees([(0, 0.5, -1.0, 1.0)], tree_weights=[3.0], base=7.0, n_features=data.n_features)
    ranker = rw.LambdaMART(n_trees=4, n_leaves=4, min_docs_per_leaf=5).fit(data, init_model=start)
    assert (ranker.ensemble_.base, ranker.ensemble_.tree_weights[0]) == (7.0, 3.0)
    assert ranker.ensemble_.select([0]) == start
    with pytest.raises(rw.RankwoodError, match="knows no gains of its splits: use importance_type='split'"):
        ranker.feature_importances_
    assert ranker.set_params(importance_type="split").feature_importances_.sum() == pytest.approx(1.0)


MOODS = {
    "sampled": ("LambdaMART-sampled", {"n_trees": 24}),
    "stopping early": ("LambdaMART-sampled", {"n_trees": 60, "early_stopping_rounds": 15}),
    "MART": ("MART-sampled", {"n_trees": 24, "measure": ["AP", "nDCG@10"]}),
}


def train_and_kill(mood: str, parts, checkpoint: rw.Checkpoint, kill) -> None:
    """In a process of its own: train, and let `kill` end it."""

    def work() -> None:
        name, parameters = MOODS[mood]
        LEARNERS[name](**parameters).fit(parts[0], valid=parts[1], checkpoint=checkpoint, callbacks=[kill])

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def kill_at(tree: int):
    def kill(env):
        if env.iteration == tree:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


@posix
@pytest.mark.parametrize("mood", MOODS)
def test_a_killed_training_becomes_the_very_model(mood, parts, tmp_path):
    name, parameters = MOODS[mood]
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=4)
    for tree in (2, 7, 9, 14):  # before the first checkpoint, at one, after one; and once more
        train_and_kill(mood, parts, checkpoint, kill_at(tree))
        n_saved = (tree + 1) // 4 * 4
        assert Path(checkpoint.path).exists() == (n_saved > 0)
        assert n_saved == 0 or rw.load_model(checkpoint.path).n_trees == n_saved
    resumed = LEARNERS[name](**parameters).fit(train, valid=valid, checkpoint=checkpoint)
    plain = LEARNERS[name](**parameters).fit(train, valid=valid)
    for ranker, file in ((resumed, tmp_path / "resumed.rw"), (plain, tmp_path / "plain.rw")):
        ranker.ensemble_.save(file)
    assert (tmp_path / "resumed.rw").read_bytes() == (tmp_path / "plain.rw").read_bytes()
    assert resumed.evals_result_ == plain.evals_result_
    assert resumed.best_score_ == plain.best_score_
    assert resumed.best_iteration_ == plain.best_iteration_
    assert (plain.n_trees_ < parameters["n_trees"]) == ("early_stopping_rounds" in parameters)


@posix
def test_a_kill_while_writing_leaves_the_checkpoint_before(parts, tmp_path, monkeypatch):
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=4)
    replace = os.replace

    def last_but_one_act(source, target):
        if (tmp_path / "training.rw").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    monkeypatch.setattr("rankwood.atomic.os.replace", last_but_one_act)
    train_and_kill("sampled", parts, checkpoint, lambda env: None)
    monkeypatch.undo()
    assert rw.load_model(checkpoint.path).n_trees == 4
    resumed = LEARNERS["LambdaMART-sampled"](n_trees=24).fit(parts[0], valid=parts[1], checkpoint=checkpoint)
    assert resumed.ensemble_ == LEARNERS["LambdaMART-sampled"](n_trees=24).fit(parts[0]).ensemble_


def ranker(**more) -> rw.LambdaMART:
    return LEARNERS["LambdaMART-sampled"](**more)


@pytest.fixture
def checkpoint(tmp_path) -> rw.Checkpoint:
    return rw.Checkpoint(tmp_path / "training.rw", every=3)


def test_a_finished_training_is_prolonged(parts, checkpoint):
    train, valid = parts
    for n_trees in (7, 7, 12, 20):
        fitted = ranker(n_trees=n_trees).fit(train, valid=valid, checkpoint=checkpoint)
        assert fitted.ensemble_ == ranker(n_trees=n_trees).fit(train).ensemble_
        assert len(fitted.evals_result_["valid"]["nDCG@10"]) == n_trees
    with pytest.raises(rw.RankwoodError, match="the checkpoint has 20 trees already, more than n_trees=12"):
        ranker(n_trees=12).fit(train, valid=valid, checkpoint=checkpoint)


def test_a_stopped_training_is_prolonged_with_more_patience(parts, checkpoint):
    train, valid = parts
    for rounds in (3, 10):
        fitted = ranker(n_trees=60, early_stopping_rounds=rounds).fit(train, valid=valid, checkpoint=checkpoint)
        plain = ranker(n_trees=60, early_stopping_rounds=rounds).fit(train, valid=valid)
        assert fitted.ensemble_ == plain.ensemble_
        assert fitted.evals_result_ == plain.evals_result_


def test_nothing_is_grown_twice(parts, checkpoint):
    train, valid = parts
    calls = []

    def objective(scores, labels, offsets, weights):
        calls.append(len(scores))
        return scores - labels, np.ones(len(scores))

    lines = []
    for n_trees, expected in ((6, 6), (6, 0), (10, 4)):
        calls.clear(), lines.clear()
        log = rw.log_evaluation(write=lines.append)
        ranker(n_trees=n_trees, objective=objective).fit(train, valid=valid, checkpoint=checkpoint, callbacks=[log])
        assert len(calls) == len(lines) == expected


def test_a_function_is_known_by_its_name(parts, checkpoint):
    """A process that resumes has the same function elsewhere in memory."""

    def make():
        def objective(scores, labels, offsets, weights):
            return scores - labels, np.ones(len(scores))

        return objective

    one, same = make(), make()
    ranker(n_trees=3, objective=one).fit(parts[0], checkpoint=checkpoint)
    ranker(n_trees=6, objective=same).fit(parts[0], checkpoint=checkpoint)
    with pytest.raises(rw.RankwoodError, match=r"was made with other loss.*: delete it to start anew"):
        ranker(n_trees=6, objective=lambda *given: one(*given)).fit(parts[0], checkpoint=checkpoint)


def test_callbacks_that_remember_see_everything_again(parts, checkpoint):
    def decay(env):
        env.params["learning_rate"] *= 0.9

    decay.before_iteration = True
    plain = ranker(n_trees=9).fit(parts[0], callbacks=[decay])
    ranker(n_trees=5).fit(parts[0], callbacks=[decay], checkpoint=checkpoint)
    resumed = ranker(n_trees=9).fit(parts[0], callbacks=[decay], checkpoint=checkpoint)
    assert resumed.ensemble_ == plain.ensemble_
    with pytest.raises(rw.RankwoodError, match=r"learning rate 0.27 for tree 0, now it is 0.3: delete it"):
        ranker(n_trees=9).fit(parts[0], checkpoint=checkpoint)


def test_other_data_or_parameters_are_refused(parts, checkpoint):
    train, valid = parts
    given = {"X": train, "valid": valid, "checkpoint": checkpoint}
    ranker(n_trees=6).fit(**given)
    relabelled = rw.Dataset(train.X, np.roll(train.y, 1), qid=train.qid, feature_names=train.feature_names)
    reweighted = rw.Dataset(
        train.X, train.y, qid=train.qid, weights=np.full(train.n_docs, 2.0), feature_names=train.feature_names
    )
    model = ranker().fit(train).ensemble_
    for parameters, change, message in (
        ({}, {"X": relabelled}, "other training data: delete it"),
        ({}, {"X": reweighted}, "other training data: delete it"),
        ({"max_bins": 16}, {}, "other training data, other data set 'valid': delete it"),
        ({}, {"valid": valid.select_queries(range(5))}, "other data set 'valid': delete it"),
        ({}, {"valid": None}, "other data set 'valid': delete it"),
        ({}, {"init_model": model}, "other model to start from: delete it"),
        ({"n_leaves": 7}, {}, r"other tree rules \(n_leaves 6, now 7\): delete it"),
        ({"query_fraction": 0.7}, {}, r"other tree rules \(query_fraction 0.6, now 0.7\): delete it"),
        ({"sigma": 2.0}, {}, r"other loss \(sigma 1.0, now 2.0\): delete it"),
        ({"learning_rate": 0.2}, {}, r"other update rule \(learning_rate .*, now 0.2\): delete it"),
        ({"random_state": 4}, {}, r"other seed \(.*, now 4\): delete it"),
        ({"measure": "AP"}, {}, r"other measures \(.*nDCG@10.*, now .*AP.*\): delete it"),
        ({"convention": "lightgbm"}, {}, r"other measures \(.*\): delete it"),
    ):
        with pytest.raises(rw.RankwoodError, match=f"training.rw was made with {message} to start anew"):
            ranker(n_trees=8, **parameters).fit(**given | change)
    for parameters in ({"n_jobs": 2}, {"on_interrupt": "keep"}, {"importance_type": "split"}):  # make no difference
        assert ranker(n_trees=8, **parameters).fit(**given).n_trees_ == 8


def test_files_that_are_no_checkpoint(parts, checkpoint, tmp_path):
    path = Path(checkpoint.path)
    ranker(n_trees=6).fit(parts[0], checkpoint=path)
    whole = path.read_bytes()
    for size in (0, 5, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(rw.ModelError, match=r"training.rw: (the file is|this is not a rankwood model)"):
            ranker(n_trees=9).fit(parts[0], checkpoint=path)
    ranker(n_trees=2).fit(parts[0]).ensemble_.save(path)
    with pytest.raises(rw.RankwoodError, match=r"training\.rw is a finished model, not a checkpoint"):
        ranker(n_trees=9).fit(parts[0], checkpoint=path)
    with pytest.raises(IsADirectoryError):
        ranker(n_trees=9).fit(parts[0], checkpoint=tmp_path)
    for every in (0, 1.5, True):
        with pytest.raises(rw.RankwoodError, match="every 1 or more trees"):
            rw.Checkpoint(path, every=every)
    with pytest.raises(rw.RankwoodError, match="a checkpoint needs a number as random_state"):
        ranker(random_state=None).fit(parts[0], checkpoint=path)


def test_an_error_keeps_the_last_checkpoint(parts, checkpoint):
    def fail(env):
        if env.iteration == 7:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        ranker(n_trees=12).fit(parts[0], checkpoint=checkpoint, callbacks=[fail])
    assert rw.load_model(checkpoint.path).n_trees == 6
    assert os.listdir(Path(checkpoint.path).parent) == ["training.rw"]
