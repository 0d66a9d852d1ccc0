"""The boosting loop: the only one. Loss, starting ensemble and update rule are its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from rankwood.learners.rounds import Rounds, weights_of
from rankwood.learners.tasks import Regression, Task
from rankwood.learners.updates import Plain
from rankwood.learners.watch import CustomMeasure, Measures
from rankwood.losses import Loss, document_weights
from rankwood.threads import resolve_threads
from rankwood.trees.build import TreeRules


@dataclass(frozen=True)
class Boosted:
    """What training gives: the ensemble at its best size, and how it came about."""

    ensemble: Ensemble
    best_iteration: int  # number of rounds kept: of boosted trees, when the task has one problem
    best_score: Mapping[str, Mapping[str, float]]  # of that size: data set, then measure
    interrupted: bool


REGRESSION = Regression()


def boost(
    train: BinnedDataset,
    loss: Loss,
    rules: TreeRules,
    update: Plain,
    *,
    n_trees: int,
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
    if n_resumed > n_trees:
        raise RankwoodError(f"the checkpoint has {n_resumed} trees already, more than n_trees={n_trees}")

    rounds = Rounds(train, loss, rules, growing, sets, seed=seed, n_threads=threads)
    env = CallbackEnv(growing, {"learning_rate": update.learning_rate}, 0, 0, n_trees)
    env.train_name = next((name for name, binned in sets.items() if binned is train), None)
    stopped = False
    try:
        with deferred_interrupt() as interrupted:
            for env.iteration in range(n_trees):
                env.replayed = env.iteration < n_resumed
                _call(before, env)
                rate = env.params["learning_rate"]
                if env.replayed:
                    growing.check_rate(env.iteration, rate)
                else:
                    weight = update.weight(rate)
                    trees = rounds.grow(env.iteration, weight)
                    results = [result for name, one in rounds.watched.items() for result in one.results(name, measured)]
                    growing.append(trees, task.sign * weight, rate, results)
                    if checkpoint is not None and growing.n_rounds % checkpoint.every == 0:
                        checkpoint.save(growing, identity)
                        n_saved = growing.n_rounds
                env.evaluation_result_list = growing.history[env.iteration]
                _call(after, env)
                stopped = interrupted()
                if stopped:
                    break
    except Exception as error:
        env.best = stopped_at(error)
        if env.best is None:
            raise
    if checkpoint is not None and growing.n_rounds > n_saved:
        checkpoint.save(growing, identity)
    if stopped and on_interrupt == "raise":
        raise KeyboardInterrupt
    last, results = env.best or (growing.n_rounds - 1, env.evaluation_result_list)
    return Boosted(growing.whole(last + 1), last + 1, as_mapping(results), stopped)


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
