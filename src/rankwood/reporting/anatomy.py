"""Shape of the trees of several models, in bins that they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.ensemble import Ensemble
from rankwood.reporting.facts import Anatomy, Bins
from rankwood.topology import Topology

MOST_BINS = 40
MOST_TREES = 500  # points that a figure of trees shows


def shared_bins(values: Sequence[AnyArray]) -> Bins:
    """Bins for whole numbers of all models: 40 at most.

    >>> shared_bins([np.array([3, 5]), np.array([4])]), shared_bins([np.array([1, 100])])
    (Bins(first=3, width=1), Bins(first=1, width=3))
    """
    filled = [array for array in values if len(array)]
    if not filled:
        return Bins(0, 1)
    low, high = min(int(array.min()) for array in filled), max(int(array.max()) for array in filled)
    return Bins(low, -(-(high - low + 1) // MOST_BINS))


def count_in(values: AnyArray, bins: Bins) -> list[int]:
    """How many values each bin has.

    >>> count_in(np.array([3, 5, 5]), Bins(3, 1))
    [1, 0, 2]
    """
    return [int(n) for n in np.bincount((values.astype(np.int64) - bins.first) // bins.width)]


def describe_anatomy(
    model: Ensemble, topology: Topology, columns: IndexArray, n_columns: int, depth_bins: Bins, leaf_bins: Bins
) -> Anatomy:
    """The anatomy of `model`; feature f of it is column `columns[f]` of the data."""
    shown = spread_out(model.n_trees, MOST_TREES)
    ranges = model.tree_weights * _value_ranges(model)
    gains = topology.gain_per_feature
    return Anatomy(
        depths=count_in(topology.depths, depth_bins),
        leaves=count_in(topology.leaves, leaf_bins),
        trees=(shown + 1).tolist(),
        weights=model.tree_weights[shown].tolist(),
        ranges=ranges[shown].tolist(),
        splits=_shares(topology.splits_per_feature, columns, n_columns).tolist(),
        gains=None if gains is None or not gains.sum() > 0 else _shares(gains, columns, n_columns).tolist(),
    )


def spread_out(n: int, most: int) -> IndexArray:
    """All of n positions, or `most` of them, evenly spread with the first and the last.

    >>> spread_out(3, 5).tolist(), spread_out(9, 5).tolist()
    ([0, 1, 2], [0, 2, 4, 6, 8])
    """
    if n <= most:
        return np.arange(n)
    return np.unique(np.rint(np.linspace(0, n - 1, most)).astype(np.int64))


def _value_ranges(model: Ensemble) -> FloatArray:
    """Largest minus smallest leaf value of every tree."""
    if model.n_trees == 0:
        return np.zeros(0)
    starts = model.leaf_offsets[:-1]
    ranges: FloatArray = np.maximum.reduceat(model.leaf_value, starts) - np.minimum.reduceat(model.leaf_value, starts)
    return ranges


def _shares(values: AnyArray, columns: IndexArray, n_columns: int) -> FloatArray:
    by_column = np.zeros(n_columns)
    np.add.at(by_column, columns, values)
    return by_column / (by_column.sum() or 1.0)
