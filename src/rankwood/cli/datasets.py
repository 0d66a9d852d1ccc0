"""`rankwood datasets`: the list of public data sets, fetching one, and statistics of any files."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwood.cli.console import print_json, print_table, progress, tell
from rankwood.cli.models import AsJson, Threads, ZeroBased, load_data

if TYPE_CHECKING:
    from rankwood.data.statistics import Statistics

app = typer.Typer(help="List public learning-to-rank data sets, fetch one, or describe files.")


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_datasets()


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """Public learning-to-rank data sets and their size; --json also has their terms and pages."""
    from rankwood.lab.datasets.catalogue import catalogue

    entries = catalogue()
    if as_json:
        print_json({"datasets": [entry.as_dict() for entry in entries]})
        return
    print_table(
        "Public learning-to-rank data sets",
        ["name", "documents", "queries", "features", "labels", "download", "fetched by"],
        [
            [
                entry.name,
                _count(entry.rows),
                _count(entry.queries),
                str(entry.features),
                f"{entry.labels[0]}-{entry.labels[1]}",
                "?" if entry.archive_bytes is None else f"{entry.archive_bytes / 1e6:,.0f} MB",
                "rankwood" if entry.downloadable else "you",
            ]
            for entry in entries
        ],
        caption="rankwood datasets fetch NAME --to DIR; where a form must be signed it says how to get the file.",
    )


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="Name as in `rankwood datasets list`.")],
    to: Annotated[Path, typer.Option("--to", help="Folder to put the data set in.")],
    url: Annotated[str | None, typer.Option(help="Another address to download from.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Checksum that the file must have.")] = None,
) -> None:
    """Download, verify and unpack a data set. An interrupted download resumes when run again."""
    from rankwood.lab.datasets.fetch import fetch

    if hasattr(signal, "SIGPIPE"):  # a connection that breaks is an error to tell of, not the end of the process
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with progress(f"fetching {name}", unit="bytes") as advance:
        path = fetch(name, to, progress=advance, notify=tell, url=url, sha256=sha256)
    tell(f"{name} is in {path}")


@app.command("describe")
def describe(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Ranking data: SVMlight/LETOR text (also .gz), CSV or Parquet."),
    ],
    threads: Threads = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Statistics of data files, a row each: queries, documents, features, labels, and shares of 0 and missing values.

    For instance: rankwood datasets describe Fold1/train.txt Fold1/vali.txt Fold1/test.txt
    """
    from rankwood.data.statistics import statistics

    found = [
        (path, statistics(load_data([path], zero_based=zero_based, n_threads=threads, quiet=as_json))) for path in files
    ]
    if as_json:
        print_json({"files": [{"file": str(path), **one.as_dict()} for path, one in found]})
        return
    print_table(
        "Statistics of ranking data",
        ["file", "queries", "documents", "features", "constant", "labels", "documents per query", "relevant per query",
         "0", "missing", "0 or missing"],
        [[path.name, *_cells(one)] for path, one in found],
        caption="relevant: of a label above 0; constant: features of one value; 0 and missing: shares of all values.",
    )  # fmt: skip


def _cells(found: Statistics) -> list[str]:
    """The numbers of a data set as they stand in the table."""
    return [
        f"{found.n_queries:,}",
        f"{found.n_docs:,}",
        f"{found.n_features:,}",
        f"{found.constant_features:,}",
        found.labels_text,
        f"{found.docs_per_query:.1f} ({found.fewest_docs:,}-{found.most_docs:,})",
        f"{found.relevant_per_query:.1f}",
        *(f"{100 * share:.1f} %" for share in (found.zero, found.missing, found.absent)),
    ]


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
