"""Students, slowly: dense matrices of documents x leaves, and systems of equations that are solved."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def centred(values, offsets):
    """Values less the mean of their query."""
    out = np.array(values, float)
    for start, end in pairwise(offsets):
        if end > start:
            out[start:end] = out[start:end] - np.mean(out[start:end], axis=0)
    return out


def leaf_matrix(model, X):
    """Documents x leaves: 1 where the document reaches the leaf."""
    leaves = model.leaves(X, engine="reference")
    matrix = np.zeros((len(X), model.n_leaves))
    for tree in range(model.n_trees):
        matrix[np.arange(len(X)), model.leaf_offsets[tree] + leaves[:, tree]] = 1.0
    return matrix


def ridge(matrix, target, offsets, l2):
    """Values that minimise |C(A v) - target|^2 + l2 |v|^2."""
    A = centred(matrix, offsets)
    return np.linalg.solve(A.T @ A + l2 * np.eye(A.shape[1]), A.T @ target)


def objective(matrix, target, offsets, l2, values):
    """What `ridge` minimises."""
    lacking = target - centred(matrix, offsets) @ values
    return float(lacking @ lacking + l2 * values @ values)


def select_trees(model, X, target, offsets, size, *, l2, at_once):
    """Numbers of the trees that group orthogonal matching pursuit takes, in the order taken, and their leaf values."""
    matrix = leaf_matrix(model, X)
    of_tree = np.repeat(np.arange(model.n_trees), np.diff(model.leaf_offsets))
    residual, taken = target, []
    while len(taken) < size:
        gains = {}
        for tree in set(range(model.n_trees)) - set(taken):
            sums, counts = matrix.T[of_tree == tree] @ residual, matrix.T[of_tree == tree].sum(axis=1)
            gains[tree] = float(np.sum(sums**2 / (counts + l2)))
        best = sorted(gains, key=lambda tree: (-gains[tree], tree))
        taken += best[: min(at_once, size - len(taken))]
        used = np.isin(of_tree, taken)
        values = np.zeros(model.n_leaves)
        values[used] = ridge(matrix[:, used], target, offsets, l2)
        residual = target - centred(matrix, offsets) @ values
    return taken, values
