"""The rankers as scikit-learn estimators."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rankwood._version import __version__
from rankwood.atomic import check_writable
from rankwood.data.bins import MAX_BINS, BinnedDataset, CodedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.diagnostics import Curve, feature_shares, measure_curve, usual_sizes
from rankwood.evaluation.evaluator import Evaluation, evaluate
from rankwood.evaluation.measures import Measure
from rankwood.evaluation.per_query import mean
from rankwood.model.ensemble import Ensemble
from rankwood.system import resolve_threads
from rankwood.training import tasks as ordinal
from rankwood.training.boosting import Boosted, boost
from rankwood.training.callbacks import NO_VALIDATION_DATA, Callback, early_stopping, record_evaluation
from rankwood.training.checkpoint import Checkpoint, check_identity, identify
from rankwood.training.forest import Forest, FullDepthRules, TaskGrower, grow_forest, out_of_bag_scores
from rankwood.training.grow import GrowthRules, Sampling, TreeRules
from rankwood.training.inputs import (
    Rows,
    evaluation_data,
    scoring_matrix,
    something_to_learn_from,
    training_data,
)
from rankwood.training.losses import CustomLoss, LambdaLoss, Loss, SquaredLoss
from rankwood.training.params import checked_parameters
from rankwood.training.tasks import NOTE, Ordinal, Regression, Task, grade_probabilities, n_problems
from rankwood.training.updates import Dart, Plain, Update, XDart
from rankwood.training.watch import Measures

# What all rankers share as scikit-learn estimators: scoring, fitted attributes, threads and seed.


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Base of all rankers: once `fit` has set `ensemble_`, everything else is here.

    A subclass is a dataclass whose fields are its parameters; `measure`, `convention`, `importance_type`,
    `random_state` and `n_jobs` are among them.
    """

    ensemble_: Ensemble
    measure: Any
    convention: Any
    importance_type: Any
    random_state: Any
    n_jobs: int | None

    def predict(self, X: Any) -> FloatArray:
        """Score of every row: the higher, the further up. X as in `fit`; a column `qid` is not looked at."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.score(scoring_matrix(self, X), n_threads=self._n_threads())

    def score(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Mean over queries of the first of `measure` (nDCG@10 unless told otherwise), on a Dataset or on X and y.

        The rows need queries: qid, group, or a DataFrame column `qid`, which cross-validation passes along.
        """
        check_is_fitted(self, "ensemble_")
        data = Rows(X, y, qid, group).dataset(self)
        measure = as_list(self.measure)[0]
        scores = self.predict(data)
        means = evaluate(scores, data, measure, convention=self.convention, n_threads=self._n_threads()).means
        return next(iter(means.values()))

    @property
    def n_trees_(self) -> int:
        """Number of trees of the fitted model."""
        return self.ensemble_.n_trees

    @property
    def n_estimators_(self) -> int:
        """The same, as LightGBM and scikit-learn call it."""
        return self.n_trees_

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of every feature in the total gain (`importance_type="gain"`) or in the splits ("split")."""
        check_is_fitted(self, "ensemble_")
        checked_parameters(self)
        if self.importance_type == "split":
            return feature_shares(self.ensemble_)
        if self.ensemble_.split_gain is None:
            raise RankwoodError("init_model knows no gains of its splits: use importance_type='split'")
        return feature_shares(self.ensemble_, self.ensemble_.split_gain)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _n_threads(self) -> int:
        if self.n_jobs is not None and self.n_jobs < 0:  # as joblib counts: -1 is every CPU, -2 all but one
            return max(1, resolve_threads(None) + 1 + self.n_jobs)
        return resolve_threads(self.n_jobs)

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            if self.random_state < 0:
                raise RankwoodError(f"random_state must not be negative, got {self.random_state}")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _checkpoint(self, given: Any) -> Checkpoint | None:
        if given is not None and not isinstance(self.random_state, (int, np.integer)):
            raise RankwoodError("a checkpoint needs a number as random_state, to go on with the same stream")
        return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)

    def _notes(self, seed: int) -> dict[str, Any]:
        """What the model remembers of its training."""
        unimportant = ("n_jobs", "random_state", "importance_type", "on_interrupt")
        parameters = {
            name: _plain(value)
            for name, value in self.get_params().items()
            if name not in unimportant and not name.endswith("__n_jobs")
        }
        return {"learner": type(self).__name__, "parameters": parameters, "seed": seed, "version": __version__}


def curves_note(history: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Learning curves as the model remembers them, to six digits.

    >>> curves_note({"valid": {"nDCG@10": [0.12345678]}})
    {'learning_curves': {'valid': {'nDCG@10': [0.123457]}}}
    """
    curves = {
        name: {measure: [float(f"{value:.6g}") for value in values] for measure, values in by_measure.items()}
        for name, by_measure in history.items()
    }
    return {"learning_curves": curves} if curves else {}


def as_list(measures: Any) -> list[Any]:
    """One measure or several, as a list."""
    return [measures] if isinstance(measures, (str, Measure)) or callable(measures) else list(measures)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; functions and the like by name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Sequence, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Convention):
        return value.name
    if isinstance(value, BaseEstimator):
        return type(value).__name__
    return getattr(value, "__name__", None) or str(value)


# What all boosted rankers share as scikit-learn estimators: parameters, fitting, fitted attributes, scoring.


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


# The boosted rankers of the papers, as scikit-learn estimators: a few defaults and a loss each.


@dataclass(eq=False, repr=False, kw_only=True)
class ScheduledRanker(BoostedRanker):
    """Rankers that only ever add trees, with a weight that may depend on their number. LambdaMART explains it."""

    learning_rate_schedule: Literal["constant", "adaptive"] = "constant"
    schedule_rate: float = 0.015

    def _update(self, p: SimpleNamespace) -> Update:
        return Plain(p.learning_rate, p.learning_rate_schedule, p.schedule_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaRanker(BoostedRanker):
    """Rankers that learn by LambdaMART's gradients, and the parameters of these. LambdaMART explains them."""

    truncation: int | None = 30
    sigma: float = 1.0
    normalize: bool = True
    gains: Sequence[float] | Literal["linear"] | None = None
    cut_discounts: bool = False

    def _loss(self, p: SimpleNamespace) -> Loss:
        if p.objective is not None:
            return CustomLoss(p.objective)
        return LambdaLoss(
            truncation=p.truncation, sigma=p.sigma, normalize=p.normalize, gains=p.gains, cut_discounts=p.cut_discounts
        )


@dataclass(eq=False, repr=False, kw_only=True)
class LambdaMART(ScheduledRanker, LambdaRanker):
    """LambdaMART: boosted trees that raise NDCG directly (Burges 2010), grown as in Asadi & Lin (2013).

    n_trees, learning_rate     size of the ensemble and weight of each tree
    n_leaves, max_depth, min_docs_per_leaf, min_gain, min_hessian, l2, gain     limits of a tree; see GrowthRules
    learning_rate_schedule     "constant"; or "adaptive": tree i = 0, 1, ... weighs nu / (k + nu), where nu is the
                               learning rate and k = schedule_rate * i. Meant for a learning rate of about 1: the
                               control of Lucchese et al. (2017)
    depth_relaxation, balance  Asadi & Lin's lambda (cost-sensitive growth) and alpha (pruning while boosting)
    truncation, sigma, normalize, gains, cut_discounts    the loss; see LambdaLoss
    query_fraction, feature_fraction    share of the queries and features that a tree may see, drawn anew for each
    feature_sampling           whether features are drawn per "tree" or per "split"
    max_bins                   number of values that a feature is reduced to; data that comes in bins keeps its own
    missing                    where missing values go: "native", learnt for each split; "zero", where 0 goes, as if
                               they were 0 in training and in scoring
    measure, convention        what is watched on validation data; the first measure is also what `score` returns
    early_stopping_rounds      stop when the first measure has not improved for so many trees, and restore the best size
    objective                  a function of your own instead of the learner's loss; see CustomLoss
    importance_type            what `feature_importances_` counts: "gain" or "split"
    on_interrupt               after Ctrl-C "raise" KeyboardInterrupt, or "keep" what was learnt and return
    random_state               a number, for the same model whenever; a RandomState or None as in scikit-learn
    n_jobs                     number of threads; None or -1 uses every CPU. It never changes the model

    Fitted: `ensemble_` (the model), `best_iteration_` (number of boosted trees kept), `best_score_` and
    `evals_result_` (by data set and measure), `n_features_in_`, `feature_names_in_`, `feature_importances_`,
    `n_trees_`, `n_estimators_`, `interrupted_` (whether Ctrl-C ended the training).

    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.LambdaMART(n_trees=20, n_leaves=8).fit(train, valid=valid)
    >>> ranker.n_trees_, len(ranker.evals_result_["valid"]["nDCG@10"])
    (20, 20)
    """


class GradesMixin:
    """What an estimator with `task` and `ensemble_` adds when `task="ordinal"`: `classes_` and `predict_proba`."""

    @available_if(lambda learner: learner.task == "ordinal")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every grade of `classes_` for every row; X as in `predict`. See `grade_probabilities`."""
        learner: Any = self
        check_is_fitted(learner, "ensemble_")
        return grade_probabilities(learner.ensemble_, scoring_matrix(learner, X), n_threads=learner._n_threads())

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The grades: 0 up to the highest."""
        learner: Any = self
        if NOTE not in getattr(learner, "ensemble_", UNFITTED).metadata:
            raise AttributeError(f"{type(self).__name__} has no classes_ unless it was fitted with task='ordinal'")
        return np.arange(n_problems(learner.ensemble_) + 1)


UNFITTED = Ensemble.from_trees([], n_features=1)


@dataclass(eq=False, repr=False, kw_only=True)
class MART(GradesMixin, ScheduledRanker):
    """MART, or GBRT: boosted regression trees on the labels (Mohan et al. 2011, algorithm 2).

    Parameters are those of LambdaMART but for its loss, and

    task      "regression" on the labels; or "ordinal", the classification setting (section 6 of the paper): for every
              grade c above 0 a tree of each round learns whether the label is below c, and the score is the expected
              grade. The model has `n_trees` trees per grade, and stopping early goes by its ranking

    Queries are needed only to measure, and to sample them; without any, every row is a query of its own.
    Fitted with task="ordinal" it also has `classes_`, the grades, and `predict_proba`.

    >>> import rankwood as rw
    >>> ranker = rw.MART(n_trees=5, n_leaves=4, min_docs_per_leaf=1, learning_rate=1.0)
    >>> ranker.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3]).predict([[0.0], [3.0]])
    array([0., 3.])
    >>> _ = ranker.set_params(task="ordinal").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 2])
    >>> ranker.classes_, ranker.predict_proba([[1.0]]), ranker.n_trees_
    (array([0, 1, 2]), array([[0., 1., 0.]]), 10)
    """

    task: Literal["regression", "ordinal"] = "regression"

    _needs_queries: ClassVar[bool] = False

    def _loss(self, p: SimpleNamespace) -> Loss:
        return SquaredLoss() if p.objective is None else CustomLoss(p.objective)

    def _task(self, p: SimpleNamespace, y: FloatArray) -> Task:
        if p.task == "regression":
            return Regression()
        if p.objective is not None:
            raise RankwoodError("task='ordinal' learns probabilities by squared error: leave objective out")
        return Ordinal.of(y)


# DART and X-DART as scikit-learn estimators: boosting that drops trees while it grows new ones.


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


# Random forests for ranking as a scikit-learn estimator.


@dataclass(eq=False, repr=False, kw_only=True)
class RandomForest(GradesMixin, Ranker):
    """A random forest: the mean of trees of full depth, each grown on a sample of its own.

    Without further ado every tree sees as many documents as there are, drawn with replacement (Breiman 2001; Mohan et
    al. 2011, algorithm 1). With `queries_per_tree` it sees whole queries (Ibrahim & Carman 2014): few of them make the
    trees less alike, the forest often better, and training faster by as much as the sample is smaller.

    n_trees            size of the forest
    criterion          what splits lower: "variance" of the labels, or "entropy" over labels as classes. The value of a
                       leaf is the mean label
    max_features       features drawn at each node: a count, a fraction, "sqrt" of all, or None for all
    queries_per_tree   queries that a tree is grown on, with all their documents: a count, or a fraction of all
    docs_per_tree      documents, when no queries are drawn: a count, or a fraction of all
    replace            whether one may be drawn twice; None: documents yes, queries no
    max_depth, n_leaves, min_docs_per_leaf, min_gain     limits of a tree; see FullDepthRules. There are none by default
    max_bins           number of values that a feature is reduced to. None: every value counts when there are up to
                       65,535 documents, and there are 255 bins else; data that comes in bins keeps its own
    task               "regression" on the labels; or "ordinal", the classification setting (Mohan et al., section 6):
                       for every grade c above 0 a forest learns whether the label is below c, tree t of each on the
                       same sample, and the score is the expected grade. The model has `n_trees` trees per grade
    missing            a missing value goes where it gains most ("native"); or counts as 0 in training and in scoring
                       ("zero"), and the forest is that of data with 0 instead
    out_of_bag         score the documents of the training data by the trees that have not seen them, and measure that
    measure, convention    what is watched on validation data; the first measure is also what `score` returns
    importance_type    what `feature_importances_` counts: "gain" or "split"
    on_interrupt       after Ctrl-C "raise" KeyboardInterrupt, or "keep" the trees there are and return
    random_state       a number, for the same model whenever; a RandomState or None as in scikit-learn
    n_jobs             number of threads; None or -1 uses every CPU. It never changes the model

    Fitted: `ensemble_` (the model: tree weights 1/M), `best_iteration_` (number of trees), `best_score_` and
    `evals_result_` (by data set and measure), `interrupted_`, `n_features_in_`, `feature_names_in_`,
    `feature_importances_`, `n_trees_`. With `out_of_bag` also `oob_scores_` (of every row of the training data, NaN
    where every tree saw it) and, when there are queries, `oob_evaluation_` (an Evaluation; queries with a NaN are left
    out) and `oob_score_` (the mean of its first measure). With task="ordinal" `classes_`, the grades, and
    `predict_proba`.

    >>> import rankwood as rw
    >>> train, test = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=8).split(0.7)
    >>> ranker = rw.RandomForest(n_trees=50, queries_per_tree=0.2, criterion="entropy", out_of_bag=True).fit(train)
    >>> ranker.n_trees_, ranker.oob_scores_.shape == train.y.shape, ranker.oob_score_ > 0.5
    (50, True, True)
    >>> grades = rw.RandomForest(n_trees=50, queries_per_tree=0.2, task="ordinal").fit(train)
    >>> grades.n_trees_, grades.predict_proba(test).shape == (test.n_docs, len(grades.classes_))
    (200, True)
    """

    n_trees: int = field(default=1000, kw_only=False)
    criterion: Literal["variance", "entropy"] = "variance"
    max_features: float | Literal["sqrt"] | None = "sqrt"
    queries_per_tree: float | None = None
    docs_per_tree: float | None = None
    replace: bool | None = None
    max_depth: int | None = None
    n_leaves: int | None = None
    min_docs_per_leaf: float = 1
    min_gain: float = 0.0
    max_bins: int | None = None
    task: Literal["regression", "ordinal"] = "regression"
    missing: Literal["native", "zero"] = "native"
    out_of_bag: bool = False
    measure: str | Measure | Sequence[str | Measure] = "nDCG@10"
    convention: str | Convention = "rankwood"
    importance_type: Literal["gain", "split"] = "gain"
    on_interrupt: Literal["raise", "keep"] = "raise"
    random_state: Any = 0
    n_jobs: int | None = None

    _needs_queries: ClassVar[bool] = False

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
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Any:
        """Grow a forest on a Dataset, or on X and y with the query of every row. Arguments are those of LambdaMART.fit.

        Queries are needed only to draw them and to measure. Weights count in the means of leaves and in gains; what a
        tree sees is drawn without regard to them.
        """
        p = checked_parameters(self)
        if p.n_trees < 1:
            raise RankwoodError(f"n_trees must be at least 1, got {p.n_trees}")
        rules, seed, n_threads = rules_of(p), self._seed(), self._n_threads()
        measures = Measures(as_list(p.measure if eval_metric is None else eval_metric), p.convention).measures
        checkpoint = self._checkpoint(checkpoint)
        rows = Rows(X, y, qid, group, sample_weight, query_weight)
        train = self._training_data(rows, p, n_threads)
        if p.queries_per_tree is not None and not rows.has_queries:
            raise RankwoodError("queries_per_tree draws queries: give qid or group, or draw documents by docs_per_tree")
        self._fitted_on_dataset = rows.is_dataset
        watched = evaluation_data(self, train, rows, valid, eval_set, eval_qid, eval_group, eval_names)
        grower = TaskGrower(train, rules, task_of(p, train.data.y))
        history: dict[str, dict[str, list[float]]] = {}
        result = grow_forest(
            grower,
            n_trees=p.n_trees,
            valid={name: one.data if isinstance(one, BinnedDataset) else one for name, one in watched.items()},
            measures=measures,
            convention=p.convention,
            callbacks=[*(callbacks or []), record_evaluation(history)],
            checkpoint=checkpoint,
            on_interrupt=p.on_interrupt,
            seed=seed,
            n_threads=n_threads,
        )
        self._note(result, seed, history)
        if p.out_of_bag:
            self._note_out_of_bag(grower, rows, p, seed, n_threads)
        return self

    def _training_data(self, rows: Rows, p: SimpleNamespace, n_threads: int) -> CodedDataset:
        data = something_to_learn_from(self, rows)
        given = rows.X if isinstance(rows.X, BinnedDataset) else data
        return CodedDataset.make(given, p.max_bins, missing_as_zero=p.missing == "zero", n_threads=n_threads)

    def _note(self, result: Forest, seed: int, history: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        if result.ensemble.n_nodes == 0:
            warnings.warn(
                "no tree has a split, so every document gets the same score: are all labels or all rows alike, "
                "are samples too small, or do max_depth, n_leaves, min_docs_per_leaf or min_gain forbid it?",
                stacklevel=3,
            )
        self.ensemble_ = result.ensemble.with_metadata(**self._notes(seed), **curves_note(history))
        self.best_iteration_ = result.best_iteration
        self.best_score_ = result.best_score
        self.evals_result_ = history
        self.interrupted_ = result.interrupted

    def _note_out_of_bag(self, grower: TaskGrower, rows: Rows, p: SimpleNamespace, seed: int, n_threads: int) -> None:
        data = grower.train.data
        self.oob_scores_, counts = out_of_bag_scores(grower, self.ensemble_, seed=seed, n_threads=n_threads)
        unseen = int(np.count_nonzero(counts == 0))
        if unseen:
            warnings.warn(
                f"{unseen} of {data.n_docs} documents were seen by every tree and have no score out of the bag: "
                "grow more trees, or on smaller samples",
                stacklevel=3,
            )
        self.oob_evaluation_ = self.oob_score_ = None
        if rows.has_queries:
            self.oob_evaluation_ = evaluate_scored(
                self.oob_scores_, data, as_list(p.measure), p.convention, n_threads=n_threads
            )
            self.oob_score_ = next(iter(self.oob_evaluation_.means.values()))


def evaluate_scored(
    scores: FloatArray,
    data: Dataset,
    measures: Sequence[str | Measure],
    convention: str | Convention = "rankwood",
    *,
    n_threads: int | None = None,
) -> Evaluation:
    """Measure the queries all of whose documents have a score; the others have NaN, and are left out of the means."""
    index = data.queries.index
    complete = np.bincount(index, weights=np.isnan(scores), minlength=data.n_queries) == 0
    # Documents without a score are given one, so that nothing is in their way; their queries do not count.
    result = evaluate(np.nan_to_num(scores), data, measures, convention=convention, n_threads=n_threads)
    values = {name: np.where(complete, row, np.nan) for name, row in result.per_query.items()}
    means = {name: mean(row, data.query_weights) for name, row in values.items()}
    return Evaluation(result.convention, means, values, data.query_weights)


def task_of(p: SimpleNamespace, y: FloatArray) -> Task:
    """The task of checked parameters, for these labels."""
    return Ordinal.of(y) if p.task == "ordinal" else Regression()


def rules_of(p: SimpleNamespace) -> FullDepthRules:
    """How trees are made, by checked parameters."""
    return FullDepthRules(
        criterion=p.criterion,
        max_features=p.max_features,
        queries_per_tree=p.queries_per_tree,
        docs_per_tree=p.docs_per_tree,
        replace=p.replace,
        max_depth=p.max_depth,
        n_leaves=p.n_leaves,
        min_docs_per_leaf=p.min_docs_per_leaf,
        min_gain=p.min_gain,
    )


# iGBRT (Mohan et al. 2011, algorithm 3): boosting that starts from a forest.


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
    return task.combine([_fitted(clone(forest), train.data.replace(y=target)) for target in targets])


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


# How good a forest is by the number of its trees, without other data than it was grown on.


def out_of_bag_curve(
    forest: RandomForest,
    train: Dataset,
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    sizes: Sequence[int] | None = None,
    convention: str | Convention = "rankwood",
    n_threads: int | None = None,
) -> Curve:
    """Measures over the number of trees of a fitted forest, on the data it was fitted to, out of the bag.

    What every tree has seen is drawn again from the forest's seed. Arguments are those of `measure_curve`; with
    task="ordinal", `sizes` count the trees of a grade.

    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=40, docs_per_query=10, n_features=6)
    >>> forest = rw.RandomForest(30, queries_per_tree=0.3, out_of_bag=True).fit(data)
    >>> curve = out_of_bag_curve(forest, data, sizes=[10, 30])
    >>> bool(abs(curve.values["nDCG@10"][-1] - forest.oob_score_) < 1e-12)
    True
    """
    if not isinstance(forest, RandomForest):
        raise RankwoodError(
            f"what a tree has seen is drawn again by the forest that was fitted: give the RandomForest, "
            f"not {type(forest).__name__}"
        )
    check_is_fitted(forest, "ensemble_")
    p = checked_parameters(forest)
    coded = CodedDataset.make(train, p.max_bins, missing_as_zero=p.missing == "zero", n_threads=n_threads)
    grower = TaskGrower(coded, rules_of(p), task_of(p, train.y))
    seed, step = int(forest.ensemble_.metadata["seed"]), grower.task.n_problems
    if not _same_first_tree(forest, grower, seed, n_threads):
        raise DataError("this is not the data that the forest was fitted to: its first tree, grown again, is another")
    at = usual_sizes(forest.n_trees_ // step) if sizes is None else np.asarray(sizes)
    curve = measure_curve(
        forest,
        train,
        measures,
        sizes=(at * step).tolist(),
        in_bag=lambda tree: grower.sample(seed, tree // step)[0],
        convention=convention,
        n_threads=n_threads,
    )
    return Curve(curve.sizes // step, curve.values)


def _same_first_tree(forest: RandomForest, grower: TaskGrower, seed: int, n_threads: int | None) -> bool:
    again = grower.grow(seed, 0, 1, n_threads=resolve_threads(n_threads)).threshold
    return np.array_equal(again, forest.ensemble_.threshold[: len(again)])
