"""The boosting loop: the only one. Loss, starting ensemble and update rule are its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Callback, CallbackEnv, EarlyStopException, Result, as_mapping, in_order
from rankwood.learners.checkpoint import Checkpoint, identity_of
from rankwood.learners.interrupt import deferred_interrupt
from rankwood.learners.updates import Plain
from rankwood.learners.watch import CustomMeasure, Measures, Watched
from rankwood.losses import Loss, document_weights
from rankwood.threads import resolve_threads
from rankwood.tree import Tree
from rankwood.trees.build import TreeBuilder, TreeRules


@dataclass(frozen=True)
class Boosted:
    """What training gives: the ensemble at its best size, and how it came about."""

    ensemble: Ensemble
    best_iteration: int  # number of boosted trees kept
    best_score: Mapping[str, Mapping[str, float]]


@dataclass
class _Growing:
    """The ensemble to start from, the trees boosted so far, and the measures after each."""

    start: Ensemble
    trees: list[Tree] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    history: list[list[Result]] = field(default_factory=list)

    def boosted(self, n_trees: int | None = None) -> Ensemble:
        """The boosted trees alone."""
        return Ensemble.from_trees(
            self.trees[:n_trees],
            tree_weights=np.array(self.weights[:n_trees], dtype=np.float64),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )

    def whole(self, n_trees: int | None = None) -> Ensemble:
        """The starting ensemble and the boosted trees."""
        return self.start.concat(self.boosted(n_trees))


def boost(
    train: BinnedDataset,
    loss: Loss,
    rules: TreeRules,
    update: Plain,
    *,
    n_trees: int,
    start: Ensemble | None = None,
    valid: Mapping[str, Dataset] | None = None,
    watch_train: bool = False,
    measures: Sequence[str | CustomMeasure] = ("nDCG@10",),
    convention: str = "rankwood",
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    seed: int = 0,
    n_threads: int | None = None,
) -> Boosted:
    """Add `n_trees` trees to `start`, each fitted to the gradients of `loss` at the scores so far.

    Tree t draws its samples from a stream of its own, made of `seed` and t: the same data, parameters and seed give
    the same model bit for bit, whatever the number of threads, also when training went on from a checkpoint.
    """
    threads = resolve_threads(n_threads)
    data = train.data
    labels = train.by_query(data.y)
    weights = None if data.weights is None else train.by_query(data.weights)
    if start is None:
        base = loss.base_score(labels, document_weights(data.offsets, weights, data.query_weights))
        start = Ensemble.from_trees([], n_features=data.n_features, base=base, feature_names=data.feature_names)
    elif start.n_features != data.n_features:
        raise RankwoodError(f"the model to go on from has {start.n_features} features, the data {data.n_features}")
    growing = _Growing(start)
    identity = ""
    if checkpoint is not None:
        identity = identity_of(train, start, loss, rules, update, seed, sorted(valid or {}), list(map(str, measures)))
        saved, growing.history = checkpoint.load(identity)
        if saved is not None:
            growing.trees = [saved.tree(t) for t in range(saved.n_trees)]
            growing.weights = saved.tree_weights.tolist()

    trained, watched = _watch(train, valid or {}, growing.whole(), watch_train, threads)
    weighted = weights is not None or data.query_weights is not None
    objective = loss.prepare(labels, data.offsets, weights, data.query_weights, n_threads=threads)
    builder = TreeBuilder(train, rules, constant_hessian=loss.constant_hessian and not weighted, n_threads=threads)
    gradient, hessian = np.empty(data.n_docs), np.empty(data.n_docs)
    measured = Measures(measures, convention)
    before, after = in_order(callbacks)
    env = CallbackEnv(None, {"learning_rate": update.learning_rate}, 0, 0, n_trees)
    try:
        for env.iteration, env.evaluation_result_list in enumerate(growing.history):  # what was seen before the kill
            _call(after, env)
        with deferred_interrupt() as interrupted:
            for env.iteration in range(len(growing.trees), n_trees):
                _call(before, env)
                objective.gradients(trained.scores, gradient, hessian)
                rng = np.random.default_rng([seed, env.iteration])
                grown, leaf_of_row = builder.build(gradient, hessian, rng)
                weight = update.weight(env.params["learning_rate"])
                growing.trees.append(grown.tree)
                growing.weights.append(weight)
                trained.add(grown, weight, leaf_of_row)
                for one in watched:
                    if one is not trained:
                        one.add(grown, weight)
                env.evaluation_result_list = [result for one in watched for result in one.results(measured)]
                growing.history.append(env.evaluation_result_list)
                if checkpoint is not None and len(growing.trees) % checkpoint.every == 0:
                    checkpoint.save(growing.boosted(), identity, growing.history)
                _call(after, env)
                if interrupted():
                    if on_interrupt == "raise":
                        raise KeyboardInterrupt
                    break
    except EarlyStopException as stop:
        n_best = stop.best_iteration + 1
        return Boosted(growing.whole(n_best), n_best, as_mapping(stop.best_score))
    return Boosted(growing.whole(), len(growing.trees), as_mapping(env.evaluation_result_list))


def _watch(
    train: BinnedDataset, valid: Mapping[str, Dataset], model: Ensemble, watch_train: bool, n_threads: int
) -> tuple[Watched, list[Watched]]:
    """The training data, whose scores the gradients need, and the data sets to measure on."""
    trained = Watched.start("train", train, model, n_threads=n_threads)
    watched = [trained] if watch_train else []
    for name, dataset in valid.items():
        binned = BinnedDataset.encode(dataset, train.edges, n_threads=n_threads)
        watched.append(Watched.start(name, binned, model, n_threads=n_threads))
    return trained, watched


def _call(callbacks: Sequence[Callback], env: CallbackEnv) -> None:
    for callback in callbacks:
        callback(env)
