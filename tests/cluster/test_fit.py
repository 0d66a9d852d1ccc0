"""Training on a Dask cluster gives the model of one machine, bit for bit, whatever becomes of the workers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import rankwood as rw
from rankwood.cluster.client import open_client
from rankwood.errors import DataError, RankwoodError

dd = pytest.importorskip("dask.dataframe", reason="DASK ABSENT: pip install 'rankwood[dask]'")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

N_FEATURES = 12


def frame(n_queries, seed):
    data = rw.make_ranking(n_queries=n_queries, docs_per_query=25, n_features=N_FEATURES, seed=seed)
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(data.X.shape) < 0.03, np.float32(np.nan), data.X)
    return pd.DataFrame(X, columns=[f"f{k}" for k in range(N_FEATURES)]).assign(qid=data.qid, label=data.y)


TRAIN, VALID = frame(60, 0), frame(110, 1)


def in_bins(table):
    return rw.BinnedDataset.make(rw.Dataset(table))


LEARNERS = {
    "lambdamart": rw.LambdaMART(12, 8, 0.3, early_stopping_rounds=4),
    "sampled": rw.LambdaMART(4, 8, query_fraction=0.5, feature_fraction=0.5, random_state=3),
    "xendcg": rw.LambdaMART(4, 8, loss="xendcg", doc_fraction=0.6),
    "ordinal": rw.MART(3, 8, task="ordinal"),
    "dart": rw.DART(8, 8, rate=0.3),
    "xdart": rw.XDART(6, 8),
    "filled": rw.LambdaMART(3, 8, missing="zero"),
}


FORESTS = {
    "forest": rw.RandomForest(12, out_of_bag=True),
    "query samples": rw.RandomForest(12, queries_per_tree=0.1, criterion="entropy", task="ordinal"),
    "igbrt": rw.InitializedMART(4, 8, forest=rw.RandomForest(6)),
}


@pytest.mark.parametrize("name", FORESTS)
def test_forests_are_those_of_one_machine(client, name):
    learner = FORESTS[name]
    fitted = clone(learner).fit(TRAIN_PARTS(), valid=dd.from_pandas(VALID, npartitions=3), client=client)
    expected = alone(learner)
    same(fitted, expected)
    if name == "forest":
        assert fitted.oob_score_ == expected.oob_score_
        np.testing.assert_array_equal(fitted.oob_scores_, expected.oob_scores_)


def alone(learner, **more):
    return clone(learner).fit(rw.Dataset(TRAIN), valid=rw.Dataset(VALID), **more)


def same(fitted, other):
    assert fitted.ensemble_.fingerprint() == other.ensemble_.fingerprint()
    assert fitted.evals_result_ == other.evals_result_
    assert fitted.best_iteration_ == other.best_iteration_


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, table in (("train", TRAIN), ("valid", VALID)):
        (folder / name).mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
            table.iloc[rows].to_parquet(folder / name / f"part{number}.parquet", row_group_size=70)
    return folder


@pytest.mark.parametrize("name", LEARNERS)
def test_a_cluster_trains_the_model_of_one_machine(client, name):
    learner = LEARNERS[name]
    train, valid = (dd.from_pandas(table, npartitions=n) for table, n in ((TRAIN, 7), (VALID, 2)))
    same(clone(learner).fit(train, valid=valid, client=client), alone(learner))


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_any_number_of_workers(n_workers, parquet):
    learner = LEARNERS["lambdamart"]
    files = {name: sorted((parquet / name).iterdir()) for name in ("train", "valid")}
    with open_client(f"local:{n_workers}") as own:
        fitted = clone(learner).fit(files["train"], valid=files["valid"], client=own)
    same(fitted, alone(learner))


def test_every_form_of_data(client):
    learner, expected = LEARNERS["lambdamart"], alone(LEARNERS["lambdamart"])
    X, y, qid = TRAIN.drop(columns=["qid", "label"]).to_numpy(), TRAIN["label"].to_numpy(), TRAIN["qid"].to_numpy()
    chunks = (len(X) // 4, -1)
    parts = [(X[rows], y[rows], qid[rows]) for rows in np.array_split(np.arange(len(X)), 5)]
    forms = [
        ((da.from_array(X, chunks=chunks), da.from_array(y, chunks=chunks[0])), {"qid": da.from_array(qid, chunks[0])}),
        ((client.scatter(parts),), {}),
        ((rw.Dataset(X, y, qid=qid),), {}),
        ((in_bins(TRAIN),), {}),
    ]
    for given, more in forms:
        fitted = clone(learner).fit(*given, valid=rw.Dataset(VALID), client=client, **more)
        assert fitted.evals_result_ == expected.evals_result_
        np.testing.assert_array_equal(fitted.ensemble_.leaf_value, expected.ensemble_.leaf_value)


def test_weights_and_a_model_to_go_on_from(client):
    rng = np.random.default_rng(5)
    weights, query_weights = rng.random(len(TRAIN)), rng.random(TRAIN["qid"].nunique()) + 0.1
    given = {"sample_weight": weights, "query_weight": query_weights}
    learner, first = LEARNERS["lambdamart"], alone(LEARNERS["ordinal"]).ensemble_
    first = rw.MART(4, 8, random_state=9).fit(rw.Dataset(TRAIN.iloc[::2])).ensemble_
    X, y, qid = TRAIN.drop(columns=["qid", "label"]), TRAIN["label"], TRAIN["qid"]
    expected = clone(learner).fit(X, y, qid=qid, valid=rw.Dataset(VALID), init_model=first, **given)
    spread = [dd.from_pandas(values, npartitions=4) for values in (X, y, qid)]
    weights = dd.from_pandas(pd.Series(weights, index=X.index), npartitions=4)
    fitted = clone(learner).fit(
        spread[0],
        spread[1],
        qid=spread[2],
        sample_weight=weights,
        query_weight=query_weights,
        valid=rw.Dataset(VALID),
        init_model=first,
        client=client,
    )
    same(fitted, expected)


def test_callbacks_run_here(client):
    learner = rw.LambdaMART(8, 8)
    rates = [0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]

    def called():
        history, seen = {}, []
        callbacks = [
            rw.reset_parameter(learning_rate=rates),
            rw.record_evaluation(history),
            lambda env: seen.append((env.iteration, os.getpid())),
            rw.early_stopping(3),
        ]
        return history, seen, callbacks

    here, expected = called(), called()
    fitted = clone(learner).fit(TRAIN_PARTS(), valid=rw.Dataset(VALID), callbacks=here[2], client=client)
    same(fitted, alone(learner, callbacks=expected[2]))
    assert here[:2] == expected[:2]


def TRAIN_PARTS():
    return dd.from_pandas(TRAIN, npartitions=5)


def test_a_checkpoint_goes_from_one_machine_to_a_cluster_and_back(client, tmp_path):
    whole = alone(rw.DART(12, 8, rate=0.3))
    checkpoint = rw.Checkpoint(tmp_path / "training.rw", every=2)
    data = {"valid": rw.Dataset(VALID), "checkpoint": checkpoint}
    rw.DART(4, 8, rate=0.3).fit(rw.Dataset(TRAIN), **data)
    rw.DART(8, 8, rate=0.3).fit(TRAIN_PARTS(), client=client, **data)
    same(rw.DART(12, 8, rate=0.3).fit(rw.Dataset(TRAIN), **data), whole)
    with pytest.raises(RankwoodError, match="was made with other training data"):
        rw.DART(14, 8, rate=0.3).fit(dd.from_pandas(VALID, npartitions=2), client=client, **data)


def test_errors_are_those_of_one_machine(client):
    for wrong, sentence in (
        (TRAIN.assign(label=np.nan), "must be a finite number"),
        (TRAIN.drop(columns="label"), "label"),
        (TRAIN.drop(columns="qid"), "quer"),
    ):
        with pytest.raises(DataError, match=sentence):
            rw.LambdaMART(2).fit(dd.from_pandas(wrong, npartitions=3), client=client)
    with pytest.raises(RankwoodError, match="early stopping needs"):
        rw.LambdaMART(2, early_stopping_rounds=2).fit(TRAIN_PARTS(), client=client)
    with pytest.raises(RankwoodError, match="refit needs the features on one machine"):
        rw.LambdaMART(2, refit=True).fit(TRAIN_PARTS(), client=client)


def test_scattered_queries_are_refused_or_shuffled(client):
    order = np.random.default_rng(0).permutation(len(TRAIN))
    mixed = TRAIN.iloc[order].reset_index(drop=True)
    spread = dd.from_pandas(mixed, npartitions=4)
    with pytest.raises(DataError, match="shuffle=True"):
        rw.MART(3, 8).fit(spread, client=client)
    fitted = rw.MART(3, 8).fit(spread, client=client, shuffle=True)
    assert fitted.ensemble_.fingerprint() == rw.MART(3, 8).fit(rw.Dataset(mixed)).ensemble_.fingerprint()


def test_two_trainings_at_once(client):
    learners = [rw.LambdaMART(6, 8, random_state=seed, query_fraction=0.5) for seed in (1, 2)]
    found = {}

    def train(seed, learner):
        found[seed] = clone(learner).fit(TRAIN_PARTS(), client=client).ensemble_.fingerprint()

    threads = [threading.Thread(target=train, args=item) for item in enumerate(learners)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    expected = [clone(learner).fit(rw.Dataset(TRAIN)).ensemble_.fingerprint() for learner in learners]
    assert found == dict(enumerate(expected))


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_that_dies_changes_nothing(client, seed):
    learner = rw.LambdaMART(40, 8, 0.1)
    rng = random.Random(seed)
    at = rng.randrange(2, 38)

    def kill(env):
        if env.iteration == at and not killed:
            victim = rng.choice(sorted(pids))
            killed.append(victim)
            time.sleep(rng.random() * 0.02)
            os.kill(victim, signal.SIGKILL)

    killed: list[int] = []
    history: dict = {}
    pids = set(client.run(os.getpid).values())
    callbacks = [rw.record_evaluation(history), kill]
    fitted = clone(learner).fit(TRAIN_PARTS(), valid=rw.Dataset(VALID), callbacks=callbacks, client=client)
    assert killed
    same(fitted, alone(learner))
    assert history == fitted.evals_result_  # no round was told twice
