"""iGBRT (Mohan et al. 2011, algorithm 3): boosting that starts from a forest."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sklearn.base import clone

from rankwood.atomic import check_writable
from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.checkpoint import Checkpoint, check_identity, identify
from rankwood.learners.estimator import ensemble_of, routing_missing
from rankwood.learners.inputs import relabelled
from rankwood.learners.presets import MART
from rankwood.learners.random_forest import RandomForest
from rankwood.learners.tasks import Task


@dataclass(eq=False, repr=False, kw_only=True)
class InitializedMART(MART):
    """iGBRT: trees boosted from where a forest ends (Mohan et al. 2011, algorithm 3); forest and trees are one model.

    forest    what to start from: an Ensemble, of rankwood or imported; a fitted ranker; or an estimator, of which a
              copy is first fitted to the same data with the same task. None: a RandomForest as in the paper

    The other parameters are MART's; trees have depth 4 at most, as in the paper. With task="ordinal" every binary
    problem has a forest of its own to start from. scikit-learn's `clone`, and so its cross-validation, forgets what a
    ranker in `forest` was fitted to, but keeps an Ensemble.

    Fitted, besides what MART has: `initial_ensemble_`, the forest.

    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=5)
    >>> start = rw.MART(n_trees=3, n_leaves=4).fit(data)
    >>> ranker = rw.InitializedMART(n_trees=5, forest=start).fit(data)
    >>> ranker.n_trees_, ranker.ensemble_.select(range(3)) == ranker.initial_ensemble_
    (8, True)
    """

    n_leaves: int = field(default=16, kw_only=False)
    max_depth: int | None = 4
    forest: Any = None

    def _start(
        self,
        p: SimpleNamespace,
        init_model: Any,
        task: Task,
        train: BinnedDataset,
        seed: int,
        checkpoint: Checkpoint | None,
    ) -> Ensemble | None:
        if init_model is not None:  # a model to go on from, which has its forest already
            start = ensemble_of(init_model, "init_model")
        else:
            forest = paper_forest(random_state=seed, n_jobs=self.n_jobs) if p.forest is None else p.forest
            if hasattr(forest, "fit") and not hasattr(forest, "ensemble_"):
                start = _fit_or_load(forest, task, train, checkpoint)
            else:
                start = ensemble_of(forest, "forest")
        self.initial_ensemble_ = routing_missing(start, p)
        return self.initial_ensemble_


def paper_forest(n_trees: int = 1000, **parameters: Any) -> RandomForest:
    """The random forest of the paper: full depth, documents drawn with replacement, a tenth of the features per split.

    The paper has 10,000 trees; it finds 1,000 hardly worse (table 1), at a tenth of time and memory.
    """
    return RandomForest(n_trees=n_trees, max_features=0.1, **parameters)


def fit_forest(forest: Any, task: Task, train: BinnedDataset) -> Ensemble:
    """A copy of an estimator, fitted to the data for the task; one for every problem when it knows of no tasks."""
    if "task" in forest.get_params(deep=False):
        return _fitted(clone(forest).set_params(task=task.name), train.data)
    targets = task.targets(train.data.y)
    return task.combine([_fitted(clone(forest), relabelled(train.data, target)) for target in targets])


def _fitted(forest: Any, data: Dataset) -> Ensemble:
    y = inspect.signature(forest.fit).parameters.get("y")
    if y is not None and y.default is inspect.Parameter.empty:
        raise RankwoodError(
            f"forest must be a ranker or a model of rankwood, got {type(forest).__name__}: fit it, bring it in with "
            "rankwood.load_model, and give the model"
        )
    model = getattr(forest.fit(data), "ensemble_", None)
    if not isinstance(model, Ensemble):
        raise RankwoodError(f"forest must be a ranker that has an ensemble_ when fitted, got {type(forest).__name__}")
    return model


def _fit_or_load(forest: Any, task: Task, train: BinnedDataset, checkpoint: Checkpoint | None) -> Ensemble:
    """A forest is kept beside the checkpoint, so that it is grown once."""
    if checkpoint is None:
        return fit_forest(forest, task, train)
    path = os.fspath(checkpoint.path) + ".forest"
    parameters = {name: value for name, value in forest.get_params().items() if name != "n_jobs"}
    nothing = Ensemble.from_trees([], n_features=train.data.n_features)
    identity = identify(train, {}, nothing, {"forest": (type(forest).__name__, parameters), "task": task})
    check_writable(path)
    if Path(path).exists():
        model = Ensemble.load(path)
        check_identity(path, model, identity)
    else:
        model = fit_forest(forest, task, train).with_metadata(checkpoint={"identity": identity})
        model.save(path)
    notes = model.metadata
    del notes["checkpoint"]
    return model.replace(metadata=notes)
