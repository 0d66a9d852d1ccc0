"""`rankwood score`: one score per document, in input order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.arguments import DataFiles, Threads, ZeroBased
from rankwood.cli.console import tell
from rankwood.cli.loading import load_data, load_models


def score(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: DataFiles,
    engine: Annotated[str, typer.Option(help="Scoring engine.")] = "auto",
    threads: Threads = None,
    zero_based: ZeroBased = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; standard output unless given.")
    ] = None,
) -> None:
    """Score documents: one number per line, in the order of the input."""
    from rankwood.atomic import atomic_write, check_writable
    from rankwood.evaluation.evaluate import aligned_features
    from rankwood.threads import resolve_threads

    if output is not None:
        check_writable(output)
    models = load_models([model])
    (ensemble,) = models.values()
    dataset = load_data(data, models, zero_based=zero_based, n_threads=threads, queries="optional")
    scores = ensemble.score(aligned_features(ensemble, dataset), engine=engine, n_threads=resolve_threads(threads))
    text = "".join(f"{value!r}\n" for value in scores.tolist())  # repr: the shortest text that reads back the same
    if output is None:
        sys.stdout.write(text)
        return
    with atomic_write(output, "w") as file:
        file.write(text)
    tell(f"wrote {len(scores):,} scores to {output}")
