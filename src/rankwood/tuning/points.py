"""Models that a search found, as points: what they are worth, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from rankwood import pareto


@dataclass(frozen=True)
class Point:
    """One model of a search.

    trial, parameters    the training that it comes from
    rate, variant        share of the trees that CLEaVER took out, and how the rest was re-weighed; 0 and "whole": none
    valid, test          the measure on validation data; on test data, None when not measured
    us_per_doc           microseconds per document, as measured
    """

    trial: int
    parameters: Mapping[str, Any]
    rate: float
    variant: str
    n_trees: int
    n_nodes: int
    valid: float
    us_per_doc: float
    test: float | None = None

    @property
    def name(self) -> str:
        """Of its file, and in tables; other rates, other names.

        >>> [Point(3, {}, rate, "refit", 1, 1, 0.5, 1.0).name for rate in (0.05, 0.5, 0.504)]
        ['trial-003-05', 'trial-003-50', 'trial-003-50.4']
        """
        if not self.rate:
            return f"trial-{self.trial:03d}"
        whole, dot, rest = self.percent.partition(".")
        return f"trial-{self.trial:03d}-{whole:0>2}{dot}{rest}"

    @property
    def percent(self) -> str:
        """The rate in percent with all its digits, and no more: 7 for 0.07, which floats would make
        7.000000000000001."""
        return f"{(100 * Decimal(repr(float(self.rate)))).normalize():f}"

    def with_(self, **changes: Any) -> Point:
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "parameters": dict(self.parameters)}


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in measure and time at once, the fastest first.

    >>> def point(valid, us):
    ...     return Point(0, {}, 0.0, "whole", 1, 1, valid, us)
    >>> [p.us_per_doc for p in pareto_front([point(0.5, 3.0), point(0.4, 1.0), point(0.4, 2.0), point(0.6, 3.0)])]
    [1.0, 3.0]
    """
    places = pareto.pareto_front([one.us_per_doc for one in points], [one.valid for one in points])
    return [points[place] for place in places]


def best_within(points: Sequence[Point], budget_us: float) -> Point:
    """The best point within the budget; the fastest of all when there is none."""
    within = [point for point in points if point.us_per_doc <= budget_us]
    if within:
        return max(within, key=lambda one: (one.valid, -one.us_per_doc))
    return min(points, key=lambda one: one.us_per_doc)
