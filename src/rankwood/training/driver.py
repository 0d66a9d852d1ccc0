"""The training loop: rounds of boosting, batches of a forest, callbacks, checkpoints, interrupts."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwood.data.bins import BinnedDataset, CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Tree, Trees
from rankwood.system import resolve_threads
from rankwood.training.callbacks import Callback, CallbackEnv, Result, Step, apply, as_mapping, in_order, stopped_at
from rankwood.training.checkpoint import (
    Checkpoint,
    GrowingEnsemble,
    GrowingForest,
    Identity,
    identify,
    identify_data,
    identify_settings,
    mean_weight,
    read_history,
)
from rankwood.training.forest import TaskGrower, running_sums
from rankwood.training.grow import GrownTree, TreeBuilder, TreeRules, regrown
from rankwood.training.losses import Loss, document_weights
from rankwood.training.tasks import Regression, Task
from rankwood.training.updates import Update, surpasses
from rankwood.training.watch import CustomMeasure, KeptLeaves, Measures, ScoredData, Watched

# Ctrl-C between trees: a tree is finished or not begun, never half of one.


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold back Ctrl-C while the block runs; the function that is yielded tells whether it was pressed.

    A second Ctrl-C interrupts at once. Outside the main thread signals cannot be held back and nothing changes.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):  # ignored, or set outside Python: leave it so
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, previous)


# Rounds of boosting: the scores so far, and what it takes to grow the next tree of every problem.


DROPS = 0xDA27  # of the random streams that choose what to drop; those of trees have no third number

UNNAMED = "<training data>"  # when it is not among the data sets to measure on, but measured all the same


class Rounds:
    """The training data with the scores of every problem, and the data sets to measure on with those of the model.

    watched    the data sets by name; the scores of the training data are those of its only problem, if it has one
    judge      name of the data that removal is judged on: one of those watched, or UNNAMED
    """

    def __init__(
        self,
        train: BinnedDataset,
        loss: Loss,
        rules: TreeRules,
        update: Update,
        growing: GrowingEnsemble,
        sets: Mapping[str, BinnedDataset],
        measures: Measures,
        *,
        judge: str | None,
        seed: int,
        n_threads: int,
    ) -> None:
        data, weights, task = train.data, weights_of(train), growing.task
        if update.drops and task.n_problems > 1:
            raise RankwoodError("trees can be dropped when there is one problem to learn, not for task='ordinal'")
        constant = loss.constant_hessian and weights is None and data.query_weights is None
        self.train, self.growing, self.update, self.seed = train, growing, update, seed
        self.measures, self.first_measure = measures, Measures(measures.measures[:1], measures.convention)
        self.builder = TreeBuilder(train, rules, constant_hessian=constant, n_threads=n_threads)
        self.gradient, self.hessian = np.empty(data.n_docs), np.empty(data.n_docs)
        whole = growing.start if update.drops else growing.whole()
        parts = zip(task.targets(data.y), task.split(whole), task.split(growing.start), strict=True)
        self.problems = [_Problem(train, loss, *part, n_threads) for part in parts]
        alone = self.problems[0].scored if task.n_problems == 1 else None
        self.watched = {
            name: alone if alone and binned is train else Watched.start(binned, whole, n_threads=n_threads)
            for name, binned in sets.items()
        }
        self.judge_name = judge
        self.judge = None if judge is None else self.watched.get(judge, self.problems[0].scored)
        self.kept: dict[Watched, KeptLeaves] = {}
        if update.drops:
            self._keep_leaves([self.problems[0].scored, *self.watched.values()])
        self._grown: list[_Grown] = []

    def advance(self, number: int, learning_rate: float) -> tuple[list[Tree], Step, list[Result]]:
        """The next round: its trees, what became of them and of others, and the measures after it."""
        growing, update, last = self.growing, self.update, self.growing.last_step
        drop = update.draw(list(growing.live), last, np.random.default_rng([self.seed, number, DROPS]))
        for kept in self.kept.values():
            kept.take_out(drop.trees, growing.live)
        self._grow(number)
        for one, kept in self.kept.items():
            kept.keep(number, self._grown[0].grown.tree, self._grown[0].leaves_of(one))
        settled = update.settle(drop, learning_rate, last, self._with_new_tree)
        step = Step(number, drop.k, drop.trees, settled.removed, settled.weight, settled.factor, settled.candidate)
        self._put_in(step)
        results = [result for name, one in self.watched.items() for result in one.results(name, self.measures)]
        n_trees = len(growing.live) + 1 - (len(drop.trees) if settled.removed else 0)
        return [one.grown.tree for one in self._grown], self._judged(step, results)._replace(n_trees=n_trees), results

    def _grow(self, number: int) -> None:
        """One tree for every problem, fitted to its gradients; in no scores yet."""
        self._grown = []
        for problem in self.problems:
            # A problem on its own would draw from this very stream.
            rng = np.random.default_rng([self.seed, problem.n_before + number])
            problem.objective.gradients(problem.scored.scores, self.gradient, self.hessian)
            self._grown.append(_Grown(problem, self.train, *self.builder.build(self.gradient, self.hessian, rng)))

    def _put_in(self, step: Step) -> None:
        """Add the new trees to all scores, and what was dropped and stays."""
        if not self.update.drops:
            for new in self._grown:
                new.problem.scored.add(new.grown, step.weight, new.leaf_of_row)
                for one in self.watched.values():
                    if one is not new.problem.scored:
                        one.add(new.grown, self.growing.task.sign * step.weight, new.leaves_of(one))
            return
        live = dict(self.growing.live)
        apply(step, live)
        for kept in self.kept.values():
            kept.settle(step, live)

    def _with_new_tree(self, weight: float) -> Result:
        """Measure of the model as it is without what was dropped, the new tree in it with this weight."""
        assert self.judge is not None
        kept, number = self.kept[self.judge], self.growing.n_rounds
        kept.put_in([number], {number: weight})
        result = self._measure_judge()
        kept.take_out([number], {number: weight})
        return result

    def _measure_judge(self) -> Result:
        assert self.judge is not None
        assert self.judge_name is not None
        return self.judge.results(self.judge_name, self.first_measure)[0]

    def _judged(self, step: Step, results: list[Result]) -> Step:
        """The step, with the measure after it and what it means."""
        last = self.growing.last_step
        if self.judge_name is None or not self.measures.measures:
            return step
        found = next((result for result in results if result.dataset_name == self.judge_name), None)
        found = self._measure_judge() if found is None else found
        best = None if last is None else last.best
        improved = surpasses(found, best)
        return step._replace(value=found.metric_value, best=found.metric_value if improved else best, improved=improved)

    def _keep_leaves(self, scored: Iterable[Watched]) -> None:
        """Scores, now those of the start, that trees can be taken out of; live trees of a checkpoint are put in."""
        live, edges = self.growing.live, self.train.edges
        trees = {number: regrown(self.growing.trees[number], edges) for number in live}
        for one in dict.fromkeys(scored):
            kept = self.kept[one] = KeptLeaves(one.scores, n_threads=one.n_threads)
            for number, grown in trees.items():
                kept.keep(number, grown.tree, grown.leaves_of(one.binned, n_threads=one.n_threads))
            kept.put_in(live, live)


class _Problem:
    """One target, with the scores so far of its own model, which had `n_before` trees before the first round."""

    def __init__(
        self, train: BinnedDataset, loss: Loss, target: FloatArray, model: Ensemble, start: Ensemble, n_threads: int
    ) -> None:
        data = train.data
        self.n_before = start.n_trees
        self.scored = Watched.start(train, model, n_threads=n_threads)
        self.objective = loss.prepare(
            train.by_query(target), data.offsets, weights_of(train), data.query_weights, n_threads=n_threads
        )


class _Grown:
    """A new tree of a problem, and the leaf that every document of a data set reaches in it."""

    def __init__(
        self, problem: _Problem, train: BinnedDataset, grown: GrownTree, leaf_of_row: NDArray[np.uint16]
    ) -> None:
        self.problem, self.train, self.grown, self.leaf_of_row = problem, train, grown, leaf_of_row

    def leaves_of(self, one: Watched) -> NDArray[np.uint16]:
        on_train = one.binned is self.train
        return self.leaf_of_row if on_train else self.grown.leaves_of(one.binned, n_threads=one.n_threads)


def weights_of(train: BinnedDataset) -> FloatArray | None:
    """Weights of documents, query by query."""
    return None if train.data.weights is None else train.by_query(train.data.weights)


# The boosting loop: the only one. Loss, starting ensemble and update rule are its arguments.


@dataclass(frozen=True)
class Boosted:
    """What training gives: the ensemble at its best size, and how it came about."""

    ensemble: Ensemble
    best_iteration: int  # number of rounds kept: of boosted trees, when the task has one problem and none is removed
    best_score: Mapping[str, Mapping[str, float]]  # of that size: data set, then measure
    interrupted: bool
    steps: Sequence[Step] = ()  # of every iteration
    models_at: Mapping[int, Ensemble] = field(default_factory=dict)  # by number of boosted trees


REGRESSION = Regression()


def boost(
    train: BinnedDataset,
    loss: Loss,
    rules: TreeRules,
    update: Update,
    *,
    n_trees: int,
    max_iterations: int | None = None,
    record_sizes: Sequence[int] = (),
    task: Task = REGRESSION,
    start: Ensemble | None = None,
    valid: Mapping[str, Dataset | BinnedDataset] | None = None,
    measures: Sequence[str | Measure | CustomMeasure] = ("nDCG@10",),
    convention: str | Convention = "rankwood",
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    seed: int = 0,
    n_threads: int | None = None,
) -> Boosted:
    """Add `n_trees` trees to `start`, each fitted to the gradients of `loss` at the scores so far.

    With a `task` of several problems it is `n_trees` rounds: in each, every problem grows one tree. Measures, and so
    early stopping, are of the whole model after the round.

    Trees that the update rule removes again do not count: training ends when there are `n_trees`, and with as many as
    there are after `max_iterations`, which is `n_trees` unless given. `record_sizes` are numbers of trees; the models
    that first had so many are given back, too: those that training with that `n_trees` gives.

    `valid` names the data sets to measure on after each tree; the training data may be one of them.
    Tree t of the whole ensemble draws its samples from a stream of its own, made of `seed` and t: the same data,
    parameters and seed give the same model bit for bit, whatever the number of threads, and also when training went on
    from a checkpoint or from the first trees of that very model.
    """
    threads = resolve_threads(n_threads)
    measured = Measures(measures, convention)
    before, after = in_order(callbacks)
    growing = GrowingEnsemble(_starting_ensemble(start, train, loss, task), task)
    sets = {name: _in_bins_of(train, data, name, threads) for name, data in (valid or {}).items()}
    identity: dict[str, str] = {}
    if checkpoint is not None:
        settings = {"loss": loss, "task": task, "tree rules": rules, "update rule": update, "seed": seed}
        identity = identify(train, sets, growing.start, {**settings, "measures": measured})
        growing = checkpoint.load(growing, identity)
    n_resumed = n_saved = growing.n_rounds
    largest = max((step.n_trees for step in growing.steps), default=0)
    if largest > n_trees:
        raise RankwoodError(f"the checkpoint has {largest} trees already, more than n_trees={n_trees}")
    if max_iterations is None:
        max_iterations = n_trees

    judge = _judge(update, sets, train, measured)
    rounds = Rounds(train, loss, rules, update, growing, sets, measured, judge=judge, seed=seed, n_threads=threads)
    env = CallbackEnv(growing, {"learning_rate": update.learning_rate}, 0, 0, max_iterations)
    env.n_trees = n_trees
    env.train_name = next((name for name, binned in sets.items() if binned is train), None)
    stopped = stopped_early = False
    try:
        with deferred_interrupt() as interrupted:
            for env.iteration in range(max_iterations):
                env.replayed = env.iteration < n_resumed
                _call(before, env)
                rate = env.params["learning_rate"]
                if env.replayed:
                    growing.check_rate(env.iteration, rate)
                else:
                    trees, step, results = rounds.advance(env.iteration, rate)
                    growing.append(trees, step, rate, results)
                    if checkpoint is not None and growing.n_rounds % checkpoint.every == 0:
                        checkpoint.save(growing, identity)
                        n_saved = growing.n_rounds
                env.evaluation_result_list = growing.history[env.iteration]
                env.step = growing.steps[env.iteration]
                if env.step.n_trees == n_trees:
                    env.end_iteration = env.iteration + 1  # callbacks look there for the last iteration
                _call(after, env)
                stopped = interrupted()
                if stopped or env.step.n_trees == n_trees:
                    break
    except Exception as error:
        env.best, stopped_early = stopped_at(error), True
        if env.best is None:
            raise
    if checkpoint is not None and growing.n_rounds > n_saved:
        checkpoint.save(growing, identity)
    if stopped and on_interrupt == "raise":
        raise KeyboardInterrupt
    if not stopped and not stopped_early and env.step is not None and env.step.n_trees < n_trees:
        warnings.warn(
            f"after max_iterations={max_iterations:,} there are {env.step.n_trees:,} of {n_trees:,} trees: "
            "dropped trees were removed too often for more",
            stacklevel=3,
        )
    last, results = env.best or (env.iteration, env.evaluation_result_list)
    steps = growing.steps[: env.iteration + 1]
    recorded = {size: growing.first_with(size) for size in record_sizes}
    models = {size: growing.whole(at + 1) for size, at in recorded.items() if at is not None and at <= env.iteration}
    return Boosted(growing.whole(last + 1), last + 1, as_mapping(results), stopped, steps, models)


def _judge(update: Update, sets: Mapping[str, BinnedDataset], train: BinnedDataset, measures: Measures) -> str | None:
    """Name of the data set by whose first measure trees are removed; without removal, of the one that is logged."""
    validation = next((name for name, binned in sets.items() if binned is not train), None)
    training = next((name for name, binned in sets.items() if binned is train), None)
    if update.judged_on is None:
        return validation or training
    if not measures.measures:
        raise RankwoodError("whether to remove trees is judged by the first measure: give at least one")
    if update.judged_on == "valid" and validation is None:
        warnings.warn(
            "there is no validation data, so training data judges which trees to remove: give valid, or eval_set; "
            "or judge='train', if that is what you want",
            stacklevel=4,
        )
    on_training = update.judged_on == "train" or validation is None
    return (training or UNNAMED) if on_training else validation


def _starting_ensemble(start: Ensemble | None, train: BinnedDataset, loss: Loss, task: Task) -> Ensemble:
    """The ensemble to go on from; without one, the base score of the loss, for every problem."""
    data = train.data
    empty = Ensemble.from_trees([], n_features=data.n_features, feature_names=data.feature_names)
    if start is None:
        weights = document_weights(data.offsets, weights_of(train), data.query_weights)
        bases = [loss.base_score(train.by_query(target), weights) for target in task.targets(data.y)]
        return task.combine([empty.replace(base=base) for base in bases])
    if start.n_features != data.n_features:
        raise RankwoodError(f"the model to go on from has {start.n_features} features, the data {data.n_features}")
    named = start.concat(empty)  # with the names of the data, which must not contradict its own
    return task.begin(named)


def _in_bins_of(train: BinnedDataset, data: Dataset | BinnedDataset, name: str, n_threads: int) -> BinnedDataset:
    """A data set to measure on, in the bins of the training data."""
    if data is train or data is train.data:
        return train
    if isinstance(data, BinnedDataset):
        if data.edges is train.edges:
            return data
        data = data.data
    if data.n_docs == 0:
        raise DataError(f"there is nothing to measure on: the data set {name!r} has no rows")
    return BinnedDataset.encode(data, train.edges, n_threads=n_threads)


def _call(callbacks: Sequence[Callback], env: CallbackEnv) -> None:
    for callback in callbacks:
        callback(env)


# Forests: trees grown independently of each other, each on a sample of its own, and the mean of their values.


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
                _call_forest([*before, *after], env)
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
                    _call_forest(before, env)
                    growing.history.append(results)
                    if keeper is not None and growing.n_rounds % keeper.every == 0:
                        keeper.save(growing)
                    env.evaluation_result_list = results
                    _call_forest(after, env)
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
        super().__init__(data, np.zeros(data.n_docs), n_threads=n_threads)
        self.base, self.task = growing.start.base, growing.task
        self.X = data.X if data.order is None else data.X[data.order]
        self.sums = np.zeros(data.n_docs)

    def go_on_from(self, model: Ensemble) -> None:
        """With the sums of a model whose tree weights are 1: the same additions in the same order."""
        self.sums = model.score(self.X, n_threads=self.n_threads)

    def after_each(self, batch: Trees, n_before: int) -> Iterator[None]:
        """Set the scores to the mean after each round of a batch, before which there were `n_before`."""
        step = self.task.n_problems
        for number, sums in enumerate(running_sums(batch, self.X, self.sums, n_threads=self.n_threads), start=1):
            self.sums = sums
            if number % step == 0:
                self.scores = self.base + self.task.sign * mean_weight(n_before + number // step) * sums
                yield


def _after_each(
    batch: Trees, n_problems: int, n_before: int, watched: Mapping[str, _Watched], measures: Measures
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

    def time(self, grower: TaskGrower, seed: int, first: int, n_trees: int, stop: Callable[[], bool]) -> Trees:
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
            "training data": identify_data(grower.train.data, *grower.fingerprint_arrays()),
            **{f"data set {name!r}": identify_data(data) for name, data in sets.items()},
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
        growing.add(model.trees)
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


def _call_forest(callbacks: Sequence[Callback], env: CallbackEnv) -> None:
    for callback in callbacks:
        callback(env)
    if env.params:
        raise RankwoodError("a forest has no parameters that change from tree to tree, such as a learning rate")
