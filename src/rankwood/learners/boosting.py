"""The boosting loop: the only one. Loss, starting ensemble and update rule are its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.learners.callbacks import Callback, CallbackEnv, as_mapping, in_order, stopped_at
from rankwood.learners.checkpoint import Checkpoint, identify
from rankwood.learners.growing import GrowingEnsemble
from rankwood.learners.interrupt import deferred_interrupt
from rankwood.learners.updates import Plain
from rankwood.learners.watch import CustomMeasure, Measures, Watched
from rankwood.losses import Loss, document_weights
from rankwood.threads import resolve_threads
from rankwood.trees.build import TreeBuilder, TreeRules
from rankwood.trees.tree import GrownTree


@dataclass(frozen=True)
class Boosted:
    """What training gives: the ensemble at its best size, and how it came about."""

    ensemble: Ensemble
    best_iteration: int  # number of boosted trees kept
    best_score: Mapping[str, Mapping[str, float]]  # of that size: data set, then measure
    interrupted: bool


def boost(
    train: BinnedDataset,
    loss: Loss,
    rules: TreeRules,
    update: Plain,
    *,
    n_trees: int,
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

    `valid` names the data sets to measure on after each tree; the training data may be one of them.
    Tree t of the whole ensemble draws its samples from a stream of its own, made of `seed` and t: the same data,
    parameters and seed give the same model bit for bit, whatever the number of threads, and also when training went on
    from a checkpoint or from the first trees of that very model.
    """
    threads = resolve_threads(n_threads)
    measured = Measures(measures, convention)
    before, after = in_order(callbacks)
    growing = GrowingEnsemble(_starting_ensemble(start, train, loss))
    sets = {name: _in_bins_of(train, data, name, threads) for name, data in (valid or {}).items()}
    identity: dict[str, str] = {}
    if checkpoint is not None:
        settings = {"loss": loss, "tree rules": rules, "update rule": update, "seed": seed, "measures": measured}
        identity = identify(train, sets, growing.start, settings)
        growing = checkpoint.load(growing.start, identity)
    n_resumed = n_saved = len(growing.trees)
    if n_resumed > n_trees:
        raise RankwoodError(f"the checkpoint has {n_resumed} trees already, more than n_trees={n_trees}")

    model = growing.whole()
    grower = _Grower(train, loss, rules, model, threads)
    watched = {
        name: grower.trained if binned is train else Watched.start(binned, model, n_threads=threads)
        for name, binned in sets.items()
    }
    env = CallbackEnv(growing, {"learning_rate": update.learning_rate}, 0, 0, n_trees)
    env.train_name = next((name for name, one in watched.items() if one is grower.trained), None)
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
                    grown = grower.grow(np.random.default_rng([seed, growing.start.n_trees + env.iteration]))
                    weight = update.weight(rate)
                    grower.add(grown, weight)
                    for name, one in watched.items():
                        if name != env.train_name:
                            one.add(grown, weight)
                    results = [result for name, one in watched.items() for result in one.results(name, measured)]
                    growing.append(grown.tree, weight, rate, results)
                    if checkpoint is not None and len(growing.trees) % checkpoint.every == 0:
                        checkpoint.save(growing, identity)
                        n_saved = len(growing.trees)
                env.evaluation_result_list = growing.history[env.iteration]
                _call(after, env)
                stopped = interrupted()
                if stopped:
                    break
    except Exception as error:
        env.best = stopped_at(error)
        if env.best is None:
            raise
    if checkpoint is not None and len(growing.trees) > n_saved:
        checkpoint.save(growing, identity)
    if stopped and on_interrupt == "raise":
        raise KeyboardInterrupt
    last, results = env.best or (len(growing.trees) - 1, env.evaluation_result_list)
    return Boosted(growing.whole(last + 1), last + 1, as_mapping(results), stopped)


class _Grower:
    """The training data with the scores so far, and what it takes to grow the next tree on it."""

    def __init__(self, train: BinnedDataset, loss: Loss, rules: TreeRules, model: Ensemble, n_threads: int) -> None:
        data, weights = train.data, _weights(train)
        self.trained = Watched.start(train, model, n_threads=n_threads)
        self.objective = loss.prepare(
            self.trained.labels, data.offsets, weights, data.query_weights, n_threads=n_threads
        )
        constant = loss.constant_hessian and weights is None and data.query_weights is None
        self.builder = TreeBuilder(train, rules, constant_hessian=constant, n_threads=n_threads)
        self.gradient, self.hessian = np.empty(data.n_docs), np.empty(data.n_docs)

    def grow(self, rng: Generator) -> GrownTree:
        """A tree fitted to the gradients at the scores so far."""
        self.objective.gradients(self.trained.scores, self.gradient, self.hessian)
        grown, self.leaf_of_row = self.builder.build(self.gradient, self.hessian, rng)
        return grown

    def add(self, grown: GrownTree, weight: float) -> None:
        """Add the tree that was just grown to the scores."""
        self.trained.add(grown, weight, self.leaf_of_row)


def _starting_ensemble(start: Ensemble | None, train: BinnedDataset, loss: Loss) -> Ensemble:
    """The ensemble to go on from; without one, the base score of the loss."""
    data = train.data
    if start is None:
        weights = document_weights(data.offsets, _weights(train), data.query_weights)
        base = loss.base_score(train.by_query(data.y), weights)
        return Ensemble.from_trees([], n_features=data.n_features, base=base, feature_names=data.feature_names)
    if start.n_features != data.n_features:
        raise RankwoodError(f"the model to go on from has {start.n_features} features, the data {data.n_features}")
    empty = Ensemble.from_trees([], n_features=data.n_features, feature_names=data.feature_names)
    return start.concat(empty)  # with the names of the data, which must not contradict its own


def _weights(train: BinnedDataset) -> FloatArray | None:
    return None if train.data.weights is None else train.by_query(train.data.weights)


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
