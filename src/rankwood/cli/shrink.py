"""`rankwood shrink`: make any tree ranker several times smaller, and show that it loses less than a margin."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli import smaller
from rankwood.cli.console import fail, print_json, print_line, print_table, progress, tell
from rankwood.cli.models import (
    AsJson,
    ByConvention,
    IfMissing,
    Missing,
    NewModel,
    OnlyMeasured,
    Rename,
    Seed,
    Threads,
    ToFormat,
    ZeroBased,
)
from rankwood.cli.options import takes_options
from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from rankwood.shrinking.result import ShrinkResult, ShrinkRow


class CostName(str, Enum):
    """What makes a model cheap."""

    leaves = "leaves"
    us = "us"


@dataclass(frozen=True)
class ShrinkOptions:
    """Arguments and options of `rankwood shrink`, in the order of its help."""

    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, of any format that can be read.")]
    train: Annotated[list[Path], typer.Option("--train", help="Data to learn from. Several files are joined.")]
    valid: Annotated[list[Path], typer.Option("--valid", help="Data that smaller models are chosen and judged by.")]
    output: NewModel
    test: OnlyMeasured = None
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option("--unlabelled", help="More documents in queries, as logs have them; labels are not looked at."),
    ] = None
    judge: Annotated[
        list[Path] | None,
        typer.Option(
            "--judge",
            help="Data set aside to judge smaller models by. Unless given, half of the --valid queries if there are "
            "4,000 or more; fewer judge in 10 folds.",
        ),
    ] = None
    margin: Annotated[float, typer.Option(help="The loss that must be ruled out.")] = 0.005
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05
    leaves: Annotated[int | None, typer.Option(help="Leaves that the model should have at most.")] = None
    budget_us: Annotated[
        float | None, typer.Option("--budget-us", help="Microseconds that scoring a document may take here.")
    ] = None
    factor: Annotated[
        float | None,
        typer.Option(help="How many times fewer leaves. Unless one of the three is given: as few as can be shown."),
    ] = None
    cost: Annotated[CostName, typer.Option(help="What is cheap: few leaves, or few us.")] = CostName.leaves
    exit: Annotated[
        bool, typer.Option("--exit", help="Add early exit, if it is shown to lose less than the margin, too.")
    ] = False
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="File that finished steps are kept in, and gone on from.")
    ] = None
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the path: FILE.png or FILE.svg; needs matplotlib.")
    ] = None
    measure: Annotated[str, typer.Option("--measure", "-m", help="What must not get worse.")] = "nDCG@10"
    convention: ByConvention = "rankwood"
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="Learn from at most so many queries of --train, drawn at random.")
    ] = None
    seed: Seed = 0
    threads: Threads = None
    to_format: ToFormat = None
    missing: IfMissing = Missing.refuse
    zero_based: ZeroBased = False
    rename: Rename = None
    as_json: AsJson = False


@takes_options
def shrink(options: ShrinkOptions) -> None:
    """Make any tree ranker several times smaller, as far as it is shown to lose less than a margin.

    For instance: rankwood shrink model.rw --train train.txt --valid vali.txt --test test.txt -o small.rw

    A LightGBM model stays one: rankwood shrink model.txt --train train.txt --valid vali.txt -o small.txt

    Small models learn the scores of the large one; for every size the best is chosen by validation queries, and judged by queries that did not choose it. The last sentence says what was shown, on which queries, and how many would do where they are too few. When no smaller model is accepted the file written is the input itself, byte for byte, or converted if another format is asked for.

    Ctrl-C ends the search with the best model so far; with --checkpoint the same command goes on later.
    """  # noqa: E501  typer keeps line ends
    _check(options)  # mistakes are named before files are read
    given = smaller.read(options, _files(options))
    if sys.stderr.isatty() and not options.as_json:
        tell("Ctrl-C ends with the best model so far; a second one at once, without any")
    try:
        result = _shrunk(options, given)
    except KeyboardInterrupt:
        kept = options.checkpoint is not None and options.checkpoint.exists()
        again = "with --checkpoint FILE the next run would go on from here"
        if kept:
            again = f"{options.checkpoint} keeps the finished steps, and the same command goes on from them"
        fail(f"interrupted before the first size was finished: no model was written; {again}", 130)
    _report(options, given, result, smaller.write(options, given, result))


def _files(options: ShrinkOptions) -> smaller.Files:
    return {
        "train": options.train,
        "valid": options.valid,
        "judge": options.judge,
        "test": options.test,
        "unlabelled": options.unlabelled,
    }


def _check(options: ShrinkOptions) -> None:
    """Refuse files that cannot be written, settings that contradict each other, and a figure that cannot be drawn."""
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.measures import parse_measure
    from rankwood.pruning.accept import Acceptance

    files = _files(options)
    smaller.check(options, files, checkpoint=options.checkpoint, figure=options.figure)
    if options.figure is not None:
        _check_figure(options.figure)
    sizes = {"--leaves": options.leaves, "--budget-us": options.budget_us, "--factor": options.factor}
    asked = [name for name, value in sizes.items() if value is not None]
    if len(asked) > 1:
        raise RankwoodError(f"{' and '.join(asked)} both say how small the model is to be: give one of them")
    Acceptance("non-inferior", options.margin, options.alpha)
    parse_measure(options.measure)
    Convention.get(options.convention)


def _check_figure(path: Path) -> None:
    from rankwood.lab.drawing import KINDS, check_figures

    if path.suffix.lower() not in KINDS:
        raise RankwoodError(f"{path}: a figure is written as {' or '.join(KINDS)}, which the end of its name tells")
    check_figures()


def _shrunk(options: ShrinkOptions, given: smaller.Given) -> ShrinkResult:
    from rankwood.shrinking.path import ShrinkSettings
    from rankwood.shrinking.shrink import shrink as shrink_model

    # Steps that a checkpoint has are no part of the work, so what is done is a share of what is left.
    goes_on = options.checkpoint is not None and options.checkpoint.exists()
    with progress("shrinking, what was left" if goes_on else "shrinking", quiet=options.as_json) as advance:
        return shrink_model(
            given.model,
            given.data["train"],
            given.data["valid"],
            test=given.data.get("test"),
            unlabelled=given.data.get("unlabelled"),
            judge=given.data.get("judge", "auto"),
            measure=options.measure,
            convention=options.convention,
            margin=options.margin,
            alpha=options.alpha,
            leaves=options.leaves,
            budget_us=options.budget_us,
            factor=options.factor,
            cost=options.cost.value,
            exit=_may_exit(options, given),
            settings=ShrinkSettings(max_queries=options.max_queries, seed=options.seed),
            checkpoint=options.checkpoint,
            n_threads=options.threads,
            progress=advance,
        )


def _may_exit(options: ShrinkOptions, given: smaller.Given) -> bool:
    """Whether early exit is asked for and can be written; a warning tells when it cannot."""
    from rankwood.formats.registry import EXPORTERS
    from rankwood.formats.writing import cannot_hold_exit

    if options.exit and given.target != "rankwood":
        tell(f"warning: {cannot_hold_exit(EXPORTERS[given.target].title)}")
    return options.exit and given.target == "rankwood"


def _report(options: ShrinkOptions, given: smaller.Given, result: ShrinkResult, written: smaller.Written) -> None:
    """Warn of losses and of an early end, draw the path, then print the table and its summary, or JSON."""
    smaller.warn(given, result)
    if result.interrupted:
        tell(f"warning: {_early(options, result)}")
    if result.accepted and not result.reached:
        tell(f"warning: {_missed(result)}")
    if options.figure is not None:
        from rankwood.lab.drawing import write_one
        from rankwood.lab.shrinking import path_figure

        write_one(path_figure(result, options.model.name), options.figure)
    if options.as_json:
        print_json({**smaller.answer(options, given, result), **_answer(result, written)})
        return
    _print_table(result)
    if result.accepted:
        print_line(f"{options.output.name}: {result.chosen.route}")
    smaller.close(options, given, result, written)
    if options.figure is not None:
        tell(f"wrote {options.figure}")


def _early(options: ShrinkOptions, result: ShrinkResult) -> str:
    smallest = f"models of less than {result.rows[-1].n_leaves:,} leaves were not tried"
    again = f"; {options.checkpoint} keeps the finished steps, and the same command goes on from there"
    return f"interrupted: {smallest}{again if options.checkpoint else ''}"


def _missed(result: ShrinkResult) -> str:
    return (
        "no model as small or as fast as was asked for could be shown to be good enough: the one written has "
        f"{result.chosen.n_leaves:,} leaves, {result.factor:.1f} times fewer than the input"
    )


def _answer(result: ShrinkResult, written: smaller.Written) -> dict[str, Any]:
    """Entries of the JSON object that only shrinking has."""
    full, chosen = result.rows[0], result.chosen
    return {
        "reached": result.reached,
        "route": chosen.route,
        "n_features_before": full.n_features,
        "n_features_after": chosen.n_features,
        "us_before": full.us_per_doc,
        "us_after": chosen.us_per_doc,
        "factor": result.factor,
        "speed_up": result.speed_up,
        "exit": None if result.exit is None else result.exit.as_dict(),
        "interrupted": result.interrupted,
        "written": "shrunk" if written == "smaller" else written,
    }


def _print_table(result: ShrinkResult) -> None:
    """The path, one line for each size; narrow, so that it fits on any terminal."""
    with_test, with_us = result.rows[0].test is not None, bool(result.timings)
    columns = ["route", "trees", "leaves", "feat", "diff.", "bound", *["us"] * with_us, *["test"] * with_test, ""]
    rows = [
        [
            _short(row.route),
            f"{row.n_trees:,}",
            f"{row.n_leaves:,}",
            f"{row.n_features:,}",
            _difference(None if row.proof is None else row.proof.difference),
            _difference(None if row.proof is None else row.proof.lower),
            *["" if row.us_per_doc is None else f"{row.us_per_doc:.3f}"] * with_us,
            *[_difference(row.test_difference)] * with_test,
            _mark(row, result),
        ]
        for row in result.rows
    ]
    print_table(f"{result.measure} along the path from {result.rows[0].n_leaves:,} leaves", columns, rows,
                caption=_captions(result))  # fmt: skip


def _captions(result: ShrinkResult) -> list[str]:
    """What the columns say."""
    from rankwood.pruning.accept import IN_WORDS

    n_queries = next((row.proof.n_queries for row in result.rows if row.proof is not None), 0)
    sure = f"{100 * (1 - result.rule.alpha):g} %"
    us = f"us: microseconds per document, one thread{smaller.conditions(result)}." if result.timings else ""
    return [
        f"diff.: {result.measure} less the input's, on {n_queries:,} queries {IN_WORDS[result.judging]}; bound: "
        f"the difference is above it, {sure} sure of this model alone. A model passes if it is shown to be above "
        f"{_difference(-(result.rule.margin or 0.0))} at a level of its own, so that all together are wrong in "
        f"{100 * result.rule.alpha:g} % at most: half of that is for the first, the others share the rest, and one "
        "that passes leaves its level to the next.",
        us,
        "test: the difference on test data, which decides nothing." if result.rows[0].test is not None else "",
        f"convention {result.convention.describe()}",
    ]


def _short(route: str) -> str:
    """A word for a route.

    Examples
    --------
    >>> [_short(route) for route in ("refitted input", "grown, input teacher", "60% of the trees, refitted teacher")]
    ['refitted', 'grown', 'selected']
    >>> _short("grown, input teacher, early exit")
    '+ exit'
    """
    first, _, rest = route.partition(",")
    if rest.endswith("early exit"):
        return "+ exit"
    return "selected" if first.endswith("of the trees") else first.removesuffix(" input")


def _mark(row: ShrinkRow, result: ShrinkResult) -> str:
    if row is result.chosen:
        return "chosen" if result.accepted else "kept"
    return "passes" if row.accepted else ""


def _difference(value: float | None) -> str:
    """A difference with its sign and four digits, without the leading zero; empty for None.

    Examples
    --------
    >>> _difference(-0.00123), _difference(0.0), _difference(1.5), _difference(None)
    ('-.0012', '+.0000', '+1.5000', '')
    """
    return "" if value is None else f"{value:+.4f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:+.4f}"
