"""Early exit: every engine stops the documents that the rule stops, and gives all of them the rule's scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import early_exit as oracle
from oracles import ensemble as ensemble_oracle
from rankwood import _native
from rankwood.scoring.engines import ENGINES
from strategies.ensembles import big_ensemble, ensembles, rows_near_thresholds

pytestmark = pytest.mark.native

NATIVE = [name for name, engine in ENGINES.items() if not engine.limits.needs_compiler]
MARGINS = st.sampled_from([0.0, math.inf, 1e-3, 1.0, 5.0, 100.0])


def bits(scores):
    return np.asarray(scores, dtype=np.float64).view(np.int64)


def expected_of(model, X, qid, precision):
    """The oracle's scores and trees, from scores of the first trees by the reference engine."""
    rule = model.exit
    partials = [
        model.select(np.arange(n)).score(X, engine="reference", precision=precision)
        for n in (*rule.checkpoints, model.n_trees)
    ]
    return oracle.score(partials, (*rule.checkpoints, model.n_trees), rule.margins, rule.top, qid)


def assert_like_the_rule(model, X, qid, engines=NATIVE, threads=(1, 3)):
    for precision in ("double", "single"):
        scores, trees = expected_of(model, X, qid, precision)
        for name in engines:
            for n_threads in threads:
                options = {"qid": qid, "engine": name, "precision": precision, "n_threads": n_threads}
                assert_array_equal(bits(model.score(X, **options)), bits(scores), err_msg=f"{options}")
                assert_array_equal(model.trees_evaluated(X, **options), trees)


@st.composite
def rules(draw, n_trees):
    places = [at for at in range(16, n_trees, 16) if draw(st.booleans())]
    return rw.EarlyExit(places, [draw(MARGINS) for _ in places], top=draw(st.integers(1, 12)))


@given(data=st.data())
def test_scores_are_the_oracles(data):
    # A few small trees, over and over, so that there are checkpoints and ties; weights differ.
    few = data.draw(ensembles(max_trees=4, max_leaves=6))
    n_trees = data.draw(st.integers(17, 70))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    model = rw.Ensemble.from_trees(
        [few.tree(number) for number in rng.integers(0, few.n_trees, n_trees)],
        tree_weights=rng.choice([1.0, -0.5, 0.1], n_trees),
        n_features=few.n_features,
        base=few.base,
    ).replace(exit=data.draw(rules(n_trees)))
    X = data.draw(rows_near_thresholds(few, max_rows=60))
    qid = rng.integers(0, data.draw(st.integers(1, 6)), len(X))  # scattered, and some of one document
    assert_like_the_rule(model, X, qid)


def test_partial_scores_are_those_of_the_first_trees():
    """What the oracle starts from is itself compared with plain Python."""
    model = big_ensemble(0, n_trees=33, n_leaves=6)
    X = np.random.default_rng(0).normal(size=(40, model.n_features)).astype(np.float32)
    for n in (16, 32, 33):
        first = model.select(np.arange(n))
        assert_array_equal(bits(first.score(X)), bits(ensemble_oracle.score(first, X)))
        assert_array_equal(bits(first.score(X, precision="single")), bits(ensemble_oracle.score_single(first, X)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_queries_of_every_size(dtype):
    """Several batches of whole queries, and one query that is larger than a batch."""
    model = big_ensemble(1, n_trees=70, n_leaves=20, n_features=6)
    rng = np.random.default_rng(2)
    sizes = np.concatenate([rng.integers(0, 200, 60), [5000], rng.integers(0, 30, 40)])
    X = rng.normal(size=(sizes.sum(), 6)).round(1).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = model.replace(exit=rw.EarlyExit((16, 32, 48), (2.0, 1.0, 0.0)))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    assert_like_the_rule(model, X, qid)
    # By sizes, scattered, in column order: always the same documents.
    scores = model.score(X, group=sizes)
    assert_array_equal(bits(scores), bits(model.score(X, qid=qid)))
    assert_array_equal(bits(scores), bits(model.score(np.asfortranarray(X), group=sizes)))
    mixed = rng.permutation(len(X))
    assert_array_equal(bits(model.score(X[mixed], qid=qid[mixed])), bits(scores[mixed]))
    assert 16 * len(X) < model.trees_evaluated(X, qid=qid).sum() < 70 * len(X)


def test_those_who_stop_stand_below_in_order():
    model = big_ensemble(3, n_trees=80, n_leaves=16, n_features=5)
    X = np.random.default_rng(4).normal(size=(1000, 5)).round(1)
    model = model.replace(exit=rw.EarlyExit((16, 32, 64), (12.0, 5.0, 0.0), top=5))
    scores, trees = model.score(X, group=[1000]), model.trees_evaluated(X, group=[1000])
    assert set(trees) == {16, 32, 64, 80}
    for earlier, later in ((16, 32), (32, 64), (64, 80)):
        assert scores[trees == earlier].max() < scores[trees == later].min()
    first = model.select(np.arange(16)).score(X)[trees == 16]
    assert_array_equal(np.argsort(first, kind="stable"), np.argsort(scores[trees == 16], kind="stable"))
    assert_array_equal(bits(scores[trees == 80]), bits(model.score(X)[trees == 80]))


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_never_is_as_without(name, precision):
    model = big_ensemble(5, n_trees=50, n_leaves=10)
    X = np.random.default_rng(6).normal(size=(300, model.n_features)).astype(np.float32)
    plain = bits(model.score(X, engine=name, precision=precision))
    for rule in (
        rw.EarlyExit((16, 32), (math.inf, math.inf)),
        rw.EarlyExit((), ()),
        rw.EarlyExit((16, 48), (0.0, 0.0), top=300),  # at most `top` documents
    ):
        never = model.replace(exit=rule)
        for queries in ({"group": [100, 200]}, {"qid": np.arange(300) % 7}, {}):
            assert_array_equal(bits(never.score(X, engine=name, precision=precision, **queries)), plain)
    # Queries change nothing without exit, and exit nothing without queries.
    assert_array_equal(bits(model.score(X, engine=name, precision=precision, group=[300])), plain)
    swift = model.replace(exit=rw.EarlyExit((16,), (0.0,)))
    assert_array_equal(bits(swift.score(X, engine=name, precision=precision)), plain)
    assert not np.array_equal(bits(swift.score(X, engine=name, precision=precision, group=[300])), plain)


def test_rounding_never_lifts_anyone():
    """A shift that rounds to nothing: who stops is just below who went on."""
    trees = [(0, 0.5, 0.0, 1e-3)] + [0.0] * 15 + [(0, 0.5, 0.0, -1e17)]
    model = rw.Ensemble.from_trees(trees).replace(exit=rw.EarlyExit((16,), (0.0,), top=1))
    scores = model.score([[1.0], [0.0]], group=[2])
    assert scores.tolist() == [-1e17, np.nextafter(-1e17, -np.inf)]


def test_kinds_of_input():
    import pandas as pd
    import scipy.sparse

    model = big_ensemble(7, n_trees=40, n_leaves=8, n_features=4).replace(
        exit=rw.EarlyExit((16, 32), (0.5, 0.0), top=3)
    )
    X = np.random.default_rng(8).normal(size=(90, 4)).round(1)
    X[X < 0] = 0.0
    qid = np.arange(90) % 4
    expected = bits(model.score(X, qid=qid))
    for rows in (X.tolist(), pd.DataFrame(X), scipy.sparse.csr_matrix(X), X[::-1].copy()[::-1], X.astype(">f8")):
        assert_array_equal(bits(model.score(rows, qid=qid)), expected)
    prepared = rw.get_engine("bitslice").prepare(model)
    assert_array_equal(bits(prepared.score(X, qid=qid)), expected)
    assert model.score(np.zeros((0, 4)), group=[]).shape == (0,)
    assert model.score(np.zeros((0, 4)), group=[0, 0]).shape == (0,)


def test_what_does_not_go():
    model = big_ensemble(9, n_trees=40, n_leaves=8, n_features=4).replace(exit=rw.EarlyExit((16,), (0.5,)))
    with pytest.raises(rw.DataError, match="qid must have one id per row"):
        model.score(np.zeros((3, 4)), qid=[1, 2])
    with pytest.raises(rw.DataError, match="not both"):
        model.score(np.zeros((3, 4)), qid=[1, 2, 3], group=[3])
    with pytest.raises(rw.DataError, match="queries are missing"):
        model.trees_evaluated(np.zeros((3, 4)))
    if "ifelse" in rw.available_engines(model):
        with pytest.raises(rw.ModelError, match="engine 'ifelse' has no early exit"):
            model.score(np.zeros((3, 4)), group=[3], engine="ifelse")


def test_the_kernel_checks_what_it_is_given():
    model = big_ensemble(9, n_trees=40, n_leaves=8, n_features=4)
    arrays = (*model.trees.native(), model.n_features, model.tree_weights, model.base)
    engine = _native.Bitslice(*arrays)

    def make(checkpoints, margins, top=1):
        _native.ReferenceExit(*arrays, np.array([16]), np.array([0.0]), 1)
        return _native.BitsliceExit(engine, np.array(checkpoints), np.array(margins), top)

    for checkpoints, margins, top, message in (
        ([16, 16], [1.0, 1.0], 1, "must rise"),
        ([48], [1.0], 1, "before the last tree"),
        ([8], [1.0], 1, "multiples of 16"),
        ([16], [-1.0], 1, "not be negative"),
        ([16], [np.nan], 1, "not be negative"),
        ([16], [1.0, 2.0], 1, "one entry per checkpoint"),
        ([16], [1.0], 0, "top"),
    ):
        with pytest.raises(ValueError, match=message):
            make(checkpoints, margins, top)
    kernel, X = make([16], [1.0]), np.zeros((3, 4))
    scores, trees = np.zeros(3), np.zeros(3, dtype=np.int32)
    for offsets, order, message in (
        ([0, 2], None, "end with the number of rows"),
        ([0, 4], None, "end with the number of rows"),
        ([1, 3], None, "start with 0"),
        ([0, 3, 2, 3], None, "not decrease"),
        ([0, 3], [0, 1, 1], "every row once"),
        ([0, 3], [0, 1, 3], "every row once"),
        ([0, 3], [0, -1, 2], "every row once"),
        ([0, 3], [0, 1], "one entry per row"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel.score(X, np.array(offsets), None if order is None else np.array(order), scores, trees, False, 1)
