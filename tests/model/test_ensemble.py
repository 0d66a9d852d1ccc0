"""The model object: what a tree means, what is refused, and how models are cut and joined."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import ensemble as oracle
from rankwood import Ensemble, ModelError, Tree
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pytestmark = pytest.mark.native

# Leaf values 1 to 3, 10 to 30, 100 to 200: a score names the leaves. The trees look at features 0 and 1.
NAMED = [(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, (0, 9.0, 20.0, 30.0)), (0, 0.5, 100.0, 200.0)]

ARRAYS = {
    "feature": [0, 1, 0],
    "threshold": [0.5, 2.0, 1.5],
    "left": [-1, -2, -1],
    "right": [1, -3, -2],
    "missing_left": [False, True, False],
    "leaf_value": [1.0, 2.0, 3.0, 10.0, 20.0],
    "node_offsets": [0, 2, 3],
    "tree_weights": [1.0, 1.0],
    "n_features": 2,
}


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


# What a tree means


def test_a_score_names_its_leaves():
    model = Ensemble.from_trees(NAMED, base=5000.0)
    X = [[0.5, 2.0], [0.5, -1.0], [0.6, 2.0], [9.5, 2.1]]
    assert model.score(X).tolist() == [5121.0, 5111.0, 5222.0, 5233.0]
    assert model.leaves(X).tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 1], [2, 2, 1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.1, -3.0, 1e-45, 1e-310, 16777217.0, 1e300])
def test_on_the_threshold_goes_left_and_a_step_above_goes_right(dtype, threshold):
    model = Ensemble.from_trees([(0, threshold, 1.0, 2.0)])
    with np.errstate(all="ignore"):
        below = np.asarray(threshold).astype(dtype)
        if float(below) > threshold:  # rounded up: the largest value that is not above comes just before
            below = np.nextafter(below, dtype(-np.inf))
        above = np.nextafter(below, dtype(np.inf))
    assert float(below) <= threshold < float(above)
    assert model.score(np.array([[below], [above]])).tolist() == [1.0, 2.0]


def test_infinite_thresholds_and_values():
    model = Ensemble.from_trees([(0, np.inf, 1.0, 2.0, True), (0, -np.inf, 10.0, 20.0, False), (0, 0.0, 100.0, 200.0)])
    assert model.score([[np.inf], [-np.inf], [0.0], [-0.0], [np.nan]]).tolist() == [221, 111, 121, 121, 221]


def test_a_missing_value_goes_where_its_split_says():
    model = Ensemble.from_trees([(0, 0.0, 1.0, 2.0, True), (0, 0.0, 10.0, 20.0, False)])
    for dtype in (np.float32, np.float64):
        assert model.score(np.array([[np.nan], [-np.nan]], dtype=dtype)).tolist() == [21.0, 21.0]


def test_weights_and_base_add_up_from_left_to_right():
    model = Ensemble.from_trees([1.0, 1e-17, 1e-17], base=-1.0, tree_weights=[1.0, 1.0, -1.0])
    assert model.score(np.zeros((1, 0))).tolist() == [0.0]
    model = Ensemble.from_trees([1e16, 1.0, -1e16], n_features=3)
    assert model.score(np.zeros((2, 3))).tolist() == [0.0, 0.0]  # 1e16 + 1 is 1e16


def test_a_model_without_trees_scores_its_base():
    model = Ensemble.from_trees([], n_features=3, base=2.5)
    assert len(model) == 0
    assert model
    assert model.score(np.zeros((4, 3))).tolist() == [2.5] * 4
    assert model.leaves(np.zeros((4, 3))).shape == (4, 0)


@given(data=st.data())
@settings(max_examples=100)
def test_leaves_and_scores_are_the_oracles_bit_for_bit(data):
    model = data.draw(ensembles())
    X = data.draw(rows_near_thresholds(model))
    assert_array_equal(model.leaves(X), oracle.leaves(model, X))
    expected = bits(oracle.score(model, X))
    for n_threads in (1, 3):
        assert_array_equal(bits(model.score(X, n_threads=n_threads)), expected)
    assert_array_equal(bits(model.score(X.astype(np.float64))), expected)  # float32 is compared as it is


@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 9, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_rows(n_rows, dtype):
    model = big_ensemble(1, n_trees=7, n_leaves=31)
    X = np.random.default_rng(n_rows).normal(size=(n_rows, 8)).round(2).astype(dtype)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    leaves = model.leaves(X)
    assert leaves.shape == (n_rows, 7)
    assert_array_equal(leaves, oracle.leaves(model, X))
    assert_array_equal(bits(model.score(X)), bits(oracle.score(model, X)))


@pytest.mark.parametrize(("n_leaves", "dtype"), [(256, "uint8"), (257, "uint16"), (65536, "uint16"), (65537, "uint32")])
def test_leaf_numbers_have_the_smallest_type_that_fits(n_leaves, dtype):
    model = big_ensemble(2, n_trees=1, n_leaves=n_leaves, shape="full", decimals=9)
    X = np.random.default_rng(0).normal(size=(20, 8))
    leaves = model.leaves(X)
    assert leaves.dtype == dtype
    assert_array_equal(leaves, oracle.leaves(model, X))


@pytest.mark.parametrize("way", ["left", "right"])
def test_a_chain_of_thousands_of_nodes(way):
    nested = -1.0
    for i in range(3000):
        nested = (0, float(i), nested, float(i)) if way == "left" else (0, -float(i), float(i), nested)
    model = Ensemble.from_trees([nested])
    assert model.topology().max_depth == 3000
    X = np.array([[-9999.0], [9999.0], [1500.5], [-1500.5], [np.nan]] * 9)
    assert_array_equal(model.score(X), oracle.score(model, X))


def test_scores_do_not_depend_on_threads_or_memory_order():
    model = big_ensemble(3, n_trees=40, n_leaves=100)
    X = np.random.default_rng(0).normal(size=(1001, 8)).astype(np.float32)
    expected = bits(model.score(X))
    padded = np.zeros((2002, 20), dtype=np.float32)
    padded[::2, 1:17:2] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    for same in (np.asfortranarray(X), padded[::2, 1:17:2], X[::-1][::-1], X[:, ::-1][:, ::-1], read_only):
        for n_threads in (1, 2, 5, None):
            assert_array_equal(bits(model.score(same, n_threads=n_threads)), expected)
    assert_array_equal(bits(model.score(X[::-1]))[::-1], expected)
    assert_array_equal(bits(model.score(X[:, ::-1].copy()[:, ::-1])), expected)
    assert_array_equal(model.leaves(X, n_threads=1), model.leaves(np.asfortranarray(X), n_threads=3))


def test_many_threads_may_use_one_model():
    model, X = big_ensemble(4, n_trees=20, n_leaves=50), np.random.default_rng(0).normal(size=(300, 8))
    expected = model.select(range(20)).score(X)  # `model` itself is not prepared yet
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: model.score(X, n_threads=2), range(32)):
            assert_array_equal(scores, expected)


def test_the_tools_agree_on_a_lightgbm_model():
    # Raw scores of LightGBM are double sums over its trees in order, and NaN was seen in training: nothing is open.
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1.0, X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    options = {"num_leaves": 15, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 2}
    booster = lightgbm.train(options, lightgbm.Dataset(X, y), 30)

    def nested(node):
        if "leaf_value" in node:
            return node["leaf_value"]
        assert node["missing_type"] == "NaN"
        children = nested(node["left_child"]), nested(node["right_child"])
        return node["split_feature"], node["threshold"], *children, node["default_left"]

    model = Ensemble.from_trees([nested(t["tree_structure"]) for t in booster.dump_model()["tree_info"]], n_features=5)
    probe = np.concatenate([X, rng.normal(size=(200, 5)).astype(np.float32)])
    assert_array_equal(bits(model.score(probe)), bits(booster.predict(probe, raw_score=True)))


def test_an_unknown_engine_is_named_with_the_known_ones():
    model = Ensemble.from_trees(NAMED)
    assert model.score([[0.0, 0.0]], engine="reference") == model.score([[0.0, 0.0]], engine="auto")
    with pytest.raises(rw.RankwoodError, match="no engine 'quick'; choose one of: auto, reference"):
        model.score([[0.0, 0.0]], engine="quick")
    with pytest.raises(rw.RankwoodError, match="n_threads must be at least 1"):
        model.score([[0.0, 0.0]], n_threads=0)


# What is refused


@given(data=st.data(), n_nodes=st.integers(0, 5))
@settings(max_examples=300)
def test_children_are_accepted_just_when_they_make_a_tree(data, n_nodes):
    child = st.integers(-n_nodes - 2, n_nodes)
    order = data.draw(st.permutations([*range(1, n_nodes), *range(-n_nodes - 1, 0)]))  # often a tree
    left, right = list(order[:n_nodes]), list(order[n_nodes : 2 * n_nodes])
    if n_nodes and data.draw(st.booleans()):
        left[data.draw(st.integers(0, n_nodes - 1))] = data.draw(child)
    arrays = {
        "feature": [0] * n_nodes,
        "threshold": [0.0] * n_nodes,
        "left": left,
        "right": right,
        "leaf_value": [0.0] * (n_nodes + 1),
    }
    if oracle.is_tree(left, right):
        depth = Ensemble.from_trees([Tree(**arrays)], n_features=1).topology().depths[0]
        assert depth == oracle.depth_of(left, right)
    else:
        with pytest.raises(ModelError, match=r"^tree 0, node \d: "):
            Ensemble.from_trees([Tree(**arrays)], n_features=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature": [0, 2, 0]}, "tree 0, node 1: there is no feature 2, the model has 2 features"),
        ({"feature": [0, 1, -1]}, "tree 1, node 0: there is no feature -1"),
        ({"feature": [0, 1]}, "one entry per inner node"),
        ({"feature": [0, 1, 2**40]}, "feature holds numbers too large for int32"),
        ({"feature": [0.0, 1.0, 0.0]}, "feature must hold int32 values, got float64"),
        ({"feature": [[0, 1, 0]]}, "feature must have one dimension"),
        ({"threshold": [0.5, np.nan, 1.0]}, "tree 0, node 1: the threshold is NaN"),
        ({"threshold": ["a", "b", "c"]}, "threshold must hold float64 values"),
        ({"threshold": [1.0, [2.0], 3.0]}, "threshold must be a list of numbers"),
        ({"left": [-1, 7, -1]}, "tree 0, node 1: node 7 does not exist in a tree of 2 inner nodes"),
        ({"left": [-4, -2, -1]}, "tree 0, node 0: leaf 3 does not exist"),
        ({"left": [-(2**31), -2, -1]}, "tree 0, node 0: leaf 2147483647 does not exist"),
        ({"left": [-1, 0, -1]}, "tree 0, node 1: node 0 is its child but already has another place"),
        ({"left": [-2, -2, -1]}, "tree 0, node 1: leaf 1 is its child but already has another place"),
        ({"right": [-2, -3, -2]}, "tree 0, node 1: no path from the root leads there"),
        ({"missing_left": [0, 1, 2]}, "missing_left must hold bool values, got int64"),
        ({"missing_left": None}, "missing_left must have one dimension"),
        ({"leaf_value": [1.0, 2.0, np.inf, 3.0, 4.0]}, "tree 0, leaf 2: the value is not a finite number"),
        ({"leaf_value": [1.0, 2.0, 3.0, 4.0]}, "leaf_value has 4 entries but 2 trees with 3 inner nodes have 5 leaves"),
        ({"node_offsets": [0, 3, 2]}, "node_offsets of tree 1 go from 3 to 2"),
        ({"node_offsets": [1, 2, 3]}, "node_offsets must start with 0, not 1"),
        ({"node_offsets": [0, 2, 4]}, "node_offsets end with 4 but there are 3 nodes"),
        ({"node_offsets": [0, 2**62, 3]}, "node_offsets of tree 0 go from 0"),
        ({"node_offsets": [0, -(2**62), 3]}, "node_offsets of tree 0 go from 0"),
        ({"node_offsets": []}, "node_offsets must have one entry per tree and one more"),
        ({"tree_weights": [1.0]}, "tree_weights must have one entry per tree"),
        ({"tree_weights": [1.0, np.nan]}, "the weight of tree 1 is not a finite number"),
        ({"tree_weights": [1e308, 1e308]}, "a score could overflow"),
        ({"base": np.inf}, "base must be a finite number"),
        ({"base": "much"}, "base must be a finite number, got 'much'"),
        ({"base": "1.5"}, "base must be a finite number, got '1.5'"),
        ({"n_features": 1}, "there is no feature 1, the model has 1 features"),
        ({"n_features": -1}, "n_features must lie between 0 and"),
        ({"n_features": 2.0}, "n_features must be a whole number"),
        ({"feature_names": ["a"]}, r"feature_names must have one name per feature \(2\), got 1"),
        ({"feature_names": ["a", "a"]}, "two features have the name 'a'"),
        ({"feature_names": "ab"}, "feature_names must be strings"),
        ({"feature_names": [1, 2]}, "feature_names must be strings"),
        ({"metadata": {"x": object()}}, "metadata must be what JSON can hold: object is not a JSON value"),
        ({"metadata": [1]}, "metadata must be a dict, got list"),
        ({"metadata": {"x": np.nan}}, "metadata must be what JSON can hold"),
        ({"split_gain": [1.0]}, r"split_gain must have one entry per inner node \(3\), got 1"),
        ({"split_gain": [1.0, np.nan, 1.0]}, "split_gain of node 1 is nan"),
        ({"node_count": [1, -1, 1]}, "node_count of node 1 is -1"),
        ({"leaf_cover": [1.0, 2.0, 3.0]}, r"leaf_cover must have one entry per leaf \(5\), got 3"),
        ({"leaf_cover": [1.0, 2.0, 3.0, -4.0, 5.0]}, r"leaf_cover of leaf 3 is -4\.0"),
        ({"leaf_cover": [1.0, 2.0, np.inf, 4.0, 5.0]}, "leaf_cover of leaf 2 is inf"),
    ],
)
def test_a_wrong_array_is_refused_in_one_sentence(changes, message):
    Ensemble(**ARRAYS)
    with pytest.raises(ModelError, match=message) as failure:
        Ensemble(**(ARRAYS | changes))
    assert "\n" not in str(failure.value)


def test_a_cycle_beside_the_root_is_refused():
    # Nodes 1 and 2 are each other's children: everything has one parent, yet the root does not lead there.
    with pytest.raises(ModelError, match="tree 0, node 1: no path from the root"):
        Ensemble.from_trees([Tree([0] * 3, [0.0] * 3, [-1, 2, 1], [-2, -3, -4], leaf_value=[0.0] * 4)])


def test_trees_are_checked_one_by_one():
    with pytest.raises(ModelError, match="a tree of 1 inner nodes needs 2 leaf_value entries, got 3"):
        Tree([0], [0.0], [-1], [-2], leaf_value=[1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="a tree of 1 inner nodes needs 1 split_gain entries, got 2"):
        Tree([0], [0.0], [-1], [-2], leaf_value=[1.0, 2.0], split_gain=[1.0, 2.0])
    with pytest.raises(ModelError, match=r"a node must be \(feature, threshold, left, right"):
        Ensemble.from_trees([(0, 1.0, 2.0)])
    with pytest.raises(ModelError, match="leaf_value must hold float64 values"):
        Ensemble.from_trees([(0, 1.0, "yes", "no")])


# A model does not change


def test_arrays_are_read_only_copies():
    feature = np.array(ARRAYS["feature"], dtype=np.int32)
    model = Ensemble(**(ARRAYS | {"feature": feature}))
    before = model.fingerprint()
    feature[:] = 99
    assert model.fingerprint() == before
    for name in ("feature", "threshold", "left", "right", "missing_left", "leaf_value", "node_offsets", "tree_weights"):
        for some in (model, model.select([1]), model.reweigh([1.0, 2.0]), model.concat(model)):
            with pytest.raises(ValueError, match="read-only"):
                getattr(some, name)[0] = 0
    with pytest.raises(AttributeError, match="does not change"):
        model.base = 1.0
    with pytest.raises(AttributeError, match="does not change"):
        del model.base
    metadata = model.metadata
    metadata["learner"] = "mine"
    assert model.metadata == {}


def test_arrays_made_writable_by_force_cannot_lead_out_of_bounds():
    model = Ensemble(**ARRAYS)
    model.left.flags.writeable = True
    model.left[0] = 10**6
    with pytest.raises(ValueError, match="does not exist"):
        model.score([[0.0, 0.0]])


@given(model=ensembles())
@settings(max_examples=30)
def test_copies_and_pickles_are_equal(model):
    model = model.with_metadata(learner="x", seed=np.int64(3))
    model.leaves(np.zeros((1, model.n_features)))  # prepared
    for same in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert same == model
        assert hash(same) == hash(model)
        assert same.metadata == {"learner": "x", "seed": 3}
        assert not same.leaf_value.flags.writeable
        assert_array_equal(same.topology().depths, model.topology().depths)


def test_equal_means_equal_scores():
    model = Ensemble(**ARRAYS)
    assert model == Ensemble(**ARRAYS).with_metadata(seed=1)
    assert model != Ensemble(**ARRAYS, base=1.0)
    assert model != "model"
    changed = {"threshold": [0.5, 2.0, 1.25], "left": [-3, -2, -1], "right": [1, -1, -2], "n_features": 3,
               "missing_left": [True, True, False], "leaf_value": [1.0, 2.0, 3.0, 10.0, 21.0]}  # fmt: skip
    for name in ("threshold", "missing_left", "leaf_value", "n_features"):
        assert model != Ensemble(**(ARRAYS | {name: changed[name]}))
    assert model != Ensemble(**(ARRAYS | {"left": changed["left"], "right": changed["right"]}))
    assert model != model.reweigh([1.0, 2.0])
    assert Ensemble.from_trees([1.0, 2.0]) != Ensemble.from_trees([2.0, 1.0])
    assert len({model, Ensemble(**ARRAYS), model.reweigh([1.0, 2.0])}) == 2


def test_the_fingerprint_is_the_same_everywhere():
    known = "9cf7881c89d04b18cc10bebef89f9cc00de748c7696568a7130564b8002dfb39"
    assert Ensemble(**ARRAYS).fingerprint() == known


def test_a_short_repr():
    assert repr(Ensemble.from_trees(NAMED)) == "Ensemble(3 trees, 8 leaves, 2 features)"


# Models from models


def facts():
    return {"split_gain": [3.0, 1.0, 5.0], "node_count": [10, 6, 10], "leaf_cover": [4.0, 1.5, 4.5, 7.0, 3.0]}


@given(data=st.data())
@settings(max_examples=40)
def test_select_reweigh_and_concat_do_what_the_scores_say(data):
    model = data.draw(ensembles(max_trees=5))
    X = data.draw(rows_near_thresholds(model, max_rows=40))
    chosen = data.draw(st.lists(st.integers(0, model.n_trees - 1), unique=True))
    part = model.select(chosen)
    assert_array_equal(part.leaves(X), model.leaves(X)[:, chosen])
    assert_array_equal(bits(part.score(X)), bits(oracle.score(part, X)))
    assert_array_equal(part.tree_weights, model.tree_weights[chosen])
    assert part.base == model.base
    heavier = model.reweigh(model.tree_weights * 2)
    assert_array_equal(bits(heavier.score(X)), bits(oracle.score(heavier, X)))
    both = model.concat(part, heavier)
    assert_array_equal(both.leaves(X), np.hstack([model.leaves(X), part.leaves(X), heavier.leaves(X)]))
    assert_array_equal(bits(both.score(X)), bits(oracle.score(both, X)))
    depths = [m.topology().depths for m in (model, part, heavier)]
    assert_array_equal(both.topology().depths, np.concatenate(depths))
    rebuilt = [both.tree(t) for t in range(both.n_trees)]
    again = Ensemble.from_trees(rebuilt, tree_weights=both.tree_weights, base=both.base, n_features=model.n_features)
    assert again == both
    assert_array_equal(again.topology().depths, both.topology().depths)


def test_select_takes_numbers_or_a_mask_in_the_order_given():
    model = Ensemble.from_trees(NAMED)
    X = [[0.6, 2.0]]
    assert model.select([2, 0]).leaves(X).tolist() == [[1, 1]]
    assert model.select([2, 0]).score(X) == 202.0
    assert model.select([-1]) == model.select(np.array([False, False, True]))
    assert model.select(range(3)) == model
    assert model.select([]).score(X) == 0.0
    for wrong, message in [
        ([0, 0], "tree 0 is chosen twice"),
        ([0, 1, -2], "tree 1 is chosen twice"),
        ([3], "trees must lie between 0 and 2, got 3 to 3"),
        ([-4], "trees must lie between 0 and 2"),
        ([True], "a mask of trees must have 3 entries"),
        ([0.5], "trees must be whole numbers or a boolean mask"),
    ]:
        with pytest.raises(ModelError, match=message):
            model.select(wrong)


def test_what_training_knew_goes_along():
    model = Ensemble(**ARRAYS, **facts())
    assert model.select([1]).split_gain.tolist() == [5.0]
    assert model.select([1, 0]).node_count.tolist() == [10, 10, 6]
    assert model.concat(model).split_gain.tolist() == [3.0, 1.0, 5.0] * 2
    assert model.concat(Ensemble(**ARRAYS)).split_gain is None
    assert model.reweigh([0.5, 0.5]).node_count.tolist() == [10, 6, 10]
    assert model.tree(0).split_gain.tolist() == [3.0, 1.0]
    assert Ensemble.from_trees([model.tree(0), model.tree(1)]).split_gain.tolist() == [3.0, 1.0, 5.0]
    assert pickle.loads(pickle.dumps(model)).split_gain.tolist() == [3.0, 1.0, 5.0]
    assert model.select([1, 0]).leaf_cover.tolist() == [7.0, 3.0, 4.0, 1.5, 4.5]
    assert model.concat(model).leaf_cover.tolist() == [4.0, 1.5, 4.5, 7.0, 3.0] * 2
    assert model.concat(Ensemble(**ARRAYS)).leaf_cover is None
    assert model.reweigh([0.5, 0.5]).leaf_cover is model.leaf_cover
    assert model.tree(1).leaf_cover.tolist() == [7.0, 3.0]
    assert Ensemble.from_trees([model.tree(1), model.tree(0)]).leaf_cover.tolist() == [7.0, 3.0, 4.0, 1.5, 4.5]
    for again in (pickle.loads(pickle.dumps(model)), model.replace(leaf_value=-model.leaf_value)):
        assert again.leaf_cover.tolist() == model.leaf_cover.tolist()
    assert model == Ensemble(**ARRAYS)  # what training knew does not decide the scores


def test_reweighing_shares_the_trees():
    model = Ensemble.from_trees(NAMED)
    other = model.reweigh([1, 0, -1])
    assert other.threshold is model.threshold
    assert other.score([[0.5, 2.0]]) == 1.0 - 100.0
    with pytest.raises(ModelError, match=r"weights must have one entry per tree \(3\), got 2"):
        model.reweigh([1.0, 2.0])
    with pytest.raises(ModelError, match="the weight of tree 1 is not a finite number"):
        model.reweigh([1.0, np.inf, 1.0])


def test_concat_adds_bases_and_needs_the_same_features():
    a = Ensemble.from_trees([1.0], base=10.0, feature_names=["x", "y"], metadata={"name": "a"})
    b = Ensemble.from_trees([(2, 0.0, 2.0, 3.0)], base=20.0)
    both = a.concat(b)
    assert (both.base, both.n_features, both.feature_names, both.metadata) == (30.0, 3, None, {"name": "a"})
    assert both.score([[0.0, 0.0, 0.0]]) == 33.0
    assert a.concat() == a
    assert a.concat(Ensemble.from_trees([1.0], n_features=2)).feature_names == ("x", "y")
    with pytest.raises(ModelError, match="name their features differently"):
        a.concat(Ensemble.from_trees([1.0], feature_names=["y", "x"]))
    huge = Ensemble.from_trees([1e308])
    with pytest.raises(ModelError, match="could overflow"):
        huge.concat(huge)


def test_from_trees_counts_the_features_it_needs():
    assert Ensemble.from_trees([(4, 0.0, 1.0, 2.0), 3.0]).n_features == 5
    assert Ensemble.from_trees([3.0]).n_features == 0
    assert Ensemble.from_trees([(0, 0.0, 1.0, 2.0)], feature_names=["a", "b"]).n_features == 2
    mixed = [Tree([0], [0.0], [-1], [-2], leaf_value=[1.0, 2.0]), (0, 0.0, 10.0, 20.0, True)]
    assert Ensemble.from_trees(mixed).missing_left.tolist() == [False, True]


def test_a_tree_that_is_not_there():
    model = Ensemble.from_trees(NAMED)
    assert model.tree(-1).leaf_value.tolist() == [100.0, 200.0]
    for number in (3, -4):
        with pytest.raises(ModelError, match=f"there is no tree {number}: the model has 3"):
            model.tree(number)


def test_metadata_is_what_json_can_hold():
    model = Ensemble.from_trees([1.0], metadata={"seed": np.int64(7), "rate": np.float32(0.5), "grid": (1, 2)})
    assert model.metadata == {"seed": 7, "rate": 0.5, "grid": [1, 2]}
    assert model.with_metadata(seed=8, learner="forest").metadata["seed"] == 8
    assert model.metadata["seed"] == 7
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ModelError, match="metadata must be what JSON can hold"):
        model.with_metadata(deep=deep)


@pytest.mark.parametrize("other", [5, None, [1.0]])
def test_only_models_are_joined(other):
    with pytest.raises(ModelError, match=f"got {type(other).__name__}"):
        Ensemble(**ARRAYS).concat(other)


def test_replacing_arguments_makes_a_checked_model():
    model = Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], metadata={"a": 1})
    other = model.replace(base=3.0, missing_left=[True])
    assert other.score([[0.0], [np.nan]]).tolist() == [4.0, 4.0]
    assert (model.base, other.metadata) == (0.0, {"a": 1})
    with pytest.raises(ModelError):
        model.replace(threshold=[np.nan])
