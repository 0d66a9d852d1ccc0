"""Programs on all workers: results, messages, errors, two at once, Ctrl-C, memory."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from cluster.toy import N_CELLS, Training, alone
from rankwood.cluster.channel import RankEnd
from rankwood.cluster.client import check_memory, open_client, workers_of
from rankwood.cluster.launch import RemoteTraceback, _Watch, run_on_workers, supervise
from rankwood.errors import ClusterError, DataError, MissingPackageError
from rankwood.tasks import import_distributed

NUMBERS = np.random.default_rng(0).integers(0, N_CELLS, 2000)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_result_does_not_depend_on_the_number_of_workers(client, workers, size):
    training = Training(NUMBERS, 6)
    assert training.run(client, workers=workers[:size]) == alone(NUMBERS, 6)
    assert training.rounds == [1, 2, 3, 4, 5, 6]
    assert training.checkpoint == alone(NUMBERS, 6)


def test_the_client_can_stop_it(client, workers):
    training = Training(NUMBERS, 20, lambda done: "stop" if done == 4 else None)
    assert training.run(client, workers=workers[:2]) == alone(NUMBERS, 4)


def fails(group, channel, share, error):
    group.gather(0)
    if group.rank == 1:
        raise error
    group.gather(1)  # the others wait here


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DataError("line 3: no label"), DataError),
        (MissingPackageError("x", "this", "y"), MissingPackageError),
        (ZeroDivisionError("division by zero"), ZeroDivisionError),
    ],
)
def test_errors_of_a_program_are_raised_as_they_are(client, workers, error, expected, caplog):
    attempts = []

    def attempt(present):
        attempts.append(present)
        return run_on_workers(client, fails, dict.fromkeys(workers[:3]), arguments=[error])

    with pytest.raises(expected) as raised:
        supervise(client, attempt)
    assert type(raised.value) is expected
    assert str(raised.value) == str(error)
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "in fails" in str(raised.value.__cause__)
    assert len(attempts) == 1
    assert not [record for record in caplog.records if record.name == "rankwood"]


def fails_strangely(group, channel, share):
    raise Unpicklable("this", "that")


def test_an_error_that_cannot_travel_still_says_what_happened(client, workers):
    with pytest.raises(Exception, match="Unpicklable: this and that"):
        run_on_workers(client, fails_strangely, dict.fromkeys(workers[:2]))


def no_share():
    raise DataError("the file is empty")


def first_round(group, channel, share):
    return group.gather(share)


def test_an_error_of_a_share_ends_all(client, workers):
    shares = {worker: client.submit(no_share if rank == 1 else int, pure=False) for rank, worker in enumerate(workers)}
    with pytest.raises(DataError, match="the file is empty"):
        run_on_workers(client, first_round, shares)


def test_an_error_of_the_callback_ends_all(client, workers):
    def callback(done):
        if done == 3:
            raise LookupError("my own")

    with pytest.raises(LookupError, match="my own"):
        Training(NUMBERS, 10, callback).run(client, workers=workers[:3])


def whisper(group, channel, share):
    for number in range(100):
        channel.tell((group.rank, number, b"x" * 1000))
    return channel.ask(b"y" * 3_000_000)


def test_many_and_large_messages(client, workers):
    heard = []

    def hear(rank, message):
        if isinstance(message, bytes):
            return len(message) + rank
        assert message[0] == rank
        return heard.append(message[:2])

    assert run_on_workers(client, whisper, dict.fromkeys(workers[:2]), on_message=hear) == [3_000_000, 3_000_001]
    assert [number for rank, number in heard if rank == 0] == list(range(100))
    assert [number for rank, number in heard if rank == 1] == list(range(100))


def nested(group, channel, share):
    from distributed import get_client

    return run_on_workers(get_client(), first_round, {group.broadcast("no matter"): 0})


def test_a_rank_cannot_start_another_run(client, workers):
    with pytest.raises(ClusterError, match="cannot be started by one of its own ranks"):
        run_on_workers(client, nested, dict.fromkeys(workers[:2]))


def test_two_at_once_take_turns(client, workers, caplog):
    caplog.set_level(logging.INFO, "rankwood")
    results = {}

    def train(name, some):
        results[name] = Training(NUMBERS, 8).run(client, workers=some, pause=0.15)

    sets = {"front": workers[:3], "back": workers[2:], "all": workers[::-1], "first": workers[:1]}
    threads = [threading.Thread(target=train, args=item) for item in sets.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == dict.fromkeys(sets, alone(NUMBERS, 8))
    assert "other work of rankwood runs there" in caplog.text


def test_interrupt_ends_after_the_round(client, workers):
    pressed = []
    training = Training(NUMBERS, 10**6, lambda done: pressed.append(1) if done == 3 else None)
    with pytest.raises(KeyboardInterrupt):
        training.run(client, workers=workers[:3], interrupted=lambda: bool(pressed), pause=0.05)
    done, _ = training.checkpoint
    assert 3 <= done < 60
    assert training.checkpoint == alone(NUMBERS, done)


def test_interrupt_is_told_though_other_ranks_miss_the_first_that_ended():
    watch = _Watch(None, ["front", "back"], [], None, None)
    watch.errors[1] = ClusterError("worker front stopped: KeyboardInterrupt:", ["front"])
    with pytest.raises(ClusterError, match="front stopped"):
        watch.results()
    watch.ended[0], watch.was_interrupted = None, True
    with pytest.raises(KeyboardInterrupt):
        watch.results()
    watch.errors[1] = DataError("of the program")
    with pytest.raises(DataError):
        watch.results()


def test_a_second_interrupt_ends_at_once(client, workers):
    def callback(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Training(NUMBERS, 10**6, callback).run(client, workers=workers[:3])
    assert Training(NUMBERS, 3).run(client, workers=workers[:3]) == alone(NUMBERS, 3)  # the workers are free again


DIES = """
import os, sys
import numpy as np
from distributed import Client
from cluster.toy import Training
if __name__ == "__main__":
    client = Client(sys.argv[1])
    Training(np.arange(100), 10**6, lambda done: os.kill(os.getpid(), 9) if done == 3 else None).run(client, pause=0.05)
"""


def test_ranks_end_when_the_client_dies(client, workers):
    path = os.pathsep.join(filter(None, sys.path))
    code = subprocess.run(
        [sys.executable, "-c", DIES, client.scheduler.address], env=os.environ | {"PYTHONPATH": path}, timeout=60
    ).returncode
    assert code == -signal.SIGKILL
    end = time.monotonic() + 30
    while any(client.run(our_threads).values()) and time.monotonic() < end:
        time.sleep(0.2)
    assert not any(client.run(our_threads).values())
    assert Training(NUMBERS, 3).run(client) == alone(NUMBERS, 3)  # its locks do not outlive it by much


def our_threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rankwood")]


def test_memory_is_checked_before_the_start(client, workers):
    limit = client.scheduler_info(n_workers=-1)["workers"][workers[0]]["memory_limit"]
    check_memory(client, dict.fromkeys(workers, limit // 4))
    check_memory(client, {"tcp://unknown:1": 10**15})
    with pytest.raises(ClusterError, match=rf"worker {workers[1]} has too little memory: the work takes .* GB, but of"):
        check_memory(client, {workers[0]: 1, workers[1]: limit})


@pytest.mark.parametrize("text", ["", "local:0", "local:-1", "local:x", "no such file.json", "tcp://", "host"])
def test_a_wrong_cluster_is_one_sentence(text):
    sentence = "^--dask "
    with pytest.raises(ClusterError, match=sentence), open_client(text):
        pass


def test_a_scheduler_that_is_not_there_is_one_sentence():
    sentence = "^no Dask scheduler answers at tcp://127.0.0.1:9: "
    with pytest.raises(ClusterError, match=sentence), open_client("tcp://127.0.0.1:9"):
        pass


def test_without_dask_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        MissingPackageError,
        match=r"needs the package distributed: pip install 'rankwood\[dask\]' \('.\[dask\]' in a checkout\)$",
    ):
        import_distributed("training on a cluster")


def test_open_client_by_address_and_file(client, tmp_path):
    path = tmp_path / "scheduler.json"
    # Not by write_scheduler_file: what it writes of busy workers is not always JSON.
    path.write_text(json.dumps({"address": client.scheduler.address}))
    for text in (client.scheduler.address, client.scheduler.address.removeprefix("tcp://"), str(path)):
        with open_client(text) as other:
            assert workers_of(other) == workers_of(client)


CTRL_C = """
import os, signal, sys, threading
import numpy as np
from cluster.toy import Training, alone
from rankwood.cluster.client import open_client
from rankwood.training.driver import deferred_interrupt
if __name__ == "__main__":
    numbers = np.arange(100)
    press = lambda done: os.killpg(0, signal.SIGINT) if done == 3 else None
    training = Training(numbers, 10**6, press)
    with open_client("local:2") as client:
        try:
            with deferred_interrupt() as interrupted:
                training.run(client, pause=0.05, interrupted=interrupted)
        except KeyboardInterrupt:
            assert len(training.attempts) == 1
            assert training.checkpoint == alone(numbers, training.checkpoint[0])
            print("stopped after a round", len(client.nthreads()))
"""


def test_ctrl_c_reaches_ranks_through_the_client_only(tmp_path):
    """The terminal sends it to all processes; those of a local cluster leave it to the client."""
    script = tmp_path / "script.py"
    script.write_text(CTRL_C)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=90,
        text=True,
        capture_output=True,
        start_new_session=True,
    )
    assert done.stdout == "stopped after a round 2\n", done.stderr
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_a_rank_ends_when_its_queue_is_gone_already(client):
    """The client may close the queues of a run before a slow rank does: then nothing wakes the rank up any more."""
    rank = RankEnd(client, "faster-client", 0, lambda: True)
    time.sleep(0.3)  # it listens
    client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.extensions["queues"].queues.clear())
    closing = threading.Thread(target=rank.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
