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
    load_data,
    load_models,
    tell_absent_features,
)
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError
from rankwood.model.ensemble import Ensemble


def score(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    data: DataFiles,
    engine: Annotated[str, typer.Option(help="Scoring engine; all of them give the same scores.")] = "auto",
    precision: Annotated[
        PrecisionName, typer.Option(help="What sums of leaf values are held in: float32 is faster.")
    ] = PrecisionName.double,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    exit: Annotated[
        bool, typer.Option("--exit/--no-exit", help="Whether a model with early exit is scored with it, by queries.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; standard output unless given.")
    ] = None,
) -> None:
    """Score documents: one number per line, in the order of the input.

    Data is read, scored and written block by block, so it may be larger than memory. A model with early exit needs whole queries: for it all data is read first, unless --no-exit is given.

    With -o the file is there when all has been written, and not at all after an error.
    """  # noqa: E501  typer keeps line ends
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
    models = load_models([model])
    (ensemble,) = models.values()
    if exit and ensemble.exit is not None:
        scores = _score_queries(models, data, engine, precision, threads, zero_based)
        with _writer(output) as file:
            file.write("".join(f"{score!r}\n" for score in scores.tolist()))
        if output is not None:
            tell(f"wrote {len(scores):,} scores to {output}")
        return
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


def _score_queries(
    models: dict[str, Ensemble],
    data: list[Path],
    engine: str,
    precision: PrecisionName,
    threads: int | None,
    zero_based: bool,
) -> FloatArray:
    """Scores with early exit, in the order of the input."""
    from rankwood.evaluation.evaluator import aligned_features

    try:
        dataset = load_data(data, models, zero_based=zero_based, n_threads=threads)
    except DataError as error:
        hint = "; early exit needs queries: without them give --no-exit" if "qid" in str(error) else ""
        raise DataError(f"{error}{hint}") from None
    (model,) = models.values()
    return model.score(
        aligned_features(model, dataset),
        qid=dataset.queries.index,
        engine=engine,
        precision=precision.value,
        n_threads=threads,
    )


@contextmanager
def _writer(output: Path | None) -> Iterator[IO[str]]:
    """The file to write to, or standard output."""
    from rankwood.atomic import atomic_write

    if output is None:
        yield sys.stdout
        return
    with atomic_write(output, "w") as file:
        yield file
