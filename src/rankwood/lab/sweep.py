"""Sweeps: learners with several settings on every fold and seed, pruned afterwards or not, as a TOML file says.

Settings are compared as they are, or each is first searched for the parameters that are best on validation data:

    as they are    training, pruning, measuring | ... side by side      then timing, one after the other
    searched       every point on validation data | ... side by side    then the best of each trained again with every
                                                                        seed, pruned, measured and timed, one by one
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.data.folds import Fold
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.measures import parse_measure
from rankwood.lab.peers import PEERS, Task
from rankwood.lab.runs import OnRun, Result, RunTable, expand
from rankwood.lab.study import (
    FewerQueries,
    FileFolds,
    FoldData,
    Report,
    Runs,
    Source,
    Study,
    SyntheticFolds,
    cpu_timed,
    open_source,
    parse_folds,
    time_scoring,
)
from rankwood.lab.sweep_report import SweepResults, make_report, search_report
from rankwood.lab.toml import Keys, is_whole, read_toml
from rankwood.lab.workers import Config
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance
from rankwood.pruning.cleaver import RATES, checked_rates, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import PruningSettings, checked_variants
from rankwood.pruning.strategies import Chooser
from rankwood.scoring.timing import OtherModel
from rankwood.training.names import LEARNERS, learner_class
from rankwood.training.params import check_parameter, kinds_of

# The runs: trainings, which also prune and measure, and timings of the models that they saved; in a search, trainings
# that look at validation data alone, and final ones, which do everything.


QUICK_TREES, QUICK_POINTS = 20, 2
TRAINING, TIMING, SEARCHING, FINAL = "training", "timing", "searching", "final"


@dataclass(frozen=True)
class Setting:
    """One configuration of a sweep.

    Parameters
    ----------
    label : str
        Name in tables.
    learner : str
        Name of the learner, as `learner_class` knows it, or of a peer (`PEERS`).
    parameters : mapping
        Its parameters; igbrt also takes `initial_trees`, the size of the forest that it starts from. Those of a peer
        have the peer's own names.
    points : sequence of mappings, optional
        Parameters to try beside or in place of these: what is best on the validation data of a fold is taken there.
    """

    label: str
    learner: str
    parameters: Mapping[str, Any]
    points: Sequence[Mapping[str, Any]] = ()

    @property
    def candidates(self) -> list[Setting]:
        """What the search chooses from: the setting at each of its points."""
        at = [replace(self, parameters={**self.parameters, **point}, points=()) for point in self.points]
        return at or [self]


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
    of : sequence of str, optional
        Labels of the settings whose models are pruned; all unless given.
    """

    rate: float | None = None
    rates: Sequence[float] = RATES
    strategy: str = "quality-loss"
    accept: str = "quality"
    margin: float | None = None
    variants: Sequence[str] = ("line-search", "refit", "distil")
    iterations: int | None = None
    of: Sequence[str] | None = None

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


OWN = "own"  # a peer's model that predicts for itself


@dataclass(frozen=True)
class _Trained:
    """The models of a run, "model" and perhaps "pruned".

    Parameters
    ----------
    models : dict of str to Ensemble
    notes : dict of str to dict
        Of each, the CPU and wall-clock seconds that it took, and the library that made it, if that is a peer's.
    own : OtherModel, optional
        The peer's model.
    """

    models: dict[str, Ensemble]
    notes: dict[str, Result]
    own: OtherModel | None = None

    @property
    def scorers(self) -> dict[str, Ensemble | OtherModel]:
        """What is timed: our models, and the peer's own."""
        return {**self.models, **({} if self.own is None else {OWN: self.own})}


@dataclass(frozen=True)
class SweepStudy(Study):
    """Settings of learners compared on every fold with every seed.

    Where a setting has points to try, all are a search: it takes the first seed, and then the best of each is trained
    again with every seed.

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
        Most trees of any model, also where a setting allows more.
    search_only : bool, default False
        Whether to end with the search, and leave the final runs, which are timed, to another call.
    chosen : mapping, optional
        By fold and label, what a search found; `runs` fills it in.
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
    search_only: bool = False
    chosen: Mapping[tuple[int, str], Setting] | None = None

    def __post_init__(self) -> None:
        if not (self.settings and self.seeds and self.measures and self.folds):
            raise RankwoodError("a sweep needs a configuration, a fold, a seed and a measure at least")
        labels = [setting.label for setting in self.settings]
        unknown = [name for name in (self.pruning and self.pruning.of) or () if name not in labels]
        if unknown:
            raise RankwoodError(f"prune.of: no configuration is called {unknown[0]!r}: there are {', '.join(labels)}")
        if self.search_only and not self.searches:
            raise RankwoodError("no configuration has a search, which is all that search_only does")
        if any(setting.learner in PEERS for setting in self.settings) and self.watched_ranks is None:
            raise RankwoodError(
                f"learners of other libraries watch nDCG@k on validation data, not {self.measures[0]}: let the first "
                "of measures be nDCG@10, for instance"
            )

    @property
    def searches(self) -> bool:
        """Whether there is something to choose on validation data."""
        return any(setting.points for setting in self.settings)

    @property
    def watched_ranks(self) -> int | None:
        """The k of nDCG@k, if that is what is watched."""
        measure = parse_measure(self.measures[0])
        return measure.cutoff if str(measure) == f"nDCG@{measure.cutoff}" else None

    def prunes(self, setting: Setting) -> bool:
        """Whether the models of a setting are pruned."""
        return self.pruning is not None and (self.pruning.of is None or setting.label in self.pruning.of)

    def quick(self) -> SweepStudy:
        """Return a first try: two folds, one seed, few trees, two points of a search, and less data if synthetic."""
        source: Any = self.source
        if isinstance(source, SyntheticFolds):
            shape = {"n_queries": 100, "docs_per_query": 20, "n_features": 20}
            source = replace(source, **{name: min(most, getattr(source, name)) for name, most in shape.items()})
        return replace(
            self,
            source=source,
            folds=self.folds[:2],
            seeds=self.seeds[:1],
            settings=[replace(setting, points=setting.points[:QUICK_POINTS]) for setting in self.settings],
            n_trees_at_most=min(QUICK_TREES, self.n_trees_at_most or QUICK_TREES),
        )

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
            "prune": self.pruning.as_config() if self.pruning is not None and self.prunes(setting) else None,
        }

    def timing(self, training: Config) -> Config:
        """Return the run that times the models of a training."""
        return {**training, "kind": TIMING}

    def searching(self, fold: int, candidate: Setting) -> Config:
        """Return the run that looks how good a candidate is on validation data."""
        looked_at = {**self.training(fold, candidate, self.seeds[0]), "kind": SEARCHING, "measures": [self.measures[0]]}
        del looked_at["prune"]
        return looked_at

    def final(self, fold: int, candidate: Setting, seed: int) -> Config:
        """Return the run that does everything with what a search chose."""
        return {**self.training(fold, candidate, seed), "kind": FINAL, "speed": self.speed}

    def side_by_side(self) -> list[Config]:
        """Trainings, in the order of folds, settings and seeds; or those of a search."""
        if self.searches:
            found = itertools.product(self.folds, (setting for setting in self.settings if setting.points))
            return [self.searching(fold, candidate) for fold, setting in found for candidate in setting.candidates]
        runs = itertools.product(self.folds, self.settings, self.seeds)
        return [self.training(*run) for run in runs]

    def alone(self) -> list[Config]:
        """Timings of the trained and pruned models; or, once a search is done, the final runs."""
        if not self.searches:
            return [self.timing(training) for training in self.side_by_side() if self.speed]
        if self.chosen is None:
            return []
        runs = itertools.product(self.folds, self.settings, self.seeds)
        return [self.final(fold, self.chosen[fold, setting.label], seed) for fold, setting, seed in runs]

    def runs(self, table: RunTable, *, n_workers: int = 1, client: Any = None, on_run: OnRun | None = None) -> Runs:
        """Do the runs that the table does not have yet; a search comes first, then what follows from it."""
        found = super().runs(table, n_workers=n_workers, client=client, on_run=on_run)
        if not self.searches or self.search_only or self.chosen is not None:
            return found
        study = replace(self, chosen=SweepResults(self, found).chosen)
        return study.runs(table, n_workers=n_workers, client=client, on_run=on_run)

    def _parameters(self, setting: Setting) -> dict[str, Any]:
        """The parameters of a setting, with no more trees than are allowed."""
        found, most = dict(setting.parameters), self.n_trees_at_most
        if most is not None:
            peer = PEERS.get(setting.learner)
            name, default = ("n_trees", learner_class(setting.learner).n_trees) if peer is None else peer.trees
            found[name] = min(found.get(name, default), most)
            if setting.learner == "igbrt":
                found["initial_trees"] = min(found.get("initial_trees", 1000), most)
        return found

    def run(self, config: Config) -> Result:
        """Do one run, of whichever kind."""
        kinds = {TRAINING: self._measured_run, TIMING: self._timed, SEARCHING: self._searched, FINAL: self._final}
        return kinds[config["kind"]](config, self.fold_data(config["fold"]))

    def _measured_run(self, config: Config, fold: FoldData) -> Result:
        """Train one model, prune it, and measure both."""
        trained = self._trained(config, fold)
        return {kind: {**self._measured(model, fold), **trained.notes[kind]} for kind, model in trained.models.items()}

    def _timed(self, config: Config, fold: FoldData) -> Result:
        """Microseconds per document of both models, which are made again unless they were saved."""
        training = {**config, "kind": TRAINING}
        kinds = ["model"] if config["prune"] is None else ["model", "pruned"]
        # Of a peer's model its own predict is timed too, and what was saved is ours.
        saved = None if config["learner"] in PEERS else self.saved_models(training, kinds)
        times, conditions = time_scoring(saved or self._trained(training, fold).scorers, fold.test)
        return {**times, "timing": conditions}

    def _searched(self, config: Config, fold: FoldData) -> Result:
        """Train one model, and measure it on validation data."""
        trained = self._trained({**config, "prune": None}, fold)
        model, measure = trained.models["model"], self.measures[0]
        values = evaluate(model, fold.valid, measure, convention=self.convention, n_threads=self.n_threads)
        return {
            "n_trees": model.n_trees,
            "n_nodes": model.n_nodes,
            "valid": float(values[measure]),
            **trained.notes["model"],
        }

    def _final(self, config: Config, fold: FoldData) -> Result:
        """Train one model, prune it, measure both, and time both."""
        trained = self._trained(config, fold)
        found: Result = {
            kind: {**self._measured(model, fold), **trained.notes[kind]} for kind, model in trained.models.items()
        }
        if trained.own is not None:
            own = np.ravel(trained.own.predict(fold.test.X, 1))
            ours = trained.models["model"].score(fold.test.X, n_threads=self.n_threads)
            found["model"]["own_difference"] = float(np.abs(ours - own).max())
        if not config["speed"]:
            return found
        times, conditions = time_scoring(trained.scorers, fold.test)
        for kind in trained.models:
            found[kind]["us_per_doc"] = times[kind]
        found["model"]["own_us_per_doc"] = times.get(OWN)
        return {**found, "timing": conditions}

    def report(self, runs: Runs) -> Report:
        found = SweepResults(self, runs)
        return search_report(found) if self.search_only else make_report(found)

    def _trained(self, config: Config, fold: FoldData) -> _Trained:
        """Train and prune, and save the models for their timing."""
        train = self._training(config, fold)
        start = time.perf_counter()
        made, seconds = cpu_timed(train)
        notes: dict[str, Result] = {"model": {"seconds": seconds, "wall_seconds": time.perf_counter() - start}}
        own = None
        if config["learner"] in PEERS:
            peer = PEERS[config["learner"]]
            made, own = peer.imported(made, fold.train), peer.own(made)
            notes["model"]["library"] = f"{peer.package} {peer.version}"
        models = {"model": made}
        if config["prune"] is not None:
            start = time.perf_counter()
            models["pruned"], seconds = cpu_timed(lambda: self._pruned(made, config, fold))
            notes["pruned"] = {"seconds": seconds, "wall_seconds": time.perf_counter() - start}
        if config["kind"] == TRAINING:
            self.save_models(config, models)
        return _Trained(models, notes, own)

    def _training(self, config: Config, fold: FoldData) -> Callable[[], Any]:
        """The training of a run; data are in bins, or as a peer has them, before it starts.

        Validation data is measured only where something depends on it, since that takes time.
        """
        if config["learner"] in PEERS:
            task = Task(
                fold.train,
                fold.valid,
                config["parameters"],
                seed=config["seed"],
                n_threads=self.n_threads,
                cutoff=self.watched_ranks or 10,
            )
            return PEERS[config["learner"]].training(task)
        ranker = self._learner(config)
        watched = config["learner"] == "xdart" or getattr(ranker, "early_stopping_rounds", None) is not None
        train: Any = fold.train
        # Forests look at all values, not at bins, and categories have bins of their own.
        if config["learner"] != "forest" and ranker.categorical_features is None:
            n_bins = ranker.max_bins
            make = partial(BinnedDataset.make, fold.train, max_bins=n_bins, n_threads=self.n_threads)
            train = self._kept.get("binned", (config["fold"], n_bins), make)
        return lambda: ranker.fit(train, valid=fold.valid if watched else None).ensemble_

    def _learner(self, config: Config) -> Any:
        """The learner of a run, with all its parameters."""
        from rankwood.training.initial_forest import paper_forest

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
       "prune", "search", "speed"}  # fmt: skip
NO_PARAMETERS = ("learner", "search")  # of a configuration
MOST_POINTS = 1_000_000  # of a space
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


def read_sweep(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    train_queries: int | None = None,
    budget: int | None = None,
    max_trees: int | None = None,
    n_threads: int | None = None,
    search_only: bool = False,
) -> SweepStudy:
    r"""Return the study that a TOML file describes; paths in the file are relative to its folder.

    Parameters
    ----------
    path : str or path
        The file.
    data : str or path, optional
        Folder of the data, in place of the file's.
    train_queries : int, optional
        Queries of a fold to train on; all unless given.
    budget : int, optional
        Points of each search, in place of the file's.
    max_trees : int, optional
        Most trees of any model, where the file allows more.
    n_threads : int, optional
        Threads of each run.
    search_only : bool, default False
        Whether to end with the search, and leave the final runs to another call.

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
        top = Keys(read_toml(path))
        if data is not None:
            top = Keys({**top.entries, "data": {"folder": str(Path(data).absolute())}})
        if budget is not None:
            top = Keys({**top.entries, "search": {**top.table("search").entries, "budget": budget}})
        study = replace(_study(top, path, n_threads), n_trees_at_most=max_trees, search_only=search_only)
        return study if train_queries is None else replace(study, source=FewerQueries(study.source, train_queries))
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
        return open_source(_path(data.text("folder"), folder), n_threads=n_threads)
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
        space = listed[number // per_listed].table("search") if listed else Keys({})
        learner: Any = point.get("learner", top.text("learner"))
        if learner is None:
            raise RankwoodError(f"learner is missing: one of {', '.join([*LEARNERS, *PEERS])}")
        _check_learner(learner)
        parameters = {**common.entries, **{key: value for key, value in point.items() if key not in NO_PARAMETERS}}
        places = {key: common.key(key) for key in common.entries}
        places |= {key: f"configurations.{key}" for key in point} | {key: grid.key(key) for key in grid.entries}
        checked = {key: _checked(learner, key, value, places[key]) for key, value in parameters.items()}
        label = _label(called, point, grid.entries, learner)
        found.append(Setting(label, learner, checked, _points(learner, space, top.table("search"))))
    labels = [setting.label for setting in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise RankwoodError(f"two configurations are called {twice!r}: give each a name of its own")
    _check_peers(found)
    _check_ranges(found)
    return found


def _points(learner: str, space: Keys, search: Keys) -> list[dict[str, Any]]:
    """Return the points of a search: nothing changed at first, then a space's, in a random order if there is a budget.

    A larger budget has the points of a smaller one and more, so that a search can go on.
    """
    search.check({"budget", "seed"})
    budget, seed = search.count("budget"), search.number("seed", 0)
    if not is_whole(seed) or seed < 0:
        raise RankwoodError(f"search.seed must be a whole number, got {seed!r}")
    if not space.entries:
        return []
    values = []
    for name, given in space.entries.items():
        if not isinstance(given, list) or not given or any(given.count(one) > 1 for one in given):
            raise RankwoodError(f"{space.key(name)} must be a list of different values, got {given!r:.80}")
        values.append([_checked(learner, name, value, space.key(name)) for value in given])
    shape = tuple(map(len, values))
    n_points = math.prod(shape)
    if n_points > MOST_POINTS:
        raise RankwoodError(f"{space.where} has {n_points:,} points: give it fewer values, {MOST_POINTS:,} at most")
    order = np.arange(n_points) if budget is None else np.random.default_rng(seed).permutation(n_points)[: budget - 1]
    numbers = np.stack(np.unravel_index(order, shape), axis=1).tolist()
    drawn = [{name: of[at] for name, of, at in zip(space.entries, values, place, strict=True)} for place in numbers]
    return [{}, *drawn]


def _label(name: str | None, point: Mapping[str, Any], grid: Mapping[str, Any], learner: str) -> str:
    """Return the name of a configuration in tables: its own name, and its values of the grid."""
    shown = {key: value for key, value in point.items() if (name is None or key in grid) and key != "search"}
    words = [str(value) if key == "learner" else f"{key} {value}" for key, value in shown.items()]
    return ", ".join(filter(None, [name, *words])) or learner


def _check_learner(name: str) -> None:
    """Refuse a name that is neither of a learner nor of a peer."""
    if isinstance(name, str) and name in PEERS:
        return
    try:
        learner_class(name)
    except RankwoodError as error:
        raise RankwoodError(f"{error}, and of other libraries {', '.join(PEERS)}") from None


def _check_peers(settings: Sequence[Setting]) -> None:
    """Refuse what a peer does not take, of every setting of a peer at its last point, which names all parameters."""
    for setting in settings:
        if setting.learner in PEERS:
            try:
                PEERS[setting.learner].check(setting.candidates[-1].parameters)
            except RankwoodError as error:
                raise RankwoodError(f"{setting.label}: {error}") from None


def _check_ranges(settings: Sequence[Setting]) -> None:
    """Refuse parameters of our learners that are out of range, at every point of every setting."""
    for setting in settings:
        for candidate in setting.candidates if setting.learner not in PEERS else ():
            given = {name: value for name, value in candidate.parameters.items() if name != "initial_trees"}
            try:
                learner_class(setting.learner)(**given).check_parameters()
            except RankwoodError as error:
                raise RankwoodError(f"{setting.label}: {error}") from None


def _checked(learner: str, name: str, value: Any, place: str) -> Any:
    """Return a parameter that the learner takes; None, which TOML has not, is written "none"."""
    if learner in PEERS:
        elsewhere = PEERS[learner].elsewhere
        if name in elsewhere:
            raise RankwoodError(f"{place} is not for a grid of parameters: use {elsewhere[name]}")
        if not isinstance(value, (bool, int, float, str, list)):
            raise RankwoodError(f"{place} must be a number, a text, true, false or a list, got {value!r:.80}")
        return value
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
    keys.check({"rate", "rates", "strategy", "accept", "margin", "variants", "iterations", "of"})
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
        "of": keys.texts("of"),
    }
    if given["rate"] is not None and (given["accept"] is not None or given["margin"] is not None):
        raise RankwoodError("prune.accept and prune.margin are for prune.rates: prune.rate takes trees out in any case")
    try:
        return Pruning(**{name: value for name, value in given.items() if value is not None})
    except RankwoodError as error:
        raise RankwoodError(f"prune: {error}") from None
