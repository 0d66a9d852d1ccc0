"""What the labels are learnt as: themselves, or as binary problems that are boosted side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError, RankwoodError
from rankwood.learners import ordinal

MOST_PROBLEMS = 100  # a label beyond is hardly a grade, and each problem costs as much as a whole regression


class Task(Protocol):
    """What the boosting loop asks of a task: its problems, and how their models make one."""

    @property
    def name(self) -> str: ...

    @property
    def n_problems(self) -> int: ...

    @property
    def sign(self) -> float:
        """What a problem's tree weights are multiplied by in the whole model."""

    def targets(self, y: FloatArray) -> list[FloatArray]:
        """The labels of every problem."""

    def combine(self, problems: list[Ensemble]) -> Ensemble:
        """The whole model of the models of the problems."""

    def split(self, model: Ensemble) -> list[Ensemble]:
        """The models of the problems, of the whole model."""

    def extend(self, start: Ensemble, boosted: Ensemble) -> Ensemble:
        """A whole model, and rounds of trees: in each, one for every problem in turn."""

    def begin(self, start: Ensemble) -> Ensemble:
        """A model to start from, with no more notes than the task needs."""

    def covering(self, start: Ensemble | None) -> Task:
        """The task with the problems that a model to start from has; an error when it cannot be."""


@dataclass(frozen=True)
class Regression:
    """One problem: the labels as they are."""

    name: ClassVar[str] = "regression"
    n_problems: ClassVar[int] = 1
    sign: ClassVar[float] = 1.0

    def targets(self, y: FloatArray) -> list[FloatArray]:
        return [y]

    def combine(self, problems: list[Ensemble]) -> Ensemble:
        return problems[0]

    def split(self, model: Ensemble) -> list[Ensemble]:
        return [model]

    def extend(self, start: Ensemble, boosted: Ensemble) -> Ensemble:
        return start.concat(boosted)

    def begin(self, start: Ensemble) -> Ensemble:
        return start.replace(metadata={})

    def covering(self, start: Ensemble | None) -> Regression:
        return self


@dataclass(frozen=True)
class Ordinal:
    """The classification setting: for c = 1..n_problems, whether the label is below c. See `rankwood.learners.ordinal`.

    >>> [target.tolist() for target in Ordinal.of(np.array([0.0, 2.0, 1.0])).targets(np.array([0.0, 2.0, 1.0]))]
    [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """

    n_problems: int
    name: ClassVar[str] = "ordinal"
    sign: ClassVar[float] = -1.0

    @classmethod
    def of(cls, y: FloatArray) -> Ordinal:
        """For the grades 0 up to the largest label, which there need not all be."""
        wrong = np.flatnonzero(~(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y))))
        if len(wrong):
            raise DataError(
                f"label {y[wrong[0]]:g} of row {wrong[0]} is no grade: task='ordinal' needs whole numbers from 0 up; "
                "round or shift the labels, or use task='regression'"
            )
        highest = int(y.max(initial=1.0))  # at least one problem, also when every label is 0
        if highest > MOST_PROBLEMS:
            raise DataError(
                f"label {highest} would make as many binary problems: task='ordinal' is for grades up to "
                f"{MOST_PROBLEMS}; use task='regression', or fewer grades"
            )
        return cls(highest)

    def targets(self, y: FloatArray) -> list[FloatArray]:
        return [(y < c).astype(np.float64) for c in range(1, self.n_problems + 1)]

    def combine(self, problems: list[Ensemble]) -> Ensemble:
        return ordinal.combine(problems)

    def split(self, model: Ensemble) -> list[Ensemble]:
        return ordinal.split(model)

    def extend(self, start: Ensemble, boosted: Ensemble) -> Ensemble:
        return ordinal.extend(start, boosted)

    def begin(self, start: Ensemble) -> Ensemble:
        return start.replace(metadata={ordinal.NOTE: start.metadata[ordinal.NOTE]})

    def covering(self, start: Ensemble | None) -> Ordinal:
        """More grades in the model than in the data are fine, fewer are not."""
        if start is None:
            return self
        n_known = ordinal.n_problems(start)
        if n_known < self.n_problems:
            raise RankwoodError(
                f"the data has grade {self.n_problems}, the model to start from knows {n_known} at most"
            )
        return Ordinal(n_known)
