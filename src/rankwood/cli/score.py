"""`rankwood score`: one score per document, in input order, from files of any size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from rankwood.cli.console import progress, tell
from rankwood.cli.models import (
    DataFiles,
    PrecisionName,
    Threads,
    ZeroBased,
    check_output,
    last_feature,
    load_models,
    tell_absent_features,
)


def score(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: DataFiles,
    engine: Annotated[str, typer.Option(help="Scoring engine; all of them give the same scores.")] = "auto",
    precision: Annotated[
        PrecisionName, typer.Option(help="What sums of leaf values are held in: float32 is faster.")
    ] = PrecisionName.double,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; standard output unless given.")
    ] = None,
) -> None:
    """Score documents: one number per line, in the order of the input.

    Data is read, scored and written block by block, so it may be larger than memory.

    With -o the file is there when all has been written, and not at all after an error.
    """
    from rankwood.data.files import iter_features
    from rankwood.data.text import as_paths
    from rankwood.formats.registry import width_is_open
    from rankwood.scoring.engines import choose_engine, get_engine
    from rankwood.system import resolve_threads

    if engine != "auto":
        get_engine(engine)  # an unknown engine is refused before any work
    if output is not None:
        check_output(output, model, data)
    files = as_paths(data)
    (ensemble,) = load_models([model]).values()
    prepared = None if engine == "auto" else get_engine(engine).prepare(ensemble)
    n_docs = last = 0
    on_screen = output is None and sys.stdout.isatty()  # where a progress bar would disturb
    with _writer(output) as file, progress("scoring", unit="bytes", quiet=on_screen) as advance:
        blocks = iter_features(
            files,
            n_features=ensemble.n_features,
            beyond="ignore" if width_is_open(ensemble) else "error",
            feature_names=ensemble.feature_names,
            zero_based=zero_based,
            n_threads=threads,
            progress=lambda done, total: advance(done, total or None),
        )
        for X in blocks:
            if prepared is None:
                prepared = get_engine(choose_engine(ensemble, len(X))).prepare(ensemble)
            scores = prepared.score(X, precision=precision.value, n_threads=resolve_threads(threads))
            file.write("\n".join(map(repr, scores.tolist())) + "\n")
            file.flush()
            n_docs += len(X)
            last = max(last, last_feature(X))
    tell_absent_features(ensemble.n_features, last)
    if output is not None:
        tell(f"wrote {n_docs:,} scores to {output}")


@contextmanager
def _writer(output: Path | None) -> Iterator[IO[str]]:
    """The file to write to, or standard output."""
    from rankwood.atomic import atomic_write

    if output is None:
        yield sys.stdout
        return
    with atomic_write(output, "w") as file:
        yield file
