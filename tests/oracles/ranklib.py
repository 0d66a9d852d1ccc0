"""RankLib's ensembles: lines joined without their indentation, float32, a missing value is 0."""

from __future__ import annotations

import math
from xml.dom import minidom

import numpy as np


def outputs(content, X):
    lines = [line.strip() for line in content.splitlines()]
    assert lines[0] == "## LambdaMART"
    document = minidom.parseString("".join(line for line in lines if not line.startswith("##")))
    trees = document.getElementsByTagName("tree")
    return np.array([[_tree(tree, row) for tree in trees] for row in X], dtype=np.float32)


def score(content, X):
    total = np.zeros(len(X), dtype=np.float32)
    for column in outputs(content, X).T:
        total = total + column
    return total


def _tree(tree, row):
    node = tree.firstChild  # by position, as RankLib does: nothing may stand between
    while node.firstChild.nodeName == "feature":
        feature, threshold, left, right = node.childNodes
        value = np.float32(row[int(_text(feature)) - 1])
        value = np.float32(0) if math.isnan(value) else value
        assert (left.getAttribute("pos"), right.getAttribute("pos")) == ("left", "right")
        node = left if value <= np.float32(_text(threshold)) else right
    (output,) = node.childNodes
    assert output.nodeName == "output"
    return np.float32(tree.getAttribute("weight")) * np.float32(_text(output))


def _text(element):
    return element.firstChild.nodeValue.strip()
