from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import svmlight as oracle
from rankwood import DataError, read_svmlight, write_svmlight
from rankwood.data import svmlight
from strategies.svmlight_files import TINY, read, write

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("svmlight")


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:2", "expected a number as label, got 'x'"),
        ("1,2 qid:1 1:2", "expected a number as label, got '1,2'"),
        ("nan qid:1 1:2", "the label must be a finite number, got 'nan'"),
        ("1e999 qid:1 1:2", "the label must be a finite number, got '1e999'"),
        ("1", "expected 'qid:ID' after the label, as in line 1, got nothing"),
        ("1 # comment", "expected 'qid:ID' after the label, as in line 1, got nothing"),
        ("1 1:2", "expected 'qid:ID' after the label, as in line 1, got '1:2'"),
        ("1 qid: 1:2", "expected 'qid:ID' after the label, as in line 1, got 'qid:'"),
        ("1 qid:1 qid:2 1:2", "'qid:2' is a second query id"),
        ("1 qid:1 7", "expected 'feature:value' with a whole number as feature, got '7'"),
        ("1 qid:1 a:7", "expected 'feature:value' with a whole number as feature, got 'a:7'"),
        ("1 qid:1 -1:7", "expected 'feature:value' with a whole number as feature, got '-1:7'"),
        ("1 qid:1 1.0:7", "expected 'feature:value' with a whole number as feature, got '1.0:7'"),
        ("1 qid:1 :7", "expected 'feature:value' with a whole number as feature, got ':7'"),
        ("1 qid:1 0:7", "feature id 0 in '0:7', but ids start at 1; pass zero_based=True"),
        ("1 qid:1 1:", "expected a number as value of feature 1, got nothing"),
        ("1 qid:1 1: 2:3", "expected a number as value of feature 1, got nothing"),
        ("1 qid:1 1:abc", "expected a number as value of feature 1, got 'abc'"),
        ("1 qid:1 1:1.2.3", "expected a number as value of feature 1, got '1.2.3'"),
        ("1 qid:1 1:.", "expected a number as value of feature 1, got '.'"),
        ("1 qid:1 1:-", "expected a number as value of feature 1, got '-'"),
        ("1 qid:1 1:--2", "expected a number as value of feature 1, got '--2'"),
        ("1 qid:1 1:1e", "expected a number as value of feature 1, got '1e'"),
        ("1 qid:1 1:0x10", "expected a number as value of feature 1, got '0x10'"),
        ("1 qid:1 1:1_000", "expected a number as value of feature 1, got '1_000'"),
        ("1 qid:1 1:nan(1)", "expected a number as value of feature 1, got 'nan(1)'"),
        ("1 qid:1 1:2 1:3", "feature 1 appears twice"),
        ("1 qid:1 2:2 1:3 2:2", "feature 2 appears twice"),
        ("1 qid:1 1:" + "9" * 30 + "x" * 30, "got '" + "9" * 30 + "x" * 10 + "...'"),
        ("1 qid:1 1:\x01\xe9", "got '\\x01\\xc3\\xa9'"),
        ("1 qid:1 1:2 \x00", "got '\\x00'"),
        ("1 qid:1 99999999999999999999:2", "feature id 99999999999999999999 is larger than 10000000"),
        ("1 qid:1 10000001:2", "feature id 10000001 is larger than 10000000"),
    ],
)
@pytest.mark.parametrize("tuning", [{}, TINY, {"careful": True}])
def test_a_wrong_line_is_named(folder, line, message, tuning):
    path = write(folder, f"1 qid:1 1:1 2:2\n# comment\n\n{line}\n0 qid:1 1:1 2:2\n")
    with pytest.raises(DataError, match=re.escape(f"{path}, line 4: ") + ".*" + re.escape(message)):
        read_svmlight(path, _tuning=tuning)


def test_a_query_id_where_there_was_none(folder):
    with pytest.raises(DataError, match=r"line 2: got 'qid:1' after the label, but line 1 has no qid there"):
        read(folder, "1 1:2\n1 qid:1 1:2\n", queries="optional")


def test_lines_are_counted_in_each_file(folder):
    good, bad = write(folder, "1 qid:1 1:1\n" * 5, "good.txt"), write(folder, "1 qid:1 1:1\n1 qid:1 z\n", "bad.txt")
    with pytest.raises(DataError, match=r"bad.txt, line 2: expected 'feature:value'"):
        read_svmlight([good, bad, good])
    bad.write_text("1 1:1\n")
    with pytest.raises(DataError, match=r"bad.txt, line 1: .* as in the lines before this file"):
        read_svmlight([good, bad])


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_the_first_wrong_line_is_reported(folder, n_threads):
    lines = ["1 qid:1 1:1 2:2\n"] * 400
    lines[300] = "1 qid:1 1:x\n"
    lines[301] = "1 qid:1 50:1\n"  # makes the matrix wider, before the mistake in line 200 is known
    for wrong in (200, 199, 17):
        lines[wrong] = f"1 qid:1 1:wrong{wrong}\n"
        with pytest.raises(DataError, match=f"line {wrong + 1}: .*'wrong{wrong}'"):
            read(folder, "".join(lines), n_threads=n_threads, _tuning={"window": 1 << 20, "chunk": 50})


def test_an_absurd_feature_id(folder):
    rows = "1 qid:1 1:1\n" * 1000
    with pytest.raises(DataError, match=r"line 1001: feature id 5000000 would make the matrix larger than 256 times"):
        read(folder, rows + "1 qid:1 5000000:1\n")
    with pytest.raises(DataError, match=r"features make the matrix larger than 256 times its text; .* n_features"):
        read(folder, "1 qid:1 5000000:1\n" + rows, _tuning=TINY)
    with pytest.raises(DataError, match=r"make the matrix larger than the memory of this machine"):
        read(folder, "1 qid:1 1:1\n" * 100_000, n_features=10_000_000)


TUNINGS = st.fixed_dictionaries(
    {
        "window": st.sampled_from([1, 30, 200, 1 << 20]),
        "chunk": st.sampled_from([1, 20, 1 << 18]),
        "careful": st.booleans(),
    }
)


@dataclass
class SizedLine:
    """A line of a file, whether it is wrong, and the features it has; None: it has no row."""

    text: str
    features: list[int] | None = None
    is_wrong: bool = False


def _row(ids: list[int]) -> SizedLine:
    return SizedLine("".join(["1 qid:1", *(f" {i}:1" for i in ids), "\n"]), ids)


def _wrong(ids: list[int]) -> SizedLine:
    return SizedLine(_row(ids).text.replace("\n", " 1:x\n"), ids, is_wrong=True)


SIZED_LINES = st.one_of(
    st.lists(st.integers(1, 9), unique=True).map(_row),
    st.lists(st.integers(1, 60), unique=True).map(_row),
    st.sampled_from(["\n", "\n", " \t\r\n", "# 1 qid:1 99:1\n", "  # 99:1\n"]).map(SizedLine),
    st.integers(1, 100).map(lambda i: SizedLine("\n" * i)),
)


def first_problem(lines: list[SizedLine], most: int, n_features: int | None) -> str | None:
    """What is wrong with the first line that is, or that makes the matrix have more than `most` values."""
    n_rows, width, number = 0, n_features or 0, 0
    for line in lines:
        if line.features is not None:
            n_rows += 1
            if line.is_wrong:
                return rf"line {number + 1}: expected a number as value of feature 1, got 'x'"
            if n_rows * width > most:
                return rf"line {number + 1}: with this row, {width} features make the matrix larger than the limit"
            for feature in line.features if n_features is None else []:
                if n_rows * feature > most:
                    return rf"line {number + 1}: feature id {feature} would make the matrix larger than the limit"
                width = max(width, feature)
        number += line.text.count("\n")
    return None


@given(st.lists(SIZED_LINES, max_size=30), st.data(), st.integers(1, 300), st.none() | st.integers(1, 60))
def test_a_matrix_that_is_too_large_is_refused_at_its_first_line(folder, lines, data, most, n_features):
    """It is the same line whatever the windows, chunks and threads, and blank lines do not count."""
    lines = [_row([1]), *lines]
    if data.draw(st.booleans()):
        lines.insert(
            data.draw(st.integers(1, len(lines))), _wrong(data.draw(st.lists(st.integers(2, 60), unique=True)))
        )
    path = write(folder, "".join(line.text for line in lines))
    expected = first_problem(lines, most, n_features)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight, "_largest_matrix", lambda *_: (4 * most, "the limit"))
        for tuning in (data.draw(TUNINGS), data.draw(TUNINGS)):
            options = {"n_threads": data.draw(st.integers(1, 4)), "_tuning": tuning, "n_features": n_features}
            if expected is None:
                n_rows = sum(line.features is not None for line in lines)
                assert len(read_svmlight(path, beyond="ignore", **options).y) == n_rows
            else:
                with pytest.raises(DataError, match=rf"data.txt, {expected}(?! \d)"):
                    read_svmlight(path, beyond="ignore", **options)


def test_the_line_with_the_largest_feature_id_is_named(folder):
    content = "1 qid:1 1:1\n\n1 qid:1 5000000:1\n1 qid:1 4999999:1\n" + "1 qid:1 1:1\n" * 1000
    for tuning in ({}, TINY, {"window": 5000, "chunk": 100}):
        with pytest.raises(
            DataError, match=r"line 15: with this row, 5000000 .* \(the largest feature id is in line 3\)"
        ):
            read(folder, content, _tuning=tuning)


def test_one_large_feature_id_is_no_harm(folder):
    data = read(folder, "1 qid:1 1000000:3\n1 qid:1 2:1 1:5\n")
    assert data.X.shape == (2, 1_000_000)
    assert data.X[0, -1] == 3
    assert data.X[1, :3].tolist() == [5, 1, 0]


@pytest.mark.parametrize("n_features", [0, -1, 10_000_001])
def test_n_features_out_of_range(folder, n_features):
    with pytest.raises(DataError, match="n_features must lie between 1 and 10000000"):
        read(folder, "1 qid:1 1:1\n", n_features=n_features)


def test_files_without_data(folder):
    with pytest.raises(DataError, match="the file is empty"):
        read(folder, "")
    with pytest.raises(DataError, match="there is no document, only blank lines and comments"):
        read(folder, "\n# nothing\n")
    with pytest.raises(DataError, match="no line has a feature"):
        read(folder, "1 qid:1\n0 qid:1\n")
    with pytest.raises(DataError, match="no data file was given"):
        read_svmlight([])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"none.txt: there is no such file"):
        read_svmlight(tmp_path / "none.txt")
    with pytest.raises(DataError, match="this is a folder, a file was expected"):
        read_svmlight(tmp_path)
    with pytest.raises(DataError, match="cannot be the name of a file"):
        read_svmlight("a\0b")
    secret = write(tmp_path, "1 qid:1 1:1\n")
    secret.chmod(0)
    if not os.access(secret, os.R_OK):  # root may read everything
        with pytest.raises(DataError, match="no permission to read it"):
            read_svmlight(secret)


@pytest.mark.parametrize(
    ("magic", "name"), [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")]
)
def test_other_packed_files(folder, magic, name):
    with pytest.raises(DataError, match=f"this is {name} data; unpack it first"):
        read(folder, magic + b"....")


# ------------------------------------------------------------------------------------------------ any file at all


SEPARATORS = st.sampled_from([" ", "  ", "\t", " \t"])
ENDS = st.sampled_from(["\n", "\n", "\r\n", " \n", "\n\n", " # c\n", "#docid = d inc = 1\n", "\n# only a comment\n"])
DECIMALS = st.one_of(
    st.integers(0, 9).map(str),
    st.integers(-(10**18), 10**18).map(str),
    st.from_regex(r"[+-]?[0-9]{0,12}\.[0-9]{1,12}", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.floats(width=32).map(str),
    st.floats().map(repr),
)
VALUES = DECIMALS | st.sampled_from(["0", "1", "NULL", "nan", "inf", "-inf", "?"])
LABELS = st.sampled_from(["0", "1", "2", "4", "0.5", "-1", "1e1"])


@st.composite
def lines(draw) -> str:
    ids = draw(
        st.one_of(st.integers(0, 8).map(lambda n: list(range(1, n + 1))), st.lists(st.integers(1, 40), unique=True))
    )
    fields = [draw(LABELS), "qid:" + draw(st.sampled_from(["1", "2", "007", "q"]))]
    fields += [f"{feature}:{draw(VALUES)}" for feature in ids]
    return draw(SEPARATORS).join(fields) + draw(ENDS)


def agrees_with_oracle(path: Path, content: bytes, **options) -> None:
    path.write_bytes(content)
    try:
        expected = oracle.parse(content)
    except oracle.LineError as error:
        with pytest.raises(DataError, match=f"line {error.line}: "):
            read_svmlight(path, queries="optional", **options)
        return
    width = max((feature for row in expected.features for feature in row), default=-1) + 1
    if not width:  # includes the empty file
        with pytest.raises(DataError):
            read_svmlight(path, queries="optional", **options)
        return
    data = read_svmlight(path, queries="optional", **options)
    X = np.zeros((len(expected.labels), width), dtype=np.float32)
    for row, features in zip(X, expected.features, strict=True):
        row[list(features)] = list(features.values())
    assert_array_equal(data.X, X)
    assert_array_equal(np.signbit(data.X[~np.isnan(X)]), np.signbit(X[~np.isnan(X)]))
    assert_array_equal(data.y, expected.labels)
    if any(expected.qids):
        assert [str(qid) for qid in data.qid.tolist()] == expected.qids
    names = [""] * len(X) if data.doc_ids is None else data.doc_ids.tolist()
    assert names == expected.doc_ids


@given(st.lists(lines(), min_size=1, max_size=8), TUNINGS, st.integers(1, 4))
def test_any_good_file_reads_as_the_oracle_says(folder, texts, tuning, n_threads):
    agrees_with_oracle(folder / "any.txt", "".join(texts).encode(), _tuning=tuning, n_threads=n_threads)


@given(st.lists(lines(), min_size=1, max_size=4), st.data(), TUNINGS, st.integers(1, 3))
def test_a_file_with_one_byte_changed(folder, texts, data, tuning, n_threads):
    content = bytearray("".join(texts).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.sampled_from(list(b"\n\r\t :#.-+e09qx\0\x1f\x7f\xff")))
    agrees_with_oracle(folder / "changed.txt", bytes(content), _tuning=tuning, n_threads=n_threads)


PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")


@given(
    st.one_of(st.binary(max_size=200), st.text(alphabet="01 :#.-eqid\n\r\t", max_size=60).map(str.encode)),
    TUNINGS,
)
@example(b"\x1f\x8b\x08\x00", {})
@example(b"\xff\xfe1\x00 \x00", {})
@example(b"1 qid:1 1:1\n" + b"7" * 5000, TINY)
def test_any_bytes_are_read_or_refused(folder, content, tuning):
    if content.startswith(PACKED):
        with pytest.raises(DataError):
            read(folder, content, _tuning=tuning)
    else:
        agrees_with_oracle(folder / "bytes.txt", content, _tuning=tuning, n_threads=2)


@given(st.lists(DECIMALS, min_size=1, max_size=30))
def test_any_decimal_is_rounded_to_nearest(folder, texts):
    line = " ".join(f"{i + 1}:{text}" for i, text in enumerate(texts))
    expected = np.array([oracle.number(text) for text in texts], dtype=np.float32)
    for careful in (False, True):
        data = read(folder, f"0 qid:1 {line}\n", _tuning={"careful": careful})
        assert_array_equal(
            data.X[0].view(np.uint32)[~np.isnan(expected)], expected.view(np.uint32)[~np.isnan(expected)]
        )
        assert_array_equal(np.isnan(data.X[0]), np.isnan(expected))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 5, 9, 14]))
def test_decimals_near_midpoints_of_floats(folder, bits, digits):
    low = np.uint32(bits & 0x7F7FFFFE).view(np.float32)
    midpoint = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2
    texts = [f"{midpoint:.{digits}f}", f"{midpoint:.{digits}e}", f"{midpoint!r}", f"{midpoint:.40e}", f"{midpoint:.6f}"]
    texts = [text for text in texts if text != "inf"]
    line = " ".join(f"{i + 1}:{text}" for i, text in enumerate(texts))
    assert read(folder, f"0 qid:1 {line}\n").X[0].tolist() == [oracle.number(text) for text in texts]


def test_rows_wider_than_the_table_of_id_texts(folder):
    rng = np.random.default_rng(0)
    X = np.zeros((5, 70_000), dtype=np.float32)
    X[np.arange(5), rng.integers(0, 70_000, 5)] = rng.random(5, dtype=np.float32)
    X[3, -1] = 1
    path = folder / "wide.txt"
    write_svmlight(rw.Dataset(X, np.zeros(5), group=[5]), path, absent=0.0)
    assert_array_equal(read_svmlight(path).X, X)


def test_the_matrix_gets_wider_as_larger_ids_appear(folder):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((300, 300)) < 0.5, rng.random((300, 300), dtype=np.float32), 0).astype(np.float32)
    X[np.triu_indices(300, 1)] = 0  # row i has features up to i
    path = folder / "staircase.txt"
    write_svmlight(rw.Dataset(X, np.arange(300), group=[300]), path, absent=0.0)
    X = X[:, : X.any(axis=0).nonzero()[0].max() + 1]
    for tuning in (TINY, {"window": 5000, "chunk": 300}, {}):
        assert_array_equal(read_svmlight(path, n_threads=3, _tuning=tuning).X, X)
