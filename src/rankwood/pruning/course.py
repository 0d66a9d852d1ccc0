"""The course of a pruning: its steps in order, what they took, how long the rest will take, and a time limit."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rankwood.errors import RankwoodError
from rankwood.group import ALONE, Group
from rankwood.pruning.notebook import Arrays, Notebook

T = TypeVar("T")


class TimeIsUp(Exception):
    """Ends a pruning whose time is up; what was finished before it stays."""


@dataclass(frozen=True)
class Step:
    """A search or a fit: what is counted, timed and kept.

    Parameters
    ----------
    part : int
        Which validation queries choose: 0 for all of them, else the number of the fold that is left out.
    k : int
        Trees that are removed.
    kind : str
        What is done: "choose" (a search over all trees, by whose weights victims are chosen), "search", "gradient",
        "refit" or "distil".
    n_trees : int
        Trees that stay: what the step takes grows with them.
    """

    part: int
    k: int
    kind: str
    n_trees: int

    @property
    def name(self) -> str:
        """Name in a checkpoint."""
        return f"{self.part} {self.kind}" if self.kind == "choose" else f"{self.part} {self.k} {self.kind}"

    @property
    def pace(self) -> tuple[str, bool]:
        """Steps that take as long per tree; folds have less to do, as much does not depend on validation data."""
        return self.kind, self.part > 0


def plan_steps(
    ks: Sequence[int], variants: Sequence[str], n_trees: int, *, n_folds: int = 0, chooses: bool = True
) -> list[Step]:
    """All steps of a pruning; `chooses` tells whether victims are chosen by the weights of a search."""
    kinds = ["search"] if {"line-search", "refit"} & set(variants) else []
    kinds += [variant for variant in variants if variant != "line-search"]
    parts = range(n_folds + 1)
    first = [Step(part, 0, "choose", n_trees) for part in parts if chooses]
    return first + [Step(part, k, kind, n_trees - k) for k in ks for part in parts for kind in kinds]


class Course:
    """Steps as they are done: each is noted, timed and counted, and the time limit is kept.

    Parameters
    ----------
    steps : sequence of Step, default ()
        All steps. One that is not among them is done, but not counted.
    notebook : Notebook or None, default None
        Finished steps, which are not done again.
    progress : callable or None, default None
        Called with the number of steps done, fractions included, and their number in all.
    time_left : callable or None, default None
        Called before `progress` with the seconds that are left, or None as long as there is nothing to go by.
    deadline : float or None, default None
        When the time is up, by `time.monotonic`.
    group : Group
        Processes that do the same; the clock of the first counts.
    """

    def __init__(
        self,
        steps: Sequence[Step] = (),
        notebook: Notebook | None = None,
        *,
        progress: Callable[[float, float], None] | None = None,
        time_left: Callable[[float | None], None] | None = None,
        deadline: float | None = None,
        group: Group = ALONE,
    ) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self._progress, self._time_left, self._deadline, self._group = progress, time_left, deadline, group
        self._n_steps = len(steps)
        self._left = {step.name: step for step in steps if step.name not in self.notebook}
        self._step: Step | None = None
        self._began, self._is_whole = 0.0, True
        self._seconds: dict[tuple[str, bool], float] = defaultdict(float)  # of steps done, by their pace
        self._trees: dict[tuple[str, bool], int] = defaultdict(int)

    def do(self, step: Step, make: Callable[[], Arrays]) -> Arrays:
        """What the step found; `make` is called unless that is known."""
        if step.name in self.notebook:
            self.skip([step])
            return self.notebook.step(step.name, make)
        self._step, self._began, self._is_whole = step, time.monotonic(), True
        self._tell(0.0)
        self._check_time()
        found = self.notebook.step(step.name, make)
        if self._is_whole:
            self._seconds[step.pace] += time.monotonic() - self._began
            self._trees[step.pace] += step.n_trees
        self._step = None
        self.skip([step])
        self.notebook.save_if_due()
        return found

    def skip(self, steps: Sequence[Step]) -> None:
        """Count steps as done."""
        for step in steps:
            self._left.pop(step.name, None)
        self._tell(0.0)

    def finish(self) -> None:
        """Count all steps as done, also those that turned out not to be needed."""
        self.skip(list(self._left.values()))

    def tick(self, done: int, most: int) -> None:
        """Count a part of the step under way as done, and stop if the time is up."""
        self.notebook.save_if_due()
        self._tell(done / (most + 1))
        self._check_time()

    def ticks(self, passes: Iterator[T], most: int) -> Iterator[T]:
        """Passes of a step, each with a `tick`."""
        for number, one in enumerate(passes, start=1):
            self.tick(number, most)
            yield one

    def resumed(self) -> None:
        """Say that the step under way was begun before: what it takes now is no measure."""
        self._is_whole = False

    def _tell(self, share: float) -> None:
        if self._time_left is not None:
            self._time_left(self.seconds_left())
        if self._progress is not None:
            self._progress(self._n_steps - len(self._left) + share, self._n_steps)

    def _check_time(self) -> None:
        if self._deadline is not None and self._group.broadcast(time.monotonic() >= self._deadline):
            raise TimeIsUp

    def seconds_left(self) -> float | None:
        """How long the steps left will take, as measured on those done; None as long as a kind was not measured.

        A step is taken to need as long per tree as those of its kind did, on average.
        """
        total = 0.0
        for step in self._left.values():
            if step.pace not in self._trees:
                return None
            seconds = step.n_trees * self._seconds[step.pace] / self._trees[step.pace]
            if self._step is not None and step.name == self._step.name:
                seconds = max(seconds - (time.monotonic() - self._began), 0.0)
            total += seconds
        return total


def deadline_of(timeout: float | None) -> float | None:
    """The time, by `time.monotonic`, that is `timeout` seconds from now."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not timeout > 0:
        raise RankwoodError(f"timeout is a number of seconds above 0, got {timeout}")
    return time.monotonic() + timeout


def coarse_first(n: int) -> list[int]:
    """The numbers from 0 to n - 1 so that the first of them are spread: the middle, then those of both halves.

    Examples
    --------
    >>> coarse_first(9)
    [4, 2, 7, 1, 3, 6, 8, 0, 5]
    """
    spans, order = [(0, n)], list[int]()
    for begin, end in spans:  # which grows on the way
        if begin < end:
            middle = (begin + end) // 2
            order.append(middle)
            spans += [(begin, middle), (middle + 1, end)]
    return order
