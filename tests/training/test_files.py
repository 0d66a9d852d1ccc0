"""Training from files and Arrow tables: the model that the same data gives in memory, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import rankwood as rw
from rankwood.data.tables import write_csv, write_parquet
from rankwood.errors import DataError

WRITERS = {"parquet": write_parquet, "csv": write_csv, "txt": rw.write_svmlight, "txt.gz": rw.write_svmlight}
SETTINGS = {"n_trees": 4, "n_leaves": 8, "min_docs_per_leaf": 5, "n_jobs": 1}


def some_data(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.clip(np.nan_to_num(X[:, 0] + X[:, 1]).round() + 1, 0, 3)
    return rw.Dataset(X, y, qid=rng.integers(0, n // 15, n), feature_names=[f"f{number}" for number in range(12)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, n in (("train", 1500), ("valid", 600)):
        for suffix, write in WRITERS.items():
            write(some_data(n, n), folder / f"{name}.{suffix}")
    return folder


def fitted(ranker, train, valid, **more):
    ranker.fit(train, valid=valid, eval_set=[train], **more)
    return ranker.ensemble_.fingerprint(), ranker.evals_result_


@pytest.mark.parametrize("missing", ["native", "zero", "infinity", "mean", "median"])
@pytest.mark.parametrize("suffix", WRITERS)
def test_files_give_the_model_of_memory(folder, suffix, missing):
    train, valid = folder / f"train.{suffix}", folder / f"valid.{suffix}"
    ranker = rw.LambdaMART(**SETTINGS, missing=missing)
    expected = fitted(ranker, rw.read_data(train), rw.read_data(valid))
    assert fitted(ranker, train, str(valid)) == expected
    assert fitted(ranker, [train], rw.read_data(valid)) == expected
    assert list(expected[1]) == ["valid", "train"]


RANKERS = {
    "dart": rw.DART(**SETTINGS),
    "xdart": rw.XDART(**SETTINGS, judge_share=0.5),
    "ordinal": rw.MART(**SETTINGS, task="ordinal"),
    "refit": rw.MART(**SETTINGS, refit=True),
    "forest": rw.RandomForest(n_trees=3, n_jobs=1),
    "initialized": rw.InitializedMART(**SETTINGS, forest=rw.RandomForest(n_trees=3, n_jobs=1)),
}


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_takes_files(folder, name):
    files = [folder / "train.parquet", folder / "valid.parquet"]
    assert fitted(RANKERS[name], *files) == fitted(RANKERS[name], *map(rw.read_data, files))


@pytest.mark.parametrize("task", ["regression", "ordinal"])
def test_a_model_to_go_on_from_scores_the_files(folder, task):
    files = [folder / "train.csv", folder / "valid.csv"]
    ranker, start = (rw.MART(**SETTINGS, task=task, max_bins=bins) for bins in (255, 9))
    start.fit(rw.read_data(files[0]))
    expected = fitted(ranker, *map(rw.read_data, files), init_model=start)
    assert fitted(ranker, *files, init_model=start) == expected


@pytest.mark.parametrize("task", ["regression", "ordinal"])
@pytest.mark.parametrize("keep_files", [True, False])
def test_training_goes_on_from_a_checkpoint(folder, tmp_path, task, keep_files):
    data = rw.open_data(folder / "train.parquet")
    binned = rw.BinnedDataset.make(data)
    binned = binned if keep_files else binned.without_features()
    ranker = rw.MART(**SETTINGS, task=task)
    first = ranker.fit(binned, checkpoint=rw.Checkpoint(tmp_path / "check", 1), callbacks=[rw.log_evaluation(0)])
    whole = rw.MART(**SETTINGS | {"n_trees": 7}, task=task)
    again = whole.fit(binned, checkpoint=rw.Checkpoint(tmp_path / "check", 1)).ensemble_.fingerprint()
    assert again == whole.fit(rw.read_data(folder / "train.parquet")).ensemble_.fingerprint()
    assert first.n_trees_ < whole.n_trees_


def test_known_scores_stand_for_dropped_features(folder):
    data = rw.read_data(folder / "train.parquet")
    start = rw.MART(**SETTINGS, max_bins=9).fit(data).ensemble_
    ranker, binned = rw.MART(**SETTINGS), rw.BinnedDataset.make(data)
    dropped = binned.without_features()
    with pytest.raises(DataError, match="tree 0 of the model to go on from splits where the bins of the data do not"):
        ranker.fit(dropped, init_model=start)
    knowing = type(binned)(
        dropped.data, binned.edges, binned.bins, binned.has_missing, binned.rows, [(start, start.score(data.X))]
    )
    assert (
        ranker.fit(knowing, init_model=start).ensemble_.fingerprint()
        == ranker.fit(data, init_model=start).ensemble_.fingerprint()
    )


FRAMES = {
    "table": lambda table: table,
    "stream": lambda table: table.to_reader(max_chunksize=100),
    "polars": pl.from_arrow,
    "pandas": pa.Table.to_pandas,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_arrow_data_brings_its_labels_and_queries(folder, frame):
    ranker, path = rw.LambdaMART(**SETTINGS), folder / "train.parquet"
    expected = ranker.fit(rw.read_data(path)).ensemble_.fingerprint()
    table = parquet.read_table(path)
    assert ranker.fit(FRAMES[frame](table)).ensemble_.fingerprint() == expected
    qid, rest = table["qid"].to_numpy(), table.drop_columns(["qid"])
    assert ranker.fit(FRAMES[frame](rest), qid=qid).ensemble_.fingerprint() == expected
    with pytest.raises(DataError, match="queries are missing: the table has no column qid"):
        ranker.fit(FRAMES[frame](rest))


def test_columns_of_validation_files_are_found_by_name(folder, tmp_path):
    table = parquet.read_table(folder / "valid.parquet")
    parquet.write_table(table.select(table.column_names[::-1]), tmp_path / "turned.parquet")
    ranker, train = rw.LambdaMART(**SETTINGS), folder / "train.parquet"
    expected = fitted(ranker, train, folder / "valid.parquet")
    assert fitted(ranker, train, tmp_path / "turned.parquet") == expected


def test_models_are_evaluated_on_files(folder):
    model = rw.MART(**SETTINGS).fit(folder / "train.csv").ensemble_
    data, opened = rw.read_data(folder / "valid.csv"), rw.open_data(folder / "valid.csv")
    assert rw.evaluate(model, opened).means == rw.evaluate(model, data).means


LIMITED = """
import resource, sys
import pyarrow.parquet
import rankwood as rw

ranker = rw.LambdaMART(n_trees=2, n_leaves=4, n_jobs=1)
ranker.fit([[float(row)] for row in range(40)], list(range(40)), group=[40])  # all modules are loaded
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
size = int(status["VmSize"].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]),) * 2)
if sys.argv[3] == "memory":
    ranker.fit(rw.read_data(sys.argv[1], n_threads=1))
else:
    ranker.fit(sys.argv[1])
print(ranker.ensemble_.fingerprint())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space and reads /proc")
def test_files_larger_than_memory(tmp_path):
    """Under a limit of address space below the size of the features: the model that memory gives."""
    n, n_features, path = 600_000, 64, tmp_path / "train.parquet"
    raw = 4 * n * n_features
    rng = np.random.default_rng(0)
    names = [f"f{number}" for number in range(n_features)]
    schema = pa.schema([("qid", pa.int32()), ("label", pa.int8()), *((name, pa.float32()) for name in names)])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, n, 50_000):
            X = np.sqrt(rng.integers(0, 1000, (50_000, n_features)).astype(np.float32))
            columns = {"qid": np.arange(first, first + 50_000) // 100, "label": (X[:, 0] / 10).astype(np.int8)}
            writer.write_table(pa.table(columns | dict(zip(names, X.T, strict=True)), schema=schema))

    def run(where, limit):
        variables = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", LIMITED, str(path), str(limit), where]
        return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=300)

    limited = run("files", raw)
    assert limited.returncode == 0, limited.stderr
    assert run("memory", raw).returncode != 0  # the limit is one
    in_memory = rw.LambdaMART(n_trees=2, n_leaves=4, n_jobs=1).fit(rw.read_data(path))
    assert limited.stdout.strip() == in_memory.ensemble_.fingerprint()


def test_paths_that_are_wrong_are_told(folder):
    with pytest.raises(DataError, match=r"no/such.txt: there is no such file"):
        rw.MART().fit("no/such.txt")
    with pytest.raises(DataError, match=r"data set 'valid': no/such.txt: there is no such file"):
        rw.MART().fit(folder / "train.csv", valid="no/such.txt")
    with pytest.raises(DataError, match="holds its own labels, queries and weights: leave y out"):
        rw.MART().fit(folder / "train.csv", [1, 2])


def test_a_frame_with_labels_given_apart_is_as_before(folder):
    frame = pd.read_csv(folder / "train.csv")
    y = frame.pop("label")
    expected = rw.MART(**SETTINGS).fit(folder / "train.csv").ensemble_
    assert rw.MART(**SETTINGS).fit(frame.astype({f"f{n}": np.float32 for n in range(12)}), y).ensemble_.n_trees == 4
    assert expected.n_trees == 4


def test_a_folder_stands_for_the_parquet_files_in_it(tmp_path):
    data = rw.make_ranking(n_queries=12, docs_per_query=8, n_features=4, seed=3)
    for number, queries in enumerate(np.split(np.arange(12), [5])):
        rw.write_parquet(data.select_queries(queries), tmp_path / f"part{number}.parquet")
    expected = rw.MART(3, 4).fit(rw.read_data(sorted(tmp_path.iterdir()))).ensemble_
    assert rw.MART(3, 4).fit(tmp_path).ensemble_.fingerprint() == expected.fingerprint()
