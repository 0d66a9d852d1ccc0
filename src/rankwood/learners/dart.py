"""DART and X-DART as scikit-learn estimators: boosting that drops trees while it grows new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.boosting import Boosted
from rankwood.learners.dropout import Dart, XDart
from rankwood.learners.presets import LambdaRanker
from rankwood.learners.updates import Update
from rankwood.losses import CustomLoss, Loss, SquaredLoss


@dataclass(eq=False, repr=False, kw_only=True)
class DART(LambdaRanker):
    """DART: each tree is grown as if some of the others were not there (Rashmi & Gilad-Bachrach 2015).

    rate            share of the live trees that are dropped while a tree is grown: k = rate * trees, rounded
    skip            probability that an iteration drops nothing
    weighting       of dropped trees and the new one: as in the "paper", see below; or as in "lightgbm", which has k + 1
                    in place of k + learning_rate
    loss            "lambdamart", or "mart" for squared error on the labels, which needs no queries
    record_sizes    numbers of trees: `models_at_` has the models that first had so many

    The other parameters are LambdaMART's. The defaults of n_trees, n_leaves and learning_rate are those of Lucchese et
    al. (2017); with so large a learning rate, l2 keeps leaves bounded where hessians vanish. After a tree is grown
    without k others it weighs learning_rate / (k + learning_rate), and theirs become k / (k + learning_rate) of what
    they were. So, unlike in LambdaMART, the first trees of the model are not the model that there was when it had so
    many: early stopping restores trees and weights as they were.

    Fitted, besides what LambdaMART has: `log_`, a Step for every iteration (trees dropped and removed, weights,
    measures); and `models_at_`, by number of trees, as far as training went. `best_iteration_` counts iterations.

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.DART(n_trees=20, n_leaves=8, rate=0.1, record_sizes=[10]).fit(train, valid=valid)
    >>> ranker.n_trees_, ranker.models_at_[10].n_trees, len(ranker.log_[-1].dropped)
    (20, 10, 2)
    """

    n_trees: int = field(default=500, kw_only=False)
    n_leaves: int = field(default=50, kw_only=False)
    learning_rate: float = field(default=1.0, kw_only=False)
    l2: float = 1.0
    rate: float = 0.015
    skip: float = 0.0
    weighting: Literal["paper", "lightgbm"] = "paper"
    loss: Literal["lambdamart", "mart"] = "lambdamart"
    record_sizes: Sequence[int] | None = None

    @property
    def _needs_queries(self) -> bool:  # type: ignore[override]
        return self.loss != "mart"

    def _loss(self, p: SimpleNamespace) -> Loss:
        if p.loss == "mart":
            return SquaredLoss() if p.objective is None else CustomLoss(p.objective)
        return super()._loss(p)

    def _update(self, p: SimpleNamespace) -> Update:
        return Dart(p.learning_rate, p.rate, p.skip, p.weighting)

    def _extent(self, p: SimpleNamespace) -> dict[str, Any]:
        sizes = [] if p.record_sizes is None else [int(size) for size in p.record_sizes]
        wrong = [size for size in sizes if not 1 <= size <= p.n_trees]
        if wrong:
            raise RankwoodError(f"record_sizes must lie between 1 and n_trees={p.n_trees}, got {wrong[0]}")
        return {"n_trees": p.n_trees, "record_sizes": sizes}

    def _note(self, result: Boosted, start: Ensemble | None, seed: int, history: dict[str, Any]) -> None:
        super()._note(result, start, seed, history)
        self.log_ = list(result.steps)
        notes = self.ensemble_.metadata
        self.models_at_ = {size: model.with_metadata(**notes) for size, model in result.models_at.items()}


@dataclass(eq=False, repr=False, kw_only=True)
class XDART(DART):
    """X-DART: DART that removes the dropped trees for good when the model is better without (Lucchese et al. 2017).

    strategy          how many trees k to drop: "ratio", as in DART; "fixed", always `k`; "adaptive", 1 at first, 0.5
                      more in every iteration up to `upper_bound`, and 1 again after an improvement. Always rounded, and
                      at most half of the trees
    upper_bound       of the adaptive k: a number of trees, or below 1 a share of the live ones
    reference         what the model must surpass without the dropped trees: the "best" of all iterations, as in the
                      paper, or the "previous" one
    judge             the data on which, by the first measure: "valid", the first data set given for that (training data
                      when there is none, with a warning), or "train"
    max_iterations    end after so many even if there are fewer than n_trees trees; 10 * n_trees unless given

    The other parameters are DART's. Training ends when there are n_trees trees, which takes more iterations than trees.
    What judges removals has been learnt from: measure the model on data of its own.

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.XDART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> n_removed = sum(len(step.dropped) for step in ranker.log_ if step.removed)
    >>> ranker.n_trees_, len(ranker.log_) - n_removed
    (20, 20)
    """

    strategy: Literal["ratio", "fixed", "adaptive"] = "adaptive"
    k: int = 2
    upper_bound: float = 5
    reference: Literal["best", "previous"] = "best"
    judge: Literal["valid", "train"] = "valid"
    max_iterations: int | None = None

    def _update(self, p: SimpleNamespace) -> Update:
        dropout = p.learning_rate, p.rate, p.skip, p.weighting
        return XDart(*dropout, p.strategy, p.k, p.upper_bound, p.reference, p.judge)

    def _extent(self, p: SimpleNamespace) -> dict[str, Any]:
        most = 10 * p.n_trees if p.max_iterations is None else p.max_iterations
        if most < 1:
            raise RankwoodError(f"max_iterations must be at least 1, got {most}")
        return {**super()._extent(p), "max_iterations": most}
