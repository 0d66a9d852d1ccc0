"""Evaluations and comparisons as data frames, and several models evaluated at once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rankwood as rw

MEASURES = ["nDCG@10", "AP", "RR"]


@pytest.fixture(scope="module")
def data():
    return rw.make_ranking(n_queries=20, docs_per_query=9, n_features=4, seed=6)


def test_several_models_are_evaluated_as_one_by_one(data):
    models = {
        "first": data.X[:, 0],
        "second": data.X[:, 1],
        "tree": rw.Ensemble.from_trees([(0, 0.5, 0.0, 1.0)], n_features=4),
    }
    results = rw.evaluate(models, data, MEASURES, convention="lightgbm", n_threads=1)
    assert isinstance(results, rw.Evaluations)
    assert list(results) == list(models)
    for name, model in models.items():
        alone = rw.evaluate(model, data, MEASURES, convention="lightgbm")
        assert isinstance(alone, rw.Evaluation)
        assert results[name].means == alone.means
        np.testing.assert_array_equal(results[name].per_query["AP"], alone.per_query["AP"])
    assert (
        repr(results).splitlines()[1]
        == f"first: {rw.evaluate(models['first'], data, MEASURES, convention='lightgbm')!r}"
    )


def test_models_in_lists_and_files(data, tmp_path):
    first, second = (rw.Ensemble.from_trees([(f, 0.5, 0.0, 1.0)], n_features=4) for f in (0, 1))
    expected = rw.evaluate({"one": first, "two": second}, data)
    listed = rw.evaluate([first, second], data)
    assert list(listed) == ["model 1", "model 2"]
    assert [one.means for one in listed.values()] == [one.means for one in expected.values()]
    paths = [tmp_path / "a.rw", tmp_path / "b.rw"]
    for path, model in zip(paths, (first, second), strict=True):
        model.save(path)
    assert list(rw.evaluate([*paths, first], data)) == ["a.rw", "b.rw", "model 3"]
    assert list(rw.evaluate([paths[0], paths[0]], data)) == ["model 1", "model 2"]
    assert rw.evaluate(paths[1], data).means == rw.evaluate(str(paths[1]), data).means == expected["two"].means
    assert list(rw.evaluate({"x": paths[0], "y": data.X[:, 0]}, data)) == ["x", "y"]
    with pytest.raises(rw.RankwoodError, match=r"missing\.rw"):
        rw.evaluate("missing.rw", data)
    with pytest.raises(rw.DataError, match=r"'model\.rw' is the name of a file: give the model in it"):
        rw.compare("model.rw", first, data, "nDCG@10")
    with pytest.raises(rw.DataError, match=r"several models are given where one is expected: .*evaluate takes them"):
        rw.compare([first, second], first, data, "nDCG@10")
    with pytest.raises(
        rw.DataError, match=r"a model was expected, or scores with one value per row \(\d+\), got object"
    ):
        rw.evaluate(object(), data)


def test_frames(data):
    pytest.importorskip("pandas", reason="PANDAS IS ABSENT")
    models = {"first": data.X[:, 0], "second": data.X[:, 1]}
    results = rw.evaluate(models, data, MEASURES)
    table = results.to_frame()
    assert (list(table.index), list(table.columns), table.index.name) == (["first", "second"], MEASURES, "model")
    assert table.loc["second", "AP"] == results["second"]["AP"]

    one = results["first"]
    means = one.to_frame()
    assert means["mean"].to_dict() == one.means
    assert list(means["n_queries"]) == [np.isfinite(values).sum() for values in one.per_query.values()]
    queries = one.to_frame(per_query=True)
    assert queries.shape == (data.n_queries, len(MEASURES))
    np.testing.assert_array_equal(queries["RR"], one.per_query["RR"])

    found = rw.compare(*models.values(), data, "AP")
    row = found.to_frame()
    assert len(row) == 1
    facts = found.as_dict()
    low, high = facts.pop("interval")
    assert row.iloc[0].to_dict() == {**facts, "low": low, "high": high}


def test_without_pandas(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(rw.RankwoodError, match="to_frame needs the package pandas: pip install pandas"):
        rw.evaluate(data.X[:, 0], data).to_frame()


def test_notebooks_show_all_models():
    data = rw.Dataset([[1.0], [2.0], [3.0]], [0, 1, 1], group=[2, 1])
    shown = rw.evaluate({"<a>": [0.2, 0.1, 0.3], "b": [0.1, 0.2, 0.3]}, data, ["RR", "P@1"])._repr_html_()
    assert all(text in shown for text in ("&lt;a&gt;", "RR", "P@1", "0.7500", "1.0000"))
    assert "<a>" not in shown
