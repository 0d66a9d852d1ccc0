"""librankwood for aarch64, run by qemu: the bits of Python on this machine, with NEON and without."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from calling import ROOT, STRICT_C, library_folder

import rankwood as rw
from strategies.adversarial_rows import adversarial_rows
from strategies.ensembles import big_ensemble

STORED = ROOT / "tests" / "formats" / "data"
GROWN = {
    "few leaves": big_ensemble(1, n_trees=100, n_leaves=8, n_features=20),
    "usual": big_ensemble(2, n_trees=50, n_leaves=32, n_features=12),
    "leaves beyond one table": big_ensemble(3, n_trees=12, n_leaves=100, n_features=9),
    "most leaves of a byte": big_ensemble(4, n_trees=6, n_leaves=256, n_features=9),
    "many leaves": big_ensemble(5, n_trees=3, n_leaves=3000, n_features=4),
    "many thresholds": big_ensemble(6, n_trees=60, n_leaves=64, n_features=3),
    "leaves alone": rw.Ensemble.from_trees([1.0, 2.0], n_features=2),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> list[str]:
    """How score.c is run; RANKWOOD_AARCH64 names where librankwood for aarch64 was installed (tools/test-aarch64)."""
    if "RANKWOOD_AARCH64" not in os.environ:
        pytest.skip("NOT TESTED ON AARCH64: tools/test-aarch64 builds librankwood for it and runs these tests")
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("NO COMPILER FOR AARCH64, OR NO QEMU: install gcc-aarch64-linux-gnu and qemu-user")
    prefix = Path(os.environ["RANKWOOD_AARCH64"])
    folder, output = library_folder(prefix), tmp_path_factory.mktemp("aarch64") / "score"
    subprocess.run(
        [compiler, *STRICT_C, str(ROOT / "tests" / "runtime" / "score.c"), f"-I{prefix / 'include'}", f"-L{folder}",
         f"-Wl,-rpath,{folder}", "-lrankwood", "-pthread", "-o", str(output)],
        check=True,
    )  # fmt: skip
    return [emulator, "-cpu", "cortex-a72", "-L", "/usr/aarch64-linux-gnu", str(output)]


def assert_same_bits(program, model, folder):
    model.save(folder / "model.rw")
    for dtype, kind in ((np.float32, "f32"), (np.float64, "f64")):
        X = adversarial_rows(model, 600, dtype=dtype)
        for precision in ("double", "single"):
            expected = model.score(X, precision=precision).tobytes()
            for isa in ("neon", "baseline"):
                done = subprocess.run(
                    [*program, str(folder / "model.rw"), kind, precision, "3", "70"], input=X.tobytes(),
                    capture_output=True, env=os.environ | {"RANKWOOD_ISA": isa}, check=False,
                )  # fmt: skip
                assert done.returncode == 0, (isa, done.stderr.decode())
                assert done.stdout == expected, (kind, precision, isa)


@pytest.mark.parametrize("name", GROWN)
def test_grown_models(program, tmp_path, name):
    assert_same_bits(program, GROWN[name], tmp_path)


def stored_models():
    return sorted(path for path in STORED.iterdir() if not path.name.endswith(".scores.json"))


@pytest.mark.parametrize("path", stored_models(), ids=lambda path: path.name)
def test_stored_models(program, tmp_path, path):
    try:
        model = rw.load_model(path)
    except rw.RankwoodError as error:
        pytest.skip(f"NOT A MODEL BY ITSELF: {error}")
    assert_same_bits(program, model, tmp_path)
