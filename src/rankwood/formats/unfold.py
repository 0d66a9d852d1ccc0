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
from typing import TypeAlias

from rankwood.errors import ModelError

# Copies of copies grow exponentially with depth in the worst case.
MAX_GROWTH = 64
MIN_ALLOWANCE = 20_000  # nodes that any tree may have, however small it was

Side: TypeAlias = bool  # True: left


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


# Values of a feature that can come to a node: above the first number (None: from -infinity on, itself included) and up
# to the second; and whether missing ones can. By feature; what is not there is not restricted.
Domain: TypeAlias = tuple[float | None, float, bool]
Domains: TypeAlias = dict[int, Domain]
ANY: Domain = (None, math.inf, True)


def unfold(tree: Columns, splits: Mapping[int, Pieces], name_of: Mapping[int, str] | None = None) -> Columns:
    """The tree with the nodes in `splits` written as thresholds. Numbers nodes and leaves anew, in preorder.

    >>> tree = Columns([0], [0.0], [-1], [-2], [False], [1.0, 2.0])
    >>> new = unfold(tree, {0: Pieces([-1.0, 1.0], [False, True, False], True)})  # left just when -1 < x <= 1
    >>> new.threshold, new.leaf_value
    ([1.0, -1.0], [2.0, 1.0, 2.0])
    """
    new = Columns([], [], [], [], [], [])
    allowance = max(MIN_ALLOWANCE, MAX_GROWTH * len(tree.feature))
    watched = {tree.feature[node] for node in splits}  # other features decide the same in every copy
    pending: list[tuple[int, Domains, int, list[int]]] = [(0 if tree.feature else -1, {}, -1, new.left)]
    while pending:
        node, domains, parent, place = pending.pop()
        if node < 0:
            if parent >= 0:
                place[parent] = ~len(new.leaf_value)
            new.leaf_value.append(tree.leaf_value[~node])
            continue
        feature, split = tree.feature[node], splits.get(node)
        left, right = tree.left[node], tree.right[node]
        inside = outside = domains
        if feature not in watched:
            cut, missing = tree.threshold[node], tree.missing_left[node]
        else:
            domain = domains.get(feature, ANY)
            if split is None:
                split = Pieces((tree.threshold[node],), (True, False), tree.missing_left[node])
            decision = _decide(split, domain)
            if isinstance(decision, bool):  # by what was decided above
                pending.append((left if decision else right, domains, parent, place))
                continue
            cut, missing = decision
            left = right = node  # the same node again, with less to decide
            inside = {**domains, feature: _up_to(domain, cut, missing)}
            outside = {**domains, feature: _above(domain, cut, not missing)}
        number = len(new.feature)
        if number >= allowance:
            name = (name_of or {}).get(feature, str(feature))
            raise ModelError(
                f"the splits of feature {name} on zero-as-missing or categories would need more than "
                f"{allowance} nodes as thresholds: train the model without them"
            )
        if parent >= 0:
            place[parent] = number
        new.feature.append(feature)
        new.threshold.append(cut)
        new.missing_left.append(missing)
        new.left.append(0)
        new.right.append(0)
        pending.append((right, outside, number, new.right))
        pending.append((left, inside, number, new.left))
    return new


def _decide(split: Pieces, domain: Domain) -> bool | tuple[float, bool]:
    """Which side all of the domain goes to; or a cut inside it, and whether missing values go below the cut."""
    cuts, left = _reachable(split, domain)
    high, can_miss = domain[1:]
    if left and can_miss and split.missing_left not in left:
        return high, False  # missing values apart, everything else is looked at again
    if len(left) <= 1:
        return left[0] if left else split.missing_left
    middle = len(cuts) // 2
    return cuts[middle], can_miss and split.missing_left in left[: middle + 1]


def _up_to(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return low, min(high, cut), can_miss and missing


def _above(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return cut if low is None else max(low, cut), high, can_miss and missing


def _reachable(split: Pieces, domain: Domain) -> tuple[list[float], list[Side]]:
    """The cuts and sides that matter inside the domain; neighbours on the same side become one piece."""
    cuts: list[float] = []
    left: list[Side] = []
    low, end, _ = domain
    if low is not None and low >= end:
        return cuts, left
    for cut, side in zip((*split.cuts, math.inf), split.left, strict=True):
        high = min(cut, end)
        if low is not None and low >= high:
            continue
        if not left:
            left.append(side)
        elif left[-1] != side and low is not None:
            cuts.append(low)
            left.append(side)
        low = high
    return cuts, left
