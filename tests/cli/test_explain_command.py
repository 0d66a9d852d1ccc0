"""`rankwood explain`, and `rankwood inspect --tree`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankwood as rw


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    data = rw.make_ranking(n_queries=12, docs_per_query=8, n_features=14, seed=2)
    ids = [f"doc-{number}" for number in range(data.n_docs)]
    data = rw.Dataset(data.X, data.y, qid=[f"q{one}" for one in data.queries.index], doc_ids=ids)
    rw.write_svmlight(data, folder / "data.txt")
    model = rw.LambdaMART(n_trees=20, n_leaves=6, min_docs_per_leaf=3).fit(data).ensemble_
    model.save(folder / "model.rw")
    model.replace(leaf_cover=None).save(folder / "bare.rw")
    model.replace(exit=rw.EarlyExit([16], [0.0], top=1)).save(folder / "swift.rw")
    return folder, model, data


def of_query(data, name):
    rows = np.flatnonzero(np.asarray(data.qid) == name)
    return rows, data.X[rows]


def test_a_query(rankwood, files):
    folder, model, data = files
    given = "explain", folder / "model.rw", "--data", folder / "data.txt", "--query", "q3"
    shown = rankwood(*given)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "feature 1" in shown.out or "others" in shown.out
    found = json.loads(rankwood(*given, "--json").out)
    rows, X = of_query(data, "q3")
    expected = rw.explain(model, X)
    order = np.argsort(-expected.scores, kind="stable")
    assert [one["document"] for one in found["documents"]] == [f"doc-{rows[row]}" for row in order]
    assert_allclose([one["contributions"] for one in found["documents"]], expected.values[order])
    assert_allclose([one["label"] for one in found["documents"]], data.y[rows[order]])
    assert found["base_value"] == expected.base_value


def test_a_pair(rankwood, files):
    folder, model, data = files
    rows, X = of_query(data, "q5")
    given = "explain", folder / "model.rw", "--data", folder / "data.txt", "--query", "q5", "--pair"
    shown = rankwood(*given, "1", f"doc-{rows[2]}", "--top", 3)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "11 others" in shown.out
    shown = rankwood(*given, "1", f"doc-{rows[2]}", "--top", data.n_features - 1)
    assert "1 other " in shown.out
    found = json.loads(rankwood(*given, f"doc-{rows[0]}", "3", "--json").out)
    assert found["above"]["document"] == f"doc-{rows[0]}"
    assert_allclose(
        sum(one["difference"] for one in found["features"]), model.score(X[:1])[0] - model.score(X[2:3])[0], atol=1e-9
    )
    sizes = [abs(one["difference"]) for one in found["features"]]
    assert sizes == sorted(sizes, reverse=True)


def test_models_without_counts(rankwood, files):
    folder, model, data = files
    given = "explain", folder / "bare.rw", "--data", folder / "data.txt", "--query", "q5", "--json"
    refused = rankwood(*given)
    assert "does not know how much training data its leaves hold" in refused.err
    _, X = of_query(data, "q5")
    for option, argument in (("--background", "background"), ("--counts-of", "data")):
        found = json.loads(rankwood(*given, option, folder / "data.txt").out)
        assert found["base_value"] == rw.explain(model, X, **{argument: data.X}).base_value


def test_early_exit_is_mentioned(rankwood, files):
    folder, _, _ = files
    told = rankwood("explain", folder / "swift.rw", "--data", folder / "data.txt", "--query", "q5")
    assert "what is explained is the sum of all its trees" in told.err


def test_what_is_not_there(rankwood, files):
    folder, _, _ = files
    given = "explain", folder / "model.rw", "--data", folder / "data.txt", "--query"
    assert "the data has no query 'q99'; there are:" in rankwood(*given, "q99").err
    assert "has no document 'x'" in rankwood(*given, "q1", "--pair", "x", "1").err


def test_numbers_of_any_size_fit(rankwood, files, tmp_path):
    folder, model, _ = files
    for factor in (1e-9, 1e3, 1e9):
        names = [f"a rather long name of feature {number}" for number in range(model.n_features)]
        model.reweigh(model.tree_weights * factor).replace(feature_names=names).save(tmp_path / "model.rw")
        given = "explain", tmp_path / "model.rw", "--data", folder / "data.txt", "--query", "q5"
        for more in ((), ("--pair", "1", "2")):
            assert max(map(len, rankwood(*given, *more).out.splitlines())) <= 80


def test_inspect_shows_a_tree(rankwood, files):
    folder, _, _ = files
    shown = rankwood("inspect", folder / "model.rw", "--tree", 1).out
    assert shown.startswith("tree 1: 6 leaves")
    assert "feature " in shown
    found = json.loads(rankwood("inspect", folder / "model.rw", "--tree", -1, "--json").out)
    assert found["tree"] == 19
    assert sum(one["value"] is not None for one in found["nodes"]) == 6
    assert "there is no tree 20" in rankwood("inspect", folder / "model.rw", "--tree", 20).err
