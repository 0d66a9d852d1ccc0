"""ONNX graphs of trees, against the reference runtime."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats.onnx import from_onnx_model, parse_onnx
from strategies.adversarial_rows import adversarial_rows

onnx = pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
runtime = pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT: pip install 'rankwood[formats]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")


def graph(nodes, dtype, version, width=2, initializers=(), output=TensorProto.FLOAT):
    kind = TensorProto.FLOAT if dtype == np.float32 else TensorProto.DOUBLE
    inputs = [helper.make_tensor_value_info("X", kind, [None, width])]
    outputs = [helper.make_tensor_value_info("Y", output, [None, 1])]
    made = helper.make_graph(nodes, "g", inputs, outputs, initializer=list(initializers))
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def regressor(dtype=np.float32, mode="LEQ", tracks=0, output="Y", version=3, **changes):
    """Two trees: a split on feature 0 with a split on feature 1 under it, and a lone leaf."""
    values, weights = np.array([0.1, 0.7, 0, 0, 0, 0], dtype), np.array([1.0, 2.0, 4.0, 8.0], dtype)
    attributes = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0],
        "nodes_featureids": [0, 1, 0, 0, 0, 0],
        "nodes_modes": [f"BRANCH_{mode}", f"BRANCH_{mode}", "LEAF", "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 2, 0, 0, 0, 0], "nodes_falsenodeids": [4, 3, 0, 0, 0, 0],
        "target_treeids": [0, 0, 0, 1], "target_nodeids": [2, 3, 4, 0], "target_ids": [0] * 4, "n_targets": 1,
        "nodes_missing_value_tracks_true": [tracks, 1 - tracks, 0, 0, 0, 0],
    }  # fmt: skip
    if dtype == np.float32:
        attributes |= {"nodes_values": values.tolist(), "target_weights": weights.tolist(), "base_values": [0.5]}
    else:
        attributes |= {
            "nodes_values_as_tensor": numpy_helper.from_array(values),
            "target_weights_as_tensor": numpy_helper.from_array(weights),
            "base_values_as_tensor": numpy_helper.from_array(np.array([0.5])),
        }
    attributes = {name: value for name, value in (attributes | changes).items() if value is not None}
    return helper.make_node("TreeEnsembleRegressor", ["X"], [output], domain="ai.onnx.ml", **attributes)


def ensemble5(dtype=np.float32, mode=0, tracks=0, output="Y", **changes):
    attributes = {
        "nodes_splits": numpy_helper.from_array(np.array([3.0, 2.0], dtype)), "nodes_featureids": [0, 1],
        "nodes_modes": numpy_helper.from_array(np.array([mode, mode], np.uint8)),
        "nodes_truenodeids": [1, 0], "nodes_falsenodeids": [2, 1],
        "nodes_trueleafs": [0, 1], "nodes_falseleafs": [1, 1], "nodes_missing_value_tracks_true": [tracks, 1 - tracks],
        "leaf_targetids": [0, 0, 0], "leaf_weights": numpy_helper.from_array(np.array([1, 2, 4], dtype)),
        "tree_roots": [0], "n_targets": 1,
    }  # fmt: skip
    if mode == 6:
        attributes["membership_values"] = numpy_helper.from_array(np.array([1, 3, -2, np.nan, 0, 2, 5], dtype))
    return helper.make_node("TreeEnsemble", ["X"], [output], domain="ai.onnx.ml", **(attributes | changes))


def run(model, rows):
    return runtime.InferenceSession(model.SerializeToString()).run(None, {"X": rows})[0].ravel()


def rows_for(model, dtype):
    rows = adversarial_rows(model, 300, dtype=dtype)
    extra = np.random.default_rng(1).choice([1.0, 2, 3, 5, -2, 0.1, 0.7, np.nan, 0], size=(200, model.n_features))
    return np.concatenate([rows, extra.astype(dtype)])


@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("version", "dtype"), [(1, np.float32), (3, np.float32), (3, np.float64)])
def test_every_mode_of_the_regressor(version, mode, tracks, dtype):
    made = graph([regressor(dtype, mode, tracks)], dtype, version)
    model = from_onnx_model(made)
    rows = rows_for(model, dtype)
    np.testing.assert_array_equal(model.score(rows), run(made, rows))
    assert parse_onnx(made.SerializeToString()) == model == rw.load_model(made)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("mode", "tracks"), [(mode, tracks) for mode in range(7) for tracks in (0, 1)][:-1])
def test_every_mode_of_version_5(mode, tracks, dtype):
    output = TensorProto.FLOAT if dtype == np.float32 else TensorProto.DOUBLE
    made = graph([ensemble5(dtype, mode, tracks)], dtype, 5, output=output)
    model = from_onnx_model(made)
    rows = rows_for(model, dtype)
    if mode == 6:
        rows = rows[~np.isnan(rows).any(axis=1) & (np.abs(rows) < 1e9).all(axis=1)]
        rows = np.round(rows)
    np.testing.assert_array_equal(model.score(rows), run(made, rows))


def test_averages_sums_and_constants():
    nodes = [
        regressor(output="a", aggregate_function="AVERAGE"),
        regressor(output="b", mode="LT"),
        helper.make_node("Sum", ["a", "b"], ["c"]),
        helper.make_node("Mul", ["c", "two"], ["d"]),
        helper.make_node("Add", ["one", "d"], ["Y"]),
    ]
    constants = [numpy_helper.from_array(np.array([v], np.float32), n) for n, v in (("two", 2.0), ("one", 1.0))]
    made = graph(nodes, np.float32, 3, initializers=constants)
    model = from_onnx_model(made)
    rows = rows_for(model, np.float32)
    np.testing.assert_allclose(model.score(rows), run(made, rows), rtol=1e-6)


def test_models_of_converters():
    skl2onnx = pytest.importorskip("skl2onnx", reason="SKL2ONNX ABSENT")
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    from strategies.adversarial_rows import training_data

    X, y = training_data(missing=0.0)
    for estimator in (RandomForestRegressor(5, max_depth=5), GradientBoostingRegressor(n_estimators=5)):
        made = skl2onnx.to_onnx(estimator.fit(X, y), X[:1].astype(np.float32))
        model = from_onnx_model(made)
        rows = np.concatenate([X.astype(np.float32), adversarial_rows(model, dtype=np.float32, missing=False)])
        np.testing.assert_allclose(model.score(rows), run(made, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_targets": 3}, "the trees have 3 targets"),
        ({"aggregate_function": "MAX"}, "joined by MAX"),
        ({"post_transform": "SOFTMAX"}, "scores go through SOFTMAX"),
        ({"target_ids": [0, 0, 0, 1]}, "more than one target"),
        ({"nodes_truenodeids": [1, 0, 0, 0, 0, 0]}, "tree 0 has no root|two roots|form no trees"),
        ({"nodes_truenodeids": [1, 1, 0, 0, 0, 0]}, "two roots|form no trees"),
        ({"nodes_truenodeids": [9, 2, 0, 0, 0, 0]}, "two roots|has no node 9"),
        ({"nodes_featureids": [0, 77, 0, 0, 0, 0]}, "there is no feature 77"),
        ({"nodes_values": [0.1]}, "nodes_values has 1 entries, not 6"),
        ({"nodes_values": [float("nan")] + [0.0] * 5}, "a threshold is NaN"),
        ({"nodes_modes": ["BRANCH_X"] + ["LEAF"] * 5}, "two roots|there is no mode"),
        ({"target_nodeids": [2, 3, 9, 0]}, "has a value for node 9"),
        ({"nodes_nodeids": [0, 1, 2, 3, 3, 0]}, "two nodes of a tree have the same number"),
        ({"base_values": [1.0, 2.0]}, "2 base values"),
    ],
)
def test_what_is_wrong_is_said(changes, message):
    with pytest.raises(ModelError, match=message):
        from_onnx_model(graph([regressor(**changes)], np.float32, 3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": [0, 0]}, "form no trees"),
        ({"nodes_truenodeids": [9, 0]}, "node 0 has a child that does not exist"),
        ({"tree_roots": [5]}, "a root does not exist"),
        ({"nodes_modes": numpy_helper.from_array(np.array([9, 0], np.uint8))}, "a node of an unknown mode"),
        ({"aggregate_function": 3}, "joined by MAX"),
    ],
)
def test_what_is_wrong_in_version_5_is_said(changes, message):
    with pytest.raises(ModelError, match=message):
        from_onnx_model(graph([ensemble5(**changes)], np.float32, 5))


def test_other_operators_are_refused():
    nodes = [regressor(output="a"), helper.make_node("Sigmoid", ["a"], ["Y"])]
    with pytest.raises(ModelError, match="has an operator Sigmoid after its trees"):
        from_onnx_model(graph(nodes, np.float32, 3))
    nodes = [helper.make_node("Abs", ["X"], ["Y"])]
    with pytest.raises(ModelError, match="operator Abs"):
        from_onnx_model(graph(nodes, np.float32, 3))


# Sets of categories as chains of comparisons, which is how onnxmltools writes those of LightGBM.


def chain(values, tracks=0):
    """A tree of x == v for each of the values, all of which lead to one leaf, and a last leaf for the others."""
    n = len(values)
    nodes = [("BRANCH_EQ", value, n, at + 1 if at + 1 < n else n + 1) for at, value in enumerate(values)]
    modes, splits, true, false = zip(*nodes, ("LEAF", 0.0, 0, 0), ("LEAF", 0.0, 0, 0), strict=True)
    return onnx.helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * (n + 2), nodes_nodeids=list(range(n + 2)), nodes_modes=list(modes),
        nodes_featureids=[0] * (n + 2), nodes_values=list(splits), nodes_truenodeids=list(true),
        nodes_falsenodeids=list(false), nodes_missing_value_tracks_true=[tracks] * (n + 2),
        target_treeids=[0, 0], target_nodeids=[n, n + 1], target_ids=[0, 0], target_weights=[1.0, 2.0],
    )  # fmt: skip


@pytest.mark.parametrize("tracks", [0, 1])
def test_chains_of_comparisons_are_sets(tracks):
    model = rw.load_model(graph([chain([1.0, 4.0, 5.0, 7.5], tracks)], np.float32, 3))
    values = [0, 1, 1.5, 4, 5, 6, 7.5, 8, np.nan]
    X = np.column_stack([values, np.zeros(9)]).astype(np.float32)
    assert model.score(X).tolist() == [2, 1, 2, 1, 1, 2, 1, 2, 1 if tracks else 2]


def test_categories_of_lightgbm_by_onnxmltools():
    onnxmltools = pytest.importorskip("onnxmltools", reason="ONNXMLTOOLS ABSENT: pip install onnxmltools")
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT: pip install 'rankwood[formats]'")
    from onnxmltools.convert.common.data_types import FloatTensorType

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=1000), rng.integers(0, 12, 1000)]).astype(np.float32)
    y = np.isin(X[:, 1], [1, 4, 7, 9]) + X[:, 0]
    settings = {"verbose": -1, "num_leaves": 8, "min_data_per_group": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y, categorical_feature=[1]), 5)
    converted = onnxmltools.convert_lightgbm(booster, initial_types=[("X", FloatTensorType([None, 2]))])
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    assert rw.verify(rw.load_model(converted), session, X)


def test_nodes_with_two_parents_are_copied_within_bounds():
    """Each node leads to the next on both sides: two paths to the second, four to the third, and so on."""

    def ladder(depth):
        n = depth + 1
        return onnx.helper.make_node(
            "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * n,
            nodes_nodeids=list(range(n)), nodes_modes=["BRANCH_LEQ"] * depth + ["LEAF"],
            nodes_featureids=[0] * n, nodes_values=[float(at) for at in range(n)],
            nodes_truenodeids=[*range(1, n), 0], nodes_falsenodeids=[*range(1, n), 0],
            target_treeids=[0], target_nodeids=[depth], target_ids=[0], target_weights=[3.0],
        )  # fmt: skip

    assert rw.load_model(graph([ladder(5)], np.float32, 3)).score([[0.0, 0.0]]).tolist() == [3.0]
    with pytest.raises(rw.ModelError, match="two paths lead to the same node, too often for copies"):
        rw.load_model(graph([ladder(40)], np.float32, 3))
