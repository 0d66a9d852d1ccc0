"""Processes that work on one thing together: what they tell each other.

Each process of a group runs the same program on its share of the data. Where the program needs a number about all the
data, every process gives its part and gets the whole. Sums are of whole numbers, so they are exact, and every process
takes the same decisions from the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray

LARGE = 1 << 15  # bytes from which on every process adds up a slice of an array, and not all of it


class Group(ABC):
    """The processes that work together, as one of them sees them.

    A kind of group says how messages travel (`exchange`); all else follows from that. Every process must make the same
    calls in the same order.

    Attributes
    ----------
    rank : int
        Number of this process, from 0 on.
    size : int
        Number of processes.
    """

    rank: int
    size: int

    @abstractmethod
    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        """Send each process its message, and receive what each has for this one.

        Parameters
        ----------
        messages : sequence
            One per process, by rank: arrays, or anything that can be pickled. That to itself comes back as it is.

        Returns
        -------
        list
            What came from every process, by rank.
        """

    def gather(self, value: Any) -> list[Any]:
        """What every process gives here, by rank."""
        return self.exchange([value] * self.size)

    def broadcast(self, value: Any = None) -> Any:
        """What the first process gives; the others' values are not looked at."""
        to_all = [value] * self.size if self.rank == 0 else [None] * self.size
        return self.exchange(to_all)[0]

    def sum(self, values: AnyArray) -> AnyArray:
        """Sum of the arrays of all processes, entry by entry.

        Parameters
        ----------
        values : array
            Integers, or whole numbers whose sums stay below 2^53: anything else would depend on the order.
        """
        if self.size == 1:
            return values
        if values.nbytes < LARGE or self.size == 2:  # two send as much either way, this way in one round
            return _added(self.gather(values))
        flat = np.ascontiguousarray(values).reshape(-1)
        mine = _added(self.exchange(np.array_split(flat, self.size)))
        whole: AnyArray = np.concatenate(self.gather(mine)).reshape(values.shape)
        return whole

    def max(self, values: AnyArray) -> AnyArray:
        """Largest entry of all processes, place by place."""
        return values if self.size == 1 else np.asarray(np.max(self.gather(values), axis=0))

    def total(self, count: int) -> int:
        """Sum of a whole number that every process gives."""
        return count if self.size == 1 else sum(self.gather(count))


def _added(parts: Sequence[AnyArray]) -> AnyArray:
    total: AnyArray = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


class Alone(Group):
    """A group of one process."""

    rank = 0
    size = 1

    def exchange(self, messages: Sequence[Any]) -> list[Any]:
        return list(messages)


ALONE = Alone()
