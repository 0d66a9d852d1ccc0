"""What all boosted rankers share as scikit-learn estimators: parameters, fitting, fitted attributes, scoring."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

from rankwood.data.binning import MAX_BINS, BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure
from rankwood.learners import ordinal
from rankwood.learners.boosting import Boosted, boost
from rankwood.learners.callbacks import NO_VALIDATION_DATA, Callback, early_stopping, record_evaluation
from rankwood.learners.checkpoint import Checkpoint
from rankwood.learners.inputs import Rows, evaluation_data, training_data
from rankwood.learners.parameters import checked_parameters
from rankwood.learners.ranker import Ranker, as_list, curves_note
from rankwood.learners.tasks import Regression, Task
from rankwood.learners.updates import Plain, Update
from rankwood.learners.watch import Measures
from rankwood.losses import Loss
from rankwood.trees.build import TreeRules
from rankwood.trees.leafwise import GrowthRules
from rankwood.trees.sampling import Sampling


# A dataclass writes the __init__ that scikit-learn wants: explicit, and doing nothing but assignments.
@dataclass(eq=False, repr=False, kw_only=True)
class BoostedRanker(Ranker):
    """Base of the boosted rankers; a subclass adds parameters of its own and says which loss they mean.

    LambdaMART's docstring explains the parameters and fitted attributes.
    """

    n_trees: int = field(default=300, kw_only=False)
    n_leaves: int = field(default=64, kw_only=False)
    learning_rate: float = field(default=0.05, kw_only=False)
    depth_relaxation: float = 0.0
    balance: float = 0.0
    max_depth: int | None = None
    min_docs_per_leaf: float = 20
    min_gain: float = 0.0
    min_hessian: float = 1e-3
    l2: float = 0.0
    gain: Literal["newton", "variance"] = "newton"
    query_fraction: float = 1.0
    feature_fraction: float = 1.0
    feature_sampling: Literal["tree", "split"] = "tree"
    max_bins: int = MAX_BINS
    missing: Literal["native", "zero"] = "native"
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10"
    convention: str | Convention = "rankwood"
    early_stopping_rounds: int | None = None
    objective: Callable[..., Any] | None = None
    importance_type: Literal["gain", "split"] = "gain"
    on_interrupt: Literal["raise", "keep"] = "raise"
    random_state: Any = 0
    n_jobs: int | None = None

    _needs_queries: ClassVar[bool] = True  # whether fitting without qid or group is refused

    def _loss(self, p: SimpleNamespace) -> Loss:
        """The loss that the parameters `p` mean."""
        raise NotImplementedError

    def _update(self, p: SimpleNamespace) -> Update:
        """How trees join the ensemble."""
        return Plain(p.learning_rate)

    def _extent(self, p: SimpleNamespace) -> dict[str, Any]:
        """How far to go: arguments of `boost`."""
        return {"n_trees": p.n_trees}

    def _task(self, p: SimpleNamespace, y: FloatArray) -> Task:
        """What the labels are learnt as."""
        return Regression()

    def _start(
        self,
        p: SimpleNamespace,
        init_model: Any,
        task: Task,
        train: BinnedDataset,
        seed: int,
        checkpoint: Checkpoint | None,
    ) -> Ensemble | None:
        """The model to boost from, if any."""
        return routing_missing(ensemble_of(init_model, "init_model"), p)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        valid: Dataset | BinnedDataset | None = None,
        eval_set: Any = None,
        eval_qid: Sequence[Any] | None = None,
        eval_group: Sequence[Any] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: Any = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Any:
        """Train on a Dataset, or on X and y with the query of every row.

        X, y            a Dataset (or BinnedDataset) alone; or a matrix or DataFrame, and labels
        qid, group      query id per row, in any order; or sizes of consecutive queries; or a DataFrame column `qid`
        sample_weight, query_weight    weight per document, weight per query in order of first appearance
        valid           a Dataset to measure on, named "valid"; or, as elsewhere:
        eval_set        pairs (X, y), with eval_qid or eval_group, and eval_names; or Datasets. The training data may
                        be one; it is measured too, but early stopping does not go by it
        eval_metric     measures to watch instead of the parameter `measure`: names, or functions of (labels, scores,
                        offsets of queries) that return a value, or (name, value, whether higher is better)
        callbacks       see rankwood.early_stopping, log_evaluation, record_evaluation, reset_parameter
        init_model      an Ensemble or fitted ranker to go on from; its trees stay as they are
        checkpoint      a rankwood.Checkpoint, or its file's name: save now and then, and resume
        """
        p = checked_parameters(self)
        if p.n_trees < 1:
            raise RankwoodError(f"n_trees must be at least 1, got {p.n_trees}")
        loss, rules, update, seed, n_threads = (
            self._loss(p),
            _tree_rules(p),
            self._update(p),
            self._seed(),
            self._n_threads(),
        )
        extent = self._extent(p)
        measures = Measures(as_list(p.measure if eval_metric is None else eval_metric), p.convention).measures
        stopping = [] if p.early_stopping_rounds is None else [early_stopping(p.early_stopping_rounds, True)]
        checkpoint = self._checkpoint(checkpoint)
        rows = Rows(X, y, qid, group, sample_weight, query_weight)
        train = training_data(self, rows)
        self._fitted_on_dataset = rows.is_dataset
        watched = evaluation_data(self, train, rows, valid, eval_set, eval_qid, eval_group, eval_names)
        if stopping and all(data is train for data in watched.values()):
            raise RankwoodError(NO_VALIDATION_DATA)
        task = self._task(p, train.data.y)
        start = self._start(p, init_model, task, train, seed, checkpoint)
        task = task.covering(start)
        history: dict[str, dict[str, list[float]]] = {}
        result = boost(
            train,
            loss,
            rules,
            update,
            **extent,
            task=task,
            start=start,
            valid=watched,
            measures=measures,
            convention=p.convention,
            callbacks=[*(callbacks or []), record_evaluation(history), *stopping],
            checkpoint=checkpoint,
            on_interrupt=p.on_interrupt,
            seed=seed,
            n_threads=n_threads,
        )
        self._note(result, start, seed, history)
        return self

    def _note(self, result: Boosted, start: Ensemble | None, seed: int, history: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        if result.ensemble.n_nodes == (0 if start is None else start.n_nodes):
            warnings.warn(
                "no tree has a split, so every document gets the same score: are all labels of a query equal, "
                f"or is min_docs_per_leaf={self.min_docs_per_leaf} too many for this data?",
                stacklevel=3,
            )
        notes = self._notes(seed) | curves_note(history)
        if start is not None:
            not_kept = (ordinal.NOTE, "learning_curves")
            notes["init_model"] = {name: note for name, note in start.metadata.items() if name not in not_kept}
        self.ensemble_ = result.ensemble.with_metadata(**notes)
        self.best_iteration_ = result.best_iteration
        self.best_score_ = result.best_score
        self.evals_result_ = history
        self.interrupted_ = result.interrupted


def ensemble_of(model: Any, name: str) -> Ensemble | None:
    """The Ensemble of a fitted ranker, or the one given; `name` is that of the argument."""
    ensemble = getattr(model, "ensemble_", model)
    if ensemble is not None and not isinstance(ensemble, Ensemble):
        raise RankwoodError(f"{name} must be an Ensemble or a fitted ranker, got {type(model).__name__}")
    return ensemble


def routing_missing(model: Ensemble | None, p: SimpleNamespace) -> Ensemble | None:
    """A model to start from, made to send missing values where 0 goes if the parameters `p` say so."""
    if model is None or p.missing != "zero":
        return model
    return model.replace(missing_left=model.threshold >= 0.0)


def _tree_rules(p: SimpleNamespace) -> TreeRules:
    if p.min_docs_per_leaf > 1 and not float(p.min_docs_per_leaf).is_integer():
        given = f"min_docs_per_leaf must be a whole number, or a fraction below 1, got {p.min_docs_per_leaf}"
        raise RankwoodError(given)
    growth = GrowthRules(
        n_leaves=p.n_leaves,
        max_depth=p.max_depth,
        min_docs_per_leaf=p.min_docs_per_leaf,
        min_gain=p.min_gain,
        min_hessian=p.min_hessian,
        l2=p.l2,
        depth_relaxation=p.depth_relaxation,
        gain=p.gain,
    )
    sampling = Sampling(p.query_fraction, p.feature_fraction, per_split=p.feature_sampling == "split")
    return TreeRules(growth, sampling, p.balance, missing_as_zero=p.missing == "zero")
