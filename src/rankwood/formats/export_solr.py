"""Solr's `MultipleAdditiveTreesModel`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.formats.export_parts import names_of, nested, plain, single_leaves, warn
from rankwood.formats.export_thresholds import at_most_single, solr

LIMITS = (
    "Solr compares `x <= threshold + 1e-6` in float32; thresholds are written so that the sum is the true one, and "
    "where no float32 does that (some below 1e-6 or negative) a warning says how far it is off. Leaves are float32 and "
    "so is their sum. A feature without a value is 0."
)
CLASS = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"


def export_solr(model: Ensemble, path: Path, *, name: str | None = None, store: str | None = None) -> str:
    """A model to upload to Solr's model store, named like the file unless `name` says otherwise; `store` is the feature
    store. Only the features that some split uses are listed, since Solr computes all that are."""
    model = plain(model)
    names = names_of(model)
    values = single_leaves(model, "Solr")
    thresholds = _thresholds(model)
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


def _thresholds(model: Ensemble) -> Any:
    written, reached = solr(model.threshold)
    wanted = at_most_single(model.threshold)
    off = reached != wanted
    if off.any():
        farthest = float(np.abs(reached[off].astype(np.float64) - wanted[off]).max())
        warn(
            f"Solr adds 1e-6 to thresholds in float32, which cannot give {int(off.sum())} of {model.n_nodes} of them: "
            f"values within {farthest:.2g} of those may go the other way"
        )
    return written


def _number(value: np.float32) -> str:
    """As Java's Float.parseFloat reads it."""
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))
