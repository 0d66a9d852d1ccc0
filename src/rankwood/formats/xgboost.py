"""XGBoost's models, as JSON or UBJSON, and its JSON dump, which plugins of search engines take: read and written.

XGBoost rounds a value to float32 and sends it left when it is less than the threshold; a missing value goes the node's
default way. Categories in a node's set go right. Scores are margins, before the objective transforms them.

A dump has trees and nothing else: no base score, no weights of DART, no order of the features. Features named f0, f1,
... are the columns with these numbers; others are taken in alphabetical order, unless the user gives their order.

Engines that serve such models round values otherwise and take the leaves' values from elsewhere: `Reading`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.dtypes import NODE, AnyArray, FloatArray, IndexArray
from rankwood.errors import ModelError, one_line
from rankwood.formats.reading import (
    NO_SPLITS,
    UNLIMITED,
    USED_ONLY,
    Budget,
    Pieces,
    Splits,
    TreeBuilder,
    as_column,
    category_pieces,
    check_one_score,
    ensemble_of,
    entry,
    less_than,
    less_than_float32,
    mixed_trees,
    never_left,
    number,
    numbered,
    texts,
    whole,
    with_covers,
)
from rankwood.formats.ubjson import parse_ubjson, to_ubjson
from rankwood.formats.writing import (
    LARGEST_SINGLE,
    below_single,
    categories_of,
    check_objective,
    finite,
    leaf_covers,
    names_of,
    nested,
    node_sums,
    on_thresholds,
    plain,
    refuse_names,
    single_leaves,
    tell_fractions,
)
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Trees, offsets_of
from rankwood.scoring.c_source import round_down

# Arrays of a tree in a model file, with their types.
TABLE = {
    "left_children": np.int64,
    "right_children": np.int64,
    "split_indices": np.int64,
    "split_conditions": np.float32,
    "default_left": np.bool_,
}
# Objectives whose base_score is a probability, or a mean whose logarithm is the margin.
LOGIT = ("binary:logistic", "reg:logistic")
LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
OUT_OF_RANGE_CATEGORY = float(1 << 24)
NO_PARENT = 2**31 - 1
# Objectives whose predictions are the margins, and what a file says of each.
LAMBDARANK = {
    "lambdarank_bias_norm": "1",
    "lambdarank_normalization": "1",
    "lambdarank_num_pair_per_sample": "4294967295",
    "lambdarank_pair_method": "topk",
    "lambdarank_score_normalization": "1",
    "lambdarank_unbiased": "0",
    "ndcg_exp_gain": "1",
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "rank:ndcg": {"lambdarank_param": LAMBDARANK},
    "rank:map": {"lambdarank_param": LAMBDARANK},
    "rank:pairwise": {"lambdarank_param": LAMBDARANK},
    "reg:squarederror": {"reg_loss_param": {"scale_pos_weight": "1"}},
}
DUMP_OBJECTIVES = ("rank:pairwise", "rank:ndcg", "rank:map", "reg:linear", "binary:logitraw")


@dataclass(frozen=True)
class Reading:
    """What an engine makes of XGBoost's files.

    Parameters
    ----------
    notes : dict
        What is noted of the source besides, and otherwise, than of XGBoost's own.
    below : callable
        Thresholds T for the engine's `x < value`.
    leaves : {"split_conditions", "base_weights"}
        The array of a model file that it takes the values of leaves from.
    base : bool
        Whether it adds the base score.
    """

    notes: dict[str, str] = field(default_factory=dict)
    below: Callable[[Any], FloatArray] = less_than_float32
    leaves: str = "split_conditions"
    base: bool = True


def _below_step_down(values: Any) -> FloatArray:
    with np.errstate(over="ignore"):
        return less_than(np.nextafter(np.asarray(values, dtype=np.float32), -np.float32(LARGEST_SINGLE)))


AS_XGBOOST = Reading()
# Vespa compares in float64, in a model file with the float32 before each threshold.
VESPA_DUMP = Reading(
    {"format": "vespa", "tool": "xgboost"}, lambda values: less_than(np.asarray(values).astype(np.float32))
)
VESPA_MODEL = Reading({"format": "vespa", "tool": "xgboost"}, _below_step_down, "base_weights")
PLUGIN_MODEL = Reading(leaves="base_weights", base=False)  # `model/xgboost+json+raw`


# Reading a model (`Booster.save_model`).


def is_xgboost_json(value: Any) -> bool:
    """Whether a JSON or UBJSON value is a model of XGBoost."""
    return isinstance(value, dict) and "learner" in value


def from_booster(model: Any) -> Ensemble:
    """Ensemble of an `xgboost.Booster`, or of the trees that an estimator such as `XGBRanker` predicts with."""
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


def from_xgboost_json(value: Any, budget: Budget = UNLIMITED, reading: Reading = AS_XGBOOST) -> Ensemble:
    """Ensemble of a model file, given as the parsed JSON or UBJSON value; `reading` says how an engine takes it."""
    learner = entry(value, "learner", kind=dict)
    parameters = entry(learner, "learner_model_param", kind=dict)
    for name, what in (("num_class", "classes"), ("num_target", "targets")):
        check_one_score(whole(parameters.get(name), name, 0), what)
    objective = entry(learner, "objective", "name", kind=str)
    booster, weights = _booster(learner)
    tables = entry(booster, "model", "trees", kind=list)
    if weights is not None and len(weights) != len(tables):
        raise ModelError(f"the file is damaged: {len(tables)} trees have {len(weights)} weights")
    stated = booster["model"].get("gbtree_model_param", {})
    if isinstance(stated, dict) and "num_trees" in stated and whole(stated["num_trees"], "num_trees") != len(tables):
        raise ModelError(f"the file is damaged: it has {len(tables)} trees and says {one_line(stated['num_trees'])}")
    if reading is AS_XGBOOST:
        _tell_early_stop(learner, len(tables))
    elif weights is not None:
        raise ModelError("the model is DART's, whose weights of trees the engine does not read: it cannot serve it")
    names = texts(learner.get("feature_names", []), "feature_names") or None
    n_features = whole(parameters.get("num_feature"), "num_feature", 0)
    if names is not None:
        n_features = max(n_features, len(names))
    trees, splits = _trees(tables, reading)
    if names is not None and len(names) != n_features:
        names = None
    return ensemble_of(
        trees,
        splits,
        source={"format": "xgboost", "objective": objective, "version": _version(value)} | reading.notes,
        n_features=n_features,
        tree_weights=weights,
        base=base_margin(parameters.get("base_score"), objective) if reading.base else 0.0,
        feature_names=names,
        budget=budget,
    )


def base_margin(base_score: Any, objective: str) -> float:
    """Margin of a document before any tree, from a file's base_score.

    Versions have written "5E-1", "0.5" and, since 3.1, "[5E-1]".

    Examples
    --------
    >>> base_margin("[5E-1]", "rank:ndcg"), base_margin("5E-1", "binary:logistic")
    (0.5, 0.0)
    """
    text = base_score.strip().removeprefix("[").removesuffix("]") if isinstance(base_score, str) else base_score
    with np.errstate(all="ignore"):
        base = np.float32(number(text, "base_score", text=True))
        if objective in LOGIT:
            base = -np.log(np.float32(1.0) / base - np.float32(1.0))
        elif objective in LOG:
            base = np.log(base)
    if not np.isfinite(base):
        raise ModelError(f"a base score of {one_line(base_score)} does not fit the objective {one_line(objective)}")
    return float(base) + 0.0  # no -0.0


def _booster(learner: dict[str, Any]) -> tuple[dict[str, Any], AnyArray | None]:
    """Entry that holds the trees, and the weights of DART's trees or None."""
    booster = entry(learner, "gradient_booster", kind=dict)
    name = entry(booster, "name", kind=str)
    if name == "dart":
        return entry(booster, "gbtree", kind=dict), _weights(booster)
    if name == "gbtree":  # DART's, too, from 3.4 on
        model = entry(booster, "model", kind=dict)
        return booster, _weights(model) if "weight_drop" in model else None
    raise ModelError(f"the booster is {one_line(name)}: only trees (gbtree, dart) can be imported")


def _weights(holder: dict[str, Any]) -> AnyArray:
    return as_column(entry(holder, "weight_drop", kind=(list, np.ndarray)), np.float32, "weight_drop")


def _tell_early_stop(learner: dict[str, Any], n_trees: int) -> None:
    """Warn of trees beyond the best round: a file has them, but an estimator would not predict with them."""
    noted = learner.get("attributes")
    best = noted.get("best_iteration") if isinstance(noted, dict) else None
    if isinstance(best, str) and best.isdecimal() and int(best[:9]) + 1 < n_trees:
        warnings.warn(
            f"the training of this XGBoost model stopped early, its best round is number {best[:9]} from 0: all "
            f"{n_trees} trees are imported, as a Booster predicts; an estimator uses the best rounds only",
            stacklevel=4,
        )


def _version(value: dict[str, Any]) -> list[int]:
    """Version of XGBoost that wrote the file; empty when it does not tell."""
    version = value.get("version")
    if not isinstance(version, (list, np.ndarray)):
        return []
    return [int(part) for part in version[:3] if isinstance(part, (int, np.integer))]


def _trees(tables: list[Any], reading: Reading) -> tuple[Trees, Splits]:
    """Trees of a model file, and their splits on categories."""
    kinds = TABLE | {reading.leaves: np.float32}
    parts: dict[str, list[AnyArray]] = {name: [] for name in kinds}
    covers: list[Any] = []
    sizes = np.zeros(len(tables), dtype=np.int64)
    categories: list[tuple[int, dict[int, AnyArray]]] = []
    for at, tree in enumerate(tables):
        where = f"tree {at}"
        if not isinstance(tree, dict):
            raise ModelError(f"{where} is {one_line(tree)}")
        if whole(entry(tree, "tree_param", kind=dict, where=where).get("size_leaf_vector"), "size_leaf_vector", 0) > 1:
            raise ModelError(f"{where} has vectors in its leaves: a ranker has one score per document")
        for name, dtype in kinds.items():
            values = entry(tree, name, kind=(list, np.ndarray), where=where)
            parts[name].append(as_column(values, dtype, f"{name} of {where}"))
        sizes[at] = len(parts["left_children"][-1])
        covers.append(tree.get("sum_hessian"))
        if any(len(columns[-1]) != sizes[at] for columns in parts.values()):
            raise ModelError(f"{where}: its arrays have different lengths")
        if len(as_column(tree.get("categories_nodes", []), np.int64, f"categories_nodes of {where}")):
            if reading is not AS_XGBOOST:
                raise ModelError(
                    f"{where} splits by categories, which the engine does not read in this format: rankwood convert "
                    "--to vespa or --to xgboost-dump writes thresholds instead"
                )
            categories.append((at, _categories(tree, where)))
    table = {name: np.concatenate([np.zeros(0, kinds[name]), *columns]) for name, columns in parts.items()}
    trees, splits, leaves = _converted(table, sizes, categories, reading)
    return with_covers(trees, _leaf_covers(covers, sizes, leaves)), splits


def _leaf_covers(covers: list[Any], sizes: AnyArray, leaves: AnyArray) -> AnyArray | None:
    """Sum of the hessians at each leaf, XGBoost's weight of its documents; None if the file lacks them."""
    try:
        columns = [as_column(column, np.float32, "sum_hessian") for column in covers]
    except ModelError:
        return None
    if any(len(column) != size for column, size in zip(columns, sizes.tolist(), strict=True)):
        return None
    return np.concatenate([np.zeros(0, np.float32), *columns])[leaves]


def _converted(
    table: dict[str, AnyArray], sizes: AnyArray, categories: list[tuple[int, dict[int, AnyArray]]], reading: Reading
) -> tuple[Trees, Splits, AnyArray]:
    """Trees, their splits on categories, and the entries of the table that became the leaves."""
    is_leaf, conditions = table["left_children"] == -1, table["split_conditions"]
    if np.isnan(conditions[~is_leaf]).any():
        raise ModelError("a threshold is NaN")
    trees, nodes, leaves = mixed_trees(
        left=table["left_children"],
        right=table["right_children"],
        is_leaf=is_leaf,
        sizes=sizes,
        feature=table["split_indices"],
        threshold=reading.below(conditions),
        missing_left=table["default_left"],
        leaf_value=table[reading.leaves],
    )
    trees = never_left(trees)
    if not categories:
        return trees, NO_SPLITS, leaves
    offsets = offsets_of(sizes)
    entries = {int(offsets[tree]) + node: members for tree, sets in categories for node, members in sets.items()}
    splits = {
        position: _category_pieces(entries[place], bool(table["default_left"][place]))
        for position, place in enumerate(nodes.tolist())
        if place in entries
    }
    threshold = trees.threshold.copy()
    threshold[list(splits)] = 0.0
    return trees.replace(threshold=threshold), splits, leaves


def _categories(tree: dict[str, Any], where: str) -> dict[int, AnyArray]:
    """Set of categories of each node that has one, by number of the node in its table."""
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
    """Split on a set of categories, which goes right; a category is the whole part of the value in float32."""
    members = members[(members >= 0) & (members < OUT_OF_RANGE_CATEGORY)]
    return category_pieces(members, less_than_float32, members_left=False, missing_left=missing_left)


# Reading a dump (`Booster.dump_model(dump_format="json")`).


def is_xgboost_dump(value: Any) -> bool:
    """Whether a JSON value is a dump of XGBoost, or of one tree."""
    if isinstance(value, dict):
        value = value.get("splits", value)
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and ("nodeid" in first or "leaf" in first or "split_condition" in first)


def from_xgboost_dump(
    value: Any,
    feature_names: Sequence[str] | None = None,
    *,
    budget: Budget = UNLIMITED,
    reading: Reading = AS_XGBOOST,
) -> Ensemble:
    """Ensemble of a dump: a list of trees, or the object with `splits` and `objective` that search engines take."""
    objective = value.get("objective") if isinstance(value, dict) else None
    roots = value.get("splits", [value]) if isinstance(value, dict) else value
    if not isinstance(roots, list):
        raise ModelError(f"the trees are {one_line(roots)}, not a list")
    reader = _Reader()
    for at, root in enumerate(roots):
        reader.where = f"tree {at}"
        reader.builder.add(root, reader.read)
    place, names = _columns_of(reader.names, feature_names)
    trees = with_covers(never_left(reader.builder.trees(reading.below)), reader.covers)
    if isinstance(value, dict) and value.get("missing_as_zero") is True:  # OpenSearch, from 3.6 on
        trees = trees.replace(missing_left=trees.threshold >= 0.0)
    column = np.array([place[name] for name in reader.names], dtype=NODE)  # names are numbered as they appear
    leaf_value = trees.leaf_value
    if reading is not VESPA_DUMP:
        with np.errstate(over="ignore"):
            leaf_value = leaf_value.astype(np.float32).astype(np.float64)  # the digits are those of a float32
    notes = {} if objective is None else {"objective": one_line(objective)}
    if names is not None and feature_names is None:
        notes["features"] = USED_ONLY
    return ensemble_of(
        trees.replace(feature=column[trees.feature], leaf_value=leaf_value),
        source={"format": "xgboost-dump"} | notes | reading.notes,
        n_features=None if names is None else len(names),
        feature_names=names,
        budget=budget,
    )


def _columns_of(used: Iterable[str], given: Sequence[str] | None) -> tuple[dict[str, int], list[str] | None]:
    """Column of every feature that is used, and the names of all columns, or None if they are just numbers."""
    if given is not None:
        place = {name: number for number, name in enumerate(given)}
        unknown = next((name for name in used if name not in place), None)
        if unknown is not None:
            raise ModelError(f"the model uses feature {one_line(unknown)!r}, which is not among the names given")
        return place, list(given)
    numbers = numbered(used)
    if numbers is not None:
        return numbers, None
    warnings.warn(
        "the dump names its features but does not tell their order: columns are taken in the order of the alphabet; "
        "give feature_names, or data with names",
        stacklevel=2,
    )
    names = sorted(used)
    return {name: number for number, name in enumerate(names)}, names


class _Reader:
    """Reads nodes of a dump into a `TreeBuilder`."""

    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.names: dict[str, int] = {}  # numbers of features, in order of appearance
        self.covers: list[Any] = []  # of leaves; None unless the dump was made with statistics
        self.where = ""

    def read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise ModelError(f"{self.where}: a node is {one_line(node)}")
        if "leaf" in node:
            self.covers.append(node.get("cover"))
            return number(node["leaf"], f"{self.where}: a leaf")
        name = str(entry(node, "split", kind=(str, int), where=self.where))
        if isinstance(node.get("split_condition"), list):
            raise ModelError(f"feature {one_line(name)} has categories: import the model that save_model writes")
        if "split_condition" not in node:
            raise ModelError(f"feature {one_line(name)} is an indicator: import the model that save_model writes")
        threshold = number(node["split_condition"], f"{self.where}: a threshold")
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


# Numbers of nodes in what is written: level by level, siblings side by side.


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """Numbers that XGBoost gives to the inner nodes and leaves of one tree, and the depths of the inner nodes."""

    nodes: IndexArray
    leaves: IndexArray
    depths: IndexArray


def xgboost_order(model: Ensemble, tree: int) -> NodeOrder:
    """Numbers of the nodes of a tree in which a right child follows its left one.

    XGBoost takes the number after the left child for the right child, whatever the file says.

    Examples
    --------
    >>> import rankwood as rw
    >>> order = xgboost_order(rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0))]), 0)
    >>> order.nodes.tolist(), order.leaves.tolist(), order.depths.tolist()
    ([0, 2], [1, 3, 4], [0, 1])
    """
    here = model.trees.nodes_of(tree)
    left, right = model.left[here].tolist(), model.right[here].tolist()
    nodes, leaves, depths = [0] * len(left), [0] * (len(left) + 1), [0] * len(left)
    level = [0] if left else []
    number = 1
    while level:
        below = []
        for node in level:
            for child in (left[node], right[node]):
                if child < 0:
                    leaves[~child] = number
                else:
                    nodes[child], depths[child] = number, depths[node] + 1
                    below.append(child)
                number += 1
        level = below
    return NodeOrder(*(np.array(part, dtype=np.int64) for part in (nodes, leaves, depths)))


# Writing a model, which `xgboost.Booster(model_file=...)` reads.


def export_xgboost(model: Ensemble, path: Path, *, objective: str = "rank:ndcg", binary: bool | None = None) -> bytes:
    """Content of a model file; weights and base are in the leaves, since some readers ignore the base score.

    Parameters
    ----------
    objective : str, default "rank:ndcg"
        Objective to note, one of `OBJECTIVES`.
    binary : bool, optional
        Whether to write UBJSON or JSON; unless given, UBJSON if the name ends in .ubj.
    """
    check_objective(objective, OBJECTIVES)
    model, categories = _with_categories(model)
    names = list(model.feature_names or ())
    refuse_names(names, "XGBoost", "[]<")
    values = single_leaves(model, "XGBoost")
    thresholds = below_single(model.threshold)
    covers = leaf_covers(model)
    hessians = covers, node_sums(model, covers)
    trees = [_model_tree(model, tree, thresholds, values, *hessians, categories) for tree in range(model.n_trees)]
    has_categories = np.isin(np.arange(len(names)), model.feature[list(categories)])
    whole = {
        "learner": {
            "attributes": {},
            "feature_names": names,
            "feature_types": ["c" if of_categories else "float" for of_categories in has_categories],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(model.n_trees)},
                    "iteration_indptr": list(range(model.n_trees + 1)),
                    "tree_info": [0] * model.n_trees,
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(model.n_features),
                "num_target": "1",
            },
            "objective": {"name": objective, **OBJECTIVES[objective]},
        },
        "version": [2, 1, 0],
    }
    if binary or (binary is None and path.suffix == ".ubj"):
        return to_ubjson(whole)
    return json.dumps(whole, default=_as_list, ensure_ascii=False).encode()  # XGBoost does not read \u escapes


def _with_categories(model: Ensemble) -> tuple[Ensemble, dict[int, IndexArray]]:
    """The model with weights and base in the leaves, and the categories by node; other sets became thresholds."""

    def find(model: Ensemble) -> dict[int, IndexArray]:
        found = {node: categories_of(model.trees.thresholds_of(node)) for node in model.trees.set_nodes.tolist()}
        return {node: members for node, members in found.items() if members is not None}

    keep = np.zeros(model.n_nodes, dtype=bool)
    keep[list(find(model))] = True
    model = plain(on_thresholds(model, "XGBoost", keep, level=6))
    categories = find(model)
    with np.errstate(under="ignore"):
        n_inexact = sum(
            not np.array_equal(
                round_down(model.trees.thresholds_of(node)),
                round_down(np.array(_category_pieces(members, missing_left=False).cuts)),
            )
            for node, members in categories.items()
        )
    tell_fractions("XGBoost", len(categories), n_inexact)
    return model, categories


def _model_tree(
    model: Ensemble,
    tree: int,
    thresholds: AnyArray,
    values: AnyArray,
    leaf_cover: AnyArray,
    node_cover: AnyArray,
    categories: dict[int, IndexArray],
) -> dict[str, Any]:
    """One tree as a model file has it; `categories` are those of its nodes, which go right."""
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    order = xgboost_order(model, tree)
    n_all = len(order.nodes) + len(order.leaves)
    left, right = (np.full(n_all, -1, dtype=np.int32) for _ in range(2))
    numbers = np.concatenate([order.nodes, order.leaves[::-1]])  # so that child -1 finds leaf 0
    parents = np.full(n_all, NO_PARENT, dtype=np.int32)
    for side, children in ((left, model.left[nodes]), (right, model.right[nodes])):
        side[order.nodes] = numbers[children]
        parents[side[order.nodes]] = order.nodes
    weights, gains, conditions, covers = (np.zeros(n_all, dtype=np.float32) for _ in range(4))
    covers[order.leaves], covers[order.nodes] = leaf_cover[leaves], node_cover[nodes]
    if model.split_gain is not None:
        with np.errstate(over="ignore", under="ignore"):
            gains[order.nodes] = model.split_gain[nodes]
    weights[order.leaves] = conditions[order.leaves] = values[leaves]
    conditions[order.nodes] = thresholds[nodes]
    indices, default_left = np.zeros(n_all, dtype=np.int32), np.zeros(n_all, dtype=np.uint8)
    indices[order.nodes], default_left[order.nodes] = model.feature[nodes], model.missing_left[nodes]
    split_type = np.zeros(n_all, dtype=np.uint8)
    here = [node for node in range(nodes.start, nodes.stop) if node in categories]
    sets = dict(sorted((int(order.nodes[node - nodes.start]), categories[node]) for node in here))
    split_type[list(sets)] = 1
    conditions[list(sets)] = 0.0
    segments = offsets_of([len(members) for members in sets.values()])
    return {
        "base_weights": weights,
        "categories": np.concatenate([np.zeros(0, np.int32), *sets.values()]).astype(np.int32),
        "categories_nodes": np.array(list(sets), dtype=np.int32),
        "categories_segments": segments[:-1].astype(np.int64),
        "categories_sizes": np.diff(segments).astype(np.int64),
        "default_left": default_left,
        "id": tree,
        "left_children": left,
        "loss_changes": gains,
        "parents": parents,
        "right_children": right,
        "split_conditions": conditions,
        "split_indices": indices,
        "split_type": split_type,
        "sum_hessian": covers,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(model.n_features),
            "num_nodes": str(n_all),
            "size_leaf_vector": "1",
        },
    }


def _as_list(array: Any) -> list[Any]:
    """List of an array's numbers for JSON, float32 with as few digits as identify them."""
    if array.dtype == np.float32:
        return [float(str(value)) for value in array]
    values: list[Any] = array.tolist()
    return values


# Writing a dump, which the learning-to-rank plugins of Elasticsearch (o19s) and OpenSearch read.


def export_xgboost_dump(model: Ensemble, path: Path, *, objective: str | None = None) -> str:
    """JSON array of trees, with weights and base in the leaves, since the plugins know no base score.

    Parameters
    ----------
    objective : str, optional
        Objective, one of `DUMP_OBJECTIVES`, to name in an object beside the array, which is then its entry `splits`.
        Every version of the plugins accepts `rank:pairwise`.
    """
    if objective is not None:
        check_objective(objective, DUMP_OBJECTIVES)
    model = plain(model)
    names = [json.dumps(name) for name in names_of(model)]
    values = single_leaves(model, "the plugin")
    thresholds = finite(below_single(model.threshold), LARGEST_SINGLE, "JSON")
    trees = [_dump_tree(model, tree, names, thresholds.astype(np.float64), values) for tree in range(model.n_trees)]
    array = "[\n" + ",\n".join(trees) + "\n]"
    return f"{array}\n" if objective is None else f'{{"objective": {json.dumps(objective)}, "splits": {array}}}\n'


def _dump_tree(model: Ensemble, tree: int, names: list[str], thresholds: FloatArray, values: AnyArray) -> str:
    """JSON of one tree; `names` are JSON already."""
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    order = xgboost_order(model, tree)
    numbers = [*order.nodes.tolist(), *order.leaves[::-1].tolist()]  # so that child -1 finds leaf 0
    left, right, depths = model.left[nodes].tolist(), model.right[nodes].tolist(), order.depths.tolist()
    features, missing_left = model.feature[nodes].tolist(), model.missing_left[nodes].tolist()
    conditions, outputs = thresholds[nodes].tolist(), values[leaves].tolist()

    def opening(node: int) -> str:
        at = node - nodes.start
        yes, no = numbers[left[at]], numbers[right[at]]
        return (
            f'{{"nodeid": {numbers[at]}, "depth": {depths[at]}, "split": {names[features[at]]}, '
            f'"split_condition": {conditions[at]!r}, "yes": {yes}, "no": {no}, '
            f'"missing": {yes if missing_left[at] else no}, "children": ['
        )

    def leaf(number: int) -> str:
        at = number - leaves.start
        return f'{{"nodeid": {numbers[~at]}, "leaf": {outputs[at]!r}}}'

    return "".join(nested(model, tree, opening, leaf, ", ", "]}"))


# Limits of what is written: what is exact and what is not.

XGBOOST_LIMITS = (
    "Every finite float32 value and NaN go the same way (`x < threshold` in float32, threshold one step higher; "
    "XGBoost itself refuses infinite values); leaves are float32 and so is their sum. Contributions (SHAP) go by the "
    "documents at each leaf, or their weight, where the model knows them; else every leaf counts alike."
)
XGBOOST_DUMP_LIMITS = (
    "Every float32 value goes the same way (`x < threshold` in float32, threshold one step higher); leaves are float32 "
    "and so is their sum. Missing values go where splits say in o19s' plugin since 2024 and in OpenSearch's from 3.8 "
    "on; before, they are 0, and in OpenSearch 3.3 to 3.7 they go right."
)
