"""XGBoost's JSON dump (`Booster.dump_model(dump_format="json")`), which search engines read too.

A dump has trees and nothing else: no base score, no weights of DART, no order of the features. Features that are named
f0, f1, ... are columns of these numbers; others are in alphabetical order, unless names are given in another.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.json_text import NUMBER, entry
from rankwood.formats.node_tables import ForestBuilder, never_left
from rankwood.formats.thresholds import less_than_float32

NUMBERED = re.compile(r"f(0|[1-9][0-9]{0,7})")


def is_xgboost_dump(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.get("splits", value)
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and ("nodeid" in first or "leaf" in first or "split_condition" in first)


def from_xgboost_dump(
    value: Any, feature_names: Sequence[str] | None = None, *, budget: Budget = UNLIMITED
) -> Ensemble:
    """From the list of trees, or the object with `splits` and `objective` that search engines take."""
    objective = value.get("objective") if isinstance(value, dict) else None
    trees = value.get("splits", [value]) if isinstance(value, dict) else value
    if not isinstance(trees, list):
        raise ModelError(f"the trees are {one_line(trees)}, not a list")
    reader = _Reader()
    for number, tree in enumerate(trees):
        reader.where = f"tree {number}"
        reader.builder.add(tree, reader.read)
    place, names = _columns_of(reader.names, feature_names)
    used = reader.builder.columns["feature"]  # numbers in order of appearance, so far
    order = [place[name] for name in reader.names]
    reader.builder.columns["feature"] = [order[number] for number in used]
    n_features = len(names) if names is not None else 1 + max(order, default=-1)
    forest = reader.builder.forest(less_than_float32)
    never_left(forest)
    forest.note_covers(reader.covers)
    with np.errstate(over="ignore"):
        forest.leaf_value = forest.leaf_value.astype(np.float32).astype(np.float64)  # what the digits stand for
    source: dict[str, Any] = {"format": "xgboost-dump"}
    if objective is not None:
        source["objective"] = one_line(objective)
    if names is None:
        source["n_features"] = "at least"
    return forest.ensemble(source=source, n_features=n_features, feature_names=names, budget=budget)


def _columns_of(used: Iterable[str], given: Sequence[str] | None) -> tuple[dict[str, int], list[str] | None]:
    """The column of every feature that is used, and the names by column; None when they are just numbers."""
    if given is not None:
        place = {name: number for number, name in enumerate(given)}
        unknown = next((name for name in used if name not in place), None)
        if unknown is not None:
            raise ModelError(f"the model uses feature {one_line(unknown)!r}, which is not among the names given")
        return place, list(given)
    numbers = {name: NUMBERED.fullmatch(name) for name in used}
    if all(numbers.values()):
        return {name: int(match[1]) for name, match in numbers.items() if match}, None
    warnings.warn(
        "the dump names its features but does not tell their order: columns are taken in the order of the alphabet; "
        "give feature_names, or data with names",
        stacklevel=2,
    )
    names = sorted(used)
    return {name: number for number, name in enumerate(names)}, names


class _Reader:
    def __init__(self) -> None:
        self.builder = ForestBuilder()
        self.names: dict[str, int] = {}
        self.covers: list[Any] = []  # of leaves, if the dump was made with statistics
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if "leaf" in node:
            self.covers.append(node.get("cover"))
            return _float(entry(node, "leaf", where=self.where), f"{self.where}: a leaf")
        name = str(entry(node, "split", kind=(str, int), where=self.where))
        if isinstance(node.get("split_condition"), list):
            raise ModelError(f"feature {one_line(name)} has categories: import the model that save_model writes")
        if "split_condition" not in node:
            raise ModelError(f"feature {one_line(name)} is an indicator: import the model that save_model writes")
        threshold = _float(node["split_condition"], f"{self.where}: a threshold")
        if threshold != threshold:
            raise ModelError(f"{self.where}: a threshold is NaN")
        yes, no, missing = (entry(node, key, kind=int, where=self.where) for key in ("yes", "no", "missing"))
        children = {
            child.get("nodeid"): child
            for child in entry(node, "children", kind=list, where=self.where)
            if isinstance(child, dict) and isinstance(child.get("nodeid"), int)
        }
        if len(children) != 2 or set(children) != {yes, no} or missing not in (yes, no):
            raise ModelError(f"{self.where}: the children of a node are not those that it names")
        feature = self.names.setdefault(name, len(self.names))
        return feature, threshold, children[yes], children[no], missing == yes


def _float(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, NUMBER):
        raise ModelError(f"{what} is {one_line(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ModelError(f"{what} is {one_line(value)}") from None
