"""Constraints while training: the search equals a slow twin, and models keep to them through all that follows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rankwood as rw
from oracles import constraints as oracle
from oracles.trees import candidate_thresholds
from rankwood.data.bins import BinnedDataset
from rankwood.errors import RankwoodError
from rankwood.model.constraints import Constraints, path_outside
from rankwood.training.grow import GrowthRules, TreeBuilder, TreeRules
from rankwood.training.params import read_parameter

pytestmark = pytest.mark.native

DIRECTIONS = [1, -1, 1, 0, 0, 0, 0, -1]
GROUPS = [[0, 1, 7], [2, 3, 4], [4, 5]]
SMALL = {"n_trees": 12, "n_leaves": 8, "learning_rate": 0.3, "min_docs_per_leaf": 5}


@pytest.fixture(scope="module")
def with_gaps(parts):
    """Training and validation data with missing values."""
    rng = np.random.default_rng(0)
    gaps = [part.replace(X=np.where(rng.random(part.X.shape) < 0.05, np.float32(np.nan), part.X)) for part in parts]
    return gaps[0], gaps[1]


def rows_of(data, n=25):
    return data.X[:n]


# ---- one tree


def problem(seed, n=70):
    rng = np.random.default_rng(seed)
    return rng.integers(8, size=(n, 4)).astype(np.float32), rng.normal(size=n), rng.random(n) + 0.1


def leaves_of(X, g, h, constraints, **growth):
    binned = BinnedDataset.make(rw.Dataset(X, np.zeros(len(X)), group=[len(X)]))
    rules = TreeRules(GrowthRules(**growth), constraints=constraints)
    _, leaf = TreeBuilder(binned, rules, constant_hessian=False, n_threads=1).build(g, h, np.random.default_rng(0))
    return sorted(sorted(np.flatnonzero(leaf == k).tolist()) for k in range(leaf.max() + 1))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_leaves=st.integers(2, 9),
    directions=st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4),
    groups=st.sampled_from([None, [(0, 1), (1, 2, 3)], [(0,), (1,), (2, 3)]]),
    costs=st.sampled_from([None, [0.0, 2.0, 4.0, 8.0], [3.0] * 4]),
    budget=st.sampled_from([None, 1, 2, 3]),
    min_docs=st.sampled_from([1, 4]),
    l2=st.sampled_from([0.0, 1.0]),
)
def test_growth_equals_its_slow_twin(seed, n_leaves, directions, groups, costs, budget, min_docs, l2):
    X, g, h = problem(seed)
    thresholds = [candidate_thresholds(X[:, f]) for f in range(4)]
    how = {"groups": groups, "costs": costs, "budget": budget, "l2": l2, "min_docs": min_docs}
    expected = oracle.grow(X, g, h, thresholds, n_leaves, directions=directions, **how)
    constraints = Constraints(
        tuple((f, d) for f, d in enumerate(directions) if d),
        () if groups is None else tuple(groups),
        budget,
        () if costs is None else tuple(enumerate(costs)),
    )
    found = leaves_of(X, g, h, constraints, n_leaves=n_leaves, l2=l2, min_docs_per_leaf=min_docs, min_hessian=0.0)
    assert found == sorted(map(sorted, expected))


# ---- models


LEARNERS = {
    "lambdamart": rw.LambdaMART(**SMALL),
    "variance": rw.LambdaMART(**SMALL, gain="variance", balance=0.2),
    "sampled": rw.LambdaMART(**SMALL, query_fraction=0.6, feature_fraction=0.5, feature_sampling="split"),
    "corrective": rw.LambdaMART(**SMALL, corrective=4),
    "mart": rw.MART(**SMALL),
    "ordinal": rw.MART(**SMALL | {"n_trees": 4}, task="ordinal"),
    "dart": rw.DART(**SMALL, rate=0.3),
    "xdart": rw.XDART(**SMALL, judge="train"),
    "igbrt": rw.InitializedMART(**SMALL, forest=rw.RandomForest(5, n_leaves=12)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_keep_their_directions(name, with_gaps):
    train, valid = with_gaps
    learner = LEARNERS[name].set_params(monotone_constraints=DIRECTIONS)
    model = learner.fit(train, valid=valid).ensemble_
    assert np.isin([0, 1, 2, 7], model.feature).any()
    assert oracle.is_monotone(model, rows_of(valid), DIRECTIONS)
    LEARNERS[name].set_params(monotone_constraints=None)
    free = LEARNERS[name].fit(train, valid=valid).ensemble_
    assert not oracle.is_monotone(free, rows_of(valid), DIRECTIONS)


@pytest.fixture(scope="module")
def monotone(with_gaps):
    return rw.LambdaMART(30, 8, 0.2, monotone_constraints=DIRECTIONS, min_docs_per_leaf=5).fit(with_gaps[0]).ensemble_


def test_a_refit_keeps_directions(monotone, with_gaps):
    refitted = rw.refit(monotone, *with_gaps)
    assert not np.array_equal(refitted.leaf_value, monotone.leaf_value)
    assert oracle.is_monotone(refitted, rows_of(with_gaps[1]), DIRECTIONS)
    ranker = rw.LambdaMART(**SMALL, monotone_constraints=DIRECTIONS, refit=True).fit(with_gaps[0], valid=with_gaps[1])
    assert "refit" in ranker.ensemble_.metadata
    assert oracle.is_monotone(ranker.ensemble_, rows_of(with_gaps[1]), DIRECTIONS)


@pytest.mark.parametrize("variant", ["line-search", "refit", "distil", "gradient"])
def test_pruning_keeps_directions(variant, monotone, with_gaps):
    accept = rw.Acceptance("non-inferior", margin=0.9)
    result = rw.cleaver(monotone, *with_gaps, judge=with_gaps[0], accept=accept, variants=variant, rates=[0.5])
    assert result.ensemble.n_trees < monotone.n_trees
    assert oracle.is_monotone(result.ensemble, rows_of(with_gaps[1]), DIRECTIONS)
    assert Constraints.of(result.ensemble) == Constraints.of(monotone)


@pytest.mark.parametrize("kind", ["selected", "grown"])
def test_shrinking_keeps_constraints(kind, with_gaps, tmp_path):
    train, valid = with_gaps
    ranker = rw.LambdaMART(
        **SMALL | {"n_trees": 30}, monotone_constraints=DIRECTIONS, interaction_constraints=GROUPS, max_features_used=5
    )
    model = ranker.fit(train).ensemble_
    routes = [route for route in rw.ShrinkSettings().routes if route.kind == kind][:1]
    settings_ = rw.ShrinkSettings(routes=tuple(routes))
    for _ in range(2):  # the second time from the notebook
        result = rw.shrink(
            model, train, valid, margin=0.5, factor=4, settings=settings_, judge=None, measure_speed=False,
            checkpoint=tmp_path / "notes.rw",
        )  # fmt: skip
        for row in result.rows[1:]:
            small = row.ensemble
            assert oracle.is_monotone(small, rows_of(valid), DIRECTIONS)
            assert set(small.feature.tolist()) <= set(model.feature.tolist())
            for number in range(small.n_trees):
                assert path_outside(small.tree(number), Constraints.of(model).groups) is None


def test_exported_models_keep_directions(monotone, with_gaps, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rw.save_as(monotone, tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")

    class Exported:
        feature, threshold = monotone.feature, monotone.threshold

        def score(self, X):
            return booster.predict(X.astype(np.float64), raw_score=True)

    assert oracle.is_monotone(Exported(), rows_of(with_gaps[1], 10), DIRECTIONS)


def test_constraints_give_lightgbms_first_tree(parts):
    """Unambiguous: one tree of few leaves on real targets, where the best split of all breaks the constraint."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    X = rng.integers(30, size=(400, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 12, -2.0, 1.0) + 0.05 * X[:, 1] + 0.1 * rng.normal(size=400)
    common = {"monotone_constraints": [1, 1, 0]}
    theirs = lightgbm.LGBMRegressor(
        n_estimators=1, num_leaves=4, learning_rate=1.0, min_child_samples=1, min_child_weight=1e-3, verbose=-1,
        **common,
    ).fit(X, y)  # fmt: skip
    ours = rw.MART(1, 4, 1.0, min_docs_per_leaf=1, **common).fit(X, y)
    found = ours.ensemble_.tree(0)
    nodes = theirs.booster_.trees_to_dataframe()
    nodes = nodes[nodes.split_feature.notna()]
    assert sorted(found.feature.tolist()) == sorted(int(name.split("_")[1]) for name in nodes.split_feature)
    assert_array_equal(np.sort(found.threshold), np.sort(nodes.threshold.round(3)))


@pytest.mark.parametrize("learner", [rw.LambdaMART(**SMALL), rw.DART(**SMALL, rate=0.3)])
def test_paths_keep_to_their_groups(learner, with_gaps):
    model = learner.set_params(interaction_constraints=GROUPS).fit(with_gaps[0]).ensemble_
    assert len(np.unique(model.feature)) > 3
    for number in range(model.n_trees):
        assert path_outside(model.tree(number), [*GROUPS, [6]]) is None
    assert Constraints.of(model).groups == ((0, 1, 7), (2, 3, 4), (4, 5), (6,))


@pytest.mark.parametrize("budget", [1, 3])
@pytest.mark.parametrize(
    "learner", [rw.LambdaMART(**SMALL), rw.XDART(**SMALL, judge="train"), rw.MART(4, 8, task="ordinal")]
)
def test_no_more_features_than_the_budget(learner, budget, with_gaps):
    model = learner.set_params(max_features_used=budget).fit(with_gaps[0]).ensemble_
    assert len(np.unique(model.feature)) == budget


def test_a_cost_keeps_features_out_until_they_pay(with_gaps):
    plain = rw.LambdaMART(**SMALL).fit(with_gaps[0]).ensemble_
    used = [
        len(np.unique(rw.LambdaMART(**SMALL, feature_costs=[cost] * 8).fit(with_gaps[0]).ensemble_.feature))
        for cost in (0.0, 2.0)
    ]
    assert used[0] == len(np.unique(plain.feature)) > used[1] > 0
    with pytest.warns(UserWarning, match="no tree has a split"):
        assert rw.LambdaMART(**SMALL, feature_costs=[1e9] * 8).fit(with_gaps[0]).ensemble_.n_nodes == 0
    assert rw.LambdaMART(**SMALL, feature_costs=[0.0] * 8).fit(with_gaps[0]).ensemble_ == plain


# ---- same bits


EVERYTHING = {
    "monotone_constraints": DIRECTIONS,
    "interaction_constraints": GROUPS,
    "max_features_used": 5,
    "feature_costs": {3: 1.0, 4: 0.5},
}


@pytest.mark.parametrize("kind", [rw.LambdaMART, rw.XDART, rw.MART])
def test_a_resumed_training_gives_the_same_model(kind, with_gaps, tmp_path):
    train, valid = with_gaps
    file = tmp_path / "training.rw"
    more = {"corrective": 5} if kind is rw.LambdaMART else {}

    def stop(env):
        if env.iteration == 7:
            raise InterruptedError

    with pytest.raises(InterruptedError), warnings.catch_warnings(action="ignore"):
        kind(**SMALL, **EVERYTHING, **more).fit(
            train, valid=valid, checkpoint=rw.Checkpoint(file, every=3), callbacks=[stop]
        )
    resumed = kind(**SMALL, **EVERYTHING, **more).fit(train, valid=valid, checkpoint=file)
    assert resumed.ensemble_ == kind(**SMALL, **EVERYTHING, **more).fit(train, valid=valid).ensemble_
    with pytest.raises(RankwoodError, match="other constraints"):
        kind(**SMALL, **EVERYTHING | {"max_features_used": 4}, **more).fit(train, valid=valid, checkpoint=file)


def test_threads_and_files_give_the_same_model(tmp_path):
    data = rw.make_ranking(n_queries=300, docs_per_query=80, n_features=8, seed=3)
    rw.write_svmlight(data, tmp_path / "data.svm")
    learner = rw.LambdaMART(3, 16, **EVERYTHING)
    fitted = [learner.set_params(n_jobs=n).fit(data).ensemble_ for n in (1, 2)]
    assert fitted[0] == fitted[1]
    assert learner.fit(tmp_path / "data.svm").ensemble_ == learner.fit(rw.read_data(tmp_path / "data.svm")).ensemble_


def test_going_on_from_a_model_equals_training_at_once(with_gaps):
    train, _ = with_gaps
    first = rw.LambdaMART(**SMALL | {"n_trees": 5}, **EVERYTHING).fit(train)
    both = rw.LambdaMART(**SMALL | {"n_trees": 7}, **EVERYTHING).fit(train, init_model=first)
    assert both.ensemble_ == rw.LambdaMART(**SMALL, **EVERYTHING).fit(train).ensemble_


# ---- parameters


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"monotone_constraints": [1, 0]}, "has 2 entries and the data 8 features"),
        ({"monotone_constraints": {0: 2}}, "1, -1 or 0, got 2"),
        ({"monotone_constraints": {9: 1}}, "the data has features 0 to 7"),
        ({"monotone_constraints": {"bm25": 1}}, "names the feature 'bm25'"),
        ({"monotone_constraints": [0.5] * 8}, "monotone_constraints must be"),
        ({"monotone_constraints": "up"}, "monotone_constraints must be"),
        ({"interaction_constraints": [[0, 8]]}, "interaction_constraints has feature 8"),
        ({"interaction_constraints": [0, 1]}, "interaction_constraints must be"),
        ({"feature_costs": {0: -1.0}}, "at least 0"),
        ({"max_features_used": 0}, "at least 1"),
    ],
)
def test_wrong_constraints_are_refused(given, told, data):
    with pytest.raises(RankwoodError, match=told):
        rw.LambdaMART(**SMALL, **given).fit(data)


def test_a_start_that_breaks_constraints_is_refused(parts):
    train, _ = parts
    start = rw.LambdaMART(**SMALL).fit(train)
    for name, value in EVERYTHING.items():
        if name != "feature_costs":
            told = {"max_features_used": "uses . features"}.get(name, name)
            with pytest.raises(RankwoodError, match=told):
                rw.LambdaMART(**SMALL, **{name: value}).fit(train, init_model=start)


def test_features_by_name(data):
    names = [data.feature_names[1], data.feature_names[7]]
    by_name = rw.LambdaMART(**SMALL, monotone_constraints={names[0]: 1, names[1]: -1}).fit(data).ensemble_
    by_number = rw.LambdaMART(**SMALL, monotone_constraints=[0, 1, 0, 0, 0, 0, 0, -1]).fit(data).ensemble_
    assert by_name == by_number
    assert by_name.metadata["parameters"]["monotone_constraints"] == {names[0]: 1, names[1]: -1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("monotone_constraints=0,1,-1", (0, 1, -1)),
        ("monotone_constraints=bm25:1, a:b:-1", {"bm25": 1, "a:b": -1}),
        ("monotone_constraints=none", None),
        ("interaction_constraints=[0,1],[2]", ((0, 1), (2,))),
        ("interaction_constraints=[[0, 1], [bm25, age]]", ((0, 1), ("bm25", "age"))),
        ("feature_costs=bm25:0.5,3:2", {"bm25": 0.5, "3": 2}),
        ("max_features_used=10", 10),
    ],
)
def test_constraints_as_text(text, value):
    assert read_parameter(rw.LambdaMART, text)[1] == value
