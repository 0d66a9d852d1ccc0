"""The data set: features, labels, queries, and what may come with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rankwood.coding import Coding
from rankwood.data.queries import Queries, find_queries
from rankwood.dtypes import FEATURE, LABEL, OFFSET, WEIGHT, AnyArray, FeatureMatrix, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError
from rankwood.matrix import as_feature_matrix, collected, column_names, drop_column, feature_names_of, with_codes

ReadBlocks: TypeAlias = Callable[[], Iterator[FeatureMatrix]]


class Dataset:
    """Documents with features and labels, grouped by query.

    Rows stay in the order they were given, and results about rows come back in that order; rows of one query need
    neither stand together nor be sorted. NaN in `X` is a missing value. A data set does not change: `replace` makes
    another.

    Parameters
    ----------
    X : matrix of documents x features
        An array, a DataFrame or a sparse matrix; kept as float32 in C order. Columns `qid` and `label` of a DataFrame
        are taken for `qid` and `y` and are no features.
    y : array-like of float, optional
        Label of every document. Data without labels can only be scored.
    qid : array-like, optional
        Query id of every document, in any order. One of `qid`, `group` and a column `qid` is needed.
    group : array-like of int, optional
        Sizes of consecutive queries.
    weights : array-like of float, optional
        Weight of every document.
    query_weights : array-like of float, optional
        Weight of every query, in order of first appearance.
    doc_ids : sequence of str, optional
        Name of every document.
    position : array-like of int, optional
        Place, from 0 on, at which every document was shown when its label came about, if that was by clicks: boosted
        rankers then learn how much of the labels is due to it.
    feature_names : sequence of str, optional
        Name of every feature; taken from a DataFrame's columns, if these are texts.
    coding : rankwood.coding.Coding, optional
        `coding` of a model: columns of categories or texts in a DataFrame or Arrow table become the codes that the
        model knows; other categories are missing values.

    Attributes
    ----------
    X : array of float32, documents x features
        Features of every document; an error when they are not in memory, which `has_features` tells. It is float64
        when it was read with `exact=True` and float32 would round some value.
    has_features : bool
        Whether the features are in memory.
    y : array of float
        Labels; an error without them, which `has_labels` tells.
    has_labels : bool
        Whether there are labels.
    qid : array
        Query id of every document.
    queries : rankwood.data.queries.Queries
        Which rows belong to which query.
    offsets, order
        Where each query begins in the order by query, and the rows in this order; `order` is None when rows of a query
        stand together.
    weights, query_weights, doc_ids, position, feature_names
        As given, or None.
    n_docs, n_features, n_queries : int
        Numbers of documents, features and queries.
    shape : tuple of int
        `(n_docs, n_features)`.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> data.n_queries, data.query(0).y.tolist()
    (2, [0.0, 2.0])
    """

    queries: Queries
    weights: FloatArray | None
    query_weights: FloatArray | None
    doc_ids: AnyArray | None
    position: IndexArray | None
    feature_names: tuple[str, ...] | None
    _y: FloatArray | None
    _X: FeatureMatrix | None
    _n_features: int
    _read_blocks: ReadBlocks | None

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        weights: Any = None,
        query_weights: Any = None,
        doc_ids: Sequence[str] | AnyArray | None = None,
        position: Any = None,
        feature_names: Sequence[str] | None = None,
        coding: Coding | None = None,
    ) -> None:
        X = collected(X)
        columns = column_names(X) or ()
        if "qid" in columns:
            column, X = drop_column(X, "qid")
            qid = column if qid is None and group is None else qid
        if "label" in columns:
            if y is not None:
                raise DataError("X has a column 'label' and y is given, too: drop one of them")
            y, X = drop_column(X, "label")
        if feature_names is None:
            feature_names = feature_names_of(X)
        matrix = as_feature_matrix(with_codes(X, coding))
        self._set(
            _X=matrix,
            _n_features=matrix.shape[1],
            _read_blocks=None,
            _y=y,
            queries=find_queries(len(matrix), qid, group),
            weights=weights,
            query_weights=query_weights,
            doc_ids=doc_ids,
            position=position,
            feature_names=feature_names,
        )
        self._check()

    @classmethod
    def without_matrix(
        cls,
        y: Any = None,
        *,
        n_features: int,
        queries: Queries,
        weights: Any = None,
        query_weights: Any = None,
        feature_names: Sequence[str] | None = None,
        read_blocks: ReadBlocks | None = None,
    ) -> Dataset:
        """A data set whose features are not in memory: in files, or dropped after they were put into bins.

        Parameters
        ----------
        y : array-like of float, optional
            Label of every document.
        n_features : int
            Number of features.
        queries : rankwood.data.queries.Queries
            Which rows belong to which query, as `find_queries` tells.
        weights, query_weights, feature_names
            As in `Dataset(...)`.
        read_blocks : callable, optional
            Yields the features as float32 matrices of consecutive rows, every time it is called.

        Examples
        --------
        >>> from rankwood.data.queries import find_queries
        >>> Dataset.without_matrix([0, 1, 2], n_features=136, queries=find_queries(3, group=[3])).shape
        (3, 136)
        """
        data = cls.__new__(cls)
        data._set(
            _X=None,
            _n_features=int(n_features),
            _read_blocks=read_blocks,
            _y=y,
            queries=queries,
            weights=weights,
            query_weights=query_weights,
            doc_ids=None,
            position=None,
            feature_names=feature_names,
        )
        data._check()
        return data

    def without_features(self) -> Dataset:
        """The data set without its features: labels, queries, weights and names are what training needs after binning.

        Examples
        --------
        >>> import rankwood as rw
        >>> data = rw.Dataset([[1.0], [2.0]], [0, 1], group=[2]).without_features()
        >>> data.shape, data.has_features
        ((2, 1), False)
        """
        dropped = copy(self)
        dropped._set(_X=None, _read_blocks=None)
        return dropped

    @property
    def X(self) -> FeatureMatrix:
        """Features of every document, in input order; a DataError when they are not in memory."""
        if self._X is None:
            where = "were put into bins and dropped" if self._read_blocks is None else "were left in their files"
            raise DataError(f"the features of this data set {where}: read it with read_data to have them in memory")
        return self._X

    @property
    def has_features(self) -> bool:
        """Whether the features are in memory."""
        return self._X is not None

    def feature_blocks(self) -> Iterator[tuple[slice, FeatureMatrix]]:
        """The features block by block, with the rows of each: one block when they are in memory, else read from files.

        A DataError when they were dropped.
        """
        if self._read_blocks is None:
            yield slice(0, self.n_docs), self.X
            return
        start = 0
        for block in self._read_blocks():
            start += len(block)
            if start > self.n_docs:
                break
            yield slice(start - len(block), start), block
        if start != self.n_docs:
            count = f"{start} or more" if start > self.n_docs else start
            raise DataError(f"there were {self.n_docs} documents, now there are {count}: its files have changed")

    @property
    def can_read_features(self) -> bool:
        """Whether the features are in memory or in files, and were not dropped."""
        return self._X is not None or self._read_blocks is not None

    def per_row(self, function: Callable[[FeatureMatrix], AnyArray]) -> AnyArray:
        """What a function gives for every row, from blocks of features: scores, say.

        Parameters
        ----------
        function : callable
            Takes a float32 matrix, returns an array with an entry for each of its rows.
        """
        found = [function(X) for _, X in self.feature_blocks()]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def in_memory(self) -> Dataset:
        """The data set with its features in memory; the same object when they are."""
        if self._X is not None:
            return self
        X: AnyArray = np.zeros(self.shape, dtype=FEATURE)
        for rows, block in self.feature_blocks():
            X = X if block.dtype == FEATURE else X.astype(np.float64, copy=False)
            X[rows] = block
        return self.replace(X=X)

    @property
    def y(self) -> FloatArray:
        """Label of every document, in input order; a DataError when there are none."""
        if self._y is None:
            raise DataError(
                "this data has no labels to learn from or to evaluate by: give a column label, or y in Python"
            )
        return self._y

    @property
    def has_labels(self) -> bool:
        """Whether the documents have labels."""
        return self._y is not None

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._n_features

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.queries.n_queries

    @property
    def shape(self) -> tuple[int, int]:
        """Number of documents, and of features."""
        return self.n_docs, self.n_features

    @property
    def offsets(self) -> OffsetArray:
        """Where each query starts in `order` (or in the rows, when `order` is None)."""
        return self.queries.offsets

    @property
    def order(self) -> IndexArray | None:
        """Rows query by query, or None when they already stand so."""
        return self.queries.order

    @property
    def qid(self) -> AnyArray:
        """Query id of every row, in input order: what scikit-learn's splitters take as `groups`."""
        return self.queries.ids[self.queries.index]

    def query(self, number: int) -> Dataset:
        """The documents of one query.

        Parameters
        ----------
        number : int
            Number of the query, in order of first appearance.
        """
        return self.select_queries([number])

    def select_queries(self, queries: Sequence[int] | AnyArray) -> Dataset:
        """The documents of some queries, query by query in the order given.

        Parameters
        ----------
        queries : array-like of int or bool
            Numbers of queries, or a mask.
        """
        numbers = _as_index(queries, self.n_queries, "queries")
        rows = self.queries.rows_of(numbers)
        offsets = np.concatenate([[0], np.cumsum(self.queries.sizes[numbers])]).astype(OFFSET)
        return self._take(rows, Queries(ids=self.queries.ids[numbers], offsets=offsets, order=None), numbers)

    def select_features(self, features: Sequence[int] | AnyArray) -> Dataset:
        """The same documents with some of the features, in the order given.

        Parameters
        ----------
        features : array-like of int or bool
            Numbers of features, or a mask.
        """
        numbers = _as_index(features, self.n_features, "features")
        names = None if self.feature_names is None else [self.feature_names[number] for number in numbers]
        if self._read_blocks is not None:
            read_blocks = partial(_with_columns, self._read_blocks, numbers)
            return self.replace(read_blocks=read_blocks, _n_features=len(numbers), feature_names=names)
        return self.replace(X=np.ascontiguousarray(self.X[:, numbers]), feature_names=names)

    def replace(self, **changes: Any) -> Dataset:
        """The data set with some parts replaced.

        Parameters
        ----------
        **changes
            X, y, weights, query_weights, doc_ids, position or feature_names as in `Dataset(...)`, but X is float32;
            `queries`, a `Queries`; or `read_blocks` as in `Dataset.without_matrix`. They must fit each other.

        Examples
        --------
        >>> import rankwood as rw
        >>> data = rw.Dataset([[1.0], [2.0]], [0, 1], group=[2])
        >>> data.replace(y=[1, 0]).y.tolist(), data.y.tolist()
        ([1.0, 0.0], [0.0, 1.0])
        """
        for name in ("X", "y", "read_blocks"):
            if name in changes:
                changes[f"_{name}"] = changes.pop(name)
        if changes.get("_X") is not None:
            changes |= {"_n_features": changes["_X"].shape[1], "_read_blocks": None}
        unknown = sorted(set(changes) - set(vars(self)))
        if unknown:
            raise DataError(f"a data set has no {unknown[0]!r} to replace")
        other = copy(self)
        other._set(**changes)
        other._check()
        return other

    def fingerprint(self) -> str:
        """SHA-256 of all that a model or a measure may depend on: features, labels, queries, weights and names.

        Every part is announced by its type and shape, so that no two data sets feed the same bytes.
        """
        digest = hashlib.sha256()
        arrays: list[AnyArray | None] = [self._y, self.offsets, self.order, self.weights, self.query_weights]
        if self._X is None:
            digest.update(f"no features {self.shape};".encode())
        else:
            arrays.insert(0, self._X)
        if self.position is not None:
            arrays.append(self.position)
        for array in arrays:
            if array is None:
                digest.update(b"none;")
            else:
                digest.update(f"{array.dtype.str} {array.shape};".encode())
                digest.update(np.ascontiguousarray(array).data)
        for names in (self.doc_ids, self.feature_names):
            if names is None:
                digest.update(b"none;")
            else:
                digest.update(f"texts {len(names)};".encode())
                for text in map(str, names):
                    digest.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def split(self, fraction: float, *, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Two data sets: a random share of the queries, and the rest; each in input order.

        Parameters
        ----------
        fraction : float
            Share of the queries in the first, between 0 and 1. Each has at least one query.
        seed : int, default 0
            Which queries are drawn.

        Returns
        -------
        tuple of Dataset
            About `fraction` of the queries, and the others.
        """
        first, second = split_numbers(self.n_queries, fraction, seed)
        return self.select_queries(first), self.select_queries(second)

    def folds(self, k: int = 5, *, seed: int = 0) -> Iterator[tuple[Dataset, Dataset]]:
        """Data sets for cross-validation by queries: every query is in one of `k` folds.

        Parameters
        ----------
        k : int, default 5
            Number of folds. Their sizes differ by at most one query.
        seed : int, default 0
            Which query is in which fold.

        Yields
        ------
        tuple of Dataset
            The documents of the other folds, and those of the fold.
        """
        fold_of = fold_numbers(self.n_queries, k, seed)
        for fold in range(k):
            yield self.select_queries(fold_of != fold), self.select_queries(fold_of == fold)

    def __len__(self) -> int:
        return self.n_docs

    def __getitem__(self, rows: Any) -> Dataset:
        """A data set of some rows (slice, numbers or mask), as scikit-learn's splitters index it."""
        if isinstance(rows, (int, np.integer)) and not -self.n_docs <= rows < self.n_docs:
            raise IndexError(f"row {rows} of {self.n_docs}")  # which ends iteration
        if isinstance(rows, slice):
            rows = np.arange(self.n_docs)[rows]
        rows = _as_index(np.atleast_1d(rows), self.n_docs, "rows")
        index = self.queries.index[rows]
        queries = find_queries(len(rows), qid=index)
        ids = self.queries.ids[queries.ids] if len(rows) else self.queries.ids[:0]
        found = Queries(ids=ids, offsets=queries.offsets, order=queries.order)
        return self._take(rows, found, np.asarray(queries.ids, dtype=OFFSET))

    def __repr__(self) -> str:
        return f"Dataset({self.n_docs} documents, {self.n_features} features, {self.n_queries} queries)"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Dataset does not change; data.replace({name}=...) makes another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Dataset does not change")

    def _take(self, rows: IndexArray, queries: Queries, numbers: IndexArray) -> Dataset:
        """The given rows, which are those of the queries `numbers` and are grouped as `queries` says."""
        subset = copy(self)
        subset._set(
            _X=None if self._X is None else self._X[rows],
            _read_blocks=None,  # which cannot pick rows
            _y=None if self._y is None else self._y[rows],
            queries=queries,
            weights=None if self.weights is None else self.weights[rows],
            query_weights=None if self.query_weights is None else self.query_weights[numbers],
            doc_ids=None if self.doc_ids is None else self.doc_ids[rows],
            position=None if self.position is None else self.position[rows],
        )
        return subset

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Bring every part into its type, and refuse parts that do not fit each other."""
        n_rows, n_features = self.shape
        if self._X is not None and len(self._X) != n_rows:
            raise DataError(f"X has {len(self._X)} rows, the queries have {n_rows}")
        ids, names = self.doc_ids, self.feature_names
        self._set(
            _y=None if self._y is None else _one_per(self._y, n_rows, "y", "row", LABEL),
            weights=_weights(self.weights, n_rows, "weights", "row"),
            query_weights=_weights(self.query_weights, self.n_queries, "query_weights", "query"),
            doc_ids=None if ids is None else np.asarray(ids, dtype=object),
            position=None if self.position is None else _positions(self.position, n_rows),
            feature_names=None if names is None else tuple(map(str, names)),
        )
        if self.doc_ids is not None and len(self.doc_ids) != n_rows:
            raise DataError(f"doc_ids has {len(self.doc_ids)} entries for {n_rows} rows")
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise DataError(f"feature_names has {len(self.feature_names)} entries for {n_features} features")


def split_numbers(n_queries: int, fraction: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Numbers of the queries in the two parts of `Dataset.split`."""
    if not 0.0 < fraction < 1.0:
        raise DataError(f"fraction must lie between 0 and 1, got {fraction}")
    if n_queries < 2:
        raise DataError(f"splitting needs at least 2 queries, there is {n_queries}")
    n_first = min(max(round(fraction * n_queries), 1), n_queries - 1)
    shuffled = np.random.default_rng(seed).permutation(n_queries)
    return np.sort(shuffled[:n_first]), np.sort(shuffled[n_first:])


def fold_numbers(n_queries: int, k: int, seed: int) -> IndexArray:
    """The fold of every query, of `Dataset.folds`."""
    if not 2 <= k <= n_queries:
        raise DataError(f"k must lie between 2 and the number of queries ({n_queries}), got {k}")
    return np.random.default_rng(seed).permutation(n_queries) % k


def docnos(data: Dataset) -> list[str]:
    """Names of the documents in TREC files: their ids as one word each, or `d` and the row number."""
    if data.doc_ids is None:
        return [f"d{row}" for row in range(data.n_docs)]
    return [one_word(str(name)) or f"d{row}" for row, name in enumerate(data.doc_ids)]


def one_word(text: str) -> str:
    """The text as one word: fields of TREC files end at blanks."""
    return "_".join(text.split())


def _with_columns(read_blocks: ReadBlocks, columns: IndexArray) -> Iterator[FeatureMatrix]:
    for block in read_blocks():
        yield np.ascontiguousarray(block[:, columns])


def _one_per(values: Any, n: int, name: str, what: str, dtype: Any) -> FloatArray:
    try:
        array = np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers: {error}") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0].copy()
    if array.shape != (n,):
        raise DataError(f"{name} must have one value per {what} ({n}), got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise DataError(f"{name} of {what} {bad[0]} is {array[bad[0]]}: it must be a finite number")
    return array


def _weights(values: Any, n: int, name: str, what: str) -> FloatArray | None:
    if values is None:
        return None
    array = _one_per(values, n, name, what, WEIGHT)
    negative = np.flatnonzero(array < 0)
    if len(negative):
        raise DataError(f"{name} of {what} {negative[0]} is {array[negative[0]]}: it must not be negative")
    return array


MOST_POSITIONS = 1_000_000


def _positions(values: Any, n: int) -> IndexArray:
    array = _one_per(values, n, "position", "row", np.float64)
    wrong = np.flatnonzero((array < 0) | (array >= MOST_POSITIONS) | (array != np.floor(array)))
    if len(wrong):
        raise DataError(f"position of row {wrong[0]} is {array[wrong[0]]:g}: it must be a whole number from 0 on")
    return array.astype(OFFSET)


def _as_index(values: Sequence[int] | AnyArray, n: int, name: str) -> IndexArray:
    array = np.asarray(values)
    if array.dtype == bool:
        if array.shape != (n,):
            raise DataError(f"a mask of {name} must have {n} entries, got shape {array.shape}")
        return np.flatnonzero(array).astype(OFFSET)
    if array.size == 0:
        return np.zeros(0, dtype=OFFSET)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise DataError(f"{name} must be whole numbers or a boolean mask")
    if array.min() < -n or array.max() >= n:
        raise DataError(f"{name} must lie between 0 and {n - 1}, got {array.min()} to {array.max()}")
    return np.where(array < 0, array + n, array).astype(OFFSET)
