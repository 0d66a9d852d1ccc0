"""Leaf values fitted to labels, all trees at once, by Newton steps on LambdaMART's gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankwood import _native
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.measures import MeasureFunction
from rankwood.evaluation.per_query import resolve
from rankwood.fitting.outputs import MeasuredQueries, Part
from rankwood.training.losses import LambdaLoss, label_gains

if TYPE_CHECKING:
    from rankwood.training.losses import Gradients


GRADED = ("nDCG", "DCG", "ERR")  # measures whose gains depend on the grade; all others see relevant or not


@dataclass(frozen=True)
class Refit:
    """Settings of the variant "refit": leaf values fitted to labels by Newton steps on LambdaMART's gradients.

    Parameters
    ----------
    passes : int, default 50
        Passes over all leaves at most.
    rate : float, default 1.0
        Length of a Newton step, shared equally among the trees, which all move at once.
    l2 : float, default 1.0
        Damping: this times the mean of all leaves' hessian sums is added to the hessian sum of every leaf.
    patience : int, default 5
        Passes in a row without a better validation measure after which fitting ends.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.PruningSettings(refit=rw.Refit(passes=10)).refit.passes
    10
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
    """Fit the leaf values of all trees of positive weight jointly to the labels of the training data.

    Every pass takes a diagonal Newton step on the lambda gradients for all leaves at once: a leaf's contribution,
    weight times value, moves by rate / trees * sum(gradient) / (sum(hessian) + damping).

    Returns
    -------
    values : array of shape (n_leaves,)
        Leaf values of the pass with the best validation measure; the old ones if no pass raised it.
    valid : float
        That validation measure.
    """
    how = Refit() if settings is None else settings
    best, best_valid, failures = train.outputs.values, valid.quality(weights), 0
    for values in refit_passes(train, weights, how):
        value = valid.with_values(values).quality(weights)
        failures += 1
        if value > best_valid:
            best, best_valid, failures = values, value, 0
        if failures >= how.patience:
            break
    return best, best_valid


def refit_passes(train: Part, weights: FloatArray, how: Refit) -> Iterator[FloatArray]:
    """Leaf values after each pass, as long as they are finite; `refit_leaves` says what a pass is."""
    trees = np.flatnonzero(weights > 0.0)
    if len(trees) == 0:
        return
    gradients = lambda_gradients(train.queries)
    per_leaf = np.repeat(weights, np.diff(train.outputs.leaf_offsets))
    for _ in range(how.passes):
        first, second = leaf_derivatives(train, weights, trees, gradients)
        damping = how.l2 * second[second > 0.0].mean() if (second > 0.0).any() else 1.0
        change = how.rate / len(trees) * first / (second + damping)
        with np.errstate(over="ignore", invalid="ignore"):  # of a weight near 0
            step = np.divide(change, per_leaf, out=np.zeros_like(change), where=per_leaf > 0.0)
            values = train.outputs.values + step
        if not np.isfinite(values).all():
            return
        train = train.with_values(values)
        yield values


def lambda_gradients(queries: MeasuredQueries) -> Gradients:
    """LambdaMART's gradients of NDCG, with the gains of the measure that counts and at least as deep a cutoff."""
    cutoff = queries.measure.cutoff
    loss = LambdaLoss(truncation=None if cutoff is None else max(30, cutoff), gains="linear")
    weights = queries.document_weights, queries.query_weights
    return loss.prepare(surrogate_gains(queries), queries.offsets, *weights, n_threads=queries.n_threads)


def surrogate_gains(queries: MeasuredQueries) -> FloatArray:
    """Gain of every document by the measure that counts; for measures without grades 1 if relevant, else 0.

    Examples
    --------
    >>> import rankwood as rw
    >>> from rankwood.evaluation.evaluator import Evaluator
    >>> data = rw.Dataset([[0.0], [0.0], [0.0]], [-1, 1, 3], group=[3])
    >>> bound = [MeasuredQueries(Evaluator(data, measure, by_query=True)) for measure in ("nDCG@10", "P(rel=2)@5")]
    >>> [surrogate_gains(queries).tolist() for queries in bound]
    [[0.0, 1.0, 7.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(queries.measure, MeasureFunction):  # which knows of no grades: the labels as they are
        gains: FloatArray = queries.labels - queries.labels.min(initial=0.0)
        return gains
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
    """Sums of gradient (the direction in which scores should move) and of hessian over the documents in every leaf."""
    scores = part.outputs.scores(weights)
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    gradients.gradients(scores, gradient, hessian)
    return part.outputs.leaf_pair_sums(gradient, hessian, trees)
