"""Binned data: what the histogram tree learner works on. Made once, used for many fits and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.by_query import ByQuery
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import DataError
from rankwood.threads import resolve_threads

MAX_BINS = 255


@dataclass(frozen=True)
class BinEdges:
    """Where the bins of every feature end. The edge after bin b is the threshold of the split `bin <= b`.

    `flat[offsets[f]:offsets[f + 1]]` are the edges of feature f, ascending; it has one bin more than edges.
    """

    flat: FloatArray
    offsets: IndexArray

    @classmethod
    def find(
        cls, X: FeatureMatrix, max_bins: int = MAX_BINS, *, n_threads: int | None = None, most: int = MAX_BINS
    ) -> BinEdges:
        """Quantile bins of every column; a column of at most `max_bins` distinct values has a bin for each.

        `most` is how many bins the caller can handle.
        """
        if not 2 <= max_bins <= most:
            raise DataError(f"max_bins must lie between 2 and {most}, got {max_bins}")
        edges = _native.find_bin_edges(X, max_bins, resolve_threads(n_threads))
        offsets = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
        flat = np.concatenate([np.zeros(0), *(np.array(feature, dtype=np.float64) for feature in edges)])
        return cls(flat, offsets)

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_values(self) -> NDArray[np.int32]:
        """Bins that hold values, per feature; a missing value has the bin after them."""
        return (np.diff(self.offsets) + 1).astype(np.int32)

    def threshold(self, feature: int, bin_number: int) -> float:
        """Threshold of the split `bin <= bin_number`; infinity after the last bin, where only missing values go on."""
        start, end = int(self.offsets[feature]), int(self.offsets[feature + 1])
        return float(self.flat[start + bin_number]) if start + bin_number < end else float("inf")


@dataclass(frozen=True)
class BinnedDataset(ByQuery):
    """A data set in bins, its rows query by query.

    bins         [group][row][16]: one byte per value; 16 features lie side by side, as the learner reads them
    data         the data set behind it
    rows         row of `data` for every row here; None when they are the same

    >>> import rankwood as rw
    >>> binned = BinnedDataset.make(rw.Dataset([[0.5], [2.0], [0.5]], [0, 1, 2], group=[3]))
    >>> binned.edges.flat, binned.bins[0, :, 0]
    (array([1.25]), array([0, 1, 0], dtype=uint8))
    """

    data: Dataset
    edges: BinEdges
    bins: NDArray[np.uint8]
    has_missing: NDArray[np.uint8]
    rows: IndexArray | None

    @classmethod
    def make(cls, data: Dataset, max_bins: int = MAX_BINS, *, n_threads: int | None = None) -> BinnedDataset:
        """Find the bins of `data` and put it into them."""
        return cls.encode(data, BinEdges.find(data.X, max_bins, n_threads=n_threads), n_threads=n_threads)

    @classmethod
    def encode(cls, data: Dataset, edges: BinEdges, *, n_threads: int | None = None) -> BinnedDataset:
        """Put `data` into given bins: validation data into those of the training data."""
        if data.n_features != edges.n_features:
            raise DataError(f"the bins are of {edges.n_features} features, the data has {data.n_features}")
        X = data.X if data.order is None else data.X[data.order]
        group = _native.BIN_GROUP
        bins = np.empty((-(-data.n_features // group), data.n_docs, group), dtype=np.uint8)
        has_missing = np.zeros(data.n_features, dtype=np.uint8)
        _native.encode_bins(X, edges.flat, edges.offsets, bins, has_missing, resolve_threads(n_threads))
        return cls(data, edges, bins, has_missing, data.order)

    def select_queries(self, queries: Sequence[int] | AnyArray) -> BinnedDataset:
        """The documents of some queries, in the same bins: a fold costs one copy and no new binning."""
        subset = self.data.select_queries(queries)
        numbers = np.flatnonzero(queries) if np.asarray(queries).dtype == bool else np.asarray(queries, dtype=np.int64)
        offsets, sizes = self.data.offsets, self.data.queries.sizes
        rows = np.concatenate([np.arange(offsets[q], offsets[q] + sizes[q]) for q in numbers] or [np.zeros(0, int)])
        return BinnedDataset(subset, self.edges, np.ascontiguousarray(self.bins[:, rows]), self.has_missing, None)
