"""Growing and pruning by turns: a model of a given size, chosen from more trees than it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator
from rankwood.evaluation.measures import AnyMeasure
from rankwood.fitting.outputs import sample_queries
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.pruner import Pruner, PruningSettings
from rankwood.pruning.strategies import Chooser, Strategy
from rankwood.training.estimators import BoostedRanker


@dataclass(frozen=True)
class Stage:
    """One stage of `grow_and_prune`.

    Parameters
    ----------
    n_grown, n_trees : int
        Trees before and after pruning.
    valid_grown, valid : float
        Validation measure before and after pruning.
    """

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
    measure: AnyMeasure = "nDCG@10",
    convention: str | Convention = "rankwood",
    strategy: str | Strategy = "quality-loss",
    settings: PruningSettings | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    n_threads: int | None = None,
) -> tuple[Ensemble, list[Stage]]:
    """Boost some trees, prune so that a part of them is added, and repeat until the model has the size asked for.

    Every pruning looks at all trees, old and new.

    Parameters
    ----------
    learner : ranker
        A boosted ranker: LambdaMART, MART, DART, XDART, InitializedMART, or a class derived from one, with any loss,
        also one of your own (`objective`), but not task="ordinal". Its number of trees, early stopping and
        `record_sizes` have no part in it.
    train, valid : Dataset
        Data to grow trees and to search weights on, and data to choose victims and weights by.
    size : int
        Trees of the result at most.
    grow : int, default 100
        Trees that a stage grows.
    keep : int, default 50
        Trees that a stage adds to the model.
    measure : str, Measure or callable, default "nDCG@10"
        Measure to raise.
    convention : str or Convention, default "rankwood"
        Convention of the measure.
    strategy : str or callable, default "quality-loss"
        Which trees go, as for `cleaver`.
    settings : PruningSettings or None, default None
        `victims`, `search`, `max_queries`, `max_memory` and `seed` count here; the others have no part in it.
    on_stage : callable or None, default None
        Called with a `Stage` after every stage.
    n_threads : int or None, default None
        Threads; all CPUs when None.

    Returns
    -------
    model : Ensemble
        The model after the last stage. It may have fewer than `size` trees, as the line search may turn trees off.
    stages : list of Stage
        Trees before and after pruning (`n_grown`, `n_trees`), and the validation measure before and after
        (`valid_grown`, `valid`), of every stage.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=40, docs_per_query=12, n_features=5).split(0.6)
    >>> model, stages = rw.grow_and_prune(rw.LambdaMART(n_leaves=5), train, valid, 6, grow=6, keep=3)
    >>> model.n_trees <= 6, [stage.n_grown - stage.n_trees >= 3 for stage in stages]
    (True, [True, True])
    """
    check_stages(learner, size, grow, keep)
    how = PruningSettings.of(settings)
    bind = partial(Evaluator, measures=measure, convention=convention, by_query=True, n_threads=n_threads)
    search_on, choose_by = (bind(sample_queries(data, how.max_queries, seed=how.seed)) for data in (train, valid))
    binned = BinnedDataset.make(train, getattr(learner, "max_bins", 255), n_threads=n_threads)
    model: Ensemble | None = None
    stages: list[Stage] = []
    for goal in [*range(keep, size, keep), size]:
        grown = _grown(learner, binned, valid, grow, model)
        k = max(grown.n_trees - goal, 0)
        pruner = Pruner.of(grown, search_on, choose_by, Chooser(strategy, k, seed=how.seed), how)
        (pruned,) = pruner.prune(k)
        model = pruner.ensemble(pruned)
        stages.append(Stage(grown.n_trees, model.n_trees, pruner.valid.quality(pruner.original), pruned.valid))
        if on_stage is not None:
            on_stage(stages[-1])
    assert model is not None
    note = {"grow": grow, "keep": keep, "size": size, "strategy": pruner.chooser.name, "n_stages": len(stages)}
    return model.with_metadata(grow_and_prune=note), stages


def check_stages(learner: Any, size: int, grow: int, keep: int) -> None:
    """Refuse a learner that cannot boost on from a pruned model, and sizes that make no stages."""
    if not 1 <= keep <= grow or size < 1:
        raise RankwoodError(f"grow_and_prune needs 1 <= keep <= grow and a size, got {keep=}, {grow=}, {size=}")
    if not isinstance(learner, BoostedRanker):
        raise RankwoodError(
            "grow_and_prune goes on from pruned models: give a boosted ranker such as LambdaMART or MART, "
            f"got {type(learner).__name__}"
        )
    if getattr(learner, "task", "regression") != "regression":
        raise RankwoodError(
            "grow_and_prune cannot go on from a pruned model of task='ordinal', which no longer tells grades apart: "
            "use task='regression'"
        )


def _grown(
    learner: BoostedRanker, train: BinnedDataset, valid: Dataset, n_trees: int, model: Ensemble | None
) -> Ensemble:
    """The model with `n_trees` more trees, grown by a copy of the learner; Ctrl-C is not kept from the caller."""
    parameters = learner.get_params(deep=False)
    no_end: dict[str, Any] = {"n_trees": n_trees, "early_stopping_rounds": None, "on_interrupt": "raise"}
    if "record_sizes" in parameters:
        no_end["record_sizes"] = None
    judged_on = valid if parameters.get("judge") in ("auto", "valid") else None  # X-DART looks at it
    grower = type(learner)(**{**parameters, **no_end})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no tree has a split")
        grown: Ensemble = grower.fit(train, init_model=model, valid=judged_on).ensemble_
    return grown
