"""Small files that ask for much: they are refused in one sentence, at once; large models that need much are read."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from test_xml_formats import JFORESTS, quickrank_text, ranklib_text

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats import registry
from rankwood.formats.lightgbm import parse_lightgbm_text
from rankwood.formats.reading import MIN_FEATURES
from strategies.limited import read_limited

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as Linux does")

FAR = MIN_FEATURES + 5  # a feature that no small file is believed to have


def lightgbm_text(trees, names=("a",)) -> bytes:
    head = f"tree\nversion=v4\nmax_feature_idx={len(names) - 1}\nfeature_names={' '.join(names)}\n"
    blocks = []
    for number, tree in enumerate(trees):
        lines = {
            "num_leaves": len(tree["left_child"]) + 1, "num_cat": len(tree.get("cat_boundaries", [0])) - 1,
            "decision_type": [8] * len(tree["left_child"]), "leaf_value": range(len(tree["left_child"]) + 1),
        } | tree  # fmt: skip
        text = {name: " ".join(map(str, v)) if not isinstance(v, (int, str)) else v for name, v in lines.items()}
        blocks.append("\n".join([f"Tree={number}", *(f"{name}={value}" for name, value in text.items())]))
    return "\n".join([head, *blocks, "end of trees\n"]).encode()


def chain(n_nodes):
    """Children of a tree where every left child is a leaf."""
    return {"left_child": [~i for i in range(n_nodes)], "right_child": [*range(1, n_nodes), ~n_nodes]}


def one_split(**changes):
    tree = {"split_feature": [0], "threshold": [0.5], **chain(1)}
    return lightgbm_text([tree | changes])


def categories(n_nodes, bounds, words, places, features=None):
    """A chain of splits by sets of categories; `places` are the numbers of their sets."""
    tree = {"split_feature": features or [0] * n_nodes, "threshold": places, **chain(n_nodes)}
    return tree | {"decision_type": [1] * n_nodes, "cat_boundaries": bounds, "cat_threshold": words}


EVERY_OTHER = 0x55555555  # of 32 categories


def shared_set(n_words, n_nodes):
    """Many nodes that all use one set."""
    return lightgbm_text([categories(n_nodes, [0, n_words], [EVERY_OTHER] * n_words, [0] * n_nodes)])


def overlapping_sets():
    n_nodes, n_words = 2000, 10_000
    bounds = [n_words - number if number % 2 else 0 for number in range(2 * n_nodes)]
    tree = categories(n_nodes, bounds, [EVERY_OTHER] * n_words, range(0, 2 * n_nodes, 2))
    return lightgbm_text([tree])


def many_sets():
    """Three sets of 32 pieces on three features, in hundreds of trees: as thresholds they would be millions."""
    tree = categories(3, [0, 1, 2, 3], [EVERY_OTHER] * 3, range(3), [0, 1, 2])
    tree |= {"right_child": [1, 2, ~0], "left_child": [~1, ~2, ~3]}
    return lightgbm_text([tree] * 300, names=("a", "b", "c"))


def set_above_a_chain():
    """A set of thousands of pieces above a long chain, of which every piece would have a copy as thresholds."""
    n_nodes, n_words = 3000, 500
    tree = categories(1, [0, n_words], [EVERY_OTHER] * n_words, [0])
    left, right = [1], [~0]
    for node in range(1, n_nodes):
        left.append(node + 1 if node + 1 < n_nodes else ~node)
        right.append(~(node + 1) if node + 1 == n_nodes else ~node)
    right[-1], left[-1] = ~n_nodes, ~(n_nodes - 1)
    tree |= {"split_feature": [0] * n_nodes, "left_child": left, "right_child": right}
    tree |= {"decision_type": [1] + [8] * (n_nodes - 1), "threshold": [0.0] + [1e6 + n for n in range(n_nodes - 1)]}
    return lightgbm_text([tree])


def dump(feature):
    children = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}]
    node = {"nodeid": 0, "split": feature, "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1}
    return json.dumps([node | {"children": children}]).encode()


def xgboost_json(n_features=1, names=(), **tree):
    arrays = {
        "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
        "split_conditions": [0.5, 1.0, 2.0], "default_left": [0, 0, 0], "tree_param": {},
    } | tree  # fmt: skip
    booster = {"name": "gbtree", "model": {"trees": [arrays]}}
    parameters = {"num_feature": str(n_features), "base_score": "0.5"}
    learner = {"learner_model_param": parameters, "objective": {"name": "rank:ndcg"}, "gradient_booster": booster}
    return json.dumps({"learner": learner | {"feature_names": list(names)}}).encode()


def overlapping_categories():
    n_inner, n_members = 1000, 30_000
    n_all = 2 * n_inner + 1
    left = [2 * node + 1 if node < n_inner else -1 for node in range(n_all)]
    right = [2 * node + 2 if node < n_inner else -1 for node in range(n_all)]
    nodes = list(range(n_inner))
    return xgboost_json(
        left_children=left, right_children=right, split_indices=[0] * n_all, split_conditions=[0.5] * n_all,
        default_left=[0] * n_all, categories=list(range(0, 2 * n_members, 2)), categories_nodes=nodes,
        categories_segments=[0] * n_inner, categories_sizes=[n_members] * n_inner,
    )  # fmt: skip


def ubjson_of_nothing():
    """Arrays whose entries take no bytes."""
    n_arrays = 3000
    array = b"[$Z#l" + struct.pack(">i", 8 * n_arrays)
    return b"{i\x07learner[" + array * n_arrays + b" " * 16 * n_arrays + b"]}"


def catboost_json(column):
    feature = {"flat_feature_index": column, "feature_index": 0, "feature_id": "", "nan_value_treatment": "AsIs"}
    tree = {
        "leaf_values": [1.0, 2.0],
        "splits": [{"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}],
    }
    value = {"features_info": {"float_features": [feature]}, "oblivious_trees": [tree], "scale_and_bias": [1, [0]]}
    return json.dumps(value).encode()


def twice_named():
    return [*(f"feature {number}".replace(" ", "_") for number in range(100_000)), "feature_99999"]


REFUSED = {
    "xgboost-dump far feature": (dump(f"f{FAR}"), "features"),
    "xgboost-dump farthest feature": (dump("f16777215"), "features"),
    "xgboost-dump impossible feature": (dump("f99999999"), "features"),
    "xgboost far feature": (xgboost_json(FAR), "features"),
    "xgboost name twice": (xgboost_json(100_001, twice_named()), "two features have the name 'feature_99999'"),
    "xgboost categories that overlap": (overlapping_categories(), "a set of categories"),
    "xgboost ubjson of nothing": (ubjson_of_nothing(), "UBJSON"),
    "catboost far feature": (catboost_json(FAR), "features"),
    "catboost farthest feature": (catboost_json(2**24 - 1), "features"),
    "lightgbm huge num_leaves": (one_split(num_leaves=10**30), "tree 0: LightGBM's num_leaves is 1000"),
    "lightgbm large num_leaves": (one_split(num_leaves=2**31 - 1), "tree 0 has 1 entries of split_feature"),
    "lightgbm negative num_leaves": (one_split(num_leaves=-(10**30)), "tree 0: LightGBM's num_leaves is -1000"),
    "lightgbm name twice": (
        lightgbm_text([{"split_feature": [0], "threshold": [0.5], **chain(1)}], twice_named()),
        "two features have the name 'feature_99999'",
    ),
    "lightgbm sets that overlap": (overlapping_sets(), "cat_boundaries"),
    "lightgbm a large set of many nodes": (shared_set(10_000, 600), "ends of runs, too many to believe"),
    "lightgbm many sets": (many_sets(), None),
    "lightgbm a set above a chain": (set_above_a_chain(), None),
    "ranklib far feature": (ranklib_text("MART", ([(FAR, 0.5, 1.0, 2.0)], [1.0])), "features"),
    "quickrank far feature": (quickrank_text([(FAR, 0.5, 1.0, 2.0)], [1.0]), "features"),
    "jforests far feature": (JFORESTS.replace(b">2 0<", b">%d 0<" % FAR), "features"),
    "json nested deeply where a name should be": (
        xgboost_json().replace(b'"feature_names": []', b'"feature_names": ' + b"[" * 900 + b"]" * 900),
        "feature_names must be texts",
    ),
    "json nested deeply where a tree should be": (
        b'[{"nodeid": 0, "leaf": ' + b"[" * 900 + b"]" * 900 + b"}]",
        "tree 0: a leaf must be a number",
    ),
}  # fmt: skip


def onnx_files():
    from onnx import TensorProto, helper, numpy_helper
    from test_onnx import ensemble5, graph, regressor

    tensor = TensorProto(name="leaf_weights", data_type=TensorProto.FLOAT, dims=[2**30])
    circle = helper.make_node("Identity", ["c"], ["c"])
    doubling = [helper.make_node("Add", [f"t{level}"] * 2, [f"t{level + 1}"]) for level in range(45)]
    wide = [
        helper.make_node("Sum", [f"w{level}_{n}" for n in range(40)] * 40, [f"w{level + 1}_{m}"])
        for level in range(6)
        for m in range(40)
    ]
    leaves = [regressor(output=f"w0_{n}") for n in range(40)]
    one = numpy_helper.from_array(np.array([1.0], np.float32), "one")
    files = {
        "onnx circle after the trees": (
            [regressor(output="a"), circle, helper.make_node("Add", ["a", "c"], ["Y"])],
            "in a circle",
        ),
        "onnx circle before the trees": ([circle, _reading("c", regressor())], "in a circle"),
        "onnx circle of the output": ([helper.make_node("Identity", ["Y"], ["Y"])], "in a circle"),
        "onnx circle of two": (
            [helper.make_node("Cast", ["d"], ["c"], to=1), helper.make_node("Cast", ["c"], ["d"], to=1),
             _reading("c", regressor())],
            "in a circle",
        ),
        "onnx doubling": ([regressor(output="t0"), *doubling, helper.make_node("Identity", ["t45"], ["Y"])], None),
        "onnx sums of sums": ([*leaves, *wide, helper.make_node("Identity", ["w6_0"], ["Y"])], "too many sums"),
        "onnx far feature": ([regressor(nodes_featureids=[0, FAR, 0, 0, 0, 0])], "features"),
        "onnx tensor without content": ([ensemble5(leaf_weights=tensor)], "ONNX file is damaged"),
        "onnx node without inputs": ([regressor(output="a"), helper.make_node("Add", [], ["Y"])], "Add has no input"),
        "onnx cast without input": (
            [helper.make_node("Cast", [], ["c"], to=1), _reading("c", regressor())],
            "Cast has no input",
        ),
        "onnx trees without input": ([_reading(None, regressor())], "has no input"),
        "onnx identity without input": ([helper.make_node("Identity", [], ["Y"])], "Identity has no input"),
        "onnx constant alone": ([helper.make_node("Identity", ["one"], ["Y"])], "come from"),
    }  # fmt: skip
    for name, value in (("n_targets", "three"), ("nodes_modes", [1] * 6), ("nodes_modes", 3), ("base_values", "x"),
                        ("aggregate_function", [1, 2]), ("nodes_treeids", "x"), ("target_weights", [b"a"] * 4),
                        ("post_transform", 3.0)):  # fmt: skip
        files[f"onnx {name} {value}"] = [regressor(**{name: value})], name
    files["onnx cast to a text"] = (
        [helper.make_node("Cast", ["X"], ["c"], to="x"), _reading("c", regressor())],
        "attribute to",
    )
    for name, value in (("tree_roots", "x"), ("n_targets", [1]), ("leaf_weights", 3), ("aggregate_function", "SUM")):
        files[f"onnx 5 {name} {value}"] = [ensemble5(**{name: value})], name
    made = {}
    for name, (nodes, message) in files.items():
        version = 5 if name.startswith(("onnx 5", "onnx tensor")) else 3
        proto = graph(nodes, np.float32, version, initializers=[one])
        if "far feature" in name:
            proto.graph.input[0].type.tensor_type.ClearField("shape")
        made[name] = proto.SerializeToString(), message
    return made


def _reading(source, node):
    """A node that looks at another input."""
    del node.input[:]
    if source is not None:
        node.input.append(source)
    return node


def refused(tmp_path, files):
    paths = {name: tmp_path / f"model{number}" for number, name in enumerate(files)}
    for name, path in paths.items():
        path.write_bytes(files[name][0])
    wrong = {}
    for name, found in zip(files, read_limited(list(paths.values())), strict=True):
        message = files[name][1]
        if message is None:
            fine = "read" in found
        else:
            fine = found.get("error") == "ModelError" and found["cause"] is None and message in found["message"]
            fine = fine and len(found["message"]) < 500 and str(paths[name]) in found["message"]
        if not fine:
            wrong[name] = found
    assert not wrong


def test_refused_soon(tmp_path):
    refused(tmp_path, REFUSED)


def test_onnx_refused_soon(tmp_path):
    pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT: pip install 'rankwood[formats]'")
    refused(tmp_path, onnx_files())


def test_doubled_trees_score_as_the_graph_does():
    onnx = pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    pytest.importorskip("onnxruntime", reason="ONNXRUNTIME ABSENT: pip install 'rankwood[formats]'")
    from test_onnx import graph, regressor, rows_for, run

    nodes = [regressor(output="a"), regressor(output="b", mode="GT")]
    nodes += [onnx.helper.make_node("Sub", ["a", "b"], ["c"]), onnx.helper.make_node("Sum", ["c", "a", "c"], ["Y"])]
    made = graph(nodes, np.float32, 3)
    model = rw.load_model(made)
    rows = rows_for(model, np.float32)
    np.testing.assert_allclose(model.score(rows), run(made, rows), rtol=1e-6)
    assert model.n_trees == 4  # every tree once


def large_sets():
    """Sets of thousands of categories, as a field of identifiers has them."""
    words = np.random.default_rng(0).integers(0, 2**32, 500).tolist()
    return lightgbm_text([categories(1, [0, 500], words, [0])] * 3)


def sets_of_neighbours():
    """An XGBoost set of many categories in a row is few pieces."""
    n_members = 20_000
    return xgboost_json(
        categories=list(range(n_members)), categories_nodes=[0], categories_segments=[0], categories_sizes=[n_members]
    )


def deep_chain():
    """Thousands of categories, one below the other, each of another feature."""
    n_nodes = 6000
    tree = categories(n_nodes, [0, 1], [2], [0] * n_nodes, range(n_nodes))
    tree |= {"left_child": tree["right_child"], "right_child": tree["left_child"]}
    return lightgbm_text([tree], names=[f"f{n}" for n in range(n_nodes)])


READ = {
    "wide": xgboost_json(MIN_FEATURES),
    "sets of neighbours": sets_of_neighbours(),
    "large sets": large_sets(),
    "deep chain": deep_chain(),
    "shared set": shared_set(20, 100),
}


def test_read_soon(tmp_path):
    paths = [tmp_path / f"model{number}" for number in range(len(READ))]
    for path, content in zip(paths, READ.values(), strict=True):
        path.write_bytes(content)
    found = dict(zip(READ, read_limited(paths), strict=True))
    assert all("read" in entry for entry in found.values()), found


def test_a_file_larger_than_the_memory(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(one_split())
    with open(path, "r+b") as file:
        file.truncate(16 << 30)  # takes no room on the disk
    (found,) = read_limited([path])
    assert (found["error"], found["cause"]) == ("ModelError", "MemoryError")
    assert found["message"] == f"{path}: the lightgbm model takes more memory than there is"


def test_a_threshold_that_is_none_is_found_beside_sets():
    tree = categories(2, [0, 1], [EVERY_OTHER], [0, 0]) | {"decision_type": [1, 8], "threshold": [0, "nan"]}
    with pytest.raises(ModelError, match="tree 0, node 1: the threshold is NaN"):
        parse_lightgbm_text(lightgbm_text([tree]))


def test_a_width_that_is_said_is_believed(tmp_path):
    path = tmp_path / "model"
    for content, n_features in ((xgboost_json(FAR), FAR), (dump(f"f{FAR}"), FAR + 1)):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=f"if it is, give n_features={n_features}"):
            rw.load_model(path)
        assert rw.load_model(path, n_features=n_features).n_features == n_features


def test_own_files_are_believed(tmp_path):
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], n_features=FAR)
    model.save(tmp_path / "model")
    assert rw.load_model(tmp_path / "model") == model


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), OverflowError("x"), KeyError("x"), IndexError("x"), TypeError("x"), AttributeError("x"),
     struct.error("x"), RecursionError("x"), MemoryError("x"), ZeroDivisionError("x"), UnicodeError("x")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.parametrize("name", ["jforests", "xgboost-dump", "rankwood"])
def test_whatever_an_importer_raises(tmp_path, monkeypatch, name, error):
    def fail(*_, **__):
        raise error

    path = tmp_path / "model"
    if name == "jforests":
        path.write_bytes(JFORESTS)
        monkeypatch.setattr("rankwood.formats.ranklib_quickrank._column", fail)
    elif name == "xgboost-dump":
        path.write_bytes(dump("f0"))
        monkeypatch.setattr("rankwood.formats.xgboost.number", fail)
    else:
        rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).save(path)
        monkeypatch.setattr("rankwood.model.file._read_array", fail)
    with pytest.raises(ModelError, match=f"model: .*{name}") as caught:
        rw.load_model(path)
    assert caught.value.__cause__ is error
    message = str(caught.value)
    assert len(message) < 400
    assert "\n" not in message
    if name == "xgboost-dump" and not isinstance(error, (RecursionError, MemoryError)):
        assert "tree 0" in message  # the place


def test_what_is_raised_on_purpose_stays(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(JFORESTS)
    for error in (KeyboardInterrupt(), UserWarning("x")):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr("rankwood.formats.ranklib_quickrank._column", fail)
        with pytest.raises(type(error)):
            rw.load_model(path)
    assert registry.load_model is rw.load_model


def test_a_wide_model_is_shown_in_little_memory(tmp_path):
    """2**24 features of which one is used: no list of them all."""
    import resource

    path = tmp_path / "model"
    rw.Ensemble.from_trees([(2**24 - 1, 0.5, 1.0, 2.0)]).save(path)
    done = subprocess.run(
        [sys.executable, "-m", "rankwood", "inspect", str(path)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "feature 16777216" in done.stdout


def test_damaged_models_end_with_status_2(tmp_path):
    for number, content in enumerate((one_split(num_leaves=10**30), dump("f16777215"))):
        path = tmp_path / f"model{number}"
        path.write_bytes(content)
        done = subprocess.run(
            [sys.executable, "-m", "rankwood", "inspect", str(path)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") <= 3
        assert f"model{number}: " in done.stderr.replace("\n", "")
        assert "Traceback" not in done.stderr
