"""Position bias: Newton steps against a twin, known propensities found again, the same bits whatever computes them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from rankwood.data.bins import BinEdges, BinnedDataset
from rankwood.data.share import Share
from rankwood.errors import DataError, RankwoodError
from rankwood.lab.clicks import PositionModel
from rankwood.training.losses import LambdaLoss
from rankwood.training.position_bias import LEAST, Unbiased
from thread_group import run_threads

pytestmark = pytest.mark.native

DATA = rw.make_ranking(n_queries=60, docs_per_query=12, n_features=6, seed=2)
MODEL = PositionModel.power(8, 1.0)
CLICKS = MODEL.clicked(DATA, np.random.default_rng(0).random(DATA.n_docs), n_sessions=3)
SMALL = {"n_trees": 8, "n_leaves": 6, "min_docs_per_leaf": 5}


def test_a_step_equals_the_slow_twin():
    rng = np.random.default_rng(1)
    scores, position = rng.normal(size=CLICKS.n_docs), CLICKS.position
    unbiased = Unbiased(LambdaLoss().prepare(CLICKS.y, CLICKS.offsets), position, l2=0.2)
    biases = np.zeros(8)
    for rate in (0.5, 0.1):
        gradient, hessian, wanted = (np.empty(CLICKS.n_docs) for _ in range(3))
        unbiased.gradients(scores, gradient, hessian)
        LambdaLoss().prepare(CLICKS.y, CLICKS.offsets).gradients(
            scores + biases[position], wanted, np.empty_like(wanted)
        )
        assert_array_equal(gradient, wanted)
        unbiased.learn(gradient, hessian, rate)
        for place in range(8):
            rows = np.flatnonzero(position == place)
            first = sum(Fraction(gradient[row]) for row in rows) - Fraction(0.2 * len(rows) * biases[place])
            second = sum(Fraction(hessian[row]) for row in rows) + Fraction(0.2 * len(rows)) + Fraction(LEAST)
            biases[place] += rate * float(first / second)
        assert_allclose(unbiased.biases, biases, rtol=1e-9)
    assert np.abs(biases).max() > 0.01


def test_known_propensities_are_found_again():
    # Shown by chance, so positions tell nothing about documents: what a position adds is the log of its propensity.
    data = rw.make_ranking(n_queries=300, docs_per_query=15, n_features=6, seed=4)
    model = PositionModel.power(10, 1.0)
    clicks = model.clicked(data, np.random.default_rng(1).random(data.n_docs), n_sessions=4)
    found = rw.LambdaMART(n_trees=60, n_leaves=6, learning_rate=0.1).fit(clicks).position_biases_
    truth = np.log(model.propensities)
    assert np.corrcoef(found, truth)[0, 1] > 0.95
    assert found[0] > found[2] > found[6]


def test_without_bias_little_is_found():
    flat = PositionModel((1.0,) * 8).clicked(DATA, np.random.default_rng(0).random(DATA.n_docs), n_sessions=5)
    ranker = rw.LambdaMART(**SMALL | {"learning_rate": 0.1})
    assert np.ptp(ranker.fit(flat).position_biases_) < 0.4 * np.ptp(ranker.fit(CLICKS).position_biases_)
    assert ranker.fit(CLICKS.replace(position=None)).position_biases_ is None
    held = rw.LambdaMART(**SMALL, position_l2=1e6).fit(CLICKS)
    assert np.abs(held.position_biases_).max() < 1e-3


LEARNERS = {
    "lambdamart": rw.LambdaMART(**SMALL, position_l2=0.01),
    "xendcg": rw.LambdaMART(**SMALL, loss="xendcg", corrective=3),
    "dart": rw.DART(**SMALL, rate=0.3),
    "mart": rw.MART(**SMALL),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_threads_processes_and_checkpoints_give_the_same_bits(name, tmp_path):
    learner, edges = LEARNERS[name], BinEdges.find(CLICKS.X)
    whole = learner.fit(BinnedDataset.encode(CLICKS, edges))
    model, biases = whole.ensemble_.fingerprint(), whole.position_biases_

    def fit_share(group, data):
        binned = replace(BinnedDataset.encode(data, edges), share=Share.of(data, group))
        fitted = type(learner)(**learner.get_params()).fit(binned)
        return fitted.ensemble_.fingerprint(), fitted.position_biases_

    parts = [CLICKS.select_queries(part) for part in np.split(np.arange(CLICKS.n_queries), [50, 50, 90])]
    for found, found_biases in run_threads(fit_share, parts):
        assert found == model
        assert_array_equal(found_biases, biases)

    def stop(env):
        if env.iteration == 4:
            raise KeyboardInterrupt

    file = rw.Checkpoint(tmp_path / "half.rw", every=2)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(CLICKS, callbacks=[stop], checkpoint=file)
    learner.fit(CLICKS, checkpoint=file)
    assert learner.ensemble_.fingerprint() == model
    assert_array_equal(learner.position_biases_, biases)
    with pytest.raises(RankwoodError, match="made with other training data"):
        learner.fit(CLICKS.replace(position=None), checkpoint=file)


def test_positions_come_with_a_data_set_or_with_rows():
    group = np.diff(CLICKS.offsets)
    by_rows = rw.LambdaMART(**SMALL).fit(CLICKS.X, CLICKS.y, group=group, position=CLICKS.position)
    assert by_rows.ensemble_.fingerprint() == rw.LambdaMART(**SMALL).fit(CLICKS).ensemble_.fingerprint()
    assert_array_equal(CLICKS.select_queries([3]).position, CLICKS.position[CLICKS.offsets[3] : CLICKS.offsets[4]])
    assert CLICKS.fingerprint() != CLICKS.replace(position=CLICKS.position + 1).fingerprint()


@pytest.mark.parametrize(("position", "message"), [([0, -1], "row 1 is -1"), ([0.5, 1], "row 0 is 0.5"), ([1], "2")])
def test_wrong_positions_are_refused(position, message):
    with pytest.raises(DataError, match=f"position.*{message}"):
        rw.Dataset([[0.0], [1.0]], [0, 1], group=[2], position=position)


def test_what_knows_nothing_of_positions_refuses_them():
    with pytest.raises(RankwoodError, match="refit knows nothing of positions"):
        rw.LambdaMART(**SMALL, refit=True).fit(CLICKS, valid=DATA)
    with pytest.raises(RankwoodError, match="position"):
        rw.MART(**SMALL, task="ordinal").fit(CLICKS)
    with pytest.raises(RankwoodError, match="on a cluster positions come with a Dataset"):
        rw.LambdaMART(**SMALL).fit(CLICKS.X, CLICKS.y, group=[1], position=CLICKS.position, client=object())


def test_the_simulator_clicks_as_its_model_says():
    assert PositionModel.power(3, 2.0).propensities == (1.0, 1 / 4, 1 / 9)
    data = rw.Dataset(np.arange(4.0)[:, None], [0, 0, 2, 1], qid=["b", "a", "b", "b"])
    model = PositionModel((1.0, 0.5), noise=0.2)
    shown = model.clicked(data, np.array([1.0, 0.0, 3.0, 3.0]), n_sessions=20_000, seed=1)
    assert shown.X[:3, 0].tolist() == [2.0, 3.0, 1.0]  # two of three, ties in input order; then the other query
    assert shown.position[:3].tolist() == [0, 1, 0]
    rates = shown.y.reshape(20_000, 3).mean(axis=0)
    assert_allclose(rates, [1.0, 0.5 * (0.2 + 0.8 / 3), 0.2], atol=0.02)
    assert_array_equal(model.clicked(data, np.zeros(4), n_sessions=5, seed=3).y, model.clicked(data, np.zeros(4),
                       n_sessions=5, seed=3).y)  # fmt: skip
    for wrong in ({"propensities": ()}, {"propensities": (1.5,)}, {"propensities": (1.0,), "noise": 2.0}):
        with pytest.raises(RankwoodError):
            PositionModel(**wrong)
