"""Synthetic data: its shape, its determinism, and that there is something to learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.data.synthetic import COLUMN, DOCUMENT_FEATURES, FEATURE_NAMES, SIGNALS, THRESHOLDS
from rankwood.errors import DataError, RankwoodError

MAY_MISS = [feature.name for feature in DOCUMENT_FEATURES if feature.source]


@pytest.fixture(scope="module")
def drawn() -> tuple[rw.Dataset, np.ndarray]:
    return rw.make_ranking(600, 60, seed=5, return_relevance=True)


def assert_same(one: rw.Dataset, other: rw.Dataset) -> None:
    np.testing.assert_array_equal(one.X.view(np.uint32), other.X.view(np.uint32))  # the same bits, NaN included
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    assert one.feature_names == other.feature_names


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def column(data: rw.Dataset, name: str) -> np.ndarray:
    return data.X[:, data.feature_names.index(name)]


def test_shape(drawn):
    data, relevance = drawn
    assert data.n_queries == 600
    assert data.n_features == 136 == len(set(data.feature_names))
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert data.X.base is None, "the matrix was copied or is a view"
    assert relevance.shape == data.y.shape == (data.n_docs,)
    assert data.qid.dtype.kind == "i"
    assert data.order is None
    assert set(np.unique(data.y)) == {0, 1, 2, 3, 4}
    assert np.all(np.isfinite(relevance))


def test_query_sizes_are_skewed_around_the_mean(drawn):
    sizes = drawn[0].queries.sizes
    assert sizes.mean() == pytest.approx(60, rel=0.1)
    assert np.median(sizes) < sizes.mean()
    assert sizes.min() < 6
    assert sizes.max() > 150


def test_fixed_size():
    data = rw.make_ranking(30, 7, fixed_size=True)
    np.testing.assert_array_equal(data.queries.sizes, 7)


def test_label_shares(drawn):
    shares = np.bincount(drawn[0].y.astype(int)) / drawn[0].n_docs
    np.testing.assert_allclose(shares, [0.52, 0.23, 0.15, 0.07, 0.03], atol=0.04)


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
def test_label_shares_stay_when_the_noise_changes(noise):
    data = rw.make_ranking(600, 20, noise=noise, seed=6)
    shares = np.bincount(data.y.astype(int), minlength=5) / data.n_docs
    np.testing.assert_allclose(shares, [0.52, 0.23, 0.15, 0.07, 0.03], atol=0.05)


def test_queries_differ_in_how_relevant_their_documents_are(drawn):
    data, _ = drawn
    share_of_zeros = np.add.reduceat(data.y == 0, data.offsets[:-1]) / data.queries.sizes
    large = data.queries.sizes >= 30
    assert np.quantile(share_of_zeros[large], 0.05) < 0.2
    assert np.quantile(share_of_zeros[large], 0.95) > 0.85


def test_relevance_explains_labels_and_noise_hides_it(drawn):
    data, relevance = drawn
    assert 0.7 < rank_correlation(relevance, data.y) < 0.95
    quiet, known = rw.make_ranking(200, 20, noise=0, return_relevance=True)
    # without noise the label is a step function of the known relevance
    order = np.argsort(known)
    assert np.all(np.diff(quiet.y[order]) >= 0)
    assert len(THRESHOLDS) == 4
    loud, known = rw.make_ranking(200, 20, noise=5, return_relevance=True)
    assert rank_correlation(known, loud.y) < 0.45


def test_noise_changes_labels_only():
    one, known_one = rw.make_ranking(50, 20, noise=0.1, return_relevance=True)
    two, known_two = rw.make_ranking(50, 20, noise=2.0, return_relevance=True)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(known_one, known_two)
    assert np.any(one.y != two.y)


def test_query_features_are_constant_within_a_query_and_the_others_are_not(drawn):
    data, _ = drawn
    starts = data.offsets[:-1]
    ranges = np.fmax.reduceat(data.X, starts) - np.fmin.reduceat(data.X, starts)
    constant = {name for name, values in zip(data.feature_names, ranges.T, strict=True) if np.nanmax(values) == 0}
    assert constant == {f"idf_{stream}" for stream in ("body", "anchor", "title", "url", "whole")}
    assert len(np.unique(column(data, "idf_body"))) > 500  # they differ between queries


def test_features_have_the_flavour_of_web_search(drawn):
    data, _ = drawn
    for name in data.feature_names:
        values = column(data, name)
        assert np.all(np.isfinite(values[~np.isnan(values)])), name
        assert np.ptp(values[~np.isnan(values)]) > 0, name
        if name.startswith(("covered_ratio", "all_terms", "cosine", "tf_per_word_sum")):
            assert values.min() >= 0, name
            assert values.max() <= 1, name
        if name.startswith("lm_"):
            assert values.max() <= 0, name
        if name.startswith(("covered_terms", "length", "tf_sum", "tf_min", "tf_max", "url_slashes", "page_rank")):
            np.testing.assert_array_equal(values, np.rint(values), err_msg=name)
    assert np.nanmax(column(data, "inlinks")) > 1e6
    assert np.nanmedian(column(data, "inlinks")) < 20
    assert np.mean(column(data, "query_url_clicks") == 0) > 0.9
    assert np.mean(column(data, "tf_min_anchor") == 0) > 0.8
    assert rank_correlation(column(data, "bm25_body"), column(data, "bm25_whole")) > 0.8  # a family


def test_features_of_a_family_fit_each_other(drawn):
    data, _ = drawn
    for stream in ("body", "anchor", "title", "url", "whole"):
        low, mean, high, total = (column(data, f"tf_{what}_{stream}") for what in ("min", "mean", "max", "sum"))
        assert np.all(low <= mean + 1e-3), stream
        assert np.all(mean <= high + 1e-3), stream
        assert np.all(high <= total), stream
        assert np.all(column(data, f"tf_variance_{stream}") >= 0), stream
        np.testing.assert_array_equal(
            column(data, f"all_terms_{stream}") == 1, column(data, f"covered_ratio_{stream}") == 1
        )
    lengths = [column(data, f"length_{stream}") for stream in ("body", "anchor", "title", "url")]
    np.testing.assert_array_equal(sum(lengths), column(data, "length_whole"))


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_missing_values(share):
    data, known = rw.make_ranking(200, 20, missing=share, return_relevance=True)
    missing = np.isnan(data.X).mean(axis=0)
    for name, found in zip(data.feature_names, missing, strict=True):
        assert found == pytest.approx(share if name in MAY_MISS else 0.0, abs=0.03 if 0 < share < 1 else 0), name
    np.testing.assert_array_equal(np.isnan(column(data, "url_clicks")), np.isnan(column(data, "url_dwell_time")))
    complete, same = rw.make_ranking(200, 20, missing=0, return_relevance=True)
    np.testing.assert_array_equal(known, same)
    np.testing.assert_array_equal(data.y, complete.y)
    present = ~np.isnan(data.X)
    np.testing.assert_array_equal(data.X[present], complete.X[present])


@settings(max_examples=15)
@given(
    n_queries=st.integers(1, 90),
    docs_per_query=st.sampled_from([1, 3, 120, 5000]),
    n_features=st.sampled_from([1, 5, 136, 140]),
    seed=st.integers(0, 2**70),
)
def test_same_bits_for_any_number_of_threads(n_queries, docs_per_query, n_features, seed):
    n_queries = min(n_queries, max(1, 20_000 // docs_per_query))
    one = rw.make_ranking(n_queries, docs_per_query, n_features, seed=seed, n_threads=1)
    assert_same(one, rw.make_ranking(n_queries, docs_per_query, n_features, seed=seed, n_threads=3))
    assert_same(one, rw.make_ranking(n_queries, docs_per_query, n_features, seed=seed))
    assert one.shape == (one.n_docs, n_features)
    assert one.n_queries == n_queries


@pytest.mark.parametrize("fixed_size", [False, True])
@pytest.mark.parametrize("n_queries", [1, 33, 34, 35, 70])
def test_fewer_queries_are_the_first_ones_of_more(n_queries, fixed_size):
    more, known = rw.make_ranking(100, 120, n_features=138, fixed_size=fixed_size, return_relevance=True)
    fewer, known_fewer = rw.make_ranking(n_queries, 120, n_features=138, fixed_size=fixed_size, return_relevance=True)
    assert_same(fewer, more.select_queries(np.arange(n_queries)))
    np.testing.assert_array_equal(known_fewer, known[: fewer.n_docs])


def test_seeds_differ():
    one, two = rw.make_ranking(10, 10, seed=1), rw.make_ranking(10, 10, seed=2)
    assert one.n_docs != two.n_docs or not np.array_equal(one.X, two.X)


def test_few_features_are_some_of_the_many():
    full = rw.make_ranking(20, 10)
    assert full.feature_names == FEATURE_NAMES
    assert rw.make_ranking(20, 10, 1).feature_names == ("bm25_whole",)
    for n_features in (1, 2, 10, 50, 135):
        few = rw.make_ranking(20, 10, n_features)
        assert few.n_features == len(set(few.feature_names)) == n_features
        np.testing.assert_array_equal(few.X, full.X[:, [COLUMN[name] for name in few.feature_names]])
        np.testing.assert_array_equal(few.y, full.y)


def test_further_features_are_distractors():
    full, many = rw.make_ranking(200, 20, missing=0), rw.make_ranking(200, 20, 139, missing=0)
    np.testing.assert_array_equal(many.X[:, :136], full.X)
    assert many.feature_names[136:] == ("distractor_1", "distractor_2", "distractor_3")
    for number in (136, 137, 138):
        assert abs(rank_correlation(many.X[:, number], many.y)) < 0.06
        assert len(np.unique(many.X[:, number])) > 1000


def test_signals_name_features():
    assert {signal.feature for signal in SIGNALS} <= set(FEATURE_NAMES)
    assert len(FEATURE_NAMES) == 136


def test_a_linear_model_explains_some_of_the_relevance_but_not_most():
    data, known = rw.make_ranking(400, 60, seed=3, missing=0, return_relevance=True)
    sizes, starts = data.queries.sizes, data.offsets[:-1]
    features = np.sign(data.X) * np.log1p(np.abs(data.X)).astype(np.float64)
    features -= np.repeat(np.add.reduceat(features, starts) / sizes[:, None], sizes, axis=0)
    target = known - np.repeat(np.add.reduceat(known, starts) / sizes, sizes)
    fitted = features @ np.linalg.lstsq(features, target, rcond=None)[0]
    assert 0.2 < 1 - np.var(target - fitted) / np.var(target) < 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a whole number of at least 1, got 0"),
        ({"docs_per_query": 2.5}, "docs_per_query must be a whole number of at least 1, got 2.5"),
        ({"n_features": -1}, "n_features must be a whole number of at least 1, got -1"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"missing": 1.5}, "missing is a share and must lie between 0 and 1, got 1.5"),
        ({"missing": float("nan")}, "missing is a share"),
        ({"noise": -1.0}, "noise must be a number of at least 0, got -1.0"),
        ({"noise": float("inf")}, "noise must be a number of at least 0, got inf"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        rw.make_ranking(**arguments)


def test_thread_count_is_checked():
    with pytest.raises(RankwoodError, match="n_threads must be at least 1"):
        rw.make_ranking(2, 2, n_threads=0)


def test_more_than_the_memory_is_refused_at_once():
    with pytest.raises(rw.RankwoodError, match=r"need [\d,.]+ GiB of memory, and this machine has"):
        rw.make_ranking(n_queries=10**9, docs_per_query=10**4)
