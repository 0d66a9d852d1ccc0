"""What DART and X-DART promise, besides what every learner does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.data.bins import BinnedDataset
from rankwood.training.boosting import FEWEST_TO_SPLIT, Extent, GrowingEnsemble, Judge, Rounds, boost
from rankwood.training.callbacks import Step, live_after
from rankwood.training.driver import Session
from rankwood.training.grow import GrowthRules, TreeRules
from rankwood.training.losses import LambdaLoss, SquaredLoss
from rankwood.training.tasks import Ordinal
from rankwood.training.updates import Dart, Drop, Plain, XDart
from rankwood.training.watch import Measures

pytestmark = pytest.mark.native

SMALL = {"n_trees": 30, "n_leaves": 5, "min_docs_per_leaf": 5, "learning_rate": 0.5}


def dart(**more) -> rw.DART:
    return rw.DART(**SMALL | {"rate": 0.1} | more)


def xdart(**more) -> rw.XDART:
    return rw.XDART(**SMALL | {"upper_bound": 3} | more)


def never_better(labels, scores, offsets) -> float:
    return 0.5


@pytest.mark.parametrize("more", [{}, {"query_fraction": 0.5, "feature_fraction": 0.5, "random_state": 3}])
def test_with_rate_0_dart_is_lambdamart(parts, more):
    train, valid = parts
    ours = dart(rate=0.0, l2=0.5, **more).fit(train, valid=valid)
    plain = rw.LambdaMART(**SMALL, l2=0.5, **more).fit(train, valid=valid)
    assert ours.ensemble_.fingerprint() == plain.ensemble_.fingerprint()
    assert ours.evals_result_ == plain.evals_result_
    labels = dart(rate=0.0, loss="mart", l2=0.0, **more).fit(train)
    assert labels.ensemble_.fingerprint() == rw.MART(**SMALL, **more).fit(train).ensemble_.fingerprint()


def test_x_dart_that_removes_nothing_is_dart(parts):
    train, valid = parts
    watched = {"eval_set": [valid], "eval_metric": [never_better, "nDCG@10"]}
    ours = xdart(strategy="ratio", rate=0.1).fit(train, **watched)
    plain = dart().fit(train, **watched)
    assert any(step.candidate is not None for step in ours.log_)
    assert ours.ensemble_.fingerprint() == plain.ensemble_.fingerprint()
    assert ours.evals_result_ == plain.evals_result_


def test_weights_are_those_of_the_paper(parts):
    nu = 0.5
    ranker = dart().fit(parts[0])
    live: dict[int, float] = {}
    for step in ranker.log_:
        k = len(step.dropped)
        assert k == min(int(0.1 * len(live) + 0.5), len(live) // 2)
        for tree in step.dropped:
            live[tree] *= k / (k + nu)
        live[step.iteration] = nu / (k + nu) if k else nu
        assert not step.removed
    assert any(len(step.dropped) == 3 for step in ranker.log_)
    assert ranker.ensemble_.tree_weights.tolist() == list(live.values())


@pytest.mark.parametrize(("weighting", "share"), [("paper", 2.5), ("lightgbm", 3.0)])
def test_weightings(weighting, share):
    settled = Dart(0.5, weighting=weighting).settle(Drop(2.0, (3, 4)), 0.5, None, never_better)
    assert (settled.weight, settled.factor) == (0.5 / share, 2 / share)


def test_the_adaptive_learning_rate(parts):
    ranker = rw.LambdaMART(**SMALL, learning_rate_schedule="adaptive", schedule_rate=0.1).fit(parts[0])
    assert_array_equal(ranker.ensemble_.tree_weights, [0.5 / (0.1 * i + 0.5) for i in range(30)])
    labels = rw.MART(**SMALL, learning_rate_schedule="adaptive").fit(parts[0])
    assert_array_equal(labels.ensemble_.tree_weights, [0.5 / (0.015 * i + 0.5) for i in range(30)])


def test_k_of_the_strategies():
    def wanted(rule, n_live, **last):
        return rule.wanted(n_live, Step(9, **last) if last else None)

    assert wanted(Dart(rate=0.02), 120) == pytest.approx(2.4)
    assert wanted(XDart(strategy="ratio", rate=0.02), 120) == pytest.approx(2.4)
    assert wanted(XDart(strategy="fixed", k=4), 120) == 4
    adaptive = XDart(upper_bound=5)
    assert wanted(adaptive, 0) == 1
    assert wanted(adaptive, 100, k=4.0, improved=True) == 1
    assert wanted(adaptive, 100, k=1.0) == 1.5
    assert wanted(adaptive, 100, k=4.5) == wanted(adaptive, 100, k=5.0) == 5
    assert wanted(XDart(upper_bound=0.03), 200, k=5.8) == 6
    assert wanted(XDart(upper_bound=0.03), 10, k=1.0) == 1
    rng = np.random.default_rng(0)
    assert len(XDart(strategy="fixed", k=4).draw(range(5), None, rng).trees) == 2  # never more than half
    assert XDart(strategy="fixed", k=4).draw([7], None, rng).trees == ()
    assert len(Dart(rate=0.25).draw(range(10), None, rng).trees) == 3  # 2.5, rounded upwards
    assert Dart(rate=0.5, skip=1.0).draw(range(10), None, rng).trees == ()


def test_every_tree_is_dropped_equally_often():
    counts = np.zeros(10)
    for seed in range(2000):
        drop = Dart(rate=0.3).draw(range(10), None, np.random.default_rng([0, seed, 1]))
        counts[list(drop.trees)] += 1
    assert counts.sum() == 6000
    assert np.abs(counts - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)


def test_x_dart_has_the_papers_defaults_and_dart_those_that_were_measured_better():
    """docs/benchmarks.md has the figures."""
    shown = [(ranker.learning_rate, ranker.rate) for ranker in (rw.DART(), rw.XDART())]
    assert shown == [(0.1, 0.1), (1.0, 0.015)]
    assert (rw.XDART(30, 8, 0.4).learning_rate, rw.DART(30, 8, 0.4).learning_rate) == (0.4, 0.4)  # by place, too


def test_a_learning_rate_of_1_is_stable():
    """As in the papers; l2 keeps leaves bounded: the training curve climbs and never collapses."""
    train = rw.make_ranking(n_queries=60, docs_per_query=30, n_features=10, seed=1)
    ranker = rw.DART(n_trees=150, n_leaves=16, learning_rate=1.0, rate=0.015).fit(train, eval_set=[train])
    curve = np.array(ranker.evals_result_["train"]["nDCG@10"])
    assert (np.maximum.accumulate(curve) - curve).max() < 0.02
    assert curve[-1] == pytest.approx(curve.max(), abs=0.01)
    assert np.abs(ranker.ensemble_.leaf_value).max() < 10


@pytest.mark.parametrize("learner", [dart, xdart])
def test_the_number_of_threads_changes_nothing(learner):
    train, valid = rw.make_ranking(n_queries=520, docs_per_query=100, n_features=20, seed=2).split(0.5)
    assert min(train.n_docs, valid.n_docs) > 20_000
    fitted = [learner(n_jobs=n_jobs, n_trees=12, rate=0.3).fit(train, valid=valid) for n_jobs in (1, 2, 3)]
    assert len({ranker.ensemble_.fingerprint() for ranker in fitted}) == 1
    assert fitted[0].log_ == fitted[1].log_ == fitted[2].log_
    assert any(step.dropped for step in fitted[0].log_)


@pytest.mark.parametrize("learner", [dart, xdart])
def test_early_stopping_restores_trees_and_weights(learner, parts):
    train, valid = parts
    ranker = learner(n_trees=200, early_stopping_rounds=25).fit(train, valid=valid)
    curve = ranker.evals_result_["valid"]["nDCG@10"]
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1 == len(curve) - 25
    assert ranker.best_iteration_ > 5
    assert rw.evaluate(ranker.ensemble_, valid)["nDCG@10"] == pytest.approx(max(curve), rel=1e-12)
    live = live_after(ranker.log_[: ranker.best_iteration_])
    assert ranker.ensemble_.tree_weights.tolist() == list(live.values())
    assert list(live.values()) != list(live_after(ranker.log_).values())[: len(live)]
    assert ranker.n_trees_ == ranker.log_[ranker.best_iteration_ - 1].n_trees


def test_early_stopping_of_lightgbm_restores_them_too(parts):
    lightgbm = pytest.importorskip("lightgbm")
    train, valid = parts
    for rounds in (10, 1000):  # stopping early, and choosing at the end
        theirs = xdart().fit(train, valid=valid, callbacks=[lightgbm.early_stopping(rounds, verbose=False)])
        ours = xdart(early_stopping_rounds=rounds).fit(train, valid=valid)
        assert theirs.ensemble_ == ours.ensemble_
        assert theirs.best_iteration_ == ours.best_iteration_ < len(ours.log_)


def test_any_size_is_the_model_that_training_for_it_gives(parts):
    train, valid = parts
    for learner in (dart, xdart):
        ranker = learner(record_sizes=[10, 20, 30]).fit(train, valid=valid)
        assert list(ranker.models_at_) == [10, 20, 30]
        for size, model in ranker.models_at_.items():
            assert model.n_trees == size
            assert model.fingerprint() == learner(n_trees=size).fit(train, valid=valid).ensemble_.fingerprint()
        assert model == ranker.ensemble_
        assert model.metadata["learner"] == type(ranker).__name__
    stopped = dart(n_trees=200, record_sizes=[5, 150], early_stopping_rounds=10).fit(train, valid=valid)
    assert list(stopped.models_at_) == [5]


def test_the_log_says_what_happened(parts):
    train, valid = parts
    ranker = xdart().fit(train, valid=valid)
    removed = [step for step in ranker.log_ if step.removed]
    assert removed
    best, size = -1.0, 0
    for step, value in zip(ranker.log_, ranker.evals_result_["valid"]["nDCG@10"], strict=True):
        assert step.value == value
        assert (step.candidate is None) == (not step.dropped)
        if step.dropped:
            assert step.removed == (step.candidate > best)
        if step.removed:
            assert (step.value, step.weight) == (step.candidate, 0.5)
        assert step.improved == (value > best)
        best = max(best, value)
        size += 1 - len(step.dropped) * step.removed
        assert (step.best, step.n_trees) == (best, size)
    assert size == ranker.n_trees_ == 30
    assert len(ranker.log_) > 30


def test_the_previous_iteration_as_reference(parts):
    train, valid = parts
    ranker = xdart(reference="previous").fit(train, valid=valid)
    assert sum(step.removed for step in ranker.log_) > sum(
        step.removed for step in xdart().fit(train, valid=valid).log_
    )
    for last, step in zip(ranker.log_, ranker.log_[1:], strict=False):
        if step.dropped:
            assert step.removed == (step.candidate > last.value)


def test_iterations_have_an_end(parts):
    with pytest.warns(
        UserWarning, match=r"after max_iterations=12 there are \d+ of 30 trees: dropped trees were removed"
    ):
        ranker = xdart(max_iterations=12).fit(parts[0], valid=parts[1])
    assert len(ranker.log_) == 12


def test_what_judges_removals(parts, recwarn):
    train, valid = parts
    on_train = xdart(judge="train").fit(train)
    with_valid = xdart(judge="train").fit(train, valid=valid)
    assert on_train.ensemble_ == with_valid.ensemble_
    assert on_train.evals_result_ == {}
    assert with_valid.log_[-1].value != with_valid.evals_result_["valid"]["nDCG@10"][-1]
    misnamed = xdart(judge="train").fit(train, eval_set=[valid], eval_names=["train"])
    assert misnamed.ensemble_ == on_train.ensemble_
    value = rw.evaluate(on_train.ensemble_, train)["nDCG@10"]
    assert on_train.log_[-1].value == pytest.approx(value, rel=1e-12)
    assert not [str(warning.message) for warning in recwarn if "judges" in str(warning.message)]
    with pytest.warns(UserWarning, match="no validation data, so training data judges which trees to remove"):
        fallen_back = xdart().fit(train)
    assert fallen_back.ensemble_ == on_train.ensemble_
    assert xdart().fit(train, eval_set=[train, valid]).ensemble_ == xdart().fit(train, valid=valid).ensemble_


@pytest.fixture(scope="module")
def enough() -> tuple[rw.Dataset, rw.Dataset]:
    """Training data, and validation data of which half is set aside."""
    data = rw.make_ranking(n_queries=160, docs_per_query=10, n_features=8, seed=5)
    return data.select_queries(range(40)), data.select_queries(range(40, 160))


def test_what_judges_is_not_what_is_reported(enough):
    train, valid = enough
    ranker = xdart(n_trees=20).fit(train, valid=valid)
    aside = ranker.judge_queries_
    judges, reports = (valid.select_queries(part) for part in (aside, np.setdiff1d(np.arange(120), aside)))
    assert (judges.n_queries, reports.n_queries) == (60, 60)
    assert list(ranker.evals_result_) == list(ranker.best_score_) == ["valid"]
    reported, judged = (rw.evaluate(ranker.ensemble_, data)["nDCG@10"] for data in (reports, judges))
    assert ranker.evals_result_["valid"]["nDCG@10"][-1] == pytest.approx(reported, rel=1e-12)
    assert ranker.log_[-1].value == pytest.approx(judged, rel=1e-12)
    assert any(step.removed for step in ranker.log_)
    # As if the two had been given apart, the one that judges first.
    apart = xdart(n_trees=20, judge="valid").fit(train, eval_set=[judges, reports], eval_names=["judge", "valid"])
    assert apart.ensemble_.fingerprint() == ranker.ensemble_.fingerprint()
    assert apart.log_ == ranker.log_
    assert apart.evals_result_["valid"] == ranker.evals_result_["valid"]
    assert apart.judge_queries_ is None


def test_early_stopping_goes_by_what_is_reported(enough):
    train, valid = enough
    ranker = xdart(n_trees=100, early_stopping_rounds=15).fit(train, valid=valid)
    curve = ranker.evals_result_["valid"]["nDCG@10"]
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1 == len(curve) - 15
    reports = valid.select_queries(np.setdiff1d(np.arange(120), ranker.judge_queries_))
    assert rw.evaluate(ranker.ensemble_, reports)["nDCG@10"] == pytest.approx(max(curve), rel=1e-12)


def test_which_queries_judge(enough):
    train, valid = enough
    shares = {share: xdart(n_trees=4, judge_share=share).fit(train, valid=valid).judge_queries_ for share in (0.2, 0.5)}
    assert [len(queries) for queries in shares.values()] == [24, 60]
    other_seed = xdart(n_trees=4, random_state=7).fit(train, valid=valid)
    assert_array_equal(other_seed.judge_queries_, shares[0.5])
    few = valid.select_queries(range(FEWEST_TO_SPLIT - 1))
    one, paper = (xdart(n_trees=8, judge=judge).fit(train, valid=few) for judge in ("auto", "valid"))
    assert one.judge_queries_ is None
    assert one.ensemble_.fingerprint() == paper.ensemble_.fingerprint()
    binned = BinnedDataset.make(train)
    in_bins = xdart(n_trees=8).fit(binned, eval_set=[binned, BinnedDataset.encode(valid, binned.edges)])
    plain = xdart(n_trees=8).fit(train, valid=valid)
    assert in_bins.ensemble_.fingerprint() == plain.ensemble_.fingerprint()
    assert list(in_bins.evals_result_) == ["train", "valid_1"]
    assert in_bins.evals_result_["valid_1"] == plain.evals_result_["valid"]
    still = xdart(n_trees=8, strategy="ratio", rate=0.0).fit(train, valid=valid)  # which drops nothing
    judges = valid.select_queries(still.judge_queries_)
    assert still.log_[-1].value == pytest.approx(rw.evaluate(still.ensemble_, judges)["nDCG@10"], rel=1e-12)


def test_a_measure_that_is_better_when_lower(parts):
    def error(labels, scores, offsets):
        return "error", float(np.mean((labels - scores) ** 2)), False

    ranker = xdart(loss="mart", learning_rate=0.3).fit(parts[0], eval_set=[parts[1]], eval_metric=error)
    assert any(step.removed for step in ranker.log_)
    values = [step.value for step in ranker.log_]
    assert [step.best for step in ranker.log_] == np.minimum.accumulate(values).tolist()
    for last, step in zip(ranker.log_, ranker.log_[1:], strict=False):
        assert not step.dropped or step.removed == (step.candidate < last.best)


def test_going_on_from_a_model(parts):
    """Its trees stay as they are, and do not count."""
    train, valid = parts
    start = rw.LambdaMART(n_trees=4, n_leaves=4, min_docs_per_leaf=5).fit(train)
    ranker = xdart(n_trees=20).fit(train, valid=valid, init_model=start)
    assert ranker.n_trees_ == 24
    assert ranker.ensemble_.select(range(4)) == start.ensemble_
    curve = ranker.evals_result_["valid"]["nDCG@10"]
    assert rw.evaluate(ranker.ensemble_, valid)["nDCG@10"] == pytest.approx(curve[-1], rel=1e-12)


def test_removed_trees_free_their_memory(parts):
    """Of trees that are no longer live, training keeps no leaves of documents."""
    train, valid = (BinnedDataset.make(parts[0]), parts[1])
    sets = {"valid": BinnedDataset.encode(valid, train.edges)}
    rule = XDart(0.5, upper_bound=3)
    growing = GrowingEnsemble(rw.Ensemble.from_trees([], n_features=train.data.n_features))
    rules = TreeRules(GrowthRules(n_leaves=5, min_docs_per_leaf=5))
    session = Session(Measures(["nDCG@10"], "rankwood"))
    rounds = Rounds(train, LambdaLoss(), rules, rule, growing, sets, 40, session, judge=Judge("valid", sets["valid"]))
    for number in range(40):
        trees, step, results, _ = rounds.next_round(number, 0.5)
        growing.append(trees, step, 0.5, results)
        for kept in rounds.kept.values():
            assert kept.trees == list(growing.live)
            assert kept.n_bytes == len(growing.live) * len(kept.scores)
    assert any(step.removed for step in growing.steps)
    assert len(growing.live) == growing.steps[-1].n_trees < 40
    for one, kept in rounds.kept.items():  # and no trace of what came and went is left in the scores
        expected = growing.whole().score(one.data.X)
        np.testing.assert_allclose(kept.scores, expected, rtol=1e-14, atol=1e-15)


def test_wide_trees():
    data = rw.make_ranking(n_queries=30, docs_per_query=40, n_features=6, seed=3)
    ranker = rw.DART(n_trees=6, n_leaves=400, min_docs_per_leaf=1, rate=0.4, loss="mart").fit(data, eval_set=[data])
    assert max(np.diff(ranker.ensemble_.node_offsets)) + 1 > 256
    assert any(step.dropped for step in ranker.log_)
    curve = ranker.evals_result_["train"]["nDCG@10"]
    assert rw.evaluate(ranker.ensemble_, data)["nDCG@10"] == pytest.approx(curve[-1], rel=1e-9)


WRONG = [
    ("rate", -0.1, "rate must lie between 0 and 1, a share of the trees, got -0.1"),
    ("rate", 1.5, "rate must lie between 0 and 1, a share of the trees, got 1.5"),
    ("skip", 2, "skip must be a probability, between 0 and 1, got 2"),
    ("weighting", "even", "weighting must be 'paper' or 'lightgbm', got 'even'"),
    ("loss", "logistic", "loss must be 'lambdamart', 'pairwise', 'xendcg', 'stochastic' or 'mart', got 'logistic'"),
    ("record_sizes", [10, 31], "record_sizes must lie between 1 and n_trees=30, got 31"),
    ("record_sizes", [], "record_sizes must be a sequence, each entry a whole number or None"),
    ("strategy", "greedy", "strategy must be 'ratio', 'fixed' or 'adaptive', got 'greedy'"),
    ("k", 0, "k must be at least 1, a number of trees, got 0"),
    ("k", 1.5, "k must be a whole number, got 1.5"),
    ("upper_bound", 0, "upper_bound must be a number of trees, or a share of them below 1, got 0"),
    ("reference", "first", "reference must be 'best' or 'previous', got 'first'"),
    ("judge", "test", "judge must be 'auto', 'valid' or 'train', got 'test'"),
    ("judge_share", 1.0, "judge_share must lie between 0 and 1"),
    ("max_iterations", 0, "max_iterations must be at least 1, got 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG, ids=[f"{name}={value!r}" for name, value, _ in WRONG])
def test_wrong_parameters_are_refused_in_fit(parts, name, value, message):
    with pytest.raises(rw.RankwoodError, match=message):
        xdart(**{name: value}).fit(parts[0], valid=parts[1])


def test_what_cannot_be(parts):
    train, session = BinnedDataset.make(parts[0]), Session(Measures([], "rankwood"))
    with pytest.raises(rw.RankwoodError, match="trees can be dropped when there is one problem to learn"):
        boost(train, SquaredLoss(), TreeRules(), Dart(), Extent(3), session, task=Ordinal(2))
    with pytest.raises(rw.RankwoodError, match="judged by the first measure: give at least one"):
        boost(train, SquaredLoss(), TreeRules(), XDart(), Extent(3), session)
    with pytest.raises(rw.DataError, match="queries are missing"):
        dart().fit(parts[0].X, parts[0].y)
    assert dart(loss="mart").fit(parts[0].X, parts[0].y).n_trees_ == 30
    assert Plain().drops is Dart(rate=0.0).drops is False
