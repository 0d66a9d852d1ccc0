"""The measure that counts, bound to the queries of a data set, of the scores that weighted trees add up to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rankwood import _native
from rankwood.dtypes import OFFSET, WEIGHT, AnyArray, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError
from rankwood.evaluation.evaluator import Evaluator
from rankwood.evaluation.measures import MeasureFunction
from rankwood.evaluation.per_query import resolve, tie_breaking
from rankwood.exact import exact_sum
from rankwood.fitting.outputs import TreeOutputs
from rankwood.group import Group
from rankwood.model.additive import AdditiveModel
from rankwood.model.ensemble import Ensemble

ExactScores: TypeAlias = tuple[FloatArray, FloatArray]  # scores and their rests, of `TreeOutputs.exact_scores`


class MeasuredQueries:
    """The measure that counts, bound to the queries of a data set, also as the weight of one tree moves.

    Parameters
    ----------
    evaluator : Evaluator
        One measure bound to the data, with `by_query=True`: documents stand query by query, as in `TreeOutputs`. Its
        group has the other queries: qualities are those of all.

    Attributes
    ----------
    measure : Measure
        The measure that counts.
    labels : array of shape (n_docs,)
        Label of every document.
    offsets : array of shape (n_queries + 1,)
        Where the documents of each query start.
    query_weights, document_weights : array or None
        Weights of queries and of documents, if the data has any.
    n_queries : int
        Number of queries of all processes.

    Examples
    --------
    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], qid=["a", "b", "a"])
    >>> queries = MeasuredQueries(Evaluator(data, "RR", by_query=True))
    >>> queries.values(np.array([0.9, 0.1, 0.3])).tolist()  # the first two are rows 0 and 2 (a), the third is row 1 (b)
    [0.5, 1.0]
    """

    def __init__(self, evaluator: Evaluator) -> None:
        assert evaluator.by_query, "scores of trees stand query by query"
        self.evaluator, data = evaluator, evaluator.data
        (self.measure,), self.n_threads = evaluator.measures, evaluator.n_threads
        self.labels: FloatArray = self.evaluator.labels
        self.offsets: OffsetArray = data.offsets
        self.query_weights: FloatArray | None = data.query_weights
        self.document_weights: FloatArray | None = None
        if data.weights is not None:
            self.document_weights = self.evaluator.in_order(data.weights)
        self.group: Group = evaluator.group
        self.n_queries = self.group.total(data.n_queries)
        values = self.values(np.zeros(len(self.labels)))  # also refuses labels that the measure cannot take
        weights = np.ones(len(values)) if self.query_weights is None else self.query_weights
        self.total = float(exact_sum(weights[~np.isnan(values)], self.group))
        if not self.total > 0.0:
            raise DataError(f"{self.measure} counts no query of the data: there is nothing to go by")
        self._lines: _native.LineMeasure | FunctionLines
        if isinstance(self.measure, MeasureFunction):
            self._lines = FunctionLines(self.measure, self.labels, self.offsets)
            return
        convention = self.evaluator.convention
        ties, ids = tie_breaking(convention, self.evaluator.doc_ids, len(self.labels))
        self._lines = _native.LineMeasure(
            resolve(self.measure, convention),
            self.labels,
            np.ascontiguousarray(self.offsets, OFFSET),
            None if self.query_weights is None else np.ascontiguousarray(self.query_weights, WEIGHT),
            ties,
            ids,
            convention.float32_scores,
        )
        self._unit = self._units_of(self._lines)

    def _units_of(self, lines: _native.LineMeasure) -> float:
        """Have sums over queries be whole numbers of units, which do not depend on who adds up which queries.

        A unit is 2^-40 of what a query may add at most; coarser with more than 2^22 queries, whose sum would overflow.
        """
        mantissa, exponent = math.frexp(float(self.group.max(np.array([lines.bound()]))[0]))
        exponent -= mantissa == 0.5  # the bound is at most 2^exponent
        shift = min(40, 62 - self.n_queries.bit_length()) - max(exponent, -900)
        lines.set_scale(2.0**shift)
        return 2.0**-shift

    def values(self, scores: FloatArray) -> FloatArray:
        """The measure of every query; NaN for a query that the convention leaves out."""
        found: FloatArray = self.evaluator.values(scores)[0]
        return found

    def quality(self, scores: FloatArray) -> float:
        """Mean of the measure over queries, weighted by query weights if the data has any."""
        return float(self.evaluator.means(scores)[0])

    def along(
        self, outputs: TreeOutputs, scores: FloatArray, trees: IndexArray, deltas: FloatArray
    ) -> tuple[FloatArray, float]:
        """Quality as the weight of one tree at a time changes by each of some deltas.

        Parameters
        ----------
        outputs : TreeOutputs
            Outputs of the trees.
        scores : array of shape (n_docs,)
            Scores before the change.
        trees : array of shape (n_moved,)
            Trees whose weights change, one at a time.
        deltas : array of shape (n_moved, n_tried)
            Changes to try for each of them.

        Returns
        -------
        qualities : array of shape (n_moved, n_tried)
            Quality after each change: document d scores `scores[d] + delta * outputs.output(tree)[d]`, in float64.
        standing : float
            Quality, computed likewise, when nothing changes.

        Notes
        -----
        Values of queries are added up as whole numbers of a small unit (of a measure that is a function: exactly) and
        divided by the sum of their weights, so results do not depend on threads, nor on who has which queries.
        """
        self._lines.set_scores(scores, None, self.n_threads)
        return self._follow(outputs, trees, deltas, None)

    def reweighed(
        self, outputs: TreeOutputs, weights: FloatArray, exact: ExactScores, trees: IndexArray, tried: FloatArray
    ) -> tuple[FloatArray, float]:
        """Quality with one tree at a time given each of some other weights.

        Like `along`, but the tree is first taken out of the exact sums: document d scores the sum of the base and of
        all other trees, rounded once, plus the new weight times the tree's output. So documents that only this tree
        tells apart are exact ties without it.

        Parameters
        ----------
        outputs : TreeOutputs
            Outputs of the trees.
        weights : array of shape (n_trees,)
            Present weights.
        exact : tuple of two arrays of shape (n_docs,)
            `outputs.exact_scores(weights)`.
        trees : array of shape (n_moved,)
            Trees that are given other weights, one at a time.
        tried : array of shape (n_moved, n_tried)
            Weights to try for each of them.
        """
        self._lines.set_scores(*exact, self.n_threads)
        return self._follow(outputs, trees, tried, np.ascontiguousarray(weights, WEIGHT))

    def _follow(
        self, outputs: TreeOutputs, trees: IndexArray, tried: FloatArray, weights: FloatArray | None
    ) -> tuple[FloatArray, float]:
        lines, numbers, tried = self._lines, np.ascontiguousarray(trees, OFFSET), np.ascontiguousarray(tried, WEIGHT)
        if isinstance(lines, FunctionLines):
            found = [self.evaluator.mean(rows) for rows in lines.values(*outputs.arrays, numbers, tried, weights)]
            return np.array(found).reshape(tried.shape), float(self.evaluator.mean(lines.standing()))
        sums: IndexArray = np.empty(tried.size + 1, np.int64)
        lines.sums(*outputs.arrays, numbers, tried, weights, self.n_threads, sums[:-1].reshape(tried.shape))
        sums[-1] = lines.standing()
        means = self.group.sum(sums) * self._unit / self.total
        return means[:-1].reshape(tried.shape), float(means[-1])


class FunctionLines:
    """What `_native.LineMeasure` does, for a measure that is a function: it is called for every weight tried."""

    def __init__(self, measure: MeasureFunction, labels: FloatArray, offsets: OffsetArray) -> None:
        self._measure, self._labels, self._offsets = measure, labels, offsets

    def set_scores(self, scores: FloatArray, rests: FloatArray | None, n_threads: int) -> None:
        """Scores of all documents, and what was rounded away when they were added up."""
        self._scores, self._rests = scores, np.zeros(1) if rests is None else rests

    def standing(self) -> FloatArray:
        """Values of all queries, of the scores that were set."""
        return self._values(self._scores)

    def values(
        self,
        codes: AnyArray,
        values: FloatArray,
        leaf_offsets: OffsetArray,
        trees: IndexArray,
        tried: FloatArray,
        weights: FloatArray | None,
    ) -> Iterator[FloatArray]:
        """Values of all queries as one tree at a time is given other weights, or moved by deltas: a row for each."""
        for tree, of_tree in zip(trees, tried, strict=True):
            output = values[leaf_offsets[tree] :][codes[tree]]
            others = self._scores if weights is None else self._without(weights[tree] * output)
            yield np.array([self._values(others + weight * output) for weight in of_tree])

    def _without(self, part: FloatArray) -> FloatArray:
        """The scores less a part of them, from the exact sums: rounded once."""
        difference = self._scores - part
        low = difference - self._scores
        lost = (self._scores - (difference - low)) - (part + low)
        return difference + (lost + self._rests)

    def _values(self, scores: FloatArray) -> FloatArray:
        return self._measure.values(self._labels, scores, self._offsets)


@dataclass(frozen=True)
class Part:
    """Training or validation data as pruning sees it: outputs of all trees, and the queries that they rank.

    Parameters
    ----------
    outputs : TreeOutputs
        Outputs of the model's trees for the documents.
    queries : MeasuredQueries
        The measure that counts, bound to the same documents.
    """

    outputs: TreeOutputs
    queries: MeasuredQueries

    @classmethod
    def of(cls, model: Ensemble | AdditiveModel, evaluator: Evaluator, *, max_memory: int | None = None) -> Part:
        """Outputs of `model` on the data of `evaluator`, which has one measure and `by_query=True`."""
        threads, group = evaluator.n_threads, evaluator.group
        outputs = TreeOutputs.of(model, evaluator.data, max_memory=max_memory, n_threads=threads, group=group)
        return cls(outputs, MeasuredQueries(evaluator))

    def quality(self, weights: FloatArray) -> float:
        """Mean of the measure over queries when the trees have these weights."""
        return self.queries.quality(self.outputs.scores(weights))

    def with_values(self, values: FloatArray) -> Part:
        """The same data with other leaf values."""
        return Part(self.outputs.with_values(values), self.queries)
