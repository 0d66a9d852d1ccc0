"""Making WordNet-LTR: whole files or none, the same values whoever makes them, and the published ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rankwood as rw
from rankwood.data.folds import find_folds
from rankwood.errors import DataError, MissingPackageError, RankwoodError
from rankwood.lab.datasets.wordnet import queries as queries_module
from rankwood.lab.datasets.wordnet.database import DEBIAN_FOLDER
from rankwood.lab.datasets.wordnet.features import FEATURES
from rankwood.lab.datasets.wordnet.make import PUBLISHED, as_published, make
from rankwood.lab.datasets.wordnet.rules import Rules
from strategies.wordnet_files import random_entries, write_database

RULES = Rules(fewest=6, most=14, feedback=3, classes=(0.05, 0.1, 0.5), group=10)
FILES = {"train.parquet", "vali.parquet", "test.parquet", "queries.tsv", "facts.json", "WORDNET-LICENSE.txt"}


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_database(tmp_path_factory.mktemp("wordnet"), random_entries(3, n_nouns=500, n_others=150))


@pytest.fixture(scope="module")
def made(wordnet: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("made") / "set"
    return folder, make(folder, n_queries=32, wordnet=wordnet, n_workers=1, rules=RULES)


def checksums(facts: dict[str, Any]) -> dict[str, str]:
    return {split: file["sha256_of_values"] for split, file in facts["files"].items()}


def read(folder: Path, split: str, ending: str = "parquet") -> rw.Dataset:
    return rw.read_data(folder / f"{split}.{ending}")


def test_files_and_facts(made: tuple[Path, dict[str, Any]]) -> None:
    folder, facts = made
    assert {path.name for path in folder.iterdir()} == FILES
    assert json.loads((folder / "facts.json").read_text()) == facts
    assert (folder / "WORDNET-LICENSE.txt").read_text() == "This is a toy.\nKeep this notice.\n"
    assert [file["queries"] for file in facts["files"].values()] == [20, 6, 6]
    titles = [line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines()]
    assert titles[0] == ["qid", "split", "query"]
    [fold] = find_folds(folder)
    for split, [path] in zip(("train", "vali", "test"), (fold.train, fold.valid, fold.test), strict=True):
        data, file = rw.read_data(path), facts["files"][split]
        assert data.feature_names == FEATURES
        assert (data.n_docs, data.n_queries) == (file["rows"], file["queries"])
        assert np.bincount(data.y.astype(int), minlength=5).tolist() == list(file["grades"].values())
        assert file["rows_per_query"][::2] == [data.queries.sizes.min(), data.queries.sizes.max()]
        assert [int(row[0]) for row in titles[1:] if row[1] == split] == data.queries.ids.tolist()
        assert_array_equal(rw.open_data(path).y, data.y)
    assert as_published(facts) is None


def test_both_formats_have_the_same_values(made: tuple[Path, dict[str, Any]], wordnet: Path, tmp_path: Path) -> None:
    folder, facts = made
    other = make(tmp_path / "text", n_queries=32, wordnet=wordnet, format="svmlight", n_workers=1, rules=RULES)
    assert other == facts
    for split in facts["files"]:
        one, two = read(folder, split), read(tmp_path / "text", split, "txt")
        assert_array_equal(two.X, one.X)
        assert_array_equal(two.y, one.y)
        assert_array_equal(two.qid, one.qid)
    assert np.isnan(one.X).any()


@pytest.mark.parametrize("start", [queries_module.START, "spawn"])
def test_workers_do_not_show(
    made: tuple[Path, dict[str, Any]], wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str | None
) -> None:
    monkeypatch.setattr(queries_module, "CHUNK", 3)
    monkeypatch.setattr(queries_module, "START", start)
    folder, facts = made
    assert make(tmp_path / "two", n_queries=32, wordnet=wordnet, n_workers=2, rules=RULES) == facts
    for name in ("queries.tsv", "facts.json"):
        assert (tmp_path / "two" / name).read_bytes() == (folder / name).read_bytes()


def test_fewer_queries_are_the_first_ones(made: tuple[Path, dict[str, Any]], wordnet: Path, tmp_path: Path) -> None:
    make(tmp_path / "few", n_queries=16, wordnet=wordnet, n_workers=1, rules=RULES)
    for split in ("train", "vali", "test"):
        few, many = read(tmp_path / "few", split), read(made[0], split)
        assert few.n_docs < many.n_docs
        assert_array_equal(few.X, many.X[: few.n_docs])
        assert_array_equal(few.y, many.y[: few.n_docs])


def test_verbs_and_adjectives(wordnet: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"only \d+ of 1,876 queries for train could be made"):
        facts = make(tmp_path / "set", part="verb-adj", wordnet=wordnet, n_workers=1, rules=RULES)
    assert facts["part"] == "verb-adj"
    assert facts["split"]["synsets"] == 300


def test_progress_goes_on_to_the_end(wordnet: Path, tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []
    make(
        tmp_path / "set", n_queries=6, wordnet=wordnet, n_workers=1, rules=RULES,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    done = [one for one, _ in told]
    assert done == sorted(done)
    assert done[0] == 0
    assert told[-1][0] == told[-1][1]
    assert len({total for _, total in told}) == 1


# --- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_queries": 2}, "n_queries must be at least 3"),
        ({"part": "nouns"}, "part must be noun or verb-adj, got 'nouns'"),
        ({"format": "csv"}, "format must be parquet or svmlight, got 'csv'"),
        (
            {"wordnet": "nowhere"},
            r"no WordNet database in nowhere .*package wordnet-base, .*\(--wordnet DIR\)",
        ),
        ({"n_workers": 0}, "at least 1"),
        ({"rules": Rules(fewest=10_000)}, "no query for train could be made: the database is not the whole WordNet"),
    ],
)
def test_wrong_arguments(wordnet: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RankwoodError, match=message):
        make(tmp_path / "set", **({"wordnet": wordnet, "n_workers": 1, "n_queries": 9} | options))
    assert not any(tmp_path.iterdir())


def test_a_folder_in_use_is_left_alone(made: tuple[Path, dict[str, Any]], wordnet: Path) -> None:
    with pytest.raises(DataError, match="is there already: choose another folder, or remove it"):
        make(made[0], wordnet=wordnet, rules=RULES)
    assert {path.name for path in made[0].iterdir()} == FILES


def test_pyarrow_is_missed_before_the_work(wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"writing Parquet needs the package pyarrow: .*rankwood\[arrow\]"):
        make(tmp_path / "set", wordnet=wordnet, progress=lambda done, total: pytest.fail("work was begun"))
    make(tmp_path / "text", wordnet=wordnet, n_queries=6, format="svmlight", n_workers=1, rules=RULES)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_nothing_is_left_of_what_was_interrupted(wordnet: Path, tmp_path: Path, n_workers: int) -> None:
    def interrupt(done: float, total: float) -> None:
        if done > total - 15:  # among the queries
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "set", n_queries=32, wordnet=wordnet, n_workers=n_workers, rules=RULES, progress=interrupt)
    assert not any(tmp_path.iterdir())


def killed(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(queries_module.START != "fork", reason="PROCESSES OF THIS TEST ARE FORKED, AS ON LINUX ALONE")
def test_a_worker_that_was_killed_is_told(wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries_module.QueryMaker, "make", killed)
    with pytest.raises(RankwoodError, match=r"a worker process was killed, .*: use fewer workers \(--workers\)"):
        make(tmp_path / "set", n_queries=6, wordnet=wordnet, n_workers=2, rules=RULES)
    assert not any(tmp_path.iterdir())


PROGRAM = """
import sys
from pathlib import Path
from rankwood.lab.datasets.wordnet import queries
from rankwood.lab.datasets.wordnet.make import make
from rankwood.lab.datasets.wordnet.rules import Rules

def make_forever(self, synset, make=queries.QueryMaker.make):
    Path("started").touch()
    while True:
        query = make(self, synset)

if __name__ == "__main__":
    queries.QueryMaker.make = make_forever
    make("set", n_queries=32, wordnet=sys.argv[1], n_workers=2, rules=Rules(fewest=6, most=14, group=10))
"""


@pytest.mark.skipif(queries_module.START != "fork", reason="PROCESSES OF THIS TEST ARE FORKED, AS ON LINUX ALONE")
def test_workers_do_not_outlive_who_was_killed(wordnet: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    source = Path(rw.__file__).resolve().parents[1]
    program = subprocess.Popen(
        [sys.executable, "program.py", wordnet],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source)},
        start_new_session=True,
    )
    try:
        wait_until(lambda: (tmp_path / "started").exists())
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
    wait_until(lambda: not group_is_alive(program.pid))


def wait_until(is_so, patience: float = 120.0) -> None:
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def group_is_alive(group: int) -> bool:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False


# --- the real database --------------------------------------------------------------------------------------------


@pytest.mark.real_data
def test_the_first_queries_of_the_real_set(tmp_path: Path) -> None:
    folder = Path(os.environ.get("RANKWOOD_WORDNET", DEBIAN_FOLDER))
    if not (folder / "data.noun").exists():
        pytest.skip("WORDNET ABSENT: apt-get install wordnet-base, or set RANKWOOD_WORDNET to the database's folder")
    facts = make(tmp_path / "set", n_queries=320, wordnet=folder, n_workers=2)
    assert checksums(facts) == {
        "train": "f1e448324b99d458a69bd6636fb85015d501bfd8503518484f2f620bd09f45e7",
        "vali": "a841a173a83442f0d13f21cb02b841592e01b2034956f7910b39bbc1becf868d",
        "test": "566145000d26de4384b410bebbc3bbe01d2e2319dedb691300cfb00e291bf503",
    }
    assert facts["split"]["groups"] == 293


def test_published_checksums_are_compared() -> None:
    sizes = {"train": 20_000, "vali": 6_000, "test": 6_000}
    files = {split: {"queries": n, "sha256_of_values": PUBLISHED["noun"][split]} for split, n in sizes.items()}
    assert as_published({"part": "noun", "files": files}) is True
    files["test"]["sha256_of_values"] = "0" * 64
    assert as_published({"part": "noun", "files": files}) is False
