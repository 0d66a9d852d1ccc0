"""Slow twins of full-depth trees: every split is tried on plain arrays, and a grown tree is checked node by node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass
class Splits:
    """Splits of some documents, one per row of the arrays."""

    gain: np.ndarray  # decrease of impurity times weight
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    goes_left: np.ndarray  # splits x documents


def impurity(counted, y, w, criterion):
    """Of some sets of documents (rows of 0 and 1): sum of squares around the mean, or bits that tell the classes."""
    weight = counted @ w
    with np.errstate(divide="ignore", invalid="ignore"):
        if criterion == "variance":
            centred = y - np.average(y, weights=w)
            sums = counted @ (w * centred)
            return counted @ (w * centred**2) - np.where(weight > 0, sums**2 / weight, 0.0)
        counts = counted @ (w[:, None] * (y[:, None] == np.unique(y)))
        return -np.where(counts > 0, counts * np.log2(counts / weight[:, None]), 0.0).sum(axis=1)


def middle(a: float, b: float) -> float:
    """Between two neighbouring values; infinite ones are separated all the same."""
    half = a / 2 + b / 2
    if math.isfinite(half):
        return half
    if math.isfinite(a):
        return a
    return math.nextafter(b, -math.inf) if math.isfinite(b) else 0.0


def splits_of(X, y, w, criterion, min_docs=1) -> Splits:
    """All splits of all features between values that are there; missing values right, then left."""
    features, thresholds, directions, sides = [], [], [], []
    for f in range(X.shape[1]):
        x = X[:, f].astype(np.float64)
        missing = np.isnan(x)
        values = np.unique(x[~missing] + 0.0).tolist()
        between = [middle(a, b) for a, b in pairwise(values)]
        for missing_left in (False, True) if missing.any() else (False,):
            all_left = [math.inf] if missing.any() and not missing_left and values else []
            for t in [*between, *all_left]:
                left = np.where(missing, missing_left, x <= t)
                if min(left.sum(), (~left).sum()) >= min_docs:
                    features.append(f)
                    thresholds.append(t)
                    directions.append(missing_left if missing.any() else left.sum() > (~left).sum())
                    sides.append(left)
    left = np.array(sides, dtype=bool).reshape(-1, len(y))
    everything = impurity(np.ones((1, len(y))), y, w, criterion)
    gain = everything - impurity(left * 1.0, y, w, criterion) - impurity(~left * 1.0, y, w, criterion)
    return Splits(gain, np.array(features), np.array(thresholds), np.array(directions, dtype=bool), left)


def check_tree(
    tree, X, y, w, *, criterion, min_docs=1, max_depth=None, all_features=True, min_gain=0.0, redraw=False
) -> None:
    """Assert that a tree is one that greedy growth on these documents can give: every split is the best, or equal to
    the best, and nothing that gains is left undone."""
    tolerance = 1e-10 * max(float(impurity(np.ones((1, len(y))), y, w, criterion)[0]), 1e-300)

    def walk(number, rows, depth) -> tuple[int, int]:
        """Inner nodes and leaves of a subtree."""
        labels, weights = y[rows], w[rows]
        every = splits_of(X[rows], labels, weights, criterion, min_docs)
        needed = min_gain * weights.sum()
        if number < 0:
            np.testing.assert_allclose(tree.leaf_value[~number], np.average(labels, weights=weights), rtol=1e-12)
            if (all_features or redraw) and (max_depth is None or depth < max_depth):
                assert every.gain.max(initial=0.0) <= needed + tolerance
            return 0, 1
        assert tree.node_count[number] == len(rows)
        assert max_depth is None or depth < max_depth
        f, t, missing_left = tree.feature[number], tree.threshold[number], tree.missing_left[number]
        own = (every.feature == f) & (every.threshold == t) & (every.missing_left == missing_left)
        assert own.sum() == 1, f"no such split: feature {f} at {t}"
        rivals = np.ones(len(own), bool) if all_features else every.feature == f
        gain = every.gain[own][0]
        assert gain >= every.gain[rivals].max() - tolerance
        assert gain > needed - tolerance
        np.testing.assert_allclose(tree.split_gain[number], gain, rtol=1e-8, atol=tolerance)
        left, right = int(tree.left[number]), int(tree.right[number])
        assert left < 0 or left == number + 1  # preorder
        goes_left = every.goes_left[own][0]
        counts = [walk(left, rows[goes_left], depth + 1), walk(right, rows[~goes_left], depth + 1)]
        return 1 + counts[0][0] + counts[1][0], counts[0][1] + counts[1][1]

    n_inner = len(tree.feature)
    assert walk(0 if n_inner else -1, np.arange(len(y)), 0) == (n_inner, n_inner + 1)


def three_sides(X, y, w, criterion, min_docs):
    """Every split of every feature as (gain, feature, threshold, sides): missing values, if any, are a side."""
    whole = impurity(np.ones((1, len(y))), y, w, criterion)[0]
    for f in range(X.shape[1]):
        x = X[:, f].astype(np.float64)
        missing = np.isnan(x)
        values = np.unique(x[~missing] + 0.0).tolist()
        cuts = [middle(a, b) for a, b in pairwise(values)] + [math.inf] * bool(missing.any() and values)
        for t in cuts:
            sides = [side for side in (x <= t, x > t, missing) if side.any()]
            if min(side.sum() for side in sides) >= min_docs:
                gain = whole - sum(impurity(side[None] * 1.0, y, w, criterion)[0] for side in sides)
                yield gain, f, t, sides


def check_tree_in_three(tree, X, y, w, *, criterion, min_docs=1, max_depth=None) -> None:
    """Assert that every split, of up to three sides, is the best of all, and nothing that gains is left undone.

    Two nodes stand for three sides: the first sends missing values right and all others left, to the second.
    """
    tolerance = 1e-10 * max(float(impurity(np.ones((1, len(y))), y, w, criterion)[0]), 1e-300)

    def walk(number, rows, depth) -> int:
        every = list(three_sides(X[rows], y[rows], w[rows], criterion, min_docs))
        best = max((gain for gain, *_ in every), default=0.0)
        if number < 0:
            np.testing.assert_allclose(tree.leaf_value[~number], np.average(y[rows], weights=w[rows]), rtol=1e-12)
            assert best <= tolerance or (max_depth is not None and depth == max_depth)
            return 0
        assert max_depth is None or depth < max_depth
        f, t, gain = tree.feature[number], tree.threshold[number], tree.split_gain[number]
        np.testing.assert_allclose(gain, best, rtol=1e-8, atol=tolerance)
        x = X[rows, f]
        children = [(int(tree.left[number]), rows[x <= t]), (int(tree.right[number]), rows[~(x <= t)])]
        n_inner = 1
        if np.isnan(x).any():
            assert t == math.inf
            assert not tree.missing_left[number]
            below = children[0][0]
            if below >= 0 and tree.split_gain[below] == 0.0:  # the second of a pair
                assert tree.feature[below] == f
                x, others = x[~np.isnan(x)], rows[~np.isnan(x)]
                t = tree.threshold[below]
                children[:1] = [(int(tree.left[below]), others[x <= t]), (int(tree.right[below]), others[x > t])]
                n_inner = 2
        sides = sorted(tuple(of.tolist()) for _, of in children)
        assert any(
            abs(g - gain) <= 1e-8 * abs(gain) + tolerance and sides == sorted(tuple(rows[s].tolist()) for s in found)
            for g, _, _, found in every
        )
        return n_inner + sum(walk(child, of, depth + 1) for child, of in children)

    n_inner = len(tree.feature)
    assert walk(0 if n_inner else -1, np.arange(len(y)), 0) == n_inner


def check_random_tree(tree, X, y, w, *, criterion, min_docs=1) -> None:
    """Assert that every threshold lies between values of its node, that gains are right and leaves are means."""
    tolerance = 1e-10 * max(float(impurity(np.ones((1, len(y))), y, w, criterion)[0]), 1e-300)

    def walk(number, rows) -> int:
        if number < 0:
            np.testing.assert_allclose(tree.leaf_value[~number], np.average(y[rows], weights=w[rows]), rtol=1e-12)
            return 0
        x, t = X[rows, tree.feature[number]].astype(np.float64), tree.threshold[number]
        values = x[~np.isnan(x)]
        assert values.min() <= t
        assert t < values.max() or (t == math.inf and np.isnan(x).any())
        left = np.where(np.isnan(x), tree.missing_left[number], x <= t)
        assert min(left.sum(), (~left).sum()) >= min_docs
        sides = impurity(np.stack([np.ones(len(x)), left, ~left]).astype(float), y[rows], w[rows], criterion)
        np.testing.assert_allclose(tree.split_gain[number], sides[0] - sides[1] - sides[2], rtol=1e-8, atol=tolerance)
        return 1 + walk(int(tree.left[number]), rows[left]) + walk(int(tree.right[number]), rows[~left])

    n_inner = len(tree.feature)
    assert walk(0 if n_inner else -1, np.arange(len(y))) == n_inner


def is_unambiguous(X, y, w, *, criterion, max_depth=None, min_docs=1) -> bool:
    """Whether at every node of the greedy tree one split is better than all others."""
    pending = [(np.arange(len(y)), 0)]
    while pending:
        rows, depth = pending.pop()
        if len(np.unique(y[rows])) == 1 or (max_depth is not None and depth >= max_depth):
            continue
        every = splits_of(X[rows], y[rows], w[rows], criterion, min_docs)
        if len(every.gain) == 0:
            continue
        best = every.gain.argmax()
        second = np.delete(every.gain, best).max(initial=0.0)
        if every.gain[best] < 1e-7 or every.gain[best] - second < 1e-7 * every.gain[best]:
            return False
        goes_left = every.goes_left[best]
        pending += [(rows[goes_left], depth + 1), (rows[~goes_left], depth + 1)]
    return True


def grow_best_first(X, y, w, n_leaves, *, criterion) -> list[list[int]]:
    """The documents of every leaf when the split that gains most comes next."""

    def leaf(rows):
        every = splits_of(X[rows], y[rows], w[rows], criterion)
        if len(every.gain) == 0:
            return rows, 0.0, None
        best = every.gain.argmax()
        return rows, every.gain[best], every.goes_left[best]

    leaves = [leaf(np.arange(len(y)))]
    while len(leaves) < n_leaves:
        number = max(range(len(leaves)), key=lambda i: leaves[i][1])
        if leaves[number][1] <= 1e-9:
            break
        rows, _, goes_left = leaves.pop(number)
        leaves += [leaf(rows[goes_left]), leaf(rows[~goes_left])]
    return sorted(sorted(rows.tolist()) for rows, _, _ in leaves)
