"""Measures the slow and obvious way: one query, Python lists, every order of tied documents written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import Measure


def measure_of_query(
    measure: Measure, convention: Convention, labels: list[float], scores: list[float], doc_ids: list[str] | None = None
) -> float:
    if convention.float32_scores:
        with np.errstate(over="ignore"):
            scores = [float(np.float32(score)) for score in scores]
    values = [_of_ranking(measure, convention, labels, order) for order in _orders(convention, scores, doc_ids)]
    return sum(values) / len(values)


def _orders(convention: Convention, scores: list[float], doc_ids: list[str] | None) -> Iterator[list[int]]:
    docs = list(range(len(scores)))
    if convention.ties == "docno" and doc_ids is not None:
        docs.sort(key=lambda doc: doc_ids[doc].encode(), reverse=True)  # stable, also in reverse
    ranking = sorted(docs, key=lambda doc: -scores[doc])
    if convention.ties != "average":
        yield ranking
        return
    runs = [list(run) for _, run in itertools.groupby(ranking, key=lambda doc: scores[doc])]
    for permuted in itertools.product(*(itertools.permutations(run) for run in runs)):
        yield [doc for run in permuted for doc in run]


def _of_ranking(measure: Measure, convention: Convention, labels: list[float], ranking: list[int]) -> float:
    ranked = [labels[doc] for doc in ranking]
    n, k = len(ranked), measure.cutoff or len(ranked)
    empty = convention.empty if measure.empty is None else measure.empty
    if empty == "skip":
        empty = math.nan
    elif measure.name not in ("nDCG", "AP", "R"):
        empty = 0.0

    if measure.name in ("nDCG", "DCG"):
        ideal = dcg(measure, convention, sorted(labels, key=lambda y: -_gain(measure, convention, y)), k)
        if ideal == 0:
            return float(empty)
        if convention.short_lists == "zero" and n < k:
            return 0.0
        found = dcg(measure, convention, ranked, k)
        return found / ideal if measure.name == "nDCG" else found
    if measure.name == "ERR":
        grade = convention.max_grade if measure.max_grade is None else measure.max_grade
        stops = [(2 ** max(y, 0) - 1) / 2**grade for y in ranked]
        if not any(stops):
            return float(empty)
        return sum(stop * math.prod(1 - s for s in stops[:r]) / (r + 1) for r, stop in enumerate(stops[:k]))

    rel = convention.relevant if measure.rel is None else measure.rel
    hits = [y >= rel for y in ranked]
    n_relevant = sum(hits)
    if n_relevant == 0:
        return float(empty)
    if measure.name == "AP":
        precisions = [sum(hits[: r + 1]) / (r + 1) for r in range(min(k, n)) if hits[r]]
        return sum(precisions) / (min(n_relevant, k) if convention.ap_divisor == "min(R,k)" else n_relevant)
    if measure.name == "RR":
        return next((1 / (r + 1) for r in range(min(k, n)) if hits[r]), 0.0)
    if measure.name == "P":
        return sum(hits[:k]) / (min(k, n) if convention.p_divisor == "min(k,n)" else k)
    if measure.name == "R":
        return sum(hits[:k]) / n_relevant
    assert measure.name == "RBP"
    return (1 - measure.p) * sum(measure.p**r for r in range(min(k, n)) if hits[r])


def _gain(measure: Measure, convention: Convention, label: float) -> float:
    if label < 0:
        return 0.0
    if measure.gains is not None:
        return measure.gains[int(label)]
    exponential = measure.dcg.startswith("exp") if measure.dcg else convention.gain == "exp"
    return 2.0**label - 1.0 if exponential else label


def dcg(measure: Measure, convention: Convention, ranked: list[float], k: int) -> float:
    letor = measure.dcg == "exp-letor" if measure.dcg else convention.discount == "letor"
    total = 0.0
    for rank, label in enumerate(ranked[:k], start=1):
        discount = (1.0 if rank <= 2 else 1 / math.log2(rank)) if letor else 1 / math.log2(1 + rank)
        total += _gain(measure, convention, label) * discount
    return total
