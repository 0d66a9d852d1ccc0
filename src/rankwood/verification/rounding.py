"""What a sum in float32 makes of a model's leaves, and how far it can lie from the sum in float64.

Libraries that give scores in float32 have mostly summed in it. Which way is told by the scores themselves: when at
least half of them are, bit for bit, the float32 sum of the leaves in some known order, all are held against that sum,
and no difference hides in the rounding. Otherwise the order is not known, and what any order can make is let pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.ensemble import Ensemble

UNIT = 2.0**-24  # the most that rounding to float32 changes a number, relative to it
SMALLEST = 2.0**-150  # the same, absolutely, of numbers too small for that
ENOUGH = 0.5  # of the scores tell the order
BLOCK_VALUES = 1 << 22

# Terms (rows x trees) and base, both in float32, to scores.
WAYS: tuple[Callable[[AnyArray, AnyArray], AnyArray], ...] = (
    lambda terms, base: np.cumsum(np.insert(terms, 0, base, axis=1), axis=1, dtype=np.float32)[:, -1],
    lambda terms, base: np.cumsum(np.insert(terms, 0, 0.0, axis=1), axis=1, dtype=np.float32)[:, -1] + base,
)


@dataclass(frozen=True, eq=False)
class SingleSums:
    """Of each row, float32 sums by `WAYS` and a sum in float64 that is rounded once; and a bound on any such sum's
    distance from the one in float64."""

    ways: tuple[FloatArray, ...]
    bound: FloatArray


def single_sums(model: Ensemble, X: AnyArray, scores: FloatArray, *, n_threads: int | None = None) -> SingleSums:
    """What sums in float32 of the leaves that rows reach would be; `scores` are those in float64."""
    ways: list[list[AnyArray]] = [[] for _ in WAYS]
    sizes: list[AnyArray] = []
    base = np.float32(model.base)
    with np.errstate(over="ignore", invalid="ignore"):
        for terms in _terms(model, X, n_threads):
            single = terms.astype(np.float32)
            for sums, way in zip(ways, WAYS, strict=True):
                sums.append(way(single, base))
            sizes.append(np.abs(terms).sum(axis=1) + abs(model.base))
        once = scores.astype(np.float32).astype(np.float64)
        # n terms and a base need n additions. A term may have been rounded twice before: as a value, times a weight.
        n_roundings = model.n_trees + 2
        relative = n_roundings * UNIT / (1.0 - n_roundings * UNIT) if n_roundings * UNIT < 1.0 else np.inf
        bound = relative * np.concatenate([np.zeros(0), *sizes]) + n_roundings * SMALLEST
    empty = np.zeros(0, dtype=np.float32)
    return SingleSums((*(np.concatenate([empty, *sums]).astype(np.float64) for sums in ways), once), bound)


def way_of(sums: list[SingleSums], scores: list[FloatArray]) -> int | None:
    """The way that made these scores; None when none of them is known to have."""
    n_rows = sum(map(len, scores))
    n_equal = [
        sum(int(np.count_nonzero(part.ways[way] == given)) for part, given in zip(sums, scores, strict=True))
        for way in range(len(WAYS) + 1)
    ]
    best = int(np.argmax(n_equal))
    return best if n_rows and n_equal[best] >= ENOUGH * n_rows else None


def _terms(model: Ensemble, X: AnyArray, n_threads: int | None) -> Iterator[AnyArray]:
    """What each tree adds to the score of each row, in blocks of rows."""
    values = np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value
    step = max(1, BLOCK_VALUES // max(1, model.n_trees))
    for first in range(0, len(X), step):
        yield values[model.leaf_offsets[:-1] + model.leaves(X[first : first + step], n_threads=n_threads)]
