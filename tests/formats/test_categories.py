"""Categories that models were trained on, in data as texts: scores are those of the tool with the same DataFrame."""

from __future__ import annotations

import json

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


def test_numbers_alone_may_be_codes_or_categories():
    codes = CODING.codes(["number"] * 4)
    assert_array_equal(codes[0].of([1, np.nan, 0.0, -1]), [1, np.nan, 0, np.nan])  # of texts that no number could be
    with pytest.raises(rw.DataError, match=r"column 'colour' holds 2, which is neither .* 'red', 'green' nor a code"):
        codes[0].of([2])
    with pytest.raises(
        rw.DataError, match=r"column 'shop' holds 20, a plain number, where .* 10, 20: LightGBM refuses"
    ):
        codes[2].of([None, 20])
    assert np.isnan(codes[2].of([None, np.nan])).all()
    assert codes[3].of([0, True, 1.0]).tolist() == [0, 1, 1]  # their own codes
    assert CODING.codes(["number"] * 4, "file")[2].of([20, 1]).tolist()[:1] == [1.0]


def test_texts_like_numbers_are_texts():
    coding = Coding((("00005", "7", "x"),), (0,), ("zip",))
    for origin, way_out in (("frame", r"read the column as text .*dtype=str"), ("file", "write the column as texts")):
        with pytest.raises(rw.DataError, match=r"column 'zip' holds 5, a number, .*" + way_out):
            coding.codes(["number"], origin)[0].of([5])
    for codes in (coding.codes(["number"], "text")[0], coding.codes(["text"])[0]):
        assert codes.of(["00005", "7", "x"]).tolist() == [0, 1, 2]
        assert np.isnan(codes.of(["5", "007", "7.0", "", None])).all()
        with pytest.raises(rw.DataError, match="the column as text"):
            codes.of(["7", 7])  # as pandas reads a column of both


def test_numbers_that_are_written_as_texts():
    large = 2**60 + 1
    codes = Coding(((2.5, float(np.float32(0.1)), large, -3),), (0,)).codes(["number"], "text")[0]
    assert codes.of(["2.5", "0.1", str(large), "-3.0", "2.50"]).tolist() == [0, 1, 2, 3, 0]
    assert np.isnan(codes.of(["2.4", str(large + 1), "x", "1_0", ""])).all()
    flags = Coding(((False, True),), (0,)).codes(["number"], "text")[0]
    assert flags.of(["True", "false", "1", "0.0"]).tolist() == [1, 0, 1, 0]


def test_where_the_file_does_not_say_whose_categories_they_are():
    assert Coding((("S", "M"), (0, 1))).codes(["number", "number"]) == {}
    for odd in (("1", "2"), (10, 20)):
        with pytest.raises(rw.DataError, match="its file does not say which"):
            Coding((odd,)).codes(["number", "number"], "text")
        assert sorted(Coding((odd,)).codes(["number", "category"], "file")) == [1]


def test_texts_where_numbers_were():
    with pytest.raises(rw.DataError, match="column 'age' holds texts, but the model was trained on numbers there"):
        CODING.codes(["text", "text", "number", "number"])
    unplaced = Coding((("red",), (10, 20)), None)
    with pytest.raises(rw.DataError, match=r"1 columns hold texts .* trained with 2 columns of categories"):
        unplaced.codes(["text", "number"])
    assert sorted(unplaced.codes(["text", "number", "text"])) == [0, 2]
    assert sorted(Coding((("red",), (0, 1)), None).codes(["number", "text"])) == [1]


@pytest.mark.parametrize(
    "note",
    [None, 7, {}, {"lists": 1}, {"lists": [1]}, {"lists": [[1]], "columns": [1, 2]}, {"lists": [[{}]], "columns": [0]},
     {"lists": [[1]], "columns": ["a"]}, {"lists": [[1]], "columns": [-1]}],
)  # fmt: skip
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
