"""The boosted rankers of the papers, as scikit-learn estimators: a page of defaults each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from rankwood.learners.estimator import BoostedRanker
from rankwood.losses import CustomLoss, LambdaLoss, Loss, SquaredLoss


class LambdaMART(BoostedRanker):
    """LambdaMART: boosted trees that raise NDCG directly (Burges 2010), grown as in Asadi & Lin (2013).

    n_trees, learning_rate     size of the ensemble and weight of each tree
    n_leaves, max_depth, min_docs_per_leaf, min_gain, min_hessian, l2     limits of a tree; see GrowthRules
    depth_relaxation, balance  Asadi & Lin's lambda (cost-sensitive growth) and alpha (pruning while boosting)
    truncation, sigma, normalize, gains       the loss; see LambdaLoss
    query_fraction, feature_fraction, feature_sampling    what a tree (or split: feature_sampling="split") may see
    measure, convention        what is watched on validation data; early_stopping_rounds goes by the first measure
    objective                  a function of your own instead of the lambdas; see CustomLoss
    random_state, n_jobs       the model depends on the former only; n_jobs None uses every CPU

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.LambdaMART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> ranker.ensemble_.n_trees
    20
    """

    def __init__(
        self,
        n_trees: int = 300,
        n_leaves: int = 64,
        learning_rate: float = 0.05,
        *,
        depth_relaxation: float = 0.0,
        balance: float = 0.0,
        max_depth: int | None = None,
        min_docs_per_leaf: float = 20,
        min_gain: float = 0.0,
        min_hessian: float = 1e-3,
        l2: float = 0.0,
        gain: str = "newton",
        truncation: int = 30,
        sigma: float = 1.0,
        normalize: bool = True,
        gains: Sequence[float] | Literal["linear"] | None = None,
        query_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        feature_sampling: str = "tree",
        max_bins: int = 255,
        measure: str | Sequence[str] = "nDCG@10",
        convention: str = "rankwood",
        early_stopping_rounds: int | None = None,
        objective: Callable[..., Any] | None = None,
        importance_type: str = "gain",
        on_interrupt: str = "raise",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        for name, value in list(locals().items()):
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _loss(self) -> Loss:
        if self.objective is not None:
            return CustomLoss(self.objective)
        return LambdaLoss(truncation=self.truncation, sigma=self.sigma, normalize=self.normalize, gains=self.gains)


class MART(BoostedRanker):
    """MART, or GBRT: boosted regression trees on the labels (Mohan et al. 2011, algorithm 2).

    Parameters are those of LambdaMART but for its loss. Queries are needed only to measure.

    >>> import rankwood as rw
    >>> ranker = rw.MART(n_trees=5, n_leaves=4, min_docs_per_leaf=1, learning_rate=1.0)
    >>> ranker.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3]).predict([[0.0], [3.0]])
    array([0., 3.])
    """

    _needs_queries = False

    def __init__(
        self,
        n_trees: int = 300,
        n_leaves: int = 64,
        learning_rate: float = 0.05,
        *,
        depth_relaxation: float = 0.0,
        balance: float = 0.0,
        max_depth: int | None = None,
        min_docs_per_leaf: float = 20,
        min_gain: float = 0.0,
        min_hessian: float = 1e-3,
        l2: float = 0.0,
        gain: str = "newton",
        query_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        feature_sampling: str = "tree",
        max_bins: int = 255,
        measure: str | Sequence[str] = "nDCG@10",
        convention: str = "rankwood",
        early_stopping_rounds: int | None = None,
        objective: Callable[..., Any] | None = None,
        importance_type: str = "gain",
        on_interrupt: str = "raise",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        for name, value in list(locals().items()):
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _loss(self) -> Loss:
        return SquaredLoss() if self.objective is None else CustomLoss(self.objective)
