"""A group whose processes are threads of this one, to test what several processes would do."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.group import Group


class ThreadGroup(Group):
    """One of several threads that exchange messages over a table which they share."""

    def __init__(self, rank: int, size: int, table: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, size
        self._table, self._barrier = table, barrier

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        self._table[self.rank] = list(messages)
        self._barrier.wait()
        received = [row[self.rank] for row in self._table]
        self._barrier.wait()
        return received


def run(size: int, work: Callable[[Group], Any]) -> list[Any]:
    """What `work` returns in every thread, by rank; an error in one ends all of them."""
    table, barrier, results, errors = [None] * size, threading.Barrier(size, timeout=60), [None] * size, []

    def one(rank: int) -> None:
        try:
            results[rank] = work(ThreadGroup(rank, size, table, barrier))
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def odd_shares(data: Dataset, size: int) -> list[Dataset]:
    """Consecutive whole queries for every rank, of sizes that differ a lot; of three or more ranks one has none."""
    weights = np.array([0.0 if rank == 1 and size > 2 else 1.0 + 3 * rank % 5 for rank in range(size)])
    cuts = np.round(np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum() * data.n_queries).astype(int)
    numbers = np.arange(data.n_queries)
    return [data.select_queries(numbers[begin:end]) for begin, end in itertools.pairwise(cuts)]
