"""InitializedMART: boosting that starts from a forest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeRegressor

import rankwood as rw
from rankwood.training import tasks as ordinal
from rankwood.training.full_depth import TaskGrower
from strategies.learners import SAMPLED, SMALL

pytestmark = pytest.mark.native


@dataclass(eq=False, repr=False)
class Bagged(BaseEstimator):
    """Means of trees on halves of the data: a forest that knows of no tasks."""

    n_trees: int = 4
    n_jobs: int | None = None

    def fit(self, data: Any) -> Any:
        Bagged.n_fits += 1
        parts = [rw.MART(n_trees=1, n_leaves=8, learning_rate=1.0, query_fraction=0.5, random_state=t).fit(data)
                 for t in range(self.n_trees)]  # fmt: skip
        joined = parts[0].ensemble_.concat(*(part.ensemble_ for part in parts[1:]))
        self.ensemble_ = joined.replace(base=joined.base / self.n_trees).reweigh(
            np.full(self.n_trees, 1 / self.n_trees)
        )
        return self


Bagged.n_fits = 0


def igbrt(**parameters) -> rw.InitializedMART:
    return rw.InitializedMART(**SMALL | parameters)


def hand_made(data) -> rw.Ensemble:
    """A forest as others make them: float thresholds, weights, a base, no gains."""
    return rw.Ensemble.from_trees(
        [(0, 0.25, 1.0, (3, 0.5, 0.5, 2.5)), (2, 0.1, 0.0, 1.5)],
        tree_weights=[0.5, 0.5], base=0.125, n_features=data.n_features,
    )  # fmt: skip


def test_the_algorithm_of_the_paper(data):
    """Algorithm 3 as it is written, with scikit-learn's CART; labels and features without ties in any split."""
    rng = np.random.default_rng(0)
    X = rng.permuted(np.tile(np.arange(120.0), (3, 1)), axis=1).T
    y = rng.normal(size=120) + X[:, 0] / 40
    forest = rw.Ensemble.from_trees([(0, 60.5, 0.3, 1.7), (1, 30.5, 0.2, 0.9)], tree_weights=[0.5, 0.5], n_features=3)
    residual = y - forest.score(X)
    expected = forest.score(X)
    for _ in range(6):
        tree = DecisionTreeRegressor(max_depth=3).fit(X, residual)
        residual -= 0.1 * tree.predict(X)
        expected += 0.1 * tree.predict(X)
    ranker = rw.InitializedMART(
        n_trees=6, n_leaves=8, max_depth=3, learning_rate=0.1, min_docs_per_leaf=1, forest=forest
    )
    assert_allclose(ranker.fit(X, y).predict(X), expected, rtol=0, atol=1e-9)
    assert ranker.n_trees_ == 8
    assert ranker.ensemble_.tree_weights.tolist() == [0.5, 0.5] + [0.1] * 6


def test_a_forest_is_what_mart_goes_on_from(parts):
    train, valid = parts
    start = hand_made(train)
    plain = rw.MART(**SMALL | SAMPLED, max_depth=4).fit(train, valid=valid, init_model=start)
    ranker = igbrt(**SAMPLED, forest=start).fit(train, valid=valid)
    assert ranker.ensemble_ == plain.ensemble_
    assert ranker.evals_result_ == plain.evals_result_
    assert ranker.initial_ensemble_ is start
    assert ranker.ensemble_.select([0, 1]) == start
    assert ranker.ensemble_.metadata["learner"] == "InitializedMART"


def test_an_estimator_is_fitted_first_and_left_alone(data):
    for forest in (Bagged(), rw.MART(**SMALL | SAMPLED)):
        ranker = igbrt(forest=forest).fit(data)
        assert not hasattr(forest, "ensemble_")
        fitted = clone(forest).fit(data)
        assert ranker.initial_ensemble_ == fitted.ensemble_
        again = igbrt(forest=fitted).fit(data)
        assert again.ensemble_ == ranker.ensemble_ == igbrt(forest=fitted.ensemble_).fit(data).ensemble_
        assert ranker.ensemble_.metadata["parameters"]["forest"] == type(forest).__name__
        assert "forest__n_jobs" not in ranker.ensemble_.metadata["parameters"]


@pytest.mark.parametrize("forest", [Bagged(), rw.MART(**SMALL | SAMPLED)])
def test_every_problem_has_a_forest_of_its_own(forest, data):
    """As if each were learnt apart: its forest on whether labels are below c, then boosting from there."""
    ranker = igbrt(forest=forest, task="ordinal").fit(data, eval_set=[data])
    apart = []
    for c in range(1, 5):
        below = rw.Dataset(data.X, data.y < c, qid=data.qid, feature_names=data.feature_names)
        apart.append(igbrt(forest=clone(forest)).fit(below).ensemble_)
    assert ordinal.split(ranker.ensemble_) == apart
    assert_allclose(ranker.predict(data), sum(1.0 - model.score(data.X) for model in apart), atol=1e-12)
    n_first = 4 * apart[0].n_trees - 4 * SMALL["n_trees"]
    owners = ranker.ensemble_.metadata["ordinal"]["problem_of_tree"]
    assert owners[n_first:] == [1, 2, 3, 4] * SMALL["n_trees"]
    assert ranker.initial_ensemble_ == ranker.ensemble_.select(range(n_first))
    assert ranker.score(data) == ranker.best_score_["train"]["nDCG@10"]
    assert_allclose(ranker.predict_proba(data).sum(axis=1), 1.0, atol=1e-12)
    again = igbrt(forest=ranker.initial_ensemble_, task="ordinal").fit(data)
    assert again.ensemble_ == ranker.ensemble_


def test_the_forest_is_grown_once(parts, tmp_path):
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=2)

    def fail(env):
        raise RuntimeError("power cut")

    for task in ("regression", "ordinal"):
        ranker = igbrt(forest=Bagged(), task=task)
        Bagged.n_fits = 0
        with pytest.raises(RuntimeError, match="power cut"):
            ranker.fit(train, valid=valid, checkpoint=checkpoint, callbacks=[fail])
        n_fits = Bagged.n_fits
        ranker.fit(train, valid=valid, checkpoint=checkpoint)
        assert Bagged.n_fits == n_fits > 0
        plain = clone(ranker).fit(train, valid=valid)
        assert ranker.ensemble_ == plain.ensemble_
        assert ranker.ensemble_.metadata == plain.ensemble_.metadata
        assert ranker.evals_result_ == plain.evals_result_
        kept = Path(f"{checkpoint.path}.forest")
        assert rw.load_model(kept) == ranker.initial_ensemble_
        assert igbrt(forest=Bagged(n_jobs=2), task=task).fit(train, valid=valid, checkpoint=checkpoint)
        with pytest.raises(rw.RankwoodError, match=r"training\.rw\.forest was made with other forest.*: delete it"):
            igbrt(forest=Bagged(n_trees=5), task=task).fit(train, valid=valid, checkpoint=checkpoint)
        kept.unlink()
        Path(checkpoint.path).unlink()


@pytest.mark.parametrize("task", ["regression", "ordinal"])
def test_a_forest_goes_on_from_where_it_was_interrupted(parts, tmp_path, monkeypatch, task):
    train, valid = parts
    forest = rw.RandomForest(n_trees=10, max_features=0.5)
    plain = igbrt(forest=forest, task=task).fit(train, valid=valid)
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=4)
    grown, grow = [], TaskGrower.grow

    def until_the_power_cut(self, seed, first, n_rounds, **options):
        if first == 8:
            raise RuntimeError("power cut")
        return grow(self, seed, first, n_rounds, **options)

    def noted(self, seed, first, n_rounds, **options):
        grown.extend(range(first, first + n_rounds))
        return grow(self, seed, first, n_rounds, **options)

    monkeypatch.setattr(TaskGrower, "grow", until_the_power_cut)
    with pytest.raises(RuntimeError, match="power cut"):
        igbrt(forest=forest, task=task).fit(train, valid=valid, checkpoint=checkpoint)
    assert not Path(checkpoint.path).exists()
    monkeypatch.setattr(TaskGrower, "grow", noted)
    ranker = igbrt(forest=forest, task=task).fit(train, valid=valid, checkpoint=checkpoint)
    assert grown == [8, 9]
    assert ranker.ensemble_ == plain.ensemble_
    assert ranker.ensemble_.metadata == plain.ensemble_.metadata
    assert ranker.initial_ensemble_.metadata == plain.initial_ensemble_.metadata
    again = igbrt(forest=rw.RandomForest(n_trees=10, max_features=0.5, n_jobs=2), task=task)
    assert again.fit(train, valid=valid, checkpoint=checkpoint).ensemble_ == plain.ensemble_
    assert grown == [8, 9]
    with pytest.raises(rw.RankwoodError, match=r"training\.rw\.forest was made with other rules \(.*\): delete it"):
        igbrt(forest=rw.RandomForest(n_trees=10), task=task).fit(train, valid=valid, checkpoint=checkpoint)


def test_a_forest_that_cannot_go_on_is_kept_whole(parts, tmp_path):
    train, _ = parts
    forest = rw.RandomForest(n_trees=5, random_state=np.random.RandomState(3))
    ranker = igbrt(forest=forest).fit(train, checkpoint=tmp_path / "training.rw")
    assert rw.load_model(tmp_path / "training.rw.forest") == ranker.initial_ensemble_
    assert igbrt(forest=forest).fit(train, checkpoint=tmp_path / "training.rw").ensemble_ == ranker.ensemble_


def test_going_on_needs_no_forest(data):
    whole = igbrt(n_trees=12, forest=hand_made(data)).fit(data)
    first = igbrt(n_trees=8, forest=hand_made(data)).fit(data)
    assert igbrt(n_trees=4).fit(data, init_model=first).ensemble_ == whole.ensemble_


def test_the_parameters_are_scikit_learns(data):
    ranker = igbrt(forest=Bagged(n_trees=3))
    assert ranker.get_params()["forest__n_trees"] == 3
    copy = clone(ranker).set_params(forest__n_trees=2)
    assert (ranker.forest.n_trees, copy.fit(data).initial_ensemble_.n_trees) == (3, 2)
    assert not hasattr(clone(copy).forest, "ensemble_")
    start = hand_made(data)
    assert clone(igbrt(forest=start)).forest is start
    assert (rw.InitializedMART().max_depth, rw.InitializedMART().n_leaves) == (4, 16)


def test_wrong_forests_are_refused(data):
    with pytest.raises(rw.RankwoodError, match="forest must be an Ensemble or a fitted ranker, got str"):
        igbrt(forest="model.rw").fit(data)
    with pytest.raises(rw.RankwoodError, match="the model to go on from has 3 features, the data 8"):
        igbrt(forest=rw.Ensemble.from_trees([1.0], n_features=3)).fit(data)
    with pytest.raises(rw.ModelError, match="was not trained with task='ordinal'"):
        igbrt(forest=hand_made(data), task="ordinal").fit(data)


@pytest.mark.parametrize("task", ["regression", "ordinal"])
def test_the_forest_of_the_paper(data, task, monkeypatch):
    from rankwood.training import estimators as initialized
    from rankwood.training.forest import mean_weight

    small = initialized.paper_forest
    monkeypatch.setattr(initialized, "paper_forest", lambda **given: small(n_trees=20, **given))
    ranker = igbrt(task=task).fit(data, eval_set=[data])
    n_problems = 4 if task == "ordinal" else 1
    assert ranker.initial_ensemble_.n_trees == 20 * n_problems
    assert_array_equal(np.abs(ranker.initial_ensemble_.tree_weights), np.full(20 * n_problems, mean_weight(20)))
    assert ranker.score(data) > 0.6
    assert igbrt(task=task, n_jobs=2).fit(data).ensemble_ == ranker.ensemble_
