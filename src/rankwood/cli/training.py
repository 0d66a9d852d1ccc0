"""Progress of a training: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rankwood.cli.console import PLAIN_LINE_SECONDS, plain_column, plain_console, tell
from rankwood.learners.callbacks import Callback, CallbackEnv
from rankwood.printable import printable

Show = Callable[[int, int, str, str], None]  # (trees so far, trees in all, measures, time left)


@contextmanager
def training_progress(description: str, *, quiet: bool = False) -> Iterator[list[Callback]]:
    """Show how a training goes: yields the callbacks to give to `fit`."""
    if quiet:
        yield []
    elif sys.stderr.isatty():
        with _bar(description) as show:
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
def _bar(description: str) -> Iterator[Show]:
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
