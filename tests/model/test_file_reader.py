"""The reader of model files in C++ takes and refuses what its slow twin does, and what safetensors takes."""

from __future__ import annotations

import io
import json
import random
import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from safetensors import SafetensorError, deserialize

from oracles import model_file as twin
from rankwood import Ensemble, ModelError
from rankwood.model.file import model_bytes, parse_model
from strategies.ensembles import ensembles
from strategies.model_files import CONTENTS, description_of, header_of, mutated, with_description, with_header

pytestmark = pytest.mark.native


def ours(content: bytes) -> Ensemble | str:
    try:
        return parse_model(io.BytesIO(content), Ensemble)
    except ModelError as error:
        return str(error)


def theirs(content: bytes) -> Ensemble | None:
    try:
        return twin.read(content)
    except (ValueError, RecursionError, OverflowError):
        return None


def agree(content: bytes) -> bool:
    """Whether both readers take it, once they are known to agree."""
    model, expected = ours(content), theirs(content)
    assert isinstance(model, Ensemble) == isinstance(expected, Ensemble), (model, expected, content)
    if isinstance(model, str):
        assert model
        assert "\n" not in model
        assert len(model) < 700
        return False
    assert model == expected
    assert (model.feature_names, model.metadata) == (expected.feature_names, expected.metadata)
    for name in ("split_gain", "node_count", "leaf_cover"):
        one, other = getattr(model, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert_array_equal(one, other)
    try:
        deserialize(content)
    except SafetensorError as error:
        raise AssertionError("safetensors does not take it") from error
    return True


@pytest.mark.parametrize("content", CONTENTS, ids=["noted", "exits", "empty", "sets", "sets and exit"])
def test_models_are_taken(content):
    assert agree(content)
    header, data = header_of(content)
    spread = json.dumps(json.loads(header), indent=2) + " \t\r\n"
    assert agree(with_header(spread, data))
    assert agree(with_description(content, json.dumps(json.loads(description_of(content)), indent=1)))
    assert agree(with_header(json.dumps(json.loads(header), ensure_ascii=False), data))


@given(model=ensembles(min_trees=0))
@settings(max_examples=30)
def test_models_of_every_shape_are_taken(model):
    assert agree(model_bytes(model))


@pytest.mark.parametrize("seed", range(4))
def test_changed_tokens(seed):
    rng = random.Random(seed)
    taken = 0
    for _ in range(1500):
        content = rng.choice(CONTENTS)
        if rng.random() < 0.6:
            changed = with_description(content, mutated(description_of(content), rng))
        else:
            header, data = header_of(content)
            changed = with_header(mutated(header, rng).encode(errors="surrogatepass"), data)
        taken += agree(changed)
    assert 50 < taken < 1400


@pytest.mark.parametrize("seed", range(2))
def test_changed_bytes(seed):
    rng = random.Random(seed)
    taken = 0
    for _ in range(1500):
        changed = bytearray(rng.choice(CONTENTS))
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice(
                [0, 1, 0x22, 0x5C, 0x7B, 0x80, 0xC3, 0xED, 0xFF, changed[at] ^ 1 << rng.randrange(8)]
            )
        taken += agree(bytes(changed))
    assert 0 < taken < 1500


@given(data=st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes(data):
    agree(data)
    agree(struct.pack("<Q", len(data)) + data)
    agree(struct.pack("<Q", len(data) + 1) + b"{" + data)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"base"', '"base":1,"base"', "base stands twice in the description of the model"),
        ('"top"', '"top":1,"top"', "top stands twice in early exit"),
        ('"n_features":2', '"n_features":1' + "0" * 5000, "not readable JSON: a number has more than 4300 digits"),
        ('"n_features":2', '"n_features":1e999', "not readable JSON: a number is too large"),
        (
            '"metadata":{}',
            '"metadata":{"a":' + "[" * 1200 + "]" * 1200 + "}",
            "not readable JSON: it is nested too deeply",
        ),
        ('"metadata":{}', '"metadata":{"a":' + "[" * 10**6, "not readable JSON: it is nested too deeply"),
        ('"metadata":{}', '"metadata":{"a":Infinity}', "Infinity is not JSON"),
        ("0.5", "1" + "0" * 400, "a margin must be a number of 0 or more, got 10"),
        ('"feature_names":null', '"feature_names":["a","a"]', "two features have the name 'a'"),
        ('"checksum":"', '"checksum":"0', "its numbers are not those that were written"),
    ],
)
def test_what_is_wrong_is_said(old, new, message):
    description = description_of(CONTENTS[1])
    assert old in description
    found = ours(with_description(CONTENTS[1], description.replace(old, new)))
    assert message in str(found)


def test_a_header_with_duplicates_or_halves_of_characters():
    header, data = header_of(CONTENTS[1])
    for old, new, message in (
        (
            '"left":',
            '"left":{"dtype":"I32","shape":[0],"data_offsets":[0,0]},"left":',
            "left stands twice in the header",
        ),
        ('{"__metadata__":{', '{"__metadata__":{"x":"\\ud800",', "a string holds half of a character"),
        ('{"__metadata__":{', '{"__metadata__":{"x":"\\ud83d\\ude00",', None),
        ('{"__metadata__":{', '{"__metadata__":{"x":1,', "an entry of __metadata__ is not a string"),
        ('"dtype":"I64"', '"dtype":"I64","colour":1', "has an unknown property"),
        ('"dtype":"I64"', '"dtype":"I64","dtype":"I64"', "dtype stands twice"),
    ):
        assert old in header
        found = ours(with_header(header.replace(old, new, 1), data))
        assert isinstance(found, Ensemble) if message is None else message in str(found)
    assert "it is not UTF-8" in str(ours(with_header(header.encode().replace(b"rankwood", b"rankw\xffod"), data)))


def test_sizes_that_wrap_around_are_refused():
    header, data = header_of(CONTENTS[1])
    for numbers in ("[18446744073709551615]", "[2305843009213693952]", "[9223372036854775807]", "[-1]", "[1e3]"):
        assert isinstance(
            ours(with_header(re.sub(r'("shape":)\[\d+\]', rf"\g<1>{numbers}", header, count=1), data)), str
        )
    for ends in ("[0,18446744073709551615]", "[18446744073709551608,18446744073709551615]", "[8,0]", "[0]", "[0,0,0]"):
        changed = re.sub(r'("data_offsets":)\[\d+,\d+\]', rf"\g<1>{ends}", header, count=1)
        assert isinstance(ours(with_header(changed, data)), str)
