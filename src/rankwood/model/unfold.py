"""Splits on sets written as single thresholds, for tools that know nothing else.

A split on a set cuts the line into pieces that go left and right in turn:

::

    thresholds -1, 1        ------]--------]------>  x           x <= 1 ?
    left: A   right: B         A  -1   B   1   A              x <= -1 ?   A
                                                              A      B

Its node becomes a small tree over the pieces, and each piece gets a copy of the subtree on its side. The nodes above
tell which values of a feature can come to a copy, so a copy keeps only what can still be reached.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankwood.errors import ModelError, one_line
from rankwood.model.trees import COLUMNS, NEEDED, SETS, Tree, Trees, sets_of

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

# In the worst case copies of copies grow exponentially with depth, so a tree may grow by this factor at most.
MAX_GROWTH = 64
MIN_ALLOWANCE = 20_000  # a tree of any size may unfold to that many nodes
STEPS_PER_NODE = 8  # nodes looked at per node kept: most nodes of a copy are decided already

# The values of a feature that can come to a node: above `low` (None: no lower end, so -infinity is among them), up to
# `high` included; and whether missing values can.
Domain: TypeAlias = tuple[float | None, float, bool]
ANY: Domain = (None, math.inf, True)


def without_sets(model: Ensemble, keep: Any = None) -> Ensemble:
    """The model with the same scores, bit for bit, whose splits on sets are single thresholds.

    Nodes and leaves of trees that change are numbered anew, in preorder. Gains and counts of nodes would mean nothing
    any more and are dropped; the copies of a leaf share its cover.

    Parameters
    ----------
    model : Ensemble
        The model.
    keep : array of bool, optional
        Inner nodes that may stay splits on sets.

    Raises
    ------
    ModelError
        A tree would grow too large.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, [-1.0, 1.0], 1.0, 2.0)])  # right just when -1 < x <= 1
    >>> plain = without_sets(model)
    >>> plain.threshold, plain.leaf_value
    (array([ 1., -1.]), array([1., 2., 1.]))
    """
    trees = model.trees
    kept = np.zeros(trees.n_nodes, dtype=bool) if keep is None else np.asarray(keep)
    wanted = trees.set_nodes[~kept[trees.set_nodes]]
    if not len(wanted):
        return model
    changing = set(trees.tree_of_node[wanted].tolist())
    names = dict(enumerate(model.feature_names or ()))
    new = Trees.from_trees(
        [
            unfold(trees.tree(number), kept[trees.nodes_of(number)], names)
            if number in changing
            else trees.tree(number)
            for number in range(trees.n_trees)
        ]
    )
    arrays = {name: getattr(new, name) for name in (*COLUMNS, *SETS, "node_offsets")}
    return model.replace(**arrays, exit=model.exit)


def unfold(tree: Tree, keep: Any, name_of: Mapping[int, str]) -> Tree:
    """A tree whose splits on sets, but for nodes in the mask `keep`, are thresholds; `name_of` is for messages."""
    whole = Trees.from_trees([tree])
    n_nodes = whole.n_nodes
    features, thresholds, lefts, rights, missing_lefts = (
        column.tolist() for column in (whole.feature, whole.threshold, whole.left, whole.right, whole.missing_left)
    )
    cuts = [whole.thresholds_of(node).tolist() for node in range(n_nodes)]
    new: dict[str, list[Any]] = {name: [] for name in NEEDED}
    feature, threshold, left, right, missing_left, leaves = new.values()  # leaves: which one each is a copy of
    further: list[list[float]] = []
    allowance = max(MIN_ALLOWANCE, MAX_GROWTH * n_nodes)
    stays = [bool(keep[node]) and len(cuts[node]) > 1 for node in range(n_nodes)]
    # All other features decide the same in every copy.
    watched = {features[node] for node in range(n_nodes) if len(cuts[node]) > 1 and not stays[node]}
    domains: dict[int, Domain] = {}  # of watched features, at the node that is looked at; ANY unless set
    n_steps = 0
    # A stack of tasks: a node with its new parent and the column that links to it, or a domain to be set before others.
    pending: list[tuple[int, int, list[int]] | tuple[int, Domain]] = [(0 if n_nodes else -1, -1, left)]
    while pending:
        task = pending.pop()
        if len(task) == 2:
            domains[task[0]] = task[1]
            continue
        node, parent, place = task
        if node < 0:
            if parent >= 0:
                place[parent] = ~len(leaves)
            leaves.append(~node)
            continue
        column, number = features[node], len(feature)
        n_steps += 1
        if number >= allowance or n_steps > STEPS_PER_NODE * allowance:
            raise ModelError(
                f"the splits of feature {one_line(name_of.get(column, str(column)))} on sets (categories, or zero as "
                f"missing) would need more than {allowance} nodes of one tree as thresholds: choose a format that "
                "holds sets, or train the model without them"
            )
        more: list[float] = []
        if column not in watched or stays[node]:
            cut, missing, more = thresholds[node], missing_lefts[node], cuts[node][1:]
            pending += [(rights[node], number, right), (lefts[node], number, left)]
        else:
            domain = domains.get(column, ANY)
            decision = _decide(cuts[node], missing_lefts[node], domain)
            if isinstance(decision, bool):  # nodes above have decided it
                pending.append((lefts[node] if decision else rights[node], parent, place))
                continue
            cut, missing = decision
            # The same node again on both sides of the cut, with less to decide; after them the domain is as it was.
            pending += [(column, domain), (node, number, right), (column, _above(domain, cut, not missing))]
            pending += [(node, number, left), (column, _up_to(domain, cut, missing))]
        if parent >= 0:
            place[parent] = number
        feature.append(column)
        threshold.append(cut)
        missing_left.append(missing)
        further.append(more)
        left.append(0)
        right.append(0)
    copied = np.array(leaves)
    covers = None
    if tree.leaf_cover is not None:
        covers = (tree.leaf_cover / np.maximum(1, np.bincount(copied, minlength=n_nodes + 1)))[copied]
    return Tree(**(new | {"leaf_value": tree.leaf_value[copied]} | sets_of(further)), leaf_cover=covers)


def _decide(cuts: list[float], missing_left: bool, domain: Domain) -> bool | tuple[float, bool]:
    """Side that the whole domain goes to; or a cut inside the domain, and whether missing values go below that cut."""
    low, high, can_miss = domain
    if low is not None and low >= high:  # only missing values come here
        return missing_left
    first = 0 if low is None else bisect_right(cuts, low)
    n_cuts = bisect_left(cuts, high) - first
    goes_left = first % 2 == 0
    if n_cuts == 0:
        if can_miss and missing_left != goes_left:
            return high, False  # parts missing values from all others
        return goes_left
    middle = n_cuts // 2
    return cuts[first + middle], can_miss and (middle > 0 or missing_left == goes_left)


def _up_to(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return low, min(high, cut), can_miss and missing


def _above(domain: Domain, cut: float, missing: bool) -> Domain:
    low, high, can_miss = domain
    return cut if low is None else max(low, cut), high, can_miss and missing
