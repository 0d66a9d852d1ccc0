"""`rankwood convert` and `rankwood compile`: write a model of any format in another one, or as C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import tell
from rankwood.cli.models import IfMissing, Missing, ToFormat, check_output, read_options, read_renames, write_model
from rankwood.coding import Coding
from rankwood.errors import RankwoodError, listed

COMPARE_SINGLE = ("xgboost", "xgboost-dump")  # formats that are read back, whose tools round values to float32
KEEP_CATEGORIES = ("rankwood", "lightgbm")  # formats that know the texts of categories
UNITS = ((1 << 20, "MB"), (1 << 10, "KB"), (0, "bytes"))


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Model file, of any format that can be imported.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN; told by its content unless given.")
    ] = None,
    to_format: ToFormat = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features", min=1, metavar="N", help="Columns of the data, where IN only tells those that it uses."
        ),
    ] = None,
    missing: IfMissing = Missing.refuse,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="OLD=NEW|FILE",
            help='Feature OLD of the model is called NEW in OUT; or a JSON file, {"OLD": "NEW", ...}.',
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Option of the format, e.g. version=5 for ONNX."),
    ] = None,
) -> None:
    """Convert a model to another format. What the format cannot hold exactly is refused or said.

    For instance: rankwood convert model.txt model.onnx, or rankwood convert model.rw solr.json --to solr
    """
    from rankwood.formats.registry import find_exporter, load_model, source_of

    exporter = find_exporter(to_format, output)  # an unknown format is refused before files are read
    exporter.check()
    check_output(output, source)
    model = load_model(source, from_format, n_features=features).rename_features(read_renames(rename))
    n_leaves = write_model(model, output, exporter.name, missing=missing, options=read_options(option or []))
    kind = source_of(model).get("format", "rankwood")
    tell(f"wrote {output} ({exporter.name}) from {source} ({kind}): {model.n_trees:,} trees, {n_leaves:,} leaves")
    if model.coding is not None and exporter.name not in KEEP_CATEGORIES:
        tell(
            f"note: {exporter.title} compares codes of categories{_coded(model.coding)}, not texts, and NaN for what "
            f"has no code; this lists them: rankwood inspect {source} --categories"
        )
    if exporter.name in COMPARE_SINGLE:
        tell(f"note: {exporter.title} takes values as float32; check with: rankwood verify {source} {output} --float32")


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
    from rankwood.formats.registry import load_model
    from rankwood.formats.source_code import header_path
    from rankwood.scoring.c_source import c_name

    if output.suffix not in (".c", ".so"):
        raise RankwoodError(f"{output}: end the name in .c for C source or in .so for a shared library")
    if native and output.suffix == ".c":
        raise RankwoodError("--native is about a library: the CPU is chosen when the C source is compiled")
    header = header_path(output)
    for path in (output, header):
        check_output(path, model)
    prefix = c_name(output.stem) if name is None else name
    options = {"name": prefix} if output.suffix == ".c" else {"name": prefix, "native": native}
    write_model(load_model(model), output, output.suffix[1:], options=options)
    size = _size(output.stat().st_size)
    tell(f"wrote {output} ({size}) and {header}; call: double score = {prefix}_score(row);")


def _coded(coding: Coding) -> str:
    """Features whose categories are codes, as far as that is known."""
    names, columns = coding.feature_names, coding.columns
    if names is None or columns is None:
        return ""
    return f" in {listed([names[column] for column in columns], 3)}"


def _size(n_bytes: int) -> str:
    """Text of a size in binary units."""
    unit, name = next((unit, name) for unit, name in UNITS if n_bytes >= unit)
    return f"{n_bytes / unit:.1f} {name}" if unit > 1 else f"{n_bytes} {name}"
