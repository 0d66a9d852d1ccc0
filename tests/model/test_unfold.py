"""Splits by pieces of the line decide as sets do, and these as single thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.reading import Pieces, ensemble_of
from rankwood.model import unfold as module
from rankwood.model.trees import Tree, Trees
from rankwood.model.unfold import without_sets
from strategies.ensembles import ensembles, rows_near_thresholds

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
    ensemble = ensemble_of(Trees.from_trees([tree]), splits, source={}, n_features=2)
    assert ensemble.n_leaves == len(tree.leaf_value)
    expected = [walk(tree, splits, row) for row in rows]
    np.testing.assert_array_equal(ensemble.score(rows, engine="reference"), expected)
    unfolded = without_sets(ensemble)
    assert unfolded.set_thresholds is None
    np.testing.assert_array_equal(unfolded.score(rows), expected)


@given(st.data())
def test_sets_become_thresholds(data):
    model = data.draw(ensembles(max_leaves=8))
    X = data.draw(rows_near_thresholds(model))
    keep = np.random.default_rng(data.draw(st.integers(0, 99))).random(model.n_nodes) < 0.5
    expected = model.score(X, engine="reference")
    unfolded = without_sets(model)
    assert unfolded.set_thresholds is None
    np.testing.assert_array_equal(unfolded.score(X, engine="reference"), expected)
    some = without_sets(model, keep)
    assert len(some.trees.set_nodes) >= len(model.trees.set_nodes[keep[model.trees.set_nodes]]) or some is not model
    np.testing.assert_array_equal(some.score(X, engine="reference"), expected)


def test_a_model_without_sets_stays_what_it_is():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    assert without_sets(model) is model


def test_covers_are_shared_by_copies():
    tree = Tree.from_nested((0, [-1.0, 1.0], 1.0, 2.0))
    model = rw.Ensemble.from_trees([rw.Tree(**vars(tree) | {"leaf_cover": [10.0, 4.0]})])
    unfolded = without_sets(model)
    assert unfolded.leaf_value.tolist() == [1.0, 2.0, 1.0]
    assert unfolded.leaf_cover.tolist() == [5.0, 4.0, 5.0]


def test_growth_ends(monkeypatch):
    monkeypatch.setattr(module, "MIN_ALLOWANCE", 50)
    monkeypatch.setattr(module, "MAX_GROWTH", 2)
    depth = 12
    nested = 0.0
    for feature in range(depth):
        nested = (feature, [-1.0, 0.0, 1.0], nested, 1.0)
    names = [f"clicks {feature}" for feature in range(depth)]
    model = rw.Ensemble.from_trees([nested], feature_names=names)
    with pytest.raises(ModelError, match=r"splits of feature clicks \d+ on sets .* would need more than 50 nodes"):
        without_sets(model)
