"""What all rankers share as scikit-learn estimators: scoring, fitted attributes, threads and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwood._version import __version__
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import evaluate
from rankwood.evaluation.measures import Measure
from rankwood.learners.checkpoint import Checkpoint
from rankwood.learners.inputs import Rows, scoring_matrix
from rankwood.learners.parameters import checked_parameters
from rankwood.threads import resolve_threads


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
        model, gains = self.ensemble_, None
        if self.importance_type == "gain":
            gains = model.split_gain
            if gains is None:
                raise RankwoodError("init_model knows no gains of its splits: use importance_type='split'")
        shares = np.bincount(model.feature, weights=gains, minlength=model.n_features).astype(np.float64)
        return shares / (shares.sum() or 1.0)

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
