"""`rankwood score`: the scores that Python gives, in input order, block by block, whatever the size of the input."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.data import files
from rankwood.scoring import engines as registry
from rankwood.scoring.engines import Engine, Limits
from strategies.ensembles import big_ensemble

N_FEATURES = 7
HEADER, ROW = "qid,a,b,c,d,e,f,g\n", "1,1,2,3,4,5,6,7\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("score")


@pytest.fixture(scope="module")
def model(folder):
    model = big_ensemble(0, n_trees=30, n_leaves=8, n_features=N_FEATURES)
    model.save(folder / "model.rw")
    return model


@pytest.fixture(scope="module")
def rows(folder):
    """500 documents in files of every kind; the names of columns are not in the order of the model."""
    pytest.importorskip("pyarrow")
    data = rw.make_ranking(n_queries=25, docs_per_query=20, n_features=N_FEATURES, missing=0.1, seed=2)
    for name in ("data.txt", "data.txt.gz"):
        rw.write_svmlight(data, folder / name, absent=None)
    named = rw.Dataset(data.X[:, ::-1], data.y, qid=data.qid, feature_names=list("gfedcba"))
    for name in ("data.csv", "data.tsv", "data.csv.gz"):
        rw.write_csv(named, folder / name)
    rw.write_parquet(named, folder / "data.parquet")
    return data


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 100 rows."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 100 * 4 * N_FEATURES)


def numbers(text):
    return np.array(text.split(), dtype=np.float64)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
@pytest.mark.usefixtures("small_blocks")
def test_text_is_scored_in_input_order_bit_for_bit(rankwood, folder, model, rows, name):
    assert sum(1 for _ in files.iter_features(folder / name, n_features=N_FEATURES)) > 3
    expected = model.score(rows.X)
    once = rankwood("score", folder / "model.rw", "--data", folder / name)
    assert once.status == 0
    assert_array_equal(numbers(once.out), expected)
    twice = rankwood("score", folder / "model.rw", "--data", folder / name, folder / name, "--threads", 2)
    assert_array_equal(numbers(twice.out), np.concatenate([expected, expected]))


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.csv.gz", "data.parquet"])
@pytest.mark.usefixtures("small_blocks")
def test_columns_of_tables_are_found_by_name(rankwood, folder, model, rows, name):
    named = rw.Ensemble(**{**model.__reduce__()[1][0], "feature_names": list("abcdefg")})
    named.save(folder / "named.rw")
    scored = rankwood("score", folder / "named.rw", "--data", folder / name, folder / name, "--threads", 2)
    assert scored.status == 0
    expected = model.score(rows.X)
    assert_array_equal(numbers(scored.out), np.concatenate([expected, expected]))
    by_position = rankwood("score", folder / "model.rw", "--data", folder / name)
    assert_array_equal(numbers(by_position.out), model.score(np.ascontiguousarray(rows.X[:, ::-1])))


def test_every_engine_and_precision(rankwood, folder, model, rows):
    for precision in ("single", "double"):
        expected = rw.get_engine("reference").prepare(model).score(rows.X, precision=precision)
        for engine in ("auto", *rw.available_engines(model)):
            scored = rankwood("score", folder / "model.rw", "--data", folder / "data.txt", "--engine", engine,
                              "--precision", precision)  # fmt: skip
            assert_array_equal(numbers(scored.out), expected, err_msg=f"{engine}, {precision}")
    double = rankwood("score", folder / "model.rw", "--data", folder / "data.txt")
    assert_array_equal(numbers(double.out), model.score(rows.X))


def test_an_engine_is_checked_before_any_work(rankwood, folder, model, rows, monkeypatch):
    outcome = rankwood("score", "missing.rw", "--data", "missing.txt", "--engine", "warp")
    assert outcome.status == 2
    assert outcome.err == f"rankwood: there is no engine 'warp'; choose one of: auto, {', '.join(registry.ENGINES)}\n"
    narrow = Engine("narrow", "for a test", Limits(max_leaves=4), registry.ENGINES["reference"].make_kernel)
    monkeypatch.setitem(registry.ENGINES, "narrow", narrow)
    outcome = rankwood("score", folder / "model.rw", "--data", folder / "data.txt", "--engine", "narrow")
    assert outcome.status == 2
    assert "a tree has 8 leaves and engine 'narrow' takes 4" in outcome.err


@pytest.mark.usefixtures("small_blocks")
def test_a_mistake_late_in_the_input_leaves_no_file_behind(rankwood, folder, model, rows, tmp_path):
    lines = (folder / "data.txt").read_text().splitlines(keepends=True)
    lines[432] = "1 qid:9 1:0.5 2:oops\n"
    (tmp_path / "wrong.txt").write_text("".join(lines))
    arguments = ("score", folder / "model.rw", "--data", folder / "data.txt", tmp_path / "wrong.txt")
    outcome = rankwood(*arguments, "-o", tmp_path / "scores.txt")
    assert outcome.status == 2
    assert f"{tmp_path / 'wrong.txt'}, line 433: " in outcome.err
    assert os.listdir(tmp_path) == ["wrong.txt"]
    (tmp_path / "scores.txt").write_text("older\n")
    assert rankwood(*arguments, "-o", tmp_path / "scores.txt").status == 2
    assert (tmp_path / "scores.txt").read_text() == "older\n"
    assert sorted(os.listdir(tmp_path)) == ["scores.txt", "wrong.txt"]
    printed = numbers(rankwood(*arguments).out)  # what was scored before the mistake
    assert len(printed) >= 500
    assert_array_equal(printed, np.tile(model.score(rows.X), 2)[: len(printed)])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("wrong.csv", HEADER + ROW * 70_000 + "1,1,2,3,4,5,6,x\n", "'x' in row 70,001 of column 'g' is no number"),
        ("ragged.csv", HEADER + ROW * 70_000 + "1,1\n", "cannot be read after row [0-9,]+: .*columns"),
        ("wide.csv", "qid,a,b,c,d,e,f,g,h\n1,1,2,3,4,5,6,7,8\n", "there are 8 feature columns, 7 were expected"),
        ("header.csv", HEADER, "header.csv: the table has no rows"),
        ("text.csv", HEADER + "1,1,2,3,4,5,6,high\n", "column 'g' holds string values such as 'high'"),
        ("torn.parquet", "PAR1 and no more", "torn.parquet: cannot be read"),
        ("empty.txt", "", "empty.txt: the file is empty"),
        ("comments.txt", "# nothing\n\n", "comments.txt: there is no document, only blank lines and comments"),
        ("torn.txt.gz", b"\x1f\x8b\x08\x00\x00", "the gzip data ends too early"),
    ],
)  # fmt: skip
def test_bad_input(rankwood, folder, model, tmp_path, name, content, message):
    pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = rankwood("score", folder / "model.rw", "--data", path, "-o", tmp_path / "scores.txt")
    assert (outcome.status, outcome.out) == (2, "")
    assert re.search(message, outcome.err), outcome.err
    assert outcome.err.count("\n") == 1
    assert os.listdir(tmp_path) == [name]


def test_files_of_other_columns_and_kinds_are_refused(rankwood, folder, model, rows, tmp_path):
    (tmp_path / "other.csv").write_text("qid,a,b,c,d,e,f,h\n1,1,2,3,4,5,6,7\n")
    outcome = rankwood("score", folder / "model.rw", "--data", folder / "data.csv", tmp_path / "other.csv")
    assert (outcome.status, outcome.out) == (2, "")
    assert "its columns are not those of" in outcome.err
    outcome = rankwood("score", folder / "model.rw", "--data", folder / "data.csv", folder / "data.txt")
    assert (outcome.status, outcome.out) == (2, "")
    assert "different kinds" in outcome.err


def test_features_that_never_occur_are_told(rankwood, folder, model, tmp_path):
    (tmp_path / "narrow.txt").write_text("1 1:0.5 3:2\n0 2:1\n")
    outcome = rankwood("score", folder / "model.rw", "--data", tmp_path / "narrow.txt")
    assert outcome.status == 0
    assert outcome.err == "note: the model has 7 features; those after number 3 are 0 in all of the data\n"


def rankwood_process(*arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "rankwood", *map(str, arguments)], text=True, **pipes, **options)


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="there is no /dev/stdin")
def test_standard_input_can_be_scored(folder, model, rows):
    process = rankwood_process("score", folder / "model.rw", "--data", "/dev/stdin")
    out, err = process.communicate((folder / "data.txt").read_text(), timeout=60)
    assert (process.returncode, err) == (0, "")
    assert_array_equal(numbers(out), model.score(rows.X))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_ctrl_c_leaves_nothing_behind(folder, model, rows, tmp_path):
    pipe = tmp_path / "data.txt"
    os.mkfifo(pipe)
    process = rankwood_process("score", folder / "model.rw", "--data", pipe, "-o", tmp_path / "scores.txt")
    with open(pipe, "w") as text:  # waits until the reader is there
        text.write((folder / "data.txt").read_text())
        text.flush()
        deadline = time.monotonic() + 30
        while not any(name.endswith(".part") for name in os.listdir(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["data.txt"]


def peak_memory(model_file, data_file):
    """Megabytes that scoring a file takes in a process of its own; getrusage would count those of its parent, too."""
    code = (
        "import re, sys; from rankwood.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    arguments = ["score", model_file, "--data", data_file, "--threads", "1"]
    run = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(result.stderr.split()[-1]) / 1000


def write_wide_text(path, n_rows):  # of 8 bytes a row and 2,000 in memory
    path.write_text("0 1:0.5\n" * n_rows)


def write_wide_csv(path, n_rows):
    header = ",".join(f"f{number}" for number in range(500))
    path.write_text(f"{header}\n" + (",".join(["0"] * 500) + "\n") * n_rows)


def write_wide_parquet(path, n_rows):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    column = pa.array(np.zeros(n_rows, dtype=np.float32))
    parquet.write_table(pa.table({f"f{number}": column for number in range(500)}), path)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak of memory from /proc")
@pytest.mark.parametrize(
    ("name", "write", "few", "many"),
    [
        ("data.txt", write_wide_text, 20_000, 200_000),
        ("data.csv", write_wide_csv, 10_000, 50_000),
        ("data.parquet", write_wide_parquet, 15_000, 60_000),
    ],
)
def test_memory_does_not_grow_with_the_input(tmp_path, name, write, few, many):
    rw.Ensemble.from_trees([(0, 0.2, 0.0, 1.0)], n_features=500).save(tmp_path / "wide.rw")
    peaks = []
    for n_rows in (few, many):
        write(tmp_path / name, n_rows)
        peaks.append(peak_memory(tmp_path / "wide.rw", tmp_path / name))
    # By less than the matrix of the features alone would take. (Of CSV, some 40 MB are read ahead.)
    assert peaks[1] - peaks[0] < 0.9 * (many - few) * 500 * 4 / 1e6
