"""CLEaVER on a Dask cluster gives the result of one process, bit for bit, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest

import rankwood as rw
from rankwood.cluster.placement import place_features
from rankwood.cluster.sources import open_source

dd = pytest.importorskip("dask.dataframe", reason="DASK ABSENT: pip install 'rankwood[dask]'")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

QUICK = rw.PruningSettings(search=rw.LineSearch(iterations=3, samples=6), refit=rw.Refit(passes=3))
HOW = {"rates": (0.3, 0.6), "variants": "line-search", "settings": replace(QUICK, measure_speed=False)}


def frame(first, last):
    return TABLE[(TABLE["qid"] >= first) & (TABLE["qid"] < last)].reset_index(drop=True)


MADE = rw.make_ranking(n_queries=190, docs_per_query=9, n_features=5, seed=4)
TABLE = pd.DataFrame(MADE.X, columns=list("abcde")).assign(qid=MADE.queries.index, label=MADE.y)
TRAIN, VALID, TEST = frame(0, 75), frame(75, 155), frame(155, 190)
MODEL = rw.LambdaMART(n_trees=9, n_leaves=5, learning_rate=0.2, min_docs_per_leaf=3).fit(rw.Dataset(TRAIN)).ensemble_


def told(result):
    """All that a result has but times, as numbers that can be compared."""
    rows = [{**vars(row), "ensemble": row.ensemble.fingerprint(), "speed_up": None} for row in result.rows]
    test = None if result.test is None else asdict(result.test)
    notes = result.ensemble.metadata.get("cleaver"), result.rows.index(result.chosen)
    return result.ensemble.fingerprint(), *notes, rows, result.test_proof, test, result.needed_bytes


def alone(test=TEST, **how):
    return rw.cleaver(MODEL, rw.Dataset(TRAIN), rw.Dataset(VALID), test=rw.Dataset(test), **{**HOW, **how})


@pytest.mark.parametrize(
    "how",
    [
        {"judge": 0.5, "accept": rw.Acceptance(margin=0.3)},
        {"accept": "quality", "measure": "AP", "strategy": "score-loss", "variants": "refit"},  # judged in folds
    ],
    ids=["quality-loss", "score-loss"],
)
def test_a_cluster_prunes_as_one_process_does(client, how):
    train, valid, test = (dd.from_pandas(table, npartitions=n) for table, n in ((TRAIN, 7), (VALID, 2), (TEST, 9)))
    result = rw.cleaver(MODEL, train, valid, test=test, client=client, **{**HOW, **how})
    assert result.accepted
    assert told(result) == told(alone(**how))


def test_every_form_of_data(client, tmp_path):
    X, y, qid = TRAIN[list("abcde")].to_numpy(), TRAIN["label"].to_numpy(), TRAIN["qid"].to_numpy()
    cuts = np.array_split(np.arange(len(VALID)), 3)
    for number, rows in enumerate(cuts):
        VALID.iloc[rows].to_parquet(tmp_path / f"part{number}.parquet", row_group_size=70)
    columns = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100), da.from_array(qid, chunks=100)
    mixed = TEST.sample(frac=1.0, random_state=0)
    judge = rw.Dataset(frame(20, 60))
    result = rw.cleaver(
        MODEL,
        columns,
        tmp_path,
        test=client.scatter([mixed.iloc[:100], mixed.iloc[100:]]),
        judge=judge,
        accept="quality",
        client=client,
        shuffle=True,
        **HOW,
    )
    expected = alone(judge=judge, accept="quality", test=mixed)
    assert told(result) == told(expected)


def test_variants_times_and_progress(client):
    data = [rw.Dataset(table) for table in (TRAIN, VALID)]
    seen = []
    how = {"rates": (0.5,), "judge": 0.5, "settings": QUICK, "accept": rw.Acceptance(margin=1e-9, alpha=1e-9)}
    result = rw.cleaver(MODEL, *data, client=client, progress=lambda *done: seen.append((os.getpid(), *done)), **how)
    assert [row.variant for row in result.rows] == ["input", "line-search", "refit"]
    assert (result.rows[0].speed_up, len(result.timings)) == (1.0, 3)
    assert (result.ensemble, result.chosen) == (MODEL, result.rows[0])
    assert {pid for pid, *_ in seen} == {os.getpid()}
    assert seen[-1][1:] == (3, 3)


def test_what_a_cluster_cannot_do(client):
    data = [rw.Dataset(table) for table in (TRAIN, VALID)]
    for how, words in (
        ({"variants": "distil"}, "the variant 'distil' needs all documents in one process"),
        ({"strategy": lambda outputs, weights, queries, k: []}, "a strategy of your own would see"),
        ({"measure": "nDGC"}, "nDGC"),
        ({"strategy": "best"}, "best"),
    ):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.cleaver(MODEL, *data, client=client, **how)
    with pytest.raises(rw.DataError, match="features"):
        rw.cleaver(MODEL, data[0], data[1].select_features([0, 1]), client=client, **HOW)


def test_a_worker_that_dies_changes_nothing(client):
    killed = []

    def kill(done, total):
        if done >= 1 and not killed:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    how = {"accept": "quality", "settings": replace(HOW["settings"], search=rw.LineSearch(iterations=30, patience=30))}
    train, valid = (dd.from_pandas(table, npartitions=4) for table in (TRAIN, VALID))
    result = rw.cleaver(MODEL, train, valid, test=rw.Dataset(TEST), client=client, progress=kill, **{**HOW, **how})
    assert killed
    assert told(result) == told(alone(**how))


def test_shares_with_features(client, workers):
    table, weights = TRAIN.copy(), np.arange(len(TRAIN)) / 7
    table.loc[::5, "c"] = np.nan
    expected = rw.Dataset(table, weights=weights)
    for data in (dd.from_pandas(table.assign(weight=weights), npartitions=6), expected):
        placed = place_features(client, workers, open_source(data))
        shares = client.gather(list(placed.shares.values()))
        placed.release()
        assert (placed.edges, placed.n_docs, placed.feature_names) == (None, len(table), tuple("abcde"))
        for name in ("X", "y", "weights", "qid"):
            together = np.concatenate([getattr(share, name) for share in shares])
            np.testing.assert_array_equal(together, getattr(expected, name))
        assert all(placed.n_bytes[worker] >= share.X.nbytes for worker, share in zip(workers, shares, strict=True))


def test_the_command(rankwood, tmp_path):
    MODEL.save(tmp_path / "model.rw")
    TRAIN.to_parquet(tmp_path / "train.parquet", row_group_size=200)
    VALID.to_csv(tmp_path / "valid.csv", index=False)
    rw.write_svmlight(rw.Dataset(TEST), tmp_path / "test.txt")
    given = ["prune", tmp_path / "model.rw", "--rates", "0.3,0.6", "--iterations", 3, "--accept", "quality"]
    for role, name in (("train", "train.parquet"), ("valid", "valid.csv"), ("test", "test.txt")):
        given += [f"--{role}", tmp_path / name]
    status, here = rankwood(*given, "-o", tmp_path / "small.rw", "--json", "--no-distil")
    command = [sys.executable, "-m", "rankwood", *map(str, given), "-o", str(tmp_path / "spread.rw"), "--json"]
    there = subprocess.run([*command, "--dask", "local:2"], capture_output=True, text=True)  # no other client is there
    said = [line for line in there.stderr.splitlines() if "the machine was busy" not in line]
    assert (status, there.returncode, said) == (0, 0, [])
    expected, found = json.loads(here.out), json.loads(there.stdout)
    times = {"model", "timing", "speed_up", "table", "bytes_after"}
    assert found.keys() == expected.keys()
    assert {name: found[name] for name in found if name not in times} == {
        name: expected[name] for name in expected if name not in times
    }
    assert all(row.pop("speed_up") > 0.0 for row in found["table"] + expected["table"])
    assert found["table"] == expected["table"]
    small, other = (rw.load_model(tmp_path / name) for name in ("small.rw", "spread.rw"))
    assert small.fingerprint() == other.fingerprint()


def test_what_the_command_refuses(rankwood, tmp_path):
    MODEL.save(tmp_path / "model.rw")
    TRAIN.to_parquet(tmp_path / "train.parquet")
    given = ["prune", tmp_path / "model.rw", "-o", tmp_path / "small.rw"]
    given += ["--train", tmp_path / "train.parquet", "--valid", tmp_path / "train.parquet"]
    for more, words in (
        (["--dask", "local:2", "--distil"], "--distil needs all documents in one process: leave it out with --dask"),
        (["--shuffle"], "--shuffle is for data on a cluster"),
    ):
        status, said = rankwood(*given, *more)
        assert status == 2
        assert words in " ".join(said.err.split())


def save_every(seconds):
    from rankwood.pruning import notebook

    notebook.EVERY = seconds


def test_a_checkpoint_of_the_client(client, tmp_path):
    """A cluster goes on where it was, and so does one process: data is told by its queries, not by who has them."""
    how = {**HOW, "accept": "quality", "checkpoint": tmp_path / "steps"}
    data = [rw.Dataset(table) for table in (TRAIN, VALID)]
    expected = told(alone(accept="quality"))

    def stop(done, total):
        if done >= 6:
            raise RuntimeError("stopped")

    client.run(save_every, 0.0)
    try:
        for again in ({"client": client}, {}):
            with pytest.raises(RuntimeError, match="stopped"):
                rw.cleaver(MODEL, *data, test=rw.Dataset(TEST), client=client, progress=stop, **how)
            heard = []
            result = rw.cleaver(
                MODEL,
                *data,
                test=rw.Dataset(TEST),
                progress=lambda *seen, heard=heard: heard.append(seen),
                **again,
                **how,
            )
            assert heard[0][0] >= 4  # what is known counts
            assert told(result) == expected
            with pytest.raises(rw.RankwoodError, match="was made with other training data: delete it"):
                rw.cleaver(MODEL, data[1], data[1], **again, **how)
            (tmp_path / "steps").unlink()
    finally:
        client.run(save_every, 5.0)


def test_a_time_limit_on_a_cluster(client):
    data = [rw.Dataset(table) for table in (TRAIN, VALID)]
    heard = []
    result = rw.cleaver(MODEL, *data, client=client, timeout=1e-3, time_left=heard.append, **HOW)
    assert (result.timed_out, result.rates_left, result.ensemble) == (True, (0.3, 0.6), MODEL)
    whole = rw.cleaver(MODEL, *data, client=client, timeout=1e6, time_left=heard.append, **HOW)
    assert told(whole) == told(rw.cleaver(MODEL, *data, **HOW))
    assert heard[-1] == 0.0
