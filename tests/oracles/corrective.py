"""Corrective boosting, slowly: every model scored anew, sums over leaves by going through the documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import rankwood as rw
from rankwood.data.bins import BinnedDataset
from rankwood.training.grow import GrowthRules, TreeBuilder, TreeRules


def slow_corrective(
    train: rw.Dataset,
    loss: Any,
    *,
    n_trees: int,
    n_leaves: int,
    nu: float,
    every: int,
    passes: int,
    rate: float,
    damping: float,
    min_docs: int = 5,
    seed: int = 0,
    start: rw.Ensemble | None = None,
) -> list[rw.Ensemble]:
    """The models after every round."""
    binned = BinnedDataset.make(train)
    weighted = train.weights is not None or train.query_weights is not None
    builder = TreeBuilder(
        binned,
        TreeRules(GrowthRules(n_leaves=n_leaves, min_docs_per_leaf=min_docs)),
        constant_hessian=loss.constant_hessian and not weighted,
        n_threads=1,
    )
    objective = loss.prepare(train.y, train.offsets, train.weights, train.query_weights, n_threads=1)
    if start is None:
        start = rw.Ensemble.from_trees([], n_features=train.n_features, base=loss.base_score(train.y, train.weights))
    gradient, hessian = np.empty(train.n_docs), np.empty(train.n_docs)

    def model(trees: list[Any]) -> rw.Ensemble:
        boosted = rw.Ensemble.from_trees(trees, tree_weights=[nu] * len(trees), n_features=train.n_features)
        return start.concat(boosted)

    trees: list[Any] = []
    models = []
    for number in range(n_trees):
        objective.gradients(model(trees).score(train.X), gradient, hessian)
        rng = np.random.default_rng([seed, start.n_trees + number])
        trees.append(builder.build(gradient, hessian, rng)[0].tree)
        if len(trees) % every == 0:
            for _ in range(passes):
                objective.gradients(model(trees).score(train.X), gradient, hessian)
                trees = corrected(trees, train.X, gradient, hessian, nu, rate, damping)
        models.append(model(trees))
    return models


def corrected(trees, X, gradient, hessian, weight, rate, damping):
    """One step: leaf += (rate / trees) * sum(g) / (sum(h) + damping * mean of the sums(h) above 0) / weight."""
    sums = []
    for tree in trees:
        leaf = rw.Ensemble.from_trees([tree], n_features=X.shape[1]).leaves(X, engine="reference")[:, 0]
        inside = [leaf == number for number in range(len(tree.leaf_value))]
        sums.append([(gradient[docs].sum(), hessian[docs].sum()) for docs in inside])
    positive = [h for of_tree in sums for _, h in of_tree if h > 0.0]
    mean = np.mean(positive) if positive else 1.0
    found = []
    for tree, of_tree in zip(trees, sums, strict=True):
        step = np.array([g / (h + damping * mean) for g, h in of_tree])
        found.append(replace(tree, leaf_value=tree.leaf_value + rate / len(trees) * step / weight))
    return found
