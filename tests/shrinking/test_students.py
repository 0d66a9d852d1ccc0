"""Students against dense matrices: selection, growth, thinning."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles import students as slow
from rankwood.data.bins import BinnedDataset
from rankwood.shrinking.path import one_weight
from rankwood.shrinking.students import Growing, Lesson, Selection, Thinning, documents, grow_trees, select_trees, thin

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def lesson():
    data = rw.make_ranking(n_queries=30, docs_per_query=12, n_features=5, seed=3)
    model = rw.LambdaMART(n_trees=14, n_leaves=6, min_docs_per_leaf=5, learning_rate=0.3).fit(data).ensemble_
    model = one_weight(model)
    return model, Lesson.of(model, documents([data], model), 1)


@pytest.mark.parametrize("at_once", [1, 4])
def test_trees_are_selected_as_by_dense_algebra(lesson, at_once):
    model, lesson = lesson
    how = Selection(l2=10.0, at_once=at_once, iterations=300)
    X, offsets = lesson.data.X, lesson.data.offsets
    target = slow.centred(model.score(X), offsets)
    for size in (3, 9):
        (student,) = select_trees(model, lesson, [size], how)
        taken, values = slow.select_trees(model, X, target, offsets, size, l2=10.0, at_once=at_once)
        expected = model.replace(leaf_value=values).select(np.sort(taken))
        assert_array_equal(student.threshold, expected.threshold)
        assert_array_equal(student.feature, expected.feature)
        assert_allclose(student.leaf_value, expected.leaf_value, atol=2e-3)


def test_every_stage_of_growth_is_fitted_jointly(lesson):
    """Leaf values are those of the ridge over all trees, and each stage comes nearer to the teacher."""
    model, lesson = lesson
    how = Growing(trees_per_stage=3, n_leaves=6, min_docs_per_leaf=10, l2=30.0, iterations=500)
    X, offsets = lesson.data.X, lesson.data.offsets
    target = slow.centred(model.score(X), offsets)
    missing = [float(target @ target)]
    binned = BinnedDataset.make(lesson.data, n_threads=1)
    for stage, student in enumerate(grow_trees(binned, lesson, 3, how, model), 1):
        assert student.n_trees == 3 * stage
        matrix = slow.leaf_matrix(student, X)
        assert matrix.sum(axis=0).min() >= 10
        best = slow.objective(matrix, target, offsets, 30.0, slow.ridge(matrix, target, offsets, 30.0))
        found = slow.objective(matrix, target, offsets, 30.0, student.leaf_value)
        assert best <= found <= best * (1 + 1e-5)
        assert found < missing[-1]
        missing.append(found)


def test_several_sizes_are_one_after_another(lesson):
    model, lesson = lesson
    small, large = select_trees(model, lesson, [8, 4], Selection())
    assert (small.n_trees, large.n_trees) == (4, 8)
    assert set(small.threshold) <= set(large.threshold)


@pytest.mark.parametrize(("n_leaves", "n_features"), [(40, 5), (84, 3), (20, 2), (2, 1)])
def test_thinning_keeps_to_sizes(lesson, n_leaves, n_features):
    model, lesson = lesson
    smaller = thin(model, lesson, n_leaves, n_features, Thinning())
    assert 2 <= smaller.n_leaves <= n_leaves
    assert 1 <= len(np.unique(smaller.feature)) <= n_features
    assert smaller.trees.sizes.min() > 0


def test_merged_thresholds_send_the_lesson_the_same_way(lesson, monkeypatch):
    model, lesson = lesson
    before = []
    merge = rw.pruning.nodes.merge_thresholds

    def watched(student, X):
        before.append(student)
        return merge(student, X)

    monkeypatch.setattr("rankwood.shrinking.students.merge_thresholds", watched)
    smaller = thin(model, lesson, 50, 5, Thinning())
    assert_array_equal(smaller.leaves(lesson.data.X), before[0].leaves(lesson.data.X))
    assert len(np.unique(smaller.threshold)) <= len(np.unique(before[0].threshold))


def test_a_model_that_is_small_enough_keeps_its_leaves(lesson):
    model, lesson = lesson
    same = thin(model, lesson, model.n_leaves, 5, Thinning())
    assert_array_equal(same.leaf_value, model.leaf_value)
    assert_array_equal(same.leaves(lesson.data.X), model.leaves(lesson.data.X))


def test_the_base_gives_the_mean_score_of_the_teacher(lesson):
    model, lesson = lesson
    student = lesson.levelled(thin(model, lesson, 40, 3, Thinning()))
    assert student.score(lesson.data.X).mean() == pytest.approx(model.score(lesson.data.X).mean())
    assert_array_equal(student.leaf_cover, slow.leaf_matrix(student, lesson.data.X).sum(axis=0))


def test_documents_stand_query_by_query_with_the_model_s_features():
    model = rw.Ensemble.from_trees([(0, 0.5, 0.0, (1, 0.5, 1.0, 2.0))], feature_names=["a", "b"])
    mixed = rw.Dataset([[1, 2], [3, 4], [5, 6]], [0, 1, 2], qid=[7, 8, 7], feature_names=["b", "a"])
    plain = rw.Dataset([[7, 8]], group=[1], feature_names=["a", "b"])
    joined = documents([mixed, plain], model)
    assert_array_equal(joined.X, [[2, 1], [6, 5], [4, 3], [7, 8]])
    assert_array_equal(joined.offsets, [0, 2, 3, 4])
    assert joined.feature_names == ("a", "b")


def test_trees_too_large_for_a_byte_are_refused():
    with pytest.raises(rw.RankwoodError, match="trees of 2 to 256 leaves, got 300"):
        Growing(n_leaves=300)
