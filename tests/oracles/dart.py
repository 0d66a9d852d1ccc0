"""DART and X-DART, slowly: algorithm 1 of Lucchese et al. (2017) on plain lists, every model scored anew."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rankwood as rw
from rankwood.data.bins import BinnedDataset
from rankwood.training.grow import GrowthRules, TreeBuilder, TreeRules

DROPS = 0xDA27


def slow_dart(
    train: rw.Dataset,
    judged: rw.Dataset,
    loss: Any,
    *,
    n_trees: int,
    n_leaves: int,
    nu: float,
    strategy: str,
    amount: float,
    remove: bool,
    reference: str = "best",
    skip: float = 0.0,
    l2: float = 0.0,
    min_docs: int = 5,
    seed: int = 0,
    most: int = 1000,
    rounding: str = "nearest",
) -> tuple[rw.Ensemble, list[dict[str, Any]]]:
    """The model, and of every iteration what was dropped, whether for good, and the measure after it.

    `amount` is the rate of "ratio", the k of "fixed", the upper bound of "adaptive".
    """
    binned = BinnedDataset.make(train)
    rules = TreeRules(GrowthRules(n_leaves=n_leaves, min_docs_per_leaf=min_docs, l2=l2))
    builder = TreeBuilder(binned, rules, constant_hessian=loss.constant_hessian, n_threads=1)
    objective = loss.prepare(train.y, train.offsets, None, None, n_threads=1)
    base = loss.base_score(train.y, np.ones(train.n_docs))
    gradient, hessian = np.empty(train.n_docs), np.empty(train.n_docs)

    def model(members: list[list[Any]]) -> rw.Ensemble:
        trees, weights = [tree for _, tree, _ in members], [weight for _, _, weight in members]
        return rw.Ensemble.from_trees(trees, tree_weights=weights, base=base, n_features=train.n_features)

    def quality(members: list[list[Any]]) -> float:
        return rw.evaluate(model(members), judged, "nDCG@10")["nDCG@10"]

    ensemble: list[list[Any]] = []  # [number, tree, weight]
    log: list[dict[str, Any]] = []
    best = previous = -math.inf
    grown_k = 1.0
    while len(ensemble) < n_trees and len(log) < most:
        size, iteration = len(ensemble), len(log)
        if strategy == "adaptive":
            bound = amount * size if amount < 1 else amount
            k = min(grown_k, max(bound, 1.0))
            grown_k = k
        else:
            k = amount * size if strategy == "ratio" else amount
        n_dropped = min(int(k + 0.5) if rounding == "nearest" else int(k), size // 2)
        rng = np.random.default_rng([seed, iteration, DROPS])
        if n_dropped and skip and rng.random() < skip:
            n_dropped = 0
        places = set(rng.choice(size, n_dropped, replace=False).tolist()) if n_dropped else set()
        out = [member for place, member in enumerate(ensemble) if place in places]
        rest = [member for place, member in enumerate(ensemble) if place not in places]
        objective.gradients(model(rest).score(train.X), gradient, hessian)
        grown, _ = builder.build(gradient, hessian, np.random.default_rng([seed, iteration]))
        new = [iteration, grown.tree, nu]
        goal = best if reference == "best" else previous
        removed = remove and n_dropped > 0 and quality([*rest, new]) > goal
        if removed:
            ensemble = [*rest, new]
        else:
            if n_dropped:
                new[2] = nu / (n_dropped + nu)
                for member in out:
                    member[2] *= n_dropped / (n_dropped + nu)
            ensemble.append(new)
        previous = quality(ensemble)
        grown_k = 1.0 if previous > best else grown_k + 0.5
        best = max(best, previous)
        log.append(
            {
                "iteration": iteration, "k": k, "dropped": tuple(member[0] for member in out), "removed": removed,
                "weights": [member[2] for member in ensemble], "value": previous, "best": best,
                "n_trees": len(ensemble),
            }
        )  # fmt: skip
    return model(ensemble), log
