"""Coded data: what full-depth trees work on. Every value is the number of its bin, or its rank among all values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.binning import MAX_BINS, BinEdges, BinnedDataset
from rankwood.data.by_query import ByQuery
from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FeatureMatrix, IndexArray
from rankwood.errors import DataError
from rankwood.threads import resolve_threads

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
