"""The model file: what is written comes back, and nothing that is damaged does any harm."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import rankwood as rw
from rankwood import Ensemble, ModelError
from rankwood.model.file import parse_model
from strategies.ensembles import big_ensemble, ensembles

pytestmark = pytest.mark.native

MODEL = Ensemble(
    feature=[0, 1, 0], threshold=[0.5, -np.inf, 1e-310], left=[-1, -2, -1], right=[1, -3, -2],
    missing_left=[False, True, False], leaf_value=[1.0, -0.0, 3.0, 0.1, 20.0], node_offsets=[0, 2, 3],
    tree_weights=[1.0, 0.3], n_features=2, base=0.1, feature_names=["size", "näme"], split_gain=[3.0, 1.0, 5.0],
    node_count=[10, 6, 10], metadata={"learner": "mart", "parameters": {"rate": 0.1, "note": "ü\ud800"}},
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.rw"


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.rw"
    MODEL.save(path)
    return path.read_bytes()


def parts_of(content: bytes) -> tuple[dict[str, np.ndarray], dict]:
    """The arrays and the facts of a model file."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return dict(load_tensors(content)), json.loads(header["__metadata__"]["rankwood"])


def file_of(arrays: dict[str, np.ndarray], facts) -> bytes:
    return save_tensors(arrays, {"rankwood": facts if isinstance(facts, str) else json.dumps(facts)})


def loads_or_is_refused(content: bytes) -> bool:
    """Whether the content is a model; it then scores finite numbers. Anything else must be one clear sentence."""
    try:
        model = parse_model(io.BytesIO(content), Ensemble)
    except ModelError as error:
        message = str(error)
    else:
        message = None
    if message is not None:
        assert "\n" not in message
        assert len(message) < 400
        return False
    if model.n_features < 1000:
        X = np.resize(np.array([0.0, 1.0, np.nan, -np.inf, 0.5, 1e300]), (9, model.n_features))
        assert np.isfinite(model.score(X)).all()
        assert model.leaves(X).shape == (9, len(model))
    model.topology()
    return True


# What is written comes back


def test_everything_comes_back(path):
    MODEL.save(path)
    for model in (Ensemble.load(path), Ensemble.load(str(path)), rw.load_model(path)):
        assert model == MODEL
        assert model.feature_names == ("size", "näme")
        assert model.metadata == MODEL.metadata
        assert_array_equal(model.split_gain, MODEL.split_gain)
        assert_array_equal(model.node_count, MODEL.node_count)
        assert not model.feature.flags.writeable
    assert [p.name for p in path.parent.iterdir()] == ["model.rw"]  # nothing half-written stays


def test_covers_of_leaves_come_back(path):
    known = MODEL.replace(leaf_cover=[4.0, 1.5, 4.5, 7.0, 3.0])
    known.save(path)
    assert_array_equal(rw.load_model(path).leaf_cover, known.leaf_cover)
    damaged = path.read_bytes().replace(struct.pack("<d", 4.5), struct.pack("<d", 5.5))
    path.write_bytes(damaged)
    with pytest.raises(ModelError, match="its numbers are not those that were written"):
        rw.load_model(path)


def test_models_without_covers_are_written_as_ever(content):
    """To the byte as before files could have covers; such files are read by older versions, too."""
    assert hashlib.sha256(content).hexdigest() == "be91c097e443781c048a5f8c76f3c1dda341de90217a8122ef0801b1a9d95658"


@given(model=ensembles(min_trees=0))
@settings(max_examples=50)
def test_models_of_every_shape_come_back(tmp_path_factory, model):
    path = tmp_path_factory.getbasetemp() / "shape.rw"
    model.save(path)
    assert Ensemble.load(path) == model


def test_a_large_model_comes_back(path):
    model = big_ensemble(0, n_trees=20, n_leaves=5000)
    model.save(path)
    assert Ensemble.load(path) == model


def test_equal_models_give_equal_bytes(path, content):
    code = (
        "import sys, numpy as np, rankwood as rw; m = rw.Ensemble.load(sys.argv[1]);"
        "m.with_metadata(b=1, a={'y': 2, 'x': 3}, c=4).save(sys.argv[1] + sys.argv[2])"
    )
    path.write_bytes(content)
    copies = []
    for seed in ("1", "2", "3"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(path), seed], check=True, env=env)
        copies.append(Path(f"{path}{seed}").read_bytes())
    assert copies[0] == copies[1] == copies[2] != content
    Ensemble.load(path).save(path)
    assert path.read_bytes() == content


def test_a_file_of_version_1_stays_readable(path):
    # Written out by hand: what version 1 is must not change with the code.
    facts = {"format_version": 1, "n_features": 1, "base": 100, "feature_names": None, "metadata": {}}
    arrays = {
        "feature": np.array([0], "<i4"),
        "threshold": np.array([0.5], "<f8"),
        "left": np.array([-1], "<i4"),
        "right": np.array([-2], "<i4"),
        "missing_left": np.array([True]),
        "leaf_value": np.array([1.0, 2.0], "<f8"),
        "node_offsets": np.array([0, 1], "<i8"),
        "tree_weights": np.array([10.0], "<f8"),
    }
    path.write_bytes(file_of(arrays, facts))
    assert Ensemble.load(path).score([[0.5], [0.6], [np.nan]]).tolist() == [110.0, 120.0, 110.0]


def test_a_failed_save_leaves_the_old_file(path, content, monkeypatch):
    path.write_bytes(content)
    with pytest.raises(
        ModelError, match=r"missing/model\.rw: the model cannot be written: there is no folder .*missing"
    ):
        MODEL.save(path.parent / "missing" / "model.rw")
    with pytest.raises(ModelError, match="the model cannot be written"):
        MODEL.save(path.parent)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(ModelError, match="No space left on device"):
        MODEL.reweigh([2.0, 2.0]).save(path)
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == ["model.rw"]


# What is wrong is said


def test_files_that_cannot_be_read(path):
    for load in (rw.load_model, Ensemble.load):
        with pytest.raises(ModelError, match=r"model\.rw: the file cannot be read: No such file or directory"):
            load(path)
        with pytest.raises(ModelError, match="this is a folder, not a model file"):
            load(path.parent)
        with pytest.raises(ModelError, match="this is not a regular file"):
            load("/dev/null")
    path.write_bytes(b"")
    with pytest.raises(ModelError, match=r"the file is empty; rankwood reads: rankwood, lightgbm,"):
        rw.load_model(path)
    path.write_text("trees\nversion=v4\n")
    with pytest.raises(
        ModelError, match=r"in no model format that rankwood knows; rankwood reads: rankwood, lightgbm,"
    ):
        rw.load_model(path)
    with pytest.raises(ModelError, match="this is not a rankwood model file"):
        Ensemble.load(path)


def test_a_file_without_permission(path, content, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path.write_bytes(content)
    monkeypatch.setattr("rankwood.model.file.open", refuse, raising=False)  # root, who may run this, may read anything
    with pytest.raises(ModelError, match=r"model\.rw: the file cannot be read: Permission denied"):
        rw.load_model(path)


def test_a_cut_off_file_is_refused_wherever_it_is_cut(content):
    for length in range(len(content)):
        assert not loads_or_is_refused(content[:length])
    assert not loads_or_is_refused(content + b"\0")
    assert loads_or_is_refused(content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2}, "missing or unknown in the description of the model: exit"),
        ({"format_version": 3}, "it has no array set_"),
        ({"format_version": 4}, "format version 4, this rankwood reads up to 3: upgrade rankwood"),
        ({"format_version": 10**4000}, r"format version 10*\.\.\., this rankwood reads up to 3"),
        ({"format_version": 0}, "its format version is 0"),
        ({"format_version": True}, "its format version is True"),
        ({"format_version": None}, "its format version is None"),
        ({"colour": 1}, "missing or unknown in the description of the model: colour"),
        ({"n_features": "2"}, "n_features is 2"),
        ({"n_features": 2**40}, "n_features must lie between"),
        ({"n_features": True}, "n_features is True"),
        ({"n_features": 1, "feature_names": None}, "tree 0, node 1: there is no feature 1"),
        ({"base": None}, "base is None"),
        ({"base": 10**400}, "base must be a finite number"),
        ({"feature_names": "ab"}, "feature_names is ab"),
        ({"feature_names": [1, 2]}, "feature_names must be strings"),
        ({"feature_names": ["a"]}, "feature_names must have one name per feature"),
        ({"metadata": [1]}, r"metadata is \[1\]"),
    ],
)
def test_wrong_facts_are_refused(path, content, changes, message):
    arrays, facts = parts_of(content)
    path.write_bytes(file_of(arrays, facts | changes))
    with pytest.raises(ModelError, match=message):
        rw.load_model(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable JSON"),
        ("[]", "the description of the model is not a JSON object"),
        ("{", "not readable JSON"),
        ('{"format_version": NaN}', "NaN is not JSON"),
        ('{"format_version": 1}', "missing or unknown in the description of the model: base, feature_names"),
        ("[" * 50_000, "not readable JSON"),
        ('{"format_version":1' + "0" * 10_000 + "}", "not readable JSON|upgrade rankwood"),  # by Python's age
    ],
)
def test_a_description_that_is_no_json_object_is_refused(path, content, text, message):
    path.write_bytes(file_of(parts_of(content)[0], text))
    with pytest.raises(ModelError, match=message):
        rw.load_model(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": None}, "it has no array left"),
        ({"colour": np.zeros(3)}, "it has an unknown array colour"),
        ({"leaf_offsets": np.array([0, 3, 5])}, "it has an unknown array leaf_offsets"),
        ({"threshold": np.zeros(3, np.float32)}, r"array threshold is F32 of shape \[3\], not a list of F64"),
        ({"threshold": np.zeros((3, 1))}, r"array threshold is F64 of shape \[3, 1\], not a list of F64"),
        ({"missing_left": np.zeros(3, np.uint8)}, "array missing_left is U8"),
        ({"missing_left": np.array([0, 1, 2], np.uint8).view(bool)}, "a byte that is neither true nor false"),
        ({"left": np.array([0, 0, 0], np.int32)}, "tree 0, node 0: node 0 is its child but already has another place"),
        ({"leaf_value": np.full(5, np.nan)}, "tree 0, leaf 0: the value is not a finite number"),
        ({"leaf_value": np.zeros(0)}, "leaf_value has 0 entries"),
        ({"node_offsets": np.zeros(0, np.int64)}, "node_offsets must have one entry per tree"),
        ({"node_offsets": np.array([0, 2**63 - 1, 3])}, "node_offsets of tree 0 go from 0"),
        ({"split_gain": np.zeros(2)}, "split_gain must have one entry per inner node"),
        ({"node_count": np.full(3, -1)}, "node_count of node 0 is -1"),
        ({"leaf_cover": np.zeros(3)}, r"leaf_cover must have one entry per leaf \(5\)"),
        ({"leaf_cover": np.zeros(5, np.float32)}, r"array leaf_cover is F32 of shape \[5\], not a list of F64"),
    ],
)
def test_wrong_arrays_are_refused(path, content, changes, message):
    arrays, facts = parts_of(content)
    path.write_bytes(file_of({k: v for k, v in (arrays | changes).items() if v is not None}, facts))
    with pytest.raises(ModelError, match=message):
        rw.load_model(path)


def test_somebody_elses_safetensors_file(path):
    path.write_bytes(save_tensors({"w": np.zeros(3)}))
    with pytest.raises(ModelError, match="this is a safetensors file, but there is no rankwood model in it"):
        rw.load_model(path)
    path.write_bytes(save_tensors({"w": np.zeros(3)}, {"format": "pt"}))
    with pytest.raises(ModelError, match="there is no rankwood model in it"):
        rw.load_model(path)


# Fuzz


def test_thousands_of_damaged_files_do_no_harm(content):
    rng = np.random.default_rng(0)
    n_loaded = 0
    for _ in range(4000):
        damaged = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(damaged)))
            kind = rng.integers(4)
            if kind == 0:
                damaged[at] ^= 1 << int(rng.integers(8))
            elif kind == 1:
                damaged[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, ord("9"), ord('"'), ord("{")]))
            elif kind == 2:
                del damaged[at : at + int(rng.integers(1, 9))]
            else:
                damaged[at:at] = rng.bytes(int(rng.integers(1, 9)))
        n_loaded += loads_or_is_refused(bytes(damaged))
    assert 0 < n_loaded < 4000  # a changed bit of a threshold is still a model


EDIT = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))  # where, as a fraction; which byte


@given(edits=st.lists(EDIT, min_size=1, max_size=4), in_header=st.booleans())
@settings(max_examples=200)
def test_changed_bytes_do_no_harm(content, edits, in_header):
    damaged = bytearray(content)
    (length,) = struct.unpack("<Q", content[:8])
    first, last = (0, 8 + length) if in_header else (8 + length, len(content))
    for place, value in edits:
        damaged[first + int(place * (last - first))] = value
    loads_or_is_refused(bytes(damaged))


INTEGERS = st.one_of(st.integers(-4, 4), st.sampled_from([-(2**31), 2**31 - 1, 1000, -1000]))
FLOATS = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1e308, np.inf, np.nan]))


@given(data=st.data())
@settings(max_examples=300)
def test_well_formed_files_with_any_values_do_no_harm(content, data):
    arrays, facts = parts_of(content)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name] = arrays[name].copy()
        change = data.draw(st.sampled_from(["entry", "entry", "entry", "shorter", "longer", "type"]))
        if change == "entry" and len(array):
            value = data.draw(FLOATS if array.dtype.kind == "f" else INTEGERS)
            with np.errstate(all="ignore"):
                array[data.draw(st.integers(0, len(array) - 1))] = np.asarray(value).astype(array.dtype)
        elif change == "shorter":
            arrays[name] = array[:-1]
        elif change == "longer":
            arrays[name] = np.append(array, array[:1])
        else:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(data.draw(st.sampled_from([np.int64, np.float64, np.int32, np.uint8])))
    if data.draw(st.booleans()):
        facts["n_features"] = data.draw(st.integers(-1, 4))
        facts["feature_names"] = None
    loads_or_is_refused(file_of(arrays, facts))
