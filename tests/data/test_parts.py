"""Data in files, read some rows at a time: the same bins as from memory, whatever the file and its groups of rows."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import rankwood as rw
from rankwood.data.bins import BinnedDataset, BinSketch, empty_bins, encode_rows, join_bins
from rankwood.data.parts import ArrayPart, Layout, as_dataset, file_parts
from rankwood.data.queries import find_queries
from rankwood.data.tables import write_csv, write_parquet
from rankwood.errors import DataError


def some_data(n=700, n_features=18, *, scattered=False, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[:, 5] = np.inf * np.sign(X[:, 5])
    X[rng.random(X.shape) < 0.05] = np.nan
    qid = rng.integers(0, 40, n)
    names = [f"f{number}" for number in range(n_features)]
    y = rng.integers(0, 4, n)
    return rw.Dataset(X, y, qid=qid if scattered else np.sort(qid), feature_names=names, **more)


def assert_same(data, opened):
    assert data.shape == opened.shape
    assert data.feature_names == opened.feature_names
    assert data.y.tobytes() == opened.y.tobytes()
    assert data.queries.ids.tolist() == opened.queries.ids.tolist()
    assert data.queries.ids.dtype.kind == opened.queries.ids.dtype.kind
    for name in ("offsets", "order", "weights", "query_weights"):
        assert np.array_equal(getattr(data, name), getattr(opened, name)), name
    assert not opened.has_features
    assert_same_bins(BinnedDataset.make(data, 20), BinnedDataset.make(opened, 20))
    assert opened.in_memory().X.tobytes() == data.X.tobytes()


def assert_same_bins(first, second):
    assert first.edges.flat.tobytes() == second.edges.flat.tobytes()
    assert first.bins.tobytes() == second.bins.tobytes()
    assert first.has_missing.tolist() == second.has_missing.tolist()


WRITERS = {
    "data.parquet": write_parquet,
    "data.csv": write_csv,
    "data.csv.gz": write_csv,
    "data.txt": rw.write_svmlight,
    "data.txt.gz": rw.write_svmlight,
}


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file(tmp_path, name, scattered):
    path = tmp_path / name
    WRITERS[name](some_data(scattered=scattered, weights=np.linspace(0, 2, 700)), path)
    assert_same(rw.read_data(path, doc_ids=False), rw.open_data(path))


@pytest.mark.parametrize("row_group_size", [1, 7, 64, 699, 700, 1000])
def test_every_size_of_row_groups(tmp_path, row_group_size):
    data, path = some_data(), tmp_path / "data.parquet"
    write_parquet(data, tmp_path / "whole.parquet")
    parquet.write_table(parquet.read_table(tmp_path / "whole.parquet"), path, row_group_size=row_group_size)
    assert_same(rw.read_data(path), rw.open_data(path))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "txt"])
def test_a_query_goes_on_in_the_next_file(tmp_path, suffix):
    data = some_data()
    files = [tmp_path / f"{number}.{suffix}" for number in range(3)]
    for file, rows in zip(files, np.split(np.arange(700), [10, 331]), strict=True):
        WRITERS[f"data.{suffix}"](data[rows], file)
    assert_same(rw.read_data(files), rw.open_data(files))


@pytest.mark.parametrize("ids", [["7", "b", "7"], ["1", "2", "1"], ["07", "7", "8"]])
@pytest.mark.parametrize("suffix", ["csv", "txt", "parquet"])
def test_ids_are_numbers_or_texts_as_in_memory(tmp_path, suffix, ids):
    data = rw.Dataset(np.arange(6, dtype=np.float32)[:, None], np.arange(6), qid=np.repeat(ids, 2))
    path = tmp_path / f"data.{suffix}"
    WRITERS[f"data.{suffix}"](data, path)
    assert_same(rw.read_data(path, doc_ids=False), rw.open_data(path))


def test_sizes_and_weights_in_files_beside_the_data(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("".join(f"{row % 3} 1:{row} 4:1\n" for row in range(9)))
    (tmp_path / "data.txt.query").write_text("4\n0\n5\n")
    (tmp_path / "data.txt.weight").write_text("1\n2\n3\n")
    assert_same(rw.read_data(path), rw.open_data(path))


def test_the_widest_line_may_come_last(tmp_path):
    path = tmp_path / "data.txt"
    lines = [f"{row % 2} qid:{row // 10} 1:{row}\n" for row in range(200_000)]
    path.write_text("".join(lines) + "1 qid:x 9:1\n")
    assert_same(rw.read_data(path), rw.open_data(path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "label,f\n1,2\n", "a.csv: no column is named qid or query_id; there are: label, f"),
        ("a.csv", "qid,label,f\n1,1,2\n1,,3\n", "a.csv: the label of row 2 is missing"),
        ("a.csv", "qid,label,f\n1,1,word\n", "a.csv: column 'f' holds string values such as 'word'"),
        ("a.csv", "qid,label,f\n", "a.csv: the table has no rows"),
        ("a.txt", "1 qid:1 1:0.5\n1 qid:1 x\n", "a.txt, line 2"),
        ("a.txt", "1 1:0.5\n", "lines have no 'qid:ID', and there is no a.txt.query beside it"),
        ("a.txt", "# nothing\n", "there is no document"),
    ],
)
def test_mistakes_are_the_same_sentences(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    for read in (rw.read_data, lambda path: BinnedDataset.make(rw.open_data(path))):
        with pytest.raises(DataError, match=message.replace("(", r"\(")):
            read(path)


def test_files_that_change_meanwhile_are_told(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:0.5\n")
    data = rw.open_data(path)
    path.write_text("1 qid:1 1:0.5\n" * 2)
    with pytest.raises(DataError, match=r"data\.txt: it has changed since its labels were read: start again"):
        BinnedDataset.make(data)


def test_dropped_features_are_missed_in_one_sentence():
    data = some_data(query_weights=np.arange(40.0))
    dropped = data.without_features()
    with pytest.raises(DataError, match="the features of this data set were put into bins and dropped: read it"):
        _ = dropped.X
    assert dropped.shape == data.shape
    chosen = dropped.select_queries([3, 1])
    assert chosen.y.tolist() == data.select_queries([3, 1]).y.tolist()
    assert chosen.query_weights.tolist() == [3.0, 1.0]
    assert dropped.replace(y=data.y + 1).y.tolist() == (data.y + 1).tolist()
    assert len({data.fingerprint(), dropped.fingerprint(), dropped.replace(y=data.y + 1).fingerprint()}) == 3
    assert pickle.loads(pickle.dumps(dropped)).fingerprint() == dropped.fingerprint()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_parts_are_put_together_as_in_memory(draw):
    """Layout, sketches and bins of parts, each made alone: what Dask tasks do."""
    ids = draw.draw(st.lists(st.integers(0, 3), min_size=1, max_size=12))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(ids)), max_size=3)))
    rng = np.random.default_rng(len(ids))
    X, y = rng.normal(size=(len(ids), 2)).astype(np.float32), np.arange(len(ids))
    whole = BinnedDataset.make(rw.Dataset(X, y, qid=ids), 4, n_threads=1)
    parts = [ArrayPart(*some) for some in zip(*(np.split(array, cuts) for array in (X, y, np.array(ids))), strict=True)]
    rows = [part.rows() for part in parts]
    if find_queries(len(ids), qid=ids).order is not None:
        with pytest.raises(DataError, match=r"stand apart: rows .* shuffle=True"):
            Layout.of(rows)
    layout = Layout.of(rows, shuffle=True)
    starts = layout.first_rows
    sketches = [BinSketch.of(p.X, int(starts[k]), layout.n_rows, 4, n_threads=1) for k, p in enumerate(parts)]
    edges = BinSketch.merge(sketches[::-1]).edges()
    bins = empty_bins(layout.n_rows, 2)
    for number, part in enumerate(parts):
        encode_rows(part.X, edges, bins, layout.places(number), n_threads=1)
    assert bins.tobytes() == whole.bins.tobytes()
    assert layout.queries.offsets.tolist() == whole.data.offsets.tolist()
    halves = np.split(bins, [len(ids) // 2], axis=1)
    assert join_bins(halves).tobytes() == bins.tobytes()


def test_scattered_rows_are_named():
    rows = [ArrayPart(np.zeros((3, 1), np.float32), qid=ids).rows() for ids in (["a", "a", "b"], ["b", "a", "c"])]
    with pytest.raises(DataError, match="the rows of query a stand apart: rows 2 and 5 belong to it"):
        Layout.of(rows)
    assert Layout.of(rows, shuffle=True).places(1).tolist() == [4, 2, 5]


def test_parts_of_files_are_pickled_and_read_alone(tmp_path):
    data, path = some_data(), tmp_path / "data.parquet"
    write_parquet(data, tmp_path / "whole.parquet")
    parquet.write_table(parquet.read_table(tmp_path / "whole.parquet"), path, row_group_size=50)
    parts = file_parts([path], "parquet", rows_per_part=120)
    assert [part.source.first_row for part in parts] == [0, 100, 200, 300, 400, 500, 600]
    assert len(pickle.dumps(parts[0])) < 2000
    third = pickle.loads(pickle.dumps(parts))[2]
    assert np.concatenate(list(third.blocks())).tobytes() == data.X[200:300].tobytes()
    assert third.rows().y.tolist() == data.y[200:300].tolist()
    assert_same(data, as_dataset(parts, 18, parts[0].features))


def test_arrow_columns_may_be_of_any_numbers(tmp_path):
    table = pa.table(
        {
            "qid": pa.array(["a", "a", "b"]).dictionary_encode(),
            "label": pa.array([1, 0, 2], pa.int8()),
            "wide": pa.array([0.1, None, 1e300]),
            "count": pa.array([2**40, 1, None]),
            "flag": pa.array([True, None, False]),
        }
    )
    parquet.write_table(table, tmp_path / "data.parquet")
    assert_same(rw.read_data(tmp_path / "data.parquet"), rw.open_data(tmp_path / "data.parquet"))
