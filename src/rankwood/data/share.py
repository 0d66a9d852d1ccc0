"""The share that one process of a group holds of a data set: consecutive whole queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankwood.group import ALONE, Group

if TYPE_CHECKING:
    from rankwood.data.dataset import Dataset


@dataclass(frozen=True)
class Share:
    """Where the documents of a process stand in a data set that a group of processes holds together.

    Ranks hold queries in order: the first queries are those of rank 0. A rank may have none.

    Parameters
    ----------
    group : Group
        The processes.
    first_query, n_queries : int
        Number of the first query here among all, and how many all are.
    n_docs : int
        Number of all documents.
    """

    group: Group
    first_query: int
    n_queries: int
    n_docs: int

    @classmethod
    def whole(cls, data: Dataset) -> Share:
        """The share of a process that has everything."""
        return cls(ALONE, 0, data.n_queries, data.n_docs)

    @classmethod
    def of(cls, data: Dataset, group: Group) -> Share:
        """The share that `data` is of what all processes have; every process must call this with its own."""
        counts = group.gather((data.n_queries, data.n_docs))
        first = sum(n_queries for n_queries, _ in counts[: group.rank])
        return cls(group, first, sum(n for n, _ in counts), sum(n for _, n in counts))
