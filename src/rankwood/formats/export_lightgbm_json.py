"""LightGBM's model as JSON, as `Booster.dump_model` gives it; and the same for Vespa, which compares with `<`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.ensemble import Ensemble
from rankwood.formats.export_covers import whole_covers
from rankwood.formats.export_lightgbm import check_names, tell_tiny_thresholds
from rankwood.formats.export_parts import finite, names_of, nested, plain
from rankwood.formats.export_thresholds import LARGEST, below_double
from rankwood.formats.lightgbm_json import VESPA_MARK

LIMITS = (
    "Exact for readers that compare as LightGBM does, `x <= threshold` in float64. JSON has no infinite thresholds."
)
VESPA_LIMITS = (
    "Exact for Vespa's default evaluation, which compares `x < threshold` in float64: thresholds are one step higher "
    "than in LightGBM, so do not read the file elsewhere; rankwood knows it by a mark. With `fastforest` Vespa rounds "
    "thresholds and leaves to float32."
)


def export_lightgbm_json(model: Ensemble, path: Path) -> str:
    """What `dump_model` gives for the same model; weights and base are in the leaves."""
    tell_tiny_thresholds(model)
    return _dump(model, finite(model.threshold, LARGEST, "JSON"))


def export_vespa(model: Ensemble, path: Path) -> str:
    """The dump as Vespa reads it: it puts `<` where the dump says `<=`."""
    return _dump(model, finite(below_double(model.threshold), LARGEST, "Vespa"), vespa=True)


def _dump(model: Ensemble, thresholds: FloatArray, *, vespa: bool = False) -> str:
    model = plain(model)
    names = names_of(model, "Column_{}")
    if not vespa:  # Vespa's rank features are calls such as fieldMatch(title)
        check_names(names)
    infos: dict[str, Any] = {name: {"min_value": None, "max_value": None, "values": []} for name in names}
    head = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": model.n_features - 1,
        "objective": "lambdarank",
        "average_output": False,
        "feature_names": names,
        "monotone_constraints": [],
        "feature_infos": infos,
    }
    if vespa:
        head |= VESPA_MARK
    text = [json.dumps(head)[:-1], ', "tree_info": [\n']
    counts = whole_covers(model)
    for tree in range(model.n_trees):
        text.append(_tree(model, tree, thresholds, *counts))
        text.append(",\n" if tree + 1 < model.n_trees else "\n")
    text.append('], "pandas_categorical": []}\n')
    return "".join(text)


def _tree(model: Ensemble, tree: int, thresholds: FloatArray, leaf_count: IndexArray, node_count: IndexArray) -> str:
    nodes, leaves = slice(*model.node_offsets[tree : tree + 2]), slice(*model.leaf_offsets[tree : tree + 2])
    gains = [0] * int(nodes.stop - nodes.start) if model.split_gain is None else model.split_gain[nodes].tolist()
    counts, leaf_counts = node_count[nodes].tolist(), leaf_count[leaves].tolist()
    features, missing_left = model.feature[nodes].tolist(), model.missing_left[nodes].tolist()
    splits, values = thresholds[nodes].tolist(), model.leaf_value[leaves].tolist()

    def opening(node: int) -> str:
        at = node - nodes.start
        return (
            f'{{"split_index": {at}, "split_feature": {features[at]}, "split_gain": {gains[at]!r}, '
            f'"threshold": {splits[at]!r}, "decision_type": "<=", '
            f'"default_left": {"true" if missing_left[at] else "false"}, "missing_type": "NaN", '
            f'"internal_count": {counts[at]}, "left_child": '
        )

    def leaf(number: int) -> str:
        at = number - leaves.start
        return f'{{"leaf_index": {at}, "leaf_value": {values[at]!r}, "leaf_count": {leaf_counts[at]}}}'

    structure = "".join(nested(model, tree, opening, leaf, ', "right_child": ', "}"))
    head = {"tree_index": tree, "num_leaves": len(values), "num_cat": 0, "shrinkage": 1}
    return f'{json.dumps(head)[:-1]}, "tree_structure": {structure}}}'
