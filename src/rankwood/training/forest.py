"""Forests: the mean of trees of full depth, grown and measured batch by batch; scores out of the bag."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluation, Evaluator
from rankwood.evaluation.measures import Measure
from rankwood.group import ALONE, Group
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees
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
from rankwood.training.full_depth import Grower, running_sums
from rankwood.training.tasks import Task
from rankwood.training.watch import Measures, ScoredData


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
