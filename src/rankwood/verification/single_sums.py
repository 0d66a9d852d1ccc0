"""Sums in float32: what they are, and how far they can lie from the sum in float64.

Libraries that give scores in float32 have mostly summed in it. The scores themselves tell in which order: when at least
a quarter of them is, bit for bit, the float32 sum of the leaves in some known order, all scores are compared with that
sum, and no difference can hide in the rounding. Otherwise the order is unknown, and a difference that some order can
make is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray
from rankwood.model.ensemble import Ensemble

UNIT = 2.0**-24  # largest relative change of a number that is rounded to float32
SMALLEST = 2.0**-150  # largest absolute change of a number that is too small for that
ENOUGH = 0.25  # share of the scores that tells the order: by chance so many are equal only if orders differ by 1e-7
BLOCK_VALUES = 1 << 22

# Orders of summing: from terms (rows x trees) and base, both in float32, to scores.
WAYS: tuple[Callable[[AnyArray, AnyArray], AnyArray], ...] = (
    lambda terms, base: np.cumsum(np.insert(terms, 0, base, axis=1), axis=1, dtype=np.float32)[:, -1],
    lambda terms, base: np.cumsum(np.insert(terms, 0, 0.0, axis=1), axis=1, dtype=np.float32)[:, -1] + base,
)


@dataclass(frozen=True, eq=False)
class SingleSums:
    """Scores of rows as summing in float32 would give them.

    Parameters
    ----------
    ways : tuple of array
        Scores by each of `WAYS`, then by summing in float64 and rounding once.
    bound : array
        Largest distance of a float32 sum, in any order, from the sum in float64.
    """

    ways: tuple[FloatArray, ...]
    bound: FloatArray


def single_sums(model: Ensemble, X: AnyArray, scores: FloatArray, *, n_threads: int | None = None) -> SingleSums:
    """Scores of the rows as sums in float32 would give them; `scores` are those in float64."""
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
        # n terms and a base take n additions. A term may be rounded twice before: as a leaf value and as a product.
        n_roundings = model.n_trees + 2
        relative = n_roundings * UNIT / (1.0 - n_roundings * UNIT) if n_roundings * UNIT < 1.0 else np.inf
        bound = relative * np.concatenate([np.zeros(0), *sizes]) + n_roundings * SMALLEST
    empty = np.zeros(0, dtype=np.float32)
    return SingleSums((*(np.concatenate([empty, *sums]).astype(np.float64) for sums in ways), once), bound)


def way_of(sums: list[SingleSums], scores: list[FloatArray]) -> int | None:
    """Index in `SingleSums.ways` of the way that gave these scores; None when no known way did."""
    n_rows = sum(map(len, scores))
    n_equal = [
        sum(int(np.count_nonzero(part.ways[way] == given)) for part, given in zip(sums, scores, strict=True))
        for way in range(len(WAYS) + 1)
    ]
    best = int(np.argmax(n_equal))
    return best if n_rows and n_equal[best] >= ENOUGH * n_rows else None


def _terms(model: Ensemble, X: AnyArray, n_threads: int | None) -> Iterator[AnyArray]:
    """Blocks of rows x trees: what each tree adds to the score of each row."""
    values = np.repeat(model.tree_weights, np.diff(model.leaf_offsets)) * model.leaf_value
    step = max(1, BLOCK_VALUES // max(1, model.n_trees))
    for first in range(0, len(X), step):
        yield values[model.leaf_offsets[:-1] + model.leaves(X[first : first + step], n_threads=n_threads)]
