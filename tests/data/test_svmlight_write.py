from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood import DataError, read_svmlight, write_svmlight
from strategies.svmlight_files import write

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("svmlight")


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
    from rankwood.data import svmlight as svmlight_write

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
    with pytest.raises(DataError, match="cannot both be written"):
        write_svmlight(data.replace(query_weights=np.ones(1)), path)


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
