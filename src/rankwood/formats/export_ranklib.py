"""RankLib's text model, which Elasticsearch's and OpenSearch's plugins read as `model/ranklib`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.formats.export_parts import plain, single_leaves
from rankwood.formats.export_thresholds import at_most_single
from rankwood.formats.export_xml import xml_tree

LIMITS = (
    "Every float32 value goes the same way (`x <= threshold` in float32); leaves are float32 and so is their sum. A "
    "missing value is read as 0. Features are known by number, from 1: names are lost."
)


def export_ranklib(model: Ensemble, path: Path) -> str:
    """A LambdaMART model; weights and base are in the leaves, all weights are 1."""
    model = plain(model)
    values = single_leaves(model, "RankLib")
    thresholds = at_most_single(model.threshold)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {model.n_trees}",
        f"## No. of leaves = {int(np.diff(model.leaf_offsets).max())}",
        "## No. of threshold candidates = 256",
        "## Learning rate = 1.0",
        "## Stop early = 100",
        "",
        "<ensemble>",
    ]
    for tree in range(model.n_trees):
        lines.append(f'\t<tree id="{tree + 1}" weight="1.0">')
        lines += xml_tree(model, tree, lambda n: _number(thresholds[n]), lambda n: _number(values[n]))
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""])


def _number(value: np.float32) -> str:
    """As Java's Float.parseFloat reads it."""
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))
