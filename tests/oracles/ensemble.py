"""Slow, obvious twins of the ensemble kernels."""

from __future__ import annotations

import math

import numpy as np


def leaf_of(model, tree, row):
    """The leaf of one tree that one row reaches: the definition of a split, word for word."""
    first = int(model.node_offsets[tree])
    if first == model.node_offsets[tree + 1]:
        return 0
    at = 0
    while at >= 0:
        node = first + at
        x = float(row[model.feature[node]])
        goes_left = bool(model.missing_left[node]) if math.isnan(x) else n_below(model, node, x) % 2 == 0
        at = int(model.left[node] if goes_left else model.right[node])
    return ~at


def thresholds_of(model, node):
    """The thresholds of a node: one, or those of a set."""
    if model.set_offsets is None:
        return [float(model.threshold[node])]
    first, end = model.set_offsets[node], model.set_offsets[node + 1]
    return [float(model.threshold[node]), *model.set_thresholds[first:end].tolist()]


def n_below(model, node, x):
    """How many thresholds of a node lie below x."""
    return sum(threshold < x for threshold in thresholds_of(model, node))


def leaves(model, X):
    """Documents x trees."""
    rows = [[leaf_of(model, tree, row) for tree in range(model.n_trees)] for row in X]
    return np.array(rows, dtype=np.int64).reshape(len(X), model.n_trees)


def score(model, X):
    """Summed from left to right, starting with the base; Python's floats are float64 and never fused."""
    scores = []
    for reached in leaves(model, X):
        total = model.base
        for tree, leaf in enumerate(reached):
            total += float(model.tree_weights[tree]) * float(model.leaf_value[model.leaf_offsets[tree] + leaf])
        scores.append(total)
    return np.array(scores, dtype=np.float64)


def score_single(model, X):
    """Values rounded to float32, summed in float32 over each 16 trees; the sums are added in float64."""
    values = np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value
    if values.any() and not (np.abs(values).max() > 1e-30 and _largest_sum(model, values) < 1e37):
        return score(model, X)
    scores = []
    for reached in leaves(model, X):
        total = model.base
        for first in range(0, model.n_trees, 16):
            group = np.float32(0.0)
            for tree in range(first, min(first + 16, model.n_trees)):
                group += np.float32(values[model.leaf_offsets[tree] + reached[tree]])
            total += float(group)
        scores.append(total)
    return np.array(scores, dtype=np.float64)


def _largest_sum(model, values):
    offsets = model.leaf_offsets
    return sum(np.abs(values[offsets[t] : offsets[t + 1]]).max() for t in range(model.n_trees))


def is_tree(left, right):
    """Whether these children make one tree: a recursive walk meets every node and every leaf once."""
    met = []

    def walk(child):
        if child in met or len(met) > 3 * len(left) + 3:
            met.append(child)  # met twice: that is enough
            return
        met.append(child)
        if 0 <= child < len(left):
            walk(left[child])
            walk(right[child])

    walk(0 if len(left) else -1)
    return sorted(met) == list(range(-len(left) - 1, len(left)))


def depth_of(left, right, child=0):
    """Longest path from a node, in splits."""
    if child < 0 or not len(left):
        return 0
    return 1 + max(depth_of(left, right, left[child]), depth_of(left, right, right[child]))
