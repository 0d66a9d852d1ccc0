"""lleaves, which needs an older llvmlite than others do: it works in an environment of its own, in a process of its
own, and times itself there with the same function."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scoring.formats import lightgbm_in_float32
from scoring.machine import compiled_key
from scoring.models import Subject, cache_directory
from scoring.peers import Matrix, Peer, Unavailable
from scoring.timing import Budget, Cell

REQUIREMENTS = ("lleaves>=1.3", "llvmlite<0.45", "numpy")  # llvmlite 0.45 has no PassManagerBuilder


def environment() -> Path:
    """Python of the environment that has lleaves; made when it is not there yet."""
    folder = cache_directory() / f"lleaves-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if python.exists() and not subprocess.run([python, "-c", "import lleaves"], capture_output=True).returncode:
        return python
    print(f"making an environment for lleaves in {folder}", file=sys.stderr, flush=True)
    make = [sys.executable, "-m", "venv", str(folder)]
    install = [str(python), "-m", "pip", "install", "-q", *REQUIREMENTS]
    for command in (make, install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise Unavailable(f"its environment in {folder} cannot be made: {' '.join(last)}")
    return python


class Worker:
    """The process that has lleaves. A request is a line of JSON, and so is the answer."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rankwood-benchmark-")
        self.process = subprocess.Popen(
            [environment(), "-m", "scoring.lleaves_worker"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": ""},
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "its process ended"}
        if "error" in answer:
            raise Unavailable(answer["error"])
        return dict(answer)

    def matrix(self, X: Matrix) -> str:
        """The file through which the worker gets a matrix; written once for each."""
        path = Path(self.folder.name) / f"{X.ctypes.data}-{len(X)}.npy"
        if not path.exists():
            np.save(path, X)
        return str(path)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


class Lleaves(Peer):
    name, packages = "lleaves", ()
    use_fp64 = True
    note = "its default, which converts the matrix to float64"

    def prepare(self, subject: Subject) -> None:
        model = self.convert(subject)
        self.worker = Worker()
        versions = self.worker.ask(do="versions")
        self.note = f"{type(self).note} ({', '.join(f'{name} {version}' for name, version in versions.items())})"
        key = compiled_key(model, json.dumps(versions))
        cache = str(cache_directory() / f"{self.name.replace(' ', '-')}-{subject.shape}-{key}")
        answer = self.worker.ask(do="compile", model=str(model), cache=cache, use_fp64=self.use_fp64)
        self.prepare_s = answer["prepare_s"]

    def convert(self, subject: Subject) -> Path:
        return subject.path

    def scores(self, X: Matrix) -> NDArray[np.float64]:
        file = self.worker.ask(do="score", matrix=self.worker.matrix(X))["scores"]
        found: NDArray[np.float64] = np.load(file)
        return found

    def measure(self, X: Matrix, batch: int, n_threads: int, budget: Budget) -> Cell:
        matrix = self.worker.matrix(X)
        return Cell(**self.worker.ask(do="measure", matrix=matrix, batch=batch, n_threads=n_threads, **vars(budget)))

    def latency(self, X: Matrix, batch: int, n_threads: int, seconds: float) -> dict[str, float]:
        matrix = self.worker.matrix(X)
        return self.worker.ask(do="latency", matrix=matrix, batch=batch, n_threads=n_threads, seconds=seconds)

    def close(self) -> None:
        if "worker" in vars(self):
            self.worker.close()
        super().close()


class LleavesFloat32(Lleaves):
    """It rounds thresholds to the nearest float32, which sends some documents elsewhere; so it gets rounded ones."""

    name = "lleaves float32"
    use_fp64 = False
    note = "compiled with use_fp64=False from thresholds that float32 can hold: no conversion, sums in float32"

    def convert(self, subject: Subject) -> Path:
        path = subject.path.with_suffix(".float32.txt")
        path.write_text(lightgbm_in_float32(subject.path.read_text()))
        return path
