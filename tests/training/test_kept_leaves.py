"""The kernel that takes trees out of scores and puts them in: exact sums, whatever came and went."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood import _native
from rankwood.training.watch import KeptLeaves

pytestmark = pytest.mark.native

values = st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: v if abs(v) > 1e-30 else 0.0)


def on_grid(value: float) -> Fraction:
    """The nearest multiple of 2^-80; of two, the even one."""
    return Fraction(round(Fraction(value) * 2**80), 2**80)


@given(
    trees=st.lists(st.tuples(st.lists(values, min_size=2, max_size=4), values), min_size=1, max_size=12),
    n_out=st.integers(0, 11),
    seed=st.integers(0, 99),
)
def test_scores_are_the_exact_sum_rounded_once(trees, n_out, seed):
    rng = np.random.default_rng(seed)
    n_docs = 37
    dtypes = [np.uint8 if rng.random() < 0.5 else np.uint16 for _ in trees]
    leaves = [rng.integers(0, len(v), n_docs).astype(d) for (v, _), d in zip(trees, dtypes, strict=True)]
    tables = [np.array(v) for v, _ in trees]
    weights = [w for _, w in trees]
    scores, rests = np.zeros(n_docs), np.zeros(n_docs)
    _native.add_trees(leaves, tables, weights, scores, rests, 1)
    order = rng.permutation(len(trees))
    out, rest = order[:n_out], order[n_out:]
    for t in out:
        _native.add_trees([leaves[t]], [tables[t]], [-weights[t]], scores, rests, 1)
    for i in range(n_docs):
        exact = sum((on_grid(weights[t] * tables[t][leaves[t][i]]) for t in rest), Fraction(0))
        assert scores[i] == float(exact)
        assert Fraction(scores[i]) + Fraction(rests[i]) == exact


def test_threads_and_blocks_change_nothing():
    rng = np.random.default_rng(0)
    n_docs, n_trees = 5000, 20
    leaves = [rng.integers(0, 60, n_docs).astype(np.uint8) for _ in range(n_trees)]
    tables = [rng.normal(size=60) for _ in range(n_trees)]
    found = []
    for n_threads in (1, 2, 3):
        scores, rests = rng.normal(size=0), None
        scores, rests = np.full(n_docs, 0.1), np.zeros(n_docs)
        _native.add_trees(leaves, tables, [0.3] * n_trees, scores, rests, n_threads)
        found.append((scores, rests))
    for scores, rests in found[1:]:
        assert_array_equal(scores, found[0][0])
        assert_array_equal(rests, found[0][1])


@given(n_trees=st.integers(1, 6), seed=st.integers(0, 99))
def test_other_values_leave_no_trace_of_the_old_ones(n_trees, seed):
    """Scores are those that they would be had the leaves had these values from the start."""
    rng = np.random.default_rng(seed)
    leaves = [rng.integers(0, 4, 50).astype(np.uint16) for _ in range(n_trees)]
    start, weights = rng.normal(size=50), {number: float(weight) for number, weight in enumerate(rng.random(n_trees))}

    def kept_with(tables):
        kept = KeptLeaves(start.copy(), n_threads=1)
        for number, table in enumerate(tables):
            kept.keep(
                number, rw.Tree.from_nested((0, 0.0, (0, -1.0, *table[:2]), (0, 1.0, *table[2:]))), leaves[number]
            )
        kept.put_in(weights, weights)
        return kept

    old, new = rng.normal(size=(2, n_trees, 4)).tolist()
    kept, expected = kept_with(old), kept_with(new)
    kept.revalue({number: np.array(table) for number, table in enumerate(new)}, weights)
    assert_array_equal(kept.scores, expected.scores)
    assert_array_equal(kept.rests, expected.rests)
    assert [values.tolist() for values in kept.values(weights).values()] == new


def test_arrays_that_do_not_fit_are_refused():
    leaf, table, scores = np.zeros(3, dtype=np.uint16), np.zeros(2), np.zeros(3)
    for arguments, message in (
        (([leaf[:2]], [table], [1.0], scores, scores.copy()), "one leaf per score is needed"),
        (([leaf + np.uint16(2)], [table], [1.0], scores, scores.copy()), "leaf out of range"),
        (([leaf.astype(np.int64)], [table], [1.0], scores, scores.copy()), "leaves must be uint8 or uint16"),
        (([leaf], [table], [], scores, scores.copy()), "trees need leaves, values, weights"),
        (([leaf], [table], [1.0], scores, np.zeros(2)), "one rest per score is needed"),
    ):
        with pytest.raises(ValueError, match=message):
            _native.add_trees(*arguments, 1)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("row", [0, 20_000, 39_999])
def test_leaves_out_of_range_are_refused_wherever_they_are(row, n_threads):
    leaves, values, scores = np.zeros(40_000, np.uint16), np.array([1.0, 2.0]), np.zeros(40_000)
    _native.add_leaf_values(leaves, values, 0.5, scores, n_threads)
    assert_array_equal(scores, 0.5)
    leaves[row] = 2
    with pytest.raises(ValueError, match="leaf out of range"):
        _native.add_leaf_values(leaves, values, 0.5, scores, n_threads)
    with pytest.raises(ValueError, match="leaf out of range"):
        _native.add_trees([leaves], [values], [1.0], scores, scores.copy(), n_threads)
