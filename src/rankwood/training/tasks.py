"""What the labels are learnt as: themselves, or binary problems whose trees make one additive ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.group import ALONE, Group
from rankwood.model.ensemble import Ensemble

# The classification setting (Mohan et al. 2011, section 6). For c = 1..C, C being the highest grade, problem c learns
# T_c(x), the probability that a document is graded below c. The expected grade is the sum of 1 - T_c(x): linear in the
# trees, so one ensemble with base C and negated weights. The entry NOTE of its metadata says which problem each tree
# belongs to and what the bases of the problems were.


NOTE = "ordinal"


def combine(problems: Sequence[Ensemble]) -> Ensemble:
    """The ensemble whose score is the expected grade, from one model of P(grade < c) for each c = 1, 2, ...

    Examples
    --------
    >>> below_1 = Ensemble.from_trees([(0, 0.5, 0.9, 0.1)])  # P(grade < 1)
    >>> below_2 = Ensemble.from_trees([(0, 0.5, 1.0, 0.3)])
    >>> model = combine([below_1, below_2])
    >>> model.base, model.tree_weights.tolist(), model.score([[0.0], [1.0]]).round(3).tolist()
    (2.0, [-1.0, -1.0], [0.1, 1.6])
    """
    joined = problems[0].concat(*problems[1:])
    bases = [problem.base for problem in problems]
    owners = np.repeat(np.arange(1, len(problems) + 1), [problem.n_trees for problem in problems])
    return joined.replace(
        base=len(problems) - sum(bases),
        tree_weights=-joined.tree_weights,
        metadata={NOTE: {"bases": bases, "problem_of_tree": owners.tolist()}},
    )


def extend(start: Ensemble, boosted: Ensemble) -> Ensemble:
    """A model that `combine` or this function made, with rounds of trees added: one for every problem in turn."""
    bases, owners = _read_note(start)
    cycle = np.arange(boosted.n_trees) % len(bases) + 1
    note = {"bases": bases, "problem_of_tree": [*owners.tolist(), *cycle.tolist()]}
    return start.concat(boosted).with_metadata(**{NOTE: note})


def split(model: Ensemble) -> list[Ensemble]:
    """The models of P(grade < c), c = 1, 2, ..., of a combined model: the exact inverse of `combine` and `extend`."""
    bases, owners = _read_note(model)
    parts = [model.select(owners == c) for c in range(1, len(bases) + 1)]
    return [
        part.replace(base=base, tree_weights=-part.tree_weights, metadata={})
        for part, base in zip(parts, bases, strict=True)
    ]


def n_problems(model: Ensemble) -> int:
    """Number of binary problems of a combined model, which is its highest grade."""
    return len(_read_note(model)[0])


def without_grades(model: Ensemble) -> Ensemble:
    """The model without the note on binary problems: re-weighed or refitted trees no longer tell grades apart."""
    notes = model.metadata
    return model if notes.pop(NOTE, None) is None else model.replace(metadata=notes)


def grade_probabilities(model: Ensemble, X: Any, *, n_threads: int | None = None) -> FloatArray:
    """Probability of every grade for every row, by a model that was trained with task="ordinal".

    Parameters
    ----------
    model : Ensemble
        Of a ranker that was fitted with task="ordinal", with all its trees.
    X : matrix
        Features.
    n_threads : int, optional
        Threads; None uses every CPU.

    Returns
    -------
    array of float, shape (n_rows, C + 1)
        Column r is the probability of grade r = 0, 1, ..., C; every row sums to 1.

    Notes
    -----
    The model has T_c, the probability of a grade below c, for c = 1, ..., C. These ought to rise from 0 to 1 but are
    learnt apart, and boosted trees may overshoot. Rows where they do not rise are given the nearest values that do, in
    least squares: isotonic regression, then clipping to [0, 1]. The first keeps their sum, so the expected grade is
    the model's score unless something was clipped. P(grade = r) = T_{r+1} - T_r, where T_0 = 0 and T_{C+1} = 1, is then
    never negative.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.make_ranking(n_queries=30, docs_per_query=20, n_features=5)
    >>> model = rw.MART(n_trees=5, n_leaves=4, task="ordinal").fit(data).ensemble_
    >>> rw.grade_probabilities(model, data.X[:2]).sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    below = np.stack([problem.score(X, n_threads=n_threads) for problem in split(model)], axis=1)
    cumulative = nearest_distribution(below)
    n_rows = len(cumulative)
    return np.diff(cumulative, axis=1, prepend=np.zeros((n_rows, 1)), append=np.ones((n_rows, 1)))


def nearest_distribution(below: FloatArray) -> FloatArray:
    """For every row the nearest values, in least squares, that rise and lie in [0, 1].

    Isotonic regression by its min-max formula: entry c is the largest, over a <= c, of the smallest, over b >= c, of
    the mean of entries a..b.

    Examples
    --------
    >>> nearest_distribution(np.array([[0.2, 0.6, 0.4], [0.1, 0.5, 1.2]])).round(6).tolist()
    [[0.2, 0.5, 0.5], [0.1, 0.5, 1.0]]
    """
    rising: FloatArray = below.copy()
    wrong = np.flatnonzero((np.diff(below, axis=1) < 0.0).any(axis=1))
    if len(wrong):
        values = below[wrong]
        fitted = np.full_like(values, -np.inf)
        for a in range(values.shape[1]):
            means = np.cumsum(values[:, a:], axis=1) / np.arange(1, values.shape[1] - a + 1)
            smallest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
            np.maximum(fitted[:, a:], smallest, out=fitted[:, a:])
        rising[wrong] = np.maximum.accumulate(fitted, axis=1)  # rounding may have left a step down
    np.clip(rising, 0.0, 1.0, out=rising)
    return rising


def _read_note(model: Ensemble) -> tuple[list[float], NDArray[np.int64]]:
    """Bases of the problems, and the problem of every tree."""
    note = model.metadata.get(NOTE)
    if note is None:
        raise ModelError(
            "the model was not trained with task='ordinal', or was pruned since, so it has no binary problems to tell "
            "grades by: take one that has, or do without task='ordinal'"
        )
    owners = np.array(note["problem_of_tree"], dtype=np.int64)
    if len(owners) != model.n_trees:
        raise ModelError(
            f"the model has {model.n_trees} trees but was trained with {len(owners)}: trees were taken out or added, "
            "so it still ranks but no longer tells grades apart"
        )
    return note["bases"], owners


MOST_PROBLEMS = 100  # a larger label is hardly a grade, and each problem costs as much as a whole regression


class Task(Protocol):
    """What training asks of a task: its problems, and how their models make one."""

    @property
    def name(self) -> str:
        """Value of the parameter `task` of estimators."""

    @property
    def n_problems(self) -> int:
        """Number of targets that are learnt side by side, each by trees of its own."""

    @property
    def sign(self) -> float:
        """Factor of a problem's tree weights in the whole model."""

    def targets(self, y: FloatArray) -> list[FloatArray]:
        """The labels of every problem."""

    def combine(self, problems: list[Ensemble]) -> Ensemble:
        """The whole model, from the models of the problems."""

    def split(self, model: Ensemble) -> list[Ensemble]:
        """The models of the problems, from the whole model."""

    def extend(self, start: Ensemble, boosted: Ensemble) -> Ensemble:
        """A whole model with rounds of trees added: one for every problem in turn."""

    def begin(self, start: Ensemble) -> Ensemble:
        """A model to start from without its notes, but for those that the task needs."""

    def covering(self, start: Ensemble | None) -> Task:
        """The task with as many problems as a model to start from has; an error when it has too few."""


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
    """The classification setting: for c = 1..n_problems, whether the label is below c.

    Examples
    --------
    >>> [target.tolist() for target in Ordinal.of(np.array([0.0, 2.0, 1.0])).targets(np.array([0.0, 2.0, 1.0]))]
    [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """

    n_problems: int
    name: ClassVar[str] = "ordinal"
    sign: ClassVar[float] = -1.0

    @classmethod
    def of(cls, y: FloatArray, group: Group = ALONE) -> Ordinal:
        """The task of labels that are grades, 0 up to the largest of them; not all need to occur.

        Parameters
        ----------
        y : array of float
            Labels.
        group : Group
            Processes that have other labels of the same data.
        """
        wrong = np.flatnonzero(~(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y))))
        if len(wrong):
            raise DataError(
                f"label {y[wrong[0]]:g} of row {wrong[0]} is no grade: task='ordinal' needs whole numbers from 0 up; "
                "round or shift the labels, or use task='regression'"
            )
        highest = int(group.max(np.array([y.max(initial=1.0)]))[0])  # at least one problem, also when every label is 0
        if highest > MOST_PROBLEMS:
            raise DataError(
                f"label {highest} would make as many binary problems: task='ordinal' is for grades up to "
                f"{MOST_PROBLEMS}; use task='regression', or fewer grades"
            )
        return cls(highest)

    def targets(self, y: FloatArray) -> list[FloatArray]:
        return [(y < c).astype(np.float64) for c in range(1, self.n_problems + 1)]

    def combine(self, problems: list[Ensemble]) -> Ensemble:
        return combine(problems)

    def split(self, model: Ensemble) -> list[Ensemble]:
        return split(model)

    def extend(self, start: Ensemble, boosted: Ensemble) -> Ensemble:
        return extend(start, boosted)

    def begin(self, start: Ensemble) -> Ensemble:
        return start.replace(metadata={NOTE: start.metadata[NOTE]})

    def covering(self, start: Ensemble | None) -> Ordinal:
        """The task with the grades of a model to start from: at least those of the data."""
        if start is None:
            return self
        n_known = n_problems(start)
        if n_known < self.n_problems:
            raise RankwoodError(
                f"the data has grade {self.n_problems}, the model to start from knows {n_known} at most"
            )
        return Ordinal(n_known)


def check_one_target(task: Task, parameter: str) -> None:
    """Refuse a parameter of a learner that fits all trees to one target, where the task has several."""
    if task.name == "ordinal":
        raise RankwoodError(
            f"{parameter} fits all trees jointly to one target, and task='ordinal' has one for every grade: leave "
            "either out"
        )
