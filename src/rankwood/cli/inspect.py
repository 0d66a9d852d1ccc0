"""`rankwood inspect`: size and shape of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.arguments import AsJson
from rankwood.cli.console import print_json, print_table
from rankwood.cli.loading import load_models

TOP_FEATURES = 10


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
    rows = [[key, _show(value)] for key, value in facts.items() if isinstance(value, (int, float))]
    rows += [[key, str(value)] for key, value in ensemble.metadata.items()]
    print_table(name, ["property", "value"], rows)
