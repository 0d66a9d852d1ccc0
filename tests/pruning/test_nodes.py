"""Trees made smaller, beside slow twins on nested trees: leaves merged, features dropped, thresholds merged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood import _native
from rankwood.model.trees import Trees
from rankwood.pruning.nodes import collapse_nodes, drop_features, feature_importance, merge_thresholds
from strategies.adversarial_rows import adversarial_rows
from strategies.ensembles import ensembles

pytestmark = pytest.mark.native


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


def share_of(node):
    """Documents below a node, and the mean of their values."""
    if len(node) == 2:
        return node[1], node[0]
    (m, a), (n, b) = share_of(node[2]), share_of(node[3])
    return m + n, (m * a + n * b) / (m + n)


def importance_slowly(roots, weights):
    found = np.zeros(3)

    def visit(node, weight):
        if len(node) == 4:
            (m, a), (n, b) = share_of(node[2]), share_of(node[3])
            found[node[0]] += weight**2 * m * n / (m + n) * (a - b) ** 2
            visit(node[2], weight)
            visit(node[3], weight)

    for root, weight in zip(roots, weights, strict=True):
        visit(root, weight)
    return found


def dropped_slowly(node, features):
    """The nested tree in whose nodes of some features stands the child that more documents reach."""
    if len(node) == 2:
        return node
    if node[0] in features:
        heavier = node[3] if share_of(node[3])[0] > share_of(node[2])[0] else node[2]
        return dropped_slowly(heavier, features)
    return [node[0], node[1], dropped_slowly(node[2], features), dropped_slowly(node[3], features)]


def of_nested(roots, weights):
    model = rw.Ensemble.from_trees([plain(root) for root in roots], tree_weights=weights, base=0.25, n_features=3)
    return model, np.array([cover for root in roots for cover in covers_of(root)])


@settings(max_examples=100)
@given(given_model=models(), features=st.sets(st.integers(0, 2)), seed=st.integers(0, 99))
def test_features_equal_the_slow_twin(given_model, features, seed):
    roots, weights = given_model
    model, covers = of_nested(roots, weights)
    assert_allclose(feature_importance(model, covers), importance_slowly(roots, weights), rtol=1e-9, atol=1e-12)
    smaller = drop_features(model, covers, np.array(sorted(features), dtype=np.int64))
    assert not set(smaller.feature.tolist()) & features
    expected = [plain(dropped_slowly(root, features)) for root in roots]
    X = np.random.default_rng(seed).normal(size=(50, 3)).astype(np.float32)
    scores = sum(
        w * np.array([score_nested(root, row) for row in X]) for w, root in zip(weights, expected, strict=True)
    )
    assert_allclose(smaller.score(X), 0.25 + scores, rtol=1e-9, atol=1e-9)


def test_a_model_keeps_its_names_and_notes():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 1.5, 2.0, 4.0))], feature_names=["a", "b"])
    model = model.with_metadata(why="test")
    smaller = drop_features(model, np.array([1.0, 2.0, 3.0]), np.array([0]))
    assert smaller.feature_names == model.feature_names
    assert smaller.metadata == model.metadata
    assert nested(smaller, 0) == (1, 1.5, 2.0, 4.0)


def test_of_equally_many_documents_the_left_child_stays():
    model = rw.Ensemble.from_trees([(0, 0.5, (1, 0.0, 1.0, 2.0), (1, 0.0, 3.0, 4.0))])
    assert nested(drop_features(model, np.ones(4), np.array([0])), 0) == (1, 0.0, 1.0, 2.0)


def test_nobody_reaches_it():
    """Nodes without documents are worth nothing, and do not divide by 0."""
    model = rw.Ensemble.from_trees([(0, 0.5, (1, 0.0, 1.0, 2.0), 3.0)])
    assert feature_importance(model, np.zeros(3)).tolist() == [0.0, 0.0]
    assert_allclose(feature_importance(model, np.array([0.0, 0.0, 5.0])), 0.0)


@settings(max_examples=150)
@given(data=st.data())
def test_merged_thresholds_send_every_row_the_same_way(data):
    model = data.draw(ensembles(max_trees=6))
    X = adversarial_rows(model, data.draw(st.integers(0, 40)), seed=data.draw(st.integers(0, 99)), dtype=np.float32)
    if data.draw(st.booleans()):
        X[:: data.draw(st.integers(1, 3))] = np.nan
    merged = merge_thresholds(model, X)
    assert_array_equal(merged.leaves(X), model.leaves(X))
    one = model.trees.set_sizes == 0  # sets stay
    before, after = (
        set(zip(each.feature[one].tolist(), each.threshold[one].tolist(), strict=True)) for each in (model, merged)
    )
    assert after <= before
    for feature in {feature for feature, _ in after}:  # two thresholds that stay have a row between them
        values = np.sort(X[:, feature].astype(np.float64))
        thresholds = sorted(threshold for other, threshold in after if other == feature)
        for low, high in pairwise(thresholds):
            assert ((values > low) & (values <= high)).any()


def test_the_threshold_that_most_nodes_have_stays():
    trees = [(0, threshold, 1.0, 2.0) for threshold in (0.1, 0.2, 0.2, 0.3, 5.0)]
    merged = merge_thresholds(rw.Ensemble.from_trees(trees), np.array([[0.0], [1.0], [np.nan]], np.float32))
    assert merged.threshold.tolist() == [0.2, 0.2, 0.2, 0.2, 5.0]
    nothing = merge_thresholds(rw.Ensemble.from_trees(trees), np.empty((0, 1), np.float32))
    assert nothing.threshold.tolist() == [0.2] * 5


def tree_arguments(**changes):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 3.0))])
    given = {"tree_weights": np.ones(1), "counts": np.ones(3), **changes}
    return *model.trees.native(), model.n_features, given["tree_weights"], given["counts"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tree_weights": np.ones(2)}, "tree_weights must have one entry per tree"),
        ({"counts": np.ones(2)}, "counts must have one entry per leaf"),
    ],
)
def test_native_arguments_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        _native.node_importance(*tree_arguments(**changes), np.empty(2), np.empty(2, np.uint8))
    with pytest.raises(ValueError, match=words):
        _native.merge_leaves(*tree_arguments(**changes), 1, np.empty(2, np.int64))


def test_native_results_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one entry per inner node"):
        _native.node_importance(*tree_arguments(), np.empty(3), np.empty(2, np.uint8))
    with pytest.raises(ValueError, match="one entry per inner node"):
        _native.node_importance(*tree_arguments(), np.empty(2), np.empty(1, np.uint8))
    with pytest.raises(ValueError, match="instead must have one entry per inner node"):
        _native.merge_leaves(*tree_arguments(), 1, np.empty(1, np.int64))
    broken = list(tree_arguments())
    broken[2] = np.array([7, -1], np.int32)  # a child that is not there
    with pytest.raises(ValueError, match="node 7 does not exist"):
        _native.merge_leaves(*broken, 1, np.empty(2, np.int64))
