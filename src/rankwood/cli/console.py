"""Output of all commands: tables and JSON on standard output; progress, warnings and errors on standard error.

Everything that commands print goes through here and is taken for data, because names in models, files and paths may
hold anything: no text is read as markup, and characters that are not printable are shown as escapes.
"""

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


LONGEST_SENTENCE = 1500  # characters
PLAIN_LINE_SECONDS = 5.0  # between two lines of progress when standard error is not a terminal

Shown = Callable[[float, float | None, str], None]  # (done so far, total if known, time left in words)


class Advance:
    """Shows how far work is when it is called, with what is done so far and the total, which is None while unknown.

    The time left is told at the mean speed since the start, unless who does the work knows better (`time_left`).

    Parameters
    ----------
    show : callable
        Called with both and the time left in words.
    """

    def __init__(self, show: Shown) -> None:
        self._show, self._start = show, time.monotonic()
        self._is_told = False
        self._seconds: float | None = None

    def __call__(self, done: float, total: float | None) -> None:
        self._show(done, total, self._left(done, total))

    def time_left(self, seconds: float | None) -> None:
        """Take the seconds that are left, from now on; None: nobody knows, and nothing is said."""
        self._is_told, self._seconds = True, seconds

    def _left(self, done: float, total: float | None) -> str:
        seconds = self._seconds
        if not self._is_told and total and 0 < done < total:
            seconds = (time.monotonic() - self._start) / done * (total - done)
        return "" if seconds is None or done == total else f"{in_words(seconds)} left"


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console of rich that prints text as it is: no markup, no emoji, no highlighting."""
    from rich.console import Console

    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def plain_column(text_format: str) -> TextColumn:
    """A text column of a progress bar in which nothing is read as markup."""
    from rich.progress import TextColumn

    return TextColumn(text_format, markup=False)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str | Sequence[str] = ()
) -> None:
    """Print a table on standard output, the first column left-aligned and the others right-aligned.

    Parameters
    ----------
    title : str
        Line above the table.
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        Cells.
    caption : str or sequence of str, default ()
        Line or lines below the table; empty ones are left out.
    """
    from rich.table import Table

    table = Table()
    for number, column in enumerate(columns):
        table.add_column(printable(column), justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(printable, row))
    # The console is made as wide as the table, because rich would cut columns; a narrow terminal folds lines instead.
    console = plain_console()
    widest = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console = plain_console(width=max(console.width, widest))
    console.print(printable(title), style="italic")  # title and captions would be folded to the width of the table
    console.print(table)
    for line in [caption] if isinstance(caption, str) else caption:
        if line:
            console.print(printable(line), style="dim italic")


def print_text(text: str) -> None:
    """Print a sentence on standard output, wrapped between words at the width of the terminal."""
    plain_console().print(printable(text))


def print_sentence(text: str) -> None:
    """Print a sentence on standard output: wrapped between words on a terminal, one line elsewhere."""
    (print_text if sys.stdout.isatty() else print_line)(text)


def print_line(line: str = "") -> None:
    """Print one line on standard output, not wrapped."""
    print(printable(line))


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON on standard output, on one line without an indent."""
    print(json.dumps(value, indent=indent, allow_nan=False))


def tell(message: str) -> None:
    """Print a message for people on standard error, so that standard output has results alone."""
    print(printable(message), file=sys.stderr, flush=True)


def tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line on standard error; it can stand in for `warnings.showwarning`."""
    tell(f"warning: {' '.join(str(message).split())}")


class Told:
    """`tell_warning` that says each sentence once: a command may read data and score it many times."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in self._said:
            self._said.add(str(message))
            tell_warning(message)


def fail(message: str, status: int = 2) -> NoReturn:
    """End the process with one sentence on standard error and an exit status; names in it may be of any length."""
    sentence = " ".join(message.split())
    if len(sentence) > LONGEST_SENTENCE:  # it begins with what is wrong and ends with what to do
        sentence = f"{sentence[: LONGEST_SENTENCE // 2]} ... {sentence[-LONGEST_SENTENCE // 2 :]}"
    tell(f"rankwood: {sentence}")
    raise SystemExit(status)


def escape_what_cannot_be_encoded() -> None:
    """Make standard output show characters that its encoding lacks as escapes, instead of raising an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def progress(description: str, *, unit: str = "", quiet: bool = False) -> Iterator[Advance]:
    """Show progress on standard error: a bar on a terminal, a line every few seconds elsewhere.

    Parameters
    ----------
    description : str
        What is being done.
    unit : str, default ""
        What is counted; "bytes" are shown as MB. Without a unit only the share that is done is shown.
    quiet : bool, default False
        Show nothing.

    Yields
    ------
    Advance
        Function (done, total) to call as work proceeds; total is None while it is unknown.
    """
    if quiet:
        yield Advance(lambda done, total, left: None)
    elif sys.stderr.isatty():
        with _bar(description, unit) as advance:
            yield advance
    else:
        yield _lines(description, unit)


@contextmanager
def _bar(description: str, unit: str) -> Iterator[Advance]:
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TaskProgressColumn

    counter = DownloadColumn() if unit == "bytes" else MofNCompleteColumn() if unit else TaskProgressColumn()
    columns = (plain_column("{task.description}"), BarColumn(), counter, plain_column("{task.fields[left]}"))
    with Progress(*columns, console=plain_console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(description), total=None, left="")
        yield Advance(lambda done, total, left: bars.update(task, completed=done, total=total, left=left))


def _lines(description: str, unit: str) -> Advance:
    last = time.monotonic()

    def show(done: float, total: float | None, left: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_LINE_SECONDS:
            last = now
            count = f"{done:,.0f} {unit}" if unit else ""
            share = "" if total is None else f"{100 * done / total if total else 100:.0f} %"
            told = f"{count} ({share})" if count and share else count or share
            tell(f"{description}: {', '.join(filter(None, (told, left)))}")

    return Advance(show)


Show = Callable[[int, int, str, str], None]  # (trees so far, trees in all, measures, time left)


@contextmanager
def training_progress(description: str, *, quiet: bool = False) -> Iterator[list[Callback]]:
    """Show the progress of a training on standard error: a bar on a terminal, a line every few seconds elsewhere.

    Yields
    ------
    list of callables
        Callbacks to give to `fit`; empty if `quiet`.
    """
    if quiet:
        yield []
    elif sys.stderr.isatty():
        with _training_bar(description) as show:
            yield [Watcher(show)]
    else:
        yield [Watcher(_line, every=PLAIN_LINE_SECONDS)]


class Watcher:
    """A training callback that shows trees, measures, the best so far and the time left.

    Parameters
    ----------
    show : callable
        Called with the number of trees so far and in all, the measures and the time left in words.
    every : float, default 0.0
        Seconds between two calls of `show` at least.
    """

    order = 25  # before early stopping, which ends the round with an exception

    def __init__(self, show: Show, *, every: float = 0.0) -> None:
        self.show, self.every = show, every
        self.started = self.shown = time.monotonic()
        self.first = 0  # trees that the checkpoint already had, which say nothing of the time per tree
        self.best: tuple[float, int] | None = None

    def __call__(self, env: CallbackEnv) -> None:
        per_round = 1 if env.model is None else env.model.task.n_problems
        now, size, goal = time.monotonic(), env.iteration + 1, env.end_iteration
        if env.step is not None and env.n_trees is not None:  # X-DART removes trees, so rounds and trees differ
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
        """The first measure on every data set, and its best value so far on the first one that is not training data."""
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
    """Iterations and removed trees in words; empty as long as no tree was removed."""
    n_removed = 0 if env.step is None else env.iteration + 1 - env.step.n_trees
    return f"{env.iteration + 1:,} iterations, {n_removed:,} trees removed" if n_removed else ""


def in_words(seconds: float) -> str:
    """A number of seconds in words.

    Examples
    --------
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
        """A progress bar with the measures on a line below, as they would not fit beside it."""

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
