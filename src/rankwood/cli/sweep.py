"""`rankwood sweep`: a study of one's own, described in a TOML file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.experiment import Resume, RunThreads, TrainQueries, Workers, conduct
from rankwood.cli.models import AsJson, Dask


def sweep(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="Data, learner, parameters, and what varies.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder with folds, in place of the file's data.")
    ] = None,
    train_queries: TrainQueries = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Points of each search, in place of the file's.")
    ] = None,
    max_trees: Annotated[
        int | None, typer.Option("--max-trees", min=1, help="Most trees of any model, where the file allows more.")
    ] = None,
    search_only: Annotated[
        bool,
        typer.Option("--search-only", help="End with the search; without it, the same command does the timed runs."),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first try: at most two folds, one seed and 20 trees a model.")
    ] = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for runs, tables and figures; rankwood-NAME unless given.")
    ] = None,
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """Compare settings of learners over folds and seeds: quality, size, speed, and significance against the first.

    Learners are ours and those of LightGBM, XGBoost, CatBoost and ydf; the parameters of each may be searched on
    validation data.

    For instance, in leaves.toml: learner = "lambdamart", data.folder = "mq2008", grid.n_leaves = [8, 16, 32], seeds = 2
    """
    from rankwood.lab.sweep import read_sweep

    study = read_sweep(
        config, data=data, train_queries=train_queries, budget=budget, max_trees=max_trees, n_threads=threads,
        search_only=search_only,
    )  # fmt: skip
    folder = Path("rankwood-" + re.sub(r"[^\w.-]+", "-", study.title)) if out is None else out
    conduct(study.quick() if quick else study, out=folder, resume=resume, workers=workers, dask=dask, as_json=as_json)
