"""New leaf values for the trees that stay: refitted to labels, or distilled from the whole model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankwood import _native
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.per_query import resolve
from rankwood.pruning.line_search import Point, best_on_segment
from rankwood.pruning.outputs import Part, Queries, TreeOutputs
from rankwood.training.losses import LambdaLoss, label_gains

if TYPE_CHECKING:
    from rankwood.training.losses import Gradients


# Beyond the paper: new leaf values for the trees that stay, and a start for the line search, by lambda gradients.
#
# Both go down the smooth surrogate that LambdaMART minimises, where the line search tries weights one by one.


GRADED = ("nDCG", "DCG", "ERR")  # measures that tell more than relevant or not


@dataclass(frozen=True)
class Refit:
    """How leaf values are fitted again.

    passes     over all leaves, at most
    rate       of a Newton step; shared by the trees, which all move at once
    l2         added to every leaf's sum of second derivatives, times the mean of these
    patience   passes in a row without a better validation measure after which it ends
    """

    passes: int = 50
    rate: float = 1.0
    l2: float = 1.0
    patience: int = 5

    def __post_init__(self) -> None:
        if self.passes < 0 or self.patience < 1 or not 0.0 < self.rate <= 100.0 or not self.l2 >= 0.0:
            raise RankwoodError("a refit needs passes from 0, patience from 1, a rate above 0 and l2 from 0 upwards")


def refit_leaves(
    train: Part, valid: Part, weights: FloatArray, settings: Refit | None = None
) -> tuple[FloatArray, float]:
    """Leaf values of all trees of weight above 0, fitted jointly; and the validation measure they reach.

    Every pass takes a diagonal Newton step on the lambda gradients for all leaves at once: a leaf's contribution moves
    by rate / trees * sum(gradient) / (sum(hessian) + l2). Values that are best on validation data are kept, which may
    be the old ones: it is never worse there.
    """
    how = Refit() if settings is None else settings
    trees = np.flatnonzero(weights > 0.0)
    gradients = lambda_gradients(train.queries)
    best, best_valid, failures = train.outputs.values, valid.quality(weights), 0
    if len(trees) == 0:
        return best, best_valid
    per_leaf = np.repeat(weights, np.diff(train.outputs.leaf_offsets))
    moved = train
    for _ in range(how.passes):
        first, second = leaf_derivatives(moved, weights, trees, gradients)
        damping = how.l2 * second[second > 0.0].mean() if (second > 0.0).any() else 1.0
        change = how.rate / len(trees) * first / (second + damping)
        with np.errstate(over="ignore", invalid="ignore"):  # of a weight near 0
            step = np.divide(change, per_leaf, out=np.zeros_like(change), where=per_leaf > 0.0)
            values = moved.outputs.values + step
        if not np.isfinite(values).all():
            break
        moved = moved.with_values(values)
        value = valid.with_values(moved.outputs.values).quality(weights)
        failures += 1
        if value > best_valid:
            best, best_valid, failures = moved.outputs.values, value, 0
        if failures >= how.patience:
            break
    return best, best_valid


def gradient_weights(
    train: Part, weights: FloatArray, trees: IndexArray, *, samples: int = 20, steps: int = 10
) -> FloatArray:
    """Weights to start a line search from: projected Newton steps on the lambda gradients.

    A step goes from the weights towards w + g / h for every tree, never below 0; the best of some points on the way, by
    the training measure, is moved to, as long as that is better.
    """
    gradients = lambda_gradients(train.queries)
    current = Point.at(train, weights)
    for _ in range(steps):
        first, second = leaf_derivatives(train, current.weights, trees, gradients)
        values, starts = train.outputs.values, train.outputs.leaf_offsets[:-1]
        with np.errstate(over="ignore", invalid="ignore"):  # of values far apart
            slope = np.add.reduceat(first * values, starts)[trees]
            curvature = np.add.reduceat(second * values**2, starts)[trees]
            newton = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0.0)
            target = current.weights.copy()
            target[trees] = np.maximum(current.weights[trees] + newton, 0.0)
        if not np.isfinite(target).all():
            break
        moved = best_on_segment(train, current, target, samples)
        if not moved.quality > current.quality:
            break
        current = moved
    return current.weights


def lambda_gradients(queries: Queries) -> Gradients:
    """LambdaMART's gradients for the measure at hand, at least as deep as it looks.

    They are NDCG's whatever the measure, but with its gains: those of its labels, or relevant or not.
    """
    cutoff = queries.measure.cutoff
    loss = LambdaLoss(truncation=None if cutoff is None else max(30, cutoff), gains="linear")
    weights = queries.document_weights, queries.query_weights
    return loss.prepare(surrogate_gains(queries), queries.offsets, *weights, n_threads=queries.n_threads)


def surrogate_gains(queries: Queries) -> FloatArray:
    """What every document is worth to the measure.

    >>> import rankwood as rw
    >>> data = rw.Dataset([[0.0], [0.0], [0.0]], [-1, 1, 3], group=[3])
    >>> surrogate_gains(Queries(data, "nDCG@10")).tolist(), surrogate_gains(Queries(data, "P(rel=2)@5")).tolist()
    ([0.0, 1.0, 7.0], [0.0, 0.0, 1.0])
    """
    spec, labels = resolve(queries.measure, queries.evaluator.convention), queries.labels
    if queries.measure.name not in GRADED:
        return (labels >= spec.relevant).astype(np.float64)
    if spec.gain == _native.GainKind.EXP:
        return label_gains(np.maximum(labels, 0.0))
    if spec.gain == _native.GainKind.LINEAR:
        return np.maximum(labels, 0.0)
    table = np.array(spec.gains)
    return np.where(labels >= 0.0, np.maximum(table[np.maximum(labels, 0.0).astype(np.int64)], 0.0), 0.0)


def leaf_derivatives(
    part: Part, weights: FloatArray, trees: IndexArray, gradients: Gradients
) -> tuple[FloatArray, FloatArray]:
    """Sums of gradient (the way scores should go) and hessian over the documents in every leaf."""
    scores = part.outputs.scores(weights)
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    gradients.gradients(scores, gradient, hessian)
    return part.outputs.leaf_sums(gradient, trees), part.outputs.leaf_sums(hessian, trees)


# Beyond the paper: leaf values of the trees that stay, fitted to the scores of the whole model instead of to labels.
#
# A ranker knows its training data better than any other: weights and leaves that are searched by labels there fit
# what it has learnt by heart. The scores of the whole model are a gentler teacher. What is fitted to them on training
# documents holds on others, because it is the same function with fewer trees, and labels have no part in it.


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
