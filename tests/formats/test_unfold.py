"""Splits by pieces of the line decide as thresholds do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats import reading as module
from rankwood.formats.reading import Pieces, ensemble_of, unfold
from rankwood.model.trees import Tree, Trees

CUTS = st.sampled_from([-np.inf, -2.0, -1.0, -1e-35, 0.0, 1e-35, 0.5, 1.0, 2.0, np.inf])
VALUES = np.array(
    [-np.inf, -3.0, -2.0, -1.5, -1.0, -1e-35, -1e-36, -0.0, 1e-35, 0.25, 0.5, 0.75, 1.0, 2.0, 9.0, np.inf]
)


@st.composite
def trees(draw):
    """A tree of up to 12 nodes on 2 features, some of which split by pieces."""
    n_nodes = draw(st.integers(1, 12))
    left, right, leaves = [0] * n_nodes, [0] * n_nodes, 0
    open_places = []
    for node in range(n_nodes):
        if node:
            side, parent = open_places.pop(draw(st.integers(0, len(open_places) - 1)))
            side[parent] = node
        open_places += [(left, node), (right, node)]
    for side, parent in open_places:
        side[parent] = ~leaves
        leaves += 1
    feature = draw(st.lists(st.integers(0, 1), min_size=n_nodes, max_size=n_nodes))
    threshold = draw(st.lists(CUTS, min_size=n_nodes, max_size=n_nodes))
    missing = draw(st.lists(st.booleans(), min_size=n_nodes, max_size=n_nodes))
    splits = {}
    for node in draw(st.sets(st.integers(0, n_nodes - 1), max_size=6)):
        cuts = sorted(draw(st.sets(CUTS, max_size=4)))
        sides = draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
        splits[node] = Pieces(cuts, sides, draw(st.booleans()))
    return Tree(feature, threshold, left, right, np.arange(leaves, dtype=float), missing), splits


def walk(tree, splits, row):
    node = 0
    while node >= 0:
        x = row[tree.feature[node]]
        pieces = splits.get(node) or Pieces([tree.threshold[node]], [True, False], tree.missing_left[node])
        goes_left = pieces.missing_left if np.isnan(x) else pieces.left[np.searchsorted(pieces.cuts, x, side="left")]
        node = tree.left[node] if goes_left else tree.right[node]
    return tree.leaf_value[~node]


@given(trees(), st.integers(0, 2**32 - 1))
def test_decides_alike(tree_and_splits, seed):
    tree, splits = tree_and_splits
    rows = np.random.default_rng(seed).choice(np.append(VALUES, np.nan), size=(60, 2))
    new = unfold(tree, splits)
    if not len(new.feature):
        assert {walk(tree, splits, row) for row in rows} == {new.leaf_value[0]}
        return
    ensemble = ensemble_of(Trees.from_trees([new]), source={}, n_features=2)
    np.testing.assert_array_equal(ensemble.score(rows), [walk(tree, splits, row) for row in rows])


def test_growth_ends(monkeypatch):
    monkeypatch.setattr(module, "MIN_ALLOWANCE", 50)
    monkeypatch.setattr(module, "MAX_GROWTH", 2)
    depth = 12
    tree = Tree(
        range(depth), [1.0] * depth, [*range(1, depth), ~0], [~i for i in range(1, depth + 1)], np.arange(depth + 1.0)
    )
    pieces = Pieces([-1.0, 0.0, 1.0], [True, False, True, False], False)
    with pytest.raises(ModelError, match=r"splits of feature clicks on zero-as-missing or categories would need more"):
        unfold(tree, dict.fromkeys(range(depth), pieces), dict.fromkeys(range(depth), "clicks"))


def test_lone_leaf():
    assert unfold(Tree.from_nested(3.0), {}).leaf_value.tolist() == [3.0]
    assert rw.Ensemble.from_trees([3.0]).n_leaves == 1
