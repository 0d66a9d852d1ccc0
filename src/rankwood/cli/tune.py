"""`rankwood tune`: the best ranker within a scoring budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankwood.cli.console import fail, print_json, print_line, print_table, progress, tell
from rankwood.cli.models import (
    AsJson,
    ByConvention,
    Dask,
    NewModel,
    Seed,
    Threads,
    ZeroBased,
    check_output,
    dask_client,
    load_data,
    load_models,
)
from rankwood.cli.options import takes_options
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.lab.report.page import number
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.evaluation.evaluator import Comparison
    from rankwood.lab.search import Point
    from rankwood.lab.tune import TuneResult


@dataclass(frozen=True)
class TuneOptions:
    """Options of `rankwood tune`, in the order of its help."""

    train: Annotated[list[Path], typer.Option("--train", help="Data to learn from. Several files are joined.")]
    valid: Annotated[list[Path], typer.Option("--valid", help="Data to stop training by and to choose the model by.")]
    budget_us: Annotated[
        float, typer.Option("--budget-us", help="Microseconds that scoring a document may take, on one thread.")
    ]
    output: NewModel
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Bring this model within the budget, of any format, instead of training others."),
    ] = None
    test: Annotated[list[Path] | None, typer.Option("--test", help="Data to measure the chosen model on.")] = None
    judge_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the --valid queries to measure it on without --test; 0: none. Unless given, half of 1,000 "
            "or more."
        ),
    ] = None
    margin: Annotated[
        float, typer.Option(help="Loss against the default and the best of all that is to be ruled out.")
    ] = 0.005
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trainings in all, those of a resumed study included; 30 unless given.")
    ] = None
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no training begins.")] = None
    measure: Annotated[str, typer.Option("--measure", "-m", help="What to raise.")] = "nDCG@10"
    convention: ByConvention = "rankwood"
    max_trees: Annotated[
        int | None, typer.Option(min=1, help="Trees that a training grows at most; 1,000 unless given.")
    ] = None
    batch: Annotated[
        int | None, typer.Option(min=1, help="Documents per call when a model is timed; 1,000 unless given.")
    ] = None
    study: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep trials here, and go on from them if the file exists.")
    ] = None
    seed: Seed = 0
    threads: Threads = None
    dask: Dask = None
    zero_based: ZeroBased = False
    as_json: AsJson = False


@takes_options
def tune(options: TuneOptions) -> None:
    """Search for the best ranker that scores a document within so many microseconds.

    For instance: rankwood tune --train train.txt --valid vali.txt --test test.txt --budget-us 1 -o model.rw

    Trains LambdaMART and X-DART with trees of all shapes, prunes each at several rates, and times all: the Pareto front of measure and time is printed, and the best model within the budget is written. It is chosen on validation data, and what is said of its quality comes from queries that chose nothing: those of --test, or some set aside. Times are measured on this machine, so run it alone there.

    With --model nothing is trained: the model is made smaller until it is within the budget, as rankwood shrink does, and the largest that is shown to lose less than the margin against it is written.

    Ctrl-C ends the search and keeps the best model so far; the exit status is 130. Exit status 1: no model is within the budget, and none is written.
    """  # noqa: E501  typer keeps line ends
    from rankwood.lab.tune import tune as search

    _check(options)
    given = _read(options)
    own: dict[str, Any] = {"model": given.model} if given.model is not None else _search_settings(options)
    try:
        unit = "trials" if given.model is None else ""
        with dask_client(options.dask) as client, progress("tuning", unit=unit, quiet=options.as_json) as advance:
            result = search(
                given.train, given.valid, budget_us=options.budget_us, test=given.test,
                judge="auto" if options.judge_share is None else options.judge_share or None, margin=options.margin,
                measure=options.measure, convention=options.convention,
                study=options.study, on_interrupt="keep", seed=options.seed, n_threads=options.threads,
                client=client, progress=advance, **own,
            )  # fmt: skip
    except KeyboardInterrupt:
        fail("interrupted before a model was chosen: none was written", 130)
    if result.within_budget:
        files = {"train": options.train, "valid": options.valid, "test": options.test or []}
        names = {role: [path.name for path in paths] for role, paths in files.items() if paths}
        result.ensemble.with_metadata(data=names).save(options.output)
    _report(options, result)


def _check(options: TuneOptions) -> None:
    """Refuse before files are read: absent packages, and outputs that are inputs or cannot be written."""
    from rankwood.lab.extra import need
    from rankwood.lab.search import STUDY_FILES, TUNING

    if options.model is not None:
        of_trials = {"--trials": options.trials, "--timeout": options.timeout, "--max-trees": options.max_trees,
                     "--batch": options.batch, "--dask": options.dask}  # fmt: skip
        others = [name for name, value in of_trials.items() if value is not None]
        if others:
            raise RankwoodError(f"{' and '.join(others)}: nothing is trained when there is a --model, so leave it out")
    else:
        need("optuna", TUNING)
    check_output(options.output, options.model, train=options.train, valid=options.valid, test=options.test)
    if options.study is not None:
        check_output(options.study, options.model, options.train, options.valid, options.test)
        if options.model is None:
            need("filelock", STUDY_FILES)


class Given(NamedTuple):
    """What was read: data of one width, and the model that is to be brought within the budget, if any."""

    train: Dataset
    valid: Dataset
    test: Dataset | None
    model: Ensemble | None


def _read(options: TuneOptions) -> Given:
    """All data, as wide as the model, or as the training data when there is none."""
    models = load_models([options.model]) if options.model is not None else {}
    read = partial(
        load_data, models=models, zero_based=options.zero_based, n_threads=options.threads, quiet=options.as_json
    )
    train = read(options.train)
    valid = read(options.valid, n_features=train.n_features)
    test = read(options.test, n_features=train.n_features) if options.test else None
    return Given(train, valid, test, next(iter(models.values()), None))


def _search_settings(options: TuneOptions) -> dict[str, Any]:
    """Arguments of the search among trainings, as far as options give them."""
    from rankwood.lab.search import SearchSpace

    given = {"n_trials": options.trials, "timeout": options.timeout, "batch": options.batch}
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    most = options.max_trees
    if most is not None:
        found["space"] = SearchSpace(n_trees=(min(SearchSpace.n_trees[0], most), most))
    return found


def _report(options: TuneOptions, result: TuneResult) -> None:
    """Print what was found, and end with the exit status that goes with it."""
    from rankwood.lab.tune import TRIALS

    output = options.output
    if options.as_json:
        print_json({"model": str(output) if result.within_budget else None, **result.as_dict()})
        raise SystemExit(130 if result.interrupted else 0 if result.within_budget else 1)
    _print(result)
    stopped = "interrupted: "
    if result.shrunk is None:
        stopped = f"interrupted after {result.n_trials} of {options.trials or TRIALS} trials: "
    if not result.within_budget:
        fail(stopped + result.summary(), 130) if result.interrupted else fail(result.summary(), 1)
    print_line(f"{output}: {result.summary()}")
    for sentence in _comparisons(result):
        print_line(sentence)
    if result.interrupted:
        fail(f"{stopped}wrote the best so far to {output}", 130)
    tell(f"wrote {output}")


def _print(result: TuneResult) -> None:
    """Print the table of the front; `shrink` may have chosen a larger model than those, which is shown, too."""
    with_test = result.chosen.test is not None
    what, also = "learner, shape and leaves of trees, share of trees pruned away", ""
    if result.shrunk is not None:
        what, also = "how it came about, and its leaves", ", and the one chosen"
    columns = ["model", "trees", "valid", *["test"] * with_test, "us/doc", ""]
    rows = []
    shown = {point.name: point for point in (*result.front, *[result.chosen] * result.within_budget)}
    for point in sorted(shown.values(), key=lambda point: point.us_per_doc):
        mark = "chosen" if result.within_budget and point.name == result.chosen.name else ""
        mark = mark or ("over" if point.us_per_doc > result.budget_us else "")
        values = [f"{value:.4f}" for value in (point.valid, point.test) if value is not None]
        rows.append([describe(point), f"{point.n_trees:,}", *values, number(point.us_per_doc), mark])
    print_table(
        f"{result.measure} against time: models that no other beats in both{also}",
        columns,
        rows,
        caption=(
            f"model: {what}; over: beyond the budget.",
            f"us/doc: one thread, fastest engine, {result.batch:,} documents per call, double precision.",
            f"convention {result.convention.describe()}",
        ),
    )


def describe(point: Point) -> str:
    """Learner, shape and leaves of trees, and share of trees pruned away, in a few words; or the route of `shrink`.

    Examples
    --------
    >>> from rankwood.lab.search import Point
    >>> route = "grown, input teacher"
    >>> describe(Point(3, {"learner": "shrink", "route": route, "n_leaves": 1200}, 0.0, route, 20, 1180, 0.4, 1.0))
    'grown, 1,200 leaves'
    >>> parameters = {"learner": "xdart", "shape": "balanced", "n_leaves": 31}
    >>> describe(Point(3, parameters, 0.5, "refit", 20, 600, 0.4, 1.0))
    'xdart balanced 31 leaves -50 %'
    """
    given = point.parameters
    if "route" in given:
        return f"{given['route'].partition(',')[0]}, {given['n_leaves']:,} leaves"
    shape = [] if given["shape"] == "plain" else [given["shape"]]
    pruned = [f"-{point.percent} %"] if point.rate else []
    return " ".join([given["learner"], *shape, f"{given['n_leaves']} leaves", *pruned])


def _comparisons(result: TuneResult) -> list[str]:
    """Sentences that compare the chosen model with the default, and with the best at any cost."""
    from rankwood.lab.tune import REPORTERS

    if result.shrunk is not None:
        return []  # the summary has it
    names = {"default": "the default LambdaMART", "best": "the best of all, whatever it costs"}
    return [
        f"on {one.n_queries:,} {REPORTERS[result.reported_on or 'test']}: {_sentence(result.measure, one)} against "
        f"{names[role]}; {result.proofs[role].words()}"
        for role, one in result.comparisons.items()
    ]


def _sentence(measure: str, found: Comparison) -> str:
    """Return one comparison as part of a sentence."""
    low, high = found.interval
    return (
        f"{measure} {found.other_mean:.4f}, {found.difference:+.4f} "
        f"({low:+.4f} .. {high:+.4f}, p = {found.p_randomisation:.2g})"
    )
