"""Scores of data sets while an ensemble grows, and the measures on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import OFFSET, AnyArray, FloatArray, IndexArray, OffsetArray
from rankwood.errors import DataError, MeasureError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import Evaluator
from rankwood.evaluation.measures import Measure, parse_measure
from rankwood.exact import in_units
from rankwood.group import ALONE, Group
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import SETS, Tree
from rankwood.training.callbacks import Live, Result, Step
from rankwood.training.grow import SMALL, GrownTree, is_grown_on, regrown


class KeptLeaves:
    """Scores that trees can be taken out of again: the leaf of every document in every live tree is kept.

    `scores` are changed in place. A leaf takes one byte per document and tree, two for trees of more than 256 leaves.
    A score is the exact sum of what it was at the start and of its trees' values, rounded once: see kept_leaves.hpp.
    So it does not matter which trees came and went before, nor in what order. Documents that no tree tells apart have
    equal scores, and training that goes on from a checkpoint has the scores that it had. `group` are the processes that
    have the other documents of the data.
    """

    def __init__(self, scores: FloatArray, *, n_threads: int, group: Group = ALONE) -> None:
        self.scores, self.n_threads, self.group = scores, n_threads, group
        self.rests = np.zeros(len(scores))
        small = np.abs(scores) < 2.0**-28
        scores[small] = np.rint(scores[small] * 2.0**80) * 2.0**-80  # rounded as the values of leaves are
        self._start = scores.copy()
        self._kept: dict[int, tuple[AnyArray, FloatArray]] = {}

    def keep(self, number: int, tree: Tree, leaf_of_row: NDArray[np.uint16]) -> None:
        """Keep the leaves of a tree, which is not added yet."""
        n_leaves = len(tree.leaf_value)
        self._kept[number] = (leaf_of_row.astype(np.uint8) if n_leaves <= 256 else leaf_of_row, tree.leaf_value)

    def forget(self, numbers: Iterable[int]) -> None:
        """Free the leaves of trees that were removed."""
        for number in numbers:
            del self._kept[number]

    @property
    def trees(self) -> list[int]:
        """Numbers of the trees whose leaves are kept."""
        return list(self._kept)

    @property
    def n_bytes(self) -> int:
        """Memory of the leaves that are kept."""
        return sum(leaves.nbytes for leaves, _ in self._kept.values())

    def put_in(self, numbers: Iterable[int], live: Live) -> None:
        """Add trees to the scores, with their weights in `live`."""
        self._add({number: live[number] for number in numbers})

    def take_out(self, numbers: Iterable[int], live: Live) -> None:
        """Subtract trees from the scores, with their weights in `live`."""
        self._add({number: -live[number] for number in numbers})

    def settle(self, step: Step, live: Live) -> None:
        """Add the new tree of a step, and the trees that it dropped unless they were removed.

        `live` has the weights after the step.
        """
        if step.removed:
            self.forget(step.dropped)
        self.put_in([step.iteration, *(() if step.removed else step.dropped)], live)

    def values(self, numbers: Iterable[int]) -> dict[int, FloatArray]:
        """Values of the leaves of some trees."""
        return {number: self._kept[number][1] for number in numbers}

    def revalue(self, values: Mapping[int, FloatArray], live: Live) -> None:
        """Give the leaves of trees other values; `live` are the trees that are in the scores, with their weights."""
        for number, of_tree in values.items():
            self._kept[number] = self._kept[number][0], of_tree
        self.scores[:] = self._start
        self.rests[:] = 0.0
        self.put_in(live, live)

    def leaf_sums(self, numbers: Iterable[int], x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of `x` and of `y` over the documents in every leaf of some trees, tree after tree, of all processes.

        Sums are of whole numbers (`in_units`), so they do not depend on the order of documents, nor on who has which.
        """
        kept = [self._kept[number] for number in numbers]
        sums: IndexArray = np.empty((sum(len(values) for _, values in kept), 2), np.int64)
        parts = np.split(sums, np.cumsum([len(values) for _, values in kept])[:-1])
        (x_whole, x_unit), (y_whole, y_unit) = in_units([x, y], self.group)
        _native.sum_over_leaves([leaves for leaves, _ in kept], x_whole, y_whole, self.n_threads, parts)
        first, second = self.group.sum(sums).T * np.array([[x_unit], [y_unit]])
        return first, second

    def _add(self, weights: Live) -> None:
        if weights:
            leaves, values = zip(*(self._kept[number] for number in weights), strict=True)
            weighted = list(leaves), list(values), list(weights.values())
            _native.add_trees(*weighted, self.scores, self.rests, self.n_threads)


# A user's own measure: (labels, scores, offsets of queries) -> value, the higher the better; or -> (name, value,
# whether higher is better), as LightGBM's are.
CustomMeasure: TypeAlias = Callable[[FloatArray, FloatArray, OffsetArray], "float | tuple[str, float, bool]"]


@dataclass(frozen=True)
class Measures:
    """The measures to watch, in the order given, under one convention.

    Parameters
    ----------
    measures : sequence of str, Measure or callable
        Names and measures become Measure; functions of users stay as they are.
    convention : str or Convention
        How measures are computed where tools disagree.
    """

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
    """A data set with a score for every document; documents stand query by query.

    In a group of processes each has a share of the data; measures are those of the whole.
    """

    def __init__(self, data: Dataset, scores: FloatArray, *, n_threads: int, group: Group = ALONE) -> None:
        self.data, self.n_threads, self.group = data, 1 if data.n_docs < SMALL else n_threads, group
        by_query = scores if data.order is None else scores[data.order]
        self.scores: FloatArray = np.ascontiguousarray(by_query, dtype=np.float64)
        self._bound: dict[tuple[Measure, ...], Evaluator] = {}
        self._known: tuple[FloatArray, OffsetArray] | None = None

    def evaluator(self, measures: Measures) -> Evaluator:
        """The measures that are not functions of the user's, bound to this data set."""
        key = tuple(measures.named)
        if key not in self._bound:
            threads, convention = self.n_threads, measures.convention
            self._bound[key] = Evaluator(self.data, key, convention, by_query=True, n_threads=threads, group=self.group)
        return self._bound[key]

    def results(self, name: str, measures: Measures) -> list[Result]:
        """The measures of the present scores; `name` is that of the data set."""
        evaluator = self.evaluator(measures)
        means = iter(evaluator.means(self.scores) if measures.named else ())
        found = []
        for measure in measures.measures:
            if isinstance(measure, Measure):
                result = Result(name, str(measure), float(next(means)), True)
            else:
                result = self._custom(name, measure)
            if not math.isfinite(result.metric_value):
                raise MeasureError(
                    f"{result.metric_name} on the data set {name!r} is {result.metric_value}: "
                    "training cannot go by it; is every query left out of the mean?"
                )
            found.append(result)
        return found

    def _labels_and_offsets(self) -> tuple[FloatArray, OffsetArray]:
        """Labels of the documents of all processes, and where their queries start: asked for once."""
        if self._known is not None:
            return self._known
        y = self.data.y if self.data.order is None else self.data.y[self.data.order]
        sizes = np.concatenate(self.group.gather(np.diff(self.data.offsets)))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)
        self._known = y if self.group.size == 1 else np.concatenate(self.group.gather(y)), offsets
        return self._known

    def _custom(self, data_name: str, measure: Any) -> Result:
        """A measure of the user's own, which sees all documents; all go by what it gives the first process."""
        labels, offsets = self._labels_and_offsets()
        scores = self.scores if self.group.size == 1 else np.concatenate(self.group.gather(self.scores))
        labels, scores = labels.view(), scores.view()
        labels.flags.writeable = scores.flags.writeable = False
        answer = self.group.broadcast(measure(labels, scores, offsets))
        try:
            name, value, higher_is_better = answer if isinstance(answer, tuple) else (_name(measure), answer, True)
            return Result(data_name, str(name), float(value), bool(higher_is_better))
        except (TypeError, ValueError):
            raise MeasureError(
                f"the measure {_name(measure)} must return a number or (name, number, whether higher is better), "
                f"got {answer!r:.80}"
            ) from None


class Watched(ScoredData):
    """A data set in bins, with the scores of boosted trees."""

    def __init__(self, binned: BinnedDataset, scores: FloatArray, *, n_threads: int) -> None:
        super().__init__(binned.data, scores, n_threads=n_threads, group=binned.share.group)
        self.binned = binned

    @classmethod
    def start(cls, binned: BinnedDataset, model: Ensemble, *, n_threads: int) -> Watched:
        """The data set with the scores of a model to go on from.

        When its features were dropped, the model must begin with one whose scores are known, and its other trees must
        have been grown on these bins.
        """
        data = binned.data
        if model.n_trees and data.can_read_features:
            return cls(binned, data.per_row(lambda X: model.score(X, n_threads=n_threads)), n_threads=n_threads)
        n_known, scores = 0, np.full(data.n_docs, model.base)
        for known, its_scores in binned.known_scores:
            if n_known < known.n_trees and _begins_with(model, known):
                n_known, scores = known.n_trees, its_scores.copy()
        watched = cls(binned, scores, n_threads=n_threads)
        for number in range(n_known, model.n_trees):
            tree = model.tree(number)
            if not is_grown_on(tree, binned.edges):
                raise DataError(
                    f"tree {number} of the model to go on from splits where the bins of the data do not, and the "
                    "features were dropped: give the data with its features, or its files"
                )
            watched.add(regrown(tree, binned.edges), float(model.tree_weights[number]))
        return watched

    def add(self, grown: GrownTree, weight: float, leaf_of_row: NDArray[np.uint16] | None = None) -> None:
        """Add a tree to the scores: the same additions in the same order as when the model is scored."""
        if leaf_of_row is None:
            leaf_of_row = grown.leaves_of(self.binned, n_threads=self.n_threads)
        _native.add_leaf_values(leaf_of_row, grown.tree.leaf_value, weight, self.scores, self.n_threads)


def _begins_with(model: Ensemble, start: Ensemble) -> bool:
    """Whether the first trees of a model, and its base, are those of another."""
    if start.n_trees > model.n_trees or start.base != model.base:
        return False
    first = model.select(np.arange(start.n_trees))
    columns = ("feature", "threshold", "left", "right", "missing_left", "leaf_value", "tree_weights", *SETS)
    return all(np.array_equal(getattr(first, name), getattr(start, name)) for name in columns)


def _name(measure: Any) -> str:
    return str(measure) if isinstance(measure, Measure) else getattr(measure, "__name__", type(measure).__name__)
