"""What every command shares: tables, JSON, progress on standard error, and the one-sentence error."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from rankwood.printable import printable
from rankwood.training.callbacks import Callback, CallbackEnv

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TextColumn


# What every command shares: tables, JSON, progress on standard error, and the one-sentence error.
#
# All that commands print goes through here, and all of it is taken for data: names in models, files and paths may
# hold anything. No text is markup, and what is not printable is shown as an escape.


PLAIN_LINE_SECONDS = 5.0  # how often progress is told when standard error is not a terminal

Advance = Callable[[float, float | None], None]  # (done so far, total if known)


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that takes no text for markup, emoji or something to highlight."""
    from rich.console import Console

    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def plain_column(text_format: str) -> TextColumn:
    """A column of a progress bar that takes no text for markup."""
    from rich.progress import TextColumn

    return TextColumn(text_format, markup=False)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str | Sequence[str] = ()
) -> None:
    """Print a table on standard output; the first column is text, the others are right-aligned.

    `caption` is a line, or several.
    """
    from rich.table import Table

    table = Table()
    for number, column in enumerate(columns):
        table.add_column(printable(column), justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(printable, row))
    # A table that is wider than the terminal is folded by the terminal; rich would cut its columns.
    console = plain_console()
    widest = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console = plain_console(width=max(console.width, widest))
    console.print(printable(title), style="italic")  # not as parts of the table, which would fold them to its width
    console.print(table)
    for line in [caption] if isinstance(caption, str) else caption:
        if line:
            console.print(printable(line), style="dim italic")


def print_text(text: str) -> None:
    """Print a sentence on standard output, folded between words."""
    plain_console().print(printable(text))


def print_line(line: str = "") -> None:
    """Print a line on standard output as it is."""
    print(printable(line))


def print_json(value: Any) -> None:
    """Print one JSON object on standard output and nothing else."""
    print(json.dumps(value, indent=2, allow_nan=False))


def tell(message: str) -> None:
    """Say something to a person: on standard error, so that standard output stays clean."""
    print(printable(message), file=sys.stderr, flush=True)


def tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Say a warning in a line, as `warnings.showwarning` is asked to."""
    tell(f"warning: {' '.join(str(message).split())}")


def fail(message: str, status: int = 2) -> NoReturn:
    """End with one sentence on standard error."""
    tell(f"rankwood: {' '.join(message.split())}")
    raise SystemExit(status)


def escape_what_cannot_be_encoded() -> None:
    """Where the encoding of standard output lacks a character, it is shown as an escape and not an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


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
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    counter = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (plain_column("{task.description}"), BarColumn(), counter, TimeRemainingColumn())
    with Progress(*columns, console=plain_console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(description), total=None)
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


# Progress of a training: a live bar on a terminal, a line now and then elsewhere.


Show = Callable[[int, int, str, str], None]  # (trees so far, trees in all, measures, time left)


@contextmanager
def training_progress(description: str, *, quiet: bool = False) -> Iterator[list[Callback]]:
    """Show how a training goes: yields the callbacks to give to `fit`."""
    if quiet:
        yield []
    elif sys.stderr.isatty():
        with _training_bar(description) as show:
            yield [Watcher(show)]
    else:
        yield [Watcher(_line, every=PLAIN_LINE_SECONDS)]


class Watcher:
    """A callback that shows where a training stands: trees, measures, best so far, time left."""

    order = 25  # before early stopping, which ends the call

    def __init__(self, show: Show, *, every: float = 0.0) -> None:
        self.show, self.every = show, every
        self.started = self.shown = time.monotonic()
        self.first = 0  # trees that were there already
        self.best: tuple[float, int] | None = None

    def __call__(self, env: CallbackEnv) -> None:
        per_round = 1 if env.model is None else env.model.task.n_problems
        now, size, goal = time.monotonic(), env.iteration + 1, env.end_iteration
        if env.step is not None and env.n_trees is not None:  # trees may be removed again
            size, goal = env.step.n_trees, env.n_trees
        done, total = per_round * size, per_round * goal
        results = env.evaluation_result_list
        watched = [result for result in results if result.dataset_name != env.train_name]
        if watched:
            value = watched[0].metric_value
            if self.best is None or value > self.best[0]:
                self.best = (value, done)
        if env.replayed:
            self.first, self.started = done, now
        elif now - self.shown >= self.every or (self.every and done == total):
            self.shown = now
            left = (now - self.started) / max(done - self.first, 1) * (total - done)
            told = ", ".join(filter(None, (self._measures(env), _removals(env))))
            self.show(done, total, told, f"{in_words(left)} left")

    def _measures(self, env: CallbackEnv) -> str:
        """The first measure on every data set, and the best so far of the first that is not the training data."""
        results = env.evaluation_result_list
        values = [
            f"{result.dataset_name} {result.metric_value:.4f}"
            for result in results
            if result.metric_name == results[0].metric_name
        ]
        if self.best is not None:
            values.append(f"best {self.best[0]:.4f} at tree {self.best[1]:,}")
        return f"{results[0].metric_name} {', '.join(values)}" if values else ""


def _removals(env: CallbackEnv) -> str:
    """Iterations, and trees removed again, once there are any."""
    n_removed = 0 if env.step is None else env.iteration + 1 - env.step.n_trees
    return f"{env.iteration + 1:,} iterations, {n_removed:,} trees removed" if n_removed else ""


def in_words(seconds: float) -> str:
    """A span of time, shortly.

    >>> in_words(4.2), in_words(75), in_words(7_300)
    ('4 s', '1:15 min', '2:01 h')
    """
    minutes = round(seconds) // 60
    if minutes == 0:
        return f"{seconds:.0f} s"
    return f"{minutes}:{round(seconds) % 60:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def _line(done: int, total: int, measures: str, left: str) -> None:
    tell(f"{done:,} of {total:,} trees: {', '.join(filter(None, (measures, left)))}")


@contextmanager
def _training_bar(description: str) -> Iterator[Show]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress

    class TwoLines(Progress):
        """The bar, and below it the measures, which would not fit beside it."""

        def get_renderables(self) -> Iterable[Any]:
            yield self.make_tasks_table(self.tasks)
            yield from (task.fields["measures"] for task in self.tasks)

    columns = (
        plain_column("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        plain_column("trees, {task.fields[left]}"),
    )
    with TwoLines(*columns, console=plain_console(stderr=True), transient=True) as bars:
        task = bars.add_task(description, total=None, measures="", left="...")
        yield lambda done, total, measures, left: bars.update(
            task, completed=done, total=total, measures=printable(measures), left=left
        )
