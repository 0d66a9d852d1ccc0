"""What happened in every iteration of boosting, and the weights of trees that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Step(NamedTuple):
    """One iteration. Trees are known by the iteration that grew them, from 0.

    iteration    its number
    k            trees to be dropped, as the strategy has it: before it is rounded and kept below half of the trees
    dropped      trees that were left out of the scores while the new tree was grown
    removed      whether they were then removed for good
    weight       of the new tree
    factor       what the weights of the dropped trees were multiplied by, unless they were removed
    candidate    measure of the model without the dropped trees, where removal was judged by it
    value        measure of the model after the iteration, on the data that removal is judged on; None without any
    best         the best value so far, this one included
    improved     whether it is this one
    n_trees      live trees after the iteration
    """

    iteration: int
    k: float = 0.0
    dropped: tuple[int, ...] = ()
    removed: bool = False
    weight: float = 1.0
    factor: float = 1.0
    candidate: float | None = None
    value: float | None = None
    best: float | None = None
    improved: bool = False
    n_trees: int = 0


Live = dict[int, float]  # weight of every live tree by its number, the oldest first


def apply(step: Step, live: Live) -> None:
    """Change the live trees as the step did.

    >>> live = {0: 1.0, 1: 1.0}
    >>> apply(Step(2, dropped=(0,), weight=0.5, factor=0.5), live)
    >>> live
    {0: 0.5, 1: 1.0, 2: 0.5}
    >>> apply(Step(3, dropped=(1,), removed=True), live)
    >>> live
    {0: 0.5, 2: 0.5, 3: 1.0}
    """
    for tree in step.dropped:
        if step.removed:
            del live[tree]
        else:
            live[tree] *= step.factor
    live[step.iteration] = step.weight


def live_after(steps: Iterable[Step]) -> Live:
    """The live trees and their weights after some steps, bit for bit what they were in training."""
    live: Live = {}
    for step in steps:
        apply(step, live)
    return live
