"""Rounds of boosting: the scores so far, and what it takes to grow the next tree of every problem."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.learners.growing import GrowingEnsemble
from rankwood.learners.watch import Watched
from rankwood.losses import Loss
from rankwood.tree import Tree
from rankwood.trees.build import TreeBuilder, TreeRules
from rankwood.trees.tree import GrownTree


class Rounds:
    """The training data with the scores of every problem, and the data sets to measure on with those of the model.

    watched    the data sets by name; the scores of the training data are those of its only problem, if it has one
    """

    def __init__(
        self,
        train: BinnedDataset,
        loss: Loss,
        rules: TreeRules,
        growing: GrowingEnsemble,
        sets: Mapping[str, BinnedDataset],
        *,
        seed: int,
        n_threads: int,
    ) -> None:
        data, weights, task = train.data, weights_of(train), growing.task
        constant = loss.constant_hessian and weights is None and data.query_weights is None
        self.train, self.sign, self.seed = train, task.sign, seed
        self.builder = TreeBuilder(train, rules, constant_hessian=constant, n_threads=n_threads)
        self.gradient, self.hessian = np.empty(data.n_docs), np.empty(data.n_docs)
        whole = growing.whole()
        self.problems = [
            _Problem(train, loss, target, model, model.n_trees - growing.n_rounds, n_threads)
            for target, model in zip(task.targets(data.y), task.split(whole), strict=True)
        ]
        alone = self.problems[0].scored if task.n_problems == 1 else None
        self.watched = {
            name: alone if alone and binned is train else Watched.start(binned, whole, n_threads=n_threads)
            for name, binned in sets.items()
        }

    def grow(self, number: int, weight: float) -> list[Tree]:
        """One tree for every problem, fitted to its gradients and added to all scores."""
        trees = []
        for problem in self.problems:
            # A problem on its own would draw from this very stream.
            rng = np.random.default_rng([self.seed, problem.n_before + number])
            trees.append(self._grow(problem, weight, rng).tree)
        return trees

    def _grow(self, problem: _Problem, weight: float, rng: Generator) -> GrownTree:
        problem.objective.gradients(problem.scored.scores, self.gradient, self.hessian)
        grown, leaf_of_row = self.builder.build(self.gradient, self.hessian, rng)
        problem.scored.add(grown, weight, leaf_of_row)
        for one in self.watched.values():
            if one is not problem.scored:
                one.add(grown, self.sign * weight, leaf_of_row if one.binned is self.train else None)
        return grown


class _Problem:
    """One target, with the scores so far of its own model, which had `n_before` trees before the first round."""

    def __init__(
        self, train: BinnedDataset, loss: Loss, target: FloatArray, model: Ensemble, n_before: int, n_threads: int
    ) -> None:
        data = train.data
        self.n_before = n_before
        self.scored = Watched.start(train, model, n_threads=n_threads)
        self.objective = loss.prepare(
            train.by_query(target), data.offsets, weights_of(train), data.query_weights, n_threads=n_threads
        )


def weights_of(train: BinnedDataset) -> FloatArray | None:
    """Weights of documents, query by query."""
    return None if train.data.weights is None else train.by_query(train.data.weights)
