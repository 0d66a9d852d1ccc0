"""Measures: notation, known answers, the slow twin, errors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from oracles.measures import measure_of_query
from rankwood import Convention, DataError, Measure, MeasureError, RankwoodError, parse_measure
from rankwood._native import available_isas
from rankwood.evaluation.conventions import CONVENTIONS
from rankwood.evaluation.per_query import mean, per_query
from strategies.measures import ANY_SCORES, WHOLE_LABELS, rankings

pytestmark = pytest.mark.native


def value(measure, y, scores=None, **options):
    """The measure of one query; without scores the documents stand in rank order."""
    scores = -np.arange(len(y), dtype=float) if scores is None else scores
    return per_query(measure, y, scores, [0, len(y)], **options)[0, 0]


def test_long_queries_among_others_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    sizes = np.array([30, 20_000, 0, *rng.integers(1, 200, 300), 50_000, 16_384, 3])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y, scores = rng.integers(0, 5, offsets[-1]).astype(float), rng.normal(size=offsets[-1]).round(2)
    measures = [parse_measure(m) for m in ("nDCG@10", "AP", "nDCG")]
    one = per_query(measures, y, scores, offsets, n_threads=1)
    for n_threads in (2, 5):
        assert_array_equal(per_query(measures, y, scores, offsets, n_threads=n_threads), one)
    for q in (0, 1, 4, len(sizes) - 3, len(sizes) - 1):
        rows = slice(offsets[q], offsets[q + 1])
        assert_array_equal(one[:, q], per_query(measures, y[rows], scores[rows], [0, sizes[q]])[:, 0])


class TestNotation:
    @pytest.mark.parametrize(
        ("text", "measure"),
        [
            ("nDCG@10", Measure("nDCG", 10)),
            ("ndcg@10", Measure("nDCG", 10)),
            ("NDCG", Measure("nDCG")),
            ("ndcg_at_10", Measure("nDCG", 10)),
            ("ndcg_cut_10", Measure("nDCG", 10)),
            ("ndcg@10-", Measure("nDCG", 10, empty=0)),
            ("map-", Measure("AP", empty=0)),
            ("nDCG(dcg='exp-log2')@10", Measure("nDCG", 10, dcg="exp-log2")),
            ('nDCG(dcg="log2")@10', Measure("nDCG", 10, dcg="log2")),
            ("nDCG(gains=(0, 1, 3, 7, 15))@5", Measure("nDCG", 5, gains=(0, 1, 3, 7, 15))),
            ("nDCG(gains=[0,1.5])", Measure("nDCG", gains=(0, 1.5))),
            ("nDCG(gains={0: 0, 1: 5})@3", Measure("nDCG", 3, gains=(0, 5))),
            ("DCG@5", Measure("DCG", 5)),
            ("ERR@20", Measure("ERR", 20)),
            ("ERR(max_grade=4)", Measure("ERR", max_grade=4)),
            ("AP", Measure("AP")),
            ("MAP@5", Measure("AP", 5)),
            ("mean_average_precision", Measure("AP")),
            ("AP(rel=2)", Measure("AP", rel=2)),
            ("AP(rel=2.0)", Measure("AP", rel=2)),
            ("RR@10", Measure("RR", 10)),
            ("mrr", Measure("RR")),
            ("P(rel=2)@5", Measure("P", 5, rel=2)),
            ("precision@5", Measure("P", 5)),
            ("pre@5", Measure("P", 5)),
            ("P_5", Measure("P", 5)),
            ("R@100", Measure("R", 100)),
            ("Recall@100", Measure("R", 100)),
            ("recall_100", Measure("R", 100)),
            ("RBP(p=0.8)", Measure("RBP", p=0.8)),
            ("RBP", Measure("RBP", p=0.8)),
            (" RBP ( p = 0.5 , rel = 2 ) @10 ", Measure("RBP", 10, p=0.5, rel=2)),
            ("nDCG(empty='skip')@10", Measure("nDCG", 10, empty="skip")),
        ],
    )
    def test_reads(self, text, measure):
        assert parse_measure(text) == measure
        assert hash(parse_measure(text)) == hash(measure)
        assert parse_measure(str(measure)) == measure
        assert Measure.parse(measure) is measure

    @pytest.mark.parametrize(
        ("text", "printed"),
        [
            ("ndcg@10", "nDCG@10"),
            ("map(rel=2.0)@5", "AP(rel=2)@5"),
            ("ndcg@10-", "nDCG(empty=0)@10"),
            ("ndcg(gains=(0,1.5,3))", "nDCG(gains=(0, 1.5, 3))"),
            ("ndcg(gains=(2,))", "nDCG(gains=(2,))"),
            ("rbp(rel=2)", "RBP(rel=2, p=0.8)"),
        ],
    )
    def test_prints_one_way(self, text, printed):
        assert str(parse_measure(text)) == printed
        assert repr(parse_measure(text)) == f"<Measure {printed}>"

    def test_is_a_value(self):
        assert len({parse_measure("map"), parse_measure("AP"), Measure("AP")}) == 1
        assert parse_measure("AP") != parse_measure("AP(rel=1)")  # the second does not ask the convention
        assert parse_measure("AP").higher_is_better
        with pytest.raises(AttributeError):
            parse_measure("AP").cutoff = 3

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("auc", r"unknown measure 'auc'.*known are nDCG, DCG, ERR, AP"),
            ("ndgc@10", r"did you mean nDCG\?"),
            ("presicion@5", r"did you mean P\?"),
            ("", "unknown measure"),
            ("nDCG@", "unknown measure"),
            ("nDCG@-3", "unknown measure"),
            ("nDCG@0", "whole number from 1"),
            ("nDCG(10)", "cannot read the parameters"),
            ("nDCG(dcg=log2)@10", "cannot read the parameters"),
            ("nDCG(dcg='log2'", "unknown measure"),
            ("nDCG(dgc='log2')", r"unknown parameter 'dgc'.*did you mean dcg\?"),
            ("nDCG(dcg='log10')", "dcg must be one of 'exp-log2', 'log2', 'exp-letor'"),
            ("nDCG(dcg='exp-log2', gains=(0, 1))", "both say what a label gains"),
            ("nDCG(gains=(0, -1))", "numbers from 0 up"),
            ("nDCG(gains=())", "numbers from 0 up"),
            ("nDCG(gains=3)", "must be a list"),
            ("nDCG(gains={1: 1})", "labels 0, 1, 2"),
            ("nDCG(rel=2)", "nDCG has no parameter rel; it has: dcg, gains, empty"),
            ("AP(rel='2')", "rel must be a number"),
            ("ERR(max_grade=0)", "max_grade must be above 0"),
            ("RBP(p=1)", "p must lie between 0 and 1"),
            ("AP(empty=2)", "empty must be 0, 1 or 'skip'"),
            ("RR(empty=1)", "is 0: empty must be 0 or 'skip'"),
            ("nDCG(empty=1)@10-", "says twice"),
            (5, "a measure is a text like 'nDCG@10'"),
        ],
    )
    def test_refuses(self, text, message):
        with pytest.raises(MeasureError, match=message):
            parse_measure(text)


class TestKnownAnswers:
    """Computed by hand."""

    def test_dcg_and_ndcg(self):
        # gains 3, 0, 7, 1 at discounts 1, 0.6309, 0.5, 0.4307
        assert value("DCG", [2, 0, 3, 1]) == pytest.approx(3 + 7 / 2 + 1 / math.log2(5))
        ideal = 7 + 3 / math.log2(3) + 1 / 2
        assert value("nDCG", [2, 0, 3, 1]) == pytest.approx((6.5 + 1 / math.log2(5)) / ideal)
        assert value("nDCG@2", [2, 0, 3, 1]) == pytest.approx(3 / (7 + 3 / math.log2(3)))
        assert value("nDCG@1", [2, 0, 3, 1]) == 3 / 7

    def test_linear_gain_and_gain_table(self):
        assert value("DCG(dcg='log2')@3", [2, 0, 3, 1]) == 2 + 3 / 2
        assert value("DCG(gains=(1, 0, 10, 2))@3", [2, 0, 3, 1]) == pytest.approx(10 + 1 / math.log2(3) + 1)
        # the ideal order is that of the gains, not of the labels: 10, 2
        assert value("nDCG(gains=(1, 0, 10, 2))@2", [3, 2]) == pytest.approx(
            (2 + 10 / math.log2(3)) / (10 + 2 / math.log2(3))
        )

    def test_letor(self):
        # discounts 1, 1, 1/log2(3), 1/2
        ndcg = (1 + 0 + 3 / math.log2(3) + 1 / 2) / (3 + 1 + 1 / math.log2(3))
        assert value("nDCG@4", [1, 0, 2, 1], convention="letor") == pytest.approx(ndcg)
        assert value("nDCG@2", [1, 0, 2, 1], convention="letor") == 1 / 4
        assert value("nDCG(dcg='exp-letor')@2", [1, 0, 2, 1]) == 1 / 4
        assert value("nDCG@5", [2, 1, 1, 0], convention="letor") == 0.0  # fewer than 5 documents
        assert value("nDCG", [2, 1, 1, 0], convention="letor") == 1.0
        assert value("nDCG@2", [0, 0, 0], convention="letor") == 0.0
        assert value("AP", [0, 1, 2], convention="letor") == pytest.approx((1 / 2 + 2 / 3) / 2)
        assert value("P@5", [0, 1, 2], convention="letor") == 2 / 5

    def test_err(self):
        # R = 3/16, 0, 15/16
        assert value("ERR", [2, 0, 4]) == pytest.approx(3 / 16 + (13 / 16) * (15 / 16) / 3)
        assert value("ERR@2", [2, 0, 4]) == 3 / 16
        assert value("ERR(max_grade=5)@1", [2, 0, 4]) == 3 / 32

    def test_average_precision(self):
        assert value("AP", [0, 1, 1, 0, 2]) == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
        assert value("AP(rel=2)", [0, 1, 1, 0, 2]) == 1 / 5
        assert value("AP@2", [0, 1, 1, 0, 2]) == pytest.approx((1 / 2) / 3)
        assert value("AP@2", [0, 1, 1, 0, 2], convention="lightgbm") == (1 / 2) / 2

    def test_reciprocal_rank_precision_recall(self):
        y = [0, 0, 1, 0, 3]
        assert value("RR", y) == 1 / 3
        assert value("RR@2", y) == 0.0
        assert value("RR(rel=2)", y) == 1 / 5
        assert value("P@4", y) == 1 / 4
        assert value("P@10", y) == 2 / 10
        assert value("P@10", y, convention="xgboost") == 2 / 5
        assert value("P", y) == 2 / 5
        assert value("R@4", y) == 1 / 2
        assert value("R@100", y) == 1.0

    def test_rank_biased_precision(self):
        assert value("RBP(p=0.5)", [1, 0, 2]) == 0.5 * (1 + 0.25)
        assert value("RBP(p=0.5)@2", [1, 0, 2]) == 0.5

    def test_ties(self):
        y, scores = [0, 2, 0], [1.0, 1.0, 0.0]
        assert value("RR", y, scores) == 1 / 2
        assert value("RR", y, scores, convention="sklearn") == (1 + 1 / 2) / 2
        assert value("nDCG@1", y, scores, convention="sklearn") == 1 / 2
        assert value("RR", y, scores, convention="trec", doc_ids=["a", "b", "c"]) == 1.0  # the larger id first
        assert value("RR", y, scores, convention="trec", doc_ids=["9", "10", "c"]) == 1 / 2  # ids are text
        assert value("RR", y, scores, convention="trec") == 1.0  # without ids d1 is larger than d0
        assert value("RR", y, [0.0, -0.0, -1.0]) == 1 / 2

    def test_scores_as_float32(self):
        y, scores = [0, 1], [1.0, 1.0 + 1e-9]
        assert value("RR", y, scores) == 1.0
        assert value("RR", y, scores, convention="xgboost") == 1 / 2
        assert value("RR", y, [1e200, 1e300], convention="xgboost") == 1 / 2  # both become infinity

    def test_infinite_scores_rank(self):
        assert value("RR", [0, 1, 0], [0.0, np.inf, 5.0]) == 1.0
        assert value("RR", [0, 1, 0], [0.0, -np.inf, 5.0]) == 1 / 3

    def test_negative_labels_gain_nothing(self):
        assert value("DCG", [-2, 1]) == pytest.approx(1 / math.log2(3))
        assert value("DCG(gains=(0, 3))", [-2, 1]) == pytest.approx(3 / math.log2(3))
        assert value("ERR", [-2, 1]) == pytest.approx(1 / 32)
        assert value("nDCG", [-1, -1]) == 0.0

    @pytest.mark.parametrize("y", [[0, 0], []], ids=["no relevant document", "no document"])
    def test_queries_without_relevant_documents(self, y):
        for measure in ("nDCG@5", "AP", "R@5"):
            assert value(measure, y) == 0.0
            assert value(measure, y, convention="lightgbm") == 1.0
            assert math.isnan(value(measure, y, convention=replace(Convention.get("lightgbm"), empty="skip")))
        for measure in ("DCG", "ERR", "RR", "P@5", "P", "RBP"):
            assert value(measure, y, convention="lightgbm") == 0.0
            assert math.isnan(value(measure, y, convention=replace(Convention.get("lightgbm"), empty="skip")))
        assert value("nDCG(empty=1)@5", y) == 1.0
        assert value("nDCG@5-", y, convention="lightgbm") == 0.0  # the measure wins over the convention

    def test_more_than_31_levels(self):
        y = np.arange(1000)[::-1]
        assert value("nDCG", y) == 1.0
        assert value("DCG@1", [60]) == 2.0**60 - 1
        assert value("nDCG@2", [0, 1000]) == pytest.approx(1 / math.log2(3))
        assert value("nDCG(dcg='log2')@2", [1000, 2000]) == pytest.approx(
            (1000 + 2000 / math.log2(3)) / (2000 + 1000 / math.log2(3))
        )

    def test_tiny_labels_do_not_divide_zero_by_zero(self):
        assert value("nDCG", [1e-300, 0]) == 0.0  # 2^1e-300 - 1 is 0 in floating point
        assert value("ERR", [1e-300, 0]) == 0.0


MEASURES = [
    *("nDCG@10", "nDCG", "nDCG@1", "nDCG(dcg='log2')@3", "DCG@5", "DCG", "ERR(max_grade=60)", "ERR(max_grade=60)@3"),
    *("AP", "AP@3", "AP(rel=2)", "RR", "RR@2", "P", "P@5", "R", "R@2", "RBP", "RBP(p=0.5)@3", "nDCG(empty='skip')@2"),
]


@pytest.mark.parametrize("convention", CONVENTIONS)
@settings(max_examples=40)
@given(data=st.data())
def test_equals_the_slow_twin(convention, data):
    chosen = Convention.get(convention)
    averaged = chosen.ties == "average"  # the twin writes out every order
    sample = data.draw(rankings(max_docs=6 if averaged else 14, max_queries=3))
    measures = [parse_measure(measure) for measure in MEASURES]
    values = per_query(measures, sample.y, sample.scores, sample.offsets, convention=convention, doc_ids=sample.doc_ids)
    expected = [[measure_of_query(m, chosen, *query) for query in sample.queries()] for m in measures]
    assert_allclose(values, np.reshape(expected, values.shape), rtol=1e-11, atol=1e-13)


@given(sample=rankings(labels=WHOLE_LABELS), gains=st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_gain_tables_equal_the_slow_twin(sample, gains):
    measures = [Measure("nDCG", 3, gains=tuple(gains)), Measure("DCG", gains=tuple(gains))]
    values = per_query(measures, sample.y, sample.scores, sample.offsets)
    expected = [[measure_of_query(m, Convention("mine"), *query) for query in sample.queries()] for m in measures]
    assert_allclose(values, np.reshape(expected, values.shape), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_levels", [3, 40, 10**6])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 120, 129, 500, 3000])
def test_every_depth_of_long_lists(n, n_levels, dtype):
    """Cutoffs take different paths (lanes, runs, merges), with few and many ties; all must rank alike."""
    rng = np.random.default_rng(n * n_levels)
    y = rng.integers(0, 5, n)
    scores = rng.integers(0, n_levels, n).astype(dtype)
    depths = [k for k in (1, 2, 5, 10, 16, 20, 50, 100, 150, 192, 193, 300, 1000, n) if k <= n]
    ranked = y[np.argsort(-scores, kind="stable")]
    discounts = 1 / np.log2(np.arange(2, n + 2))
    for k in depths:
        expected = ((2.0 ** ranked[:k] - 1) * discounts[:k]).sum()
        assert value(f"DCG@{k}", y, scores) == pytest.approx(expected, rel=1e-13)
        ideal = ((2.0 ** np.sort(y)[::-1][:k] - 1) * discounts[:k]).sum()
        assert value(f"nDCG@{k}", y, scores) == pytest.approx(expected / ideal if ideal else 0.0, rel=1e-13)
        real = y + 0.5  # labels that are not grades are ranked, not counted
        ideal = ((2.0 ** np.sort(real)[::-1][:k] - 1) * discounts[:k]).sum()
        expected = ((2.0 ** (ranked[:k] + 0.5) - 1) * discounts[:k]).sum() / ideal
        assert value(f"nDCG@{k}", real, scores) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("order", ["decreasing", "increasing", "equal"])
def test_sorted_lists(order):
    n = 5000
    scores = {"decreasing": -np.arange(n), "increasing": np.arange(n), "equal": np.zeros(n)}[order].astype(float)
    y = np.zeros(n)
    y[[0, 20, n - 1]] = 1
    assert value("RR@10", y, scores) == 1.0
    assert value("P@20", y, scores) == 1 / 20
    assert value("P@21", y, scores) == (1 if order == "increasing" else 2) / 21


@given(rankings(scores=ANY_SCORES))
def test_a_perfect_ranking_is_exactly_1(sample):
    values = per_query(["nDCG", "nDCG@3"], sample.y, sample.y, sample.offsets, convention="yahoo")
    assert_array_equal(values, 1.0)


@given(rankings())
def test_bounds(sample):
    measures = ["nDCG", "nDCG@2", "ERR(max_grade=60)", "AP", "RR", "P@3", "R@3", "RBP"]
    for convention in CONVENTIONS:
        values = per_query(measures, sample.y, sample.scores, sample.offsets, convention=convention)
        assert np.all((values >= 0) & (values <= 1 + 1e-12))
        assert np.all(values[:2] <= 1)


@given(rankings(), st.randoms())
def test_rows_of_a_query_need_not_stand_together(sample, random):
    rows = list(range(len(sample.y)))
    random.shuffle(rows)
    order = np.array(rows, dtype=np.int64)  # place i of the grouped list is row order[i]
    y, scores, ids = np.empty_like(sample.y), np.empty_like(sample.scores), np.empty_like(sample.doc_ids)
    y[order], scores[order], ids[order] = sample.y, sample.scores, sample.doc_ids
    for convention in ("rankwood", "trec", "sklearn"):
        expected = per_query(
            ["nDCG@3", "AP"], sample.y, sample.scores, sample.offsets, convention=convention, doc_ids=sample.doc_ids
        )
        values = per_query(["nDCG@3", "AP"], y, scores, sample.offsets, order, convention=convention, doc_ids=ids)
        assert_array_equal(values, expected)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 400, 600)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y, scores = rng.integers(0, 5, offsets[-1]), rng.normal(size=offsets[-1]).round(2)
    for convention in ("rankwood", "sklearn"):
        measures = ["nDCG@10", "ERR", "AP"]
        one, *others = (
            per_query(measures, y, scores, offsets, convention=convention, n_threads=n) for n in (1, 2, 3, None)
        )
        for other in others:
            assert_array_equal(other, one)


def test_instruction_sets_agree_to_the_bit():
    """Each in a process of its own: the choice is made once."""
    program = """
import numpy as np
from rankwood.evaluation.per_query import per_query
rng = np.random.default_rng(5)
offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 300, 200))])
for y in (rng.integers(0, 5, offsets[-1]), rng.random(offsets[-1])):
    for scores in (rng.normal(size=offsets[-1]), rng.integers(0, 9, offsets[-1]).astype(np.float32)):
        print(per_query(["nDCG@10", "nDCG", "ERR", "AP", "RR@20", "P@50"], y, scores, offsets).tobytes().hex())
"""
    outputs = {
        isa: subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "RANKWOOD_ISA": isa},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for isa in available_isas()
    }
    assert len(set(outputs.values())) == 1
    assert all(outputs.values())


def test_many_measures_equal_each_alone():
    rng = np.random.default_rng(4)
    offsets = np.arange(0, 1001, 100)
    y, scores = rng.integers(0, 5, 1000), rng.normal(size=1000)
    measures = [measure.replace("60", "4") for measure in MEASURES]
    together = per_query(measures, y, scores, offsets)
    alone = np.concatenate([per_query(measure, y, scores, offsets) for measure in measures])
    assert_array_equal(together, alone)


def test_no_queries_and_no_measures():
    assert per_query(["nDCG@10"], [], [], [0]).shape == (1, 0)
    assert per_query([], [1.0], [1.0], [0, 1]).shape == (0, 1)


class TestErrors:
    @pytest.mark.parametrize("n_threads", [1, 2])
    def test_nan_score_names_the_first_row(self, n_threads):
        scores = np.zeros(200_000)
        scores[[70_123, 150_000]] = np.nan
        with pytest.raises(DataError, match="score of row 70123 is NaN"):
            per_query("nDCG@3", np.zeros(200_000), scores, np.arange(0, 200_001, 100), n_threads=n_threads)
        with pytest.raises(DataError, match="score of row 1 is NaN"):
            value("nDCG@3", [0, 1], np.array([0, np.nan], dtype=np.float32))

    def test_nan_score_of_a_row_out_of_order(self):
        with pytest.raises(DataError, match="score of row 2 is NaN"):
            per_query("AP", [0, 0, 0], [0.0, 1.0, np.nan], [0, 1, 3], [1, 2, 0])

    @pytest.mark.parametrize("label", [np.nan, np.inf, -np.inf])
    def test_labels_must_be_finite(self, label):
        with pytest.raises(DataError, match=f"label of row 1 is {label}"):
            value("AP", [0, label])

    @pytest.mark.parametrize("label", [1024, 5000.5, 1e300])
    def test_gain_overflow(self, label):
        with pytest.raises(MeasureError, match=r"nDCG@5: the gain of label .* of row 1 .* nDCG\(dcg='log2'\)@5"):
            value("nDCG@5", [0, label])

    def test_sum_of_gains_overflows(self):
        with pytest.raises(MeasureError, match="too large"):
            value("DCG", [1023.9] * 10)
        with pytest.raises(MeasureError, match="too large"):
            value("nDCG(dcg='log2')", [1.5e308] * 10)

    def test_label_above_the_largest_grade(self):
        with pytest.raises(MeasureError, match=r"ERR@1: label 5 of row 2 is above .* grade 4; write ERR\(max_grade="):
            value("ERR@1", [4, 0, 5])

    @pytest.mark.parametrize("label", [3, 0.5, 1e9])
    def test_label_without_a_gain(self, label):
        with pytest.raises(MeasureError, match=r"of row 1 has no gain; gains are given for the labels 0 to 2"):
            value("nDCG(gains=(0, 1, 3))", [0, label])

    def test_the_measure_at_fault_is_named(self):
        with pytest.raises(MeasureError, match=r"^ERR\(max_grade=2\)@5: label 3"):
            per_query(["AP", "nDCG", "ERR(max_grade=2)@5"], [0, 3], [1.0, 2.0], [0, 2])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0, 1], [1.0], [0, 2]), "scores has 1 entries for 2 rows"),
            (([0, 1], [1.0, 2.0], [0, 1]), "offsets must end with the number of rows"),
            (([0, 1], [1.0, 2.0], [1, 2]), "offsets must start with 0"),
            (([0, 1], [1.0, 2.0], [0, 2, 1, 2]), "offsets must not decrease"),
            (([0, 1], [1.0, 2.0], []), "offsets must have one entry more"),
            (([0, 1], [1.0, 2.0], [0, 2], [0, 2]), "order must hold numbers of rows"),
            (([0, 1], [1.0, 2.0], [0, 2], [0, -1]), "order must hold numbers of rows"),
            (([0, 1], [1.0, 2.0], [0.0, 2.0]), "offsets must hold whole numbers"),
            ((["a", "b"], [1.0, 2.0], [0, 2]), "y must hold numbers"),
            (([0, 1], [[1.0, 2.0]], [0, 2]), "scores must have one dimension"),
        ],
    )
    def test_data_that_does_not_fit(self, arguments, message):
        with pytest.raises(DataError, match=message):
            per_query("AP", *arguments)

    def test_doc_ids_that_do_not_fit(self):
        with pytest.raises(DataError, match=r"doc_ids must have one entry per row \(2\)"):
            per_query("AP", [0, 1], [1.0, 2.0], [0, 2], convention="trec", doc_ids=["a"])

    def test_no_threads(self):
        with pytest.raises(RankwoodError, match="n_threads must be at least 1"):
            value("AP", [1], n_threads=0)

    def test_unknown_convention(self):
        assert Convention.get("LightGBM") is Convention.get("lightgbm")
        with pytest.raises(MeasureError, match=r"unknown convention 'lightgmb' \(did you mean lightgbm\?\)"):
            value("AP", [1], convention="lightgmb")

    @pytest.mark.parametrize(
        ("field", "bad"),
        [("gain", "log"), ("empty", 2), ("empty", True), ("ties", "random"), ("max_grade", 0), ("relevant", math.nan)],
    )
    def test_conventions_are_checked(self, field, bad):
        with pytest.raises(MeasureError, match=field):
            Convention("mine", **{field: bad})


def test_every_preset_describes_itself_in_one_line():
    lines = [convention.describe() for convention in CONVENTIONS.values()]
    assert all("\n" not in line and line.startswith(name) for name, line in zip(CONVENTIONS, lines, strict=True))
    assert "without ids: d0, d1, ... by row" in Convention.get("trec").describe()
    assert "min(relevant, k)" in Convention.get("xgboost").describe()
    assert "fewer than k documents counts 0" in Convention.get("letor").describe()


class TestMean:
    def test_leaves_out_nan(self):
        assert mean([1.0, np.nan, 0.0]) == 0.5
        assert math.isnan(mean([np.nan]))
        assert math.isnan(mean([]))

    def test_weights(self):
        assert mean([1.0, np.nan, 0.0], weights=[3.0, 5.0, 1.0]) == 0.75
        assert math.isnan(mean([1.0, 2.0], weights=[0.0, 0.0]))
        with pytest.raises(DataError, match="weights has 1 entries for 2 queries"):
            mean([1.0, 2.0], weights=[1.0])

    def test_of_several_measures(self):
        assert_array_equal(mean([[1.0, 0.0], [np.nan, 0.25]]), [0.5, 0.25])


def test_absurd_cutoffs_are_refused():
    with pytest.raises(MeasureError, match="cutoff of a measure is at most 2147483647, got 2147483648"):
        Measure.parse("nDCG@2147483648")
    assert per_query("nDCG@2147483647", [0, 1], [2.0, 1.0], [0, 2]).shape == (1, 1)
