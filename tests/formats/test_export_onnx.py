"""ONNX models, run by onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from strategies.ensembles import big_ensemble
from strategies.exports import exported, models_and_rows, single_bound, telling

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def run(content, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X.astype(np.float64)})[0][:, 0]


@settings(max_examples=30)
@given(models_and_rows(), st.sampled_from([3, 5]))
def test_onnxruntime_scores_alike(given_, version):
    model, X = given_
    scores = run(exported(model, "onnx", version=version)[0], X)
    assert scores.dtype == (np.float32 if version == 3 else np.float64)
    assert_allclose(scores, model.score(X), rtol=0, atol=single_bound(model) * (1 if version == 3 else 1e-6))


@settings(max_examples=30)
@given(models_and_rows(max_trees=1), st.sampled_from([3, 5]))
def test_onnxruntime_reaches_the_same_leaf(given_, version):
    model, X = given_
    model = telling(model)
    assert_array_equal(run(exported(model, "onnx", version=version)[0], X), model.score(X))


@pytest.mark.parametrize("version", [3, 5])
def test_large_model(version):
    model = big_ensemble(3, n_trees=50, n_leaves=32)
    X = np.random.default_rng(0).normal(size=(300, 8)).round(2)
    scores = run(exported(model, "onnx", version=version)[0], X)
    assert_allclose(scores, model.score(X), rtol=0, atol=1e-5 if version == 3 else 1e-12)


def test_version_must_be_known():
    with pytest.raises(rw.ModelError, match="version must be 3 or 5"):
        exported(rw.Ensemble.from_trees([1.0]), "onnx", version=4)


def sides(content):
    """For each node of version 5, number and kind of its two children; and the number of leaves."""
    import onnx

    (node,) = onnx.load_from_string(content).graph.node
    of = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    true = list(zip(of["nodes_truenodeids"], of["nodes_trueleafs"], strict=True))
    false = list(zip(of["nodes_falsenodeids"], of["nodes_falseleafs"], strict=True))
    return true, false, len(of["leaf_targetids"])


def test_no_leaf_has_two_parents_in_version_5():
    """Where both sides of a node led to a tree's one leaf, ONNX Runtime scored other trees wrongly, up to 1.29."""
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 3.0, 4.0)), 0.75, 0.25])
    content = exported(model, "onnx", version=5)[0]
    true, false, n_leaves = sides(content)
    found = [number for number, is_leaf in true + false if is_leaf]
    assert sorted(found) == list(range(n_leaves - 7, n_leaves))
    assert run(content, np.array([[0.0, 0.0], [1.0, 5.0]])).tolist() == [2.0, 5.0]


@settings(max_examples=30)
@given(models_and_rows())
def test_children_of_a_node_have_two_numbers_in_version_5(given_):
    """Where a leaf and a node had the same, ONNX Runtime took them for the same, up to 1.23."""
    model, _ = given_
    true, false, _ = sides(exported(model, "onnx", version=5)[0])
    assert all(one[0] != other[0] for one, other in zip(true, false, strict=True))


def test_leaves_are_numbered_apart_from_nodes():
    chain = (1, -14.0, 2.0, (0, -15.0, 1.0, 0.5))
    content = exported(rw.Ensemble.from_trees([(0, 1.0, 1.5, 2.5), chain]), "onnx", version=5)[0]
    true, false, n_leaves = sides(content)
    assert (true[1], false[1], n_leaves) == ((3, 1), (2, 0), 6)
    assert run(content, np.array([[0.0, 0.0], [-16.0, -20.0]])).tolist() == [2.0, 3.5]
