"""Trees of full depth, grown independently of each other, each on a sample of its own."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.bins import BinnedDataset, ByQuery, CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluation, Evaluator
from rankwood.evaluation.measures import Measure
from rankwood.group import ALONE, Group
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees, offsets_of
from rankwood.system import resolve_threads
from rankwood.training.callbacks import CallbackEnv, Result
from rankwood.training.checkpoint import (
    CheckpointFile,
    Identity,
    identify_binned,
    identify_data,
    identify_settings,
    read_history,
)
from rankwood.training.driver import Growth, Session, Trained, check_size, drive
from rankwood.training.losses import document_weights
from rankwood.training.tasks import Regression, Task
from rankwood.training.watch import Measures, ScoredData


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
        if self.n_leaves is not None and self.n_leaves < 1:
            raise RankwoodError(f"n_leaves must be at least 1, or None for no limit, got {self.n_leaves}")
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


def out_of_bag_scores(
    grower: Grower, model: Ensemble, *, seed: int = 0, first_tree: int = 0, n_threads: int | None = None
) -> tuple[FloatArray, IndexArray]:
    """Score of every document by the trees that were not grown on it, and the number of rounds that these are of.

    It costs what scoring the data does.

    Parameters
    ----------
    grower : Grower
        What grew the trees.
    model : Ensemble
        The trees that `grow_forest` gave for the same `seed` and `first_tree`, or the first of them.
    seed, first_tree : int
        Those of `grow_forest`.
    n_threads : int, optional
        Threads; None uses every CPU.

    Returns
    -------
    scores : array of float
        In input order, of the documents of this process. NaN where every tree has seen the document.
    counts : array of int
        Rounds that have not seen the document.
    """
    threads = resolve_threads(n_threads)
    train, task, step = grower.train, grower.task, 64
    sums, counts = np.zeros(train.n_docs), np.zeros(train.n_docs, dtype=np.uint32)
    for problem, part in enumerate(task.split(model)):
        counts[:] = 0  # the same for every problem
        for begin in range(0, part.n_trees, step):
            batch = part.trees.part(begin, min(begin + step, part.n_trees))
            grower.add_out_of_bag(problem, batch, seed, first_tree + begin, sums, counts, n_threads=threads)
    means = np.divide(sums, counts, out=np.full(train.n_docs, np.nan), where=counts > 0)
    scores = grower.start().base + task.sign * means
    return train.in_input_order(scores), train.in_input_order(counts.astype(np.int64))


def evaluate_scored(
    scores: FloatArray,
    data: Dataset,
    measures: Sequence[str | Measure],
    convention: str | Convention = "rankwood",
    *,
    n_threads: int | None = None,
    group: Group = ALONE,
) -> Evaluation:
    """Measures of the queries all of whose documents have a score; the others are NaN and left out of the means."""
    index = data.queries.index
    complete = np.bincount(index, weights=np.isnan(scores), minlength=data.n_queries) == 0
    evaluator = Evaluator(data, measures, convention, n_threads=n_threads, group=group)
    # Documents without a score get some score, which does not matter: their queries do not count.
    values = np.where(complete, evaluator.values(np.nan_to_num(scores)), np.nan)
    means = dict(zip(evaluator.names, evaluator.mean(values).tolist(), strict=True))
    per_query = dict(zip(evaluator.names, evaluator.gathered(values), strict=True))
    weights = data.query_weights
    return Evaluation(evaluator.convention, means, per_query, None if weights is None else evaluator.gathered(weights))


def _native_trees(trees: Trees) -> _native.ForestTrees:
    *columns, offsets = trees.native()
    return _native.ForestTrees(offsets, *columns)


def _in_turn(batches: list[Trees]) -> Trees:
    """The first tree of every batch, the second of every batch, and so on, as far as all batches go."""
    n_rounds = min(batch.n_trees for batch in batches)
    order = np.arange(len(batches) * n_rounds).reshape(len(batches), n_rounds).T.ravel()
    return Trees.join([batch.part(0, n_rounds) for batch in batches]).select(order)


BATCH_SECONDS = 0.4  # of growing between two calls of callbacks


def grow_forest(grower: Grower, session: Session, *, n_trees: int, first_tree: int = 0) -> Trained:
    """A forest grows: the mean of the trees number `first_tree` to `first_tree + n_trees - 1` of the session's seed.

    With a task of several problems it is as many rounds: in each, every problem grows one tree on the same sample.
    A tree depends on its number, the seed, the data and the rules alone: the same give the same forest bit for bit,
    whatever the number of threads, and also when growing went on from a checkpoint.
    """
    batches = Batches(grower, session, n_trees=n_trees, first_tree=first_tree)
    keeper = None
    if session.checkpoint is not None:
        keeper = CheckpointFile(session.checkpoint, batches.identity())
        keeper.load(batches.growing)
        check_size(batches.growing.n_rounds, n_trees)
        batches.go_on(session.checkpoint.every)
    train_name = next((name for name, one in batches.watched.items() if one.data is grower.train.data), None)
    driven = drive(batches, session, n_iterations=n_trees, train_name=train_name, keeper=keeper)
    return Trained(batches.growing.whole(driven.n_kept, last=True), driven)


def mean_weight(n_trees: int) -> float:
    """Weight of a tree in a mean of `n_trees`, cut to 24 bits.

    Labels are small whole numbers and leaves of full depth hold single labels. Times 24 bits these are exact, and so is
    their sum: documents that the trees do not tell apart have equal scores, in whichever order trees are added.

    Examples
    --------
    >>> mean_weight(8), mean_weight(10)
    (0.125, 0.09999999403953552)
    """
    share, exponent = math.frexp(1.0 / max(n_trees, 1))
    return math.ldexp(math.floor(share * 2**24), exponent - 24)


class GrowingForest:
    """Trees of a forest while it grows, batch by batch, and the measures after every round.

    A round is a tree for every problem of the task.
    """

    boosters: ClassVar[tuple[Any, ...]] = ()  # as in GrowingEnsemble: for LightGBM's callbacks

    def __init__(self, start: Ensemble, task: Task) -> None:
        self.start, self.task = start, task
        self._batches: list[Trees] = []
        self.history: list[list[Result]] = []  # of the rounds that count; a batch may have more

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    def add(self, batch: Trees) -> None:
        """More trees. Their rounds count one by one, when their measures are noted in `history`."""
        self._batches.append(batch)

    def to_keep(self) -> tuple[Ensemble, dict[str, Any]]:
        """What a checkpoint holds: all trees with weight 1, and the measures after every round."""
        return self.trees(self.n_rounds, 1.0), {"history": self.history}

    def take_up(self, model: Ensemble, notes: dict[str, Any]) -> None:
        """Go on from what `to_keep` gave."""
        self.add(model.trees)
        self.history = read_history(notes["history"])

    def whole(self, n_rounds: int | None = None, *, last: bool = False) -> Ensemble:
        """The forest of the first `n_rounds` (default: all): every problem is the mean of its trees.

        `last` is that of `trees`.
        """
        n_rounds = self.n_rounds if n_rounds is None else n_rounds
        return self.task.extend(self.start, self.trees(n_rounds, self.task.sign * mean_weight(n_rounds), last=last))

    def trees(self, n_rounds: int, weight: float, *, last: bool = False) -> Ensemble:
        """The trees of the first `n_rounds` as an ensemble, all with this weight.

        `last` says that nothing more is asked of this object: trees of full depth are large, so every array is then
        let go of as soon as it is copied.
        """
        n_trees = n_rounds * self.task.n_problems
        parts, done = [], 0
        for batch in self._batches:
            parts.append(batch.part(0, min(batch.n_trees, n_trees - done)))
            done += parts[-1].n_trees
        if last:
            self._batches.clear()
        return Ensemble.of(
            Trees.join_and_release(parts),
            tree_weights=np.full(n_trees, weight),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )


class Batches(Growth):
    """Rounds of a forest: trees are grown in batches, and then measured one round at a time.

    A batch is as many trees as take BATCH_SECONDS, so that callbacks, checkpoints and Ctrl-C are looked after.
    """

    def __init__(self, grower: Grower, session: Session, *, n_trees: int, first_tree: int) -> None:
        self.grower, self.measures, self.seed = grower, session.measures, session.seed
        self.first_tree, self.n_trees = first_tree, n_trees
        self.growing = GrowingForest(grower.start(), grower.task)
        self.params: dict[str, Any] = {}
        self.sets, self.watched = session.valid, {}
        for name, one in session.valid.items():
            data, share = self._share_of(one)
            if share.n_docs == 0:
                raise DataError(f"there is nothing to measure on: the data set {name!r} has no rows")
            self.watched[name] = _Watched(data, self.growing, n_threads=session.n_threads, group=share.group)
        self.group = grower.share.group
        self.pace = _Pace(session.n_threads, self.group)
        self.every: int | None = None  # a checkpoint is made every so many rounds: batches end there
        self._rounds: Iterator[list[Result]] = iter(())  # measures of the rounds of the last batch
        self._n_grown = 0  # rounds of all batches
        self._cut_short = False  # Ctrl-C was pressed while the last batch grew: what is finished of it is kept

    def identity(self) -> Identity:
        """Everything that the next tree, and where growing stops, depend on."""
        settings = {
            "rules": self.grower.rules,
            "task": self.grower.task,
            "seed": self.seed,
            "first tree": self.first_tree,
            "measures": self.measures,
        }
        return {
            "training data": self.grower.identify_data(),
            **{f"data set {name!r}": self._identify(data) for name, data in self.sets.items()},
            **identify_settings(settings),
        }

    def _share_of(self, one: Dataset | BinnedDataset) -> tuple[Dataset, Share]:
        """A data set to measure on, and what this process has of it."""
        if isinstance(one, BinnedDataset):
            return one.data, one.share
        return one, self.grower.share if one is self.grower.train.data else Share.whole(one)

    def _identify(self, one: Dataset | BinnedDataset) -> str:
        data, share = self._share_of(one)
        if data is self.grower.train.data and share.group.size > 1:
            return self.grower.identify_data()
        return identify_binned(one) if isinstance(one, BinnedDataset) and share.group.size > 1 else identify_data(data)

    def go_on(self, every: int) -> None:
        """Go on from the trees that a checkpoint held, and end batches where the next ones are due."""
        self.every, self._n_grown = every, self.growing.n_rounds
        if self._n_grown:
            model, _ = self.growing.to_keep()
            for one in self.watched.values():
                one.go_on_from(model)

    def allow(self, env: CallbackEnv) -> None:
        if env.params:
            raise RankwoodError("a forest has no parameters that change from tree to tree, such as a learning rate")

    def advance(self, env: CallbackEnv, interrupted: Callable[[], bool]) -> bool:
        if self.growing.n_rounds == self._n_grown:
            self._grow(interrupted)
        results = next(self._rounds, None)
        if results is None:
            return False
        self.growing.history.append(results)
        return True

    def is_whole(self, env: CallbackEnv) -> bool:
        return False  # there are as many rounds as trees

    def can_stop(self) -> bool:
        return not self._cut_short or self.growing.n_rounds == self._n_grown

    def _grow(self, interrupted: Callable[[], bool]) -> None:
        """Grow the next batch, as far as a checkpoint that is due or an interrupt lets it."""
        done, n_problems = self._n_grown, self.grower.task.n_problems
        wanted = min(self.pace.n_trees, self.n_trees - done)
        if self.every is not None:
            wanted = min(wanted, self.every - done % self.every)
        batch = self.pace.timed(self.grower, self.seed, self.first_tree + done, wanted, interrupted)
        self.growing.add(batch)
        self._cut_short = bool(self.group.broadcast(interrupted()))
        self._rounds = _after_each(batch, n_problems, done, self.watched, self.measures)
        self._n_grown += batch.n_trees // n_problems


class _Watched(ScoredData):
    """A data set to measure on, with the sum of the trees' values so far for every document."""

    def __init__(self, data: Dataset, growing: GrowingForest, *, n_threads: int, group: Group) -> None:
        super().__init__(data, np.zeros(data.n_docs), n_threads=n_threads, group=group)
        self.base, self.task = growing.start.base, growing.task
        X = data.in_memory().X
        self.X = X if data.order is None else X[data.order]
        self.sums = np.zeros(data.n_docs)

    def go_on_from(self, model: Ensemble) -> None:
        """Take the sums of a model whose tree weights are 1: the same additions in the same order."""
        self.sums = model.score(self.X, n_threads=self.n_threads)

    def after_each(self, batch: Trees, n_before: int) -> Iterator[None]:
        """Set the scores to the mean after each round of a batch; `n_before` rounds came before."""
        step = self.task.n_problems
        for number, sums in enumerate(running_sums(batch, self.X, self.sums, n_threads=self.n_threads), start=1):
            self.sums = sums
            if number % step == 0:
                self.scores = self.base + self.task.sign * mean_weight(n_before + number // step) * sums
                yield


def _after_each(
    batch: Trees, n_problems: int, n_before: int, watched: Mapping[str, _Watched], measures: Measures
) -> Iterator[list[Result]]:
    """Yield the measures after each round of a batch."""
    steps = [one.after_each(batch, n_before) for one in watched.values()]
    for _ in range(batch.n_trees // n_problems):
        for step in steps:
            next(step)
        yield [result for name, one in watched.items() for result in one.results(name, measures)]


class _Pace:
    """Number of trees of the next batch: as many as take BATCH_SECONDS, the same for all processes of a group."""

    def __init__(self, n_threads: int, group: Group) -> None:
        self.n_threads, self.group = n_threads, group
        self.at_once = group.total(n_threads)
        self.n_trees = self.at_once

    def timed(self, grower: Grower, seed: int, first: int, n_trees: int, stop: Callable[[], bool]) -> Trees:
        """Grow a batch, and learn from its time how large the next should be."""
        start = time.perf_counter()
        batch = grower.grow(seed, first, n_trees, stop=stop, n_threads=self.n_threads)
        seconds = max(self.group.gather(time.perf_counter() - start))
        rounds = max(seconds, 1e-6) / max(1.0, n_trees / self.at_once)  # seconds per round
        wanted = int(BATCH_SECONDS / rounds) * self.at_once
        self.n_trees = max(self.at_once, min(wanted, 8 * self.n_trees))
        return batch
