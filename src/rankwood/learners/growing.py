"""The ensemble while it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.learners.callbacks import Result
from rankwood.learners.tasks import Regression, Task
from rankwood.tree import Tree


@dataclass
class GrowingEnsemble:
    """The ensemble to start from; and the trees boosted so far, with the learning rate of and the measures after each
    round. A round is a tree for every problem of the task: one tree, but for task="ordinal".

    The weights are what the update rule made of the learning rates.
    """

    # LightGBM's reset_parameter tells these one by one, and changes the callbacks' `params`, which is enough here.
    boosters: ClassVar[tuple[Any, ...]] = ()

    start: Ensemble
    task: Task = field(default_factory=Regression)
    trees: list[Tree] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)
    history: list[list[Result]] = field(default_factory=list)

    @property
    def n_rounds(self) -> int:
        return len(self.history)

    def append(self, trees: list[Tree], weight: float, learning_rate: float, results: list[Result]) -> None:
        """One more round of trees, and the measures after it."""
        self.trees += trees
        self.weights += [weight] * len(trees)
        self.learning_rates.append(learning_rate)
        self.history.append(results)

    def check_rate(self, tree: int, learning_rate: float) -> None:
        """Refuse to go on from a checkpoint that was made with another learning rate for a tree."""
        if learning_rate != self.learning_rates[tree]:
            raise RankwoodError(
                f"the checkpoint was made with learning rate {self.learning_rates[tree]} for tree {tree}, "
                f"now it is {learning_rate}: delete it to start anew, or choose another file"
            )

    def boosted(self, n_rounds: int | None = None) -> Ensemble:
        """The boosted trees of the first `n_rounds` alone; of all unless told otherwise."""
        n_trees = None if n_rounds is None else n_rounds * self.task.n_problems
        return Ensemble.from_trees(
            self.trees[:n_trees],
            tree_weights=np.array(self.weights[:n_trees], dtype=np.float64),
            n_features=self.start.n_features,
            feature_names=self.start.feature_names,
        )

    def whole(self, n_rounds: int | None = None) -> Ensemble:
        """The starting ensemble and the boosted trees of the first `n_rounds`."""
        return self.task.extend(self.start, self.boosted(n_rounds))
