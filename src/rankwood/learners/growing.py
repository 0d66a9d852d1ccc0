"""The ensemble while it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result
from rankwood.learners.steps import Live, Step, apply, live_after
from rankwood.learners.tasks import Regression, Task
from rankwood.tree import Tree


@dataclass
class GrowingEnsemble:
    """The ensemble to start from; and all trees grown so far, with the step, the learning rate and the measures of each
    round. A round is a tree for every problem of the task: one tree, but for task="ordinal".

    Trees that were removed again stay here (they are small, unlike what training keeps of live ones), so that the model
    after any round can be had: the steps say which trees were live then, and with what weights.
    """

    # LightGBM's reset_parameter tells these one by one, and changes the callbacks' `params`, which is enough here.
    boosters: ClassVar[tuple[Any, ...]] = ()

    start: Ensemble
    task: Task = field(default_factory=Regression)
    trees: list[Tree] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    history: list[list[Result]] = field(default_factory=list)
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = live_after(self.steps)

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    @property
    def last_step(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def append(self, trees: list[Tree], step: Step, learning_rate: float, results: list[Result]) -> None:
        """One more round of trees, and the measures after it."""
        self.trees += trees
        self.steps.append(step)
        apply(step, self.live)
        self.learning_rates.append(learning_rate)
        self.history.append(results)

    def check_rate(self, tree: int, learning_rate: float) -> None:
        """Refuse to go on from a checkpoint that was made with another learning rate for a tree."""
        if learning_rate != self.learning_rates[tree]:
            raise RankwoodError(
                f"the checkpoint was made with learning rate {self.learning_rates[tree]} for tree {tree}, "
                f"now it is {learning_rate}: delete it to start anew, or choose another file"
            )

    def trees_of(self, number: int) -> list[Tree]:
        """The trees of a round."""
        per_round = self.task.n_problems
        return self.trees[number * per_round : (number + 1) * per_round]

    def boosted(self, n_rounds: int | None = None) -> Ensemble:
        """The trees that were live after the first `n_rounds` alone; after all unless told otherwise."""
        return self._ensemble(self.live if n_rounds is None else live_after(self.steps[:n_rounds]))

    def whole(self, n_rounds: int | None = None) -> Ensemble:
        """The starting ensemble and the trees that were live after the first `n_rounds`."""
        return self.task.extend(self.start, self.boosted(n_rounds))

    def everything(self) -> Ensemble:
        """All trees ever grown; those that were removed have weight 0."""
        return self._ensemble({number: self.live.get(number, 0.0) for number in range(self.n_rounds)})

    def first_with(self, n_trees: int) -> int | None:
        """The first round after which so many rounds' trees were live; None when there was none."""
        return next((step.iteration for step in self.steps if step.n_trees == n_trees), None)

    def _ensemble(self, live: Live) -> Ensemble:
        weights = [self.task.sign * weight for weight in live.values()]
        return Ensemble.from_trees(
            [tree for number in live for tree in self.trees_of(number)],
            tree_weights=np.repeat(np.array(weights, dtype=np.float64), self.task.n_problems),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )
