"""Update rules: which trees the next one is grown without, and what becomes of their weights and of its own.

A rule is its parameters and nothing else. What it needs to know of a training is in the steps that were made, so that a
training goes on from a checkpoint as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

from numpy.random import Generator

from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result
from rankwood.learners.steps import Step


class Drop(NamedTuple):
    """Trees to grow the next one without: how many there should be, and those that were drawn."""

    k: float = 0.0
    trees: tuple[int, ...] = ()


class Settled(NamedTuple):
    """Weight of the new tree, factor of the weights of dropped trees, and whether these are removed for good."""

    weight: float
    factor: float = 1.0
    removed: bool = False
    candidate: float | None = None  # the measure that removal was judged by


Judge = Callable[[float], Result]  # measure of the model without the dropped trees, the new one in it with this weight


class Update(Protocol):
    """What the boosting loop asks of a rule."""

    @property
    def learning_rate(self) -> float: ...

    @property
    def drops(self) -> bool:
        """Whether trees are ever taken out of the scores, for which the leaf of every document must be kept."""

    @property
    def judged_on(self) -> Literal["valid", "train"] | None:
        """The data that removal is judged on; None when nothing is ever removed."""

    def draw(self, live: Sequence[int], last: Step | None, rng: Generator) -> Drop:
        """Before the next tree: what to drop, after the step `last`. The stream is that of the iteration."""

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, judge: Judge) -> Settled:
        """When it is grown: weights. The learning rate is that of the iteration."""


@dataclass(frozen=True)
class Plain:
    """Every tree joins with the learning rate as its weight, and the others stay as they are.

    schedule    "constant"; or "adaptive", the control of Lucchese et al. (2017): with learning rate nu, tree i = 0, 1,
                ... has the weight nu / (k + nu), k = rate * i, as if DART had dropped k trees
    """

    learning_rate: float = 0.1
    schedule: Literal["constant", "adaptive"] = "constant"
    rate: float = 0.015

    drops: ClassVar[bool] = False
    judged_on: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_learning_rate(self.learning_rate)
        if not 0.0 <= self.rate < float("inf"):
            raise RankwoodError(f"schedule_rate must be a number from 0 up, got {self.rate}")

    def draw(self, live: Sequence[int], last: Step | None, rng: Generator) -> Drop:
        return Drop()

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, judge: Judge) -> Settled:
        check_learning_rate(learning_rate)
        if self.schedule == "constant":
            return Settled(float(learning_rate))
        k = self.rate * (0 if last is None else last.iteration + 1)
        return Settled(learning_rate / (k + learning_rate))


def check_learning_rate(learning_rate: float) -> None:
    if not 0.0 < learning_rate < float("inf"):
        raise RankwoodError(f"learning_rate must be above 0, got {learning_rate}")
