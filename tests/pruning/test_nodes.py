"""Node collapsing: equal to a slow twin on nested trees, cheapest pair first, scores of merged leaves are means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.model.trees import Trees
from rankwood.pruning.nodes import collapse_nodes


def collapse_slowly(roots, weights, n_leaves):
    """Nested trees whose leaves are [value, cover], merged one pair at a time."""

    def is_leaf(node):
        return len(node) == 2

    def pairs(node, weight):
        if is_leaf(node):
            return
        if is_leaf(node[2]) and is_leaf(node[3]):
            (a, m), (b, n) = node[2], node[3]
            yield weight**2 * (m * n / (m + n) if m + n else 0.0) * (a - b) ** 2, node
        for child in node[2:4]:
            yield from pairs(child, weight)

    def count(node):
        return 1 if is_leaf(node) else sum(count(child) for child in node[2:4])

    while sum(map(count, roots)) > n_leaves:
        every = [pair for root, weight in zip(roots, weights, strict=True) for pair in pairs(root, weight)]
        if not every:
            break
        node = min(every, key=lambda pair: pair[0])[1]
        (a, m), (b, n) = node[2], node[3]
        node[:] = [(m * a + n * b) / (m + n) if m + n else (a + b) / 2, m + n]
    return roots


@st.composite
def models(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def tree(depth):
        if depth == 0 or rng.random() < 0.25:
            return [float(rng.normal()), float(rng.integers(1, 30))]
        return [int(rng.integers(3)), float(rng.normal()), tree(depth - 1), tree(depth - 1)]

    roots = [tree(draw(st.integers(0, 4))) for _ in range(draw(st.integers(1, 4)))]
    weights = [float(w) for w in rng.choice([0.5, 1.0, -2.0], len(roots))]
    return roots, weights


def score_nested(node, row):
    while isinstance(node, tuple):
        node = node[2] if float(row[node[0]]) <= node[1] else node[3]
    return node


def nested(model, tree, child=None):
    child = (0 if model.trees.sizes[tree] else ~0) if child is None else child
    if child < 0:
        return float(model.leaf_value[model.leaf_offsets[tree] + ~child])
    at = model.node_offsets[tree] + child
    below = (nested(model, tree, int(links[at])) for links in (model.left, model.right))
    return (int(model.feature[at]), float(model.threshold[at]), *below)


def plain(node):
    return node[0] if len(node) == 2 else (node[0], node[1], plain(node[2]), plain(node[3]))


def covers_of(node):
    return [node[1]] if len(node) == 2 else covers_of(node[2]) + covers_of(node[3])


@settings(max_examples=200)
@given(given_model=models(), n_leaves=st.integers(1, 20), seed=st.integers(0, 99))
def test_collapsing_equals_the_slow_twin(given_model, n_leaves, seed):
    roots, weights = given_model
    model = rw.Ensemble.from_trees([plain(root) for root in roots], tree_weights=weights, base=0.25, n_features=3)
    covers = np.array([cover for root in roots for cover in covers_of(root)])
    smaller = collapse_nodes(model, covers, n_leaves)
    expected = collapse_slowly(roots, weights, n_leaves)
    X = np.random.default_rng(seed).normal(size=(50, 3)).astype(np.float32)
    assert smaller.n_leaves <= max(n_leaves, model.n_trees)
    scores = sum(
        w * np.array([score_nested(plain(root), row) for row in X]) for w, root in zip(weights, expected, strict=True)
    )
    assert_allclose(smaller.score(X), 0.25 + scores, rtol=1e-9, atol=1e-9)


def test_covers_must_fit():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    with pytest.raises(rw.RankwoodError, match=r"one entry per leaf \(2\), got 3"):
        collapse_nodes(model, np.ones(3), 1)
    with pytest.raises(rw.RankwoodError, match="at least 1 leaf"):
        collapse_nodes(model, np.ones(2), 0)
    assert collapse_nodes(model, np.ones(2), 2) is model


def test_leaves_that_nobody_reaches_go_first_and_a_tree_of_one_leaf_joins_the_base():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 9.0), (0, 1.5, 2.0, 2.5)], base=1.0)
    smaller = collapse_nodes(model, np.array([5.0, 0.0, 5.0, 5.0]), 3)
    assert (smaller.n_trees, smaller.base) == (1, 2.0)
    assert_array_equal(smaller.leaf_value, [2.0, 2.5])


def test_rewiring_keeps_what_is_not_taken_out():
    model = rw.Ensemble.from_trees([(0, 0.5, (1, 2.0, 1.0, 2.0), (2, 1.0, 3.0, 4.0)), 5.0, (1, 0.0, 6.0, 7.0)])
    same = model.trees.rewired(np.arange(model.n_nodes))
    assert isinstance(same, Trees)
    assert_array_equal(same.leaf_value, model.leaf_value)
    by_child = model.trees.rewired(np.array([2, 1, 2, 3]))  # the first tree's root gives way to its right child
    other = rw.Ensemble.of(by_child, n_features=3)
    assert nested(other, 0) == (2, 1.0, 3.0, 4.0)
    assert nested(other, 2) == (1, 0.0, 6.0, 7.0)
