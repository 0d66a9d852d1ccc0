"""Corrective boosting: every so many trees, the leaves of all live trees are fitted anew, jointly, to the labels."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from rankwood.dtypes import LEAF_VALUE, FloatArray
from rankwood.errors import RankwoodError
from rankwood.model.constraints import Projection
from rankwood.model.trees import Tree
from rankwood.training.callbacks import Live

if TYPE_CHECKING:
    from rankwood.training.losses import Gradients
    from rankwood.training.watch import KeptLeaves

LeafValues = Mapping[int, FloatArray]  # values of the leaves of trees, by the number of the tree
LITTLE_ENDIAN = "<f8"


@dataclass(frozen=True)
class Corrective:
    """How the leaves of all trees are corrected while boosting goes on.

    A tree is fitted to what the trees before it left over, and never looked at again. A correction looks at all of them
    at once: Newton steps on the gradients of the loss, as in the regularised greedy forest of Johnson & Zhang (2014).

    Parameters
    ----------
    every : int, default 20
        Trees between two corrections; with X-DART, iterations.
    passes : int, default 3
        Newton steps of one correction.
    rate : float, default 1.0
        Length of a step, shared equally among the trees, which all move at once.
    l2 : float, default 1.0
        Damping: this times the mean of all leaves' hessian sums is added to the hessian sum of every leaf.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5)
    >>> ranker = rw.LambdaMART(n_trees=6, n_leaves=4, corrective=rw.Corrective(every=3, passes=1)).fit(data)
    >>> plain = rw.LambdaMART(n_trees=6, n_leaves=4).fit(data)
    >>> ranker.ensemble_ == plain.ensemble_
    False
    """

    every: int = 20
    passes: int = 3
    rate: float = 1.0
    l2: float = 1.0

    def __post_init__(self) -> None:
        if self.every < 1 or self.passes < 1 or not 0.0 < self.rate <= 100.0 or not 0.0 <= self.l2 < np.inf:
            raise RankwoodError(
                "a correction needs trees between (every) and passes from 1, a rate above 0 and l2 from 0 upwards"
            )

    def is_due(self, n_rounds: int) -> bool:
        """Whether there is a correction after so many rounds.

        Parameters
        ----------
        n_rounds : int
            Rounds grown so far.
        """
        return n_rounds % self.every == 0


def correct(
    kept: KeptLeaves,
    objective: Gradients,
    live: Live,
    how: Corrective,
    projection: Projection | None = None,
    draws: Iterable[int] | None = None,
) -> LeafValues:
    """Correct the leaves of all live trees on the training data; its scores change with them.

    In every pass the contribution of a leaf, weight times value, moves by rate / trees * sum(gradient) / (sum(hessian)
    + damping). Passes end early where values would overflow.

    Parameters
    ----------
    kept : KeptLeaves
        The training data: the leaf of every document in every live tree.
    objective : Gradients
        The loss.
    live : dict from int to float
        Weights of the live trees.
    how : Corrective
        How many passes, and how far they go.
    projection : Projection, optional
        What moves the values of the live trees, in their order, after each pass, so that they keep constraints.
    draws : iterable of int, optional
        Number of the draw of every pass, for losses that draw random numbers; 0, 1, ... unless given.

    Returns
    -------
    mapping from int to array
        New leaf values of every live tree.

    Notes
    -----
    Sums over documents are exact and those of all processes that share the data (`KeptLeaves.group`), so every process
    finds the same values.
    """
    gradient, hessian = np.empty_like(kept.scores), np.empty_like(kept.scores)
    values = kept.values(live)
    sizes = [len(of_tree) for of_tree in values.values()]
    per_leaf = np.repeat(list(live.values()), sizes)
    for _, draw in zip(range(how.passes), count() if draws is None else draws, strict=False):
        objective.gradients(kept.scores, gradient, hessian, draw)
        first, second = kept.leaf_sums(live, gradient, hessian)
        step = joint_step(first, second, per_leaf, len(live), rate=how.rate, l2=how.l2)
        moved = np.concatenate(list(values.values())) + step
        if not np.isfinite(moved).all():
            break
        moved = moved if projection is None else projection(moved, second)
        values = dict(zip(live, np.split(moved, np.cumsum(sizes)[:-1]), strict=True))
        kept.revalue(values, live)
    return values


def joint_step(
    first: FloatArray, second: FloatArray, weights: FloatArray, n_trees: int, *, rate: float, l2: float
) -> FloatArray:
    """Change of every leaf value by one diagonal Newton step of all trees at once.

    The contribution of a leaf, weight times value, moves by rate / trees * sum(gradient) / (sum(hessian) + damping),
    where the damping is `l2` times the mean of all hessian sums above 0. Steps that overflow are infinite or NaN.

    Parameters
    ----------
    first, second : array of shape (n_leaves,)
        Sums of gradients and of hessians over the documents of each leaf; 0 for leaves that stay as they are.
    weights : array of shape (n_leaves,)
        Weight of the tree of each leaf.
    n_trees : int
        Trees that move.
    rate, l2 : float
        As in `Corrective`.

    Examples
    --------
    >>> joint_step(np.array([3.0, 0.0]), np.array([2.0, 4.0]), np.array([0.5, 0.5]), 1, rate=1.0, l2=1.0).tolist()
    [1.2, 0.0]
    """
    damping = l2 * second[second > 0.0].mean() if (second > 0.0).any() else 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of a weight near 0
        change = rate / n_trees * first / (second + damping)
        return np.divide(change, weights, out=np.zeros_like(change), where=weights > 0.0)


def as_text(values: Iterable[FloatArray]) -> str:
    """Leaf values, bit for bit, as the notes of a checkpoint can hold them in little room."""
    return base64.b64encode(np.concatenate(list(values)).astype(LITTLE_ENDIAN).tobytes()).decode("ascii")


def from_text(text: str, trees: Sequence[Tree]) -> list[FloatArray]:
    """Leaf values of some trees: the inverse of `as_text`.

    Examples
    --------
    >>> tree = Tree.from_nested((0, 0.5, 1.0, 2.0))
    >>> [values.tolist() for values in from_text(as_text([np.array([0.1, 0.2]), np.array([3.0, 4.0])]), [tree, tree])]
    [[0.1, 0.2], [3.0, 4.0]]
    """
    values = np.frombuffer(base64.b64decode(text), dtype=LITTLE_ENDIAN).astype(LEAF_VALUE)
    return np.split(values, np.cumsum([len(tree.leaf_value) for tree in trees])[:-1])
