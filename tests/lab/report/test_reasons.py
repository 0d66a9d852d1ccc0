"""What a report explains: contributions that add up, of as many queries, documents and features as have room."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw
from lab.report.conftest import QUICK
from rankwood.lab.report import reasons
from rankwood.lab.report.facts import spread_out
from rankwood.lab.report.page import first_pair, page_data, render_page
from rankwood.lab.report.write import gather


def explained(facts):
    return [(pair, one) for pair in facts.pairs for one in (*pair.worst, *pair.best) if one.reasons is not None]


def test_contributions_are_those_of_explain_and_add_up_to_differences_of_scores(facts, models, data):
    names = list(models)
    found = explained(facts)
    assert found
    for pair, extreme in found:
        told = extreme.reasons
        shown = [extreme.documents[place] for place in told.documents]
        assert [one for one in extreme.documents if min(one.first_rank, one.second_rank) <= 6] == shown
        rows = [one.row for one in shown]
        for kind, number in (("first", pair.first), ("second", pair.second)):
            model = rw.load_model(models[names[number]])
            weighed = {} if model.leaf_cover is not None else {"data": data.X}
            expected = rw.explain(model, data.X[rows], **weighed)
            parts = np.array(getattr(told, kind))
            assert parts.shape == (len(told.features) + 1, len(rows))
            np.testing.assert_allclose(parts[:-1], expected.values[:, told.features].T, atol=1e-12)
            scores = np.array([getattr(one, f"{kind}_score") for one in shown])
            np.testing.assert_allclose(parts.sum(axis=0) + expected.base_value, scores, atol=1e-9)
        for column, values in zip(told.features, told.values, strict=True):
            assert [float(value) for value in values] == pytest.approx(data.X[rows, column], rel=1e-3)


def test_mean_sizes_of_contributions_are_shares(facts, models, data):
    for model in facts.models:
        ours = rw.load_model(models[model.name])
        knows = ours.leaf_cover is not None
        rows = spread_out(data.n_docs, 1000)
        expected = rw.explain(ours, data.X[rows], **({} if knows else {"data": data.X})).importance
        assert (model.effects.n_docs, model.effects.by_training) == (len(rows), knows)
        assert model.effects.total == pytest.approx(expected.sum())
        np.testing.assert_allclose(model.effects.shares, expected / (expected.sum() or 1.0), atol=1e-12)


def test_the_headlines_queries_are_explained_first_and_their_number_is_bounded(facts, models, data, monkeypatch):
    a, b = first_pair(facts)
    (first,) = (pair for pair in facts.pairs if {pair.first, pair.second} == {a, b} and pair.measure == "nDCG@10")
    assert all(one.reasons is not None for one in (*first.worst, *first.best))
    assert len(explained(facts)) <= reasons.MOST_QUERIES
    monkeypatch.setattr(reasons, "MOST_QUERIES", 3)
    few = gather(models, data, measures=["nDCG@10", "AP"], budget=QUICK)
    found = explained(few)
    assert len(found) == 3
    assert {(pair.first, pair.second, pair.measure) for pair, _ in found} == {(first.first, first.second, "nDCG@10")}
    assert page_data(few)["nExplained"] == len({one.query for _, one in found})
    monkeypatch.setattr(reasons, "WORK", 1)
    monkeypatch.setattr(reasons, "FEWEST", 20)
    large = gather(models, data, measures="nDCG@10", budget=QUICK)
    assert {model.effects.n_docs for model in large.models} == {20}
    assert len({one.row for _, extreme in explained(large) for one in extreme.documents}) < 60


def test_values_are_categories_and_gaps_in_words(tmp_path):
    rng = np.random.default_rng(5)
    codes, number = rng.integers(3, size=600), rng.normal(size=600)
    number[:50] = np.nan
    X = np.column_stack([number, codes]).astype(np.float32)
    data = rw.Dataset(X, (codes + (number > 0)).astype(float), group=[10] * 60, feature_names=["price", "colour"])
    trained = rw.LambdaMART(4, 6, min_docs_per_leaf=5, categorical_features=["colour"]).fit(data).ensemble_
    note = {"lists": [["blue", "green", "red"]], "columns": [1]}
    model = trained.with_metadata(categories=note)
    facts = gather({"a": model, "b": model.select([0])}, data, measures="nDCG@10", budget=QUICK)
    words = {
        value
        for _, one in explained(facts)
        for column, values in zip(one.reasons.features, one.reasons.values, strict=True)
        for value in values
        if column == 1
    }
    assert words <= {"blue", "green", "red"}
    assert words
    assert page_data(facts)["numbered"] is False
    assert "blue" in render_page(facts)


def test_a_report_of_one_model_explains_no_pair_but_weighs_features(models, data):
    unnamed = rw.Dataset(data.X, data.y, qid=data.qid)
    facts = gather(
        {"large": models["large"].ensemble_.replace(feature_names=None)}, unnamed, measures="AP", budget=QUICK
    )
    assert facts.models[0].effects.n_docs == min(data.n_docs, 1000)
    assert page_data(facts)["explained"] == []
    assert page_data(facts)["numbered"] is True
