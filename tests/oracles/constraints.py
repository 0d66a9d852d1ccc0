"""Slow twins of constrained growth: all splits tried under bounds, prices and groups; leaf values by bisection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

INFINITE = math.inf


@dataclass
class Leaf:
    rows: np.ndarray
    lower: float = -INFINITE
    upper: float = INFINITE
    path: frozenset = frozenset()
    split: tuple | None = field(default=None)  # gain after costs, feature, who goes left, values of both sides


def grow(X, g, h, thresholds, n_leaves, *, directions, groups=None, costs=None, budget=None, l2=0.0, min_docs=1):
    """Best-first growth by definition: before every split all leaves look at all splits anew. Documents per leaf."""
    n_features = X.shape[1]
    costs = [0.0] * n_features if costs is None else costs
    used: set[int] = set()

    def clipped(leaf, mask):
        return min(max(g[mask].sum() / (h[mask].sum() + l2), leaf.lower), leaf.upper)

    def fall(mask, value):
        return 2 * g[mask].sum() * value - (h[mask].sum() + l2) * value**2

    def price(feature):
        if feature in used:
            return 0.0
        return INFINITE if budget is not None and len(used) >= budget else costs[feature]

    def best(leaf):
        found = None
        for f in range(n_features):
            path = leaf.path | {f}
            if price(f) == INFINITE or (groups is not None and not any(path <= set(group) for group in groups)):
                continue
            for t in thresholds[f]:
                goes_left = X[leaf.rows, f] <= t
                left, right = leaf.rows[goes_left], leaf.rows[~goes_left]
                if min(len(left), len(right)) < min_docs:
                    continue
                values = clipped(leaf, left), clipped(leaf, right)
                if directions[f] * values[0] > directions[f] * values[1]:
                    continue
                gain = fall(left, values[0]) + fall(right, values[1]) - fall(leaf.rows, clipped(leaf, leaf.rows))
                if found is None or gain - price(f) > found[0]:
                    found = (gain - price(f), f, goes_left, values)
        return found

    leaves = [Leaf(np.arange(len(g)))]
    while len(leaves) < n_leaves:
        splits = [best(leaf) for leaf in leaves]
        number = max(
            (i for i, split in enumerate(splits) if split is not None and split[0] > 1e-9),
            key=lambda i: splits[i][0],
            default=None,
        )
        if number is None:
            break
        leaf, (_, f, goes_left, values) = leaves.pop(number), splits[number]
        used.add(f)
        children = [
            Leaf(part, leaf.lower, leaf.upper, leaf.path | {f})
            for part in (leaf.rows[goes_left], leaf.rows[~goes_left])
        ]
        if directions[f]:
            low, high = children if directions[f] > 0 else children[::-1]
            low.upper = high.lower = sum(values) / 2
        leaves += children
    return [set(leaf.rows.tolist()) for leaf in leaves]


def project(tree, values, weights, directions):
    """Leaf values that keep directions: from the leaves up, the best parting value of each split by bisection."""
    values = np.array(values, dtype=np.float64)

    def below(child):
        if child < 0:
            return [~child]
        left, right = below(int(tree.left[child])), below(int(tree.right[child]))
        direction = directions[tree.feature[child]]
        if direction:
            low, high = (left, right) if direction > 0 else (right, left)
            if values[low].max() > values[high].min():
                part = parting(values[low], weights[low], values[high], weights[high])
                values[low] = np.minimum(values[low], part)
                values[high] = np.maximum(values[high], part)
        return left + right

    if len(tree.feature):
        below(0)
    return values


def parting(low, low_weights, high, high_weights):
    """Where the slope of the weighted sum of squared changes is 0."""
    least, most = high.min(), low.max()
    for _ in range(200):
        at = (least + most) / 2
        up = (high_weights * np.maximum(at - high, 0)).sum()
        down = (low_weights * np.maximum(low - at, 0)).sum()
        least, most = (at, most) if up < down else (least, at)
    return (least + most) / 2


def sweep(model, rows, feature):
    """Scores of rows as one feature goes over all its thresholds, and one step beside them: rows x values."""
    single = np.float32
    at = np.unique(model.threshold[model.feature == feature]).astype(single)
    at = at[np.isfinite(at)]
    beside = [np.nextafter(at, single(side)) for side in (-np.inf, np.inf)]
    values = np.unique(np.concatenate([at, *beside, [-np.inf, np.inf, 0.0]]).astype(single))
    X = np.repeat(np.asarray(rows, single), len(values), axis=0)
    X[:, feature] = np.tile(values, len(rows))
    return model.score(X).reshape(len(rows), len(values))


def is_monotone(model, rows, directions):
    """Whether scores keep the directions of all features, bit for bit."""
    return all(
        (np.diff(sweep(model, rows, feature), axis=1) * direction >= 0).all()
        for feature, direction in enumerate(directions)
        if direction
    )
