"""Scores of a data set as the ensemble grows, and the measures on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.data.trec import docnos
from rankwood.dtypes import AnyArray, FloatArray, IndexArray, OffsetArray
from rankwood.ensemble import Ensemble
from rankwood.errors import MeasureError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.evaluation.per_query import mean, per_query
from rankwood.learners.callbacks import Result
from rankwood.trees.build import SMALL
from rankwood.trees.tree import GrownTree

# A user's own measure: (labels, scores, offsets of queries) -> value, the higher the better; or -> (name, value,
# whether higher is better), as LightGBM's are.
CustomMeasure: TypeAlias = Callable[[FloatArray, FloatArray, OffsetArray], "float | tuple[str, float, bool]"]


@dataclass(frozen=True)
class Measures:
    """The measures to watch, in the order given, under one convention."""

    measures: Sequence[str | Measure | CustomMeasure]
    convention: str | Convention
    named: list[Measure] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parsed = [m if callable(m) else parse_measure(m) for m in self.measures]
        names = [_name(measure) for measure in parsed]
        for name in names:
            if names.count(name) > 1:
                raise MeasureError(
                    f"two measures have the name {name}: give each measure once, each function a name of its own"
                )
        object.__setattr__(self, "measures", parsed)
        object.__setattr__(self, "convention", Convention.get(self.convention))
        object.__setattr__(self, "named", [measure for measure in parsed if isinstance(measure, Measure)])


class ScoredData:
    """One data set, and the score of every document, query by query."""

    def __init__(self, data: Dataset, order: IndexArray | None, scores: FloatArray, *, n_threads: int) -> None:
        self.data, self.order = data, order
        self.scores: FloatArray = np.ascontiguousarray(self._by_query(scores), dtype=np.float64)
        self.labels: FloatArray = self._by_query(data.y)
        self.n_threads = 1 if data.n_docs < SMALL else n_threads

    def _by_query(self, values: AnyArray) -> AnyArray:
        return values if self.order is None else values[self.order]

    @cached_property
    def doc_ids(self) -> AnyArray:
        return self._by_query(np.array(docnos(self.data), dtype=object))

    def results(self, name: str, measures: Measures) -> list[Result]:
        """The measures on the present scores, under the name of the data set."""
        data = self.data
        values = iter(
            per_query(
                measures.named,
                self.labels,
                self.scores,
                data.offsets,
                convention=measures.convention,
                doc_ids=self.doc_ids if Convention.get(measures.convention).ties == "docno" else None,
                n_threads=self.n_threads,
            )
            if measures.named
            else ()
        )
        found = []
        for measure in measures.measures:
            if isinstance(measure, Measure):
                result = Result(name, str(measure), mean(next(values), data.query_weights), True)
            else:
                result = self._custom(name, measure)
            if not math.isfinite(result.metric_value):
                raise MeasureError(
                    f"{result.metric_name} on the data set {name!r} is {result.metric_value}: "
                    "training cannot go by it; is every query left out of the mean?"
                )
            found.append(result)
        return found

    def _custom(self, data_name: str, measure: Any) -> Result:
        labels, scores = self.labels.view(), self.scores.view()
        labels.flags.writeable = scores.flags.writeable = False
        answer = measure(labels, scores, self.data.offsets)
        try:
            name, value, higher_is_better = answer if isinstance(answer, tuple) else (_name(measure), answer, True)
            return Result(data_name, str(name), float(value), bool(higher_is_better))
        except (TypeError, ValueError):
            raise MeasureError(
                f"the measure {_name(measure)} must return a number or (name, number, whether higher is better), "
                f"got {answer!r:.80}"
            ) from None


class Watched(ScoredData):
    """A data set in bins, scored by boosted trees."""

    def __init__(self, binned: BinnedDataset, scores: FloatArray, *, n_threads: int) -> None:
        super().__init__(binned.data, binned.rows, scores, n_threads=n_threads)
        self.binned = binned

    @classmethod
    def start(cls, binned: BinnedDataset, model: Ensemble, *, n_threads: int) -> Watched:
        """With the scores of a model to go on from."""
        return cls(binned, model.score(binned.data.X, n_threads=n_threads), n_threads=n_threads)

    def add(self, grown: GrownTree, weight: float, leaf_of_row: NDArray[np.uint16] | None = None) -> None:
        """Add a tree's contribution. The same additions in the same order as a model's score."""
        if leaf_of_row is None:
            leaf_of_row = grown.leaves_of(self.binned, n_threads=self.n_threads)
        _native.add_leaf_values(leaf_of_row, grown.tree.leaf_value, weight, self.scores, self.n_threads)


def _name(measure: Any) -> str:
    return str(measure) if isinstance(measure, Measure) else getattr(measure, "__name__", type(measure).__name__)
