"""librankwood, the engine as a C library, as this installation carries it: what other languages score models with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from rankwood.atomic import atomic_write
from rankwood.errors import RankwoodError

FOLDER = Path(__file__).resolve().parents[1] / "runtime"  # where the build puts it
HEADER, EXAMPLE = "rankwood.h", "example.c"
LIBRARIES = ("librankwood.so.1", "librankwood.1.dylib", "rankwood.dll")  # one of them; 1 is the version of its ABI
LINKS = {"librankwood.so.1": "librankwood.so", "librankwood.1.dylib": "librankwood.dylib"}  # what linkers look for


class Runtime(NamedTuple):
    """Files that `write_runtime` wrote, and how the example is compiled.

    Parameters
    ----------
    files : list of Path
        Header, example, library, and the link by which linkers find it.
    command : str
        Command line that compiles the example, in the folder of the files.
    """

    files: list[Path]
    command: str


def write_runtime(folder: str | os.PathLike[str]) -> Runtime:
    """Write the C header, the shared library and an example program to a folder, which is made if it is not there.

    Parameters
    ----------
    folder : path-like
        Where they go; files of the same names are replaced.

    Raises
    ------
    RankwoodError
        This installation carries no library, or the folder cannot be written.
    """
    library = next((FOLDER / name for name in LIBRARIES if (FOLDER / name).is_file()), None)
    if library is None or not (FOLDER / HEADER).is_file():
        raise RankwoodError(
            "this installation carries no librankwood: build it from the sources of rankwood, "
            "cmake -S native -B build && cmake --build build && cmake --install build --prefix DIR"
        )
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise RankwoodError(f"{target}: this is a file: the library is written to a folder")
    files = [target / name for name in (HEADER, EXAMPLE, library.name)]
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            with atomic_write(file) as copy:  # a program that has the older library loaded keeps it
                copy.write((FOLDER / file.name).read_bytes())
        if library.name in LINKS:
            link = target / LINKS[library.name]
            link.unlink(missing_ok=True)
            link.symlink_to(library.name)
            files.append(link)
    except OSError as error:
        raise RankwoodError(
            f"{error.filename or target}: the library cannot be written: {error.strerror or error}"
        ) from None
    return Runtime(files, f"cc -std=c99 -O2 {EXAMPLE} -I. -L. -lrankwood -Wl,-rpath,'$ORIGIN' -o example")
