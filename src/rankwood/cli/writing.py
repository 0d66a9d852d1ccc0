"""Writing a model for a command, in any format; what was said of the conversion goes to the user."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwood.cli.console import tell
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError


class Missing(str, Enum):
    """What to do with directions of missing values that a format cannot hold."""

    refuse = "refuse"
    ignore = "ignore"


ToFormat = Annotated[
    str | None,
    typer.Option("--to", metavar="FORMAT", help="Format to write; told by the file name unless given."),
]
IfMissing = Annotated[
    Missing,
    typer.Option("--missing", help="Where a format cannot send missing values as the model does: refuse, or ignore."),
]


def check_output(output: Path, *inputs: Path | Sequence[Path] | None) -> None:
    """Before any work: the file can be written, and is none of those that are read."""
    from rankwood.atomic import check_writable

    for given in inputs:
        for path in [given] if isinstance(given, Path) else given or ():
            if path.exists() and output.exists() and path.samefile(output):
                raise RankwoodError(f"{output} is read by this command: write to another file")
    check_writable(output)


def write_model(
    model: Ensemble,
    path: Path,
    format: str | None,
    *,
    missing: Missing = Missing.refuse,
    options: dict[str, Any] | None = None,
) -> str:
    """Write a model, and tell of deviations; the name of the format."""
    from rankwood.formats.export import find_exporter, save_as

    name = find_exporter(format, path).name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        save_as(model, path, name, missing=missing.value, **(options or {}))
    for warning in said:
        tell(f"warning: {warning.message}")
    return name


def content_to_keep(source: Path, model: Ensemble, target: str, output: Path) -> bytes | None:
    """The content of the file that `model` was read from if `output` is to be of the same format; else None.

    A model that stays as it is stays so in every byte: what rankwood would write may be larger, and lacks what only
    the tool that wrote it has use for.
    """
    from rankwood.formats.registry import START, recognise, source_of

    content = source.read_bytes()
    kind = recognise(content[:START])
    format = "rankwood" if kind == "rankwood" else source_of(model).get("format")
    is_other_coding = target == "xgboost" and (kind == "ubjson") != (output.suffix == ".ubj")
    return content if format == target and not is_other_coding else None


def read_options(texts: list[str]) -> dict[str, Any]:
    """Options given as NAME=VALUE; numbers are numbers.

    >>> read_options(["version=5", "name=ranker"])
    {'version': 5, 'name': 'ranker'}
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise RankwoodError(f"an option of the format is given as NAME=VALUE, got {text!r}")
        options[name.strip()] = int(value) if value.strip().lstrip("-").isdigit() else value
    return options
