"""Callbacks: ours and LightGBM's own, with several data sets and measures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankwood as rw
from rankwood.training.callbacks import CallbackEnv, EarlyStopException, Result, in_order

pytestmark = pytest.mark.native


def ranker(**more) -> rw.LambdaMART:
    return rw.LambdaMART(**{"n_trees": 30, "n_leaves": 5, "min_docs_per_leaf": 5, "learning_rate": 0.3} | more)


def env(iteration: int, results: list[tuple], n_trees: int = 100) -> CallbackEnv:
    return CallbackEnv(None, {}, iteration, 0, n_trees, [Result(*result) for result in results], train_name="train")


def feed(callback, series: list[list[tuple]], n_trees: int = 100) -> tuple[int, int] | None:
    """Give a callback results tree after tree: the tree at which it stopped training, and the best, or None."""
    for iteration, results in enumerate(series):
        try:
            callback(env(iteration, results, n_trees))
        except EarlyStopException as stop:
            return iteration, stop.best_iteration
    return None


def one(values, name="valid", measure="AP", maximize=True) -> list[list[tuple]]:
    return [[(name, measure, value, maximize)] for value in values]


@pytest.mark.parametrize(
    ("callback", "series", "expected"),
    [
        (rw.early_stopping(2), one([1, 3, 2, 2, 2]), (3, 1)),
        (rw.early_stopping(2), one([1, 3, 2, 4, 3, 3]), (5, 3)),
        (rw.early_stopping(2), one([3, 3, 3, 3]), (2, 0)),  # as good is no improvement
        (rw.early_stopping(2), one([5, 1, 3, 3], maximize=False), (3, 1)),
        (rw.early_stopping(2, min_delta=1.0), one([1, 1.5, 2.0, 2.1]), (2, 0)),
        (rw.early_stopping(2, min_delta=0.4), one([1, 1.5, 2.0, 2.1]), None),
        (rw.early_stopping(2, min_delta=0.4, relative=True), one([1, 1.5, 2.0, 2.1, 2.2]), (3, 1)),
        (rw.early_stopping(2, min_delta=0.3, relative=True), one([1, 1.5, 2.0, 2.1]), None),
        (rw.early_stopping(1), one([1, 2, 3]), None),
        # The training data does not count; the first measure or data set that rests stops the training.
        (rw.early_stopping(2), [[("train", "AP", -i, True), ("valid", "AP", i, True)] for i in range(5)], None),
        (rw.early_stopping(2), [[("valid", "AP", i, True), ("valid", "P@5", 0, True)] for i in range(5)], (2, 0)),
        (rw.early_stopping(2, True), [[("valid", "AP", i, True), ("valid", "P@5", 0, True)] for i in range(5)], None),
        (rw.early_stopping(2, True), [[("a", "AP", i, True), ("b", "AP", -i, True)] for i in range(5)], (2, 0)),
    ],
)
def test_early_stopping_rules(callback, series, expected):
    for _ in range(2):  # a callback may serve for several trainings
        assert feed(callback, series) == expected


def test_when_the_end_comes_first_the_best_size_is_restored(parts):
    train, valid = parts
    stopped = ranker().fit(train, valid=valid, callbacks=[rw.early_stopping(1000)])
    values = stopped.evals_result_["valid"]["nDCG@10"]
    assert len(values) == 30
    assert stopped.best_iteration_ == stopped.n_trees_ == int(np.argmax(values)) + 1
    assert stopped.score(valid) == max(values)
    assert ranker().fit(train, valid=valid).n_trees_ == 30


@pytest.mark.parametrize("first_metric_only", [False, True])
def test_several_data_sets_and_measures(parts, first_metric_only):
    """Which series ends the training is found again from the whole history."""
    train, valid = parts
    first, second = valid.split(0.5)
    watch = {"eval_set": [train, first, second], "eval_metric": ["P@3", "nDCG@10"]}
    rounds = 4
    stopped = ranker(n_trees=60).fit(train, **watch, callbacks=[rw.early_stopping(rounds, first_metric_only)])
    history = ranker(n_trees=60).fit(train, **watch).evals_result_
    ends = []
    for name in ("valid_1", "valid_2"):
        for measure in ("P@3", "nDCG@10")[: 1 if first_metric_only else 2]:
            best = 0
            for tree, value in enumerate(history[name][measure]):
                if value > history[name][measure][best]:
                    best = tree
                if tree - best >= rounds:
                    ends.append((tree, len(ends), best))
                    break
    end, _, best = min(ends)
    assert len(stopped.evals_result_["train"]["P@3"]) == end + 1
    assert stopped.best_iteration_ == best + 1
    for name, part in (("train", train), ("valid_1", first), ("valid_2", second)):
        assert stopped.best_score_[name] == dict(rw.evaluate(stopped.ensemble_, part, ["P@3", "nDCG@10"]))
        assert stopped.best_score_[name]["P@3"] == history[name]["P@3"][best]


def test_the_parameter_goes_by_the_first_measure(parts):
    train, valid = parts
    one = ranker(measure=["AP", "nDCG@10"], early_stopping_rounds=5).fit(train, valid=valid)
    other = ranker(measure="AP", early_stopping_rounds=5).fit(train, valid=valid)
    assert one.ensemble_ == other.ensemble_
    assert list(one.best_score_["valid"]) == ["AP", "nDCG@10"]


def test_early_stopping_needs_validation_data(parts):
    train, _ = parts
    for evaluation in ({}, {"valid": train}):
        with pytest.raises(rw.RankwoodError, match="needs validation data other than the training data"):
            ranker().fit(train, **evaluation, callbacks=[rw.early_stopping(3)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rw.early_stopping(0), "stopping_rounds must be a whole number from 1 up, got 0"),
        (lambda: rw.early_stopping(2.5), "stopping_rounds must be a whole number from 1 up, got 2.5"),
        (lambda: rw.early_stopping(3, min_delta=-1), "min_delta must be a number from 0 up, got -1"),
        (lambda: rw.record_evaluation([]), "eval_result must be a dict to fill, got list"),
        (lambda: rw.reset_parameter(n_leaves=[3]), "can change learning_rate only, not n_leaves"),
    ],
)
def test_callbacks_that_cannot_be(make, message):
    with pytest.raises(rw.RankwoodError, match=message):
        make()


def test_evaluation_is_written(parts, capsys):
    train, valid = parts
    lines = []
    ranker(n_trees=5).fit(
        train, valid=valid, eval_metric=["AP", "RR"], callbacks=[rw.log_evaluation(2, write=lines.append)]
    )
    assert [line.split("\t")[0] for line in lines] == ["[2]", "[4]"]
    assert lines[0].count("valid's ") == 2
    assert "valid's AP: 0." in lines[0]
    ranker(n_trees=2).fit(train, valid=valid, callbacks=[rw.log_evaluation()])
    assert capsys.readouterr().out.count("valid's nDCG@10: ") == 2
    ranker(n_trees=2).fit(train, valid=valid, callbacks=[rw.log_evaluation(0), rw.early_stopping(3, verbose=True)])
    assert capsys.readouterr().out.startswith("best of 2 trees: [")
    ranker(n_trees=2).fit(train, valid=valid)
    assert capsys.readouterr() == ("", "")


def test_evaluation_is_recorded(parts):
    train, valid = parts
    record = {"old": {}}
    fitted = ranker(n_trees=4).fit(train, eval_set=[train, valid], callbacks=[rw.record_evaluation(record)])
    assert record == fitted.evals_result_
    assert [len(values) for by_measure in record.values() for values in by_measure.values()] == [4, 4]


def test_learning_rates_change(data):
    rates = [0.5, 0.25, 0.125, 0.0625]
    for schedule in (rates, lambda number: rates[number]):
        fitted = ranker(n_trees=4).fit(data, callbacks=[rw.reset_parameter(learning_rate=schedule)])
        assert fitted.ensemble_.tree_weights.tolist() == rates
    with pytest.raises(rw.RankwoodError, match="has 4 values for 5 trees"):
        ranker(n_trees=5).fit(data, callbacks=[rw.reset_parameter(learning_rate=rates)])
    with pytest.raises(rw.RankwoodError, match="learning_rate must be above 0, got -1"):
        ranker(n_trees=5).fit(data, callbacks=[rw.reset_parameter(learning_rate=lambda number: -1)])


def test_callbacks_are_called_in_order(data):
    seen = []

    def callback(name, order=None, before=False):
        def call(env):
            seen.append((env.iteration, name))

        call.before_iteration = before
        if order is not None:
            call.order = order
        return call

    callbacks = [callback("late", 40), callback("plain"), callback("before", 5, True), callback("early", -1)]
    ranker(n_trees=2).fit(data, callbacks=callbacks)
    assert seen == [(t, name) for t in range(2) for name in ("before", "early", "plain", "late")]
    assert in_order([]) == ([], [])


def test_a_callback_sees_the_model_so_far(parts):
    train, valid = parts
    seen = []

    def look(env):
        model = env.model.whole()
        seen.append((env.iteration, env.begin_iteration, env.end_iteration, model.n_trees))
        assert env.evaluation_result_list[0].metric_value == rw.evaluate(model, valid)["nDCG@10"]

    ranker(n_trees=3).fit(train, valid=valid, callbacks=[look])
    assert seen == [(0, 0, 3, 1), (1, 0, 3, 2), (2, 0, 3, 3)]


def test_an_error_in_a_callback_is_the_users(data):
    with pytest.raises(ZeroDivisionError):
        ranker().fit(data, callbacks=[lambda env: 1 / 0])


def mean_best_label(labels, scores, offsets):
    return float(np.mean([labels[a:b][np.argmax(scores[a:b])] for a, b in itertools.pairwise(offsets)]))


def test_custom_measures(parts):
    train, valid = parts

    def squared_error(labels, scores, offsets):
        return "MSE", np.mean((labels - scores) ** 2), False

    mart = rw.MART(n_trees=40, n_leaves=8, learning_rate=0.5, min_docs_per_leaf=2, early_stopping_rounds=5)
    fitted = mart.fit(train, valid=valid, eval_metric=[squared_error, "AP", mean_best_label])
    assert list(fitted.evals_result_["valid"]) == ["MSE", "AP", "mean_best_label"]
    errors = fitted.evals_result_["valid"]["MSE"]
    assert fitted.best_iteration_ == int(np.argmin(errors)) + 1 < len(errors)
    assert min(errors) == np.mean((valid.y - fitted.predict(valid)) ** 2)
    expected = mean_best_label(valid.y, fitted.predict(valid), valid.offsets)
    assert fitted.best_score_["valid"]["mean_best_label"] == expected
    only = mart.set_params(early_stopping_rounds=None).fit(train, valid=valid, eval_metric=mean_best_label)
    assert list(only.evals_result_["valid"]) == ["mean_best_label"]


def change(labels, scores, offsets):
    scores[0] = 1.0


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda *given: float("nan"), "on the data set 'valid' is nan: training cannot go by it"),
        (lambda *given: "good", "must return a number or .*, got 'good'"),
        (lambda *given: None, "must return a number or .*, got None"),
        (lambda *given: (1.0, True), "must return a number or"),
        (change, "read-only"),
        ("nDCG(empty='skip')@10", "is nan: training cannot go by it; is every query left out"),
    ],
)
def test_measures_that_cannot_be_watched(parts, measure, message):
    train, valid = parts
    valid = rw.Dataset(valid.X, np.zeros(valid.n_docs), qid=valid.qid)
    with pytest.raises(ValueError, match=message):
        ranker(n_trees=2).fit(train, valid=valid, eval_metric=measure)


def test_the_convention_decides_what_is_watched(parts):
    train, valid = parts
    for convention in ("lightgbm", "sklearn"):
        fitted = ranker(n_trees=3, convention=convention).fit(train, valid=valid)
        expected = rw.evaluate(fitted.ensemble_, valid, convention=convention)["nDCG@10"]
        assert fitted.evals_result_["valid"]["nDCG@10"][-1] == fitted.score(valid) == expected
