"""Judging: which validation queries choose models and which judge them, and models measured and timed side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.evaluation.evaluator import Comparison, Evaluator, aligned_features, compare_values, weighted_values
from rankwood.group import ALONE, Group
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Judging, Proof
from rankwood.scoring.timing import Budget, Timing, time_models, warn_if_busy

FOLDS = 5
FEWEST_TO_FOLD = 50  # validation queries; with fewer there is nothing to judge by
TIMED = Budget(calls=20, seconds=0.03, most_seconds=0.4)  # per model, as there are many


def checked(data: Any, name: str) -> Dataset:
    if not isinstance(data, Dataset):
        raise DataError(f"{name} must be a Dataset, with labels and queries, got {type(data).__name__}")
    return data


@dataclass(frozen=True)
class Roles:
    """What validation queries do.

    Parameters
    ----------
    judging : str
        What the queries that judge a model had to do with it.
    chooses : Dataset
        Data that chooses the models to return.
    judges : Dataset or None
        Data that chooses nothing and judges.
    folds : list of (Dataset, Dataset)
        Pairs of data that chooses and a fold that judges what it chose.
    """

    judging: Judging
    chooses: Dataset
    judges: Dataset | None = None
    folds: list[tuple[Dataset, Dataset]] = field(default_factory=list)


def roles_of(
    valid: Dataset, judge: Any, *, plenty: int, seed: int, n_folds: int = FOLDS, group: Group = ALONE
) -> Roles:
    """Which validation queries choose models and which judge them, as `judge` has it.

    "auto" sets half of them aside when there are `plenty`, else they judge fold by fold. Where `group` has the data
    together, the data of a role is the share of this process.
    """
    share = Share.of(valid, group)
    if isinstance(judge, str) and judge == "auto":
        judge = 0.5 if share.n_queries >= plenty else "folds"
    if judge is None or (isinstance(judge, str) and judge == "folds" and share.n_queries < FEWEST_TO_FOLD):
        return Roles("choosing", valid)
    if isinstance(judge, str) and judge == "folds":
        return Roles("folds", valid, folds=list(share.folds(valid, n_folds, seed=seed)))
    if not isinstance(judge, (int, float)):
        return Roles("unseen", valid, checked(judge, "judge"))
    if not 0.0 < judge < 1.0:
        raise RankwoodError(f"the share of the validation queries to judge by must lie between 0 and 1, got {judge}")
    return Roles("unseen", *share.split(valid, 1.0 - judge, seed=seed))


class Measured(NamedTuple):
    """Mean of the measure, and its values of all queries, weighted as in the mean."""

    mean: float
    values: FloatArray


def measured(evaluator: Evaluator, model: Any) -> Measured:
    """The measure of a model on the data of an evaluator, and of its group."""
    found, (name,) = evaluator.evaluate(model), evaluator.names
    return Measured(found.means[name], weighted_values(found.per_query[name], found.query_weights))


def proof_on(test: Evaluator, full: Any, chosen: Any, rule: Acceptance) -> Proof | None:
    """What test data shows of the chosen model; None when the rule has no margin."""
    if rule.margin is None:
        return None
    one, other = (measured(test, model).values for model in (full, chosen))
    return Proof.of(one, other, rule, measure=test.names[0])


def compared(full: Ensemble, chosen: Ensemble, test: Evaluator) -> Comparison | None:
    """The chosen model against the full one on test data; None when it has too few queries for a test."""
    one, other = (test.evaluate(model) for model in (full, chosen))
    try:
        return compare_values(one, other, test.names[0])
    except DataError:
        return None


def timed(models: Sequence[Ensemble], data: Dataset, *, by_query: bool = False) -> tuple[Timing, ...]:
    """Scoring time of models with the same features, on the documents of a data set.

    With `by_query` on batches of whole queries, which early exit needs.
    """
    X, group = aligned_features(models[0], data), None
    if by_query:
        X, group = X if data.order is None else X[data.order], data.queries.sizes
    timings = time_models([(model, X) for model in models], group=group, budget=TIMED)
    warn_if_busy(timings)
    return tuple(timings)
