"""What is worth its cost."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(costs: Sequence[float], worths: Sequence[float]) -> list[int]:
    """Places of those that no other is both as cheap and as good as, the cheapest first.

    >>> pareto_front([3.0, 1.0, 2.0, 2.5], [0.9, 0.5, 0.7, 0.6])
    [1, 2, 0]
    """
    front: list[int] = []
    for place in sorted(range(len(costs)), key=lambda i: (costs[i], -worths[i])):
        if not front or worths[place] > worths[front[-1]]:
            front.append(place)
    return front
