"""`rankwood runtime`: the engine as a C library, for programs in other languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import tell


def runtime(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder to write to; made if it is not there.")],
) -> None:
    """Write librankwood, which scores models from C and any language that can call it: header, shared library and an
    example program."""
    import shlex

    from rankwood.scoring.runtime import write_runtime

    written = write_runtime(to)
    tell(f"wrote {', '.join(map(str, written.files))}")
    tell(f"to compile the example: cd {shlex.quote(str(to))} && {written.command}")
