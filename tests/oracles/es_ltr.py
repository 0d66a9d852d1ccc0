"""XGBoost dumps in the learning-to-rank plugins: left when threshold > value, float32; NaN follows `missing`."""

from __future__ import annotations

import json

import numpy as np


def trees_of(content):
    parsed = json.loads(content)
    return parsed["splits"] if isinstance(parsed, dict) else parsed


def outputs(content, X, names):
    return np.array([[_tree(tree, row, names) for tree in trees_of(content)] for row in X], dtype=np.float32)


def score(content, X, names):
    total = np.zeros(len(X), dtype=np.float32)
    for column in outputs(content, X, names).T:
        total = total + column
    return total


def _tree(node, row, names):
    while "leaf" not in node:
        yes, no = node["children"]
        # What the parser insists on.
        assert (node["yes"], node["no"]) == (yes["nodeid"], no["nodeid"])
        assert isinstance(node["depth"], int)
        value = np.float32(row[names.index(node["split"])])
        if np.isnan(value):
            node = yes if node["missing"] == node["yes"] else no
        else:
            node = yes if np.float32(node["split_condition"]) > value else no
    return np.float32(node["leaf"])
