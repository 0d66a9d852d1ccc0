"""The TOML file of a sweep: data, learner, parameters, a grid or a list, folds, seeds and measures."""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwood.data.folds import Fold
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.measures import parse_measure
from rankwood.lab.extra import need
from rankwood.lab.runs import expand
from rankwood.lab.study import FileFolds, Source, SyntheticFolds, parse_folds
from rankwood.lab.sweep import Pruning, Setting, SweepStudy
from rankwood.training.names import LEARNERS, learner_class
from rankwood.training.params import check_parameter, kinds_of

# Entries of a TOML file: what is there must be known and of the right type, or the error names its key.


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file."""
    tomllib = need("tomllib" if sys.version_info >= (3, 11) else "tomli", "reading a sweep")
    content = Path(path).read_bytes()
    try:
        found: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise RankwoodError(f"{path} is no text in UTF-8, which TOML is") from None
    except tomllib.TOMLDecodeError as error:
        raise RankwoodError(f"{path} is no TOML: {error}") from None
    return found


class Keys:
    """One table of a TOML file, read entry by entry; `where` is what its keys are called in errors.

    >>> keys = Keys({"rates": [0.5], "acept": "quality"}, "prune")
    >>> keys.numbers("rates")
    [0.5]
    >>> keys.check({"rates", "accept"})
    Traceback (most recent call last):
    rankwood.errors.RankwoodError: prune.acept is not known (did you mean accept?): there are accept, rates
    """

    def __init__(self, entries: Mapping[str, Any], where: str = "") -> None:
        self.entries, self.where = entries, where

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def key(self, name: str) -> str:
        """A key as it is called in errors."""
        return f"{self.where}.{name}" if self.where else name

    def check(self, known: Collection[str]) -> None:
        """Refuse keys that are not known."""
        for name in self.entries:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=2, cutoff=0.7)
                hint = f" (did you mean {' or '.join(near)}?)" if near else ""
                names = ", ".join(sorted(known))
                raise RankwoodError(f"{self.key(name)} is not known{hint}: there are {names}")

    def check_finite(self) -> None:
        """Refuse inf and nan, which TOML has, at any depth.

        >>> Keys({"grid": {"learning_rate": [0.1, float("inf")]}}).check_finite()
        Traceback (most recent call last):
        rankwood.errors.RankwoodError: grid.learning_rate must be finite, got inf
        """
        for name, value in self.entries.items():
            _check_finite(value, self.key(name))

    def text(self, name: str, default: Any = None) -> Any:
        return self._one(name, "a text", lambda value: isinstance(value, str), default)

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._one(name, "true or false", lambda value: isinstance(value, bool), default))

    def count(self, name: str, default: Any = None) -> Any:
        return self._one(name, "a whole number above 0", lambda value: _is_count(value) and value > 0, default)

    def number(self, name: str, default: Any = None) -> Any:
        return self._one(name, "a number", _is_number, default)

    def texts(self, name: str, default: Any = None) -> Any:
        """A text or a list of them, as a list."""
        return self._many(name, "a text or a list of texts", lambda value: isinstance(value, str), default)

    def numbers(self, name: str, default: Any = None) -> Any:
        """A number or a list of them, as a list."""
        return self._many(name, "a number or a list of numbers", _is_number, default)

    def table(self, name: str) -> Keys:
        """A table below this one; empty when it is not there."""
        found = self._one(name, f"a table, [{self.key(name)}]", lambda value: isinstance(value, Mapping), {})
        return Keys(found, self.key(name))

    def tables(self, name: str) -> list[Keys]:
        """An array of tables."""
        found = self.entries.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise RankwoodError(f"{self.key(name)} must be a list of tables, each [[{self.key(name)}]]")
        return [Keys(one, f"{self.key(name)}[{number}]") for number, one in enumerate(found, start=1)]

    def _one(self, name: str, words: str, holds: Callable[[Any], bool], default: Any) -> Any:
        value = self.entries.get(name, default)
        if name in self.entries and not holds(value):
            raise RankwoodError(f"{self.key(name)} must be {words}, got {value!r:.80}")
        return value

    def _many(self, name: str, words: str, holds: Callable[[Any], bool], default: Any) -> Any:
        if name not in self.entries:
            return default
        value = self.entries[name]
        listed = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if not listed or not all(holds(one) for one in listed):
            raise RankwoodError(f"{self.key(name)} must be {words}, got {value!r:.80}")
        return list(listed)


def _check_finite(value: Any, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise RankwoodError(f"{place} must be finite, got {value}")
    if isinstance(value, Mapping):
        Keys(value, place).check_finite()
    elif isinstance(value, list):
        for number, one in enumerate(value, start=1):
            _check_finite(one, f"{place}[{number}]" if isinstance(one, Mapping) else place)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# The TOML file of a sweep: data, learner, parameters, a grid or a list, folds, seeds and measures.


TOP = {"name", "learner", "data", "parameters", "grid", "configurations", "folds", "seeds", "measures", "convention",
       "prune", "speed"}  # fmt: skip
# Parameters of learners that have a place of their own, or none, in the file.
ELSEWHERE = {
    "random_state": "seeds",
    "n_jobs": "the option --threads",
    "measure": "measures, of which the first is watched",
    "convention": "convention, beside learner",
    "forest": "initial_trees, the size of the forest that igbrt starts from",
    "objective": "Python, not a file",
    "on_interrupt": "Python, not a file",
}


def read_sweep(path: str | os.PathLike[str], *, n_threads: int | None = None) -> SweepStudy:
    """The study that a TOML file describes. Paths in it are relative to its folder.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "leaves.toml"
    >>> _ = path.write_text('learner = "mart"\\ndata.synthetic.n_queries = 50\\ngrid.n_leaves = [4, 8]')
    >>> study = read_sweep(path)
    >>> study.title, [setting.label for setting in study.settings]
    ('leaves', ['n_leaves 4', 'n_leaves 8'])
    """
    path = Path(path)
    try:
        return _study(Keys(read_toml(path)), path, n_threads)
    except RankwoodError as error:
        text = str(error)
        raise RankwoodError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _study(top: Keys, path: Path, n_threads: int | None) -> SweepStudy:
    top.check(TOP)
    top.check_finite()
    source = _source(top.table("data"), path.parent, n_threads)
    measures = tuple(dict.fromkeys(str(parse_measure(name)) for name in top.texts("measures", ["nDCG@10"])))
    title = top.text("name", path.stem)
    return SweepStudy(
        source,
        _folds(top, source),
        settings=tuple(_settings(top)),
        title=title,
        seeds=_seeds(top),
        measures=measures,
        convention=Convention.get(top.text("convention", "rankwood")).name,
        pruning=_pruning(top.table("prune")) if "prune" in top else None,
        speed=top.flag("speed", True),
        n_threads=n_threads,
    )


def _source(data: Keys, folder: Path, n_threads: int | None) -> Source:
    """Folds of a folder, one fold of files, or synthetic data."""
    data.check({"folder", "train", "valid", "test", "synthetic"})
    kinds = [kind for kind in ("folder", "train", "synthetic") if kind in data]
    if len(kinds) != 1:
        raise RankwoodError(
            "data must be one of: data.folder with folds, data.train with data.valid and data.test, or data.synthetic"
        )
    if "folder" in data:
        if "valid" in data or "test" in data:
            raise RankwoodError("data.folder has its folds in it: leave data.valid and data.test out")
        return FileFolds.find(_path(data.text("folder"), folder), n_threads=n_threads)
    if "train" in data:
        parts = {part: data.texts(part) for part in ("train", "valid", "test")}
        for part, files in parts.items():
            if files is None:
                raise RankwoodError(f"data.{part} is missing: a sweep needs train, valid and test files")
        files = [tuple(_path(file, folder) for file in parts[part]) for part in parts]
        for part, named in zip(parts, files, strict=True):
            for file in named:
                if not file.is_file():
                    raise RankwoodError(f"data.{part}: there is no file {file}")
        return FileFolds(files[0][0].resolve().parent.name, [Fold("Fold1", *files)], n_threads)
    shape = data.table("synthetic")
    shape.check({"n_queries", "docs_per_query", "n_features", "seed"})
    sizes = {name: shape.count(name) for name in ("n_queries", "docs_per_query", "n_features") if name in shape}
    if sizes.get("n_queries", 5) < 5:
        raise RankwoodError("data.synthetic.n_queries must be at least 5, a query for each part of a fold")
    seed = shape.number("seed", 0)
    if not isinstance(seed, int) or seed < 0:
        raise RankwoodError(f"data.synthetic.seed must be a whole number, got {seed!r}")
    return SyntheticFolds(**sizes, seed=seed, n_threads=n_threads)


def _path(text: str, folder: Path) -> Path:
    return folder / Path(text).expanduser()


def _folds(top: Keys, source: Source) -> list[int]:
    given: Any = top.entries.get("folds")
    if isinstance(given, int) and not isinstance(given, bool):
        given = [given]
    whole = isinstance(given, list) and all(isinstance(fold, int) and not isinstance(fold, bool) for fold in given)
    if not (given is None or isinstance(given, str) or whole):
        raise RankwoodError(f"folds must be a list of numbers or a text like '1..3', got {given!r:.80}")
    return parse_folds(given, source.n_folds)


def _seeds(top: Keys) -> list[int]:
    """`seeds = 3` means 0, 1 and 2; a list means itself."""
    given = top.entries.get("seeds", 1)
    listed = given if isinstance(given, list) else None
    if listed is None and isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return list(range(given))
    right = listed and all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in listed)
    if not listed or not right or len(set(listed)) < len(listed):
        raise RankwoodError(f"seeds must be how many there are, or a list of different numbers, got {given!r:.80}")
    return listed


def _settings(top: Keys) -> list[Setting]:
    """Every configuration of the list with every point of the grid, checked against the learner."""
    common, grid = top.table("parameters"), top.table("grid")
    for name, values in grid.entries.items():
        if not isinstance(values, list) or not values:
            raise RankwoodError(f"{grid.key(name)} must be a list of values, got {values!r:.80}")
    listed = top.tables("configurations")
    names = [one.text("name") for one in listed]
    points = expand(grid.entries, [{k: v for k, v in one.entries.items() if k != "name"} for one in listed])
    per_listed = len(points) // max(len(listed), 1)
    found = []
    for number, point in enumerate(points):
        called = names[number // per_listed] if names else None
        learner: Any = point.get("learner", top.text("learner"))
        if learner is None:
            raise RankwoodError(f"learner is missing: one of {', '.join(LEARNERS)}")
        learner_class(learner)
        parameters = {**common.entries, **{key: value for key, value in point.items() if key != "learner"}}
        places = {key: common.key(key) for key in common.entries}
        places |= {key: f"configurations.{key}" for key in point} | {key: grid.key(key) for key in grid.entries}
        checked = {key: _checked(learner, key, value, places[key]) for key, value in parameters.items()}
        found.append(Setting(_label(called, point, grid.entries, learner), learner, checked))
    labels = [setting.label for setting in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise RankwoodError(f"two configurations are called {twice!r}: give each a name of its own")
    return found


def _label(name: str | None, point: Mapping[str, Any], grid: Mapping[str, Any], learner: str) -> str:
    """What a configuration is called: its name, and where it stands in the grid."""
    shown = {key: value for key, value in point.items() if name is None or key in grid}
    words = [str(value) if key == "learner" else f"{key} {value}" for key, value in shown.items()]
    return ", ".join(filter(None, [name, *words])) or learner


def _checked(learner: str, name: str, value: Any, place: str) -> Any:
    """A parameter of a learner; TOML has no None, which is written "none"."""
    kind = learner_class(learner)
    if name == "initial_trees" and learner == "igbrt":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise RankwoodError(f"{place} must be a whole number above 0, got {value!r}")
        return value
    if name in ELSEWHERE:
        raise RankwoodError(f"{place} is not for a grid of parameters: use {ELSEWHERE[name]}")
    try:
        if value == "none" and any(one.words == "None" for one in kinds_of(kind, name)):
            return None
        check_parameter(kind, name, value)
    except RankwoodError as error:
        raise RankwoodError(f"{place}: {error}") from None
    return value


def _pruning(keys: Keys) -> Pruning:
    keys.check({"rate", "rates", "strategy", "accept", "margin", "variants", "iterations"})
    if "rate" in keys and "rates" in keys:
        raise RankwoodError("prune.rate is the share that goes, prune.rates are those to choose from: give one of them")
    given: dict[str, Any] = {
        "rate": keys.number("rate"),
        "rates": keys.numbers("rates"),
        "strategy": keys.text("strategy"),
        "accept": keys.text("accept"),
        "margin": keys.number("margin"),
        "variants": keys.texts("variants"),
        "iterations": keys.count("iterations"),
    }
    if given["rate"] is not None and (given["accept"] is not None or given["margin"] is not None):
        raise RankwoodError("prune.accept and prune.margin are for prune.rates: prune.rate takes trees out in any case")
    try:
        return Pruning(**{name: value for name, value in given.items() if value is not None})
    except RankwoodError as error:
        raise RankwoodError(f"prune: {error}") from None
