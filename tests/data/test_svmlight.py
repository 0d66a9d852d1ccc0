from __future__ import annotations

import gzip
import math
import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import svmlight as oracle
from rankwood import DataError, iter_svmlight, read_svmlight, write_svmlight

pytestmark = pytest.mark.native

TINY = {"window": 1, "chunk": 1}  # every line is a window of its own
SMALL = {"window": 100, "chunk": 7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("svmlight")


def write(folder: Path, content: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, **options) -> rw.Dataset:
    return read_svmlight(write(folder, content), **options)


# ------------------------------------------------------------------------------------------------ what is read


def test_a_plain_file(folder):
    data = read(folder, "2 qid:1 1:0.5 2:-3 # x\n0 qid:1 1:1e2 2:0\n1 qid:5 1:.25 2:7.\n")
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert data.X.tolist() == [[0.5, -3.0], [100.0, 0.0], [0.25, 7.0]]
    assert data.y.tolist() == [2.0, 0.0, 1.0]
    assert data.qid.tolist() == [1, 1, 5]
    assert data.qid.dtype == np.int64
    assert data.doc_ids.tolist() == ["x", "", ""]
    assert data.weights is None


def test_the_matrix_outlives_the_reader_and_can_be_written(folder):
    X = read(folder, "1 qid:1 1:2\n").X
    X[0, 0] = 5
    assert X.tolist() == [[5.0]]


@pytest.mark.parametrize(
    "content",
    [
        "1 qid:1 1:2 2:3\n0 qid:1 1:4 2:5\n",
        "1 qid:1 1:2 2:3\n0 qid:1 1:4 2:5",  # no line feed at the end
        "1 qid:1 1:2 2:3\r\n0 qid:1 1:4 2:5\r\n",
        "1 qid:1 1:2 2:3 \r\n0 qid:1 1:4 2:5 \r\n",  # as MSLR has it
        "1\tqid:1\t1:2\t2:3\n0\tqid:1\t1:4\t2:5\n",
        "  1  qid:1   1:2 \t 2:3  \n 0 qid:1 1:4 2:5\n",
        "\n\n1 qid:1 1:2 2:3\n \t\r\n# a comment\n0 qid:1 1:4 2:5\n\n  # another\n",
        b"\xef\xbb\xbf1 qid:1 1:2 2:3\n0 qid:1 1:4 2:5\n",  # a byte order mark
        "1 qid:1 2:3 1:2\n0 qid:1 2:5 1:4\n",  # ids in any order
        "+1 qid:1 01:2 2:+3\n0 qid:1 1:4 002:5\n",
        "1.0 qid:1 1:2.000 2:3e0\n0e5 qid:1 1:0.4e1 2:50E-1\n",
        "1 qid:1 1:2 2:3#\n0 qid:1 1:4 2:5#\n",
    ],
)
@pytest.mark.parametrize("tuning", [{}, TINY, SMALL])
def test_forms_of_the_same_data(folder, content, tuning):
    data = read(folder, content, _tuning=tuning)
    assert data.X.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert data.y.tolist() == [1.0, 0.0]
    assert data.qid.tolist() == [1, 1]
    assert data.doc_ids is None


def test_absent_features(folder):
    content = "1 qid:1 2:5\n1 qid:1 4:1\n1 qid:1\n"
    assert read(folder, content).X.tolist() == [[0, 5, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    X = read(folder, content, absent=math.nan).X
    assert_array_equal(np.isnan(X), [[1, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]])
    assert read(folder, content, n_features=6).X.shape == (3, 6)


def test_zero_based_ids(folder):
    assert read(folder, "1 qid:1 0:5 2:6\n", zero_based=True).X.tolist() == [[5, 0, 6]]


def test_features_beyond_n_features_can_be_ignored(folder):
    content = "1 qid:1 1:5 2:6 9:1\n0 qid:1 2:3 1:2\n"
    assert read(folder, content, n_features=2, beyond="ignore").X.tolist() == [[5, 6], [2, 3]]
    with pytest.raises(DataError, match="line 1: feature id 9 is beyond the 2 features of n_features"):
        read(folder, content, n_features=2)
    with pytest.raises(DataError, match="line 1: expected a number as value of feature 9, got 'x'"):
        read(folder, "1 qid:1 1:5 9:x\n", n_features=2, beyond="ignore")


@pytest.mark.parametrize("word", ["NaN", "nan", "NAN", "-nan", "+NaN", "NULL", "null", "NA", "na", "?"])
def test_words_for_missing(folder, word):
    assert np.isnan(read(folder, f"1 qid:1 1:{word}\n").X[0, 0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1e39", math.inf),
        ("-1e99999999999999999999", -math.inf),
        ("1" + "0" * 400, math.inf),
        ("0." + "0" * 400 + "1", 0.0),
        ("1e-99999999999999999999", 0.0),
        ("0e99999999999999999999", 0.0),
        ("1e-50", 0.0),
        ("3.4028234663852886e38", np.finfo(np.float32).max),
        ("3.4028235677973366e38", np.finfo(np.float32).max),  # just below the midpoint to 2^128
        ("3.4028235677973367e38", math.inf),
        ("1e-45", 2.0**-149),
        ("7.0064923216240853e-46", 0.0),  # below half of the smallest number
        ("7.0064923216240854e-46", 2.0**-149),
        ("16777217", 16777216.0),  # midpoints go to even
        ("16777219", 16777220.0),
        ("16777217.0000001", 16777218.0),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
        ("0.1", np.float32(0.1)),
        ("-0", -0.0),
        ("-0.000", -0.0),
    ],
)
def test_values_are_the_nearest_float32(folder, text, value):
    for careful in (False, True):
        got = read(folder, f"1 qid:1 1:{text} 2:1\n", _tuning={"careful": careful}).X[0, 0]
        assert got == np.float32(value)
        assert np.signbit(got) == np.signbit(value)


def test_double_rounding_is_avoided(folder):
    # The nearest double lies on the midpoint of two floats, the number itself does not.
    texts = ["1.000000178813934326171874999", "1.000000178813934326171875", "1.000000178813934326171875001"]
    line = " ".join(f"{i + 1}:{text}" for i, text in enumerate(texts))
    assert read(folder, f"1 qid:1 {line}\n").X[0].tolist() == [oracle.number(text) for text in texts]
    assert len({oracle.number(text) for text in texts}) == 2


def test_labels_are_the_nearest_float64(folder):
    texts = ["0.1", "-2.5", "1e-320", "123456789.123456789", "4"]
    data = read(folder, "".join(f"{text} qid:1 1:1\n" for text in texts))
    assert data.y.tolist() == [float(text) for text in texts]


# ------------------------------------------------------------------------------------------------ query ids


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        (["1", "2"], [1, 2]),
        (["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["007", "7"], ["007", "7"]),
        (["+1", "2"], ["+1", "2"]),
        (["-0", "2"], ["-0", "2"]),
        (["q1", "2"], ["q1", "2"]),
        (["1", "grün"], ["1", "grün"]),
        (["1:2", "1:3"], ["1:2", "1:3"]),
    ],
)
def test_query_ids(folder, texts, ids):
    data = read(folder, "".join(f"1 qid:{text} 1:1\n" for text in texts))
    assert data.qid.tolist() == ids


def test_rows_of_a_query_need_not_stand_together(folder):
    data = read(folder, "0 qid:b 1:1\n1 qid:a 1:2\n2 qid:b 1:3\n")
    assert data.queries.ids.tolist() == ["b", "a"]
    assert data.query(0).y.tolist() == [0, 2]
    assert data.y.tolist() == [0, 1, 2]


def test_bytes_that_are_no_text_stay_apart(folder):
    data = read(folder, b"1 qid:\xff 1:1 # \xfe\n1 qid:\xfe 1:1\n")
    assert data.qid.tolist() == ["\\xff", "\\xfe"]
    assert data.doc_ids.tolist() == ["\\xfe", ""]


def test_several_files_follow_each_other(folder):
    a = write(folder, "0 qid:1 1:1\n1 qid:2 1:2", "a.txt")
    b = write(folder, "2 qid:2 1:3 2:4 # b\n3 qid:3 1:5\n", "b.txt")
    data = read_svmlight([a, str(b)])
    assert data.X.tolist() == [[1, 0], [2, 0], [3, 4], [5, 0]]
    assert data.queries.ids.tolist() == [1, 2, 3]
    assert data.queries.sizes.tolist() == [1, 2, 1]
    assert data.doc_ids.tolist() == ["", "", "b", ""]


# ------------------------------------------------------------------------------------------------ document ids


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        ("#docid = GX008-86-4444840 inc = 1 prob = 0.086622", "GX008-86-4444840"),
        ("# docid = clueweb09-en0000", "clueweb09-en0000"),
        ("#docid=a", "a"),
        ("# some words: 1:2 # more ", "some words: 1:2 # more"),
        ("#docid", "docid"),
        ("#docids are here", "docids are here"),
        ("#docid =", ""),
        ("# ", ""),
    ],
)
def test_document_ids(folder, comment, name):
    data = read(folder, f"1 qid:1 1:1 {comment}\n1 qid:1 1:1 # z\n")
    assert data.doc_ids.tolist() == [name, "z"]
    assert read(folder, f"1 qid:1 1:1 {comment}\n", doc_ids=False).doc_ids is None


# ------------------------------------------------------------------------------------------------ side files


@pytest.fixture
def without_qid(tmp_path) -> Path:
    return write(tmp_path, "0 1:1\n1 1:2\n2 1:3\n", "rank.train")


def test_sizes_of_queries_beside_the_file(without_qid):
    for suffix in (".query", ".group"):
        side = write(without_qid.parent, "1\n2\n", "rank.train" + suffix)
        assert read_svmlight(without_qid).queries.sizes.tolist() == [1, 2]
        side.unlink()


def test_sizes_beside_a_packed_file(without_qid):
    packed = write(without_qid.parent, gzip.compress(without_qid.read_bytes()), "rank.train.gz")
    write(without_qid.parent, "2\n1\n", "rank.train.query")
    assert read_svmlight(packed).queries.sizes.tolist() == [2, 1]


def test_sizes_in_a_file_that_is_named(without_qid):
    sizes = write(without_qid.parent, "3\n", "sizes")
    assert read_svmlight(without_qid, query_file=sizes).n_queries == 1
    assert read_svmlight([without_qid, without_qid], query_file=[sizes, sizes]).queries.sizes.tolist() == [3, 3]
    with pytest.raises(DataError, match="query_file has 1 files for 2 data files"):
        read_svmlight([without_qid, without_qid], query_file=sizes)


def test_sizes_that_do_not_fit(without_qid):
    side = write(without_qid.parent, "1\n1\n", "rank.train.query")
    with pytest.raises(DataError, match=r"rank.train.query: the sizes of queries add up to 2, but .* has 3 documents"):
        read_svmlight(without_qid)
    side.write_text("1\ntwo\n")
    with pytest.raises(
        DataError, match=r"rank.train.query, line 2: expected the number of documents of a query, got 'two'"
    ):
        read_svmlight(without_qid)


def test_no_query_ids_at_all(without_qid):
    with pytest.raises(DataError, match=r"rank.train: lines have no 'qid:ID', and there is no rank.train.query beside"):
        read_svmlight(without_qid)
    assert read_svmlight(without_qid, queries="optional").queries.sizes.tolist() == [3]
    with pytest.raises(DataError, match="queries must be"):
        read_svmlight(without_qid, queries="maybe")


def test_query_file_for_lines_with_query_ids(tmp_path):
    data, sizes = write(tmp_path, "1 qid:1 1:1\n"), write(tmp_path, "1\n", "sizes")
    with pytest.raises(DataError, match="lines have query ids, so query_file cannot be used"):
        read_svmlight(data, query_file=sizes)


def test_weights_beside_the_file(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1\n1 qid:1 1:2\n2 qid:2 1:3\n")
    side = write(tmp_path, "1\n0.5\n2\n", "data.txt.weight")
    assert read_svmlight(path).weights.tolist() == [1, 0.5, 2]
    side.write_text("3\n4\n")
    data = read_svmlight(path)
    assert data.weights is None
    assert data.query_weights.tolist() == [3, 4]
    side.write_text("3\n")
    with pytest.raises(DataError, match="1 weights fit neither the 3 documents nor the 2 queries"):
        read_svmlight(path)
    side.write_text("3\n-1\n2\n")
    with pytest.raises(DataError, match=r"data.txt.weight, line 2: expected a weight, .* got '-1'"):
        read_svmlight(path)
    side.write_text("1\n1\n1\n")
    other = write(tmp_path, "0 qid:9 1:1\n", "other.txt")
    with pytest.raises(DataError, match=r"gives weights, but .*other.txt has no such file"):
        read_svmlight([path, other])


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


# ------------------------------------------------------------------------------------------------ gzip


def test_gzip_is_told_by_its_content(folder):
    content = b"1 qid:1 1:1 # a\n0 qid:1 1:2\n"
    for name in ("packed.gz", "packed.txt"):
        assert read_svmlight(write(folder, gzip.compress(content), name)).X.tolist() == [[1], [2]]
    assert read_svmlight(write(folder, content, "plain.gz")).X.tolist() == [[1], [2]]


@pytest.mark.parametrize("tuning", [{}, TINY])
def test_gzip_members_and_padding(folder, tuning):
    parts = [b"1 qid:1 1:1\n0 qi", b"", b"d:1 1:2\n"]
    content = b"".join(gzip.compress(part) for part in parts) + b"\0" * 1000
    assert read(folder, content, _tuning=tuning).X.tolist() == [[1], [2]]


def test_damaged_gzip(folder):
    packed = gzip.compress(b"1 qid:1 1:1\n" * 1000)
    with pytest.raises(DataError, match="the gzip data ends too early"):
        read(folder, packed[:-20])
    with pytest.raises(DataError, match="something that is not gzip follows"):
        read(folder, packed + b"garbage")
    with pytest.raises(DataError, match="damaged gzip data"):
        read(folder, packed[:-6] + b"abcdef")


def test_a_pipe(tmp_path):
    content = b"1 qid:1 1:1\n0 qid:1 1:2\n" * 1000
    for sent in (content, gzip.compress(content)):
        pipe = tmp_path / f"pipe{len(sent)}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(sent,))
        writer.start()
        assert read_svmlight(pipe).n_docs == 2000
        writer.join()


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


TUNINGS = st.fixed_dictionaries(
    {
        "window": st.sampled_from([1, 30, 200, 1 << 20]),
        "chunk": st.sampled_from([1, 20, 1 << 18]),
        "careful": st.booleans(),
    }
)


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


# ------------------------------------------------------------------------------------------------ blocks


@pytest.mark.parametrize("tuning", [{}, TINY, SMALL])
@pytest.mark.parametrize("rows_per_block", [1, 3, 7, 1000])
def test_blocks_add_up_to_the_whole(folder, tuning, rows_per_block):
    content = "".join(f"{i % 3} qid:{i // 4} 1:{i} 3:0.5 # d{i}\n" for i in range(25))
    path = write(folder, content)
    blocks = list(
        iter_svmlight(
            [path, path], n_features=3, rows_per_block=rows_per_block, doc_ids=True, n_threads=2, _tuning=tuning
        )
    )
    whole = read_svmlight([path, path], n_features=3)
    assert all(1 <= len(block.X) <= rows_per_block for block in blocks)
    assert_array_equal(np.concatenate([block.X for block in blocks]), whole.X)
    assert_array_equal(np.concatenate([block.y for block in blocks]), whole.y)
    assert_array_equal(np.concatenate([block.qid for block in blocks]), whole.qid)
    assert [name for block in blocks for name in block.doc_ids] == whole.doc_ids.tolist()


def test_blocks_of_lines_without_query_ids(folder):
    (block,) = iter_svmlight(write(folder, "1 2:5\n"), n_features=2)
    assert block.X.tolist() == [[0, 5]]
    assert block.qid is None
    assert block.doc_ids is None
    with pytest.raises(DataError, match="at least 1 row per block"):
        next(iter_svmlight(folder / "data.txt", n_features=2, rows_per_block=0))


def test_progress_reaches_the_end(folder):
    path = write(folder, "1 qid:1 1:1\n" * 100)
    packed = write(folder, gzip.compress(path.read_bytes()), "p.gz")
    total = path.stat().st_size + packed.stat().st_size
    seen: list[tuple[int, int]] = []
    read_svmlight([path, packed], progress=lambda done, of: seen.append((done, of)), _tuning=SMALL)
    assert {of for _, of in seen} == {total}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (total, total)


def test_ctrl_c_between_windows(folder):
    path = write(folder, "1 qid:1 1:1\n" * 1000)

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        read_svmlight(path, progress=interrupt, _tuning=SMALL)


# ------------------------------------------------------------------------------------------------ writing

FLOATS32 = st.floats(width=32) | st.integers(0, 2**32 - 1).map(lambda bits: np.uint32(bits).view(np.float32).item())


@given(st.lists(st.lists(FLOATS32, min_size=3, max_size=3), min_size=1, max_size=20), st.booleans(), st.integers(1, 3))
def test_what_is_written_reads_back_bit_for_bit(folder, values, packed, n_threads):
    X = np.array(values, dtype=np.float32)
    path = folder / ("round.txt.gz" if packed else "round.txt")
    names = [f"doc {row}" for row in range(len(X))]
    data = rw.Dataset(X, np.linspace(-1, 3, len(X)), qid=[row // 2 for row in range(len(X))], doc_ids=names)
    write_svmlight(data, path, n_threads=n_threads)
    back = read_svmlight(path)
    assert_array_equal(back.X.view(np.uint32)[~np.isnan(X)], X.view(np.uint32)[~np.isnan(X)])
    assert_array_equal(np.isnan(back.X), np.isnan(X))
    assert_array_equal(back.y, data.y)
    assert_array_equal(back.qid, data.qid)
    assert back.doc_ids.tolist() == names


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_labels_read_back_bit_for_bit(folder, label):
    write_svmlight(rw.Dataset([[1.0]], [label], qid=[1]), folder / "label.txt")
    back = read_svmlight(folder / "label.txt").y[0]
    assert back == label
    assert math.copysign(1, back) == math.copysign(1, label)


def test_the_text_that_is_written(folder):
    X = np.array([[0.1, -0.0, 1e-6, 16777216, 1e20, np.nan, -np.inf, 0.3333333432674408, 1234567.0]], dtype=np.float32)
    path = folder / "text.txt"
    write_svmlight(rw.Dataset(X, [2.5], qid=["q/1"], doc_ids=["a b"]), path)
    assert path.read_text() == (
        "2.5 qid:q/1 1:0.1 2:-0 3:1e-06 4:16777216 5:1e+20 6:NaN 7:-inf 8:0.33333334 9:1234567 # a b\n"
    )
    write_svmlight(rw.Dataset([[1.0, 0.0], [0.0, 2.0]], [1, 0], qid=[5, 5]), path, absent=0.0, zero_based=True)
    assert path.read_text() == "1 qid:5 0:1\n0 qid:5 1:2\n"
    write_svmlight(rw.Dataset([[1.0, np.nan]], qid=[5]), path, absent=math.nan)
    assert path.read_text() == "0 qid:5 1:1\n"


def test_writing_in_several_blocks(folder, monkeypatch):
    from rankwood.data import svmlight_write

    monkeypatch.setattr(svmlight_write, "_BLOCK", 100)
    rng = np.random.default_rng(0)
    data = rw.Dataset(
        rng.random((50, 4)), rng.integers(0, 3, 50), qid=rng.integers(0, 9, 50), doc_ids=list(map(str, range(50)))
    )
    write_svmlight(data, folder / "blocks.txt", n_threads=2)
    back = read_svmlight(folder / "blocks.txt")
    assert_array_equal(back.X, data.X)
    assert_array_equal(back.qid, data.qid)
    assert_array_equal(back.doc_ids, data.doc_ids)


def test_weights_are_written_beside(tmp_path):
    path = tmp_path / "data.txt"
    data = rw.Dataset([[1.0], [2.0]], [0, 1], qid=[1, 1], weights=[0.1, 3])
    write_svmlight(data, path)
    assert read_svmlight(path).weights.tolist() == [0.1, 3.0]
    plain = rw.Dataset([[1.0], [2.0]], [0, 1], qid=[1, 1])
    with pytest.raises(DataError, match=r"data.txt.weight would be read as the weights of .*: remove it first"):
        write_svmlight(plain, path)
    assert read_svmlight(path).weights.tolist() == [0.1, 3.0]
    data.query_weights = np.ones(1)
    with pytest.raises(DataError, match="cannot both be written"):
        write_svmlight(data, path)


def test_names_that_cannot_be_written(tmp_path):
    path = tmp_path / "data.txt"
    for qid in ("a b", "a#b", "a\n"):
        with pytest.raises(DataError, match=r"query id .* cannot be written"):
            write_svmlight(rw.Dataset([[1.0]], [1], qid=[qid]), path)
    with pytest.raises(DataError, match=r"document id 'a\\nb' of row 0 cannot be written"):
        write_svmlight(rw.Dataset([[1.0]], [1], qid=[1], doc_ids=["a\nb"]), path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ other tools


def test_sklearn_reads_the_same(folder):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 30)), 6) * (rng.random((200, 30)) < 0.7)
    X[0, -1] = 1
    text = "".join(
        f"{i % 5} qid:{i // 9} " + " ".join(f"{f + 1}:{v:.6f}" for f, v in enumerate(row) if v) + "\n"
        for i, row in enumerate(X)
    )
    path = write(folder, text)
    expected, y, qid = load_svmlight_file(str(path), query_id=True, dtype=np.float64)
    data = read_svmlight(path)
    assert_array_equal(data.X, expected.toarray().astype(np.float32))
    assert_array_equal(data.y, y)
    assert_array_equal(data.qid, qid)


REAL = [
    ("mq2008/S1.txt.gz", 2933, 157, 46, {0: 2316, 1: 427, 2: 190}),
    ("mq2008/S5.txt.gz", 2874, 156, 46, {0: 2319, 1: 378, 2: 177}),
    ("ohsumed/QueryLevelNorm/S1.txt.gz", 2570, 21, 45, {0: 1751, 1: 451, 2: 368}),
    ("ohsumed/Feature-min/S3.txt.gz", 3573, 21, 45, {0: 2139, 1: 813, 2: 621}),
    ("ohsumed/Feature-null/S5.txt.gz", 3383, 22, 45, {0: 2794, 1: 274, 2: 315}),
    ("mq2007-partial/S1.partial.txt.gz", 11933, 339, 46, {0: 8760, 1: 2541, 2: 632}),
    ("clueweb09-webis/Fold1.test.txt.gz", 5309, 12, 42, {0: 4441, 1: 722, 2: 134, 3: 7, 4: 5}),
    ("mslr/msn1.fold1.train.5k.txt.gz", 5000, 43, 136, {0: 2792, 1: 1458, 2: 665, 3: 55, 4: 30}),
    ("mslr/web30k.fold1.vali.18q.txt.gz", 1734, 18, 136, {0: 980, 1: 492, 2: 231, 3: 26, 4: 5}),
    ("lightgbm-lambdarank/rank.train.gz", 3005, 201, 300, {0: 645, 1: 1211, 2: 858, 3: 222, 4: 69}),
    ("lightgbm-lambdarank/rank.test.gz", 768, 50, 300, {0: 206, 1: 256, 2: 252, 3: 44, 4: 10}),
    ("trec-news-2018/trec_news_2018.train.gz", 782, 45, 5, {0: 303, 1: 256, 2: 146, 3: 27, 4: 50}),
]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "n_docs", "n_queries", "n_features", "labels"), REAL, ids=[case[0] for case in REAL])
def test_real_data_has_its_published_shape(real_data, name, n_docs, n_queries, n_features, labels):
    data = read_svmlight(real_data / name)
    assert (data.n_docs, data.n_queries) == (n_docs, n_queries)
    assert data.n_features == n_features or (name.startswith("lightgbm") and data.n_features <= n_features)
    values, counts = np.unique(data.y, return_counts=True)
    assert dict(zip(values.astype(int).tolist(), counts.tolist(), strict=True)) == labels
    careful = read_svmlight(real_data / name, n_threads=3, _tuning={"careful": True, "window": 50_000, "chunk": 1000})
    assert_array_equal(data.X.view(np.uint32), careful.X.view(np.uint32))
    assert_array_equal(data.qid, careful.qid)
    assert_array_equal(data.doc_ids, careful.doc_ids)


@pytest.mark.real_data
@pytest.mark.parametrize("name", [case[0] for case in REAL if "null" not in case[0]])
def test_real_data_reads_as_with_sklearn(real_data, name):
    from sklearn.datasets import load_svmlight_file

    X, y, qid = load_svmlight_file(str(real_data / name), query_id=True)
    data = read_svmlight(real_data / name, n_features=X.shape[1])
    assert_array_equal(data.X, X.toarray().astype(np.float32))
    assert_array_equal(data.y, y)
    if not name.startswith("lightgbm"):
        assert_array_equal(data.qid, qid)


@pytest.mark.real_data
def test_real_data_details(real_data):
    null = read_svmlight(real_data / "ohsumed/Feature-null/S5.txt.gz")
    assert np.isnan(null.X).sum() == 9680
    letor = read_svmlight(real_data / "mq2008/S1.txt.gz")
    assert letor.doc_ids[0] == "GX008-86-4444840"
    parts = [real_data / f"mq2008/S{part}.txt.gz" for part in range(1, 6)]
    whole = read_svmlight(parts)
    assert (whole.n_docs, whole.n_queries) == (15211, 784)
    news = read_svmlight(real_data / "trec-news-2018/trec_news_2018.train.gz", absent=math.nan)
    assert news.X[0, 3] == np.float32(6.520804200793011e-08)
    assert np.isnan(news.X[1, 1])
