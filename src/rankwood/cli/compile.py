"""`rankwood compile`: a model as C source, or as a shared library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwood.cli.console import tell
from rankwood.cli.loading import load_models

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

WRITTEN_BY = "\n * Written by rankwood "  # in a header that may be overwritten
UNITS = ((1 << 20, "MB"), (1 << 10, "KB"), (1, "bytes"))


def compile(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE.c|FILE.so", help="C source, or a shared library, to write.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="PREFIX", help="Start of the C names; made of the file's name.")
    ] = None,
    native: Annotated[
        bool, typer.Option("--native", help="Library for this very CPU, not for any of its architecture.")
    ] = False,
) -> None:
    """Write a model as C99 source, or compile it to a shared library, with a header beside it. It needs nothing of
    rankwood to run."""
    from rankwood.atomic import atomic_write, check_writable
    from rankwood.engines.c_source import CSource, c_name
    from rankwood.errors import RankwoodError

    if output.suffix not in (".c", ".so"):
        raise RankwoodError(f"{output}: end the name in .c for C source or in .so for a shared library")
    if native and output.suffix == ".c":
        raise RankwoodError("--native is about a library: the CPU is chosen when the C source is compiled")
    header = output.with_suffix(".h")
    if set(header.name) & set('"\\\r\n'):
        raise RankwoodError(f"C cannot include a file that is named {header.name!r}: choose another name")
    if header.exists() and WRITTEN_BY not in header.read_text(encoding="utf-8", errors="replace"):
        raise RankwoodError(f"{header} is not by rankwood and would be replaced by the model's: choose another name")
    for path in (output, header):
        check_writable(path)
    ((_, ensemble),) = load_models([model]).items()
    prefix = c_name(output.stem) if name is None else name
    source = CSource(ensemble, prefix)
    if output.suffix == ".c":
        content = source.whole(output.name, header.name).encode()
    else:
        content = _library(ensemble, prefix, native)
    for path, written in ((header, source.header().encode()), (output, content)):
        with atomic_write(path) as file:
            file.write(written)
    tell(f"wrote {output} ({_size(len(content))}) and {header}; call: double score = {prefix}_score(row);")


def _library(model: Ensemble, name: str, native: bool) -> bytes:
    import platform
    import tempfile

    from rankwood.engines.c_compiler import NATIVE, OPTIMISE, Compiler, find_compiler
    from rankwood.engines.c_source import CSource
    from rankwood.engines.compiled import checked_library
    from rankwood.errors import RankwoodError

    compiler = find_compiler()
    if not isinstance(compiler, Compiler):
        raise RankwoodError(f"{compiler}: write C source, FILE.c, and compile it elsewhere")
    flags = (OPTIMISE, NATIVE) if native else (OPTIMISE,)
    target = f"{platform.system()} {platform.machine()}, {' '.join(flags)}"
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        path = compiler.build(CSource(model, name, target).units(), flags, Path(folder))
        checked_library(path, name, compiler)
        return path.read_bytes()


def _size(n_bytes: int) -> str:
    unit, name = next((unit, name) for unit, name in UNITS if n_bytes >= unit)
    return f"{n_bytes / unit:.1f} {name}" if unit > 1 else f"{n_bytes} {name}"
