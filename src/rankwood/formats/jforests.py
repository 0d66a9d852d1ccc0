"""Jforests' models of regression trees: XML with one line of numbers per array of a tree.

A tree has a weight. Inner node and leaf numbers are as in `Ensemble`; features are numbered from 0. Values are float64
and go left when they are at most the (original) threshold, so a missing one goes right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.lightgbm_text import numbers
from rankwood.formats.node_tables import Forest
from rankwood.formats.xml_trees import as_number, read_xml

# Column of the forest by element. `Thresholds` are numbers of bins of the training data.
ELEMENTS = {
    "SplitFeatures": ("feature", np.int64),
    "LeftChildren": ("left", np.int64),
    "RightChildren": ("right", np.int64),
    "OriginalThresholds": ("threshold", np.float64),
    "LeafOutputs": ("leaf_value", np.float64),
}


def is_jforests(start: bytes) -> bool:
    return b"<Ensemble" in start[:4096]


class _Reader:
    def __init__(self) -> None:
        self.weights: list[float] = []
        self.trees: list[dict[str, str]] = []
        self.is_open = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Tree":
            self.weights.append(as_number(attributes.get("weight", "1"), f"tree {len(self.trees)}: its weight"))
            self.trees.append({})
            self.is_open = True

    def end(self, name: str, text: str) -> None:
        if name == "Tree":
            self.is_open = False
        elif name in ELEMENTS and self.is_open:
            if name in self.trees[-1]:
                raise ModelError(f"tree {len(self.trees) - 1} has {name} twice: only trees of one output are rankers")
            self.trees[-1][name] = text


def parse_jforests(content: bytes, budget: Budget = UNLIMITED) -> Ensemble:
    reader = _Reader()
    read_xml(content.strip(), reader.start, reader.end)
    columns: dict[str, list[AnyArray]] = {name: [] for name, _ in ELEMENTS.values()}
    sizes = []
    for number, tree in enumerate(reader.trees):
        for element, (name, dtype) in ELEMENTS.items():
            columns[name].append(_column(tree, element, dtype, number))
        sizes.append(len(columns["leaf_value"][-1]) - 1)
        if sizes[-1] < 0 or any(len(parts[-1]) != sizes[-1] for name, parts in columns.items() if name != "leaf_value"):
            raise ModelError(f"tree {number}: its arrays do not fit each other")
    arrays: dict[str, Any] = {
        name: np.concatenate([np.zeros(0, dtype), *columns[name]]) for name, dtype in ELEMENTS.values()
    }
    forest = Forest(**arrays, missing_left=np.zeros(len(arrays["feature"]), bool), n_nodes=np.array(sizes, np.int64))
    return forest.ensemble(
        source={"format": "jforests", "n_features": "at least"},
        n_features=int(forest.feature.max(initial=-1)) + 1,
        tree_weights=reader.weights,
        budget=budget,
    )


def _column(tree: dict[str, str], element: str, dtype: Any, number: int) -> AnyArray:
    if element not in tree:
        raise ModelError(f"tree {number} has no {element}")
    return numbers(tree[element].encode(), dtype, f"tree {number}: {element}")
