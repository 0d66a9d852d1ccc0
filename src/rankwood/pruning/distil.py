"""Beyond the paper: leaf values of the trees that stay, fitted to the scores of the whole model instead of to labels.

A ranker knows its training data better than any other: weights and leaves that are searched by labels there fit what it
has learnt by heart. The scores of the whole model are a gentler teacher. What is fitted to them on training documents
holds on others, because it is the same function with fewer trees, and labels have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.pruning.outputs import TreeOutputs


@dataclass(frozen=True)
class Distil:
    """How leaf values are fitted to the scores of the whole model.

    passes     of conjugate gradients over all documents, at most
    damping    documents that every leaf has besides its own, which want it as it was: few documents move it little
    tolerance  it ends when the slope has fallen to this share of the first
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
    """Leaf values with which the trees that stay, at their `weights`, come nearest to the scores of all trees.

    Least squares over documents for all leaves jointly, damped towards the values as they are, by conjugate gradients.
    Values of trees that go, and of those whose weight is 0, are as they were.

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
    with np.errstate(over="ignore", invalid="ignore"):  # of values so large that their squares are infinite
        change = _least_squares(outputs, outputs.direction(weights * (1.0 - here)), here, how)
        per_leaf = np.repeat(weights * here, np.diff(outputs.leaf_offsets))
        values = outputs.values + np.divide(change, per_leaf, out=np.zeros_like(change), where=per_leaf > 0.0)
    return values if np.isfinite(values).all() else outputs.values


def _least_squares(outputs: TreeOutputs, missing: FloatArray, here: FloatArray, how: Distil) -> FloatArray:
    """By how much the contribution of a leaf, weight times value, should change so that scores gain what is missing."""
    trees = np.flatnonzero(here)
    change: FloatArray = np.zeros(len(outputs.values))
    slope = outputs.leaf_sums(missing, trees)
    direction, first = slope, _dot(slope, slope)
    steepness = first
    for _ in range(how.passes):
        if not steepness > how.tolerance**2 * first:
            break
        along = outputs.with_values(direction).direction(here)
        curvature = _dot(along, along) + how.damping * _dot(direction, direction)
        if not 0.0 < curvature < np.inf:
            break
        step = steepness / curvature
        change = change + step * direction
        missing = missing - step * along
        slope = outputs.leaf_sums(missing, trees) - how.damping * change
        before, steepness = steepness, _dot(slope, slope)
        direction = slope + steepness / before * direction
    return change


def _dot(a: FloatArray, b: FloatArray) -> float:
    """The same on every machine, which a library's is not."""
    return float((a * b).sum())
