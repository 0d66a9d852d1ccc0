"""Latency of queries: librankwood from C and rankwood from Python, against LightGBM's C interface, ONNX Runtime,
XGBoost and lleaves, on the same documents and the same trees in the same run.

    python benchmarks/latency.py [--quick] [--shapes 1000x64 300x32 100x8] [--documents 1 10 100 1000]
                                 [--threads 1 2 16] [--seconds 1] [--skip lleaves] [--library PREFIX] [--out FILE]

The peers:   pip install lightgbm xgboost-cpu onnxruntime onnx
One that is not installed is left out and named; of lleaves see benchmarks/score.py, and what that says of models and
documents (136 features). `--quick` leaves out lleaves and 1000x64 unless told, and takes 0.1 s for a cell.

What is timed: every call that scores one query, from float32 rows in memory to scores, one behind the other as fast as
they come. Threads share the model and score queries of their own at the same time, each call in one thread: with 16 of
them on 2 cores, most of a call's time is waiting for a turn. From C (scoring/latency.c, compiled by this script) the
tools are librankwood, LGBM_BoosterPredictForMat with num_threads=1, and LGBM_BoosterPredictForMatSingleRowFast once per
document. From Python, threads are Python's, told one thread inside: Ensemble.score, Booster.predict, inplace_predict,
InferenceSession.run, lleaves' predict.

In the table: us per query, median / 99th / 99.9th percentile ("-" below 1,000 calls), and how many times rankwood's
median from the same language. Before a time counts, scores must agree: librankwood's with Python's to the bit, those of
others to 1e-5 of their size.

librankwood is built from native/ with cmake in $XDG_CACHE_HOME/rankwood-benchmarks, unless --library names where one is
installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scoring.compare import TOLERANCE, deviation
from scoring.lleaves import Lleaves
from scoring.machine import describe_machine, versions
from scoring.models import SHAPES, Source, Subject, cache_directory, subject
from scoring.ours import DEFAULT_PRECISION, Rankwood
from scoring.peers import Matrix, Peer, Unavailable
from scoring.report import heading, significant
from scoring.timing import Calls

import rankwood as rw
from scoring import peers as peer_module

N_SCORED = 20_000  # documents; 2,720 bytes each, more than caches hold
N_CHECKED = 2_000
FEW = 1_000  # calls; with fewer there is no 99.9th percentile
NATIVE = Path(__file__).parents[1] / "native"
PACKAGES = ["rankwood", "numpy", "lightgbm", "xgboost-cpu", "xgboost", "onnxruntime", "onnx"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=[shape for shape, (_, leaves) in SHAPES.items() if leaves])
    parser.add_argument("--documents", nargs="+", type=int, default=[1, 10, 100, 1000], help="of a query")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 16])
    parser.add_argument("--seconds", type=float, help="per cell; default 1")
    parser.add_argument("--quick", action="store_true", help="0.1 s per cell, smaller models, no lleaves")
    parser.add_argument("--skip", nargs="+", default=[], help="of lightgbm, xgboost, onnx-runtime, lleaves")
    parser.add_argument("--library", type=Path, help="prefix of an installed librankwood")
    parser.add_argument("--out", type=Path, help="file for all figures, in JSON")
    options = parser.parse_args()
    options.shapes = options.shapes or (["300x32", "100x8"] if options.quick else ["1000x64", "300x32", "100x8"])
    options.seconds = options.seconds or (0.1 if options.quick else 1.0)
    options.skip += ["lleaves"] * options.quick
    return options


@dataclass
class Row:
    """Everything measured of one tool."""

    shape: str
    language: str
    tool: str
    note: str = ""
    cells: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)  # by threads and documents
    left_out: str | None = None

    @property
    def label(self) -> str:
        return f"{self.language}: {self.tool}"

    def as_json(self) -> dict[str, Any]:
        cells = [{"threads": threads, "documents": n} | cell for (threads, n), cell in self.cells.items()]
        return {name: value for name, value in vars(self).items() if name != "cells"} | {"cells": cells}


class FromC(Peer):
    """A tool that the program in C calls, in a process of its own."""

    def __init__(self, program: Path, name: str, tool: str) -> None:
        self.program, self.name, self.tool = program, name, tool
        self.folder = tempfile.TemporaryDirectory(prefix="rankwood-latency-")

    def prepare(self, subject: Subject) -> None:
        self.model = subject.path
        if self.tool == "rankwood":
            self.model = Path(self.folder.name) / "model.rw"
            subject.ensemble.save(self.model)

    def run(self, X: Matrix, *more: object) -> tuple[str, NDArray[np.float64]]:
        matrix, out = Path(self.folder.name) / f"{X.ctypes.data}-{len(X)}", Path(self.folder.name) / "out"
        if not matrix.exists():
            X.tofile(matrix)
        command = [self.program, self.tool, self.model, matrix, X.shape[1], out, *more]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"its program ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout, np.fromfile(out, dtype=np.float64)

    def scores(self, X: Matrix) -> NDArray[np.float64]:
        return self.run(X)[1]

    def latency(self, X: Matrix, batch: int, n_threads: int, seconds: float) -> dict[str, float]:
        text, nanoseconds = self.run(X, batch, n_threads, seconds)
        per_second, cpu_share = map(float, text.split())
        return Calls(nanoseconds / 1e3, per_second, cpu_share).summary()

    def close(self) -> None:
        self.folder.cleanup()


def installed_library(given: Path | None) -> Path:
    """Prefix of librankwood, built and installed unless it is given."""
    if given is not None:
        return given
    build, prefix = cache_directory() / "librankwood-build", cache_directory() / "librankwood"
    for command in (
        # fresh: another checkout may have been here before
        [
            "cmake",
            "--fresh",
            "-S",
            NATIVE,
            "-B",
            build,
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_INSTALL_PREFIX={prefix}",
        ],
        ["cmake", "--build", build, "--parallel"],
        ["cmake", "--install", build],
    ):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return prefix


def compile_program(prefix: Path, folder: Path) -> Path:
    """The program in C, with librankwood."""
    library = next(prefix.glob("lib*/librankwood.so")).parent
    program = folder / "latency"
    source = Path(__file__).parent / "scoring" / "latency.c"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", f"-I{prefix}/include", f"-L{library}", f"-Wl,-rpath,{library}"]
    subprocess.run(["cc", *flags, str(source), "-lrankwood", "-ldl", "-pthread", "-o", str(program)], check=True)
    return program


def tools(program: Path, skip: list[str]) -> Iterator[tuple[str, Peer]]:
    """Languages and tools; ours first in each language, as the others are compared with it."""
    yield "C", FromC(program, "rankwood", "rankwood")
    if "lightgbm" not in skip:
        import lightgbm

        library = next(Path(lightgbm.__file__).parent.rglob("lib_lightgbm.so"))
        yield "C", FromC(program, "LightGBM PredictForMat", f"{library}:matrix")
        yield "C", FromC(program, "LightGBM SingleRowFast", f"{library}:row")
    ours = Rankwood("auto", DEFAULT_PRECISION)
    ours.name = "rankwood"
    yield "Python", ours
    for peer in (peer_module.LightGBM, peer_module.XGBoost, peer_module.OnnxRuntime, Lleaves):
        if peer.name.lower().replace(" ", "-") not in skip:
            yield "Python", peer()


def measure(row: Row, tool: Peer, model: Subject, X: Matrix, options: argparse.Namespace) -> None:
    tool.prepare(model)
    row.note = tool.note
    checked = X[:N_CHECKED]
    scores, expected = tool.scores(checked), model.ensemble.score(checked)
    if row.tool == "rankwood":
        if not np.array_equal(scores.view(np.int64), expected.view(np.int64)):
            raise Unavailable("its scores have other bits than Python's")
    elif not (differs := deviation(scores, expected)) <= TOLERANCE:
        raise Unavailable(f"its scores of the same model differ by up to {differs:.1e} of their size")
    for threads in options.threads:
        for n_documents in options.documents:
            row.cells[threads, n_documents] = tool.latency(X, n_documents, threads, options.seconds)


def run_shape(shape: str, program: Path, source: Source, options: argparse.Namespace) -> Iterator[Row]:
    model, X = subject(shape, source), source.X[:N_SCORED]
    for language, tool in tools(program, options.skip):
        row = Row(shape, language, tool.name)
        print(f"{shape}: {row.label} ...", file=sys.stderr, flush=True)
        try:
            measure(row, tool, model, X, options)
        except ImportError as error:
            row.left_out = f"not installed ({error})"
        except Exception as error:  # a peer that fails must not end the others
            row.left_out = f"{'' if isinstance(error, Unavailable) else type(error).__name__ + ': '}{error}"
        finally:
            tool.close()
        yield row


def table(rows: list[Row], options: argparse.Namespace) -> Iterator[str]:
    measured = [row for row in rows if row.cells]
    width = max((len(row.label) for row in measured), default=0) + 2
    for threads in options.threads:
        title = f"{rows[0].shape}; {threads} thread{'s' * (threads > 1)}"
        yield f"\n{title}: us per query, p50 / p99 / p99.9, and p50 over rankwood's, by documents of a query"
        yield f"{'':{width}}" + "".join(f"{n:>34,}" for n in options.documents)
        for row in measured:
            base = next((one for one in measured if one.language == row.language and one.tool == "rankwood"), None)
            cells = "".join(f"{cell_text(row, base, (threads, n)):>34}" for n in options.documents)
            yield f"{row.label:{width}}{cells}"
    for row in rows:
        if row.note and row.cells:
            yield f"{row.label}: {row.note}"
        if row.left_out:
            yield f"{row.label} left out: {row.left_out}"
    shares = [cell["cpu_share"] for row in measured for (threads, _), cell in row.cells.items() if threads == 1]
    if shares and statistics.median(shares) < 0.95:
        yield f"NOISY: one thread got {statistics.median(shares):.0%} of a CPU; other work disturbed these figures"


def cell_text(row: Row, base: Row | None, key: tuple[int, int]) -> str:
    cell = row.cells.get(key)
    if cell is None:
        return "-"
    last = significant(cell["p99.9"]) if cell["n_calls"] >= FEW else "-"
    text = f"{significant(cell['p50'])} / {significant(cell['p99'])} / {last}"
    if base is None or key not in base.cells:
        return text
    return f"{text} {significant(cell['p50'] / base.cells[key]['p50'], 2):>6}x"


def main() -> None:
    options = parse_arguments()
    machine = describe_machine()
    found = {"rankwood": rw.__version__} | versions(PACKAGES)
    print(*heading(machine, found), sep="\n", flush=True)
    shown = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    figures: dict[str, Any] = {"machine": machine, "versions": found, "options": shown, "rows": []}
    started, failed = time.perf_counter(), False
    with tempfile.TemporaryDirectory(prefix="rankwood-latency-") as folder:
        program = compile_program(installed_library(options.library), Path(folder))
        source = Source()
        for shape in options.shapes:
            rows = list(run_shape(shape, program, source, options))
            print(*table(rows, options), sep="\n", flush=True)
            failed |= any(row.left_out for row in rows if row.tool == "rankwood")
            figures["rows"] += [row.as_json() for row in rows]
            if options.out:
                options.out.write_text(json.dumps(figures, indent=1))
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    if failed:
        raise SystemExit("rankwood failed or disagrees with itself: see above")


if __name__ == "__main__":
    main()
