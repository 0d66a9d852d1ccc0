"""What all boosted rankers share as scikit-learn estimators: input in any form, fitted attributes, scoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwood._version import __version__
from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FEATURE, FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.evaluate import evaluate
from rankwood.learners.boosting import boost
from rankwood.learners.callbacks import Callback, early_stopping, record_evaluation
from rankwood.learners.checkpoint import Checkpoint
from rankwood.learners.updates import Plain
from rankwood.losses import Loss
from rankwood.matrix import column_names, drop_column
from rankwood.trees.build import TreeRules
from rankwood.trees.leafwise import GrowthRules
from rankwood.trees.sampling import Sampling


class BoostedRanker(BaseEstimator):  # type: ignore[misc]
    """Base of the boosted rankers; a subclass has the parameters and says which loss they mean."""

    _needs_queries = True  # whether fitting without qid or group is refused

    def _loss(self) -> Loss:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        valid: Dataset | None = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_qid: Sequence[Any] | None = None,
        eval_group: Sequence[Any] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_metric: Any = None,
        callbacks: Sequence[Callback] | None = None,
        init_model: Any = None,
        checkpoint: Checkpoint | None = None,
    ) -> Any:
        """Train on a Dataset, or on X and y with the query of every row.

        X, y            a Dataset (or BinnedDataset) alone; or a matrix or DataFrame, and labels
        qid, group      query id per row, in any order; or sizes of consecutive queries; or a DataFrame column `qid`
        sample_weight, query_weight    weight per document, weight per query
        valid           a Dataset to measure on, named "valid"; or, as elsewhere:
        eval_set        pairs (X, y), with eval_qid or eval_group, and eval_names; the training data itself may be one
        eval_metric     measures to watch, instead of the parameter `measure`: names, or functions of (labels, scores,
                        offsets of queries)
        callbacks       see rankwood.early_stopping, log_evaluation, record_evaluation, reset_parameter
        init_model      an Ensemble or fitted ranker to go on from
        checkpoint      a rankwood.Checkpoint: save now and then, and resume
        """
        train = self._training_data(X, y, qid, group, sample_weight, query_weight)
        watched = self._watched(valid, eval_set, eval_qid, eval_group, eval_names)
        measures = self.measure if eval_metric is None else eval_metric
        measures = [measures] if isinstance(measures, str) or callable(measures) else list(measures)
        self.evals_result_: dict[str, dict[str, list[float]]] = {}
        everything: list[Callback] = [*(callbacks or []), record_evaluation(self.evals_result_)]
        if self.early_stopping_rounds is not None:
            everything.append(early_stopping(self.early_stopping_rounds, first_metric_only=True))
        result = boost(
            train,
            self._loss(),
            self._tree_rules(),
            Plain(self.learning_rate),
            n_trees=self.n_trees,
            start=getattr(init_model, "ensemble_", init_model),
            valid={name: data for name, data in watched.items() if data is not train.data},
            watch_train=any(data is train.data for data in watched.values()),
            measures=measures,
            convention=self.convention,
            callbacks=everything,
            checkpoint=checkpoint,
            on_interrupt=self.on_interrupt,
            seed=self._seed(),
            n_threads=self.n_jobs,
        )
        parameters = {name: value for name, value in self.get_params().items() if _is_plain(value)}
        self.ensemble_: Ensemble = result.ensemble.with_metadata(
            learner=type(self).__name__, parameters=parameters, version=__version__, convention=self.convention
        )
        self.best_iteration_ = result.best_iteration
        self.best_score_ = result.best_score
        return self

    def predict(self, X: Any) -> FloatArray:
        """Score of every row: the higher, the further up."""
        check_is_fitted(self, "ensemble_")
        if isinstance(X, Dataset):
            X = X.X
        X, _ = _take_qid(X, None)
        matrix = validate_data(self, X, reset=False, **_ACCEPTED)
        return self.ensemble_.score(matrix, n_threads=self.n_jobs)

    def score(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None, sample_weight: Any = None) -> float:
        """Mean of the first watched measure (nDCG@10 unless told otherwise) on a Dataset, or on X and y.

        The rows need queries here too: qid, group, or a DataFrame column `qid`, which cross-validation passes along.
        """
        data = X if isinstance(X, Dataset) else self._dataset(X, y, qid, group, sample_weight, None, reset=False)
        measure = self.measure if isinstance(self.measure, str) else self.measure[0]
        scores = self.predict(data)
        return evaluate(scores, data, measure, convention=self.convention, n_threads=self.n_jobs)[measure]

    @property
    def n_trees_(self) -> int:
        """Number of trees of the fitted model."""
        return self.ensemble_.n_trees

    n_estimators_ = n_trees_

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of every feature in the total gain (`importance_type="gain"`) or in the splits ("split")."""
        check_is_fitted(self, "ensemble_")
        model = self.ensemble_
        weights = model.split_gain if self.importance_type == "gain" else None
        if self.importance_type not in ("gain", "split"):
            raise RankwoodError(f"importance_type must be 'gain' or 'split', got {self.importance_type!r}")
        shares = np.bincount(model.feature, weights=weights, minlength=model.n_features).astype(np.float64)
        return shares / (shares.sum() or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _tree_rules(self) -> TreeRules:
        growth = GrowthRules(
            n_leaves=self.n_leaves,
            max_depth=self.max_depth,
            min_docs_per_leaf=self.min_docs_per_leaf,
            min_gain=self.min_gain,
            min_hessian=self.min_hessian,
            l2=self.l2,
            depth_relaxation=self.depth_relaxation,
            gain=self.gain,
        )
        per_split = self.feature_sampling == "split"
        if self.feature_sampling not in ("tree", "split"):
            raise RankwoodError(f"feature_sampling must be 'tree' or 'split', got {self.feature_sampling!r}")
        return TreeRules(growth, Sampling(self.query_fraction, self.feature_fraction, per_split), self.balance)

    def _seed(self) -> int:
        if self.random_state is None or not isinstance(self.random_state, (int, np.integer)):
            return int(check_random_state(self.random_state).randint(2**31))
        return int(self.random_state)

    def _training_data(self, X: Any, y: Any, qid: Any, group: Any, weights: Any, query_weights: Any) -> BinnedDataset:
        if isinstance(X, BinnedDataset):
            self._note_features(X.data)
            return X
        if isinstance(X, Dataset):
            self._note_features(X)
            data = X
        else:
            data = self._dataset(X, y, qid, group, weights, query_weights, reset=True)
        if data.n_docs == 0:
            raise DataError("there is nothing to learn from: the training data has no rows")
        return BinnedDataset.make(data, self.max_bins, n_threads=self.n_jobs)

    def _note_features(self, data: Dataset) -> None:
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)

    def _dataset(
        self, X: Any, y: Any, qid: Any, group: Any, weights: Any, query_weights: Any, *, reset: bool
    ) -> Dataset:
        X, qid = _take_qid(X, qid if group is None else group)
        matrix, labels = validate_data(self, X, y, reset=reset, y_numeric=True, **_ACCEPTED)
        if hasattr(matrix, "toarray"):
            matrix = matrix.toarray()
        names = getattr(self, "feature_names_in_", None)
        if qid is None and group is None and not self._needs_queries:
            group = [len(labels)]
        return Dataset(
            matrix,
            labels,
            qid=qid if group is None else None,
            group=group,
            weights=weights,
            query_weights=query_weights,
            feature_names=None if names is None else list(names),
        )

    def _watched(
        self, valid: Dataset | None, eval_set: Any, eval_qid: Any, eval_group: Any, eval_names: Any
    ) -> dict[str, Dataset]:
        watched: dict[str, Dataset] = {} if valid is None else {"valid": valid}
        for number, (X, y) in enumerate(eval_set or []):
            name = eval_names[number] if eval_names is not None else f"valid_{number}"
            qid = None if eval_qid is None else eval_qid[number]
            group = None if eval_group is None else eval_group[number]
            watched[name] = self._dataset(X, y, qid, group, None, None, reset=False)
        return watched


# Infinite values are ordered like others, NaN is a missing value; float64 is kept for scoring.
_ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": [FEATURE, np.float64], "ensure_all_finite": False}


def _take_qid(X: Any, qid: Any) -> tuple[Any, Any]:
    """Take the column `qid` out of a DataFrame; it gives the queries unless they are given apart."""
    names = column_names(X)
    if names is None or "qid" not in names:
        return X, qid
    column, rest = drop_column(X, "qid")
    return rest, column if qid is None else qid


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
