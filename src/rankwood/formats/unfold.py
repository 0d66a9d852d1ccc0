"""Splits that are no single threshold, as subtrees of thresholds that decide the same.

LightGBM's zero-as-missing sends a window around zero to one side, a set of categories is a union of intervals, an
equality a single point. Such a split cuts the line into pieces that go left or right in turn. Its node becomes a small
tree over the pieces, each with a copy of the subtree on its side. What the copies above have decided about a feature is
remembered, so a copy keeps only what can still be reached.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankwood.errors import ModelError

# Copies of copies grow exponentially with depth in the worst case.
MAX_GROWTH = 64
MIN_ALLOWANCE = 20_000  # nodes that any tree may have, however small it was

Side = bool  # True: left


@dataclass(frozen=True)
class Pieces:
    """A split by pieces of the line: the first goes up to cuts[0], its end included, the last one has no end."""

    cuts: Sequence[float]  # ascending
    left: Sequence[Side]  # of each piece, one more than cuts
    missing_left: Side


@dataclass
class Columns:
    """Inner nodes and leaves of one tree as lists. Children as in `Ensemble`: c < 0 is leaf ~c."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    missing_left: list[bool]
    leaf_value: list[float]


@dataclass(frozen=True)
class Domain:
    """Values of a feature that can come to a node: above `low` (None: from -infinity on, itself included) and up to
    `high`, and missing or not."""

    low: float | None = None
    high: float = math.inf
    missing: bool = True

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.low >= self.high

    def up_to(self, cut: float, missing: bool) -> Domain:
        return Domain(self.low, min(self.high, cut), self.missing and missing)

    def above(self, cut: float, missing: bool) -> Domain:
        return Domain(cut if self.low is None else max(self.low, cut), self.high, self.missing and missing)


@dataclass(frozen=True)
class _Task:
    """What is still to be made: the old node `node`, for values in `domains`, as a child of the new node `parent`."""

    node: int
    domains: Mapping[int, Domain]
    parent: int
    is_left: bool


def point(value: float, below: float, missing_left: bool, equal_left: bool = True) -> Pieces:
    """The split x == value, where `below` is the threshold that x < value has (NaN: there is none below)."""
    if math.isnan(below):
        return Pieces([value], [equal_left, not equal_left], missing_left)
    return Pieces([below, value], [not equal_left, equal_left, not equal_left], missing_left)


def unfold(tree: Columns, splits: Mapping[int, Pieces], name_of: Mapping[int, str] | None = None) -> Columns:
    """The tree with the nodes in `splits` written as thresholds. Numbers nodes and leaves anew, in preorder.

    >>> tree = Columns([0], [0.0], [-1], [-2], [False], [1.0, 2.0])
    >>> new = unfold(tree, {0: Pieces([-1.0, 1.0], [False, True, False], True)})  # left just when -1 < x <= 1
    >>> new.threshold, new.leaf_value
    ([-1.0, 1.0], [2.0, 1.0, 2.0])
    """
    new = Columns([], [], [], [], [], [])
    allowance = max(MIN_ALLOWANCE, MAX_GROWTH * len(tree.feature))
    pending = [_Task(0 if tree.feature else -1, {}, -1, True)]
    while pending:
        task = pending.pop()
        node, domains = task.node, task.domains
        if node < 0:
            _link(new, task, ~len(new.leaf_value))
            new.leaf_value.append(tree.leaf_value[~node])
            continue
        feature = tree.feature[node]
        domain = domains.get(feature, Domain())
        split = splits.get(node)
        if split is None:
            split = Pieces([tree.threshold[node]], [True, False], tree.missing_left[node])
        cuts, left = _reachable(split, domain)
        is_missing_apart = bool(left) and domain.missing and split.missing_left not in left
        if not is_missing_apart and len(left) <= 1:  # decided already
            side = left[0] if left else split.missing_left
            child = tree.left[node] if side else tree.right[node]
            pending.append(_Task(child, domains, task.parent, task.is_left))
            continue
        if len(new.feature) >= allowance:
            name = (name_of or {}).get(feature, str(feature))
            raise ModelError(
                f"the splits of feature {name} on zero-as-missing or categories would need more than "
                f"{allowance} nodes as thresholds: train the model without them"
            )
        if is_missing_apart:  # everything but missing values goes on to be looked at again
            cut, missing = domain.high, False
        else:
            middle = len(cuts) // 2
            cut = cuts[middle]
            missing = domain.missing and split.missing_left in left[: middle + 1]
        number = len(new.feature)
        _link(new, task, number)
        new.feature.append(feature)
        new.threshold.append(cut)
        new.missing_left.append(missing)
        new.left.append(0)
        new.right.append(0)
        # The same old node again, with less to decide.
        pending.append(_Task(node, {**domains, feature: domain.above(cut, not missing)}, number, False))
        pending.append(_Task(node, {**domains, feature: domain.up_to(cut, missing)}, number, True))
    return new


def _reachable(split: Pieces, domain: Domain) -> tuple[list[float], list[Side]]:
    """The cuts and sides that matter inside the domain; neighbours on the same side become one piece."""
    cuts: list[float] = []
    left: list[Side] = []
    if domain.is_empty:
        return cuts, left
    low = domain.low
    for cut, side in zip([*split.cuts, math.inf], split.left, strict=True):
        high = min(cut, domain.high)
        if low is not None and low >= high:
            continue
        if not left:
            left.append(side)
        elif left[-1] != side and low is not None:
            cuts.append(low)
            left.append(side)
        low = high
    return cuts, left


def _link(new: Columns, task: _Task, number: int) -> None:
    if task.parent >= 0:
        (new.left if task.is_left else new.right)[task.parent] = number
