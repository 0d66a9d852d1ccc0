"""Leaf values of all trees fitted jointly to the labels: the step, any model, and what the note says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.fitting.measured import Part
from rankwood.fitting.outputs import unsigned_weights
from rankwood.fitting.refit import refit_passes, surrogate_gains
from rankwood.training.correction import joint_step
from rankwood.training.losses import LambdaLoss
from strategies.pruning import models_and_data

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def parts() -> list[rw.Dataset]:
    data = rw.make_ranking(n_queries=90, docs_per_query=20, n_features=8, seed=2)
    return [data.select_queries(np.arange(start, start + 30)) for start in (0, 30, 60)]


@pytest.fixture(scope="module")
def model(parts) -> rw.Ensemble:
    return rw.LambdaMART(n_trees=25, n_leaves=8, learning_rate=0.1, min_docs_per_leaf=5).fit(parts[0]).ensemble_


def slow_step(values, X, model, data, gains, rate, l2):
    """One pass, by going through trees and leaves; `values` are the model's own."""
    trees = [tree for tree in range(model.n_trees) if model.tree_weights[tree] != 0.0]
    scores = model.replace(leaf_value=values).score(X)
    gradient, hessian = np.empty_like(scores), np.empty_like(scores)
    loss = LambdaLoss(truncation=30, gains="linear")
    loss.prepare(gains, data.offsets, None, data.query_weights, n_threads=1).gradients(scores, gradient, hessian)
    leaves = model.leaves(X)
    sums = {}
    for tree in trees:
        for leaf in range(model.leaf_offsets[tree], model.leaf_offsets[tree + 1]):
            inside = leaves[:, tree] == leaf - model.leaf_offsets[tree]
            sums[leaf] = gradient[inside].sum(), hessian[inside].sum(), model.tree_weights[tree]
    above = [h for _, h, _ in sums.values() if h > 0.0]
    damping = l2 * np.mean(above) if above else 1.0
    moved = values.copy()
    largest = max((h for _, h, _ in sums.values()), default=0.0)
    # Sums are whole numbers of some 2^-60 of the largest document: leaves of documents far below that are not resolved.
    assume(not any(0.0 < h < 1e-9 * largest for _, h, _ in sums.values()))
    for leaf, (g, h, weight) in sums.items():
        moved[leaf] += rate / len(trees) * g / (h + damping) / weight
    return moved


@settings(max_examples=60)
@given(data=st.data())
def test_a_pass_is_its_slow_twin(data):
    model, documents = data.draw(models_and_data())
    model = model.reweigh(np.where(np.abs(model.tree_weights) < 1e-3, 0.0, model.tree_weights))
    bound = Evaluator(documents, "nDCG@10", by_query=True, n_threads=data.draw(st.integers(1, 3)))
    try:
        part = Part.of(model, bound)
    except rw.DataError:  # no query has a document that counts
        return
    how = rw.Refit(passes=1, rate=data.draw(st.sampled_from([0.5, 3.0])), l2=data.draw(st.sampled_from([0.5, 2.0])))
    passes = list(refit_passes(part, unsigned_weights(model), how))
    assert len(passes) == (1 if model.tree_weights.any() else 0)
    if passes:
        X = documents.X if documents.order is None else documents.X[documents.order]
        gains = surrogate_gains(part.queries)
        expected = slow_step(model.leaf_value, X, model, documents, gains, how.rate, how.l2)
        signs = np.repeat(np.where(model.tree_weights < 0.0, -1.0, 1.0), np.diff(model.leaf_offsets))
        largest = max(1.0, np.abs(expected).max())  # steps divide by hessians, which may be near 0
        assert_allclose(signs * passes[0], expected, rtol=1e-7, atol=1e-9 * largest)


def test_steps_of_leaves_without_weight_or_hessian():
    none = joint_step(np.zeros(2), np.zeros(2), np.ones(2), 1, rate=1.0, l2=1.0)
    assert none.tolist() == [0.0, 0.0]
    without = joint_step(np.ones(2), np.ones(2), np.array([0.0, 1.0]), 1, rate=1.0, l2=1.0)
    assert without.tolist() == [0.0, 0.5]
    assert not np.isfinite(joint_step(np.ones(1), np.ones(1), np.array([5e-324]), 1, rate=1.0, l2=1.0)).any()


def test_it_raises_validation_and_says_so(model, parts):
    train, valid, _ = parts
    better = rw.refit(model, train, valid)
    note = better.metadata["refit"]
    assert note["valid_before"] == pytest.approx(rw.evaluate(model, valid)["nDCG@10"], rel=1e-12)
    assert note["valid_after"] == pytest.approx(rw.evaluate(better, valid)["nDCG@10"], rel=1e-12)
    assert note["valid_after"] > note["valid_before"]
    assert note["passes"] >= 1
    assert (note["measure"], note["convention"]) == ("nDCG@10", "rankwood")
    assert note["settings"] == {"passes": 100, "rate": 3.0, "l2": 1.0, "patience": 10}
    assert "refit" not in model.metadata
    for name in ("feature", "threshold", "left", "right", "tree_weights"):
        assert_array_equal(getattr(better, name), getattr(model, name))
    kept = {name: entry for name, entry in better.metadata.items() if name != "refit"}
    assert kept == model.metadata


def test_the_best_pass_is_taken(model, parts):
    """The note's number of passes, made again without validation data, gives these leaves."""
    train, valid, _ = parts
    better = rw.refit(model, train, valid)
    part = Part.of(model, Evaluator(train, "nDCG@10", by_query=True))
    every = list(refit_passes(part, model.tree_weights, rw.Refit(passes=better.metadata["refit"]["passes"])))
    assert_array_equal(better.leaf_value, every[-1])


def test_threads_do_not_matter(model, parts):
    train, valid, _ = parts
    found = [rw.refit(model, train, valid, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert len({one.fingerprint() for one in found}) == 1


def test_no_pass_that_helps_gives_the_input_itself(parts):
    train, _, other = parts
    model = rw.Ensemble.from_trees([(0, 0.0, 0.0, 0.0)], n_features=8)
    perfect = rw.Dataset(other.X, (other.X[:, 0] > 0.0) * 1, group=np.diff(other.offsets))
    fitted = rw.Ensemble.from_trees([(0, 0.0, -1.0, 1.0)], n_features=8)
    assert rw.refit(fitted, perfect, perfect) is fitted
    assert rw.refit(model, train, other, settings=rw.Refit(passes=0)) is model
    weightless = fitted.reweigh([0.0])
    assert rw.refit(weightless, train, other) is weightless
    assert rw.refit(fitted, train, other.replace(y=np.zeros(other.n_docs))) is fitted  # by which all models are equal


def test_rankers_are_taken(parts):
    train, valid, _ = parts
    ranker = rw.LambdaMART(n_trees=10, n_leaves=6).fit(train)
    assert rw.refit(ranker, train, valid) == rw.refit(ranker.ensemble_, train, valid)


def test_weights_may_be_negative(model, parts):
    train, valid, _ = parts
    turned = model.replace(tree_weights=-model.tree_weights, leaf_value=-model.leaf_value)
    found, expected = rw.refit(turned, train, valid), rw.refit(model, train, valid)
    assert_array_equal(found.tree_weights, turned.tree_weights)
    assert_array_equal(found.leaf_value, -expected.leaf_value)


def test_features_are_found_by_name(model, parts):
    names = [f"f{number}" for number in range(8)]
    named = model.replace(feature_names=names)
    turned = [
        rw.Dataset(
            np.ascontiguousarray(part.X[:, ::-1]), part.y, group=np.diff(part.offsets), feature_names=names[::-1]
        )
        for part in parts[:2]
    ]
    assert_array_equal(rw.refit(named, *turned).leaf_value, rw.refit(model, *parts[:2]).leaf_value)


def test_rows_of_queries_may_be_mixed(model, parts):
    """In any order that keeps the order inside queries, which breaks ties of scores."""
    train, valid, _ = parts
    rng, queries = np.random.default_rng(0), np.repeat(np.arange(30), np.diff(train.offsets))
    rank = np.concatenate([np.sort(rng.random(size)) for size in np.diff(train.offsets)])
    order = np.argsort(rank)
    mixed = rw.Dataset(train.X[order], train.y[order], qid=queries[order])
    assert mixed.order is not None
    assert_allclose(rw.refit(model, mixed, valid).leaf_value, rw.refit(model, train, valid).leaf_value, rtol=1e-6)


@pytest.mark.parametrize("measure", ["nDCG@5", "P(rel=2)@5", "AP(rel=1)", "ERR@10"])
def test_other_measures(measure, model, parts):
    train, valid, _ = parts
    better = rw.refit(model, train, valid, measure=measure, settings=rw.Refit(passes=30))
    found = [rw.evaluate(one, valid, measure)[measure] for one in (model, better)]
    assert found[1] >= found[0]
    assert better is model or better.metadata["refit"]["measure"] == measure


@pytest.mark.filterwarnings("ignore:XGBoost sums leaf values in float32")
def test_imported_models(parts, tmp_path):
    """Of LightGBM, which are double, and of XGBoost, which are single: what is written scores as what was refitted."""
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    train, valid, test = parts
    group = np.diff(train.offsets)
    trained = {
        "model.txt": lightgbm.LGBMRanker(n_estimators=15, num_leaves=8, verbose=-1, n_jobs=1)
        .fit(train.X, train.y.astype(int), group=group)
        .booster_,
        "model.json": xgboost.XGBRanker(n_estimators=8, max_depth=3, n_jobs=1)
        .fit(train.X, train.y, group=group)
        .get_booster(),
    }
    for name, booster in trained.items():
        booster.save_model(str(tmp_path / name))
        imported = rw.load_model(tmp_path / name)
        better = rw.refit(imported, train, valid, settings=rw.Refit(rate=0.3))
        assert better.metadata["refit"]["valid_after"] > better.metadata["refit"]["valid_before"]
        rw.save_as(better, tmp_path / name, {"model.txt": "lightgbm", "model.json": "xgboost"}[name])
        again = rw.load_model(tmp_path / name)
        assert_allclose(again.score(test.X), better.score(test.X), rtol=1e-4, atol=1e-4)


def test_grades_are_forgotten(parts):
    train, valid, _ = parts
    graded = rw.MART(n_trees=4, n_leaves=4, task="ordinal").fit(train).ensemble_
    better = rw.refit(graded, train, valid)
    assert better is not graded
    with pytest.raises(rw.ModelError, match="not trained with task='ordinal'"):
        rw.grade_probabilities(better, valid.X)


def test_pruning_keeps_its_own_settings():
    """Those that its published figures were made with."""
    assert rw.PruningSettings().refit == rw.Refit(passes=50, rate=1.0, l2=1.0, patience=5)


def test_mistakes(model, parts):
    train, valid, _ = parts
    empty = rw.Ensemble.from_trees([], n_features=8)
    for arguments, words in (
        ((empty, train, valid), "the model has no trees: there is nothing to refit"),
        (("model.rw", train, valid), "refitting takes an Ensemble or a fitted ranker, got str"),
        ((model, train.X, valid), "train must be a Dataset, got ndarray"),
        ((model, train, None), "valid must be a Dataset, got NoneType"),
        ((model, train.select_queries([]), valid), "no documents"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.refit(*arguments)
    with pytest.raises(rw.RankwoodError, match="settings must be a Refit, got dict"):
        rw.refit(model, train, valid, settings={"passes": 3})
    with pytest.raises(rw.RankwoodError, match="a refit needs passes from 0"):
        rw.Refit(rate=0.0)
