"""Scores and measures of partitions: the bits of one process, wherever partitions cut queries."""

from __future__ import annotations

import itertools
import os
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwood as rw
from rankwood.cluster.client import open_client
from rankwood.evaluation.partitions import _Measuring
from rankwood.lab.runs import RunTable
from rankwood.tasks import WorkerLost, in_order

dask = pytest.importorskip("dask", reason="DASK ABSENT: pip install 'rankwood[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="DASK ABSENT: pip install 'rankwood[dask]'")
MEASURES = ["nDCG@5", "AP", "RR"]
NAMES = [f"f{number}" for number in range(5)]


@pytest.fixture(scope="module")
def data():
    made = rw.make_ranking(n_queries=30, docs_per_query=12, n_features=5, seed=3)
    return made.replace(feature_names=NAMES)


@pytest.fixture(scope="module")
def model(data):
    return rw.LambdaMART(n_trees=8, n_leaves=6).fit(data).ensemble_


@pytest.fixture(scope="module")
def frame(data):
    table = pd.DataFrame(data.X, columns=NAMES)
    return table.assign(qid=data.qid, label=data.y)


@pytest.fixture(scope="module")
def whole(model, data):
    return rw.evaluate(model, data, MEASURES)


def in_parts(frame, cuts):
    bounds = [0, *cuts, len(frame)]
    pieces = [frame.iloc[start:stop] for start, stop in itertools.pairwise(bounds)]
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame.iloc[:0])


def same(found, whole):
    assert found.means == whole.means
    for name, values in whole.per_query.items():
        assert np.array_equal(found.per_query[name], values, equal_nan=True)


@pytest.mark.parametrize("cuts", [(), (7, 100, 101, 250), (0, 0, 12, 24, 24, 340), (5, 6, 7, 8)])
def test_a_frame_is_evaluated_as_in_memory(client, model, frame, whole, cuts):
    table = in_parts(frame, cuts)
    same(rw.evaluate(model, table, MEASURES, client=client), whole)
    same(rw.evaluate(model, table, MEASURES), whole)  # by Dask's own scheduler


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8), cuts=st.lists(st.integers(0, 48), max_size=6),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_any_cut_gives_the_same(sizes, cuts, seed):
    random = np.random.default_rng(seed)
    n = sum(sizes)
    X, y = random.integers(0, 3, (n, 1)).astype(np.float32), random.integers(0, 3, n)
    whole = rw.Dataset(X, y, group=sizes)
    model = rw.Ensemble.from_trees([(0, 1.0, 0.0, 1.0)], n_features=1)
    measuring = _Measuring.of([model, model.reweigh([-1.0])], MEASURES, "rankwood", 1)
    bounds = sorted({0, n, *(min(cut, n) for cut in cuts)})
    rows = [slice(*pair) for pair in itertools.pairwise(bounds)]
    parts = [measuring.measured(rw.Dataset(X[some], y[some], qid=whole.qid[some])) for some in rows]
    found = measuring.joined(parts)
    assert found.n_docs == n
    for one, result in zip(measuring.models, found.evaluations, strict=True):
        same(result, rw.evaluate(one, whole, MEASURES))


def test_wrong_frames_are_refused_in_a_sentence(client, model, frame):
    def refused(table, words, **more):
        with pytest.raises(rw.RankwoodError, match=words):
            rw.evaluate(model, table, client=client, **more)

    refused(in_parts(frame.drop(columns="qid"), (5,)), "no column is named qid or query_id; there are: f0, f1")
    refused(in_parts(frame.drop(columns="label"), (5,)), "no column is named label")
    refused(in_parts(frame.drop(columns="f3"), (5,)), "there are 4 feature columns, 5 were expected")
    refused(in_parts(frame.rename(columns={"f3": "other"}), (5,)), "names its features differently.*'f3'.*'other'")
    refused(in_parts(pd.concat([frame, frame[:3]]), (100,)), "rows of query .* stand apart: sort")
    refused(in_parts(pd.concat([frame[:20], frame[:3]]), ()), "rows of query .* stand apart: sort")
    refused(in_parts(frame.assign(label=np.nan), (5,)), "must be a finite number")
    refused(in_parts(frame[:0], ()), "no document")
    refused(in_parts(frame, ()), "breaks ties by names of documents", convention="trec")
    with pytest.raises(rw.RankwoodError, match="partitions need a model"):
        rw.evaluate([1.0, 2.0], in_parts(frame, ()), client=client)
    with pytest.raises(rw.RankwoodError, match="leave it out with a Dataset"):
        rw.evaluate(model, rw.Dataset([[1.0] * 5], [1], group=[1]), client=client)


def test_a_frame_is_scored_lazily_in_the_same_partitions(client, model, frame, data):
    scores = model.score(data.X)
    table = in_parts(frame[["label", *reversed(NAMES), "qid"]], (7, 7, 100))
    lazy = model.score(table)
    assert lazy.npartitions == table.npartitions == 4
    assert np.array_equal(client.compute(lazy).result(), scores)
    assert client.compute(lazy).result().index.equals(frame.index)
    assert client.compute(lazy).result().name == "score"
    with pytest.raises(rw.DataError, match="there is no 'f2'"):
        model.score(table.drop(columns="f2"))
    with pytest.raises(rw.DataError, match="without qid and group"):
        model.score(table, qid=frame["qid"])


def test_an_array_is_scored_lazily_in_the_same_chunks(client, model, data):
    da = pytest.importorskip("dask.array")
    X = da.from_array(data.X, chunks=(50, 3))
    lazy = model.score(X)
    assert lazy.chunks == (X.chunks[0],)
    assert np.array_equal(client.compute(lazy).result(), model.score(data.X))
    with pytest.raises(rw.DataError, match="X has 4 features but the model was built on 5"):
        model.score(X[:, :4])


@pytest.fixture
def folder(tmp_path, frame):
    """Parquet files that cut queries, one of them empty, with small groups of rows."""
    path = tmp_path / "data"
    path.mkdir()
    for number, (start, stop) in enumerate([(0, 100), (100, 100), (100, 101), (101, len(frame))]):
        table = pa.Table.from_pandas(frame.iloc[start:stop], preserve_index=False)
        pq.write_table(table, path / f"part-{number}.parquet", row_group_size=70)
    return path


def test_files_are_evaluated_by_workers_and_out_of_core(client, model, data, folder, whole, tmp_path, monkeypatch):
    same(rw.evaluate(model, folder, MEASURES, client=client), whole)
    monkeypatch.chdir(tmp_path)
    same(rw.evaluate(model, ["data/part-0.parquet", "data/part-2.parquet", "data/part-3.parquet"], MEASURES), whole)
    rw.write_svmlight(data, tmp_path / "all.txt")
    same(rw.evaluate(model, tmp_path / "all.txt", MEASURES), whole)
    same(rw.evaluate(model, "all.txt", MEASURES, client=client), whole)
    halves = [data.select_queries(range(15)), data.select_queries(range(15, 30))]
    for number, half in enumerate(halves):
        rw.write_svmlight(half, tmp_path / f"{number}.txt")
    same(rw.evaluate(model, ["0.txt", "1.txt"], MEASURES, client=client), whole)
    with pytest.raises(rw.DataError, match="5 feature columns, 6 were expected"):
        rw.evaluate(rw.Ensemble.from_trees([0.0], n_features=6), folder, client=client)
    monkeypatch.setattr(client, "run", lambda function, paths: {"elsewhere": [None]})
    with pytest.raises(rw.DataError, match="not every worker of the Dask cluster sees"):
        rw.evaluate(model, folder, client=client)


def kill_once(item, folder):
    if item == 1 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * 10


def kill_always(item):
    os.kill(os.getpid(), signal.SIGKILL)


def test_tasks_of_a_worker_that_dies_are_done_again(tmp_path):
    with open_client("local:2") as own:
        assert list(in_order(own, kill_once, range(4), tmp_path)) == [0, 10, 20, 30]
        with pytest.raises(WorkerLost, match="perhaps for want of memory: go on with larger workers"):
            list(in_order(own, kill_always, [1]))


@pytest.fixture
def address(client):
    return client.scheduler.address


def test_the_command_score(rankwood, address, model, data, folder, tmp_path):
    model.save(tmp_path / "model.rw")
    expected = "".join(f"{score!r}\n" for score in model.score(data.X).tolist())
    status, said = rankwood("score", tmp_path / "model.rw", "--data", folder, "--dask", address)
    assert (status, said.out) == (0, expected)
    assert (
        rankwood("score", tmp_path / "model.rw", "--data", folder, "--dask", address, "-o", tmp_path / "s.txt")[0] == 0
    )
    assert (tmp_path / "s.txt").read_text() == expected
    for name, more in (("here", ()), ("there", ("--dask", address))):
        status, said = rankwood("score", tmp_path / "model.rw", "--data", folder, "-o", tmp_path / name, *more)
        assert status == 0, said.err
        files = sorted((tmp_path / name).iterdir())
        assert [file.name for file in files] == [f"part-{number}.parquet" for number in range(4)]
        parts = [pq.read_table(file)["score"].to_numpy() for file in files]
        assert [len(part) for part in parts] == [100, 0, 1, data.n_docs - 101]
        assert np.array_equal(np.concatenate(parts), model.score(data.X))
    status, said = rankwood("score", tmp_path / "model.rw", "--data", folder, "-o", tmp_path / "there")
    assert status == 2
    assert "exists" in said.err


def test_a_folder_of_scores_is_whole_or_not_there(rankwood, address, model, folder, tmp_path):
    model.save(tmp_path / "model.rw")
    table = pq.read_table(folder / "part-3.parquet")
    texts = pa.array(["no number"] * table.num_rows)
    pq.write_table(table.set_column(table.column_names.index("f1"), "f1", texts), folder / "part-3.parquet")
    before = set(tmp_path.iterdir())
    status, said = rankwood("score", tmp_path / "model.rw", "--data", folder, "--dask", address, "-o", tmp_path / "out")
    assert status == 2
    assert "column 'f1' holds string values" in said.err
    assert set(tmp_path.iterdir()) == before


def test_the_command_evaluate(rankwood, address, model, data, folder, tmp_path, monkeypatch):
    model.save(tmp_path / "model.rw")
    model.select(range(3)).save(tmp_path / "small.rw")
    rw.write_parquet(data, tmp_path / "all.parquet")
    command = ["evaluate", tmp_path / "model.rw", tmp_path / "small.rw", "-m", "nDCG@5", "AP"]
    outputs = []
    for more in (["--data", tmp_path / "all.parquet"], ["--data", folder, "--dask", address]):
        status, said = rankwood(*command, *more)
        assert status == 0, said.err
        outputs.append(said.out)
    monkeypatch.setattr("rankwood.system.available_memory", lambda: 1)
    assert rankwood(*command, "--data", tmp_path / "all.parquet")[1].out == outputs[0]  # out of core
    assert outputs[0] == outputs[1]
    status, said = rankwood(*command, "--data", folder, "--dask", "nonsense")
    assert (status, said.err.count("\n")) == (2, 1)
    assert "neither an address nor a scheduler file" in said.err


def test_the_command_sweep(rankwood, tmp_path):
    config = tmp_path / "leaves.toml"
    config.write_text(
        'learner = "mart"\nparameters.n_trees = 3\ngrid.n_leaves = [4, 8]\nspeed = false\n'
        "data.synthetic = { n_queries = 20, docs_per_query = 8, n_features = 4 }\nfolds = [1]\n"
    )
    status, said = rankwood("sweep", config, "--out", tmp_path / "out", "--dask", "local:2", "--workers", "2")
    assert status == 2
    assert "--workers and --dask both say where runs are done: give one of them" in said.err
    results = []
    for name, more in (("one", ()), ("two", ("--dask", "local:2"))):
        status, said = rankwood("sweep", config, "--out", tmp_path / name, *more)
        assert status == 0, said.err
        table = RunTable(tmp_path / name / "runs.sqlite").entries()
        results.append({entry["key"]: entry["result"]["model"]["test"] for entry in table})
    assert results[0] == results[1]
    assert len(results[0]) == 2
