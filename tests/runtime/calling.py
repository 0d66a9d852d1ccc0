"""How tests build librankwood, compile programs with it and call it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
STRICT_C = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]
OK, ARGUMENT, FILE, MODEL, MEMORY, WORKSPACE, CPU = range(7)
FLOAT32, FLOAT64, SINGLE = 0, 1, 1


def build(folder: Path, *options: str) -> Path:
    """librankwood, built and installed below a folder by CMake alone; a loud skip where that cannot be done."""
    cmake = shutil.which("cmake")
    if cmake is None or shutil.which("c++") is None:
        pytest.skip("NO CMAKE, OR NO C++ COMPILER: install both to test librankwood")
    if "RANKWOOD_SANITIZED" in os.environ:
        pytest.skip("THE SANITIZERS ARE PRELOADED: compilers do not run under them")
    generator = [] if shutil.which("make") else ["-G", "Ninja"]  # CMake's own choice, where it can be made
    configure = [cmake, "-S", str(ROOT / "native"), "-B", str(folder / "build"), *generator, *options]
    for command in (
        configure,
        [cmake, "--build", str(folder / "build"), "--parallel", "2"],
        [cmake, "--install", str(folder / "build"), "--prefix", str(folder / "installed")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "installed"


def library_folder(prefix: Path) -> Path:
    (header,) = prefix.rglob("librankwood.so")
    return header.parent


def compile_c(prefix: Path, source: Path, output: Path, *options: str) -> Path:
    """A C99 program that uses the library, compiled without a warning."""
    folder = library_folder(prefix)
    subprocess.run(
        ["cc", *STRICT_C, str(source), f"-I{prefix / 'include'}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lrankwood",
         "-pthread", "-o", str(output), *options],
        check=True,
    )  # fmt: skip
    return output


class Batch(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32), ("type", ctypes.c_uint32), ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32), ("values", ctypes.c_void_p), ("n_rows", ctypes.c_size_t),
        ("n_features", ctypes.c_size_t), ("row_stride", ctypes.c_ssize_t), ("feature_stride", ctypes.c_ssize_t),
        ("query_offsets", ctypes.c_void_p), ("n_queries", ctypes.c_size_t), ("scores", ctypes.c_void_p),
        ("trees", ctypes.c_void_p),
    ]  # fmt: skip


class Library:
    """The functions of rankwood.h."""

    def __init__(self, path: Path) -> None:
        self.c = ctypes.CDLL(str(path))
        for name in ("status_text", "version", "instruction_set", "feature_name", "fingerprint"):
            getattr(self.c, f"rw_{name}").restype = ctypes.c_char_p
        for name in ("n_features", "n_trees", "n_leaves"):
            getattr(self.c, f"rw_{name}").restype = ctypes.c_size_t

    def load(self, content: bytes) -> tuple[int, Loaded | None, str]:
        """Status, model and message."""
        handle, message = ctypes.c_void_p(), ctypes.create_string_buffer(1000)
        copy = ctypes.create_string_buffer(content, len(content)) if content else None
        status = self.c.rw_load_memory(
            copy, ctypes.c_size_t(len(content)), ctypes.byref(handle), message, ctypes.c_size_t(len(message))
        )
        assert (status == OK) == bool(handle)
        return status, Loaded(self.c, handle) if handle else None, message.value.decode()

    def model(self, content: bytes) -> Loaded:
        status, model, message = self.load(content)
        assert status == OK, message
        assert model is not None
        return model


class Loaded:
    """A model, freed with this object."""

    def __init__(self, c: Any, handle: ctypes.c_void_p) -> None:
        self.c, self.handle = c, handle
        self._workspaces: dict[int, ctypes.c_void_p] = {}

    def __del__(self) -> None:
        for workspace in self._workspaces.values():
            self.c.rw_workspace_free(workspace)
        self.c.rw_free(self.handle)

    def workspace(self, max_query_rows: int = 0) -> ctypes.c_void_p:
        if max_query_rows not in self._workspaces:
            made = ctypes.c_void_p()
            assert self.c.rw_workspace_new(self.handle, ctypes.c_size_t(max_query_rows), ctypes.byref(made)) == OK
            self._workspaces[max_query_rows] = made
        return self._workspaces[max_query_rows]

    def fact(self, name: str, *arguments: Any) -> Any:
        return getattr(self.c, f"rw_{name}")(self.handle, *map(ctypes.c_size_t, arguments))

    def score(
        self, X: np.ndarray, *, offsets: np.ndarray | None = None, single: bool = False, max_query_rows: int = 0
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Status, scores and numbers of trees of the rows, which may lie in memory in any order."""
        scores, trees = np.full(len(X), np.nan), np.full(len(X), -1, np.int32)
        batch = Batch(
            size=ctypes.sizeof(Batch), type=FLOAT32 if X.dtype == np.float32 else FLOAT64, flags=SINGLE * single,
            values=X.ctypes.data, n_rows=len(X), n_features=X.shape[1], row_stride=X.strides[0] // X.itemsize,
            feature_stride=X.strides[1] // X.itemsize, scores=scores.ctypes.data, trees=trees.ctypes.data,
        )  # fmt: skip
        if offsets is not None:
            offsets = np.ascontiguousarray(offsets, np.int64)
            batch.query_offsets, batch.n_queries = offsets.ctypes.data, len(offsets) - 1
        status = self.c.rw_score(self.handle, ctypes.byref(batch), self.workspace(max_query_rows))
        return status, scores, trees

    def score_rows(self, X: np.ndarray) -> np.ndarray:
        """Scores by the short functions; rows lie one behind the other."""
        assert X.flags.c_contiguous
        scores = np.full(len(X), np.nan)
        function = self.c.rw_score_f32 if X.dtype == np.float32 else self.c.rw_score_f64
        status = function(
            self.handle, ctypes.c_void_p(X.ctypes.data), ctypes.c_size_t(len(X)), ctypes.c_size_t(X.shape[1]),
            ctypes.c_void_p(scores.ctypes.data), self.workspace(),
        )  # fmt: skip
        assert status == OK
        return scores
