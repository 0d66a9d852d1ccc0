"""`rankwood verify`: tell whether two models score alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import print_json, print_line
from rankwood.cli.models import AsJson, Threads, ZeroBased, load_data, load_models


def verify(
    a: Annotated[Path, typer.Argument(metavar="A", help="Model file.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Model file to compare it with.")],
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="FILE...", help="Also compare on this data. Files as for `score`."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0, help="Largest relative difference of scores that is accepted.")
    ] = 1e-6,
    float32: Annotated[
        bool, typer.Option("--float32", help="Compare on float32 values only, which is what many tools hold.")
    ] = False,
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Rows at thresholds to try, of each type.")] = 40_000,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Score two models on rows at every threshold of both, and on data: status 0 when they agree, 1 when not."""
    from rankwood.formats.registry import widen
    from rankwood.verification import verify as compare

    models = load_models([a, b])
    widest = max(model.n_features for model in models.values())
    models = {name: widen(model, widest) for name, model in models.items()}  # if their formats leave it open
    dataset = None
    if data:
        dataset = load_data(data, models, zero_based=zero_based, n_threads=threads, queries="optional", quiet=as_json)
    (name_a, model_a), (name_b, model_b) = models.items()
    result = compare(
        model_a,
        model_b,
        dataset,
        tolerance=tolerance,
        dtype="float32" if float32 else None,
        max_rows=rows,
        n_threads=threads,
        names=(name_a, name_b),
    )
    if as_json:
        print_json(result.as_dict())
    else:
        for line in result.lines():
            print_line(line)
    if not result:
        raise typer.Exit(1)
