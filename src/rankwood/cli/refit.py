"""`rankwood refit`: fit the leaves of all trees of a model jointly to the labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import fail, print_json, print_line, tell
from rankwood.cli.models import (
    WRITTEN,
    AsJson,
    ByConvention,
    IfMissing,
    Missing,
    NewModel,
    OnlyMeasured,
    Rename,
    Threads,
    ToFormat,
    ZeroBased,
    check_format,
    check_output,
    content_to_keep,
    load_data,
    load_models,
    read_renames,
    target_format,
    write_changed,
)
from rankwood.cli.options import takes_options
from rankwood.data.dataset import Dataset
from rankwood.errors import DataError
from rankwood.model.ensemble import Ensemble

if TYPE_CHECKING:
    from rankwood.evaluation.evaluator import Comparison

ALPHA = 0.05  # level at which a loss on test data is warned of


@dataclass(frozen=True)
class RefitOptions:
    """Arguments and options of `rankwood refit`, in the order of its help."""

    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, of any format that can be read.")]
    train: Annotated[list[Path], typer.Option("--train", help="Data to fit leaves to. Several files are joined.")]
    valid: Annotated[list[Path], typer.Option("--valid", help="Data that the number of passes is chosen by.")]
    output: NewModel
    test: OnlyMeasured = None
    measure: Annotated[str, typer.Option("--measure", "-m", help="What should get better.")] = "nDCG@10"
    convention: ByConvention = "rankwood"
    passes: Annotated[int, typer.Option(min=1, help="Passes over all leaves, at most.")] = 100
    rate: Annotated[float, typer.Option(help="Length of the steps, shared among the trees.")] = 3.0
    patience: Annotated[int, typer.Option(min=1, help="Passes without a better validation measure.")] = 10
    threads: Threads = None
    to_format: ToFormat = None
    missing: IfMissing = Missing.refuse
    zero_based: ZeroBased = False
    rename: Rename = None
    as_json: AsJson = False


@takes_options
def refit(options: RefitOptions) -> None:
    """Fit the leaves of all trees of a model jointly to the labels: the same trees, often a better ranking.

    For instance: rankwood refit model.txt --train train.txt --valid vali.txt --test test.txt -o better.txt

    The validation data chooses the number of passes, so its measure afterwards is too favourable; --test says what the model gains or loses on other queries, and a significant loss is warned of. When no pass raised the validation measure the file written is the input itself, byte for byte, or converted if another format is asked for.
    """  # noqa: E501  typer keeps line ends
    from rankwood.fitting.refit import Refit
    from rankwood.fitting.refit import refit as refit_model

    check_output(options.output, options.model, train=options.train, valid=options.valid, test=options.test)
    check_format(options.output, options.to_format)
    settings = Refit(options.passes, options.rate, patience=options.patience)
    loaded = load_models([options.model])
    (model,) = loaded.values()
    target = target_format(options.model, model, options.output, options.to_format)

    reading: dict[str, Any] = {"zero_based": options.zero_based, "rename": read_renames(options.rename)}

    def data(paths: list[Path]) -> Dataset:
        return load_data(paths, loaded, n_threads=options.threads, quiet=options.as_json, **reading)

    train, valid = data(options.train), data(options.valid)
    test = data(options.test) if options.test else None
    (model,) = loaded.values()  # perhaps wider than it was
    content = content_to_keep(options.model, model, target, options.output)
    how: dict[str, Any] = {"measure": options.measure, "convention": options.convention, "n_threads": options.threads}
    try:
        better = refit_model(model, train, valid, settings=settings, **how)
    except KeyboardInterrupt:
        fail("interrupted: no model was written", 130)
    changed = None if better is model else better
    compared = None if test is None else _compared(model, better, test, how)
    write_changed(model, changed, options.output, target, content, missing=options.missing)
    written = "refitted" if changed is not None else "converted" if content is None else "copy"
    _report(options, better, compared, target, written)


def _compared(model: Ensemble, better: Ensemble, test: Dataset, how: dict[str, Any]) -> Comparison | None:
    """Both models on test data; None when it has too few queries for a test."""
    from rankwood.evaluation.evaluator import compare

    try:
        return compare(model, better, test, **how)
    except DataError:
        return None


def _report(options: RefitOptions, model: Ensemble, compared: Comparison | None, target: str, written: str) -> None:
    """Print what validation and test data say, or JSON; `written` is what the file is, see `WRITTEN`."""
    note = model.metadata["refit"] if written == "refitted" else {"passes": 0}
    is_loss = compared is not None and compared.difference < 0.0 and compared.p_randomisation <= ALPHA
    if compared is not None and is_loss:
        tell(
            f"warning: the refitted model is significantly worse on test data: {compared.measure} {compared.words()}; "
            "more validation queries, or a smaller --rate, may help"
        )
    if options.as_json:
        on_test = None if compared is None else compared.as_dict()
        answer = {"model": str(options.output), "format": target, "written": written, **note}
        print_json({**answer, "test": on_test, "test_loss": is_loss})
        return
    if note["passes"]:
        print_line(
            f"{note['measure']} {note['valid_before']:.4f} -> {note['valid_after']:.4f} on validation queries, which "
            f"chose {note['passes']:,} passes: too favourable"
        )
    else:
        print_line("no pass raised the measure on validation queries: the model stays as it is")
    if compared is not None:
        means = f"{compared.mean:.4f} -> {compared.other_mean:.4f}"
        print_line(f"{compared.measure} {means} on {compared.n_queries:,} test queries: {compared.words()}")
    elif options.test:
        print_line("too few test queries for a test")
    tell(f"wrote {options.output} ({target}){WRITTEN.get(written, '')}")
