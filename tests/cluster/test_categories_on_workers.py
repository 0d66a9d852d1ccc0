"""Categories on a Dask cluster: the model of one machine, bit for bit, however the data comes and is cut."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import rankwood as rw

dd = pytest.importorskip("dask.dataframe", reason="DASK ABSENT: pip install 'rankwood[dask]'")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

SHOPS = [f"shop {number}" for number in range(24)]
SMALL = {"n_trees": 5, "n_leaves": 8, "learning_rate": 0.3, "min_docs_per_leaf": 5, "category_smoothing": 2.0}


def frame(seed, n_queries=60):
    rng = np.random.default_rng(seed)
    n = 12 * n_queries
    codes, price = rng.integers(24, size=n), rng.normal(size=n).round(3)
    y = np.digitize(2 * np.random.default_rng(99).normal(size=24)[codes] + price, [-1, 0.5, 2])
    shop = np.array(SHOPS, dtype=object)[codes]
    shop[rng.random(n) < 0.03] = None
    columns = {"weight": rng.integers(1, 4, size=n).astype(float), "qid": np.repeat(np.arange(n_queries), 12)}
    return pd.DataFrame({**columns, "price": price, "shop": shop, "kind": rng.integers(4, size=n), "label": y})


TRAIN, VALID = frame(0), frame(1)
TEXTS = {"categorical_features": ["shop", "kind"]}


def learner(**parameters):
    return rw.LambdaMART(**{**SMALL, **parameters})


def features(table):
    return table.drop(columns=["qid", "label", "weight"], errors="ignore")


@pytest.fixture(scope="module")
def expected():
    ranker = learner(**TEXTS)
    return ranker.fit(
        features(TRAIN), TRAIN["label"], qid=TRAIN["qid"], sample_weight=TRAIN["weight"],
        eval_set=[(features(VALID), VALID["label"])], eval_qid=[VALID["qid"]],
    )  # fmt: skip


def in_categories(table):
    """Categories in an order of their own; a partition of Dask knows but those of its rows."""
    return table.assign(shop=pd.Categorical(table["shop"], categories=SHOPS[::-1]))


def lazily(table):
    from dask import delayed

    parts = [table.iloc[:300], table.iloc[300:]]
    return [delayed(pa.Table.from_pandas)(part, preserve_index=False) for part in parts]


def by_its_own(part):
    return part.assign(shop=part["shop"].astype("category"))


DATA = {
    "categories": lambda: (dd.from_pandas(in_categories(TRAIN), npartitions=5), {"categorical_features": ["kind"]}),
    "categories of each partition": lambda: (
        dd.from_pandas(TRAIN, npartitions=5).map_partitions(by_its_own),
        {"categorical_features": [2]},
    ),
    "texts": lambda: (dd.from_pandas(TRAIN, npartitions=5), TEXTS),
    "delayed tables": lambda: (lazily(TRAIN), TEXTS),
    "a frame here": lambda: (TRAIN.drop(columns="weight"), TEXTS),
}


@pytest.mark.parametrize("name", DATA)
def test_the_model_is_that_of_one_machine(client, expected, name):
    data, parameters = DATA[name]()
    ranker = learner(**parameters)
    if name == "a frame here":
        expected = learner(**TEXTS).fit(features(TRAIN), TRAIN["label"], qid=TRAIN["qid"])
        columns = features(TRAIN), TRAIN["label"]
        ranker.fit(*columns, qid=TRAIN["qid"], client=client)
    else:
        ranker.fit(data, valid=dd.from_pandas(VALID.drop(columns="weight"), npartitions=3), client=client)
        seen = ranker.evals_result_["valid"]["nDCG@10"]
        assert seen == expected.evals_result_["valid_0"]["nDCG@10"]
    assert ranker.ensemble_ == expected.ensemble_
    assert ranker.ensemble_.coding == expected.ensemble_.coding
    noted = ranker.ensemble_.metadata["parameters"]["categorical_features"]
    assert noted == list(parameters["categorical_features"])
    np.testing.assert_array_equal(ranker.predict(features(VALID)), expected.predict(features(VALID)))


@pytest.mark.parametrize("kind", ["csv", "parquet", "parquet, categories"])
def test_files_are_looked_through_by_workers(client, expected, tmp_path, kind):
    for name, table in (("train", TRAIN), ("valid", VALID.drop(columns="weight"))):
        if kind == "csv":
            table.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            table = in_categories(table) if kind == "parquet, categories" else table
            table.to_parquet(tmp_path / f"{name}.parquet", row_group_size=150, index=False)
    files = [tmp_path / f"{name}.{kind[:7] if kind != 'csv' else 'csv'}" for name in ("train", "valid")]
    parameters = {"categorical_features": ["kind"]} if kind == "parquet, categories" else TEXTS
    ranker = learner(**parameters).fit(files[0], valid=files[1], client=client)
    assert ranker.ensemble_ == expected.ensemble_
    assert ranker.ensemble_.coding == expected.ensemble_.coding
    assert ranker.evals_result_["valid"] == expected.evals_result_["valid_0"]


def test_codes_forests_and_models_to_go_on_from(client, expected):
    codes = pd.Categorical(TRAIN["shop"], categories=sorted(SHOPS)).codes
    data = rw.Dataset(features(TRAIN).assign(shop=codes), TRAIN["label"], qid=TRAIN["qid"], weights=TRAIN["weight"])
    assert learner(**TEXTS).fit(data, client=client).ensemble_ == expected.ensemble_
    mixed = rw.InitializedMART(3, 6, forest=rw.RandomForest(4), categorical_features=["shop"], category_smoothing=2.0)
    given = features(TRAIN), TRAIN["label"]
    alone = clone(mixed)
    alone.fit(*given, qid=TRAIN["qid"])
    parts = dd.from_pandas(TRAIN.drop(columns="weight"), npartitions=4)
    assert mixed.fit(parts, client=client).ensemble_ == alone.ensemble_
    closed = TRAIN.assign(shop=TRAIN["shop"].where(TRAIN["shop"] != "shop 3", "a new shop")).drop(columns="weight")
    longer = learner(**TEXTS).fit(dd.from_pandas(closed, npartitions=4), init_model=expected, client=client)
    here = learner(**TEXTS).fit(features(closed), closed["label"], qid=closed["qid"], init_model=expected)
    assert longer.ensemble_ == here.ensemble_
    assert longer.ensemble_.coding.lists == ((*sorted(SHOPS), "a new shop"),)


def test_mistakes_are_told(client):
    data = dd.from_pandas(TRAIN, npartitions=4)
    with pytest.raises(rw.DataError, match="column 'shop' holds texts"):
        learner().fit(data, client=client)
    with pytest.raises(rw.RankwoodError, match="names the feature 'shopp'"):
        learner(categorical_features=["shopp", "shop"]).fit(data, client=client)
    with pytest.raises(rw.DataError, match=r"partition \d: feature 'price' holds .* is one of categorical_features"):
        learner(categorical_features=["shop", "price"]).fit(data, client=client)
    with pytest.raises(rw.RankwoodError, match="codes of 253 or more"):
        learner(categorical_features=["shop", "kind"]).fit(
            dd.from_pandas(TRAIN.assign(kind=TRAIN["kind"] + 250), npartitions=4), client=client
        )
    rare = TRAIN.assign(shop=[f"shop {number}" for number in range(len(TRAIN))])
    with pytest.raises(rw.DataError, match="column 'shop' has 720 categories, and a feature has at most 253"):
        learner(categorical_features=["shop"]).fit(dd.from_pandas(rare, npartitions=4), client=client)


def test_no_more_is_computed_than_columns_of_categories_need(client, tmp_path):
    """Each computing of a partition leaves a file."""
    from dask import delayed

    def part(number, table):
        (tmp_path / f"{number}-{np.random.default_rng().integers(1 << 60)}").touch()
        return table

    def computed(table, **parameters):
        for file in tmp_path.iterdir():
            file.unlink()
        pieces = [table.iloc[:0], table.iloc[:240], table.iloc[240:480], table.iloc[480:]]
        learner(**parameters).fit([delayed(part)(n, one) for n, one in enumerate(pieces)], client=client)
        names = [file.name.split("-")[0] for file in tmp_path.iterdir()]
        return [names.count(str(number)) for number in range(4)]

    plain = computed(TRAIN.drop(columns="shop"))
    assert plain == [2, 4, 3, 3]
    assert computed(in_categories(TRAIN)) == [2, 4, 4, 4]
    assert computed(TRAIN, categorical_features=["shop"]) == [2, 4, 4, 4]
