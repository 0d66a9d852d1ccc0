"""Forests: trees grown independently of each other, each on a sample of its own, and the mean of their values."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwood.data.coding import CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.learners.callbacks import Callback, CallbackEnv, Result, as_mapping, in_order, stopped_at
from rankwood.learners.checkpoint import Checkpoint, Identity, identify_settings, read_history
from rankwood.learners.growing_forest import GrowingForest, mean_weight
from rankwood.learners.interrupt import deferred_interrupt
from rankwood.learners.task_grower import TaskGrower, as_batch
from rankwood.learners.watch import CustomMeasure, Measures, ScoredData
from rankwood.threads import resolve_threads
from rankwood.trees.fulldepth import TreeBatch, running_sums

BATCH_SECONDS = 0.4  # of growing between two looks at callbacks


@dataclass(frozen=True)
class Forest:
    """What growing a forest gives: one ensemble, tree weights 1/M, and how it came about."""

    ensemble: Ensemble
    best_iteration: int  # number of trees kept
    best_score: Mapping[str, Mapping[str, float]]  # of that size: data set, then measure
    interrupted: bool


def grow_forest(
    grower: TaskGrower,
    *,
    n_trees: int,
    first_tree: int = 0,
    valid: Mapping[str, Dataset | CodedDataset] | None = None,
    measures: Sequence[str | Measure | CustomMeasure] = ("nDCG@10",),
    convention: str | Convention = "rankwood",
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    seed: int = 0,
    n_threads: int | None = None,
) -> Forest:
    """Grow the trees number `first_tree` to `first_tree + n_trees - 1` of a seed; the model is their mean.

    With a task of several problems it is as many rounds: in each, every problem grows one tree on the same sample.
    `valid` names the data sets to measure on after each tree. A tree depends on its number, the seed, the data and the
    rules alone: the same give the same forest bit for bit, whatever the number of threads, and also when growing went
    on from a checkpoint.
    """
    threads = resolve_threads(n_threads)
    measured = Measures(measures, convention)
    before, after = in_order(callbacks)
    data = grower.train.data
    sets = {name: one if isinstance(one, Dataset) else one.data for name, one in (valid or {}).items()}
    for name, one in sets.items():
        if one.n_docs == 0:
            raise DataError(f"there is nothing to measure on: the data set {name!r} has no rows")
    growing = GrowingForest(grower.start(), grower.task)
    watched = {name: _Watched(one, growing, n_threads=threads) for name, one in sets.items()}
    keeper = None if checkpoint is None else _Keeper(checkpoint, grower, sets, measured, seed, first_tree)
    n_resumed = 0 if keeper is None else keeper.resume(growing, watched, n_trees)

    env = CallbackEnv(growing, {}, 0, 0, n_trees)
    env.train_name = next((name for name, one in sets.items() if one is data), None)
    stopped = False
    pace = _Pace(threads)
    try:
        with deferred_interrupt() as interrupted:
            for env.iteration in range(n_resumed):
                env.replayed = True
                env.evaluation_result_list = growing.history[env.iteration]
                _call([*before, *after], env)
            env.replayed = False
            while growing.n_rounds < n_trees and not stopped:
                done = growing.n_rounds
                wanted = min(pace.n_trees(), n_trees - done)
                if keeper is not None:
                    wanted = min(wanted, keeper.every - done % keeper.every)
                batch = pace.time(grower, seed, first_tree + done, wanted, interrupted)
                growing.add(batch)
                stopped = interrupted()  # what is finished by then is kept
                for results in _after_each(batch, grower.task.n_problems, done, watched, measured):
                    env.iteration = growing.n_rounds
                    _call(before, env)
                    growing.history.append(results)
                    if keeper is not None and growing.n_rounds % keeper.every == 0:
                        keeper.save(growing)
                    env.evaluation_result_list = results
                    _call(after, env)
                    if interrupted() and not stopped:  # pressed just now: go no further
                        stopped = True
                        break
    except Exception as error:
        env.best = stopped_at(error)
        if env.best is None:
            raise
    if keeper is not None:
        keeper.save(growing)
    if stopped and on_interrupt == "raise":
        raise KeyboardInterrupt
    last, results = env.best or (growing.n_rounds - 1, env.evaluation_result_list)
    n_kept = last + 1
    return Forest(growing.whole(n_kept, last=True), n_kept, as_mapping(results), stopped)


class _Watched(ScoredData):
    """A data set to measure on, and the sum of the trees' values so far."""

    def __init__(self, data: Dataset, growing: GrowingForest, *, n_threads: int) -> None:
        super().__init__(data, data.order, np.zeros(data.n_docs), n_threads=n_threads)
        self.base, self.task = growing.start.base, growing.task
        self.X = data.X if data.order is None else data.X[data.order]
        self.sums = np.zeros(data.n_docs)

    def go_on_from(self, model: Ensemble) -> None:
        """With the sums of a model whose tree weights are 1: the same additions in the same order."""
        self.sums = self._by_query(model.score(self.data.X, n_threads=self.n_threads))

    def after_each(self, batch: TreeBatch, n_before: int) -> Iterator[None]:
        """Set the scores to the mean after each round of a batch, before which there were `n_before`."""
        step = self.task.n_problems
        for number, sums in enumerate(running_sums(batch, self.X, self.sums, n_threads=self.n_threads), start=1):
            self.sums = sums
            if number % step == 0:
                self.scores = self.base + self.task.sign * mean_weight(n_before + number // step) * sums
                yield


def _after_each(
    batch: TreeBatch, n_problems: int, n_before: int, watched: Mapping[str, _Watched], measures: Measures
) -> Iterator[list[Result]]:
    """The measures after each round of a batch."""
    steps = [one.after_each(batch, n_before) for one in watched.values()]
    for _ in range(batch.n_trees // n_problems):
        for step in steps:
            next(step)
        yield [result for name, one in watched.items() for result in one.results(name, measures)]


class _Pace:
    """How many trees to grow before looking up: as many as take BATCH_SECONDS."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.size = n_threads

    def n_trees(self) -> int:
        return self.size

    def time(self, grower: TaskGrower, seed: int, first: int, n_trees: int, stop: Callable[[], bool]) -> TreeBatch:
        start = time.perf_counter()
        batch = grower.grow(seed, first, n_trees, stop=stop, n_threads=self.n_threads)
        rounds = max(time.perf_counter() - start, 1e-6) / max(1.0, n_trees / self.n_threads)  # seconds per round
        wanted = int(BATCH_SECONDS / rounds) * self.n_threads
        self.size = max(self.n_threads, min(wanted, 8 * self.size))
        return batch


class _Keeper:
    """Saves the trees so far, and takes them up again."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        grower: TaskGrower,
        sets: Mapping[str, Dataset],
        measures: Measures,
        seed: int,
        first_tree: int,
    ) -> None:
        settings = {
            "rules": grower.rules,
            "task": grower.task,
            "missing values": "0" if grower.train.missing_as_zero else "native",
            "seed": seed,
            "first tree": first_tree,
            "measures": measures,
        }
        self.checkpoint, self.every, self.n_saved = checkpoint, checkpoint.every, 0
        self.identity: Identity = {
            "training data": _digest(grower.train.data, *grower.fingerprint_arrays()),
            **{f"data set {name!r}": _digest(data) for name, data in sets.items()},
            **identify_settings(settings),
        }

    def resume(self, growing: GrowingForest, watched: Mapping[str, _Watched], n_trees: int) -> int:
        """Take up what was saved; the number of trees."""
        found = self.checkpoint.read(self.identity)
        if found is None:
            return 0
        model, saved = found
        n_rounds = model.n_trees // growing.task.n_problems
        if n_rounds > n_trees:
            raise RankwoodError(f"the checkpoint has {n_rounds} trees already, more than n_trees={n_trees}")
        growing.add(as_batch(model))
        growing.history = read_history(saved["history"])
        for one in watched.values():
            one.go_on_from(model)
        self.n_saved = n_rounds
        return n_rounds

    def save(self, growing: GrowingForest) -> None:
        """Write the trees so far, unless they are written; a kill while writing leaves the checkpoint before it."""
        if growing.n_rounds == self.n_saved:
            return
        model = growing.trees(growing.n_rounds, 1.0)
        notes = {"identity": self.identity, "history": growing.history}
        model.with_metadata(checkpoint=notes).save(self.checkpoint.path)
        self.n_saved = growing.n_rounds


def _digest(data: Dataset, *more: FloatArray | None) -> str:
    digest = hashlib.sha256()
    for array in (data.X, data.order, data.offsets, data.y, data.weights, data.query_weights, *more):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _call(callbacks: Sequence[Callback], env: CallbackEnv) -> None:
    for callback in callbacks:
        callback(env)
    if env.params:
        raise RankwoodError("a forest has no parameters that change from tree to tree, such as a learning rate")
