"""Related methods that the papers compare with in words: Lasso re-weighting, and bags of boosted models."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.fitting.outputs import TreeOutputs
from rankwood.model.ensemble import Ensemble

BLOCK = 4096  # documents whose outputs are multiplied out at a time


def lasso_weights(outputs: TreeOutputs, targets: FloatArray, n_keep: int) -> FloatArray:
    """Weights of trees by the Lasso: scores or labels are regressed on the trees' outputs, with few weights above 0.

    The path of solutions is followed by least angle regression with weights of at least 0, from no tree on, and the
    last one with at most `n_keep` trees is taken. (Friedman and Popescu, and Ganjisaffar et al. 2011, re-weigh
    ensembles so.)

    Parameters
    ----------
    outputs : TreeOutputs
        Of every tree for every document.
    targets : array of float
        Of every document, in the order of the outputs: the scores of the whole model, as in Asadi & Lin's (2013)
        account of the method, or labels.
    n_keep : int
        Trees that may keep a weight.

    Returns
    -------
    array of float
        One weight per tree, 0 for those that go.
    """
    from sklearn.linear_model import lars_path_gram

    if not 1 <= n_keep <= outputs.n_trees:
        raise RankwoodError(f"the Lasso keeps 1 to {outputs.n_trees} trees, got {n_keep}")
    n_trees, n_docs = outputs.n_trees, outputs.n_docs
    gram, sums, products = np.zeros((n_trees, n_trees)), np.zeros(n_trees), np.zeros(n_trees)
    centred = targets - targets.mean()
    for begin in range(0, n_docs, BLOCK):
        block = slice(begin, begin + BLOCK)
        at = outputs.codes[:, block].astype(np.int64) + outputs.leaf_offsets[:-1, None]
        part = outputs.values[at]
        gram += part @ part.T
        sums += part.sum(axis=1)
        products += part @ centred[block]
    gram -= np.outer(sums, sums) / n_docs
    _, _, path = lars_path_gram(
        Xy=products, Gram=gram, n_samples=n_docs, method="lasso", positive=True, max_iter=8 * n_keep
    )
    active = np.count_nonzero(path > 0.0, axis=0)
    fitting = np.flatnonzero(active <= n_keep)
    weights: FloatArray = np.ascontiguousarray(path[:, fitting[-1]])
    return weights


def bagged(
    learner: Any, train: Dataset, n_bags: int, *, n_trees: int | None = None, seed: int = 0, **fit: Any
) -> Ensemble:
    """The mean of boosted models, each fitted to queries drawn with replacement (Ganjisaffar et al. 2011).

    Parameters
    ----------
    learner : estimator
        A boosted ranker; copies of it are fitted.
    train : Dataset
        What its queries are drawn from, as many as it has.
    n_bags : int
        Number of models.
    n_trees : int or None, default None
        Trees of all models together, shared out evenly; None: each has the learner's number.
    seed : int, default 0
        Of what is drawn; model number b has the seed `seed + b`.
    **fit
        Further arguments of every `fit`, such as `valid`.

    Returns
    -------
    Ensemble
        The trees of all models, their weights divided by the number of models.
    """
    from sklearn.base import clone

    if n_trees is not None and n_trees < n_bags:
        raise RankwoodError(f"{n_bags} models need at least as many trees, got {n_trees}")
    models: list[Ensemble] = []
    for number in range(n_bags):
        rng = np.random.default_rng([seed, number])
        drawn = np.sort(rng.integers(train.n_queries, size=train.n_queries))
        bag = train.select_queries(drawn)
        of_bag = clone(learner).set_params(random_state=seed + number)
        if n_trees is not None:
            of_bag.set_params(n_trees=(n_trees + number) // n_bags)
        model: Ensemble = of_bag.fit(bag, **fit).ensemble_
        models.append(model.replace(base=model.base / n_bags, tree_weights=model.tree_weights / n_bags))
    return models[0].concat(*models[1:])
