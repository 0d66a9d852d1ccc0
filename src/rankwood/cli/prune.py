"""`rankwood prune`: make a model smaller at equal quality."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import fail, print_json, print_line, print_table, progress, tell
from rankwood.cli.models import (
    AsJson,
    IfMissing,
    Missing,
    Threads,
    ToFormat,
    ZeroBased,
    check_output,
    content_to_keep,
    growth,
    load_data,
    load_models,
    source_leaves,
    write_model,
)
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.pruning.result import CleaverResult


class AcceptRule(str, Enum):
    """What a smaller model must pass on validation data."""

    quality = "quality"
    not_significant = "not-significant"
    non_inferior = "non-inferior"


class VictimsBy(str, Enum):
    """Where a strategy looks."""

    valid = "valid"
    train = "train"


def prune(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, of any format that can be read.")],
    train: Annotated[list[Path], typer.Option("--train", help="Data to search weights on. Several files are joined.")],
    valid: Annotated[list[Path], typer.Option("--valid", help="Data that smaller models are judged on.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write.")],
    test: Annotated[list[Path] | None, typer.Option("--test", help="Data that is only measured.")] = None,
    judge: Annotated[
        list[Path] | None, typer.Option("--judge", help="Data set aside to judge smaller models by.")
    ] = None,
    judge_share: Annotated[
        float | None,
        typer.Option(help="Share of the --valid queries to judge by; 0: none. Half of them unless given."),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="Which trees go: quality-loss, quality-loss-greedy, score-loss, low-weights, skip, last, random."
        ),
    ] = "quality-loss",
    rates: Annotated[
        str | None, typer.Option(help="Shares of trees to take out; 0.1,0.2,...,0.9 unless given.")
    ] = None,
    accept: Annotated[
        AcceptRule, typer.Option(help="Take the smallest model that passes: quality, not-significant, non-inferior.")
    ] = AcceptRule.quality,
    margin: Annotated[float | None, typer.Option(help="non-inferior: how much of the measure may be lost.")] = None,
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05,
    measure: Annotated[str, typer.Option("--measure", "-m", help="What must not get worse.")] = "nDCG@10",
    convention: Annotated[str, typer.Option(help="Whose numbers: rankwood, lightgbm, letor, yahoo, ...")] = "rankwood",
    victims: Annotated[
        VictimsBy, typer.Option(help="The data that the strategy looks at: valid, or train as in the paper.")
    ] = VictimsBy.valid,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Also fit leaf values anew, and let both compete.")
    ] = True,
    distil: Annotated[
        bool,
        typer.Option("--distil/--no-distil", help="Also fit leaf values to the whole model's scores, without labels."),
    ] = True,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="Also start the search from gradient steps, and let both compete.")
    ] = False,
    iterations: Annotated[int, typer.Option(min=0, help="Iterations of a line search, at most.")] = 100,
    patience: Annotated[int, typer.Option(min=1, help="Iterations without a better validation measure.")] = 20,
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="At most so many queries of --train and of --valid, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")] = 0,
    threads: Threads = None,
    to_format: ToFormat = None,
    missing: IfMissing = Missing.refuse,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Prune a model and re-weigh what remains (CLEaVER), as far as quality on validation data allows.

    For instance: rankwood prune model.rw --train train.txt --valid vali.txt --test test.txt -o small.rw

    A LightGBM model stays one: rankwood prune model.txt --train train.txt --valid vali.txt -o small.txt

    With --test the last sentence says what the smaller model gains or loses there, and a significant loss is warned of. When no smaller model is accepted the file written is the input itself, byte for byte, or converted if another format is asked for.
    """  # noqa: E501  typer keeps line ends
    from rankwood.atomic import atomic_write
    from rankwood.formats.registry import EXPORTERS, find_exporter
    from rankwood.pruning.accept import Acceptance
    from rankwood.pruning.cleaver import RATES, checked_rates, cleaver
    from rankwood.pruning.line_search import LineSearch
    from rankwood.pruning.pruner import PruningSettings
    from rankwood.pruning.strategies import Chooser

    check_output(output, model, train, valid, test)
    by_suffix = any(output.suffix in exporter.suffix for exporter in EXPORTERS.values())
    target = find_exporter(to_format, output).name if to_format or by_suffix else "rankwood"
    if judge and judge_share is not None:
        raise RankwoodError("--judge and --judge-share both say what to judge by: give one of them")
    shares = checked_rates(RATES if rates is None else _shares(rates))
    rule = Acceptance(accept.value, margin, alpha)  # what is wrong is said before files are read
    search = LineSearch(iterations=iterations, patience=patience)
    settings = PruningSettings(victims=victims.value, search=search, max_queries=max_queries, seed=seed)
    Chooser(strategy, 0)
    variants: list[Any] = ["line-search", *["gradient"] * gradient, *["refit"] * refit, *["distil"] * distil]
    loaded = load_models([model])
    reading: dict[str, Any] = {"zero_based": zero_based, "n_threads": threads, "quiet": as_json}
    searched, judged = (load_data(paths, loaded, **reading) for paths in (train, valid))
    held_out = load_data(test, loaded, **reading) if test else None
    judging: Any = "auto" if judge_share is None else judge_share or None
    if judge:
        judging = load_data(judge, loaded, **reading)
    (ensemble,) = loaded.values()
    kept = content_to_keep(model, ensemble, target, output)  # now: the file may change while we search
    size = model.stat().st_size
    try:
        with progress("pruning", unit="searches", quiet=as_json) as advance:
            result = cleaver(
                ensemble, searched, judged, test=held_out, judge=judging,
                measure=measure, convention=convention, strategy=strategy, rates=shares, accept=rule,
                variants=variants, settings=settings, n_threads=threads, progress=advance,
            )  # fmt: skip
    except KeyboardInterrupt:
        fail("interrupted: no model was written", 130)
    if result.accepted or kept is None:
        write_model(result.ensemble, output, target, missing=missing)
    else:
        with atomic_write(output) as file:
            file.write(kept)
    if result.is_loss:
        tell(f"warning: {_loss(result)}")
    if result.accepted and result.ensemble.n_leaves > source_leaves(ensemble):
        tell(f"warning: {_larger(ensemble, result.ensemble)}")
    written = "pruned" if result.accepted else "converted" if kept is None else "copy"
    sizes = size, output.stat().st_size
    if as_json:
        print_json({**_answer(result, output), "written": written, **_sizes(ensemble, result.ensemble, sizes)})
        return
    _print_table(result)
    if written != "copy":
        print_line(_size_sentence((model, ensemble), (output, result.ensemble), sizes))
    print_line(result.summary())
    how = {"copy": ": the input itself, byte for byte", "converted": f": the input, converted to {target}"}
    tell(f"wrote {output}{how.get(written, '')}")


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise RankwoodError(f"--rates takes numbers with commas between them, like 0.3,0.5,0.7, got {text!r}") from None


def _loss(result: CleaverResult) -> str:
    return (
        f"the smaller model is significantly worse on test data: {result.measure} {result.verdict()}; more validation "
        "queries, or --accept non-inferior with a --margin, ask for more before a model is accepted"
    )


def _larger(before: Ensemble, after: Ensemble) -> str:
    from rankwood.formats.registry import source_of

    return (
        f"the model has {after.n_leaves:,} leaves, more than the {source_leaves(before):,} of its "
        f"{source_of(before).get('format')} source: splits on categories or around zero are written as thresholds, so "
        "where its own tool serves it, it may be larger and slower than the source"
    )


def _sizes(before: Ensemble, after: Ensemble, n_bytes: tuple[int, int]) -> dict[str, Any]:
    """Leaves as the source of the model counts them, as it has them here, and after pruning; and bytes of the files."""
    return {
        "n_leaves_source": source_leaves(before),
        "n_leaves_before": before.n_leaves,
        "n_leaves_after": after.n_leaves,
        "bytes_before": n_bytes[0],
        "bytes_after": n_bytes[1],
    }


def _size_sentence(given: tuple[Path, Ensemble], written: tuple[Path, Ensemble], n_bytes: tuple[int, int]) -> str:
    (source, before), (output, after) = given, written
    grown = growth(before)
    return (
        f"{output.name} has {after.n_leaves:,} leaves and {n_bytes[1]:,} bytes, {source.name} {before.n_leaves:,} "
        f"leaves and {n_bytes[0]:,} bytes" + (f"; {grown}" if grown else "")
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
        "memory_bytes": result.needed_bytes,
        "table": result.table,
    }


def _print_table(result: CleaverResult) -> None:
    several = len({row.variant for row in result.rows}) > 2
    with_test = result.rows[0].test is not None
    judged = result.rows[0].judged is not None
    columns = [
        "rate",
        *["variant"] * several,
        "trees",
        "train",
        "valid",
        *["judged"] * judged,
        "p",
        *["test", "p (test)"] * with_test,
    ]
    columns += [*["p (inferior)"] * (result.rule.margin is not None), "speed-up", ""]
    rows = []
    for row in result.rows:
        mark = "chosen" if row is result.chosen else "accepted" if row.accepted and row.variant != "input" else ""
        rows.append([
            "input" if row.variant == "input" else f"{row.rate:.0%}",
            *[row.variant] * several,
            f"{row.n_trees:,}", f"{row.train:.4f}", f"{row.valid:.4f}", *[_number(row.judged)] * judged,
            _p(row.p_valid),
            *([_number(row.test), _p(row.p_test)] if with_test else []),
            *[_p(row.p_inferior)] * (result.rule.margin is not None),
            "" if row.speed_up is None else f"{row.speed_up:.2f}x", mark,
        ])  # fmt: skip
    print_table(
        f"{result.measure}, strategy {result.strategy}, accept {result.rule.rule}",
        columns,
        rows,
        caption=(
            "p: randomisation test against the input, on validation (and test) queries; speed-up: scoring with the "
            f"fastest engine, one thread{_batch(result)}.",
            f"convention {result.convention.describe()}",
        ),
    )


def _batch(result: CleaverResult) -> str:
    """What else than the engine was the same for all models that were timed."""
    if not result.timings:
        return ""
    return f", {result.timings[0].batch:,} documents per call, {result.timings[0].precision} precision"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
