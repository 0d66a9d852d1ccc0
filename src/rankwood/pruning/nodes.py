"""Node collapsing: sibling leaves that say nearly the same become one, the cheapest pairs first."""

from __future__ import annotations

import heapq

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble


def collapse_nodes(model: Ensemble, covers: FloatArray, n_leaves: int) -> Ensemble:
    """The model with at most `n_leaves` leaves: sibling leaves are merged, those that change scores least first.

    Merging leaves of values a and b, reached by m and n documents, in a tree of weight w changes the scores of these
    documents by a sum of squares of w^2 m n / (m + n) (a - b)^2 at least, when the new leaf has their mean value. The
    cheapest pair is merged, then the next, until few enough leaves remain; merged pairs may become siblings again. A
    tree of which one leaf remains is left out, its value moves into the base score.

    Parameters
    ----------
    model : Ensemble
        The model to make smaller.
    covers : array of float
        Documents that reach each leaf, tree after tree.
    n_leaves : int
        Leaves of all trees together.

    Returns
    -------
    Ensemble
        A smaller model; the given one when it is small enough.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 2.1))])
    >>> collapse_nodes(model, np.array([10.0, 10.0, 30.0]), 2).leaf_value
    array([1.   , 2.075])
    """
    if n_leaves < 1:
        raise RankwoodError(f"a model needs at least 1 leaf, got {n_leaves}")
    if len(covers) != model.n_leaves:
        raise RankwoodError(f"covers must have one entry per leaf ({model.n_leaves}), got {len(covers)}")
    if model.n_leaves <= n_leaves:
        return model
    trees = model.trees
    left, right = (links.tolist() for links in trees.links())
    parent = np.full(trees.n_nodes, -1).tolist()
    for node, children in enumerate(zip(left, right, strict=True)):
        for child in children:
            if child >= 0:
                parent[child] = node
    values, weights = trees.leaf_value.tolist(), [float(cover) for cover in covers]
    scale = (np.abs(model.tree_weights)[trees.tree_of_node] ** 2).tolist()
    instead, n_old = list(range(trees.n_nodes)), len(values)
    queue: list[tuple[float, int]] = []

    def offer(node: int) -> None:
        """Put a node into the queue if both its children are leaves by now."""
        a, b = (instead[child] if child >= 0 else child for child in (left[node], right[node]))
        if a < 0 and b < 0:
            m, n = weights[~a], weights[~b]
            share = m * n / (m + n) if m + n > 0 else 0.0
            heapq.heappush(queue, (scale[node] * share * (values[~a] - values[~b]) ** 2, node))

    for node in range(trees.n_nodes):
        offer(node)
    n_left = model.n_leaves
    while queue and n_left > n_leaves:
        _, node = heapq.heappop(queue)
        a, b = (instead[child] if child >= 0 else child for child in (left[node], right[node]))
        m, n = weights[~a], weights[~b]
        mean = (m * values[~a] + n * values[~b]) / (m + n) if m + n > 0 else (values[~a] + values[~b]) / 2
        instead[node] = ~len(values)
        values.append(mean)
        weights.append(m + n)
        n_left -= 1
        if parent[node] >= 0:
            offer(parent[node])
    smaller = trees.rewired(np.array(instead, dtype=np.int64), np.array(values[n_old:]))
    return without_stumps(
        Ensemble.of(
            smaller,
            n_features=model.n_features,
            tree_weights=model.tree_weights,
            base=model.base,
            feature_names=model.feature_names,
            metadata=model.metadata,
        )
    )


def without_stumps(model: Ensemble) -> Ensemble:
    """The model without trees of a single leaf, whose values go into the base score."""
    alone = np.flatnonzero(model.trees.sizes == 0)
    if len(alone) == 0:
        return model
    constant = float(np.sum(model.tree_weights[alone] * model.leaf_value[model.leaf_offsets[alone]]))
    return model.select(np.flatnonzero(model.trees.sizes > 0)).replace(base=model.base + constant)
