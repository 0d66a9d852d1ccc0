"""`rankwood verify`: tell whether two models score alike."""

from __future__ import annotations

import tempfile
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwood.cli.console import print_json, print_line
from rankwood.cli.models import (
    AsJson,
    Missing,
    Rename,
    Threads,
    ZeroBased,
    load_data,
    load_models,
    read_renames,
    write_model,
)
from rankwood.errors import RankwoodError
from rankwood.model.ensemble import Ensemble


class EngineName(str, Enum):
    """Search engine that serves models."""

    solr = "solr"
    elasticsearch = "elasticsearch"
    opensearch = "opensearch"
    vespa = "vespa"


class CategoryValues(str, Enum):
    """Values of features that are categories, in rows at thresholds."""

    auto = "auto"
    whole = "whole"
    any = "any"


def verify(
    a: Annotated[Path, typer.Argument(metavar="A", help="Model file.")],
    b: Annotated[
        Path | None,
        typer.Argument(
            metavar="B", help="Model file to compare it with. With --as it may be left out: A is converted then."
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="FILE...", help="Also compare on this data. Files as for `score`."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0, help="Largest relative difference of scores that is accepted.")
    ] = 1e-6,
    float32: Annotated[
        bool, typer.Option("--float32", help="Compare on float32 values only, which is what many tools hold.")
    ] = False,
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Rows at thresholds to try, of each type.")] = 40_000,
    served_by: Annotated[
        EngineName | None,
        typer.Option("--as", help="B is what this search engine serves: read and score it as the engine does."),
    ] = None,
    no_missing: Annotated[
        bool, typer.Option("--no-missing", help="Leave out rows with missing values, if no value ever is.")
    ] = False,
    categories: Annotated[
        CategoryValues,
        typer.Option(
            "--categories",
            help="Values to try of categories: whole numbers; any; auto, whole where models bound them differently.",
        ),
    ] = CategoryValues.auto,
    threads: Threads = None,
    zero_based: ZeroBased = False,
    rename: Rename = None,
    as_json: AsJson = False,
) -> None:
    """Score two models on rows at every threshold of both, and on data: status 0 when they agree, 1 when not.

    With --as, B is a file as it is deployed in a search engine, or as the engine gives it back: rankwood verify model.txt solr.json --as solr
    """  # noqa: E501  typer keeps line ends
    from rankwood.formats.registry import names_used_only, widen
    from rankwood.verification.verify import verify as compare

    models = load_models([a])
    if served_by is None:
        if b is None:
            raise RankwoodError("give two models to compare, or one and the search engine that serves it: --as solr")
        models = load_models([a, b])
    else:
        (model,) = models.values()
        name, served = _served(model, b, served_by)
        models = {**models, name if name not in models else f"{name}'": served}
    widest = max(model.n_features for model in models.values())
    names = next((m.feature_names for m in models.values() if m.feature_names and not names_used_only(m)), None)
    models = {name: widen(model, widest, names) for name, model in models.items()}  # if their formats leave it open
    dataset = None
    if data:
        how: dict[str, Any] = {"zero_based": zero_based, "n_threads": threads, "queries": "optional"}
        dataset = load_data(data, models, exact=True, rename=read_renames(rename), quiet=as_json, **how)
    (name_a, model_a), (name_b, model_b) = models.items()
    result = compare(
        model_a,
        model_b,
        dataset,
        tolerance=tolerance,
        dtype="float32" if float32 else None,
        max_rows=rows,
        n_threads=threads,
        names=(name_a, name_b),
        served_by=None if served_by is None else served_by.value,
        missing="ignore" if no_missing else "compare",
        categories=categories.value,
    )
    if as_json:
        print_json(result.as_dict())
    else:
        for line in result.lines():
            print_line(line)
    if not result:
        raise typer.Exit(1)


def _served(model: Ensemble, path: Path | None, engine: EngineName) -> tuple[str, Ensemble]:
    """Name and model of a file that a search engine serves; without a file, of what is written for the engine."""
    from rankwood.formats.registry import SERVING, load_served

    if path is not None:
        return path.name, load_served(path, engine.value)
    format = SERVING[engine.value].written
    with tempfile.TemporaryDirectory(prefix="rankwood-") as folder:
        written = Path(folder) / "model.json"
        write_model(model, written, format, missing=Missing.ignore)
        return f"its {format} file", load_served(written, engine.value)
