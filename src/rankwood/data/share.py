"""The share that one process of a group holds of a data set: consecutive whole queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankwood.data.dataset import Dataset, fold_numbers, split_numbers
from rankwood.dtypes import IndexArray
from rankwood.group import ALONE, Group


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

    def here(self, data: Dataset, queries: IndexArray) -> IndexArray:
        """Those of some queries of all that are in this share, by their numbers here.

        Parameters
        ----------
        data : Dataset
            The share.
        queries : array of int
            Numbers among all queries.
        """
        numbers = queries - self.first_query
        return numbers[(numbers >= 0) & (numbers < data.n_queries)]

    def own(self, data: Dataset, queries: IndexArray) -> Dataset:
        """The queries of this share among some of all.

        Parameters
        ----------
        data : Dataset
            The share.
        queries : array of int
            Numbers among all queries, in increasing order.
        """
        return data.select_queries(self.here(data, queries))

    def split(self, data: Dataset, fraction: float, *, seed: int = 0) -> tuple[Dataset, Dataset]:
        """What is in this share of the two parts that `Dataset.split` makes of the whole data set."""
        first, second = split_numbers(self.n_queries, fraction, seed)
        return self.own(data, first), self.own(data, second)

    def folds(self, data: Dataset, k: int, *, seed: int = 0) -> Iterator[tuple[Dataset, Dataset]]:
        """What is in this share of the parts that `Dataset.folds` makes of the whole data set."""
        fold_of = fold_numbers(self.n_queries, k, seed)
        for fold in range(k):
            others, those = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            yield self.own(data, others), self.own(data, those)
