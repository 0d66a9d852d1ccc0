"""What a search found: the best model within the budget, and the front of all that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankwood.ensemble import Ensemble
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import Comparison
from rankwood.tuning.points import Point


@dataclass(frozen=True)
class TuneResult:
    """`ensemble` is the best model within the budget, by validation data; see `within_budget`.

    within_budget  whether there is one; if not, `ensemble` is the fastest that was found
    chosen         its point
    front          points that no other beats in measure and time at once, the fastest first
    models         the models of the front, by name of the point
    points         every model that was tried; `trials` has them as dicts
    comparisons    on test data, query by query: the chosen model against the "default" LambdaMART (the first trial) and
                   against the "best" of all, whatever it costs, where these are other models. Empty without test data
    interrupted    whether Ctrl-C ended the search
    """

    ensemble: Ensemble
    within_budget: bool
    chosen: Point
    front: tuple[Point, ...]
    models: Mapping[str, Ensemble]
    points: tuple[Point, ...]
    comparisons: Mapping[str, Comparison]
    budget_us: float
    batch: int
    measure: str
    convention: Convention
    n_trials: int
    interrupted: bool

    @property
    def trials(self) -> list[dict[str, Any]]:
        names = {point.name for point in self.front}
        return [
            {
                **point.as_dict(),
                "on_front": point.name in names,
                "within_budget": point.us_per_doc <= self.budget_us,
                "chosen": self.within_budget and point.name == self.chosen.name,
            }
            for point in self.points
        ]

    def curves(self) -> dict[str, dict[str, list[Any]]]:
        """For plots: the columns `us_per_doc`, `valid`, `test` and `n_trees` of the front, and of all by learner."""
        groups = {"front": list(self.front)}
        for point in self.points:
            groups.setdefault(point.parameters["learner"], []).append(point)
        names = ("us_per_doc", "valid", "test", "n_trees")
        return {group: {name: [getattr(p, name) for p in points] for name in names} for group, points in groups.items()}

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it; without the models."""
        return {
            "within_budget": self.within_budget,
            "budget_us": self.budget_us,
            "batch": self.batch,
            "measure": self.measure,
            "convention": self.convention.name,
            "n_trials": self.n_trials,
            "interrupted": self.interrupted,
            "chosen": self.chosen.as_dict(),
            "front": [point.as_dict() for point in self.front],
            "comparisons": {name: one.as_dict() for name, one in self.comparisons.items()},
            "trials": self.trials,
        }

    def summary(self) -> str:
        """What came of it, in a sentence."""
        chosen = self.chosen
        trees = f"{chosen.n_trees:,} tree{'s' * (chosen.n_trees != 1)}"
        if not self.within_budget:
            return (
                f"no model scores a document within {self.budget_us:g} us: the fastest of {len(self.points):,} takes "
                f"{chosen.us_per_doc:.3g} us ({trees}, {self.measure} {chosen.valid:.4f} on "
                "validation data)"
            )
        return (
            f"{trees}, {chosen.us_per_doc:.3g} us per document (budget {self.budget_us:g}), "
            f"{self.measure} {chosen.valid:.4f} on validation data: the best of {len(self.points):,} models of "
            f"{self.n_trials:,} trial{'s' * (self.n_trials != 1)}"
        )

    def __repr__(self) -> str:
        return f"TuneResult({self.summary()})"
