"""Models for Solr and for Elasticsearch's own trained models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.formats.writing import (
    LARGEST,
    MEASURED_ROWS,
    at_most_single,
    names_of,
    nested,
    plain,
    single_leaves,
    solr,
    warn,
)
from rankwood.model.ensemble import Ensemble
from rankwood.scoring.agreement import adversarial_rows

# Solr's `MultipleAdditiveTreesModel`.


SOLR_LIMITS = (
    "Solr compares `x <= threshold + 1e-6` in float32; thresholds are written so that the sum is the true one, and "
    "where no float32 does that (some below 1e-6 or negative) 0 and whole numbers still go the right way and a warning "
    "says which values may not. Leaves are float32 and so is their sum. A feature without a value is 0."
)
CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"


def export_solr(model: Ensemble, path: Path, *, name: str | None = None, store: str | None = None) -> str:
    """A model to upload to Solr's model store, named like the file unless `name` says otherwise; `store` is the feature
    store. Only the features that some split uses are listed, since Solr computes all that are."""
    model = plain(model)
    names = names_of(model)
    values = single_leaves(model, "Solr")
    thresholds = _thresholds(model, names)
    trees = []
    for tree in range(model.n_trees):
        root = "".join(
            nested(
                model,
                tree,
                lambda n: (
                    f'{{"feature": {json.dumps(names[model.feature[n]])}, '
                    f'"threshold": "{_number(thresholds[n])}", "left": '
                ),
                lambda n: f'{{"value": "{_number(values[n])}"}}',
                ', "right": ',
                "}",
            )
        )
        trees.append(f'{{"weight": "1.0", "root": {root}}}')
    used = np.unique(model.feature).tolist() or list(range(model.n_features))[:1]
    head: dict[str, Any] = {} if store is None else {"store": store}
    head |= {"class": CLASS, "name": path.stem if name is None else name}
    head |= {"features": [{"name": names[feature]} for feature in used]}
    return f'{json.dumps(head)[:-1]}, "params": {{"trees": [\n' + ",\n".join(trees) + "\n]}}\n"


def _thresholds(model: Ensemble, names: list[str]) -> Any:
    written, reached = solr(model.threshold)
    wanted = at_most_single(model.threshold)
    off = np.flatnonzero(reached != wanted)
    if len(off):
        gaps = np.abs(reached[off].astype(np.float64) - wanted[off])
        widest = off[gaps.argmax()]
        low, high = sorted((reached[widest], wanted[widest]))
        goes = "left instead of right" if reached[widest] > wanted[widest] else "right instead of left"
        deviation, n_rows = _deviation(model, reached.astype(np.float64), off)
        warn(
            f"Solr adds 1e-6 to thresholds in float32 and so cannot give {len(off)} of {model.n_nodes} of them: values "
            f"between such a threshold and the nearest that it can give, at most {gaps.max():.2g} away, may go the "
            f"other way, as {names[model.feature[widest]]} above {low!s} and up to {high!s}, which goes {goes}. Zero "
            f"and whole numbers go where they do here. Rows with such values score up to {deviation:.3g} more or less "
            f"(measured on {n_rows} rows)"
        )
    return written


def _deviation(model: Ensemble, reached: FloatArray, off: IndexArray) -> tuple[float, int]:
    """The most that scores differ with the thresholds that Solr compares with, and on how many rows that was measured.
    Trees without such a threshold score alike, so only the others are looked at."""
    trees = np.unique(np.searchsorted(model.node_offsets, off, side="right") - 1)
    exact, moved = model.select(trees), model.replace(threshold=reached).select(trees)
    X = np.nan_to_num(adversarial_rows([exact, moved], max_rows=MEASURED_ROWS).single, nan=0.0, posinf=1.0, neginf=-1.0)
    return float(np.abs(exact.score(X) - moved.score(X)).max(initial=0.0)), len(X)


def _number(value: np.float32) -> str:
    """As Java's Float.parseFloat reads it."""
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


# Elasticsearch's own trained model: the body of `PUT _ml/trained_models/<id>`.


ELASTICSEARCH_LIMITS = (
    "Exact in float64 (`lte`); Elasticsearch reads infinite values as missing, and its final score is a float32."
)


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
