"""Efficient trees (Asadi & Lin 2013): cost-sensitive growth (lambda) and pruning while boosting (alpha)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, wilcoxon_test
from rankwood.lab.drawing import Figure
from rankwood.lab.runs import Config, Result, run_key
from rankwood.lab.study import FoldData, Report, Runs, Study, Table, p_text
from rankwood.model.ensemble import Ensemble
from rankwood.model.visits import usage
from rankwood.scoring.engines import Precision, get_engine
from rankwood.scoring.timing import bench

# What Asadi & Lin (2013) report.

# Table 1 of the paper, MSLR-WEB10K: d_avg, T_avg, p_avg, n_avg, NDCG@1, 3, 5, 10, 20, latency and half its interval.
PAPER: dict[str, tuple[float, ...]] = {
    "baseline": (17.8, 321.2, 5716, 44115, 0.471, 0.456, 0.461, 0.480, 0.511, 42.2, 1.5),
    "lambda 0.4": (15.7, 327.1, 5178, 45462, 0.471, 0.457, 0.461, 0.480, 0.511, 42.7, 1.5),
    "lambda 0.8": (12.3, 317.8, 3945, 44173, 0.471, 0.457, 0.461, 0.480, 0.511, 41.7, 1.4),
    "lambda 0.95": (11.7, 325.8, 3796, 44421, 0.472, 0.457, 0.461, 0.480, 0.511, 41.6, 1.4),
    "alpha 0.05": (9.1, 395.3, 3592, 30554, 0.471, 0.457, 0.461, 0.479, 0.510, 32.4, 1.1),
    "alpha 0.1": (7.8, 432.2, 3211, 26228, 0.472, 0.456, 0.460, 0.479, 0.510, 28.8, 1.1),
    "alpha 0.2": (6.4, 474.0, 3005, 22372, 0.471, 0.456, 0.460, 0.478, 0.509, 25.7, 0.8),
    "alpha 0.4": (4.8, 567.2, 2706, 17524, 0.469, 0.454, 0.458, 0.476, 0.507, 22.5, 0.7),
    "alpha 0.6": (3.6, 675.8, 2483, 13660, 0.467, 0.452, 0.456, 0.474, 0.505, 18.5, 0.5),
}
# Of NDCG@1, 3, 5, 10, 20: the last so many are significantly below the baseline.
PAPER_STARS = {"alpha 0.05": 1, "alpha 0.1": 1, "alpha 0.2": 2, "alpha 0.4": 5, "alpha 0.6": 5}
PAPER_TOUCHED = 0.956  # share of the features that scoring an instance looks at, plain LambdaMART


# Efficient trees (Asadi & Lin 2013): LambdaMART with cost-sensitive growth (lambda) or pruning while boosting
# (alpha).
#
# A training run gives the topology and quality of one model. A latency run times its scoring and is kept apart, under
# the name of a series, so that all times can be taken again without training anything again.


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
PRECISION: Precision = "double"
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
                found.append({**training, "kind": "latency", "of": of, "timing": self.timing, "batch": BATCH,
                              "precision": PRECISION})  # fmt: skip
        return found

    def configs(self) -> list[Config]:
        """All runs. Timings come last, and want a machine that does nothing else."""
        return [*self.training_configs(), *self.latency_configs()]

    def side_by_side(self) -> list[Config]:
        """Trainings; timings are done one by one."""
        return self.training_configs()

    def report(self, runs: Runs) -> Report:
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
        from rankwood.training.estimators import LambdaMART

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
        training = {name: value for name, value in config.items() if name not in ("of", "timing", "batch", "precision")}
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
            size = min(config["batch"][name], len(rows))
            found = bench(model, rows, [name], [size], precision=config["precision"], n_threads=1, cold=False)
            if not found.agree:
                raise RankwoodError("; ".join(map(str, found.disagreements)))
            (engine,) = found.engines
            cell, warm = engine.cells[0], engine.cells[0].warm
            times[name] = {"us": warm.us_per_doc, "low": warm.low, "high": warm.high, "batch": cell.batch,
                           "chosen": cell.chosen, "prepare_s": engine.prepare_s, "busy": found.busy}  # fmt: skip
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


# Table 1 of Asadi & Lin (2013), with the paper's numbers beside ours.


SHAPE = ("d_avg", "T_avg", "p_avg", "n_avg")


def make_report(found: AsadiLinResults) -> Report:
    """The report of a study whose runs are all done."""
    study = found.study
    best = "Table 1: models of the size that validation data chooses"
    equal = f"Models of {study.equal_trees:,} trees each"
    tables = [
        _rows(found, BEST, "table1", best),
        _rows(found, EQUAL, "equal", equal),
        _beside(found),
        _visits(found),
        _folds(found),
        _tests(found),
        _paper(),
    ]
    compared = [(of, one, adjusted) for of in (BEST, EQUAL) for one, adjusted in found.comparisons(of)]
    return Report(
        title=f"Efficient trees by cost-sensitive growth and pruning while boosting: {study.source.name}",
        summary=_summary(found),
        tables=tables,
        figures=make_figures(found),
        differences=_differences(found),
        facts={
            "folds": list(study.folds),
            "n_seeds": study.n_seeds,
            "timing": study.timing,
            "engines_of_auto": found.chosen_engines(),
            "no_generated_c": found.obstacle(),
            "topology": {s.name: {of: found.topology(s.name, of) for of in (BEST, EQUAL)} for s in study.settings},
            "comparisons": [{"of": of, **dataclasses.asdict(one), "p_holm": p} for of, one, p in compared],
        },
    )


def _summary(found: AsadiLinResults) -> str:
    study, base = found.study, found.topology(BASELINE.name)
    text = (
        f"LambdaMART of up to {study.n_trees:,} trees with {study.n_leaves} leaves, learning rate "
        f"{study.learning_rate:g}, stopped after {study.patience:,} trees without a better validation nDCG; folds "
        f"{', '.join(map(str, study.folds))}, {study.n_seeds} run{'s' * (study.n_seeds > 1)} each. Scoring a document "
        f"with the plain models looks at {base['features_touched']:.1%} of the features (paper: {PAPER_TOUCHED:.1%})."
    )
    best = next((s for s in study.settings if s == Setting("alpha", 0.2)), study.settings[-1])
    engine = found.main_engine
    time, quality = found.latency(best.name, engine, EQUAL), found.compare(best.name, SHOWN, EQUAL)
    if time is not None and best != BASELINE:
        text += (
            f" {best.name} against the baseline, {study.equal_trees:,} trees each: latency "
            f"{_change(1 / time.speed_up)} with {IN_WORDS[engine]}, {SHOWN} {quality.difference:+.4f} "
            f"(p {p_text(quality.p_value)}); the paper's choice is alpha 0.2, with -39.1% and -0.002."
        )
    return text


def _change(ratio: float) -> str:
    """A relative change as the paper prints it.

    >>> _change(0.609), _change(1.012), _change(1.0)
    ('-39.1%', '+1.2%', '+0.0%')
    """
    return f"{100 * (ratio - 1):+.1f}%"


def _time(latency: Latency | None) -> str:
    if latency is None:
        return "–"
    return f"{latency.us:.3g}" + ("" if latency.half is None else f" (±{latency.half:.2g})")


def _rows(found: AsadiLinResults, of: str, name: str, title: str) -> Table:
    """The paper's table 1: topology, quality, latency; a row per setting."""
    rows = []
    for setting in (s.name for s in found.study.settings):
        shape = found.topology(setting, of)
        row = [
            setting,
            f"{shape['depth']:.1f}",
            f"{shape['trees']:,.1f}",
            f"{shape['path']:,.0f}",
            f"{shape['nodes']:,.0f}",
        ]
        for measure in MEASURES:
            star = "" if setting == BASELINE.name else found.compare(setting, measure, of).star
            row.append(f"{np.mean(found.ndcg(setting, measure, of)):.4f}{star}")
        for engine in (IFELSE, AUTO):
            latency = found.latency(setting, engine, of)
            row += [_time(latency), "–" if latency is None else f"{latency.speed_up:.2f}x"]
        rows.append(row)
    engines = ", ".join(found.chosen_engines())
    obstacle = found.obstacle()
    return Table(
        name,
        f"{title}, {found.study.source.name}",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES),
         "C, us/doc", "speed-up", "engine, us/doc", "speed-up"],
        rows,
        "d_avg: mean of the trees' maximum depths; T_avg: trees; p_avg: sum of the depths; n_avg: nodes of the model, "
        f"leaves too. @k: nDCG@k on test data; *: differs from the baseline (Wilcoxon, p < {SIGNIFICANT}, test queries "
        "of all folds, not corrected for the number of comparisons). us/doc: microseconds per document, one thread, "
        f"sums in {PRECISION} precision, "
        f"in batches of {BATCH[IFELSE]:,} with the generated C (ifelse), of {BATCH[AUTO]:,} with the engine that "
        f"rankwood chooses ({engines}); "
        "mean of "
        + ("all models" if of == BEST else "the models of the first seed")
        + " and its 95 % interval over models."
        + (f" No generated C: {obstacle}." if obstacle else ""),
    )  # fmt: skip


def _beside(found: AsadiLinResults) -> Table:
    """Changes against the baseline, ours and the paper's in turn."""
    rows = []
    base, paper_base = found.topology(BASELINE.name), PAPER["baseline"]
    shapes = ("depth", "trees", "path", "nodes")
    for setting in (s.name for s in found.study.settings if s != BASELINE):
        shape, paper, row = found.topology(setting), PAPER.get(setting), [setting]
        for number, name in enumerate(shapes):
            theirs = "–" if paper is None else _change(paper[number] / paper_base[number])
            row.append(f"{_change(shape[name] / base[name])} / {theirs}")
        theirs = "–" if paper is None else f"{paper[7] - paper_base[7]:+.3f}"
        row.append(f"{found.compare(setting, SHOWN).difference:+.4f} / {theirs}")
        theirs = "–" if paper is None else _change(paper[9] / paper_base[9])
        for of in (BEST, EQUAL):
            latency = found.latency(setting, IFELSE, of)
            ours = "–" if latency is None else _change(1 / latency.speed_up)
            row.append(f"{ours} / {theirs}" if of == BEST else ours)
        rows.append(row)
    return Table(
        "beside",
        f"Changes against the baseline: ours on {found.study.source.name} / the paper's on MSLR-WEB10K",
        ["setting", *SHAPE, f"{SHOWN}, difference", "latency, generated C",
         f"the same, {found.study.equal_trees:,} trees"],
        rows,
        "The last column is ours alone: with as many trees in every model, the choice of their number plays no part.",
    )  # fmt: skip


def _visits(found: AsadiLinResults) -> Table:
    """What documents meet of models of equal size, and what their latency goes with."""
    engine = found.main_engine
    names, rows = [setting.name for setting in found.study.settings], []
    shapes = {name: found.topology(name, EQUAL) for name in names}
    times = {name: found.latency(name, engine, EQUAL) for name in names}
    for name in names:
        shape, latency = shapes[name], times[name]
        rows.append([name, f"{shape['path']:,.0f}", f"{shape['splits_per_doc']:,.0f}", f"{shape['nodes']:,.0f}",
                     f"{shape['features_touched']:.1%}", "–" if latency is None else f"{latency.us:.3g}"])  # fmt: skip
    columns = {"p_avg": "path", "splits met": "splits_per_doc", "n_avg": "nodes"}
    us = [latency.us for latency in times.values() if latency is not None]
    goes_with = []
    for title, column in columns.items():
        values = [shapes[name][column] for name in names]
        if len(us) == len(names) and min(np.std(us), np.std(values)) > 0:
            goes_with.append(f"{title} {np.corrcoef(us, values)[0, 1]:.3f}")
    return Table(
        "visits",
        f"What a document meets in {found.study.equal_trees:,} trees, {found.study.source.name}",
        ["setting", "p_avg", "splits met", "n_avg", "features looked at", "us/doc"],
        rows,
        "p_avg: the most splits that a document can meet; splits met: how many it does, on average over test "
        f"documents. us/doc: with {IN_WORDS[engine]}."
        + (f" Correlation with us/doc over settings: {', '.join(goes_with)}." if goes_with else ""),
    )


def _folds(found: AsadiLinResults) -> Table:
    """Every fold on its own, as figures 1 and 2 of the paper show it."""
    rows = []
    for fold in found.study.folds:
        for setting in (s.name for s in found.study.settings):
            shape = found.topology(setting, fold=fold)
            row = [f"{fold}", setting, f"{shape['depth']:.1f}", f"{shape['trees']:,.1f}", f"{shape['nodes']:,.0f}"]
            row += [f"{np.mean(found.ndcg(setting, measure, fold=fold)):.4f}" for measure in MEASURES]
            row += [_time(found.latency(setting, engine, fold=fold)) for engine in (IFELSE, AUTO)]
            rows.append(row)
    return Table(
        "folds",
        f"By fold, {found.study.source.name}",
        ["fold", "setting", "d_avg", "T_avg", "n_avg", *(m.removeprefix("nDCG") for m in MEASURES),
         "C, us/doc", "engine, us/doc"],
        rows,
        "The models of table 1; intervals over seeds where there are three or more.",
    )  # fmt: skip


def _tests(found: AsadiLinResults) -> Table:
    rows, n_worse, n_all = [], 0, 0
    for of, models in ((BEST, "chosen size"), (EQUAL, f"{found.study.equal_trees:,} trees")):
        for one, adjusted in found.comparisons(of):
            n_worse, n_all = n_worse + (one.difference < 0 and adjusted < SIGNIFICANT), n_all + 1
            if one.measure == SHOWN:
                rows.append([one.setting, models, f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}",
                             p_text(one.p_value), p_text(adjusted)])  # fmt: skip
    return Table(
        "tests",
        f"{SHOWN} against the baseline, {found.study.source.name}",
        ["setting", "models", "difference", "95 % interval", "p", "p, Holm"],
        rows,
        "Test queries of all folds, each query's mean over seeds. Interval: bootstrap over queries. p: Wilcoxon "
        "signed-rank test; Holm's correction is for all settings and cutoffs of the kind of models. After "
        f"it, worse at any cutoff: {n_worse} of {n_all}.",
    )


def _paper() -> Table:
    rows = []
    for setting, values in PAPER.items():
        stars = PAPER_STARS.get(setting, 0)
        row = [setting, f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[2]:,.0f}", f"{values[3]:,.0f}"]
        row += [f"{value:.3f}{'*' * (number >= 5 - stars)}" for number, value in enumerate(values[4:9])]
        rows.append([*row, f"{values[9]:.1f} (±{values[10]:.1f})", _change(values[9] / PAPER["baseline"][9])])
    return Table(
        "paper",
        "The paper's table 1: MSLR-WEB10K, five folds, 100 runs each",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES), "us", "change"],
        rows,
        "Latency with generated C; the change is that of the rounded numbers. Compare changes with ours, not the "
        "numbers, unless the data are the same.",
    )


def _differences(found: AsadiLinResults) -> list[str]:
    study = found.study
    return [
        "The data are others than the paper's, the five folds of MSLR-WEB10K, unless --data names them.",
        f"{study.n_seeds} run{'s' * (study.n_seeds > 1)} per fold and setting instead of 100.",
        "The paper does not say when training ends. Here it ends when nDCG of whole lists on validation data has not "
        f"improved for {study.patience:,} trees, or at {study.n_trees:,}, and the model is cut back to its best size. "
        "On small data that size is mostly chance, and with it n_avg and latency; so models of "
        f"{study.equal_trees:,} trees are compared as well.",
        "Samples are of whole queries (30 % per tree) and of features (30 % per split); the paper's minimum of "
        "observations per leaf, 0.5, is read as 0.5 % of the documents.",
        "Trees look at 255 bins of every feature. Of several deepest pairs of leaves the one whose split gained least "
        "is collapsed first; the paper does not say which.",
        "Stars come from one test over the test queries of all folds, with each query's mean over runs; the paper does "
        "not say what its pairs are.",
        f"Latency is the median of calls with {BATCH[IFELSE]:,} test documents each (our engine: {BATCH[AUTO]:,}), as "
        "Python sees it; the paper's is of single instances in a C program. Code is compiled with -O1.",
    ]  # fmt: skip


# Figures of efficient trees: quality against latency, topology by setting, folds (the paper's figures 1 and 2).


def make_figures(found: AsadiLinResults) -> list[Figure]:
    return [_tradeoff(found), _topology(found), _by_fold(found)]


def _groups(settings: Sequence[Setting]) -> list[tuple[str, list[Setting]]]:
    """The settings of either way, the baseline as its zero."""
    ways = [(way, [s for s in settings if s.way == way]) for way in ("lambda", "alpha")]
    return [(way, [BASELINE, *members]) for way, members in ways if members]


COLOURS = {"lambda": "tab:orange", "alpha": "tab:blue", "baseline": "black"}
MARKERS = {"lambda": "s", "alpha": "o", "baseline": "D"}
GREEK = {"lambda": "λ", "alpha": "α"}


def _shades(settings: Sequence[Setting]) -> dict[Setting, Any]:
    """A colour for every setting: black, and for either way one that darkens with the value."""
    from matplotlib import colormaps

    found: dict[Setting, Any] = {BASELINE: "black"}
    for way, colours in (("lambda", "Oranges"), ("alpha", "Blues")):
        members = [setting for setting in settings if setting.way == way]
        found |= zip(members, colormaps[colours](np.linspace(0.4, 0.95, len(members))), strict=True)
    return found


def _label(setting: Setting) -> str:
    return "plain" if setting == BASELINE else f"{GREEK[setting.way]} = {setting.value:g}"


def _tradeoff(found: AsadiLinResults) -> Figure:
    """Quality over latency at equal size and at the chosen one, with intervals."""
    engine = found.main_engine
    panels = ((BEST, "size chosen on validation data"), (EQUAL, f"{found.study.equal_trees:,} trees each"))

    def draw(canvas: Any) -> None:
        axes, shades = canvas.subplots(1, 2), _shades(found.study.settings)
        for axis, (of, title) in zip(axes, panels, strict=True):
            level = float(np.mean(found.values(BASELINE.name, SHOWN, of)))
            for setting in found.study.settings:
                latency, quality = found.latency(setting.name, engine, of), found.compare(setting.name, SHOWN, of)
                if latency is None:
                    continue
                ends = [[quality.difference - quality.low], [quality.high - quality.difference]]
                axis.errorbar(latency.us, level + quality.difference, ends if setting != BASELINE else None,
                              latency.half, fmt=MARKERS[setting.way], color=shades[setting], capsize=2,
                              elinewidth=0.9, markersize=6, label=_label(setting))  # fmt: skip
            axis.axhline(level, color="grey", linewidth=0.8, linestyle="--")
            axis.set(xlabel=f"microseconds per document, {IN_WORDS[engine]}", title=title, ylabel=f"{SHOWN}, test data")
            axis.set_xlim(left=0)
            axis.grid(alpha=0.3)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=9, frameon=False)

    return Figure(
        "tradeoff",
        f"Quality against latency, {found.study.source.name}; λ: cost-sensitive growth, α: pruning while boosting. "
        "Bars across: 95 % interval over models; bars up and down: 95 % interval of the difference from the baseline "
        "(dashed), bootstrap over queries.",
        draw,
        (11.0, 4.6),
    )


def _topology(found: AsadiLinResults) -> Figure:
    """Depth, nodes of a tree, number of trees and latency of a tree over lambda and alpha."""
    engine = found.main_engine

    def latency_per_tree(setting: str) -> float:
        latency = found.latency(setting, engine, EQUAL)
        return float("nan") if latency is None else 1000 * latency.us / found.study.equal_trees

    panels: tuple[tuple[str, Callable[[str], float], int | None], ...] = (
        ("maximum depth of a tree, mean", lambda name: found.topology(name, EQUAL)["depth"], 0),
        ("nodes per tree, with leaves", lambda name: found.topology(name, EQUAL)["nodes_per_tree"], 3),
        ("trees, chosen on validation data", lambda name: found.topology(name)["trees"], 1),
        (f"ns per tree and document, {IN_WORDS[engine]}", latency_per_tree, None),
    )

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(2, 2, sharex=True)
        for axis, (title, value, column) in zip(axes.flat, panels, strict=True):
            for way, settings in _groups(found.study.settings):
                at = [setting.value for setting in settings]
                axis.plot(at, [value(s.name) for s in settings], marker=MARKERS[way], color=COLOURS[way],
                          label=f"{GREEK[way]}, {found.study.source.name}")  # fmt: skip
                if column is not None:
                    known = [(s.value, PAPER[s.name]) for s in settings if s.name in PAPER]
                    theirs = [row[column] / (row[1] if column == 3 else 1) for _, row in known]
                    axis.plot([x for x, _ in known], theirs, ":", marker=MARKERS[way], markersize=4,
                              markerfacecolor="white", color=COLOURS[way], linewidth=1,
                              label=f"{GREEK[way]}, paper (MSLR-WEB10K)")  # fmt: skip
            axis.set_title(title, fontsize=10)
            axis.margins(y=0.08)
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
        for axis in axes[-1]:
            axis.set_xlabel("λ or α (0: plain LambdaMART)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)

    return Figure(
        "topology",
        f"Topology by λ and α, {found.study.source.name}: depth, nodes and time of the first "
        f"{found.study.equal_trees:,} trees, and the number of trees that validation data chooses.",
        draw,
        (9.0, 6.0),
    )


def _by_fold(found: AsadiLinResults) -> Figure:
    """Figures 1 and 2 of the paper: NDCG@3 and latency of every fold."""
    engine = found.main_engine
    groups, folds = _groups(found.study.settings), list(found.study.folds)

    def draw(canvas: Any) -> None:
        shades = _shades(found.study.settings)
        axes = canvas.subplots(2, max(1, len(groups)), sharex=True, sharey="row", squeeze=False)
        for column, (way, settings) in enumerate(groups):
            for number, setting in enumerate(settings):
                at = np.arange(len(folds)) + 0.6 * ((number + 0.5) / len(settings) - 0.5)
                style = {"fmt": MARKERS[setting.way], "color": shades[setting], "markersize": 5, "elinewidth": 0.9,
                         "capsize": 2, "label": _label(setting)}  # fmt: skip
                quality = [interval(found.ndcg(setting.name, "nDCG@3", fold=fold)) for fold in folds]
                latency = [interval(found.times(setting.name, engine, fold=fold)) for fold in folds]
                for axis, points in zip(axes[:, column], (quality, latency), strict=True):
                    means, halves = [mean for mean, _ in points], [half or 0.0 for _, half in points]
                    axis.errorbar(at, means, halves, **style)
            axes[0, column].set_title(
                {"lambda": "(a) cost-sensitive growth", "alpha": "(b) pruning while boosting"}[way]
            )
            axes[0, column].legend(fontsize=8, ncols=6, frameon=False, columnspacing=1.0, handletextpad=0.2,
                                   loc="upper center", bbox_to_anchor=(0.5, -0.02))  # fmt: skip
            axes[1, column].set(xlabel="fold", xticks=range(len(folds)), xticklabels=folds, ylim=(0, None))
        axes[0, 0].set_ylabel("nDCG@3, test data")
        axes[1, 0].set_ylabel(f"us per document,\n{IN_WORDS[engine]}")
        for axis in axes.flat:
            axis.grid(alpha=0.3, axis="y")

    return Figure(
        "by-fold",
        f"By fold, {found.study.source.name}: nDCG@3 and latency of the models of table 1, with 95 % intervals over "
        "seeds where there are three or more (figures 1 and 2 of the paper).",
        draw,
        (11.0, 6.5),
    )
