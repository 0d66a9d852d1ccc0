"""Features as small integers: bins for boosted trees, codes for full-depth trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import DataError
from rankwood.system import resolve_threads

# Rows query by query, and back in the order of the input.


class ByQuery:
    """What holds the documents of a data set query by query.

    data   the data set
    rows   row of `data` for every row here; None when they are the same
    """

    data: Dataset
    rows: IndexArray | None

    @property
    def n_docs(self) -> int:
        return self.data.n_docs

    def by_query(self, values: AnyArray) -> AnyArray:
        """Values of the data set's rows, in the order of the rows here."""
        return values if self.rows is None else np.ascontiguousarray(values[self.rows])

    def in_input_order(self, values: AnyArray) -> AnyArray:
        """Values of the rows here, in the order of the data set's rows."""
        if self.rows is None:
            return values
        back = np.empty_like(values)
        back[self.rows] = values
        return back


# Binned data: what the histogram tree learner works on. Made once, used for many fits and folds.


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


# Coded data: what full-depth trees work on. Every value is the number of its bin, or its rank among all values.


MAX_CODES: int = _native.MAX_VALUE_CODES  # 65,535: what two bytes hold, and one more for missing values


@dataclass(frozen=True)
class CodedDataset(ByQuery):
    """A data set as codes, its rows query by query.

    codes          [group][row][16]: one byte per value, or two; 16 features lie side by side
    offsets        feature f has the codes 0 to `offsets[f + 1] - offsets[f] - 1`; a missing value has the one after
    low, high      smallest and largest value of every code, from `offsets[f]` on
    rows           row of `data` for every row here; None when they are the same
    X              the values behind the codes, in the order of the rows here
    missing_as_zero    missing values have the code of 0, and trees send any that comes later where 0 goes

    >>> import rankwood as rw
    >>> coded = CodedDataset.make(rw.Dataset([[0.5], [2.0], [0.5]], [0, 1, 2], group=[3]))
    >>> coded.low, coded.codes[0, :, 0]
    (array([0.5, 2. ], dtype=float32), array([0, 1, 0], dtype=uint16))
    """

    data: Dataset
    codes: NDArray[np.uint8] | NDArray[np.uint16]
    has_missing: NDArray[np.uint8]
    offsets: IndexArray
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    rows: IndexArray | None
    X: FeatureMatrix
    missing_as_zero: bool = False

    @classmethod
    def make(
        cls,
        data: Dataset | BinnedDataset,
        max_bins: int | None = None,
        *,
        missing_as_zero: bool = False,
        n_threads: int | None = None,
    ) -> CodedDataset:
        """Codes of a data set.

        `max_bins` is the number of values that a feature is reduced to. None: every value has its own code when there
        are at most 65,535 documents, and there are 255 bins else. Data that comes in bins keeps them.
        """
        threads = resolve_threads(n_threads)
        if isinstance(data, BinnedDataset):
            return cls._from_bins(data, missing_as_zero, threads)
        if max_bins is None:
            max_bins = MAX_CODES if data.n_docs <= MAX_CODES else MAX_BINS
        if not 2 <= max_bins <= MAX_CODES:
            raise DataError(f"max_bins must lie between 2 and {MAX_CODES}, got {max_bins}")
        X = data.X if data.order is None else data.X[data.order]
        fill = missing_as_zero and bool(np.isnan(X).any())
        values = np.where(np.isnan(X), np.float32(0.0), X) if fill else X
        shape = (-(-data.n_features // _native.BIN_GROUP), data.n_docs, _native.BIN_GROUP)
        codes: AnyArray = np.empty(shape, dtype=np.uint8 if max_bins <= MAX_BINS else np.uint16)
        has_missing = np.zeros(data.n_features, dtype=np.uint8)
        if data.n_docs <= max_bins == MAX_CODES:
            offsets, low = _native.encode_exactly(values, codes, has_missing, threads)
            high = low
        else:
            edges = BinEdges.find(values, max_bins, n_threads=threads, most=MAX_CODES)
            _native.encode_bins(values, edges.flat, edges.offsets, codes, has_missing, threads)
            offsets, low, high = _ranges(values, codes, edges, threads)
        return cls(data, codes, has_missing, offsets, low, high, data.order, X, missing_as_zero)

    @classmethod
    def _from_bins(cls, binned: BinnedDataset, missing_as_zero: bool, threads: int) -> CodedDataset:
        if missing_as_zero and binned.has_missing.any():
            raise DataError("missing values that count as 0 need bins of their own: give the Dataset, not its bins")
        X = binned.by_query(binned.data.X)
        offsets, low, high = _ranges(X, binned.bins, binned.edges, threads)
        return cls(binned.data, binned.bins, binned.has_missing, offsets, low, high, binned.rows, X, missing_as_zero)


def _ranges(
    X: FeatureMatrix, codes: AnyArray, edges: BinEdges, threads: int
) -> tuple[IndexArray, NDArray[np.float32], NDArray[np.float32]]:
    """Where the codes of every feature start, and the smallest and largest value of each."""
    offsets = edges.offsets + np.arange(edges.n_features + 1)  # a feature has one code more than edges
    low, high = np.empty(offsets[-1], dtype=np.float32), np.empty(offsets[-1], dtype=np.float32)
    _native.find_code_ranges(X, codes, offsets, low, high, threads)
    return offsets, low, high
