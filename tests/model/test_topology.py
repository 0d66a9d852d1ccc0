"""Size and shape of ensembles."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

from oracles import ensemble as oracle
from rankwood import Ensemble
from strategies.ensembles import big_ensemble, ensembles

pytestmark = pytest.mark.native

#      0:0.5            1:0.0       7.0
#     1     1:2.0     10   1:0.0
#          2    3        20   0:0.5
#                            30   40
THREE = [(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, (1, -0.0, 20.0, (0, 0.5, 30.0, 40.0))), 7.0]


def test_a_known_shape():
    topology = Ensemble.from_trees(THREE, n_features=3).topology()
    assert topology.depths.tolist() == [2, 3, 0]
    assert topology.nodes.tolist() == [2, 3, 0]
    assert topology.leaves.tolist() == [3, 4, 1]
    assert topology.as_dict() == {
        "n_trees": 3,
        "n_leaves": 8,
        "n_nodes": 5,
        "mean_depth": 5 / 3,
        "max_depth": 3,
        "path_length": 5,
        "mean_leaves": 8 / 3,
        "max_leaves": 4,
        "n_features": 3,
        "n_features_used": 2,
        "n_thresholds": 3,  # 0.5 on feature 0; 2.0 and 0.0 on feature 1: -0.0 is no other threshold
        "n_sets": 0,
        "n_bytes": 5 * (4 + 8 + 4 + 4 + 1) + 8 * 8 + 4 * 8 + 3 * 8 + 3 * 4,
        "splits_per_feature": [2, 3, 0],
        "thresholds_per_feature": [1, 2, 0],
        "gain_per_feature": None,
    }


def test_gains_add_up_per_feature():
    model = Ensemble(
        feature=[0, 2, 0], threshold=[0.0] * 3, left=[-1, -2, -1], right=[1, -3, -2], missing_left=[False] * 3,
        leaf_value=[0.0] * 5, node_offsets=[0, 2, 3], tree_weights=[1.0, 1.0], n_features=3, split_gain=[3.0, 1.0, 5.0],
    )  # fmt: skip
    assert model.topology().gain_per_feature.tolist() == [8.0, 0.0, 1.0]


def test_no_trees():
    facts = Ensemble.from_trees([], n_features=2).topology().as_dict()
    assert facts["mean_depth"] == facts["mean_leaves"] == facts["max_depth"] == facts["n_nodes"] == 0
    assert facts["splits_per_feature"] == [0, 0]


@given(model=ensembles())
@settings(max_examples=40)
def test_what_the_summary_says_is_what_the_trees_are(model):
    topology = model.topology()
    trees = [model.tree(t) for t in range(model.n_trees)]
    assert topology.depths.tolist() == [oracle.depth_of(tree.left, tree.right) for tree in trees]
    assert topology.path_length == pytest.approx(topology.mean_depth * topology.n_trees)
    of_node = [oracle.thresholds_of(model, node) for node in range(model.n_nodes)]
    assert topology.n_sets == sum(len(thresholds) > 1 for thresholds in of_node)
    for f in range(model.n_features):
        nodes = np.flatnonzero(model.feature == f)
        thresholds = [threshold for node in nodes for threshold in of_node[node]]
        assert topology.splits_per_feature[f] == len(nodes)
        assert topology.thresholds_per_feature[f] == len(set(thresholds))
    json.dumps(topology.as_dict())


@pytest.mark.parametrize(("shape", "depth"), [("full", 6), ("chain", 63)])
def test_full_trees_are_shallow_and_chains_deep(shape, depth):
    topology = big_ensemble(0, n_trees=3, n_leaves=64, shape=shape).topology()
    assert topology.mean_depth == depth
    assert np.all(topology.leaves == 64)
