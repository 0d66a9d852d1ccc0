"""Constraints of a model: leaf values moved to keep directions equal those of a slow twin; notes come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import constraints as oracle
from rankwood.model.constraints import Constraints, path_outside
from strategies.ensembles import big_ensemble

pytestmark = pytest.mark.native


def random_model(seed, n_features=3):
    model = big_ensemble(seed, n_trees=3, n_leaves=9)
    return model.replace(
        feature=model.feature % n_features,
        tree_weights=np.abs(model.tree_weights),
        leaf_value=model.leaf_value.round(1),
    )


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), directions=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3))
def test_leaf_values_are_moved_as_by_the_slow_twin(seed, directions):
    model, rng = random_model(seed), np.random.default_rng(seed)
    constraints = Constraints(monotone=tuple((f, d) for f, d in enumerate(directions) if d))
    projection = constraints.projection(model.trees, model.n_features)
    if projection is None:
        assert not any(directions)
        return
    weights = rng.integers(0, 4, size=model.n_leaves).astype(float) + 0.5
    moved = projection(model.leaf_value, weights)
    padded = [*directions, *[0] * (model.n_features - 3)]
    for number in range(model.n_trees):
        leaves = model.trees.leaves_of(number)
        expected = oracle.project(model.tree(number), model.leaf_value[leaves], weights[leaves], padded)
        assert_allclose(moved[leaves], expected, atol=1e-9)
    assert_array_equal(projection(moved, weights), moved)  # what keeps to them stays as it is
    rows = rng.normal(size=(4, model.n_features))
    assert oracle.is_monotone(model.replace(leaf_value=moved), rows, padded)


def test_weights_of_0_are_parted_in_the_middle():
    model = rw.Ensemble.from_trees([(0, 0.5, 3.0, 1.0)])
    projection = Constraints(monotone=((0, 1),)).projection(model.trees, 1)
    assert projection(model.leaf_value, np.zeros(2)).tolist() == [2.0, 2.0]
    assert projection(model.leaf_value, np.array([3.0, 1.0])).tolist() == [2.5, 2.5]


def test_trees_of_negative_weight_go_the_other_way():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 3.0), (0, 1.5, 1.0, 3.0)], tree_weights=[1.0, -1.0])
    assert Constraints(monotone=((0, 1),)).projected(model).leaf_value.tolist() == [1.0, 3.0, 2.0, 2.0]


def test_sets_of_a_feature_with_a_direction_are_refused():
    trees = rw.Ensemble.from_trees([(0, 0.5, 1.0, 3.0)]).trees
    sets = trees.replace(set_offsets=np.array([0, 1]), set_thresholds=np.array([1.5]))
    model = rw.Ensemble.of(sets, n_features=1)
    with pytest.raises(rw.ModelError, match="feature 0 has a monotone constraint and splits on sets"):
        Constraints(monotone=((0, 1),)).projected(model)


def test_notes_come_back(tmp_path):
    constraints = Constraints(monotone=((0, 1), (2, -1)), groups=((0, 1), (2,)), max_features=3, costs=((1, 2.0),))
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 3.0)], n_features=3, metadata=constraints.notes())
    model.save(tmp_path / "model.rw")
    found = Constraints.of(rw.load_model(tmp_path / "model.rw"))
    assert found == Constraints(constraints.monotone, constraints.groups, constraints.max_features)
    assert Constraints.of(model.concat(model)) == found
    assert Constraints.of(model.concat(model.replace(metadata={}))) == Constraints()
    assert Constraints().notes() == {}


def test_paths_are_checked_against_groups():
    model = rw.Ensemble.from_trees([(0, 0.5, (1, 0.5, 1.0, 2.0), (2, 0.5, 1.0, (0, 0.8, 2.0, 3.0)))])
    assert path_outside(model.tree(0), [(0, 1), (0, 2)]) is None
    assert path_outside(model.tree(0), [(0, 1), (2,)]) == [0, 2]
    with pytest.raises(rw.ModelError, match="features 0, 2 on one path"):
        Constraints(groups=((0, 1), (2,))).check(model, "the model")
    with pytest.raises(rw.ModelError, match="uses 3 features, and max_features_used is 2"):
        Constraints(max_features=2).check(model, "the model")
