"""Losses written as in the papers: a double loop over the pairs of each query."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def lambdas(scores, gains, offsets, *, truncation, sigma=1.0, normalize=False, cut_discounts=True, weights=None,
            query_weights=None):  # fmt: skip
    """Lambda and w of every document."""
    gradient, hessian = np.zeros(len(scores)), np.zeros(len(scores))
    for q, (begin, end) in enumerate(pairwise(offsets)):
        rows = slice(begin, end)
        pairs = weighted_pairs(scores[rows], gains[rows], truncation, normalize, cut_discounts)
        total = 0.0
        for better, worse, d in pairs:
            i, j = begin + better, begin + worse
            rho = sigmoid(-sigma * (scores[i] - scores[j]))
            gradient[i] += sigma * rho * d
            gradient[j] -= sigma * rho * d
            hessian[i] += sigma**2 * rho * (1.0 - rho) * d
            hessian[j] += sigma**2 * rho * (1.0 - rho) * d
            total += 2.0 * sigma * rho * d
        scale = np.log2(1.0 + total) / total if normalize and total > 0.0 else 1.0
        scale *= 1.0 if query_weights is None else query_weights[q]
        gradient[rows] *= scale
        hessian[rows] *= scale
    if weights is not None:
        gradient, hessian = gradient * weights, hessian * weights
    return gradient, hessian


def weighted_pairs(scores, gains, truncation, normalize, cut_discounts):
    """The pairs of one query that count: (better document, worse document, d)."""
    order = np.argsort(-scores, kind="stable")
    n = len(order)
    discounts = [1.0 / np.log2(2.0 + r) if r < truncation or not cut_discounts else 0.0 for r in range(n)]
    best_first = sorted(gains, reverse=True)[:truncation]
    ideal = sum(gain / np.log2(2.0 + r) for r, gain in enumerate(best_first))
    pairs = []
    for i in range(min(n, truncation)):
        for j in range(i + 1, n):
            a, b = order[i], order[j]
            if gains[a] == gains[b]:
                continue
            better, worse = (a, b) if gains[a] > gains[b] else (b, a)
            d = (gains[better] - gains[worse]) * abs(discounts[i] - discounts[j]) / ideal
            if normalize and scores.max() != scores.min():
                d /= 0.01 + abs(scores[a] - scores[b])
            pairs.append((better, worse, d))
    return pairs


def pair_loss(scores, pairs, sigma):
    """The loss whose descent direction the lambdas are, while the d of the pairs stand still."""
    return sum(d * np.logaddexp(0.0, -sigma * (scores[i] - scores[j])) for i, j, d in pairs)


def sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -x))
