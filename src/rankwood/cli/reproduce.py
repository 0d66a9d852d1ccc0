"""`rankwood reproduce`: the experiments of a paper, which can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import tell
from rankwood.cli.experiment import (
    Data,
    Folds,
    Out,
    Quick,
    Resume,
    RunThreads,
    Seeds,
    TrainQueries,
    Workers,
    conduct,
    numbers,
    open_folds,
)
from rankwood.cli.models import AsJson, Dask
from rankwood.errors import RankwoodError

app = typer.Typer(help="Repeat the experiments of a paper and put its tables beside ours.", no_args_is_help=True)

Trees = Annotated[int | None, typer.Option("--trees", min=1, help="Trees of a forest; 1,000 unless given.")]

Normalize = Annotated[
    bool,
    typer.Option("--normalize", help="Scale and truncate LambdaMART's gradients as LightGBM does; plain unless given."),
]


class Criterion(str, Enum):
    """What splits of a forest lower."""

    entropy = "entropy"
    variance = "variance"


class Grid(str, Enum):
    """Settings of a study that have a name."""

    paper = "paper"


class Gaps(str, Enum):
    """What counts as missing."""

    nan = "nan"
    zero = "zero"


@app.command("subsampling")
def subsampling(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Seeds = None,
    trees: Trees = None,
    sweep: Annotated[
        str | None, typer.Option(help="Queries per tree, like 1,5,21,10%,63%; chosen by the data unless given.")
    ] = None,
    grid: Annotated[
        Grid | None,
        typer.Option(help="paper: the paper's own settings instead, about 25 of them, and ten runs of each."),
    ] = None,
    criterion: Annotated[Criterion, typer.Option(help="What splits lower.")] = Criterion.entropy,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-subsampling"),
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """Forests on small samples of queries (Ibrahim & Carman 2014, tables 1 to 4)."""
    from rankwood.lab.papers import subsampling as paper

    if sweep is not None and grid is not None:
        raise RankwoodError("--sweep and --grid both say what is compared: give one of them")
    source, chosen = open_folds(data, folds, train_queries, quick, threads)
    baseline = paper.BASELINE
    if sweep is not None:
        settings = list(dict.fromkeys([*map(paper.Sample.parse, sweep.split(",")), baseline]))
    else:
        n_queries = source.load(chosen[0]).train.n_queries
        if grid is None:
            settings = paper.default_sweep(n_queries)
        else:
            settings = paper.paper_grid(source.name, n_queries)
            baseline = paper.nearest_to_bootstrap(settings, n_queries)
        if quick and len(settings) > 3:
            few = settings[:3] if grid else [settings[0], settings[len(settings) // 2]]
            settings = list(dict.fromkeys([*few, baseline]))
    n_trees = trees or (50 if quick else 1000)
    study = paper.SubsamplingStudy(
        source,
        chosen,
        settings,
        n_seeds=seeds or (2 if quick else 5 if grid is None else 10),
        n_trees=n_trees,
        criterion=criterion.value,
        baseline=baseline,
        documents=paper.DOCUMENTS[1::2] if quick else paper.DOCUMENTS,
        boosted_trees=n_trees,
        n_threads=threads,
    )
    conduct(study, out=out, resume=resume, workers=workers, dask=dask, as_json=as_json)


@app.command("igbrt")
def igbrt(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Seeds = None,
    trees: Trees = None,
    boosted_trees: Annotated[int | None, typer.Option(min=1, help="Most rounds of boosting; 500 unless given.")] = None,
    learning_rates: Annotated[
        str | None, typer.Option(help="Learning rates to try; 0.1,0.2,0.3,0.4,0.5 unless given.")
    ] = None,
    initial_trees: Annotated[
        str | None, typer.Option(help="Sizes of forests to start from besides --trees; 100 unless given.")
    ] = None,
    gaps: Annotated[
        Gaps | None,
        typer.Option(help="What is missing where ways to treat missing values are compared: nan, or zero as well."),
    ] = None,
    gap_queries: Annotated[
        int, typer.Option(min=0, help="Most training queries that these ways are compared on; 0: they are not.")
    ] = 1000,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-igbrt"),
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """GBRT, forests, and boosting from a forest, by regression and by grades (Mohan et al. 2011, tables 1 to 4)."""
    from rankwood.lab.papers.igbrt import IgbrtStudy

    source, chosen = open_folds(data, folds, train_queries, quick, threads)
    study = IgbrtStudy(
        source,
        chosen,
        n_seeds=seeds or 1,
        n_trees=trees or (30 if quick else 1000),
        boosted_trees=boosted_trees or (30 if quick else 500),
        learning_rates=numbers(learning_rates or ("0.1,0.3" if quick else "0.1,0.2,0.3,0.4,0.5"), float),
        initial_trees=numbers(initial_trees or ("10" if quick else "100"), int),
        gaps=(Gaps.zero if quick and data is None else Gaps.nan).value if gaps is None else gaps.value,
        gap_queries=gap_queries,
        n_threads=threads,
    )
    conduct(study, out=out, resume=resume, workers=workers, dask=dask, as_json=as_json)


@app.command("xdart")
def xdart(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Seeds = None,
    trees: Annotated[int | None, typer.Option(min=5, help="Trees of DART and X-DART; 500 unless given.")] = None,
    full_trees: Annotated[
        int | None, typer.Option(min=5, help="Most trees of LambdaMART, which stops early; 1,500 unless given.")
    ] = None,
    leaves: Annotated[int, typer.Option(min=2, help="Leaves of a tree.")] = 50,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods to run besides DART, like 'LambdaMART,X-DART adaptive 5'; all unless given."),
    ] = None,
    normalize: Normalize = False,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-xdart"),
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """LambdaMART, DART and X-DART by the number of trees (Lucchese et al. 2017, table 1 and figure 1)."""
    from rankwood.lab.papers.xdart import METHODS, REFERENCE, XdartStudy

    source, chosen = open_folds(data, folds, train_queries, quick, threads)
    names = list(METHODS) if methods is None else [REFERENCE, *(name.strip() for name in methods.split(","))]
    n_trees = trees or (30 if quick else 500)
    study = XdartStudy(
        source,
        chosen,
        n_seeds=seeds or 1,
        n_trees=n_trees,
        full_trees=full_trees or 3 * n_trees,
        n_leaves=min(leaves, 8) if quick else leaves,
        methods=list(dict.fromkeys(names)),
        normalize=normalize,
        n_threads=threads,
    )
    conduct(study, out=out, resume=resume, workers=workers, dask=dask, as_json=as_json)


@app.command("cleaver")
def cleaver(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of the strategy random; 10 unless given. Nothing else here is drawn."),
    ] = None,
    sizes: Annotated[str | None, typer.Option(help="Trees of the smaller models; 100,500 unless given.")] = None,
    trees: Annotated[int | None, typer.Option(min=1, help="Most trees of the full model; 1,500 unless given.")] = None,
    leaves: Annotated[str | None, typer.Option(help="Leaves of a tree to try; 25,50 unless given.")] = None,
    learning_rates: Annotated[str | None, typer.Option(help="Learning rates to try; 0.05,0.1 unless given.")] = None,
    rates: Annotated[str | None, typer.Option(help="Pruning rates; 0,0.1,...,0.9 unless given.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Of a line search; 100 unless given.")] = None,
    normalize: Normalize = False,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-cleaver"),
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """Pruning of trained ensembles, strategies by sizes (Lucchese et al. 2016, table 1 and the closing comparison)."""
    from rankwood.lab.papers.cleaver import CleaverStudy

    source, chosen = open_folds(data, folds, train_queries, quick, threads)
    small = numbers(sizes or ("10,20" if quick else "100,500"), int)
    study = CleaverStudy(
        source,
        chosen,
        sizes=small,
        n_trees=trees or (40 if quick else 1500),
        leaves=numbers(leaves or ("8" if quick else "25,50"), int),
        learning_rates=numbers(learning_rates or ("0.1" if quick else "0.05,0.1"), float),
        rates=numbers(rates or ("0,0.25,0.5,0.75" if quick else "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"), float),
        iterations=iterations or (5 if quick else 100),
        n_random=seeds or (2 if quick else 10),
        closing=(min(small), max(small)),
        normalize=normalize,
        n_threads=threads,
    )
    conduct(study, out=out, resume=resume, workers=workers, dask=dask, as_json=as_json)


@app.command("asadi-lin")
def asadi_lin(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Seeds = None,
    trees: Annotated[
        int | None, typer.Option(min=1, help="Most trees of a model, which stops early; 1,500 unless given.")
    ] = None,
    leaves: Annotated[int | None, typer.Option(min=2, help="Leaves of a tree; 70 unless given.")] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Trees without a better validation nDCG before the end; 200 unless given.")
    ] = None,
    timing: Annotated[
        str, typer.Option(help="Name of the series of latency measurements: another name takes them all again.")
    ] = "1",
    normalize: Normalize = False,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-asadi-lin"),
    resume: Resume = True,
    as_json: AsJson = False,
) -> None:
    """Cost-sensitive growth and pruning while boosting, by topology, nDCG and latency (Asadi & Lin 2013, table 1)."""
    from rankwood.lab.papers.asadi_lin import ALPHAS, LAMBDAS, AsadiLinStudy

    source, chosen = open_folds(data, folds, train_queries, quick, threads)
    study = AsadiLinStudy(
        source,
        chosen,
        n_seeds=seeds or 1,
        n_trees=trees or (40 if quick else 1500),
        n_leaves=leaves or (16 if quick else 70),
        patience=patience or (20 if quick else 200),
        lambdas=LAMBDAS[1:2] if quick else LAMBDAS,
        alphas=ALPHAS[2:4] if quick else ALPHAS,
        timing=timing,
        normalize=normalize,
        n_threads=threads,
    )
    conduct(study, out=out, resume=resume, workers=workers, dask=dask, as_json=as_json)


@app.command("all")
def all_studies(
    data: Data = None,
    folds: Folds = None,
    train_queries: TrainQueries = None,
    seeds: Seeds = None,
    quick: Quick = False,
    threads: RunThreads = None,
    workers: Workers = 1,
    dask: Dask = None,
    out: Out = Path("rankwood-papers"),
    resume: Resume = True,
) -> None:
    """All five papers, one after the other, each in a folder of its own below --out; a second call goes on."""
    shared = {
        "data": data, "folds": folds, "train_queries": train_queries, "quick": quick, "threads": threads,
        "workers": workers, "dask": dask, "resume": resume,
    }  # fmt: skip
    for number, (name, study) in enumerate(STUDIES.items(), start=1):
        tell(f"study {number} of {len(STUDIES)}, {name}: in {out / name}")
        study(seeds=seeds, out=out / name, **shared)


STUDIES: dict[str, Callable[..., None]] = {
    "asadi-lin": asadi_lin, "cleaver": cleaver, "xdart": xdart, "igbrt": igbrt, "subsampling": subsampling,
}  # fmt: skip
