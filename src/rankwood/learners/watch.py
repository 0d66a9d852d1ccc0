"""Scores of a data set as the ensemble grows, and the measures on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray, OffsetArray
from rankwood.ensemble import Ensemble
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.per_query import mean, per_query
from rankwood.learners.callbacks import Result
from rankwood.trees.build import SMALL
from rankwood.trees.tree import GrownTree

# A user's own measure: (labels, scores, offsets of queries) -> value, the higher the better.
CustomMeasure = Callable[[FloatArray, FloatArray, OffsetArray], float]


class Measures:
    """The measures to watch, under one convention."""

    def __init__(self, measures: Sequence[str | Measure | CustomMeasure], convention: str | Convention) -> None:
        self.convention = Convention.get(convention)
        self.named = [parse_measure(m) for m in measures if isinstance(m, (str, Measure))]
        self.custom: list[Any] = [m for m in measures if not isinstance(m, (str, Measure))]


class Watched:
    """One data set: its bins, and the score of every document, query by query."""

    def __init__(self, name: str, binned: BinnedDataset, scores: FloatArray, *, n_threads: int) -> None:
        self.name, self.binned = name, binned
        self.scores: FloatArray = np.ascontiguousarray(binned.by_query(scores), dtype=np.float64)
        self.labels: FloatArray = binned.by_query(binned.data.y)
        doc_ids = binned.data.doc_ids
        self.doc_ids = None if doc_ids is None else binned.by_query(doc_ids)
        self.n_threads = 1 if binned.n_docs < SMALL else n_threads

    @classmethod
    def start(cls, name: str, binned: BinnedDataset, model: Ensemble, *, n_threads: int) -> Watched:
        """With the scores of a model to go on from."""
        return cls(name, binned, model.score(binned.data.X, n_threads=n_threads), n_threads=n_threads)

    def add(self, grown: GrownTree, weight: float, leaf_of_row: NDArray[np.uint16] | None = None) -> None:
        """Add a tree's contribution. The same additions in the same order as a model's score."""
        if leaf_of_row is None:
            leaf_of_row = grown.leaves_of(self.binned, n_threads=self.n_threads)
        _native.add_leaf_values(leaf_of_row, grown.tree.leaf_value, weight, self.scores, self.n_threads)

    def results(self, measures: Measures) -> list[Result]:
        """The measures on the present scores."""
        offsets, data = self.binned.data.offsets, self.binned.data
        found: list[Result] = []
        if measures.named:
            values = per_query(
                measures.named,
                self.labels,
                self.scores,
                offsets,
                convention=measures.convention,
                doc_ids=self.doc_ids,
                n_threads=self.n_threads,
            )
            for measure, row in zip(measures.named, values, strict=True):
                found.append((self.name, str(measure), mean(row, data.query_weights), True))
        for custom in measures.custom:
            name = getattr(custom, "__name__", type(custom).__name__)
            found.append((self.name, name, float(custom(self.labels, self.scores, offsets)), True))
        return found
