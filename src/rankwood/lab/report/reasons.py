"""Explanations of a report: what features add to the scores of documents that it shows, and of a sample of all.

All are exact SHAP values, from one call of `explain` per model. Queries, documents and features are bounded, so that
the page stays small and making it stays quick.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.coding import value_in_words
from rankwood.explaining.contributions import Explanation, explain
from rankwood.lab.report.facts import Effects, Extreme, Pair, Reasons, ReportFacts, spread_out

if TYPE_CHECKING:
    from rankwood.dtypes import AnyArray, FeatureMatrix, FloatArray, IndexArray
    from rankwood.model.ensemble import Ensemble

MOST_QUERIES = 40  # of all pairs
MOST_RANKED = 6  # first documents of either model
MOST_FEATURES = 8  # of a query; the others are added up
MOST_SAMPLED = 1000  # documents that features are weighed on
WORK = 100_000_000  # documents times leaves, about half a second on one thread
FEWEST = 60  # documents, however large the model


@dataclass(frozen=True)
class Explained:
    """A model of a report, and the data in the order of its features.

    Parameters
    ----------
    model : Ensemble
        The model.
    X : matrix
        Its features of all documents.
    columns : array of int
        Column of the data, by feature of the model.
    """

    model: Ensemble
    X: FeatureMatrix
    columns: IndexArray


def with_reasons(
    facts: ReportFacts,
    models: Sequence[Explained],
    first: Sequence[int] | None,
    *,
    n_threads: int | None = None,
    on_model: Callable[[str], None] = lambda name: None,
) -> ReportFacts:
    """The facts with explanations of models, and of documents of the queries that pairs differ on most.

    Parameters
    ----------
    facts : ReportFacts
        What is known without.
    models : sequence of Explained
        The models, in the order of the facts.
    first : sequence of int, or None
        The two models that are compared first: their queries are explained before those of other pairs.
    n_threads : int, optional
        Every CPU is used unless given.
    on_model : callable
        Called with the name of each model that is done.
    """
    room = max(FEWEST, min(MOST_QUERIES * 2 * MOST_RANKED, WORK // max(1, *(one.model.n_leaves for one in models))))
    chosen, wanted = _chosen(facts, first, room)
    found, described = [], []
    for number, (one, of_model) in enumerate(zip(models, facts.models, strict=True)):
        n_docs = len(one.X)
        n_sampled = min(n_docs, max(FEWEST, min(MOST_SAMPLED, WORK // max(1, one.model.n_leaves))))
        sample = spread_out(n_docs, n_sampled)
        rows = np.union1d(sample, sorted(wanted[number])).astype(np.int64)
        knows = one.model.leaf_cover is not None
        explanation = explain(one.model, one.X[rows], data=None if knows else one.X, n_threads=n_threads)
        found.append(_Of(one, explanation, rows))
        effects = found[-1].effects(sample, len(facts.features), knows=knows)
        described.append(replace(of_model, effects=effects))
        on_model(of_model.name)
    pairs = [_pair(pair, chosen, found) for pair in facts.pairs]
    return replace(facts, models=described, pairs=pairs)


_Key = tuple[int, int, str, str]  # first and second model, measure, query


def _chosen(facts: ReportFacts, first: Sequence[int] | None, room: int) -> tuple[set[_Key], list[set[int]]]:
    """Which queries of which pairs are explained, and the documents that this takes of every model."""
    chosen, wanted = set[_Key](), [set[int]() for _ in facts.models]
    for pair, extreme in itertools.islice(_in_turn(facts, first), MOST_QUERIES):
        rows = {one.row for one in _documents(extreme)}
        joined = [wanted[number] | rows for number in (pair.first, pair.second)]
        if any(len(of_model) > room for of_model in joined):
            break
        chosen.add((pair.first, pair.second, pair.measure, extreme.query))
        wanted[pair.first], wanted[pair.second] = joined
    return chosen, wanted


def _in_turn(facts: ReportFacts, first: Sequence[int] | None) -> Iterator[tuple[Pair, Extreme]]:
    """Queries of pairs: those that are seen first, then the first of every pair, the second of every pair, ..."""
    seen = [
        pair
        for pair in facts.pairs
        if first is not None and {pair.first, pair.second} == set(first) and pair.measure == facts.measures[0]
    ]
    others = [pair for pair in facts.pairs if pair not in seen]
    for pairs in (seen, others):
        lists = [[(pair, one) for one in _alternately(pair)] for pair in pairs]
        for of_all in itertools.zip_longest(*lists):
            yield from (one for one in of_all if one is not None)


def _alternately(pair: Pair) -> Iterator[Extreme]:
    for of_both in itertools.zip_longest(pair.worst, pair.best):
        yield from (one for one in of_both if one is not None)


def _documents(extreme: Extreme) -> list[Any]:
    return [one for one in extreme.documents if min(one.first_rank, one.second_rank) <= MOST_RANKED]


def _pair(pair: Pair, chosen: set[_Key], found: Sequence[_Of]) -> Pair:
    def told(extreme: Extreme) -> Extreme:
        if (pair.first, pair.second, pair.measure, extreme.query) not in chosen:
            return extreme
        return replace(extreme, reasons=_reasons(extreme, found[pair.first], found[pair.second]))

    return replace(pair, worst=[told(one) for one in pair.worst], best=[told(one) for one in pair.best])


def _reasons(extreme: Extreme, first: _Of, second: _Of) -> Reasons:
    """What features add to the scores of a query's documents by two models."""
    documents = _documents(extreme)
    rows = np.array([one.row for one in documents], dtype=np.int64)
    parts = [one.contributions(rows) for one in (first, second)]  # by column of the data
    spread = [np.ptp(part, axis=0) / (np.ptp(part, axis=0).sum() or 1.0) for part in parts]
    order = np.argsort(-(spread[0] + spread[1]), kind="stable")[:MOST_FEATURES]
    features = [int(column) for column in order if max(spread[0][column], spread[1][column]) > 0.0]
    return Reasons(
        documents=[extreme.documents.index(one) for one in documents],
        features=features,
        values=[
            [second.words(row, column) or first.words(row, column) for row in rows.tolist()] for column in features
        ],
        first=_with_others(parts[0], features),
        second=_with_others(parts[1], features),
    )


def _with_others(parts: FloatArray, features: Sequence[int]) -> list[list[float]]:
    """Contributions of some features, and of all others together, a list of documents each."""
    shown = [parts[:, column] for column in features]
    return [one.tolist() for one in (*shown, parts.sum(axis=1) - sum(shown, np.zeros(len(parts))))]


@dataclass(frozen=True)
class _Of:
    """What is known of one model: contributions to some rows of the data."""

    explained: Explained
    found: Explanation
    rows: IndexArray

    def contributions(self, rows: IndexArray) -> FloatArray:
        """Contributions to the scores of rows, by column of the data."""
        columns = self.explained.columns
        parts = np.zeros((len(rows), int(columns.max(initial=-1)) + 1))
        parts[:, columns] = self.found.values[np.searchsorted(self.rows, rows)]
        return parts

    def words(self, row: int, column: int) -> str:
        """A value of the data as people read it; empty for a column that the model does not have."""
        places = np.flatnonzero(self.explained.columns == column)
        if not len(places):
            return ""
        feature, coding = int(places[0]), self.explained.model.coding
        value = float(self.explained.X[row, feature])
        known = () if coding is None else coding.by_feature().get(feature, ())
        return "missing" if np.isnan(value) else value_in_words(value, known)

    def effects(self, sample: AnyArray, n_columns: int, *, knows: bool) -> Effects:
        """Mean size of contributions in a sample, as shares."""
        sizes = np.abs(self.found.values[np.searchsorted(self.rows, sample)]).mean(axis=0)
        means = np.zeros(n_columns)
        means[self.explained.columns] = sizes
        total = float(means.sum())
        return Effects((means / (total or 1.0)).tolist(), total, len(sample), knows)
