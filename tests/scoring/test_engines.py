"""What holds for every engine: the reference's leaves and the reference's bits, whatever the model and the rows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import ensemble as oracle
from rankwood.scoring.engines import ENGINES
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds, values_near

pytestmark = pytest.mark.native

NATIVE = [name for name, engine in ENGINES.items() if not engine.limits.needs_compiler]


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def assert_agrees(name, model, X, n_threads=1):
    """Leaves and both sums are those of plain Python."""
    prepared = rw.get_engine(name).prepare(model)
    assert_array_equal(prepared.leaves(X, n_threads=n_threads), oracle.leaves(model, X))
    assert_array_equal(bits(prepared.score(X, precision="double", n_threads=n_threads)), bits(oracle.score(model, X)))
    single = prepared.score(X, precision="single", n_threads=n_threads)
    assert_array_equal(bits(single), bits(oracle.score_single(model, X)))


def assert_like_reference(name, model, X, n_threads=1):
    prepared, reference = rw.get_engine(name).prepare(model), rw.get_engine("reference").prepare(model)
    assert_array_equal(prepared.leaves(X, n_threads=n_threads), reference.leaves(X))
    for precision in ("single", "double"):
        scores = prepared.score(X, precision=precision, n_threads=n_threads)
        assert_array_equal(bits(scores), bits(reference.score(X, precision=precision)))


@pytest.mark.parametrize("name", NATIVE)
@given(data=st.data())
def test_leaves_and_sums_are_the_oracles(name, data):
    model = data.draw(ensembles())
    X = data.draw(rows_near_thresholds(model, max_rows=60))
    assert_agrees(name, model, X, n_threads=data.draw(st.sampled_from([1, 3])))


@pytest.mark.parametrize("name", NATIVE)
@given(data=st.data())
def test_one_tree_of_any_shape(name, data):
    # Up to 40 leaves: every size of cluster, and several above each other.
    model = data.draw(ensembles(max_trees=1, max_leaves=40, max_features=2))
    X = data.draw(rows_near_thresholds(model, max_rows=40))
    assert_agrees(name, model, X)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize(
    ("n_leaves", "shape"),
    [(1, "random"), (2, "random"), (7, "full"), (8, "chain"), (16, "random"), (17, "full"), (32, "random"),
     (64, "random"), (65, "full"), (128, "random"), (129, "chain"), (255, "random"), (256, "full"), (257, "random"),
     (501, "chain"),
     (700, "full"), (5000, "random"), (1200, "chain")],
)  # fmt: skip
def test_trees_of_every_size(name, n_leaves, shape):
    model = big_ensemble(n_leaves, n_trees=3 if n_leaves > 300 else 20, n_leaves=n_leaves, shape=shape)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, model.n_features)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    for rows in (X, X.astype(np.float32), X[:16], X[:5].astype(np.float32)):  # some engines treat a few otherwise
        assert_like_reference(name, model, rows, n_threads=2)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("n_rows", [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 511, 513, 1030])
def test_batches_of_every_size(name, n_rows):
    model = big_ensemble(3, n_trees=33, n_leaves=20)
    X = np.random.default_rng(n_rows).normal(size=(n_rows, model.n_features)).round(1).astype(np.float32)
    for n_threads in (1, 3):
        assert_like_reference(name, model, X, n_threads=n_threads)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("n_thresholds", [14, 15, 16, 17, 254, 255, 256, 257, 1000, 4097])
def test_features_with_many_thresholds(name, n_thresholds):
    # One stump per threshold; each is tried on it and one step beside it, in float32 and float64.
    rng = np.random.default_rng(n_thresholds)
    thresholds = np.sort(rng.normal(size=n_thresholds)) * 10.0 ** rng.integers(-40, 40, n_thresholds)
    model = rw.Ensemble.from_trees([(0, t, 0.0, 1.0, bool(rng.random() < 0.5)) for t in thresholds], n_features=2)
    for dtype in (np.float32, np.float64):
        near = rng.permutation(values_near(thresholds, np.dtype(dtype)))[:1500]
        X = np.column_stack([near, near]).astype(dtype)
        assert_like_reference(name, model, X)


@pytest.mark.parametrize("name", NATIVE)
def test_missing_values_in_both_directions(name):
    # Sent right below a threshold and left from there on (as where NaN counts as 0), the other way round, and mixed.
    values = [-2.0, -1.0, 0.5, 3.0]
    X = np.array([[np.nan], [-3.0], [-2.0], [-1.5], [0.0], [0.5], [4.0]])
    for directions in np.ndindex(2, 2, 2, 2):
        trees = [(0, t, 0.0, 10.0**i, bool(d)) for i, (t, d) in enumerate(zip(values, directions, strict=True))]
        assert_agrees(name, rw.Ensemble.from_trees(trees), X)
    both = rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0, True), (0, 1.0, 0.0, 10.0, False)])
    assert rw.get_engine(name).prepare(both).score([[np.nan], [1.0], [2.0]]).tolist() == [10.0, 0.0, 11.0]


@pytest.mark.parametrize("name", NATIVE)
def test_memory_orders_and_kinds_of_input(name):
    import scipy.sparse

    model = big_ensemble(4, n_trees=40, n_leaves=30, n_features=6)
    X = np.random.default_rng(0).normal(size=(333, 6)).round(1).astype(np.float32)
    X[X < -0.5] = 0.0
    prepared = rw.get_engine(name).prepare(model)
    expected = bits(oracle.score(model, X))
    wide = np.zeros((333, 12), dtype=np.float32)
    wide[:, ::2] = X
    same = {
        "Fortran order": np.asfortranarray(X),
        "every other column": wide[:, ::2],
        "reversed twice": X[::-1, ::-1].copy()[::-1, ::-1],
        "float64": X.astype(np.float64),
        "big-endian": X.astype(">f4"),
        "csr": scipy.sparse.csr_matrix(X),
        "list": X.tolist(),
        "read-only": _read_only(X),
    }
    for kind, rows in same.items():
        assert_array_equal(bits(prepared.score(rows, precision="double")), expected, err_msg=kind)


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("name", NATIVE)
def test_no_trees_and_features_without_splits(name):
    empty = rw.Ensemble.from_trees([], n_features=3, base=2.5)
    prepared = rw.get_engine(name).prepare(empty)
    assert prepared.score(np.zeros((4, 3))).tolist() == [2.5] * 4
    assert prepared.leaves(np.zeros((4, 3))).shape == (4, 0)
    leaf = rw.Ensemble.from_trees([1.5, -0.0], n_features=0)
    assert rw.get_engine(name).prepare(leaf).score(np.zeros((2, 0))).tolist() == [1.5, 1.5]
    last = rw.Ensemble.from_trees([(700, 0.5, 1.0, 2.0)], n_features=1000)
    X = np.full((3, 1000), np.nan)
    X[:, 700] = [0.5, 0.6, np.nan]
    assert rw.get_engine(name).prepare(last).score(X).tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize("name", NATIVE)
def test_values_that_float32_cannot_hold_are_summed_in_double(name):
    for scale in (1e38, 1e-35):
        model = rw.Ensemble.from_trees([(0, 0.5, 1.0 * scale, 3.0 * scale), (0, 0.5, 0.1 * scale, 7.0 * scale)])
        prepared = rw.get_engine(name).prepare(model)
        X = [[0.0], [1.0]]
        assert_array_equal(prepared.score(X, precision="single"), prepared.score(X, precision="double"))


@pytest.mark.parametrize("name", NATIVE)
def test_single_precision_is_close(name):
    model = big_ensemble(5, n_trees=1000, n_leaves=16)
    X = np.random.default_rng(0).normal(size=(200, model.n_features))
    prepared = rw.get_engine(name).prepare(model)
    single, double = (prepared.score(X, precision=p) for p in ("single", "double"))
    # Relative to what is summed: a score near 0 may be the difference of large sums.
    largest = np.abs(np.repeat(model.tree_weights, 16) * model.leaf_value).reshape(-1, 16).max(axis=1).sum()
    assert np.abs(single - double).max() < 1e-7 * largest
    assert not np.array_equal(single, double)


@pytest.mark.parametrize("name", NATIVE)
def test_scores_do_not_depend_on_how_they_were_asked_for(name):
    """Both ways to score sum in double precision unless told otherwise, as the oracle does."""
    model = big_ensemble(6, n_trees=50, n_leaves=40)
    X = np.random.default_rng(0).normal(size=(200, model.n_features)).astype(np.float32)
    prepared = rw.get_engine(name).prepare(model)
    assert_array_equal(bits(prepared.score(X)), bits(model.score(X)))
    assert_array_equal(bits(prepared.score(X)), bits(oracle.score(model, X)))


@pytest.mark.parametrize("name", NATIVE)
def test_eight_threads_at_once(name):
    model = big_ensemble(6, n_trees=50, n_leaves=40)
    X = np.random.default_rng(0).normal(size=(700, model.n_features)).astype(np.float32)
    prepared = rw.get_engine(name).prepare(model)
    expected = prepared.score(X)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: prepared.score(X, n_threads=2), range(48)):
            assert_array_equal(scores, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.skipif("RANKWOOD_SANITIZED" in os.environ, reason="the address sanitizer may hang in a fork with threads")
@pytest.mark.parametrize("name", NATIVE)
def test_after_a_fork(name):
    model = big_ensemble(7, n_trees=50, n_leaves=40)
    X = np.random.default_rng(0).normal(size=(700, model.n_features)).astype(np.float32)
    prepared = rw.get_engine(name).prepare(model)
    expected = prepared.score(X, n_threads=2)  # threads have lived, and are gone
    child = os.fork()
    if child == 0:
        same = np.array_equal(prepared.score(X, n_threads=2), expected) and np.array_equal(
            model.score(X), model.score(X)
        )
        os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_registry():
    model = big_ensemble(8, n_trees=2, n_leaves=9000)
    assert "reference" in rw.available_engines(model)
    assert "bitslice" not in rw.available_engines(model)
    with pytest.raises(rw.ModelError, match="'bitslice' cannot score this model: a tree has 9,000 leaves"):
        model.score(np.zeros((1, 8)), engine="bitslice")
    with pytest.raises(rw.RankwoodError, match="no engine 'quick'; choose one of: auto, reference, bitslice"):
        rw.get_engine("quick")
    with pytest.raises(rw.RankwoodError, match="precision must be 'single' or 'double', got 'half'"):
        model.score(np.zeros((1, 8)), precision="half")
    with pytest.raises(rw.DataError, match="X has 7 features but the model was built on 8"):
        model.score(np.zeros((1, 7)))


def test_auto_gives_the_same_bits_for_every_batch_size():
    model = big_ensemble(9, n_trees=64, n_leaves=24)
    X = np.random.default_rng(0).normal(size=(600, model.n_features)).astype(np.float32)
    for precision in ("single", "double"):
        expected = model.score(X, engine="reference", precision=precision)
        for n in (1, 3, 20, 40, 100, 600):
            assert_array_equal(bits(model.score(X[:n], precision=precision)), bits(expected[:n]))
