"""Splits that are no single threshold, as subtrees of thresholds that decide the same.

LightGBM's zero-as-missing sends a window around zero to one side, a set of categories is a union of intervals, an
equality a single point. Such a split cuts the line into pieces that go left or right in turn. Its node becomes a small
tree over the pieces, each with a copy of the subtree on its side. What the copies above have decided about a feature is
remembered, so a copy keeps only what can still be reached.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rankwood.errors import ModelError, one_line
from rankwood.formats.budget import UNLIMITED, Budget

# Copies of copies grow exponentially with depth in the worst case.
MAX_GROWTH = 64
MIN_ALLOWANCE = 20_000  # nodes that any tree may have, however small it was
STEPS_PER_NODE = 8  # nodes of copies that may be met, most of them decided already, for one that is kept

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


def unfold(
    tree: Columns,
    splits: Mapping[int, Pieces],
    name_of: Mapping[int, str] | None = None,
    budget: Budget = UNLIMITED,
) -> Columns:
    """The tree with the nodes in `splits` written as thresholds. Numbers nodes and leaves anew, in preorder.

    >>> tree = Columns([0], [0.0], [-1], [-2], [False], [1.0, 2.0])
    >>> new = unfold(tree, {0: Pieces([-1.0, 1.0], [False, True, False], True)})  # left just when -1 < x <= 1
    >>> new.threshold, new.leaf_value
    ([1.0, -1.0], [2.0, 1.0, 2.0])
    """
    new = Columns([], [], [], [], [], [])
    allowance = min(max(MIN_ALLOWANCE, MAX_GROWTH * len(tree.feature)), budget.unfolded)
    simple = _simplified(splits)
    watched = {tree.feature[node] for node in splits}  # other features decide the same in every copy
    domains: Domains = {}
    n_steps = 0
    # What is to be done, the next thing last: a node with its parent and place there, or a domain to be set on the way.
    pending: list[tuple[int, int, list[int]] | tuple[int, Domain]] = [(0 if tree.feature else -1, -1, new.left)]
    while pending:
        task = pending.pop()
        if len(task) == 2:
            domains[task[0]] = task[1]
            continue
        node, parent, place = task
        if node < 0:
            if parent >= 0:
                place[parent] = ~len(new.leaf_value)
            new.leaf_value.append(tree.leaf_value[~node])
            continue
        feature, number = tree.feature[node], len(new.feature)
        left, right = tree.left[node], tree.right[node]
        n_steps += 1
        if number >= allowance or n_steps > STEPS_PER_NODE * allowance:
            name = (name_of or {}).get(feature, str(feature))
            raise ModelError(
                f"the splits of feature {one_line(name)} on zero-as-missing or categories would need more than "
                f"{allowance:.0f} nodes as thresholds: train the model without them"
            )
        if feature not in watched:
            cut, missing = tree.threshold[node], tree.missing_left[node]
            pending += [(right, number, new.right), (left, number, new.left)]
        else:
            domain = domains.get(feature, ANY)
            split = simple.get(node)
            if split is None:
                decision = _decide((tree.threshold[node],), (True, False), tree.missing_left[node], domain)
            else:
                decision = _decide(split.cuts, split.left, split.missing_left, domain)
            if isinstance(decision, bool):  # by what was decided above
                pending.append((left if decision else right, parent, place))
                continue
            cut, missing = decision
            # The same node again on both sides, with less to decide; and then the domain is what it was.
            pending += [(feature, domain), (node, number, new.right), (feature, _above(domain, cut, not missing))]
            pending += [(node, number, new.left), (feature, _up_to(domain, cut, missing))]
        if parent >= 0:
            place[parent] = number
        new.feature.append(feature)
        new.threshold.append(cut)
        new.missing_left.append(missing)
        new.left.append(0)
        new.right.append(0)
    budget.take_unfolded(max(len(new.feature), n_steps // STEPS_PER_NODE))
    return new


def _simplified(splits: Mapping[int, Pieces]) -> dict[int, Pieces]:
    """The splits without pieces that hold no value, and with neighbours on the same side as one. Then every cut parts
    left from right, and needs a node. A split that many nodes share is looked at once."""
    known: dict[int, Pieces] = {}
    for split in splits.values():
        if id(split) not in known:
            known[id(split)] = _simplify(split)
    return {node: known[id(split)] for node, split in splits.items()}


def _simplify(split: Pieces) -> Pieces:
    cuts: list[float] = []
    left: list[Side] = []
    low: float | None = None
    for cut, side in zip((*split.cuts, math.inf), split.left, strict=True):
        if low is not None and low >= cut:  # holds no value
            continue
        if not left:
            left.append(side)
        elif left[-1] != side and low is not None:
            cuts.append(low)
            left.append(side)
        low = cut
    return Pieces(cuts, left, split.missing_left)


def _decide(
    cuts: Sequence[float], left: Sequence[Side], missing_left: Side, domain: Domain
) -> bool | tuple[float, bool]:
    """Which side all of the domain goes to; or a cut inside it, and whether missing values go below the cut."""
    low, high, can_miss = domain
    if low is not None and low >= high:  # missing values alone
        return missing_left
    first = 0 if low is None else bisect_right(cuts, low)
    n_cuts = bisect_left(cuts, high) - first
    if n_cuts == 0:
        if can_miss and missing_left != left[first]:
            return high, False  # missing values apart, everything else is looked at again
        return left[first]
    middle = n_cuts // 2
    return cuts[first + middle], can_miss and (middle > 0 or missing_left == left[first])


def _up_to(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return low, min(high, cut), can_miss and missing


def _above(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return cut if low is None else max(low, cut), high, can_miss and missing
