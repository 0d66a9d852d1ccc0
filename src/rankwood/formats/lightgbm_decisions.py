"""How LightGBM decides, as thresholds.

It takes values within 1e-35 (as float32 has it) of zero for zero before anything else. A node says what counts as
missing: nothing (then a NaN is taken for 0), zero and NaN, or NaN; missing values go its default way. A category goes
left when it is in the node's set; a negative or missing one never is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwood.dtypes import AnyArray
from rankwood.errors import ModelError
from rankwood.formats.node_tables import Forest
from rankwood.formats.unfold import Pieces

ZERO = float(np.float32(1e-35))
BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))  # largest value that is negative to LightGBM
MISSING_NONE, MISSING_ZERO, MISSING_NAN = 0, 1, 2
MAX_CATEGORY = 1 << 24


def decide(
    forest: Forest, missing_type: AnyArray, default_left: AnyArray, categories: dict[int, AnyArray] | None = None
) -> None:
    """Give `forest`, which has LightGBM's thresholds, ours. `categories` has the set of every node that has one."""
    if (missing_type > MISSING_NAN).any():
        node = int(np.flatnonzero(missing_type > MISSING_NAN)[0])
        raise ModelError(f"node {node} has missing type {missing_type[node]}, which LightGBM does not have")
    threshold = forest.threshold
    zero_left = threshold >= 0.0
    near_zero = np.abs(threshold) <= ZERO
    side = np.where(missing_type == MISSING_ZERO, default_left, zero_left)  # where zero goes
    forest.threshold = np.where(near_zero, np.where(side, ZERO, BELOW_ZERO), threshold)
    forest.missing_left = np.where(missing_type == MISSING_NAN, default_left, side).astype(bool)
    categories = categories or {}
    for node in np.flatnonzero((side != zero_left) & ~near_zero).tolist():
        if node not in categories:
            forest.splits[node] = _zero_window(float(threshold[node]), bool(side[node]))
    known: dict[int, Pieces] = {}
    for node, members in categories.items():
        forest.threshold[node] = 0.0  # is the number of the set
        if id(members) not in known:  # nodes may share a set
            known[id(members)] = category_pieces(members)
        forest.splits[node] = known[id(members)]


def _zero_window(threshold: float, zero_left: bool) -> Pieces:
    if zero_left:  # a negative threshold: left up to it, and left again around zero
        return Pieces([threshold, BELOW_ZERO, ZERO], [True, False, True, False], True)
    return Pieces([BELOW_ZERO, ZERO, threshold], [True, False, True, False], False)


def category_pieces(members: AnyArray) -> Pieces:
    """Values whose whole part is in the set go left: 2.7 is category 2, and so is 0 what lies between -1 and 1.

    >>> category_pieces(np.array([0, 1, 5])).cuts
    [-1.0, 1.9999999999999998, 4.999999999999999, 5.999999999999999]
    """
    members = np.unique(np.asarray(members, dtype=np.int64))
    if len(members) == 0:
        return Pieces([], [False], False)
    ends = np.flatnonzero(np.diff(members) > 1)
    first = members[np.concatenate([[0], ends + 1])].astype(np.float64)
    last = members[np.concatenate([ends, [len(members) - 1]])].astype(np.float64)
    before = np.where(first == 0, -1.0, np.nextafter(first, -np.inf))
    cuts = np.stack([before, np.nextafter(last + 1.0, -np.inf)], axis=1).ravel()
    return Pieces(cuts.tolist(), [False, *[True, False] * len(first)], False)


def members_of_bitset(words: AnyArray) -> AnyArray:
    """Numbers of the bits that are set in 32-bit words, lowest first."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    members: AnyArray = np.flatnonzero(bits)
    return members


def real_names(names: Sequence[str]) -> list[str] | None:
    """The names of the features; None when they are those that LightGBM gives to features without."""
    given = list(names)
    return None if given == [f"Column_{number}" for number in range(len(given))] else given
