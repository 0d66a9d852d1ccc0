"""Leaf values fitted to labels, all trees at once, by Newton steps on LambdaMART's gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwood import _native
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator
from rankwood.evaluation.measures import AnyMeasure, MeasureFunction, parse_measure
from rankwood.evaluation.per_query import resolve
from rankwood.fitting.measured import MeasuredQueries, Part
from rankwood.fitting.outputs import check_fits, refitted, unsigned_weights
from rankwood.model.ensemble import Ensemble
from rankwood.training.correction import joint_step
from rankwood.training.losses import LambdaLoss, Setting, label_gains
from rankwood.training.tasks import without_grades

if TYPE_CHECKING:
    from rankwood.training.losses import Gradients, Loss


GRADED = ("nDCG", "DCG", "ERR")  # measures whose gains depend on the grade; all others see relevant or not


@dataclass(frozen=True)
class Refit:
    """Settings of a joint refit: leaf values fitted to labels by Newton steps on LambdaMART's gradients.

    Of `refit`, of the parameter `refit` of learners, and of the variant "refit" of `cleaver`, whose defaults differ.

    Parameters
    ----------
    passes : int, default 100
        Passes over all leaves at most.
    rate : float, default 3.0
        Length of a Newton step, shared equally among the trees, which all move at once.
    l2 : float, default 1.0
        Damping: this times the mean of all leaves' hessian sums is added to the hessian sum of every leaf.
    patience : int, default 10
        Passes in a row without a better validation measure after which fitting ends.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.PruningSettings(refit=rw.Refit(passes=10)).refit.passes
    10
    """

    passes: int = 100
    rate: float = 3.0
    l2: float = 1.0
    patience: int = 10

    def __post_init__(self) -> None:
        if self.passes < 0 or self.patience < 1 or not 0.0 < self.rate <= 100.0 or not self.l2 >= 0.0:
            raise RankwoodError("a refit needs passes from 0, patience from 1, a rate above 0 and l2 from 0 upwards")


def refit(
    model: Any,
    train: Dataset,
    valid: Dataset,
    *,
    measure: AnyMeasure = "nDCG@10",
    convention: str | Convention = "rankwood",
    settings: Refit | None = None,
    n_threads: int | None = None,
) -> Ensemble:
    """Fit the leaf values of all trees of a model jointly to the labels: the same trees, often a better ranking.

    Boosting fits each tree to what the trees before it left over, and never looks at it again. Here all leaves move at
    once, in Newton steps on LambdaMART's gradients. Works on any Ensemble, whoever trained it; scoring it takes as long
    as before.

    **Validation data chooses** the number of passes, so its measure afterwards is too favourable: measure the result on
    other data.

    Parameters
    ----------
    model : Ensemble or fitted ranker
        The model; it is left as it is.
    train : Dataset
        Data whose labels the leaves are fitted to, best that which the model was trained on.
    valid : Dataset
        Data by which the best pass is chosen.
    measure : str, Measure or callable, default "nDCG@10"
        What the best pass is best by. Its gains are also those of the gradients.
    convention : str or Convention, default "rankwood"
        Convention of the measure.
    settings : Refit or None, default None
        Passes, length of steps, damping and patience.
    n_threads : int or None, default None
        Threads; all CPUs when None. The result does not depend on it.

    Returns
    -------
    Ensemble
        The model with other leaf values. Its metadata has a note `refit`: the passes that were made, and the measure on
        validation data before and after. The model itself, without a note, when no pass raised that measure.

    See Also
    --------
    cleaver : Takes trees out of a model, and fits the leaves of those that stay.

    Notes
    -----
    Trees of weight 0 stay as they are. A model of task="ordinal" still ranks, but tells no probabilities any more.

    Examples
    --------
    >>> import rankwood as rw
    >>> train, valid = rw.make_ranking(n_queries=60, docs_per_query=15, n_features=6).split(0.6)
    >>> model = rw.LambdaMART(n_trees=20, n_leaves=6, learning_rate=0.1).fit(train).ensemble_
    >>> better = rw.refit(model, train, valid)
    >>> note = better.metadata["refit"]
    >>> better.n_trees, note["passes"] > 0, note["valid_after"] > note["valid_before"]
    (20, True, True)
    """
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise ModelError(
            f"refitting takes an Ensemble or a fitted ranker, got {type(model).__name__}; models of other libraries "
            "come in with rankwood.load_model"
        )
    if settings is not None and not isinstance(settings, Refit):
        raise RankwoodError(f"settings must be a Refit, got {type(settings).__name__}")
    for name, data in (("train", train), ("valid", valid)):
        if not isinstance(data, Dataset):
            raise DataError(f"{name} must be a Dataset, got {type(data).__name__}")
    bound = [
        Evaluator(data, parse_measure(measure), convention, by_query=True, n_threads=n_threads)
        for data in (train, valid)
    ]
    return refit_model(ensemble, bound[0], bound[1], Refit() if settings is None else settings)


def refit_model(
    model: Ensemble,
    train: Evaluator,
    valid: Evaluator,
    how: Refit,
    *,
    loss: Loss | None = None,
    seed: int = 0,
    n_fixed: int = 0,
) -> Ensemble:
    """What `refit` does, for data that a measure is bound to already.

    Parameters
    ----------
    model : Ensemble
        The model.
    train, valid : Evaluator
        The measure bound to training and to validation data, with `by_query=True`.
    how : Refit
        Settings.
    loss : Loss, optional
        Whose gradients are followed; LambdaMART's with the gains of the measure unless given.
    seed : int, default 0
        Of a loss that draws random numbers.
    n_fixed : int, default 0
        The first so many trees stay as they are.
    """
    if model.n_trees <= n_fixed:
        raise ModelError("the model has no trees: there is nothing to refit")
    check_fits(model, [train.data, valid.data])
    parts = [Part.of(model, evaluator) for evaluator in (train, valid)]
    queries, weights = parts[0].queries, unsigned_weights(model)
    gradients = lambda_gradients(queries) if loss is None else bound_loss(loss, queries, seed=seed)
    trees = n_fixed + np.flatnonzero(weights[n_fixed:] > 0.0)
    passes = refit_passes(parts[0], weights, how, gradients, trees)
    found = best_pass(parts[0], parts[1], weights, passes, how.patience)
    if found.passes == 0:
        return model
    note = {
        "passes": found.passes,
        "valid_before": found.before,
        "valid_after": found.valid,
        "measure": str(queries.measure),
        "convention": valid.convention.name,
        "settings": asdict(how),
    }
    return without_grades(refitted(model, found.values)).with_metadata(refit=note)


class BestPass(NamedTuple):
    """The pass of a refit after which validation data was measured best.

    Parameters
    ----------
    values : array of shape (n_leaves,)
        Leaf values after it.
    valid : float
        Measure on validation data after it.
    before : float
        The same before the first pass.
    passes : int
        Its number, from 1; 0 when none raised the measure.
    """

    values: FloatArray
    valid: float
    before: float
    passes: int


def best_pass(train: Part, valid: Part, weights: FloatArray, passes: Iterator[FloatArray], patience: int) -> BestPass:
    """The best of some passes on validation data; passes end when `patience` in a row did not raise the measure."""
    start = valid.quality(weights)
    best = BestPass(train.outputs.values, start, start, 0)
    for number, values in enumerate(passes, start=1):
        value = valid.with_values(values).quality(weights)
        if value > best.valid:
            best = BestPass(values, value, start, number)
        if number - best.passes >= patience:
            break
    return best


def refit_passes(
    train: Part,
    weights: FloatArray,
    how: Refit,
    gradients: Gradients | None = None,
    trees: IndexArray | None = None,
) -> Iterator[FloatArray]:
    """Leaf values after each pass, as long as they are finite; `joint_step` says what a pass is.

    Parameters
    ----------
    train : Part
        Training data.
    weights : array of shape (n_trees,)
        Weights of the trees.
    how : Refit
        Settings.
    gradients : Gradients, optional
        The loss bound to the training data; that of `lambda_gradients` unless given.
    trees : array of int, optional
        Trees that move; all of positive weight unless given.
    """
    trees = np.flatnonzero(weights > 0.0) if trees is None else trees
    if len(trees) == 0:
        return
    gradients = lambda_gradients(train.queries) if gradients is None else gradients
    per_leaf = np.repeat(weights, np.diff(train.outputs.leaf_offsets))
    for draw in range(how.passes):
        first, second = leaf_derivatives(train, weights, trees, gradients, draw)
        values = train.outputs.values + joint_step(first, second, per_leaf, len(trees), rate=how.rate, l2=how.l2)
        if not np.isfinite(values).all():
            return
        values = train.outputs.constrained(values, second)
        train = train.with_values(values)
        yield values


def lambda_gradients(queries: MeasuredQueries) -> Gradients:
    """LambdaMART's gradients of NDCG, with the gains of the measure that counts and at least as deep a cutoff."""
    cutoff = queries.measure.cutoff
    loss = LambdaLoss(truncation=None if cutoff is None else max(30, cutoff), gains="linear")
    return bound_loss(loss, queries, surrogate_gains(queries))


def bound_loss(loss: Loss, queries: MeasuredQueries, labels: FloatArray | None = None, *, seed: int = 0) -> Gradients:
    """A loss bound to the documents of some queries and their weights; `labels` instead of their own if given."""
    weights = queries.document_weights, queries.query_weights
    y = queries.labels if labels is None else labels
    return loss.prepare(y, queries.offsets, *weights, setting=Setting(seed), n_threads=queries.n_threads)


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
        lowest = -queries.group.max(np.array([-queries.labels.min(initial=0.0)]))[0]
        return np.asarray(queries.labels - lowest)
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
    part: Part, weights: FloatArray, trees: IndexArray, gradients: Gradients, draw: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Sums of gradient (the direction in which scores should move) and of hessian over the documents in every leaf."""
    scores = part.outputs.scores(weights)
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    gradients.gradients(scores, gradient, hessian, draw)
    return part.outputs.leaf_pair_sums(gradient, hessian, trees)
