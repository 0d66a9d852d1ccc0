"""Two models query by query: who wins where, by how much, and whether that could be chance."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import AnyArray, FloatArray, IndexArray
from rankwood.errors import DataError
from rankwood.evaluation.evaluate import Evaluation, randomisation_p
from rankwood.evaluation.significance import holm
from rankwood.reporting.anatomy import spread_out
from rankwood.reporting.facts import Extreme, Pair

SHOWN_DIFFERENCES = 120_000  # of all pairs and measures: what keeps the page small
FEWEST_SHOWN, MOST_SHOWN = 60, 400  # of one pair
EXTREMES = 8  # worst and best queries of a pair; fewer when there are many pairs
RANKED = 10  # first documents whose labels are shown
TIE = 1e-12  # differences that are zero but for rounding


def compare_pairs(
    evaluations: Sequence[Evaluation],
    scores: Sequence[AnyArray],
    data: Dataset,
    measures: Sequence[str],
    *,
    n_threads: int | None = None,
    on_pair: Callable[[], None] = lambda: None,
) -> list[Pair]:
    """All pairs of models under all measures, the earlier model first."""
    numbers = list(itertools.combinations(range(len(evaluations)), 2))
    n_shown = min(MOST_SHOWN, max(FEWEST_SHOWN, SHOWN_DIFFERENCES // max(1, len(numbers) * len(measures))))
    n_extremes = EXTREMES if len(numbers) * len(measures) <= 100 else EXTREMES // 2
    queries = _QueryNotes(data, scores)
    pairs: list[Pair] = []
    for measure in measures:
        p_values: list[float | None] = []
        for first, second in numbers:
            p_values.append(_p_value(evaluations[first], evaluations[second], measure, n_threads))
            on_pair()
        adjusted = corrected(p_values)
        for (first, second), p, p_holm in zip(numbers, p_values, adjusted, strict=True):
            a, b = evaluations[first], evaluations[second]
            pairs.append(_pair(first, second, measure, a, b, (p, p_holm), queries, n_shown, n_extremes))
    return pairs


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of the p-values that there are.

    >>> corrected([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    known = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(known) for p in p_values]


def _p_value(a: Evaluation, b: Evaluation, measure: str, n_threads: int | None) -> float | None:
    try:
        return randomisation_p(a, b, measure, n_threads=n_threads)
    except DataError:  # fewer than two queries with a value
        return None


def _pair(
    first: int,
    second: int,
    measure: str,
    a: Evaluation,
    b: Evaluation,
    p_values: tuple[float | None, float | None],
    queries: _QueryNotes,
    n_shown: int,
    n_extremes: int,
) -> Pair:
    ours, theirs = a.per_query[measure], b.per_query[measure]
    counted = np.flatnonzero(~(np.isnan(ours) | np.isnan(theirs)))
    differences = theirs[counted] - ours[counted]
    differences[np.abs(differences) <= TIE] = 0.0
    order = np.argsort(differences, kind="stable")
    shown = order[spread_out(len(order), n_shown)]
    worst = [n for n in order[:n_extremes] if differences[n] < 0]
    best = [n for n in order[::-1][:n_extremes] if differences[n] > 0]

    def extremes(places: list[int]) -> list[Extreme]:
        return [queries.extreme(int(counted[n]), first, second, ours, theirs) for n in places]

    mean = b.means[measure] - a.means[measure]
    return Pair(
        first=first,
        second=second,
        measure=measure,
        wins=int(np.count_nonzero(differences > 0)),
        ties=int(np.count_nonzero(differences == 0)),
        losses=int(np.count_nonzero(differences < 0)),
        difference=float(mean) if len(counted) else None,
        p=p_values[0],
        p_holm=p_values[1],
        differences=differences[shown].tolist(),
        queries=[queries.name(int(q)) for q in counted[shown]],
        worst=extremes(worst),
        best=extremes(best),
    )


class _QueryNotes:
    """What is told of a query: its id, its labels, and how a model ranks them."""

    def __init__(self, data: Dataset, scores: Sequence[AnyArray]) -> None:
        self._data, self._scores = data, scores

    def name(self, query: int) -> str:
        return str(self._data.queries.ids[query])

    def extreme(self, query: int, first: int, second: int, ours: FloatArray, theirs: FloatArray) -> Extreme:
        rows = self._rows(query)
        labels, counts = np.unique(self._data.y[rows], return_counts=True)
        return Extreme(
            query=self.name(query),
            n_docs=len(rows),
            labels=", ".join(f"{n} × {label:g}" for label, n in zip(labels[::-1], counts[::-1], strict=True)),
            first=float(ours[query]),
            second=float(theirs[query]),
            first_ranking=self._ranking(rows, first),
            second_ranking=self._ranking(rows, second),
        )

    def _rows(self, query: int) -> IndexArray:
        places = np.arange(self._data.offsets[query], self._data.offsets[query + 1])
        return places if self._data.order is None else self._data.order[places]

    def _ranking(self, rows: IndexArray, model: int) -> str:
        best = np.argsort(-self._scores[model][rows], kind="stable")[:RANKED]
        return " ".join(f"{label:g}" for label in self._data.y[rows[best]])
