"""RandomForest: what every learner promises, and what a forest is."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import rankwood as rw
from rankwood.data.bins import CodedDataset
from rankwood.training.forest import mean_weight
from rankwood.training.full_depth import FullDepthGrower, FullDepthRules

pytestmark = pytest.mark.native
posix = pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")

MOODS = {
    "bootstrap": {},
    "queries": {"queries_per_tree": 0.3, "criterion": "entropy"},
    "replaced": {"queries_per_tree": 1.0, "replace": True, "max_features": 0.5},
    "limited": {"docs_per_tree": 0.7, "replace": False, "n_leaves": 9, "min_docs_per_leaf": 3, "max_depth": 5},
    "coarse": {"max_bins": 16, "missing": "zero", "max_features": None},
}
every_mood = pytest.mark.parametrize("mood", MOODS)


def forest(mood: str = "bootstrap", **more) -> rw.RandomForest:
    return rw.RandomForest(**{"n_trees": 8, "random_state": 3} | MOODS[mood] | more)


def assert_same_model(one: rw.Ensemble, other: rw.Ensemble) -> None:
    """Bit for bit, gains and counts included."""
    assert one.fingerprint() == other.fingerprint()
    assert_array_equal(one.split_gain, other.split_gain)
    assert_array_equal(one.node_count, other.node_count)


@every_mood
def test_the_model_is_the_mean_of_its_trees(mood, data):
    model = forest(mood).fit(data).ensemble_
    assert (model.n_trees, model.base) == (8, 0.0)
    assert_array_equal(model.tree_weights, 1 / 8)
    alone = [model.select([t]).reweigh([1.0]).score(data.X) for t in range(8)]
    assert_allclose(model.score(data.X), np.mean(alone, axis=0), rtol=1e-12)
    assert model.metadata["learner"] == "RandomForest"
    assert model.metadata["parameters"]["n_trees"] == 8


@every_mood
def test_seed_and_threads(mood, data):
    plain = forest(mood).fit(data).ensemble_
    for n_jobs in (1, 2, 5):
        assert_same_model(forest(mood, n_jobs=n_jobs).fit(data).ensemble_, plain)
    assert forest(mood, random_state=4).fit(data).ensemble_ != plain
    assert_same_model(forest(mood, n_trees=5).fit(data).ensemble_, plain.select(range(5)).reweigh([mean_weight(5)] * 5))
    assert forest(mood, random_state=2**70).fit(data).n_trees_ == 8


@every_mood
def test_a_saved_model_scores_the_same(mood, data, tmp_path):
    ranker = forest(mood, out_of_bag=True, n_trees=30).fit(data)
    scores = ranker.predict(data)
    ranker.ensemble_.save(tmp_path / "model.rw")
    assert_array_equal(rw.load_model(tmp_path / "model.rw").score(data.X), scores)
    copy = pickle.loads(pickle.dumps(ranker))
    assert_array_equal(copy.predict(data), scores)
    assert_array_equal(copy.oob_scores_, ranker.oob_scores_)


@every_mood
def test_measures_are_those_of_the_model(mood, parts):
    """Scores out of the loop are sums of weighted values, inside they are means of sums: they differ in the last bits,
    so that ties may fall otherwise."""
    train, valid = parts
    ranker = forest(mood, measure=["nDCG@10", "AP"]).fit(train, eval_set=[train, valid])
    for name, part in (("train", train), ("valid_1", valid)):
        for measure, values in ranker.evals_result_[name].items():
            assert len(values) == 8
            for n_trees in (1, 4, 8):
                model = ranker.ensemble_.select(range(n_trees)).reweigh(np.full(n_trees, 1 / n_trees))
                assert values[n_trees - 1] == pytest.approx(rw.evaluate(model, part, measure)[measure], abs=0.01)
            assert ranker.best_score_[name][measure] == values[-1]
    assert ranker.best_iteration_ == 8


def test_scores_given_to_measures_are_means(parts):
    train, valid = parts
    seen = []

    def watch(labels, scores, offsets):
        seen.append(scores.copy())
        return 0.0

    ranker = forest("queries").fit(train, valid=valid, eval_metric=[watch])
    for n_trees in (1, 8):
        model = ranker.ensemble_.select(range(n_trees)).reweigh(np.full(n_trees, 1 / n_trees))
        assert_allclose(seen[n_trees - 1], model.score(valid.X), rtol=1e-12)


@every_mood
def test_rows_of_queries_may_be_mixed(mood, data):
    """First the first documents of all queries, then the second ones, and so on."""
    place = np.arange(data.n_docs) - data.offsets[data.queries.index]
    rows = np.argsort(place, kind="stable")
    mixed = data[rows]
    assert mixed.order is not None
    plain, ranker = (forest(mood, n_trees=20, out_of_bag=True).fit(one) for one in (data, mixed))
    assert_same_model(ranker.ensemble_, plain.ensemble_)
    assert_array_equal(ranker.oob_scores_, plain.oob_scores_[rows])
    assert ranker.oob_evaluation_.means == plain.oob_evaluation_.means


def test_every_way_to_give_data(data):
    import pandas as pd

    plain = forest("queries").fit(data).ensemble_
    frame = pd.DataFrame(data.X, columns=[f"f{i}" for i in range(data.n_features)]).assign(qid=data.qid)
    sizes = np.diff(data.offsets)
    for ranker in (
        forest("queries").fit(data.X, data.y, qid=data.qid),
        forest("queries").fit(data.X, data.y, group=sizes),
        forest("queries").fit(frame, data.y),
        forest("queries").fit(data.X.astype(np.float64), data.y, qid=data.qid),
    ):
        assert ranker.ensemble_ == plain
        assert ranker.n_features_in_ == data.n_features
    assert forest("queries").fit(frame, data.y).feature_names_in_[0] == "f0"
    weighted = forest().fit(data.X, data.y, qid=data.qid, sample_weight=np.linspace(0, 1, data.n_docs))
    assert weighted.ensemble_ != forest().fit(data).ensemble_
    doubled = forest().fit(data.X, data.y, qid=data.qid, query_weight=np.full(data.n_queries, 2.0))
    assert doubled.ensemble_ == forest().fit(data).ensemble_


def test_bins_are_kept(parts):
    train, valid = parts
    binned = rw.BinnedDataset.make(train, 16)
    ranker = forest().fit(binned, valid=rw.BinnedDataset.encode(valid, binned.edges))
    assert_same_model(ranker.ensemble_, forest(max_bins=16).fit(train).ensemble_)
    assert ranker.evals_result_ == forest(max_bins=16).fit(train, valid=valid).evals_result_
    assert ranker.ensemble_ != forest().fit(train).ensemble_


def test_rows_without_queries(data):
    """Are no obstacle to drawing documents; when every row is a query, drawing queries is the same."""
    one = forest(queries_per_tree=0.3).fit(data.X, data.y, qid=np.arange(data.n_docs))
    other = forest(docs_per_tree=0.3, replace=False).fit(data.X, data.y)
    assert_same_model(one.ensemble_, other.ensemble_)
    scored = forest(out_of_bag=True, n_trees=40).fit(data.X, data.y)
    assert np.isfinite(scored.oob_scores_).all()
    assert scored.oob_evaluation_ is None


def test_forests_learn():
    """Better than one tree; and where whole queries are drawn, out of the bag about as good as on data not seen."""
    train, test = rw.make_ranking(n_queries=240, docs_per_query=30, n_features=12, seed=1).split(0.5)
    for mood in ("bootstrap", "queries"):
        ranker = forest(mood, n_trees=100, out_of_bag=True).fit(train)
        single = np.mean([forest(mood, n_trees=1, random_state=s).fit(train).score(test) for s in range(5)])
        assert ranker.score(test) > single + 0.03
    assert ranker.oob_score_ == pytest.approx(ranker.score(test), abs=0.05)


@every_mood
def test_out_of_bag_equals_its_slow_twin(mood, data):
    ranker = forest(mood, n_trees=25, out_of_bag=True, measure=["nDCG@10", "AP"]).fit(data)
    seen = data.replace(X=np.nan_to_num(data.X)) if MOODS[mood].get("missing") == "zero" else data
    coded = CodedDataset.make(seen, MOODS[mood].get("max_bins"))
    names = ("criterion", "max_features", "queries_per_tree", "docs_per_tree", "replace")
    grower = FullDepthGrower(coded, FullDepthRules(**{name: getattr(ranker, name) for name in names}))
    values = [[] for _ in range(data.n_docs)]
    for t in range(25):
        leaf_values = ranker.ensemble_.select([t]).reweigh([1.0]).score(data.X)
        for row in np.setdiff1d(np.arange(data.n_docs), grower.sample(3, t)[0]):
            values[row].append(leaf_values[row])
    expected = [np.mean(one) if one else np.nan for one in values]
    assert_allclose(ranker.oob_scores_, expected, rtol=1e-12)
    result = ranker.oob_evaluation_
    assert list(result.means) == ["nDCG@10", "AP"]
    assert ranker.oob_score_ == result["nDCG@10"]
    for q in range(data.n_queries):
        rows = slice(*data.offsets[q : q + 2])
        scores = ranker.oob_scores_[rows]
        if np.isnan(scores).any():
            assert np.isnan(result.per_query["AP"][q])
        else:
            assert result.per_query["AP"][q] == rw.evaluate(scores, data.query(q), "AP")["AP"]
    assert result["AP"] == pytest.approx(np.nanmean(result.per_query["AP"]))


def test_documents_that_are_never_out_of_the_bag(data):
    with pytest.warns(UserWarning, match=r"\d+ of 629 documents were seen by every tree and have no score"):
        ranker = forest(n_trees=2, out_of_bag=True).fit(data)
    unseen = np.isnan(ranker.oob_scores_)
    assert 0 < unseen.sum() < data.n_docs
    counts = np.bincount(data.queries.index, weights=unseen)
    assert_array_equal(np.isnan(ranker.oob_evaluation_.per_query["nDCG@10"]), counts > 0)
    with pytest.warns(UserWarning, match="629 of 629 documents"):
        ranker = forest(replace=False, n_trees=2, out_of_bag=True).fit(data)
    assert np.isnan(ranker.oob_score_)


def test_importances(data):
    ranker = forest(n_trees=30).fit(data)
    gains = ranker.feature_importances_
    assert gains.shape == (data.n_features,)
    assert gains.sum() == pytest.approx(1.0)
    assert_allclose(ranker.set_params(importance_type="split").feature_importances_.sum(), 1.0)
    X = np.hstack([data.X, np.full((data.n_docs, 1), 7.0), np.full((data.n_docs, 1), np.nan)])
    assert forest().fit(X, data.y, qid=data.qid).feature_importances_[-2:].tolist() == [0.0, 0.0]


def test_nothing_to_split(data):
    even = rw.Dataset(data.X, np.full(data.n_docs, 2.0), qid=data.qid)
    with pytest.warns(UserWarning, match="no tree has a split"):
        ranker = forest().fit(even)
    assert ranker.ensemble_.n_leaves == 8
    assert_array_equal(ranker.predict(even), 2.0)
    alone = rw.Dataset([[1.0]], [3.0], group=[1])
    with pytest.warns(UserWarning, match="no tree has a split"):
        assert forest().fit(alone).predict([[0.0]]) == [3.0]


def test_missing_and_infinite_values(data):
    """Where a value is missing, or infinite, says what the label is: trees must find that."""
    good = data.y >= 2
    for special in (np.nan, np.inf, -np.inf):
        X = np.random.default_rng(0).normal(size=(data.n_docs, 2)).astype(np.float32)
        X[good, 0] = special
        ranker = forest(max_features=None, n_trees=20).fit(X, good.astype(int), qid=data.qid)
        scores = ranker.predict(X)
        assert scores[good].min() > scores[~good].max()
        assert ranker.feature_importances_[0] > 0.9


def test_empty_queries(data):
    group = [0, *np.diff(data.offsets), 0, 0]
    for mood in ("queries", "replaced"):
        ranker = forest(mood).fit(data.X, data.y, group=group)
        assert ranker.ensemble_ == forest(mood).fit(data).ensemble_


def test_callbacks(parts):
    train, valid = parts
    lines, seen = [], []
    callbacks = [rw.log_evaluation(4, write=lines.append), lambda env: seen.append((env.iteration, env.end_iteration))]
    ranker = forest(n_trees=12).fit(train, valid=valid, callbacks=callbacks)
    assert seen == [(t, 12) for t in range(12)]
    assert [line.split("\t")[0] for line in lines] == ["[4]", "[8]", "[12]"]
    models = []
    forest(n_trees=3).fit(train, callbacks=[lambda env: models.append(env.model.whole())])
    assert models[1] == forest(n_trees=2).fit(train).ensemble_
    assert [model.n_trees for model in models] == [1, 2, 3]
    stopped = forest(n_trees=200).fit(train, valid=valid, callbacks=[rw.early_stopping(5)])
    values = stopped.evals_result_["valid"]["nDCG@10"]
    assert len(values) < 200
    assert stopped.n_trees_ == stopped.best_iteration_ == int(np.argmax(values)) + 1
    assert_same_model(stopped.ensemble_, forest(n_trees=stopped.n_trees_).fit(train).ensemble_)
    with pytest.raises(rw.RankwoodError, match="a forest has no parameters that change"):
        forest().fit(train, callbacks=[rw.reset_parameter(learning_rate=lambda tree: 0.1)])
    assert len(ranker.evals_result_["valid"]["nDCG@10"]) == 12


def test_scikit_learn_tools(data):
    ranker = forest("queries")
    assert clone(ranker).get_params() == ranker.get_params()
    search = GridSearchCV(forest(n_trees=5), {"queries_per_tree": [1, 0.2, None]}, cv=GroupKFold(3))
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=[f"f{i}" for i in range(data.n_features)]).assign(qid=data.qid)
    search.fit(frame, data.y, groups=data.qid)
    assert 0.3 < search.best_score_ < 1.0


def kill_at(tree: int):
    def kill(env):
        if env.iteration == tree and not env.replayed:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


@posix
@pytest.mark.parametrize("mood", ["bootstrap", "queries"])
def test_a_killed_training_becomes_the_very_forest(mood, parts, tmp_path):
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=4)
    given = {"X": train, "valid": valid, "checkpoint": checkpoint}
    for tree in (2, 7, 9, 14):
        process = multiprocessing.get_context("fork").Process(
            target=lambda tree=tree: forest(mood, n_trees=24, n_jobs=1).fit(**given, callbacks=[kill_at(tree)])
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        n_saved = (tree + 1) // 4 * 4
        assert Path(checkpoint.path).exists() == (n_saved > 0)
        assert n_saved == 0 or rw.load_model(checkpoint.path).n_trees == n_saved
    resumed = forest(mood, n_trees=24, out_of_bag=True).fit(**given)
    plain = forest(mood, n_trees=24, out_of_bag=True).fit(train, valid=valid)
    assert_same_model(resumed.ensemble_, plain.ensemble_)
    assert resumed.evals_result_ == plain.evals_result_
    assert resumed.best_score_ == plain.best_score_
    assert_array_equal(resumed.oob_scores_, plain.oob_scores_)


def test_a_finished_forest_is_prolonged(parts, tmp_path):
    train, valid = parts
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=3)
    grown = []
    for n_trees in (7, 7, 12, 20):
        count = [0]

        def see(env, count=count):
            count[0] += not env.replayed

        fitted = forest(n_trees=n_trees).fit(train, valid=valid, checkpoint=checkpoint, callbacks=[see])
        grown.append(count[0])
        assert_same_model(fitted.ensemble_, forest(n_trees=n_trees).fit(train).ensemble_)
        assert len(fitted.evals_result_["valid"]["nDCG@10"]) == n_trees
    assert grown == [7, 0, 5, 8]
    with pytest.raises(rw.RankwoodError, match="the checkpoint has 20 trees already, more than n_trees=12"):
        forest(n_trees=12).fit(train, valid=valid, checkpoint=checkpoint)


def test_other_data_or_parameters_are_refused(parts, tmp_path):
    train, valid = parts
    given = {"X": train, "valid": valid, "checkpoint": tmp_path / "training.rw"}
    forest(n_trees=6).fit(**given)
    relabelled = rw.Dataset(train.X, np.roll(train.y, 1), qid=train.qid, feature_names=train.feature_names)
    weights = np.full(train.n_docs, 2.0)
    reweighted = rw.Dataset(train.X, train.y, qid=train.qid, weights=weights, feature_names=train.feature_names)
    for parameters, change, message in (
        ({}, {"X": relabelled}, "other training data: delete it"),
        ({}, {"X": reweighted}, "other training data: delete it"),
        ({"max_bins": 16}, {}, "other training data: delete it"),
        ({}, {"valid": valid.select_queries(range(5))}, "other data set 'valid': delete it"),
        ({}, {"valid": None}, "other data set 'valid': delete it"),
        ({"criterion": "entropy"}, {}, r"other rules \(criterion 'variance', now 'entropy'\): delete it"),
        ({"queries_per_tree": 3}, {}, r"other rules \(.*\): delete it"),
        ({"random_state": 4}, {}, r"other seed \(3, now 4\): delete it"),
        ({"measure": "AP"}, {}, r"other measures \(.*\): delete it"),
    ):
        with pytest.raises(rw.RankwoodError, match=f"training.rw was made with {message} to start anew"):
            forest(n_trees=8, **parameters).fit(**given | change)
    for parameters in ({"n_jobs": 2}, {"on_interrupt": "keep"}, {"importance_type": "split"}, {"out_of_bag": True}):
        assert forest(n_trees=40, **parameters).fit(**given).n_trees_ == 40
    with pytest.raises(rw.RankwoodError, match="a checkpoint needs a number as random_state"):
        forest(random_state=None).fit(**given)


def press_at(tree: int):
    def press(env):
        if env.iteration == tree:
            os.kill(os.getpid(), signal.SIGINT)

    return press


@posix
def test_ctrl_c_in_a_callback(parts, tmp_path):
    train, valid = parts
    with pytest.raises(KeyboardInterrupt):
        forest(n_trees=40).fit(train, callbacks=[press_at(3)])
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=100)
    kept = forest(n_trees=40, on_interrupt="keep").fit(
        train, valid=valid, callbacks=[press_at(3)], checkpoint=checkpoint
    )
    assert kept.interrupted_
    assert kept.n_trees_ == len(kept.evals_result_["valid"]["nDCG@10"]) == 4
    assert_same_model(kept.ensemble_, forest(n_trees=4).fit(train).ensemble_)
    assert rw.load_model(checkpoint.path).n_trees == 4
    resumed = forest(n_trees=40).fit(train, valid=valid, checkpoint=checkpoint)
    assert_same_model(resumed.ensemble_, forest(n_trees=40).fit(train).ensemble_)


LONG = """
import sys, rankwood as rw
data = rw.make_ranking(n_queries=500, docs_per_query=100, n_features=40, seed=0)
ranker = rw.RandomForest(100_000, max_features=None, max_bins=255, on_interrupt=sys.argv[1], n_jobs=2)
print("growing", flush=True)
ranker.fit(data)
print(ranker.n_trees_, ranker.interrupted_)
"""


@posix
@pytest.mark.parametrize("on_interrupt", ["raise", "keep"])
def test_ctrl_c_while_trees_grow(on_interrupt):
    """Trees of seconds: nobody waits for them to be finished."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", LONG, on_interrupt]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "growing\n"
    time.sleep(1.0)
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - pressed < 30
    if on_interrupt == "raise":
        assert err.endswith("KeyboardInterrupt\n")
    else:
        assert out.split()[1] == "True"


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_trees": 0}, "n_trees must be at least 1, got 0"),
        ({"n_trees": 2.5}, "n_trees must be a whole number, got 2.5"),
        ({"criterion": "gini"}, "criterion must be 'variance' or 'entropy', got 'gini'"),
        ({"max_features": "log2"}, "max_features must be a number, 'sqrt', 'ceil-sqrt' or None, got 'log2'"),
        ({"queries_per_tree": 41}, "queries_per_tree=41 is more than the 40 queries of the data: draw fewer, or with"),
        ({"queries_per_tree": 2, "docs_per_tree": 2}, "queries_per_tree or docs_per_tree, not both"),
        (
            {"missing": "last"},
            "missing must be 'native', 'zero', 'infinity', 'mean', 'median' or 'three-way', got 'last'",
        ),
        ({"max_bins": 1}, "max_bins must lie between 2 and 65535, got 1"),
        ({"random_state": -1}, "random_state must not be negative"),
    ],
)
def test_wrong_parameters(parameters, error, data):
    with pytest.raises(rw.RankwoodError, match=error):
        forest(**parameters).fit(data)


def test_wrong_data(data):
    with pytest.raises(rw.DataError, match="'valid' has no rows"):
        forest().fit(data, valid=data.select_queries([]))
    with pytest.raises(rw.DataError, match="no rows"):
        forest().fit(data.select_queries([]))
    with pytest.raises(rw.DataError, match="all of sample_weight is zero"):
        forest().fit(data.X, data.y, qid=data.qid, sample_weight=np.zeros(data.n_docs))


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "queries"), [("mq2008", 21), ("ohsumed/QueryLevelNorm", 1)])
def test_small_samples_are_better_on_real_data(real_data, name, queries):
    """Ibrahim & Carman's finding, on one fold: AP rises when trees see few queries."""
    train, test = (rw.read_svmlight([real_data / name / f"S{i}.txt.gz" for i in parts]) for parts in ((1, 2, 3), (5,)))
    found = [
        rw.evaluate(rw.RandomForest(300, criterion="entropy", queries_per_tree=q).fit(train), test, "AP")["AP"]
        for q in (queries, 0.63)
    ]
    assert found[0] > found[1] + 0.003


def test_watched_measures_are_those_of_the_model(data):
    """Also where documents tie: means are exact, in whichever order trees are added."""
    train, valid = data.split(0.5)
    coarse = rw.Dataset(np.round(valid.X), valid.y, qid=valid.qid)  # many documents alike
    for n_trees in (7, 20, 50):
        ranker = rw.RandomForest(n_trees, queries_per_tree=0.5).fit(train, valid=coarse)
        assert ranker.evals_result_["valid"]["nDCG@10"][-1] == ranker.score(coarse)
        curve = rw.measure_curve(ranker, coarse, sizes=[5])
        assert curve.values["nDCG@10"][0] == ranker.evals_result_["valid"]["nDCG@10"][4]


def test_drawing_queries_needs_queries():
    with pytest.raises(rw.RankwoodError, match="queries_per_tree draws queries: give qid or group"):
        rw.RandomForest(2, queries_per_tree=1).fit([[0.0], [1.0]], [0, 1])


def test_the_curve_out_of_the_bag_needs_the_forest_itself(data):
    with pytest.raises(rw.RankwoodError, match="give the RandomForest, not Ensemble"):
        rw.out_of_bag_curve(forest().fit(data).ensemble_, data)
    other = rw.make_ranking(n_queries=10, docs_per_query=10, n_features=data.n_features, seed=77)
    with pytest.raises(rw.RankwoodError, match="not the data that the forest was fitted to"):
        rw.out_of_bag_curve(forest().fit(data), other)
