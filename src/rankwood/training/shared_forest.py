"""A forest grown by a group of processes, each with a share of the data: the forest that one process would grow.

Trees do not depend on each other, so every process grows some of them by itself. What it needs for that comes from the
others: all codes, once; or, where trees see few queries each, the documents of these for every tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.data.bins import (
    BinnedDataset,
    CodedDataset,
    CodeRanges,
    empty_bins,
    join_bins,
)
from rankwood.data.dataset import Dataset
from rankwood.data.queries import find_queries
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.group import Group
from rankwood.model.trees import Trees
from rankwood.training.checkpoint import identify_binned
from rankwood.training.full_depth import FullDepthGrower, FullDepthRules, Grower, TaskGrower, running_sums
from rankwood.training.tasks import Task

SMALL_SAMPLE = 0.25  # of all queries: documents of samples up to this size are sent for every tree
MOST_GRADES = 256  # that kernels keep as bytes


def sends_samples(rules: FullDepthRules, n_queries: int) -> bool:
    """Whether the documents of every tree's sample are sent, and never all: whole queries, few of them.

    All codes are sent nevertheless when documents or queries have weights, or labels are no grades.

    Parameters
    ----------
    rules : FullDepthRules
        What a tree sees.
    n_queries : int
        Number of all queries.
    """
    drawn = rules.queries_per_tree
    if drawn is None or rules.replace:
        return False
    return (drawn / max(n_queries, 1) if hasattr(drawn, "__index__") else drawn) <= SMALL_SAMPLE


class SharedGrower(Grower):
    """Grows rounds of trees together with other processes; every process gets all of them.

    An interrupt is heard of after a batch: `stop` is not asked, as processes must not stop at different trees.

    Parameters
    ----------
    train : BinnedDataset
        The share of this process; without features it needs `ranges`.
    rules : FullDepthRules
        How each tree is made.
    task : Task
        The same on all processes.
    n_threads : int
        Threads.
    """

    train: BinnedDataset

    def __init__(self, train: BinnedDataset, rules: FullDepthRules, task: Task, *, n_threads: int) -> None:
        self.train, self.share, self.rules, self.task = train, train.share, rules, task
        shares = _Shares.of(train, n_threads)
        can_send = sends_samples(rules, train.share.n_queries) and shares.grades is not None
        self._rows: _Rows = _SentRows(shares, rules, task) if can_send else _AllRows(shares, rules, task)

    def grow(
        self, seed: int, first: int, n_rounds: int, *, stop: Callable[[], bool] | None = None, n_threads: int
    ) -> Trees:
        group = self.share.group
        ends = [n_rounds * rank // group.size for rank in range(group.size + 1)]
        mine = self._rows.grow(seed, [range(first + a, first + b) for a, b in pairwise(ends)], n_threads)
        return Trees.join([trees for trees in group.gather(mine) if trees is not None])

    def add_out_of_bag(
        self,
        problem: int,
        batch: Trees,
        seed: int,
        first: int,
        sums: FloatArray,
        counts: NDArray[np.uint32],
        *,
        n_threads: int,
    ) -> None:
        X = self.train.by_query(self.train.data.in_memory().X)
        nothing = np.zeros(len(X))
        for number in range(batch.n_trees):
            out = np.ones(len(X), dtype=np.bool_)
            out[self._rows.sample(seed, first + number)] = False
            (values,) = running_sums(batch.part(number, number + 1), X, nothing, n_threads=n_threads)
            sums[out] += values[out]
            counts[out] += 1

    def identify_data(self) -> str:
        return identify_binned(self.train)


@dataclass(frozen=True)
class _Shares:
    """The share of this process, and what all know of all shares."""

    train: BinnedDataset
    ranges: CodeRanges
    has_missing: NDArray[np.uint8]
    sizes: IndexArray  # of all queries
    grades: FloatArray | None  # all labels that there are; None when these are no grades, or there are weights

    @classmethod
    def of(cls, train: BinnedDataset, n_threads: int) -> _Shares:
        data, group = train.data, train.share.group
        ranges = train.with_ranges(n_threads=n_threads).ranges
        labels = np.unique(data.y)[: MOST_GRADES + 1]
        told = group.gather((ranges, data.queries.sizes, labels))
        every = np.unique(np.concatenate([labels for *_, labels in told]))
        weighted = data.weights is not None or data.query_weights is not None
        return cls(
            train,
            CodeRanges.merge([ranges for ranges, *_ in told]),
            group.max(train.has_missing),
            np.concatenate([sizes for _, sizes, _ in told]),
            every if not weighted and _are_grades(every) else None,
        )

    @property
    def group(self) -> Group:
        return self.train.share.group

    def coded(
        self,
        y: FloatArray,
        codes: AnyArray,
        sizes: IndexArray,
        weights: FloatArray | None,
        query_weights: FloatArray | None = None,
    ) -> CodedDataset:
        """Documents of any shares, query by query, as trees are grown on them."""
        queries, n_features = find_queries(len(y), group=sizes), self.train.data.n_features
        data = Dataset.without_matrix(
            y, n_features=n_features, queries=queries, weights=weights, query_weights=query_weights
        )
        offsets = self.train.edges.code_offsets
        return CodedDataset(data, codes, self.has_missing, offsets, self.ranges.low, self.ranges.high, None, None)


def _are_grades(labels: FloatArray) -> bool:
    """Whether the kernel keeps these labels as bytes, so that sums are exact and the other documents do not matter."""
    steps = labels - labels[:1]
    return bool(
        (steps < MOST_GRADES).all() and (steps == np.floor(steps)).all() and (labels[:1] + steps == labels).all()
    )


class _Rows(ABC):
    """Where the documents of a tree come from."""

    @abstractmethod
    def grow(self, seed: int, rounds: list[range], n_threads: int) -> Trees | None:
        """The trees of this process; `rounds` are those of every process. None when it has none."""

    @abstractmethod
    def sample(self, seed: int, number: int) -> IndexArray:
        """Rows of this share, query by query, that the trees of a round are grown on."""


class _AllRows(_Rows):
    """Every process has all documents."""

    def __init__(self, shares: _Shares, rules: FullDepthRules, task: Task) -> None:
        train, group = shares.train, shares.group
        counts = group.gather(train.n_docs)
        self.first_row, self.n_docs, self.rank = sum(counts[: group.rank]), train.n_docs, group.rank
        codes = empty_bins(train.share.n_docs, train.data.n_features, train.bins.dtype.type)
        for place, of_group in enumerate(train.bins):
            codes[place] = np.concatenate(group.gather(of_group))
        y, weights = _gathered(group, train.by_query(train.data.y)), train.data.weights
        weights = None if weights is None else _gathered(group, train.by_query(weights))
        of_queries = train.data.query_weights
        of_queries = None if of_queries is None else _gathered(group, of_queries)
        whole = shares.coded(y, codes, shares.sizes, weights, of_queries)
        self.grower = TaskGrower(whole, rules, task)

    def grow(self, seed: int, rounds: list[range], n_threads: int) -> Trees | None:
        mine = rounds[self.rank]
        return self.grower.grow(seed, mine.start, len(mine), n_threads=n_threads) if mine else None

    def sample(self, seed: int, number: int) -> IndexArray:
        rows: IndexArray = self.grower.sample(seed, number)[0] - self.first_row
        return rows[(rows >= 0) & (rows < self.n_docs)]


class _SentRows(_Rows):
    """The documents of a tree's queries are sent to the process that grows it.

    Which queries these are every process draws for itself, from a data set in which every query has one document and
    no features. A tree is then grown on all documents of a small data set. To this one more query is added, of weight
    0, with all grades that there are: what a tree learns depends on them.
    """

    def __init__(self, shares: _Shares, rules: FullDepthRules, task: Task) -> None:
        assert shares.grades is not None
        self.shares, self.task, self.grades = shares, task, shares.grades
        self.drawn_from = np.flatnonzero(shares.sizes)
        self.drawing = FullDepthGrower(_one_per_query(shares.sizes), rules)
        self.rules = replace(rules, queries_per_tree=None, docs_per_query=1.0, replace=False)

    def grow(self, seed: int, rounds: list[range], n_threads: int) -> Trees | None:
        group = self.shares.group
        parts = group.exchange([[self._documents(seed, number) for number in of_rank] for of_rank in rounds])
        trees = zip(rounds[group.rank], zip(*parts, strict=True), strict=True)  # what comes from every process, by tree
        with ThreadPoolExecutor(n_threads) as pool:
            grown = list(pool.map(lambda one: self._tree(seed, *one), trees))
        return Trees.join(grown) if grown else None

    def sample(self, seed: int, number: int) -> IndexArray:
        data = self.shares.train.data
        return replace(data.queries, order=None).rows_of(self._queries(seed, number))

    def _queries(self, seed: int, number: int) -> IndexArray:
        """The queries of this share that a round draws."""
        train = self.shares.train
        return train.share.here(train.data, self.drawn_from[self.drawing.sample(seed, number)[0]])

    def _documents(self, seed: int, number: int) -> tuple[AnyArray, FloatArray, IndexArray]:
        """Codes and labels of this share's documents for a round, and the sizes of their queries."""
        train, rows = self.shares.train, self.sample(seed, number)
        sizes = train.data.queries.sizes[self._queries(seed, number)]
        return np.ascontiguousarray(train.bins[:, rows]), train.by_query(train.data.y)[rows], sizes

    def _tree(self, seed: int, number: int, parts: Any) -> Trees:
        n_grades = len(self.grades)
        codes, labels, sizes = zip(*parts, strict=True)
        more = np.zeros_like(codes[0], shape=(len(codes[0]), n_grades, *codes[0].shape[2:]))
        y = np.concatenate([*labels, self.grades])
        weights = np.ones(len(y))
        weights[len(y) - n_grades :] = 0.0
        joined = self.shares.coded(y, join_bins([*codes, more]), np.concatenate([*sizes, [n_grades]]), weights)
        return TaskGrower(joined, self.rules, self.task).grow(seed, number, 1, n_threads=1)


def _one_per_query(sizes: IndexArray) -> CodedDataset:
    """A data set whose queries are those of another, each with one document, or none where it had none."""
    queries = find_queries(int(np.count_nonzero(sizes)), group=(sizes > 0).astype(np.int64))
    data = Dataset.without_matrix(np.zeros(queries.offsets[-1]), n_features=0, queries=queries)
    nothing = np.zeros(0, dtype=np.float32)
    none_missing = np.zeros(0, dtype=np.uint8)
    return CodedDataset(
        data, empty_bins(data.n_docs, 0), none_missing, np.zeros(1, np.int64), nothing, nothing, None, None
    )


def _gathered(group: Group, values: AnyArray) -> AnyArray:
    return np.concatenate(group.gather(values))
