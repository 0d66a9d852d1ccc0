"""Trees made smaller: sibling leaves that say nearly the same become one, nodes of weak features go."""

from __future__ import annotations

import numpy as np

from rankwood import _native
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees


def collapse_nodes(model: Ensemble, covers: FloatArray, n_leaves: int) -> Ensemble:
    """The model with at most `n_leaves` leaves: sibling leaves are merged, those that change scores least first.

    Merging leaves of values a and b, reached by m and n documents, in a tree of weight w changes the scores of these
    documents by a sum of squares of w^2 m n / (m + n) (a - b)^2 at least, when the new leaf has their mean value. The
    cheapest pair is merged, then the next, until few enough leaves remain; merged pairs may become siblings again. A
    tree of which one leaf remains is left out, its value moves into the base score.

    Parameters
    ----------
    model : Ensemble
        The model to make smaller.
    covers : array of float
        Documents that reach each leaf, tree after tree.
    n_leaves : int
        Leaves of all trees together.

    Returns
    -------
    Ensemble
        A smaller model; the given one when it is small enough.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 2.1))])
    >>> collapse_nodes(model, np.array([10.0, 10.0, 30.0]), 2).leaf_value
    array([1.   , 2.075])
    """
    if n_leaves < 1:
        raise RankwoodError(f"a model needs at least 1 leaf, got {n_leaves}")
    counts = _checked(covers, model)
    if model.n_leaves <= n_leaves:
        return model
    trees = model.trees
    instead: IndexArray = np.empty(trees.n_nodes, dtype=np.int64)
    values = _native.merge_leaves(*trees.native(), model.n_features, model.tree_weights, counts, n_leaves, instead)
    return _of_trees(trees.rewired(instead, np.array(values)), model)


def feature_importance(model: Ensemble, covers: FloatArray) -> FloatArray:
    """Sum of squares of the scores that each feature accounts for.

    A node that sends m documents of mean value a left and n of mean value b right, in a tree of weight w, accounts for
    w^2 m n / (m + n) (a - b)^2: what would change at least if both sides got one value.

    Parameters
    ----------
    model : Ensemble
        The model.
    covers : array of float
        Documents that reach each leaf, tree after tree.

    Returns
    -------
    array of shape (n_features,)
        0 for a feature that no node looks at.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 1.5, 2.0, 4.0))])
    >>> feature_importance(model, np.array([10.0, 10.0, 10.0])).round(2)
    array([26.67, 20.  ])
    """
    importance, _ = _nodes(model, covers)
    return np.bincount(model.feature, weights=importance, minlength=model.n_features).astype(np.float64)


def drop_features(model: Ensemble, covers: FloatArray, features: IndexArray) -> Ensemble:
    """The model without nodes of some features: in the place of each stands the child that more documents reach.

    Parameters
    ----------
    model : Ensemble
        The model to make smaller.
    covers : array of float
        Documents that reach each leaf, tree after tree.
    features : array of int
        Numbers of the features that are looked at no more.

    Returns
    -------
    Ensemble
        A smaller model; trees of which one leaf remains are left out, their values move into the base score.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 1.5, 2.0, 4.0))])
    >>> drop_features(model, np.array([10.0, 20.0, 5.0]), np.array([1])).leaf_value
    array([1., 2.])
    """
    _, right_is_heavier = _nodes(model, covers)
    trees = model.trees
    left, right = trees.links()
    heavier = np.where(right_is_heavier.astype(bool), right, left)
    goes = np.isin(trees.feature, features)
    return _of_trees(trees.rewired(np.where(goes, heavier, np.arange(trees.n_nodes))), model)


def merge_thresholds(model: Ensemble, X: FeatureMatrix) -> Ensemble:
    """The model with as few different thresholds as tell the rows of X apart as before.

    Thresholds of a feature between which no row has a value send every row the same way: each becomes the one of them
    that most nodes have. Other rows may go another way. Splits on sets stay as they are.

    Parameters
    ----------
    model : Ensemble
        The model.
    X : float32 matrix
        Documents x features.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, 0.7, 1.0, 2.0), (0, 0.7, 0.0, 1.0)])
    >>> merge_thresholds(model, np.array([[0.0], [1.0]], np.float32)).threshold
    array([0.7, 0.7, 0.7])
    """
    threshold = model.threshold.copy()
    has_one = model.trees.set_sizes == 0
    for feature in np.unique(model.feature[has_one]):
        nodes = np.flatnonzero((model.feature == feature) & has_one)
        values = np.unique(X[:, feature])
        gap = np.searchsorted(values[~np.isnan(values)], threshold[nodes], side="right")  # rows that go left
        _, number, n_nodes = np.unique(threshold[nodes], return_inverse=True, return_counts=True)
        by_use = np.lexsort((threshold[nodes], -n_nodes[number]))  # most used first
        gaps, first = np.unique(gap[by_use], return_index=True)
        threshold[nodes] = threshold[nodes[by_use[first]]][np.searchsorted(gaps, gap)]
    return model.replace(threshold=threshold)


def _checked(covers: FloatArray, model: Ensemble) -> FloatArray:
    if len(covers) != model.n_leaves:
        raise RankwoodError(f"covers must have one entry per leaf ({model.n_leaves}), got {len(covers)}")
    return np.ascontiguousarray(covers, dtype=np.float64)


def _nodes(model: Ensemble, covers: FloatArray) -> tuple[FloatArray, AnyArray]:
    """Importance of every inner node, and 1 where more documents go right."""
    importance: FloatArray = np.empty(model.n_nodes)
    right_is_heavier: AnyArray = np.empty(model.n_nodes, np.uint8)
    counts = _checked(covers, model)
    _native.node_importance(
        *model.trees.native(), model.n_features, model.tree_weights, counts, importance, right_is_heavier
    )
    return importance, right_is_heavier


def _of_trees(trees: Trees, model: Ensemble) -> Ensemble:
    """A model of other trees, all else as it is; trees without nodes go into the base score."""
    return without_stumps(
        Ensemble.of(
            trees,
            n_features=model.n_features,
            tree_weights=model.tree_weights,
            base=model.base,
            feature_names=model.feature_names,
            metadata=model.metadata,
        )
    )


def without_stumps(model: Ensemble) -> Ensemble:
    """The model without trees of a single leaf, whose values go into the base score."""
    alone = np.flatnonzero(model.trees.sizes == 0)
    if len(alone) == 0:
        return model
    constant = float(np.sum(model.tree_weights[alone] * model.leaf_value[model.leaf_offsets[alone]]))
    return model.select(np.flatnonzero(model.trees.sizes > 0)).replace(base=model.base + constant)
