"""LightGBM's own callback objects work here."""

from __future__ import annotations

import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def lightgbm():
    reason = "PEER ABSENT: lightgbm is not installed, its callbacks were not tried"
    return pytest.importorskip("lightgbm", reason=reason)


def ranker(**more) -> rw.LambdaMART:
    return rw.LambdaMART(**{"n_trees": 30, "n_leaves": 5, "min_docs_per_leaf": 5, "learning_rate": 0.3} | more)


def test_stopping_logging_and_recording(lightgbm, parts, capsys):
    train, valid = parts
    ours = ranker(early_stopping_rounds=3).fit(train, valid=valid)
    record = {}
    theirs = ranker().fit(
        train,
        valid=valid,
        callbacks=[
            lightgbm.early_stopping(3, verbose=True),
            lightgbm.log_evaluation(5),
            lightgbm.record_evaluation(record),
        ],
    )
    assert theirs.ensemble_ == ours.ensemble_
    assert theirs.best_iteration_ == ours.best_iteration_
    assert theirs.best_score_ == ours.best_score_
    assert record == theirs.evals_result_ == ours.evals_result_
    out = capsys.readouterr().out
    assert "[5]\tvalid's nDCG@10: 0." in out
    assert "Early stopping, best iteration is:" in out


def test_learning_rates_change(lightgbm, data):
    rates = [0.5, 0.25, 0.125, 0.0625]
    for schedule in (rates, lambda number: rates[number]):
        fitted = ranker(n_trees=4).fit(data, callbacks=[lightgbm.reset_parameter(learning_rate=schedule)])
        assert fitted.ensemble_.tree_weights.tolist() == rates
    with pytest.raises(ValueError, match="Length of list 'learning_rate'"):
        ranker(n_trees=5).fit(data, callbacks=[lightgbm.reset_parameter(learning_rate=rates)])
