"""Places that cannot be written or read: one sentence that names the file, status 2, nothing written; and links.

Root may do everything, so the commands run as another user, in a fork of this process: its interpreter may lie where
that user cannot read it. Each command is run once before, so that all it imports is there.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rankwood as rw

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="USERS AND FORKS ARE OF POSIX")

NOBODY = 65534
LEARN = "--train train.txt --valid valid.txt"
COMMANDS = {
    "train": f"train mart {LEARN} -p n_trees=2 -o OUT/m.rw",
    "checkpoint": f"train mart {LEARN} -p n_trees=2 --checkpoint OUT/steps -o MINE/m.rw",
    "prune": f"prune model.rw {LEARN} --rates 0.5 --iterations 1 -o OUT/m.rw",
    "refit": f"refit model.rw {LEARN} -o OUT/m.rw",
    "score": "score model.rw --data test.txt -o OUT/scores",
    "score to a folder": "score model.rw --data test.parquet -o OUT/scores",
    "convert": "convert model.rw OUT/m.txt",
    "compile": "compile model.rw -o OUT/m.c",
    "report": "report model.rw --data test.txt -m AP -o OUT/r.html",
    "sweep": "sweep sweep.toml --out OUT/sweep",
    "tune": f"tune {LEARN} --budget-us 1e6 --trials 1 --max-trees 2 --study OUT/study -o MINE/m.rw",
}


@pytest.fixture
def given(monkeypatch) -> Iterator[Path]:
    """What commands read, where other users may look; what pytest makes is the user's own."""
    pytest.importorskip("pyarrow", reason="ARROW ABSENT: pip install 'rankwood[arrow]'")
    folder = Path(tempfile.mkdtemp(prefix="rankwood-places-"))
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RANKWOOD_CACHE", str(folder / "mine"))
    data = rw.make_ranking(n_queries=24, docs_per_query=6, n_features=3, seed=0)
    for number, name in enumerate(("train", "valid", "test")):
        part = data.select_queries(range(8 * number, 8 * number + 8))
        rw.write_svmlight(part, folder / f"{name}.txt")
        rw.write_parquet(part, folder / f"{name}.parquet")
    rw.MART(n_trees=4, n_leaves=3, min_docs_per_leaf=1).fit(data).ensemble_.save(folder / "model.rw")
    (folder / "sweep.toml").write_text(
        "name = 'x'\nlearner = 'mart'\nspeed = false\nfolds = [1]\nseeds = 1\nparameters = {n_trees = 2}\n"
        "grid.n_leaves = [3, 4]\ndata.synthetic = {n_queries = 20, docs_per_query = 6, n_features = 4}\n"
    )
    (folder / "mine").mkdir()
    (folder / "mine").chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def as_another(call: Callable[[], Any]) -> Any:
    """The result of a call made by a user who is not root."""
    if os.getuid() != 0:
        return call()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:  # whatever happens, this process does not go on with the tests
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with os.fdopen(writer, "w") as pipe:
                json.dump(vars(call()), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return SimpleNamespace(**json.loads(result))


def filled(command: str, out: Path, mine: Path) -> list[str]:
    return command.replace("OUT", str(out)).replace("MINE", str(mine)).split()


def assert_refused(outcome, *named: Path) -> None:
    last = outcome.err.splitlines()[-1]
    assert outcome.status == 2, outcome.err
    assert last.startswith("rankwood: ")
    assert any(str(path) in last for path in named), last
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_may_not_be_written(rankwood, given, name):
    (given / "first").mkdir()
    outcome = rankwood(*filled(COMMANDS[name], given / "first", given / "first"))
    assert outcome.status == 0, outcome.err
    locked = given / "locked"
    locked.mkdir(mode=0o555)
    outcome = as_another(lambda: rankwood(*filled(COMMANDS[name], locked, given / "mine")))
    assert_refused(outcome, locked)
    assert os.listdir(locked) == []
    assert os.listdir(given / "mine") == []  # not even what could be written


@pytest.mark.parametrize("secret", ["train.txt", "valid.txt", "model.rw", "test.txt", "test.parquet", "sweep.toml"])
def test_a_file_that_may_not_be_read(rankwood, given, secret):
    wanted = [command for command in COMMANDS.values() if secret in command]
    for command in wanted:
        (given / "first").mkdir()
        assert rankwood(*filled(command, given / "first", given / "first")).status == 0
        shutil.rmtree(given / "first")
    (given / secret).chmod(0o200)
    for command in wanted:
        outcome = as_another(lambda command=command: rankwood(*filled(command, given / "mine", given / "mine")))
        assert_refused(outcome, Path(secret))
        assert os.listdir(given / "mine") == []


LINKED = {name: command for name, command in COMMANDS.items() if name in ("train", "score", "convert", "report")}


@pytest.mark.parametrize("name", LINKED)
def test_an_output_that_is_a_link(rankwood, given, name):
    """What it points to is written, and the link stays; links into nowhere and to themselves are told."""
    output = Path(LINKED[name].rpartition("OUT/")[2])
    out, elsewhere = given / "out", given / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / output).symlink_to(elsewhere / "new")
    assert rankwood(*filled(LINKED[name], out, out)).status == 0
    assert (os.listdir(out), os.listdir(elsewhere)) == ([str(output)], ["new"])
    assert (out / output).is_symlink()
    (out / output).unlink()
    (out / output).symlink_to(given / "none" / "new")
    assert_refused(rankwood(*filled(LINKED[name], out, out)), out / output)
    assert (out / output).is_symlink()
    (out / output).unlink()
    (out / output).symlink_to(output)
    assert_refused(rankwood(*filled(LINKED[name], out, out)), out / output)
    assert os.listdir(out) == [str(output)]
    assert (out / output).is_symlink()


def test_an_output_that_is_linked_to_an_input(rankwood, given):
    (given / "link.txt").symlink_to("test.txt")
    before = (given / "test.txt").read_bytes()
    outcome = rankwood("score", "model.rw", "--data", "test.txt", "-o", "link.txt")
    assert_refused(outcome, Path("link.txt"))
    assert (given / "test.txt").read_bytes() == before
