"""Slow twins of `rankwood.explain`: Shapley values by their definition, over all sets of features."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from oracles.ensemble import n_below, score


def shapley(n_features, game):
    """Mean over all orders of what each feature adds to `game(set of known features)`."""
    others = [[j for j in range(n_features) if j != i] for i in range(n_features)]
    known = {}

    def value(features):
        key = frozenset(features)
        if key not in known:
            known[key] = game(key)
        return known[key]

    out = np.zeros(n_features)
    for i in range(n_features):
        for size in range(n_features):
            weight = math.factorial(size) * math.factorial(n_features - size - 1) / math.factorial(n_features)
            for chosen in combinations(others[i], size):
                out[i] += weight * (value({*chosen, i}) - value(chosen))
    return value(()), out


def goes_left(model, node, x):
    return bool(model.missing_left[node]) if math.isnan(x) else n_below(model, node, x) % 2 == 0


def cover_below(model, cover, tree, child):
    first = int(model.node_offsets[tree])
    if child < 0:
        return float(cover[model.leaf_offsets[tree] + ~child])
    return sum(cover_below(model, cover, tree, int(side[first + child])) for side in (model.left, model.right))


def tree_value(model, cover, tree, row, known, child):
    """Value of a tree where only some features are known: both sides of other splits, by their cover."""
    first = int(model.node_offsets[tree])
    if child < 0:
        return float(model.leaf_value[model.leaf_offsets[tree] + ~child])
    node = first + child
    sides = int(model.left[node]), int(model.right[node])
    feature = int(model.feature[node])
    if feature in known:
        side = sides[0] if goes_left(model, node, float(row[feature])) else sides[1]
        return tree_value(model, cover, tree, row, known, side)
    covers = [cover_below(model, cover, tree, side) for side in sides]
    shares = [c / sum(covers) for c in covers] if sum(covers) > 0 else [0.5, 0.5]
    values = [tree_value(model, cover, tree, row, known, side) for side in sides]
    return sum(share * value for share, value in zip(shares, values, strict=True))


def by_cover(model, cover, row):
    """Base value and contributions of one document, weighed by cover."""

    def game(known):
        total = model.base
        for tree in range(model.n_trees):
            root = 0 if model.node_offsets[tree] < model.node_offsets[tree + 1] else -1
            total += float(model.tree_weights[tree]) * tree_value(model, cover, tree, row, known, root)
        return total

    return shapley(model.n_features, game)


def by_background(model, background, row):
    """Base value and contributions of one document, against background documents."""

    def game(known):
        mixed = np.array(background, dtype=np.float64)
        for feature in known:
            mixed[:, feature] = row[feature]
        return score(model, mixed).mean()

    return shapley(model.n_features, game)
