"""A group of processes, each with a share of the queries, trains the very model that one process trains alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankwood as rw
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.data.share import Share
from rankwood.training.checkpoint import identify
from thread_group import run_threads

pytestmark = pytest.mark.native

rng = np.random.default_rng(0)
TRAIN = rw.make_ranking(n_queries=40, docs_per_query=30, n_features=20, seed=0)
TRAIN = TRAIN.replace(
    X=np.where(rng.random(TRAIN.X.shape) < 0.05, np.float32(np.nan), TRAIN.X),
    weights=rng.random(TRAIN.n_docs),
    query_weights=rng.random(TRAIN.n_queries) + 0.1,
)
VALID = rw.make_ranking(n_queries=130, docs_per_query=8, n_features=20, seed=1)
EDGES = BinEdges.find(TRAIN.X)


def products(labels, scores, offsets):
    """A measure of a user's own, which must see all documents in order."""
    return float((labels * scores * np.arange(len(labels))).sum() / len(offsets))


LEARNERS = {
    "lambdamart": rw.LambdaMART(30, 8, 0.5, early_stopping_rounds=3),
    "counted": rw.LambdaMART(4, 16, min_docs_per_leaf=1),
    "sampled": rw.LambdaMART(4, 16, query_fraction=0.5, feature_fraction=0.5),
    "per split": rw.LambdaMART(4, 8, feature_fraction=0.5, feature_sampling="split"),
    "balanced": rw.LambdaMART(4, 40, balance=0.3, depth_relaxation=0.4),
    "shallow": rw.LambdaMART(4, 16, max_depth=3),
    "variance": rw.LambdaMART(4, 16, gain="variance"),
    "mart": rw.MART(5, 8),
    "ordinal": rw.MART(3, 8, task="ordinal"),
    "dart": rw.DART(8, 8, rate=0.3),
    "xdart": rw.XDART(8, 8),
    "corrective": rw.LambdaMART(6, 8, corrective=3),
    "monotone": rw.LambdaMART(6, 16, monotone_constraints=[1, -1] * 10),
    "monotone, corrective": rw.LambdaMART(6, 8, monotone_constraints=[1, -1] * 10, corrective=3, gain="variance"),
    "monotone, ordinal": rw.MART(3, 8, task="ordinal", monotone_constraints=[1, -1] * 10),
    "interactions": rw.LambdaMART(4, 16, interaction_constraints=[range(5), range(3, 12)]),
    "budget": rw.LambdaMART(4, 16, max_features_used=4),
    "budget, counted": rw.LambdaMART(4, 16, max_features_used=4, min_docs_per_leaf=1),
    "costs": rw.LambdaMART(4, 16, feature_costs=[3.0] * 20, min_docs_per_leaf=50),
    "documents": rw.LambdaMART(4, 16, query_fraction=0.8, doc_fraction=0.5),
    "err": rw.LambdaMART(4, 8, loss_measure="ERR"),
    "xendcg": rw.LambdaMART(5, 8, loss="xendcg"),
    "stochastic": rw.DART(5, 8, rate=0.3, loss="stochastic", loss_measure="ERR", corrective=3),
    "own measure": rw.LambdaMART(3, 8, measure="nDCG@5"),
}


def shares(data, cuts):
    return [data.select_queries(part) for part in np.split(np.arange(data.n_queries), sorted(cuts))]


def in_bins(data, group):
    return replace(BinnedDataset.encode(data, EDGES), share=Share.of(data, group))


def fit_share(group, share, learner):
    train, valid = (in_bins(data, group) for data in share)
    fitted = clone(learner).fit(train, valid=valid)
    return fitted.ensemble_.fingerprint(), fitted.evals_result_


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("cuts", "valid_cuts"), [([11], [129]), ([0, 39, 39, 40], [1, 2, 60, 60])])
def test_a_group_trains_the_model_of_one_process(name, cuts, valid_cuts):
    learner = LEARNERS[name]
    train, valid = (BinnedDataset.encode(data, EDGES) for data in (TRAIN, VALID))
    alone = clone(learner).fit(train, valid=valid)
    parts = list(zip(shares(TRAIN, cuts), shares(VALID, valid_cuts), strict=True))
    for fingerprint, curves in run_threads(fit_share, parts, learner):
        assert fingerprint == alone.ensemble_.fingerprint()
        assert curves == alone.evals_result_


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 40), max_size=4), seed=st.integers(0, 100), n_leaves=st.integers(2, 30))
def test_any_cut_gives_the_same_tree(cuts, seed, n_leaves):
    learner = rw.MART(2, n_leaves, 1.0, min_docs_per_leaf=2, random_state=seed, query_fraction=0.7, objective=noise)
    alone = clone(learner).fit(BinnedDataset.encode(TRAIN, EDGES))
    found = run_threads(
        lambda group, data: clone(learner).fit(in_bins(data, group)).ensemble_.fingerprint(), shares(TRAIN, cuts)
    )
    assert set(found) == {alone.ensemble_.fingerprint()}


def noise(scores, labels, offsets, weights):
    """Derivatives of all sizes, as documents have them wherever they are."""
    seeds = (labels * 7 + np.round(weights * 1e6)).astype(np.int64)
    return np.sin(seeds) * 10.0 ** (seeds % 9 - 4) + scores, np.cos(seeds) ** 2 * 10.0 ** (seeds % 7 - 3)


def test_a_checkpoint_is_of_the_same_data_whoever_holds_it():
    def identity(group, data):
        start = rw.Ensemble.from_trees([], n_features=data.n_features)
        return identify(in_bins(data, group), {}, start, {})["training data"]

    found = [set(run_threads(identity, shares(TRAIN, cuts))) for cuts in ([], [3], [0, 17, 17])]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1
    order = [1, 0, *range(2, TRAIN.n_queries)]
    others = [TRAIN.replace(y=TRAIN.y + 1), TRAIN.replace(weights=TRAIN.weights * 2), TRAIN.select_queries(order)]
    assert not found[0] & {one for other in others for one in run_threads(identity, [other])}
