"""`rankwood compile`: a model as C source, or as a shared library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import tell
from rankwood.cli.loading import load_models
from rankwood.cli.writing import check_output

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
    from rankwood.atomic import atomic_write
    from rankwood.engines.c_source import c_name
    from rankwood.errors import RankwoodError
    from rankwood.formats.export_c import export_c, export_so, header_path

    if output.suffix not in (".c", ".so"):
        raise RankwoodError(f"{output}: end the name in .c for C source or in .so for a shared library")
    if native and output.suffix == ".c":
        raise RankwoodError("--native is about a library: the CPU is chosen when the C source is compiled")
    header = header_path(output)
    for path in (output, header):
        check_output(path, model)
    ((_, ensemble),) = load_models([model]).items()
    prefix = c_name(output.stem) if name is None else name
    if output.suffix == ".c":
        files = export_c(ensemble, output, name=prefix)
    else:
        files = export_so(ensemble, output, name=prefix, native=native)
    for path, written in files.items():
        with atomic_write(path) as file:
            file.write(written)
    size = _size(len(files[output]))
    tell(f"wrote {output} ({size}) and {header}; call: double score = {prefix}_score(row);")


def _size(n_bytes: int) -> str:
    unit, name = next((unit, name) for unit, name in UNITS if n_bytes >= unit)
    return f"{n_bytes / unit:.1f} {name}" if unit > 1 else f"{n_bytes} {name}"
