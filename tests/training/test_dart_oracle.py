"""DART and X-DART against an oracle that scores every model anew: same trees, same weights, same decisions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rankwood as rw
from oracles.dart import slow_dart
from rankwood.training.callbacks import live_after
from rankwood.training.losses import LambdaLoss, SquaredLoss

pytestmark = pytest.mark.native

SMALL = {"n_trees": 40, "n_leaves": 5, "min_docs_per_leaf": 5}
CASES = {
    "DART": (rw.DART(rate=0.1, **SMALL), ("ratio", 0.1)),
    "DART 0.3": (rw.DART(rate=0.2, learning_rate=0.3, l2=1.0, random_state=4, **SMALL), ("ratio", 0.2)),
    "DART down": (rw.DART(rate=0.04, rounding="floor", **SMALL), ("ratio", 0.04)),
    "adaptive down": (rw.XDART(upper_bound=3, rounding="floor", learning_rate=0.5, **SMALL), ("adaptive", 3)),
    "DART skips": (rw.DART(rate=0.2, skip=0.4, **SMALL), ("ratio", 0.2)),
    "DART on MART": (rw.DART(rate=0.1, learning_rate=0.5, loss="mart", **SMALL), ("ratio", 0.1)),
    "ratio": (rw.XDART(strategy="ratio", rate=0.15, learning_rate=0.2, **SMALL), ("ratio", 0.15)),
    "fixed": (rw.XDART(strategy="fixed", k=2, **SMALL), ("fixed", 2)),
    "fixed 1": (rw.XDART(strategy="fixed", k=1, learning_rate=0.2, **SMALL), ("fixed", 1)),
    "adaptive": (rw.XDART(upper_bound=3, learning_rate=0.5, **SMALL), ("adaptive", 3)),
    "adaptive share": (rw.XDART(upper_bound=0.1, learning_rate=0.4, **SMALL), ("adaptive", 0.1)),
    "previous": (
        rw.XDART(reference="previous", learning_rate=0.2, **SMALL | {"max_iterations": 90}),
        ("adaptive", 5),
    ),
    "on MART": (rw.XDART(loss="mart", learning_rate=0.3, random_state=1, **SMALL), ("adaptive", 5)),
}


@pytest.mark.filterwarnings("ignore:after max_iterations")
@pytest.mark.parametrize("case", CASES)
def test_same_trees_weights_and_decisions(case, parts):
    ranker, (strategy, amount) = CASES[case]
    train, valid = parts
    ranker.fit(train, valid=valid)
    loss = SquaredLoss() if ranker.loss == "mart" else LambdaLoss(truncation=30, normalize=True)
    model, log = slow_dart(
        train,
        valid,
        loss,
        n_trees=ranker.n_trees,
        n_leaves=5,
        nu=ranker.learning_rate,
        strategy=strategy,
        amount=amount,
        remove=isinstance(ranker, rw.XDART),
        reference=getattr(ranker, "reference", "best"),
        skip=ranker.skip,
        l2=ranker.l2,
        seed=ranker.random_state,
        most=getattr(ranker, "max_iterations", None) or 1000,
        rounding=ranker.rounding,
    )
    assert len(ranker.log_) == len(log)
    for number, (step, expected) in enumerate(zip(ranker.log_, log, strict=True)):
        for name in ("iteration", "k", "dropped", "removed", "n_trees"):
            assert getattr(step, name) == expected[name], (number, name)
        assert_allclose([step.value, step.best], [expected["value"], expected["best"]], rtol=1e-12)
        assert_array_equal(list(live_after(ranker.log_[: number + 1]).values()), expected["weights"])
    ours = ranker.ensemble_
    assert_array_equal(ours.feature, model.feature)
    assert_array_equal(ours.threshold, model.threshold)
    assert_array_equal(ours.tree_weights, model.tree_weights)
    assert_allclose(ours.leaf_value, model.leaf_value, rtol=1e-9, atol=1e-12)
    n_removed = sum(len(step.dropped) for step in ranker.log_ if step.removed)
    assert (n_removed > 0) == isinstance(ranker, rw.XDART)
    assert len(ranker.log_) == ours.n_trees + n_removed
    curve = ranker.evals_result_["valid"]["nDCG@10"]
    assert curve == [step.value for step in ranker.log_]
    assert np.isclose(rw.evaluate(ours, valid)["nDCG@10"], curve[-1], rtol=1e-12)
