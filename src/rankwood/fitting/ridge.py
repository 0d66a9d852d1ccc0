"""Leaf values by least squares: all trees at once, over leaf numbers, without a matrix (joint ridge)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwood import _native
from rankwood.dtypes import LEAF_VALUE, OFFSET, SCORE, FloatArray, IndexArray, OffsetArray
from rankwood.errors import RankwoodError
from rankwood.fitting.outputs import TreeOutputs


def joint_ridge(
    outputs: TreeOutputs,
    target: FloatArray,
    start: FloatArray,
    *,
    offsets: OffsetArray | None = None,
    trees: IndexArray | None = None,
    l2: float = 10.0,
    iterations: int = 20,
    tolerance: float = 1e-4,
) -> tuple[FloatArray, FloatArray]:
    """Leaf values with which the sums over trees come nearest to a target, and what they still lack.

    Minimises ``|C(A v) - C(target)|^2 + l2 |v|^2``: A v adds up the values of the leaves that a document reaches, C
    takes the mean of its query from every document, so that only differences inside a query count. Conjugate gradients,
    preconditioned by the number of documents in each leaf.

    Parameters
    ----------
    outputs : TreeOutputs
        The leaf of every document in every tree; its own leaf values are not looked at.
    target : array of shape (n_docs,)
        What the sums should be.
    start : array of shape (n_leaves,)
        Leaf values to start from. Values of trees that are not in `trees` are returned as they are, and count for
        nothing.
    offsets : array of shape (n_queries + 1,) or None, default None
        Where the documents of each query start; None: nothing is centred.
    trees : array of int or None, default None
        Trees that are fitted; all of them when None.
    l2 : float, default 10.0
        Pull of every value towards 0, in documents. Without it many values have the same sums, and which of them are
        found is left open.
    iterations : int, default 20
        Iterations at most.
    tolerance : float, default 1e-4
        Fitting ends when the norm of the slope has fallen to this share of the first.

    Returns
    -------
    values : array of shape (n_leaves,)
        Leaf values.
    residual : array of shape (n_docs,)
        Target less sums, centred.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 0.0), (0, 1.5, 0.0, 0.0)])
    >>> outputs = TreeOutputs.of(model, rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3]))
    >>> values, residual = joint_ridge(outputs, np.array([1.0, 2.0, 4.0]), np.zeros(4), l2=0.0)
    >>> outputs.with_values(values).scores(np.ones(2)).round(3)
    array([1., 2., 4.])
    """
    values = np.array(start, LEAF_VALUE)
    residual: FloatArray = np.empty(outputs.n_docs, SCORE)
    _native.joint_ridge(
        outputs.codes,
        values,
        outputs.leaf_offsets,
        _numbers(outputs, trees),
        None if offsets is None else np.ascontiguousarray(offsets, OFFSET),
        outputs.leaf_counts,
        centred(target, offsets),
        l2,
        iterations,
        tolerance,
        outputs.n_threads,
        residual,
    )
    return values, residual


def tree_gains(outputs: TreeOutputs, residual: FloatArray, trees: IndexArray, *, l2: float) -> FloatArray:
    """Fall of the squared residual by each of some trees alone, with its leaves at their ridge values.

    The gain of group orthogonal matching pursuit: the sum over the leaves of a tree of (sum of residuals)^2 /
    (documents + l2).

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 0.0, 0.0), (0, 1.5, 0.0, 0.0)])
    >>> outputs = TreeOutputs.of(model, rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3]))
    >>> tree_gains(outputs, np.array([-1.0, -1.0, 2.0]), np.array([0, 1]), l2=0.0)
    array([1.5, 6. ])
    """
    gains: FloatArray = np.empty(len(trees))
    _native.tree_gains(
        *outputs.arrays, _numbers(outputs, trees), residual, outputs.leaf_counts, l2, outputs.n_threads, gains
    )
    return gains


def centred(values: FloatArray, offsets: OffsetArray | None) -> FloatArray:
    """Values less the mean of their query; as they are without queries."""
    array: FloatArray = np.ascontiguousarray(values, SCORE)
    if offsets is None or len(array) == 0:
        return array
    sizes = np.diff(offsets)
    filled = sizes > 0
    means = np.zeros(len(sizes))
    for _ in range(2):  # rounding leaves a mean that is small beside the values, but not beside their differences
        means[filled] = np.add.reduceat(array, offsets[:-1][filled]) / sizes[filled]
        array = array - np.repeat(means, sizes)
    return array


def _numbers(outputs: TreeOutputs, trees: IndexArray | None) -> OffsetArray:
    return np.arange(outputs.n_trees, dtype=OFFSET) if trees is None else np.ascontiguousarray(trees, OFFSET)


@dataclass(frozen=True)
class Distil:
    """Settings of the variant "distil": leaf values fitted to the full model's scores instead of to labels.

    Labels of the training data are over-fitted by the full model; its scores are not, so what is fitted to them on
    training documents holds on others.

    Parameters
    ----------
    passes : int, default 30
        Iterations of conjugate gradients over all documents at most.
    damping : float, default 10.0
        Strength of the pull towards the old values: as if every leaf had so many more documents whose scores are right
        already. Leaves with few documents move little.
    tolerance : float, default 1e-4
        Fitting ends when the norm of the gradient has fallen to this share of the first.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.PruningSettings(distil=rw.Distil(damping=1.0)).distil.damping
    1.0
    """

    passes: int = 30
    damping: float = 10.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if self.passes < 0 or not 0.0 <= self.damping < np.inf or not 1e-12 <= self.tolerance < 1.0:
            raise RankwoodError("distilling needs passes from 0, damping from 0, and a tolerance from 1e-12 to below 1")


def distil_leaves(
    outputs: TreeOutputs, weights: FloatArray, stay: IndexArray, settings: Distil | None = None
) -> FloatArray:
    """Leaf values with which the trees that stay, at their weights, come nearest to the scores of all trees.

    Least squares over documents for all leaves jointly, damped towards the old values, by conjugate gradients. Values
    of trees that are removed or have weight 0 do not change.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, 0.5, 10.0, 30.0)])
    >>> outputs = TreeOutputs.of(model, rw.Dataset([[0.0], [1.0]], [0, 1], group=[2]))
    >>> distil_leaves(outputs, np.ones(2), np.array([0]), Distil(damping=0.0)).tolist()
    [11.0, 32.0, 10.0, 30.0]
    """
    how = Distil() if settings is None else settings
    trees = np.asarray(stay)[weights[stay] > 0.0]
    here = np.zeros_like(weights)
    here[trees] = 1.0
    missing = outputs.direction(weights * (1.0 - here))
    start = np.zeros_like(outputs.values)
    change, _ = joint_ridge(
        outputs, missing, start, trees=trees, l2=how.damping, iterations=how.passes, tolerance=how.tolerance
    )
    with np.errstate(over="ignore", invalid="ignore"):  # of a weight near 0
        per_leaf = np.repeat(weights * here, np.diff(outputs.leaf_offsets))
        values = outputs.values + np.divide(change, per_leaf, out=np.zeros_like(change), where=per_leaf > 0.0)
    return outputs.constrained(values, outputs.leaf_counts) if np.isfinite(values).all() else outputs.values
