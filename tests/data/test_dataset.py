"""Dataset: queries from ids or sizes, input order kept, subsets, splits, folds, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.data.queries import find_queries


def random_dataset(seed: int = 0, n: int = 40, n_queries: int = 7) -> rw.Dataset:
    rng = np.random.default_rng(seed)
    qid = rng.integers(n_queries, size=n)
    return rw.Dataset(
        rng.normal(size=(n, 3)),
        rng.integers(3, size=n),
        qid=qid,
        weights=rng.random(n),
        query_weights=np.arange(1.0, len(np.unique(qid)) + 1),
        doc_ids=[f"d{i}" for i in range(n)],
        feature_names=["a", "b", "c"],
    )


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_rows_are_grouped_by_first_appearance_and_keep_their_order(ids):
    queries = find_queries(len(ids), qid=np.array(ids, dtype=int))
    expected = list(dict.fromkeys(ids))
    assert queries.ids.tolist() == expected
    order = np.arange(len(ids)) if queries.order is None else queries.order
    rows = [order[a:b].tolist() for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)]
    assert rows == [[row for row, q in enumerate(ids) if q == wanted] for wanted in expected]
    assert_array_equal(queries.ids[queries.index], ids)


@given(st.lists(st.sampled_from(["x", "y", "query 10", "ü"]), max_size=20))
def test_string_ids_group_like_their_numbers(ids):
    by_number = find_queries(len(ids), qid=np.array([["x", "y", "query 10", "ü"].index(i) for i in ids], dtype=int))
    by_text = find_queries(len(ids), qid=np.array(ids, dtype=object))
    assert_array_equal(by_text.offsets, by_number.offsets)
    assert_array_equal(by_text.index, by_number.index)


def test_contiguous_rows_need_no_order():
    assert find_queries(5, qid=[9, 9, 2, 2, 2]).order is None
    assert find_queries(5, group=[2, 3]).order is None


@pytest.mark.parametrize(
    ("given", "offsets"),
    [
        ({"qid": [3, 3, 1, 1, 1]}, [0, 2, 5]),
        ({"group": [2, 3]}, [0, 2, 5]),
        ({"group": [7, 7, 8, 8, 8]}, [0, 2, 5]),  # ids under the wrong name
        ({"group": [1, 1, 1, 1, 1]}, [0, 1, 2, 3, 4, 5]),  # fits both: taken as named
        ({"qid": [1, 1, 1, 1, 1]}, [0, 5]),
        ({"group": [0, 5, 0]}, [0, 0, 5, 5]),  # empty queries are queries
        ({"qid": [1.0, 1.0, 2.0, 2.0, 2.0]}, [0, 2, 5]),
        ({"qid": [True, True, False, False, False]}, [0, 2, 5]),
    ],
)
def test_ids_and_sizes_are_told_apart(given, offsets):
    assert find_queries(5, **given).offsets.tolist() == offsets


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "queries are missing: give qid"),
        ({"qid": [1] * 5, "group": [5]}, "not both"),
        ({"qid": [1, 2, 3]}, "qid does not fit the 5 rows: as ids there are 3 of them, as sizes .* add up to 6"),
        ({"qid": [2, 3]}, r"one id per row \(5\), got 2; if they are sizes of queries, pass them as group="),
        ({"group": [2, 2]}, "group does not fit the 5 rows: .* add up to 4"),
        ({"qid": ["a", "b"]}, "as ids there are 2 of them, and sizes of queries must be numbers"),
        ({"group": [6, -1]}, "cannot be negative"),
        ({"qid": [1, 2, np.nan, 4, 5]}, "qid of row 2 is nan"),
        ({"qid": np.array(["a", None, "b", "c", "d"], dtype=object)}, "qid of row 1 is missing"),
        ({"qid": [[1, 2], [3, 4]]}, "one dimension"),
        ({"group": [2.5, 2.5]}, "whole numbers"),
        ({"qid": np.array(["2020-01-01"] * 5, dtype="datetime64[D]")}, "numbers or strings"),
    ],
)
def test_what_does_not_fit_is_said(given, message):
    with pytest.raises(rw.DataError, match=message):
        find_queries(5, **given)


def test_everything_follows_the_rows_into_a_subset():
    data = random_dataset()
    for number in range(data.n_queries):
        rows = np.flatnonzero(data.qid == data.queries.ids[number])
        part = data.query(number)
        assert_array_equal(part.X, data.X[rows])
        assert_array_equal(part.y, data.y[rows])
        assert_array_equal(part.weights, data.weights[rows])
        assert_array_equal(part.doc_ids, data.doc_ids[rows])
        assert part.query_weights.tolist() == [number + 1.0]
        assert part.feature_names == data.feature_names
        assert set(part.qid) == {data.queries.ids[number]}


@given(st.lists(st.integers(0, 39), max_size=60))
def test_indexing_by_rows_keeps_their_order(rows):
    data = random_dataset()
    part = data[np.array(rows, dtype=int)]
    assert_array_equal(part.X, data.X[rows])
    assert_array_equal(part.qid, data.qid[rows])
    weight_of = dict(zip(data.queries.ids, data.query_weights, strict=True))
    assert part.query_weights.tolist() == [weight_of[i] for i in part.queries.ids]


def test_slices_masks_and_negative_numbers_index_too():
    data = random_dataset()
    assert_array_equal(data[5:9].y, data.y[5:9])
    assert_array_equal(data[data.y > 1].y, data.y[data.y > 1])
    assert_array_equal(data[[-1]].y, data.y[[-1]])
    with pytest.raises(rw.DataError, match="rows must lie between 0 and 39"):
        data[[40]]
    with pytest.raises(rw.DataError, match="mask of queries must have 7 entries"):
        data.select_queries([True, False])


def test_split_and_folds_keep_queries_whole():
    data = random_dataset(n=200, n_queries=23)
    first, second = data.split(0.7, seed=3)
    assert (first.n_queries, second.n_queries) == (16, 7)
    assert not set(first.qid) & set(second.qid)
    assert first.n_docs + second.n_docs == data.n_docs
    seen = []
    for rest, fold in data.folds(5, seed=1):
        assert not set(rest.qid) & set(fold.qid)
        assert rest.n_docs + fold.n_docs == data.n_docs
        assert fold.n_queries in (4, 5)
        seen += fold.queries.ids.tolist()
    assert sorted(seen) == sorted(data.queries.ids)


def test_scikit_learn_splits_it_by_query():
    model_selection = pytest.importorskip("sklearn.model_selection")
    data = random_dataset()
    for train, test in model_selection.GroupKFold(3).split(data, data.y, groups=data.qid):
        assert not set(data[train].qid) & set(data[test].qid)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1, np.nan])
def test_a_split_needs_a_fraction(fraction):
    with pytest.raises(rw.DataError, match="fraction must lie between 0 and 1"):
        random_dataset().split(fraction)


def test_float32_in_c_order_is_not_copied():
    X = np.zeros((4, 2), dtype=np.float32)
    assert rw.Dataset(X, [0, 1, 0, 1], group=[4]).X is X
    assert rw.Dataset(np.asfortranarray(X), [0, 1, 0, 1], group=[4]).X.flags.c_contiguous


def test_values_beyond_float32_become_infinite():
    assert rw.Dataset([[1e300, -1e300, np.nan]], [1], group=[1]).X.tolist()[0][:2] == [np.inf, -np.inf]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [1.0, 2.0, 3.0]}, r"two dimensions .* got shape \(3,\)"),
        ({"X": [["a"], ["b"], ["c"]]}, "matrix of numbers"),
        ({"y": [0, 1]}, r"y must have one value per row \(3\), got shape \(2,\)"),
        ({"y": [0, np.nan, 1]}, "y of row 1 is nan"),
        ({"y": ["a", "b", "c"]}, "y must hold numbers"),
        ({"weights": [1, -1, 1]}, "weights of row 1 is -1.0"),
        ({"query_weights": [1, 1]}, r"one value per query \(1\)"),
        ({"doc_ids": ["a"]}, "doc_ids has 1 entries for 3 rows"),
        ({"feature_names": ["a", "b"]}, "feature_names has 2 entries for 1 features"),
    ],
)
def test_wrong_input_is_one_clear_sentence(change, message):
    arguments = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 2], "group": [3]} | change
    with pytest.raises(rw.DataError, match=message):
        rw.Dataset(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_data_without_labels_can_be_held_but_not_learnt_from():
    data = rw.Dataset([[1.0]], group=[1])
    assert not data.has_labels
    with pytest.raises(rw.DataError, match="no labels"):
        data.y


def test_an_empty_data_set_is_one():
    data = rw.Dataset(np.zeros((0, 3)), [], qid=[])
    assert (data.n_docs, data.n_queries, data.n_features) == (0, 0, 3)
    assert data[[]].n_docs == 0


def frames():
    columns = {"x": [1.0, 2.0, float("nan")], "qid": [5, 4, 5], "z": [1, 2, 3]}
    yield "pandas", lambda pd: pd.DataFrame(columns)
    yield "polars", lambda pl: pl.DataFrame(columns)
    yield "pyarrow", lambda pa: pa.table(columns)


@pytest.mark.parametrize(("package", "make"), list(frames()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_qid_column_of_a_frame_is_the_query(package, make):
    data = rw.Dataset(make(pytest.importorskip(package)), [0, 1, 2])
    assert data.feature_names == ("x", "z")
    assert data.qid.tolist() == [5, 4, 5]
    assert_array_equal(data.X, np.array([[1, 1], [2, 2], [np.nan, 3]], dtype=np.float32))


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_missing_values_of_a_frame_become_nan_and_text_is_refused(package):
    module = pytest.importorskip(package)
    make = module.table if package == "pyarrow" else module.DataFrame
    data = rw.Dataset(make({"a": [1, None, 3], "b": [True, False, True]}), [0, 1, 2], group=[3])
    assert_array_equal(data.X, np.array([[1, 1], [np.nan, 0], [3, 1]], dtype=np.float32))
    with pytest.raises(rw.DataError, match="column 'b' holds"):
        rw.Dataset(make({"a": [1, 2], "b": ["u", "v"]}), [0, 1], group=[2])


def test_sparse_matrices_are_filled_with_zeros():
    sparse = pytest.importorskip("scipy.sparse")
    data = rw.Dataset(sparse.csr_matrix([[0.0, 2.0], [3.0, 0.0]]), [0, 1], group=[2])
    assert data.X.tolist() == [[0, 2], [3, 0]]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_label_and_qid_columns_of_a_frame_are_no_features(package):
    module = pytest.importorskip(package)
    make = module.table if package == "pyarrow" else module.DataFrame
    frame = make({"qid": [5, 4, 5], "x": [1.0, 2.0, 3.0], "label": [0, 1, 2]})
    data = rw.Dataset(frame)
    assert (data.y.tolist(), data.qid.tolist(), data.feature_names) == ([0, 1, 2], [5, 4, 5], ("x",))
    data = rw.Dataset(frame, group=[1, 2])
    assert (data.queries.sizes.tolist(), data.feature_names) == ([1, 2], ("x",))
    with pytest.raises(rw.DataError, match="a column 'label' and y is given, too: drop one of them"):
        rw.Dataset(frame, [0, 1, 2])


def test_numbers_are_no_names():
    pandas = pytest.importorskip("pandas")
    assert rw.Dataset(pandas.DataFrame([[1.0, 2.0]]), group=[1]).feature_names is None


def test_some_features():
    data = rw.Dataset([[1.0, 2.0, 3.0]], [1], group=[1], feature_names=["a", "b", "c"])
    assert data.select_features([2, 0]).X.tolist() == [[3.0, 1.0]]
    assert data.select_features([2, 0]).feature_names == ("c", "a")
    assert data.select_features([True, False, False]).y.tolist() == [1.0]
    with pytest.raises(rw.DataError, match="features must lie between 0 and 2"):
        data.select_features([3])


def test_iteration_ends():
    data = random_dataset()
    assert [row.n_docs for row in data] == [1] * data.n_docs
    with pytest.raises(IndexError, match="row 40 of 40"):
        data[40]
    with pytest.raises(IndexError):
        data[-41]


def test_a_data_set_does_not_change():
    data = rw.Dataset([[1.0], [2.0]], [0, 1], group=[2])
    with pytest.raises(AttributeError, match=r"data\.replace\(weights=\.\.\.\) makes another"):
        data.weights = np.ones(2)
    with pytest.raises(AttributeError, match="does not change"):
        del data.X


def test_replace_keeps_the_rest_and_checks_what_is_new():
    data = rw.Dataset([[1.0], [2.0]], [0, 1], group=[1, 1], doc_ids=["a", "b"], feature_names=["x"])
    other = data.replace(y=[3, 4], query_weights=[1, 2])
    assert other.y.tolist() == [3.0, 4.0]
    assert other.query_weights.tolist() == [1.0, 2.0]
    assert (other.X is data.X, list(other.doc_ids), other.feature_names) == (True, ["a", "b"], ("x",))
    assert data.y.tolist() == [0.0, 1.0]
    assert data.query_weights is None
    assert data.replace(doc_ids=None).doc_ids is None
    for wrong, message in (
        ({"y": [1]}, "y must have one value per row"),
        ({"weights": [1, -1]}, "must not be negative"),
        ({"feature_names": ["x", "y"]}, "feature_names has 2 entries for 1 features"),
        ({"doc_ids": ["a"]}, "doc_ids has 1 entries for 2 rows"),
        ({"labels": [1, 2]}, "has no 'labels' to replace"),
    ):
        with pytest.raises(rw.DataError, match=message):
            data.replace(**wrong)


def test_the_fingerprint_knows_all_that_models_and_measures_depend_on():
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    data = rw.Dataset(X, [0, 1, 2, 0, 1, 2], group=[2, 4])
    ones, names = np.ones(6), [f"d{row}" for row in range(6)]
    others = [
        data.replace(weights=ones),
        data.replace(weights=2 * ones),
        data.replace(query_weights=np.ones(2)),
        data.replace(query_weights=2 * np.ones(2)),
        data.replace(doc_ids=names),
        data.replace(doc_ids=["d0d1", "", *names[2:]]),
        data.replace(doc_ids=names[::-1]),
        data.replace(feature_names=["f0", "f1"]),
        data.replace(y=[0, 1, 2, 0, 1, 1]),
        data.replace(X=X[::-1].copy()),
        rw.Dataset(X, data.y, group=[3, 3]),
        rw.Dataset(X, data.y, qid=[0, 1, 0, 1, 1, 1]),
    ]
    assert len({one.fingerprint() for one in (data, *others)}) == len(others) + 1
    assert data.replace(weights=ones).fingerprint() == rw.Dataset(X, data.y, group=[2, 4], weights=ones).fingerprint()


def test_weights_of_documents_and_of_queries_are_told_apart():
    """Where there are as many, their bytes are the same and stand in another place."""
    X, y, weights = [[1.0], [2.0]], [0, 1], [1.0, 2.0]
    of_documents = rw.Dataset(X, y, group=[1, 1], weights=weights)
    assert of_documents.fingerprint() != rw.Dataset(X, y, group=[1, 1], query_weights=weights).fingerprint()
