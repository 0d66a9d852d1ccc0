"""Splits of categories: the search equals a slow twin, and what training saw is what the model scores."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import rankwood as rw
from oracles import categories as oracle
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.data.share import Share
from rankwood.errors import RankwoodError
from rankwood.training.grow import Categories, GrowthRules, TreeBuilder, TreeRules
from thread_group import run_threads

pytestmark = pytest.mark.native


def made(n_queries, seed):
    """Labels that depend on a category in no order of its codes, and on a number; some values are missing."""
    rng = np.random.default_rng(seed)
    n = 15 * n_queries
    category = rng.integers(30, size=n)
    number = rng.normal(size=n)
    effect = np.random.default_rng(99).normal(size=30)
    y = np.digitize(2 * effect[category] + number + 0.3 * rng.normal(size=n), [-1, 0.5, 2])
    X = np.column_stack([number, category, rng.integers(5, size=n)]).astype(np.float32)
    X[rng.random(n) < 0.03, 1] = np.nan
    return rw.Dataset(X, y, group=[15] * n_queries)


TRAIN, VALID = made(60, 0), made(40, 1)
SMALL = {"n_trees": 8, "n_leaves": 8, "learning_rate": 0.3, "min_docs_per_leaf": 5}
CATEGORIES = {"categorical_features": [1, 2], "category_smoothing": 2.0, "category_l2": 0.5}


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_categories=st.sampled_from([2, 3, 8, 40, 120]),
    missing=st.sampled_from([0.0, 0.2]),
    smoothing=st.sampled_from([0.0, 1.5, 6.0]),
    category_l2=st.sampled_from([0.0, 5.0]),
    l2=st.sampled_from([0.0, 1.0]),
    min_docs=st.sampled_from([1, 6]),
)
def test_the_split_is_the_best_of_all_prefixes(seed, n_categories, missing, smoothing, category_l2, l2, min_docs):
    rng = np.random.default_rng(seed)
    x = rng.integers(n_categories, size=150).astype(np.float32)
    x[rng.random(150) < missing] = np.nan
    g, h = rng.normal(size=150), rng.random(150) + 0.1
    how = {"smoothing": smoothing, "category_l2": category_l2, "l2": l2, "min_docs": min_docs}
    expected = oracle.best_split(x.astype(np.float64), g, h, **how)
    binned = BinnedDataset.make(rw.Dataset(x[:, None], np.zeros(150), group=[150]), categories=[0])
    growth = GrowthRules(n_leaves=2, l2=l2, min_docs_per_leaf=min_docs)
    rules = TreeRules(growth, categories=Categories((0,), smoothing, category_l2))
    grown, leaf = TreeBuilder(binned, rules, constant_hessian=False, n_threads=1).build(g, h, np.random.default_rng(0))
    if expected is None or expected[0] <= 1e-9:
        assert len(grown.tree.leaf_value) == 1
        return
    gain, inside = expected
    assert_allclose(grown.tree.split_gain[0], gain, rtol=1e-5, atol=1e-7)
    assert leaf.tolist() in ((~inside).astype(int).tolist(), inside.astype(int).tolist())
    assert_array_equal(grown.leaves_of(binned), leaf)
    assert_array_equal(rw.Ensemble.from_trees([grown.tree]).leaves(x[:, None])[:, 0], leaf)


LEARNERS = {
    "lambdamart": rw.LambdaMART(**SMALL, **CATEGORIES),
    "sampled": rw.LambdaMART(**SMALL, **CATEGORIES, query_fraction=0.5, feature_fraction=0.7, gain="variance"),
    "corrective": rw.LambdaMART(**SMALL, **CATEGORIES, corrective=3),
    "mart": rw.MART(**SMALL, **CATEGORIES),
    "ordinal": rw.MART(**SMALL | {"n_trees": 3}, **CATEGORIES, task="ordinal"),
    "dart": rw.DART(**SMALL, **CATEGORIES, rate=0.3),
    "constrained": rw.LambdaMART(**SMALL, **CATEGORIES, monotone_constraints={0: 1}, max_features_used=2),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_the_model_scores_what_training_saw(name, tmp_path):
    ranker = clone(LEARNERS[name]).fit(TRAIN, valid=VALID)
    assert len(ranker.ensemble_.trees.set_nodes) > 0
    seen = ranker.evals_result_["valid"]["nDCG@10"][-1]
    assert_allclose(rw.evaluate(ranker.ensemble_, VALID, "nDCG@10").means["nDCG@10"], seen, atol=1e-12)
    ranker.ensemble_.save(tmp_path / "model.rw")
    assert rw.load_model(tmp_path / "model.rw") == ranker.ensemble_


@pytest.mark.parametrize("name", ["lambdamart", "sampled", "dart", "constrained"])
def test_threads_processes_and_checkpoints_change_nothing(name, tmp_path):
    learner = LEARNERS[name]
    alone = clone(learner).fit(TRAIN).ensemble_
    assert clone(learner).set_params(n_jobs=2).fit(TRAIN).ensemble_ == alone
    edges = BinEdges.find(TRAIN.X).with_categories([1, 2])

    def fit_share(group, queries):
        data = TRAIN.select_queries(queries)
        binned = replace(BinnedDataset.encode(data, edges), share=Share.of(data, group))
        return clone(learner).fit(binned).ensemble_.fingerprint()

    assert set(run_threads(fit_share, np.split(np.arange(60), [13, 13]))) == {alone.fingerprint()}

    def stop(env):
        if env.iteration == 4:
            raise InterruptedError

    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=2)
    with pytest.raises(InterruptedError):
        clone(learner).fit(TRAIN, checkpoint=checkpoint, callbacks=[stop])
    assert clone(learner).fit(TRAIN, checkpoint=checkpoint).ensemble_ == alone
    with pytest.raises(RankwoodError, match="other categories"):
        clone(learner).set_params(category_l2=2.0).fit(TRAIN, checkpoint=checkpoint)


def test_sets_of_categories_rank_better_than_thresholds_on_codes():
    by_sets = rw.LambdaMART(**SMALL, **CATEGORIES).fit(TRAIN).score(VALID)
    assert by_sets > rw.LambdaMART(**SMALL).fit(TRAIN).score(VALID) + 0.01


def test_missing_values_are_on_the_side_of_all_others():
    """Of categories 0 to 5, those with a label of 3 are split off; what was not in training follows the others."""
    category = np.repeat(np.arange(6), 20).astype(np.float32)
    y = np.isin(category, [1, 4]) * 3.0
    model = rw.MART(1, 2, 1.0, min_docs_per_leaf=1, categorical_features=[0], category_l2=0.0).fit(category[:, None], y)
    scores = model.predict(np.array([0, 1, 2, 3, 4, 5, np.nan, 6, 252, 1000, -1], dtype=np.float32)[:, None])
    assert_allclose(scores, [0, 3, 0, 0, 3, 0, 0, 0, 0, 0, 0], atol=1e-9)


def test_codes_beyond_the_bins_are_refused():
    X = np.array([[0.0], [252.0], [253.0]])
    rw.MART(2, 2, categorical_features=[0]).fit(X[:2], [0, 1])
    with pytest.raises(RankwoodError, match="codes of 253 or more"):
        rw.MART(2, 2, categorical_features=[0]).fit(X, [0, 1, 2])
    with pytest.raises(RankwoodError, match=r"BinnedDataset\.make"):
        rw.LambdaMART(2, 2, categorical_features=[1]).fit(BinnedDataset.make(TRAIN))
    binned = BinnedDataset.make(rw.Dataset(X, [0, 1, 2], group=[3]), categories=[0])
    with pytest.raises(RankwoodError, match="codes of 253 or more"):
        rw.MART(2, 2, categorical_features=[0]).fit(binned)


def test_lightgbm_scores_an_export_alike(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model = rw.LambdaMART(**SMALL, **CATEGORIES).fit(TRAIN).ensemble_
    with warnings.catch_warnings(action="error"):  # sets stay sets
        rw.save_as(model, tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    assert_array_equal(booster.predict(VALID.X.astype(np.float64), raw_score=True), model.score(VALID.X))


def test_later_steps_take_sets_of_categories():
    model = rw.LambdaMART(**SMALL, **CATEGORIES).fit(TRAIN).ensemble_
    assert len(rw.refit(model, TRAIN, VALID).trees.set_nodes) == len(model.trees.set_nodes)
    longer = rw.LambdaMART(**SMALL | {"n_trees": 4}, **CATEGORIES).fit(TRAIN)
    both = rw.LambdaMART(**SMALL | {"n_trees": 4}, **CATEGORIES).fit(TRAIN, init_model=longer)
    assert both.ensemble_ == model


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"categorical_features": [3]}, "the data has features 0 to 2"),
        ({"categorical_features": ["color"]}, "names the feature 'color'"),
        ({"categorical_features": [1], "monotone_constraints": {1: 1}}, "categories have no order"),
        ({"categorical_features": [1], "category_l2": -1.0}, "category_l2 must be"),
    ],
)
def test_wrong_parameters_are_refused(given_, told):
    with pytest.raises(RankwoodError, match=told):
        rw.LambdaMART(**SMALL, **given_).fit(TRAIN)


def as_frame(data, pandas):
    names = np.array([f"shop {number}" for number in range(30)], dtype=object)
    codes = data.X[:, 1]
    shops = [None if np.isnan(code) else names[int(code)] for code in codes]
    frame = pandas.DataFrame({"price": data.X[:, 0], "shop": pandas.Categorical(shops), "kind": data.X[:, 2]})
    frame["kind"] = frame["kind"].astype(int).astype("category")
    return frame


def test_categories_of_a_frame_are_taken_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    train, valid = as_frame(TRAIN, pandas), as_frame(VALID, pandas)
    ranker = rw.LambdaMART(**SMALL, category_smoothing=2.0).fit(
        train, TRAIN.y, qid=TRAIN.qid, eval_set=[(valid, VALID.y)], eval_qid=[VALID.qid]
    )
    assert ranker.ensemble_.trees.set_nodes.size > 0
    assert set(ranker.ensemble_.feature[ranker.ensemble_.trees.set_nodes]) <= {1, 2}
    score = ranker.score(valid, VALID.y, qid=VALID.qid)
    assert_allclose(score, ranker.evals_result_["valid_0"]["nDCG@10"][-1], atol=1e-12)
    ranker.ensemble_.save(tmp_path / "model.rw")
    assert_array_equal(rw.load_model(tmp_path / "model.rw").score(valid), ranker.predict(valid))
    # The same shops under other codes, and one that training did not have: a missing value.
    other = valid.assign(shop=valid["shop"].cat.set_categories(sorted(valid["shop"].cat.categories, reverse=True)))
    assert_array_equal(ranker.predict(other), ranker.predict(valid))
    new = valid.assign(shop=pandas.Categorical(["shop 31"] * len(valid)))
    none = valid.assign(shop=valid["shop"].cat.set_categories([]))
    assert_array_equal(ranker.predict(new), ranker.predict(none))
