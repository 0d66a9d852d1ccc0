from __future__ import annotations

import contextlib
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import svmlight as oracle
from rankwood import DataError, read_csv, read_data, read_parquet, write_csv, write_parquet
from rankwood.errors import MissingPackageError

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tables")


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parquet(folder: Path, name: str = "data.parquet", **columns) -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


# ------------------------------------------------------------------------------------------------ CSV


def test_a_plain_table(folder):
    data = read_csv(write(folder, "a,qid,label,docid,b,weight\n1,7,2,x,0.5,1\n-2,7,0,y y,1e3,0.5\n3,8,1,,.5,2\n"))
    assert data.feature_names == ("a", "b")
    assert data.X.tolist() == [[1, 0.5], [-2, 1000], [3, 0.5]]
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [2, 0, 1]
    assert data.qid.tolist() == [7, 7, 8]
    assert data.qid.dtype == np.int64
    assert data.doc_ids.tolist() == ["x", "y y", ""]
    assert data.weights.tolist() == [1, 0.5, 2]


def test_other_names_of_columns(folder):
    data = read_csv(write(folder, "query_id,relevance,doc_id,x\nq,1,d,2\n"))
    assert data.qid.tolist() == ["q"]
    assert data.y.tolist() == [1]
    assert data.doc_ids.tolist() == ["d"]
    assert data.feature_names == ("x",)


def test_tabs_and_gzip(folder):
    for name, content in [
        ("t.tsv", b"qid\tlabel\tx\n1\t2\t3\n"),
        ("t.tsv.gz", gzip.compress(b"qid\tlabel\tx\n1\t2\t3\n")),
        ("t.csv.gz", gzip.compress(b"qid,label,x\r\n1,2,3\r\n")),
    ]:
        data = read_csv(write(folder, content, name))
        assert data.X.tolist() == [[3]]
        assert data.y.tolist() == [2]
    assert read_csv(write(folder, "qid;label;x\n1;2;3\n"), delimiter=";").X.tolist() == [[3]]


@pytest.mark.parametrize("text", ["", "NaN", "nan", "NA", "NULL", "null", "?"])
def test_nulls_are_missing_values(folder, text):
    assert np.isnan(read_csv(write(folder, f"qid,label,x,y\n1,2,{text},5\n")).X[0, 0])
    assert np.isnan(read_csv(write(folder, f"qid,label,x,y\n1,2,{text},5\n1,1,1,1\n")).X[0, 0])


def test_truth_values_and_infinities(folder):
    data = read_csv(write(folder, "qid,label,flag,x\n1,0,true,inf\n1,1,false,-inf\n1,1,,1e99\n"))
    assert_array_equal(data.X, [[1, np.inf], [0, -np.inf], [np.nan, np.inf]])


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["007", "7"], ["007", "7"]),
        (["a", "1"], ["a", "1"]),
        (["99999999999999999999"], ["99999999999999999999"]),
    ],
)
def test_query_ids_as_in_svmlight_text(folder, ids, expected):
    data = read_csv(write(folder, "qid,label,x\n" + "".join(f"{qid},0,1\n" for qid in ids)))
    assert data.qid.tolist() == expected


@given(st.lists(st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,20})?(e-?[0-9])?", fullmatch=True), min_size=1, max_size=10))
def test_values_are_the_nearest_float32(folder, texts):
    data = read_csv(write(folder, "qid,label,x\n" + "".join(f"1,0,{text}\n" for text in texts)))
    assert data.X[:, 0].tolist() == [oracle.number(text) for text in texts]


def test_no_labels(folder):
    data = read_csv(write(folder, "qid,x\n1,2\n"))
    assert not data.has_labels


def test_no_queries(folder):
    path = write(folder, "id,label,x\n1,1,2\n2,0,3\n")
    with pytest.raises(DataError, match=r"data.csv: no column is named qid or query_id; there are: id, label, x"):
        read_csv(path)
    assert read_csv(path, queries="optional").queries.sizes.tolist() == [2]
    with pytest.raises(DataError, match="queries must be"):
        read_csv(path, queries="some")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("qid,label,x\n1,1,abc\n", "column 'x' holds string values such as 'abc' in row 1: features are numbers"),
        ("qid,label,x\n1,1,2020-01-01\n", "column 'x' holds .* values such as '2020-01-01"),
        ("qid,label,x\n1,1,7\n1,1,?\n1,1,abc\n", "column 'x' holds string values such as 'abc' in row 3"),
        ("qid,label,x\n1,7,1\n1,abc,1\n", "column 'label' holds string values such as 'abc' in row 2: numbers were"),
        ("qid,label,x\n1,,1\n", "the label of row 1 is missing"),
        ("qid,label,x\n1,1,1\n1,inf,1\n", "y of row 1 is inf"),
        ("qid,label,x\n1,1,1\n1,1\n", "cannot be read: .*Expected 3 columns, got 2"),
        ("qid,query_id,label,x\n1,1,1,1\n", "columns qid and query_id mean the same"),
        ("qid,label,x,x\n1,1,1,1\n", "column 'x' is there twice"),
        ("qid,label\n1,1\n", "there is no feature column; there are: qid, label"),
        ("qid,label,x\n", "the table has no rows"),
        ("qid,label,x,weight\n1,1,1,-1\n", "weights of row 0 is -1.0: it must not be negative"),
        (b"\x89PNG\r\n\x1a\n\0\0", "."),
    ],
)
def test_tables_that_cannot_be_used(folder, content, message):
    path = write(folder, content)
    with pytest.raises(DataError, match="^" + str(path).replace(".", r"\.") + ".*" + message):
        read_csv(path)


def test_a_word_far_down_in_a_column_of_numbers(folder):
    path = write(folder, "qid,label,x\n" + "1,1,1\n" * 400_000 + "1,1,oops\n")
    with pytest.raises(DataError, match=r"data.csv: cannot be read: 'oops' in row 400,001 of column 'x' is no num"):
        read_csv(path)


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(folder, content):
    path = write(folder, content, "any.csv")
    with contextlib.suppress(DataError):
        read_csv(path)


# ------------------------------------------------------------------------------------------------ Parquet


def test_parquet(folder):
    path = parquet(
        folder,
        qid=pa.array(["a", "a", "b"]).dictionary_encode(),
        label=pa.array([0, 1, 2], pa.int8()),
        small=pa.array([1, None, 3], pa.int16()),
        large=pa.array([2**40, 1, 2], pa.int64()),
        flag=pa.array([True, False, None]),
        double=[0.1, 1e300, float("nan")],
    )
    data = read_parquet(path)
    assert data.qid.tolist() == ["a", "a", "b"]
    assert data.y.tolist() == [0, 1, 2]
    expected = [[1, 2**40, 1, np.float32(0.1)], [np.nan, 1, 0, np.inf], [3, 2, np.nan, np.nan]]
    assert_array_equal(data.X, np.array(expected, dtype=np.float32))


def test_parquet_ids_keep_their_type(folder):
    assert read_parquet(parquet(folder, qid=["1", "2"], x=[1.0, 2.0])).qid.tolist() == ["1", "2"]
    assert read_parquet(parquet(folder, "data.pq", qid=["1", "2"], x=[1.0, 2.0])).qid.tolist() == ["1", "2"]
    assert read_parquet(parquet(folder, qid=[1, 2], x=[1.0, 2.0])).qid.tolist() == [1, 2]


def test_parquet_that_cannot_be_used(folder):
    with pytest.raises(DataError, match=r"data.parquet: column 'x' holds string values such as 'u'"):
        read_parquet(parquet(folder, qid=[1], x=["u"]))
    with pytest.raises(DataError, match=r"data.parquet: column 'x' holds list"):
        read_parquet(parquet(folder, qid=[1], x=[[1.0]]))
    with pytest.raises(DataError, match=r"the qid of row 2 is missing"):
        read_parquet(parquet(folder, qid=[1, None], x=[1.0, 2.0]))
    with pytest.raises(DataError, match=r"bad.parquet: cannot be read"):
        read_parquet(write(folder, "no parquet at all", "bad.parquet"))


def test_more_rows_than_a_batch(folder):
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 3), dtype=np.float32)
    qid = np.repeat(np.arange(200), 100)
    path = folder / "long.parquet"
    pq.write_table(pa.table({"qid": qid, **{f"f{i}": X[:, i] for i in range(3)}}), path, row_group_size=1234)
    data = read_parquet(path, n_threads=1)
    assert_array_equal(data.X, X)
    assert_array_equal(data.qid, qid)


# ------------------------------------------------------------------------------------------------ several files


def test_ids_of_several_files_have_one_type(folder):
    a, b = write(folder, "qid,x\n1,1\n", "a.csv"), write(folder, "qid,x\nz,1\n1,2\n", "b.csv")
    data = read_csv([a, b])
    assert data.qid.tolist() == ["1", "z", "1"]
    assert data.n_queries == 2


def test_columns_are_matched_by_name(folder):
    a = write(folder, "qid,label,x,y\n1,0,1,2\n", "a.csv")
    b = write(folder, "y,x,label,qid\n20,10,1,1\n", "b.csv")
    data = read_csv([a, b])
    assert data.X.tolist() == [[1, 2], [10, 20]]
    assert data.queries.sizes.tolist() == [2]
    c = write(folder, "qid,label,x,z\n1,0,1,2\n", "c.csv")
    with pytest.raises(DataError, match=r"c.csv: its columns are not those of .*a.csv: y, z"):
        read_csv([a, c])


def test_read_data_goes_by_the_name(folder):
    text = write(folder, "1 qid:1 1:5\n", "data.txt")
    packed = write(folder, gzip.compress(text.read_bytes()), "data.train.gz")
    csv = write(folder, "qid,label,x,docid\n1,1,5,d\n", "data.csv")
    table = parquet(folder, qid=[1], label=[1.0], x=[5.0])
    for path in (text, packed, csv, table):
        assert read_data(path).X.tolist() == [[5]]
        assert read_data(str(path), n_features=1).n_queries == 1
    assert read_data([csv, csv]).n_docs == 2
    assert read_data(csv, doc_ids=False).doc_ids is None
    with pytest.raises(DataError, match=r"data.txt and .*data.csv are files of different kinds"):
        read_data([text, csv])
    with pytest.raises(DataError, match=r"data.csv: there are 1 feature columns, 2 were expected"):
        read_data(csv, n_features=2)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.txt"])
def test_a_file_that_is_not_there(folder, name):
    with pytest.raises(DataError, match=f"{name}: there is no such file"):
        read_data(folder / name)


def test_empty_files_and_folders(folder):
    for name in ("empty.csv", "empty.parquet", "empty.txt"):
        with pytest.raises(DataError, match=f"{name}: the file is empty"):
            read_data(write(folder, "", name))
    (folder / "nothing").mkdir()
    with pytest.raises(DataError, match="this is a folder"):
        read_data(folder / "nothing")


def test_pyarrow_is_absent(folder, monkeypatch):
    path = write(folder, "qid,label,x\n1,2,3\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"reading CSV needs .* pyarrow: pip install 'rankwood\[arrow\]'"):
        read_csv(path)


# ------------------------------------------------------------------------------------------------ writing

FLOATS32 = st.floats(width=32)


@pytest.mark.parametrize("name", ["w.csv", "w.tsv", "w.csv.gz", "w.parquet"])
@given(st.lists(st.tuples(FLOATS32, FLOATS32), min_size=1, max_size=10))
def test_what_is_written_reads_back(folder, name, values):
    X = np.array(values, dtype=np.float32)
    n = len(X)
    data = rw.Dataset(
        X, np.linspace(0, 1, n), qid=["b a"] * n, weights=np.ones(n), doc_ids=[f'd"{i},\t' for i in range(n)]
    )
    (write_parquet if name.endswith("parquet") else write_csv)(data, folder / name)
    back = read_data(folder / name)
    assert_array_equal(back.X, X)
    assert_array_equal(back.y, data.y)
    assert_array_equal(back.qid, data.qid)
    assert_array_equal(back.weights, data.weights)
    assert_array_equal(back.doc_ids, data.doc_ids)
    assert back.feature_names == ("f1", "f2")


def test_data_that_cannot_be_a_table(folder):
    data = rw.Dataset([[1.0]], [1], qid=[1], feature_names=["label"])
    with pytest.raises(DataError, match="a feature cannot be named 'label' in a table"):
        write_csv(data, folder / "no.csv")
    data = rw.Dataset([[1.0]], [1], qid=[1], query_weights=[2.0])
    with pytest.raises(DataError, match="no place for weights of queries"):
        write_parquet(data, folder / "no.parquet")
    assert not (folder / "no.csv").exists()
    assert not (folder / "no.parquet").exists()
