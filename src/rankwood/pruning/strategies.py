"""Strategies of CLEaVER (Lucchese et al. 2016) that choose the trees to remove, and functions of the user's own.

A strategy is called with the outputs of all trees (`TreeOutputs`), the weights of the trees, the queries that measure
scores (`MeasuredQueries`), and the number k of trees to remove; it returns the numbers of the trees that stay. Weights
are never negative here: a tree with a negative weight has negated outputs instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.fitting.measured import MeasuredQueries
from rankwood.fitting.outputs import TreeOutputs

Strategy: TypeAlias = Callable[[TreeOutputs, FloatArray, MeasuredQueries, int], Any]
# The same arguments, but it returns the k trees to remove, the first to go first.
Order: TypeAlias = Callable[[TreeOutputs, FloatArray, MeasuredQueries, int], IndexArray]


def last(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k last trees."""
    return np.arange(outputs.n_trees)[::-1][:k]


def low_weights(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k trees of the smallest weights; of equal weights the later tree goes first."""
    return smallest(weights, k)


def score_loss(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k trees that contribute the smallest share of scores, mean over documents.

    Notes
    -----
    The paper's share of tree t in the score S(d) of document d, w_t P[d, t] / S(d), has no meaning where contributions
    cancel or S(d) is near 0. Here it is |w_t P[d, t]| over the sum of these over all trees, 0 where that sum is 0.
    """
    return smallest(score_shares(outputs, weights), k)


def signed_score_loss(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k trees of the smallest share in scores as the paper writes it: the mean of w_t P[d, t] / S(d).

    S(d) is the sum of what the trees contribute, as in the paper, whose models have no base score. Documents for which
    it is 0 count 0. Shares below 0, of trees that pull against the sum, are the smallest.
    """
    scores = outputs.direction(weights)
    per_leaf = np.repeat(weights, np.diff(outputs.leaf_offsets))
    contributions = outputs.with_values(outputs.values * per_leaf)
    return smallest(contributions.share_sums(np.where(np.abs(scores) > 1e-290, scores, np.inf)), k)


def quality_loss(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k trees whose removal, each on its own, leaves the highest measure."""
    return smallest(-without_each(outputs, weights, queries, np.arange(outputs.n_trees)), k)


def quality_loss_greedy(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The k trees whose removal leaves the highest measure, one by one, measured again after each removal."""
    weights, remaining, gone = weights.copy(), np.arange(outputs.n_trees), []
    for _ in range(k):
        losses = -without_each(outputs, weights, queries, remaining)
        victim = int(remaining[smallest(losses, 1)[0]])
        gone.append(victim)
        weights[victim] = 0.0
        remaining = remaining[remaining != victim]
    return np.array(gone, dtype=np.int64)


def skip(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
    """The m = n - k trees that stay, evenly spaced: those at positions ceil(i n / m), i = 1, ..., m, counted from 1."""
    n, m = outputs.n_trees, outputs.n_trees - k
    return -(-np.arange(1, m + 1) * n // max(m, 1)) - 1


def random_order(seed: int) -> Order:
    """A strategy that removes trees at random, by a seed."""

    def random(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
        return np.random.default_rng(seed).permutation(outputs.n_trees)[:k]

    return random


def score_shares(outputs: TreeOutputs, weights: FloatArray) -> FloatArray:
    """Share of every tree in the sum of absolute contributions to a document's score, mean over documents.

    Sums are exact, so trees with equal shares get equal results however their leaves are numbered.
    """
    per_leaf = np.repeat(weights, np.diff(outputs.leaf_offsets))
    magnitudes = outputs.with_values(np.abs(outputs.values) * per_leaf)
    total = magnitudes.direction(np.ones(outputs.n_trees))
    sums = magnitudes.share_sums(np.where(total > 1e-290, total, np.inf))
    return sums / outputs.group.total(outputs.n_docs)


def without_each(outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, trees: IndexArray) -> FloatArray:
    """Quality of the model without each of `trees`, one at a time."""
    found, _ = queries.reweighed(outputs, weights, outputs.exact_scores(weights), trees, np.zeros((len(trees), 1)))
    return found[:, 0]


def smallest(values: FloatArray, k: int) -> IndexArray:
    """Indices of the k smallest values, smallest first; of equal values the last comes first."""
    return np.lexsort((-np.arange(len(values)), values))[:k]


ORDERS: dict[str, Order] = {
    "last": last,
    "low-weights": low_weights,
    "score-loss": score_loss,
    "signed-score-loss": signed_score_loss,
    "quality-loss": quality_loss,
    "quality-loss-greedy": quality_loss_greedy,
}
STRATEGIES = (
    "random",
    "last",
    "skip",
    "low-weights",
    "score-loss",
    "signed-score-loss",
    "quality-loss",
    "quality-loss-greedy",
)
# These look at weights, and are given those that a line search over all trees found.
GOES_BY_WEIGHTS = frozenset({"low-weights", "score-loss", "signed-score-loss", "quality-loss", "quality-loss-greedy"})


class Chooser:
    """Chooses the trees that stay by a strategy; what several numbers of victims share is computed once.

    Parameters
    ----------
    strategy : str or callable
        A name of `STRATEGIES`, or a function (outputs, weights, queries, k) that returns the trees that stay.
    most : int
        The largest number of trees that will be removed.
    seed : int, default 0
        Seed of the strategy "random".

    Attributes
    ----------
    gone : array of int or None
        Trees in the order of their removal, once that is known; it may be set to what is known from before. Strategies
        that have no such order leave it None.
    """

    def __init__(self, strategy: str | Strategy, most: int, *, seed: int = 0) -> None:
        self.strategy, self._most = strategy, most
        self.gone: IndexArray | None = None
        self.name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
        if isinstance(strategy, str) and strategy not in STRATEGIES:
            near = difflib.get_close_matches(strategy, STRATEGIES, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise RankwoodError(f"there is no strategy {strategy!r}{hint}: known are {', '.join(STRATEGIES)}")
        if not isinstance(strategy, str) and not callable(strategy):
            raise RankwoodError(f"a strategy is a name or a function, got {type(strategy).__name__}")
        self._orders: dict[str, Order] = {**ORDERS, "random": random_order(seed)}

    @property
    def goes_by_weights(self) -> bool:
        """Whether the strategy is given the weights of a line search over all trees, not the model's."""
        return not isinstance(self.strategy, str) or self.strategy in GOES_BY_WEIGHTS

    def stay(self, outputs: TreeOutputs, weights: FloatArray, queries: MeasuredQueries, k: int) -> IndexArray:
        """The trees that stay when k are removed, in increasing order."""
        if self.strategy == "skip":
            return skip(outputs, weights, queries, k)
        if not isinstance(self.strategy, str):
            return self._checked(self.strategy(outputs, weights, queries, k), outputs.n_trees, k)
        if self.gone is None or len(self.gone) < k:  # in order of removal, so the first k serve every k
            self.gone = self._orders[self.strategy](outputs, weights, queries, max(self._most, k))
        return np.setdiff1d(np.arange(outputs.n_trees), self.gone[:k])

    def _checked(self, stay: Any, n_trees: int, k: int) -> IndexArray:
        trees = np.asarray(stay)
        if trees.dtype == bool and trees.shape == (n_trees,):
            trees = np.flatnonzero(trees)
        right = trees.ndim == 1 and (trees.dtype.kind in "iu" or trees.size == 0)
        numbers = np.unique(trees) if right else trees
        if not right or len(numbers) != n_trees - k or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < n_trees):
            raise RankwoodError(
                f"the strategy {self.name} must return the {n_trees - k} different trees of 0 to {n_trees - 1} that "
                f"stay, got {trees.tolist() if trees.size < 20 else f'an array of shape {trees.shape}'}"
            )
        return numbers.astype(np.int64)
