"""How much data every node and leaf holds, for tools that explain scores by it (SHAP).

A model knows it of its leaves when its source did. Otherwise every leaf counts alike, but for what is known of inner
nodes. No leaf is left without: the tools would divide by zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.model.ensemble import Ensemble

LEAST = 1e-6  # of the mean of a tree's leaves: what a leaf is given that holds nothing
PARTS = 10**9  # of a tree's data, when it is not counted in documents


def leaf_covers(model: Ensemble) -> FloatArray:
    """Documents at each leaf, or their weight: more than zero, and within the range of float32.

    >>> import rankwood as rw
    >>> leaf_covers(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    array([1., 1.])
    """
    covers = _known(model)
    starts, sizes = model.leaf_offsets[:-1], np.diff(model.leaf_offsets)
    largest = np.maximum.reduceat(covers, starts)
    odd = (largest > 1e30) | (largest < 1e-20)
    if odd.any():  # a tree's weights matter relative to each other only
        covers = covers / np.repeat(np.where(odd & (largest > 0), largest, 1.0), sizes)
    means = np.repeat(np.add.reduceat(covers, starts) / sizes, sizes)
    least = np.where(means > 0, LEAST * means, 1.0)
    return np.maximum(covers, least)


def whole_covers(model: Ensemble) -> tuple[IndexArray, IndexArray]:
    """The same of leaves and of inner nodes as whole numbers below 2**31: documents where every leaf of a tree has
    some, else parts of a billion. A node holds what its leaves do.

    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 3.0))])
    >>> whole_covers(model.replace(leaf_cover=[10, 4, 5]))
    (array([10,  4,  5]), array([19,  9]))
    """
    known = _known(model)
    starts, sizes = model.leaf_offsets[:-1], np.diff(model.leaf_offsets)
    is_count = (known == np.rint(known)) & (known >= 1) & (known < 2**31)
    counted = np.logical_and.reduceat(is_count, starts)
    counted &= np.add.reduceat(np.where(is_count, known, 0.0), starts) < 2**31
    covers = leaf_covers(model)
    parts = np.maximum(1, np.rint(covers * np.repeat(PARTS / np.add.reduceat(covers, starts), sizes)))
    leaves = np.where(np.repeat(counted, sizes), known, parts).astype(np.int64)
    return leaves, node_sums(model, leaves).astype(np.int64)


def node_sums(model: Ensemble, leaves: NDArray[np.int64] | FloatArray) -> FloatArray:
    """Of each inner node the sum over the leaves below it.

    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 3.0))])
    >>> node_sums(model, np.array([10.0, 4.0, 5.0]))
    array([19.,  9.])
    """
    sizes = np.diff(model.node_offsets)
    first, first_leaf = (np.repeat(offsets[:-1], sizes) for offsets in (model.node_offsets, model.leaf_offsets))
    below = [np.where(side >= 0, first + side, -1) for side in (model.left, model.right)]
    levels = [model.node_offsets[:-1][sizes > 0]]
    while len(levels[-1]):
        children = np.concatenate([side[levels[-1]] for side in below])
        levels.append(children[children >= 0])
    sums = np.zeros(model.n_nodes)
    for nodes in reversed(levels):
        for side, inner in zip((model.left, model.right), below, strict=True):
            child, is_leaf = inner[nodes], inner[nodes] < 0
            sums[nodes] += np.where(
                is_leaf, leaves[first_leaf[nodes] + np.where(is_leaf, ~side[nodes], 0)], sums[child]
            )
    return sums


def _known(model: Ensemble) -> FloatArray:
    """What the model knows of its leaves, or follows from what it knows of its nodes, or 1 for each."""
    if model.leaf_cover is not None:
        return model.leaf_cover
    covers = np.ones(model.n_leaves)
    if model.node_count is None:
        return covers
    sizes = np.diff(model.node_offsets)
    first, first_leaf = (np.repeat(offsets[:-1], sizes) for offsets in (model.node_offsets, model.leaf_offsets))
    counts = model.node_count
    for side, other in ((model.left, model.right), (model.right, model.left)):
        leaf, alone = side < 0, (side < 0) & (other >= 0)
        half = counts // 2 if side is model.left else counts - counts // 2  # two leaves share what their node has
        rest = np.where(alone, counts - counts[first + np.where(alone, other, 0)], half)
        covers[(first_leaf + ~side)[leaf]] = np.maximum(rest[leaf], 1)
    return covers
