"""A study of one's own: a learner with several settings, on every fold with every seed, pruned afterwards or not.

A training run gives sizes and quality. A timing run scores with what was trained; these are runs of their own, because
they come last and one by one, when nothing else keeps the machine busy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluate import aligned_features, evaluate
from rankwood.experiments.execute import OnRun
from rankwood.experiments.grid import cross
from rankwood.experiments.report import Report
from rankwood.experiments.sources import FoldData, SyntheticFolds
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result, RunTable, run_key
from rankwood.learners.names import learner_class
from rankwood.pruning.accept import Acceptance
from rankwood.pruning.cleaver import RATES, checked_rates, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import checked_variants
from rankwood.pruning.speed import seconds_in_turn
from rankwood.pruning.strategies import Chooser

QUICK_TREES = 20
TRAINING, TIMING = "training", "timing"


@dataclass(frozen=True)
class Setting:
    """One configuration: what it is called, the learner's name, and parameters. igbrt also takes initial_trees."""

    label: str
    learner: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Pruning:
    """What CLEaVER does to every trained model.

    rate     the share of trees that goes, whatever it costs; None: the smallest model that `accept` lets pass, of those
             at `rates`
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
        how = {"strategy": self.strategy, "variants": list(self.variants), "iterations": self.iterations}
        if self.rate is not None:
            return {**how, "rate": self.rate}
        return {**how, "rates": list(self.rates), "accept": self.accept, "margin": self.margin}


@dataclass(frozen=True)
class SweepStudy(Study):
    """Settings to compare; the first is what the others are compared with.

    seeds       of the learner, and of the pruning strategy "random"
    speed       whether to measure microseconds per document
    n_trees_at_most    for a first try: learners stop there
    models      folder that keeps models until they are timed; `runs` takes one beside its table unless given
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
    models: Path | None = None

    def __post_init__(self) -> None:
        if not (self.settings and self.seeds and self.measures and self.folds):
            raise RankwoodError("a sweep needs a configuration, a fold, a seed and a measure at least")

    def quick(self) -> SweepStudy:
        """A first try of the same settings: two folds, one seed, few trees, and less data where it is synthetic."""
        source: Any = self.source
        if isinstance(source, SyntheticFolds):
            shape = {"n_queries": 100, "docs_per_query": 20, "n_features": 20}
            source = replace(source, **{name: min(most, getattr(source, name)) for name, most in shape.items()})
        return replace(self, source=source, folds=self.folds[:2], seeds=self.seeds[:1], n_trees_at_most=QUICK_TREES)

    def configs(self) -> list[Config]:
        """All runs. Timings come last, and want a machine that does nothing else."""
        trainings = self.training_configs()
        return [*trainings, *({**config, "kind": TIMING} for config in trainings if self.speed)]

    def training_configs(self) -> list[Config]:
        """Trainings, in the order of folds, settings and seeds."""
        known = {fold: self.source.identify(fold) for fold in self.folds}
        settings = [{"learner": one.learner, "parameters": self._parameters(one)} for one in self.settings]
        pruning = None if self.pruning is None else self.pruning.as_config()
        same = {"measures": list(self.measures), "convention": self.convention, "prune": pruning}
        return [
            {"study": self.name, "kind": TRAINING, **known[fold], **setting, "seed": seed, **same}
            for fold, setting, seed in cross(settings, self.folds, self.seeds)
        ]

    def _parameters(self, setting: Setting) -> dict[str, Any]:
        """Those given; in a first try with fewer trees."""
        found = dict(setting.parameters)
        if self.n_trees_at_most is not None:
            default = learner_class(setting.learner).n_trees
            found["n_trees"] = min(found.get("n_trees", default), self.n_trees_at_most)
            if setting.learner == "igbrt":
                found["initial_trees"] = min(found.get("initial_trees", 1000), self.n_trees_at_most)
        return found

    def side_by_side(self) -> list[Config]:
        """Trainings; timings are done one by one."""
        return self.training_configs()

    def runs(self, table: RunTable, *, n_workers: int = 1, on_run: OnRun | None = None) -> Runs:
        """Do the runs that the table does not have yet, with models to time in a folder beside it."""
        if self.speed and self.models is None:
            keeping = replace(self, models=table.path.parent / "models")
            return keeping.runs(table, n_workers=n_workers, on_run=on_run)
        return super().runs(table, n_workers=n_workers, on_run=on_run)

    def run(self, config: Config) -> Result:
        """Train one model and measure it; prune it and measure again. Or time both."""
        fold = self._kept.get("data", config["fold"], lambda: self.source.load(config["fold"]))
        if config["kind"] == TIMING:
            return self._timed(config, fold)
        models, seconds = self._trained(config, fold)
        return {kind: {**self._measured(model, fold), "seconds": seconds[kind]} for kind, model in models.items()}

    def _trained(self, config: Config, fold: FoldData) -> tuple[dict[str, Ensemble], dict[str, float]]:
        """The model and what pruning leaves of it, which are also written to the folder of models; seconds of each."""
        ranker = self._learner(config)
        start = time.perf_counter()
        self._fit(ranker, config, fold)
        seconds = {"model": time.perf_counter() - start}
        models: dict[str, Ensemble] = {"model": ranker.ensemble_}
        if config["prune"] is not None:
            start = time.perf_counter()
            models["pruned"] = self._pruned(models["model"], config, fold)
            seconds["pruned"] = time.perf_counter() - start
        if self.models is not None:
            self.models.mkdir(parents=True, exist_ok=True)
            for kind, model in models.items():
                model.save(self._path(config, kind))
        return models, seconds

    def _timed(self, config: Config, fold: FoldData) -> Result:
        """Microseconds per document of the model and of the pruned one, trained again unless they were kept."""
        kinds = ["model"] if config["prune"] is None else ["model", "pruned"]
        if self.models is not None and all(self._path(config, kind).exists() for kind in kinds):
            models = [Ensemble.load(self._path(config, kind)) for kind in kinds]
        else:
            models = list(self._trained(config, fold)[0].values())
        times = seconds_in_turn(models, aligned_features(models[0], fold.test))
        return {kind: 1e6 * seconds for kind, seconds in zip(kinds, times, strict=True)}

    def _path(self, config: Config, kind: str) -> Path:
        """Where a model is kept: its name is that of the training."""
        assert self.models is not None
        return self.models / f"{run_key({**config, 'kind': TRAINING})}-{kind}.rw"

    def report(self, runs: Runs) -> Report:
        from rankwood.experiments.sweep_report import SweepResults, make_report

        return make_report(SweepResults(self, runs))

    def _learner(self, config: Config) -> Any:
        from rankwood.learners.initialized import paper_forest

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

    def _fit(self, ranker: Any, config: Config, fold: FoldData) -> None:
        """Fit; validation data is watched where something depends on it, since watching takes time."""
        watched = config["learner"] == "xdart" or getattr(ranker, "early_stopping_rounds", None) is not None
        train: Any = fold.train
        if config["learner"] != "forest":  # which looks at all values
            n_bins = ranker.max_bins
            make = partial(BinnedDataset.make, fold.train, max_bins=n_bins, n_threads=self.n_threads)
            train = self._kept.get("binned", (config["fold"], n_bins), make)
        ranker.fit(train, valid=fold.valid if watched else None)

    def _pruned(self, model: Ensemble, config: Config, fold: FoldData) -> Ensemble:
        how = dict(config["prune"])
        rate, n_iterations = how.pop("rate", None), how.pop("iterations")
        found = cleaver(
            model,
            fold.train,
            fold.valid,
            **(how if rate is None else {**how, "rates": [rate]}),
            measure=self.measures[0],
            convention=self.convention,
            search=None if n_iterations is None else LineSearch(iterations=n_iterations),
            measure_speed=False,
            seed=config["seed"],
            n_threads=self.n_threads,
        )
        if rate is None:
            return found.ensemble
        return max(found.rows[1:], key=lambda row: row.worth).ensemble

    def _measured(self, model: Ensemble, fold: FoldData) -> Result:
        """Sizes, and values of every query."""
        return {
            "n_trees": model.n_trees,
            "n_nodes": model.n_nodes,
            "valid": self._values(model, fold.valid),
            "test": self._values(model, fold.test),
        }

    def _values(self, model: Ensemble, data: Dataset) -> dict[str, list[float | None]]:
        """None where the convention leaves a query out."""
        values = evaluate(model, data, self.measures, convention=self.convention, n_threads=self.n_threads).per_query
        return {name: [None if math.isnan(value) else value for value in row.tolist()] for name, row in values.items()}
