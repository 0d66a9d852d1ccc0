"""A weighted sum of anything that scores documents: the members' predictions are the columns of the data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.errors import DataError, ModelError


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """An ensemble of models of any kind: a base score plus the weighted sum of its members' predictions.

    Its data sets hold predictions instead of features, documents x members: column m is what member m says of every
    document. So neural networks, linear models or rankers of several libraries can be pruned and re-weighed together
    by `cleaver`. Predictions are kept in float32, as features are; scores are summed in float64, from left to right.

    Parameters
    ----------
    weights : array-like of float
        Weight of each member; a member of weight 0 is left out.
    base : float, default 0.0
        Score of a document before any member.
    names : sequence of str, optional
        Names of the members.
    metadata : dict, optional
        Notes that go with the model.

    Attributes
    ----------
    n_trees : int
        Members whose weight is not 0; called as in an Ensemble, so that tables are the same.
    members : array of int
        Their columns.

    Examples
    --------
    >>> import rankwood as rw
    >>> predictions = [[0.1, 2.0, 0.5], [0.4, 1.0, 0.5]]
    >>> model = AdditiveModel([1.0, 0.5, 0.0])
    >>> model.score(predictions).tolist(), model.n_trees, model.members.tolist()
    ([1.1000000014901161, 0.9000000059604645], 2, [0, 1])
    """

    weights: Any
    base: float = 0.0
    names: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 1 or len(weights) == 0 or not np.isfinite(weights).all() or not np.isfinite(self.base):
            raise ModelError("an additive model needs one finite weight per member, and a finite base")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "names", None if self.names is None else tuple(self.names))
        if self.names is not None and len(self.names) != len(weights):
            raise ModelError(f"{len(weights)} members need as many names, got {len(self.names)}")

    @property
    def n_members(self) -> int:
        """Number of members, those of weight 0 included."""
        return len(self.weights)

    @property
    def members(self) -> AnyArray:
        """Columns of the members whose weight is not 0."""
        return np.flatnonzero(self.weights)

    @property
    def tree_weights(self) -> FloatArray:
        """The weights, as an Ensemble calls them."""
        weights: FloatArray = self.weights
        return weights

    @property
    def n_trees(self) -> int:
        """Number of members whose weight is not 0."""
        return int(np.count_nonzero(self.weights))

    def predict(self, X: Any) -> FloatArray:
        """Scores of documents, whose predictions are the rows of X: the same as `score`.

        Parameters
        ----------
        X : array-like of shape (n_docs, n_members)
            What every member says of every document.
        """
        return self.score(X)

    def score(self, X: Any) -> FloatArray:
        """Scores of documents, whose predictions are the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_docs, n_members)
            What every member says of every document.
        """
        predictions = self.predictions(X)
        scores = np.full(len(predictions), self.base)
        for member in self.members:
            scores += self.weights[member] * predictions[:, member].astype(np.float64)
        return scores

    def predictions(self, X: Any) -> AnyArray:
        """Predictions as a float32 matrix with a column per member.

        Parameters
        ----------
        X : array-like of shape (n_docs, n_members)
            What every member says of every document.
        """
        matrix = np.asarray(X, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_members:
            raise DataError(f"predictions of {self.n_members} members need as many columns, got shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise DataError("predictions must be finite numbers")
        return matrix

    def reweigh(self, weights: Any) -> AdditiveModel:
        """The same members with other weights.

        Parameters
        ----------
        weights : array-like of float
            One per member.
        """
        return dataclasses.replace(self, weights=weights)

    def with_metadata(self, **notes: Any) -> AdditiveModel:
        """The model with more notes.

        Parameters
        ----------
        **notes
            Added to `metadata`.
        """
        return dataclasses.replace(self, metadata={**self.metadata, **notes})
