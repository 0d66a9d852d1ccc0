"""What all rankers share as scikit-learn estimators: scoring, the beginning and the end of `fit`, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rankwood._version import __version__
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FeatureMatrix, FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.diagnostics import feature_shares
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.measures import Measure
from rankwood.group import ALONE
from rankwood.model.ensemble import Ensemble
from rankwood.system import resolve_threads
from rankwood.training.callbacks import NO_VALIDATION_DATA, Callback, first_stops
from rankwood.training.checkpoint import Checkpoint
from rankwood.training.driver import History, Session, Trained
from rankwood.training.inputs import EvalSets, Rows, filled, in_codes, replacements, scoring_matrix, training_data
from rankwood.training.params import checked_parameters
from rankwood.training.tasks import NOTE, grade_probabilities, n_problems
from rankwood.training.watch import Measures

if TYPE_CHECKING:
    from typing_extensions import Self

    class BaseEstimator:
        """scikit-learn's own has no types: with it as a base, a type checker would let any attribute pass."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        def set_params(self, **parameters: Any) -> Self: ...

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator


class Ranker(BaseEstimator):
    """Base of all rankers: `fit` of a subclass trains an ensemble, everything else is here.

    A subclass is a dataclass whose fields are its parameters; those that are declared here are among them.
    """

    n_trees: int
    missing: Any
    measure: str | Measure | Sequence[str | Measure]
    convention: str | Convention
    importance_type: Literal["gain", "split"]
    on_interrupt: Literal["raise", "keep"]
    random_state: Any
    n_jobs: int | None

    ensemble_: Ensemble
    best_iteration_: int
    best_score_: Mapping[str, Mapping[str, float]]
    evals_result_: History
    interrupted_: bool
    _fitted_on_dataset: bool

    # ---- what users call

    def predict(self, X: Any) -> FloatArray:
        """Score of every row: documents of a query are ranked by falling scores.

        Parameters
        ----------
        X : Dataset, BinnedDataset, DataFrame or matrix
            Features as in `fit`; a column `qid` is not looked at.

        Returns
        -------
        array of float, shape (n_rows,)
        """
        check_is_fitted(self, "ensemble_")
        if isinstance(X, (Dataset, BinnedDataset)):  # whose features may be in files
            data = Rows(X).dataset(self)
            return data.per_row(lambda block: self.ensemble_.score(block, n_threads=self._n_threads()))
        return self.ensemble_.score(self._scoring_matrix(X), n_threads=self._n_threads())

    def score(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Mean over queries of the first of the measures in `measure` (nDCG@10 unless told otherwise).

        Parameters
        ----------
        X : Dataset, BinnedDataset, DataFrame or matrix
            What to measure on. A Dataset has its own labels and queries.
        y : array, optional
            Label of every row.
        qid, group : array, optional
            Query id of every row, in any order; or sizes of consecutive queries. A DataFrame may have a column `qid`
            instead, which cross-validation passes along.
        """
        check_is_fitted(self, "ensemble_")
        data = Rows(in_codes(X, self.ensemble_.coding), y, qid, group).dataset(self)
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
        """Number of trees of the fitted model, as LightGBM and scikit-learn call it."""
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

    def check_parameters(self) -> Self:
        """Raise an error if a parameter has a wrong type or is out of its range, as `fit` would; returns the learner.

        Examples
        --------
        >>> import rankwood as rw
        >>> rw.LambdaMART(n_leaves=1).check_parameters()
        Traceback (most recent call last):
        rankwood.errors.RankwoodError: n_leaves=1 would grow trees without a split, which rank nothing: give 2 or more
        """
        self._checked()._rules()
        return self

    # ---- the beginning and the end of every `fit`

    def _checked(self) -> Self:
        """A copy with checked parameters, which says what they mean; `fit` notes results on the ranker itself."""
        given: Any = self.measure
        several = isinstance(given, Sequence) and not isinstance(given, str)
        if any(map(callable, given if several else [given])):
            raise RankwoodError(
                "measure takes names of measures, such as 'nDCG@10': give a function of your own to "
                "fit(..., eval_metric=function)"
            )
        checked = checked_parameters(self)
        if checked.n_trees < 1:
            raise RankwoodError(f"n_trees must be at least 1, got {checked.n_trees}")
        return checked

    def _begin(
        self,
        given: Rows,
        sets: EvalSets,
        eval_metric: Any,
        callbacks: Sequence[Callback] | None,
        checkpoint: Any,
        *,
        stopping_rounds: int | None = None,
    ) -> tuple[Dataset, FeatureMatrix | None, Session]:
        """The data to learn from, what its missing values count as, and how the training runs."""
        measures = Measures(as_list(self.measure if eval_metric is None else eval_metric), self.convention)
        stopping = [] if stopping_rounds is None else [first_stops(stopping_rounds)]
        kept = self._checkpoint(checkpoint)
        threads, in_memory = self._n_threads(), self._needs_matrix
        rows = given.opened(alone=not self._needs_queries, n_threads=threads)
        data = training_data(self, rows, needs_queries=self._needs_queries)
        data = self._with_matrix(data)
        group = rows.X.share.group if isinstance(rows.X, BinnedDataset) else ALONE
        missing_as = replacements(data, self.missing, group)
        train = filled(data, missing_as)
        self._fitted_on_dataset = rows.is_dataset
        valid = sets.by_name(self, given, train, missing_as, in_memory=in_memory, n_threads=threads)
        if stopping and all(data is train for data in valid.values()):
            raise RankwoodError(NO_VALIDATION_DATA)
        called = [*(callbacks or []), *stopping]
        seed = self._seed()
        session = Session(measures, valid, called, kept, self.on_interrupt, seed, threads, self._notes(seed))
        return train, missing_as, session

    def _set_fitted(self, result: Trained, seed: int, **more_notes: Any) -> None:
        """Set the fitted attributes that all rankers have."""
        driven = result.driven
        notes = {**self._notes(seed), **curves_note(driven.history), **more_notes}
        self.ensemble_ = result.ensemble.with_metadata(**notes)
        self.best_iteration_ = driven.n_kept
        self.best_score_ = driven.best_score
        self.evals_result_ = driven.history
        self.interrupted_ = driven.interrupted

    def _rules(self) -> Any:
        """What the parameters mean to the training; wrong ones are refused here, before data is read."""
        raise NotImplementedError

    @property
    def _needs_queries(self) -> bool:
        """Whether fitting without qid or group is refused."""
        return True

    @property
    def _needs_matrix(self) -> bool:
        """Whether training needs the features themselves in memory, not only their bins."""
        return True

    def _with_matrix(self, data: Dataset) -> Dataset:
        """The training data, with its features in memory if they are needed."""
        return data.in_memory() if self._needs_matrix else data

    def _scoring_matrix(self, X: Any) -> Any:
        has_categories = self.ensemble_.coding is not None
        return scoring_matrix(self, X, names_of_dataset=self._fitted_on_dataset, has_categories=has_categories)

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
        parameters = self.noted_parameters()
        return {"learner": type(self).__name__, "parameters": parameters, "seed": seed, "version": __version__}

    def noted_parameters(self) -> dict[str, Any]:
        """The parameters that the model remembers."""
        unimportant = ("n_jobs", "random_state", "importance_type", "on_interrupt")
        return {
            name: _plain(value)
            for name, value in self.get_params().items()
            if name not in unimportant
            and not name.endswith("__n_jobs")
            and not _is_left_out(name.split("__")[-1], value)
        }


class GradesMixin(Ranker):
    """Rankers with a parameter `task`: those fitted with task="ordinal" have `classes_` and `predict_proba`."""

    task: Literal["regression", "ordinal"]

    @available_if(lambda learner: learner.task == "ordinal")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every grade for every row, when fitted with task="ordinal".

        Parameters
        ----------
        X : Dataset, BinnedDataset, DataFrame or matrix
            Features as in `fit`.

        Returns
        -------
        array of float, shape (n_rows, n_grades)
            Columns are in the order of `classes_`; every row sums to 1. See `rankwood.grade_probabilities`.
        """
        check_is_fitted(self, "ensemble_")
        return grade_probabilities(self.ensemble_, self._scoring_matrix(X), n_threads=self._n_threads())

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The grades: 0 up to the highest."""
        if NOTE not in getattr(self, "ensemble_", UNFITTED).metadata:
            raise AttributeError(f"{type(self).__name__} has no classes_ unless it was fitted with task='ordinal'")
        return np.arange(n_problems(self.ensemble_) + 1)


# Parameters, with their defaults, that the notes of a model tell of only when they were given.
SELDOM_GIVEN = {
    "monotone_constraints": None,
    "interaction_constraints": None,
    "max_features_used": None,
    "feature_costs": None,
    "categorical_features": None,
    "category_smoothing": 10.0,
    "category_l2": 10.0,
}

UNFITTED = Ensemble.from_trees([], n_features=1)


def _is_left_out(name: str, value: Any) -> bool:
    """Whether the notes of a model do not tell of a parameter."""
    return name in SELDOM_GIVEN and isinstance(value, (float, type(None))) and value == SELDOM_GIVEN[name]


def as_list(measures: Any) -> list[Any]:
    """One measure or several, as a list."""
    return [measures] if isinstance(measures, (str, Measure)) or callable(measures) else list(measures)


def curves_note(history: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Learning curves as the model remembers them, to six digits.

    Examples
    --------
    >>> curves_note({"valid": {"nDCG@10": [0.12345678]}})
    {'learning_curves': {'valid': {'nDCG@10': [0.123457]}}}
    """
    curves = {
        name: {measure: [float(f"{value:.6g}") for value in values] for measure, values in by_measure.items()}
        for name, by_measure in history.items()
    }
    return {"learning_curves": curves} if curves else {}


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; functions and the like by name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (Sequence, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Convention):
        return value.name
    if isinstance(value, BaseEstimator):
        return type(value).__name__
    return getattr(value, "__name__", None) or str(value)
