"""What every command shares: tables, JSON, progress on standard error, and the one-sentence error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

PLAIN_LINE_SECONDS = 5.0  # how often progress is told when standard error is not a terminal

Advance = Callable[[float, float | None], None]  # (done so far, total if known)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> None:
    """Print a table on standard output; the first column is text, the others are right-aligned."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # A table that is wider than the terminal is folded by the terminal; rich would cut its columns.
    console = Console(highlight=False)
    widest = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console = Console(highlight=False, width=max(console.width, widest))
    console.print(title, style="italic")  # not as parts of the table, which would fold them to its width
    console.print(table)
    if caption:
        console.print(caption, style="dim italic")


def print_text(text: str) -> None:
    """Print a sentence on standard output, folded between words."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(text)


def print_json(value: Any) -> None:
    """Print one JSON object on standard output and nothing else."""
    print(json.dumps(value, indent=2, allow_nan=False))


def tell(message: str) -> None:
    """Say something to a person: on standard error, so that standard output stays clean."""
    print(message, file=sys.stderr, flush=True)


def fail(message: str, status: int = 2) -> NoReturn:
    """End with one sentence on standard error."""
    tell(f"rankwood: {' '.join(message.split())}")
    raise SystemExit(status)


@contextmanager
def progress(description: str, *, unit: str = "", quiet: bool = False) -> Iterator[Advance]:
    """Show the progress of long work: a bar when standard error is a terminal, now and then a line elsewhere.

    Yields a function (done, total) to call as work proceeds.
    """
    if quiet:
        yield lambda done, total: None
    elif sys.stderr.isatty():
        with _bar(description, unit) as advance:
            yield advance
    else:
        yield _lines(description, unit)


@contextmanager
def _bar(description: str, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counter = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counter, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(description, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _lines(description: str, unit: str) -> Advance:
    last = time.monotonic()

    def advance(done: float, total: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_LINE_SECONDS:
            last = now
            share = f" ({100 * done / total:.0f} %)" if total else ""
            tell(f"{description}: {done:,.0f}{' ' + unit if unit else ''}{share}")

    return advance
