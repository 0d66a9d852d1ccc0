"""The numbers of a report: those that evaluate and compare give, and what is said when there are none."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from lab.report.conftest import QUICK
from rankwood.lab.drawing import pareto_front
from rankwood.lab.report.facts import Difference, Estimate, count_in, shared_bins, spread_out, thinned
from rankwood.lab.report.page import headline_numbers, page_data, summarise
from rankwood.lab.report.write import gather
from rankwood.pruning.accept import Proof


def test_quality_is_that_of_evaluate(facts, models, data):
    for model in facts.models:
        expected = rw.evaluate(models[model.name], data, ["nDCG@10", "AP"])
        for measure in facts.measures:
            found = model.quality[measure]
            assert found.value == expected[measure]
            values = expected.per_query[measure]
            interval = rw.bootstrap_interval(np.zeros_like(values), values)
            assert (found.low, found.high) == (interval.low, interval.high)


def test_differences_are_those_of_compare_and_have_the_p_of_their_pair(facts, models, data):
    for number, name in ((1, "small"), (2, "stump")):
        for measure in facts.measures:
            expected = rw.compare(models["large"], models[name], data, measure)
            found = facts.models[number].difference[measure]
            assert (found.value, found.low, found.high) == (expected.difference, *expected.interval)
            (pair,) = (one for one in facts.pairs if (one.first, one.second, one.measure) == (0, number, measure))
            assert found.p == pair.p
    assert facts.base.name == "large"
    assert facts.base.difference == {}


def test_a_loss_below_the_margin_is_shown_as_everywhere_and_corrected_for_the_models(facts, models, data):
    assert facts.margin == 0.005
    for measure in facts.measures:
        values = [rw.evaluate(models[name], data, measure).per_query[measure] for name in models]
        alone = [rw.non_inferiority_test(values[0], other, margin=0.005).p_value for other in values[1:]]
        for model, p in zip(facts.models[1:], rw.holm(alone), strict=True):
            assert model.difference[measure].proof.p_adjusted == p
            assert model.difference[measure].is_as_good == (p <= 0.05)
    generous = gather(models, data, measures="AP", margin=0.9, budget=QUICK)
    assert all(model.difference["AP"].is_as_good for model in generous.models[1:])
    with pytest.raises(rw.RankwoodError, match="margin must be a positive number"):
        gather(models, data, margin=0.0)


def test_pairs_are_those_of_all_models_under_all_measures(facts, models, data):
    assert [(pair.first, pair.second, pair.measure) for pair in facts.pairs] == [
        (a, b, measure) for measure in facts.measures for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    names = list(models)
    for measure in facts.measures:
        pairs, alone = [pair for pair in facts.pairs if pair.measure == measure], []
        for pair in pairs:
            first, second = (rw.evaluate(models[names[n]], data, measure) for n in (pair.first, pair.second))
            values = second.per_query[measure] - first.per_query[measure]
            assert pair.differences == pytest.approx(np.sort(values), abs=1e-12)
            assert (pair.wins, pair.losses) == ((values > 1e-12).sum(), (values < -1e-12).sum())
            assert pair.wins + pair.ties + pair.losses == data.n_queries
            expected = rw.compare(models[names[pair.first]], models[names[pair.second]], data, measure)
            assert pair.difference == pytest.approx(expected.difference, abs=1e-12)
            alone.append(expected.p_randomisation)
        assert [pair.p for pair in pairs] == rw.holm(alone).tolist()


def test_extreme_queries_tell_how_each_model_ranks_them(facts, models, data):
    pair = facts.pairs[0]
    worst = pair.worst[0]
    assert worst.second - worst.first == pytest.approx(min(pair.differences), abs=1e-12)
    query = data.query(list(map(str, data.queries.ids)).index(worst.query))
    assert worst.n_docs == query.n_docs
    ranked = []
    for kind, name in (("first", "large"), ("second", "small")):
        scores = rw.load_model(models[name]).score(query.X)
        best = np.argsort(-scores, kind="stable")[:10]
        found = sorted(worst.documents, key=lambda one, kind=kind: getattr(one, f"{kind}_rank"))[:10]
        assert [getattr(one, f"{kind}_rank") for one in found] == list(range(1, 11))
        assert [one.label for one in found] == query.y[best].tolist()
        assert [getattr(one, f"{kind}_score") for one in found] == scores[best].tolist()
        ranked += best.tolist()
    assert len(worst.documents) == len(set(ranked))
    row = int(worst.documents[0].name.removeprefix("row ")) - 1
    assert (str(data.qid[row]), data.y[row]) == (worst.query, worst.documents[0].label)
    assert sum(int(part.split(" × ")[0]) for part in worst.labels.split(", ")) == query.n_docs


def test_size_shape_and_time(facts, models):
    for model in facts.models:
        topology = rw.load_model(models[model.name]).topology()
        assert (model.n_trees, model.n_nodes, model.n_leaves) == (topology.n_trees, topology.n_nodes, topology.n_leaves)
        assert sum(model.anatomy.depths) == sum(model.anatomy.leaves) == model.n_trees
        assert sum(model.anatomy.splits) == pytest.approx(1.0)
        timing = model.timing
        assert 0.0 < timing.low <= timing.us_per_doc <= timing.high
        assert (timing.precision, timing.n_threads, timing.batch) == ("double", 1, facts.data["documents"])
        assert model.speed_up.value == pytest.approx(facts.base.timing.us_per_doc / timing.us_per_doc)
        if model is not facts.base:
            assert 0.0 < model.speed_up.low <= model.speed_up.value <= model.speed_up.high
        assert model.timing.engine in ("bitslice", "traverse")


def test_learners_and_their_models_bring_curves_and_settings(facts, models):
    large, small, stump = facts.models
    assert large.curves["valid"]["nDCG@10"].values == models["large"].evals_result_["valid"]["nDCG@10"]
    assert len(small.curves["train"]["nDCG@10"].values) == 4
    assert small.settings["learner"] == "LambdaMART"
    assert small.settings["balance"] == "0.1"
    assert stump.curves == stump.settings == {}


def test_curves_and_settings_can_be_given(models, data):
    facts = gather(
        {"stump": models["stump"]},
        data,
        curves={"stump": {"valid": {"AP": [0.1, math.inf, 0.3]}}},
        settings={"stump": {"made by": {"hand": True}}},
        measures="AP",
        budget=QUICK,
    )
    assert facts.base.curves["valid"]["AP"].values == [0.1, None, 0.3]
    assert facts.base.settings == {"made by hand": "True"}


def test_a_pruned_model_does_not_show_the_curve_of_the_whole_one(models, data):
    pruned = models["small"].select([0, 1]).with_metadata(cleaver={"rate": 0.5})
    facts = gather({"pruned": pruned}, data, measures="AP", budget=QUICK)
    assert facts.base.curves == {}
    assert facts.base.settings["cleaver rate"] == "0.5"


def test_another_baseline(models, data):
    facts = gather(models, data, baseline="stump", measures="AP", budget=QUICK)
    assert facts.base.name == "stump"
    assert facts.base.speed_up == Estimate(1.0)
    assert [bool(model.difference) for model in facts.models] == [True, True, False]
    assert summarise(facts)[0] == "No model is smaller than stump, which has 2 leaves."
    assert page_data(facts)["pair"] == [2, 0]


def test_features_are_found_by_name(data):
    names = [f"f{n}" for n in range(6)]
    named = rw.Dataset(data.X, data.y, qid=data.qid, feature_names=names)
    model = rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)], n_features=6, feature_names=names[::-1])
    facts = gather({"m": model}, named, measures="AP", budget=QUICK)
    assert facts.features == names
    assert facts.base.anatomy.splits == [0.0] * 5 + [1.0]
    assert facts.base.quality["AP"].value == rw.evaluate(model, named, "AP")["AP"]


def test_weights_of_queries_count(data, models):
    weights = np.arange(data.n_queries, dtype=float)
    weighted = rw.Dataset(data.X, data.y, qid=data.qid, query_weights=weights)
    facts = gather(models, weighted, measures="AP", budget=QUICK)
    expected = rw.compare(models["large"], models["stump"], weighted, "AP")
    assert facts.models[2].difference["AP"].value == expected.difference
    pair = facts.pairs[1]
    alone = [rw.compare(models[a], models[b], weighted, "AP").p_randomisation for a, b in combinations(models, 2)]
    assert (pair.p, pair.difference) == (rw.holm(alone)[1], pytest.approx(expected.difference))


def test_one_query_has_no_interval_and_no_test(models, data):
    facts = gather(models, data.query(0), measures=["nDCG@10"], budget=QUICK)
    for model in facts.models[1:]:
        assert model.quality["nDCG@10"].low is None
        found = model.difference["nDCG@10"]
        assert (found.low, found.p, found.is_as_good) == (None, None, False)
    assert "too few queries for a test" in summarise(facts)[0]


def test_queries_that_a_convention_leaves_out_are_not_compared(models):
    data = rw.Dataset(np.zeros((6, 6)), [0, 0, 1, 0, 1, 1], group=[2, 2, 2])
    facts = gather(models, data, measures="nDCG@10", convention=rw.Convention("skipping", empty="skip"), budget=QUICK)
    assert facts.pairs[0].ties == 2


def test_a_model_without_trees(data):
    facts = gather({"none": rw.Ensemble.from_trees([], n_features=6)}, data, measures="AP", budget=QUICK)
    assert (facts.base.n_trees, facts.base.anatomy.trees, facts.base.mean_depth) == (0, [], 0.0)


def test_progress_ends_at_the_end(models, data):
    steps = []
    gather(models, data, measures="AP", budget=QUICK, on_step=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)
    assert steps[-1][1] == steps[-1][2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "at least one model"),
        ({"models": [1]}, "mapping from names to models, got list"),
        ({"data": [[1.0]]}, "needs a Dataset"),
        ({"baseline": "nobody"}, "no model 'nobody' to compare with; there are large, small, stump"),
        ({"measures": []}, "at least one measure"),
        ({"measures": "nDCG@"}, "nDCG@"),
        ({"engine": "warp"}, "no engine 'warp'"),
        ({"curves": {"nobody": {}}}, "curves are given for 'nobody'"),
        ({"settings": {"nobody": {}}}, "settings are given for 'nobody'"),
        (
            {"models": {"wide": rw.Ensemble.from_trees([(8, 0.5, 1.0, 2.0)])}},
            "model 'wide' is of 9 features and the data of 6: all models of a report must fit the same data",
        ),
    ],
)
def test_what_is_wrong_is_said(change, message, models, data):
    arguments = {"models": models, "data": data, "budget": QUICK} | change
    with pytest.raises(rw.RankwoodError, match=message):
        gather(**arguments)


def test_features_that_are_named_differently_are_refused(data):
    named = rw.Dataset(data.X, data.y, qid=data.qid, feature_names=list("abcdef"))
    model = rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)], n_features=6, feature_names=list("abcdex"))
    with pytest.raises(rw.DataError, match=r"model 'odd' does not fit the data: .*differently"):
        gather({"odd": model}, named, budget=QUICK)


def test_the_engine_that_is_timed_can_be_named(models, data):
    facts = gather(models, data, measures="AP", engine="reference", budget=QUICK)
    assert {model.timing.engine for model in facts.models} == {"reference"}
    assert all(model.timing.n_calls >= 6 for model in facts.models)


def differing(value, width, p):
    """A difference of 200 queries, whose interval is `2 * width` wide."""
    values = np.full(200, 0.5)
    others = values + value + np.tile([1.0, -1.0], 100) * width * 7
    proof = Proof.of(values, others, rw.Acceptance(margin=0.005))
    return Difference(value, value - width, value + width, p, proof)


def test_the_headline_is_what_is_shown_of_the_smallest_model(facts):
    worse, unclear = differing(-0.1, 0.02, 0.001), differing(-0.01, 0.02, 0.2)
    as_good, better = differing(-0.001, 0.002, 0.4), differing(0.1, 0.02, 0.01)
    assert [one.is_as_good for one in (worse, unclear, as_good, better)] == [False, False, True, True]

    def changed(small, stump):
        models = [replace(m, difference={"nDCG@10": d}) for m, d in zip(facts.models[1:], (small, stump), strict=True)]
        return replace(facts, models=[facts.models[0], *models], measures=["nDCG@10"], pairs=[])

    one = changed(as_good, worse)
    assert summarise(one)[0].startswith(
        "small is the smallest model that is shown to be as good as large: it loses less than 0.005 of nDCG@10, "
        "95 % sure, on 200 queries that chose nothing (nDCG@10 "
    )
    assert ": difference −0.0010, 95 % interval −0.0030 to +0.0010, one-sided bound −0.00" in summarise(one)[0]
    assert summarise(one)[0].endswith(", corrected p = 0.400).")
    assert summarise(one)[1].startswith("small has ")
    assert "times as fast (" in summarise(one)[1]
    assert headline_numbers(one)[0] == ("shown", "that small loses less than 0.005 of nDCG@10")
    assert headline_numbers(one)[1] == ("−0.0010", "nDCG@10 against large (−0.0030 to +0.0010)")
    assert summarise(changed(as_good, as_good))[0].startswith("stump is the smallest model")
    # Not significantly worse is not as good.
    none = changed(unclear, worse)
    assert summarise(none)[0].startswith(
        "No smaller model is shown to be as good as large; small comes closest: that it loses less than 0.005"
    )
    assert headline_numbers(none)[0][0] == "not shown"
    assert summarise(changed(better, worse))[2].startswith("small is significantly better than large: nDCG@10 ")
    assert page_data(one)["pair"] == page_data(none)["pair"] == [0, 1]
    assert page_data(changed(worse, as_good))["pair"] == [0, 2]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_no_point_beats_the_pareto_front(points):
    front = [points[place] for place in pareto_front(*zip(*points, strict=True))]
    for x, y in points:
        beaten = any(a <= x and b >= y and (a < x or b > y) for a, b in points)
        assert ((x, y) in front) == (not beaten)


@given(st.lists(st.lists(st.integers(0, 10_000), max_size=30), min_size=1, max_size=4))
def test_bins_hold_everything(values):
    arrays = [np.array(one, dtype=np.int64) for one in values]
    bins = shared_bins(arrays)
    for array in arrays:
        counts = count_in(array, bins)
        assert sum(counts) == len(array)
        assert len(counts) <= 40


@given(st.integers(0, 5000), st.integers(2, 600))
def test_spread_out_keeps_the_ends(n, most):
    shown = spread_out(n, most)
    assert len(shown) <= most
    if n:
        assert (shown[0], shown[-1]) == (0, n - 1)


@given(st.lists(st.floats(), max_size=1500))
def test_thinned_curves_are_finite_and_keep_the_best(values):
    curve = thinned(values)
    finite = [value for value in values if math.isfinite(value)]
    assert len(curve.values) <= 601
    if finite:
        assert max(value for value in curve.values if value is not None) == max(finite)
    assert all(value is None or math.isfinite(value) for value in curve.values)
