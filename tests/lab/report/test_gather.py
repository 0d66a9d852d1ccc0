"""The numbers of a report: those that evaluate and compare give, and what is said when there are none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwood as rw
from lab.report.conftest import QUICK
from rankwood.lab.drawing import pareto_front
from rankwood.lab.report.facts import Difference, count_in, shared_bins, spread_out, thinned
from rankwood.lab.report.page import headline_numbers, summarise
from rankwood.lab.report.write import gather


def test_quality_is_that_of_evaluate(facts, models, data):
    for model in facts.models:
        expected = rw.evaluate(models[model.name], data, ["nDCG@10", "AP"])
        for measure in facts.measures:
            found = model.quality[measure]
            assert found.value == expected[measure]
            values = expected.per_query[measure]
            interval = rw.bootstrap_interval(np.zeros_like(values), values)
            assert (found.low, found.high) == (interval.low, interval.high)


def test_differences_are_those_of_compare_and_corrected_together(facts, models, data):
    compared = {
        (name, measure): rw.compare(models["large"], models[name], data, measure)
        for name in ("small", "stump")
        for measure in facts.measures
    }
    adjusted = rw.holm([one.p_randomisation for one in compared.values()])
    for ((name, measure), expected), p_holm in zip(compared.items(), adjusted, strict=True):
        (model,) = (model for model in facts.models if model.name == name)
        found = model.difference[measure]
        assert found == Difference(expected.difference, *expected.interval, expected.p_randomisation, p_holm)
    assert facts.base.name == "large"
    assert facts.base.difference == {}


def test_pairs_are_those_of_all_models_under_all_measures(facts, models, data):
    assert [(pair.first, pair.second, pair.measure) for pair in facts.pairs] == [
        (a, b, measure) for measure in facts.measures for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    names = list(models)
    for measure in facts.measures:
        pairs = [pair for pair in facts.pairs if pair.measure == measure]
        for pair in pairs:
            first, second = (rw.evaluate(models[names[n]], data, measure) for n in (pair.first, pair.second))
            values = second.per_query[measure] - first.per_query[measure]
            assert pair.differences == pytest.approx(np.sort(values), abs=1e-12)
            assert (pair.wins, pair.losses) == ((values > 1e-12).sum(), (values < -1e-12).sum())
            assert pair.wins + pair.ties + pair.losses == data.n_queries
            expected = rw.compare(models[names[pair.first]], models[names[pair.second]], data, measure)
            assert pair.difference == pytest.approx(expected.difference, abs=1e-12)
            assert pair.p == expected.p_randomisation
        assert [pair.p_holm for pair in pairs] == rw.holm([pair.p for pair in pairs]).tolist()


def test_extreme_queries_tell_how_each_model_ranks_them(facts, models, data):
    pair = facts.pairs[0]
    worst = pair.worst[0]
    assert worst.second - worst.first == pytest.approx(min(pair.differences), abs=1e-12)
    query = data.query(list(map(str, data.queries.ids)).index(worst.query))
    assert worst.n_docs == query.n_docs
    for ranking, name in ((worst.first_ranking, "large"), (worst.second_ranking, "small")):
        scores = rw.load_model(models[name]).score(query.X)
        expected = query.y[np.argsort(-scores, kind="stable")[:10]]
        assert [float(label) for label in ranking.split()] == expected.tolist()
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
        assert model.speed_up == facts.base.timing.us_per_doc / timing.us_per_doc
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
    assert facts.base.speed_up == 1.0
    assert [bool(model.difference) for model in facts.models] == [True, True, False]


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
    assert (pair.p, pair.difference) == (expected.p_randomisation, pytest.approx(expected.difference))


def test_one_query_has_no_interval_and_no_test(models, data):
    facts = gather(models, data.query(0), measures=["nDCG@10"], budget=QUICK)
    for model in facts.models[1:]:
        assert model.quality["nDCG@10"].low is None
        found = model.difference["nDCG@10"]
        assert (found.low, found.p, found.p_holm) == (None, None, None)
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


def test_the_summary_names_the_smallest_model_that_is_as_good(facts):
    worse = Difference(-0.1, -0.2, -0.05, 0.001, 0.01)
    as_good = Difference(-0.01, -0.02, 0.01, 0.2, 0.4)
    better = Difference(0.1, 0.05, 0.2, 0.001, 0.01)

    def summary(small, stump):
        changed = [
            facts.models[0],
            replace(facts.models[1], difference={"nDCG@10": small}),
            replace(facts.models[2], difference={"nDCG@10": stump}),
        ]
        return replace(facts, models=changed)

    one = summary(as_good, worse)
    assert summarise(one)[0].startswith("small is the smallest model that is not significantly worse than large: ")
    assert "−0.0100, 95 % interval −0.0200 to +0.0100, p = 0.200" in summarise(one)[0]
    assert headline_numbers(one)[2] == ("−0.0100", "nDCG@10, difference from large")
    assert summarise(summary(as_good, as_good))[0].startswith("stump is the smallest model")
    assert summarise(summary(worse, worse)) == [
        "Every model that is smaller than large is significantly worse by nDCG@10."
    ]
    assert summarise(summary(better, worse))[1].startswith("small is significantly better than large")
    assert summarise(summary(better, worse))[1].endswith("corrected p = 0.010).")
    # The more models, the larger a corrected p: that must not make a loss pass for none.
    overlooked = Difference(-0.1, -0.2, -0.004, 0.04, 0.4)
    assert summarise(summary(overlooked, worse))[0].startswith("Every model that is smaller")


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
