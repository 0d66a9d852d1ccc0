"""`rankwood convert`: a model of any format in another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankwood.cli.console import tell
from rankwood.cli.writing import IfMissing, Missing, ToFormat, check_output, read_options, write_model


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
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Option of the format, e.g. version=5 for ONNX."),
    ] = None,
) -> None:
    """Convert a model to another format. What the format cannot hold exactly is refused or said.

    For instance: rankwood convert model.txt model.onnx, or rankwood convert model.rw solr.json --to solr
    """
    from rankwood.formats.export import find_exporter
    from rankwood.formats.registry import load_model, source_of

    target = find_exporter(to_format, output).name  # what is wrong is said before files are read
    check_output(output, source)
    model = load_model(source, from_format, n_features=features)
    write_model(model, output, target, missing=missing, options=read_options(option or []))
    kind = source_of(model).get("format", "rankwood")
    tell(f"wrote {output} ({target}) from {source} ({kind}): {model.n_trees:,} trees, {model.n_leaves:,} leaves")
