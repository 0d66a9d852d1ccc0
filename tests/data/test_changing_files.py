"""Files that change between the reading of labels and the reading of features, which they are left in."""

from __future__ import annotations

import os

import pytest

import rankwood as rw

LEARNER = {"n_trees": 2, "n_leaves": 3, "min_docs_per_leaf": 1}


@pytest.fixture(params=["txt", "csv", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"train.{request.param}"
    if request.param != "txt":
        pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    write(path, 20)
    return path


def write(path, n_queries: int) -> None:
    data = rw.make_ranking(n_queries=n_queries, docs_per_query=8, n_features=3, seed=n_queries)
    {".txt": rw.write_svmlight, ".csv": rw.write_csv, ".parquet": rw.write_parquet}[path.suffix](data, path)


@pytest.mark.parametrize("n_queries", [10, 20, 4000])  # fewer, as many but others, and more than a block
def test_another_file_in_its_place(path, n_queries):
    data = rw.open_data(path)
    write(path, n_queries)
    if n_queries == 20:
        os.utime(path, ns=(0, 0))  # the same size and other content
    for use in (rw.MART(**LEARNER).fit, lambda data: rw.BinnedDataset.make(data)):
        with pytest.raises(rw.DataError, match=rf"{path.name}: it has changed since its labels were read: start again"):
            use(data)


def test_a_file_that_vanishes(path):
    data = rw.open_data(path)
    path.unlink()
    with pytest.raises(rw.DataError, match=rf"{path.name}: there is no such file"):
        rw.MART(**LEARNER).fit(data)


def test_a_file_that_stays_can_be_read_again(path):
    data = rw.open_data(path)
    first = rw.MART(**LEARNER).fit(data).ensemble_
    assert first == rw.MART(**LEARNER).fit(data).ensemble_ == rw.MART(**LEARNER).fit(rw.read_data(path)).ensemble_


def test_more_rows_than_labels_are_not_handed_on():
    data = rw.Dataset([[0.0], [1.0]], [0, 1], group=[2])
    blocks = [data.X, data.X]
    growing = rw.Dataset.without_matrix(data.y, n_features=1, queries=data.queries, read_blocks=lambda: iter(blocks))
    seen = []
    with pytest.raises(rw.DataError, match="there were 2 documents, now there are 4 or more: its files have changed"):
        seen.extend(rows for rows, _ in growing.feature_blocks())
    assert seen == [slice(0, 2)]
