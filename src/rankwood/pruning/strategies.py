"""Which trees go: the strategies of CLEaVER (Lucchese et al. 2016), and any function of your own.

A strategy takes what the trees say (`TreeOutputs`), their weights, the `Queries` to go by and the number k of trees
that go, and answers with the numbers of those that stay. Weights are never negative here: a tree with a negative one
has negated outputs instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.pruning.outputs import Queries, TreeOutputs

Strategy: TypeAlias = Callable[[TreeOutputs, FloatArray, Queries, int], Any]
# The same arguments, but the answer is the k trees that go, the first to go first.
Order: TypeAlias = Callable[[TreeOutputs, FloatArray, Queries, int], IndexArray]


def last(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """The last ones."""
    return np.arange(outputs.n_trees)[::-1][:k]


def low_weights(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """Those of the smallest weights; of equal ones the later."""
    return smallest(weights, k)


def score_loss(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """Those with the smallest share in scores, mean over documents.

    The paper's share, w_t P[d, t] / S(d), has no meaning where contributions cancel or the score S(d) is near 0. Here
    it is |w_t P[d, t]| over the sum of these over all trees, 0 where that sum is 0.
    """
    return smallest(score_shares(outputs, weights), k)


def quality_loss(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """Those whose removal, each on its own, leaves the best measure on the data at hand."""
    return smallest(-without_each(outputs, weights, queries, np.arange(outputs.n_trees)), k)


def quality_loss_greedy(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """The same one at a time: after each removal the measure is taken anew."""
    weights, remaining, gone = weights.copy(), np.arange(outputs.n_trees), []
    for _ in range(k):
        losses = -without_each(outputs, weights, queries, remaining)
        victim = int(remaining[smallest(losses, 1)[0]])
        gone.append(victim)
        weights[victim] = 0.0
        remaining = remaining[remaining != victim]
    return np.array(gone, dtype=np.int64)


def skip(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
    """The m = n - k trees that stay, evenly spaced: those at positions ceil(i n / m), i = 1, ..., m."""
    n, m = outputs.n_trees, outputs.n_trees - k
    return -(-np.arange(1, m + 1) * n // max(m, 1)) - 1


def random_order(seed: int) -> Order:
    """Any trees, drawn with a seed."""

    def random(outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
        return np.random.default_rng(seed).permutation(outputs.n_trees)[:k]

    return random


def score_shares(outputs: TreeOutputs, weights: FloatArray) -> FloatArray:
    """Share of every tree in the absolute contributions to a document's score, mean over documents.

    Sums are exact: trees with the same shares have the same here, however their leaves are numbered.
    """
    per_leaf = np.repeat(weights, np.diff(outputs.leaf_offsets))
    magnitudes = outputs.with_values(np.abs(outputs.values) * per_leaf)
    total = magnitudes.direction(np.ones(outputs.n_trees))
    shares: FloatArray = magnitudes.share_sums(np.where(total > 1e-290, total, np.inf)) / outputs.n_docs  # or nothing
    return shares


def without_each(outputs: TreeOutputs, weights: FloatArray, queries: Queries, trees: IndexArray) -> FloatArray:
    """Quality without each of `trees`, all others staying as they are."""
    found, _ = queries.reweighed(outputs, weights, outputs.exact_scores(weights), trees, np.zeros((len(trees), 1)))
    return found[:, 0]


def smallest(values: FloatArray, k: int) -> IndexArray:
    """Places of the k smallest, in increasing order; of equal ones the last come first."""
    return np.lexsort((-np.arange(len(values)), values))[:k]


ORDERS: dict[str, Order] = {
    "last": last,
    "low-weights": low_weights,
    "score-loss": score_loss,
    "quality-loss": quality_loss,
    "quality-loss-greedy": quality_loss_greedy,
}
STRATEGIES = ("random", "last", "skip", "low-weights", "score-loss", "quality-loss", "quality-loss-greedy")
# Strategies that go by weights choose victims by those of a line search over all trees.
GOES_BY_WEIGHTS = frozenset({"low-weights", "score-loss", "quality-loss", "quality-loss-greedy"})


class Chooser:
    """Chooses the trees that stay, by a strategy's name or function; what several k share is computed once."""

    def __init__(self, strategy: str | Strategy, most: int, *, seed: int = 0) -> None:
        self.strategy, self._most = strategy, most
        self._gone: IndexArray | None = None
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
        """Whether victims are chosen by the weights of a line search over all trees."""
        return not isinstance(self.strategy, str) or self.strategy in GOES_BY_WEIGHTS

    def stay(self, outputs: TreeOutputs, weights: FloatArray, queries: Queries, k: int) -> IndexArray:
        """The trees that stay when k go, in increasing order."""
        if self.strategy == "skip":
            return skip(outputs, weights, queries, k)
        if not isinstance(self.strategy, str):
            return self._checked(self.strategy(outputs, weights, queries, k), outputs.n_trees, k)
        if self._gone is None:  # the first to go are the same whatever k
            self._gone = self._orders[self.strategy](outputs, weights, queries, max(self._most, k))
        return np.setdiff1d(np.arange(outputs.n_trees), self._gone[:k])

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
