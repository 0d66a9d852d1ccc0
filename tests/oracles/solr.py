"""Solr's MultipleAdditiveTreesModel: float32 throughout, 1e-6 added to thresholds as they are read."""

from __future__ import annotations

import json

import numpy as np

SLACK = np.float32(1e-6)


def outputs(content, X, names):
    """Rows x trees: weight times value of the leaf."""
    model = json.loads(content)
    known = {feature["name"] for feature in model["features"]}
    trees = model["params"]["trees"]
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
        node = node["left"] if np.float32(row[names.index(node["feature"])]) <= threshold else node["right"]
    return np.float32(tree["weight"]) * np.float32(node["value"])
