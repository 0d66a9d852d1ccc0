"""Which of several candidates is taken, by validation queries, so that no query judges what it chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.model.ensemble import Ensemble


class Choosers:
    """Groups of validation queries that choose.

    ::

        validation queries     fold 1  fold 2  fold 3
        chooser 0 (all)          x       x       x      chooses the model that is returned
        chooser 1                        x       x      chooses what fold 1 judges
        chooser 2                x               x      chooses what fold 2 judges
        chooser 3                x       x              chooses what fold 3 judges

    Parameters
    ----------
    weights : array of shape (n_queries,)
        Weight of every query in means.
    n_folds : int
        Folds; 0: all queries choose and none judges.
    seed : int
        Seed by which queries are dealt out to folds.
    """

    def __init__(self, weights: FloatArray, n_folds: int, seed: int) -> None:
        self.weights, self.n_folds = weights, n_folds
        self.fold: IndexArray = np.full(len(weights), -1)
        if n_folds:
            dealt = np.arange(len(weights)) % n_folds
            self.fold[np.random.default_rng(seed).permutation(len(weights))] = dealt
        self.choose = np.stack([self.fold != number for number in (-2, *range(n_folds))])  # choosers x queries

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of the values of queries by the queries of every chooser; NaN values are left out."""
        weights = np.where(np.isnan(values), 0.0, self.weights) * self.choose
        totals = weights.sum(axis=1)
        sums = (weights * np.nan_to_num(values)).sum(axis=1)
        means: FloatArray = np.divide(sums, totals, out=np.full(len(totals), -np.inf), where=totals > 0.0)
        return means

    def out_of_fold(self, of_chooser: Sequence[FloatArray]) -> FloatArray:
        """For every query the value of what the others chose; `of_chooser[0]` where there are no folds.

        Parameters
        ----------
        of_chooser : sequence of arrays of shape (n_queries,)
            Values of all queries for what each chooser took.
        """
        return np.choose(self.fold + 1, list(of_chooser)) if self.n_folds else np.asarray(of_chooser[0])


@dataclass(frozen=True)
class Candidate:
    """A model that may be taken, and its values on validation queries.

    Parameters
    ----------
    ensemble : Ensemble
        The model, as all validation queries chose it.
    means : array of shape (n_choosers,)
        Mean by each chooser of what that chooser took.
    values : array of shape (n_queries,)
        Values of the model.
    unseen : array of shape (n_queries,)
        Value of every query for what the other folds chose; `values` where there are no folds.
    """

    ensemble: Ensemble
    means: FloatArray
    values: FloatArray
    unseen: FloatArray


def best_of(candidates: Sequence[Candidate], means: Sequence[FloatArray], choosers: Choosers) -> tuple[int, FloatArray]:
    """Number of the candidate that all queries take, and every query's value for what the other folds take.

    Each chooser takes the candidate of the highest of its `means`.
    """
    taken = np.argmax(means, axis=0)
    return int(taken[0]), choosers.out_of_fold([candidates[number].unseen for number in taken])


def has_stopped(means: Sequence[float], patience: int) -> bool:
    """Whether there were so many passes in a row without a better mean."""
    return len(means) - 1 - int(np.argmax(means)) >= patience


def best_pass(means: Sequence[float], patience: int) -> int:
    """The pass that early stopping takes: the best one before `patience` passes in a row were not better."""
    best = 0
    for number, mean in enumerate(means):
        if mean > means[best]:
            best = number
        elif number - best >= patience:
            break
    return best
