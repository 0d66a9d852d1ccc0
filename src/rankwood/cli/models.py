"""Models and data of commands: arguments that several commands share, reading, and writing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from enum import Enum
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from rankwood.cli.console import progress, tell
from rankwood.coding import Coding, reading_for
from rankwood.data.dataset import Dataset
from rankwood.data.tables import check_width
from rankwood.dtypes import FeatureMatrix
from rankwood.errors import DataError, RankwoodError, listed, one_line
from rankwood.matrix import column_order, respelled
from rankwood.model.ensemble import Ensemble

# Options that take several values: `--data a.txt b.txt` means `--data a.txt --data b.txt`.
MANY_VALUED = (
    "--data", "--train", "--valid", "--judge", "--test", "--unlabelled", "--background", "--counts-of",
    "--measure", "-m",
)  # fmt: skip

MANY_FILES = tuple(option for option in MANY_VALUED if option not in ("--measure", "-m"))


def spread_values(arguments: Sequence[str]) -> list[str]:
    """Arguments in which a many-valued option stands before each of its values, the form that typer reads.

    Examples
    --------
    >>> spread_values(["evaluate", "m.rw", "--data", "a", "b", "--json"])
    ['evaluate', 'm.rw', '--data', 'a', '--data', 'b', '--json']
    """
    spread: list[str] = []
    option: str | None = None
    waiting = False  # whether the option was just copied, so that its first value needs no repetition
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


def models_first(arguments: Sequence[str], valued: Collection[str], *, several: bool) -> list[str]:
    """Arguments of a command in which no model stands where data was expected.

    A list of files, as in `--data a.txt b.txt`, goes on up to the next option or `--`. Where a command is given no
    model elsewhere, the files that end such a list and are models, by their content, are taken out of it.

    Parameters
    ----------
    arguments : sequence of str
        What follows the name of the command.
    valued : collection of str
        Options of the command that take a value.
    several : bool
        Whether the command takes more than one model.
    """
    lists: list[list[int]] = []  # where the files of each list stand
    option: str | None = None
    for number, argument in enumerate(arguments):
        if argument in ("--", "--help", "-h"):
            return list(arguments)
        if argument.startswith("-") and argument != "-":
            option = argument if argument in valued else None
            if option in MANY_FILES:
                lists.append([])
        elif option in MANY_FILES:
            lists[-1].append(number)
        elif option is None:
            return list(arguments)  # an argument of its own
        elif option not in MANY_VALUED:
            option = None
    ends = [list(takewhile(lambda number: _is_model(arguments[number]), reversed(places[1:]))) for places in lists]
    found = sorted(number for end in ends for number in (end if several else end[:1]))
    if not found or (len(found) > 1 and not several):
        files = next((places for places in lists if len(places) > 1), None)
        if files is None:
            return list(arguments)
        taken = " ".join(arguments[number] for number in files)
        raise RankwoodError(
            f"no model is given: all of {arguments[files[0] - 1]} {taken} is taken for data; write the model before "
            "the options, or after --"
        )
    rest = [argument for number, argument in enumerate(arguments) if number not in found]
    return [*(arguments[number] for number in found), *rest]


def _is_model(path: str) -> bool:
    """Whether a file is a model, by its first bytes."""
    from rankwood.formats.registry import START, recognise

    try:
        with open(path, "rb") as file:
            return recognise(file.read(START)) is not None
    except OSError:
        return False


class PrecisionName(str, Enum):
    """Precision in which leaf values are added up."""

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
NewModel = Annotated[Path, typer.Option("-o", "--output", help="Model file to write.")]
OnlyMeasured = Annotated[list[Path] | None, typer.Option("--test", help="Data that is only measured.")]
ByConvention = Annotated[str, typer.Option(help="Whose numbers: rankwood, lightgbm, letor, yahoo, ...")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to use; all CPUs unless given.")]
ByStrategy = Annotated[
    str,
    typer.Option(
        help="Which trees go: quality-loss, quality-loss-greedy, score-loss, signed-score-loss, low-weights, skip, "
        "last, random."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local:N",
        help="Work on a Dask cluster: HOST:PORT of its scheduler, a scheduler file, or N local processes.",
    ),
]
Shuffle = Annotated[
    bool, typer.Option("--shuffle", help="With --dask: rows of a query may stand apart, and are moved together.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        "--rename",
        metavar="OLD=NEW|FILE",
        help='Column OLD of the data is feature NEW of the model; or a JSON file, {"OLD": "NEW", ...}.',
    ),
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature ids of SVMlight data start at 0, not at 1.")]


@contextmanager
def dask_client(text: str | None) -> Iterator[Any]:
    """Client of the cluster that --dask names; None without the option."""
    if text is None:
        yield None
        return
    from rankwood.cluster.client import open_client

    with open_client(text) as client:
        yield client


def check_shuffle(shuffle: bool, dask: str | None) -> None:
    """Refuse --shuffle without --dask."""
    if shuffle and dask is None:
        raise RankwoodError("--shuffle is for data on a cluster: give --dask, too; one machine needs no such option")


def are_tables(paths: Sequence[Path]) -> bool:
    """Whether these are tables or folders of them, which workers of a cluster read themselves."""
    from rankwood.data.text import file_kind

    return all(path.is_dir() or file_kind(path) != "svmlight" for path in paths)


def load_models(paths: Sequence[Path]) -> dict[str, Ensemble]:
    """Models of any format by file name, or by path when two files share a name."""
    from rankwood.formats.registry import load_model

    names = [path.name for path in paths]
    models: dict[str, Ensemble] = {}
    for path in paths:
        name = str(path) if names.count(path.name) > 1 else path.name
        while name in models:  # the same file was given twice
            name += "'"
        models[name] = load_model(path)
    return models


def read_renames(texts: Sequence[str] | None) -> dict[str, str]:
    """Names of features by column of the data, from texts OLD=NEW or names of JSON files.

    Examples
    --------
    >>> read_renames(["query length=query_length"])
    {'query length': 'query_length'}
    """
    names: dict[str, str] = {}
    for text in texts or ():
        old, equals, new = text.partition("=")
        if equals:
            names[old] = new
            continue
        try:
            given = json.loads(Path(text).read_text(encoding="utf-8"))
        except OSError as error:
            raise RankwoodError(
                f"--rename {text}: give OLD=NEW, or a JSON file of such pairs: {error.strerror or error}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise RankwoodError(f"--rename {text}: the file is no JSON: {one_line(error)}") from None
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given.values()):
            raise RankwoodError(f'--rename {text}: the file must be a JSON object of names, {{"OLD": "NEW", ...}}')
        names |= given
    return names


def named_as_data(models: Mapping[str, Ensemble], renames: Mapping[str, str]) -> dict[str, Ensemble]:
    """Models that call their features as the data does, for commands that write no model."""
    if not renames:
        return dict(models)
    known = sorted({name for model in models.values() for name in model.feature_names or ()})
    back = dict(zip(respelled(list(renames.values()), known), renames, strict=True))
    unknown = next((new for new in back if new not in known), None)
    if unknown is not None:
        raise RankwoodError(f"--rename: no model has a feature {unknown!r}; there are: {near_first(unknown, known)}")
    return {
        name: model.rename_features({n: back[n] for n in model.feature_names or () if n in back})
        for name, model in models.items()
    }


def named_by_number(model: Ensemble) -> Ensemble:
    """The model with names for its features where it has none: `feature 1` and so on, as data files number them."""
    if model.feature_names is not None:
        return model
    return model.replace(feature_names=[f"feature {number + 1}" for number in range(model.n_features)])


def numbering(model: Ensemble) -> str:
    """A sentence on what numbers of features mean; empty when features have names."""
    return "" if model.feature_names is not None else NUMBERING


NUMBERING = "Features are numbered from 1, as in data files; parameters (-p) and Python count from 0."


def near_first(name: str, names: Sequence[str]) -> str:
    """Up to 12 names for a message, those most like `name` first.

    Examples
    --------
    >>> near_first("title bm25", ["age", "title_bm25"])
    'title_bm25, age'
    """
    near = get_close_matches(name, names, n=3)
    return listed([*near, *(other for other in names if other not in near)])


def source_leaves(model: Ensemble) -> int:
    """Number of leaves as the tool that the model comes from counts them."""
    from rankwood.formats.registry import source_of

    counted = source_of(model).get("n_leaves")
    return counted if isinstance(counted, int) else model.n_leaves


def growth(model: Ensemble) -> str:
    """A sentence on the leaves that importing the model added; empty when it added none."""
    from rankwood.formats.registry import source_of

    if source_leaves(model) >= model.n_leaves:
        return ""
    return (
        f"the {source_of(model).get('format')} source counts {source_leaves(model):,} leaves, the model here "
        f"{model.n_leaves:,}: splits on categories or around zero are written as thresholds"
    )


@contextmanager
def of_the_model() -> Iterator[None]:
    """Have errors of data say "the model" where readers say `n_features`, which is the model's here."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error).replace("of n_features", "of the model")) from None


def load_data(
    paths: Sequence[Path],
    models: dict[str, Ensemble] | None = None,
    *,
    zero_based: bool = False,
    n_threads: int | None = None,
    n_features: int | None = None,
    queries: Literal["required", "optional"] = "required",
    in_files: bool = False,
    exact: bool = False,
    rename: Mapping[str, str] | None = None,
    coding: Coding | None = None,
    quiet: bool = False,
) -> Dataset:
    """Read ranking data of any format, as wide as the models that will score it, and show progress.

    Sparse text does not say how many features there are, and some model formats do not either. Data is made as wide as
    the models; a note on standard error says when the last features are all 0, because it may be the wrong file. Models
    whose width is not known are widened to that of the data.

    Parameters
    ----------
    paths : sequence of Path
        Files, joined if there are several.
    models : dict or None, default None
        Models by name. Those of unknown width are replaced **in the dict** by wider ones.
    zero_based : bool, default False
        Whether feature ids of SVMlight data start at 0.
    n_threads : int or None, default None
        Threads; all CPUs when None.
    n_features : int or None, default None
        Width of the data if there are no models.
    queries : {"required", "optional"}, default "required"
        Whether data without queries is refused.
    in_files : bool, default False
        Leave the features in the files, which may be larger than memory.
    exact : bool, default False
        Keep features of tables in float64 where float32 would round them, if a model comes from elsewhere: for
        commands that only score.
    rename : mapping or None, default None
        New names of columns, by the names that they have in the files.
    coding : Coding or None, default None
        How texts become numbers if there are no models.
    quiet : bool, default False
        Show no progress.
    """
    from rankwood.data.files import open_data, read_data
    from rankwood.formats.registry import names_used_only, widen, width_is_open

    models = {} if models is None else models
    by_width = {name: m for name, m in models.items() if not (names_used_only(m) and are_tables(paths))}
    needed, is_open = width_of(by_width) if by_width else (0, True)

    reading = reading_for(models.values())
    coding, exact = reading["coding"] or coding, exact and reading["exact"]
    if coding is not None and rename and coding.feature_names is not None:
        back = dict(zip(respelled(list(rename.values()), coding.feature_names), rename, strict=True))
        coding = replace(coding, feature_names=tuple(back.get(name, name) for name in coding.feature_names))

    def read(width: int | None) -> Dataset:
        how = of_the_model() if models else nullcontext()
        with how, progress("reading", unit="bytes", quiet=quiet) as advance:
            return (open_data if in_files else read_data)(
                paths,
                zero_based=zero_based,
                n_threads=n_threads,
                n_features=width,
                queries=queries,
                coding=coding,
                exact=exact,
                progress=advance,
            )

    if are_tables(paths):
        data = read(None)
        if rename:
            data = data.replace(feature_names=_renamed(data.feature_names, rename, paths))
        for model in by_width.values():
            if not width_is_open(model):
                column_order(data.feature_names, model.feature_names, str(paths[0]))  # refuses other columns
        wanted = n_features if is_open else needed
        check_width(paths[0], data.feature_names or (), max(data.n_features, needed) if wanted is None else wanted)
    else:
        if rename:
            _renamed(None, rename, paths)  # refuses
        data = read(n_features if is_open else needed)
        if data.n_features < needed:
            data = read(needed)
    for name, model in models.items():
        models[name] = widen(model, data.n_features, data.feature_names)
    if models and data.n_features:
        last = 0
        for _, X in data.feature_blocks():
            last = max(last, last_feature(X))
            if last == data.n_features:
                break
        tell_absent_features(data.n_features, last)
    return data


def _renamed(columns: Sequence[str] | None, rename: Mapping[str, str], paths: Sequence[Path]) -> list[str]:
    """Names of columns after renaming."""
    unknown = next((name for name in rename if name not in (columns or ())), None)
    if unknown is not None:
        there = near_first(unknown, columns) if columns else "none, as columns of this format have no names"
        raise DataError(f"{paths[0]}: there is no column {unknown!r} to rename; there are: {there}")
    return [rename.get(name, name) for name in columns or ()]


def width_of(models: Mapping[str, Ensemble]) -> tuple[int, bool]:
    """Number of features of models that will score the same data, and whether the data may have more.

    A model whose file told only the features that splits need takes part with the width of the others.
    """
    from rankwood.formats.registry import width_is_open

    needed = max(model.n_features for model in models.values())
    widths = {model.n_features for model in models.values() if not width_is_open(model)}
    if widths and len(widths | {needed}) > 1:
        widths.add(needed)
        raise DataError(f"the models are of {' and '.join(map(str, sorted(widths)))} features: evaluate them apart")
    return needed, not widths


def last_feature(X: FeatureMatrix) -> int:
    """Number, from 1, of the last feature that is not 0 in all rows; 0 when there is none.

    Examples
    --------
    >>> last_feature(np.array([[0, 1, 0], [2, 0, 0]], dtype=np.float32))
    2
    """
    if X.size and X[:, -1].any():
        return int(X.shape[1])
    used = np.flatnonzero(X.any(axis=0))
    return int(used[-1]) + 1 if len(used) else 0


def tell_absent_features(n_features: int, last: int) -> None:
    """Print a note if the features after number `last` are all 0: it may be the wrong file."""
    if last < n_features:
        tell(f"note: the model has {n_features} features; those after number {last} are 0 in all of the data")


class Missing(str, Enum):
    """What to do when a format cannot send missing values where the model sends them."""

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


def check_output(output: Path, *inputs: Path | Sequence[Path] | None, **roles: Sequence[Path] | None) -> None:
    """Refuse, before any work, an output that cannot be written or is an input; warn of data with two roles.

    Parameters
    ----------
    output : Path
        File that the command will write.
    *inputs : Path or sequence of Path
        Files that it reads.
    **roles : sequence of Path
        Files of data that it reads, by the option that names them, such as `train` and `valid`.
    """
    from rankwood.atomic import check_writable

    for given in (*inputs, *roles.values()):
        for path in [given] if isinstance(given, Path) else given or ():
            if path.exists() and output.exists() and path.samefile(output):
                raise RankwoodError(f"{output} is read by this command: write to another file")
    check_writable(output)
    _warn_of_shared_data(roles)


def _warn_of_shared_data(roles: Mapping[str, Sequence[Path] | None]) -> None:
    """Print a warning for every file that is given in several roles."""
    given: dict[tuple[int, int], dict[str, Path]] = {}  # by device and number of the file, which links share
    for role, paths in roles.items():
        for path in paths or ():
            if path.is_file():
                given.setdefault((path.stat().st_dev, path.stat().st_ino), {}).setdefault(role, path)
    for uses in given.values():
        if len(uses) > 1:
            *others, last = (f"--{role}" for role in uses)
            files = " and ".join(dict.fromkeys(map(str, uses.values())))
            are = "is" if len(set(uses.values())) == 1 else "are the same file and"
            given_as = f"{files} {are} given as {', '.join(others)} and {last}"
            tell(f"warning: {given_as}: {_consequence(uses)}")


def _consequence(roles: Collection[str]) -> str:
    """What comes of a file that is given in several roles."""
    if set(roles) == {"train", "unlabelled"}:
        return "its documents are learnt twice, as if there were two of each"
    return _SHARED_TEST if "test" in roles else _SHARED


_SHARED = "models are chosen by queries that they were fitted to, so the choice and its measures are too favourable"
_SHARED_TEST = "measures on test data are of queries that had a part in making the model, so they are too favourable"


def write_model(
    model: Ensemble,
    path: Path,
    format: str | None,
    *,
    missing: Missing = Missing.refuse,
    options: dict[str, Any] | None = None,
) -> int:
    """Write a model, pass warnings of the conversion on to standard error, and return the leaves that the file has.

    Parameters
    ----------
    model : Ensemble
        The model.
    path : Path
        File to write.
    format : str or None
        Name of the format; told by the file name when None.
    missing : Missing, default Missing.refuse
        What to do when the format cannot send missing values where the model sends them.
    options : dict or None, default None
        Options of the format.
    """
    from rankwood.formats.registry import find_exporter, save_as
    from rankwood.formats.writing import GrowthWarning

    name = find_exporter(format, path).name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        save_as(model, path, name, missing=missing.value, **(options or {}))
    n_leaves = model.n_leaves
    for warning in said:
        tell(f"warning: {warning.message}")
        if isinstance(warning.message, GrowthWarning):
            n_leaves = warning.message.n_leaves
    return n_leaves


def format_of_file(path: Path, model: Ensemble) -> str | None:
    """Name of the format of the file that `model` was read from."""
    from rankwood.formats.registry import START, recognise, source_of

    with path.open("rb") as file:
        is_own = recognise(file.read(START)) == "rankwood"  # also of a model that was imported and saved by rankwood
    return "rankwood" if is_own else source_of(model).get("format")


def content_to_keep(source: Path, model: Ensemble, target: str, output: Path) -> bytes | None:
    """Content of the file that `model` was read from if `output` is to have the same format; else None.

    A model that does not change is best copied byte for byte: written by rankwood it may be larger, and lacks what only
    its own tool uses.
    """
    from rankwood.formats.registry import START, recognise

    content = source.read_bytes()
    is_ubjson = recognise(content[:START]) == "ubjson"
    is_other_coding = target == "xgboost" and is_ubjson != (output.suffix == ".ubj")
    return content if format_of_file(source, model) == target and not is_other_coding else None


def check_format(output: Path, format: str | None) -> None:
    """Refuse, before any work, an output that cannot be written for want of a package or a compiler."""
    from rankwood.formats.registry import exporters_of, find_exporter

    exporters = exporters_of(output) if format is None else [find_exporter(format, output)]
    if len(exporters) == 1:  # else the model tells
        exporters[0].check()


def target_format(source: Path, model: Ensemble, output: Path, format: str | None) -> str:
    """Name of the format to write: the one asked for, that of the input if the output's suffix fits, or by suffix.

    Parameters
    ----------
    source : Path
        File that `model` was read from.
    model : Ensemble
        The model as it was read.
    output : Path
        File to write.
    format : str or None
        Name of the format, if it is asked for.
    """
    from rankwood.formats.registry import EXPORTERS, exporters_of, find_exporter

    own = EXPORTERS.get(format_of_file(source, model) or "")
    if format is None:
        if own is not None and output.suffix in (*own.suffix, source.suffix):
            return own.name
        if not exporters_of(output):
            return "rankwood"
    return find_exporter(format, output).name


WRITTEN = {"copy": ": the input itself, byte for byte", "converted": ": the input, converted"}


def write_changed(
    model: Ensemble,
    changed: Ensemble | None,
    output: Path,
    target: str,
    content: bytes | None,
    *,
    missing: Missing = Missing.refuse,
) -> None:
    """Write what became of a model: the changed one; or, if there is none, the input as it was.

    Parameters
    ----------
    model : Ensemble
        The input.
    changed : Ensemble or None
        What became of it; None when it stays.
    output : Path
        File to write.
    target : str
        Name of the format.
    content : bytes or None
        The input's file, which is copied where nothing changed; None if it must be converted (`content_to_keep`).
    missing : Missing, default Missing.refuse
        What to do when the format cannot send missing values where the model sends them.
    """
    from rankwood.atomic import atomic_write

    if changed is None and content is not None:
        with atomic_write(output) as file:
            file.write(content)
    else:
        write_model(model if changed is None else changed, output, target, missing=missing)


def read_options(texts: list[str]) -> dict[str, Any]:
    """Options of a format by name, from texts NAME=VALUE; whole numbers become int.

    Examples
    --------
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
