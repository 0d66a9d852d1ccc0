"""QuickRank's XML: thresholds and values in float32, weights and outputs in float64."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np


def outputs(content, X):
    """Weight times value of the leaf."""
    root = ET.fromstring(content)
    assert root.tag == "ranker"
    trees = root.findall("ensemble/tree")
    assert int(root.findtext("info/trees")) == len(trees)
    return np.array([[_tree(tree, row) for tree in trees] for row in X])


def score(content, X):
    total = np.zeros(len(X))
    for column in outputs(content, X).T:
        total = total + column
    return total


def _tree(tree, row):
    node = tree.find("split")
    while node.find("feature") is not None:
        value = np.float32(row[int(node.findtext("feature")) - 1])
        side = "left" if value <= np.float32(node.findtext("threshold")) else "right"
        node = node.find(f"split[@pos='{side}']")
    return float(tree.get("weight")) * float(node.findtext("output"))
