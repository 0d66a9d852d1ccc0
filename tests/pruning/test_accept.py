"""What is shown of a smaller model's loss, and by which queries."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rankwood as rw
from rankwood.evaluation.evaluator import Evaluator
from rankwood.pruning.accept import IN_WORDS
from rankwood.pruning.pruner import Pruner
from rankwood.pruning.strategies import Chooser

pytestmark = pytest.mark.native
QUICK = rw.PruningSettings(search=rw.LineSearch(iterations=3), measure_speed=False)

values = st.one_of(st.integers(0, 8).map(lambda k: k / 8), st.floats(0, 1), st.just(math.nan))
pairs = st.lists(st.tuples(values, values), min_size=0, max_size=40).map(
    lambda rows: np.array(rows, dtype=float).reshape(-1, 2).T
)
margins = st.floats(1e-4, 0.5)
levels = st.floats(1e-6, 0.5)


@given(pairs, margins, levels, st.sampled_from(list(IN_WORDS)))
def test_a_proof_is_the_test(pair, margin, alpha, queries):
    rule = rw.Acceptance(margin=margin, alpha=alpha)
    proof = rw.Proof.of(*pair, rule, queries=queries)
    counted = int((~np.isnan(pair).any(axis=0)).sum())
    assert proof.n_queries == counted
    json.dumps(proof.as_dict(), allow_nan=False)
    if counted < 2:
        assert (proof.p_value, proof.holds, proof.lower, proof.needed) == (1.0, False, None, None)
    else:
        found = rw.non_inferiority_test(*pair, margin=margin)
        assert (proof.p_value, proof.difference) == (found.p_value, found.mean_difference)
        assert proof.p_adjusted == proof.p_value
        assert proof.holds == (queries != "choosing" and proof.p_value <= alpha)
        if not math.isclose(proof.p_value, alpha, rel_tol=1e-6):
            assert (proof.lower > -margin) == (proof.p_value < alpha) or math.isclose(proof.lower, -margin)
        assert (proof.needed is None) == (proof.difference <= -margin)
    if proof.p_value > alpha and proof.needed is not None:
        assert proof.needed > counted
    assert rule.passes(True, 1.0, proof) == proof.holds
    assert ("cannot be shown" in proof.words()) == (not proof.holds)
    assert ("would do" in proof.words()) == (not proof.holds and proof.needed is not None)


@given(st.lists(pairs, min_size=1, max_size=4), margins)
def test_several_models_are_corrected_for(found, margin):
    n = min(pair.shape[1] for pair in found)
    full, smaller = found[0][0][:n], [pair[1][:n] for pair in found]
    rule = rw.Acceptance(margin=margin)
    proofs = rw.Proof.of_each(full, smaller, rule)
    alone = [rw.Proof.of(full, one, rule) for one in smaller]
    assert [proof.p_value for proof in proofs] == [proof.p_value for proof in alone]
    assert [proof.p_adjusted for proof in proofs] == rw.holm([proof.p_value for proof in alone]).tolist()
    for together, single in zip(proofs, alone, strict=True):
        assert together.holds <= single.holds
        assert (together.needed or 0) >= (single.needed or 0) or together.needed == single.needed
        assert ("corrected for" in together.words()) <= (len(smaller) > 1)


def test_a_proof_needs_a_margin():
    with pytest.raises(rw.RankwoodError, match="a proof needs a margin, which the rule 'quality' has not"):
        rw.Proof.of(np.zeros(3), np.zeros(3), rw.Acceptance("quality"))


def test_defaults():
    assert rw.Acceptance() == rw.Acceptance.of("non-inferior") == rw.Acceptance("non-inferior", 0.005, 0.05)
    assert rw.Acceptance("quality").margin is None


def test_words_round_the_number_up_and_name_the_queries():
    full, rng = np.full(40, 0.5), np.random.default_rng(0)
    smaller = full + rng.normal(0.0, 0.07, 40)
    proof = rw.Proof.of(full, smaller - smaller.mean() + 0.499, rw.Acceptance())
    assert proof.difference == pytest.approx(-0.001)
    said = replace(proof, needed=1_873).words()
    assert said.startswith("that it loses less than 0.005 of nDCG@10 cannot be shown with 40 queries that chose")
    assert said.endswith("nothing; about 1,900 would do")
    assert "about 1,900 others would do" in replace(proof, needed=1_873, queries="choosing").words()
    lost = rw.Proof.of(full, full - np.tile([0.0, 0.03], 20), rw.Acceptance(), measure="RR")
    assert lost.words().endswith("RR cannot be shown with 40 queries that chose nothing: it loses 0.0150 there")


@given(pairs, margins, levels, st.floats(0.5, 0.99))
def test_the_number_needed_is_monotone(pair, margin, alpha, power):
    assume((~np.isnan(pair).any(axis=0)).sum() >= 2)

    def needed(**other):
        found = rw.queries_needed(*pair, **{"margin": margin, "alpha": alpha, "power": power} | other)
        return math.inf if found is None else found

    assert needed(margin=2 * margin) <= needed()
    assert needed(alpha=alpha / 2) >= needed()
    assert needed(power=power / 2) <= needed()
    assert needed() >= 2


@pytest.mark.parametrize("difference", [-0.002, 0.0, 0.004])
def test_the_number_needed_is_about_enough(difference):
    """Of trainings with so many queries about 80 % succeed."""
    rng = np.random.default_rng(1)
    seen = rng.normal(size=400)
    seen = difference + 0.03 * (seen - seen.mean()) / seen.std(ddof=1)
    n = rw.queries_needed(np.zeros(400), seen, margin=0.005)
    drawn = rng.normal(difference, 0.03, size=(2000, n))
    succeeded = [rw.non_inferiority_test(np.zeros(n), one, margin=0.005).p_value <= 0.05 for one in drawn]
    assert np.mean(succeeded) == pytest.approx(0.8, abs=0.03)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), levels)
def test_in_sequence(p_values, alpha):
    """By the sums of what each was given, from the last that failed on."""
    own = [alpha / 2] + [alpha / 2 / (len(p_values) - 1)] * (len(p_values) - 1)
    found = rw.in_sequence(p_values, alpha)
    for i, p in enumerate(p_values):
        since = max((j + 1 for j in range(i) if not found[j]), default=0)
        level = sum(own[since : i + 1])
        assume(abs(p - level) > 1e-12)
        assert found[i] == (p <= level)


def test_a_loss_next_to_the_margin_is_told_instead_of_millions_of_queries():
    full = np.full(200, 0.5)
    proof = rw.Proof.of(full, full - 0.004999 + np.tile([0.1, -0.1], 100), rw.Acceptance(margin=0.005))
    assert proof.needed > 1_000_000
    assert proof.words().endswith("cannot be shown with 200 queries that chose nothing: it loses 0.0050 there")


def test_one_comparison_is_tested_at_the_level():
    assert rw.in_sequence([]) == []
    assert rw.in_sequence([0.05]) == [True]
    assert rw.in_sequence([0.051]) == [False]


@pytest.mark.parametrize("n_false", [1, 3, 7])
def test_in_sequence_is_wrong_no_more_often_than_it_says(n_false):
    """With true comparisons in between, which always hold and pass their level on."""
    rng = np.random.default_rng(n_false)
    wrong = 0
    for values in rng.random((20_000, n_false)):
        held = rw.in_sequence(np.column_stack([np.zeros(n_false), values]).ravel(), 0.05)
        wrong += any(held[1::2])
    assert wrong / 20_000 <= 0.05 + 3 * (0.05 * 0.95 / 20_000) ** 0.5


def test_mistakes_of_the_tests():
    with pytest.raises(rw.DataError, match=r"p-value 1 is 1\.5"):
        rw.in_sequence([0.1, 1.5])
    with pytest.raises(rw.RankwoodError, match="alpha must lie between 0 and 1, got 0"):
        rw.in_sequence([0.1], 0)
    with pytest.raises(rw.RankwoodError, match="power must lie between 0 and 1, got 1"):
        rw.queries_needed([0.1, 0.2], [0.1, 0.3], margin=0.1, power=1)
    with pytest.raises(rw.RankwoodError, match="alpha must lie between 0 and 1, got 2"):
        rw.lower_bound([0.1, 0.2], [0.1, 0.3], alpha=2)


# ---- folds ----


@pytest.fixture(scope="module")
def problem():
    data = rw.make_ranking(n_queries=100, docs_per_query=10, n_features=8, seed=4)
    train, valid = data.select_queries(range(40)), data.select_queries(range(40, 100))
    weighted = valid.replace(query_weights=np.linspace(0.5, 2.0, valid.n_queries))
    return rw.LambdaMART(n_trees=12, n_leaves=6, learning_rate=0.2).fit(train).ensemble_, train, weighted


@pytest.mark.parametrize("strategy", ["quality-loss", "score-loss"])
def test_out_of_fold_values_are_those_of_pruners_made_by_hand(problem, strategy):
    model, train, valid = problem
    variants = ("line-search", "refit", "distil", "gradient")
    told = []
    rule = rw.Acceptance(margin=0.02)
    result = rw.cleaver(model, train, valid, judge="folds", strategy=strategy, rates=(0.25, 0.5), variants=variants,
                        accept=rule, settings=QUICK, progress=lambda *now: told.append(now))  # fmt: skip
    per_model = [[] for _ in range(9)]
    weights = []
    for others, fold in valid.folds(5, seed=0):
        by_query = [Evaluator(data, by_query=True) for data in (train, others)]
        pruner = Pruner.of(model, *by_query, Chooser(strategy, 6), QUICK)
        models = [model, *(pruner.ensemble(one) for k in (3, 6) for one in pruner.prune(k, variants))]
        for found, one in zip(per_model, models, strict=True):
            found.append(rw.evaluate(one, fold).per_query["nDCG@10"])
        weights.append(fold.query_weights)
    weight = np.concatenate(weights) / np.mean(np.concatenate(weights))
    full, *smaller = [np.concatenate(found) * weight for found in per_model]
    assert [row.judged for row in result.rows] == pytest.approx([np.mean(one) for one in (full, *smaller)], rel=1e-12)
    expected = rw.Proof.of_each(full, smaller, rule, queries="folds")
    for row, proof in zip(result.rows[1:], expected, strict=True):
        assert row.proof.p_adjusted == pytest.approx(proof.p_adjusted, rel=1e-9)
        assert (row.proof.n_queries, row.proof.n_models, row.proof.queries) == (60, 8, "folds")
        assert row.accepted == row.proof.holds
    assert result.judging == "folds"
    assert told[-1] == (6 * 9, 6 * 9)
    # The models themselves are those that all validation queries chose.
    plain = rw.cleaver(model, train, valid, judge=None, strategy=strategy, rates=(0.25, 0.5), variants=variants,
                       accept="quality", settings=QUICK)  # fmt: skip
    assert [row.ensemble for row in plain.rows] == [row.ensemble for row in result.rows]
    assert [row.valid for row in plain.rows] == [row.valid for row in result.rows]


def test_who_judges_unless_told(problem):
    model, train, valid = problem
    how = {"rates": (0.5,), "variants": "line-search", "settings": QUICK}
    assert rw.cleaver(model, train, valid, **how).table == rw.cleaver(model, train, valid, judge="folds", **how).table
    few = valid.select_queries(range(49))
    for judge in ("auto", "folds", None):
        result = rw.cleaver(model, train, few, judge=judge, accept=rw.Acceptance(margin=0.9), **how)
        assert (result.judging, result.accepted, result.rows[1].judged) == ("choosing", False, None)
        assert result.rows[1].p_inferior < 0.05  # but by queries that chose it
        assert "cannot be shown with 49 queries that also chose it" in result.summary()
    assert rw.cleaver(model, train, few, judge=0.5, accept=rw.Acceptance(margin=0.9), **how).accepted
    many = rw.make_ranking(n_queries=1000, docs_per_query=4, n_features=8, seed=3)
    halved, named = (rw.cleaver(model, train, many, judge=judge, **how) for judge in ("auto", 0.5))
    assert halved.table == named.table
    assert (halved.judging, halved.promising.proof.n_queries) == ("unseen", 500)


def test_data_of_all_folds_must_fit_into_the_memory(problem):
    model, train, valid = problem
    first, _ = next(valid.folds(5, seed=0))
    n_docs = train.n_docs + valid.n_docs + first.n_docs
    how = {"rates": (0.5,), "variants": "line-search"}
    needed = n_docs * (12 + 64)
    exact = replace(QUICK, max_memory=needed)
    assert rw.cleaver(model, train, valid, **how, settings=exact).needed_bytes == needed
    with pytest.raises(rw.RankwoodError, match="take a sample of queries"):
        rw.cleaver(model, train, valid, **how, settings=replace(QUICK, max_memory=needed - 1))


def test_what_is_said_when_none_is_accepted(problem):
    model, train, valid = problem
    result = rw.cleaver(model, train, valid, rates=(0.5, 0.9), variants="line-search", settings=QUICK,
                        accept=rw.Acceptance(margin=1e-4))  # fmt: skip
    assert not result.accepted
    assert result.ensemble is model
    promising = result.promising
    assert promising.n_trees < model.n_trees
    assert result.proof is promising.proof
    by_need = [math.inf if row.proof.needed is None else row.proof.needed for row in result.rows[1:]]
    assert by_need[result.rows[1:].index(promising)] == min(by_need)
    said = f"of the most promising, with {promising.n_trees} trees (line-search), {promising.proof.words()}"
    assert said in result.summary()
    by_name = rw.cleaver(model, train, valid, judge=None, rates=(0.9,), variants="line-search", accept="quality",
                         strategy="random", settings=QUICK)  # fmt: skip
    assert by_name.proof is None
    assert "shows nothing of its loss" in by_name.summary() or "no smaller model was accepted" in by_name.summary()


def test_a_worse_model_is_rarely_accepted():
    """Of 27 models, each of which loses just the margin, one or more pass in at most 5 % of experiments."""
    rng, rule = np.random.default_rng(0), rw.Acceptance()
    n_experiments, n_queries, n_models = 400, 150, 27
    wrong = uncorrected = 0
    for _ in range(n_experiments):
        shared = rng.normal(0.0, 0.03, n_queries)  # pruned models of one ranker err together
        smaller = [0.5 - 0.005 + shared + rng.normal(0.0, 0.03, n_queries) for _ in range(n_models)]
        proofs = rw.Proof.of_each(np.full(n_queries, 0.5), smaller, rule)
        wrong += any(proof.holds for proof in proofs)
        uncorrected += any(proof.p_value <= rule.alpha for proof in proofs)
    assert wrong / n_experiments <= 0.05
    assert uncorrected / n_experiments > 0.2  # which is what looking at all of them would do


def test_pruning_that_loses_is_rarely_accepted():
    """Of a model in which all trees count: queries that chose a smaller one let it pass, others do not."""
    model = rw.Ensemble.from_trees([(feature, 0.0, 0.0, 1.0) for feature in range(8)])
    accepted = {"folds": 0, "quality": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(160 * 8, 8)).astype(np.float32)
        y = np.digitize((X > 0).sum(axis=1) + rng.normal(0, 2.0, len(X)), [2.5, 4.0, 5.5])
        data = rw.Dataset(X, y, group=[8] * 160)
        train, valid = data.select_queries(range(80)), data.select_queries(range(80, 160))
        how = {"rates": (0.1, 0.25, 0.5), "settings": QUICK}
        accepted["folds"] += rw.cleaver(model, train, valid, **how).accepted
        accepted["quality"] += rw.cleaver(model, train, valid, judge=None, accept="quality", **how).accepted
    assert accepted["folds"] <= 1
    assert accepted["quality"] >= 6
