"""Ctrl-C: training stops between trees, and what was learnt is kept when asked."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import rankwood as rw
from rankwood.training.boosting import Rounds
from rankwood.training.driver import deferred_interrupt

pytestmark = [pytest.mark.native, pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")]


def ranker(**more) -> rw.LambdaMART:
    return rw.LambdaMART(**{"n_trees": 40, "n_leaves": 4, "min_docs_per_leaf": 5, "learning_rate": 0.3} | more)


def press_at(tree: int):
    def press(env):
        if env.iteration == tree:
            os.kill(os.getpid(), signal.SIGINT)

    return press


def test_ctrl_c_raises(parts):
    train, _ = parts
    before = signal.getsignal(signal.SIGINT)
    interrupted = ranker()
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(train, callbacks=[press_at(3)])
    assert not hasattr(interrupted, "ensemble_")
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_keeps_what_was_learnt(parts):
    train, valid = parts
    kept = ranker(on_interrupt="keep").fit(train, valid=valid, callbacks=[press_at(3)])
    assert kept.ensemble_ == ranker(n_trees=4).fit(train).ensemble_
    assert kept.best_iteration_ == kept.n_trees_ == 4
    assert kept.score(valid) == kept.evals_result_["valid"]["nDCG@10"][-1] == kept.best_score_["valid"]["nDCG@10"]


def test_what_is_kept_is_the_best_so_far(parts):
    train, valid = parts
    plain = ranker(early_stopping_rounds=1000).fit(train, valid=valid)
    values = plain.evals_result_["valid"]["nDCG@10"]
    tree = next(t for t in range(2, 40) if values[t] < max(values[:t]))
    kept = ranker(on_interrupt="keep", early_stopping_rounds=1000).fit(train, valid=valid, callbacks=[press_at(tree)])
    assert len(kept.evals_result_["valid"]["nDCG@10"]) == tree + 1
    assert kept.n_trees_ == values.index(max(values[:tree])) + 1 < tree + 1
    assert kept.score(valid) == max(values[:tree])


@pytest.mark.parametrize("on_interrupt", ["raise", "keep"])
def test_ctrl_c_saves_a_checkpoint(parts, tmp_path, on_interrupt):
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=100)
    given = {"X": train, "valid": valid, "checkpoint": checkpoint}
    try:
        ranker(on_interrupt=on_interrupt).fit(**given, callbacks=[press_at(6)])
    except KeyboardInterrupt:
        assert on_interrupt == "raise"
    assert rw.load_model(checkpoint.path).n_trees == 7
    assert ranker().fit(**given).ensemble_ == ranker().fit(train).ensemble_


def test_a_second_ctrl_c_does_not_wait(parts):
    def press_twice(env):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("not reached")

    with pytest.raises(KeyboardInterrupt):
        ranker(on_interrupt="keep").fit(parts[0], callbacks=[press_twice])


def press_twice_while_growing(tree: int, monkeypatch) -> None:
    grow = Rounds._grow

    def interrupted(self, number, learning_rate):
        if number == tree:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        grow(self, number, learning_rate)

    monkeypatch.setattr(Rounds, "_grow", interrupted)


def test_a_second_ctrl_c_gives_up_the_tree_and_keeps_the_others(parts, monkeypatch):
    train, valid = parts
    press_twice_while_growing(3, monkeypatch)
    kept = ranker(on_interrupt="keep").fit(train, valid=valid)
    assert kept.interrupted_
    assert kept.ensemble_ == ranker(n_trees=3).fit(train).ensemble_
    assert kept.best_iteration_ == 3
    assert kept.score(valid) == kept.evals_result_["valid"]["nDCG@10"][-1] == kept.best_score_["valid"]["nDCG@10"]


@pytest.mark.parametrize("on_interrupt", ["raise", "keep"])
def test_a_second_ctrl_c_before_there_is_a_tree(parts, monkeypatch, on_interrupt):
    press_twice_while_growing(0, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        ranker(on_interrupt=on_interrupt).fit(parts[0])


def test_a_second_ctrl_c_saves_a_checkpoint(parts, monkeypatch, tmp_path):
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=100)
    with monkeypatch.context() as patch:
        press_twice_while_growing(5, patch)
        with pytest.raises(KeyboardInterrupt):
            ranker().fit(parts[0], checkpoint=checkpoint)
    assert rw.load_model(checkpoint.path).n_trees == 5
    assert ranker().fit(parts[0], checkpoint=checkpoint).ensemble_ == ranker().fit(parts[0]).ensemble_


def test_the_users_own_handling_of_signals_is_respected(parts):
    """Ignored stays ignored; another handler is put back."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert ranker(n_trees=5).fit(parts[0], callbacks=[press_at(2)]).n_trees_ == 5
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        own = lambda number, frame: None  # noqa: E731
        signal.signal(signal.SIGINT, own)
        assert ranker(n_trees=5, on_interrupt="keep").fit(parts[0], callbacks=[press_at(2)]).n_trees_ == 3
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_training_in_another_thread(parts):
    """Signals belong to the main thread; a fit elsewhere leaves them alone."""
    fitted = []
    thread = threading.Thread(target=lambda: fitted.append(ranker(n_trees=3).fit(parts[0])))
    thread.start()
    thread.join()
    assert fitted[0].n_trees_ == 3


def test_nothing_pressed():
    with deferred_interrupt() as interrupted:
        assert not interrupted()
