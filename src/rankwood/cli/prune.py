"""`rankwood prune`: make a model smaller, and show that it loses less than a margin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rankwood.cli.console import fail, print_json, print_line, print_table, progress, tell
from rankwood.cli.models import (
    WRITTEN,
    AsJson,
    ByStrategy,
    IfMissing,
    Missing,
    Threads,
    ToFormat,
    ZeroBased,
    check_format,
    check_output,
    content_to_keep,
    growth,
    load_data,
    load_models,
    source_leaves,
    target_format,
    write_changed,
)
from rankwood.cli.options import takes_options
from rankwood.data.dataset import Dataset
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble

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
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write.")]
    test: Annotated[list[Path] | None, typer.Option("--test", help="Data that is only measured.")] = None
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
    convention: Annotated[str, typer.Option(help="Whose numbers: rankwood, lightgbm, letor, yahoo, ...")] = "rankwood"
    victims: Annotated[
        VictimsBy, typer.Option(help="The data that the strategy looks at: valid, or train as in the paper.")
    ] = VictimsBy.valid
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Also fit leaf values anew, and let both compete.")
    ] = True
    distil: Annotated[
        bool,
        typer.Option("--distil/--no-distil", help="Also fit leaf values to the whole model's scores, without labels."),
    ] = True
    gradient: Annotated[
        bool, typer.Option("--gradient", help="Also start the search from gradient steps, and let both compete.")
    ] = False
    iterations: Annotated[int, typer.Option(min=0, help="Iterations of a line search, at most.")] = 100
    patience: Annotated[int, typer.Option(min=1, help="Iterations without a better validation measure.")] = 20
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="At most so many queries of --train and of --valid, drawn at random.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")] = 0
    threads: Threads = None
    to_format: ToFormat = None
    missing: IfMissing = Missing.refuse
    zero_based: ZeroBased = False
    as_json: AsJson = False


@takes_options
def prune(options: PruneOptions) -> None:
    """Prune a model and re-weigh what remains (CLEaVER), as far as it is shown to lose less than a margin.

    For instance: rankwood prune model.rw --train train.txt --valid vali.txt --test test.txt -o small.rw

    A LightGBM model stays one: rankwood prune model.txt --train train.txt --valid vali.txt -o small.txt

    The last sentence says what was shown, on which queries, and how many would do where they are too few. With --test it also says what the smaller model gains or loses there, and a significant loss is warned of. When no smaller model is accepted the file written is the input itself, byte for byte, or converted if another format is asked for.
    """  # noqa: E501  typer keeps line ends
    from rankwood.pruning.cleaver import cleaver

    _check(options)  # mistakes are named before files are read
    arguments = _arguments(options)
    given = _read(options)
    try:
        with progress("pruning", unit="searches", quiet=options.as_json) as advance:
            result = cleaver(given.model, given.train, given.valid, test=given.test, judge=given.judge,
                             **arguments, progress=advance)  # fmt: skip
    except KeyboardInterrupt:
        fail("interrupted: no model was written", 130)
    changed = result.ensemble if result.accepted else None
    write_changed(given.model, changed, options.output, given.target, given.content, missing=options.missing)
    written = "pruned" if result.accepted else "converted" if given.content is None else "copy"
    _report(options, given, result, written)


def _check(options: PruneOptions) -> None:
    """Refuse an output that is an input or cannot be written, also for want of a package or a compiler."""
    check_output(options.output, options.model, train=options.train, valid=options.valid, judge=options.judge,
                 test=options.test)  # fmt: skip
    check_format(options.output, options.to_format)


def _arguments(options: PruneOptions) -> dict[str, Any]:
    """Keywords of `cleaver`, but for data and progress."""
    from rankwood.pruning.accept import Acceptance
    from rankwood.pruning.cleaver import RATES, checked_rates
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
    rates = checked_rates(RATES if options.rates is None else _shares(options.rates))
    accept = Acceptance(options.accept.value, options.margin, options.alpha)
    Chooser(options.strategy, 0)  # refuses names that are not strategies
    chosen = {"gradient": options.gradient, "refit": options.refit, "distil": options.distil}
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
        "n_threads": options.threads,
    }


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise RankwoodError(f"--rates takes numbers with commas between them, like 0.3,0.5,0.7, got {text!r}") from None


@dataclass(frozen=True)
class _Given:
    """The model and the data that were read.

    Parameters
    ----------
    target : str
        Name of the format to write.
    content : bytes or None
        The model file as it is, to be written again if no smaller model is accepted; None if it must be converted.
    n_bytes : int
        Size of the model file.
    judge : Dataset, float, "auto", "folds" or None
        Data set aside to judge by, as `cleaver` takes it.
    """

    model: Ensemble
    target: str
    content: bytes | None
    n_bytes: int
    train: Dataset
    valid: Dataset
    test: Dataset | None
    judge: Dataset | float | Literal["auto", "folds"] | None


def _read(options: PruneOptions) -> _Given:
    """Read the model and all data."""
    loaded = load_models([options.model])
    (model,) = loaded.values()
    target = target_format(options.model, model, options.output, options.to_format)

    def data(paths: list[Path]) -> Dataset:
        return load_data(paths, loaded, zero_based=options.zero_based, n_threads=options.threads, quiet=options.as_json)

    train, valid = data(options.train), data(options.valid)
    test = data(options.test) if options.test else None
    judge: Any = "folds" if options.judge_folds else "auto"
    if options.judge_share is not None:
        judge = options.judge_share or None
    if options.judge:
        judge = data(options.judge)
    (model,) = loaded.values()  # perhaps wider than it was
    content = content_to_keep(options.model, model, target, options.output)  # now: it may change during the search
    return _Given(model, target, content, options.model.stat().st_size, train, valid, test, judge)


def _report(options: PruneOptions, given: _Given, result: CleaverResult, written: str) -> None:
    """Warn of losses in quality or size, then print the table and its summary, or JSON.

    `written` is what the file is: "pruned", the input "converted", or a "copy" of it, byte for byte.
    """
    if result.is_loss:
        tell(f"warning: {_loss(result)}")
    if result.accepted and result.ensemble.n_leaves > source_leaves(given.model):
        tell(f"warning: {_larger(given.model, result.ensemble)}")
    n_bytes = options.output.stat().st_size
    if options.as_json:
        print_json({**_answer(result, options.output), "written": written, **_sizes(given, result, n_bytes)})
        return
    _print_table(result)
    if written != "copy":
        print_line(_size_sentence(options, given, result, n_bytes))
    print_line(result.summary())
    tell(f"wrote {options.output} ({given.target}){WRITTEN.get(written, '')}")


def _loss(result: CleaverResult) -> str:
    return (
        f"the smaller model is significantly worse on test data: {result.measure} {result.verdict()}; more validation "
        "queries, or a smaller --margin, ask for more before a model is accepted"
    )


def _larger(before: Ensemble, after: Ensemble) -> str:
    from rankwood.formats.registry import source_of

    return (
        f"the model has {after.n_leaves:,} leaves, more than the {source_leaves(before):,} of its "
        f"{source_of(before).get('format')} source: splits on categories or around zero are written as thresholds, so "
        "where its own tool serves it, it may be larger and slower than the source"
    )


def _sizes(given: _Given, result: CleaverResult, n_bytes: int) -> dict[str, Any]:
    """Leaves as the model's own tool counts them, as the model has them here, and after pruning; bytes of the files."""
    return {
        "n_leaves_source": source_leaves(given.model),
        "n_leaves_before": given.model.n_leaves,
        "n_leaves_after": result.ensemble.n_leaves,
        "bytes_before": given.n_bytes,
        "bytes_after": n_bytes,
    }


def _size_sentence(options: PruneOptions, given: _Given, result: CleaverResult, n_bytes: int) -> str:
    grown = growth(given.model)
    return (
        f"{options.output.name} has {result.ensemble.n_leaves:,} leaves and {n_bytes:,} bytes, {options.model.name} "
        f"{given.model.n_leaves:,} leaves and {given.n_bytes:,} bytes" + (f"; {grown}" if grown else "")
    )


def _answer(result: CleaverResult, output: Path) -> dict[str, Any]:
    full, chosen = result.rows[0], result.chosen
    return {
        "model": str(output),
        "accepted": result.accepted,
        "n_trees_before": full.n_trees,
        "n_trees_after": result.ensemble.n_trees,
        "valid_before": full.valid,
        "valid_after": chosen.valid,
        "test_before": full.test,
        "test_after": chosen.test,
        "test_difference": None if result.test is None else result.test.difference,
        "test_interval": None if result.test is None else list(result.test.interval),
        "p_test": None if result.test is None else result.test.p_randomisation,
        "test_loss": result.is_loss,
        "rate": chosen.rate,
        "variant": chosen.variant,
        "speed_up": chosen.speed_up,
        "timing": result.timings[0].conditions if result.timings else None,
        "measure": result.measure,
        "convention": result.convention.name,
        "strategy": result.strategy,
        "accept": result.rule.rule,
        "margin": result.rule.margin,
        "alpha": result.rule.alpha,
        "judging": result.judging,
        "proof": None if result.proof is None else result.proof.as_dict(),
        "test_proof": None if result.test_proof is None else result.test_proof.as_dict(),
        "memory_bytes": result.needed_bytes,
        "table": result.table,
    }


def _print_table(result: CleaverResult) -> None:
    several = len({row.variant for row in result.rows}) > 2
    with_test = result.rows[0].test is not None
    judged = result.rows[0].judged is not None
    with_margin = result.rule.margin is not None
    columns = [
        "rate", *["variant"] * several, "trees", "train", "valid", *["judged"] * judged, "p",
        *["test", "p (test)"] * with_test, *["p (inferior)"] * with_margin, "speed-up", "",
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
            f"p: randomisation test against the input, on {JUDGES[result.judging]} and on test queries; speed-up: "
            f"scoring with the fastest engine, one thread{_batch(result)}.",
            *_margin(result),
            f"convention {result.convention.describe()}",
        ),
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
        f"p (inferior): test against a loss of {result.rule.margin:g} or more, before the correction for "
        f"{len(result.rows) - 1} models that decides."
    ]


def _batch(result: CleaverResult) -> str:
    """Batch and precision that all models were timed with; empty when none was timed."""
    if not result.timings:
        return ""
    return f", {result.timings[0].batch:,} documents per call, {result.timings[0].precision} precision"


def _figure(value: float | None) -> str:
    """A measure or a p-value with four digits; empty for None."""
    return "" if value is None else f"{value:.4f}"
