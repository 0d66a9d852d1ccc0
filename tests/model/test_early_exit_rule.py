"""Early exit as a part of the model: what a rule may be, what keeps it, and its file."""

from __future__ import annotations

import copy
import json
import math
import pickle
import struct

import numpy as np
import pytest

import rankwood as rw
from rankwood.formats.registry import EXPORTERS
from strategies.ensembles import big_ensemble

pytestmark = pytest.mark.native

RULE = rw.EarlyExit((16, 32), (0.1, math.inf), top=5)
PLAIN = big_ensemble(0, n_trees=40, n_leaves=4, n_features=3)
MODEL = PLAIN.replace(exit=RULE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((16, 8), (1.0, 1.0)), "checkpoints must rise"),
        (((16, 16), (1.0, 1.0)), "checkpoints must rise"),
        (((20,), (1.0,)), "multiple of 16 trees, got 20"),
        (((0,), (1.0,)), "a checkpoint must be a whole number"),
        (((16.0,), (1.0,)), "a checkpoint must be a whole number"),
        (((True,), (1.0,)), "a checkpoint must be a whole number"),
        (((16,), (1.0, 2.0)), "1 checkpoints need as many margins, got 2"),
        (((16,), (-1.0,)), "a margin must be a number of 0 or more, got -1.0"),
        (((16,), (math.nan,)), "a margin must be a number of 0 or more"),
        (((16,), ("1",)), "a margin must be a number of 0 or more"),
        ((16, (1.0,)), "checkpoints must be a list"),
        (((16,), (1.0,), 0), "top must be a whole number"),
    ],
)
def test_what_is_no_rule(arguments, message):
    with pytest.raises(rw.ModelError, match=message):
        rw.EarlyExit(*arguments)


def test_what_does_not_suit_a_model():
    with pytest.raises(rw.ModelError, match="a checkpoint after 48 trees needs more: the model has 40"):
        PLAIN.replace(exit=rw.EarlyExit((48,), (1.0,)))
    with pytest.raises(rw.ModelError, match="exit must be an EarlyExit or None, got tuple"):
        PLAIN.replace(exit=(16, 1.0))
    with pytest.raises(rw.ModelError, match=r"may reach 1.*e\+301: early exit takes up to 1e\+300"):
        PLAIN.replace(base=1e301, exit=RULE)


def test_what_keeps_it_and_what_does_not():
    for same in (
        MODEL.with_metadata(note=1),
        MODEL.replace(feature_names=["a", "b", "c"]),
        MODEL.replace(n_features=5),
        pickle.loads(pickle.dumps(MODEL)),
        copy.deepcopy(MODEL),
    ):
        assert same.exit == RULE
    for other in (
        MODEL.select(np.arange(40)),
        MODEL.reweigh(MODEL.tree_weights),
        MODEL.concat(PLAIN),
        PLAIN.concat(MODEL),
        MODEL.replace(base=1.0),
        MODEL.replace(leaf_value=2 * MODEL.leaf_value),
        MODEL.replace(exit=None),
    ):
        assert other.exit is None
    assert MODEL.replace(base=1.0, exit=RULE).exit == RULE


def test_models_with_and_without_are_different():
    assert MODEL != PLAIN
    assert MODEL.fingerprint() != PLAIN.fingerprint()
    assert PLAIN.replace(exit=rw.EarlyExit([16, 32], np.array([0.1, math.inf]), top=5)) == MODEL
    assert PLAIN.replace(exit=rw.EarlyExit((16, 32), (0.1, math.inf), top=6)) != MODEL
    assert MODEL.replace(exit=None) == PLAIN
    assert repr(MODEL) == "Ensemble(40 trees, 160 leaves, 3 features, exit after 16, 32 trees)"


def facts_of(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["rankwood"])


def test_the_file_keeps_it(tmp_path):
    path = tmp_path / "model.rw"
    MODEL.save(path)
    assert rw.load_model(path) == MODEL
    assert rw.load_model(path).exit == RULE
    assert facts_of(path)["format_version"] == 2  # earlier versions of rankwood say: upgrade
    PLAIN.save(path)
    assert facts_of(path)["format_version"] == 1
    assert "exit" not in facts_of(path)


@pytest.mark.parametrize(
    ("exit", "message"),
    [
        ('{"checkpoints":[16],"margins":[1.0]}', "early exit has checkpoints, margins and top"),
        ('{"checkpoints":[16],"margins":[-1],"top":1}', "a margin must be"),
        ('{"checkpoints":[48],"margins":[1],"top":1}', "a checkpoint after 48 trees needs more"),
        ('{"checkpoints":5,"margins":[1],"top":1}', "checkpoints must be a list"),
        ('{"checkpoints":[16],"margins":null,"top":1}', "margins must be a list"),
        ("null", "early exit has checkpoints"),
    ],
)
def test_damaged_rules_are_refused(tmp_path, exit, message):
    path = tmp_path / "model.rw"
    MODEL.save(path)
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    facts = json.loads(header["__metadata__"]["rankwood"])
    facts["exit"] = json.loads(exit)
    header["__metadata__"]["rankwood"] = json.dumps(facts)
    changed = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + length :])
    with pytest.raises(rw.ModelError, match=message):
        rw.load_model(path)


@pytest.mark.parametrize("name", [name for name in EXPORTERS if name not in ("rankwood", "onnx", "so")])
def test_other_formats_say_that_they_cannot_hold_it(name, tmp_path):
    path = tmp_path / f"model{EXPORTERS[name].suffix[0]}"
    with pytest.warns(rw.ConversionWarning, match="cannot hold early exit: the model is written without") as said:
        rw.save_as(MODEL, path, name, missing="ignore")
    written = path.read_bytes()
    assert sum("early exit" in str(one.message) for one in said) == 1
    assert {one.filename for one in said} == {__file__}
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rw.save_as(PLAIN, path, name, missing="ignore")
    assert path.read_bytes() == written
