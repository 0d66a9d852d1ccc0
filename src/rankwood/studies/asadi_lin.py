"""Efficient trees (Asadi & Lin 2013): LambdaMART with cost-sensitive growth (lambda) or pruning while boosting (alpha).

A training run gives the topology and quality of one model. A latency run times its scoring and is kept apart, under
the name of a series, so that all times can be taken again without training anything again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.engines.bench import bench
from rankwood.engines.registry import get_engine
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluate import evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, wilcoxon_test
from rankwood.experiments.report import Report
from rankwood.experiments.sources import FoldData
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result, run_key
from rankwood.visits import usage

CUTOFFS = (1, 3, 5, 10, 20)
MEASURES = tuple(f"nDCG@{k}" for k in CUTOFFS)
SHOWN = "nDCG@10"  # where there is room for one
WATCHED = "nDCG"  # of whole lists: steadier than the top alone, so it says more about when to stop
SIGNIFICANT = 0.05
LAMBDAS = (0.4, 0.8, 0.95)
ALPHAS = (0.05, 0.1, 0.2, 0.4, 0.6)
BEST, EQUAL = "best", "equal"  # the size that validation data chooses, or the same for all
IFELSE, AUTO = "ifelse", "auto"
IN_WORDS = {IFELSE: "the generated C", AUTO: "our engine"}
# Documents per timed call. Code scores one by one, and calls that take less than a slice of the scheduler's time have a
# median that other work on the machine hardly shows in; our engine wants blocks.
BATCH = {IFELSE: 100, AUTO: 1000}
TIMED_ROWS = 20_000
TOPOLOGY = ("depth", "trees", "path", "nodes", "nodes_per_tree", "splits_per_doc", "features_touched")


@dataclass(frozen=True)
class Setting:
    """A row of the paper's table 1: the plain learner, or one of the two ways at some value."""

    way: str  # baseline, lambda or alpha
    value: float = 0.0

    @property
    def name(self) -> str:
        """
        >>> Setting("alpha", 0.05).name
        'alpha 0.05'
        """
        return self.way if self.way == "baseline" else f"{self.way} {self.value:g}"

    @property
    def parameters(self) -> dict[str, float]:
        """What the learner is told."""
        parameter = {"lambda": "depth_relaxation", "alpha": "balance"}.get(self.way)
        return {} if parameter is None else {parameter: self.value}


BASELINE = Setting("baseline")


@dataclass(frozen=True)
class AsadiLinStudy(Study):
    """Every setting on every fold, several times each, with the paper's parameters.

    n_trees    most trees of a model, which stops early on validation data
    patience   trees without improvement before it does; models of so many trees are compared too
    gain       what splits are chosen by: "variance" is the paper's equation 2, "newton" what LambdaMART uses here else
    timing     name of the series of latency measurements: with another name all are taken again
    models     folder that keeps trained models, so that timing them needs no training; none are kept unless given
    """

    name = "asadi-lin"

    n_seeds: int = 1
    n_trees: int = 1500
    n_leaves: int = 70
    learning_rate: float = 0.05
    gain: str = "variance"
    patience: int = 200
    lambdas: Sequence[float] = LAMBDAS
    alphas: Sequence[float] = ALPHAS
    timing: str = "1"
    models: Path | None = None

    def __post_init__(self) -> None:
        if min(self.n_seeds, self.n_trees, self.patience) < 1 or self.n_leaves < 2:
            raise RankwoodError("a study needs at least one seed, one tree, two leaves and patience for one tree")
        if not all(0.0 < value <= 1.0 for value in (*self.lambdas, *self.alphas)):
            raise RankwoodError(f"lambda and alpha are above 0 and at most 1, got {[*self.lambdas, *self.alphas]}")

    @property
    def settings(self) -> list[Setting]:
        """Rows of the table, the baseline first."""
        ways = (("lambda", self.lambdas), ("alpha", self.alphas))
        return [BASELINE, *(Setting(way, float(value)) for way, values in ways for value in values)]

    @property
    def equal_trees(self) -> int:
        """A size that every training reaches."""
        return min(self.patience, self.n_trees)

    def training_configs(self) -> list[Config]:
        """Trainings, in an order in which those that share data follow each other."""
        found: list[Config] = []
        for fold in self.folds:
            same = {"study": self.name, "kind": "training", **self.source.identify(fold)}
            for seed in range(self.n_seeds):
                for setting in self.settings:
                    found.append({**same, "seed": seed, "setting": setting.name, "parameters": self._given(setting)})
        return found

    def latency_configs(self) -> list[Config]:
        """Timings: of every chosen model, and of those of equal size with the first seed."""
        found: list[Config] = []
        for training in self.training_configs():
            for of in (BEST, EQUAL) if training["seed"] == 0 else (BEST,):
                found.append({**training, "kind": "latency", "of": of, "timing": self.timing, "batch": BATCH})
        return found

    def configs(self) -> list[Config]:
        """All runs. Timings come last, and want a machine that does nothing else."""
        return [*self.training_configs(), *self.latency_configs()]

    def side_by_side(self) -> list[Config]:
        """Trainings; timings are done one by one."""
        return self.training_configs()

    def report(self, runs: Runs) -> Report:
        from rankwood.studies.asadi_lin_report import make_report

        return make_report(AsadiLinResults(self, runs))

    def run(self, config: Config) -> Result:
        if config["kind"] == "latency":
            return self._time(config)
        fold = self._fold(config)
        models, facts = self._train(config)
        return {**facts, "models": {of: self._measure(model, fold) for of, model in models.items()}}

    def _given(self, setting: Setting) -> dict[str, Any]:
        return {
            "n_trees": self.n_trees,
            "n_leaves": self.n_leaves,
            "learning_rate": self.learning_rate,
            "gain": self.gain,
            "early_stopping_rounds": self.patience,
            "min_docs_per_leaf": 0.005,
            "query_fraction": 0.3,
            "feature_fraction": 0.3,
            "feature_sampling": "split",
            "measure": WATCHED,
            **setting.parameters,
        }

    def _train(self, config: Config) -> tuple[dict[str, Ensemble], Result]:
        """The models of one training, which are also written to the folder of models, and what is known of it."""
        from rankwood.learners.presets import LambdaMART

        fold, given, kept = self._fold(config), config["parameters"], {}
        size = min(given["early_stopping_rounds"], given["n_trees"])

        def keep_equal(env: Any) -> None:
            if env.iteration + 1 == size:
                kept[EQUAL] = env.model.whole()

        make = partial(BinnedDataset.make, fold.train, n_threads=self.n_threads)
        binned = self._kept.get("binned", config["fold"], make)
        ranker = LambdaMART(**given, random_state=config["seed"], n_jobs=self.n_threads)
        start = time.perf_counter()
        ranker.fit(binned, valid=fold.valid, callbacks=[keep_equal])
        seconds = time.perf_counter() - start
        models = {BEST: ranker.ensemble_, **kept}
        if self.models is not None:
            self.models.mkdir(parents=True, exist_ok=True)
            for of, model in models.items():
                model.save(self._path(config, of))
        return models, {"seconds": seconds, "iterations": len(ranker.evals_result_["valid"][WATCHED])}

    def _path(self, config: Config, of: str) -> Path:
        """Where a model is kept: its name is that of the training."""
        training = {name: value for name, value in config.items() if name not in ("of", "timing", "batch")}
        assert self.models is not None
        return self.models / f"{run_key({**training, 'kind': 'training'})}-{of}.rw"

    def _model(self, config: Config) -> Ensemble:
        """The model that a latency run is about, trained again unless it was kept."""
        if self.models is not None and self._path(config, config["of"]).exists():
            return Ensemble.load(self._path(config, config["of"]))
        return self._train(config)[0][config["of"]]

    def _measure(self, model: Ensemble, fold: FoldData) -> Result:
        """Topology, and values of every query of the test data."""
        found, used = model.topology(), usage(model, fold.test.X, n_threads=self.n_threads)
        nodes = found.n_nodes + found.n_leaves
        test = evaluate(model, fold.test, list(MEASURES), n_threads=self.n_threads)
        return {
            "depth": found.mean_depth,
            "trees": found.n_trees,
            "path": found.path_length,
            "nodes": nodes,  # leaves are nodes too, as in the paper
            "nodes_per_tree": nodes / max(1, found.n_trees),
            "splits_per_doc": used.splits_per_doc,
            "features_touched": used.features_touched_share,
            "test": {measure: values.tolist() for measure, values in test.per_query.items()},
        }

    def _time(self, config: Config) -> Result:
        """Microseconds per document, one thread, with the generated C and with the engine that is chosen by itself."""
        rows, model = self._fold(config).test.X[:TIMED_ROWS], self._model(config)
        obstacle = get_engine(IFELSE).obstacle(model)
        times: Result = {"obstacle": obstacle, "trees": model.n_trees}
        for name in [AUTO] if obstacle else [IFELSE, AUTO]:
            found = bench(model, rows, [name], [min(config["batch"][name], len(rows))], n_threads=1, cold=False)
            if not found.agree:
                raise RankwoodError("; ".join(map(str, found.disagreements)))
            (engine,) = found.engines
            cell, warm = engine.cells[0], engine.cells[0].warm
            times[name] = {"us": warm.us_per_doc, "low": warm.low, "high": warm.high, "batch": cell.batch,
                           "chosen": cell.chosen, "prepare_s": engine.prepare_s}  # fmt: skip
        return times

    def _fold(self, config: Config) -> FoldData:
        fold: FoldData = self._kept.get("data", config["fold"], lambda: self.source.load(config["fold"]))
        return fold


@dataclass(frozen=True)
class Comparison:
    """A setting against the baseline on the test queries of all folds. Above 0: better than the baseline."""

    setting: str
    measure: str
    difference: float
    low: float  # bootstrap, 95 %
    high: float
    p_value: float  # Wilcoxon signed-rank test

    @property
    def star(self) -> str:
        return "*" if self.p_value < SIGNIFICANT else ""


@dataclass(frozen=True)
class Latency:
    """Mean over models of their microseconds per document; half of its 95 % interval when there are enough."""

    us: float
    half: float | None
    speed_up: float  # against the baseline's mean


@dataclass(frozen=True)
class AsadiLinResults:
    """All runs of a study and what follows from them."""

    study: AsadiLinStudy
    runs: Runs

    def select(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """Results of the runs whose configuration has these entries."""
        return [result for config, result in self.runs if all(config.get(n) == v for n, v in wanted.items())]

    def models(self, setting: str, of: str = BEST, fold: int | None = None) -> list[Mapping[str, Any]]:
        """What was measured of the models of a setting, on all folds or one."""
        where = {} if fold is None else {"fold": fold}
        return [result["models"][of] for result in self.select(kind="training", setting=setting, **where)]

    def topology(self, setting: str, of: str = BEST, fold: int | None = None) -> dict[str, float]:
        """Means over folds and seeds of what describes the trees."""
        models = self.models(setting, of, fold)
        return {name: float(np.mean([model[name] for model in models])) for name in TOPOLOGY}

    def ndcg(self, setting: str, measure: str, of: str = BEST, fold: int | None = None) -> list[float]:
        """The mean over test queries, of every run."""
        return [float(np.mean(model["test"][measure])) for model in self.models(setting, of, fold)]

    def values(self, setting: str, measure: str, of: str = BEST) -> FloatArray:
        """Values of the test queries of all folds, mean over seeds."""
        folds = ([m["test"][measure] for m in self.models(setting, of, fold)] for fold in self.study.folds)
        return np.concatenate([np.mean(fold, axis=0) for fold in folds])

    def compare(self, setting: str, measure: str, of: str = BEST) -> Comparison:
        theirs, ours = (self.values(name, measure, of) for name in (BASELINE.name, setting))
        test, interval = wilcoxon_test(theirs, ours), bootstrap_interval(theirs, ours)
        return Comparison(setting, measure, test.mean_difference, interval.low, interval.high, test.p_value)

    def comparisons(self, of: str = BEST) -> list[tuple[Comparison, float]]:
        """All settings and cutoffs against the baseline, each with its p-value after Holm's correction for all."""
        names = [setting.name for setting in self.study.settings if setting != BASELINE]
        found = [self.compare(name, measure, of) for name in names for measure in MEASURES]
        return list(zip(found, holm([one.p_value for one in found]).tolist(), strict=True)) if found else []

    def times(self, setting: str, engine: str, of: str = BEST, fold: int | None = None) -> list[float]:
        """Microseconds per document of every timed model; none when the engine could not be had for all of them."""
        where = {} if fold is None else {"fold": fold}
        found = self.select(kind="latency", setting=setting, of=of, **where)
        return [result[engine]["us"] for result in found] if all(engine in result for result in found) else []

    def latency(self, setting: str, engine: str, of: str = BEST, fold: int | None = None) -> Latency | None:
        ours, theirs = (self.times(name, engine, of, fold) for name in (setting, BASELINE.name))
        if not ours or not theirs:
            return None
        mean, half = interval(ours)
        return Latency(mean, half, float(np.mean(theirs)) / mean)

    @property
    def main_engine(self) -> str:
        """The paper's way to score, the generated C; ours where that could not be timed."""
        return IFELSE if self.times(BASELINE.name, IFELSE) else AUTO

    def chosen_engines(self) -> list[str]:
        """Engines that "auto" took."""
        return sorted({result[AUTO]["chosen"] for result in self.select(kind="latency")})

    def obstacle(self) -> str | None:
        """Why the generated C was not timed, where it was not."""
        return next((result["obstacle"] for result in self.select(kind="latency") if result["obstacle"]), None)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its 95 % interval (Student's t); none below three values, where it would say nothing.

    >>> [round(number, 3) for number in interval([1.0, 2.0, 3.0])]
    [2.0, 2.484]
    >>> interval([1.0, 3.0])
    (2.0, None)
    """
    from scipy.special import stdtrit

    mean, n = float(np.mean(values)), len(values)
    if n < 3:
        return mean, None
    return mean, float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / n**0.5
