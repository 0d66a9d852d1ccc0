"""Growth: splits equal those found by trying them all; trees equal exact CART where the answer is unambiguous."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import trees as oracle
from oracles.significance import splitmix64
from rankwood import _native
from rankwood.data.bins import BinnedDataset
from rankwood.data.share import Share
from rankwood.errors import RankwoodError
from rankwood.group import ALONE
from rankwood.training.grow import GrowingTree, GrowthRules, Sampling, TreeBuilder, TreeRules, choose_leaf

pytestmark = pytest.mark.native


def build(X, g, h, *, n_threads=1, balance=0.0, sampling=None, seed=0, constant_hessian=False, **growth):
    data = rw.Dataset(X, np.zeros(len(X)), group=[len(X)])
    binned = BinnedDataset.make(data, n_threads=n_threads)
    rules = TreeRules(GrowthRules(**growth), sampling or Sampling(), balance)
    builder = TreeBuilder(binned, rules, constant_hessian=constant_hessian, n_threads=n_threads)
    return builder.build(g, h, np.random.default_rng(seed))


def random_problem(seed, n=60, n_features=3, n_values=6, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.integers(n_values, size=(n, n_features)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return X, rng.normal(size=n), rng.random(n) + 0.1


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    missing=st.sampled_from([0.0, 0.2, 0.9]),
    l2=st.sampled_from([0.0, 1.0]),
    min_hessian=st.sampled_from([1e-3, 2.0]),
    min_docs=st.sampled_from([1, 2, 7]),
    n_features=st.sampled_from([3, 8, 21]),  # eight are searched side by side, sixteen are counted together
)
def test_the_first_split_is_the_best_of_all(seed, missing, l2, min_hessian, min_docs, n_features):
    X, g, h = random_problem(seed, n_features=n_features, missing=missing)
    thresholds = [oracle.candidate_thresholds(X[:, f]) for f in range(X.shape[1])]
    expected = oracle.best_split(X, g, h, thresholds, l2=l2, min_hessian=min_hessian, min_docs=min_docs)
    grown, leaf = build(X, g, h, n_leaves=2, l2=l2, min_hessian=min_hessian, min_docs_per_leaf=min_docs)
    if expected is None or expected.gain <= 1e-9:
        assert len(grown.tree.leaf_value) == 1
        return
    assert_allclose(grown.tree.split_gain[0], expected.gain, rtol=1e-5, atol=1e-7)
    assert_array_equal(leaf == 0, expected.goes_left)
    sums = [(g[leaf == k].sum(), h[leaf == k].sum()) for k in (0, 1)]
    assert_allclose(grown.tree.leaf_value, [a / max(b + l2, min_hessian) for a, b in sums], rtol=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), n_leaves=st.integers(1, 12), min_docs=st.sampled_from([1, 4]))
def test_best_first_growth_equals_its_slow_twin(seed, n_leaves, min_docs):
    X, g, h = random_problem(seed, n=80, n_values=12)
    thresholds = [oracle.candidate_thresholds(X[:, f]) for f in range(X.shape[1])]
    expected = oracle.grow(X, g, h, thresholds, n_leaves, min_docs=min_docs)
    _, leaf = build(X, g, h, n_leaves=n_leaves, min_docs_per_leaf=min_docs)
    found = [set(np.flatnonzero(leaf == k).tolist()) for k in range(leaf.max() + 1)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@pytest.mark.parametrize("max_leaf_nodes", [2, 5, 16, 40])
def test_trees_equal_scikit_learn_cart(max_leaf_nodes):
    """Unambiguous: no two splits of random real targets gain the same.

    Thresholds may differ inside a gap between the values of a node: scikit-learn takes the middle of the gap in the
    node, ours is an edge between two neighbouring values of the whole column.
    """
    tree_module = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(5)
    X = rng.integers(40, size=(500, 6)).astype(np.float32)
    y = X[:, 0] * X[:, 1] / 50 + np.sin(X[:, 2]) + rng.normal(size=500)
    theirs = tree_module.DecisionTreeRegressor(max_leaf_nodes=max_leaf_nodes, random_state=0).fit(X, y)
    grown, leaf = build(X, y, np.ones(500), n_leaves=max_leaf_nodes, constant_hessian=True)
    assert_allclose(grown.tree.leaf_value[leaf], theirs.predict(X), rtol=1e-9)
    inner = theirs.tree_.feature >= 0
    assert sorted(grown.tree.feature) == sorted(theirs.tree_.feature[inner])


def test_a_function_of_three_leaves_is_recovered():
    X = np.arange(300, dtype=np.float32).reshape(-1, 1)
    y = np.where(X[:, 0] < 100, 1.0, np.where(X[:, 0] < 250, 20.0, 300.0))
    grown, _ = build(X, y, np.ones(300), n_leaves=10)
    assert grown.tree.leaf_value.tolist() == [1.0, 20.0, 300.0]
    assert sorted(grown.tree.threshold) == [99.5, 249.5]


@pytest.mark.parametrize("gain", ["newton", "variance"])
def test_threads_do_not_change_a_bit(gain):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 40)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    g, h = rng.normal(size=30_000) * np.exp(3 * rng.normal(size=30_000)), rng.random(30_000)
    trees = [build(X, g, h, n_threads=n, n_leaves=50, min_docs_per_leaf=5, gain=gain) for n in (1, 2, 3)]
    for grown, leaf in trees[1:]:
        assert_array_equal(leaf, trees[0][1])
        for name in ("feature", "threshold", "leaf_value", "split_gain", "missing_left"):
            assert_array_equal(getattr(grown.tree, name), getattr(trees[0][0].tree, name))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_features_searched_side_by_side_split_as_alone(missing):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(n, size=3000) for n in (2, 300, 3, 40, 1, 255, 7, 90, 30, 2, 254)], 1).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    g, h = rng.normal(size=3000) + 0.1 * (np.nan_to_num(X) % 3).sum(1), rng.random(3000)
    rules = {"n_leaves": 2, "min_hessian": 0.5}
    alone = [build(X[:, [f]], g, h, **rules)[0].tree for f in range(X.shape[1])]
    gains = [tree.split_gain[0] if len(tree.feature) else 0.0 for tree in alone]
    for first in range(X.shape[1]):  # every feature is the best one of those that are left, one after the other
        rest = sorted(range(X.shape[1]), key=gains.__getitem__)[: X.shape[1] - first]
        tree = build(X[:, rest], g, h, **rules)[0].tree
        expected = alone[rest[-1]]
        assert_array_equal(tree.threshold, expected.threshold)
        assert_array_equal(tree.split_gain, expected.split_gain)
        assert_array_equal(tree.missing_left, expected.missing_left)


def test_without_a_least_hessian_the_same_splits_are_found():
    X, g, h = random_problem(3, n=300, n_features=10, n_values=30, missing=0.1)
    trees = [build(X, g, h, n_leaves=9, min_hessian=least)[0].tree for least in (0.0, 1e-9)]
    for name in ("feature", "threshold", "split_gain", "missing_left"):
        assert_array_equal(getattr(trees[0], name), getattr(trees[1], name))


def test_variance_gain_ignores_the_hessians():
    X, g, h = random_problem(3)
    by_variance, _ = build(X, g, h, n_leaves=2, gain="variance")
    by_count, _ = build(X, g, np.ones_like(h), n_leaves=2)
    assert by_variance.tree.threshold.tolist() == by_count.tree.threshold.tolist()
    assert_allclose(by_variance.tree.split_gain, by_count.tree.split_gain)


@pytest.mark.parametrize(("rule", "n_leaves"), [({"max_depth": 0}, 1), ({"max_depth": 2}, 4), ({"n_leaves": 1}, 1)])
def test_limits_hold(rule, n_leaves):
    X, g, h = random_problem(7, n=200, n_values=50)
    grown, _ = build(X, g, h, **rule)
    assert len(grown.tree.leaf_value) == n_leaves


@pytest.mark.parametrize(("min_docs", "at_least"), [(10, 10), (0.1, 20), (0.101, 21)])
def test_leaves_have_their_documents(min_docs, at_least):
    X, g, h = random_problem(7, n=200, n_values=50)
    _, leaf = build(X, g, h, min_docs_per_leaf=min_docs)
    counts = np.bincount(leaf)
    assert counts.min() >= at_least
    assert len(counts) > 2


def test_documents_of_a_leaf_are_counted_and_lightgbm_estimates_them():
    """LightGBM takes the share of hessians for that of documents; those without relevant ones beside them have none."""
    lightgbm = pytest.importorskip("lightgbm")
    data = rw.make_ranking(60, docs_per_query=20, n_features=5, seed=1)
    data = rw.Dataset(data.X, np.where(data.qid % 3 == 0, data.y, 0), qid=data.qid)
    params = {"objective": "lambdarank", "num_leaves": 16, "min_data_in_leaf": 20, "num_threads": 1, "verbosity": -1}
    booster = lightgbm.train(params, lightgbm.Dataset(data.X, data.y, group=np.diff(data.offsets), params=params), 1)
    theirs = np.bincount(booster.predict(data.X, pred_leaf=True).ravel().astype(int))
    assert theirs.min() < 20 < theirs.mean()
    ours = rw.LambdaMART(1, 16, min_docs_per_leaf=20).fit(data).ensemble_
    assert ours.leaf_cover.min() >= 20


def test_a_share_is_of_the_documents_that_a_tree_sees():
    X, g, h = random_problem(7, n=400, n_values=50)
    binned = BinnedDataset.make(rw.Dataset(X, np.zeros(400), group=[10] * 40))
    rules = TreeRules(GrowthRules(min_docs_per_leaf=0.1), Sampling(query_fraction=0.3))
    builder = TreeBuilder(binned, rules, constant_hessian=False, n_threads=1)
    for seed in range(5):
        _, leaf = builder.build(g, h, np.random.default_rng(seed))
        counts = np.bincount(leaf[rules.sampling.rows(binned.data.offsets, binned.share, np.random.default_rng(seed))])
        assert 0.1 * 120 <= counts.min() < 0.1 * 400


def test_the_leaves_of_asadi_and_lin():
    """70 leaves of 0.5 % of the documents each, from 30 % of the data: of all documents that would be 35 %."""
    data = rw.make_ranking(n_queries=200, docs_per_query=40, n_features=20, seed=1)
    ranker = rw.LambdaMART(2, 70, min_docs_per_leaf=0.005, query_fraction=0.3, gain="variance").fit(data)
    assert np.diff(ranker.ensemble_.leaf_offsets).tolist() == [70, 70]


def test_a_share_means_the_same_for_every_kind_of_tree():
    told_in = (GrowthRules, rw.LambdaMART, rw.RandomForest)
    said = [re.search(r"\n *min_docs_per_leaf : .*\n(.*)\n", kind.__doc__)[1].strip() for kind in told_in]
    assert said == ["Fewest documents of a leaf; below 1, a fraction of those that the tree sees."] * 3


def test_min_gain_stops_growth():
    X, g, h = random_problem(7, n=200, n_values=50)
    grown, _ = build(X, g, h, min_gain=5.0)
    assert grown.tree.split_gain.min() > 5.0
    assert len(build(X, g, h, min_gain=1e9)[0].tree.leaf_value) == 1


@pytest.mark.parametrize("value", [0.0, np.nan, 7.0])
def test_constant_features_are_never_split(value):
    X = np.full((20, 3), value, dtype=np.float32)
    grown, leaf = build(X, np.arange(20.0), np.ones(20))
    assert len(grown.tree.feature) == 0
    assert leaf.tolist() == [0] * 20


def test_zero_gradients_give_one_leaf_of_zero():
    X, _, h = random_problem(1)
    grown, _ = build(X, np.zeros(60), h)
    assert grown.tree.leaf_value.tolist() == [0.0]


def test_gradients_must_be_finite():
    X, g, h = random_problem(1)
    g[3] = np.inf
    with pytest.raises(ValueError, match="gradients must be finite"):
        build(X, g, h)


def test_leaves_of_other_data_follow_the_thresholds():
    X, g, h = random_problem(11, n=300, n_features=20, n_values=30, missing=0.1)
    data = rw.Dataset(X, np.zeros(300), group=[300])
    binned = BinnedDataset.make(data)
    builder = TreeBuilder(binned, TreeRules(GrowthRules(n_leaves=20)), constant_hessian=False, n_threads=1)
    grown, leaf = builder.build(g, h, np.random.default_rng(0))
    assert_array_equal(grown.leaves_of(binned), leaf)
    model = rw.Ensemble.from_trees([grown.tree], n_features=20)
    assert_array_equal(model.leaves(X)[:, 0], leaf)
    other = np.random.default_rng(1).normal(10, 20, size=(100, 20)).astype(np.float32)
    other[::7] = np.nan
    encoded = BinnedDataset.encode(rw.Dataset(other, np.zeros(100), group=[100]), binned.edges)
    assert_array_equal(grown.leaves_of(encoded, n_threads=2), model.leaves(other)[:, 0])


@pytest.mark.parametrize("n_leaves", [2, 40, 400])
def test_blocks_of_documents_reach_the_leaves_of_single_ones(n_leaves):
    X, g, h = random_problem(5, n=2000, n_features=20, n_values=90, missing=0.1)
    binned = BinnedDataset.make(rw.Dataset(X, np.zeros(2000), group=[2000]))
    builder = TreeBuilder(binned, TreeRules(GrowthRules(n_leaves=n_leaves)), constant_hessian=False, n_threads=1)
    grown, _ = builder.build(g, h, np.random.default_rng(0))
    assert len(grown.tree.leaf_value) == n_leaves
    n = 9000  # two whole blocks, and the beginning of one
    X, _, _ = random_problem(6, n=n, n_features=20, n_values=90, missing=0.1)
    expected = rw.Ensemble.from_trees([grown.tree], n_features=20).leaves(X)[:, 0]
    encoded = BinnedDataset.encode(rw.Dataset(X, np.zeros(n), group=[n]), binned.edges)
    for n_threads in (1, 2):
        assert_array_equal(grown.leaves_of(encoded, n_threads=n_threads), expected)


def test_samples_are_whole_queries_and_marked_features():
    rng = np.random.default_rng(0)
    sampling = Sampling(query_fraction=0.4, feature_fraction=0.3)
    offsets = np.array([0, 3, 3, 10, 20, 21])
    rows = sampling.rows(offsets, Share(ALONE, 0, 5, 21), rng)
    parts = [set(range(a, b)) for a, b in pairwise(offsets) if b > a]
    assert all(part <= set(rows.tolist()) or not part & set(rows.tolist()) for part in parts)
    assert sampling.features(10, rng).sum() == 3
    assert Sampling().rows(offsets, Share(ALONE, 0, 5, 21), rng) is None


def test_documents_are_drawn_by_number_whoever_holds_them():
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 30, 200))])
    whole = Share(ALONE, 0, 200, int(offsets[-1]))
    for fractions in ({"doc_fraction": 0.3}, {"doc_fraction": 0.3, "query_fraction": 0.5}):
        sampling = Sampling(**fractions)
        rows = sampling.rows(offsets, whole, np.random.default_rng(5))
        expected = np.prod(list(fractions.values())) * offsets[-1]
        assert abs(len(rows) - expected) < 0.15 * offsets[-1]
        others = sampling.rows(offsets, whole, np.random.default_rng(6))
        assert set(rows.tolist()) != set(others.tolist())
        parts = []
        for first, last in ((0, 60), (60, 60), (60, 200)):
            own = offsets[first : last + 1] - offsets[first]
            share = Share(ALONE, first, 200, int(offsets[-1]))
            parts.append(sampling.rows(own, share, np.random.default_rng(5)) + offsets[first])
        assert_array_equal(np.concatenate(parts), rows)
    seed = int(np.random.default_rng(5).integers(2**63))
    words = [splitmix64(splitmix64(seed, q), i) for q, (a, b) in enumerate(pairwise(offsets)) for i in range(b - a)]
    drawn = [row for row, word in enumerate(words) if word < 0.3 * 2**64]
    assert Sampling(doc_fraction=0.3).rows(offsets, whole, np.random.default_rng(5)).tolist() == drawn


def test_a_sample_without_documents_is_a_tree_without_splits():
    data = rw.Dataset([[0.0], [1.0]], [0.0, 1.0], group=[2])
    with pytest.warns(UserWarning, match="no tree has a split"):
        model = rw.MART(1, doc_fraction=1e-12, min_docs_per_leaf=1).fit(data)
    assert_array_equal(model.predict(data), 0.5)


def test_sampled_trees_score_every_document():
    X, g, h = random_problem(2, n=300, n_features=8, n_values=30)
    data = rw.Dataset(X, np.zeros(300), group=[30] * 10)
    binned = BinnedDataset.make(data)
    for per_split in (False, True):
        rules = TreeRules(GrowthRules(n_leaves=10), Sampling(0.5, 0.4, per_split))
        builder = TreeBuilder(binned, rules, constant_hessian=False, n_threads=1)
        grown, leaf = builder.build(g, h, np.random.default_rng(4))
        model = rw.Ensemble.from_trees([grown.tree], n_features=8)
        assert_array_equal(model.leaves(X)[:, 0], leaf)
        if not per_split:
            assert len(set(grown.tree.feature)) <= 3


def growing(gain, depth, first_child=None):
    return GrowingTree(gain=gain, depth=depth, first_child=first_child or {}, max_depth=max(depth))


def test_relaxation_prefers_a_leaf_that_does_not_deepen_the_tree():
    # Nodes 3 and 4 are the deepest (depth 2); node 2 (depth 1) gains less than node 3.
    tree = growing([9.0, 8.0, 6.0, 10.0, 1.0], [0, 1, 1, 2, 2], {0: 1, 1: 3})
    leaves = [2, 3, 4]
    assert choose_leaf(leaves, tree, 0.0) == 3
    assert choose_leaf(leaves, tree, 0.3) == 3  # 6 is not above 0.7 * 10
    assert choose_leaf(leaves, tree, 0.4) == 3  # nor strictly above 0.6 * 10
    assert choose_leaf(leaves, tree, 0.41) == 2
    assert choose_leaf(leaves, tree, 1.0) == 2


def test_relaxation_breaks_ties_by_gain_and_changes_nothing_where_depth_is_not_at_stake():
    tree = growing([9.0, 3.0, 4.0, 10.0, 1.0], [0, 1, 1, 2, 2], {0: 1})
    assert choose_leaf([1, 2, 3], tree, 0.9) == 2
    assert choose_leaf([1, 2], tree, 0.9) == 2
    assert choose_leaf([3, 4], tree, 0.9) == 3


@pytest.mark.parametrize("relaxation", [0.0, 0.4, 0.8, 0.95])
def test_relaxed_trees_have_as_many_leaves_and_are_no_deeper(relaxation):
    X, g, h = random_problem(13, n=2000, n_features=6, n_values=200)
    plain, _ = build(X, g, h, n_leaves=40)
    relaxed, _ = build(X, g, h, n_leaves=40, depth_relaxation=relaxation)
    assert len(relaxed.tree.leaf_value) == 40
    depth = [rw.Ensemble.from_trees([t.tree]).topology().max_depth for t in (plain, relaxed)]
    assert depth[1] <= depth[0]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"n_leaves": 0}, "n_leaves must lie between 1"),
        ({"max_depth": -1}, "max_depth must be at least 0"),
        ({"min_docs_per_leaf": 0}, "min_docs_per_leaf must be above 0"),
        ({"depth_relaxation": 1.5}, "depth_relaxation must lie between 0 and 1"),
        ({"gain": "gini"}, "gain must be 'newton' or 'variance'"),
        ({"l2": -1}, "l2 must be a number of at least 0"),
        ({"min_hessian": np.nan}, "min_hessian must be a number"),
    ],
)
def test_rules_are_checked(rules, message):
    with pytest.raises(RankwoodError, match=message):
        GrowthRules(**rules)


@pytest.mark.parametrize("n_docs", [2**12, 2**16, 2**20, 2**25, 2**30])
def test_the_unit_does_not_grow_with_the_data(n_docs):
    """Masses as a group of processes would add them up: a billion documents are as finely resolved as a million."""
    bins = np.zeros((1, 64, 16), np.uint8), np.ones(1, np.int32), np.zeros(1, np.uint8)
    grower = _native.TreeGrower(*bins, 1)
    g, h = np.full(64, 0.1), np.full(64, 0.02)
    extremes = grower.take_rows(g, h, None)
    masses = [n_docs // 64 * mass for mass in grower.weigh(g, h, extremes)]
    grower.open(g, h, extremes, masses, np.ones(1, np.uint8), 0.0, 0.0, 0.0, 1, False)
    steps = np.array([0.1, 0.02]) / grower.units
    assert np.all(steps >= 2**14)  # of a document of mean size
    assert np.all(steps * min(n_docs, 2**16) < 2**32)  # packed sums have room for some 2^16 documents


@pytest.mark.parametrize("spread", [0, 3, 20])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_sums_are_exact_however_large_the_node(spread, n_threads):
    """More documents than a packed sum has room for, and some that leave no room for others."""
    rng = np.random.default_rng(spread)
    n = 150_000
    X = rng.integers(5, size=(n, 18)).astype(np.float32)
    g, h = rng.normal(size=n) * np.exp(spread * rng.random(n)), rng.random(n) * np.exp(spread * rng.random(n))
    g[rng.choice(n, 40)] *= 1e6
    grown, leaf = build(X, g, h, n_threads=n_threads, n_leaves=12)
    for number in range(len(grown.tree.leaf_value)):
        inside = leaf == number
        expected = math.fsum(g[inside]) / math.fsum(h[inside])
        step = np.abs(g).max() * 2.0**-60  # every document is rounded to it
        assert_allclose(grown.tree.leaf_value[number], expected, 1e-12, inside.sum() * step / h[inside].sum())
        assert grown.tree.leaf_cover[number] == inside.sum()
    root = X[:, grown.tree.feature[0]] <= grown.tree.threshold[0]
    parts = [(math.fsum(g[side]), math.fsum(h[side])) for side in (root, ~root, root | ~root)]
    gains = [a * a / b for a, b in parts]
    assert_allclose(grown.tree.split_gain[0], gains[0] + gains[1] - gains[2], rtol=1e-3, atol=1e-4 * gains[2])
