"""Workers that die, hang, or are lost again and again: the training goes on with the others, to the same result."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

from cluster.toy import N_CELLS, Training, alone
from rankwood.errors import ClusterError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

NUMBERS = np.random.default_rng(1).integers(0, N_CELLS, 3000)
N_ROUNDS = 12


class Fault:
    """A callback that sends a signal to the worker of a rank after a round, once."""

    def __init__(self, client, number: int, rank: int, at_round: int) -> None:
        self.pids, self.number, self.at_round = client.run(os.getpid), number, at_round
        self.victim = sorted(self.pids)[rank]

    def __call__(self, done: int) -> None:
        if done == self.at_round:
            self.at_round = 0
            os.kill(self.pids[self.victim], self.number)


@pytest.mark.parametrize(("size", "rank"), [(5, 0), (3, 2), (2, 1), (1, 0)])
def test_a_worker_that_is_killed(client, workers, caplog, size, rank):
    fault = Fault(client, signal.SIGKILL, rank, 5)
    training = Training(NUMBERS, N_ROUNDS, fault)
    assert training.run(client, workers=workers[:size]) == alone(NUMBERS, N_ROUNDS)
    first, second = training.attempts
    assert first == workers[:size]
    assert fault.victim not in second
    assert training.rounds == [*range(1, N_ROUNDS + 1)]  # it went on where it was
    assert [record.levelno for record in caplog.records if record.name == "rankwood"] == [logging.WARNING]
    assert f"worker {fault.victim}" in caplog.text
    assert "starting again with the workers that remain (retries left: 2)" in caplog.text


def test_workers_killed_at_any_moment(client, workers):
    """Between rounds and inside them, at the start and at the end."""
    for moment in np.random.default_rng(2).random(4):
        client.wait_for_workers(5, timeout=60)
        pids = client.run(os.getpid)
        some = sorted(pids)[:3]
        victim = some[int(moment * 1000) % 3]
        timer = threading.Timer(0.6 * moment, os.kill, (pids[victim], signal.SIGKILL))
        timer.start()
        assert Training(NUMBERS, N_ROUNDS).run(client, workers=some, pause=0.02) == alone(NUMBERS, N_ROUNDS)
        timer.join()
        while victim in client.nthreads():
            time.sleep(0.05)


def test_a_worker_that_hangs(client, workers, caplog):
    fault = Fault(client, signal.SIGSTOP, 1, 4)
    training = Training(NUMBERS, N_ROUNDS, fault)
    try:
        assert training.run(client, workers=workers, patience=2.0) == alone(NUMBERS, N_ROUNDS)
    finally:
        os.kill(fault.pids[fault.victim], signal.SIGCONT)
    assert training.attempts == [workers, [worker for worker in workers if worker != fault.victim]]
    assert f"worker {fault.victim} gave no sign of life for 2 s" in caplog.text
    assert Training(NUMBERS, 3).run(client, workers=workers) == alone(NUMBERS, 3)  # it is well again


def test_retries_are_bounded(client, workers):
    pids = client.run(os.getpid)
    training = Training(NUMBERS, N_ROUNDS, lambda done: os.kill(pids[training.attempts[-1][-1]], signal.SIGKILL))
    sentence = r"worker \S+ (was lost|has left the cluster|left the cluster); given up \(retries=1\)$"
    with pytest.raises(ClusterError, match=sentence):
        training.run(client, workers=workers, retries=1)
    assert len(training.attempts) == 2
