"""Readers of LightGBM's JSON dump: LightGBM's own comparison, and Vespa's, which puts `<` for `<=`."""

from __future__ import annotations

import json
import math

import numpy as np


def outputs(content, X, *, vespa=False):
    parsed = json.loads(content)
    trees = [tree["tree_structure"] for tree in parsed["tree_info"]]
    return np.array([[_tree(tree, row, vespa) for tree in trees] for row in X])


def score(content, X, *, vespa=False):
    total = np.zeros(len(X))
    for column in outputs(content, X, vespa=vespa).T:
        total = total + column
    return total


def _tree(node, row, vespa):
    while "left_child" in node:
        value, threshold = float(row[node["split_feature"]]), node["threshold"]
        assert node["decision_type"] == "<="
        if vespa:
            # if (!(f >= t), left, right) or if (f < t, left, right)
            left = not value >= threshold if node["default_left"] else value < threshold
        else:
            assert node["missing_type"] == "NaN"
            left = node["default_left"] if math.isnan(value) else value <= threshold
        node = node["left_child"] if left else node["right_child"]
    return node["leaf_value"]
