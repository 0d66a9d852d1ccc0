"""Model files on the command line: arguments that several commands share, loading, writing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from rankwood.cli.console import progress, tell
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FeatureMatrix
from rankwood.errors import DataError, RankwoodError
from rankwood.model.ensemble import Ensemble

# Arguments that several commands share.

# Options that take several values: `--data a.txt b.txt` means `--data a.txt --data b.txt`.
MANY_VALUED = ("--data", "--train", "--valid", "--judge", "--test", "--measure", "-m")


def spread_values(arguments: Sequence[str]) -> list[str]:
    """Repeat a many-valued option before each of its values, which is the form typer reads.

    >>> spread_values(["evaluate", "m.rw", "--data", "a", "b", "--json"])
    ['evaluate', 'm.rw', '--data', 'a', '--data', 'b', '--json']
    """
    spread: list[str] = []
    option: str | None = None
    waiting = False  # the option stands there already and its first value comes next
    for number, argument in enumerate(arguments):
        if argument == "--":
            return spread + list(arguments[number:])
        if argument in MANY_VALUED:
            option, waiting = argument, True
        elif argument.startswith("-") and argument != "-":
            option = None
        elif option is not None:
            if not waiting:
                spread.append(option)
            waiting = False
        spread.append(argument)
    return spread


class PrecisionName(str, Enum):
    """What sums of leaf values are held in."""

    single = "single"
    double = "double"


DataFiles = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="FILE...",
        help="Ranking data: SVMlight/LETOR text (also .gz), CSV or Parquet. Several are joined.",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to use; all CPUs unless given.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature ids of SVMlight data start at 0, not at 1.")]


# Loading models and data for a command, with progress.


def load_models(paths: Sequence[Path]) -> dict[str, Ensemble]:
    """Load models of any format, named by file name; by path when two files share a name."""
    from rankwood.formats.registry import load_model

    names = [path.name for path in paths]
    models: dict[str, Ensemble] = {}
    for path in paths:
        name = str(path) if names.count(path.name) > 1 else path.name
        while name in models:  # the same file again
            name += "'"
        models[name] = load_model(path)
    return models


def source_leaves(model: Ensemble) -> int:
    """Leaves of the model as the tool that it comes from counts them."""
    from rankwood.formats.registry import source_of

    counted = source_of(model).get("n_leaves")
    return counted if isinstance(counted, int) else model.n_leaves


def growth(model: Ensemble) -> str:
    """A sentence on leaves that importing the model added; nothing when it added none."""
    from rankwood.formats.registry import source_of

    if source_leaves(model) >= model.n_leaves:
        return ""
    return (
        f"the {source_of(model).get('format')} source counts {source_leaves(model):,} leaves, the model here "
        f"{model.n_leaves:,}: splits on categories or around zero are written as thresholds"
    )


def load_data(
    paths: Sequence[Path],
    models: dict[str, Ensemble] | None = None,
    *,
    zero_based: bool = False,
    n_threads: int | None = None,
    n_features: int | None = None,
    queries: Literal["required", "optional"] = "required",
    quiet: bool = False,
) -> Dataset:
    """Read ranking data of any kind, with a progress bar for large files.

    Sparse text does not tell how many features there are. For `models` it is as wide as they are; that the last
    features never occur is said, because it may be the wrong file. Of models whose format does not tell either, the
    data decides, and they are replaced in `models` by wider ones.
    """
    from rankwood.data.files import read_data
    from rankwood.formats.registry import widen, width_is_open

    models = {} if models is None else models
    needed = max((model.n_features for model in models.values()), default=0)
    widths = {model.n_features for model in models.values() if not width_is_open(model)}
    if widths and len(widths | {needed}) > 1:
        widths.add(needed)
        raise DataError(f"the models are of {' and '.join(map(str, sorted(widths)))} features: evaluate them apart")

    def read(width: int | None) -> Dataset:
        with progress("reading", unit="bytes", quiet=quiet) as advance:
            return read_data(
                paths,
                zero_based=zero_based,
                n_threads=n_threads,
                n_features=width,
                queries=queries,
                progress=advance,
            )

    data = read(next(iter(widths), n_features))
    if data.n_features < needed:
        data = read(needed)
    for name, model in models.items():
        models[name] = widen(model, data.n_features)
    if models and data.X.size:
        tell_absent_features(data.n_features, last_feature(data.X))
    return data


def last_feature(X: FeatureMatrix) -> int:
    """Number, from 1, of the last feature that is not 0 in all rows; 0 when there is none.

    >>> last_feature(np.array([[0, 1, 0], [2, 0, 0]], dtype=np.float32))
    2
    """
    if X.size and X[:, -1].any():
        return int(X.shape[1])
    used = np.flatnonzero(X.any(axis=0))
    return int(used[-1]) + 1 if len(used) else 0


def tell_absent_features(n_features: int, last: int) -> None:
    """Say that the data has nothing in the features after `last`: it may be the wrong file."""
    if last < n_features:
        tell(f"note: the model has {n_features} features; those after number {last} are 0 in all of the data")


# Writing a model for a command, in any format; what was said of the conversion goes to the user.


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
    from rankwood.formats.registry import find_exporter, save_as

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
