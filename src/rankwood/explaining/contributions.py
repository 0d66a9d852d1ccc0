"""Contributions of features to scores: Shapley values (SHAP), exactly.

A score is the sum of a base value, which knows nothing of the document, and of one contribution per feature. They
differ by what stands in for a feature that is not known yet: both sides of its splits, as much of each as training data
went there (path-dependent), or its values in background documents (interventional).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood import _native
from rankwood.coding import category_of
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import DataError, ModelError
from rankwood.formats.writing import names_of
from rankwood.matrix import one_block, row_blocks
from rankwood.model.visits import leaf_visits
from rankwood.packages import need
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each feature contributes to the score of each document: what `explain` returns.

    The base value and the contributions of a row add up to the score of that document.

    Attributes
    ----------
    values : array of float64, documents x features
        Contributions; 0 where the model does not look at the feature.
    base_value : float
        Score of a document of which nothing is known: the mean score of the training data or of the background.
    data : array, documents x features
        The features themselves, categories as their codes.
    feature_names : tuple of str
        Names of the features; `f0`, `f1` and so on where the model has none.
    categories : mapping of int to sequence
        Categories in the order of their codes, by number of the feature, for the features that have some.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 4.0))], feature_names=["bm25", "clicks"])
    >>> found = rw.explain(model, [[0.7, 9.0], [0.1, 9.0]], background=[[0.0, 0.0], [1.0, 0.0]])
    >>> found.base_value, found.values.tolist()
    (1.5, [[1.0, 1.5], [-1.0, 0.5]])
    >>> found.scores
    array([4., 1.])
    """

    values: FloatArray
    base_value: float
    data: AnyArray
    feature_names: tuple[str, ...]
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.values)

    @property
    def scores(self) -> FloatArray:
        """Scores of the documents, as sums: those of `Ensemble.score` but for rounding."""
        scores: FloatArray = self.base_value + self.values.sum(axis=1)
        return scores

    @property
    def importance(self) -> FloatArray:
        """Mean size of the contributions of each feature, without their signs."""
        if not self.n_docs:
            raise DataError("there are no documents, so that no feature is more important than another")
        mean: FloatArray = np.abs(self.values).mean(axis=0)
        return mean

    def pair(self, above: int, below: int) -> PairExplanation:
        """Why one document has a higher score than another: the difference of their contributions.

        Parameters
        ----------
        above, below : int
            Rows of the two documents.
        """
        for row in (above, below):
            if not -self.n_docs <= row < self.n_docs:
                raise DataError(f"there is no row {row}: {self.n_docs} documents were explained")
        rows = [above, below]
        return PairExplanation(self.values[rows], self.base_value, self.data[rows], self.feature_names, self.categories)

    def to_frame(self, document: int | None = None) -> Any:
        """Contributions as a pandas DataFrame.

        Parameters
        ----------
        document : int, optional
            A row. With it the table has a row per feature: its value (of categories the category) and its
            contribution, the largest first.

        Returns
        -------
        pandas.DataFrame
            Without `document`, a row per document and a column per feature, then `base value` and `score`.
        """
        pd = need("pandas", "a DataFrame")

        if document is None:
            frame = pd.DataFrame(self.values, columns=list(self.feature_names))
            return frame.assign(**{"base value": self.base_value, "score": self.scores})
        values = self.values[document]
        order = by_size(values)
        columns = {"value": shown_values(self.data[document], self.categories)[order], "contribution": values[order]}
        return pd.DataFrame(columns, index=pd.Index(np.array(self.feature_names, dtype=object)[order], name="feature"))

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`, for the plots of the package shap, which must be installed.

        Categories are codes in it, since the plots of shap take numbers.
        """
        shap = need("shap", "a shap.Explanation")
        base_values, names = np.full(self.n_docs, self.base_value), list(self.feature_names)
        return shap.Explanation(self.values, base_values, np.asarray(self.data), feature_names=names)


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """Why one document is above another: what `Explanation.pair` returns.

    Attributes
    ----------
    values : array of float64, 2 x features
        Contributions to the scores of the two documents, that of the upper one first.
    base_value : float
        Score of a document of which nothing is known.
    data : array, 2 x features
        Features of the two documents, categories as their codes.
    feature_names : tuple of str
        Names of the features.
    categories : mapping of int to sequence
        Categories in the order of their codes, by number of the feature, for the features that have some.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 4.0))])
    >>> why = rw.explain(model, [[0.7, 9.0], [0.1, 9.0]], background=[[0.0, 0.0], [1.0, 0.0]]).pair(0, 1)
    >>> why.score_difference, why.difference
    (3.0, array([2., 1.]))
    """

    values: FloatArray
    base_value: float
    data: AnyArray
    feature_names: tuple[str, ...]
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    @property
    def difference(self) -> FloatArray:
        """Contributions to the upper document less those to the lower one: they add up to the difference of scores."""
        difference: FloatArray = self.values[0] - self.values[1]
        return difference

    @property
    def score_difference(self) -> float:
        """Score of the upper document less that of the lower one."""
        return float(self.difference.sum())

    def to_frame(self) -> Any:
        """A row per feature, the largest difference first.

        Returns
        -------
        pandas.DataFrame
            Values (of categories the category) and contributions of both documents, and the difference of
            contributions.
        """
        pd = need("pandas", "a DataFrame")

        order = by_size(self.difference)
        above, below = (shown_values(row, self.categories) for row in self.data)
        columns = {
            "value above": above[order],
            "value below": below[order],
            "contribution above": self.values[0][order],
            "contribution below": self.values[1][order],
            "difference": self.difference[order],
        }
        return pd.DataFrame(columns, index=pd.Index(np.array(self.feature_names, dtype=object)[order], name="feature"))


def shown_values(row: AnyArray, categories: Mapping[int, Sequence[Any]]) -> AnyArray:
    """Features of a document with categories in place of their codes.

    Examples
    --------
    >>> shown_values(np.array([0.5, 1.0]), {1: ("blue", "red")}).tolist()
    [0.5, 'red']
    """
    if not categories:
        return row
    shown = row.astype(object)
    for feature, known in categories.items():
        shown[feature] = category_of(float(row[feature]), known)
    return shown


def by_size(values: FloatArray) -> IndexArray:
    """Places of values, the largest without their signs first; those of equal size in their own order."""
    return np.argsort(-np.abs(values), kind="stable")


def explain(
    model: Any, X: Any, *, background: Any = None, data: Any = None, n_threads: int | None = None
) -> Explanation:
    """What each feature contributes to the scores of documents: exact Shapley values of the trees (TreeSHAP).

    Without `background` they are path-dependent, as LightGBM's `pred_contrib` and shap's default for trees: a feature
    that is not known takes both sides of a split, as much of each as the data of the model's leaves did. With
    `background` they are interventional: such a feature has the values of background documents.

    Parameters
    ----------
    model : Ensemble or fitted learner
        Early exit is left aside: all trees are explained.
    X : matrix of documents x features
        An array, a DataFrame, a sparse matrix or nested lists.
    background : matrix of documents x features, optional
        What documents are explained against; some tens or hundreds of typical ones. Time grows less than in proportion.
    data : matrix of documents x features, optional
        Documents to count at the leaves instead of those of training: for models that did not keep counts.
    n_threads : int, optional
        Every CPU is used unless given. The bits do not depend on it.

    Returns
    -------
    Explanation
        Contributions, and the base value that they start from.

    Raises
    ------
    ModelError
        The model does not know how much data its leaves hold, and neither `data` nor `background` is given.

    Notes
    -----
    Where a split has no data on either side both count alike. Contributions of a tree are integrals of polynomials over
    [0, 1] with positive terms, which points of Gauss and Legendre give exactly: a walk through the tree per few points
    instead of one per pair of features of a path.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 3.0), (1, 2.0, 0.0, 8.0)])
    >>> rw.explain(model, [[0.7, 9.0]], data=[[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 3.0]]).values
    array([[0.5, 6. ]])
    """
    ensemble: Ensemble = getattr(model, "ensemble_", model)
    if not (hasattr(ensemble, "trees") and hasattr(ensemble, "leaves")):
        raise ModelError(
            f"explain takes an Ensemble or a fitted learner, got {type(model).__name__}; models of other libraries "
            "and files come in with rankwood.load_model"
        )
    if background is not None and data is not None:
        raise DataError("give background or data, not both: with background documents no counts are needed")
    threads = resolve_threads(n_threads)
    rows = one_block(X, ensemble.n_features, ensemble.feature_names, coding=lambda: ensemble.coding)
    values = np.zeros((len(rows), ensemble.n_features))
    trees, weights = ensemble.trees.native(), ensemble.tree_weights
    if background is None:
        expected = np.zeros(ensemble.n_trees)
        covers = leaf_covers(ensemble) if data is None else counted(ensemble, data, threads)
        _native.contributions_by_cover(*trees, ensemble.n_features, weights, rows, values, threads, covers, expected)
        base_value = math.fsum([ensemble.base, *expected.tolist()])
    else:
        others = _background(ensemble, background)
        _native.contributions_by_background(*trees, ensemble.n_features, weights, rows, values, threads, others)
        base_value = math.fsum(ensemble.score(others, n_threads=threads).tolist()) / len(others)
    categories = {} if ensemble.coding is None else ensemble.coding.by_feature()
    return Explanation(values, base_value, rows, tuple(names_of(ensemble)), categories)


def leaf_covers(model: Ensemble) -> FloatArray:
    """How much training data each leaf holds; an error unless the model knows."""
    if model.leaf_cover is None:
        raise ModelError(
            "the model does not know how much training data its leaves hold, which contributions are weighed by: give "
            "documents to count (data=, on the command line --counts-of) or to compare with (background=, --background)"
        )
    return model.leaf_cover


def counted(model: Ensemble, data: Any, n_threads: int) -> FloatArray:
    """How many of some documents reach each leaf."""
    n_rows, blocks = row_blocks(data, model.n_features, model.feature_names, coding=lambda: model.coding)
    if n_rows == 0:
        raise DataError("data has no rows: there is nothing to count at the leaves")
    return leaf_visits(model, blocks, n_threads).astype(np.float64)


def _background(model: Ensemble, background: Any) -> FloatArray:
    others = one_block(background, model.n_features, model.feature_names, coding=lambda: model.coding)
    if len(others) == 0:
        raise DataError("background has no rows: there is nothing to compare with")
    return others.astype(np.float64, copy=False)
