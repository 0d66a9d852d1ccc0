"""Formats are told by content; objects by their package; errors name the file."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from test_xml_formats import JFORESTS, quickrank_text, ranklib_text

import rankwood as rw
from rankwood.errors import MissingPackageError, ModelError
from rankwood.formats.registry import FORMATS, load_model, recognise

TREE = (1, 0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"tree\nversion=v4\n", "lightgbm"),
        (b"tree\r\nversion=v4\r\n", "lightgbm"),
        (b'{"learner":1}', "json"),
        (b'\xef\xbb\xbf\n [{"nodeid": 0}]', "json"),
        (b"{L\0\0\0\0\0\0\0\7learner{", "ubjson"),
        (b"CBM1\x88\x19", "cbm"),
        (b"## LambdaMART\n## No. of trees = 1", "ranklib"),
        (b'<ensemble>\n<tree id="1">', "ranklib"),
        (b'<?xml version="1.0"?>\n<!-- made by --><ranker><info>', "quickrank"),
        (b"<Ensemble>\n\t<Tree", "jforests"),
        (b"\x08\x08\x12\x08skl2onnx", "onnx"),
        (b"PK\3\4 something", None),
        (b"", None),
    ],
)
def test_recognise(content, name):
    assert recognise(content) == name


def test_recognised_files_are_read(tmp_path):
    contents = {
        "ranklib": ranklib_text("MART", ([TREE], [0.5])),
        "quickrank": quickrank_text([TREE], [0.5]),
        "jforests": JFORESTS,
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        model = rw.load_model(path)
        assert model.metadata["source"]["format"] == name
        assert rw.load_model(str(path), format=name) == model


def test_the_format_can_be_said(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(JFORESTS)
    path.write_bytes(b"neither fish nor flesh")
    with pytest.raises(ModelError, match=r"model: this is not the text of a LightGBM model"):
        load_model(path, format="lightgbm")
    with pytest.raises(ModelError, match=r"model: this is not a rankwood model file"):
        load_model(path, format="rankwood")
    with pytest.raises(ModelError, match=f"there is no model format 'pmml'; there are {', '.join(FORMATS)}"):
        load_model(path, format="pmml")
    with pytest.raises(ModelError, match="sklearn models are taken from the library's objects"):
        load_model(path, format="sklearn")
    for name in ("xgboost", "catboost", "lightgbm-json", "xgboost-dump"):
        with pytest.raises(ModelError, match="the file is damaged or cut off"):
            load_model(path, format=name)


@pytest.mark.parametrize("said", ["rankwood", "lightgbm", "xgboost", "catboost", "ranklib"])
def test_a_wrong_format_is_answered_with_the_right_one(tmp_path, said):
    path = tmp_path / "model"
    path.write_bytes(JFORESTS)
    with pytest.raises(ModelError, match=rf"model: this is no {said} model but looks like jforests \(Jforests XML\)"):
        load_model(path, format=said)
    rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]).save(path)
    if said != "rankwood":
        with pytest.raises(ModelError, match=f"this is no {said} model but looks like rankwood"):
            load_model(path, format=said)


def test_json_of_another_tool_than_was_said(tmp_path):
    path = tmp_path / "model.json"
    rw.save_as(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]), path, "lightgbm-json")
    for said in ("catboost", "xgboost", "rankwood"):
        with pytest.raises(ModelError, match=f"this is no {said} model but looks like lightgbm-json"):
            load_model(path, format=said)


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ModelError, match="this is a pickle, which could run any code when it is loaded"):
        load_model(path)
    path.write_text('{"a": 1}')
    with pytest.raises(ModelError, match="the JSON is of no model that rankwood knows"):
        load_model(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ModelError, match=r"nested too deeply|damaged or cut off"):
        load_model(path)
    path.write_text('{"tree_info": [{"tree_structure": ' + '{"left_child":' * 100_000)
    with pytest.raises(ModelError, match=r"nested too deeply|damaged or cut off"):
        load_model(path)
    path.write_bytes(b"{i\1a" + b"[" * 100_000)
    with pytest.raises(ModelError, match="the UBJSON is nested too deeply"):
        load_model(path)
    path.write_bytes(b"{i\1a[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff")
    with pytest.raises(ModelError, match="the UBJSON is damaged or cut off"):
        load_model(path)


def test_objects():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    assert rw.load_model(model) is model
    with pytest.raises(ModelError, match="a list is no model that rankwood knows: give a path, or a model of lightgbm"):
        rw.load_model([1])
    data = rw.make_ranking(n_queries=5, docs_per_query=10, n_features=3, seed=0)
    ranker = rw.LambdaMART(n_trees=2, n_leaves=3).fit(data)
    assert rw.load_model(ranker) == ranker.ensemble_


def test_ready_made_models_keep_their_width():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    with pytest.raises(ModelError, match="the model is of 1 features, not of 3"):
        rw.load_model(model, n_features=3)
    assert rw.load_model(model, feature_names=["a"]).feature_names == ("a",)
    np.testing.assert_array_equal(rw.load_model(model).score([[0.0]]), [1.0])


def test_packages_that_are_absent(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"\x08\x08\x12\x08skl2onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingPackageError, match=r"reading an ONNX model needs the package onnx: pip install 'rankwood"
    ):
        load_model(path)
    path.write_bytes(b"CBM1 and so on")
    monkeypatch.setattr("rankwood.formats.catboost.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"reading a \.cbm model needs the package catboost"):
        load_model(path)


def test_hostile_files_end_soon(tmp_path):
    """Large counts with nothing behind them, and much of nothing."""
    path = tmp_path / "model"
    for content in (
        b"tree\n" + b"=" * 5_000_000,
        b"tree\nversion=v4\nmax_feature_idx=0\nfeature_names=a\n"
        + b"\nTree=0\nnum_leaves=2" * 50_000
        + b"\nend of trees",
        b"<ensemble>" * 200_000,
        b"[" + b"0," * 1_000_000 + b"0]",
        b"{" + b"i\1a" * 1_000_000,
        b'{"learner": {"learner_model_param": {"num_feature": "99999999999"}}}',
        b"\x08\x08" + b"\x3a\xff\xff\xff\x7f" * 100,
    ):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="model: "):
            load_model(path)
