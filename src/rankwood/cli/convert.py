"""`rankwood convert`: a model of any format in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwood.cli.console import tell

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

# Endings that leave no doubt about the format.
FORMAT_OF = {".rw": "rankwood", ".ubj": "xgboost", ".onnx": "onnx"}


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Model file, of any format that can be imported.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN; told by its content unless given.")
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Format of OUT; needed unless OUT ends in .rw, .ubj or .onnx."),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features", min=1, metavar="N", help="Columns of the data, where IN only tells those that it uses."
        ),
    ] = None,
) -> None:
    """Convert a model to another format. What the format cannot hold exactly is refused or said."""
    from rankwood.atomic import check_writable
    from rankwood.errors import RankwoodError
    from rankwood.formats.registry import load_model

    target = to_format or FORMAT_OF.get(output.suffix.lower())
    if target is None:
        raise RankwoodError(
            f"{output}: say with --to in which format to write it, or end its name in .rw for rankwood's"
        )
    check_writable(output)
    model = load_model(source, from_format, n_features=features)
    _save(model, output, target)
    kind = model.metadata.get("source", {}).get("format", "rankwood")
    tell(f"wrote {output} ({target}) from {source} ({kind}): {model.n_trees:,} trees, {model.n_leaves:,} leaves")


def _save(model: Ensemble, path: Path, target: str) -> None:
    from importlib import import_module
    from importlib.util import find_spec

    from rankwood.errors import RankwoodError

    if target == "rankwood":
        model.save(path)
        return
    if find_spec("rankwood.formats.export") is None:
        raise RankwoodError(f"this rankwood writes its own format only, not {target}: give --to rankwood")
    import_module("rankwood.formats.export").save_as(model, path, target)
