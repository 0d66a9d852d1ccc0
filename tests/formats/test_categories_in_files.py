"""Categories of LightGBM in CSV, Parquet and DataFrames: every bit of a score is LightGBM's for the same DataFrame."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.cli import main

pandas = pytest.importorskip("pandas", reason="PANDAS ABSENT: pip install 'rankwood[formats]'")
lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")

N = 1500
KINDS = {
    "words": ["red", "green", "light blue", "NA"],
    "digits": ["12", "7", "105", "3"],
    "zeros": ["00005", "00290", "5", "00007"],
    "some digits": ["12", "x", "7.5", "true"],
    "whole": [1000, 1007, 12, -3],
    "codes": [0, 1, 2, 3],
    "shifted codes": [1, 2, 3, 4],
    "large": [2**53 + 1, 2**53 + 3, 2**60 + 1, 7],
    "fractions": [0.1, 2.5, 1e300, -0.3],
    "flags": [False, True],
}


def made(kind, seed, beside, with_missing, unseen=()):
    """A frame whose column `shop id` holds categories of one kind, perhaps beside one of words."""
    rng = np.random.default_rng(seed)
    values = np.empty(N, dtype=object)
    values[:] = [[*KINDS[kind], *unseen][place] for place in rng.integers(0, len(KINDS[kind]) + len(unseen), N)]
    shop = pandas.Series(values).astype(pandas.CategoricalDtype([*KINDS[kind], *unseen]))
    columns = {"number": rng.normal(size=N), "shop id": shop.where(~(with_missing & (rng.random(N) < 0.2)))}
    if beside:
        columns["colour"] = pandas.Categorical(rng.choice(["red", "green", "blue"], N))
    return pandas.DataFrame(columns)


@pytest.fixture(scope="module", params=[(kind, beside) for kind in KINDS for beside in (False, True)], ids=str)
def trained(request, tmp_path_factory):
    kind, beside = request.param
    frame = made(kind, 0, beside, with_missing=kind != "flags")
    y = frame["shop id"].cat.codes % 3 + 0.3 * frame["number"] + (frame["colour"] == "red" if beside else 0)
    settings = {"objective": "regression", "verbose": -1, "num_leaves": 15, "min_data_per_group": 5, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(frame, y), 8)
    path = tmp_path_factory.mktemp("model") / "model.txt"
    booster.save_model(path)
    return kind, beside, booster, path


def scores(monkeypatch, capsys, model, data, output):
    monkeypatch.setattr("sys.argv", ["rankwood", "score", str(model), "--data", str(data), "-o", str(output)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert not ended.value.code, said
    return np.loadtxt(output), said


@pytest.mark.filterwarnings("ignore:columns are matched")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("with_missing", [False, True])
def test_files_score_as_lightgbm_scores_the_frame(trained, suffix, with_missing, tmp_path, monkeypatch, capsys):
    kind, beside, booster, path = trained
    frame = made(kind, 1, beside, with_missing)
    data = tmp_path / f"data.{suffix}"
    rows = frame.assign(qid=np.arange(N) // 20, label=1)
    rows.to_csv(data, index=False) if suffix == "csv" else rows.to_parquet(data)
    expected = booster.predict(frame, raw_score=True)
    found, said = scores(monkeypatch, capsys, path, data, tmp_path / "scores.txt")
    assert_array_equal(found, expected)
    assert "none of the model's categories" not in said
    model = rw.load_model(path)
    for read in (rw.read_data, rw.open_data):
        read_back = read(data, coding=model.coding, exact=True)
        assert read_back.feature_names == tuple(frame.columns)
        X = read_back.in_memory().X
        assert X.dtype == np.float64
        assert_array_equal(model.score(X), expected)
    assert rw.evaluate(model, data).means == rw.evaluate(expected, read_back).means


@pytest.mark.filterwarnings("ignore:columns are matched")
def test_frames_are_scored_alike_or_refused(trained):
    """A DataFrame of plain values, as `pandas.read_csv` makes it, has LightGBM's scores or is an error."""
    kind, beside, booster, path = trained
    frame = made(kind, 2, beside, with_missing=False)
    model = rw.load_model(path)
    expected = booster.predict(frame, raw_score=True)
    assert_array_equal(model.score(frame), expected)
    texts = frame.assign(**{"shop id": frame["shop id"].astype(str)})
    if kind not in ("large", "fractions") or beside:
        assert_array_equal(model.score(texts), expected)
    plain = frame.assign(**{"shop id": pandas.Series(frame["shop id"].tolist()).infer_objects()})
    if kind in ("whole", "shifted codes", "large", "fractions") and not beside:
        with pytest.raises(rw.DataError, match=r"column 'shop id' holds .*, a plain number, .*astype\('category'\)"):
            model.score(plain)
    else:
        assert_array_equal(model.score(plain), expected)
    if kind in ("digits", "zeros"):
        with pytest.raises(rw.DataError, match=r"column 'shop id' holds .*, a number, .*dtype=str"):
            model.score(frame.assign(**{"shop id": frame["shop id"].astype(int)}))


@pytest.mark.filterwarnings("ignore:columns are matched")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_categories_that_were_never_seen_are_counted(suffix, tmp_path, monkeypatch, capsys):
    frame = made("zeros", 0, True, with_missing=True)
    settings = {"objective": "regression", "verbose": -1, "min_data_per_group": 5, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(frame, frame["shop id"].cat.codes % 3), 8)
    booster.save_model(tmp_path / "model.txt")
    rows = made("zeros", 1, True, with_missing=True, unseen=["290"])
    count, known = int((rows["shop id"] == "290").sum()), int(rows["shop id"].notna().sum())
    data = tmp_path / f"data.{suffix}"
    table = rows.assign(qid=np.arange(N) // 20, label=1)
    table.to_csv(data, index=False) if suffix == "csv" else table.to_parquet(data, row_group_size=100)
    found, said = scores(monkeypatch, capsys, tmp_path / "model.txt", data, tmp_path / "scores.txt")
    assert_array_equal(found, booster.predict(rows, raw_score=True))
    sentence = f"{count:,} of {known:,} values of column 'shop id' are none of the model's categories"
    assert said.count(sentence) == 1
    assert "such as '290'" in said
    model = rw.load_model(tmp_path / "model.txt")
    opened = rw.open_data(data, coding=model.coding, exact=True)
    for _ in range(2):  # every reading counts for itself
        with pytest.warns(UserWarning, match=sentence):
            list(opened.feature_blocks())
    with pytest.warns(UserWarning, match=sentence):
        rw.read_data(data, coding=model.coding)


def test_missing_values_are_not_unseen(tmp_path):
    model = rw.Ensemble.from_trees(
        [(0, 0.5, 1.0, 2.0)], feature_names=["c"], metadata={"categories": {"lists": [["7", "b"]], "columns": [0]}}
    )
    (tmp_path / "data.csv").write_text("qid,c\n1,7\n1,\n1,NA\n1,b\n1,?\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = rw.read_csv(tmp_path / "data.csv", coding=model.coding).X
    assert_array_equal(X[:, 0], [0, np.nan, np.nan, 1, np.nan])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_codes_of_words_in_a_file(suffix, tmp_path):
    note = {"lists": [["red", "green", "2020-01-01"]], "columns": [0]}
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["c"], metadata={"categories": note})
    path = tmp_path / f"data.{suffix}"

    def read(values):
        frame = pandas.DataFrame({"qid": 1, "c": values})
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        return rw.read_data(path, coding=model.coding).X[:, 0]

    assert_array_equal(read([1, None, 2, 0]), [1, np.nan, 2, 0])
    with pytest.raises(rw.DataError, match=r"data\..*: column 'c' holds .*3.*, which is neither one of the model's"):
        read([1, 3])
    assert_array_equal(read(["2020-01-01", "green"]), [2, 1])
    assert_array_equal(read(["2020-01-01"]), [2])


# Values that float32 would round.


@pytest.mark.parametrize("suffix", ["csv", "parquet", "tsv.gz"])
def test_imported_models_score_tables_in_float64(suffix, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N, 3)), 3) + rng.choice([0, 1e-12], (N, 3))  # differ only in float64
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    booster = lightgbm.train(
        {"objective": "regression", "verbose": -1, "num_leaves": 63, "min_data_in_leaf": 2, "max_bin": 2000,
         "min_data_in_bin": 1, "num_threads": 1},
        lightgbm.Dataset(frame, (X * 1e3 % 1 > 1e-10).sum(axis=1) + X[:, 0]),
        20,
    )  # fmt: skip
    booster.save_model(tmp_path / "model.txt")
    table = frame.assign(qid=np.arange(N) // 20, label=rng.integers(0, 3, N))
    data = tmp_path / f"data.{suffix}"
    table.to_parquet(data) if suffix == "parquet" else table.to_csv(
        data, index=False, sep="\t" if "t" in suffix else ","
    )
    expected = booster.predict(frame, raw_score=True)
    model = rw.load_model(tmp_path / "model.txt")
    assert (model.score(X.astype(np.float32)) != expected).any()
    assert_array_equal(scores(monkeypatch, capsys, tmp_path / "model.txt", data, tmp_path / "scores.txt")[0], expected)
    assert rw.read_data(data).X.dtype == np.float32
    exact = rw.read_data(data, exact=True)
    assert_array_equal(exact.X, X)
    assert rw.evaluate(model, data).means == rw.evaluate(expected, exact).means
    monkeypatch.setattr(
        "sys.argv", ["rankwood", "evaluate", str(tmp_path / "model.txt"), "--data", str(data), "--json"]
    )
    with pytest.raises(SystemExit):
        main()
    found = json.loads(capsys.readouterr().out)["models"][0]["measures"]["nDCG@10"]
    assert found == rw.evaluate(expected, exact, "nDCG@10")["nDCG@10"]


def test_float32_is_kept_where_it_holds_every_value(tmp_path):
    data = rw.Dataset([[0.5, 3], [np.nan, 2**24]], [0, 1], group=[2], feature_names=["a", "b"])
    for name in ("data.csv", "data.parquet"):
        rw.write_csv(data, tmp_path / name) if name.endswith("csv") else rw.write_parquet(data, tmp_path / name)
        assert rw.read_data(tmp_path / name, exact=True).X.dtype == np.float32
        assert rw.open_data(tmp_path / name, exact=True).in_memory().X.dtype == np.float32


def test_blocks_of_float32_and_float64_are_joined(tmp_path):
    rows = 3 * 8192
    values = np.zeros(rows)
    values[rows // 2] = 0.1
    frame = pandas.DataFrame({"qid": 1, "a": values})
    frame.to_parquet(tmp_path / "data.parquet")
    opened = rw.open_data(tmp_path / "data.parquet", exact=True)
    assert {block.dtype.name for _, block in opened.feature_blocks()} == {"float32", "float64"}
    assert_array_equal(opened.in_memory().X[:, 0], values)
