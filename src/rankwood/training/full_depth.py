"""Trees of full depth, each grown on a sample of its own: the rules of one tree, and what grows many."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.bins import ByQuery, CodedDataset
from rankwood.data.share import Share
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees, offsets_of
from rankwood.training.checkpoint import (
    identify_data,
)
from rankwood.training.losses import document_weights
from rankwood.training.tasks import Regression, Task


@dataclass(frozen=True)
class FullDepthRules:
    """How each tree of a forest is made: what it sees, and when it stops.

    Parameters
    ----------
    criterion, max_features, redraw, thresholds
        What splits lower, and which are tried at each node: the parameters of these names of `rankwood.RandomForest`,
        which explains them all.
    missing_apart : bool, default False
        Whether a split in which values are missing has a third side for them.
    queries_per_tree, docs_per_tree, docs_per_query, replace
        The sample that a tree is grown on.
    max_depth, n_leaves, min_docs_per_leaf, min_gain
        Limits of a tree; by default there are none.
    """

    criterion: Literal["variance", "entropy"] = "variance"
    max_features: float | Literal["sqrt", "ceil-sqrt"] | None = "sqrt"
    redraw: bool = False
    thresholds: Literal["best", "random"] = "best"
    missing_apart: bool = False
    queries_per_tree: float | None = None
    docs_per_tree: float | None = None
    docs_per_query: float | None = None
    replace: bool | None = None
    max_depth: int | None = None
    n_leaves: int | None = None
    min_docs_per_leaf: float = 1
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        if self.criterion not in ("variance", "entropy"):
            raise RankwoodError(f"criterion must be 'variance' or 'entropy', got {self.criterion!r}")
        if self.thresholds not in ("best", "random"):
            raise RankwoodError(f"thresholds must be 'best' or 'random', got {self.thresholds!r}")
        if self.missing_apart and (self.n_leaves is not None or self.thresholds == "random"):
            raise RankwoodError("splits in three go with all thresholds and no n_leaves: limit trees by max_depth")
        samples = ("queries_per_tree", "docs_per_tree", "docs_per_query")
        given = [name for name in samples if getattr(self, name) is not None]
        if len(given) > 1:
            raise RankwoodError(f"give {given[0]} or {given[1]}, not both: a tree sees one kind of sample")
        for name in ("max_features", *samples):
            _check_share(name, getattr(self, name))
        if self.max_depth is not None and self.max_depth < 0:
            raise RankwoodError(f"max_depth must be at least 0, or None for no limit, got {self.max_depth}")
        if self.n_leaves is not None and self.n_leaves < 2:
            raise RankwoodError(
                f"n_leaves must be at least 2, as a tree without a split ranks nothing, or None for no limit, "
                f"got {self.n_leaves}"
            )
        least = self.min_docs_per_leaf
        if not least > 0 or (least > 1 and least != math.floor(least)):
            raise RankwoodError(f"min_docs_per_leaf must be a whole number, or a fraction below 1, got {least}")
        if not 0.0 <= self.min_gain < math.inf:
            raise RankwoodError(f"min_gain must be a number of at least 0, got {self.min_gain}")

    def n_tried(self, n_features: int) -> int:
        """Number of features drawn at each node, of so many.

        Examples
        --------
        >>> FullDepthRules(max_features="sqrt").n_tried(46), FullDepthRules(max_features=0.1).n_tried(136)
        (6, 13)
        """
        if self.max_features is None:
            return max(1, n_features)
        if self.max_features == "sqrt":
            return max(1, math.isqrt(n_features))
        if self.max_features == "ceil-sqrt":
            return max(1, math.isqrt(max(n_features - 1, 0)) + 1)
        if _is_count(self.max_features):
            return min(int(self.max_features), max(1, n_features))
        return max(1, int(self.max_features * n_features))

    def sampling(self, sizes: IndexArray) -> _native.SampleRules:
        """The sample that a tree draws, for the kernel, when queries have these sizes."""
        if self.docs_per_query is not None:
            whole = not _is_count(self.docs_per_query) and self.docs_per_query == 1.0
            return _native.SampleRules(
                False, bool(self.replace), 1, float(sizes.sum() if whole else self.docs_per_query)
            )
        queries = self.queries_per_tree is not None
        name = "queries_per_tree" if queries else "docs_per_tree"
        given = self.queries_per_tree if queries else 1.0 if self.docs_per_tree is None else self.docs_per_tree
        assert given is not None
        n_all = int(np.count_nonzero(sizes)) if queries else int(sizes.sum())
        n_drawn = int(given) if _is_count(given) else max(1, round(given * n_all))
        replace = not queries if self.replace is None else self.replace
        if n_drawn > n_all and not replace:
            kind = "queries" if queries else "documents"
            raise RankwoodError(
                f"{name}={given} is more than the {n_all} {kind} of the data: draw fewer, or with replace=True"
            )
        return _native.SampleRules(queries, replace, n_drawn, 0.0)

    def native(self, n_features: int) -> _native.FullDepthRules:
        """The other rules, for the kernel."""
        return _native.FullDepthRules(
            self.n_tried(n_features),
            float(self.min_docs_per_leaf),
            self.max_depth,
            self.n_leaves,
            float(self.min_gain),
            self.redraw,
            self.thresholds == "random",
            self.missing_apart,
        )


def _is_count(share: Any) -> bool:
    return hasattr(share, "__index__")


def _check_share(name: str, share: Any) -> None:
    """Refuse what is neither a count (a whole number from 1 up) nor a fraction (a float up to 1.0)."""
    if share is None or (name == "max_features" and share in ("sqrt", "ceil-sqrt")):
        return
    if _is_count(share) and not isinstance(share, bool):
        good = share >= 1
    else:
        good = isinstance(share, float) and 0.0 < share <= 1.0
    if not good:
        also = ", 'sqrt', 'ceil-sqrt'" if name == "max_features" else ""
        raise RankwoodError(
            f"{name} must be a count (a whole number from 1 up), a fraction (up to 1.0){also} or None, got {share!r}"
        )


# Columns in the order in which the kernel gives them.
GROWN = ("feature", "threshold", "left", "right", "missing_left", "leaf_value", "split_gain", "node_count")


class FullDepthGrower:
    """Grows trees of full depth on one coded data set, many in one native call.

    Weights of documents and queries count in means and gains. Tree number t of a seed draws from a stream of its own:
    it does not depend on which trees are grown with it, nor on the number of threads.

    Parameters
    ----------
    train : CodedDataset
        What the trees are grown on.
    rules : FullDepthRules
        How each is made.
    target : array of float, optional
        What the trees learn, one number per row of the data set in input order; its labels unless given.

    Examples
    --------
    >>> import rankwood as rw
    >>> from rankwood.data.bins import CodedDataset
    >>> data = rw.Dataset([[0.0], [1.0], [2.0]], [0, 0, 1], group=[3])
    >>> grower = FullDepthGrower(CodedDataset.make(data), FullDepthRules(replace=False))
    >>> grower.grow(0, 0, 1, n_threads=1).threshold
    array([1.5])
    """

    def __init__(self, train: CodedDataset, rules: FullDepthRules, target: FloatArray | None = None) -> None:
        data = train.data
        labels = data.y if target is None else np.asarray(target, dtype=np.float64)
        if labels.shape != (data.n_docs,) or not np.isfinite(labels).all():
            raise DataError(f"target must have one finite number per row ({data.n_docs}), got shape {labels.shape}")
        given = None if data.weights is None else train.by_query(data.weights)
        weights = document_weights(data.offsets, given, data.query_weights)
        total = float(data.n_docs if weights is None else weights.sum())
        if not np.abs(labels).max(initial=0.0) * total < 1e100 or not total < 1e100:
            raise DataError("labels and weights are too large to be added up: scale them down")
        self.train, self.rules, self.target = train, rules, labels
        self._sampling = rules.sampling(data.queries.sizes)
        self._rules = rules.native(data.n_features)
        try:
            self._native = _native.ForestGrower(
                train.codes,
                train.has_missing,
                train.offsets,
                train.low,
                train.high,
                data.offsets,
                train.by_query(labels),
                weights,
                rules.criterion == "entropy",
            )
        except ValueError as error:
            raise DataError(str(error)) from None

    def grow(
        self, seed: int, first: int, n_trees: int, *, stop: Callable[[], bool] | None = None, n_threads: int
    ) -> Trees:
        """The trees number `first` to `first + n_trees - 1` of a seed; fewer when `stop()` becomes true meanwhile."""
        sizes, *arrays = self._native.grow(_word(seed), first, n_trees, self._sampling, self._rules, stop, n_threads)
        columns = dict(zip(GROWN, arrays, strict=True))
        columns["missing_left"] = columns["missing_left"].view(np.bool_)
        return Trees(**columns, node_offsets=offsets_of(sizes))

    def fingerprint_arrays(self) -> tuple[AnyArray, ...]:
        """Arrays besides the data and the rules that determine the trees."""
        return self.target, self.train.codes, self.train.low, self.train.high

    def sample(self, seed: int, tree: int) -> tuple[IndexArray, IndexArray]:
        """Rows of the data set that a tree is grown on, query by query, and how often each was drawn."""
        rows, times = self._native.sample(_word(seed), tree, self._sampling)
        places = rows.astype(np.int64)
        return (places if self.train.rows is None else self.train.rows[places]), times.astype(np.int64)

    def add_out_of_bag(
        self,
        batch: Trees,
        seed: int,
        first: int,
        sums: FloatArray,
        counts: NDArray[np.uint32],
        *,
        n_threads: int,
    ) -> None:
        """Add the leaf values that trees give to documents they were not grown on, query by query, and count them."""
        X = self.train.data.X if self.train.X is None else self.train.X  # an error when they were dropped
        self._native.add_out_of_bag(
            _native_trees(batch), _word(seed), first, self._sampling, X, sums, counts, n_threads
        )


def running_sums(
    batch: Trees, X: FeatureMatrix, sums: FloatArray, *, n_threads: int, block: int = 2**23
) -> Iterator[FloatArray]:
    """Yield the sum of leaf values of every row after each of the trees; `sums` are those before the first."""
    step, done = max(1, block // max(1, len(X))), 0
    while done < batch.n_trees:
        some = batch.part(done, min(done + step, batch.n_trees))
        scores = np.empty((some.n_trees, len(X)))
        _native.running_sums(_native_trees(some), X, sums, scores, n_threads)
        yield from scores
        sums, done = scores[-1], done + some.n_trees


def _word(seed: int) -> int:
    """A seed of any size as a number of 64 bits."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


REGRESSION = Regression()


class Grower(ABC):
    """Grows rounds of trees, one for every problem of a task; round t of a seed draws one sample, for all problems.

    Attributes
    ----------
    train : ByQuery
        What the trees are grown on, or the share of it that this process holds.
    share : Share
        What that is of all that they are grown on.
    rules : FullDepthRules
        How each tree is made.
    task : Task
        Whose problems are learnt.
    """

    train: ByQuery
    share: Share
    rules: FullDepthRules
    task: Task

    @abstractmethod
    def grow(
        self, seed: int, first: int, n_rounds: int, *, stop: Callable[[], bool] | None = None, n_threads: int
    ) -> Trees:
        """Rounds `first` to `first + n_rounds - 1`, problems in turn; fewer when `stop()` becomes true meanwhile."""

    @abstractmethod
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
        """Add the values that trees of a problem give to documents they were not grown on, and count them."""

    @abstractmethod
    def identify_data(self) -> str:
        """Digest of the data and of all that was made of it."""

    def start(self) -> Ensemble:
        """The model before the first round."""
        data = self.train.data
        empty = Ensemble.from_trees([], n_features=data.n_features, feature_names=data.feature_names)
        return self.task.combine([empty] * self.task.n_problems)


class TaskGrower(Grower):
    """Grows rounds of trees on one coded data set.

    Examples
    --------
    >>> import rankwood as rw
    >>> from rankwood.training.tasks import Ordinal
    >>> data = rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3])
    >>> grower = TaskGrower(CodedDataset.make(data), FullDepthRules(replace=False), Ordinal(2))
    >>> grower.grow(0, 0, 1, n_threads=1).threshold.tolist()
    [0.5, 1.5]
    """

    def __init__(self, train: CodedDataset, rules: FullDepthRules, task: Task = REGRESSION) -> None:
        self.train, self.rules, self.task = train, rules, task
        self.share = Share.whole(train.data)
        self.problems = [FullDepthGrower(train, rules, target) for target in task.targets(train.data.y)]

    def grow(
        self, seed: int, first: int, n_rounds: int, *, stop: Callable[[], bool] | None = None, n_threads: int
    ) -> Trees:
        batches = [one.grow(seed, first, n_rounds, stop=stop, n_threads=n_threads) for one in self.problems]
        return batches[0] if len(batches) == 1 else _in_turn(batches)

    def sample(self, seed: int, number: int) -> tuple[IndexArray, IndexArray]:
        """Rows of the data set that the trees of a round are grown on, and how often each was drawn."""
        return self.problems[0].sample(seed, number)

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
        self.problems[problem].add_out_of_bag(batch, seed, first, sums, counts, n_threads=n_threads)

    def identify_data(self) -> str:
        made_of_it = (array for one in self.problems for array in one.fingerprint_arrays())
        return identify_data(self.train.data, *made_of_it)


def _native_trees(trees: Trees) -> _native.ForestTrees:
    *columns, offsets, _, _ = trees.native()  # own trees have no sets
    return _native.ForestTrees(offsets, *columns)


def _in_turn(batches: list[Trees]) -> Trees:
    """The first tree of every batch, the second of every batch, and so on, as far as all batches go."""
    n_rounds = min(batch.n_trees for batch in batches)
    order = np.arange(len(batches) * n_rounds).reshape(len(batches), n_rounds).T.ravel()
    return Trees.join([batch.part(0, n_rounds) for batch in batches]).select(order)
