"""What a model remembers of how it was learnt."""

from __future__ import annotations

import pytest

import rankwood as rw


@pytest.fixture(scope="module")
def parts():
    return rw.make_ranking(n_queries=30, docs_per_query=10, n_features=4, seed=1).split(0.7)


@pytest.mark.parametrize("kind", [rw.LambdaMART, rw.RandomForest, rw.XDART])
def test_the_curves_are_in_the_model_file(parts, kind, tmp_path):
    train, valid = parts
    ranker = kind(n_trees=4, n_leaves=4, measure=["nDCG@10", "AP"]).fit(train, valid=valid)
    ranker.ensemble_.save(tmp_path / "model.rw")
    curves = rw.load_model(tmp_path / "model.rw").metadata["learning_curves"]
    assert list(curves) == ["valid"]
    assert set(curves["valid"]) == {"nDCG@10", "AP"}
    for measure, values in curves["valid"].items():
        assert values == pytest.approx(ranker.evals_result_["valid"][measure], rel=1e-5)


def test_without_data_to_measure_on_there_are_none(parts):
    assert "learning_curves" not in rw.MART(n_trees=2, n_leaves=4).fit(parts[0]).ensemble_.metadata


def test_going_on_does_not_keep_the_curves_of_before(parts):
    train, valid = parts
    first = rw.MART(n_trees=2, n_leaves=4).fit(train, valid=valid)
    second = rw.MART(n_trees=3, n_leaves=4).fit(train, valid=valid, init_model=first)
    assert "learning_curves" not in second.ensemble_.metadata["init_model"]
    assert len(second.ensemble_.metadata["learning_curves"]["valid"]["nDCG@10"]) == 3
