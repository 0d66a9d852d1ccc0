"""A group of processes, each with a share of the queries, grows the very forest that one process grows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankwood as rw
from rankwood.data.bins import BinEdges, BinnedDataset, forest_bytes
from rankwood.data.share import Share
from rankwood.training import shared_forest
from thread_group import run_threads

pytestmark = pytest.mark.native

rng = np.random.default_rng(0)
TRAIN = rw.make_ranking(n_queries=40, docs_per_query=20, n_features=20, seed=0)
TRAIN = TRAIN.replace(X=np.where(rng.random(TRAIN.X.shape) < 0.05, np.float32(np.nan), TRAIN.X))
WEIGHTED = TRAIN.replace(weights=rng.random(TRAIN.n_docs), query_weights=rng.random(TRAIN.n_queries) + 0.1)
NO_GRADES = TRAIN.replace(y=TRAIN.y + rng.random(TRAIN.n_docs))
VALID = rw.make_ranking(n_queries=30, docs_per_query=8, n_features=20, seed=1)
EDGES = BinEdges.find(TRAIN.X, 20)  # few bins, so that many values share one
CUTS = [([11], [29]), ([0, 13], [1, 2]), ([0, 39, 39, 40], [1, 2, 20, 20])]

FORESTS = {
    "bootstrap": rw.RandomForest(9),
    "documents": rw.RandomForest(7, docs_per_tree=0.3, replace=False),
    "few queries": rw.RandomForest(9, queries_per_tree=0.2),
    "two queries": rw.RandomForest(9, queries_per_tree=2),
    "many queries": rw.RandomForest(5, queries_per_tree=0.6),
    "queries twice": rw.RandomForest(5, queries_per_tree=0.2, replace=True),
    "per query": rw.RandomForest(5, docs_per_query=3),
    "entropy": rw.RandomForest(5, criterion="entropy"),
    "entropy of few queries": rw.RandomForest(5, criterion="entropy", queries_per_tree=0.1, redraw=True),
    "ordinal": rw.RandomForest(3, task="ordinal"),
    "ordinal of few queries": rw.RandomForest(5, task="ordinal", queries_per_tree=0.1),
    "random cuts": rw.RandomForest(5, thresholds="random", queries_per_tree=0.2),
    "three sides": rw.RandomForest(5, missing="three-way"),
    "zero": rw.RandomForest(5, missing="zero"),
    "best first": rw.RandomForest(5, n_leaves=9, min_docs_per_leaf=0.05, queries_per_tree=0.2),
}


def shares(data, cuts):
    return [data.select_queries(part) for part in np.split(np.arange(data.n_queries), sorted(cuts))]


def in_bins(data, group):
    return replace(BinnedDataset.encode(data, EDGES), share=Share.of(data, group))


def fit_share(group, share, learner):
    train, valid = (in_bins(data, group) for data in share)
    fitted = clone(learner).fit(train, valid=valid, eval_set=[train])
    return fitted.ensemble_.fingerprint(), fitted.evals_result_


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize(("cuts", "valid_cuts"), CUTS)
def test_a_group_grows_the_forest_of_one_process(name, cuts, valid_cuts):
    learner = FORESTS[name]
    train, valid = (BinnedDataset.encode(data, EDGES) for data in (TRAIN, VALID))
    alone = clone(learner).fit(train, valid=valid, eval_set=[train])
    parts = list(zip(shares(TRAIN, cuts), shares(VALID, valid_cuts), strict=True))
    for fingerprint, curves in run_threads(fit_share, parts, learner):
        assert fingerprint == alone.ensemble_.fingerprint()
        assert curves == alone.evals_result_


@pytest.mark.parametrize("data", [WEIGHTED, NO_GRADES], ids=["weights", "no grades"])
@pytest.mark.parametrize("queries", [None, 0.2])
def test_weights_and_labels_of_any_kind(data, queries):
    learner = rw.RandomForest(5, queries_per_tree=queries)
    alone = clone(learner).fit(BinnedDataset.encode(data, EDGES))
    found = run_threads(
        lambda group, part: clone(learner).fit(in_bins(part, group)).ensemble_.fingerprint(), shares(data, [3, 3, 30])
    )
    assert set(found) == {alone.ensemble_.fingerprint()}


@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    seed=st.integers(0, 100),
    queries=st.sampled_from([None, 3, 0.25, 0.5]),
)
def test_any_cut_gives_the_same_forest_without_features(cuts, seed, queries):
    learner = rw.RandomForest(4, queries_per_tree=queries, random_state=seed)
    alone = clone(learner).fit(BinnedDataset.encode(TRAIN, EDGES))

    def fit(group, data):
        return clone(learner).fit(in_bins(data, group).with_ranges().without_features()).ensemble_.fingerprint()

    assert set(run_threads(fit, shares(TRAIN, cuts))) == {alone.ensemble_.fingerprint()}


def test_which_documents_are_sent(monkeypatch):
    """Of a small sample only its documents travel, never all."""
    monkeypatch.setattr(shared_forest, "_AllRows", None)
    for name in ("few queries", "two queries", "entropy of few queries", "ordinal of few queries"):
        run_threads(lambda group, data, name=name: clone(FORESTS[name]).fit(in_bins(data, group)), shares(TRAIN, [7]))
    assert forest_bytes(100, 17) > 100 * 32


@pytest.mark.parametrize("queries", [None, 0.2])
@pytest.mark.parametrize("task", ["regression", "ordinal"])
@pytest.mark.parametrize("cuts", [[11], [0, 13, 40]])
def test_out_of_bag(task, queries, cuts):
    learner = rw.RandomForest(20, task=task, queries_per_tree=queries, out_of_bag=True)
    alone = clone(learner).fit(BinnedDataset.encode(TRAIN, EDGES))
    found = run_threads(lambda group, data: clone(learner).fit(in_bins(data, group)), shares(TRAIN, cuts))
    for one in found:
        np.testing.assert_array_equal(one.oob_scores_, alone.oob_scores_)
        assert one.oob_score_ == alone.oob_score_
        np.testing.assert_array_equal(
            one.oob_evaluation_.per_query["nDCG@10"], alone.oob_evaluation_.per_query["nDCG@10"]
        )


INITIALIZED = {
    "regression": rw.InitializedMART(4, 8, forest=rw.RandomForest(6)),
    "ordinal": rw.InitializedMART(2, 8, task="ordinal", forest=rw.RandomForest(4)),
    "few queries": rw.InitializedMART(4, 8, forest=rw.RandomForest(6, queries_per_tree=0.2)),
    "zero": rw.InitializedMART(3, 8, forest=rw.RandomForest(6, missing="zero")),
    "another ranker": rw.InitializedMART(3, 8, forest=rw.LambdaMART(3, 8)),
    "per grade": rw.InitializedMART(2, 8, task="ordinal", forest=rw.LambdaMART(2, 8)),
}


@pytest.mark.parametrize("name", INITIALIZED)
@pytest.mark.parametrize(("cuts", "valid_cuts"), CUTS)
def test_boosting_starts_from_the_forest_of_one_process(name, cuts, valid_cuts):
    learner = INITIALIZED[name]
    edges = BinEdges.find(TRAIN.X)
    train, valid = (BinnedDataset.encode(data, edges) for data in (TRAIN, VALID))
    alone = clone(learner).fit(train, valid=valid)

    def fit(group, parts):
        binned = [replace(BinnedDataset.encode(data, edges), share=Share.of(data, group)) for data in parts]
        fitted = clone(learner).fit(binned[0], valid=binned[1])
        return fitted.ensemble_.fingerprint(), fitted.evals_result_

    for fingerprint, curves in run_threads(fit, list(zip(shares(TRAIN, cuts), shares(VALID, valid_cuts), strict=True))):
        assert fingerprint == alone.ensemble_.fingerprint()
        assert curves == alone.evals_result_


def test_many_documents_are_grown_on_in_their_bins(monkeypatch):
    """Beyond 65,535 documents one process has 255 bins for the forest, and so has a group."""
    monkeypatch.setattr("rankwood.data.bins.MAX_CODES", 500)
    edges = BinEdges.find(TRAIN.X)
    learner = INITIALIZED["regression"]
    alone = clone(learner).fit(BinnedDataset.encode(TRAIN, edges))

    def fit(group, data):
        binned = replace(BinnedDataset.encode(data, edges), share=Share.of(data, group))
        return clone(learner).fit(binned).ensemble_.fingerprint()

    assert set(run_threads(fit, shares(TRAIN, [9, 22]))) == {alone.ensemble_.fingerprint()}


def test_interrupts_are_heard_of_by_all_at_once():
    from rankwood.training.driver import interrupts_from

    def fit(group, data):
        asked = 0

        def interrupted():
            nonlocal asked
            asked += 1
            return bool(group.broadcast(asked > 3))

        with interrupts_from(interrupted):
            return clone(learner).fit(in_bins(data, group))

    learner = rw.RandomForest(10_000, queries_per_tree=2, on_interrupt="keep")
    found = run_threads(fit, shares(TRAIN, [9, 22]))
    assert all(one.interrupted_ for one in found)
    assert len({one.ensemble_.fingerprint() for one in found}) == 1
    assert 0 < found[0].n_trees_ < 10_000


def test_a_checkpoint_is_gone_on_from_by_other_shares(tmp_path):
    whole = clone(FORESTS["few queries"]).fit(BinnedDataset.encode(TRAIN, EDGES))

    def fit(group, data, n_trees, path):
        checkpoint = OfFirst(path, 2)
        checkpoint.rank = group.rank
        learner = clone(FORESTS["few queries"]).set_params(n_trees=n_trees)
        return learner.fit(in_bins(data, group), checkpoint=checkpoint).ensemble_.fingerprint()

    class OfFirst(rw.Checkpoint):
        __setattr__ = object.__setattr__

        def write(self, model):
            if self.rank == 0:
                super().write(model)

    path = tmp_path / "forest.rw"
    run_threads(fit, shares(TRAIN, [5]), 5, path)
    found = run_threads(fit, shares(TRAIN, [0, 20, 33]), 9, path)
    assert set(found) == {whole.ensemble_.fingerprint()}
