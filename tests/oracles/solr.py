"""Solr's MultipleAdditiveTreesModel: float32 throughout, 1e-6 added to thresholds as they are read.

From version 9.2 on, NaN goes where each split says if `isNullSameAsZero` is false. Else a missing value is 0.
"""

from __future__ import annotations

import json

import numpy as np

SLACK = np.float32(1e-6)


def outputs(content, X, names):
    """Rows x trees: weight times value of the leaf."""
    model = json.loads(content)
    known = {feature["name"] for feature in model["features"]}
    trees = model["params"]["trees"]
    if model["params"].get("isNullSameAsZero", True):
        X = np.where(np.isnan(X), 0, X)
    return np.array([[_tree(tree, row, names, known) for tree in trees] for row in X], dtype=np.float32)


def score(content, X, names):
    total = np.zeros(len(X), dtype=np.float32)
    for column in outputs(content, X, names).T:
        total = total + column
    return total


def _tree(tree, row, names, known):
    node = tree["root"]
    while "feature" in node:
        if node["feature"] not in known:
            return np.float32(0)
        with np.errstate(over="ignore"):
            threshold = np.float32(node["threshold"]) + SLACK
        value = np.float32(row[names.index(node["feature"])])
        if np.isnan(value):
            node = node[node["missing"]]
        else:
            node = node["left"] if value <= threshold else node["right"]
    return np.float32(tree["weight"]) * np.float32(node["value"])
