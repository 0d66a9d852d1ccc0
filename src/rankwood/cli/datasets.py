"""`rankwood datasets`: the list of public data sets, fetching or making one, and statistics of any files."""

from __future__ import annotations

import signal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwood.cli.console import print_json, print_table, progress, tell
from rankwood.cli.models import AsJson, Threads, ZeroBased, load_data
from rankwood.errors import DataError

if TYPE_CHECKING:
    from rankwood.data.statistics import Statistics
    from rankwood.lab.datasets.catalogue import Entry

app = typer.Typer(help="List public learning-to-rank data sets, fetch or make one, or describe files.")


class Part(str, Enum):
    """Parts of WordNet-LTR."""

    noun = "noun"
    verb_adj = "verb-adj"


class Format(str, Enum):
    """Formats of data files that are made."""

    parquet = "parquet"
    svmlight = "svmlight"


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
        ["name", "documents", "queries", "features", "labels", "download", "got by"],
        [
            [
                entry.name,
                _count(entry.rows),
                _count(entry.queries),
                str(entry.features),
                f"{entry.labels[0]}-{entry.labels[1]}",
                _download(entry),
                "make" if entry.made_from else "fetch" if entry.downloadable else "you",
            ]
            for entry in entries
        ],
        caption=(
            "rankwood datasets fetch NAME --to DIR; where a form must be signed it says how to get the file.",
            "rankwood datasets make NAME --to DIR makes a set on this machine, of something that is installed.",
        ),
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


@app.command("make")
def make_dataset(
    name: Annotated[str, typer.Argument(help="Name as in `rankwood datasets list`: WordNet-LTR.")],
    to: Annotated[Path, typer.Option("--to", help="Folder of the data set; it must not be there, or be empty.")],
    part: Annotated[Part, typer.Option(help="Queries about nouns, or about verbs and adjectives.")] = Part.noun,
    queries: Annotated[
        int | None,
        typer.Option(
            min=3, help="Queries in all, the first ones of the whole set; 32,000 (verb-adj: 3,000) unless given."
        ),
    ] = None,
    format: Annotated[Format, typer.Option(help="Of the files; Parquet needs the extra arrow.")] = Format.parquet,
    wordnet: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the WordNet database, Debian's package wordnet-base.")
    ] = Path("/usr/share/wordnet"),
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes to use, with the same result; all CPUs unless given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a data set of what is installed: training, validation and test files, and facts about them.

    For instance: rankwood datasets make WordNet-LTR --to wordnet --queries 6400
    """
    from rankwood.lab.datasets.catalogue import find_entry
    from rankwood.lab.datasets.wordnet.make import as_published, make

    entry = find_entry(name)
    if entry.made_from is None:
        raise DataError(f"{entry.name} is not made but downloaded: rankwood datasets fetch {entry.name} --to DIR")
    with progress(f"making {entry.name}", quiet=as_json) as advance:
        facts = make(
            to,
            part=part.value,
            n_queries=queries,
            format=format.value,
            wordnet=wordnet,
            n_workers=workers,
            progress=advance,
        )
    if as_json:
        print_json(facts | {"as_published": as_published(facts)})
        return
    print_table(
        f"{entry.name}, {part.value}",
        ["file", "queries", "documents", "documents per query", "grades 0 to 4, %", "sha256 of values"],
        [_made(split, file) for split, file in facts["files"].items()],
        caption=_PUBLISHED[as_published(facts)],
        details=["sha256 of values", "documents per query"],
    )
    tell(f"{entry.name} is in {to}; terms: {entry.terms}")


_PUBLISHED = {
    True: "The values are those published (docs/datasets.md).",
    False: "The values are not those published: another WordNet, or a processor or numpy that rounds otherwise.",
    None: "",
}


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
        ["file", "queries", "documents", "features", "constant", "labels", "docs/query", "relevant/query",
         "0", "missing", "0 or missing"],
        [[path.name, *_cells(one)] for path, one in found],
        caption="relevant: of a label above 0; constant: features of one value; 0 and missing: shares of all values.",
        details=["0 or missing", "constant", "0", "relevant/query", "missing"],
    )  # fmt: skip


def _made(split: str, file: dict[str, Any]) -> list[str]:
    """The facts of one file as they stand in the table."""
    fewest, mean, most = file["rows_per_query"]
    grades = " / ".join(f"{percent:.1f}" for percent in file["grade_percent"])
    counts = [f"{file['queries']:,}", f"{file['rows']:,}", f"{mean:.1f} ({fewest:,}-{most:,})"]
    return [split, *counts, grades, file["sha256_of_values"][:12] + "..."]


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


def _download(entry: Entry) -> str:
    """Size of the archive; nothing for a set that is made here."""
    if entry.made_from:
        return "-"
    return "?" if entry.archive_bytes is None else f"{entry.archive_bytes / 1e6:,.0f} MB"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
