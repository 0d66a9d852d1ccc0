"""Rows of numbers in JSON: the kernel reads what the reader of all JSON reads, to the bit, or leaves it alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankwood import _native
from rankwood.serving.batch import Limits, Refused
from rankwood.serving.json_bodies import STAND_IN, parse, read_rows

pytestmark = pytest.mark.native

SPACE = st.sampled_from(["", "", "", " ", "\n", "\t\r "])
NUMBER = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers().map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.just("null"),
)
NO_JSON = ["NaN", "Infinity", "-Infinity", "01", "-01", "+1", ".5", "1.", "1e", "1e+", "-", "--1", "0x1", "1_0", "inf"]
NO_NUMBERS = ["nul", "nulll", "true", '"1"', "[]", "[1]", "{}", "", "1e999", "-1e999", "1 2", "١", "nan"]


@st.composite
def texts(draw, values) -> tuple[str, int]:
    """A list of rows as text, and their width."""
    width = draw(st.integers(1, 4))
    space = lambda: draw(SPACE)  # noqa: E731
    rows = [
        "[" + ",".join(space() + draw(values) + space() for _ in range(width)) + "]"
        for _ in range(draw(st.integers(1, 5)))
    ]
    return "[" + space() + ("," + space()).join(rows) + space() + "]", width


def slowly(text: str):
    """The same by json, or None."""
    try:
        rows = parse(text.encode(), Limits())
        return np.array(rows, dtype=np.float64)
    except (Refused, ValueError, TypeError, OverflowError):
        return None


@settings(max_examples=300)
@given(texts(NUMBER))
@example(("[[5e-324, 2.2250738585072011e-308, 1.7976931348623157e308, 1e-400]]", 4))
@example(("[[9007199254740993, 123456789012345678901234567890, 0.1, -0.0]]", 4))
def test_numbers_have_the_bits_of_json(case):
    text, width = case
    expected = slowly(text)
    found = _native.json_rows(text.encode(), width, 100)
    if expected is None or np.isinf(expected).any():
        assert found is None
    else:
        values, first, end = found
        assert (first, end) == (0, len(text))
        np.testing.assert_array_equal(values, expected.ravel())  # as numbers: json reads -0 as the whole number 0
        assert values[expected.ravel() != 0].tobytes() == expected[expected != 0].tobytes()


@settings(max_examples=300)
@given(texts(NUMBER | st.sampled_from(NO_JSON + NO_NUMBERS)))
def test_what_is_read_is_json(case):
    text, width = case
    found = _native.json_rows(text.encode(), width, 100)
    if found is not None:
        np.testing.assert_array_equal(found[0], slowly(text).ravel())


@settings(max_examples=300)
@given(texts(NUMBER), st.data())
def test_damaged_text_is_left_alone(case, data):
    """Or is JSON still."""
    text, width = case
    place = data.draw(st.integers(0, len(text) - 1))
    text = (
        text[:place]
        + data.draw(st.sampled_from(["", "[", "]", ",", "-", ".", "e", "0", " ", '"', "\x00"]))
        + text[place + 1 :]
    )
    found = _native.json_rows(text.encode(), width, 100)
    if found is not None:
        values, first, end = found
        np.testing.assert_array_equal(values, slowly(text[first:end]).ravel())


@pytest.mark.parametrize(
    ("text", "width"),
    [("[[]]", 0), ("[[1]]", 2), ("[[1,2]]", 1), ("[[1],[2,3]]", 1)]
    + [(text, 1) for text in ("", "[]", "[[1],]", "[[1]", "[[1", "[[", "[ [1]", "[[1][2]]", "[1, [2]]")],
)
def test_other_lists_are_left_alone(text, width):
    assert _native.json_rows(text.encode(), width, 100) is None


def test_no_more_rows_than_may_be():
    text = json.dumps([[1]] * 5).encode()
    assert _native.json_rows(text, 1, 4) is None
    assert len(_native.json_rows(text, 1, 5)[0]) == 5


@pytest.mark.parametrize(
    "body",
    [
        '{"columns": {}, "qid": [[1, 2]]}',
        '{"rows": "[[1, 2]]"}',
        '{"rows": "\\\\[[1, 2]]"}',
        '{"rows": "\\[[1, 2]]"}',
        '{"rows": "x[[1, 2]]", "top": 1}',
        '{"rows": {"a": [[1, 2]]}}',
        '{"rows": [[[1, 2]]]}',
        '{"rows": [[1, 2]], "rows": 3}',
        '{"rows": [[1, 2]]',
        "[[1, 2]]",
        '"[[1, 2]]',
        pytest.param(f'{{"rows": "{STAND_IN[::-1]}", "qid": [[1, 2]]}}', id="the stand-in, backwards"),
    ],
)
def test_lists_elsewhere_are_not_taken_for_rows(body):
    assert read_rows(body.encode(), 2, Limits()) is None


def test_the_rest_of_the_request_is_kept():
    request, X = read_rows(b' {"top": 3, "rows" : [ [1, null], [2, 3] ], "qid": ["[[7, 8]]", "b"]} ', 2, Limits())
    assert request == {"top": 3, "rows": STAND_IN, "qid": ["[[7, 8]]", "b"]}
    np.testing.assert_array_equal(X, [[1, np.nan], [2, 3]])
