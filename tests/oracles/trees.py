"""Slow twins of the tree learner: one split by trying them all, and best-first growth by recursion over plain lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass
class Split:
    gain: float
    feature: int
    threshold: float
    missing_left: bool
    goes_left: np.ndarray


def candidate_thresholds(x: np.ndarray) -> list[float]:
    values = np.unique(x[~np.isnan(x)]).astype(np.float64)
    return [a + (b - a) / 2 for a, b in pairwise(values)]


def best_split(X, g, h, thresholds, *, l2=0.0, min_hessian=1e-3, min_docs=1) -> Split | None:
    """Try every threshold of every feature, missing values right and left. Ties: lower feature, lower threshold."""

    def score(mask):
        return g[mask].sum() ** 2 / (h[mask].sum() + l2)

    everything = np.ones(len(g), dtype=bool)
    best = None
    for f in range(X.shape[1]):
        x = X[:, f].astype(np.float64)
        missing = np.isnan(x)
        for missing_left in (False, True) if missing.any() else (False,):
            extra = [math.inf] if missing.any() and not missing_left else []
            for t in [*thresholds[f], *extra]:
                left = np.where(missing, missing_left, x <= t)
                right = ~left
                if min(left.sum(), right.sum()) < min_docs or min(h[left].sum(), h[right].sum()) < min_hessian:
                    continue
                gain = score(left) + score(right) - score(everything)
                if best is None or gain > best.gain:
                    best = Split(gain, f, t, missing_left, left)
    return best


def grow(X, g, h, thresholds, n_leaves, **rules) -> list[set[int]]:
    """Best-first growth: the documents of every leaf."""
    rows = np.arange(len(g))
    leaves = [(rows, best_split(X, g, h, thresholds, **rules))]
    while len(leaves) < n_leaves:
        number = max(
            (i for i, (_, s) in enumerate(leaves) if s is not None and s.gain > 1e-12),
            key=lambda i: leaves[i][1].gain,
            default=None,
        )
        if number is None:
            break
        rows, split = leaves.pop(number)
        for part in (rows[split.goes_left], rows[~split.goes_left]):
            leaves.append((part, best_split(X[part], g[part], h[part], thresholds, **rules)))
    return [set(rows.tolist()) for rows, _ in leaves]
