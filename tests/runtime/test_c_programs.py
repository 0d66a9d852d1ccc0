"""Programs in C: many threads, every instruction set, no allocation, and the example."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from calling import ROOT, build, compile_c
from reranking import assert_reranks

import rankwood as rw
from rankwood.system import available_isas
from strategies.adversarial_rows import adversarial_rows
from strategies.ensembles import big_ensemble

HERE = ROOT / "tests" / "runtime"
USUAL = big_ensemble(1, n_trees=50, n_leaves=32, n_features=12)
EXIT = big_ensemble(2, n_trees=40, n_leaves=16, n_features=6).replace(exit=rw.EarlyExit((16, 32), (0.5, 0.1), top=5))
MODELS = {
    "usual": USUAL,
    "many leaves": big_ensemble(4, n_trees=3, n_leaves=3000, n_features=4),
    "exit": EXIT,
    "leaves alone": rw.Ensemble.from_trees([1.0, 2.0], n_features=2),
}


def scored(program, model, path, X, precision, n_threads, max_batch, **environment):
    model.save(path)
    kind = "f32" if X.dtype == np.float32 else "f64"
    command = [str(program), str(path), kind, precision, str(n_threads), str(max_batch)]
    done = subprocess.run(command, input=X.tobytes(), capture_output=True, env=os.environ | environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return np.frombuffer(done.stdout)


@pytest.fixture(scope="module")
def program(installed, tmp_path_factory):
    return compile_c(installed, HERE / "score.c", tmp_path_factory.mktemp("program") / "score")


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("name", MODELS)
def test_every_instruction_set(program, tmp_path, isa, name):
    model = MODELS[name]
    for dtype in (np.float32, np.float64):
        X = adversarial_rows(model, 1200, dtype=dtype)
        for precision in ("double", "single"):
            found = scored(program, model, tmp_path / "model.rw", X, precision, 3, 40, RANKWOOD_ISA=isa)
            assert found.tobytes() == model.score(X, precision=precision).tobytes()


def test_an_instruction_set_that_is_not_there(program, tmp_path):
    USUAL.save(tmp_path / "model.rw")
    done = subprocess.run(
        [str(program), str(tmp_path / "model.rw"), "f32", "double", "1", "1"], input=b"", capture_output=True,
        env=os.environ | {"RANKWOOD_ISA": "vax"}, text=False, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert b"RANKWOOD_ISA=vax: no such instruction set" in done.stderr


def test_sixteen_threads_under_the_thread_sanitizer(tmp_path_factory):
    if sys.platform != "linux" or shutil.which("gcc") is None:
        pytest.skip("NO GCC ON LINUX: the thread sanitizer is asked for with it")
    if not os.path.isabs(subprocess.check_output(["gcc", "-print-file-name=libtsan.so"], text=True).strip()):
        pytest.skip("NO THREAD SANITIZER: install libtsan to look for races")
    folder = tmp_path_factory.mktemp("tsan")
    prefix = build(folder, "-DRANKWOOD_SANITIZE=thread")
    program = compile_c(prefix, HERE / "score.c", folder / "score", "-fsanitize=thread", "-g")
    wrapped = folder / "run"
    fixed = "setarch -R " if shutil.which("setarch") else ""  # its shadow memory does not suit every random layout
    wrapped.write_text(f'#!/bin/sh\nexec {fixed}{program} "$@"\n')
    wrapped.chmod(0o755)
    for isa in available_isas():
        environment = {"RANKWOOD_ISA": isa, "TSAN_OPTIONS": "halt_on_error=1"}
        for name, model in MODELS.items():
            X = adversarial_rows(model, 300, dtype=np.float32)
            found = scored(wrapped, model, folder / "model.rw", X, "double", 16, 60, **environment)
            assert found.tobytes() == model.score(X).tobytes(), (isa, name)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="NO GLIBC: its own malloc is asked for by name")
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("name", MODELS)
def test_scoring_allocates_nothing(installed, tmp_path, name, isa):
    program = compile_c(installed, HERE / "allocations.c", tmp_path / "allocations")
    MODELS[name].save(tmp_path / "model.rw")
    done = subprocess.run(
        [str(program), str(tmp_path / "model.rw"), "500"], capture_output=True, text=True, check=False,
        env=os.environ | {"RANKWOOD_ISA": isa},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_scoring_asks_the_system_for_no_lock_or_thread(installed):
    """The library knows no function that starts a thread or waits for one."""
    from calling import library_folder

    shown = subprocess.check_output(["nm", "-D", "-u", str(library_folder(installed) / "librankwood.so")], text=True)
    asked = {re.sub("@.*", "", line.split()[-1]) for line in shown.splitlines()}
    assert not asked & {"pthread_create", "pthread_cond_wait", "pthread_join", "puts", "printf"}


def test_the_example(installed, tmp_path):
    program = compile_c(installed, ROOT / "native" / "runtime" / "example.c", tmp_path / "example")
    assert_reranks([program], tmp_path, USUAL)


def test_what_the_command_writes_compiles_and_scores(tmp_path):
    from rankwood.scoring.runtime import FOLDER, LIBRARIES, write_runtime

    if not any((FOLDER / name).exists() for name in LIBRARIES):
        pytest.skip("NO LIBRANKWOOD IN THIS INSTALLATION: it was built without")
    if shutil.which("cc") is None:
        pytest.skip("NO C COMPILER: the example cannot be compiled")
    written = write_runtime(tmp_path / "new" / "folder")
    assert sorted(path.name for path in written.files) == [
        "example.c",
        "librankwood.so",
        "librankwood.so.1",
        "rankwood.h",
    ]
    subprocess.run(written.command, shell=True, cwd=tmp_path / "new" / "folder", check=True)
    assert_reranks([tmp_path / "new" / "folder" / "example"], tmp_path, USUAL)
    assert write_runtime(tmp_path / "new" / "folder") == written  # once more, over what is there
