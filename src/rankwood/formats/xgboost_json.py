"""XGBoost's models, as JSON or UBJSON (`Booster.save_model`). Its JSON dump is in `xgboost_dump.py`.

XGBoost rounds a value to float32 and goes left when it is less than the threshold; a missing value goes the default
way. What a category's set holds goes right. Scores are margins: what the objective makes of them is left out.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget
from rankwood.formats.json_text import entry, number, whole
from rankwood.formats.node_tables import Forest, as_column, mixed_forest, never_left
from rankwood.formats.thresholds import less_than_float32
from rankwood.formats.ubjson import parse_ubjson
from rankwood.formats.unfold import Pieces

COLUMNS = {
    "left_children": np.int64,
    "right_children": np.int64,
    "split_indices": np.int64,
    "split_conditions": np.float32,
    "default_left": np.bool_,
}
# What base_score is before it becomes a margin.
LOGIT = ("binary:logistic", "reg:logistic")
LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
OUT_OF_RANGE_CATEGORY = float(1 << 24)


def is_xgboost_json(value: Any) -> bool:
    return isinstance(value, dict) and "learner" in value


def from_booster(model: Any) -> Ensemble:
    """From an `xgboost.Booster`, or an estimator such as `XGBRanker`; of one that stopped early the trees that it
    predicts with."""
    if not hasattr(model, "get_booster"):
        content = bytes(model.save_raw("ubj"))
        return from_xgboost_json(parse_ubjson(content), Budget(len(content)))
    missing = model.missing
    if missing is not None and not np.isnan(missing):
        raise ModelError(f"the model takes {missing} for a missing value: replace it by NaN and train with missing=nan")
    booster = model.get_booster()
    try:
        n_rounds = int(model.best_iteration) + 1
    except AttributeError:  # did not stop early
        return from_booster(booster)
    return from_booster(booster[:n_rounds])


def from_xgboost_json(value: Any, budget: Budget = UNLIMITED) -> Ensemble:
    """From the value that the JSON or UBJSON holds."""
    learner = entry(value, "learner", kind=dict)
    parameters = entry(learner, "learner_model_param", kind=dict)
    for name, what in (("num_class", "classes"), ("num_target", "targets")):
        if whole(parameters.get(name), name, 0) > 1:
            raise ModelError(f"the model has {parameters[name]} {what}: a ranker has one score per document")
    objective = entry(learner, "objective", "name", kind=str)
    booster, weights = _booster(learner)
    trees = entry(booster, "model", "trees", kind=list)
    if weights is not None and len(weights) != len(trees):
        raise ModelError(f"the file is damaged: {len(trees)} trees have {len(weights)} weights")
    stated = booster["model"].get("gbtree_model_param", {})
    if isinstance(stated, dict) and "num_trees" in stated and whole(stated["num_trees"], "num_trees") != len(trees):
        raise ModelError(f"the file is damaged: it has {len(trees)} trees and says {one_line(stated['num_trees'])}")
    _tell_early_stop(learner, len(trees))
    names = _names(learner)
    n_features = whole(parameters.get("num_feature"), "num_feature", 0)
    if names is not None:
        n_features = max(n_features, len(names))
    forest = _forest(trees)
    if names is not None and len(names) != n_features:
        names = None
    return forest.ensemble(
        source={"format": "xgboost", "objective": objective, "version": _version(value)},
        n_features=n_features,
        tree_weights=weights,
        base=base_margin(parameters.get("base_score"), objective),
        feature_names=names,
        budget=budget,
    )


def base_margin(base_score: Any, objective: str) -> float:
    """The margin of a document before any tree. Versions have written "5E-1", "0.5" and, since 3.1, "[5E-1]".

    >>> base_margin("[5E-1]", "rank:ndcg"), base_margin("5E-1", "binary:logistic")
    (0.5, 0.0)
    """
    text = base_score.strip().removeprefix("[").removesuffix("]") if isinstance(base_score, str) else base_score
    base = np.float32(number(text, "base_score"))
    with np.errstate(all="ignore"):
        if objective in LOGIT:
            base = -np.log(np.float32(1.0) / base - np.float32(1.0))
        elif objective in LOG:
            base = np.log(base)
    if not np.isfinite(base):
        raise ModelError(f"a base score of {one_line(base_score)} does not fit the objective {one_line(objective)}")
    return float(base) + 0.0  # no -0.0


def _booster(learner: dict[str, Any]) -> tuple[dict[str, Any], AnyArray | None]:
    """The trees, and their weights if they have any."""
    booster = entry(learner, "gradient_booster", kind=dict)
    name = entry(booster, "name", kind=str)
    if name == "gbtree":
        return booster, None
    if name == "dart":
        weights = as_column(entry(booster, "weight_drop", kind=(list, np.ndarray)), np.float32, "weight_drop")
        return entry(booster, "gbtree", kind=dict), weights
    raise ModelError(f"the booster is {one_line(name)}: only trees (gbtree, dart) can be imported")


def _tell_early_stop(learner: dict[str, Any], n_trees: int) -> None:
    """A file has all trees, also those beyond the round that an estimator would predict with."""
    noted = learner.get("attributes")
    best = noted.get("best_iteration") if isinstance(noted, dict) else None
    if isinstance(best, str) and best.isdecimal() and int(best[:9]) + 1 < n_trees:
        warnings.warn(
            f"the training of this XGBoost model stopped early, its best round is number {best[:9]} from 0: all "
            f"{n_trees} trees are imported, as a Booster predicts; an estimator uses the best rounds only",
            stacklevel=4,
        )


def _names(learner: dict[str, Any]) -> list[str] | None:
    names = learner.get("feature_names", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError("feature_names must be texts")
    return names or None


def _version(value: dict[str, Any]) -> list[int]:
    version = value.get("version")
    if not isinstance(version, (list, np.ndarray)):
        return []
    return [int(part) for part in version[:3] if isinstance(part, (int, np.integer))]


def _forest(trees: list[Any]) -> Forest:
    tables: dict[str, list[AnyArray]] = {name: [] for name in COLUMNS}
    covers: list[Any] = []
    sizes = np.zeros(len(trees), dtype=np.int64)
    categories: list[tuple[int, dict[int, AnyArray]]] = []
    for number_, tree in enumerate(trees):
        where = f"tree {number_}"
        if not isinstance(tree, dict):
            raise ModelError(f"{where} is {one_line(tree)}")
        if whole(entry(tree, "tree_param", kind=dict, where=where).get("size_leaf_vector"), "size_leaf_vector", 0) > 1:
            raise ModelError(f"{where} has vectors in its leaves: a ranker has one score per document")
        for name, dtype in COLUMNS.items():
            values = entry(tree, name, kind=(list, np.ndarray), where=where)
            tables[name].append(as_column(values, dtype, f"{name} of {where}"))
        sizes[number_] = len(tables["left_children"][-1])
        covers.append(tree.get("sum_hessian"))
        if any(len(tables[name][-1]) != sizes[number_] for name in COLUMNS):
            raise ModelError(f"{where}: its arrays have different lengths")
        if len(as_column(tree.get("categories_nodes", []), np.int64, f"categories_nodes of {where}")):
            categories.append((number_, _categories(tree, where)))
    table = {name: np.concatenate([np.zeros(0, COLUMNS[name]), *parts]) for name, parts in tables.items()}
    forest, leaves = _converted(table, sizes, categories)
    forest.note_covers(_leaf_covers(covers, sizes, leaves))
    return forest


def _leaf_covers(covers: list[Any], sizes: AnyArray, leaves: AnyArray) -> AnyArray | None:
    """Sum of the hessians at every leaf, if the file has them: XGBoost's weight of documents."""
    try:
        columns = [as_column(column, np.float32, "sum_hessian") for column in covers]
    except ModelError:
        return None
    if any(len(column) != size for column, size in zip(columns, sizes.tolist(), strict=True)):
        return None
    return np.concatenate([np.zeros(0, np.float32), *columns])[leaves]


def _converted(
    table: dict[str, AnyArray], sizes: AnyArray, categories: list[tuple[int, dict[int, AnyArray]]]
) -> tuple[Forest, AnyArray]:
    """The forest, and which entries of the table are its leaves."""
    left, is_leaf = table["left_children"], table["left_children"] == -1
    conditions = table["split_conditions"]
    if np.isnan(conditions[~is_leaf]).any():
        raise ModelError("a threshold is NaN")
    forest, nodes, leaves = mixed_forest(
        left=left,
        right=table["right_children"],
        is_leaf=is_leaf,
        sizes=sizes,
        columns={
            "feature": table["split_indices"],
            "threshold": less_than_float32(conditions),
            "missing_left": table["default_left"],
            "leaf_value": conditions.astype(np.float64),
        },
    )
    never_left(forest)
    if categories:
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entries = {int(offsets[tree]) + node: members for tree, sets in categories for node, members in sets.items()}
        missing_left = table["default_left"]
        for position, place in enumerate(nodes.tolist()):
            if place in entries:
                forest.threshold[position] = 0.0
                forest.splits[position] = _category_pieces(entries[place], bool(missing_left[place]))
    return forest, leaves


def _categories(tree: dict[str, Any], where: str) -> dict[int, AnyArray]:
    """The set of categories of each node that has one."""
    names = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    parts = [as_column(entry(tree, name, where=where), np.int64, f"{name} of {where}") for name in names]
    members, nodes, segments, sizes = parts
    if not len(nodes) == len(segments) == len(sizes):
        raise ModelError(f"{where}: its sets of categories have different lengths")
    if (sizes < 0).any() or sizes.sum(dtype=np.float64) > len(members):
        raise ModelError(f"{where}: a set of categories is cut off, or shared by two nodes")
    sets: dict[int, AnyArray] = {}
    for node, first, size in zip(nodes.tolist(), segments.tolist(), sizes.tolist(), strict=True):
        if first < 0 or first + size > len(members):
            raise ModelError(f"{where}: a set of categories is cut off")
        sets[node] = members[first : first + size]
    return sets


def _category_pieces(members: AnyArray, missing_left: bool) -> Pieces:
    """The set goes right, everything else left. A category is the whole part of the value, rounded to float32."""
    members = np.unique(members)
    members = members[(members >= 0) & (members < OUT_OF_RANGE_CATEGORY)].astype(np.float64)
    cuts = less_than_float32(np.stack([members, members + 1.0], axis=1).ravel())
    return Pieces(cuts.tolist(), [True, *[False, True] * len(members)], missing_left)
