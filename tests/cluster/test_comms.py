"""Groups over Dask's connections, in processes of a LocalCluster."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from rankwood.cluster.comms import PIECE, CommGroup
from rankwood.cluster.launch import run_on_workers
from rankwood.errors import ClusterError

SIZES = [1, 2, 3, 5]
RECORD = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")])
ARRAYS = [
    np.array(3),
    np.empty((0, 4), np.float32),
    np.arange(10, dtype=">u2"),
    np.array([True, False]),
    np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    np.zeros(3, RECORD),
    np.array(["ä", "bcd"]),
    np.array([{"object"}, None], dtype=object),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.broadcast_to(np.float64(2.5), (100, 100)),
    np.arange(40_000),
    np.arange(PIECE + 1, dtype=np.uint8),
]


def at(workers, size):
    return dict.fromkeys(workers[:size])


def exchange_all(group, channel, share):
    for array in ARRAYS:
        received = group.exchange([(array, group.rank, to) for to in range(group.size)])
        assert [(sender, to) for _, sender, to in received] == [(sender, group.rank) for sender in range(group.size)]
        for part in [*(part for part, _, _ in received), *group.gather(array)]:
            assert part.dtype == array.dtype
            np.testing.assert_array_equal(part, array)
    return len(ARRAYS)


@pytest.mark.parametrize("size", SIZES)
def test_every_array_arrives_as_it_was(client, workers, size):
    assert run_on_workers(client, exchange_all, at(workers, size)) == [len(ARRAYS)] * size


def sums(group, channel, share, parts):
    results = [group.sum(part[group.rank]) for part in parts]
    return results, group.broadcast({"rank": group.rank}), group.max(np.array([group.rank, -group.rank]))


@pytest.mark.parametrize("size", SIZES)
def test_sums_are_those_of_all(client, workers, size):
    parts = [np.random.default_rng(n).integers(-9, 9, (size, n)) for n in (1, 100, 4095, 4096, 50_001)]
    for results, first, largest in run_on_workers(client, sums, at(workers, size), arguments=[parts]):
        assert first == {"rank": 0}
        assert largest.tolist() == [size - 1, 0]
        for result, part in zip(results, parts, strict=True):
            np.testing.assert_array_equal(result, part.sum(axis=0))


def change_what_was_sent(group, channel, share):
    """Arrays are the program's again when `exchange` returns, and those received are its own."""
    total, mine = 0, np.empty(300_000, dtype=np.int64)
    for step in range(20):
        mine[:] = step
        received = group.gather(mine)
        mine[:] = -1
        for sender, array in enumerate(received):
            if sender != group.rank:
                assert array.flags.writeable
                assert array.flags.aligned
                array += 1
                total += int(array.min() == array.max() == step + 1)
    return total


def test_arrays_can_be_changed_afterwards(client, workers):
    assert run_on_workers(client, change_what_was_sent, at(workers, 3)) == [40] * 3


def threads_left(group, channel, share):
    group.gather(1)
    return os.getpid()


def our_threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rankwood")]


def test_no_thread_and_no_socket_is_left(client, workers):
    import psutil

    def sockets():
        return len(psutil.Process().net_connections())

    run_on_workers(client, threads_left, at(workers, 5))
    before = client.run(sockets)
    for _ in range(3):
        run_on_workers(client, threads_left, at(workers, 5))
    assert not any(client.run(our_threads).values())
    after = client.run(sockets)
    assert all(after[worker] <= before[worker] + 2 for worker in after), (before, after)


def leave_early(group, channel, share):
    group.gather(0)
    return None if group.rank == 0 else group.gather(1)


def test_a_rank_that_ends_before_the_others_is_named(client, workers):
    with pytest.raises(ClusterError, match=f"{workers[0]} has ended its work before"):
        run_on_workers(client, leave_early, at(workers, 3))


def long_work(group, channel, share, seconds, patience):
    group.gather(0)
    if group.rank == 0:
        np_end = time.monotonic() + seconds
        while time.monotonic() < np_end:
            np.sort(np.random.default_rng(0).random(200_000))  # native code, without the interpreter's lock
    return group.gather(group.rank)


def test_a_rank_with_much_to_do_is_not_given_up(client, workers):
    assert run_on_workers(client, long_work, at(workers, 2), arguments=[4.0, 2.0], patience=2.0) == [[0, 1]] * 2


def stranger(group, channel, share):
    """A connection of another run is refused while the group goes on."""
    from distributed import get_worker

    address = group.broadcast(group.address if group.rank == 0 else None)
    refused = None
    if group.rank == 1:
        other = CommGroup(1, "another run", get_worker(), patience=1.0)
        try:
            other.connect([address, other.address], ["first", "second"])
        except ClusterError as error:
            refused = str(error), error.workers
        other.close()
    return group.gather(refused)


def test_connections_of_another_run_are_refused(client, workers):
    sentence, lost = run_on_workers(client, stranger, at(workers, 2))[0][1]
    assert sentence.startswith("worker first cannot be reached")
    assert lost == ("first",)
