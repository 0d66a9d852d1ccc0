"""Training data in every form and spelling gives one and the same model; what does not fit is one clear sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import rankwood as rw

pytestmark = pytest.mark.native

NAMES = [f"f{j}" for j in range(8)]


def ranker(**more) -> rw.LambdaMART:
    return rw.LambdaMART(**{"n_trees": 5, "n_leaves": 4, "min_docs_per_leaf": 5} | more)


@pytest.fixture(scope="module")
def model(data) -> rw.Ensemble:
    return ranker().fit(data).ensemble_


def frames(data, backend):
    columns = {name: data.X[:, j] for j, name in enumerate(NAMES)}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[backend]({**columns, "qid": data.qid})


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_data_frames(data, model, backend):
    frame = frames(data, backend)
    fitted = ranker().fit(frame, pd.Series(data.y))
    assert fitted.ensemble_ == model
    assert fitted.feature_names_in_.tolist() == NAMES
    assert_array_equal(fitted.predict(frame), model.score(data.X))
    assert fitted.score(frame, data.y) == rw.evaluate(model, data)["nDCG@10"]
    features = frame[NAMES]
    assert ranker().fit(features, data.y, qid=data.qid).ensemble_ == model
    assert ranker().fit(frame, data.y, group=np.diff(data.offsets)).ensemble_ == model


def test_missing_values_of_data_frames(data):
    X = data.X.copy()
    X[::3, 0] = np.nan
    expected = ranker().fit(X, data.y, qid=data.qid).ensemble_
    nullable = pd.DataFrame(X, columns=NAMES).astype({"f0": "Float32"})
    assert ranker().fit(nullable, data.y, qid=data.qid).ensemble_ == expected
    nulls = pl.DataFrame(X, schema=NAMES).with_columns(pl.col("f0").fill_nan(None))
    assert ranker().fit(nulls, data.y, qid=data.qid).ensemble_ == expected


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_sparse_matrices(data, form):
    X = np.maximum(data.X - np.median(data.X, axis=0), 0)
    expected = ranker().fit(X, data.y, qid=data.qid)
    fitted = ranker().fit(form(X), data.y, qid=data.qid, eval_set=[(form(X), data.y)], eval_qid=[data.qid])
    assert fitted.ensemble_ == expected.ensemble_
    assert_array_equal(fitted.predict(form(X)), expected.predict(X))


def test_lists_and_number_types(data, model):
    assert ranker().fit(data.X.tolist(), data.y.astype(int).tolist(), qid=data.qid.tolist()).ensemble_ == model
    assert ranker().fit(data.X.astype(np.float64), data.y.astype(np.int8), qid=data.qid.astype(str)).ensemble_ == model
    assert ranker().fit(np.asfortranarray(data.X), data.y, qid=data.qid).ensemble_ == model


def test_ids_and_sizes(data, model):
    sizes = np.diff(data.offsets)
    for queries in ({"qid": data.qid}, {"group": sizes}, {"group": data.qid}, {"group": list(sizes)}):
        assert ranker().fit(data.X, data.y, **queries).ensemble_ == model


def test_unsorted_rows(data, model):
    place = np.arange(data.n_docs) - data.offsets[data.queries.index]
    rows = np.argsort(place, kind="stable")  # the first documents of all queries, then the second ones, ...
    fitted = ranker().fit(data.X[rows], data.y[rows], qid=data.qid[rows])
    assert fitted.ensemble_ == model
    assert fitted.score(data.X[rows], data.y[rows], qid=data.qid[rows]) == rw.evaluate(model, data)["nDCG@10"]


def test_bins_and_data_sets(data, model):
    binned = rw.BinnedDataset.make(data)
    fitted = ranker().fit(binned)
    assert fitted.ensemble_ == model
    assert_array_equal(fitted.predict(binned), fitted.predict(data))
    assert fitted.score(binned) == fitted.score(data)
    coarse = ranker(max_bins=4).fit(data).ensemble_
    assert coarse != model
    assert ranker(max_bins=4).fit(binned).ensemble_ == model  # data in bins keeps them
    assert ranker().fit(rw.BinnedDataset.make(data, 4)).ensemble_ == coarse


def test_every_spelling_of_evaluation_data(parts):
    train, valid = parts
    expected = ranker().fit(train, valid=valid).evals_result_["valid"]
    pair, sizes = (valid.X, valid.y), np.diff(valid.offsets)
    matrices = {"X": train.X, "y": train.y}
    frame = pd.DataFrame(valid.X).rename(columns=str).assign(qid=valid.qid)
    for evaluation in (
        {"eval_set": [pair], "eval_group": [sizes]},  # LightGBM, PyTerrier
        {"eval_set": [pair], "eval_qid": [valid.qid]},  # XGBoost
        {"eval_set": pair, "eval_qid": [valid.qid]},
        {"eval_set": [valid]},
        {"eval_set": valid},
        {"eval_set": [(frame.to_numpy()[:, :-1], valid.y)], "eval_qid": [frame.qid]},
    ):
        fitted = ranker().fit(**matrices, group=np.diff(train.offsets), **evaluation)
        assert fitted.evals_result_ == {"valid_0": expected}
    fitted = ranker().fit(**matrices, qid=train.qid, eval_set=[pair, pair], eval_group=[sizes, sizes],
                          eval_names=["a", "b"])  # fmt: skip
    assert fitted.evals_result_ == {"a": expected, "b": expected}


def test_the_training_data_is_measured_too(parts):
    train, valid = parts
    fitted = ranker().fit(train, eval_set=[valid, train])
    assert list(fitted.evals_result_) == ["valid_0", "train"]
    assert fitted.evals_result_["train"]["nDCG@10"][-1] == fitted.score(train)
    X, y = train.X, train.y
    again = ranker().fit(X, y, qid=train.qid, eval_set=[(X, y), valid], eval_names=["learnt", "new"])
    assert again.evals_result_ == {"learnt": fitted.evals_result_["train"], "new": fitted.evals_result_["valid_0"]}
    frame = pd.DataFrame(X, columns=NAMES).assign(qid=train.qid)
    assert list(ranker().fit(frame, y, eval_set=[(frame, y)]).evals_result_) == ["train"]
    binned = rw.BinnedDataset.make(train)
    for same in (binned, train):
        assert ranker().fit(binned, valid=same).evals_result_ == {"train": fitted.evals_result_["train"]}


def test_bins_of_other_data_do_for_validation(parts):
    train, valid = parts
    fitted = ranker().fit(train, valid=rw.BinnedDataset.make(valid, 3))  # not those of the training data
    assert fitted.evals_result_["valid"] == ranker().fit(train, valid=valid).evals_result_["valid"]


def test_document_weights(data):
    weights = np.where(data.y > 2, 10.0, 1.0)
    weighted = ranker().fit(data.X, data.y, qid=data.qid, sample_weight=weights).ensemble_
    assert weighted != ranker().fit(data.X, data.y, qid=data.qid).ensemble_
    assert weighted == ranker().fit(rw.Dataset(data.X, data.y, qid=data.qid, weights=weights)).ensemble_
    doubled = ranker().fit(data.X, data.y, qid=data.qid, sample_weight=np.full(data.n_docs, 2.0)).ensemble_
    assert_array_equal(doubled.threshold, ranker().fit(data).ensemble_.threshold)  # Newton steps do not know scale


def test_query_weights(data):
    """A query of weight 0 teaches nothing; here all others have one and the same label."""
    y = np.where(data.queries.index < 20, data.y, 1.0)
    on = (np.arange(data.n_queries) >= 20).astype(float)
    with pytest.warns(UserWarning, match="no tree has a split"):
        fitted = ranker().fit(data.X, y, qid=data.qid, query_weight=on)
    assert not fitted.predict(data.X).any()
    assert ranker().fit(data.X, y, qid=data.qid, query_weight=1 - on).ensemble_.n_nodes > 0
    weights = np.random.default_rng(0).random(data.n_queries)
    by_query = rw.MART(n_trees=3, min_docs_per_leaf=5).fit(data.X, y, qid=data.qid, query_weight=weights)
    by_document = rw.MART(n_trees=3, min_docs_per_leaf=5).fit(data.X, y, sample_weight=weights[data.queries.index])
    assert by_query.ensemble_ == by_document.ensemble_


def test_validation_queries_count_by_their_weight(parts):
    train, valid = parts
    weights = np.zeros(valid.n_queries)
    weights[3] = 2.0
    one = rw.Dataset(valid.X, valid.y, qid=valid.qid, query_weights=weights)
    fitted = ranker().fit(train, eval_set=[one, valid.query(3)])
    assert fitted.evals_result_["valid_0"] == fitted.evals_result_["valid_1"]


def test_mart_needs_queries_only_to_measure(data):
    mart = rw.MART(n_trees=4, n_leaves=4, min_docs_per_leaf=5)
    assert mart.fit(data.X, data.y).ensemble_ == mart.fit(data.X, data.y, qid=data.qid).ensemble_
    for wrong in (
        lambda: mart.fit(data.X, data.y).score(data.X, data.y),
        lambda: mart.fit(data.X, data.y, eval_set=[(data.X, data.y)]),
        lambda: mart.fit(data.X, data.y, eval_set=[(data.X[:9], data.y[:9])]),
    ):
        with pytest.raises(rw.DataError, match="queries are missing"):
            wrong()
    sampled = rw.MART(n_trees=4, n_leaves=4, min_docs_per_leaf=5, query_fraction=0.5).fit(data.X, data.y)
    assert sampled.ensemble_.topology().n_trees == 4
    assert sampled.ensemble_.node_count[0] == data.n_docs // 2  # every row is a query of its own


@pytest.mark.parametrize(
    ("labels", "parameters"),
    [
        (lambda y: 40.0 * y, {}),  # up to 160: beyond the 31 of other tools
        (lambda y: y / 3.0 + 0.1, {}),
        (lambda y: 1000.0 * y, {"gains": "linear", "measure": "nDCG(dcg='log2')@10"}),
        (lambda y: y, {"gains": [0, 1, 2, 10, 10]}),
        (lambda y: y, {"gains": (0.0, 0.5, 2, 10, 100.0), "measure": "nDCG(gains=(0, 0.5, 2, 10, 100))"}),
    ],
)
def test_labels_of_any_range_and_gains(data, labels, parameters):
    relabelled = rw.Dataset(data.X, labels(data.y), qid=data.qid)
    fitted = ranker(n_trees=20, **parameters).fit(relabelled, valid=relabelled)
    chance = rw.evaluate(np.zeros(data.n_docs), relabelled, fitted.measure)[fitted.measure]
    assert fitted.score(relabelled) > chance + 0.1


def test_labels_that_have_no_gain(data):
    with pytest.raises(rw.DataError, match="label 4000 is too large for the gain"):
        ranker().fit(data.X, 1000 * data.y, qid=data.qid)
    with pytest.raises(rw.DataError, match="label 3 is not in the gain table"):
        ranker(gains=[0, 1, 3]).fit(data.X, np.minimum(data.y, 3), qid=data.qid)
    with pytest.raises(rw.DataError, match="label -1 has a negative gain"):
        ranker().fit(data.X, data.y - 1, qid=data.qid)


def squared(scores, labels, offsets, weights):
    return scores - labels, np.ones(len(scores))


@pytest.mark.parametrize("learner", [rw.MART, rw.LambdaMART])
def test_a_custom_objective(data, learner):
    """Squared error by hand is MART from base 0."""
    custom = learner(n_trees=6, n_leaves=5, min_docs_per_leaf=5, objective=squared).fit(data)
    base = rw.Ensemble.from_trees([], n_features=data.n_features)
    plain = rw.MART(n_trees=6, n_leaves=5, min_docs_per_leaf=5).fit(data, init_model=base)
    np.testing.assert_allclose(custom.predict(data), plain.predict(data), rtol=1e-9)
    assert custom.ensemble_.metadata["parameters"]["objective"] == "squared"


def test_a_custom_objective_sees_queries_and_weights(data):
    seen = []

    def objective(scores, labels, offsets, weights):
        seen.append((offsets, weights))
        return scores - labels, np.ones(len(scores))

    weights = np.arange(data.n_queries, dtype=float)
    ranker(objective=objective, n_trees=1).fit(data.X, data.y, qid=data.qid, query_weight=weights)
    assert_array_equal(seen[0][0], data.offsets)
    assert_array_equal(seen[0][1], weights[data.queries.index])
    with pytest.raises(rw.RankwoodError, match="must return a tuple"):
        ranker(objective=lambda *given: 0.0).fit(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": None}, "queries are missing: give qid"),
        ({"group": [5, 5]}, "give qid .* or group .*, not both"),
        ({"qid": [1, 2]}, "qid does not fit the 629 rows"),
        ({"y": None}, "requires y to be passed"),
        ({"y": ["a"] * 629}, "could not convert string to float|must hold numbers|dtype"),
        ({"y": [np.nan] * 629}, "contains NaN"),
        ({"sample_weight": [1.0] * 40}, "one value per row .*; weights of queries go into query_weight"),
        ({"sample_weight": [-1.0] * 629}, "must not be negative"),
        ({"sample_weight": [0.0] * 629}, "nothing to learn from: all of sample_weight is zero"),
        ({"query_weight": [1.0]}, "query_weights must have one value per query"),
        ({"query_weight": [0.0] * 40}, "all of query_weight is zero"),
        ({"eval_names": ["a"]}, r"eval_names must have one entry per eval_set \(0\), got 1"),
        ({"eval_set": [([[1.0]],)]}, r"eval_set must hold pairs \(X, y\), Datasets, or paths"),
        ({"init_model": 7}, "init_model must be an Ensemble or a fitted ranker, got int"),
        ({"init_model": rw.LambdaMART()}, "init_model must be an Ensemble or a fitted ranker, got LambdaMART"),
        ({"init_model": rw.Ensemble.from_trees([], n_features=3)}, "has 3 features, the data 8"),
        ({"eval_metric": "nDGC@10"}, "unknown measure 'nDGC@10'"),
        ({"eval_metric": ["AP", "map"]}, "two measures have the name AP"),
        ({"callbacks": [3]}, "a callback is a function of one argument, got int"),
        ({"checkpoint": rw.Checkpoint("no/such/folder/file")}, "there is no folder no/such/folder"),
    ],
)
def test_what_does_not_fit_is_one_sentence(data, change, message):
    with pytest.raises((ValueError, OSError), match=message):
        ranker().fit(**{"X": data.X, "y": data.y, "qid": data.qid} | change)


@pytest.mark.parametrize("name", ["y", "qid", "group", "sample_weight", "query_weight"])
def test_a_data_set_comes_alone(data, name):
    with pytest.raises(rw.DataError, match=f"leave {name} out"):
        ranker().fit(data, **{name: data.y})


def test_wrong_evaluation_data_is_named(parts):
    train, valid = parts
    with pytest.raises(rw.DataError, match="data set 'valid_1': queries are missing"):
        ranker().fit(train, eval_set=[valid, (valid.X, valid.y)])
    with pytest.raises(rw.DataError, match="data set 'valid': X has 3 features"):
        ranker().fit(train, valid=rw.Dataset(valid.X[:, :3], valid.y, qid=valid.qid))
    with pytest.raises(rw.DataError, match="two data sets to measure on have the name 'a'"):
        ranker().fit(train, eval_set=[valid, valid], eval_names=["a", "a"])
    with pytest.raises(rw.DataError, match="training data is given twice"):
        ranker().fit(train, eval_set=[train, train], eval_names=["a", "b"])
    with pytest.raises(rw.DataError, match=r"eval_group must have one entry per eval_set \(1\), got 2"):
        ranker().fit(train, eval_set=[(valid.X, valid.y)], eval_group=[1, 2])
    with pytest.raises(rw.DataError, match="no labels"):
        ranker().fit(train, valid=rw.Dataset(valid.X, qid=valid.qid))
    with pytest.raises(rw.DataError, match="no labels"):
        ranker().fit(rw.Dataset(train.X, qid=train.qid))


def test_names_of_the_model_to_go_on_from_must_agree(data):
    named = ranker().fit(rw.Dataset(data.X, data.y, qid=data.qid, feature_names=NAMES))
    nameless = ranker().fit(data.X, data.y, qid=data.qid, init_model=named).ensemble_
    assert nameless.feature_names == tuple(NAMES)
    other = rw.Dataset(data.X, data.y, qid=data.qid, feature_names=NAMES[::-1])
    with pytest.raises(rw.ModelError, match="name their features differently"):
        ranker().fit(other, init_model=named)
    plain = ranker().fit(data.X, data.y, qid=data.qid)
    assert ranker().fit(other, init_model=plain).ensemble_.feature_names == tuple(NAMES[::-1])


def test_a_label_column_beside_y_is_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": [1, 1, 2, 2], "label": [0, 1, 0, 1], "x": [0.0, 1.0, 0.0, 1.0]})
    with pytest.raises(rw.DataError, match="column 'label' and y is given"):
        rw.LambdaMART(2).fit(frame, frame["label"])


def test_cut_discounts_reach_the_loss():
    data = rw.make_ranking(n_queries=30, docs_per_query=60, n_features=5)
    models = [
        rw.LambdaMART(3, 8, truncation=5, min_docs_per_leaf=5, cut_discounts=cut).fit(data).ensemble_
        for cut in (False, True)
    ]
    assert models[0] != models[1]
