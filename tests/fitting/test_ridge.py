"""Leaf values of all trees at once by least squares: the kernel beside a dense solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles.ridge import centring_matrix, leaf_matrix, loss, ridge, tree_gain
from rankwood import _native
from rankwood.fitting.outputs import TreeOutputs
from rankwood.fitting.ridge import centred, joint_ridge, tree_gains

pytestmark = pytest.mark.native

CODES = [np.uint8, np.uint16, np.uint32]
EXACT = {"iterations": 3000, "tolerance": 1e-12}


def outputs_of(codes, sizes, n_threads=1) -> TreeOutputs:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return TreeOutputs(codes, np.zeros(offsets[-1]), offsets, 0.0, n_threads)


@st.composite
def problems(draw):
    """Outputs of trees, offsets of queries or None, a target, and the trees that are fitted."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=7))  # leaves; some of which nobody reaches
    queries = draw(st.lists(st.sampled_from([0, 1, 1, 2, 5, 12]), min_size=1, max_size=6).filter(any))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.stack([rng.integers(0, size, sum(queries)) for size in sizes]).astype(draw(st.sampled_from(CODES)))
    offsets = np.concatenate([[0], np.cumsum(queries)]).astype(np.int64) if draw(st.booleans()) else None
    target = rng.normal(size=sum(queries)) * draw(st.sampled_from([1.0, 1e-6, 1e5])) + draw(st.sampled_from([0.0, 7.0]))
    trees = np.sort(rng.choice(len(sizes), draw(st.integers(1, len(sizes))), replace=False))
    return outputs_of(codes, sizes, draw(st.integers(1, 3))), offsets, target, trees


def matrices(outputs, offsets, trees):
    A = leaf_matrix(outputs.codes, outputs.leaf_offsets, trees)
    columns = np.concatenate([np.arange(*outputs.leaf_offsets[tree : tree + 2]) for tree in trees])
    return A, centring_matrix(outputs.n_docs, offsets), columns


@settings(max_examples=150)
@given(problem=problems(), l2=st.sampled_from([0.0, 0.5, 10.0]), seed=st.integers(0, 99))
def test_it_is_the_dense_solution(problem, l2, seed):
    """Its sums are; without l2 the values need not be, as many give these sums."""
    outputs, offsets, target, trees = problem
    A, C, columns = matrices(outputs, offsets, trees)
    scale = np.abs(target).max()
    start = np.random.default_rng(seed).normal(size=A.shape[1]) * scale
    values, residual = joint_ridge(outputs, target, start, offsets=offsets, trees=trees, l2=l2, **EXACT)
    expected = ridge(A, C, target, l2, columns)
    assert_allclose(C @ A @ values, C @ A @ expected, rtol=1e-5, atol=1e-6 * scale)
    if l2:
        assert_allclose(values[columns], expected[columns], rtol=1e-5, atol=1e-6 * scale)
    assert_allclose(residual, C @ (target - A @ values), rtol=1e-7, atol=1e-7 * scale)
    others = np.setdiff1d(np.arange(A.shape[1]), columns)
    assert_array_equal(values[others], start[others])


@given(problem=problems(), l2=st.sampled_from([0.0, 1.0, 20.0]))
def test_every_iteration_comes_nearer(problem, l2):
    outputs, offsets, target, trees = problem
    A, C, columns = matrices(outputs, offsets, trees)
    start = np.zeros(A.shape[1])
    losses = []
    for iterations in range(5):
        values, residual = joint_ridge(
            outputs, target, start, offsets=offsets, trees=trees, l2=l2, iterations=iterations, tolerance=0.0
        )
        losses.append(loss(A, C, target, l2, values, columns))
        assert_allclose(residual, C @ (target - A @ values), atol=1e-9 * np.abs(target).max())
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()


@pytest.mark.parametrize("dtype", CODES)
def test_bits_do_not_depend_on_threads(dtype):
    rng = np.random.default_rng(0)
    n_docs, n_trees = 30_000, 11  # several blocks of queries, and trees that are not a multiple of four
    sizes = np.full(n_trees, 60)
    codes = rng.integers(0, 60, (n_trees, n_docs)).astype(dtype)
    offsets = np.concatenate([[0], np.sort(rng.choice(n_docs, 700)), [n_docs]]).astype(np.int64)
    target, start = rng.normal(size=n_docs), rng.normal(size=sizes.sum())
    for queries in (offsets, None):
        found = [
            joint_ridge(outputs_of(codes, sizes, n_threads), target, start, offsets=queries, l2=3.0, iterations=7)
            for n_threads in (1, 2, 3)
        ]
        gains = [
            tree_gains(outputs_of(codes, sizes, n_threads), found[0][1], np.arange(n_trees), l2=3.0)
            for n_threads in (1, 2, 3)
        ]
        for (values, residual), gain in zip(found[1:], gains[1:], strict=True):
            assert_array_equal(values, found[0][0])
            assert_array_equal(residual, found[0][1])
            assert_array_equal(gain, gains[0])


@given(problem=problems(), seed=st.integers(0, 99))
def test_the_order_of_documents_does_not_matter(problem, seed):
    """Sums over leaves are of integers, so gains are the same to the bit; means of queries are of doubles."""
    outputs, offsets, target, trees = problem
    rng = np.random.default_rng(seed)
    bounds = np.array([0, outputs.n_docs]) if offsets is None else offsets
    queries = [rng.permutation(np.arange(*bounds[q : q + 2])) for q in range(len(bounds) - 1)]
    rng.shuffle(queries)
    order = np.concatenate(queries).astype(np.int64)
    moved = None if offsets is None else np.concatenate([[0], np.cumsum([len(q) for q in queries])]).astype(np.int64)
    sizes = np.diff(outputs.leaf_offsets)
    other = outputs_of(np.ascontiguousarray(outputs.codes[:, order]), sizes, outputs.n_threads)
    assert_array_equal(tree_gains(other, target[order], trees, l2=2.0), tree_gains(outputs, target, trees, l2=2.0))
    start = np.zeros(sizes.sum())
    values, residual = joint_ridge(outputs, target, start, offsets=offsets, trees=trees, l2=1.0, **EXACT)
    again, left = joint_ridge(other, target[order], start, offsets=moved, trees=trees, l2=1.0, **EXACT)
    scale = np.abs(target).max()
    assert_allclose(again, values, atol=1e-8 * scale)
    assert_allclose(left, residual[order], atol=1e-8 * scale)


@given(problem=problems(), l2=st.sampled_from([0.0, 10.0]))
def test_gains_are_those_of_the_formula(problem, l2):
    outputs, offsets, target, trees = problem
    residual, sizes = centred(target, offsets), np.diff(outputs.leaf_offsets)
    expected = [tree_gain(outputs.codes, residual, tree, sizes[tree], l2) for tree in trees]
    scale = np.abs(residual).max() ** 2 * len(residual)
    assert_allclose(tree_gains(outputs, residual, trees, l2=l2), expected, rtol=1e-9, atol=1e-12 * scale)


@given(problem=problems())
def test_a_gain_is_what_the_residual_loses(problem):
    """Without l2 and without queries, the fall of the squared residual when the tree alone is fitted."""
    outputs, _, target, trees = problem
    for tree, gain in zip(trees, tree_gains(outputs, target, trees, l2=0.0), strict=True):
        start = np.zeros(len(outputs.values))
        _, left = joint_ridge(outputs, target, start, trees=np.array([tree]), l2=0.0, **EXACT)
        assert_allclose(gain, target @ target - left @ left, rtol=1e-8, atol=1e-8 * (target @ target))


@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_centring(sizes, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.random.default_rng(seed).normal(size=sum(sizes))
    assert_allclose(centred(values, offsets), centring_matrix(sum(sizes), offsets) @ values, atol=1e-14)
    assert_array_equal(centred(values, None), values)


@given(problem=problems(), l2=st.sampled_from([0.0, 10.0]))
def test_who_starts_at_the_solution_stays_there(problem, l2):
    """What rounding left of the slope is not followed, however many iterations there may be.

    Its sums are meant: without l2 a constant may be added to all leaves of a tree where queries are centred.
    """
    outputs, offsets, target, trees = problem
    how = {"offsets": offsets, "trees": trees, "l2": l2, "iterations": 500, "tolerance": 0.0}
    values, residual = joint_ridge(outputs, target, np.zeros(len(outputs.values)), **how)
    again, left = joint_ridge(outputs, target, values, **how)
    scale = np.abs(target).max()
    assert_allclose(left, residual, atol=1e-8 * scale)
    if l2:
        assert_allclose(again, values, atol=1e-8 * scale)


def test_sums_that_overflow_end_the_search():
    outputs = outputs_of(np.zeros((3, 4), np.uint8), [1, 1, 1])
    start = np.full(3, 1.7e308)
    values, _ = joint_ridge(outputs, np.zeros(4), start, l2=1.0)
    assert_array_equal(values, start)


def test_nothing_to_fit():
    outputs = outputs_of(np.zeros((2, 3), np.uint8), [2, 2])
    target, start = np.array([1.0, 2.0, 3.0]), np.arange(4.0)
    values, residual = joint_ridge(outputs, target, start, trees=np.array([], np.int64))
    assert_array_equal(values, start)
    assert_array_equal(residual, target)
    assert len(tree_gains(outputs, target, np.array([], np.int64), l2=1.0)) == 0
    values, _ = joint_ridge(outputs, target, np.zeros(4), l2=0.0, **EXACT)
    assert_allclose(values, [1.0, 0.0, 1.0, 0.0])  # a leaf without documents stays where it is


def arguments(**changes):
    """Those of the native joint_ridge, in order."""
    given = {
        "codes": np.zeros((2, 3), np.uint8),
        "values": np.zeros(3),
        "leaf_offsets": np.array([0, 1, 3]),
        "trees": np.array([0, 1]),
        "offsets": np.array([0, 1, 3]),
        "counts": np.array([3.0, 3.0, 0.0]),
        "target": np.zeros(3),
        "l2": 1.0,
        "iterations": 3,
        "tolerance": 1e-3,
        "n_threads": 1,
        "residual": np.zeros(3),
    }
    assert changes.keys() <= given.keys()
    return list((given | changes).values())


REFUSED = [
    ({"values": np.zeros(4)}, "leaf_offsets must end with the leaves"),
    ({"leaf_offsets": np.array([0, 3])}, "leaf_offsets must have one entry more than there are trees"),
    ({"leaf_offsets": np.array([0, 3, 3])}, "every tree must have a leaf"),
    ({"leaf_offsets": np.array([1, 2, 3])}, "leaf_offsets must start with 0"),
    ({"trees": np.array([0, 2])}, "trees must hold numbers of trees"),
    ({"trees": np.array([-1])}, "trees must hold numbers of trees"),
    ({"trees": np.array([1, 1])}, "trees must name each tree once"),
    ({"offsets": np.array([1, 3])}, "offsets must start with 0"),
    ({"offsets": np.array([], np.int64)}, "offsets must start with 0"),
    ({"offsets": np.array([0, 2, 1, 3])}, "offsets must not decrease"),
    ({"offsets": np.array([0, 2])}, "offsets must end with the number of documents"),
    ({"counts": np.zeros(2)}, "counts must have one entry per leaf"),
    ({"target": np.zeros(2)}, "target must have one entry per document"),
    ({"target": np.array([0.0, np.nan, 0.0])}, "target must be finite"),
    ({"residual": np.zeros(4)}, "residual must have one entry per document"),
    ({"l2": -1.0}, "l2 must be a number from 0 upwards"),
    ({"l2": np.nan}, "l2 must be a number from 0 upwards"),
    ({"l2": np.inf}, "l2 must be a number from 0 upwards"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_arrays_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        _native.joint_ridge(*arguments(**changes))


def test_arrays_of_another_type_are_refused():
    for changes in ({"codes": np.zeros((2, 3), np.int8)}, {"values": np.zeros(3, np.float32)}):
        with pytest.raises(TypeError):
            _native.joint_ridge(*arguments(**changes))
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    with pytest.raises(TypeError):
        _native.joint_ridge(*arguments(values=read_only))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"residual": np.zeros(2)}, "residual must have one entry per document"),
        ({"residual": np.array([0.0, np.inf, 0.0])}, "residual must be finite"),
        ({"counts": np.zeros(1)}, "counts must have one entry per leaf"),
        ({"gains": np.zeros(1)}, "gains must have one entry per tree named"),
        ({"trees": np.array([0, 0])}, "trees must name each tree once"),
        ({"trees": np.array([0, 7])}, "trees must hold numbers of trees"),
    ],
)
def test_gains_of_arrays_that_do_not_fit_are_refused(changes, words):
    given = {
        "codes": np.zeros((2, 3), np.uint16),
        "values": np.zeros(3),
        "leaf_offsets": np.array([0, 1, 3]),
        "trees": np.array([0, 1]),
        "residual": np.zeros(3),
        "counts": np.ones(3),
        "l2": 1.0,
        "n_threads": 1,
        "gains": np.zeros(2),
    }
    with pytest.raises(ValueError, match=words):
        _native.tree_gains(*(given | changes).values())


def test_of_a_model():
    """Trees of a trained model come nearer to another target than any of them alone."""
    data = rw.make_ranking(n_queries=20, docs_per_query=15, n_features=5, seed=1)
    model = rw.LambdaMART(n_trees=10, n_leaves=8, min_docs_per_leaf=5).fit(data).ensemble_
    outputs, offsets = TreeOutputs.of(model, data), data.offsets
    target = centred(data.y, offsets)
    _, residual = joint_ridge(outputs, data.y, np.zeros(model.n_leaves), offsets=offsets, l2=1.0)
    alone = tree_gains(outputs, target, np.arange(10), l2=1.0)
    assert target @ target - residual @ residual > alone.max() > 0.0
