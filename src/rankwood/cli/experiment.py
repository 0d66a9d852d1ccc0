"""The options that commands of studies share, and `conduct`, which does the runs and writes the report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import fail, print_json, print_table, print_text, progress, tell
from rankwood.cli.models import dask_client
from rankwood.errors import MissingPackageError, RankwoodError

if TYPE_CHECKING:
    from rankwood.lab.runs import RunTable
    from rankwood.lab.study import Source, Study

TABLE, LINES = "runs.sqlite", "runs.jsonl"

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Folder with folds: Fold1/train.txt or .parquet and so on, or LETOR's "
                 "S1.txt to S5.txt; synthetic data unless given."),
]  # fmt: skip
Folds = Annotated[str | None, typer.Option("--folds", help="Folds to use, like 1..5 or 1,3; all unless given.")]
TrainQueries = Annotated[
    int | None,
    typer.Option("--train-queries", min=1, help="Queries of a fold to train on, drawn from them; all unless given."),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Runs of every setting, each with its own seed.")]
Quick = Annotated[bool, typer.Option("--quick", help="Two folds, few trees: seconds instead of minutes.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for runs, tables and figures.")]
Resume = Annotated[
    bool, typer.Option("--resume/--no-resume", help="Go on from the runs in --out, or put them aside and start anew.")
]
RunThreads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of a run; the CPUs shared by --workers unless given.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Runs at the same time, each in a process of its own.")]


def open_folds(
    data: Path | None, folds: str | None, train_queries: int | None, quick: bool, threads: int | None
) -> tuple[Source, list[int]]:
    """Return the data and the numbers of the folds to use."""
    from rankwood.lab.study import open_source, parse_folds

    source = open_source(data, quick=quick, train_queries=train_queries, n_threads=threads)
    if data is None:
        tell("no --data: synthetic data, shaped like MSLR's")
    numbers = parse_folds(folds, source.n_folds)
    return source, numbers[:2] if quick and folds is None else numbers


def conduct(study: Study, *, out: Path, resume: bool, workers: int, dask: str | None, as_json: bool) -> None:
    """Do the runs with a progress bar, write the report, and print the main table."""
    if dask is not None and workers > 1:
        raise RankwoodError("--workers and --dask both say where runs are done: give one of them")
    from rankwood.lab.drawing import check_figures
    from rankwood.lab.runs import run_key
    from rankwood.lab.workers import share_threads
    from rankwood.system import environment

    try:
        check_figures()
    except MissingPackageError as error:
        tell(f"{error}; tables are written without them")
    table = _open_table(study.name, out, resume)
    if len(table) and not as_json:
        tell(f"{len(table)} finished runs in {table.path} are not done again where they are part of this")
    try:
        with dask_client(dask) as client, progress(study.name, unit="runs", quiet=as_json) as advance:
            runs = study.runs(table, n_workers=workers, client=client, on_run=advance)
    except KeyboardInterrupt:
        fail(f"interrupted: {len(table)} runs are kept in {table.path}; the same command goes on from them", 130)
    report = study.report(runs)
    of_runs = table.environments({run_key(config) for config, _ in runs})
    here = environment(share_threads(study.n_threads, workers), workers)
    written = report.write(out, environment=here, of_runs=of_runs)
    table.export(out / LINES)
    if as_json:
        print_json(json.loads((out / "results.json").read_text(encoding="utf-8")))
        return
    main = report.tables[0]
    print_table(main.title, main.columns, main.rows, caption=main.note, details=main.details)
    print_text(report.summary)
    tell(f"wrote {written[0]} and {len(written)} more files")


def _open_table(study: str, out: Path, resume: bool) -> RunTable:
    """Open the table of runs in a folder, or raise an error when it has runs of another study."""
    from rankwood.lab.runs import RunTable

    out.mkdir(parents=True, exist_ok=True)
    table = RunTable(out / TABLE)
    if not resume:
        len(table)  # reading the file undoes what a kill left unfinished
        for path in (table.path, out / LINES):
            if path.exists():
                os.replace(path, _free_name(path))
        return table
    others = sorted(table.studies() - {study})
    if others:
        raise RankwoodError(f"{out} has runs of {others[0]}: give every study an --out of its own")
    return table


def _free_name(path: Path) -> Path:
    """Return a new name beside an old file, to put it aside."""
    numbers = ["", *(f".{number}" for number in range(2, 1000))]
    names = (path.with_name(f"{path.stem}.old{number}{path.suffix}") for number in numbers)
    return next(name for name in names if not name.exists())


def numbers(text: str, kind: Callable[[str], Any]) -> tuple[Any, ...]:
    """Return the numbers of a text that has commas between them.

    Examples
    --------
    >>> numbers("1,2", int)
    (1, 2)
    """
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise RankwoodError(f"expected numbers with commas between them, got {text!r}") from None
