"""LightGBM's JSON dump (`Booster.dump_model`), and what `save_as(..., "vespa")` writes: the same, but Vespa goes left
when a value is less than the threshold. A mark tells the two apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.json_text import NUMBER, entry, whole
from rankwood.formats.lightgbm_decisions import MAX_CATEGORY, decide, real_names
from rankwood.formats.node_tables import Forest, ForestBuilder, as_column, never_left, renumbered
from rankwood.formats.thresholds import less_than

LARGEST = 1e300  # what a dump has where the model has infinity
MISSING_TYPES = {"None": 0, "Zero": 1, "NaN": 2}
VESPA_MARK = {"rankwood": "vespa"}  # an entry of the dump that Vespa passes over


def is_lightgbm_json(value: Any) -> bool:
    return isinstance(value, dict) and "tree_info" in value and not _has_mark(value)


def is_vespa(value: Any) -> bool:
    return isinstance(value, dict) and "tree_info" in value and _has_mark(value)


def _has_mark(value: dict[str, Any]) -> bool:
    return VESPA_MARK.items() <= value.items()


def from_lightgbm_json(dump: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """From the dictionary that `dump_model` returns, or that its JSON holds. Scores are raw."""
    if is_vespa(dump):
        raise ModelError("the file is for Vespa: its thresholds are not LightGBM's")
    return _from_dump(dump, "lightgbm-json", _Reader(), budget)


def from_vespa(dump: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """From such a dictionary, with or without the mark, as Vespa reads it."""
    return _from_dump(dump, "vespa", _VespaReader(), budget)


def _from_dump(dump: Any, format: str, reader: _Reader, budget: Budget) -> Ensemble:
    names = entry(dump, "feature_names", kind=list)
    if not all(isinstance(name, str) for name in names):
        raise ModelError("feature_names must be texts")
    n_features = whole(entry(dump, "max_feature_idx"), "max_feature_idx") + 1
    n_classes = max(whole(dump.get(name), name, 1) for name in ("num_class", "num_tree_per_iteration"))
    if n_classes > 1:
        raise ModelError(f"the model has {n_classes} classes: a ranker has one score per document")
    trees = entry(dump, "tree_info", kind=list)
    for number, tree in enumerate(trees):
        reader.where = f"tree {number}"
        reader.builder.add(entry(tree, "tree_structure", kind=dict, where=reader.where), reader.read)
    forest = reader.forest()
    forest.note_covers(reader.leaf_count)
    numbers = (as_column(values, np.int64, "numbers of nodes") for values in (reader.node_index, reader.leaf_index))
    forest = renumbered(forest, *numbers)
    average = bool(dump.get("average_output", False)) and len(trees) > 0
    return forest.ensemble(
        source={"format": format, "objective": one_line(dump.get("objective", ""))},
        n_features=n_features,
        tree_weights=np.full(len(trees), 1.0 / len(trees)) if average else None,
        feature_names=real_names(names),
        budget=budget,
    )


class _Reader:
    """Reads nodes, and notes in the same order what is LightGBM's own about them."""

    largest = LARGEST

    def __init__(self) -> None:
        self.builder = ForestBuilder()
        self.missing_type: list[int] = []
        self.default_left: list[bool] = []
        self.categories: dict[int, Any] = {}
        self.node_index: list[Any] = []
        self.leaf_index: list[Any] = []
        self.leaf_count: list[Any] = []
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if "split_feature" not in node:
            if "leaf_coeff" in node or "leaf_const" in node:
                raise ModelError(f"{self.where} has linear models in its leaves: train with linear_tree=false")
            self.leaf_index.append(whole(node.get("leaf_index"), "leaf_index", 0))
            self.leaf_count.append(node.get("leaf_count"))
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
        return (feature, _finite_or_inf(threshold, self.largest), *children, False)

    def forest(self) -> Forest:
        """All trees, with our thresholds."""
        forest = self.builder.forest()
        missing_type = np.array(self.missing_type, dtype=np.int64)
        decide(forest, missing_type, np.array(self.default_left, dtype=bool), self.categories)
        return forest


class _VespaReader(_Reader):
    """Vespa goes left when a value is less than the threshold; what is missing always goes the default way."""

    largest = np.inf

    def forest(self) -> Forest:
        forest = self.builder.forest(less_than)
        if self.categories:
            tree = int(np.searchsorted(np.cumsum(self.builder.sizes), min(self.categories), side="right"))
            raise ModelError(
                f"tree {tree} splits by categories, which Vespa knows by name: import the model of LightGBM"
            )
        forest.missing_left = np.array(self.default_left, dtype=bool)
        never_left(forest)
        return forest


def _finite_or_inf(value: float, largest: float = LARGEST) -> float:
    """A number; from `largest` on it is infinite."""
    try:
        return float(value) if abs(value) < largest else float("inf") if value > 0 else float("-inf")
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
