"""`rankwood prune`: make a model smaller, and show that it loses less than a margin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli import smaller
from rankwood.cli.console import fail, print_json, print_table, progress, tell
from rankwood.cli.models import (
    AsJson,
    ByConvention,
    ByStrategy,
    Dask,
    IfMissing,
    Missing,
    NewModel,
    OnlyMeasured,
    Rename,
    Seed,
    Shuffle,
    Threads,
    ToFormat,
    ZeroBased,
    check_shuffle,
    dask_client,
)
from rankwood.cli.options import takes_options
from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from rankwood.pruning.result import CleaverResult


class AcceptRule(str, Enum):
    """Rule that a smaller model must pass."""

    non_inferior = "non-inferior"
    quality = "quality"
    not_significant = "not-significant"


class VictimsBy(str, Enum):
    """Data by which a strategy chooses the trees to remove."""

    valid = "valid"
    train = "train"


@dataclass(frozen=True)
class PruneOptions:
    """Arguments and options of `rankwood prune`, in the order of its help."""

    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, of any format that can be read.")]
    train: Annotated[list[Path], typer.Option("--train", help="Data to search weights on. Several files are joined.")]
    valid: Annotated[list[Path], typer.Option("--valid", help="Data that smaller models are chosen and judged by.")]
    output: NewModel
    test: OnlyMeasured = None
    judge: Annotated[list[Path] | None, typer.Option("--judge", help="Data set aside to judge smaller models by.")] = (
        None
    )
    judge_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the --valid queries to judge by; 0: they judge what they chose, which shows nothing. Unless "
            "given, half of 1,000 or more; fewer judge in 5 folds."
        ),
    ] = None
    judge_folds: Annotated[bool, typer.Option("--judge-folds", help="Judge in 5 folds however many queries.")] = False
    strategy: ByStrategy = "quality-loss"
    rates: Annotated[str | None, typer.Option(help="Shares of trees to take out; 0.1,0.2,...,0.9 unless given.")] = None
    accept: Annotated[
        AcceptRule, typer.Option(help="Take the smallest model that passes: non-inferior, quality, not-significant.")
    ] = AcceptRule.non_inferior
    margin: Annotated[
        float | None, typer.Option(help="non-inferior: the loss that must be ruled out, 0.005 unless given.")
    ] = None
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05
    measure: Annotated[str, typer.Option("--measure", "-m", help="What must not get worse.")] = "nDCG@10"
    convention: ByConvention = "rankwood"
    victims: Annotated[
        VictimsBy, typer.Option(help="The data that the strategy looks at: valid, or train as in the paper.")
    ] = VictimsBy.valid
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Also fit leaf values anew, and let both compete.")
    ] = True
    distil: Annotated[
        bool | None,
        typer.Option(
            "--distil/--no-distil",
            help="Also fit leaf values to the whole model's scores, without labels; done unless there is --dask.",
            show_default=False,
        ),
    ] = None
    gradient: Annotated[
        bool, typer.Option("--gradient", help="Also start the search from gradient steps, and let both compete.")
    ] = False
    iterations: Annotated[int, typer.Option(min=0, help="Iterations of a line search, at most.")] = 100
    patience: Annotated[int, typer.Option(min=1, help="Iterations without a better validation measure.")] = 20
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="At most so many queries of --train and of --valid, drawn at random.")
    ] = None
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="File that finished searches are kept in, and gone on from.")
    ] = None
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which the search ends with the best model so far.")
    ] = None
    seed: Seed = 0
    threads: Threads = None
    to_format: ToFormat = None
    missing: IfMissing = Missing.refuse
    zero_based: ZeroBased = False
    rename: Rename = None
    dask: Dask = None
    shuffle: Shuffle = False
    as_json: AsJson = False


@takes_options
def prune(options: PruneOptions) -> None:
    """Prune a model and re-weigh what remains (CLEaVER), as far as it is shown to lose less than a margin.

    For instance: rankwood prune model.rw --train train.txt --valid vali.txt --test test.txt -o small.rw

    A LightGBM model stays one: rankwood prune model.txt --train train.txt --valid vali.txt -o small.txt

    The last sentence says what was shown, on which queries, and how many would do where they are too few. With --test it also says what the smaller model gains or loses there, and a significant loss is warned of. When no smaller model is accepted the file written is the input itself, byte for byte, or converted if another format is asked for.

    A search that was stopped or killed goes on with the same command if it has --checkpoint.
    """  # noqa: E501  typer keeps line ends
    from rankwood.pruning.cleaver import cleaver

    smaller.check(options, _files(options), checkpoint=options.checkpoint)  # mistakes are named before files are read
    arguments = _arguments(options)
    given = smaller.read(options, _files(options), on_cluster=options.dask is not None)
    try:
        with (
            dask_client(options.dask) as client,
            progress("pruning", unit="searches", quiet=options.as_json) as advance,
        ):
            result = cleaver(given.model, given.data["train"], given.data["valid"], test=given.data.get("test"),
                             judge=_judge(options, given), **arguments, progress=advance,
                             time_left=advance.time_left, client=client, shuffle=options.shuffle)  # fmt: skip
    except KeyboardInterrupt:
        again = "" if options.checkpoint is None else f"; run the same command again to go on from {options.checkpoint}"
        fail(f"interrupted: no model was written{again}", 130)
    _report(options, given, result, smaller.write(options, given, result))


def _files(options: PruneOptions) -> smaller.Files:
    return {"train": options.train, "valid": options.valid, "judge": options.judge, "test": options.test}


def _arguments(options: PruneOptions) -> dict[str, Any]:
    """Keywords of `cleaver`, but for data and progress."""
    from rankwood.pruning.accept import Acceptance
    from rankwood.pruning.cleaver import RATES, checked_rates
    from rankwood.pruning.course import deadline_of
    from rankwood.pruning.line_search import LineSearch
    from rankwood.pruning.pruner import PruningSettings
    from rankwood.pruning.strategies import Chooser

    given = {
        "--judge": options.judge,
        "--judge-share": options.judge_share,
        "--judge-folds": options.judge_folds or None,
    }
    if len(both := [name for name, value in given.items() if value is not None]) > 1:
        raise RankwoodError(f"{both[0]} and {both[1]} both say what to judge by: give one of them")
    check_shuffle(options.shuffle, options.dask)
    if options.dask is not None and options.distil:
        raise RankwoodError("--distil needs all documents in one process: leave it out with --dask")
    if options.dask is not None and options.distil is None and not options.as_json:
        tell("note: --distil needs all documents in one process: left out with --dask")
    distil = options.dask is None if options.distil is None else options.distil
    deadline_of(options.timeout)
    rates = checked_rates(RATES if options.rates is None else _shares(options.rates))
    accept = Acceptance(options.accept.value, options.margin, options.alpha)
    Chooser(options.strategy, 0)  # refuses names that are not strategies
    chosen = {"gradient": options.gradient, "refit": options.refit, "distil": distil}
    search = LineSearch(iterations=options.iterations, patience=options.patience)
    return {
        "measure": options.measure,
        "convention": options.convention,
        "strategy": options.strategy,
        "rates": rates,
        "accept": accept,
        "variants": ["line-search", *(name for name, is_chosen in chosen.items() if is_chosen)],
        "settings": PruningSettings(
            victims=options.victims.value, search=search, max_queries=options.max_queries, seed=options.seed
        ),
        "checkpoint": options.checkpoint,
        "timeout": options.timeout,
        "n_threads": options.threads,
    }


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise RankwoodError(f"--rates takes numbers with commas between them, like 0.3,0.5,0.7, got {text!r}") from None


def _judge(options: PruneOptions, given: smaller.Given) -> Any:
    """What judges, as `cleaver` takes it."""
    if "judge" in given.data:
        return given.data["judge"]
    if options.judge_share is not None:
        return options.judge_share or None
    return "folds" if options.judge_folds else "auto"


def _report(options: PruneOptions, given: smaller.Given, result: CleaverResult, written: smaller.Written) -> None:
    """Warn of losses in quality or size, then print the table and its summary, or JSON."""
    smaller.warn(given, result)
    if result.timed_out:
        tell(f"warning: {_early(options, result)}")
    if options.as_json:
        print_json({**smaller.answer(options, given, result), **_answer(result, written)})
        return
    _print_table(result)
    smaller.close(options, given, result, written)


def _early(options: PruneOptions, result: CleaverResult) -> str:
    again = f"; {options.checkpoint} keeps what was found, and the same command goes on from there"
    return f"{result.early_end()}{again if options.checkpoint else ''}"


def _answer(result: CleaverResult, written: smaller.Written) -> dict[str, Any]:
    """Entries of the JSON object that only pruning has."""
    return {
        "rate": result.chosen.rate,
        "variant": result.chosen.variant,
        "speed_up": result.chosen.speed_up,
        "strategy": result.strategy,
        "accept": result.rule.rule,
        "memory_bytes": result.needed_bytes,
        "timed_out": result.timed_out,
        "rates_left": list(result.rates_left),
        "written": "pruned" if written == "smaller" else written,
    }


def _print_table(result: CleaverResult) -> None:
    several = len({row.variant for row in result.rows}) > 2
    with_test = result.rows[0].test is not None
    judged = result.rows[0].judged is not None
    with_margin = result.rule.margin is not None
    columns = [
        "rate", *["variant"] * several, "trees", "train", "valid", *["judged"] * judged, "p",
        *["test", "p (test)"] * with_test, *["p (loss)"] * with_margin, "faster", "",
    ]  # fmt: skip
    rows = []
    for row in result.rows:
        mark = "chosen" if row is result.chosen else "accepted" if row.accepted and row.variant != "input" else ""
        rows.append([
            "input" if row.variant == "input" else f"{row.rate:.0%}",
            *[row.variant] * several,
            f"{row.n_trees:,}", _figure(row.train), _figure(row.valid), *[_figure(row.judged)] * judged,
            _figure(row.p_valid),
            *([_figure(row.test), _figure(row.p_test)] if with_test else []),
            *[_figure(row.p_inferior)] * with_margin,
            "" if row.speed_up is None else f"{row.speed_up:.2f}x", mark,
        ])  # fmt: skip
    print_table(
        f"{result.measure}, strategy {result.strategy}, accept {result.rule.rule}",
        columns,
        rows,
        caption=(
            f"p: randomisation test against the input, on {JUDGES[result.judging]} and on test queries; faster: "
            f"scoring with the fastest engine, one thread{smaller.conditions(result)}.",
            *_margin(result),
            f"convention {result.convention.describe()}",
        ),
        details=["train", "p (test)", *(["valid"] if judged else []), *(["p"] if with_margin else []), "faster"],
    )


JUDGES = {
    "unseen": "the queries that judge",
    "folds": "validation queries, each with models that it did not choose,",
    "choosing": "validation queries",
}


def _margin(result: CleaverResult) -> list[str]:
    """What the p-values of the rule "non-inferior" say."""
    if result.rule.margin is None:
        return []
    return [
        f"p (loss): test against a loss of {result.rule.margin:g} or more, before the correction for "
        f"{len(result.rows) - 1} models that decides."
    ]


def _figure(value: float | None) -> str:
    """A measure or a p-value with four digits; empty for None."""
    return "" if value is None else f"{value:.4f}"
