"""C source with a header, or a shared library: engine `ifelse`."""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path

from rankwood.engines.c_compiler import NATIVE, OPTIMISE, Compiler, find_compiler
from rankwood.engines.c_source import CSource, c_name
from rankwood.engines.compiled import checked_library
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError

LIMITS = (
    "Exact in every bit, for float32 and float64 rows, with a self-test inside. A header is written beside the file."
)
WRITTEN_BY = "\n * Written by rankwood "  # in a header that may be overwritten


def export_c(model: Ensemble, path: Path, *, name: str | None = None) -> dict[Path, bytes]:
    """C99 source that needs nothing of rankwood; `name` starts its functions' names."""
    header = header_path(path)
    source = CSource(model, c_name(path.stem) if name is None else name)
    return {header: source.header().encode(), path: source.whole(path.name, header.name).encode()}


def export_so(model: Ensemble, path: Path, *, name: str | None = None, native: bool = False) -> dict[Path, bytes]:
    """A shared library, for any CPU of this architecture or, with `native`, for this very one."""
    prefix = c_name(path.stem) if name is None else name
    header = header_path(path)
    compiler = find_compiler()
    if not isinstance(compiler, Compiler):
        raise RankwoodError(f"{compiler}: write C source, FILE.c, and compile it elsewhere")
    flags = (OPTIMISE, NATIVE) if native else (OPTIMISE,)
    target = f"{platform.system()} {platform.machine()}, {' '.join(flags)}"
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        built = compiler.build(CSource(model, prefix, target).units(), flags, Path(folder))
        checked_library(built, prefix, compiler)
        return {header: CSource(model, prefix).header().encode(), path: built.read_bytes()}


def header_path(path: Path) -> Path:
    """Where the header goes; refuses names that C cannot include, and to replace a header by others."""
    header = path.with_suffix(".h")
    if set(header.name) & set('"\\\r\n'):
        raise RankwoodError(f"C cannot include a file that is named {header.name!r}: choose another name")
    if header.exists() and WRITTEN_BY not in header.read_text(encoding="utf-8", errors="replace"):
        raise RankwoodError(f"{header} is not by rankwood and would be replaced by the model's: choose another name")
    return header
