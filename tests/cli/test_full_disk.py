"""A disk that is full at any write: one sentence that names the file, status 2, and nothing half-written.

Every command writes to disks of 8 kB, 32 kB, 128 kB and so on until all of its output fits, so that the disk is full
now at the first write, now at one in the middle, now at the last.
"""

from __future__ import annotations

import contextlib
import fnmatch
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rankwood as rw
from rankwood.cli.console import full_place
from strategies.wordnet_files import random_entries, write_database

PAGE = 4096
LARGEST = 4**8  # pages, where everything fits


@contextlib.contextmanager
def disk(folder: Path, pages: int) -> Iterator[Path]:
    """A disk of so many pages, mounted at a new folder."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module", autouse=True)
def can_mount(tmp_path_factory) -> None:
    try:
        with disk(tmp_path_factory.mktemp("mount"), 1):
            pass
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("NO SMALL DISK CAN BE MOUNTED: run as root, on Linux")


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    """What commands read."""
    folder = tmp_path_factory.mktemp("given")
    data = rw.make_ranking(n_queries=60, docs_per_query=20, n_features=6, seed=1)
    for number, name in enumerate(("train", "valid", "test")):
        rw.write_svmlight(data.select_queries(range(20 * number, 20 * number + 20)), folder / f"{name}.txt")
    rw.LambdaMART(n_trees=40, n_leaves=16, n_jobs=1).fit(data).ensemble_.save(folder / "model.rw")
    many = rw.make_ranking(n_queries=200, docs_per_query=20, n_features=6, seed=2)
    rw.write_svmlight(many, folder / "many.txt")
    rw.write_parquet(many, folder / "many.parquet")
    for fold in (1, 2):
        (folder / "folds" / f"Fold{fold}").mkdir(parents=True)
        for name in ("train", "vali", "test"):
            shutil.copy(folder / f"{name.replace('vali', 'valid')}.txt", folder / f"folds/Fold{fold}/{name}.txt")
    (folder / "wordnet").mkdir()
    write_database(folder / "wordnet", random_entries(3, n_nouns=900, n_others=10))
    (folder / "sweep.toml").write_text(
        "name = 'x'\nlearner = 'lambdamart'\nspeed = false\nfolds = [1, 2]\nseeds = 1\n"
        "parameters = {n_trees = 2}\ngrid.n_leaves = [3, 4]\n"
        "data.synthetic = {n_queries = 20, docs_per_query = 6, n_features = 4}\n"
    )
    return folder


LEARN = "--train train.txt --valid valid.txt"
WHOLE = "[!.]*"  # any file that is whole
# Command, what it writes in the end, and what else may stay, whole, for the next run to go on from.
COMMANDS = {
    "train": (f"train lambdamart {LEARN} -p n_trees=60 -p min_docs_per_leaf=2 -o OUT/m.rw", {"m.rw"}, set()),
    "checkpoint": (
        f"train lambdamart {LEARN} -p n_trees=60 -p min_docs_per_leaf=2 --checkpoint OUT/steps --every 10 -o OUT/m.rw",
        {"m.rw"},
        {"steps"},
    ),
    "prune": (
        f"prune model.rw {LEARN} --rates 0.3,0.5 --iterations 1 --margin 0.9 --checkpoint OUT/steps -o OUT/m.rw",
        {"m.rw"},
        {"steps"},
    ),
    "refit": (f"refit model.rw {LEARN} -o OUT/m.rw", {"m.rw"}, set()),
    "shrink": (
        f"shrink model.rw {LEARN} --factor 2 --margin 0.9 --checkpoint OUT/steps -o OUT/m.rw",
        {"m.rw"},
        {"steps"},
    ),
    "score": ("score model.rw --data many.txt -o OUT/scores", {"scores"}, set()),
    "score to a folder": ("score model.rw --data many.parquet -o OUT/scores", {"scores"}, set()),
    **{
        f"convert to {suffix}": (f"convert model.rw OUT/m{suffix} --to {kind} --missing ignore", {f"m{suffix}"}, set())
        for kind, suffix in {"lightgbm": ".txt", "xgboost": ".json", "onnx": ".onnx", "ranklib": ".xml"}.items()
    },
    "compile": ("compile model.rw -o OUT/m.c", {"m.c", "m.h"}, set()),
    "report": ("report model.rw --data test.txt -m AP -o OUT/r.html", {"r.html"}, set()),
    "sweep": ("sweep sweep.toml --out OUT", {"report.md", "runs.jsonl"}, WHOLE),
    "tune": (
        f"tune {LEARN} --budget-us 1e6 --trials 2 --max-trees 8 --study OUT/study -o OUT/m.rw",
        {"m.rw"},
        {"study", "study.models"},
    ),
    "reproduce": (
        "reproduce subsampling --data folds --folds 1 --trees 2 --seeds 1 --sweep 1 --threads 1 --out OUT",
        {"report.md", "runs.jsonl"},
        WHOLE,
    ),
    "datasets make": (
        "datasets make wordnet-ltr --wordnet wordnet --queries 6 --workers 1 --format svmlight --to OUT/set",
        {"set"},
        set(),
    ),
    "demo": ("demo --quick --out OUT/demo", {"demo"}, {"demo"}),
}
FIRST = {"demo": 512}  # pages of the smallest disk, where not 2


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(rankwood, given, tmp_path, monkeypatch, name):
    command, outputs, kept = COMMANDS[name]
    monkeypatch.chdir(given)
    monkeypatch.setenv("RANKWOOD_CACHE", str(tmp_path / "cache"))
    failed, pages = 0, FIRST.get(name, 2)
    folders = ("score to a folder", "datasets make", "demo")
    older = set() if kept == WHOLE or name in folders else outputs - {"m.h"}  # which must be by rankwood
    while pages <= LARGEST:
        with disk(tmp_path / "disk", pages) as out:
            for one in older:
                (out / one).write_text("old")
            outcome = rankwood(*command.replace("OUT", str(out)).split())
            left = {path.name for path in out.iterdir()}
            if outcome.status == 0:
                assert outputs <= left
                break
            failed += 1
            assert outcome.status == 2, outcome.err
            last = outcome.err.splitlines()[-1]
            print(pages, last, left)
            assert last.startswith("rankwood: "), outcome.err
            assert str(out) in last, outcome.err
            assert "space" in last or "full" in last, outcome.err
            assert "Traceback" not in outcome.err
            stray = {name for name in left if not fnmatch.fnmatch(name, kept)} if kept == WHOLE else left - kept
            assert not stray - older, (pages, left)
            assert {(out / one).read_text() for one in older} <= {"old"}
        pages *= 4
    assert failed, "the disk was never full"
    assert outcome.status == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="THERE IS NO /dev/full")
@pytest.mark.parametrize("command", ["inspect model.rw --json", "score model.rw --data test.txt"])
def test_standard_output_that_is_full(given, command):
    with open("/dev/full", "w") as full:
        run = [sys.executable, "-m", "rankwood", *command.split()]
        done = subprocess.run(run, cwd=given, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "rankwood: standard output: No space left on device\n"


def test_a_full_folder_of_temporary_files(tmp_path, monkeypatch):
    with disk(tmp_path / "disk", 2) as small:
        monkeypatch.setattr("tempfile.tempdir", str(small))
        assert full_place() == f"temporary files in {small}"
    assert full_place() == "standard output"
