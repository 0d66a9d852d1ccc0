"""Sweeps: learners with several settings on every fold and seed, pruned afterwards or not, and their report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, randomisation_test
from rankwood.lab.drawing import Figure, log_axis, pareto_front
from rankwood.lab.runs import Config, Result, cross, in_words
from rankwood.lab.study import (
    FoldData,
    Report,
    Runs,
    Study,
    SyntheticFolds,
    Table,
    cpu_timed,
    interval_text,
    listed,
    p_text,
    query_values,
    time_scoring,
    with_spread,
)
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance
from rankwood.pruning.cleaver import RATES, checked_rates, checked_variants, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.strategies import Chooser
from rankwood.scoring.timing import BATCH
from rankwood.training.names import learner_class

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
    strategy, accept, margin, variants
        As for `cleaver`.
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
        return {**how, "rates": list(self.rates), "accept": self.accept, "margin": self.margin}


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

    def side_by_side(self) -> list[Config]:
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
        """The parameters of a setting, with fewer trees in a first try."""
        found = dict(setting.parameters)
        if self.n_trees_at_most is not None:
            default = learner_class(setting.learner).n_trees
            found["n_trees"] = min(found.get("n_trees", default), self.n_trees_at_most)
            if setting.learner == "igbrt":
                found["initial_trees"] = min(found.get("initial_trees", 1000), self.n_trees_at_most)
        return found

    def alone(self) -> list[Config]:
        """Timings of the trained and pruned models."""
        return [{**config, "kind": TIMING} for config in self.side_by_side() if self.speed]

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


# What follows from the runs: every row, a setting pruned or not, against the first one.


SIGNIFICANT = 0.05
Row = tuple[int, str]  # number of a setting, and "model" or "pruned"


@dataclass(frozen=True)
class Contrast:
    """A row against the first, query by query over all folds, each query's mean over seeds."""

    difference: float
    interval: tuple[float, float]
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class SweepResults:
    """The results of all runs of a sweep, and what follows from them."""

    study: SweepStudy
    runs: Runs

    @property
    def rows(self) -> list[Row]:
        """The rows of the main table."""
        kinds = ("model",) if self.study.pruning is None else ("model", "pruned")
        return [(number, kind) for number in range(len(self.study.settings)) for kind in kinds]

    def label(self, row: Row) -> str:
        """Name of a row in tables."""
        return self.study.settings[row[0]].label + (", pruned" if row[1] == "pruned" else "")

    def of(self, row: Row) -> list[tuple[int, Mapping[str, Any]]]:
        """The fold and what was measured of a row, for every fold and seed."""
        n_settings, n_seeds = len(self.study.settings), len(self.study.seeds)
        trainings, timings = ([run for run in self.runs if run[0]["kind"] == kind] for kind in (TRAINING, TIMING))
        found: list[tuple[int, Mapping[str, Any]]] = []
        for place, (config, result) in enumerate(trainings):  # in the order of folds, settings and seeds
            if place // n_seeds % n_settings == row[0]:
                microseconds = timings[place][1][row[1]] if timings else None
                found.append((config["fold"], {**result[row[1]], "us_per_doc": microseconds}))
        return found

    def mean(self, row: Row, name: str) -> float | None:
        """Mean over folds and seeds of one of the numbers in their results; None when it was not measured."""
        found = [result[name] for _, result in self.of(row)]
        return None if None in found else float(np.mean(found))

    def mean_and_std(self, row: Row, measure: str, part: str = "test") -> tuple[float, float | None]:
        """Mean and standard deviation over folds and seeds of the mean over queries."""
        means = [np.nanmean(_array(result[part][measure])) for _, result in self.of(row)]
        return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None

    def values(self, row: Row, measure: str) -> FloatArray:
        """Values of the test queries of all folds, each the mean over seeds."""
        return query_values(
            [_array(result["test"][measure]) for fold, result in self.of(row) if fold == number]
            for number in self.study.folds
        )

    @cached_property
    def contrasts(self) -> dict[tuple[Row, str], Contrast]:
        """Every other row against the first, by every measure; Holm's correction is for all of them."""
        found = {}
        first, *others = self.rows
        for measure in self.study.measures:
            base = self.values(first, measure)
            for row in others:
                values = self.values(row, measure)
                test, interval = randomisation_test(base, values), bootstrap_interval(base, values)
                found[row, measure] = (test, (interval.low, interval.high))
        adjusted = holm([test.p_value for test, _ in found.values()])
        return {
            key: Contrast(test.mean_difference, interval, test.p_value, float(p))
            for (key, (test, interval)), p in zip(found.items(), adjusted, strict=True)
        }


# The report: a table of the settings, each against the first, and a figure of quality over cost.


LEGEND_AT_MOST = 12  # points with a name each; more are numbered


def make_report(found: SweepResults) -> Report:
    """Make tables and figures of a sweep whose runs are all done."""
    study = found.study
    return Report(
        title=f"Sweep {study.title}: {study.source.name}",
        summary=_summary(found),
        tables=[_main(found), *([_contrasts(found)] if len(found.rows) > 1 else []), _settings(found)],
        figures=[_figure(found)],
        facts={
            "folds": list(study.folds),
            "seeds": list(study.seeds),
            "measures": list(study.measures),
            "convention": study.convention,
            "rows": [_fact(found, row) for row in found.rows],
        },
    )


def _summary(found: SweepResults) -> str:
    study, measure = found.study, found.study.measures[0]
    best = max(found.rows, key=lambda row: found.mean_and_std(row, measure, "valid")[0])
    text = (
        f"{len(study.settings)} configurations; folds {listed(study.folds)}; seeds {listed(study.seeds)}. Convention "
        f"{Convention.get(study.convention).describe()}. On validation data {found.label(best)} is best by {measure}"
    )
    if best == found.rows[0]:
        return text + ", the first of all."
    contrast = found.contrasts[best, measure]
    return (
        f"{text}; on test data it differs from {found.label(found.rows[0])} by {contrast.difference:+.4f} (95 % "
        f"interval {interval_text(*contrast.interval)}, p {p_text(contrast.p_holm)} after Holm's correction)."
    )


def _main(found: SweepResults) -> Table:
    """Quality, size, speed and training time of every row."""
    study, rows = found.study, []
    for number, row in enumerate(found.rows, start=1):
        cells = [f"{number}. {found.label(row)}" if _numbered(found) else found.label(row)]
        for measure in study.measures:
            cells.append(with_spread(*found.mean_and_std(row, measure)) + _mark(found.contrasts.get((row, measure))))
        cells += [f"{found.mean(row, 'n_trees'):,.0f}", f"{found.mean(row, 'n_nodes'):,.0f}"]
        if study.speed:
            cells.append(f"{found.mean(row, 'us_per_doc'):.3f}")
        rows.append([*cells, f"{found.mean(row, 'seconds'):.2f}"])
    speed = ["us per document"] if study.speed else []
    timed = f" us per document: one thread, up to {BATCH:,} documents per call, double precision." if speed else ""
    pruned = "" if study.pruning is None else " Of pruned models, they are those of the pruning."
    return Table(
        "sweep",
        f"{study.title}: test data, {study.source.name}",
        ["configuration", *study.measures, "trees", "nodes", *speed, "training s"],
        rows,
        "Means over folds and seeds, in brackets the standard deviation between them. + and -: significantly above or "
        f"below the first (randomisation test over queries, Holm's correction, {SIGNIFICANT:.0%}).{timed} Training "
        f"seconds are CPU time of all threads together.{pruned}",
    )


def _mark(contrast: Contrast | None) -> str:
    """A plus or a minus where a difference is significant."""
    if contrast is None or contrast.p_holm > SIGNIFICANT:
        return ""
    return " +" if contrast.difference > 0 else " -"


def _contrasts(found: SweepResults) -> Table:
    """Differences from the first row, with intervals and p-values."""
    rows = [
        [found.label(row), measure, f"{c.difference:+.4f}", interval_text(*c.interval), p_text(c.p_value),
         p_text(c.p_holm)]
        for (row, measure), c in found.contrasts.items()
    ]  # fmt: skip
    n_queries = len(found.values(found.rows[0], found.study.measures[0]))
    return Table(
        "significance",
        f"Against {found.label(found.rows[0])} on test data, {found.study.source.name}",
        ["configuration", "measure", "difference", "95 % interval", "p", "p (Holm)"],
        rows,
        f"Fisher's randomisation test and bootstrap on the values of {n_queries:,} test queries, each the mean over "
        "seeds. Holm's correction is for all comparisons of this table.",
    )


def _settings(found: SweepResults) -> Table:
    """Parameters of every configuration, and its measures on validation data."""
    study, rows = found.study, []
    for number, setting in enumerate(study.settings):
        config = study.side_by_side()[number * len(study.seeds)]
        values = [with_spread(*found.mean_and_std((number, "model"), measure, "valid")) for measure in study.measures]
        rows.append([setting.label, setting.learner, in_words(config["parameters"]) or "defaults", *values])
    return Table(
        "configurations",
        f"Configurations, and validation data, {study.source.name}",
        ["configuration", "learner", "parameters", *(f"valid {measure}" for measure in study.measures)],
        rows,
    )


def _figure(found: SweepResults) -> Figure:
    """The first measure over the cost of scoring, with the Pareto front."""
    study, measure = found.study, found.study.measures[0]
    cost, unit = ("us_per_doc", "scoring, us per document") if study.speed else ("n_nodes", "nodes of the model")
    costs = [found.mean(row, cost) or 0.0 for row in found.rows]
    # The mean of all queries, as the interval is of it: folds may differ in size.
    means = [float(np.nanmean(found.values(row, measure))) for row in found.rows]
    numbered = _numbered(found)

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        by_cost = sorted(range(len(costs)), key=lambda i: costs[i])
        for number, (row, x, y) in enumerate(zip(found.rows, costs, means, strict=True), start=1):
            low, high = _interval(found.values(row, measure))
            face = {"markerfacecolor": "white"} if row[1] == "pruned" else {}
            label = None if numbered else found.label(row)
            color = f"C{row[0] % 10}"
            middle, half = (low + high) / 2, (high - low) / 2
            axes.errorbar(x, middle, half, fmt="none", ecolor=color, alpha=0.5, capsize=3, linewidth=1)
            axes.plot(x, y, "o", color=color, label=label, **face)
            if numbered:  # above the axes, on three lines, so that neighbours do not overlap
                height = 1.015 + 0.045 * (by_cost.index(number - 1) % 3)
                where = axes.get_xaxis_transform()
                axes.text(x, height, str(number), color=color, fontsize=8, ha="center", transform=where)
        front = pareto_front(costs, means)
        if len(front) > 1:
            axes.plot([costs[i] for i in front], [means[i] for i in front], color="black", linewidth=0.8, zorder=0,
                      linestyle="--", label="front")  # fmt: skip
        if min(costs) > 0 and max(costs) > 3 * min(costs):
            log_axis(axes, ",.10g")
            axes.set_xlim(min(costs) / 1.3, max(costs) * 1.3)
        axes.set(xlabel=unit, ylabel=f"{measure} on test data")
        axes.set_title(f"{study.title}, {study.source.name}", pad=44 if numbered else None)
        axes.grid(alpha=0.3)
        if not numbered:
            axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)

    numbers = " Numbers are those of the first table." if numbered else ""
    caption = (
        f"{measure}, the mean over all test queries, over the cost of scoring; bars are 95 % bootstrap intervals over "
        f"queries; dashed: the models that no other surpasses in both.{numbers}"
    )
    return Figure("quality-cost", caption, draw, (9.0, 4.5))


def _numbered(found: SweepResults) -> bool:
    """Whether the figure numbers the rows because they are too many to be named."""
    return len(found.rows) > LEGEND_AT_MOST


def _fact(found: SweepResults, row: Row) -> dict[str, Any]:
    """All numbers of a row, for `results.json`."""
    study = found.study
    by_measure = {}
    for measure in study.measures:
        mean, std = found.mean_and_std(row, measure)
        contrast = found.contrasts.get((row, measure))
        by_measure[measure] = {
            "test": mean,
            "std": std,
            "valid": found.mean_and_std(row, measure, "valid")[0],
            "contrast": None if contrast is None else {**contrast.__dict__, "interval": list(contrast.interval)},
        }
    setting = study.settings[row[0]]
    numbers = {name: found.mean(row, name) for name in ("n_trees", "n_nodes", "us_per_doc", "seconds")}
    about = {"configuration": setting.label, "pruned": row[1] == "pruned", "learner": setting.learner}
    return {**about, "parameters": dict(setting.parameters), **numbers, "measures": by_measure}


def _interval(values: FloatArray) -> tuple[float, float]:
    """Bootstrap interval of the mean over the queries that have a value."""
    known = values[~np.isnan(values)]
    interval = bootstrap_interval(np.zeros(len(known)), known)
    return interval.low, interval.high


def _array(values: Any) -> FloatArray:
    """Values from JSON as an array, None as NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
