"""Files that are known but not read: the message names the call that writes one that is."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.formats.refused import refusal


def xgboost_binary(head=b"binf", objective=b"rank:ndcg"):
    """As XGBoost 1.7 writes it: a record of 136 bytes, then names with their lengths."""
    record = struct.pack("<fI", 0.5, 3) + bytes(128)
    names = b"".join(struct.pack("<Q", len(name)) + name for name in (objective, b"gbtree"))
    return head + record + names + bytes(100)


def pickled(module, protocol=4):
    content = b"c" + module.encode() + b"\nModel\n."
    return content if protocol == 0 else b"\x80" + bytes([protocol]) + b"\x8c\x10" + module.encode() + b"\x94."


KNOWN = {
    "XGBoost binary": (xgboost_binary(), "xgboost.Booster(model_file='FILE').save_model('model.json')"),
    "older XGBoost binary": (xgboost_binary(b""), "pip install 'xgboost<3'"),
    "XGBoost binary as text": (b"bs64\tAAAA", "xgboost.Booster(model_file='FILE').save_model('model.json')"),
    "XGBoost text dump": (
        b"booster[0]:\n0:[f1<0.5] yes=1,no=2,missing=2\n\t1:leaf=1\n\t2:leaf=2\n",
        "dump_model('dump.json', dump_format='json')",
    ),
    "XGBoost text dump of a tree": (b"0:[f1<0.5] yes=1,no=2,missing=2\n\t1:leaf=1\n", "save_model('model.json')"),
    "XGBoost drawing": (b"digraph {\n    graph [ rankdir=TB ]\n", "save_model('model.json')"),
    "CoreML": (b"\x08\x01\x12\xc3.\n\x0f\n\tfeature_0\x1a\x02\x12\x00", "this is a CoreML model"),
    "PMML": (b'<?xml version="1.0"?>\n<PMML version="4.4">', "this is PMML"),
    "pickle of LightGBM": (pickled("lightgbm.sklearn"), "model.booster_.save_model('model.txt')"),
    "old pickle of LightGBM": (pickled("lightgbm.sklearn", 0), "model.booster_.save_model('model.txt')"),
    "pickle of XGBoost": (pickled("xgboost.sklearn"), "of xgboost, .*model.save_model('model.json')"),
    "pickle of CatBoost": (pickled("catboost.core"), "model.save_model('model.json', format='json')"),
    "pickle of scikit-learn": (pickled("sklearn.ensemble"), "rankwood.load_model(model).save('model.rw')"),
    "any pickle": (pickle.dumps([1, 2, 3]), "rankwood.load_model(model).save('model.rw')"),
    "joblib, gzip": (gzip.compress(pickled("lightgbm.sklearn")), "model.booster_.save_model('model.txt')"),
    "joblib, zlib": (zlib.compress(pickled("lightgbm.sklearn")), "model.booster_.save_model('model.txt')"),
    "joblib, bzip2": (bz2.compress(pickled("lightgbm.sklearn")), "model.booster_.save_model('model.txt')"),
    "joblib, xz": (lzma.compress(pickled("lightgbm.sklearn")), "model.booster_.save_model('model.txt')"),
    "gzip": (gzip.compress(b"tree\nversion=v4\n"), "packed with gzip: unpack it first"),
    "zip": (b"PK\x03\x04" + bytes(50), "zip archive: unpack it first"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_files_are_refused_with_what_to_do(name, tmp_path):
    content, message = KNOWN[name]
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(rw.ModelError) as refused:
        rw.load_model(path)
    said = str(refused.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert all(part in said for part in message.split(".*"))


@given(st.binary(max_size=300))
def test_any_beginning_gives_one_line_or_nothing(start):
    said = refusal(start)
    assert said is None or "\n" not in said


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, bz2.compress, lzma.compress])
def test_packed_files_are_not_unpacked_whole(pack):
    assert "unpack it first" in str(refusal(pack(bytes(50 << 20))[:4096]))


def test_a_model_of_catboost_in_coreml(tmp_path):
    catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    rng = np.random.default_rng(0)
    options = {"iterations": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**options).fit(rng.normal(size=(50, 2)), rng.normal(size=50))
    model.save_model(str(tmp_path / "model.mlmodel"), format="coreml")
    with pytest.raises(rw.ModelError, match="this is a CoreML model"):
        rw.load_model(tmp_path / "model.mlmodel")


def test_onnx_is_not_taken_for_coreml():
    assert refusal(b"\x08\x08\x12\x08skl2onnx\x1a\x03") is None
