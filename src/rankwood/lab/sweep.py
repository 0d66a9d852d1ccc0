"""Sweeps: learners with several settings on every fold and seed, pruned afterwards or not, as a TOML file says."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.data.folds import Fold
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.measures import parse_measure
from rankwood.lab.runs import Result, expand
from rankwood.lab.study import (
    FileFolds,
    FoldData,
    Report,
    Runs,
    Source,
    Study,
    SyntheticFolds,
    cpu_timed,
    parse_folds,
    time_scoring,
)
from rankwood.lab.sweep_report import SweepResults, make_report
from rankwood.lab.toml import Keys, is_whole, read_toml
from rankwood.lab.workers import Config
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance
from rankwood.pruning.cleaver import RATES, checked_rates, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import PruningSettings, checked_variants
from rankwood.pruning.strategies import Chooser
from rankwood.training.names import LEARNERS, learner_class
from rankwood.training.params import check_parameter, kinds_of

# The runs: trainings, which also prune and measure, and timings of the models that they saved.


QUICK_TREES = 20
TRAINING, TIMING = "training", "timing"


@dataclass(frozen=True)
class Setting:
    """One configuration of a sweep.

    Parameters
    ----------
    label : str
        Name in tables.
    learner : str
        Name of the learner, as `learner_class` knows it.
    parameters : mapping
        Its parameters; igbrt also takes `initial_trees`, the size of the forest that it starts from.
    """

    label: str
    learner: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Pruning:
    """How CLEaVER prunes every trained model.

    Parameters
    ----------
    rate : float, optional
        Share of the trees that is pruned, whatever it costs. Without it the smallest model that `accept` lets pass is
        taken, of those at `rates`.
    rates : sequence of float
        Rates to choose from.
    strategy, margin, variants
        As for `cleaver`.
    accept : str, default "quality"
        As for `cleaver`, but the paper's rule unless given: what a sweep reports is measured on test data.
    iterations : int, optional
        Iterations of a line search.
    """

    rate: float | None = None
    rates: Sequence[float] = RATES
    strategy: str = "quality-loss"
    accept: str = "quality"
    margin: float | None = None
    variants: Sequence[str] = ("line-search", "refit", "distil")
    iterations: int | None = None

    def __post_init__(self) -> None:
        checked_rates(self.rates if self.rate is None else [self.rate])
        Acceptance(self.accept, self.margin)  # type: ignore[arg-type]
        checked_variants(list(self.variants))
        Chooser(self.strategy, 1)

    def as_config(self) -> Config:
        """The entries that matter to a run's result."""
        how = {"strategy": self.strategy, "variants": list(self.variants), "iterations": self.iterations}
        if self.rate is not None:
            return {**how, "rate": self.rate}
        margin = Acceptance(self.accept, self.margin).margin  # type: ignore[arg-type]
        return {**how, "rates": list(self.rates), "accept": self.accept, "margin": margin}


@dataclass(frozen=True)
class SweepStudy(Study):
    """Settings of learners compared on every fold with every seed.

    Parameters
    ----------
    settings : sequence of Setting
        The first is what the others are compared with.
    title : str, default "sweep"
    seeds : sequence of int, default (0,)
        Seeds of the learner, and of the pruning strategy "random".
    measures : sequence of str, default ("nDCG@10",)
        The first is what early stopping and pruning go by.
    convention : str, default "rankwood"
    pruning : Pruning, optional
        Without it models stay whole.
    speed : bool, default True
        Whether to measure microseconds per document.
    n_trees_at_most : int, optional
        Fewer trees for all learners, for a first try.
    """

    name = "sweep"

    settings: Sequence[Setting]
    title: str = "sweep"
    seeds: Sequence[int] = (0,)
    measures: Sequence[str] = ("nDCG@10",)
    convention: str = "rankwood"
    pruning: Pruning | None = None
    speed: bool = True
    n_trees_at_most: int | None = None

    def __post_init__(self) -> None:
        if not (self.settings and self.seeds and self.measures and self.folds):
            raise RankwoodError("a sweep needs a configuration, a fold, a seed and a measure at least")

    def quick(self) -> SweepStudy:
        """Return a first try of the same settings: two folds, one seed, few trees, and less data if synthetic."""
        source: Any = self.source
        if isinstance(source, SyntheticFolds):
            shape = {"n_queries": 100, "docs_per_query": 20, "n_features": 20}
            source = replace(source, **{name: min(most, getattr(source, name)) for name, most in shape.items()})
        return replace(self, source=source, folds=self.folds[:2], seeds=self.seeds[:1], n_trees_at_most=QUICK_TREES)

    def training(self, fold: int, setting: Setting, seed: int) -> Config:
        """Return the run that trains and measures a setting."""
        return {
            "study": self.name,
            "kind": TRAINING,
            **self.source.identify(fold),
            "learner": setting.learner,
            "parameters": self._parameters(setting),
            "seed": seed,
            "measures": list(self.measures),
            "convention": self.convention,
            "prune": None if self.pruning is None else self.pruning.as_config(),
        }

    def timing(self, training: Config) -> Config:
        """Return the run that times the models of a training."""
        return {**training, "kind": TIMING}

    def side_by_side(self) -> list[Config]:
        """Trainings, in the order of folds, settings and seeds."""
        runs = itertools.product(self.folds, self.settings, self.seeds)
        return [self.training(*run) for run in runs]

    def alone(self) -> list[Config]:
        """Timings of the trained and pruned models."""
        return [self.timing(training) for training in self.side_by_side() if self.speed]

    def _parameters(self, setting: Setting) -> dict[str, Any]:
        """The parameters of a setting, with fewer trees in a first try."""
        found = dict(setting.parameters)
        if self.n_trees_at_most is not None:
            default = learner_class(setting.learner).n_trees
            found["n_trees"] = min(found.get("n_trees", default), self.n_trees_at_most)
            if setting.learner == "igbrt":
                found["initial_trees"] = min(found.get("initial_trees", 1000), self.n_trees_at_most)
        return found

    def run(self, config: Config) -> Result:
        """Train one model, prune it, and measure both; or time both."""
        fold = self.fold_data(config["fold"])
        if config["kind"] == TIMING:
            return self._timed(config, fold)
        models, seconds = self._trained(config, fold)
        return {kind: {**self._measured(model, fold), "seconds": seconds[kind]} for kind, model in models.items()}

    def _trained(self, config: Config, fold: FoldData) -> tuple[dict[str, Ensemble], dict[str, float]]:
        """Train and prune, save the models for their timing, and return them with the CPU seconds of each."""
        ranker = self._learner(config)
        models, seconds = {}, {}
        models["model"], seconds["model"] = cpu_timed(lambda: self._fitted(ranker, config, fold))
        if config["prune"] is not None:
            models["pruned"], seconds["pruned"] = cpu_timed(lambda: self._pruned(models["model"], config, fold))
        self.save_models(config, models)
        return models, seconds

    def _timed(self, config: Config, fold: FoldData) -> Result:
        """Microseconds per document of both models, which are made again unless they were saved."""
        training = {**config, "kind": TRAINING}
        kinds = ["model"] if config["prune"] is None else ["model", "pruned"]
        models = self.saved_models(training, kinds) or self._trained(training, fold)[0]
        times, conditions = time_scoring(models, fold.test)
        return {**times, "timing": conditions}

    def report(self, runs: Runs) -> Report:
        return make_report(SweepResults(self, runs))

    def _learner(self, config: Config) -> Any:
        """The learner of a run, with all its parameters."""
        from rankwood.training.estimators import paper_forest

        given = dict(config["parameters"])
        if config["learner"] == "igbrt":
            size = given.pop("initial_trees", 1000)
            given["forest"] = paper_forest(size, random_state=config["seed"], n_jobs=self.n_threads)
        return learner_class(config["learner"])(
            **given,
            random_state=config["seed"],
            measure=self.measures[0],
            convention=self.convention,
            n_jobs=self.n_threads,
        )

    def _fitted(self, ranker: Any, config: Config, fold: FoldData) -> Ensemble:
        """Fit a learner; validation data is measured only where something depends on it, since that takes time."""
        watched = config["learner"] == "xdart" or getattr(ranker, "early_stopping_rounds", None) is not None
        train: Any = fold.train
        if config["learner"] != "forest":  # forests look at all values, not at bins
            n_bins = ranker.max_bins
            make = partial(BinnedDataset.make, fold.train, max_bins=n_bins, n_threads=self.n_threads)
            train = self._kept.get("binned", (config["fold"], n_bins), make)
        model: Ensemble = ranker.fit(train, valid=fold.valid if watched else None).ensemble_
        return model

    def _pruned(self, model: Ensemble, config: Config, fold: FoldData) -> Ensemble:
        """Prune a model: the smallest that is accepted or, with a rate of its own, the best at that rate."""
        how = config["prune"]
        rate, n_iterations = how.get("rate"), how["iterations"]
        search = LineSearch() if n_iterations is None else LineSearch(iterations=n_iterations)
        found = cleaver(
            model,
            fold.train,
            fold.valid,
            measure=self.measures[0],
            convention=self.convention,
            strategy=how["strategy"],
            rates=how["rates"] if rate is None else [rate],
            accept="quality" if rate is not None else Acceptance(how["accept"], how["margin"]),
            variants=how["variants"],
            settings=PruningSettings(search=search, measure_speed=False, seed=config["seed"]),
            n_threads=self.n_threads,
        )
        if rate is None:
            return found.ensemble
        return max(found.rows[1:], key=lambda row: row.worth).ensemble

    def _measured(self, model: Ensemble, fold: FoldData) -> Result:
        """Trees and nodes of a model, and its measures of every query."""
        return {
            "n_trees": model.n_trees,
            "n_nodes": model.n_nodes,
            "valid": self._values(model, fold.valid),
            "test": self._values(model, fold.test),
        }

    def _values(self, model: Ensemble, data: Dataset) -> dict[str, list[float | None]]:
        """Values of every query by measure; None where the convention leaves a query out."""
        values = evaluate(model, data, self.measures, convention=self.convention, n_threads=self.n_threads).per_query
        return {name: [None if math.isnan(value) else value for value in row.tolist()] for name, row in values.items()}


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
    r"""Return the study that a TOML file describes; paths in the file are relative to its folder.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "leaves.toml"
    >>> _ = path.write_text('learner = "mart"\ndata.synthetic.n_queries = 50\ngrid.n_leaves = [4, 8]')
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
    """Return the study of the file's content."""
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
    """Return the data: folds in a folder, one fold of files, or synthetic data."""
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
    if not is_whole(seed) or seed < 0:
        raise RankwoodError(f"data.synthetic.seed must be a whole number, got {seed!r}")
    return SyntheticFolds(**sizes, seed=seed, n_threads=n_threads)


def _path(text: str, folder: Path) -> Path:
    return folder / Path(text).expanduser()


def _folds(top: Keys, source: Source) -> list[int]:
    """Return the numbers of the folds to use."""
    given: Any = top.entries.get("folds")
    if is_whole(given):
        given = [given]
    if not (given is None or isinstance(given, str) or (isinstance(given, list) and all(map(is_whole, given)))):
        raise RankwoodError(f"folds must be a list of numbers or a text like '1..3', got {given!r:.80}")
    return parse_folds(given, source.n_folds)


def _seeds(top: Keys) -> list[int]:
    """Return the seeds: `seeds = 3` means 0, 1 and 2; a list means itself."""
    given = top.entries.get("seeds", 1)
    if is_whole(given) and given >= 1:
        return list(range(given))
    right = isinstance(given, list) and given and all(is_whole(seed) and seed >= 0 for seed in given)
    if not right or len(set(given)) < len(given):
        raise RankwoodError(f"seeds must be how many there are, or a list of different numbers, got {given!r:.80}")
    return list(given)


def _settings(top: Keys) -> list[Setting]:
    """Return every configuration of the list with every point of the grid, checked against the learner."""
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
    """Return the name of a configuration in tables: its own name, and its values of the grid."""
    shown = {key: value for key, value in point.items() if name is None or key in grid}
    words = [str(value) if key == "learner" else f"{key} {value}" for key, value in shown.items()]
    return ", ".join(filter(None, [name, *words])) or learner


def _checked(learner: str, name: str, value: Any, place: str) -> Any:
    """Return a parameter that the learner takes; None, which TOML has not, is written "none"."""
    kind = learner_class(learner)
    if name == "initial_trees" and learner == "igbrt":
        if not is_whole(value) or value < 1:
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
    """Return the table `prune`, checked."""
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
