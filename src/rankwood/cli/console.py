"""Output of all commands: tables and JSON on standard output; progress, warnings and errors on standard error.

Everything that commands print goes through here and is taken for data, because names in models, files and paths may
hold anything: no text is read as markup, and characters that are not printable are shown as escapes.
"""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from rankwood.printable import printable
from rankwood.training.callbacks import Callback, CallbackEnv

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TextColumn
    from rich.table import Table


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
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str | Sequence[str] = (),
    details: Sequence[str] = (),
    n_keys: int = 1,
) -> None:
    """Print a table on standard output, the first column left-aligned and the others right-aligned.

    A table that is too wide for the terminal is printed without its details, as far as needed, and a line says so. If
    it still does not fit, the other columns go on in a table below. Output that is no terminal has all columns.

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
    details : sequence of str, default ()
        Headings of columns that may be left out, the least important first.
    n_keys : int, default 1
        How many columns at the beginning say what a row is; tables that go on below have them again.
    """
    console = plain_console()
    cells = [[printable(text) for text in line] for line in (columns, *rows)]
    parts, left_out = [list(range(len(columns)))], list[int]()
    if sys.stdout.isatty():
        cells = shortened(cells, console.width)
        dispensable = [list(columns).index(heading) for heading in details if heading in columns]
        parts, left_out = fitted(_widths(cells), console.width, dispensable, n_keys)
    console.print(printable(title), style="italic")  # title and captions would be folded to the width of the table
    tables = [_table(cells, part) for part in parts]
    # The console is made as wide as the widest table, because rich would cut columns; a line that is longer than the
    # terminal after all is folded there.
    widest = max(console.measure(table, options=console.options.update(max_width=10_000)).maximum for table in tables)
    wide = plain_console(width=max(console.width, widest))
    for table in tables:
        wide.print(table)
    captions = [caption] if isinstance(caption, str) else [*caption]
    if left_out:
        names = ", ".join(columns[number] for number in left_out)
        captions.append(f"{console.width} columns leave out: {names}; `| less -S` shows all.")
    for line in filter(None, captions):
        (console if sys.stdout.isatty() else wide).print(printable(line), style="dim italic")


def _table(cells: Sequence[Sequence[str]], part: Sequence[int]) -> Table:
    """A table of rich with these columns of the cells, the first line being headings."""
    from rich.table import Table

    table = Table()
    for number in part:
        table.add_column(cells[0][number], justify="left" if number == 0 else "right", no_wrap=True)
    for row in cells[1:]:
        table.add_row(*(row[number] for number in part))
    return table


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*cells, strict=True)]


def _width(widths: Sequence[int], part: Sequence[int]) -> int:
    """Width of a table with these columns: each has a line and a space on either side."""
    return sum(widths[number] + 3 for number in part) + 1


def fitted(widths: Sequence[int], room: int, details: Sequence[int], n_keys: int) -> tuple[list[list[int]], list[int]]:
    """Columns of tables that are no wider than `room`, as far as can be, and the columns that are left out.

    Parameters
    ----------
    widths : sequence of int
        Width of every column.
    room : int
        Width of the terminal.
    details : sequence of int
        Columns that may be left out, the least important first.
    n_keys : int
        How many columns at the beginning are in every table.

    Examples
    --------
    >>> fitted([8, 6, 6, 6, 6], 40, [2, 4], 1), fitted([8, 6, 6, 6, 6], 31, [4], 1)
    (([[0, 1, 3, 4]], [2]), ([[0, 1, 2], [0, 3]], [4]))
    """
    shown, left_out = list(range(len(widths))), list[int]()
    for number in details:
        if _width(widths, shown) > room:
            shown.remove(number)
            left_out.append(number)
    for number in reversed(left_out[:]):  # of two that are left out, the other may have been enough
        if _width(widths, [*shown, number]) <= room:
            shown.append(number)
            left_out.remove(number)
    shown.sort()
    parts = [shown[:n_keys]]
    for number in shown[n_keys:]:
        if len(parts[-1]) > n_keys and _width(widths, [*parts[-1], number]) > room:
            parts.append(shown[:n_keys])
        parts[-1].append(number)
    return parts, sorted(left_out)


def shortened(cells: Sequence[Sequence[str]], room: int) -> list[list[str]]:
    """Cells of a table with long texts cut in the middle if it is wider than `room`: names to half of the room.

    Names in the first column that would look alike stay as they are.

    Examples
    --------
    >>> shortened([["model", "AP"], ["a_model_of_many_trees.rw", "0.5"]], 30)
    [['model', 'AP'], ['a_mode...ees.rw', '0.5']]
    """
    columns = [list(column) for column in zip(*cells, strict=True)]
    widths = _widths(cells)
    if _width(widths, range(len(widths))) > room:
        names = [_cut(text, room // 2) for text in columns[0]]
        if len(set(names)) == len(set(columns[0])):
            columns[0] = names
        taken = _width(_widths(list(zip(columns[0], strict=True))), [0]) + 3
        columns[1:] = [[_cut(text, max(room - taken, room // 3)) for text in column] for column in columns[1:]]
    return [list(row) for row in zip(*columns, strict=True)]


def _cut(text: str, limit: int) -> str:
    """A text of at most so many characters, without its middle if it is longer."""
    return text if len(text) <= limit else f"{text[: (limit - 3) // 2]}...{text[len(text) - (limit - 2) // 2 :]}"


def print_text(text: str) -> None:
    """Print a sentence on standard output, wrapped between words at the width of the terminal."""
    plain_console().print(printable(text))


def print_indented(text: str) -> None:
    """Print a text on standard output, indented, wrapped between words at the width of the terminal."""
    indent = " " * 4
    print(textwrap.fill(printable(text), plain_console().width, initial_indent=indent, subsequent_indent=indent))


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
    """Print a message for people on standard error, so that standard output has results alone.

    On a terminal lines end between words; elsewhere a message is one line.
    """
    text = printable(message)
    if sys.stderr.isatty():
        text = textwrap.fill(text, _terminal_width(), break_long_words=False, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)


def _terminal_width() -> int:
    """Width of the terminal that standard error is; standard output, which others ask, may be a file."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80  # 0: unknown
    except (OSError, ValueError):  # no terminal after all
        return 80


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


def full_place() -> str:
    """What has no room when an error names no file: temporary files, if none can be written, or standard output."""
    import tempfile

    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(1 << 16))
            file.flush()
    except OSError:
        return f"temporary files in {tempfile.gettempdir()}"
    return "standard output"


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
    last, most = time.monotonic(), 0.0

    def show(done: float, total: float | None, left: str) -> None:
        nonlocal last, most
        now = time.monotonic()
        if now - last >= PLAIN_LINE_SECONDS and done >= most:  # work that begins anew is told when it is further
            last, most = now, done
            count = f"{done:,.0f} {unit}" if unit else ""
            share = "" if total is None else f"{100 * done / total if total else 100:.0f} %"
            told = f"{count} ({share})" if count and share else count or share
            tell(f"{description}: {', '.join(filter(None, (told, left)))}")

    return Advance(show)


Show = Callable[[int, int, str, str], None]  # (trees so far, trees in all, measures and the like, time left)


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
        self.most = 0  # trees that were shown: lines go up only, while X-DART removes trees
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
            self.first, self.started, self.most = done, now, max(self.most, done)
        elif (now - self.shown >= self.every and done >= self.most) or (self.every and done == total):
            self.shown, self.most = now, done
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
    return f"{n_removed:,} removed" if n_removed else ""


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
