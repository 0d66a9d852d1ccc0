"""Joint ridge, slowly: the matrix of documents and leaves, the matrix that centres, and a dense solver."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def leaf_matrix(codes, leaf_offsets, trees):
    """A: documents x leaves of all trees, 1 where a document is in a leaf of one of `trees`."""
    n_docs = codes.shape[1]
    A = np.zeros((n_docs, int(leaf_offsets[-1])))
    for tree in trees:
        for doc in range(n_docs):
            A[doc, leaf_offsets[tree] + codes[tree, doc]] = 1.0
    return A


def centring_matrix(n_docs, offsets):
    """C: takes from every document the mean of its query; the identity without queries."""
    C = np.eye(n_docs)
    if offsets is not None:
        for begin, end in pairwise(offsets):
            if end > begin:
                C[begin:end, begin:end] -= 1.0 / (end - begin)
    return C


def ridge(A, C, target, l2, columns):
    """Values of the columns named with which |C(A v) - C(target)|^2 + l2 |v|^2 is least; 0 for all others.

    Without l2 there may be many: the shortest.
    """
    B = (C @ A)[:, columns]
    B[np.abs(B) < 1e-12] = 0.0  # what rounding left of a leaf that holds whole queries
    values = np.zeros(A.shape[1])
    values[columns] = np.linalg.pinv(B.T @ B + l2 * np.eye(B.shape[1]), hermitian=True) @ (B.T @ (C @ target))
    return values


def loss(A, C, target, l2, values, columns):
    """What `ridge` makes least."""
    lacking = C @ (target - A[:, columns] @ values[columns])
    return float(lacking @ lacking + l2 * values[columns] @ values[columns])


def tree_gain(codes, residual, tree, n_leaves, l2):
    """Sum over the leaves of a tree of (sum of residuals)^2 / (documents + l2)."""
    gain = 0.0
    for leaf in range(n_leaves):
        inside = codes[tree] == leaf
        if inside.any():
            gain += residual[inside].sum() ** 2 / (inside.sum() + l2)
    return gain
