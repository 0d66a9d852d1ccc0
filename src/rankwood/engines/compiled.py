"""A model as a shared library: compiled by the system's compiler, kept in the cache, tested before it is used."""

from __future__ import annotations

import ctypes
import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from rankwood import _native
from rankwood._version import __version__
from rankwood.dtypes import AnyArray, FloatArray
from rankwood.engines import c_numbers, c_source, c_trees, self_test
from rankwood.engines.c_compiler import FLAGS, OPTIMISE, Compiler, find_compiler
from rankwood.engines.c_source import CSource
from rankwood.engines.library_cache import LibraryCache, load_library
from rankwood.errors import ModelError

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

NAME = "rankwood_model"
GENERATORS = (c_numbers, c_source, c_trees, self_test)


class IfElseKernel:
    """A library that was compiled for one model, or found in the cache."""

    def __init__(self, model: Ensemble, optimise: str = OPTIMISE) -> None:
        path, self._library = compiled(model, optimise)  # the library stays loaded until the process ends
        self._trees = _native.CompiledTrees(
            **{name: _address(self._library, name) for name in ("score_f32", "score_f64", "leaves_f32", "leaves_f64")},
            n_features=model.n_features,
            n_trees=model.n_trees,
        )
        self.n_bytes = path.stat().st_size

    def score(self, X: AnyArray, scores: FloatArray, single: bool, n_threads: int) -> None:
        self._trees.score(X, scores, single, n_threads)

    def leaves(self, X: AnyArray, leaves: AnyArray, n_threads: int) -> None:
        self._trees.leaves(X, leaves, n_threads)


def compiled(model: Ensemble, optimise: str = OPTIMISE) -> tuple[Path, ctypes.CDLL]:
    """The library of a model, from the cache when it is there and passes its self-test."""
    compiler = find_compiler()
    if isinstance(compiler, str):
        raise ModelError(compiler)
    key = cache_key(model, compiler, optimise)
    cache = LibraryCache("ifelse")
    for path in cache.find(key):
        library = cache.load(path)
        if not isinstance(library, str) and _is_stamped(library, key) and self_test_of(library, NAME) == 0:
            return path, library
        cache.remove(path)
    with cache.build_folder() as folder:
        units = CSource(model, NAME, f"key {key}").units()
        path = cache.add(key, compiler.build(units, (optimise,), folder))
    try:
        return path, tested_library(cache.load(path), NAME, compiler)
    except BaseException:
        cache.remove(path)
        raise


def cache_key(model: Ensemble, compiler: Compiler, optimise: str = OPTIMISE) -> str:
    """A digest of everything that the library depends on."""
    digest = hashlib.sha256()
    for part in (__version__, model.fingerprint(), compiler.identity(), *FLAGS, optimise, cpu_identity()):
        digest.update(f"{len(part)} {part}\n".encode())
    for module in GENERATORS:
        digest.update(Path(str(module.__file__)).read_bytes())
    for name in ("ifelse_template.c", "ifelse_template.h"):
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


def cpu_identity() -> str:
    """System, architecture, and model and features of the CPU where the system tells them."""
    facts = [platform.system(), platform.machine(), platform.processor()]
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    return "\n".join(facts + [line for line in first if line.startswith(wanted)])


def checked_library(path: Path, name: str, compiler: Compiler) -> ctypes.CDLL:
    """Load a library that was just compiled and test it."""
    return tested_library(load_library(path), name, compiler)


def tested_library(library: ctypes.CDLL | str, name: str, compiler: Compiler) -> ctypes.CDLL:
    """The library when it passes its self-test; an error when it does not, or tells why it was not loaded."""
    if isinstance(library, str):
        raise ModelError(f"what the C compiler {compiler} made cannot be loaded: {library}")
    failed = self_test_of(library, name)
    if failed < 0:
        raise MemoryError
    if failed:
        raise ModelError(f"what the C compiler {compiler} made does not score as it must: its self-test fails")
    return library


def self_test_of(library: ctypes.CDLL, name: str) -> int:
    """What the library's self-test says: 0 when all is well."""
    return int(library[f"{name}_self_test"]())


def _is_stamped(library: ctypes.CDLL, key: str) -> bool:
    """Whether the library says that it was made for that key."""
    try:
        info = (ctypes.c_char * 1).in_dll(library, f"{NAME}_info")
    except ValueError:  # there is no such symbol
        return False
    return ctypes.string_at(ctypes.addressof(info)).endswith(f"; key {key}".encode())


def _address(library: ctypes.CDLL, function: str) -> int:
    return ctypes.cast(library[f"{NAME}_{function}"], ctypes.c_void_p).value or 0
