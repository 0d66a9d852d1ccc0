"""Rankers in PyTerrier's pipelines; nothing here needs Java."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rankwood as rw
from rankwood.errors import MissingPackageError


def learner():
    return rw.LambdaMART(n_trees=10, n_leaves=4, min_docs_per_leaf=5)


def test_the_package_is_named_when_it_is_absent(without):
    from rankwood.integrations import pyterrier

    pyterrier._kind.cache_clear()
    without("pyterrier")
    with pytest.raises(MissingPackageError, match=r"needs the package pyterrier: pip install pyterrier$"):
        rw.pyterrier_ranker(learner())


@pytest.fixture
def pt():
    pytest.importorskip("pandas", reason="pandas is absent: pip install pandas")
    return pytest.importorskip("pyterrier", reason="PyTerrier is absent: pip install pyterrier")


@pytest.fixture
def data():
    data = rw.make_ranking(n_queries=30, docs_per_query=10, n_features=4, seed=3)
    return data.replace(doc_ids=[f"d{row}" for row in range(data.n_docs)])


def frames(data, *, shuffle=True):
    """Documents, in no order, and the judgements of relevant ones."""
    import pandas

    results = pandas.DataFrame({"qid": [f"q{one}" for one in data.qid], "docno": list(data.doc_ids)})
    results["query"] = results["qid"]
    results["features"] = list(data.X)
    qrels = results[["qid", "docno"]].assign(label=data.y.astype(int))
    if shuffle:
        results, qrels = results.sample(frac=1, random_state=0), qrels.sample(frac=1, random_state=1)
    return results, qrels[qrels["label"] > 0]


def topics(results):
    return results[["qid", "query"]].drop_duplicates()


def test_a_pipeline_is_fitted_and_ranks(pt, data):
    """The same model as from arrays, whatever the order of the rows."""
    train, valid = data.split(0.5)
    results, qrels = frames(data)
    source = pt.Transformer.from_df(results)
    ranker = rw.pyterrier_ranker(learner())
    pipeline = source >> ranker
    train_topics, valid_topics = (topics(frames(part)[0]) for part in (train, valid))
    pipeline.fit(train_topics, qrels, valid_topics, qrels)
    ranked = pipeline(valid_topics)
    assert set(ranker.learner.evals_result_) == {"valid"}
    expected = ranker.model.score(np.stack(list(ranked["features"])))
    assert np.array_equal(ranked["score"].to_numpy(), expected)
    for _, query in ranked.groupby("qid"):
        by_rank = query.sort_values("rank")
        assert by_rank["rank"].tolist() == list(range(pt.model.FIRST_RANK, pt.model.FIRST_RANK + len(query)))
        assert by_rank["score"].is_monotonic_decreasing
    row_of = {docno: row for row, docno in enumerate(data.doc_ids)}  # ties stay in the order of rows
    measured = rw.evaluate(expected, data[[row_of[docno] for docno in ranked["docno"]]], "nDCG@10")["nDCG@10"]
    assert ranker.learner.evals_result_["valid"]["nDCG@10"][-1] == pytest.approx(measured)


def test_labels_are_those_of_the_documents(pt, data):
    """Rows that are not sorted by query, and judgements in another order."""
    results, qrels = frames(data)
    ranker = rw.pyterrier_ranker(learner()).fit(results, qrels)
    row_of = {docno: row for row, docno in enumerate(data.doc_ids)}
    same = data[[row_of[docno] for docno in results["docno"]]]
    assert ranker.model == learner().fit(same.replace(feature_names=None)).ensemble_


def test_an_experiment_measures_pipelines(pt, data):
    """Over the queries that have a relevant document."""
    data = data.select_queries([number for number in range(data.n_queries) if data.query(number).y.max() > 0])
    results, qrels = frames(data)
    source = pt.Transformer.from_df(results.assign(score=0.0, rank=0))
    model = learner().fit(data.replace(feature_names=None)).ensemble_
    pipelines = [source >> rw.pyterrier_ranker(model), source >> rw.pyterrier_ranker(model) % 3]
    table = pt.Experiment(pipelines, topics(results), qrels, ["map", "recip_rank"], names=["all", "three"])
    ours = rw.evaluate(model, data.replace(feature_names=None), ["AP", "RR"], convention="trec")
    assert table["map"].iloc[0] == pytest.approx(ours["AP"])
    assert table["recip_rank"].iloc[0] == pytest.approx(ours["RR"])
    assert table["map"].iloc[1] < table["map"].iloc[0]


def test_pyterrier_trains_our_learners_itself(pt, data):
    """`apply_learned_model` passes LightGBM's arguments."""
    train, valid = data.split(0.5)
    step = pt.ltr.apply_learned_model(learner(), form="ltr")
    results, valid_results, everything = frames(train)[0], frames(valid)[0], frames(data)[1]
    step.fit(results, everything, valid_results, everything)
    ours = rw.pyterrier_ranker(learner()).fit(results.sort_values("qid"), everything, valid_results, everything)
    assert step.learner.ensemble_ == ours.model
    assert np.array_equal(step.transform(valid_results)["score"], ours.transform(valid_results)["score"])


def test_columns_are_known_without_documents(pt, data):
    results, _ = frames(data)
    ranker = rw.pyterrier_ranker(learner())  # not trained
    assert pt.inspect.transformer_outputs(ranker, list(results.columns)) == [*results.columns, "score", "rank"]
    empty = rw.pyterrier_ranker(rw.Ensemble.from_trees([], n_features=4)).transform(results[:0])
    assert list(empty.columns) == [*results.columns, "score", "rank"]


def test_early_exit_goes_by_queries(pt, data):
    model = rw.LambdaMART(n_trees=20, n_leaves=4, min_docs_per_leaf=5).fit(data).ensemble_
    model = model.replace(exit=rw.EarlyExit([16], [0.0], top=1))
    results, _ = frames(data, shuffle=False)
    ranked = rw.pyterrier_ranker(model).transform(results)
    assert np.array_equal(ranked["score"], model.score(data.X, qid=data.qid))


def test_it_can_be_pickled(pt, data):
    results, qrels = frames(data)
    ranker = rw.pyterrier_ranker(learner()).fit(results, qrels)
    again = pickle.loads(pickle.dumps(ranker))
    assert again.transform(results).equals(ranker.transform(results))


def test_what_cannot_be(pt, data):
    results, qrels = frames(data)
    with pytest.raises(rw.RankwoodError, match="a model or a learner is needed, got str"):
        rw.pyterrier_ranker("model.rw")
    with pytest.raises(rw.RankwoodError, match="LambdaMART is not trained yet"):
        rw.pyterrier_ranker(learner()).transform(results)
    with pytest.raises(rw.RankwoodError, match="a model that is trained already has no fit"):
        rw.pyterrier_ranker(rw.Ensemble.from_trees([])).fit(results, qrels)
    with pytest.raises(rw.DataError, match=r"need a column features, got qid, docno, query$"):
        rw.pyterrier_ranker(learner()).fit(results.drop(columns="features"), qrels)
    with pytest.raises(rw.DataError, match="no documents to train on"):
        rw.pyterrier_ranker(learner()).fit(results[:0], qrels)
    results["features"] = [one[: 2 + number % 2] for number, one in enumerate(results["features"])]
    with pytest.raises(rw.DataError, match="different numbers of features: 2, 3"):
        rw.pyterrier_ranker(learner()).fit(results, qrels)
