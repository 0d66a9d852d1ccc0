"""Damaged files: a model or a ModelError comes out of any of them, and nothing else."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_xml_formats import JFORESTS, quickrank_text, ranklib_text

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats import registry
from strategies.exports import exported

DATA = Path(__file__).parent / "data"
TREES = [(2, 0.5, 1.0, (1, -1.0, 2.0, 3.0)), (3, 0.25, (1, 0.0, 4.0, 5.0), 6.0)]
DUMP = [
    {"nodeid": 0, "split": "f0", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1,
     "children": [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": -0.5}]},
    {"nodeid": 0, "leaf": 0.25},
]  # fmt: skip


@cache
def subject(name: str) -> bytes:
    made = {
        "ranklib": lambda: ranklib_text("MART", (TREES, [0.5, 1.0])),
        "quickrank": lambda: quickrank_text(TREES, [0.5, 1.0]),
        "jforests": lambda: JFORESTS,
        "xgboost-dump": lambda: json.dumps(DUMP).encode(),
        "vespa": lambda: exported(rw.Ensemble.from_trees(TREES), "vespa")[0].encode(),
        "onnx": onnx_content,
    }
    return made[name]() if name in made else (DATA / name).read_bytes()


def onnx_content() -> bytes:
    pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    from test_onnx import graph, regressor

    return graph([regressor()], np.float32, 3).SerializeToString()


NAMES = [
    "ranklib", "quickrank", "jforests", "xgboost-dump", "vespa", "onnx", "lightgbm-4.7.0.txt",
    "lightgbm-4.7.0-zero.txt", "lightgbm-2.3.1.txt", "lightgbm-4.7.0.json", "xgboost-3.2.0.json",
    "xgboost-3.2.0-dart.ubj", "xgboost-1.7.6.ubj", "catboost-1.2.10.json", "catboost-1.2.10-lossguide.json",
]  # fmt: skip


def reads_or_refuses(content: bytes) -> rw.Ensemble | None:
    start = content[: registry.START]
    kind = registry.recognise(start)
    if kind in (None, "rankwood", "cbm"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # of an order that is not told, an early stop
            model = registry._parse(content, kind, None, None)
    except RecursionError:  # load_model says so
        return None
    except ModelError as error:
        message = str(error)
        if len(message) > 400 or "\n" in message:
            pytest.fail(f"not one sentence: {message}")
        return None
    assert np.isfinite(model.score(np.zeros((1, model.n_features)))).all()
    return model


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_are_read(name):
    assert reads_or_refuses(subject(name)) is not None


NASTY = [
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"0",
    b"null",
    b"",
    b" ",
    b'"x"',
    b"[]",
    b"{}",
    b"\0",
]
TOKENS = [b"true", b"-0.0", b"2147483648", b"4294967296", b"\xff\xfe", b"<", b">", b"&a;", b"\n", b"=", b"1 1"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files(name, data):
    content = subject(name)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, max(0, len(content) - 1)))
        kind = data.draw(st.sampled_from(["byte", "cut", "drop", "repeat", "token", "number"]))
        if kind == "byte":
            content = content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]
        elif kind == "cut":
            content = content[:place]
        elif kind == "drop":
            content = content[:place] + content[place + data.draw(st.integers(1, 40)) :]
        elif kind == "repeat":
            size = data.draw(st.integers(1, 200))
            content = content[: place + size] + content[place:]
        elif kind == "token":
            content = content[:place] + data.draw(st.sampled_from(NASTY + TOKENS)) + content[place:]
        else:
            content = replace_number(content, place, data.draw(st.sampled_from(NASTY)))
    reads_or_refuses(content)


def replace_number(content: bytes, place: int, token: bytes) -> bytes:
    """The next number in a text, replaced."""
    digits = b"0123456789.-+eE"
    while place < len(content) and content[place] not in digits:
        place += 1
    end = place
    while end < len(content) and content[end] in digits:
        end += 1
    return content[:place] + token + content[end:]


@pytest.mark.parametrize("name", NAMES)
def test_files_cut_off(name):
    content = subject(name)
    places = np.linspace(0, len(content) - 1, 60).astype(int)
    for place in places.tolist():
        model = reads_or_refuses(content[:place])
        if model is not None:  # nothing of importance was lost: a line feed, LightGBM's list of parameters
            assert model == reads_or_refuses(content)


def walk(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from walk(inner, (*path, key))


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith(".json")] + ["xgboost-dump", "vespa"])
@settings(max_examples=80)
@given(data=st.data())
def test_json_with_other_values(name, data):
    value = json.loads(subject(name))
    paths = [path for path in walk(value) if path]
    path = data.draw(st.sampled_from(paths))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    odd = st.sampled_from([None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "x", [], {}, [1, 2], {"a": 1}])
    inner[path[-1]] = data.draw(odd)
    reads_or_refuses(json.dumps(value).encode())
