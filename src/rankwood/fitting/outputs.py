"""Outputs of every tree for every document, kept as leaf numbers, and the scores that weighted outputs add up to."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood import _native
from rankwood.data.dataset import Dataset
from rankwood.data.share import Share
from rankwood.dtypes import LEAF_VALUE, OFFSET, SCORE, WEIGHT, AnyArray, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError, ModelError, RankwoodError
from rankwood.exact import in_units, rounded
from rankwood.group import ALONE, Group
from rankwood.lazily import cached_property
from rankwood.matrix import column_order
from rankwood.model.additive import AdditiveModel
from rankwood.model.constraints import Constraints, Projection
from rankwood.model.ensemble import Ensemble
from rankwood.system import available_memory, resolve_threads

BLOCK = 1 << 22  # leaf numbers found at a time, before they are transposed to stand tree by tree
BYTES_PER_DOCUMENT = 64  # for the scores, ranks and labels that a search keeps besides the leaf numbers


@dataclass(frozen=True)
class TreeOutputs:
    """The unweighted output of every tree for every document, kept as leaf numbers of a byte or two each.

    Parameters
    ----------
    codes : array of shape (n_trees, n_docs)
        Leaf that each document reaches, numbered from 0 inside its tree. Documents stand query by query.
    values : array of shape (n_leaves,)
        Value of every leaf, tree after tree. Where the model's weight of a tree is negative the values are negated, so
        that weights need never be negative: `unsigned_weights` gives the weights that go with them.
    leaf_offsets : array of shape (n_trees + 1,)
        Where the leaves of each tree start in `values`.
    base : float
        Score of a document before any tree.
    n_threads : int
        Threads that sums over trees and documents use.
    group : Group
        Processes that have the other documents of the data, in the same trees: sums over documents are those of all.
    projection : Projection or None
        What moves leaf values so that they keep the constraints of the model, if it has any.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, 1.5, 3.0, 4.0)], tree_weights=[1, -2], base=10.0)
    >>> data = rw.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3])
    >>> outputs = TreeOutputs.of(model, data)
    >>> outputs.codes.tolist(), outputs.scores(unsigned_weights(model)).tolist()
    ([[0, 1, 1], [0, 0, 1]], [5.0, 6.0, 4.0])
    """

    codes: AnyArray
    values: FloatArray
    leaf_offsets: OffsetArray
    base: float
    n_threads: int
    group: Group = ALONE
    projection: Projection | None = None

    @classmethod
    def of(
        cls,
        model: Ensemble | AdditiveModel,
        data: Dataset,
        *,
        max_memory: int | None = None,
        n_threads: int | None = None,
        group: Group = ALONE,
    ) -> TreeOutputs:
        """Find the leaf of every document of `data` in every tree.

        Parameters
        ----------
        model : Ensemble
            Model whose trees are asked; its features are found by name when both have names.
        data : Dataset
            Documents.
        max_memory : int or None, default None
            Bytes that this may take; what the machine has free when None.
        n_threads : int or None, default None
            Threads; all CPUs when None.
        group : Group
            Processes that have the other documents.

        Raises
        ------
        RankwoodError
            If it would not fit into the memory (`needed_bytes`).
        """
        if group.total(data.n_docs) == 0:
            raise DataError("there is nothing to go by: the data has no documents")
        check_fits(model, [data], max_memory)
        threads = resolve_threads(n_threads)
        if isinstance(model, AdditiveModel):
            return cls._of_predictions(model, data, threads, group)
        codes: AnyArray = np.empty((model.n_trees, data.n_docs), dtype=code_type(model))
        columns = column_order(data.feature_names, model.feature_names)
        step = max(1024, BLOCK // max(model.n_trees, 1))
        for start in range(0, data.n_docs, step):
            rows = slice(start, start + step)
            X = data.X[rows] if data.order is None else data.X[data.order[rows]]
            X = X if columns is None else np.ascontiguousarray(X[:, columns])
            codes[:, rows] = model.leaves(X, n_threads=threads).T
        signs = np.where(model.tree_weights < 0.0, -1.0, 1.0)
        values = model.leaf_value * np.repeat(signs, np.diff(model.leaf_offsets))
        values = np.ascontiguousarray(values, LEAF_VALUE)
        projection = Constraints.of(model).projection(model.trees, model.n_features)
        return cls(codes, values, model.leaf_offsets, model.base, threads, group, projection)

    @classmethod
    def _of_predictions(cls, model: AdditiveModel, data: Dataset, threads: int, group: Group) -> TreeOutputs:
        """Every member as a tree with a leaf for each different prediction."""
        rows = model.predictions(data.X if data.order is None else data.X[data.order])
        found = [np.unique(column, return_inverse=True) for column in rows.T]
        found = [(values if len(values) else np.zeros(1), inverse) for values, inverse in found]
        widest = max(len(values) for values, _ in found)
        codes = np.stack([inverse for _, inverse in found]).astype(np.min_scalar_type(widest - 1))
        signs = np.where(model.weights < 0.0, -1.0, 1.0)
        values = np.concatenate([sign * of_member for sign, (of_member, _) in zip(signs, found, strict=True)])
        offsets = np.concatenate([[0], np.cumsum([len(of_member) for of_member, _ in found])])
        return cls(codes, values.astype(LEAF_VALUE), offsets.astype(OFFSET), model.base, threads, group)

    def __post_init__(self) -> None:
        try:
            _native.check_leaf_codes(*self.arrays, self.n_threads)
        except ValueError as error:
            raise ModelError(str(error)) from None

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.codes.shape[0])

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return int(self.codes.shape[1])

    @property
    def n_bytes(self) -> int:
        """Bytes that the leaf numbers take."""
        return int(self.codes.nbytes)

    @property
    def arrays(self) -> tuple[AnyArray, FloatArray, OffsetArray]:
        """Leaf numbers, leaf values and offsets, as the kernels take them."""
        return self.codes, self.values, self.leaf_offsets

    def output(self, tree: int) -> FloatArray:
        """Output of one tree, without its weight, for every document."""
        found: FloatArray = self.values[self.leaf_offsets[tree] :][self.codes[tree]]
        return found

    def scores(self, weights: Any) -> FloatArray:
        """Scores of all documents: base + weights[0] * output(0) + weights[1] * output(1) + ..., from left to right.

        The bits are those of `Ensemble.score` in double precision, also when trees of weight 0 are taken out of the
        ensemble.
        """
        return self._sum(weights, self.base)

    def exact_scores(self, weights: Any) -> tuple[FloatArray, FloatArray]:
        """Scores of all documents, and what rounding took from each: scores + rests are the exact sums.

        They are exact as long as two doubles hold them: scores below 2^24, and no tree that adds less than 2^-80.
        """
        rests: FloatArray = np.empty(self.n_docs, SCORE)
        return self._sum(weights, self.base, rests), rests

    def direction(self, weights: Any) -> FloatArray:
        """Change of all scores when the weights of the trees change by `weights`: `scores` without the base."""
        return self._sum(weights, 0.0)

    def leaf_sums(self, x: FloatArray, trees: IndexArray) -> FloatArray:
        """Sum of `x` over the documents in every leaf of `trees`; 0 for the leaves of all other trees."""
        sums: IndexArray = np.zeros(len(self.values), np.int64)
        ((whole, unit),) = in_units([x], self.group)
        _native.leaf_sums(*self.arrays, np.ascontiguousarray(trees, OFFSET), whole, self.n_threads, sums)
        return self.group.sum(sums) * unit

    def leaf_pair_sums(self, x: FloatArray, y: FloatArray, trees: IndexArray) -> tuple[FloatArray, FloatArray]:
        """`leaf_sums` of two numbers per document, for little more than the cost of one."""
        sums: IndexArray = np.zeros((2, len(self.values)), np.int64)
        (x_whole, x_unit), (y_whole, y_unit) = in_units([x, y], self.group)
        numbers = np.ascontiguousarray(trees, OFFSET)
        _native.leaf_pair_sums(*self.arrays, numbers, x_whole, y_whole, self.n_threads, sums[0], sums[1])
        first, second = self.group.sum(sums) * np.array([[x_unit], [y_unit]])
        return first, second

    @cached_property
    def leaf_counts(self) -> FloatArray:
        """Documents in every leaf."""
        return self.leaf_sums(np.ones(self.n_docs), np.arange(self.n_trees))

    def share_sums(self, totals: FloatArray) -> FloatArray:
        """Sum over documents of output / total, for every tree; the sum is exact and rounded once."""
        sums: IndexArray = np.empty((self.n_trees, _native.EXACT_WIDTH), np.int64)
        _native.share_sums(*self.arrays, np.ascontiguousarray(totals, SCORE), self.n_threads, sums)
        return rounded(self.group.sum(sums))

    def with_values(self, values: FloatArray) -> TreeOutputs:
        """The same documents in the same leaves, with other leaf values."""
        array = np.ascontiguousarray(values, LEAF_VALUE)
        if array.shape != self.values.shape:
            raise ModelError(f"values must have one entry per leaf ({len(self.values)}), got shape {array.shape}")
        other = copy(self)  # not the constructor, which would check all codes again
        object.__setattr__(other, "values", array)
        return other

    def constrained(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Leaf values moved so that they keep the constraints of the model; `weights` say what a change costs."""
        return values if self.projection is None else self.projection(values, weights)

    def as_tree(self, output: FloatArray) -> TreeOutputs:
        """A single tree that has one leaf per document and gives each document its entry of `output`."""
        codes = np.arange(self.n_docs, dtype=np.uint32)[None]
        values = output if self.n_docs else np.zeros(1)  # every tree has a leaf
        return TreeOutputs(codes, values, np.array([0, len(values)], OFFSET), 0.0, self.n_threads, self.group)

    def _sum(self, weights: Any, base: float, rests: FloatArray | None = None) -> FloatArray:
        scores: FloatArray = np.empty(self.n_docs, SCORE)
        _native.add_outputs(*self.arrays, np.ascontiguousarray(weights, WEIGHT), base, self.n_threads, scores, rests)
        return scores


def unsigned_weights(model: Ensemble | AdditiveModel) -> FloatArray:
    """Weights of the model's trees without their signs, which `TreeOutputs` has in the leaf values."""
    return np.abs(model.tree_weights)


def signed_weights(model: Ensemble | AdditiveModel, weights: FloatArray) -> FloatArray:
    """The given weights with the signs of the model's: the inverse of `unsigned_weights`."""
    return np.where(model.tree_weights < 0.0, -weights, weights)


def refitted(model: Ensemble, values: FloatArray) -> Ensemble:
    """The model with other leaf values, given as `TreeOutputs` has them: negated where a tree's weight is negative."""
    signs = np.where(model.tree_weights < 0.0, -1.0, 1.0)
    return model.replace(leaf_value=values * np.repeat(signs, np.diff(model.leaf_offsets)))


def code_type(model: Ensemble) -> np.dtype[Any]:
    """The smallest unsigned integer type that can number the leaves of every tree."""
    return np.min_scalar_type(max(int(np.diff(model.leaf_offsets).max(initial=1)) - 1, 0))


def needed_bytes(model: Ensemble | AdditiveModel, n_docs: int) -> int:
    """Bytes that pruning `model` takes with `n_docs` documents, those of training and validation together.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)] * 1000)
    >>> f"{needed_bytes(model, 1_000_000) / 1e9:.2f} GB"
    '1.06 GB'
    """
    if isinstance(model, AdditiveModel):  # at worst all predictions differ
        return n_docs * (model.n_members * 12 + BYTES_PER_DOCUMENT)
    return n_docs * (model.n_trees * code_type(model).itemsize + BYTES_PER_DOCUMENT)


def check_fits(model: Ensemble | AdditiveModel, parts: Sequence[Dataset], max_memory: int | None = None) -> None:
    """Refuse data that is too large for the memory, and say how many queries of each data set would fit."""
    room = available_memory() if max_memory is None else max_memory
    n_docs = sum(part.n_docs for part in parts)
    needed = needed_bytes(model, n_docs)
    if room is not None and needed > room:
        fitting = int(0.9 * room / needed * sum(part.n_queries for part in parts))
        for n_others, part in enumerate(sorted(parts, key=lambda part: part.n_queries)):
            of_each = fitting // (len(parts) - n_others)
            if of_each <= part.n_queries:
                break
            fitting -= part.n_queries  # a data set smaller than its share is taken whole
        raise RankwoodError(
            f"the leaves that {n_docs:,} documents reach in {model.n_trees:,} trees need {_in_words(needed)} "
            f"and {_in_words(room)} are to be had: take a sample of queries with max_queries={max(of_each, 1)}, "
            "or set max_memory"
        )


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes:,} bytes"


def sample_queries(data: Dataset, max_queries: int | None, *, seed: int = 0, group: Group = ALONE) -> Dataset:
    """At most `max_queries` queries, drawn at random; `data` itself when it has no more, or when that is None.

    Where `group` has the data together, these are the queries of this process among those drawn of all.
    """
    share = Share.of(data, group)
    if max_queries is None or share.n_queries <= max_queries:
        return data
    drawn = np.random.default_rng(seed).choice(share.n_queries, max_queries, replace=False)
    return share.own(data, np.sort(drawn))
