"""Losses of rankings besides LambdaMART's nDCG, the obvious way: measures computed anew for every exchange."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oracles.losses import sigmoid
from oracles.significance import splitmix64, stream_key


def measure_of(name, ranked, cutoff, ideal_depth, largest):
    """nDCG, MAP, MRR or ERR of gains in ranked order; ranks from `cutoff` on count nothing."""
    top = ranked[:cutoff]
    if name == "nDCG":
        ideal = sum(gain / np.log2(2.0 + r) for r, gain in enumerate(sorted(ranked, reverse=True)[:ideal_depth]))
        return sum(gain / np.log2(2.0 + r) for r, gain in enumerate(top)) / ideal if ideal > 0 else 0.0
    if name == "ERR":
        value, coming = 0.0, 1.0
        for r, gain in enumerate(top):
            stop = gain / (1.0 + largest)
            value += coming * stop / (r + 1)
            coming *= 1.0 - stop
        return value
    hits = [r for r, gain in enumerate(top) if gain > 0]
    if name == "MRR":
        return 1.0 / (hits[0] + 1) if hits else 0.0
    precisions = [(number + 1) / (r + 1) for number, r in enumerate(hits)]
    return sum(precisions) / max(1, sum(gain > 0 for gain in ranked))


def change(name, ranked, i, j, cutoff, ideal_depth, largest):
    """|Change of the measure| when the documents at ranks i and j change places."""
    swapped = list(ranked)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    values = (measure_of(name, one, cutoff, ideal_depth, largest) for one in (ranked, swapped))
    return abs(next(values) - next(values))


def pairs_of_query(scores, gains, name, truncation, *, cut=False, divide=False, largest=None):
    """(better document, worse document, d) of all pairs that count; `name` None: d is 1."""
    order = np.argsort(-scores, kind="stable")
    n = len(order)
    ranked = [float(gains[doc]) for doc in order]
    cutoff = truncation if cut else n
    largest = max(gains, default=0.0) if largest is None else largest
    pairs = []
    for i in range(min(n, truncation)):
        for j in range(i + 1, n):
            if ranked[i] == ranked[j]:
                continue
            d = 1.0 if name is None else change(name, ranked, i, j, cutoff, truncation, largest)
            if divide and scores.max() != scores.min():
                d /= 0.01 + abs(scores[order[i]] - scores[order[j]])
            better, worse = (order[i], order[j]) if ranked[i] > ranked[j] else (order[j], order[i])
            pairs.append((better, worse, d))
    return pairs


def pair_gradients(scores, pairs, sigma):
    """Gradient, hessian and the sum of |lambda| of logistic pairs."""
    gradient, hessian, total = np.zeros(len(scores)), np.zeros(len(scores)), 0.0
    for better, worse, d in pairs:
        rho = sigmoid(-sigma * (scores[better] - scores[worse]))
        gradient[better] += sigma * rho * d
        gradient[worse] -= sigma * rho * d
        hessian[better] += sigma**2 * rho * (1.0 - rho) * d
        hessian[worse] += sigma**2 * rho * (1.0 - rho) * d
        total += 2.0 * sigma * rho * d
    return gradient, hessian, total


def by_query(of_query, scores, offsets, *, normalize, weights=None, query_weights=None):
    """Gradients of all queries; `of_query(q, rows)` gives gradient, hessian and size of one."""
    gradient, hessian = np.zeros(len(scores)), np.zeros(len(scores))
    for q, (begin, end) in enumerate(pairwise(offsets)):
        rows = slice(begin, end)
        gradient[rows], hessian[rows], total = of_query(q, rows)
        scale = np.log2(1.0 + total) / total if normalize and total > 0.0 else 1.0
        scale *= 1.0 if query_weights is None else query_weights[q]
        gradient[rows] *= scale
        hessian[rows] *= scale
    return (gradient, hessian) if weights is None else (gradient * weights, hessian * weights)


def draw_key(seed, draw, query):
    return stream_key(stream_key(seed, draw), query)


def drawn_pairs(scores, gains, name, truncation, *, cut, largest, key, permutations, noise):
    """Neighbours in rankings drawn by logistic noise, each with d over the number of rankings."""
    n, pairs = len(scores), []
    for number in range(permutations):
        u = [(splitmix64(key, number * n + i) >> 12) * 2.0**-52 + 2.0**-53 for i in range(n)]
        noisy = scores + noise * np.array([np.log(x / (1.0 - x)) for x in u])
        order = np.argsort(-noisy, kind="stable")
        ranked = [float(gains[doc]) for doc in order]
        for r in range(min(n - 1, truncation)):
            if ranked[r] != ranked[r + 1]:
                d = change(name, ranked, r, r + 1, truncation if cut else n, truncation, largest)
                ends = (order[r], order[r + 1])
                better, worse = ends if ranked[r] > ranked[r + 1] else ends[::-1]
                pairs.append((better, worse, d / permutations))
    return pairs


def fractions(key, n):
    """The random numbers of XE-NDCG."""
    return np.array([(splitmix64(key, i) >> 11) * 2.0**-53 for i in range(n)])


def cross_entropy(scores, gains, random):
    """The loss of which XE-NDCG's first term is the gradient."""
    wanted = (gains + 1.0 - random) / (gains + 1.0 - random).sum()
    return -(wanted * (scores - np.logaddexp.reduce(scores))).sum()


def cross_entropy_terms(scores, gains, random):
    """XE-NDCG's three terms and its hessian, as LightGBM documents rank_xendcg: descent directions."""
    rho = np.exp(scores - np.logaddexp.reduce(scores))
    wanted = (gains + 1.0 - random) / (gains + 1.0 - random).sum()
    terms = [wanted - rho]
    for _ in range(2):
        over = terms[-1] / (1.0 - rho)
        terms.append(rho * np.array([sum(over[:i]) + sum(over[i + 1 :]) for i in range(len(rho))]))
    return terms, rho * (1.0 - rho)
