"""Learners of other libraries in a sweep: each trains, is chosen, resumed, and its imported model scores as it does."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.lab.peers import PEERS, Task
from rankwood.lab.runs import RunTable
from rankwood.lab.study import SyntheticFolds
from rankwood.lab.sweep import Pruning, Setting, SweepStudy, read_sweep
from rankwood.lab.sweep_report import SweepResults, make_report
from rankwood.scoring.timing import time_models

# More features than ten, so that names in alphabetical order would show.
SOURCE = SyntheticFolds(n_queries=60, docs_per_query=20, n_features=12, seed=4)
CASES = [
    ("lightgbm", {"num_iterations": 12, "num_leaves": 6, "early_stopping_round": 3}),
    ("lightgbm", {"num_iterations": 6, "num_leaves": 6, "objective": "rank_xendcg"}),
    ("lightgbm", {"num_iterations": 6, "num_leaves": 6, "boosting": "dart"}),
    ("xgboost", {"num_boost_round": 12, "max_depth": 3, "early_stopping_rounds": 3}),
    ("xgboost", {"num_boost_round": 5, "max_depth": 3, "tree_method": "exact"}),
    ("catboost", {"iterations": 12, "depth": 3, "early_stopping_rounds": 3}),
    ("catboost", {"iterations": 5, "depth": 3}),
    ("ydf", {"num_trees": 12, "max_depth": 3}),
    ("ydf", {"num_trees": 5, "max_depth": 3, "early_stopping": "NONE", "discretize_numerical_columns": True}),
]
TRIED = {  # a first point, and another
    "lightgbm": ({"num_iterations": 4, "num_leaves": 4}, {"num_leaves": 8}),
    "xgboost": ({"num_boost_round": 4, "max_depth": 2}, {"max_depth": 3}),
    "catboost": ({"iterations": 4, "depth": 2}, {"depth": 3}),
    "ydf": ({"num_trees": 4, "max_depth": 2}, {"max_depth": 3}),
}


def present(name):
    """The peer, or a skip that is heard."""
    if importlib.util.find_spec(PEERS[name].package) is None:
        pytest.skip(f"PEER LEFT OUT: {name} is not installed")
    return PEERS[name]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_the_imported_model_scores_like_the_peer(name, parameters, missing):
    peer, data = present(name), SOURCE.load(1)
    train, valid = data.train, data.valid
    if missing and parameters.get("tree_method") != "exact":
        train, valid = (with_gaps(part) for part in (train, valid))
    task = Task(train, valid, parameters, seed=3, n_threads=1)
    model = peer.training(task)()
    ours = peer.imported(model, train)
    own = np.ravel(peer.predict(model, valid.X, 1))
    np.testing.assert_allclose(ours.score(valid.X), own, rtol=1e-5, atol=1e-5)
    assert ours.n_features == 12
    assert 0 < ours.n_trees <= parameters[peer.trees[0]]
    assert peer.imported(peer.training(task)(), train) == ours  # the same again
    (timing,) = time_models([(peer.own(model), valid.X)])
    assert (timing.engine, timing.us_per_doc > 0) == (name, True)


def with_gaps(data):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return data.replace(X=X)


@pytest.mark.parametrize("name", PEERS)
def test_rows_of_a_query_need_not_follow_each_other(name):
    peer, data = present(name), SOURCE.load(1)
    mixed = np.random.default_rng(1).permutation(data.train.n_docs)
    shuffled = rw.Dataset(data.train.X[mixed], data.train.y[mixed], qid=data.train.qid[mixed])
    assert shuffled.order is not None
    in_order = rw.Dataset(shuffled.X[shuffled.order], shuffled.y[shuffled.order], group=np.diff(shuffled.offsets))
    found = [
        peer.imported(peer.training(Task(train, data.valid, TRIED[name][0], n_threads=1))(), train)
        for train in (shuffled, in_order)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_early_stopping_looks_at_validation_data(name):
    peer, data = present(name), SOURCE.load(1)
    many, patience = peer.trees[0], {"lightgbm": "early_stopping_round"}.get(name, "early_stopping_rounds")
    parameters = {many: 60, patience: 4}
    model = peer.imported(peer.training(Task(data.train, data.valid, parameters, n_threads=1))(), data.train)
    assert model.n_trees < 60
    values = [rw.evaluate(model.select(np.arange(n)), data.valid)["nDCG@10"] for n in range(1, model.n_trees + 1)]
    assert values[-1] == pytest.approx(max(values), abs=0.02)  # CatBoost takes ties otherwise


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_searched_chosen_pruned_and_resumed(name, tmp_path, monkeypatch):
    present(name)
    parameters, point = TRIED[name]
    settings = (
        Setting("ours", "mart", {"n_trees": 3}),
        Setting("theirs", name, parameters, points=({}, point)),
    )
    pruning = Pruning(rate=0.5, variants=("line-search",), iterations=2, of=("theirs",))
    study = SweepStudy(SOURCE, (1, 2), settings, seeds=(0, 5), pruning=pruning, n_threads=1)
    table = RunTable(tmp_path / "runs.sqlite")
    searched = replace(study, settings=settings[1:])
    searched.runs(table)  # a part of the study, as after a kill
    n_before = len(table)
    runs = study.runs(table)
    kinds = [config["kind"] for config, _ in runs]
    assert (kinds.count("searching"), kinds.count("final")) == (2 * 2, 2 * 2 * 2)
    assert len(table) - n_before == 2 * 2  # those of the other setting alone
    monkeypatch.setattr(SweepStudy, "run", None)
    assert study.runs(table) == runs  # nothing is done again
    results = SweepResults(study, runs)
    assert results.rows == [(0, "model"), (1, "model"), (1, "pruned")]
    for fold in study.folds:
        values = [results.on_validation(fold, candidate) for candidate in settings[1].candidates]
        best = results.chosen[fold, "theirs"]
        assert best.parameters == settings[1].candidates[int(np.argmax(values))].parameters
        final = next(result for config, result in runs if config == study.final(fold, best, 0))
        assert np.mean(final["model"]["valid"]["nDCG@10"]) == pytest.approx(max(values))
    library = f"{PEERS[name].package} {PEERS[name].version}"
    assert [results.library(row) for row in results.rows] == [None, library, library]
    report = make_report(results)
    main = report.tables[0]
    assert main.columns[:3] == ["configuration", "nDCG@10", "95 % interval"]
    assert main.columns[3:] == ["trees", "leaves", "training s", "us per document", "its own predict"]
    assert [row[-1] != "" for row in main.rows] == [False, True, False]
    mean, (low, high) = results.mean_and_interval((1, "model"), "nDCG@10")
    assert main.rows[1][1].startswith(f"{mean:.4f}")
    assert low < mean < high
    assert 0 <= results.mean((1, "model"), "own_difference") < 1e-5
    assert f"Other libraries: {library}; scores of imported models differ" in main.note
    report.write(tmp_path, environment={})
    runs = [(config, slowed(result)) for config, result in runs]  # as on a machine with other work
    for n_threads, shown, clock in ((1, "2.0", "CPU time on 1 thread,"), (2, "7.0", "wall-clock time on 2 threads,")):
        table = make_report(SweepResults(replace(study, n_threads=n_threads), runs)).tables[0]
        assert {row[table.columns.index("training s")] for row in table.rows} == {shown}
        assert clock in table.note


def slowed(result):
    """The result of a run whose trainings took 2 seconds of a processor and 7 of the clock on the wall."""
    return {
        name: {**of, "seconds": 2.0, "wall_seconds": 7.0} if name in ("model", "pruned") else of
        for name, of in result.items()
    }


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_in_a_sweep_without_a_search(name, tmp_path):
    present(name)
    study = SweepStudy(SOURCE, (1,), (Setting("a", name, TRIED[name][0]), Setting("b", "mart", {"n_trees": 3})))
    results = SweepResults(study, study.runs(RunTable(tmp_path / "runs.sqlite")))
    assert results.mean((0, "model"), "us_per_doc") > 0
    assert results.mean((0, "model"), "own_us_per_doc") > 0
    assert results.mean((1, "model"), "own_us_per_doc") is None
    assert make_report(results).tables[0].columns[-3:] == ["us per document", "its own predict", "training s"]
    assert study.quick()._parameters(study.settings[0])[PEERS[name].trees[0]] == 4


@pytest.mark.parametrize("name", PEERS)
def test_mistakes_in_the_parameters_of_a_peer_are_told_before_any_work(name, tmp_path):
    peer, path = present(name), tmp_path / "mine.toml"
    for text, words in (
        ("no_such_parameter = 3", "mine: .*no_such_parameter"),
        (f"{peer.seed[0]} = 3", f"configurations.{peer.seed[0]} is not for a grid of parameters: use seeds"),
        (f"{peer.threads[0]} = 3", "use the option --threads"),
        (f"{peer.trees[0]} = 2024-01-01", "must be a number, a text, true, false or a list"),
    ):
        path.write_text(f"[data.synthetic]\n[[configurations]]\nname = 'mine'\nlearner = '{name}'\n{text}\n")
        with pytest.raises(rw.RankwoodError, match=words) as told:
            read_sweep(path)
        assert "\n" not in str(told.value)


def test_a_missing_package_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(PEERS, "ydf", replace(PEERS["ydf"], package="no_such_package"))
    path = tmp_path / "mine.toml"
    path.write_text("learner = 'ydf'\n[data.synthetic]\n")
    words = "mine.toml: ydf: the learner no_such_package of a sweep needs the package .*: pip install no_such_package$"
    with pytest.raises(rw.RankwoodError, match=words):
        read_sweep(path)


def test_peers_watch_ndcg():
    with pytest.raises(rw.RankwoodError, match="watch nDCG@k on validation data, not ERR"):
        SweepStudy(SOURCE, (1,), (Setting("a", "lightgbm", {}),), measures=("ERR",))


def test_data_with_weights_are_refused():
    data = SOURCE.load(1)
    weighted = data.train.replace(query_weights=np.ones(data.train.n_queries))
    with pytest.raises(rw.DataError, match="the data have weights"):
        PEERS["xgboost"].training(Task(weighted, data.valid, {}))
