"""Elasticsearch's inference over a tree ensemble: float64, -0.0 is less than 0.0; what is not finite is missing."""

from __future__ import annotations

import json
import math
import operator

import numpy as np

OPERATORS = {"lte": operator.le, "lt": operator.lt}


def outputs(content, X, names):
    parsed = json.loads(content)
    ensemble = parsed["definition"]["trained_model"]["ensemble"]
    assert ensemble["target_type"] == "regression"
    assert ensemble["aggregate_output"] == {"weighted_sum": {}}
    assert ensemble["feature_names"] == names
    assert parsed["input"]["field_names"] == names
    trees = [model["tree"] for model in ensemble["trained_models"]]
    return np.array([[_tree(tree, row) for tree in trees] for row in X])


def score(content, X, names):
    """Sums, with what rounding lost added at the end."""
    return np.array([math.fsum(row) for row in outputs(content, X, names)])


def _tree(tree, row):
    nodes = tree["tree_structure"]
    assert [node["node_index"] for node in nodes] == list(range(len(nodes)))
    node = nodes[0]
    while "left_child" in node:
        value = float(row[node["split_feature"]])
        if math.isfinite(value):
            left = OPERATORS[node["decision_type"]](_ordered(value), _ordered(node["threshold"]))
        else:
            left = node["default_left"]
        node = nodes[node["left_child"] if left else node["right_child"]]
    return node["leaf_value"]


def _ordered(value):
    """Order of Java's Double.compare."""
    return value, math.copysign(1.0, value)
