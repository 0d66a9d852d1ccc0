"""Models of ydf, through its tree API."""

from __future__ import annotations

import numpy as np
import pytest

import rankwood as rw
from rankwood.errors import ModelError
from strategies.adversarial_rows import adversarial_rows, assert_close, training_data

ydf = pytest.importorskip("ydf", reason="YDF ABSENT: pip install ydf")
NAMES = ["bm25", "größe", "a b", "clicks", "age"]


def columns(X):
    return {name: np.ascontiguousarray(X[:, number], dtype=np.float32) for number, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("learner", "task", "options"),
    [
        ("GradientBoostedTreesLearner", "REGRESSION", {"num_trees": 8}),
        ("GradientBoostedTreesLearner", "RANKING", {"num_trees": 5, "ranking_group": "group"}),
        ("GradientBoostedTreesLearner", "REGRESSION", {"num_trees": 8, "allow_na_conditions": True}),
        ("RandomForestLearner", "REGRESSION", {"num_trees": 5}),
        ("CartLearner", "REGRESSION", {}),
    ],
)
def test_scores(learner, task, options):
    X, y = training_data()
    data = columns(X) | {"label": y.astype(np.float32)}
    if task == "RANKING":
        data["group"] = np.repeat(np.arange(30), 20)
    theirs = getattr(ydf, learner)(label="label", task=getattr(ydf.Task, task), **options).train(data, verbose=0)
    model = rw.load_model(theirs)
    assert set(model.feature_names) <= set(NAMES)
    rows = np.concatenate([X, adversarial_rows(model, 500, infinite=False)[:, : X.shape[1]]]).astype(np.float32)
    frame = columns(rows)
    query = frame | ({"group": np.zeros(len(rows), dtype=int)} if task == "RANKING" else {})
    assert_close(theirs.predict(query), model, np.stack([frame[name] for name in model.feature_names], axis=1))


def test_other_splits_are_refused():
    X, y = training_data()
    data = columns(X) | {"label": y.astype(np.float32), "colour": np.where(y > 1, "red", "blue")}
    theirs = ydf.GradientBoostedTreesLearner(label="label", task=ydf.Task.REGRESSION, num_trees=2).train(
        data, verbose=0
    )
    with pytest.raises(ModelError, match="splits feature colour by Categorical"):
        rw.load_model(theirs)
