"""XGBoost's dump as JSON: what the learning-to-rank plugins of Elasticsearch (o19s) and OpenSearch read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import ModelError
from rankwood.formats.export_parts import finite, names_of, nested, plain, single_leaves
from rankwood.formats.export_thresholds import LARGEST_SINGLE, below_single
from rankwood.formats.export_xgboost_order import xgboost_order

LIMITS = (
    "Every float32 value goes the same way (`x < threshold` in float32, threshold one step higher); leaves are float32 "
    "and so is their sum. The plugins read missing values as 0 up to 2024 and in OpenSearch; newer ones follow the "
    "split."
)
OBJECTIVES = ("rank:pairwise", "rank:ndcg", "rank:map", "reg:linear", "binary:logitraw")


def export_xgboost_dump(model: Ensemble, path: Path, *, objective: str | None = None) -> str:
    """An array of trees, with the base in the leaves of the first: the plugins know no base score. With an `objective`
    an object that names it beside the array (`splits`); `rank:pairwise` is the one that every version accepts."""
    if objective is not None and objective not in OBJECTIVES:
        raise ModelError(f"objective must leave scores as they are: {', '.join(OBJECTIVES)}; got {objective!r}")
    model = plain(model)
    names = names_of(model)
    values = single_leaves(model, "the plugin")
    thresholds = finite(below_single(model.threshold), LARGEST_SINGLE, "JSON")
    trees = [_tree(model, tree, names, thresholds.astype(np.float64), values) for tree in range(model.n_trees)]
    array = "[\n" + ",\n".join(trees) + "\n]"
    return f"{array}\n" if objective is None else f'{{"objective": {json.dumps(objective)}, "splits": {array}}}\n'


def _tree(model: Ensemble, tree: int, names: list[str], thresholds: FloatArray, values: AnyArray) -> str:
    first, first_leaf = int(model.node_offsets[tree]), int(model.leaf_offsets[tree])
    order = xgboost_order(model, tree)

    def number(child: int) -> int:
        return int(order.nodes[child] if child >= 0 else order.leaves[~child])

    def opening(node: int) -> str:
        yes, no = number(int(model.left[node])), number(int(model.right[node]))
        entry = {
            "nodeid": int(order.nodes[node - first]),
            "depth": int(order.depths[node - first]),
            "split": names[model.feature[node]],
            "split_condition": float(thresholds[node]),
            "yes": yes,
            "no": no,
            "missing": yes if model.missing_left[node] else no,
        }
        return json.dumps(entry)[:-1] + ', "children": ['

    def leaf(at: int) -> str:
        return json.dumps({"nodeid": int(order.leaves[at - first_leaf]), "leaf": float(values[at])})

    return "".join(nested(model, tree, opening, leaf, ", ", "]}"))
