"""`verify`: finds what differs, names it, and believes no library."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.errors import ModelError
from rankwood.scoring.agreement import adversarial_rows
from strategies.ensembles import big_ensemble, ensembles, renumber
from strategies.exports import exported


@settings(max_examples=40)
@given(ensembles())
def test_a_model_agrees_with_itself(model):
    result = rw.verify(model, model.replace())
    assert result
    assert result.max_absolute == 0
    assert result.same_structure


@settings(max_examples=60)
@given(ensembles(max_trees=3, sets=False), st.data())
def test_a_threshold_moved_by_one_step_is_found_at_its_node(model, data):
    reached = [node for node in range(model.n_nodes) if _reachable(model, node)]
    if not reached:
        return
    node = data.draw(st.sampled_from(reached))
    threshold = model.threshold.copy()
    threshold[node] = np.nextafter(threshold[node], -np.inf if threshold[node] > 0 else np.inf)
    result = rw.verify(model, model.replace(threshold=threshold))
    tree = int(np.searchsorted(model.node_offsets, node, side="right")) - 1
    assert not result.agree
    places = {(difference.tree, difference.node) for difference in result.routing}
    assert places == {(tree, node - int(model.node_offsets[tree]))}
    assert "goes left" in str(result)


@settings(max_examples=60)
@given(ensembles(max_trees=3, max_features=2), st.data())
def test_a_threshold_of_a_set_moved_by_one_step_is_found(model, data):
    if model.set_thresholds is None:
        return
    at = data.draw(st.integers(0, len(model.set_thresholds) - 1))
    moved = model.set_thresholds.copy()
    moved[at] = np.nextafter(moved[at], -np.inf if moved[at] > 0 else np.inf)
    try:
        other = model.replace(set_thresholds=moved)
    except ModelError:  # no room for a step
        return
    rows = adversarial_rows([model, other]).double
    if (model.leaves(rows) != other.leaves(rows)).any():
        assert not rw.verify(model, other, categories="any")
    node = int(np.searchsorted(model.set_offsets, at, side="right")) - 1
    if node in model.node_offsets[:-1]:  # a root, which every value reaches
        assert (model.leaves(rows) != other.leaves(rows)).any()


def _reachable(model, node):
    """Whether some value lies on the threshold of a node and is let through to it: then moving it shows."""
    rows = adversarial_rows(model).double
    at = rows[rows[:, model.feature[node]] == model.threshold[node]]
    if not len(at):
        return False
    moved = model.threshold.copy()
    moved[node] = np.nextafter(moved[node], -np.inf if moved[node] > 0 else np.inf)
    return bool((model.leaves(rows) != model.replace(threshold=moved).leaves(rows)).any())


@pytest.mark.parametrize("seed", range(5))
def test_nodes_that_only_unusual_values_reach(seed):
    # Two splits of feature 0 that no number passes but NaN does, or -inf alone; then one of feature 1.
    for children, thresholds, missing in (
        (([1, -1, -2], [-3, 2, -4]), [1.0, 2.0, 0.5], [True, False, False]),
        (([1, 2, -2], [-3, -1, -4]), [-np.inf, -np.inf, 0.5], [False, False, False]),
    ):
        left, right = (np.array(side, dtype=np.int32) for side in children)
        tree = rw.Tree(np.array([0, 0, 1]), np.array(thresholds), left, right, np.arange(4.0), np.array(missing))
        model = rw.Ensemble.from_trees([tree])
        moved = model.threshold.copy()
        moved[2] = np.nextafter(0.5, 0)
        result = rw.verify(model, model.replace(threshold=moved), seed=seed)
        assert {difference.node for difference in result.routing} == {2}


@settings(max_examples=40)
@given(ensembles(sets=False), st.integers(0, 100))
def test_numbers_of_nodes_and_leaves_do_not_matter(model, seed):
    rng = np.random.default_rng(seed)
    trees = []
    for number in range(model.n_trees):
        tree = model.tree(number)
        n_nodes = len(tree.feature)
        left, right = tree.left, tree.right
        new_left, new_right = renumber(left, right, rng)
        # where each node and leaf went: walk both trees side by side
        node_of, leaf_of = {0: 0}, {0: 0} if n_nodes == 0 else {}
        pending = [(0, 0)] if n_nodes else []
        while pending:
            old, new = pending.pop()
            for a, b in ((left[old], new_left[new]), (right[old], new_right[new])):
                if a >= 0:
                    node_of[int(a)] = int(b)
                    pending.append((a, b))
                else:
                    leaf_of[int(~a)] = int(~b)
        nodes = np.array([node_of[i] for i in range(n_nodes)], dtype=int)
        leaves = np.array([leaf_of[i] for i in range(n_nodes + 1)], dtype=int)
        arrays = {}
        for name in ("feature", "threshold", "missing_left"):
            arrays[name] = getattr(tree, name).copy()
            arrays[name][nodes] = getattr(tree, name)
        values = tree.leaf_value.copy()
        values[leaves] = tree.leaf_value
        trees.append(rw.Tree(**arrays, left=new_left, right=new_right, leaf_value=values))
    other = rw.Ensemble.from_trees(trees, n_features=model.n_features, tree_weights=model.tree_weights, base=model.base)
    result = rw.verify(model, other)
    assert result.agree
    assert result.same_structure


def test_missing_direction_base_and_weight_are_found():
    model = big_ensemble(1, n_trees=5, n_leaves=8)
    flipped = model.missing_left.copy()
    flipped[3] = not flipped[3]
    result = rw.verify(model, model.replace(missing_left=flipped))
    assert {np.isnan(difference.value) for difference in result.routing} == {True}
    result = rw.verify(model, model.replace(base=model.base + 1e-3))
    assert not result
    assert result.max_absolute == pytest.approx(1e-3)
    assert sum(result.n_routing.values()) == 0
    assert rw.verify(model, model.replace(base=model.base + 1e-3), tolerance=0.1)


def test_float32_alone_where_that_is_what_matters():
    model = rw.Ensemble.from_trees([(0, 0.1, 1.0, 2.0)])
    rounded = rw.Ensemble.from_trees([(0, float(np.nextafter(np.float32(0.1), np.float32(0))), 1.0, 2.0)])
    result = rw.verify(model, rounded)
    assert not result
    assert "they agree on all float32 rows" in str(result)
    assert rw.verify(model, rounded, dtype="float32")


def test_data_counts_too_and_names_are_matched():
    data = rw.make_ranking(n_queries=20, docs_per_query=10, n_features=4, seed=0)
    model = rw.LambdaMART(n_trees=5, n_leaves=6).fit(data).ensemble_
    order = [2, 0, 3, 1]
    names = [model.feature_names[f] for f in order]
    place = np.argsort(order)
    other = model.replace(feature=place[model.feature].astype(np.int32), feature_names=names)
    result = rw.verify(model, other, data)
    assert result
    assert result.rows["data"] == data.n_docs
    frame = pytest.importorskip("pandas").DataFrame(data.X[:, order], columns=names)
    assert rw.verify(model, other, frame)
    with pytest.raises(rw.DataError, match="has 3 features"):
        rw.verify(model.replace(feature_names=None), other.replace(feature_names=None), data.X[:, :3])


def test_models_of_other_libraries():
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    model = big_ensemble(2, n_trees=10, n_leaves=8)
    booster = lightgbm.Booster(model_str=exported(model, "lightgbm")[0])
    assert rw.verify(model, booster, tolerance=0.0).max_absolute == 0
    assert not rw.verify(model.replace(base=0.0), booster)
    booster = xgboost.Booster(model_file=bytearray(exported(model, "xgboost")[0]))
    result = rw.verify(booster, model, tolerance=1e-5)
    assert result
    assert set(result.rows) == {"float32"}
    assert "refuses rows with infinities" in result.notes[0]
    assert rw.verify(booster, lambda X: model.score(X), np.zeros((2, 8)), tolerance=1e-5).rows == {"data": 2}


def test_scikit_learn():
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(0).normal(size=(200, 3))
    fitted = DecisionTreeRegressor(max_leaf_nodes=20).fit(X, X[:, 0] * X[:, 1])
    tree = fitted.tree_

    def nested(node):
        if tree.children_left[node] < 0:
            return float(tree.value[node, 0, 0])
        children = nested(tree.children_left[node]), nested(tree.children_right[node])
        missing_left = bool(tree.missing_go_to_left[node])
        return (int(tree.feature[node]), float(tree.threshold[node]), *children, missing_left)

    model = rw.Ensemble.from_trees([nested(0)], n_features=3)
    result = rw.verify(model, fitted, X)
    assert result
    assert result.max_absolute == 0
    assert result.rows["float32"] > 60
    assert any("refuses rows with infinities" in note for note in result.notes)
    assert not rw.verify(model.replace(threshold=model.threshold + 1e-6), fitted)


def test_onnx():
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = big_ensemble(2, n_trees=10, n_leaves=8)
    session = onnxruntime.InferenceSession(exported(model, "onnx", version=5)[0])
    assert rw.verify(model, session, tolerance=1e-12)


def test_files_and_learners(tmp_path):
    data = rw.make_ranking(n_queries=10, docs_per_query=10, n_features=3, seed=0)
    learner = rw.LambdaMART(n_trees=2, n_leaves=4).fit(data)
    learner.ensemble_.save(tmp_path / "m.rw")
    assert rw.verify(tmp_path / "m.rw", learner)


def test_wrong_use():
    model = big_ensemble(2, n_trees=2, n_leaves=4)
    with pytest.raises(rw.ModelError, match="give data to compare them on"):
        rw.verify(lambda X: X[:, 0], lambda X: X[:, 0])
    with pytest.raises(rw.ModelError, match="must be a model"):
        rw.verify(model, 3)
    with pytest.raises(rw.ModelError, match="of 8 and 9 features"):
        rw.verify(model, model.replace(n_features=9))
    with pytest.raises(rw.ModelError, match="one score per row"):
        rw.verify(model, lambda X: X)
    with pytest.raises(rw.ModelError, match="cannot score: no"):
        rw.verify(model, _fail)
    with pytest.raises(rw.RankwoodError, match="dtype"):
        rw.verify(model, model, dtype="float16")


def _fail(X):
    raise RuntimeError("no")


def test_nan_scores_are_a_difference_and_json_can_hold_all():
    model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)])
    result = rw.verify(model, lambda X: np.where(np.isnan(X[:, 0]), np.nan, model.score(X)))
    assert not result
    assert result.max_absolute == np.inf
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False))["agree"] is False


def test_large_models_are_tried_within_bounds():
    model = big_ensemble(2, n_trees=200, n_leaves=64)
    result = rw.verify(model, model, max_rows=2000)
    assert result.rows["float32"] <= 2000
    assert "left to chance" in result.notes[0]


def test_other_libraries_are_asked_for_what_is_imported():
    """Means of forests, rounds until an early stop, raw scores of classifiers."""
    lgb = pytest.importorskip("lightgbm", reason="PEER LEFT OUT: lightgbm is not installed")
    xgb = pytest.importorskip("xgboost", reason="PEER LEFT OUT: xgboost is not installed")
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=200)
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "verbose": -1, "num_leaves": 5}
    stopped = xgb.XGBRegressor(n_estimators=20, early_stopping_rounds=1, learning_rate=1.0, n_jobs=1)
    models = [
        lgb.train(forest, lgb.Dataset(X, y), 5),
        stopped.fit(X, y, eval_set=[(X[:50], -y[:50])], verbose=False),
        GradientBoostingClassifier(n_estimators=5).fit(X, y > 0),
        RandomForestClassifier(n_estimators=5).fit(X, y > 0),
        HistGradientBoostingRegressor(loss="poisson", max_iter=5).fit(X, np.abs(y)),
    ]
    for model in models:
        imported = rw.load_model(model)
        result = rw.verify(imported, model, tolerance=1e-5, max_rows=2000)
        assert result, f"{type(model).__name__}: {result}"
        assert not rw.verify(imported.replace(base=imported.base + 0.5), model, max_rows=2000)


def test_rows_hold_zeros_and_whole_numbers():
    """What counts and grades are: every node meets the whole number next to its threshold, whole rows are of them."""
    model = rw.Ensemble.from_trees([(0, 2.5, (1, -1e-35, 1.0, 2.0), (1, 3.5, 3.0, (2, -0.5, 4.0, 5.0)))], n_features=4)
    rows = adversarial_rows(model)
    for X in (rows.single, rows.double):
        whole = X[(np.rint(X) == X).all(axis=1)]
        assert len(np.unique(model.leaves(whole))) >= 4
        assert 0.4 < (whole == 0).mean() < 0.9
        assert np.isin([-1, 0, 2, 3, 4], whole).all()
        at_zero = X[(X[:, 0] <= 2.5) & (X[:, 1] == 0)]
        at_three = X[(X[:, 0] > 2.5) & np.isin(X[:, 1], (3, 4))]
        assert len(at_zero)
        assert len(at_three)
