"""Grow, prune, grow again: a model of a given size from more trees than it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.estimator import BoostedRanker
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import Pruner
from rankwood.pruning.refit import Refit
from rankwood.pruning.strategies import Chooser, Strategy


@dataclass(frozen=True)
class Stage:
    """After one round: trees before and after pruning, and the validation measure before and after."""

    n_grown: int
    n_trees: int
    valid_grown: float
    valid: float


def grow_and_prune(
    learner: Any,
    train: Dataset,
    valid: Dataset,
    size: int,
    *,
    grow: int = 100,
    keep: int = 50,
    measure: str = "nDCG@10",
    convention: Any = "rankwood",
    strategy: str | Strategy = "quality-loss",
    search: LineSearch | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    n_threads: int | None = None,
) -> tuple[Ensemble, list[Stage]]:
    """Boost `grow` trees, prune so that `keep` of them are added, and go on from there until there are `size`.

    `learner` is a boosted ranker such as LambdaMART; its number of trees does not matter. Every pruning looks at all
    trees, old and new. Returns the model and what every stage came to; the model is the last one, of at most `size`
    trees, as the line search may turn trees off.

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=12, n_features=5).split(0.6)
    >>> model, stages = rw.grow_and_prune(rw.LambdaMART(n_leaves=5), train, valid, 6, grow=6, keep=3)
    >>> model.n_trees <= 6, [stage.n_grown - stage.n_trees >= 3 for stage in stages]
    (True, [True, True])
    """
    if not 1 <= keep <= grow or size < 1:
        raise RankwoodError(f"grow_and_prune needs 1 <= keep <= grow and a size, got {keep=}, {grow=}, {size=}")
    if not isinstance(learner, BoostedRanker) or getattr(learner, "task", "regression") != "regression":
        raise RankwoodError(
            "grow_and_prune goes on from pruned models: give a boosted ranker such as LambdaMART or MART, "
            f"with task='regression', got {type(learner).__name__}"
        )
    how = LineSearch() if search is None else search
    binned = BinnedDataset.make(train, getattr(learner, "max_bins", 255), n_threads=n_threads)
    model: Ensemble | None = None
    stages: list[Stage] = []
    for goal in [*range(keep, size, keep), size]:
        grower = type(learner)(**learner.get_params(deep=False)).set_params(n_trees=grow, early_stopping_rounds=None)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no tree has a split")
            grown: Ensemble = grower.fit(binned, init_model=model).ensemble_
        k = max(grown.n_trees - goal, 0)
        chooser = Chooser(strategy, k)
        pruner = Pruner.of(grown, train, valid, measure, convention, chooser, how, Refit(), n_threads=n_threads)
        (pruned,) = pruner.prune(k)
        model = pruner.ensemble(pruned)
        stages.append(Stage(grown.n_trees, model.n_trees, pruner.valid.quality(pruner.original), pruned.valid))
        if on_stage is not None:
            on_stage(stages[-1])
    assert model is not None
    note = {"grow": grow, "keep": keep, "size": size, "strategy": chooser.name, "n_stages": len(stages)}
    return model.with_metadata(grow_and_prune=note), stages
