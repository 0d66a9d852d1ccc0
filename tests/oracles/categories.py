"""Slow twin of a split of categories: every prefix of the order of categories, from either end, against all else."""

from __future__ import annotations

import numpy as np


def best_split(x, g, h, *, smoothing, category_l2, l2=0.0, min_hessian=1e-3, min_docs=1, most=32):
    """Gain and categories of the best set; None when there is none. Ties: from the front, the smaller set."""
    about = len(x) / h.sum()
    known = [c for c in np.unique(x[~np.isnan(x)]) if h[x == c].sum() * about >= smoothing]
    order = sorted(known, key=lambda c: g[x == c].sum() / (h[x == c].sum() + smoothing))
    best = None
    for ranked in (order, order[::-1]):
        for size in range(1, min(most, (len(order) + 1) // 2) + 1):
            inside = np.isin(x, ranked[:size])
            outside = ~inside
            if min(inside.sum(), outside.sum()) < min_docs or min(h[inside].sum(), h[outside].sum()) < min_hessian:
                continue
            gain = sum(g[side].sum() ** 2 / (h[side].sum() + l2 + category_l2) for side in (inside, outside))
            gain -= g.sum() ** 2 / (h.sum() + l2)
            if best is None or gain > best[0] + 1e-9:
                best = gain, inside
    return best
