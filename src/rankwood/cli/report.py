"""`rankwood report`: models on data as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import progress, tell
from rankwood.cli.models import (
    DataFiles,
    Rename,
    Threads,
    ZeroBased,
    check_output,
    load_data,
    load_models,
    named_as_data,
    read_renames,
)
from rankwood.printable import printable


def report(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model files, of any format.")],
    data: DataFiles,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")],
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="What to measure: nDCG@10, ERR and AP unless given; the first leads."),
    ] = None,
    convention: Annotated[str, typer.Option(help="Whose numbers, as for `evaluate`.")] = "rankwood",
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="File name of the model to compare with; the first unless given.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for every figure as PNG and SVG; needs matplotlib.")
    ] = None,
    margin: Annotated[
        float, typer.Option(help="Loss of the measure that is to be ruled out for a model to be as good.")
    ] = 0.005,
    engine: Annotated[
        str, typer.Option(help="Engine to time; the fastest that needs no compiler unless given.")
    ] = "auto",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
) -> None:
    """Write a page about models on data: quality, speed, size, what differs per query, and what is significant.

    The page is one file that needs no network. For instance:
    rankwood report full.rw pruned.rw lightgbm.txt --data test.txt -o report.html
    """
    from rankwood.evaluation.conventions import Convention
    from rankwood.evaluation.measures import parse_measure
    from rankwood.lab.drawing import check_figures
    from rankwood.lab.report.write import MEASURES, TITLE, write_report

    check_output(output, models, data)  # what is wrong is said before files are read
    if figures is not None:
        check_figures()
    chosen = Convention.get(convention)
    measures = [parse_measure(text) for text in measure or MEASURES]
    loaded = named_as_data(load_models(models), read_renames(rename))
    dataset = load_data(data, loaded, zero_based=zero_based, n_threads=threads)
    with progress("report", unit="steps") as advance:
        written = write_report(
            output,
            loaded,
            dataset,
            baseline=_name_of(baseline, models, list(loaded)),
            measures=measures,
            convention=chosen,
            margin=margin,
            title=title or TITLE,
            figures=figures,
            engine=engine,
            n_threads=threads,
            on_step=lambda what, done, total: advance(done, total),
        )
    size = written[0].stat().st_size / 1000
    more = f", and {len(written) - 1} figures into {figures}" if figures is not None else ""
    tell(f"wrote {output} ({size:,.0f} kB){more}; open it in a browser")


def _name_of(baseline: str | None, paths: list[Path], names: list[str]) -> str | None:
    """Return the name of the model that is given by its name, as it is shown or without its ending, or by its path.

    Examples
    --------
    >>> _name_of("models/a.rw", [Path("models/a.rw")], ["a.rw"]), _name_of("a", [Path("models/a.rw")], ["a.rw"])
    ('a.rw', 'a.rw')
    """
    if baseline is None or baseline in names:
        return baseline
    both = list(zip(paths, names, strict=True))
    same = [name for path, name in both if path == Path(baseline) or printable(name) == baseline]
    same = same or [name for path, name in both if path.stem == baseline]  # as people call it
    return same[0] if len(same) == 1 else baseline
