from __future__ import annotations

import contextlib
import gzip
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from oracles import svmlight as oracle
from rankwood import DataError, iter_svmlight, read_svmlight
from rankwood.data import text as text_module
from rankwood.data.files import iter_features, read_data
from strategies.svmlight_files import TINY, read, write

pytestmark = pytest.mark.native

SMALL = {"window": 100, "chunk": 7}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("svmlight")


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
    assert read(folder, content, n_features=np.int64(4), absent=np.float32(1)).X[2].tolist() == [1, 1, 1, 1]


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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory was used")
@pytest.mark.skipif("RANKWOOD_SANITIZED" in os.environ, reason="sanitizers take memory of their own")
def test_blank_lines_take_no_room(tmp_path):
    """Room for a row per line was most of what made them slow."""
    path = write(tmp_path, b"1 qid:1 1:2\n" + b"\n" * 60_000_000 + b"0 qid:1 1:3\n", "blank.txt")
    code = f"""
import re, rankwood as rw

def most_memory():  # in MB
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1000

rw.read_svmlight({str(path)!r}, n_features=1, n_threads=1, _tuning={{"window": 1 << 20}})
before = most_memory()
data = rw.read_svmlight({str(path)!r}, n_threads=1, _tuning={{"window": 80_000_000}})
print(data.X.tolist(), most_memory() - before < 2 * 80)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[[2.0], [3.0]] True\n"


def test_gzip_that_swells_beyond_reason(folder, monkeypatch):
    content = b"1 qid:1 1:1\n0 qid:1 1:2\n" * 1000
    path = write(folder, gzip.compress(content), "swells.gz")
    assert len(content) > 50 * path.stat().st_size
    assert read_svmlight(path, max_expansion=20).n_docs == 2000  # it is small
    monkeypatch.setattr(text_module, "SMALL", 10_000)
    with pytest.raises(
        DataError, match=r"swells.gz: the gzip data swells beyond reason, to more than 10.0 kB; if that"
    ):
        read_svmlight(path, max_expansion=20)
    with pytest.raises(DataError, match="unpack it first, or pass a larger max_expansion"):
        list(iter_svmlight(path, n_features=1, max_expansion=20))
    with pytest.raises(DataError, match="unpack it first, or pass a larger max_expansion"):
        read_data(path, max_expansion=20)
    with pytest.raises(DataError, match="unpack it first, or pass a larger max_expansion"):
        list(iter_features(path, n_features=1, max_expansion=20))
    assert read_svmlight(path, max_expansion=1000).n_docs == 2000
    assert read_svmlight(write(folder, content), max_expansion=0.1).n_docs == 2000  # not packed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_the_limit_on_swelling_grows_with_what_comes_from_a_pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "SMALL", 10_000)
    content = b"1 qid:1 1:1\n0 qid:1 1:2\n" * 10_000
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for max_expansion in (1000, 20):
        writer = threading.Thread(target=_write_or_stop, args=(pipe, gzip.compress(content)))
        writer.start()
        if max_expansion == 1000:
            assert read_svmlight(pipe, max_expansion=max_expansion).n_docs == 20_000
        else:
            with pytest.raises(DataError, match="the gzip data swells beyond reason"):
                read_svmlight(pipe, max_expansion=max_expansion)
        writer.join()


def _write_or_stop(pipe: Path, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.write_bytes(content)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe(tmp_path):
    content = b"1 qid:1 1:1\n0 qid:1 1:2\n" * 1000
    for sent in (content, gzip.compress(content)):
        pipe = tmp_path / f"pipe{len(sent)}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(sent,))
        writer.start()
        assert read_svmlight(pipe).n_docs == 2000
        writer.join()


# ------------------------------------------------------------------------------------------------ blocks


@pytest.mark.parametrize("tuning", [{}, TINY, SMALL, {"max_rows": 1}, SMALL | {"max_rows": 4}])
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


@pytest.mark.parametrize("max_rows", [1, 2, 5, 6, 7, 100])
@pytest.mark.parametrize("packed", [False, True])
def test_few_lines_at_a_time(folder, max_rows, packed):
    content = b"\xef\xbb\xbf# comment\n1 1:1\n\n0 2:2\n\n3 1:3"  # six lines, the last without a line feed
    path = write(folder, gzip.compress(content) if packed else content)
    tuning = {"max_rows": max_rows}
    blocks = [block.X.tolist() for block in iter_svmlight(path, n_features=2, rows_per_block=1, _tuning=tuning)]
    assert blocks == [[[1, 0]], [[0, 2]], [[3, 0]]]
    path = write(folder, content + b"\n0 1:1\n0 x:1\n0 y:1")
    with pytest.raises(DataError, match=r"line 8: "):
        list(iter_svmlight(path, n_features=2, rows_per_block=1, _tuning=tuning))


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


def test_a_wrong_instruction_set_is_not_the_fault_of_a_file(folder):
    path = write(folder, "1 qid:1 1:1\n")
    code = (
        f"import rankwood as rw\ntry:\n    rw.read_svmlight({str(path)!r})\n"
        "except rw.RankwoodError as error:\n    print(type(error).__name__, error)"
    )
    environment = os.environ | {"RANKWOOD_ISA": "nonsense"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("RankwoodError ")
    assert "RANKWOOD_ISA=nonsense" in done.stdout
    assert str(path) not in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": "3"}, "n_features must be a whole number, got '3'"),
        ({"n_features": 2.0}, "n_features must be a whole number, got 2.0"),
        ({"absent": "0"}, "absent must be a number, 0.0 or NaN, got '0'"),
        ({"absent": None}, "absent must be a number"),
        ({"max_expansion": "200"}, "max_expansion must be a number above 0, got '200'"),
        ({"max_expansion": 0}, "max_expansion must be a number above 0, got 0"),
        ({"max_expansion": math.nan}, "max_expansion must be a number above 0, got nan"),
    ],
)
def test_options_of_the_wrong_type(folder, options, message):
    with pytest.raises(DataError, match=message):
        read_svmlight(write(folder, "1 qid:1 1:1\n"), **options)


@pytest.mark.parametrize("window", [9, 100])
def test_rows_before_the_first_feature_lack_it_too(folder, window):
    X = read(folder, "1 qid:1\n0 qid:1\n2 qid:1 2:0.5\n", absent=math.nan, _tuning={"window": window}).X
    np.testing.assert_array_equal(X, [[np.nan, np.nan], [np.nan, np.nan], [np.nan, 0.5]])
