"""Constraints as parameters of learners say them, and what features cost while trees grow."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.model.constraints import Constraints


def resolve(
    monotone: Sequence[int] | Mapping[Any, int] | None,
    groups: Sequence[Sequence[int | str]] | None,
    costs: Sequence[float] | Mapping[Any, float] | None,
    max_features: int | None,
    n_features: int,
    names: Sequence[str] | None,
) -> Constraints:
    """What the parameters of a learner mean for data with these features.

    Parameters
    ----------
    monotone : sequence, mapping or None
        The parameter `monotone_constraints`.
    groups : sequence of sequences, or None
        `interaction_constraints`. A feature of no group becomes a group of its own.
    costs : sequence, mapping or None
        `feature_costs`.
    max_features : int or None
        `max_features_used`.
    n_features : int
        Features of the data.
    names : sequence of str, or None
        Their names, if they have any.

    Examples
    --------
    >>> resolve({"age": -1}, [["bm25", "age"]], None, None, 3, ["bm25", "age", "pagerank"])
    Constraints(monotone=((1, -1),), groups=((0, 1), (2,)), max_features=None, costs=())
    """
    known = _Features(n_features, names)
    directions = known.entries(monotone, "monotone_constraints")
    for feature, direction in directions.items():
        if direction not in (-1, 0, 1):
            raise RankwoodError(f"monotone_constraints are 1, -1 or 0, got {direction} for feature {feature}")
    prices = known.entries(costs, "feature_costs")
    for feature, cost in prices.items():
        if not 0.0 <= cost < math.inf:
            raise RankwoodError(f"feature_costs must be numbers of at least 0, got {cost} for feature {feature}")
    if max_features is not None and max_features < 1:
        raise RankwoodError(f"max_features_used must be at least 1, or None for no limit, got {max_features}")
    sets: list[tuple[int, ...]] = []
    if groups is not None:
        sets = [tuple(sorted({known.number(one, "interaction_constraints") for one in group})) for group in groups]
        listed = {feature for group in sets for feature in group}
        sets += [(feature,) for feature in range(n_features) if feature not in listed]
    return Constraints(
        tuple(sorted((feature, int(direction)) for feature, direction in directions.items() if direction)),
        tuple(dict.fromkeys(sets)),
        max_features,
        tuple(sorted((feature, float(cost)) for feature, cost in prices.items() if cost)),
    )


def numbers_of(given: Sequence[int | str], n_features: int, names: Sequence[str] | None, parameter: str) -> list[int]:
    """Numbers of features that a parameter gives by name or number, in rising order.

    Examples
    --------
    >>> numbers_of(["b", 0], 2, ["a", "b"], "categorical_features")
    [0, 1]
    """
    known = _Features(n_features, names)
    return sorted({known.number(one, parameter) for one in given})


@dataclass(frozen=True)
class _Features:
    """The features of the data, by name or number."""

    n_features: int
    names: Sequence[str] | None

    def number(self, given: Any, parameter: str) -> int:
        """Number of a feature that is given by name or number."""
        if isinstance(given, str):
            if self.names is not None and given in self.names:
                return list(self.names).index(given)
            if not given.isdigit():
                near = difflib.get_close_matches(given, self.names or (), n=1)
                hint = (
                    f" (did you mean {near[0]!r}?)" if near else "" if self.names else ", whose features have no names"
                )
                raise RankwoodError(f"{parameter} names the feature {given!r}, which the data does not have{hint}")
        number = int(given)
        if not 0 <= number < self.n_features:
            raise RankwoodError(
                f"{parameter} has feature {number}: the data has features 0 to {self.n_features - 1} (feature 0 here "
                "is feature 1 of SVMlight text)"
            )
        return number

    def entries(self, given: Sequence[Any] | Mapping[Any, Any] | None, parameter: str) -> dict[int, Any]:
        """What is given for each feature, by its number."""
        if given is None:
            return {}
        if isinstance(given, Mapping):
            return {self.number(feature, parameter): entry for feature, entry in given.items()}
        if len(given) != self.n_features:
            raise RankwoodError(
                f"{parameter} has {len(given)} entries and the data {self.n_features} features: give one for each "
                "feature, or a dict by name or number"
            )
        return dict(enumerate(given))


class Prices:
    """What features cost while one tree grows: nothing those that are in use, too much those beyond the budget.

    Parameters
    ----------
    constraints : Constraints
        Costs and the most features that may be used.
    used : array of bool
        Features that trees use already; those that the tree begins to use are marked in it.

    Examples
    --------
    >>> prices = Prices(Constraints(max_features=2, costs=((1, 0.5),)), np.array([True, False, False]))
    >>> prices.now().tolist(), prices.buy(1), prices.now().tolist()
    ([0.0, 0.5, 0.0], True, [0.0, 0.0, inf])
    """

    def __init__(self, constraints: Constraints, used: NDArray[np.bool_]) -> None:
        self._costs, self._budget, self.used = np.zeros(len(used)), constraints.max_features, used
        for feature, cost in constraints.costs:
            self._costs[feature] = cost

    def now(self) -> FloatArray:
        """Cost of every feature; infinite for one that may not be used."""
        costs = np.inf if self._is_spent else self._costs
        return np.where(self.used, 0.0, costs)

    @property
    def may_change(self) -> bool:
        """Whether the next use of a feature may change what others cost, or it does."""
        return not self._is_spent and (self._budget is not None or bool(self._costs[~self.used].any()))

    def buy(self, feature: int) -> bool:
        """A split uses a feature: whether costs change by it."""
        if self.used[feature]:
            return False
        self.used[feature] = True
        return bool(self._costs[feature] > 0.0) or self._is_spent

    @property
    def _is_spent(self) -> bool:
        return self._budget is not None and int(np.count_nonzero(self.used)) >= self._budget
