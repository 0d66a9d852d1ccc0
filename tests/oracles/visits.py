"""Slow twin of `rankwood.model.visits`: walk every document through every tree and write down what it meets."""

from __future__ import annotations

import math

import numpy as np

from oracles.ensemble import n_below


def walk(model, X):
    """Features touched by each document (as sets), visits of each node, and how many of these go left."""
    touched = [set() for _ in X]
    visits, left = np.zeros(model.n_nodes, dtype=int), np.zeros(model.n_nodes, dtype=int)
    for features, row in zip(touched, X, strict=True):
        for tree in range(model.n_trees):
            first = int(model.node_offsets[tree])
            at = 0 if first < model.node_offsets[tree + 1] else -1
            while at >= 0:
                node = first + at
                feature = int(model.feature[node])
                x = float(row[feature])
                goes_left = bool(model.missing_left[node]) if math.isnan(x) else n_below(model, node, x) % 2 == 0
                features.add(feature)
                visits[node] += 1
                left[node] += goes_left
                at = int(model.left[node] if goes_left else model.right[node])
    return touched, visits, left
