"""A study of one's own: a learner with several settings on every fold, and the table of what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import aligned_features, evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, randomisation_test
from rankwood.lab.drawing import Figure, pareto_front
from rankwood.lab.runs import Config, OnRun, Result, RunTable, cross, in_words, run_key
from rankwood.lab.study import FoldData, Report, Runs, Study, SyntheticFolds, Table, p_text, with_spread
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance
from rankwood.pruning.cleaver import RATES, checked_rates, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import PruningSettings, checked_variants
from rankwood.pruning.strategies import Chooser
from rankwood.scoring.timing import BATCH, time_models, warn_if_busy
from rankwood.training.names import learner_class

# A study of one's own: a learner with several settings, on every fold with every seed, pruned afterwards or not.
#
# A training run gives sizes and quality. A timing run scores with what was trained; these are runs of their own,
# because they come last and one by one, when nothing else keeps the machine busy.


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
        X = aligned_features(models[0], fold.test)
        timings = time_models([(model, X) for model in models])
        warn_if_busy(timings)
        times = {kind: timing.us_per_doc for kind, timing in zip(kinds, timings, strict=True)}
        return {**times, "timing": timings[0].conditions | {"busy": any(timing.busy for timing in timings)}}

    def _path(self, config: Config, kind: str) -> Path:
        """Where a model is kept: its name is that of the training."""
        assert self.models is not None
        return self.models / f"{run_key({**config, 'kind': TRAINING})}-{kind}.rw"

    def report(self, runs: Runs) -> Report:
        return make_report(SweepResults(self, runs))

    def _learner(self, config: Config) -> Any:
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


# What came of a sweep: a table of its settings, each against the first, and quality over cost.


SIGNIFICANT = 0.05
LEGEND_AT_MOST = 12  # points with a name each; more are numbered


@dataclass(frozen=True)
class Contrast:
    """A row against the first, query by query over all folds, each query's mean over seeds."""

    difference: float
    interval: tuple[float, float]
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class SweepResults:
    """All runs of a sweep; a row is the number of a setting and "model" or "pruned"."""

    study: SweepStudy
    runs: Runs

    @property
    def rows(self) -> list[tuple[int, str]]:
        kinds = ("model",) if self.study.pruning is None else ("model", "pruned")
        return [(number, kind) for number in range(len(self.study.settings)) for kind in kinds]

    def label(self, row: tuple[int, str]) -> str:
        return self.study.settings[row[0]].label + (", pruned" if row[1] == "pruned" else "")

    def of(self, row: tuple[int, str]) -> list[tuple[int, Mapping[str, Any]]]:
        """(fold, what was measured) of every training; they stand in the order of folds, settings and seeds."""
        n_settings, n_seeds = len(self.study.settings), len(self.study.seeds)
        trainings, timings = ([run for run in self.runs if run[0]["kind"] == kind] for kind in (TRAINING, TIMING))
        found: list[tuple[int, Mapping[str, Any]]] = []
        for place, (config, result) in enumerate(trainings):
            if place // n_seeds % n_settings == row[0]:
                microseconds = timings[place][1][row[1]] if timings else None
                found.append((config["fold"], {**result[row[1]], "us_per_doc": microseconds}))
        return found

    def mean(self, row: tuple[int, str], name: str) -> float | None:
        """Mean over folds and seeds of a number; None when it was not measured."""
        found = [result[name] for _, result in self.of(row)]
        return None if None in found else float(np.mean(found))

    def mean_and_std(self, row: tuple[int, str], measure: str, part: str = "test") -> tuple[float, float | None]:
        """Mean and standard deviation over folds and seeds of the mean over queries."""
        means = [np.nanmean(_array(result[part][measure])) for _, result in self.of(row)]
        return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None

    def values(self, row: tuple[int, str], measure: str) -> FloatArray:
        """Values of the test queries of all folds, each the mean over seeds."""
        folds = [
            np.mean([_array(result["test"][measure]) for fold, result in self.of(row) if fold == number], axis=0)
            for number in self.study.folds
        ]
        return np.concatenate(folds)

    @cached_property
    def contrasts(self) -> dict[tuple[tuple[int, str], str], Contrast]:
        """Every row but the first against the first, by every measure; Holm's correction is over all of them."""
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


def make_report(found: SweepResults) -> Report:
    """The report of a sweep whose runs are all done."""
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
    folds, seeds = (", ".join(map(str, numbers)) for numbers in (study.folds, study.seeds))
    best = max(found.rows, key=lambda row: found.mean_and_std(row, measure, "valid")[0])
    text = (
        f"{len(study.settings)} configurations; folds {folds}; seeds {seeds}. Convention "
        f"{Convention.get(study.convention).describe()}. On validation data {found.label(best)} is best by {measure}"
    )
    if best == found.rows[0]:
        return text + ", the first of all."
    contrast = found.contrasts[best, measure]
    low, high = contrast.interval
    return (
        f"{text}; on test data it differs from {found.label(found.rows[0])} by {contrast.difference:+.4f} (95 % "
        f"interval {low:+.4f} to {high:+.4f}, p {p_text(contrast.p_holm)} after Holm's correction)."
    )


def _main(found: SweepResults) -> Table:
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
    pruned = "" if study.pruning is None else " Of pruned models, seconds are those of the pruning."
    return Table(
        "sweep",
        f"{study.title}: test data, {study.source.name}",
        ["configuration", *study.measures, "trees", "nodes", *speed, "training s"],
        rows,
        "Means over folds and seeds, in brackets the standard deviation between them. + and -: significantly above or "
        f"below the first (randomisation test over queries, Holm's correction, {SIGNIFICANT:.0%}).{timed}{pruned}",
    )


def _mark(contrast: Contrast | None) -> str:
    if contrast is None or contrast.p_holm > SIGNIFICANT:
        return ""
    return " +" if contrast.difference > 0 else " -"


def _contrasts(found: SweepResults) -> Table:
    rows = [
        [found.label(row), measure, f"{c.difference:+.4f}", f"{c.interval[0]:+.4f} to {c.interval[1]:+.4f}",
         p_text(c.p_value), p_text(c.p_holm)]
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
    """The parameters of every configuration, and its measures on validation data."""
    study, rows = found.study, []
    for number, setting in enumerate(study.settings):
        config = study.configs()[number * len(study.seeds)]
        values = [with_spread(*found.mean_and_std((number, "model"), measure, "valid")) for measure in study.measures]
        rows.append([setting.label, setting.learner, in_words(config["parameters"]) or "defaults", *values])
    return Table(
        "configurations",
        f"Configurations, and validation data, {study.source.name}",
        ["configuration", "learner", "parameters", *(f"valid {measure}" for measure in study.measures)],
        rows,
    )


def _figure(found: SweepResults) -> Figure:
    """The first measure over the cost of scoring, and the front of what nothing else surpasses in both."""
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
            _log_axis(axes, costs)
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
    """Whether rows are too many to be named in the figure."""
    return len(found.rows) > LEGEND_AT_MOST


def _log_axis(axes: Any, values: list[float]) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(min(values) / 1.3, max(values) * 1.3)


def _fact(found: SweepResults, row: tuple[int, str]) -> dict[str, Any]:
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
    known = values[~np.isnan(values)]
    interval = bootstrap_interval(np.zeros(len(known)), known)
    return interval.low, interval.high


def _array(values: Any) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
