"""Features as small integers: bins for boosted trees, codes for full-depth trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.coding import MAX_CATEGORIES
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import FEATURE, AnyArray, FeatureMatrix, FloatArray, IndexArray
from rankwood.errors import DataError
from rankwood.lazily import cached_property
from rankwood.system import resolve_threads

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

# Rows query by query, and back in the order of the input.


class ByQuery:
    """Base of data that holds the documents of a data set query by query.

    Attributes
    ----------
    data : Dataset
        The data set.
    rows : array of int or None
        Row of `data` for every row here; None when they are the same.
    """

    data: Dataset
    rows: IndexArray | None

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self.data.n_docs

    def by_query(self, values: AnyArray) -> AnyArray:
        """Values of the data set's rows, in the order of the rows here.

        Parameters
        ----------
        values : array
            One entry per document, in input order.
        """
        return values if self.rows is None else np.ascontiguousarray(values[self.rows])

    def in_input_order(self, values: AnyArray) -> AnyArray:
        """Values of the rows here, in the order of the data set's rows.

        Parameters
        ----------
        values : array
            One entry per document, query by query.
        """
        if self.rows is None:
            return values
        back = np.empty_like(values)
        back[self.rows] = values
        return back


# Binned data: what the histogram tree learner works on. Made once, used for many fits and folds.


MAX_BINS = 255
_MERGED_AT_ONCE = 64  # sketches
RowsDone: TypeAlias = Callable[[int], None]
_FEATURES_AT_ONCE = 32


@dataclass(frozen=True)
class BinEdges:
    """Upper ends of the bins of every feature; the edge after bin b is the threshold of the split `bin <= b`.

    Parameters
    ----------
    flat : array of float64
        Edges of feature f, ascending, are `flat[offsets[f]:offsets[f + 1]]`; the feature has one bin more than edges.
    offsets : array of int64
        Where the edges of each feature start, and their number at the end.
    """

    flat: FloatArray
    offsets: IndexArray

    @classmethod
    def find(
        cls, X: FeatureMatrix, max_bins: int = MAX_BINS, *, n_threads: int | None = None, most: int = MAX_BINS
    ) -> BinEdges:
        """Edges of quantile bins of every column.

        Parameters
        ----------
        X : float32 matrix
            Documents x features.
        max_bins : int, default 255
            Most bins of a feature. A column of no more distinct values has a bin for each.
        n_threads : int, optional
            Every CPU is used unless given.
        most : int, default 255
            Largest `max_bins` that the caller can handle.
        """
        if not 2 <= max_bins <= most:
            raise DataError(f"max_bins must lie between 2 and {most}, got {max_bins}")
        return cls.of(_native.find_bin_edges(X, max_bins, resolve_threads(n_threads)))

    @classmethod
    def of(cls, edges: Sequence[Sequence[float]]) -> BinEdges:
        """Edges that are given feature by feature."""
        offsets = np.concatenate([[0], np.cumsum([len(feature) for feature in edges])]).astype(np.int64)
        return cls(np.concatenate([np.zeros(0), *(np.array(feature, dtype=np.float64) for feature in edges)]), offsets)

    @property
    def n_features(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_values(self) -> NDArray[np.int32]:
        """Number of bins that hold values, per feature; a missing value has the bin after them."""
        return (np.diff(self.offsets) + 1).astype(np.int32)

    @property
    def code_offsets(self) -> IndexArray:
        """Where the bins of each feature start when those of all features stand in a row, and their number at the end.

        A feature has one bin more than edges; that of missing values is not counted.
        """
        return self.offsets + np.arange(self.n_features + 1)

    def with_categories(self, features: Sequence[int]) -> BinEdges:
        """The edges with a bin for every code of categories, 0 to 252, in some features; others lie around these.

        A value is the category of its whole part, as for LightGBM.

        Examples
        --------
        >>> edges = BinEdges.of([[0.5], [0.5]]).with_categories([1])
        >>> edges.n_values.tolist(), edges.threshold(0, 0), bool(edges.threshold(1, 1) == np.nextafter(1.0, 0.0))
        ([2, 255], 0.5, True)
        """
        codes = _category_edges()
        parts = np.split(self.flat, self.offsets[1:-1])
        return BinEdges.of([codes if f in features else part for f, part in enumerate(parts)])  # type: ignore[misc]

    def has_categories(self, features: Sequence[int]) -> bool:
        """Whether these are edges of `with_categories`."""
        codes = _category_edges()
        return all(np.array_equal(self.flat[self.offsets[f] : self.offsets[f + 1]], codes) for f in features)

    @cached_property
    def categories(self) -> list[int]:
        """Features with the bins of `with_categories`."""
        return [f for f in np.flatnonzero(self.n_values == MAX_CATEGORIES + 2).tolist() if self.has_categories([f])]

    def threshold(self, feature: int, bin_number: int) -> float:
        """Threshold of the split `bin <= bin_number`; infinity after the last bin, where only missing values go on."""
        start, end = int(self.offsets[feature]), int(self.offsets[feature + 1])
        return float(self.flat[start + bin_number]) if start + bin_number < end else float("inf")


def _category_edges() -> FloatArray:
    """Edges of the bins of categories, which hold whole codes; the first one has smaller values, the last larger."""
    codes = np.nextafter(np.arange(MAX_CATEGORIES + 1, dtype=np.float64), -1.0)
    codes[0] = -1.0
    return codes


@dataclass(frozen=True)
class BinSketch:
    """What the edges of bins depend on, of some rows of a data set: sketches of all rows, merged, give `BinEdges.find`.

    A feature that has no more than `max_bins` values in these rows is known by them, any other by a sample. Sampled are
    rows by their number in the whole data set, so that it does not matter how that was cut, nor in what order sketches
    are merged.

    Parameters
    ----------
    max_bins : int
        Most bins of a feature.
    counts : array of int64
        Number of distinct values of every feature, -1 when there are more than `max_bins`.
    values : array of float32
        Distinct values, feature by feature.
    samples : tuple of float32 matrices
        The sampled rows.

    Examples
    --------
    >>> X = np.array([[0.5], [2.0], [0.5]], dtype=np.float32)
    >>> parts = [BinSketch.of(X[rows], rows.start, 3) for rows in (slice(0, 2), slice(2, 3))]
    >>> BinSketch.merge(parts).edges().flat, BinEdges.find(X).flat
    (array([1.25]), array([1.25]))
    """

    max_bins: int
    counts: IndexArray
    values: FeatureMatrix
    samples: tuple[FeatureMatrix, ...]

    @classmethod
    def of(
        cls, X: FeatureMatrix, first_row: int, n_rows: int, max_bins: int = MAX_BINS, *, n_threads: int | None = None
    ) -> BinSketch:
        """The sketch of consecutive rows.

        Parameters
        ----------
        X : float32 matrix
            The rows.
        first_row, n_rows : int
            Number of the first of them in the whole data set, and how many that has.
        max_bins : int, default 255
            Most bins of a feature.
        n_threads : int, optional
            Every CPU is used unless given.
        """
        if not 2 <= max_bins <= MAX_BINS:
            raise DataError(f"max_bins must lie between 2 and {MAX_BINS}, got {max_bins}")
        counts, values = _native.find_few_values(X, max_bins, resolve_threads(n_threads))
        return cls(max_bins, counts, values, (X[sampled_rows(first_row, len(X), n_rows)],))

    @classmethod
    def merge(cls, sketches: Sequence[BinSketch]) -> BinSketch:
        """The sketch of all rows of several sketches."""
        if len(sketches) == 1:
            return sketches[0]
        found = [sketch._by_feature() for sketch in sketches]
        merged = [_union(of_feature, sketches[0].max_bins) for of_feature in zip(*found, strict=True)]
        counts = np.array([-1 if values is None else len(values) for values in merged], dtype=np.int64)
        known = [values for values in merged if values is not None]
        flat = np.concatenate([np.zeros(0, dtype=FEATURE), *known])
        samples = tuple(sample for sketch in sketches for sample in sketch.samples if len(sample))
        return cls(sketches[0].max_bins, counts, flat, samples)

    def edges(self, *, n_threads: int | None = None) -> BinEdges:
        """The edges of the bins, when these are all rows of the data set.

        Parameters
        ----------
        n_threads : int, optional
            Every CPU is used unless given.
        """
        ends = np.concatenate([[0], np.cumsum(np.maximum(self.counts, 0))])
        edges: list[list[float]] = []
        for first in range(0, len(self.counts), _FEATURES_AT_ONCE):  # all samples once more would be too much
            last = min(first + _FEATURES_AT_ONCE, len(self.counts))
            columns = [np.empty((0, last - first), dtype=FEATURE), *(sample[:, first:last] for sample in self.samples)]
            known = self.counts[first:last], self.values[ends[first] : ends[last]]
            threads = resolve_threads(n_threads)
            edges += _native.find_sketched_edges(*known, np.concatenate(columns), self.max_bins, threads)
        return BinEdges.of(edges)

    def _by_feature(self) -> list[FeatureMatrix | None]:
        values = np.split(self.values, np.cumsum(np.maximum(self.counts, 0))[:-1])
        return [None if count < 0 else of_feature for count, of_feature in zip(self.counts, values, strict=True)]


def _union(values: Sequence[FeatureMatrix | None], limit: int) -> FeatureMatrix | None:
    """All distinct values; None when there are more than `limit`, or are not known."""
    known = [some for some in values if some is not None]
    if len(known) < len(values):
        return None
    union = np.unique(np.concatenate(known))
    return union if len(union) <= limit else None


@dataclass(frozen=True)
class CodeRanges:
    """Smallest and largest value in every bin of some rows: thresholds of a forest lie between these.

    Parameters
    ----------
    low, high : array of float32
        Of every bin, feature after feature; infinity and -infinity where these rows have no value.

    Examples
    --------
    >>> X = np.array([[0.5], [2.0], [0.25]], dtype=np.float32)
    >>> binned = BinnedDataset.encode(Dataset(X, group=[3]), BinEdges.of([[1.0]]))
    >>> CodeRanges.of(X, binned.bins, binned.edges).low
    array([0.25, 2.  ], dtype=float32)
    """

    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @classmethod
    def of(cls, X: FeatureMatrix, bins: AnyArray, edges: BinEdges, *, n_threads: int | None = None) -> CodeRanges:
        """The ranges of rows that were just put into bins.

        Parameters
        ----------
        X : float32 matrix
            The rows.
        bins : array
            Their bins, as `empty_bins` lays them out.
        edges : BinEdges
            Upper ends of the bins.
        n_threads : int, optional
            Every CPU is used unless given.
        """
        offsets = edges.code_offsets
        low, high = np.empty(offsets[-1], dtype=np.float32), np.empty(offsets[-1], dtype=np.float32)
        _native.find_code_ranges(X, bins, offsets, low, high, resolve_threads(n_threads))
        return cls(low, high)

    @classmethod
    def merge(cls, parts: Sequence[CodeRanges]) -> CodeRanges:
        """The ranges of all rows of several parts."""
        return cls(np.min([part.low for part in parts], axis=0), np.max([part.high for part in parts], axis=0))


def sampled_rows(first_row: int, n_here: int, n_rows: int) -> IndexArray:
    """Rows that bins are found on, of `n_here` consecutive ones out of `n_rows`, counted from the first one here.

    Examples
    --------
    >>> sampled_rows(2, 3, 1000)
    array([0, 1, 2])
    >>> sampled_rows(2, 6, 600_000)
    array([1, 4])
    """
    n_sample = min(n_rows, _native.BIN_SAMPLE_ROWS)
    first, last = (-(-row * n_sample // max(n_rows, 1)) for row in (first_row, first_row + n_here))
    rows: IndexArray = np.arange(first, last, dtype=np.int64) * n_rows // max(n_sample, 1) - first_row
    return rows


@dataclass(frozen=True)
class BinnedDataset(ByQuery):
    """A data set in bins, as boosted trees learn from it: made once, used for many fits and folds.

    `BinnedDataset.make` makes one.

    Parameters
    ----------
    data : Dataset
        The data set behind it.
    edges : rankwood.data.bins.BinEdges
        Upper ends of the bins.
    bins : array of uint8
        `bins[group, row, place]` is the bin of feature `16 * group + place`: one byte per value, 16 features side by
        side, as the learner reads them. Rows stand query by query.
    has_missing : array of uint8
        For every feature, 1 if a value is missing.
    rows : array of int or None
        Row of `data` for every row here; None when they are the same.
    known_scores : sequence of (Ensemble, array of float64)
        Models to go on from, and their scores of the documents in input order: where features were dropped they cannot
        be scored any more.
    share : Share, optional
        What the data is of a larger data set that a group of processes holds; all of it unless given.
    ranges : CodeRanges, optional
        Smallest and largest value in every bin, which forests need where features were dropped.

    Examples
    --------
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
    known_scores: Sequence[tuple[Ensemble, FloatArray]] = ()
    share: Share = None  # type: ignore[assignment]
    ranges: CodeRanges | None = None

    def __post_init__(self) -> None:
        if self.share is None:
            object.__setattr__(self, "share", Share.whole(self.data))

    @classmethod
    def make(
        cls,
        data: Dataset,
        max_bins: int = MAX_BINS,
        *,
        categories: Sequence[int] = (),
        n_threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> BinnedDataset:
        """The data set in quantile bins of its own.

        Parameters
        ----------
        data : Dataset
            What is put into bins.
        max_bins : int, default 255
            Most bins of a feature, between 2 and 255.
        categories : sequence of int
            Features whose values are codes of categories, 0 to 252, each of which gets a bin.
        n_threads : int, optional
            Every CPU is used unless given.
        progress : callable, optional
            Called now and then with the number of rows that were read, and to be read, when features are in files: all
            are read twice.
        """

        def tell(n_before: int) -> RowsDone | None:
            return None if progress is None else lambda n_rows: progress(n_before + n_rows, 2 * data.n_docs)

        edges = find_edges(data, max_bins, n_threads=n_threads, progress=tell(0))
        edges = edges.with_categories(categories) if categories else edges
        return cls.encode(data, edges, n_threads=n_threads, progress=tell(data.n_docs))

    @classmethod
    def encode(
        cls, data: Dataset, edges: BinEdges, *, n_threads: int | None = None, progress: RowsDone | None = None
    ) -> BinnedDataset:
        """The data set in given bins: validation data in those of the training data.

        Parameters
        ----------
        data : Dataset
            What is put into bins.
        edges : rankwood.data.bins.BinEdges
            Upper ends of the bins, like `binned.edges`.
        n_threads : int, optional
            Every CPU is used unless given.
        progress : callable, optional
            Called now and then with the number of rows that are in bins.
        """
        if data.n_features != edges.n_features:
            raise DataError(f"the bins are of {edges.n_features} features, the data has {data.n_features}")
        bins = empty_bins(data.n_docs, data.n_features)
        has_missing = np.zeros(data.n_features, dtype=np.uint8)
        place = data.queries.places
        for rows, X in _told(data, progress):
            here = rows if place is None else place[rows]
            has_missing |= encode_rows(X, edges, bins, here, feature_names=data.feature_names, n_threads=n_threads)
        return cls(data, edges, bins, has_missing, data.order)

    def select_queries(self, queries: Sequence[int] | AnyArray) -> BinnedDataset:
        """The documents of some queries, in the same bins: a fold costs one copy and no new binning.

        Every process of a group must call this, each for the queries that it holds.

        Parameters
        ----------
        queries : array-like of int or bool
            Numbers of queries, or a mask.
        """
        subset = self.data.select_queries(queries)
        numbers = np.flatnonzero(queries) if np.asarray(queries).dtype == bool else np.asarray(queries, dtype=np.int64)
        offsets, sizes = self.data.offsets, self.data.queries.sizes
        rows = np.concatenate([np.arange(offsets[q], offsets[q] + sizes[q]) for q in numbers] or [np.zeros(0, int)])
        places = rows if self.rows is None else self.rows[rows]  # in the data set
        known = tuple((model, scores[places]) for model, scores in self.known_scores)
        bins = np.ascontiguousarray(self.bins[:, rows])
        share = Share.of(subset, self.share.group)
        return BinnedDataset(subset, self.edges, bins, self.has_missing, None, known, share, self.ranges)

    def without_features(self) -> BinnedDataset:
        """The same bins without the features behind them, which frees the memory of these."""
        return replace(self, data=self.data.without_features())

    def with_ranges(self, *, n_threads: int | None = None) -> BinnedDataset:
        """The same bins with `ranges`: to be asked for before features are dropped, when a forest will be grown.

        Parameters
        ----------
        n_threads : int, optional
            Every CPU is used unless given.
        """
        if self.ranges is not None:
            return self
        if not self.data.can_read_features:
            raise DataError(
                "the features of this data set were dropped, and a forest needs the range of values in every bin: "
                "ask for it with with_ranges before, or read the data with read_data"
            )
        place = self.data.queries.places
        found = [
            CodeRanges.of(
                X,
                np.ascontiguousarray(self.bins[:, rows if place is None else place[rows]]),
                self.edges,
                n_threads=n_threads,
            )
            for rows, X in self.data.feature_blocks()
        ]
        return replace(self, ranges=CodeRanges.merge(found))


def find_edges(
    data: Dataset, max_bins: int = MAX_BINS, *, n_threads: int | None = None, progress: RowsDone | None = None
) -> BinEdges:
    """Edges of quantile bins of every feature of a data set, whose features may be in files.

    Parameters
    ----------
    data : Dataset
        The data set.
    max_bins : int, default 255
        Most bins of a feature.
    n_threads : int, optional
        Every CPU is used unless given.
    progress : callable, optional
        Called with the number of rows that were seen, when features are in files.
    """
    if data.has_features:
        return BinEdges.find(data.X, max_bins, n_threads=n_threads)
    blocks = (X for _, X in _told(data, progress))
    return sketch_blocks(blocks, 0, data.n_docs, max_bins, n_threads=n_threads).edges(n_threads=n_threads)


def sketch_blocks(
    blocks: Iterable[FeatureMatrix],
    first_row: int,
    n_rows: int,
    max_bins: int = MAX_BINS,
    *,
    n_threads: int | None = None,
) -> BinSketch:
    """The sketch of consecutive rows that come in blocks, like those of a part of a data set.

    Parameters
    ----------
    blocks : iterable of float32 matrices
        The rows.
    first_row, n_rows : int
        Number of the first of them in the whole data set, and how many that has.
    max_bins : int, default 255
        Most bins of a feature.
    n_threads : int, optional
        Every CPU is used unless given.
    """
    sketches: list[BinSketch] = []
    for X in blocks:
        sketches.append(BinSketch.of(X, first_row, n_rows, max_bins, n_threads=n_threads))
        first_row += len(X)
        if len(sketches) == _MERGED_AT_ONCE:
            sketches = [BinSketch.merge(sketches)]
    return BinSketch.merge(sketches)


def _told(data: Dataset, progress: RowsDone | None) -> Iterator[tuple[slice, FeatureMatrix]]:
    """The blocks of features; after each is used, the number of rows so far is told."""
    for rows, X in data.feature_blocks():
        yield rows, X
        if progress is not None:
            progress(rows.stop)


# The layout of bins: nothing else in Python knows it.


def empty_bins(n_docs: int, n_features: int, dtype: type = np.uint8) -> AnyArray:
    """Room for the bins of documents: `bins[group, row, place]`, 16 features side by side."""
    return np.empty((-(-n_features // _native.BIN_GROUP), n_docs, _native.BIN_GROUP), dtype=dtype)


def encode_rows(
    X: FeatureMatrix,
    edges: BinEdges,
    bins: AnyArray,
    rows: slice | IndexArray,
    *,
    feature_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.uint8]:
    """Write the bins of some rows where they belong; returns for every feature whether a value is missing.

    A negative code of a category is a missing value, as pandas writes one; a code that is not whole is an error.

    Parameters
    ----------
    X : float32 matrix
        The rows.
    edges : BinEdges
        Upper ends of the bins.
    bins : array
        What `empty_bins` gave, for all rows.
    rows : slice or array of int
        Which of them these are.
    feature_names : sequence of str, optional
        Names of the features, for errors.
    n_threads : int, optional
        Every CPU is used unless given.
    """
    X = _whole_codes(X, edges.categories, feature_names)
    is_all = isinstance(rows, slice) and len(X) == bins.shape[1]
    encoded = bins if is_all else empty_bins(len(X), X.shape[1], bins.dtype.type)
    has_missing = np.zeros(X.shape[1], dtype=np.uint8)
    _native.encode_bins(X, edges.flat, edges.offsets, encoded, has_missing, resolve_threads(n_threads))
    if not is_all:
        bins[:, rows] = encoded
    return has_missing


def _whole_codes(X: FeatureMatrix, categories: Sequence[int], names: Sequence[str] | None) -> FeatureMatrix:
    """The rows with missing values for negative codes of categories."""
    for feature in categories:
        codes = X[:, feature]
        odd = codes[np.trunc(codes) != codes]
        odd = odd[~np.isnan(odd)]
        if len(odd):
            name = f"feature {feature} (from 0)" if names is None else f"feature {names[feature]!r}"
            raise DataError(
                f"{name} holds {odd[0]:g}, and is one of categorical_features: codes of categories are whole numbers "
                "from 0 on; leave it out of these if it is a quantity"
            )
    negative = [feature for feature in categories if (X[:, feature] < 0).any()]
    if negative:
        X = X.copy()
        for feature in negative:
            X[X[:, feature] < 0, feature] = np.nan
    return X


def join_bins(parts: Sequence[AnyArray]) -> AnyArray:
    """The bins of consecutive rows, from those of its parts."""
    return np.concatenate(parts, axis=1)


# Coded data: what full-depth trees work on. Every value is the number of its bin, or its rank among all values.


MAX_CODES: int = _native.MAX_VALUE_CODES  # 65,535: what two bytes hold, and one more for missing values


@dataclass(frozen=True)
class CodedDataset(ByQuery):
    """A data set as codes, as full-depth trees learn from it: a code is a number of a bin, or a rank of a value.

    Parameters
    ----------
    data : Dataset
        The data set behind it.
    codes : array of uint8 or uint16
        `codes[group, row, place]` is the code of feature `16 * group + place`. Rows stand query by query.
    has_missing : array of uint8
        For every feature, 1 if a value is missing.
    offsets : array of int64
        Feature f has the codes 0 to `offsets[f + 1] - offsets[f] - 1`; a missing value has the one after.
    low, high : array of float32
        Smallest and largest value of every code, of feature f from `offsets[f]` on.
    rows : array of int or None
        Row of `data` for every row here; None when they are the same.
    X : float32 matrix or None
        The values behind the codes, in the order of the rows here; None where they were dropped.

    Examples
    --------
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
    X: FeatureMatrix | None

    @classmethod
    def make(
        cls,
        data: Dataset | BinnedDataset,
        max_bins: int | None = None,
        *,
        n_threads: int | None = None,
    ) -> CodedDataset:
        """The data set as codes.

        Parameters
        ----------
        data : Dataset or BinnedDataset
            Data that comes in bins keeps them.
        max_bins : int, optional
            Number of values that a feature is reduced to. Unless given, every value has its own code when there are at
            most 65,535 documents, and there are 255 bins else.
        n_threads : int, optional
            Every CPU is used unless given.
        """
        threads = resolve_threads(n_threads)
        if isinstance(data, BinnedDataset):
            return cls._from_bins(data, threads)
        if max_bins is None:
            max_bins = MAX_CODES if data.n_docs <= MAX_CODES else MAX_BINS
        if not 2 <= max_bins <= MAX_CODES:
            raise DataError(f"max_bins must lie between 2 and {MAX_CODES}, got {max_bins}")
        X = data.X if data.order is None else data.X[data.order]
        codes = empty_bins(data.n_docs, data.n_features, np.uint8 if max_bins <= MAX_BINS else np.uint16)
        has_missing = np.zeros(data.n_features, dtype=np.uint8)
        if data.n_docs <= max_bins == MAX_CODES:
            offsets, low = _native.encode_exactly(X, codes, has_missing, threads)
            high = low
        else:
            edges = BinEdges.find(X, max_bins, n_threads=threads, most=MAX_CODES)
            _native.encode_bins(X, edges.flat, edges.offsets, codes, has_missing, threads)
            offsets, ranges = edges.code_offsets, CodeRanges.of(X, codes, edges, n_threads=threads)
            low, high = ranges.low, ranges.high
        return cls(data, codes, has_missing, offsets, low, high, data.order, X)

    @classmethod
    def _from_bins(cls, binned: BinnedDataset, threads: int) -> CodedDataset:
        data, ranges = binned.data, binned.with_ranges(n_threads=threads).ranges
        assert ranges is not None
        X = binned.by_query(data.in_memory().X) if data.can_read_features else None
        codes, offsets = (binned.bins, binned.has_missing), binned.edges.code_offsets
        return cls(data, *codes, offsets, ranges.low, ranges.high, binned.rows, X)


def forest_bytes(n_docs: int, n_features: int, *, code_bytes: int = 1) -> int:
    """Bytes that growing a forest takes on every process when all codes are sent to it.

    Parameters
    ----------
    n_docs, n_features : int
        Size of the whole training data.
    code_bytes : int, default 1
        Bytes of a code: 2 where every value has its own.

    Examples
    --------
    >>> forest_bytes(1_000_000, 136)
    193000000
    """
    groups = -(-n_features // _native.BIN_GROUP)
    codes = groups * _native.BIN_GROUP * code_bytes
    arriving = _native.BIN_GROUP * code_bytes  # one group of features at a time
    return n_docs * (codes + arriving + 33)  # labels, weights, both once more while they arrive, and grades


def coded_exactly(binned: BinnedDataset, *, n_threads: int) -> BinnedDataset:
    """The share with a code of two bytes for every value, as one process codes up to 65,535 documents for a forest.

    The same object when there are more documents, or when a process has no features any more.

    Parameters
    ----------
    binned : BinnedDataset
        The share.
    n_threads : int
        Threads.
    """
    data, share = binned.data, binned.share
    if share.n_docs > MAX_CODES or not all(share.group.gather(data.can_read_features)):
        return binned
    data = data.in_memory()
    X = np.concatenate(share.group.gather(data.X))
    edges = BinEdges.find(X, MAX_CODES, n_threads=n_threads, most=MAX_CODES)
    bins = empty_bins(data.n_docs, data.n_features, np.uint16)
    place = data.queries.places
    has_missing = encode_rows(data.X, edges, bins, slice(0, data.n_docs) if place is None else place)
    return BinnedDataset(data, edges, bins, has_missing, data.order, share=share)
