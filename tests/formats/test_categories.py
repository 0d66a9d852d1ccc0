"""Categories that models were trained on, in data as texts: scores are those of the tool with the same DataFrame."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.coding import Coding
from rankwood.evaluation.evaluator import scores_of

pandas = pytest.importorskip("pandas", reason="PANDAS ABSENT: pip install 'rankwood[formats]'")
N = 1200


def frame(seed=0, **odd):
    """Numbers, texts with spaces, ordered categories, numbers, truth values and one constant as categories."""
    rng = np.random.default_rng(seed)
    columns = {
        "number": rng.normal(size=N).astype(np.float32).astype(float),
        "colour": pandas.Categorical(rng.choice(["red", "green", "light blue", "ü"], N)),
        "shop": pandas.Categorical(rng.choice([10, 20, 35], N)),
        "only": pandas.Categorical(["same"] * N),
        "flag": pandas.Categorical(rng.random(N) < 0.5),
    }
    return pandas.DataFrame(columns | odd)


def sizes(seed=0):
    letters = np.random.default_rng(seed + 1).choice(["S", "M", "L"], N)
    return {"size": pandas.Categorical(letters, categories=["S", "M", "L"], ordered=True)}


def label(data):
    y = data["colour"].isin(["red", "ü"]) * 1.0 + (data["shop"] == 20) + 0.3 * (data["flag"] == True)  # noqa: E712
    return y + 0.1 * data["number"] + (data["size"] == "M" if "size" in data else 0.0)


@pytest.fixture(scope="module", params=["unordered", "ordered"])
def trained(request):
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    data = frame(**(sizes() if request.param == "ordered" else {}))
    settings = {"objective": "regression", "verbose": -1, "num_leaves": 15, "min_data_per_group": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(data, label(data)), 12)
    return booster, data


def others(data):
    """The same columns with categories never seen, in another order, and missing."""
    rng = np.random.default_rng(5)
    shops = np.where(rng.random(N) < 0.1, 99, data["shop"].astype(int))
    colours = np.where(rng.random(N) < 0.2, "never seen", data["colour"].astype(str))
    changed = data.assign(colour=pandas.Categorical(colours), shop=pandas.Categorical(shops[::-1]))
    changed.loc[rng.random(N) < 0.1, ["colour", "flag"]] = None
    return changed


def test_frames_score_as_lightgbm_scores_them(trained):
    booster, data = trained
    model = rw.load_model(booster)
    for rows in (data, others(data), data.iloc[:7], data.iloc[::-1]):
        assert_array_equal(model.score(rows), booster.predict(rows, raw_score=True))
    again = rw.load_model(rw.load_model(booster))
    assert again.coding == model.coding
    assert_array_equal(model.leaves(data), model.leaves(data.iloc[:, ::-1]))  # columns are found by name


def test_texts_in_frames_and_tables(trained):
    pyarrow = pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")
    booster, data = trained
    model = rw.load_model(booster)
    expected = booster.predict(data, raw_score=True)
    texts = data.astype({name: str for name in data.columns if name != "number"})
    assert_array_equal(model.score(texts), expected)
    assert_array_equal(model.score(pyarrow.table({name: texts[name].to_numpy() for name in texts})), expected)


def test_it_survives_the_file_and_conversion(trained, tmp_path):
    import lightgbm

    booster, data = trained
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "model.json").write_text(json.dumps(booster.dump_model()))
    model = rw.load_model(tmp_path / "model.txt")
    dumped = rw.load_model(tmp_path / "model.json")
    model.save(tmp_path / "model.rw")
    rw.save_as(model, tmp_path / "again.txt")
    rows = others(data)
    expected = booster.predict(rows, raw_score=True)
    assert_array_equal(rw.load_model(tmp_path / "model.rw").select(np.arange(12)).score(rows), expected)
    assert_array_equal(dumped.score(rows), expected)
    written = lightgbm.Booster(model_file=tmp_path / "again.txt")
    assert_allclose(written.predict(rows, raw_score=True), expected, rtol=0, atol=1e-12)
    assert rw.load_model(tmp_path / "again.txt").coding == model.coding


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_with_the_texts_of_training(kind, tmp_path, monkeypatch, capsys):
    lightgbm = pytest.importorskip("lightgbm", reason="LIGHTGBM ABSENT: pip install 'rankwood[formats]'")
    pytest.importorskip("pyarrow", reason="PYARROW ABSENT: pip install 'rankwood[arrow]'")
    from rankwood.cli import main

    data = frame().rename(columns={"colour": "the colour"})
    settings = {"objective": "regression", "verbose": -1, "num_leaves": 15, "min_data_per_group": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(data, label(frame())), 12)
    booster.save_model(tmp_path / "model.txt")
    rows = data.assign(qid=np.arange(N) // 20, label=1)[["qid", "label", *data.columns[::-1]]]
    path = tmp_path / f"data.{kind}"
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    expected = booster.predict(data, raw_score=True)
    model = rw.load_model(tmp_path / "model.txt")
    read = rw.read_data(path, coding=model.coding)
    with pytest.warns(UserWarning, match="'the colour' is 'the_colour'"):
        assert_array_equal(scores_of(model, read), expected)
    with pytest.raises(rw.DataError, match="features are numbers"):
        rw.read_data(path)
    for command in (["score", "-o", tmp_path / "out.txt"], ["evaluate"], ["inspect"]):
        arguments = ["rankwood", command[0], tmp_path / "model.txt", "--data", path, *command[1:]]
        monkeypatch.setattr("sys.argv", list(map(str, arguments)))
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capsys.readouterr().err
    assert_array_equal(np.loadtxt(tmp_path / "out.txt"), expected)


def test_a_model_that_was_shrunk_keeps_its_categories(tmp_path):
    rng = np.random.default_rng(0)
    trees = [(0, 0.5, *rng.normal(size=2)) if at % 2 else (1, 1.5, *rng.normal(size=2)) for at in range(30)]
    note = {"lists": [["red", "green", "blue"]], "columns": [1]}
    model = rw.Ensemble.from_trees(trees, feature_names=["a", "colour"], metadata={"categories": note})
    X = np.column_stack([rng.random(4000), rng.integers(0, 3, 4000)])
    parts = [rw.Dataset(X[part], model.score(X[part]) > 0, group=[10] * 200, feature_names=model.feature_names)
             for part in (slice(0, 2000), slice(2000, 4000))]  # fmt: skip
    result = rw.shrink(model, *parts, margin=0.5, leaves=20, measure_speed=False)
    assert result.accepted
    assert result.ensemble.coding == model.coding


# Coding itself.

CODING = Coding((("red", "green"), (10, 20), (0, 1)), (0, 2, 3), ("colour", "age", "shop", "flag"))


def test_texts_are_codes_and_others_are_translated_with_them():
    codes = CODING.codes(["text", "number", "number", "number"])
    assert codes[0].of(["green", "blue", None, "red"]).tolist()[::3] == [1.0, 0.0]
    assert np.isnan(codes[0].of(["blue", None])).all()
    assert codes[2].of([10.0, 20, 30])[:2].tolist() == [0.0, 1.0]
    assert sorted(codes) == [0, 2, 3]


def test_numbers_alone_are_codes():
    with pytest.warns(UserWarning, match="column 'shop' holds numbers, which are taken for codes of the categories 10"):
        assert CODING.codes(["number"] * 4) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Coding((("red",),), (0,)).codes(["number"]) == {}


def test_texts_where_numbers_were():
    with pytest.raises(rw.DataError, match="column 'age' holds texts, but the model was trained on numbers there"):
        CODING.codes(["text", "text", "number", "number"])
    unplaced = Coding((("red",), (10, 20)), None)
    with pytest.raises(rw.DataError, match=r"1 columns hold texts .* trained with 2 columns of categories"):
        unplaced.codes(["text", "number"])
    assert sorted(unplaced.codes(["text", "number", "text"])) == [0, 2]
    assert sorted(Coding((("red",), (0, 1)), None).codes(["number", "text"])) == [1]


@pytest.mark.parametrize("note", [None, 7, {}, {"lists": 1}, {"lists": [1]}, {"lists": [[1]], "columns": [1, 2]}])
def test_damaged_notes_are_no_coding(note):
    assert Coding.noted(note, None) is None
    assert rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], metadata={"categories": note}).coding is None


def test_a_model_without_categories_refuses_texts():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], feature_names=["colour"])
    with pytest.raises(rw.DataError, match="features must be numbers"):
        model.score(pandas.DataFrame({"colour": ["red"]}))
    with pytest.raises(rw.DataError, match="holds categories"):
        model.score(pandas.DataFrame({"colour": pandas.Categorical(["red"])}))


# CatBoost's one-hot splits.


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_one_hot_splits_of_catboost(policy, tmp_path):
    catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    rng = np.random.default_rng(0)
    data = pandas.DataFrame({
        "number": rng.normal(size=N).astype(np.float32),
        "unused": rng.choice(["x", "y"], N),
        "colour": rng.choice(["red", "green", "blue"], N),
        "shop": rng.choice([3, 7, 11, 12], N),
    })  # fmt: skip
    y = (data["colour"] == "red") + 2.0 * (data["shop"] == 7) + 0.1 * data["number"]
    pool = catboost.Pool(data, y, cat_features=["unused", "colour", "shop"])
    options = {"iterations": 8, "depth": 4, "verbose": 0, "one_hot_max_size": 10, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**options, grow_policy=policy).fit(pool)
    model.save_model(str(tmp_path / "model.json"), format="json", pool=pool)
    read = rw.load_model(tmp_path / "model.json")
    assert read.coding.columns == (1, 2)
    unseen = data.assign(colour=np.where(data["number"] > 0, "white", data["colour"]), shop=data["shop"] + 1)
    for rows in (data, unseen):
        assert_allclose(read.score(rows), model.predict(rows), rtol=0, atol=1e-12)
    model.save_model(str(tmp_path / "bare.json"), format="json")
    with pytest.raises(rw.ModelError, match=r"feature (colour|shop), whose texts .* format='json', pool=pool"):
        rw.load_model(tmp_path / "bare.json")


def test_statistics_of_catboost_are_refused_by_name(tmp_path):
    catboost = pytest.importorskip("catboost", reason="CATBOOST ABSENT: pip install 'rankwood[formats]'")
    rng = np.random.default_rng(0)
    data = pandas.DataFrame({"colour": rng.choice(list("abcdefgh"), N), "number": rng.normal(size=N)})
    y = data["colour"].map({letter: place % 3 for place, letter in enumerate("abcdefgh")})
    options = {"iterations": 5, "verbose": 0, "one_hot_max_size": 2, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**options, cat_features=["colour"]).fit(data, y)
    model.save_model(str(tmp_path / "model.cbm"))
    with pytest.raises(rw.ModelError, match=r"statistics of categories \(colour\).*one_hot_max_size=255"):
        rw.load_model(tmp_path / "model.cbm")
