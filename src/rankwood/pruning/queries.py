"""The queries of a data set with the measure that counts: what scores are worth, and what becomes of it along lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rankwood import _native
from rankwood.data.dataset import Dataset
from rankwood.data.trec import docnos
from rankwood.dtypes import OFFSET, WEIGHT, FloatArray, IndexArray, OffsetArray
from rankwood.ensemble import Ensemble
from rankwood.errors import DataError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.per_query import _ties, mean, per_query, resolve
from rankwood.pruning.outputs import TreeOutputs
from rankwood.threads import resolve_threads

ExactScores: TypeAlias = tuple[FloatArray, FloatArray]  # scores and their rests, of `TreeOutputs.exact_scores`


class Queries:
    """Labels, queries and a measure. Documents stand query by query, as in `TreeOutputs`.

    >>> import rankwood as rw
    >>> data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], qid=["a", "b", "a"])
    >>> queries = Queries(data, "RR")
    >>> queries.values(np.array([0.9, 0.1, 0.3])).tolist()  # of rows 0 and 2 (a), and 1 (b)
    [0.5, 1.0]
    """

    def __init__(
        self,
        data: Dataset,
        measure: str | Measure = "nDCG@10",
        *,
        convention: str | Convention = "rankwood",
        n_threads: int | None = None,
    ) -> None:
        self.measure, self.convention = parse_measure(measure), Convention.get(convention)
        self.n_threads = resolve_threads(n_threads)
        order = slice(None) if data.order is None else data.order
        self.labels: FloatArray = np.ascontiguousarray(data.y[order])
        self.offsets: OffsetArray = data.offsets
        self.query_weights: FloatArray | None = data.query_weights
        self.document_weights: FloatArray | None = None if data.weights is None else data.weights[order]
        by_id = self.convention.ties == "docno"
        self._doc_ids: Any = np.asarray(docnos(data))[order] if by_id else None
        values = self.values(np.zeros(len(self.labels)))  # also finds labels that the measure cannot take
        counted = ~np.isnan(values)
        weights = np.ones(len(values)) if self.query_weights is None else self.query_weights
        self.total = float(weights[counted].sum())
        if not self.total > 0.0:
            raise DataError(f"{self.measure} counts no query of the data: there is nothing to go by")
        ties, ids = _ties(self.convention, self._doc_ids, len(self.labels))
        self._lines = _native.LineMeasure(
            resolve(self.measure, self.convention),
            self.labels,
            np.ascontiguousarray(self.offsets, OFFSET),
            None if self.query_weights is None else np.ascontiguousarray(self.query_weights, WEIGHT),
            ties,
            ids,
            self.convention.float32_scores,
        )

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    def values(self, scores: FloatArray) -> FloatArray:
        """The measure of every query; NaN where a query is left out."""
        found: FloatArray = per_query(
            self.measure,
            self.labels,
            scores,
            self.offsets,
            convention=self.convention,
            doc_ids=self._doc_ids,
            n_threads=self.n_threads,
        )[0]
        return found

    def quality(self, scores: FloatArray) -> float:
        """Mean of the measure over queries, weighted by their weights if there are any."""
        return float(mean(self.values(scores), self.query_weights))

    def along(
        self, outputs: TreeOutputs, scores: FloatArray, trees: IndexArray, deltas: FloatArray
    ) -> tuple[FloatArray, float]:
        """Quality when the weight of one tree alone changes: for every tree of `trees`, each of its row of `deltas`.

        Document d then scores `scores[d] + delta * outputs.output(tree)[d]`, in float64, in that order. Values of
        queries are added from the first to the last and divided by the sum of their weights. Exact, and the same
        whatever the number of threads. The second result is the quality, computed likewise, when nothing changes.
        """
        self._lines.set_scores(scores, None, self.n_threads)
        return self._follow(outputs, trees, deltas, None)

    def reweighed(
        self, outputs: TreeOutputs, weights: FloatArray, exact: ExactScores, trees: IndexArray, tried: FloatArray
    ) -> tuple[FloatArray, float]:
        """Quality with other weights of one tree alone: for every tree of `trees`, each of its row of `tried`.

        `exact` is `outputs.exact_scores(weights)`. Document d then scores the exact sum of the base and of what all
        other trees contribute, rounded once, plus the new weight times the tree's output: documents that are equal
        without the tree are so here. All else is as in `along`.
        """
        self._lines.set_scores(*exact, self.n_threads)
        return self._follow(outputs, trees, tried, np.ascontiguousarray(weights, WEIGHT))

    def _follow(
        self, outputs: TreeOutputs, trees: IndexArray, tried: FloatArray, weights: FloatArray | None
    ) -> tuple[FloatArray, float]:
        found = np.empty(tried.shape)
        self._lines.sums(
            *outputs.arrays,
            np.ascontiguousarray(trees, OFFSET),
            np.ascontiguousarray(tried, WEIGHT),
            weights,
            self.n_threads,
            found,
        )
        found /= self.total
        return found, self._lines.standing() / self.total


@dataclass(frozen=True)
class Part:
    """Training or validation data as pruning sees it: outputs of trees, and the queries they are for."""

    outputs: TreeOutputs
    queries: Queries

    @classmethod
    def of(
        cls,
        model: Ensemble,
        data: Dataset,
        measure: str | Measure,
        convention: str | Convention,
        *,
        max_memory: int | None = None,
        n_threads: int | None = None,
    ) -> Part:
        return cls(
            TreeOutputs.of(model, data, max_memory=max_memory, n_threads=n_threads),
            Queries(data, measure, convention=convention, n_threads=n_threads),
        )

    def values(self, weights: FloatArray) -> FloatArray:
        """The measure of every query with these weights of trees."""
        return self.queries.values(self.outputs.scores(weights))

    def quality(self, weights: FloatArray) -> float:
        return self.queries.quality(self.outputs.scores(weights))

    def with_values(self, values: FloatArray) -> Part:
        """The same with other values of leaves."""
        return Part(self.outputs.with_values(values), self.queries)
