"""Categories as tables and files have them: the same codes, and so the same model, however they come."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw

pd = pytest.importorskip("pandas", reason="PANDAS IS ABSENT")
pa = pytest.importorskip("pyarrow", reason="PYARROW IS ABSENT")

SHOPS = [f"shop {number}" for number in range(30)]
SMALL = {"n_trees": 6, "n_leaves": 8, "learning_rate": 0.3, "min_docs_per_leaf": 5, "category_smoothing": 2.0}
N = 900


def made(seed):
    """A frame with texts, of which some are missing, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    codes, number = rng.integers(30, size=N), rng.normal(size=N).round(3)
    y = np.digitize(2 * np.random.default_rng(99).normal(size=30)[codes] + number, [-1, 0.5, 2])
    shop = np.array(SHOPS, dtype=object)[codes]
    shop[rng.random(N) < 0.03] = None
    frame = {"qid": np.repeat(np.arange(60), 15), "label": y, "price": number, "shop": shop}
    return pd.DataFrame({**frame, "kind": rng.integers(5, size=N)})


FRAME, OTHER = made(0), made(1)
X, Y, QID = FRAME.drop(columns=["qid", "label"]), FRAME["label"], FRAME["qid"]


def learner(**parameters):
    return rw.LambdaMART(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def expected():
    """The model of texts in a frame of pandas, and its scores there."""
    ranker = learner(categorical_features=["shop"]).fit(X, Y, qid=QID)
    model = ranker.ensemble_
    assert len(model.trees.set_nodes) > 0
    assert model.coding.lists == (tuple(sorted(SHOPS)),)
    assert model.coding.columns == (1,)
    return model, ranker.predict(X)


def table(frame, *, as_dictionary=True):
    arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    place = arrow.schema.get_field_index("shop")
    texts = pa.chunked_array([pa.array(frame["shop"].astype(object).tolist(), pa.string(), from_pandas=True)])
    return arrow.set_column(place, "shop", texts.dictionary_encode() if as_dictionary else texts)


def in_pandas(frame):
    """Categories in another order, and one that no row has."""
    return frame.assign(shop=pd.Categorical(frame["shop"], categories=[*SHOPS[::-1], "closed"]))


def in_polars(frame, kind):
    pl = pytest.importorskip("polars", reason="POLARS IS ABSENT")
    dtype = {"categorical": pl.Categorical, "enum": pl.Enum([*SHOPS[::-1], "closed"]), "text": pl.String}[kind]
    return pl.DataFrame(table(frame, as_dictionary=False)).with_columns(pl.col("shop").cast(dtype))


TABLES = {
    "pandas, categories": (in_pandas, False),
    "pandas, texts": (lambda frame: frame, True),
    "arrow, dictionary": (table, False),
    "arrow, dictionary in pieces": (lambda frame: pa.concat_tables([table(frame[:400]), table(frame[400:])]), False),
    "arrow, texts": (lambda frame: table(frame, as_dictionary=False), True),
    "arrow, a stream": (lambda frame: table(frame).to_reader(max_chunksize=100), False),
    "polars, categorical": (lambda frame: in_polars(frame, "categorical"), False),
    "polars, enum": (lambda frame: in_polars(frame, "enum"), False),
    "polars, texts": (lambda frame: in_polars(frame, "text"), True),
    "polars, lazy": (lambda frame: in_polars(frame, "categorical").lazy(), False),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_all_kinds_give_the_same_model(name, expected):
    as_table, is_text = TABLES[name]
    parameters = {"categorical_features": ["shop"]} if is_text else {}
    model, scores = expected
    whole = learner(**parameters).fit(as_table(FRAME))
    assert whole.ensemble_ == model
    assert whole.ensemble_.coding == model.coding
    apart = learner(**parameters).fit(as_table(X), Y, qid=QID)
    assert apart.ensemble_ == model
    for ranker in (whole, apart):
        assert_array_equal(ranker.predict(as_table(X)), scores)
        assert_array_equal(ranker.predict(X), scores)
    if name != "arrow, a stream":
        assert_array_equal(model.score(as_table(X)), scores)
        assert_array_equal(rw.explain(model, as_table(X)).values, rw.explain(model, X).values)


def written(frame, folder, name):
    from pyarrow import parquet

    path = folder / f"{name}.{'csv' if name.startswith('csv') else 'parquet'}"
    if name.startswith("csv"):
        frame.to_csv(path, index=False, na_rep="NA" if name == "csv, NA" else "")
    elif name == "parquet of pandas":
        in_pandas(frame).to_parquet(path, row_group_size=100)
    else:
        parquet.write_table(table(frame, as_dictionary=name == "parquet, dictionary"), path, row_group_size=70)
    return path


@pytest.mark.parametrize("name", ["csv", "csv, NA", "parquet, texts", "parquet, dictionary", "parquet of pandas"])
def test_files_give_the_same_model(name, expected, tmp_path):
    model, scores = expected
    path, other = written(FRAME, tmp_path, name), written(OTHER, tmp_path, "csv, other")
    parameters = {} if name in ("parquet, dictionary", "parquet of pandas") else {"categorical_features": [1]}
    ranker = learner(**parameters).fit(path, valid={"same": path, "other": other})
    assert ranker.ensemble_ == model
    assert list(ranker.evals_result_) == ["train", "other"]
    data = rw.read_data(other, coding=model.coding)
    seen = ranker.evals_result_["other"]["nDCG@10"][-1]
    assert_allclose(rw.evaluate(model, data, "nDCG@10").means["nDCG@10"], seen, atol=1e-12)
    assert_array_equal(ranker.predict(rw.read_data(path, coding=model.coding)), scores)
    cut = [written(FRAME[:300], tmp_path, "parquet, texts"), tmp_path / "rest.parquet"]
    written(FRAME[300:], tmp_path, "parquet, dictionary").rename(cut[1])
    assert learner(categorical_features=["shop"]).fit(cut).ensemble_ == model


def test_a_category_that_training_did_not_have_is_missing(expected, tmp_path):
    model, _ = expected
    new = X.assign(shop=["shop 31"] * N)
    assert_array_equal(model.score(new), model.score(X.assign(shop=[None] * N)))
    path = written(OTHER.assign(shop="shop 31"), tmp_path, "csv")
    with pytest.warns(UserWarning, match="900 of 900 values of column 'shop' are none of the model's categories"):
        learner(categorical_features=["shop"]).fit(FRAME, valid=path)


def test_a_column_of_a_text_file_is_texts_if_one_value_is_no_number(tmp_path):
    """Whatever pyarrow takes the beginning of the file for."""
    rows = [f"{row // 10},{row % 3},{row % 7}" for row in range(200_000)]
    codes = tmp_path / "codes.csv"
    codes.write_text("qid,label,kind\n" + "\n".join(rows) + "\n")
    few = {"n_trees": 1, "n_leaves": 4, "categorical_features": ["kind"]}
    by_code = learner(**few).fit(codes).ensemble_
    assert by_code.coding is None
    rows[-1] = "19999,1,other"
    texts = tmp_path / "texts.csv"
    texts.write_text("qid,label,kind\n" + "\n".join(rows) + "\n")
    assert learner(**few).fit(texts).ensemble_.coding.lists == (("0", "1", "2", "3", "4", "5", "6", "other"),)


def test_categories_that_are_numbers(tmp_path):
    frame = FRAME.assign(kind=(FRAME["kind"] * 10.5).astype("category"), shop=FRAME["kind"])
    model = learner().fit(frame).ensemble_
    assert model.coding.lists == ((0.0, 10.5, 21.0, 31.5, 42.0),)
    frame.to_parquet(tmp_path / "train.parquet")
    assert learner().fit(tmp_path / "train.parquet").ensemble_ == model
    features = frame.drop(columns=["qid", "label"])
    codes = features.assign(kind=features["kind"].cat.codes)
    assert_array_equal(model.score(features), model.score(codes.to_numpy()))


def test_going_on_keeps_the_codes_and_adds_new_ones(expected):
    _, scores = expected
    first = learner(categorical_features=["shop"]).fit(X[:450], Y[:450], qid=QID[:450])
    closed = X.assign(shop=X["shop"].where(X["shop"] != "shop 3", "a new shop"))
    longer = learner(categorical_features=["shop"]).fit(closed, Y, qid=QID, init_model=first)
    (before,), (after,) = first.ensemble_.coding.lists, longer.ensemble_.coding.lists
    assert after == (*before, "a new shop")
    assert_array_equal(longer.ensemble_.select(range(6)).score(X), first.ensemble_.score(X))
    again = learner(n_trees=3, categorical_features=["shop"]).fit(X, Y, qid=QID)
    both = learner(n_trees=3, categorical_features=["shop"]).fit(X, Y, qid=QID, init_model=again)
    assert_array_equal(both.predict(X), scores)


def test_validation_data_of_other_kinds(expected):
    model, _ = expected
    ranker = learner().fit(in_pandas(FRAME), valid=[table(OTHER), in_polars(OTHER, "text")])
    assert ranker.ensemble_ == model
    assert ranker.evals_result_["valid_0"] == ranker.evals_result_["valid_1"]


def test_trees_are_shown_with_categories(expected):
    model, _ = expected
    conditions = rw.trees_to_dataframe(model).query("decision_type == 'set'")["condition"]
    assert all(text.startswith("not in {shop ") for text in conditions)
    assert conditions.iloc[0] in rw.dump_tree(model, 0)
    assert "not in {shop " in rw.plot_tree(model, 0).svg


@pytest.mark.parametrize("name", [name for name in TABLES if name != "arrow, a stream"])
def test_a_data_set_takes_the_codes_of_a_model(name, expected):
    model, scores = expected
    as_table, _ = TABLES[name]
    for data in (
        rw.Dataset(as_table(FRAME), coding=model.coding),
        rw.Dataset(as_table(X), Y, qid=QID, coding=model.coding),
        rw.Dataset(as_table(X[["kind", "shop", "price"]]), Y, qid=QID, coding=model.coding),
    ):
        place = data.feature_names.index("shop")
        assert data.X[0, place] == model.coding.lists[0].index(FRAME["shop"][0])
        in_order = data.select_features([data.feature_names.index(name) for name in model.feature_names])
        assert_array_equal(model.score(in_order.X), scores)
        assert rw.evaluate(model, data, "nDCG@10").means == rw.evaluate(scores, data, "nDCG@10").means
    with pytest.raises(rw.DataError, match=r"'shop' holds (categories: .* with coding=model\.coding|texts|.*string)"):
        rw.Dataset(as_table(FRAME))


def test_explanations_show_categories(expected):
    model, _ = expected
    found = rw.explain(model, X)
    (above, below) = (X["shop"].eq("shop 7").argmax(), X["shop"].eq("shop 21").argmax())
    frame = found.to_frame(above)
    assert frame.loc["shop", "value"] == "shop 7"
    assert frame.loc["price", "value"] == np.float32(X["price"][above])
    pair = found.pair(above, below).to_frame()
    assert pair.loc["shop", ["value above", "value below"]].tolist() == ["shop 7", "shop 21"]
    missing = found.to_frame(X["shop"].isna().argmax())
    assert np.isnan(missing.loc["shop", "value"])
    assert found.data[above, 1] == model.coding.lists[0].index("shop 7")
    assert found.to_frame(above)["contribution"].dtype == np.float64


def test_lightgbm_scores_the_categories_of_an_export(expected, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model, scores = expected
    rw.save_as(model, tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    assert_array_equal(booster.predict(in_pandas(X), raw_score=True), scores)


def test_negative_codes_are_missing_and_others_than_whole_ones_refused():
    codes = pd.Categorical(X["shop"], categories=sorted(SHOPS)).codes.astype(np.float32)
    assert (codes == -1).any()
    features = np.column_stack([X["price"], codes, X["kind"]]).astype(np.float32)
    nan = np.where(features == -1, np.nan, features)
    model = learner(categorical_features=[1]).fit(features, Y, qid=QID).ensemble_
    assert model == learner(categorical_features=[1]).fit(nan, Y, qid=QID).ensemble_
    assert_array_equal(model.score(features), model.score(nan))
    features[7, 1] = 12.5
    told = r"feature 1 \(from 0\) holds 12.5, and is one of categorical_features: codes .* are whole numbers"
    with pytest.raises(rw.DataError, match=told):
        learner(categorical_features=[1]).fit(features, Y, qid=QID)
    with pytest.raises(rw.DataError, match=r"feature 'price' holds .* leave it out of these if it is a quantity"):
        learner(categorical_features=["price"]).fit(X.drop(columns="shop"), Y, qid=QID)


@pytest.mark.parametrize("name", ["csv", "parquet, texts"])
def test_what_cannot_be_categories_is_refused(name, tmp_path):
    many = FRAME.assign(shop=[f"shop {number}" for number in range(N)])
    path = written(many, tmp_path, name)
    told = "column 'shop' has 900 categories, and a feature has at most 253: merge rare ones"
    for data in (many, path):
        with pytest.raises(rw.DataError, match=told):
            learner(categorical_features=["shop"]).fit(data)
        with pytest.raises(rw.DataError, match=r"column 'shop' holds .*categorical_features"):
            learner().fit(data)
        with pytest.raises(rw.RankwoodError, match=r"names the feature 'shopp'.* \(did you mean 'shop'"):
            learner(categorical_features=["shopp", "shop"]).fit(FRAME)
    dates = FRAME.assign(shop=pd.Categorical(pd.date_range("2026-01-01", periods=N)))
    with pytest.raises(rw.DataError, match="column 'shop' has categories that are neither texts nor numbers"):
        learner().fit(dates)


@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_texts_or_a_typo_is_told_of_the_data_and_not_of_a_model(name):
    as_table, is_text = TABLES[name]
    frame = FRAME.assign(colour=["red", "blue"] * (N // 2))
    given = {"categorical_features": ["shop"]} if is_text else {}
    told = "column 'colour' holds texts: features are numbers, so leave it out, or train with it among categorical"
    with pytest.raises(rw.DataError, match=told):
        learner(**given).fit(as_table(frame))
    features = frame.drop(columns=["qid", "label"])
    with pytest.raises(rw.DataError, match=told):
        learner(**given).fit(as_table(features), Y, qid=QID)
    with pytest.raises(rw.RankwoodError, match=r"names the feature 'color', which .* \(did you mean 'colour'\?\)"):
        learner(categorical_features=["shop", "color"]).fit(as_table(frame))
    with pytest.raises(rw.RankwoodError, match=r"did you mean 'shop'"):
        learner(categorical_features=["shopp"]).fit(FRAME)


def test_no_warning_is_raised_for_tables_of_training():
    with warnings.catch_warnings(action="error"):
        ranker = learner().fit(in_pandas(FRAME), valid=in_pandas(OTHER))
        ranker.predict(in_pandas(X))
