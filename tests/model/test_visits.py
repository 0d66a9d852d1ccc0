"""What data makes of a model: features and nodes that scoring looks at."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles.visits import walk
from rankwood import DataError, Ensemble
from rankwood.model import visits
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pytestmark = pytest.mark.native

#        0: 0.5             1: 0.0          7.0
#     1.0      1: 2.0    10.0   20.0
#            2.0    3.0
THREE = [(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)), (1, 0.0, 10.0, 20.0), 7.0]
ROWS = [[0.0, 5.0, 0.0], [1.0, 5.0, 0.0], [2.0, 1.0, 0.0], [9.0, -1.0, 0.0]]


def test_a_known_answer():
    found = rw.usage(Ensemble.from_trees(THREE, n_features=3), ROWS)
    assert found.features_touched.tolist() == [2, 2, 2, 2]
    assert found.node_visits.tolist() == [4, 3, 4]
    assert found.left_visits.tolist() == [1, 2, 1]
    assert found.as_dict() == {
        "n_docs": 4,
        "features_touched": 2.0,
        "features_touched_std": 0.0,
        "features_touched_share": 2 / 3,
        "features_touched_share_of_used": 1.0,
        "splits_per_doc": 11 / 4,
        "splits_per_tree": 11 / 12,
        "n_nodes_met": 3,
        "left_share": 4 / 11,
        "likelier_share": (3 + 2 + 3) / 11,
        "share_of_hottest_1_percent": 4 / 11,
        "share_of_hottest_10_percent": 4 / 11,
        "hot_nodes": [
            {"tree": 0, "node": 1, "feature": 1, "threshold": 2.0, "further": 0, "share": 0.75, "left_share": 2 / 3}
        ],
    }


@given(model=ensembles(), data=st.data())
@settings(max_examples=60)
def test_a_walk_through_every_tree_meets_the_same(model, data):
    X = data.draw(rows_near_thresholds(model, max_rows=30))
    touched, node_visits, left_visits = walk(model, X)
    found = rw.usage(model, X)
    assert found.features_touched.tolist() == [len(features) for features in touched]
    assert_array_equal(found.node_visits, node_visits)
    assert_array_equal(found.left_visits, left_visits)
    json.dumps(found.as_dict(), allow_nan=False)


def test_many_features_trees_and_blocks(monkeypatch):
    monkeypatch.setattr(visits, "_ROWS_AT_ONCE", 16)  # the last block has fewer rows
    model = big_ensemble(3, n_trees=7, n_leaves=300, n_features=200)  # leaves beyond a byte, more than 3 words
    X = np.random.default_rng(0).normal(size=(50, 200))
    X[::3, ::5] = np.nan
    touched, node_visits, left_visits = walk(model, X)
    for rows in (X, np.asfortranarray(X), X.tolist()):
        found = rw.usage(model, rows, n_threads=2)
        assert found.features_touched.tolist() == [len(features) for features in touched]
        assert_array_equal(found.node_visits, node_visits)
        assert_array_equal(found.left_visits, left_visits)
    assert found.splits_per_doc == node_visits.sum() / 50
    assert found.share_of_hottest(1.0) == 1.0
    hottest = np.sort(node_visits)[::-1][: math.ceil(0.1 * len(node_visits))]
    assert found.share_of_hottest(0.1) == hottest.sum() / node_visits.sum()


def test_just_one_word_of_features_and_one_more():
    for n_features in (63, 64, 65, 128, 129):
        trees = [(feature, 0.0, 1.0, 2.0) for feature in range(n_features)]
        found = rw.usage(Ensemble.from_trees(trees), np.ones((3, n_features)))
        assert found.features_touched.tolist() == [n_features] * 3


def test_hot_nodes_are_ordered_and_below_the_roots():
    model = big_ensemble(1, n_trees=5, n_leaves=16)
    X = np.random.default_rng(1).normal(size=(400, model.n_features))
    found = rw.usage(model, X)
    hot = found.hot_nodes(1000)
    assert len(hot) == found.n_nodes_met - 5
    assert all(node.node > 0 for node in hot)
    assert [node.share for node in hot] == sorted((node.share for node in hot), reverse=True)
    for node in hot:
        at = model.node_offsets[node.tree] + node.node
        assert (node.feature, node.threshold) == (model.feature[at], model.threshold[at])
        assert node.share == found.node_visits[at] / 400
        assert node.left_share == found.left_visits[at] / found.node_visits[at]
    assert found.hot_nodes(3) == hot[:3]


def test_models_without_splits():
    found = rw.usage(Ensemble.from_trees([1.0, 2.0], n_features=2), np.zeros((3, 2)))
    facts = found.as_dict()
    assert facts["n_docs"] == 3
    assert facts["hot_nodes"] == []
    assert not any(value for key, value in facts.items() if key not in ("n_docs", "hot_nodes"))
    assert rw.usage(Ensemble.from_trees([], n_features=0), np.zeros((2, 0))).splits_per_tree == 0


def test_infinite_thresholds_and_names_are_json():
    model = Ensemble.from_trees([(0, 0.0, 1.0, (1, np.inf, 2.0, 3.0))], feature_names=["bm25", "clicks"])
    (hot,) = rw.usage(model, [[1.0, 1.0]]).as_dict()["hot_nodes"]
    assert (hot["threshold"], hot["name"]) == ("inf", "clicks")


def test_no_rows_and_wrong_rows():
    model = Ensemble.from_trees(THREE, n_features=3)
    with pytest.raises(DataError, match="no rows"):
        rw.usage(model, np.zeros((0, 3)))
    with pytest.raises(DataError, match="X has 2 features but the model was built on 3"):
        rw.usage(model, np.zeros((1, 2)))
