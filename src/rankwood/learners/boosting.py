"""The boosting loop: the only one. Loss, starting ensemble and update rule are its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.learners.callbacks import Callback, CallbackEnv, as_mapping, in_order, stopped_at
from rankwood.learners.checkpoint import Checkpoint, identify
from rankwood.learners.growing import GrowingEnsemble
from rankwood.learners.interrupt import deferred_interrupt
from rankwood.learners.rounds import UNNAMED, Rounds, weights_of
from rankwood.learners.steps import Step
from rankwood.learners.tasks import Regression, Task
from rankwood.learners.updates import Update
from rankwood.learners.watch import CustomMeasure, Measures
from rankwood.losses import Loss, document_weights
from rankwood.threads import resolve_threads
from rankwood.trees.build import TreeRules


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
                    try:
                        trees, step, results = rounds.advance(env.iteration, rate)
                    except KeyboardInterrupt:  # a second Ctrl-C: this round is given up, those before it are whole
                        if not interrupted() or growing.n_rounds == 0:
                            raise
                        env.iteration, stopped = env.iteration - 1, True
                        break
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
