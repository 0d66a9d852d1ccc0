"""Workers that die, hang, or are lost again and again: the training goes on with the others, to the same result."""

from __future__ import annotations

import logging
import os
import signal
import time

import numpy as np
import pytest

from cluster.toy import N_CELLS, Training, alone
from rankwood.errors import ClusterError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

NUMBERS = np.random.default_rng(1).integers(0, N_CELLS, 3000)
N_ROUNDS = 12


class Fault:
    """A callback that sends a signal to a worker after a round, once."""

    def __init__(self, client, number: int, at_round: int) -> None:
        self.pids, self.number, self.at_round = client.run(os.getpid), number, at_round

    def __call__(self, done: int) -> None:
        if done == self.at_round:
            self.at_round = 0
            self.victim = sorted(self.pids)[self.victim_rank]
            os.kill(self.pids[self.victim], self.number)

    victim_rank = 1


@pytest.mark.parametrize("rank", [0, 2])
def test_a_worker_that_is_killed(client, workers, caplog, rank):
    fault = Fault(client, signal.SIGKILL, 5)
    fault.victim_rank = rank
    training = Training(NUMBERS, N_ROUNDS, fault)
    assert training.run(client, workers=workers) == alone(NUMBERS, N_ROUNDS)
    first, second = training.attempts
    assert fault.victim in first
    assert fault.victim not in second
    assert training.rounds == [*range(1, 6), *range(6, N_ROUNDS + 1)]
    assert [record.levelno for record in caplog.records if record.name == "rankwood"] == [logging.WARNING]
    assert f"{fault.victim}" in caplog.text
    assert "starting again with the workers that remain" in caplog.text


def test_the_only_worker_is_killed(client, workers):
    fault = Fault(client, signal.SIGKILL, 3)
    fault.victim_rank = 0
    training = Training(NUMBERS, 6, fault)
    only = {workers[0]}

    def is_chosen(worker):  # the one, and whichever is started in its place
        return worker in only or worker not in workers

    chosen = type("Chosen", (), {"__contains__": lambda self, worker: is_chosen(worker)})()
    client.wait_for_workers(5)
    try:
        assert training.run(client, workers=chosen, retries=10) == alone(NUMBERS, 6)
    except ValueError as error:  # no worker has been started in its place yet
        assert "number sections must be larger than 0" in str(error)


def test_a_worker_that_hangs(client, workers, caplog):
    fault = Fault(client, signal.SIGSTOP, 4)
    training = Training(NUMBERS, N_ROUNDS, fault)
    try:
        assert training.run(client, workers=workers, patience=2.0) == alone(NUMBERS, N_ROUNDS)
    finally:
        os.kill(fault.pids[fault.victim], signal.SIGCONT)
    assert training.attempts == [workers, [worker for worker in workers if worker != fault.victim]]
    assert f"worker {fault.victim} gave no sign of life for 2 s" in caplog.text
    assert Training(NUMBERS, 3).run(client, workers=workers) == alone(NUMBERS, 3)  # it is well again


def test_retries_are_bounded(client, workers):
    left = [5]

    class Again(Fault):
        def __call__(self, done: int) -> None:
            os.kill(self.pids[training.attempts[-1][-1]], self.number)

    training = Training(NUMBERS, N_ROUNDS, Again(client, signal.SIGKILL, 0))
    start = time.monotonic()
    with pytest.raises(
        ClusterError, match=r"^given up after 1 retries: (the connection to )?worker .* (was lost|has left)"
    ):
        training.run(client, workers=workers, retries=1)
    assert len(training.attempts) == 2
    assert time.monotonic() - start < 60
    assert left
