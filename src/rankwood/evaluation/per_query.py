"""Values of measures for every query, and their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwood import _native
from rankwood.dtypes import LABEL, OFFSET, SCORE, WEIGHT, AnyArray, FloatArray
from rankwood.errors import DataError, MeasureError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import DCG_FORMS, NORMALISED, AnyMeasure, Measure, MeasureFunction, parse_measure
from rankwood.exact import exact_means
from rankwood.group import ALONE, Group
from rankwood.system import resolve_threads


def per_query(
    measures: AnyMeasure | Sequence[AnyMeasure],
    y: Any,
    scores: Any,
    offsets: Any,
    order: Any = None,
    *,
    convention: str | Convention = "rankwood",
    doc_ids: Any = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Values of measures for every query, measures x queries; NaN where a query is left out.

    Every query is ranked once, for all measures. Results are the same whatever `n_threads`.

    Parameters
    ----------
    measures : str, Measure or sequence of these
        What is computed.
    y : array-like of float
        Label of every row.
    scores : array-like of float
        Score of every row, float32 or float64; larger is better, infinities are fine, NaN is not.
    offsets : array-like of int
        Query q has the rows offsets[q] to offsets[q + 1], or those of `order` there.
    order : array-like of int, optional
        Rows query by query; documents count in that order.
    convention : str or Convention, default "rankwood"
        How measures are computed where tools disagree.
    doc_ids : array-like of str, optional
        Id of every row, for conventions that break ties by it; rows without ids are named as `write_run` names them.
    n_threads : int, optional
        Every CPU is used unless given.

    Examples
    --------
    >>> per_query(["nDCG@2", "RR"], y=[0, 1, 0, 0], scores=[0.3, 0.1, 0.5, 0.4], offsets=[0, 2, 4]).round(4)
    array([[0.6309, 0.    ],
           [0.5   , 0.    ]])
    """
    every = [parse_measure(m) for m in as_sequence(measures)]
    parsed = [measure for measure in every if isinstance(measure, Measure)]
    chosen = Convention.get(convention)
    labels = _numbers(y, "y", LABEL)
    scores = _scores(scores, chosen)
    offsets = _whole_numbers(offsets, "offsets")
    order = None if order is None else _whole_numbers(order, "order")
    if len(scores) != len(labels):
        raise DataError(f"scores has {len(scores)} entries for {len(labels)} rows")
    ties, docnos = tie_breaking(chosen, doc_ids, len(labels))
    out: FloatArray = np.empty((len(parsed), max(len(offsets) - 1, 0)), dtype=np.float64)
    specs = [resolve(measure, chosen) for measure in parsed]
    threads = resolve_threads(n_threads)
    try:
        failure = _native.per_query(specs, labels, scores, offsets, order, docnos, ties, threads, out)
    except ValueError as error:
        raise DataError(str(error)) from None
    if failure is not None:
        raise _error(failure, parsed, specs, labels, scores)
    if len(parsed) == len(every):
        return out
    rows, known = slice(None) if order is None else order, iter(out)
    by_query = labels[rows], np.asarray(scores[rows], SCORE), offsets
    return np.array([one.values(*by_query) if isinstance(one, MeasureFunction) else next(known) for one in every])


def as_sequence(measures: AnyMeasure | Sequence[AnyMeasure]) -> Sequence[AnyMeasure]:
    """One measure, or several, as a sequence."""
    alone = isinstance(measures, (str, Measure, MeasureFunction)) or callable(measures)
    return [measures] if alone else measures  # type: ignore[list-item,return-value]


def mean(values: Any, weights: Any = None, group: Group = ALONE) -> Any:
    """Mean over queries, the last axis of `values`; queries that are left out (NaN) do not count.

    Sums are exact, so the order of queries does not matter, nor which process has which.

    Parameters
    ----------
    values : array-like of float
        One row of values per measure, or a single row.
    weights : array-like of float, optional
        Weights of the queries.
    group : Group
        Processes that have other queries, which count as well.

    Returns
    -------
    float or array of float64
        One per row; NaN when no query counts.

    Examples
    --------
    >>> mean([1.0, float("nan"), 0.0])
    0.5
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        raise DataError("values must hold one number per query")
    if weights is not None:
        weights = _numbers(weights, "weights", WEIGHT)
        if weights.shape != array.shape[-1:]:
            raise DataError(f"weights has {len(weights)} entries for {array.shape[-1]} queries")
    rows = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    means = exact_means(rows, weights, group)
    return float(means[0]) if array.ndim == 1 else means.reshape(array.shape[:-1])


def resolve(measure: Measure, convention: Convention) -> _native.MeasureSpec:
    """The measure with everything spelled out that it leaves to the convention."""
    spec = _native.MeasureSpec()
    spec.kind = getattr(_native.MeasureKind, measure.name.upper())
    spec.cutoff = measure.cutoff or 0
    gain, discount = DCG_FORMS[measure.dcg] if measure.dcg else (convention.gain, convention.discount)
    if measure.name == "ERR":
        gain = "exp"
    spec.gain = getattr(_native.GainKind, "TABLE" if measure.gains else gain.upper())
    spec.gains = list(measure.gains or ())
    spec.discount = getattr(_native.DiscountKind, discount.upper())
    spec.relevant = convention.relevant if measure.rel is None else measure.rel
    spec.max_grade = convention.max_grade if measure.max_grade is None else measure.max_grade
    spec.persistence = 0.8 if measure.p is None else measure.p
    empty = convention.empty if measure.empty is None else measure.empty
    if empty == "skip":
        spec.empty = math.nan
    else:
        spec.empty = float(empty) if measure.name in NORMALISED else 0.0
    spec.short_counts_zero = convention.short_lists == "zero"
    spec.ap_at_most_cutoff = convention.ap_divisor == "min(R,k)"
    spec.precision_of_list = convention.p_divisor == "min(k,n)"
    return spec


def _numbers(values: Any, name: str, dtype: Any) -> AnyArray:
    try:
        array = np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers: {error}") from None
    if array.ndim != 1:
        raise DataError(f"{name} must have one dimension, got shape {array.shape}")
    return array


def _scores(values: Any, convention: Convention) -> AnyArray:
    given = np.asarray(values)
    single = convention.float32_scores or given.dtype in (np.float16, np.float32)
    with np.errstate(over="ignore"):  # beyond float32's range becomes infinity
        return _numbers(given, "scores", np.float32 if single else np.float64)


def _whole_numbers(values: Any, name: str) -> AnyArray:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{name} must hold whole numbers, got {array.dtype}")
    return _numbers(array, name, OFFSET)


def tie_breaking(convention: Convention, doc_ids: Any, n_rows: int) -> tuple[_native.Ties, AnyArray | None]:
    """The rule for ties, and the document ids as a matrix of code points, which sort as their UTF-8 bytes do."""
    if convention.ties == "average":
        return _native.Ties.AVERAGE, None
    if convention.ties == "order":
        return _native.Ties.ORDER, None
    if doc_ids is None:
        doc_ids = [f"d{row}" for row in range(n_rows)]
    ids = np.ascontiguousarray(doc_ids, dtype=np.str_)
    if ids.shape != (n_rows,):
        raise DataError(f"doc_ids must have one entry per row ({n_rows}), got shape {ids.shape}")
    width = ids.dtype.itemsize // 4
    return _native.Ties.DOCNO, ids.view(np.uint32).reshape(n_rows, width)


def _error(
    failure: tuple[str, int, int], measures: list[Measure], specs: list[Any], labels: FloatArray, scores: AnyArray
) -> DataError | MeasureError:
    problem, number, row = failure
    measure, spec, label = measures[number], specs[number], float(labels[row])
    if problem == "nan_score":
        return DataError(f"the score of row {row} is NaN: it cannot be ranked")
    if problem == "label_not_finite":
        return DataError(f"the label of row {row} is {label}: it must be a finite number")
    if problem == "above_max_grade":
        return MeasureError(
            f"{measure}: label {label:g} of row {row} is above the largest grade {spec.max_grade:g}; "
            f"write ERR(max_grade=...) with the largest label there can be"
        )
    if problem == "no_gain":
        return MeasureError(
            f"{measure}: label {label:g} of row {row} has no gain; "
            f"gains are given for the labels 0 to {len(spec.gains) - 1}"
        )
    linear = Measure(measure.name, measure.cutoff, dcg="log2")
    return MeasureError(
        f"{measure}: the gain of label {label:g} of row {row} is too large for a number; "
        f"use linear gain, {linear}, or a table of gains, {measure.name}(gains=(0, 1, 3, ...))"
    )
