"""Folds from files and of synthetic data."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.lab.study import FewerQueries, FileFolds, SyntheticFolds, open_source, parse_folds


@pytest.fixture
def folder(tmp_path):
    data = rw.make_ranking(n_queries=20, docs_per_query=4, n_features=5, seed=2)
    for part in range(5):
        rw.write_svmlight(data.select_queries(range(4 * part, 4 * part + 4)), tmp_path / f"S{part + 1}.txt")
    return tmp_path


def test_folds_of_a_folder(folder):
    source = FileFolds.find(folder)
    fold = source.load(2)
    assert (source.n_folds, fold.train.n_queries, fold.valid.n_queries, fold.test.n_queries) == (5, 12, 4, 4)
    assert fold.valid.n_features == fold.train.n_features
    assert_array_equal(fold.test.y, rw.read_svmlight(folder / "S1.txt").y)
    assert source.load(2) is fold


def test_a_fold_is_known_by_what_is_in_its_files(folder):
    before = FileFolds.find(folder).identify(1)
    assert before == FileFolds.find(folder).identify(1) != FileFolds.find(folder).identify(2)
    text = (folder / "S5.txt").read_text()
    (folder / "S5.txt").write_text(text.replace("0", "1", 1))
    assert FileFolds.find(folder).identify(1) != before


def test_folds_without_validation_data_are_refused(tmp_path):
    data = rw.make_ranking(n_queries=4, docs_per_query=4, n_features=3)
    for name in ("train", "test"):
        rw.write_svmlight(data, tmp_path / f"{name}.txt")
    with pytest.raises(rw.DataError, match="has no validation data"):
        FileFolds.find(tmp_path)


def test_every_synthetic_query_is_tested_once():
    source = SyntheticFolds(n_queries=23, docs_per_query=4, n_features=3)
    tested = [qid for fold in range(1, 6) for qid in source.load(fold).test.queries.ids]
    assert sorted(tested) == sorted(source.data.queries.ids)
    for fold in range(1, 6):
        data = source.load(fold)
        parts = [set(part.queries.ids) for part in (data.train, data.valid, data.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 23


def test_fewer_queries_are_the_same_ones_every_time(folder):
    whole = open_source(folder)
    fewer = open_source(folder, train_queries=3)
    drawn, data = fewer.load(1), whole.load(1)
    ids = list(drawn.train.queries.ids)
    assert len(ids) == 3
    assert ids == [qid for qid in data.train.queries.ids if qid in ids]
    assert ids == list(FewerQueries(whole, 3).load(1).train.queries.ids)
    assert list(drawn.valid.queries.ids) == list(data.valid.queries.ids)
    assert list(drawn.test.queries.ids) == list(data.test.queries.ids)
    for qid in ids:
        assert_array_equal(drawn.train.X[drawn.train.qid == qid], data.train.X[data.train.qid == qid])
    assert fewer.name == f"{whole.name} (3 training queries)"
    assert fewer.identify(1) == {**whole.identify(1), "train_queries": 3}


def test_more_queries_than_there_are_is_all_of_them(folder):
    data = open_source(folder).load(2)
    assert open_source(folder, train_queries=10**6).load(2).train.n_queries == data.train.n_queries


def test_without_a_folder_there_is_synthetic_data(folder):
    assert open_source(None, quick=True).name == "synthetic"
    assert open_source(folder).n_folds == 5


@pytest.mark.parametrize("text", ["0", "1..6", "x", "3..2", ""])
def test_folds_that_are_not_there_are_refused(text):
    with pytest.raises(rw.RankwoodError, match="folds"):
        parse_folds(text, 5)
