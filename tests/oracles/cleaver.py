"""CLEaVER, slowly: every score summed and every query sorted anew. What a tree leaves behind is summed exactly."""

from __future__ import annotations

import math

import numpy as np

import rankwood as rw
from oracles.measures import dcg


def scores(model, X, weights):
    """base + sum of weight * output, from left to right; a negative weight of the model is in the output's sign."""
    total = np.full(len(X), model.base)
    for tree, (own, weight) in enumerate(zip(model.tree_weights, weights, strict=True)):
        total = total + weight * output(model, X, tree, own)
    return total


def output(model, X, tree, own_weight):
    values = model.leaf_value[model.leaf_offsets[tree] :][model.leaves(X, engine="reference")[:, tree]]
    return -values if own_weight < 0 else values


def quality(data, given, measure="nDCG@10", convention="rankwood"):
    """The measure's values, each in whole units, over the sum of weights."""
    values = rw.evaluate(given, data, measure, convention=convention).per_query[str(rw.parse_measure(measure))]
    weights = np.ones(data.n_queries) if data.query_weights is None else data.query_weights
    size, total, counted = unit(data, weights, measure, convention), 0, []
    for value, weight in zip(values, weights, strict=True):
        if not math.isnan(value):
            total += round(weight * value / size)
            counted.append(weight)
    return total * size / math.fsum(counted)


def unit(data, weights, measure, convention):
    """2^-40 of the power of two that no query can exceed: of DCG, were all its documents as good as its best."""
    parsed, rules = rw.parse_measure(measure), rw.Convention.get(convention)
    most = 0.0
    for query, weight in enumerate(weights):
        y = data.query(query).y
        best = dcg(parsed, rules, [max(y, default=0.0)] * len(y), parsed.cutoff or len(y))
        most = max(most, weight * (max(1.0, best) if parsed.name == "DCG" else 1.0))
    return 2.0 ** (math.ceil(math.log2(most)) - 40)


def without(model, X, weights, tree):
    """The exact sum of what all other trees and the base contribute, rounded once."""
    parts = [
        weight * output(model, X, other, own)
        for other, (own, weight) in enumerate(zip(model.tree_weights, weights, strict=True))
        if other != tree
    ]
    return np.array(
        [math.fsum([model.base, *row]) for row in zip(*parts, strict=True)] if parts else [model.base] * len(X)
    )


def along(model, data, weights, tree, deltas, **how):
    """Quality as the weight of one tree changes by each delta."""
    now = scores(model, data.X, weights)
    own = output(model, data.X, tree, model.tree_weights[tree])
    return [quality(data, now + delta * own, **how) for delta in deltas]


def reweighed(model, data, weights, tree, tried, **how):
    """Quality with each of some other weights of one tree."""
    others = without(model, data.X, weights, tree)
    own = output(model, data.X, tree, model.tree_weights[tree])
    return [quality(data, others + weight * own, **how) for weight in tried]


def line_search(
    model, train, valid, weights, trees, *, radius, samples, shrink, iterations, patience, negative="clip", **how
):
    """Weights with the best validation measure of all that were moved to."""
    current = np.array(weights, dtype=float)

    def measured(data, w):
        return float(rw.evaluate(scores(model, data.X, w), data, how["measure"]).means[how["measure"]])

    reached, best, best_valid = measured(train, current), current, measured(valid, current)
    failures = 0
    for _ in range(iterations):
        promising = current.copy()
        for tree in trees:
            w = current[tree]
            tried = np.linspace(max(w - radius, 0.0) if negative == "clip" else w - radius, w + radius, samples)
            tried = [one for one in tried if one >= 0.0]
            found = reweighed(model, train, current, tree, tried, **how)
            top = max(found)
            if top > along(model, train, current, tree, [0.0], **how)[0]:
                near = [i for i in range(len(tried)) if found[i] == top]
                promising[tree] = tried[min(near, key=lambda i: (abs(tried[i] - w), i))]
        failures += 1
        end = scores(model, train.X, promising)
        back = end - scores(model, train.X, current)
        found = [quality(train, end + (step / samples - 1.0) * back, **how) for step in range(1, samples + 1)]
        step = int(np.argmax(found)) + 1
        moved = promising if step == samples else current + step / samples * (promising - current)
        if measured(train, moved) > reached:
            current, reached = moved, measured(train, moved)
            if measured(valid, current) > best_valid:
                best, best_valid, failures = current, measured(valid, current), 0
        radius *= shrink
        if failures >= patience:
            break
    return best


def stay(strategy, model, data, weights, k, *, seed=0, **how):
    """The trees that stay when k go."""
    n, X = model.n_trees, data.X
    outputs = [output(model, X, t, model.tree_weights[t]) for t in range(n)]

    def left_by(gone):
        left = np.array([0.0 if t in gone else weights[t] for t in range(n)])
        return {t: quality(data, without(model, X, left, t), **how) for t in range(n) if t not in gone}

    if strategy == "skip":
        return [math.ceil(i * n / (n - k)) - 1 for i in range(1, n - k + 1)]
    if strategy == "last":
        return list(range(n - k))
    if strategy == "random":
        return sorted(np.random.default_rng(seed).permutation(n)[k:].tolist())
    if strategy == "quality-loss-greedy":
        gone = []
        for _ in range(k):
            left = left_by(gone)
            gone.append(max(left, key=lambda t: (left[t], t)))
        return [t for t in range(n) if t not in gone]
    if strategy == "low-weights":
        worth = dict(enumerate(weights))
    elif strategy == "quality-loss":
        worth = {t: -value for t, value in left_by([]).items()}
    elif strategy == "signed-score-loss":
        parts = np.array(weights)[:, None] * np.array(outputs)
        total = sum(parts, np.zeros(parts.shape[1]))  # without the base
        worth = {t: math.fsum(p / s for p, s in zip(parts[t], total, strict=True) if abs(s) > 1e-290) for t in range(n)}
    else:
        parts = np.abs(np.array(weights)[:, None] * np.array(outputs))
        total = parts.sum(axis=0)
        worth = {t: math.fsum(p / s for p, s in zip(parts[t], total, strict=True) if s > 1e-290) for t in range(n)}
    gone = sorted(range(n), key=lambda t: (worth[t], -t))[:k]
    return [t for t in range(n) if t not in gone]
