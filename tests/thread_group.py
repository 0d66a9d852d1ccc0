"""A group whose ranks are threads of this process: for quick tests of programs that ranks run together."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.group import Group


class ThreadGroup(Group):
    """A rank among threads; messages are handed over as they are, but arrays are copied."""

    def __init__(self, rank: int, table: list[list[Any]], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._table, self._barrier = rank, len(table), table, barrier

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        assert len(messages) == self.size
        self._table[self.rank] = [one.copy() if hasattr(one, "copy") else one for one in messages]
        self._barrier.wait()
        received = [row[self.rank] for row in self._table]
        self._barrier.wait()
        received[self.rank] = messages[self.rank]
        return received


def run_threads(function: Callable[..., Any], shares: Sequence[Any], *arguments: Any) -> list[Any]:
    """What `function(group, share, *arguments)` gives on every rank; an error of one ends all and is raised."""
    barrier = threading.Barrier(len(shares), timeout=60)
    table: list[list[Any]] = [[] for _ in shares]
    results: list[Any] = [None] * len(shares)
    errors: list[BaseException] = []

    def rank(number: int) -> None:
        try:
            results[number] = function(ThreadGroup(number, table, barrier), shares[number], *arguments)
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(len(shares))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    assert not barrier.broken, "a rank made fewer calls than the others"
    return results


def run(size: int, work: Callable[[Group], Any]) -> list[Any]:
    """What `work` gives on every one of so many ranks."""
    return run_threads(lambda group, _: work(group), range(size))


def odd_shares(data: Dataset, size: int) -> list[Dataset]:
    """Consecutive whole queries for every rank, of sizes that differ a lot; of three or more ranks one has none."""
    weights = np.array([0.0 if rank == 1 and size > 2 else 1.0 + 3 * rank % 5 for rank in range(size)])
    cuts = np.round(np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum() * data.n_queries).astype(int)
    numbers = np.arange(data.n_queries)
    return [data.select_queries(numbers[begin:end]) for begin, end in itertools.pairwise(cuts)]
