"""QuickRank's XML model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.formats.export_parts import finite, plain
from rankwood.formats.export_thresholds import LARGEST_SINGLE, at_most_single
from rankwood.formats.export_xml import xml_tree

LIMITS = (
    "Every float32 value goes the same way (`x <= threshold` in float32); weights and leaves keep all their digits. "
    "Missing values do not exist: they are read as 0. Features are known by number, from 1: names are lost."
)


def export_quickrank(model: Ensemble, path: Path) -> str:
    """A LambdaMART model with its weights; a base is added to the leaves of the first tree, whose weight is then 1."""
    if model.n_trees == 0:
        model = plain(model)
    elif model.base != 0:
        folded = plain(model.select([0]))
        weights = model.tree_weights.copy()
        weights[0] = 1.0
        values = np.concatenate([folded.leaf_value, model.leaf_value[model.leaf_offsets[1] :]])
        model = model.replace(leaf_value=values, tree_weights=weights, base=0.0)
    thresholds = finite(at_most_single(model.threshold), LARGEST_SINGLE, "QuickRank")
    lines = [
        "<ranker>",
        "\t<info>",
        "\t\t<type>LAMBDAMART</type>",
        f"\t\t<trees>{model.n_trees}</trees>",
        f"\t\t<leaves>{int(np.diff(model.leaf_offsets).max())}</leaves>",
        "\t\t<shrinkage>1</shrinkage>",
        "\t\t<leafsupport>1</leafsupport>",
        "\t\t<discretization>0</discretization>",
        "\t\t<estop>0</estop>",
        "\t</info>",
        "\t<ensemble>",
    ]
    for tree in range(model.n_trees):
        lines.append(f'\t\t<tree id="{tree + 1}" weight="{float(model.tree_weights[tree])!r}">')
        lines += xml_tree(
            model,
            tree,
            lambda node: repr(float(thresholds[node])),
            lambda leaf: repr(float(model.leaf_value[leaf])),
            indent="\t\t\t",
        )
        lines.append("\t\t</tree>")
    return "\n".join([*lines, "\t</ensemble>", "</ranker>", ""])
