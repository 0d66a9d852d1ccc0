"""LightGBM's JSON dump (`Booster.dump_model`), which Vespa reads too."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.json_text import NUMBER, entry, whole
from rankwood.formats.lightgbm_decisions import MAX_CATEGORY, decide, real_names
from rankwood.formats.node_tables import ForestBuilder, as_column, renumbered

MISSING_TYPES = {"None": 0, "Zero": 1, "NaN": 2}


def is_lightgbm_json(value: Any) -> bool:
    return isinstance(value, dict) and "tree_info" in value


def from_lightgbm_json(dump: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """From the dictionary that `dump_model` returns, or that its JSON holds. Scores are raw."""
    names = entry(dump, "feature_names", kind=list)
    if not all(isinstance(name, str) for name in names):
        raise ModelError("feature_names must be texts")
    n_features = whole(entry(dump, "max_feature_idx"), "max_feature_idx") + 1
    n_classes = max(whole(dump.get(name), name, 1) for name in ("num_class", "num_tree_per_iteration"))
    if n_classes > 1:
        raise ModelError(f"the model has {n_classes} classes: a ranker has one score per document")
    reader = _Reader()
    trees = entry(dump, "tree_info", kind=list)
    for number, tree in enumerate(trees):
        reader.where = f"tree {number}"
        reader.builder.add(entry(tree, "tree_structure", kind=dict, where=reader.where), reader.read)
    forest = reader.builder.forest()
    missing_type = np.array(reader.missing_type, dtype=np.int64)
    decide(forest, missing_type, np.array(reader.default_left, dtype=bool), reader.categories)
    numbers = (as_column(values, np.int64, "numbers of nodes") for values in (reader.node_index, reader.leaf_index))
    forest = renumbered(forest, *numbers)
    average = bool(dump.get("average_output", False)) and len(trees) > 0
    return forest.ensemble(
        source={"format": "lightgbm-json", "objective": one_line(dump.get("objective", ""))},
        n_features=n_features,
        tree_weights=np.full(len(trees), 1.0 / len(trees)) if average else None,
        feature_names=real_names(names),
        budget=budget,
    )


class _Reader:
    """Reads nodes, and notes in the same order what is LightGBM's own about them."""

    def __init__(self) -> None:
        self.builder = ForestBuilder()
        self.missing_type: list[int] = []
        self.default_left: list[bool] = []
        self.categories: dict[int, Any] = {}
        self.node_index: list[Any] = []
        self.leaf_index: list[Any] = []
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if "split_feature" not in node:
            if "leaf_coeff" in node or "leaf_const" in node:
                raise ModelError(f"{self.where} has linear models in its leaves: train with linear_tree=false")
            self.leaf_index.append(whole(node.get("leaf_index"), "leaf_index", 0))
            return _finite_or_inf(entry(node, "leaf_value", kind=NUMBER, where=self.where))
        missing_type = entry(node, "missing_type", kind=str, where=self.where)
        if missing_type not in MISSING_TYPES:
            raise ModelError(f"{self.where}: LightGBM has no missing type {one_line(missing_type)!r}")
        feature = entry(node, "split_feature", kind=int, where=self.where)
        threshold, kind = node.get("threshold"), node.get("decision_type")
        if kind == "==":
            self.categories[len(self.missing_type)] = _members(threshold, self.where)
            threshold = 0.0
        elif kind != "<=":
            raise ModelError(f"{self.where}: LightGBM has no decision type {one_line(kind)!r}")
        if isinstance(threshold, bool) or not isinstance(threshold, NUMBER):
            raise ModelError(f"{self.where}: a threshold is {one_line(threshold)}")
        self.node_index.append(whole(node.get("split_index"), "split_index", 0))
        self.missing_type.append(MISSING_TYPES[missing_type])
        self.default_left.append(entry(node, "default_left", where=self.where) is True)
        children = (entry(node, name, where=self.where) for name in ("left_child", "right_child"))
        return (feature, _finite_or_inf(threshold), *children, False)


def _finite_or_inf(value: float) -> float:
    """A dump has 1e300 where the model has an infinite threshold."""
    try:
        return float(value) if abs(value) < 1e300 else float("inf") if value > 0 else float("-inf")
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _members(threshold: Any, where: str) -> Any:
    """The set of categories, which LightGBM writes as "0||3||7"."""
    try:
        parts = str(threshold).split("||")
        members = [int(part) for part in parts if part]
    except ValueError:
        members = [-1]
    if any(not 0 <= member < MAX_CATEGORY for member in members):
        raise ModelError(f"{where}: a set of categories is {one_line(threshold)}")
    return as_column(members, np.int64, "categories")
