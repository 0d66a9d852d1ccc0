"""The commands of the guide on clusters are run: training with local processes, and with a scheduler and a worker."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from blocks import ROOT, blocks

import rankwood as rw

pytest.importorskip("distributed", reason="DASK ABSENT: pip install 'rankwood[dask]'")

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(rw.__file__).parents[1])}  # also where it is found relatively
GUIDE = ROOT / "docs" / "guides" / "cluster.md"
HERE_ALONE = {  # so that the commands get along with others of this machine; the last of two options counts
    "scheduler": ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"],
    "worker": ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard"],
}


def commands(heading: str) -> list[list[str]]:
    """The commands under a heading of the guide, as words."""
    lines = GUIDE.read_text(encoding="utf-8").split("\n")
    first = lines.index(heading) + 1
    last = next((n for n in range(first, len(lines)) if lines[n].startswith("## ")), len(lines))
    text = "\n".join(block.text for block in blocks(GUIDE) if block.language == "sh" and first < block.line <= last)
    return [shlex.split(line, comments=True) for line in text.replace("\\\n", " ").split("\n")]


def run(words: list[str]) -> None:
    assert words[0] == "rankwood"
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr}"


def fingerprint_of_one_machine(words: list[str]) -> str:
    """Of the model that a command of the guide trains, without its cluster."""
    without = words[: words.index("--dask")] + words[words.index("--dask") + 2 :]
    without[without.index("-o") + 1] = "alone.rw"
    if "--checkpoint" in without:
        without[without.index("--checkpoint") + 1] = "alone-training.rw"
    run(without)
    return rw.load_model("alone.rw").fingerprint()


def test_processes_of_one_machine(scene):
    scene()
    train, *others = commands("## Many processes of one machine")
    assert train[:2] == ["rankwood", "train"]
    run(train)
    assert rw.load_model("model.rw").fingerprint() == fingerprint_of_one_machine(train)
    assert [words[1] for words in others] == ["evaluate", "score"]
    for words in others:
        run(words)
    assert len(Path("scores.txt").read_text().split()) == rw.open_data("valid.parquet").n_docs


@contextmanager
def started(words: list[str]) -> Iterator[None]:
    """A command of Dask that runs as long as the block."""
    assert words[0] == "dask"
    command = [sys.executable, "-m", *words, *HERE_ALONE[words[1]]]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def test_several_machines(scene):
    scene()
    scheduler, worker, train = commands("## Several machines")
    with ExitStack() as stack:
        stack.enter_context(started(scheduler))
        file, end = Path("scheduler.json"), time.monotonic() + 60
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        for _ in range(2):
            stack.enter_context(started(worker))
        wait_for_workers(file, 2)
        run(train)
    assert rw.load_model("model.rw").fingerprint() == fingerprint_of_one_machine(train)


def wait_for_workers(file: Path, number: int) -> None:
    from distributed import Client

    with Client(scheduler_file=os.fspath(file), set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)
