"""What a search may try: learners, the shape and number of their trees, and how fast they learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from optuna.trial import Trial

LEARNERS = ("lambdamart", "xdart")
SHAPES = ("plain", "shallow", "balanced")  # of trees: as they come; Asadi & Lin's lambda; their alpha

Range = tuple[float, float]


@dataclass(frozen=True)
class SearchSpace:
    """Ranges of what is searched, ends included. Numbers of trees and leaves and learning rates are drawn by ratio.

    learners               "lambdamart", "xdart" or both
    n_trees                trees at most; training stops early after `patience` trees that did not help
    learning_rate          of LambdaMART; X-DART, which drops trees, needs a larger one: `xdart_learning_rate`
    depth_relaxation       of trees that are grown shallow; `balance` of those that are pruned while boosting
                           (Asadi & Lin 2013). A trial does one of the two, or neither

    >>> SearchSpace(n_trees=(50, 200)).defaults()[0]["n_trees"]
    200
    """

    learners: tuple[str, ...] = LEARNERS
    n_trees: Range = (50, 1000)
    n_leaves: Range = (8, 128)
    learning_rate: Range = (0.03, 0.3)
    xdart_learning_rate: Range = (0.1, 1.0)
    min_docs_per_leaf: Range = (5, 200)
    depth_relaxation: Range = (0.2, 0.9)
    balance: Range = (0.05, 0.5)
    patience: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(dict.fromkeys(self.learners)))
        unknown = [name for name in self.learners if name not in LEARNERS]
        if unknown or not self.learners:
            raise RankwoodError(f"learners to search are {' and '.join(LEARNERS)}, got {list(self.learners)}")
        for name in ("n_trees", "n_leaves", "min_docs_per_leaf", "learning_rate", "xdart_learning_rate",
                     "depth_relaxation", "balance"):  # fmt: skip
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise RankwoodError(f"{name} must be a range (lowest, highest) of numbers above 0, got {(low, high)}")

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """The parameters of a trial."""
        learner = trial.suggest_categorical("learner", list(self.learners))
        shape = trial.suggest_categorical("shape", list(SHAPES))
        found: dict[str, Any] = {"learner": learner, "shape": shape}
        for name in ("n_trees", "n_leaves", "min_docs_per_leaf"):
            low, high = getattr(self, name)
            found[name] = trial.suggest_int(name, int(low), int(high), log=True)
        rate = "learning_rate" if learner == "lambdamart" else "xdart_learning_rate"
        found[rate] = trial.suggest_float(rate, *getattr(self, rate), log=True)
        if shape != "plain":
            name = "depth_relaxation" if shape == "shallow" else "balance"
            found[name] = trial.suggest_float(name, *getattr(self, name))
        return found

    def defaults(self) -> list[dict[str, Any]]:
        """Tried first: the defaults of every learner, as far as they lie within the ranges."""
        from rankwood.learners.dart import XDART
        from rankwood.learners.presets import LambdaMART

        found = []
        for learner in self.learners:
            ranker = LambdaMART() if learner == "lambdamart" else XDART()
            rate = "learning_rate" if learner == "lambdamart" else "xdart_learning_rate"
            parameters: dict[str, Any] = {"learner": learner, "shape": "plain"}
            for name in ("n_trees", "n_leaves", "min_docs_per_leaf"):
                parameters[name] = int(_within(getattr(ranker, name), getattr(self, name)))
            parameters[rate] = _within(ranker.learning_rate, getattr(self, rate))
            found.append(parameters)
        return found

    def ranker(self, parameters: Mapping[str, Any], **fixed: Any) -> Any:
        """The learner that the parameters of a trial mean.

        >>> SearchSpace().ranker(SearchSpace().defaults()[0]).n_leaves
        64
        """
        from rankwood.learners.dart import XDART
        from rankwood.learners.presets import LambdaMART

        given = {name: value for name, value in parameters.items() if name not in ("learner", "shape")}
        learner = LambdaMART if parameters["learner"] == "lambdamart" else XDART
        if learner is XDART:
            given["learning_rate"] = given.pop("xdart_learning_rate")
        return learner(**given, early_stopping_rounds=self.patience, **fixed)


def _within(value: float, limits: Range) -> float:
    return min(max(value, limits[0]), limits[1])
