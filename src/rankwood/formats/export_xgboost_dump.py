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
    names = [json.dumps(name) for name in names_of(model)]
    values = single_leaves(model, "the plugin")
    thresholds = finite(below_single(model.threshold), LARGEST_SINGLE, "JSON")
    trees = [_tree(model, tree, names, thresholds.astype(np.float64), values) for tree in range(model.n_trees)]
    array = "[\n" + ",\n".join(trees) + "\n]"
    return f"{array}\n" if objective is None else f'{{"objective": {json.dumps(objective)}, "splits": {array}}}\n'


def _tree(model: Ensemble, tree: int, names: list[str], thresholds: FloatArray, values: AnyArray) -> str:
    """Names are JSON already."""
    nodes, leaves = slice(*model.node_offsets[tree : tree + 2]), slice(*model.leaf_offsets[tree : tree + 2])
    order = xgboost_order(model, tree)
    numbers = [*order.nodes.tolist(), *order.leaves[::-1].tolist()]  # leaf 0 is child -1
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
