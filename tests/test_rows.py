"""Rows for scoring, from whatever the caller has."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankwood import DataError, Dataset, Ensemble
from rankwood.matrix import is_plain, row_blocks
from strategies.ensembles import big_ensemble

pytestmark = pytest.mark.native

NAMES = [f"f{j}" for j in range(8)]


@pytest.fixture(scope="module")
def model() -> Ensemble:
    plain = big_ensemble(0, n_trees=10, n_leaves=40, decimals=1)
    trees = [plain.tree(t) for t in range(len(plain))]
    return Ensemble.from_trees(trees, tree_weights=plain.tree_weights, base=plain.base, feature_names=NAMES)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(150, 8)).round(1).astype(np.float32)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def gather(X, n_features, names=None, **options):
    n_rows, blocks = row_blocks(X, n_features, names, **options)
    parts = list(blocks)
    assert [i for rows, _ in parts for i in range(rows.start, rows.stop)] == list(range(n_rows))
    assert all(block.dtype in (np.float32, np.float64) for _, block in parts)
    return np.concatenate([block for _, block in parts]) if parts else np.zeros((0, n_features))


def test_floats_are_taken_as_they_are(X):
    for same in (X, X.astype(np.float64), np.asfortranarray(X), X[::2], X[:, ::-1]):
        n_rows, blocks = row_blocks(same, 8)
        ((rows, block),) = blocks
        assert block is same
        assert (rows.start, rows.stop) == (0, n_rows)


def test_what_is_scored_without_a_second_look_scores_alike(model, X):
    read_only = X.copy()
    read_only.flags.writeable = False
    for plain in (X, X.astype(np.float64), X[3:4], X[3:9], read_only):
        assert is_plain(plain, 8)
    record = np.zeros(len(X), dtype=np.dtype([("tag", "u1"), ("x", "f4", (8,))]))
    record["x"] = X
    unaligned = np.frombuffer(b" " + X.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(X.shape)
    subclass = X.view(type("Rows", (np.ndarray,), {}))
    big_endian = X.astype(X.dtype.newbyteorder(">"))
    expected = model.score(X)
    for other in (np.asfortranarray(X), X[::-1][::-1], unaligned, subclass, big_endian, record["x"], X.astype(object)):
        assert other is not X
        assert_array_equal(model.score(other), expected)
    for other in (np.asfortranarray(X), X[:, ::-1], X[::2], unaligned, subclass, big_endian, X[0], X[:0], X.tolist()):
        assert not is_plain(other, 8)
    assert not is_plain(X, 7)


def test_kernels_get_aligned_arrays(X):
    unaligned = np.frombuffer(b" " + X.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(X.shape)
    _, blocks = row_blocks(unaligned, 8)
    assert all(block.flags.aligned for _, block in blocks)


def test_pandas(model, X):
    pandas = pytest.importorskip("pandas")
    expected = model.score(X)
    frame = pandas.DataFrame(X, columns=NAMES)
    assert_array_equal(model.score(frame), expected)
    assert_array_equal(model.score(frame[NAMES[::-1]]), expected)  # by name
    with pytest.raises(
        DataError, match=r"differently .*: there is no 'f0', 'f1', 'f2' and \d more and .* know 'F0', 'F1'"
    ):
        model.score(frame.rename(columns=str.upper))
    with pytest.raises(DataError, match="there is no 'f3' and the model does not know 'f2'"):
        model.score(frame.rename(columns={"f3": "f2"}))
    assert_array_equal(model.score(pandas.DataFrame(X)), expected)  # by position
    assert_array_equal(Ensemble.from_trees([(0, 0.0, 1.0, 2.0)]).score(frame[["f1"]]), np.where(X[:, 1] <= 0, 1, 2))
    mixed = frame.astype({"f0": "float64", "f3": "Float32"})
    assert_array_equal(model.score(mixed), expected)
    assert_array_equal(gather(mixed, 8, NAMES, block_bytes=1000), X)
    assert_array_equal(model.leaves(mixed), model.leaves(X))
    with pytest.raises(DataError, match="column 'f0' holds"):
        model.score(frame.assign(f0="text"))
    with pytest.raises(DataError, match="X has 9 features but the model was built on 8: the model does not know 'qid'"):
        model.score(frame.assign(qid=1))


def test_polars(model, X):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})
    assert_array_equal(model.score(frame), model.score(X))
    assert_array_equal(model.score(frame[NAMES[::-1]]), model.score(X))
    assert_array_equal(gather(frame, 8, NAMES, block_bytes=1000), X)
    ints = polars.DataFrame({"a": [1, None, 3]})
    assert_array_equal(gather(ints, 1), [[1.0], [np.nan], [3.0]])


def test_arrow(model, X):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({name: X[:, j] for j, name in enumerate(NAMES)})
    assert_array_equal(model.score(table), model.score(X))
    assert_array_equal(model.score(table.select(NAMES[::-1])), model.score(X))
    assert_array_equal(gather(table, 8, NAMES, block_bytes=1000), X)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_array", "csr_array"])
def test_sparse(model, X, kind):
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.where(np.abs(X) < 0.5, np.float32(0), X)  # what is not stored is 0; a stored NaN is missing
    matrix = getattr(sparse, kind)(dense)
    assert_array_equal(model.score(matrix), model.score(dense))
    assert_array_equal(gather(matrix, 8, block_bytes=1000), dense)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float16", ">f4", ">f8", "longdouble", object])
def test_other_numbers_are_converted_exactly(model, dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(70, 8)).astype(dtype)
    assert_array_equal(model.score(X), model.score(X.astype(np.float64)))
    assert_array_equal(gather(X, 8, block_bytes=1000), X.astype(np.float64))


def test_lists_and_none(model):
    assert model.score([[0] * 8, [1.5] * 8]).shape == (2,)
    assert_array_equal(gather([[1, None], [2.0, 3]], 2), [[1.0, np.nan], [2.0, 3.0]])


def test_masked_values_are_missing(model, X):
    masked = np.ma.MaskedArray(np.where(np.isnan(X), np.float32(7), X), mask=np.isnan(X))
    assert_array_equal(model.score(masked), model.score(X))


def test_fields_of_records_that_are_not_aligned(model, X):
    packed = np.zeros(len(X), dtype=np.dtype([("tag", "u1"), ("x", "f4", (8,))]))
    packed["x"] = X
    assert_array_equal(model.score(packed["x"]), model.score(X))


def test_no_rows_and_no_features(model):
    assert model.score(np.zeros((0, 8))).shape == (0,)
    assert model.leaves(np.zeros((0, 8), dtype=int)).shape == (0, 10)
    assert Ensemble.from_trees([2.0]).score(np.zeros((100, 0))).tolist() == [2.0] * 100
    assert Ensemble.from_trees([2.0]).score(np.zeros((100, 0), order="F")).tolist() == [2.0] * 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(8), r"two dimensions \(documents x features\), got shape \(8,\); for one document write X.reshape"),
        ([], "two dimensions"),
        (3.0, "two dimensions"),
        (np.zeros((2, 3, 4)), "two dimensions"),
        (np.zeros((5, 7)), "X has 7 features but the model was built on 8"),
        (np.zeros((5, 9)), "X has 9 features but the model was built on 8"),
        ([["a"] * 8], "X must be a matrix of numbers"),
        ([[1j] * 8], "X must be a matrix of numbers, got complex128"),
        ([[1.0], [1.0, 2.0]], "X must be a matrix of numbers"),
        (np.zeros((2, 8), dtype="M8[s]"), "X must be a matrix of numbers, got datetime64"),
        (None, "X must be a matrix of numbers|two dimensions"),
    ],
)
def test_what_is_no_matrix_of_features_is_refused(model, wrong, message):
    for use in (model.score, model.leaves):
        with pytest.raises(DataError, match=message):
            use(wrong)


def test_a_dataset_is_named(model, X):
    with pytest.raises(DataError, match=r"X is a Dataset: give its features, data\.X"):
        model.score(Dataset(X, group=[150]))
