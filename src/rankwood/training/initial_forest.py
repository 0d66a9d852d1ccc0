"""The forest that iGBRT starts from: the paper's or any, fitted to what is boosted, and kept beside its checkpoint."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from rankwood.data.bins import BinnedDataset, coded_exactly
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.training.callbacks import Callback
from rankwood.training.checkpoint import Checkpoint, identify
from rankwood.training.driver import Session
from rankwood.training.inputs import filled, replacements
from rankwood.training.names import learner_class
from rankwood.training.tasks import Task

if TYPE_CHECKING:
    from rankwood.training.estimators import InitializedMART
    from rankwood.training.random_forest import RandomForest


def paper_forest(n_trees: int = 1000, **parameters: Any) -> RandomForest:
    """The random forest of the paper: full depth, documents drawn with replacement, a tenth of the features per split.

    The paper has 10,000 trees; it finds 1,000 hardly worse (table 1), at a tenth of time and memory.
    """
    forest: RandomForest = learner_class("forest")(n_trees=n_trees, max_features=0.1, **parameters)
    return forest


def fitted_start(forest: Any, ranker: InitializedMART, task: Task, train: BinnedDataset, session: Session) -> Ensemble:
    """The model of an estimator that is not fitted yet, fitted to what the ranker is about to be boosted on."""
    if not _can_go_on(forest):
        return _fit_or_load(forest, task, train, session.checkpoint)
    seen: Dataset | BinnedDataset = train.data
    if (group := train.share.group).size > 1:
        without_gaps = filled(train.data, replacements(train.data, forest.missing, group))
        seen = coded_exactly(replace(train, data=without_gaps), n_threads=session.n_threads)
    return fit_initial_forest(forest, ranker, seen, checkpoint=session.checkpoint).ensemble_


def _can_go_on(forest: Any) -> bool:
    """Whether a forest that was interrupted goes on from a checkpoint: its samples must be those of a number."""
    return isinstance(forest, learner_class("forest")) and isinstance(forest.random_state, (int, np.integer))


def fit_initial_forest(
    forest: RandomForest,
    ranker: InitializedMART,
    data: Dataset | BinnedDataset,
    *,
    checkpoint: Checkpoint | None = None,
    callbacks: Sequence[Callback] = (),
) -> RandomForest:
    """A copy of the forest, fitted to what the ranker will be boosted on, with the ranker's task.

    `InitializedMART.fit` calls this. Those who want to see the forest grow call it first, with callbacks, and give the
    fitted forest to the ranker; the model and the files are the same.

    Parameters
    ----------
    forest : RandomForest
        Not fitted yet, and left alone.
    ranker : InitializedMART
        What will start from the forest.
    data : Dataset or BinnedDataset
        What both learn from; in bins when it is a share of a group of processes.
    checkpoint : Checkpoint, optional
        That of the boosting: the forest's is a file beside it, saved as often.
    callbacks : sequence of callables
        Told of every tree of the forest.
    """
    seen = data if isinstance(data, BinnedDataset) else filled(data, replacements(data, ranker.missing))
    copy: RandomForest = clone(forest).set_params(task=ranker.task)
    copy.fit(seen, callbacks=callbacks, checkpoint=None if checkpoint is None else _beside(checkpoint))
    return copy


def _fit_or_load(forest: Any, task: Task, train: BinnedDataset, checkpoint: Checkpoint | None) -> Ensemble:
    """The model of an estimator that is fitted to the data for the task, whole; kept beside the checkpoint, if any."""
    if checkpoint is None:
        return _fit_whole(forest, task, train)
    beside = _beside(checkpoint)
    parameters = {name: value for name, value in forest.get_params().items() if name != "n_jobs"}
    nothing = Ensemble.from_trees([], n_features=train.data.n_features)
    identity = identify(train, {}, nothing, {"forest": (type(forest).__name__, parameters), "task": task})
    found = beside.read(identity)
    if found is not None:
        model = found[0]
    else:
        model = _fit_whole(forest, task, train).with_metadata(checkpoint={"identity": identity})
        beside.write(model)
    notes = model.metadata
    del notes["checkpoint"]
    return model.replace(metadata=notes)


def _beside(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint of the forest, beside that of the boosting."""
    return replace(checkpoint, path=os.fspath(checkpoint.path) + ".forest")


def _fit_whole(forest: Any, task: Task, train: BinnedDataset) -> Ensemble:
    """A copy of an estimator, fitted to the data for the task; one for every problem when it knows of no tasks."""
    data = train.data
    if "task" in forest.get_params(deep=False):
        return _fitted(clone(forest).set_params(task=task.name), train, data)
    return task.combine([_fitted(clone(forest), train, data.replace(y=target)) for target in task.targets(data.y)])


def _fitted(forest: Any, train: BinnedDataset, data: Dataset) -> Ensemble:
    """The model of an estimator; `data` is that of `train`, maybe with other labels. A share stays in its bins."""
    y = inspect.signature(forest.fit).parameters.get("y")
    if y is not None and y.default is inspect.Parameter.empty:
        raise RankwoodError(
            f"forest must be a ranker or a model of rankwood, got {type(forest).__name__}: fit it, bring it in with "
            "rankwood.load_model, and give the model"
        )
    seen = data if train.share.group.size == 1 else replace(train, data=data)
    model = getattr(forest.fit(seen), "ensemble_", None)
    if not isinstance(model, Ensemble):
        raise RankwoodError(f"forest must be a ranker that has an ensemble_ when fitted, got {type(forest).__name__}")
    return model
