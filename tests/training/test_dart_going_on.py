"""DART and X-DART that go on from a checkpoint, or stop at Ctrl-C: trees that were removed and weights included."""

from __future__ import annotations

import os
import signal

import pytest

import rankwood as rw

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:after max_iterations")]

SMALL = {"n_trees": 30, "n_leaves": 5, "min_docs_per_leaf": 5, "learning_rate": 0.5}
LEARNERS = {
    "DART": lambda **more: rw.DART(**SMALL | {"rate": 0.1, "query_fraction": 0.7} | more),
    "ratio": lambda **more: rw.XDART(**SMALL | {"strategy": "ratio", "rate": 0.05} | more),
    "fixed": lambda **more: rw.XDART(**SMALL | {"strategy": "fixed", "learning_rate": 1.0} | more),
    "adaptive": lambda **more: rw.XDART(**SMALL | {"upper_bound": 3, "skip": 0.2} | more),
}


def power_cut(at: int):
    def cut(env) -> None:
        if env.iteration == at and not env.replayed:
            raise RuntimeError("power cut")

    return cut


def assert_same(one, other, folder) -> None:
    for ranker, name in ((one, "one.rw"), (other, "other.rw")):
        ranker.ensemble_.save(folder / name)
    assert (folder / "one.rw").read_bytes() == (folder / "other.rw").read_bytes()
    assert one.log_ == other.log_
    assert one.evals_result_ == other.evals_result_
    assert one.best_score_ == other.best_score_
    assert one.best_iteration_ == other.best_iteration_
    assert one.models_at_ == other.models_at_


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("stopping", [None, 12])
def test_a_training_that_was_cut_becomes_the_very_model(name, stopping, parts, tmp_path):
    train, valid = parts
    given = {"early_stopping_rounds": stopping, "record_sizes": [3, 9]}
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=3)
    for at in (1, 4, 8, 11):
        with pytest.raises(RuntimeError, match="power cut"):
            LEARNERS[name](**given).fit(train, valid=valid, checkpoint=checkpoint, callbacks=[power_cut(at)])
    resumed = LEARNERS[name](**given).fit(train, valid=valid, checkpoint=checkpoint)
    plain = LEARNERS[name](**given).fit(train, valid=valid)
    assert_same(resumed, plain, tmp_path)
    again = LEARNERS[name](**given).fit(train, valid=valid, checkpoint=checkpoint)  # nothing is left to do
    assert_same(again, plain, tmp_path)


def test_queries_that_judge_stay_the_same_when_training_goes_on(tmp_path):
    data = rw.make_ranking(n_queries=160, docs_per_query=10, n_features=8, seed=5)
    train, valid = data.select_queries(range(40)), data.select_queries(range(40, 160))
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=3)
    with pytest.raises(RuntimeError, match="power cut"):
        LEARNERS["adaptive"]().fit(train, valid=valid, checkpoint=checkpoint, callbacks=[power_cut(8)])
    resumed = LEARNERS["adaptive"]().fit(train, valid=valid, checkpoint=checkpoint)
    plain = LEARNERS["adaptive"]().fit(train, valid=valid)
    assert_same(resumed, plain, tmp_path)
    assert resumed.judge_queries_.tolist() == plain.judge_queries_.tolist()
    kept = valid.select_queries([q for q in range(120) if q not in plain.judge_queries_])
    with pytest.raises(rw.RankwoodError, match="was made with other data set '<queries set aside>'"):
        LEARNERS["adaptive"]().fit(train, valid=kept, checkpoint=checkpoint)
    with pytest.raises(rw.RankwoodError, match=r"was made with other .*update rule \(judge_share .*\): delete it"):
        LEARNERS["adaptive"](judge_share=0.4).fit(train, valid=valid, checkpoint=checkpoint)


def test_a_checkpoint_is_a_model_that_scores_as_the_training_stood(parts, tmp_path):
    train, valid = parts
    ranker = LEARNERS["adaptive"](max_iterations=20).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
    assert any(step.removed for step in ranker.log_)
    saved = rw.load_model(tmp_path / "training.rw")
    assert saved.n_trees == 20
    assert (saved.tree_weights == 0).sum() == 20 - ranker.n_trees_
    assert saved.score(train.X) == pytest.approx(ranker.predict(train), rel=1e-12)


def test_a_finished_training_is_prolonged(parts, tmp_path):
    train, valid = parts
    for n_trees in (10, 10, 16, 30):
        ranker = LEARNERS["adaptive"](n_trees=n_trees).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
        assert_same(ranker, LEARNERS["adaptive"](n_trees=n_trees).fit(train, valid=valid), tmp_path)
    with pytest.raises(rw.RankwoodError, match="the checkpoint has 30 trees already, more than n_trees=16"):
        LEARNERS["adaptive"](n_trees=16).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")


@pytest.mark.parametrize("change", [{"upper_bound": 4}, {"reference": "previous"}, {"skip": 0.1}, {"judge": "train"}])
def test_other_rules_are_refused(change, parts, tmp_path):
    train, valid = parts
    LEARNERS["adaptive"](n_trees=5).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")
    with pytest.raises(
        rw.RankwoodError, match=rf"was made with other update rule \({next(iter(change))} .*, now .*\): delete it"
    ):
        LEARNERS["adaptive"](**change).fit(train, valid=valid, checkpoint=tmp_path / "training.rw")


def press_ctrl_c(at: int):
    def press(env) -> None:
        if env.iteration == at:
            os.kill(os.getpid(), signal.SIGINT)

    return press


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["DART", "adaptive"])
def test_ctrl_c_keeps_the_model_as_it_was(name, parts, tmp_path):
    train, valid = parts
    kept = LEARNERS[name](on_interrupt="keep").fit(train, valid=valid, callbacks=[press_ctrl_c(13)])
    assert kept.interrupted_
    assert len(kept.log_) == 14
    shorter = LEARNERS[name](n_trees=99, max_iterations=14) if name == "adaptive" else LEARNERS[name](n_trees=14)
    assert kept.ensemble_ == shorter.fit(train, valid=valid).ensemble_
    file = tmp_path / "training.rw"
    with pytest.raises(KeyboardInterrupt):
        LEARNERS[name]().fit(train, valid=valid, checkpoint=file, callbacks=[press_ctrl_c(13)])
    resumed = LEARNERS[name]().fit(train, valid=valid, checkpoint=file)
    assert_same(resumed, LEARNERS[name]().fit(train, valid=valid), tmp_path)
