"""Damaged files: a model or a ModelError comes out of any of them, and nothing else."""

from __future__ import annotations

import json
import random
import re
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile import categories, lightgbm_text, xgboost_json
from test_xml_formats import JFORESTS, quickrank_text, ranklib_text

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.formats import registry
from rankwood.formats.ubjson import parse_ubjson, to_ubjson
from rankwood.model.file import model_bytes
from strategies.exports import exported
from strategies.limited import read_limited

DATA = Path(__file__).parent / "data"
TREES = [(2, 0.5, 1.0, (1, -1.0, 2.0, 3.0)), (3, 0.25, (1, 0.0, 4.0, 5.0), 6.0)]
DUMP = [
    {"nodeid": 0, "split": "f0", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1,
     "children": [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": -0.5}]},
    {"nodeid": 0, "leaf": 0.25},
]  # fmt: skip


NAMED = rw.Ensemble.from_trees(TREES, feature_names=["bm25", "clicks", "age", "length"])


EXPRESSION = b"sigmoid(if (a(x) < 0.5, 1.0, if (!(b >= -1.5E-3), 2.0, 3)) + \nif (b >= 7, 4.0, 5.0) + 6.5)\n"


def plugin_body(kind: str, definition: str) -> bytes:
    features = [{"name": name, "template": {}} for name in NAMED.feature_names or ()]
    stored = {"name": "mine", "feature_set": {"name": "set", "features": features}}
    stored["model"] = {"type": kind, "definition": definition}
    return json.dumps({"_index": ".ltrstore", "_source": {"name": "mine", "type": "model", "model": stored}}).encode()


@cache
def subject(name: str) -> bytes:
    made = {
        "ranklib": lambda: ranklib_text("MART", (TREES, [0.5, 1.0])),
        "quickrank": lambda: quickrank_text(TREES, [0.5, 1.0]),
        "jforests": lambda: JFORESTS,
        "xgboost-dump": lambda: json.dumps(DUMP).encode(),
        "vespa": lambda: exported(rw.Ensemble.from_trees(TREES), "vespa")[0].encode(),
        "solr": lambda: exported(NAMED, "solr", missing="ignore")[0].encode(),
        "elasticsearch": lambda: exported(NAMED, "elasticsearch")[0].encode(),
        "elasticsearch-ltr": lambda: plugin_body("model/xgboost+json", exported(NAMED, "xgboost-dump")[0]),
        "elasticsearch-ranklib": lambda: plugin_body("model/ranklib", exported(NAMED, "ranklib", missing="ignore")[0]),
        "catboost-one-hot": catboost_one_hot,
        "vespa-expression": lambda: EXPRESSION,
        "onnx": onnx_content,
        "onnx-5": partial(onnx_content, 5),
        "lightgbm-categories": lambda: lightgbm_text(
            [categories(3, [0, 1, 3], [5, 9, 2**31], [0, 1, 0], [0, 1, 1])], names="ab"
        ),
        "xgboost-categories": lambda: xgboost_json(
            categories=[1, 2, 7],
            categories_nodes=[0],
            categories_segments=[0],
            categories_sizes=[3],
            split_type=[1, 0, 0],
        ),
        "rankwood": lambda: model_bytes(rw.Ensemble.from_trees(TREES, n_features=5, feature_names=list("abcde"))),
    }
    return made[name]() if name in made else (DATA / name).read_bytes()


def catboost_one_hot() -> bytes:
    """As CatBoost writes a model with its pool: categories by hash, and texts of the hashes."""
    texts = {101: "red", 2**32 - 7: "green", 303: "12", 404: "7"}
    categories = [
        {"feature_id": "colour", "feature_index": 0, "flat_feature_index": 1, "values": [101, -7]},
        {"feature_id": "shop", "feature_index": 1, "flat_feature_index": 2, "values": [303, 404]},
    ]
    numeric = {"feature_id": "age", "feature_index": 0, "flat_feature_index": 0, "nan_value_treatment": "AsTrue"}
    splits = [
        {"split_type": "OneHotFeature", "cat_feature_index": 0, "value": -7},
        {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5},
        {"split_type": "OneHotFeature", "cat_feature_index": 1, "value": 303},
    ]
    info = {"float_features": [numeric], "categorical_features": categories}
    info["cat_features_hash"] = [{"hash": code, "value": text} for code, text in texts.items()]
    trees = [{"splits": splits, "leaf_values": list(range(8)), "leaf_weights": [1] * 8}]
    return json.dumps({"features_info": info, "oblivious_trees": trees, "scale_and_bias": [1, [0.5]]}).encode()


def onnx_content(version: int = 3) -> bytes:
    pytest.importorskip("onnx", reason="ONNX ABSENT: pip install 'rankwood[formats]'")
    from test_onnx import ensemble5, graph, regressor

    return graph([regressor() if version == 3 else ensemble5(mode=6)], np.float32, version).SerializeToString()


NAMES = [
    "ranklib", "quickrank", "jforests", "xgboost-dump", "vespa", "solr", "elasticsearch", "elasticsearch-ltr",
    "elasticsearch-ranklib", "catboost-one-hot", "vespa-expression", "onnx", "lightgbm-4.7.0.txt",
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
    except ModelError as error:
        message = str(error)
        if error.__cause__ is not None:
            pytest.fail(f"not foreseen: {error.__cause__!r}")
        if len(message) > 400 or "\n" in message:
            pytest.fail(f"not one sentence: {message}")
        return None
    assert np.isfinite(model.score(np.zeros((1, model.n_features)))).all()
    return model


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_are_read(name):
    assert reads_or_refuses(subject(name)) is not None


KEPT = sorted(path for path in (Path(__file__).parents[1] / "fuzz" / "kept").rglob("*") if path.is_file())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_fuzzers_found_is_mended(path):
    reads_or_refuses(path.read_bytes())


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


@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if n.endswith(".json")] + ["xgboost-dump", "vespa", "solr", "elasticsearch", "elasticsearch-ltr"],
)
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


MUTATED = [*NAMES, "onnx-5", "lightgbm-categories", "xgboost-categories", "rankwood"]
N_RANDOM = 120
PER_FIELD = 8
NUMBER = re.compile(rb"(?<![A-Za-z0-9.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_#]+")
IN_PLACE_OF_NUMBERS = [
    b"9" * 30, b"-" + b"9" * 30, b"9223372036854775807", b"9223372036854775808", b"9" * 5000, b"2147483648",
    b"16777215", b"-1", b"0", b"1", b"1e999", b"-1e999", b"nan", b"0.5", b"true", b"null", b'"x"', b"[]", b"{}", b"",
    b"1 1", b"x",
]  # fmt: skip
ODD_VALUES = [
    None, True, -1, 0, 1, 10**30, -(10**30), 2**31, 2**63, 2**64, 16777215, 1.5, 1e308, float("nan"), float("inf"), "",
    "x", "9" * 40, "f16777215", [], {}, [1, 2], [[]], {"a": 1}, [None] * 50,
]  # fmt: skip
NOT_READ = ("model_info", "feature_infos", "feature_importances")
FIELDS = [
    b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\0" * 8, b"\xff" * 9 + b"\x01",
    struct.pack("<f", float("nan")), struct.pack(">d", float("inf")),
]  # fmt: skip


def mutations(name: str, seed: int = 0, n_random: int = N_RANDOM, per_field: int = PER_FIELD) -> list[bytes]:
    """Damaged copies, always the same ones: bits turned, cut off, fields overwritten, parts copied; and every kind of
    number or value that the format has, replaced by some that do not fit."""
    content, rng = subject(name), random.Random(seed)
    damaged = [rng.choice([_turn, _cut, _overwrite, _copy_part])(content, rng) for _ in range(n_random)]
    if name.endswith(".ubj"):
        values = _other_values(lambda: parse_ubjson(content), rng, per_field)
        return [*damaged, *(ubjson(value) for value in values)]
    if name.startswith("onnx"):
        return [*damaged, *_other_attributes(content)]
    if name == "rankwood":
        return [*damaged, *_other_numbers(content, rng, per_field)]
    if content[:1] in b"{[":
        damaged += (json.dumps(value).encode() for value in _other_values(lambda: json.loads(content), rng, per_field))
    return [*damaged, *_other_numbers(content, rng, per_field)]


def _turn(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 3])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _overwrite(content: bytes, rng: random.Random) -> bytes:
    """A length, a count or a number of a binary format."""
    place, field = rng.randrange(len(content)), rng.choice(FIELDS)
    return content[:place] + field + content[place + len(field) :]


def _copy_part(content: bytes, rng: random.Random) -> bytes:
    start, place, size = rng.randrange(len(content)), rng.randrange(len(content)), rng.choice([1, 8, 100, 1000])
    return content[:place] + content[start : start + size] + content[place + rng.choice([0, size]) :]


def _other_numbers(content: bytes, rng: random.Random, per_field: int) -> Iterator[bytes]:
    """Numbers by the word that stands before them, which is the name of the field."""
    words = [(word.end(), word[0]) for word in WORD.finditer(content)]
    fields: dict[bytes, list[re.Match[bytes]]] = {}
    at = 0
    for match in NUMBER.finditer(content.split(b"\nend of trees")[0]):  # LightGBM's parameters, which are not read
        while at + 1 < len(words) and words[at + 1][0] <= match.start():
            at += 1
        fields.setdefault(words[at][1], []).append(match)
    for matches in fields.values():
        for token in [*IN_PLACE_OF_NUMBERS[:3], *rng.sample(IN_PLACE_OF_NUMBERS[3:], per_field)]:
            match = rng.choice(matches)
            yield content[: match.start()] + token + content[match.end() :]


def _other_values(read: Callable[[], Any], rng: random.Random, per_field: int) -> Iterator[Any]:
    """A JSON value with another one at each of its places; those of the same name in the same thing count as one."""
    kinds: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in walk(read()):
        if path and path[0] not in NOT_READ:
            kinds.setdefault(tuple("*" if isinstance(key, int) else key for key in path[-2:]), []).append(path)
    for paths in kinds.values():
        for odd in rng.sample(ODD_VALUES, per_field):
            value = inner = read()
            *above, last = rng.choice(paths)
            for key in above:
                inner = inner[key]
            inner[last] = odd
            yield value


def ubjson(value: Any) -> bytes:
    """What `to_ubjson` writes, and constants and other numbers as well."""
    if isinstance(value, dict):
        entries = (to_ubjson(name)[1:] + ubjson(entry) for name, entry in value.items())
        return b"{" + b"".join(entries) + b"}"
    if isinstance(value, list):
        return b"[" + b"".join(map(ubjson, value)) + b"]"
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**63):
        return b"D" + struct.pack(">d", value)
    return to_ubjson(value)


def odd_attributes() -> list[Any]:
    """Values of attributes of ONNX operators, of every type."""
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph([], "g", [], [])
    tensors = [numpy_helper.from_array(np.array(entries)) for entries in ([1.0, np.nan], [2**62], [[1, 2]], [])]
    huge = TensorProto(data_type=TensorProto.FLOAT, dims=[2**31, 2**31])
    texts = TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"x"])
    numbers = [3, -1, 2**62, 1.5, b"x", [1, 2], [1.5, 2.5], [b"a", b"b"]]
    return [*numbers, graph, [graph], *tensors, huge, texts, tensors[:2]]


def _other_attributes(content: bytes) -> Iterator[bytes]:
    """An ONNX operator with each of its attributes of another type."""
    from onnx import helper, load_model_from_string

    model = load_model_from_string(content)
    for number in range(len(model.graph.node[0].attribute)):
        for value in odd_attributes():
            damaged = load_model_from_string(content)
            attribute = damaged.graph.node[0].attribute[number]
            attribute.CopyFrom(helper.make_attribute(attribute.name, value))
            yield damaged.SerializeToString()


def assert_read_or_refused(paths, outcomes):
    wrong = {}
    for path, found in zip(paths, outcomes, strict=True):
        if "read" in found:
            continue
        message = found["message"]
        fine = found["error"] == "ModelError" and found["cause"] is None
        if not fine or not message.startswith(f"{path}: ") or "\n" in message or len(message) > 500:
            wrong[path.name] = found
    assert not wrong


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as Linux does")
@pytest.mark.parametrize("name", MUTATED)
def test_mutations_within_little_memory(name, tmp_path):
    """Hundreds of damaged copies give a model or a ModelError, which the importer itself has seen to."""
    paths = []
    for number, content in enumerate([subject(name), *mutations(name)]):
        paths.append(tmp_path / f"model{number}")
        paths[-1].write_bytes(content)
    outcomes = read_limited(paths)
    assert "read" in outcomes[0]
    assert_read_or_refused(paths, outcomes)
    assert sum("error" in found for found in outcomes) > len(paths) // 5  # it was damage


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_what_another_process_reads(seed, tmp_path):
    pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    content, rng = (DATA / "catboost-1.2.10.cbm").read_bytes(), random.Random(seed)
    path = tmp_path / "model"
    path.write_bytes(_overwrite(_overwrite(content[:8] + content[8:], rng), rng))
    try:
        assert rw.load_model(path).n_trees
    except ModelError as error:
        if error.__cause__ is not None or not str(error).startswith(f"{path}: "):
            pytest.fail(str(error))
