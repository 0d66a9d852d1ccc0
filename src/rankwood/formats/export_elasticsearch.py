"""Elasticsearch's own trained model: the body of `PUT _ml/trained_models/<id>`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.formats.export_parts import names_of, plain
from rankwood.formats.export_thresholds import LARGEST

LIMITS = "Exact in float64 (`lte`); Elasticsearch reads infinite values as missing, and its final score is a float32."


def export_elasticsearch(
    model: Ensemble,
    path: Path,
    *,
    feature_extractors: list[dict[str, Any]] | None = None,
    definition_only: bool = False,
) -> str:
    """The whole body, with `feature_extractors` as the learning-to-rank configuration when they are given, else as a
    regression model; or the definition alone, for clients that ask for it."""
    model = plain(model)
    names = names_of(model)
    trees = [
        {"tree": {"feature_names": names, "target_type": "regression", "tree_structure": _nodes(model, tree)}}
        for tree in range(model.n_trees)
    ]
    ensemble = {
        "feature_names": names,
        "target_type": "regression",
        "trained_models": trees,
        "aggregate_output": {"weighted_sum": {}},
    }
    definition = {"preprocessors": [], "trained_model": {"ensemble": ensemble}}
    if definition_only:
        return json.dumps(definition, allow_nan=False)
    config: dict[str, Any] = {"regression": {}}
    if feature_extractors is not None:
        config = {"learning_to_rank": {"feature_extractors": feature_extractors}}
    body = {"input": {"field_names": names}, "inference_config": config, "definition": definition}
    return json.dumps(body, allow_nan=False)


def _nodes(model: Ensemble, tree: int) -> list[dict[str, Any]]:
    """Inner nodes keep their numbers, leaves follow."""
    nodes, leaves = slice(*model.node_offsets[tree : tree + 2]), slice(*model.leaf_offsets[tree : tree + 2])
    n_nodes = int(nodes.stop - nodes.start)
    left, right = (np.where(c >= 0, c, n_nodes + ~c).tolist() for c in (model.left[nodes], model.right[nodes]))
    structure: list[dict[str, Any]] = []
    features, thresholds = model.feature[nodes].tolist(), model.threshold[nodes].tolist()
    for node, goes_left in enumerate(model.missing_left[nodes].tolist()):
        # Infinite values count as missing, so `<= inf` holds for all others and `<= -inf` for none.
        threshold = thresholds[node]
        structure.append(
            {
                "node_index": node,
                "decision_type": "lt" if threshold == -np.inf else "lte",
                "threshold": min(max(threshold, -LARGEST), LARGEST),
                "split_feature": features[node],
                "default_left": goes_left,
                "left_child": left[node],
                "right_child": right[node],
            }
        )
    values = model.leaf_value[leaves].tolist()
    structure += [{"node_index": n_nodes + leaf, "leaf_value": value} for leaf, value in enumerate(values)]
    return structure
