"""Update rules: which trees the next one is grown without, and what becomes of all weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from numpy.random import Generator

from rankwood.errors import RankwoodError
from rankwood.training.callbacks import Result, Step

# A rule is its parameters and nothing else. What it needs to know of a training is in the steps that were made, so
# that a training goes on from a checkpoint as if it had never stopped.


class Drop(NamedTuple):
    """Trees that the next one is grown without."""

    k: float = 0.0  # how many there should be, before rounding
    trees: tuple[int, ...] = ()  # those that were drawn, by number


class Settled(NamedTuple):
    """Weight of the new tree, factor of the weights of dropped trees, and whether these are removed for good."""

    weight: float
    factor: float = 1.0
    removed: bool = False
    candidate: float | None = None  # measure of the model without the dropped trees, where it decided on removal


# Measure, on the judge's data, of the model without the dropped trees and with the new one, which has this weight.
MeasureAt = Callable[[float], Result]


JudgedOn: TypeAlias = float | Literal["valid", "train"]  # a share of the validation queries is set aside for it


class Update(Protocol):
    """What the boosting loop asks of an update rule."""

    @property
    def learning_rate(self) -> float:
        """Learning rate before any callback changes it."""

    @property
    def drops(self) -> bool:
        """Whether trees are ever taken out of the scores, for which the leaf of every document must be kept."""

    @property
    def judged_on(self) -> JudgedOn | None:
        """The data that removal is judged on, a share of the validation queries, say; None without removals."""

    def draw(self, live: Sequence[int], last: Step | None, rng: Generator) -> Drop:
        """The trees to drop before the next one is grown.

        Parameters
        ----------
        live : sequence of int
            Numbers of the live trees.
        last : Step, optional
            What happened in the iteration before; None in the first.
        rng : Generator
            The random stream of the iteration.
        """

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, measure_at: MeasureAt) -> Settled:
        """The weights of the new tree and of the dropped ones, once it is grown.

        Parameters
        ----------
        drop : Drop
            What `draw` gave.
        learning_rate : float
            That of the iteration.
        last : Step, optional
            What happened in the iteration before; None in the first.
        measure_at : callable
            Measures the model without the dropped trees, by the weight of the new one.
        """


@dataclass(frozen=True)
class Plain:
    """Every tree joins with the learning rate as its weight, and the others stay as they are.

    Parameters
    ----------
    learning_rate : float
        Weight of a tree, nu.
    schedule : {"constant", "adaptive"}
        "adaptive" is the control of Lucchese et al. (2017): tree i = 0, 1, ... has the weight nu / (k + nu), where
        k = rate * i, as if DART had dropped k trees.
    rate : float
        How fast the weights of the adaptive schedule fall.
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

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, measure_at: MeasureAt) -> Settled:
        check_learning_rate(learning_rate)
        if self.schedule == "constant":
            return Settled(float(learning_rate))
        k = self.rate * (0 if last is None else last.iteration + 1)
        return Settled(learning_rate / (k + learning_rate))


def check_learning_rate(learning_rate: float) -> None:
    """Refuse learning rates that are not above 0."""
    if not 0.0 < learning_rate < float("inf"):
        raise RankwoodError(f"learning_rate must be above 0, got {learning_rate}")


FIRST_K, MORE_K = 1.0, 0.5  # of the adaptive strategy: trees to drop at first, and more in every iteration


@dataclass(frozen=True)
class Dart:
    """Some live trees are left out while a tree is grown, and all then stay with smaller weights: DART.

    Of Rashmi & Gilad-Bachrach (2015). With learning rate nu the new tree's weight is nu / (k + nu), and those of the k
    dropped trees become k / (k + nu) of what they were; with none dropped the weight is nu.

    Parameters
    ----------
    learning_rate : float
        nu.
    rate : float
        Share of the live trees that are dropped: k = rate * trees, rounded, and at most half of them.
    skip : float
        Probability that an iteration drops nothing.
    weighting : {"paper", "lightgbm"}
        "lightgbm" has k + 1 in place of k + nu: the same at learning rate 1; with a small one the model forgets what
        it learnt first.
    rounding : {"nearest", "floor"}
        How k is rounded: to the nearest number, one half upwards; or down, so that nothing is dropped while
        rate * trees is below 1, as in Lucchese et al. (2017).
    """

    learning_rate: float = 1.0
    rate: float = 0.015
    skip: float = 0.0
    weighting: Literal["paper", "lightgbm"] = "paper"
    rounding: Literal["nearest", "floor"] = "nearest"

    def __post_init__(self) -> None:
        check_learning_rate(self.learning_rate)
        if not 0.0 <= self.rate <= 1.0:
            raise RankwoodError(f"rate must lie between 0 and 1, a share of the trees, got {self.rate}")
        if not 0.0 <= self.skip <= 1.0:
            raise RankwoodError(f"skip must be a probability, between 0 and 1, got {self.skip}")

    @property
    def drops(self) -> bool:
        return self.rate > 0.0

    @property
    def judged_on(self) -> JudgedOn | None:
        return None

    def wanted(self, n_live: int, last: Step | None) -> float:
        """Number of live trees to drop, before rounding."""
        return self.rate * n_live

    def draw(self, live: Sequence[int], last: Step | None, rng: Generator) -> Drop:
        k = self.wanted(len(live), last)
        n_dropped = min(math.floor(k + 0.5 if self.rounding == "nearest" else k), len(live) // 2)
        if n_dropped == 0 or (self.skip and rng.random() < self.skip):
            return Drop(k)
        places = sorted(rng.choice(len(live), n_dropped, replace=False).tolist())
        return Drop(k, tuple(live[place] for place in places))

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, measure_at: MeasureAt) -> Settled:
        check_learning_rate(learning_rate)
        return self._normalised(drop, float(learning_rate))

    def _normalised(self, drop: Drop, nu: float, candidate: float | None = None) -> Settled:
        """Weights when all trees stay: the new tree and the dropped ones share what either would have added alone."""
        k = len(drop.trees)
        if k == 0:
            return Settled(nu)
        share = k + (nu if self.weighting == "paper" else 1.0)
        return Settled(nu / share, k / share, candidate=candidate)


@dataclass(frozen=True)
class XDart(Dart):
    """DART that removes dropped trees for good when the model is better without them: X-DART.

    Lucchese et al. (2017), algorithm 1. Weights are those of Dart when the trees stay; else the new tree's is nu.

    Parameters
    ----------
    strategy : {"ratio", "fixed", "adaptive"}
        How many trees k are dropped: "ratio", rate * trees as in Dart; "fixed", always `k`; "adaptive", 1 at first,
        0.5 more in every iteration up to `upper_bound`, and 1 again after each improvement.
    k : int
        Number of trees that the strategy "fixed" drops.
    upper_bound : float
        Of the adaptive k: a number of trees, or below 1 a share of the live ones; k may always be 1.
    reference : {"best", "previous"}
        What the model without the dropped trees must surpass: the best of all iterations, or the previous one.
    judge : {"auto", "valid", "train"}
        The data on which: validation queries that are set aside and reported on no more, if there are enough; all of
        them, as in the paper; or the training data.
    judge_share : float
        Share of the validation queries that "auto" sets aside.
    """

    strategy: Literal["ratio", "fixed", "adaptive"] = "adaptive"
    k: int = 2
    upper_bound: float = 5
    reference: Literal["best", "previous"] = "best"
    judge: Literal["auto", "valid", "train"] = "auto"
    judge_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise RankwoodError(f"k must be at least 1, a number of trees, got {self.k}")
        if not 0.0 < self.upper_bound < math.inf:
            raise RankwoodError(
                f"upper_bound must be a number of trees, or a share of them below 1, got {self.upper_bound}"
            )
        if not 0.0 < self.judge_share < 1.0:
            raise RankwoodError(f"judge_share must lie between 0 and 1, a share of queries, got {self.judge_share}")

    @property
    def drops(self) -> bool:
        return self.strategy != "ratio" or self.rate > 0.0

    @property
    def judged_on(self) -> JudgedOn | None:
        return self.judge_share if self.judge == "auto" else self.judge

    def wanted(self, n_live: int, last: Step | None) -> float:
        if self.strategy == "fixed":
            return float(self.k)
        if self.strategy == "ratio":
            return super().wanted(n_live, last)
        if last is None or last.improved:
            return FIRST_K
        bound = self.upper_bound * n_live if self.upper_bound < 1 else self.upper_bound
        return min(last.k + MORE_K, max(bound, FIRST_K))

    def settle(self, drop: Drop, learning_rate: float, last: Step | None, measure_at: MeasureAt) -> Settled:
        check_learning_rate(learning_rate)
        nu = float(learning_rate)
        if not drop.trees or last is None:
            return self._normalised(drop, nu)
        found = measure_at(nu)
        if surpasses(found, last.best if self.reference == "best" else last.value):
            return Settled(nu, removed=True, candidate=found.metric_value)
        return self._normalised(drop, nu, found.metric_value)


def surpasses(found: Result, reference: float | None) -> bool:
    """Whether a measure is better than a value of the same measure; true when there is no value."""
    if reference is None:
        return True
    return found.metric_value > reference if found.maximize else found.metric_value < reference
