"""`rankwood score`: one score per document, in input order, from files of any size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from rankwood.cli.console import progress, tell
from rankwood.cli.models import (
    Dask,
    DataFiles,
    PrecisionName,
    Rename,
    Threads,
    ZeroBased,
    are_tables,
    check_output,
    dask_client,
    last_feature,
    load_data,
    load_models,
    named_as_data,
    of_the_model,
    read_renames,
    tell_absent_features,
)
from rankwood.coding import reading_for
from rankwood.data.tables import import_pyarrow
from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, RankwoodError
from rankwood.matrix import column_order
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
    rename: Rename = None,
    exit: Annotated[
        bool, typer.Option("--exit/--no-exit", help="Whether a model with early exit is scored with it, by queries.")
    ] = True,
    dask: Dask = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write, or folder for Parquet parts; standard output unless given."
        ),
    ] = None,
) -> None:
    """Score documents: one number per line, in the order of the input.

    Data is read, scored and written block by block, so it may be larger than memory. A model with early exit needs whole queries: for it all data is read first, unless --no-exit is given.

    With -o the file is there when all has been written, and not at all after an error. Of several Parquet files, or of a folder of them, a name without a suffix is a folder, with a Parquet file of scores for every file.

    With --dask the workers of a cluster read and score files, which they must see; one process writes the scores, in the same order.
    """  # noqa: E501  typer keeps line ends
    from rankwood.data.partitions import data_files
    from rankwood.scoring.engines import get_engine

    if engine != "auto":
        get_engine(engine)  # an unknown engine is refused before any work
    files = data_files(data)
    folder = output if output is not None and is_folder(output, data) else None
    if output is not None and folder is None:
        check_output(output, model, files)
    models = named_as_data(load_models([model]), read_renames(rename))
    (ensemble,) = models.values()
    if dask is not None or folder is not None:
        if exit and ensemble.exit is not None:
            raise RankwoodError("early exit needs whole queries, which partitions may cut in two: give --no-exit")
        settings = {"engine": engine, "precision": precision.value, "n_threads": threads or 1}
        n_docs = _score_parts(ensemble, files, settings, zero_based, dask, output, folder)
    elif exit and ensemble.exit is not None:
        scores = _score_queries(models, files, engine, precision, threads, zero_based)
        with _writer(output) as file:
            file.write("".join(f"{score!r}\n" for score in scores.tolist()))
        n_docs = len(scores)
    else:
        n_docs = _score_blocks(ensemble, files, engine, precision, threads, zero_based, output)
    if output is not None:
        tell(f"wrote {n_docs:,} scores to {output}")


def _score_blocks(
    ensemble: Ensemble,
    files: list[Path],
    engine: str,
    precision: PrecisionName,
    threads: int | None,
    zero_based: bool,
    output: Path | None,
) -> int:
    """Write the scores of the documents block by block, and return their number."""
    from rankwood.data.files import iter_features
    from rankwood.scoring.engines import choose_engine, get_engine
    from rankwood.system import resolve_threads

    prepared = None if engine == "auto" else get_engine(engine).prepare(ensemble)
    n_docs = last = 0
    on_screen = output is None and sys.stdout.isatty()  # where a progress bar would disturb
    with of_the_model(), _writer(output) as file, progress("scoring", unit="bytes", quiet=on_screen) as advance:
        blocks = iter_features(
            files,
            n_features=ensemble.n_features,
            beyond=_beyond(ensemble, files),
            feature_names=ensemble.feature_names,
            zero_based=zero_based,
            n_threads=threads,
            progress=lambda done, total: advance(done, total or None),
            **reading_for([ensemble]),
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
    return n_docs


def _beyond(model: Ensemble, files: Sequence[Path]) -> Literal["error", "ignore"]:
    """What happens to features that the model does not know, where its file may have left some out."""
    from rankwood.formats.registry import names_used_only, width_is_open

    return "ignore" if width_is_open(model) or (names_used_only(model) and are_tables(files)) else "error"


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
        dataset = load_data(data, models, exact=True, zero_based=zero_based, n_threads=threads)
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


def is_folder(output: Path, data: Sequence[Path]) -> bool:
    """Whether scores go to a folder: of several Parquet files, or a folder of them, unless the name has a suffix."""
    from rankwood.data.partitions import is_parquet

    several = len(data) > 1 or data[0].is_dir()
    return output.is_dir() or (several and not output.suffix and not output.exists() and is_parquet(data))


def _score_parts(
    model: Ensemble,
    files: list[Path],
    settings: dict[str, Any],
    zero_based: bool,
    dask: str | None,
    output: Path | None,
    folder: Path | None,
) -> int:
    """Score files piece by piece, here or on a Dask cluster, and write the scores; returns how many."""
    from rankwood.atomic import atomic_folder
    from rankwood.data.partitions import file_of, partitions
    from rankwood.data.parts import tell_unseen_of
    from rankwood.evaluation.partitions import check_seen
    from rankwood.scoring.partitions import part_scores
    from rankwood.tasks import in_order

    parts = partitions(
        files,
        n_features=model.n_features,
        zero_based=zero_based,
        beyond=_beyond(model, files),
        feature_names=model.feature_names,
        queries="optional",
        **reading_for([model]),
    )
    column_order(parts[0].features, model.feature_names, str(files[0]))  # refuses other columns
    with ExitStack() as stack:
        stack.enter_context(of_the_model())
        write = stack.enter_context(
            _text(output) if folder is None else _tables(stack.enter_context(atomic_folder(folder)), files)
        )
        client = stack.enter_context(dask_client(dask))
        if client is not None:
            check_seen(client, [file_of(part) for part in parts])
        quiet = output is None and sys.stdout.isatty()
        advance = stack.enter_context(progress("scoring", unit="parts", quiet=quiet))
        found = (
            (part_scores(part, model, settings) for part in parts)
            if client is None
            else stack.enter_context(closing(in_order(client, part_scores, parts, model, settings)))
        )
        n_docs = 0
        for number, (part, scores) in enumerate(zip(parts, found, strict=True), start=1):
            write(file_of(part), scores)
            n_docs += len(scores)
            advance(number, len(parts))
    tell_unseen_of(parts)  # workers count for themselves
    return n_docs


Write = Callable[[Path, FloatArray], None]


@contextmanager
def _text(output: Path | None) -> Iterator[Write]:
    """A function that writes scores of the rows of a file, one per line."""
    with _writer(output) as file:

        def write(_: Path, scores: FloatArray) -> None:
            file.write("".join(f"{score!r}\n" for score in scores.tolist()))

        yield write


@contextmanager
def _tables(folder: Path, files: list[Path]) -> Iterator[Write]:
    """A function that adds scores of the rows of a file to the Parquet file of the same name in a folder."""
    pa = import_pyarrow("writing Parquet")
    from pyarrow import parquet

    schema = pa.schema([("score", pa.float64())])
    unique = len({file.name for file in files}) == len(files)
    left = {
        file.resolve(): folder / (file.name if unique else f"{number:05d}-{file.name}")
        for number, file in enumerate(files)
    }
    with ExitStack() as opened:
        writers: list[Any] = []

        def write(file: Path, scores: FloatArray) -> None:
            if file in left:  # pieces of a file follow each other
                opened.close()
                writers[:] = [opened.enter_context(parquet.ParquetWriter(left.pop(file), schema))]
            writers[0].write_table(pa.table({"score": scores}))

        yield write
    for path in left.values():
        parquet.write_table(schema.empty_table(), path)


@contextmanager
def _writer(output: Path | None) -> Iterator[IO[str]]:
    """The file to write to, or standard output."""
    from rankwood.atomic import atomic_write

    if output is None:
        yield sys.stdout
        return
    with atomic_write(output, "w") as file:
        yield file
