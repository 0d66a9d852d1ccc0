"""`rankwood inspect`: size and shape of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankwood.cli.arguments import AsJson
from rankwood.cli.console import print_json, print_table
from rankwood.cli.loading import load_models

TOP_FEATURES = 10
LONGEST_NOTE = 60  # characters of a metadata entry; --json has them whole


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    as_json: AsJson = False,
) -> None:
    """Show the topology of a model: trees, nodes, depth, features used, size."""
    ((name, ensemble),) = load_models([model]).items()
    topology = ensemble.topology()
    facts = topology.as_dict()
    if as_json:
        print_json({"model": name, **facts, "metadata": ensemble.metadata})
        return
    rows = [[_words(key), _show(value)] for key, value in facts.items() if isinstance(value, (int, float))]
    for key, value in ensemble.metadata.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [[_words(f"{key} {name}".strip()), _note(entry)] for name, entry in inner]
    print_table(name, ["property", "value"], rows)
    used = np.argsort(-topology.splits_per_feature, kind="stable")[: min(TOP_FEATURES, topology.n_features_used)]
    names = ensemble.feature_names or [f"feature {f + 1}" for f in range(ensemble.n_features)]
    print_table(
        "Features most often split on (numbered as in data files, from 1)",
        ["feature", "splits", "share", "distinct thresholds"],
        [
            [
                names[f],
                f"{topology.splits_per_feature[f]:,}",
                f"{100 * topology.splits_per_feature[f] / topology.n_nodes:.1f} %",
                f"{topology.thresholds_per_feature[f]:,}",
            ]
            for f in used
        ],
    )


def _words(key: str) -> str:
    return "inner nodes" if key == "n_nodes" else key.removeprefix("n_").replace("_", " ")


def _note(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}..."


def _show(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
