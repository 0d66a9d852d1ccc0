"""Full-depth trees: every split is the best of all; trees equal scikit-learn's where the answer is unambiguous."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import fulldepth as oracle
from rankwood.data.bins import MAX_CODES, CodedDataset
from rankwood.system import available_isas
from rankwood.training.full_depth import FullDepthGrower, FullDepthRules, running_sums

pytestmark = pytest.mark.native

CRITERIA = ["variance", "entropy"]
ALL = {"max_features": None, "replace": False}


def grower(X, y, *, weights=None, query_weights=None, group=None, max_bins=None, target=None, **rules):
    data = rw.Dataset(X, y, group=[len(y)] if group is None else group, weights=weights, query_weights=query_weights)
    coded = CodedDataset.make(data, max_bins, n_threads=1)
    return FullDepthGrower(coded, FullDepthRules(**rules), target)


def trees_of(batch, n_features):
    model = rw.Ensemble.of(batch, n_features=n_features)
    return [model.tree(t) for t in range(batch.n_trees)]


def tree_on_all(X, y, *, seed=0, **given):
    """One tree on all documents, all features tried at every node unless told otherwise."""
    batch = grower(X, y, **ALL | given).grow(seed, 0, 1, n_threads=1)
    return trees_of(batch, X.shape[1])[0]


@st.composite
def problems(draw):
    """Features with ties, constants, missing and infinite values; grades or other numbers; weights or none."""
    n, n_features = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3.4e38, -3.4e38], dtype=np.float32)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    for f in range(n_features):
        kind = draw(st.sampled_from(["any", "few", "special", "constant", "missing"]))
        if kind == "few":
            X[:, f] = rng.integers(0, 3, n)
        elif kind == "special":
            X[:, f] = rng.choice(special, n)
        elif kind == "constant":
            X[:, f] = 7.0
        elif kind == "missing":
            X[rng.random(n) < 0.4, f] = np.nan
    labels = draw(st.sampled_from(["binary", "grades", "negative", "halves", "real", "many"]))
    y = {
        "binary": lambda: rng.integers(0, 2, n).astype(float),
        "grades": lambda: rng.integers(0, 5, n).astype(float),
        "negative": lambda: rng.integers(-3, 2, n).astype(float),
        "halves": lambda: rng.integers(0, 4, n) / 2.0,
        "real": lambda: rng.normal(size=n) + 100.0,
        "many": lambda: rng.integers(0, 12, n).astype(float),
    }[labels]()
    weights = {
        "none": lambda: None,
        "whole": lambda: rng.integers(1, 4, n).astype(float),
        "large": lambda: rng.integers(200, 400, n).astype(float),
        "real": lambda: rng.random(n) + 0.1,
    }[draw(st.sampled_from(["none", "whole", "large", "real"]))]()
    return X, y, weights


@settings(max_examples=150)
@given(
    problem=problems(),
    criterion=st.sampled_from(CRITERIA),
    min_docs=st.sampled_from([1, 1, 2, 5]),
    max_depth=st.sampled_from([None, None, 1, 3]),
    max_bins=st.sampled_from([None, 255]),
)
def test_every_split_is_the_best_of_all(problem, criterion, min_docs, max_depth, max_bins):
    X, y, weights = problem
    rules = {"criterion": criterion, "max_depth": max_depth}
    tree = tree_on_all(X, y, weights=weights, max_bins=max_bins, min_docs_per_leaf=min_docs, **rules)
    w = np.ones(len(y)) if weights is None else weights
    oracle.check_tree(tree, X, y, w, min_docs=min_docs, **rules)


@settings(max_examples=60)
@given(problem=problems(), criterion=st.sampled_from(CRITERIA), n_tried=st.integers(1, 3), seed=st.integers(0, 9))
def test_some_features_are_tried(problem, criterion, n_tried, seed):
    """The split is the best of its feature; and one there is, as long as any feature has several values."""
    X, y, weights = problem
    tree = tree_on_all(X, y, weights=weights, criterion=criterion, max_features=n_tried, seed=seed)
    w = np.ones(len(y)) if weights is None else weights
    oracle.check_tree(tree, X, y, w, criterion=criterion, all_features=False)


@settings(max_examples=60)
@given(problem=problems(), criterion=st.sampled_from(CRITERIA), seed=st.integers(0, 9))
def test_redrawn_features_leave_nothing_undone(problem, criterion, seed):
    """One feature drawn, and more until one gains: no leaf has a split that gains, as if all had been tried."""
    X, y, weights = problem
    tree = tree_on_all(X, y, weights=weights, criterion=criterion, max_features=1, redraw=True, seed=seed)
    w = np.ones(len(y)) if weights is None else weights
    oracle.check_tree(tree, X, y, w, criterion=criterion, all_features=False, redraw=True)


def test_a_drawn_feature_that_gains_nothing_ends_a_branch_unless_redrawn():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
    y = np.array([0.0, 1.0, 0.0, 1.0])  # the first feature tells nothing
    sizes = {
        redraw: {len(tree_on_all(X, y, max_features=1, redraw=redraw, seed=s).feature) for s in range(40)}
        for redraw in (False, True)
    }
    assert sizes == {False: {0, 1}, True: {1}}


@settings(max_examples=100)
@given(
    problem=problems(),
    criterion=st.sampled_from(CRITERIA),
    min_docs=st.sampled_from([1, 1, 3]),
    max_depth=st.sampled_from([None, 1, 2]),
    max_bins=st.sampled_from([None, 255]),
)
def test_missing_values_have_a_side_of_their_own(problem, criterion, min_docs, max_depth, max_bins):
    X, y, weights = problem
    rules = {"criterion": criterion, "max_depth": max_depth}
    tree = tree_on_all(
        X, y, weights=weights, max_bins=max_bins, min_docs_per_leaf=min_docs, missing_apart=True, **rules
    )
    w = np.ones(len(y)) if weights is None else weights
    oracle.check_tree_in_three(tree, X, y, w, min_docs=min_docs, **rules)


@settings(max_examples=100)
@given(
    problem=problems(),
    criterion=st.sampled_from(CRITERIA),
    max_bins=st.sampled_from([None, 4]),
    min_docs=st.sampled_from([1, 3]),
    seed=st.integers(0, 99),
)
def test_random_thresholds_lie_between_the_values_of_the_node(problem, criterion, max_bins, min_docs, seed):
    X, y, weights = problem
    tree = tree_on_all(
        X, y, weights=weights, criterion=criterion, thresholds="random", min_docs_per_leaf=min_docs, seed=seed,
        max_bins=max_bins,
    )  # fmt: skip
    w = np.ones(len(y)) if weights is None else weights
    oracle.check_random_tree(tree, X, y, w, criterion=criterion, min_docs=min_docs)


def test_random_thresholds_are_drawn_evenly():
    X = np.array([[0.0], [1.0], [8.0]], dtype=np.float32)
    y = np.array([0.0, 1.0, 2.0])
    batch = grower(X, y, max_features=None, replace=False, thresholds="random").grow(3, 0, 4000, n_threads=2)
    first = np.array([tree.threshold[0] for tree in trees_of(batch, 1)])
    assert 0.0 <= first.min() < 0.01
    assert 7.99 < first.max() < 8.0
    assert_allclose(np.quantile(first, [0.25, 0.5, 0.75]), [2.0, 4.0, 6.0], atol=0.3)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n", [90, 120, 250, 1100])
@pytest.mark.parametrize("labels", ["graded", "skewed", "many classes"])
def test_every_way_to_search_finds_the_best(criterion, n, labels):
    """Nodes of all sizes: pairs, sums by code, intervals of codes, sorting; features of few and of many values."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[:, 1] = np.maximum(X[:, 1], 0.5)  # half of it is one value
    X[:, 2] = rng.integers(0, 200, n)
    X[rng.random(n) < 0.1, 3] = np.nan
    X[:, 4] = np.round(X[:, 4], 1)
    p = {"graded": [0.5, 0.3, 0.2], "skewed": [0.97, 0.02, 0.01], "many classes": np.full(7, 1 / 7)}[labels]
    y = rng.choice(len(p), n, p=p).astype(float)
    y[X[:, 0] > 1.0] = 1.0
    rules = {"criterion": criterion, "max_depth": 3 if n > 1000 else None}
    oracle.check_tree(tree_on_all(X, y, **rules), X, y, np.ones(n), **rules)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_grades_as_bytes_and_as_numbers_give_the_same_trees(criterion):
    """Weights that are too large for bytes change how sums are kept, not what comes out."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(500, 6)).astype(np.float32), rng.integers(0, 5, 500).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    small, large = (
        tree_on_all(X, y, weights=np.full(500, w), criterion=criterion, max_features=2) for w in (1.0, 1024.0)
    )
    for name in ("feature", "threshold", "left", "right", "missing_left", "leaf_value", "node_count"):
        assert_array_equal(getattr(small, name), getattr(large, name))
    assert_allclose(1024 * small.split_gain, large.split_gain)


def sklearn_tree(X, y, w, criterion, **limits):
    module = pytest.importorskip("sklearn.tree")
    kind = module.DecisionTreeRegressor if criterion == "variance" else module.DecisionTreeClassifier
    name = "squared_error" if criterion == "variance" else "entropy"
    model = kind(criterion=name, random_state=0, **limits).fit(X, y, sample_weight=w)
    value = model.tree_.value[:, 0, :]
    means = value[:, 0] if criterion == "variance" else value @ model.classes_ / value.sum(axis=1)
    return model.tree_, means


def assert_equals_sklearn(tree, theirs, means):
    """Node by node: feature, threshold, direction of missing values, documents; and the values of leaves."""
    pending = [(0 if len(tree.feature) else -1, 0)]
    while pending:
        ours, node = pending.pop()
        assert (ours < 0) == (theirs.children_left[node] < 0)
        if ours < 0:
            assert_allclose(tree.leaf_value[~ours], means[node], rtol=1e-12, atol=1e-12)
            continue
        assert tree.feature[ours] == theirs.feature[node]
        assert tree.threshold[ours] == theirs.threshold[node]
        assert tree.missing_left[ours] == theirs.missing_go_to_left[node]
        assert tree.node_count[ours] == theirs.n_node_samples[node]
        pending += [
            (int(tree.left[ours]), theirs.children_left[node]),
            (int(tree.right[ours]), theirs.children_right[node]),
        ]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_trees_of_full_depth_equal_scikit_learn(criterion, missing, seed):
    """One feature, and weights that make no two splits alike: below, two documents are told apart by any feature."""
    rng = np.random.default_rng(seed)
    n_found = 0
    for _ in range(20):
        X = rng.normal(size=(40, 1)).astype(np.float32)
        X[rng.random(X.shape) < missing] = np.nan
        y, w = rng.integers(0, 4, 40).astype(float), rng.integers(1, 200, 40).astype(float)
        if not oracle.is_unambiguous(X, y, w, criterion=criterion):
            continue
        n_found += 1
        assert_equals_sklearn(tree_on_all(X, y, weights=w, criterion=criterion), *sklearn_tree(X, y, w, criterion))
    assert n_found >= 2


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["grades", "weighted grades", "real weights", "missing", "min docs"])
def test_large_nodes_equal_scikit_learn(criterion, kind):
    rng = np.random.default_rng(5)
    X = rng.gamma(1.0, size=(900, 6)).astype(np.float32)
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.clip(np.floor(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.normal(size=900)), 0, 4)
    w = {"weighted grades": rng.integers(1, 9, 900).astype(float), "real weights": rng.random(900) + 0.5}.get(kind)
    limits = {"max_depth": 3, "min_samples_leaf": 30 if kind == "min docs" else 1}
    ones = np.ones(900) if w is None else w
    assert oracle.is_unambiguous(X, y, ones, criterion=criterion, max_depth=3, min_docs=limits["min_samples_leaf"])
    tree = tree_on_all(X, y, weights=w, criterion=criterion, max_depth=3, min_docs_per_leaf=limits["min_samples_leaf"])
    assert_equals_sklearn(tree, *sklearn_tree(X, y, w, criterion, **limits))


def test_real_labels_equal_scikit_learn():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(400, 1)).astype(np.float32), rng.normal(size=400)
    assert_equals_sklearn(tree_on_all(X, y), *sklearn_tree(X, y, None, "variance"))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_leaves", [2, 5, 12, 100])
def test_best_first_growth_equals_its_slow_twin(criterion, n_leaves):
    rng = np.random.default_rng(n_leaves)
    X, y = rng.normal(size=(60, 3)).astype(np.float32), rng.integers(0, 5, 60).astype(float)
    w = rng.random(60) + 0.5  # no two gains alike
    model_tree = tree_on_all(X, y, weights=w, criterion=criterion, n_leaves=n_leaves)
    leaves = rw.Ensemble.from_trees([model_tree], n_features=3).leaves(X)[:, 0]
    assert len(model_tree.leaf_value) <= n_leaves
    found = sorted(np.flatnonzero(leaves == k).tolist() for k in range(len(model_tree.leaf_value)))
    expected = oracle.grow_best_first(X, y, w, n_leaves, criterion=criterion)
    if n_leaves < 20:
        assert found == expected
    assert len(found) == len(expected)


def test_known_trees():
    X = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    tree = tree_on_all(X, np.array([0.0, 0.0, 2.0, 1.0]))
    assert_array_equal(tree.threshold, [1.5, 2.5])
    assert_array_equal(tree.leaf_value, [0.0, 2.0, 1.0])
    assert_array_equal(tree.node_count, [4, 2])
    assert_allclose(tree.split_gain, [2.25, 0.5])
    bits = tree_on_all(X, np.array([0.0, 0.0, 2.0, 2.0]), criterion="entropy")
    assert_array_equal(bits.threshold, [1.5])
    assert_allclose(bits.split_gain, [4.0])  # four documents, one bit each


def test_a_split_without_gain_is_not_made():
    """Half of each class on either side, for both features: exact, where rounding might see a gain."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=np.float32)
    y = np.array([0.1, 0.7, 0.7, 0.1] * 3)
    for criterion in CRITERIA:
        for weights in (None, np.full(12, 1 / 3)):
            assert len(tree_on_all(X, y, criterion=criterion, weights=weights).leaf_value) == 1
    # seven classes in proportions that logarithms do not sum up exactly
    X, y = (
        np.repeat([[0.0], [1.0], [2.0]], 21, axis=0).astype(np.float32),
        np.tile(np.repeat(np.arange(6), range(1, 7)), 3),
    )
    assert len(tree_on_all(X, y.astype(float), criterion="entropy").leaf_value) == 1


def test_gains_must_exceed_min_gain():
    X = np.array([[0.0], [1.0]], dtype=np.float32)
    y = np.array([0.0, 1.0])
    for criterion, gain in (("variance", 0.25), ("entropy", 1.0)):
        assert len(tree_on_all(X, y, criterion=criterion, min_gain=gain).leaf_value) == 1
        assert len(tree_on_all(X, y, criterion=criterion, min_gain=np.nextafter(gain, 0)).leaf_value) == 2


def test_thresholds_lie_between_the_values_of_the_sample():
    """In bins, too: the middle between the largest value left and the smallest right, not the edge of a bin."""
    X = np.arange(1000, dtype=np.float32)[:, None]
    y = (X[:, 0] >= 500).astype(float)
    for max_bins in (None, 255, 2000):
        sampled = grower(X, y, group=np.ones(1000, int), max_bins=max_bins, queries_per_tree=10, max_features=None)
        for number in range(20):
            rows, _ = sampled.sample(0, number)
            tree = trees_of(sampled.grow(0, number, 1, n_threads=1), 1)[0]
            if y[rows].min() == y[rows].max():
                assert len(tree.leaf_value) == 1
                continue
            gap = X[rows[y[rows] == 0]].max(), X[rows[y[rows] == 1]].min()
            tolerance = 0 if max_bins != 255 else 4
            assert abs(tree.threshold[0] - (gap[0] + gap[1]) / 2) <= tolerance
            assert gap[0] <= tree.threshold[0] < gap[1]


def test_every_feature_gets_its_turn():
    """Features are drawn evenly at the root, and constant ones do not use up a node's chances."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 10)).astype(np.float32), rng.integers(0, 2, 60).astype(float)
    forest = grower(X, y, max_features=1, max_depth=1)
    batch = forest.grow(7, 0, 3000, n_threads=2)
    assert batch.sizes.tolist() == [1] * 3000
    counts = np.bincount(batch.feature, minlength=10)
    assert counts.sum() == 3000
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300 * 0.9)
    X[:, 1:] = 3.0  # all but one constant
    batch = grower(X, y, max_features=1, max_depth=1).grow(7, 0, 50, n_threads=1)
    assert batch.sizes.tolist() == [1] * 50
    assert set(batch.feature) == {0}


def shared_problem(n_queries=60, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 25, n_queries)
    n = int(sizes.sum())
    X = rng.normal(size=(n, 9)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, rng.integers(0, 4, n).astype(float), sizes


SAMPLINGS = {
    "bootstrap": {},
    "half the documents": {"docs_per_tree": 0.5, "replace": False},
    "100 documents": {"docs_per_tree": 100},
    "queries": {"queries_per_tree": 0.3},
    "one query": {"queries_per_tree": 1},
    "queries, replaced": {"queries_per_tree": 1.0, "replace": True},
    "all queries": {"queries_per_tree": 1.0},
}
OF_EACH_QUERY = {"3 of each": 3, "a third of each": 1 / 3, "all of each": 1.0}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS.keys())
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_grown_on_their_samples(criterion, sampling, weighted):
    """Growing on a sample is growing on its documents, weighted by how often they were drawn."""
    X, y, sizes = shared_problem(25)
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    forest = grower(X, y, group=sizes, weights=weights, criterion=criterion, max_features=None, max_depth=4, **sampling)
    for number, tree in enumerate(trees_of(forest.grow(5, 0, 4, n_threads=1), 9)):
        rows, times = forest.sample(5, number)
        w = times * (1.0 if weights is None else weights[rows])
        oracle.check_tree(tree, X[rows], y[rows], w, criterion=criterion, max_depth=4)


@pytest.mark.parametrize("name", SAMPLINGS)
def test_samples_are_what_was_asked_for(name):
    X, y, sizes = shared_problem()
    forest = grower(X, y, group=sizes, **SAMPLINGS[name])
    query = np.repeat(np.arange(len(sizes)), sizes)
    n_queries = np.count_nonzero(sizes)
    drawn = np.zeros(len(y))
    for tree in range(400):
        rows, times = forest.sample(11, tree)
        assert (np.diff(rows) > 0).all()
        assert times.min() >= 1
        drawn[rows] += times
        if "quer" in name:  # whole ones
            assert_array_equal(np.bincount(query[rows], minlength=len(sizes)) % np.maximum(sizes, 1), 0)
            of_query = [set(times[query[rows] == q]) for q in np.unique(query[rows])]
            assert all(len(one) == 1 for one in of_query)
            expected = {"queries": round(0.3 * n_queries), "one query": 1}.get(name, n_queries)
            assert sum(one.pop() for one in of_query) == expected
            assert name == "queries, replaced" or times.max() == 1
        else:
            expected = {"half the documents": round(0.5 * len(y)), "100 documents": 100}.get(name, len(y))
            assert times.sum() == expected
            assert name != "half the documents" or times.max() == 1
    share = drawn.sum() / 400 / len(y)
    assert {"half the documents": 0.5, "queries": 0.3}.get(name, share) == pytest.approx(share, abs=0.01)
    assert drawn.std() / drawn.mean() < {"one query": 0.6}.get(name, 0.25)  # evenly: no document is left out
    if name == "bootstrap":
        n_seen = np.mean([len(forest.sample(11, tree)[0]) for tree in range(50)])
        assert n_seen / len(y) == pytest.approx(1 - np.exp(-1), abs=0.01)


@pytest.mark.parametrize("replace", [None, True])
@pytest.mark.parametrize("share", OF_EACH_QUERY.values(), ids=OF_EACH_QUERY.keys())
def test_documents_are_drawn_from_each_query(share, replace):
    X, y, sizes = shared_problem()
    forest = grower(X, y, group=sizes, docs_per_query=share, replace=replace, max_features=None)
    query = np.repeat(np.arange(len(sizes)), sizes)
    expected = np.minimum(3, sizes) if share == 3 else np.minimum(np.maximum(np.floor(share * sizes + 0.5), 1), sizes)
    drawn = np.zeros(len(y))
    for tree in range(400):
        rows, times = forest.sample(11, tree)
        assert (np.diff(rows) > 0).all()
        assert_array_equal(np.bincount(query[rows], weights=times, minlength=len(sizes)), expected)
        assert replace or times.max() == 1
        drawn[rows] += times
    rates = drawn / 400 / (expected / np.maximum(sizes, 1))[query]  # evenly inside every query
    assert rates.std() < 0.25
    rows, times = forest.sample(5, 0)
    (tree,) = trees_of(forest.grow(5, 0, 1, n_threads=1), 9)
    oracle.check_tree(tree, X[rows], y[rows], times * 1.0, criterion="variance")


def test_samples_come_in_input_order_of_rows():
    """Rows of a query need not stand together; a sample names the rows of the data set."""
    X, y, sizes = shared_problem()
    qid = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.random.default_rng(2).permutation(len(y))
    data = rw.Dataset(X[shuffled], y[shuffled], qid=qid[shuffled])
    forest = FullDepthGrower(CodedDataset.make(data), FullDepthRules(queries_per_tree=3))
    rows, _ = forest.sample(0, 0)
    assert len(np.unique(data.qid[rows])) == 3
    assert_array_equal(np.sort(rows), np.flatnonzero(np.isin(data.qid, np.unique(data.qid[rows]))))


def test_other_targets():
    """The trees of any target, such as the binary ones of the classification setting."""
    X, y, sizes = shared_problem()
    binary = (y < 2).astype(float)
    for criterion in CRITERIA:
        given = grower(X, y, group=sizes, criterion=criterion, target=binary).grow(3, 0, 5, n_threads=1)
        labelled = grower(X, binary, group=sizes, criterion=criterion).grow(3, 0, 5, n_threads=1)
        for name, array in given.arrays().items():
            assert_array_equal(array, labelled.arrays()[name])
    real = np.random.default_rng(0).normal(size=len(y))
    tree = tree_on_all(X[:200], y[:200], target=real[:200])
    oracle.check_tree(tree, X[:200], real[:200], np.ones(200), criterion="variance")


def fingerprint(batch) -> list[bytes]:
    return [array.tobytes() for array in batch.arrays().values()]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_and_batches_change_nothing(criterion, weighted):
    X, y, sizes = shared_problem(200)
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    forest = grower(X, y, group=sizes, weights=weights, criterion=criterion)
    whole = forest.grow(1, 0, 12, n_threads=1)
    for n_threads in (2, 3, 8):
        assert fingerprint(forest.grow(1, 0, 12, n_threads=n_threads)) == fingerprint(whole)
    again = grower(X, y, group=sizes, weights=weights, criterion=criterion)  # nothing is left over from tree to tree
    assert fingerprint(again.grow(1, 7, 3, n_threads=1)) == fingerprint(whole.part(7, 10))
    assert fingerprint(forest.grow(2, 0, 12, n_threads=1)) != fingerprint(whole)


SCRIPT = """
import hashlib, numpy as np, rankwood as rw
data = rw.make_ranking(n_queries=30, docs_per_query=60, n_features=20, seed=4)
for criterion in ("variance", "entropy"):
    for max_bins in (None, 255):
        forest = rw.RandomForest(6, criterion=criterion, max_bins=max_bins, n_jobs=2).fit(data).ensemble_
        print(forest.fingerprint(), hashlib.sha256(forest.split_gain).hexdigest())
"""


def test_every_instruction_set_gives_the_same_bits():
    seen = set()
    for isa in available_isas():
        paths = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"RANKWOOD_ISA": isa, "PYTHONPATH": paths}
        seen.add(
            subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True).stdout
        )
    assert len(seen) == 1


def test_large_data_has_tiles_of_its_own():
    """Beyond a few megabytes a subtree's documents are copied together: it must not show."""
    rng = np.random.default_rng(0)
    n = 40_000
    X = rng.normal(size=(n, 64)).astype(np.float32)
    y = np.clip(np.floor(X[:, 0] + X[:, 1] + rng.normal(size=n)), 0, 4)
    for weights in (None, rng.random(n) + 0.5):
        for rules in ({}, {"n_leaves": 10**9}):  # best first has one tile for all
            forest = grower(X, y, weights=weights, max_bins=255, max_features=8, min_docs_per_leaf=50, **rules)
            model = trees_of(forest.grow(0, 0, 1, n_threads=1), 64)[0]
            rows, times = forest.sample(0, 0)
            w = times * (1.0 if weights is None else weights[rows])
            leaves = rw.Ensemble.from_trees([model], n_features=64).leaves(X[rows])[:, 0]
            counts = np.bincount(leaves, minlength=len(model.leaf_value))
            assert counts.min() >= 50
            sums = np.bincount(leaves, weights=w * y[rows])
            assert_allclose(model.leaf_value, sums / np.bincount(leaves, weights=w), rtol=1e-9)


def test_out_of_bag_sums_equal_their_slow_twin():
    X, y, sizes = shared_problem()
    for sampling in SAMPLINGS.values():
        forest = grower(X, y, group=sizes, **sampling)
        batch = forest.grow(9, 3, 10, n_threads=1)
        expected, n_expected = np.zeros(len(y)), np.zeros(len(y), dtype=np.uint32)
        for number, tree in enumerate(trees_of(batch, 9)):
            out = np.setdiff1d(np.arange(len(y)), forest.sample(9, 3 + number)[0])
            expected[out] += rw.Ensemble.from_trees([tree], n_features=9).score(X[out])
            n_expected[out] += 1
        for n_threads in (1, 3):
            sums, counts = np.zeros(len(y)), np.zeros(len(y), dtype=np.uint32)
            forest.add_out_of_bag(batch.part(0, 4), 9, 3, sums, counts, n_threads=n_threads)
            forest.add_out_of_bag(batch.part(4, 10), 9, 7, sums, counts, n_threads=n_threads)
            assert_array_equal(sums, expected)
            assert_array_equal(counts, n_expected)


def test_running_sums_are_those_of_the_model():
    X, y, sizes = shared_problem()
    batch = grower(X, y, group=sizes).grow(0, 0, 7, n_threads=1)
    model = rw.Ensemble.from_trees(trees_of(batch, 9), n_features=9)
    for block in (1, 2 * len(y), 10**9):
        found = list(running_sums(batch, X, np.ones(len(y)), n_threads=2, block=block))
        assert len(found) == 7
        for t, sums in enumerate(found):
            assert_allclose(sums, 1.0 + model.select(range(t + 1)).score(X), rtol=1e-12)


def test_weights_of_zero_are_not_seen():
    X, y, _ = shared_problem()
    weights = (np.random.default_rng(0).random(len(y)) < 0.5).astype(float)
    tree = tree_on_all(X, y, weights=weights)
    seen = weights > 0
    oracle.check_tree(tree, X[seen], y[seen], np.ones(seen.sum()), criterion="variance")
    # A sample without any weight: the mean of all.
    forest = grower(X[:4], y[:4], group=[2, 2], query_weights=[0.0, 2.0], queries_per_tree=1)
    values = {
        tuple(tree.leaf_value) for tree in trees_of(forest.grow(0, 0, 20, n_threads=1), 9) if len(tree.leaf_value) == 1
    }
    assert (float(np.mean(y[2:4])),) in values


def test_stopping():
    X, y, sizes = shared_problem(400)
    forest = grower(X, y, group=sizes)
    whole = forest.grow(0, 0, 400, n_threads=2)
    calls = []

    def stop() -> bool:
        calls.append(time.monotonic())
        return True

    some = forest.grow(0, 0, 400, stop=stop, n_threads=2)
    assert len(calls) == 1
    assert 0 < some.n_trees < 400
    assert fingerprint(some) == fingerprint(whole.part(0, some.n_trees))
    with pytest.raises(ZeroDivisionError):
        forest.grow(0, 0, 400, stop=lambda: 1 // 0, n_threads=2)


def test_codes():
    X = np.array([[np.nan, 2.0, np.inf], [1.0, 2.0, -np.inf], [-0.0, 2.0, 5.0], [0.0, 2.0, np.nan]], dtype=np.float32)
    coded = CodedDataset.make(rw.Dataset(X, np.zeros(4), group=[4]))
    assert_array_equal(coded.codes[0, :, :3], [[2, 0, 2], [1, 0, 0], [0, 0, 1], [0, 0, 3]])
    assert_array_equal(coded.has_missing, [1, 0, 1])
    assert_array_equal(coded.low, [0.0, 1.0, 2.0, -np.inf, 5.0, np.inf])
    binned = CodedDataset.make(rw.BinnedDataset.make(coded.data))
    assert binned.codes.dtype == np.uint8
    for name in ("codes", "has_missing", "offsets", "low", "high"):
        assert_array_equal(getattr(binned, name)[..., :3], getattr(coded, name)[..., :3])
    assert CodedDataset.make(coded.data, 255).codes.dtype == np.uint8


@given(
    values=st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=60),
    max_bins=st.sampled_from([None, 2, 7, 255, 256]),
)
@example(values=[float("nan")], max_bins=None)
def test_codes_keep_the_order_of_values(values, max_bins):
    x = np.array(values, dtype=np.float32)
    coded = CodedDataset.make(rw.Dataset(x[:, None], np.zeros(len(x)), group=[len(x)]), max_bins)
    code, there = coded.codes[0, :, 0].astype(int), ~np.isnan(x)
    assert_array_equal(code == len(coded.low), ~there)
    assert coded.has_missing[0] == (not there.all())
    for k in np.unique(code[there]):
        assert coded.low[k] == x[code == k].min()
        assert coded.high[k] == x[code == k].max()
    order = np.lexsort((code[there], x[there]))
    assert (np.diff(code[there][order]) >= 0).all()
    if max_bins is None:
        assert len(np.unique(code[there])) == len(np.unique(x[there] + 0.0))


def test_more_documents_than_codes_are_binned():
    X = np.random.default_rng(0).normal(size=(MAX_CODES + 1, 1)).astype(np.float32)
    data = rw.Dataset(X, np.zeros(len(X)), group=[len(X)])
    assert CodedDataset.make(data).codes.dtype == np.uint8
    fine = CodedDataset.make(data, MAX_CODES)
    assert fine.codes.dtype == np.uint16
    assert len(fine.low) > 60_000


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"criterion": "gini"}, "criterion must be 'variance' or 'entropy', got 'gini'"),
        (
            {"max_features": 0},
            r"max_features must be a count .* a fraction \(up to 1.0\), 'sqrt', 'ceil-sqrt' or None, got 0",
        ),
        ({"max_features": 1.5}, "max_features must be a count"),
        ({"queries_per_tree": 0.0}, "queries_per_tree must be a count"),
        ({"queries_per_tree": -3}, "queries_per_tree must be a count"),
        ({"docs_per_tree": True}, "docs_per_tree must be a count"),
        ({"docs_per_tree": 5, "queries_per_tree": 5}, "queries_per_tree or docs_per_tree, not both"),
        ({"thresholds": "worst"}, "thresholds must be 'best' or 'random', got 'worst'"),
        ({"missing_apart": True, "n_leaves": 5}, "splits in three go with all thresholds and no n_leaves"),
        ({"max_depth": -1}, "max_depth must be at least 0"),
        ({"n_leaves": 1}, "n_leaves must be at least 2"),
        ({"min_docs_per_leaf": 0}, "min_docs_per_leaf must be a whole number, or a fraction below 1, got 0"),
        ({"min_docs_per_leaf": 2.5}, "min_docs_per_leaf must be a whole number"),
        ({"min_gain": -1.0}, "min_gain must be a number of at least 0"),
    ],
)
def test_wrong_rules(rules, message):
    with pytest.raises(rw.RankwoodError, match=message):
        FullDepthRules(**rules)


def test_wrong_data():
    X, y = np.zeros((10, 2), dtype=np.float32), np.arange(10.0)
    with pytest.raises(rw.RankwoodError, match="queries_per_tree=3 is more than the 2 queries of the data: draw fewer"):
        grower(X, y, group=[5, 5], queries_per_tree=3)
    with pytest.raises(rw.RankwoodError, match="docs_per_tree=11 is more than the 10 documents of the data"):
        grower(X, y, docs_per_tree=11, replace=False)
    with pytest.raises(rw.DataError, match="target must have one finite number per row"):
        grower(X, y, target=np.full(10, np.nan))
    with pytest.raises(rw.DataError, match="labels and weights are too large"):
        grower(X, y * 1e300)
    with pytest.raises(
        rw.DataError, match="takes every label as a class, at most 256 of them: use criterion 'variance'"
    ):
        grower(np.zeros((300, 1), np.float32), np.arange(300.0), criterion="entropy")
    with pytest.raises(rw.DataError, match="max_bins must lie between 2 and 65535, got 1"):
        grower(X, y, max_bins=1)


def test_min_docs_as_a_fraction_of_the_sample():
    X, y, sizes = shared_problem()
    forest = grower(X, y, group=sizes, queries_per_tree=0.5, min_docs_per_leaf=0.1)
    for number, tree in enumerate(trees_of(forest.grow(0, 0, 5, n_threads=1), 9)):
        rows, _ = forest.sample(0, number)
        leaves = rw.Ensemble.from_trees([tree], n_features=9).leaves(X[rows])[:, 0]
        assert np.bincount(leaves).min() >= np.ceil(0.1 * len(rows))


@settings(max_examples=40)
@given(problem=problems(), criterion=st.sampled_from(CRITERIA))
def test_training_and_scoring_route_alike(problem, criterion):
    """A tree of full depth gives every document back its label, or the mean of documents that look the same."""
    X, y, weights = problem
    assume(len(y) > 1)
    tree = tree_on_all(X, y, weights=weights, criterion=criterion)
    scores = rw.Ensemble.from_trees([tree], n_features=X.shape[1]).score(X)
    w = np.ones(len(y)) if weights is None else weights
    leaves = rw.Ensemble.from_trees([tree], n_features=X.shape[1]).leaves(X)[:, 0]
    for leaf in np.unique(leaves):
        mine = leaves == leaf
        assert_allclose(scores[mine], np.average(y[mine], weights=w[mine]), rtol=1e-9, atol=1e-12)
