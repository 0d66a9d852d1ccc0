"""Efficient trees (Asadi & Lin 2013): cost-sensitive growth (lambda) and pruning while boosting (alpha)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.diagnostics import measure_curve
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, wilcoxon_test
from rankwood.lab.drawing import Figure
from rankwood.lab.papers.common import PaperResults, PaperStudy, gradient_parameters
from rankwood.lab.runs import Result
from rankwood.lab.study import (
    FoldData,
    Report,
    Runs,
    Table,
    counted,
    cpu_timed,
    interval_text,
    listed,
    mean_and_half,
    p_text,
    query_values,
)
from rankwood.model.ensemble import Ensemble
from rankwood.model.visits import usage
from rankwood.scoring.engines import IFELSE_ALONE, Precision, get_engine
from rankwood.scoring.timing import bench
from rankwood.training.estimators import LambdaMART

# What is compared: LambdaMART as it is, with cost-sensitive growth, and with pruning while boosting.


CUTOFFS = (1, 3, 5, 10, 20)
MEASURES = tuple(f"nDCG@{k}" for k in CUTOFFS)
SHOWN = "nDCG@10"  # where there is room for one
FIGURE1 = "nDCG@3"  # the paper's figure 1
WATCHED = "nDCG"  # of whole lists: steadier than the top alone, so it says more about when to stop
SIGNIFICANT = 0.05
LAMBDAS = (0.4, 0.8, 0.95)
ALPHAS = (0.05, 0.1, 0.2, 0.4, 0.6)
Size = Literal["best", "equal"]  # the number of trees that validation data chooses, or the same for all models
BEST: Size = "best"
EQUAL: Size = "equal"
SIZES = (BEST, EQUAL)
# Latency as the paper defines it, of one document at a time; then throughput, of batches.
ALONE, IFELSE, AUTO = IFELSE_ALONE.name, "ifelse", "auto"
ENGINES = (ALONE, IFELSE, AUTO)
IN_WORDS = {ALONE: "the generated C, one document at a time", IFELSE: "the generated C", AUTO: "our engine"}
SHORT = {ALONE: "C, one document", IFELSE: "C, batches", AUTO: "engine, batches"}
# Documents per timed call. Generated code scores one by one, and calls shorter than a slice of the scheduler's time
# are seldom interrupted; our engine works on blocks of documents.
BATCH = {ALONE: 100, IFELSE: 100, AUTO: 1000}
PRECISION: Precision = "double"
TIMED_ROWS = 20_000
STEP = 10  # trees between two sizes that are tried
TOPOLOGY = ("depth", "trees", "path", "nodes", "nodes_per_tree", "splits_per_doc", "features_touched")


@dataclass(frozen=True)
class Setting:
    """A row of the paper's table 1: the plain learner, or one of the two ways to efficient trees at some value.

    Examples
    --------
    >>> Setting("alpha", 0.05).name, Setting("lambda", 0.4).parameters
    ('alpha 0.05', {'depth_relaxation': 0.4})
    """

    way: Literal["baseline", "lambda", "alpha"]
    value: float = 0.0

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.way if self.way == "baseline" else f"{self.way} {self.value:g}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the learner besides those that all settings share."""
        parameter = {"lambda": "depth_relaxation", "alpha": "balance"}.get(self.way)
        return {} if parameter is None else {parameter: self.value}


BASELINE = Setting("baseline")


@dataclass(frozen=True)
class Published:
    """A row of the paper's table 1: MSLR-WEB10K, five folds, 100 runs each.

    Parameters
    ----------
    depth, trees, path, nodes : float
        The paper's d_avg, T_avg, p_avg and n_avg.
    ndcg : tuple of float
        NDCG at the cutoffs 1, 3, 5, 10 and 20.
    us, half : float
        Latency in microseconds, and half of its 95 % interval.
    n_worse : int, default 0
        At so many of the cutoffs, the last ones, NDCG is significantly below the baseline.
    """

    depth: float
    trees: float
    path: float
    nodes: float
    ndcg: tuple[float, ...]
    us: float
    half: float
    n_worse: int = 0


PAPER = {
    BASELINE: Published(17.8, 321.2, 5716, 44115, (0.471, 0.456, 0.461, 0.480, 0.511), 42.2, 1.5),
    Setting("lambda", 0.4): Published(15.7, 327.1, 5178, 45462, (0.471, 0.457, 0.461, 0.480, 0.511), 42.7, 1.5),
    Setting("lambda", 0.8): Published(12.3, 317.8, 3945, 44173, (0.471, 0.457, 0.461, 0.480, 0.511), 41.7, 1.4),
    Setting("lambda", 0.95): Published(11.7, 325.8, 3796, 44421, (0.472, 0.457, 0.461, 0.480, 0.511), 41.6, 1.4),
    Setting("alpha", 0.05): Published(9.1, 395.3, 3592, 30554, (0.471, 0.457, 0.461, 0.479, 0.510), 32.4, 1.1, 1),
    Setting("alpha", 0.1): Published(7.8, 432.2, 3211, 26228, (0.472, 0.456, 0.460, 0.479, 0.510), 28.8, 1.1, 1),
    Setting("alpha", 0.2): Published(6.4, 474.0, 3005, 22372, (0.471, 0.456, 0.460, 0.478, 0.509), 25.7, 0.8, 2),
    Setting("alpha", 0.4): Published(4.8, 567.2, 2706, 17524, (0.469, 0.454, 0.458, 0.476, 0.507), 22.5, 0.7, 5),
    Setting("alpha", 0.6): Published(3.6, 675.8, 2483, 13660, (0.467, 0.452, 0.456, 0.474, 0.505), 18.5, 0.5, 5),
}
PAPER_TOUCHED = "95.6 % ±1.6 %"  # share of the features that scoring an instance looks at, plain LambdaMART


# The runs: trainings, which also measure topology and quality, and timings of the models that they saved. A series of
# timings has a name, so that all times can be taken again without training anything again.


@dataclass(frozen=True)
class Growth:
    """Parameters of LambdaMART that all settings share; the defaults are the paper's."""

    n_trees: int
    n_leaves: int
    learning_rate: float
    gain: str
    early_stopping_rounds: int
    normalize: bool
    min_docs_per_leaf: float = 0.005
    query_fraction: float = 0.3
    feature_fraction: float = 0.3
    feature_sampling: str = "split"
    measure: str = WATCHED

    @property
    def equal_trees(self) -> int:
        """A number of trees that every training reaches."""
        return min(self.early_stopping_rounds, self.n_trees)


@dataclass(frozen=True)
class Training:
    """A run: one training, its model of the best size and its first `equal_trees` trees measured."""

    fold: int
    seed: int
    setting: Setting
    growth: Growth


@dataclass(frozen=True)
class TimingRun:
    """A run: microseconds per document of one model of a training, with the generated C and with our engine.

    Parameters
    ----------
    alone, c_batch, engine_batch : int
        Documents per call: of the generated C one by one, of the same as fast as it can, and of our engine.
    """

    training: Training
    size: Size
    series: str
    alone: int = BATCH[ALONE]
    c_batch: int = BATCH[IFELSE]
    engine_batch: int = BATCH[AUTO]
    precision: Precision = PRECISION

    @property
    def fold(self) -> int:
        return self.training.fold


@dataclass(frozen=True)
class Reaching:
    """A run: the fewest first trees of a model that are as good on validation data as the baseline's chosen model.

    Parameters
    ----------
    step : int
        Every multiple of it is tried, and all trees.
    """

    training: Training
    step: int = STEP

    @property
    def fold(self) -> int:
        return self.training.fold


@dataclass(frozen=True)
class AsadiLinStudy(PaperStudy):
    """Every setting on every fold, several times each, with the paper's parameters.

    Parameters
    ----------
    n_seeds : int, default 1
        Trainings of each setting on each fold.
    n_trees : int, default 1500
        Most trees of a model, which stops early on validation data.
    n_leaves : int, default 70
        Most leaves of a tree.
    learning_rate : float, default 0.05
    gain : str, default "variance"
        What splits are chosen by: "variance" is the paper's equation 2, "newton" the default of LambdaMART here.
    patience : int, default 200
        Trees without improvement before training stops. Models of so many trees are compared too.
    lambdas, alphas : sequence of float
        Values of the paper's lambda (`depth_relaxation`) and alpha (`balance`).
    timing : str, default "1"
        Name of the series of timings: under another name all are taken again.
    normalize : bool, default False
        Whether LambdaMART's gradients are scaled and truncated as LightGBM's instead of the papers' plain ones.
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
    normalize: bool = False

    def __post_init__(self) -> None:
        if min(self.n_seeds, self.n_trees, self.patience) < 1 or self.n_leaves < 2:
            raise RankwoodError("a study needs at least one seed, one tree, two leaves and patience for one tree")
        if not all(0.0 < value <= 1.0 for value in (*self.lambdas, *self.alphas)):
            raise RankwoodError(f"lambda and alpha are above 0 and at most 1, got {[*self.lambdas, *self.alphas]}")

    @property
    def settings(self) -> list[Setting]:
        """Rows of the table, the baseline first."""
        lambdas = [Setting("lambda", float(value)) for value in self.lambdas]
        return [BASELINE, *lambdas, *(Setting("alpha", float(value)) for value in self.alphas)]

    @property
    def growth(self) -> Growth:
        """Parameters of LambdaMART that all settings share."""
        return Growth(self.n_trees, self.n_leaves, self.learning_rate, self.gain, self.patience, self.normalize)

    @property
    def equal_trees(self) -> int:
        """A number of trees that every training reaches."""
        return self.growth.equal_trees

    def training(self, fold: int, seed: int, setting: Setting) -> Training:
        """The training of a setting."""
        return Training(fold, seed, setting, self.growth)

    def other_gradients(self, fold: int, seed: int) -> Training:
        """The training of the baseline with LightGBM's gradients, or with plain ones if all others have LightGBM's."""
        return Training(fold, seed, BASELINE, dataclasses.replace(self.growth, normalize=not self.normalize))

    def timing_of(self, training: Training, size: Size) -> TimingRun:
        """The timing of a model."""
        return TimingRun(training, size, self.timing)

    def plan(self) -> list[Training]:
        found = []
        for fold in self.folds:
            for seed in range(self.n_seeds):
                found += [self.training(fold, seed, one) for one in self.settings]
                found.append(self.other_gradients(fold, seed))
        return found

    def timings(self) -> list[TimingRun | Reaching]:
        """Timings of every chosen model and of those of equal size with the first seed; sizes that are as good."""
        trainings = [training for training in self.plan() if training.growth == self.growth]
        timings = [
            self.timing_of(training, size)
            for training in trainings
            for size in SIZES
            if size == BEST or training.seed == 0
        ]
        return [*timings, *map(Reaching, trainings)]

    def report(self, runs: Runs) -> Report:
        return make_report(AsadiLinResults(self, runs))

    def perform(self, run: Training | TimingRun | Reaching) -> Result:
        if isinstance(run, TimingRun):
            return self._time(run)
        if isinstance(run, Reaching):
            return self._reach(run)
        fold = self.fold_data(run.fold)
        models, facts = self._train(run)
        return {**facts, "models": {size: self._measure(model, fold) for size, model in models.items()}}

    def _train(self, run: Training) -> tuple[dict[str, Ensemble], Result]:
        """Train, save the models of both sizes for their timing, and return them with facts about the training."""
        fold = self.fold_data(run.fold)
        models: dict[str, Ensemble] = {}

        def keep_equal(env: Any) -> None:
            if env.iteration + 1 == run.growth.equal_trees:
                models[EQUAL] = env.model.whole()

        binned = self.binned_train(run.fold)
        ranker = LambdaMART(
            **(dataclasses.asdict(run.growth) | gradient_parameters(run.growth.normalize)),
            **run.setting.parameters,
            random_state=run.seed,
            n_jobs=self.n_threads,
        )
        _, seconds = cpu_timed(lambda: ranker.fit(binned, valid=fold.valid, callbacks=[keep_equal]))
        models = {BEST: ranker.ensemble_, **models}
        self.save_models(self.config(run), models)
        return models, {"seconds": seconds, "iterations": len(ranker.evals_result_["valid"][WATCHED])}

    def _measure(self, model: Ensemble, fold: FoldData) -> Result:
        """Topology, and the measures of every query of the test data."""
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

    def _model(self, training: Training, size: Size) -> Ensemble:
        """A model of a training, which is done again unless it was saved."""
        return (self.saved_models(self.config(training), [size]) or self._train(training)[0])[size]

    def _reach(self, run: Reaching) -> Result:
        """Find the fewest trees that are as good as the baseline, and measure them; no model where there are none."""
        fold, one = self.fold_data(run.fold), run.training
        baseline, model = (self._model(each, BEST) for each in (self.training(one.fold, one.seed, BASELINE), one))
        goal = evaluate(baseline, fold.valid, WATCHED, n_threads=self.n_threads)[WATCHED]
        sizes = [*range(run.step, model.n_trees, run.step), model.n_trees]
        curve = measure_curve(model, fold.valid, WATCHED, sizes=sizes, n_threads=self.n_threads)
        enough = np.flatnonzero(curve.values[WATCHED] >= goal)
        return {"model": self._measure(model.select(range(sizes[enough[0]])), fold) if len(enough) else None}

    def _time(self, run: TimingRun) -> Result:
        """Time a model on one thread with every engine."""
        model = self._model(run.training, run.size)
        rows = self.fold_data(run.fold).test.X[:TIMED_ROWS]
        obstacle = get_engine(IFELSE).obstacle(model)
        times: Result = {"obstacle": obstacle, "trees": model.n_trees}
        for name, batch in (ALONE, run.alone), (IFELSE, run.c_batch), (AUTO, run.engine_batch):
            if name != AUTO and obstacle:
                continue
            size, engine_of = min(batch, len(rows)), IFELSE_ALONE if name == ALONE else name
            found = bench(model, rows, [engine_of], [size], precision=run.precision, n_threads=1, cold=False)
            if not found.agree:
                raise RankwoodError("; ".join(map(str, found.disagreements)))
            (engine,) = found.engines
            cell, warm = engine.cells[0], engine.cells[0].warm
            times[name] = {"us": warm.us_per_doc, "low": warm.low, "high": warm.high, "batch": cell.batch,
                           "chosen": cell.chosen, "prepare_s": engine.prepare_s, "busy": found.busy}  # fmt: skip
        return times


# What follows from the runs.


@dataclass(frozen=True)
class Comparison:
    """A setting against the baseline on test queries; above 0 it is better than the baseline."""

    setting: Setting
    measure: str
    difference: float
    low: float  # bootstrap, 95 %
    high: float
    p_value: float  # Wilcoxon signed-rank test

    @classmethod
    def of(cls, setting: Setting, measure: str, theirs: FloatArray, ours: FloatArray) -> Comparison:
        """Values of the same queries, the baseline's first, compared."""
        test, interval = wilcoxon_test(theirs, ours), bootstrap_interval(theirs, ours)
        return cls(setting, measure, test.mean_difference, interval.low, interval.high, test.p_value)

    @property
    def star(self) -> str:
        """A star when the difference is significant."""
        return "*" if self.p_value < SIGNIFICANT else ""

    def as_dict(self) -> dict[str, Any]:
        """All fields ready for JSON, the setting by its name."""
        return {**dataclasses.asdict(self), "setting": self.setting.name}


@dataclass(frozen=True)
class Latency:
    """Mean over models of their microseconds per document; half of its 95 % interval when there are enough."""

    us: float
    half: float | None
    speed_up: float  # against the baseline's mean


@dataclass(frozen=True)
class AsadiLinResults(PaperResults):
    """The results of all runs, and what follows from them. Results are of all folds unless one is given."""

    study: AsadiLinStudy

    def trainings(self, setting: Setting, fold: int | None = None) -> list[Training]:
        """Trainings of a setting, fold after fold."""
        study = self.study
        folds = study.folds if fold is None else [fold]
        return [study.training(one, seed, setting) for one in folds for seed in range(study.n_seeds)]

    def models(self, setting: Setting, size: Size = BEST, fold: int | None = None) -> list[Mapping[str, Any]]:
        """What was measured of the models of a setting."""
        return [self.result(training)["models"][size] for training in self.trainings(setting, fold)]

    def topology(self, setting: Setting, size: Size = BEST, fold: int | None = None) -> dict[str, float]:
        """Means over models of the numbers that describe their trees."""
        models = self.models(setting, size, fold)
        return {name: float(np.mean([model[name] for model in models])) for name in TOPOLOGY}

    def ndcg(self, setting: Setting, measure: str, size: Size = BEST, fold: int | None = None) -> list[float]:
        """The mean over test queries of every model."""
        return [float(np.mean(model["test"][measure])) for model in self.models(setting, size, fold)]

    def values(self, setting: Setting, measure: str, size: Size = BEST, fold: int | None = None) -> FloatArray:
        """Values of the test queries, each the mean over seeds."""
        folds = self.study.folds if fold is None else [fold]
        return query_values([model["test"][measure] for model in self.models(setting, size, one)] for one in folds)

    def compare(self, setting: Setting, measure: str, size: Size = BEST, fold: int | None = None) -> Comparison:
        """A setting against the baseline."""
        theirs, ours = (self.values(one, measure, size, fold) for one in (BASELINE, setting))
        return Comparison.of(setting, measure, theirs, ours)

    def other_gradients(self, measure: str, size: Size = BEST) -> tuple[FloatArray, Comparison]:
        """Values of the test queries with the baseline's other gradients, and these against the baseline's own."""
        study = self.study
        values = query_values(
            [self.result(study.other_gradients(fold, seed))["models"][size]["test"][measure]
             for seed in range(study.n_seeds)]
            for fold in study.folds
        )  # fmt: skip
        return values, Comparison.of(BASELINE, measure, self.values(BASELINE, measure, size), values)

    def features_touched(self, setting: Setting, size: Size = BEST) -> tuple[float, float | None]:
        """Share of the features that scoring a document looks at: mean over models, and half of its 95 % interval."""
        return mean_and_half([model["features_touched"] for model in self.models(setting, size)])

    def comparisons(self, size: Size = BEST) -> list[tuple[Comparison, float]]:
        """All settings and cutoffs against the baseline, each with its p-value after Holm's correction for all."""
        settings = [setting for setting in self.study.settings if setting != BASELINE]
        found = [self.compare(setting, measure, size) for setting in settings for measure in MEASURES]
        return list(zip(found, holm([one.p_value for one in found]).tolist(), strict=True)) if found else []

    def timed(self, setting: Setting, size: Size = BEST, fold: int | None = None) -> list[Mapping[str, Any]]:
        """Timings of a setting's models, at equal size those of the first seed."""
        trainings = [one for one in self.trainings(setting, fold) if size == BEST or one.seed == 0]
        return [self.result(self.study.timing_of(training, size)) for training in trainings]

    def times(self, setting: Setting, engine: str, size: Size = BEST, fold: int | None = None) -> list[float]:
        """Microseconds per document of every timed model; none when the engine could not score one of them."""
        found = self.timed(setting, size, fold)
        return [result[engine]["us"] for result in found] if all(engine in result for result in found) else []

    def latency(self, setting: Setting, engine: str, size: Size = BEST, fold: int | None = None) -> Latency | None:
        """Mean latency of a setting, and its speed-up over the baseline; None where it was not timed."""
        ours, theirs = (self.times(one, engine, size, fold) for one in (setting, BASELINE))
        if not ours or not theirs:
            return None
        mean, half = mean_and_half(ours)
        return Latency(mean, half, float(np.mean(theirs)) / mean)

    @property
    def main_engine(self) -> str:
        """The paper's way to score, the generated C by single documents; our engine where that could not be timed."""
        return ALONE if self.times(BASELINE, ALONE) else AUTO

    def reached(self, setting: Setting, fold: int) -> list[Mapping[str, Any] | None]:
        """What was measured of the first trees that are as good as the baseline, seed after seed."""
        return [self.result(Reaching(training))["model"] for training in self.trainings(setting, fold)]

    def all_timed(self) -> list[Mapping[str, Any]]:
        """Every timing."""
        return [self.result(run) for run in self.study.timings() if isinstance(run, TimingRun)]

    def chosen_engines(self) -> list[str]:
        """Engines that "auto" chose."""
        return sorted({result[AUTO]["chosen"] for result in self.all_timed()})

    def obstacle(self) -> str | None:
        """Why the generated C was not timed; None when it was."""
        return next((result["obstacle"] for result in self.all_timed() if result["obstacle"]), None)


# Table 1 of the paper, its numbers beside ours.


SHAPE = ("d_avg", "T_avg", "p_avg", "n_avg")


def make_report(found: AsadiLinResults) -> Report:
    """Make tables and figures of a study whose runs are all done."""
    study = found.study
    best = "Table 1: models of the size that validation data chooses"
    equal = f"Models of {study.equal_trees:,} trees each"
    tables = [
        _rows(found, BEST, "table1", best),
        _rows(found, EQUAL, "equal", equal),
        _beside(found),
        _visits(found),
        _reached(found),
        _folds(found),
        _tests(found),
        _gradients(found),
        _paper(),
    ]
    compared = [(size, one, adjusted) for size in SIZES for one, adjusted in found.comparisons(size)]
    return Report(
        title=f"Efficient trees by cost-sensitive growth and pruning while boosting: {study.source.name}",
        summary=_summary(found),
        tables=tables,
        figures=[_tradeoff(found), _topology(found), _by_fold(found)],
        differences=_differences(found),
        facts={
            "folds": list(study.folds),
            "n_seeds": study.n_seeds,
            "timing": study.timing,
            "engines_of_auto": found.chosen_engines(),
            "no_generated_c": found.obstacle(),
            "topology": {s.name: {size: found.topology(s, size) for size in SIZES} for s in study.settings},
            "comparisons": [{"of": size, **one.as_dict(), "p_holm": p} for size, one, p in compared],
        },
    )


def _summary(found: AsadiLinResults) -> str:
    """The outcome in a few sentences."""
    study = found.study
    text = (
        f"LambdaMART of up to {study.n_trees:,} trees with {study.n_leaves} leaves, learning rate "
        f"{study.learning_rate:g}, stopped after {study.patience:,} trees without a better validation nDCG; folds "
        f"{listed(study.folds)}, {counted(study.n_seeds, 'run')} each. Scoring a document "
        f"with the plain models looks at {_share(*found.features_touched(BASELINE))} of the features (paper: "
        f"{PAPER_TOUCHED})."
    )
    best = next((s for s in study.settings if s == Setting("alpha", 0.2)), study.settings[-1])
    engine = found.main_engine
    time, quality = found.latency(best, engine, EQUAL), found.compare(best, SHOWN, EQUAL)
    if time is not None and best != BASELINE:
        text += (
            f" {best.name} against the baseline, {study.equal_trees:,} trees each: latency "
            f"{_change(1 / time.speed_up)} with {IN_WORDS[engine]}, {SHOWN} {quality.difference:+.4f} "
            f"(p {p_text(quality.p_value)}); the paper's choice is alpha 0.2, with -39.1% and -0.002."
        )
    return text


def _change(ratio: float) -> str:
    """Return a ratio as the relative change that it is, in percent as the paper prints it.

    Examples
    --------
    >>> _change(0.609), _change(1.012), _change(1.0)
    ('-39.1%', '+1.2%', '+0.0%')
    """
    return f"{100 * (ratio - 1):+.1f}%"


def _share(mean: float, half: float | None) -> str:
    """Return a share with its interval, in percent as the paper prints it.

    Examples
    --------
    >>> _share(0.956, 0.016), _share(0.5, None)
    ('95.6 % ±1.6 %', '50.0 %')
    """
    return f"{mean:.1%}".replace("%", " %") + ("" if half is None else f" ±{100 * half:.1f} %")


def _time(latency: Latency | None) -> str:
    """Microseconds with their interval."""
    if latency is None:
        return "–"
    return f"{latency.us:.3g}" + ("" if latency.half is None else f" (±{latency.half:.2g})")


def _rows(found: AsadiLinResults, size: Size, name: str, title: str) -> Table:
    """The paper's table 1: topology, quality and latency, a row per setting."""
    rows = []
    for setting in found.study.settings:
        shape = found.topology(setting, size)
        row = [
            setting.name,
            f"{shape['depth']:.1f}",
            f"{shape['trees']:,.1f}",
            f"{shape['path']:,.0f}",
            f"{shape['nodes']:,.0f}",
        ]
        for measure in MEASURES:
            star = "" if setting == BASELINE else found.compare(setting, measure, size).star
            row.append(f"{np.mean(found.ndcg(setting, measure, size)):.4f}{star}")
        for engine in ENGINES:
            latency = found.latency(setting, engine, size)
            row += [_time(latency), "–" if latency is None else f"{latency.speed_up:.2f}x"]
        rows.append(row)
    engines = ", ".join(found.chosen_engines())
    obstacle = found.obstacle()
    return Table(
        name,
        f"{title}, {found.study.source.name}",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES),
         *(column for engine in ENGINES for column in (f"{SHORT[engine]}, us", "speed-up"))],
        rows,
        "d_avg: mean of the trees' maximum depths; T_avg: trees; p_avg: sum of the depths; n_avg: nodes of the model, "
        f"leaves too. @k: nDCG@k on test data; *: differs from the baseline (Wilcoxon, p < {SIGNIFICANT}, test queries "
        "of all folds, not corrected for the number of comparisons). us: microseconds per document, one thread, "
        f"sums in {PRECISION} precision. One document: latency as the paper defines it, from a feature vector to its "
        "score, before the next one begins, in the generated C. Batches: documents may overlap, "
        f"{BATCH[IFELSE]:,} per call of the generated C (ifelse), {BATCH[AUTO]:,} of the engine that rankwood chooses "
        f"({engines}); "
        "mean of "
        + ("all models" if size == BEST else "the models of the first seed")
        + " and its 95 % interval over models."
        + (f" No generated C: {obstacle}." if obstacle else ""),
    )  # fmt: skip


def _beside(found: AsadiLinResults) -> Table:
    """Changes against the baseline, ours and the paper's in turn."""
    rows = []
    base, paper_base, shown = found.topology(BASELINE), PAPER[BASELINE], MEASURES.index(SHOWN)
    for setting in (one for one in found.study.settings if one != BASELINE):
        shape, paper, row = found.topology(setting), PAPER.get(setting), [setting.name]
        for name in ("depth", "trees", "path", "nodes"):
            theirs = "–" if paper is None else _change(getattr(paper, name) / getattr(paper_base, name))
            row.append(f"{_change(shape[name] / base[name])} / {theirs}")
        theirs = "–" if paper is None else f"{paper.ndcg[shown] - paper_base.ndcg[shown]:+.3f}"
        row.append(f"{found.compare(setting, SHOWN).difference:+.4f} / {theirs}")
        theirs = "–" if paper is None else _change(paper.us / paper_base.us)
        for size in SIZES:
            latency = found.latency(setting, ALONE, size)
            ours = "–" if latency is None else _change(1 / latency.speed_up)
            row.append(f"{ours} / {theirs}" if size == BEST else ours)
        rows.append(row)
    return Table(
        "beside",
        f"Changes against the baseline: ours on {found.study.source.name} / the paper's on MSLR-WEB10K",
        ["setting", *SHAPE, f"{SHOWN}, difference", "latency, one document",
         f"the same, {found.study.equal_trees:,} trees"],
        rows,
        "The last column is ours alone: with as many trees in every model, the choice of their number plays no part.",
    )  # fmt: skip


def _visits(found: AsadiLinResults) -> Table:
    """Splits that documents meet in models of equal size, and how latency correlates with the size of trees."""
    engine = found.main_engine
    settings, rows = found.study.settings, []
    shapes = {setting: found.topology(setting, EQUAL) for setting in settings}
    times = {setting: found.latency(setting, engine, EQUAL) for setting in settings}
    for setting in settings:
        shape, latency = shapes[setting], times[setting]
        touched = _share(*found.features_touched(setting, EQUAL))
        rows.append([setting.name, f"{shape['path']:,.0f}", f"{shape['splits_per_doc']:,.0f}", f"{shape['nodes']:,.0f}",
                     touched, "–" if latency is None else f"{latency.us:.3g}"])  # fmt: skip
    columns = {"p_avg": "path", "splits met": "splits_per_doc", "n_avg": "nodes"}
    us = [latency.us for latency in times.values() if latency is not None]
    goes_with = []
    for title, column in columns.items():
        values = [shapes[setting][column] for setting in settings]
        if len(us) == len(settings) and min(np.std(us), np.std(values)) > 0:
            goes_with.append(f"{title} {np.corrcoef(us, values)[0, 1]:.3f}")
    return Table(
        "visits",
        f"What a document meets in {found.study.equal_trees:,} trees, {found.study.source.name}",
        ["setting", "p_avg", "splits met", "n_avg", "features looked at", "us/doc"],
        rows,
        "p_avg: the most splits that a document can meet; splits met: how many it does, on average over test "
        "documents; features looked at: the share of all, mean over test documents and then models, with its 95 % "
        f"interval over models where there are three or more. us/doc: with {IN_WORDS[engine]}."
        + (f" Correlation with us/doc over settings: {', '.join(goes_with)}." if goes_with else ""),
    )


def _reached(found: AsadiLinResults) -> Table:
    """What it costs to be as good as the baseline: trees, nodes and splits of the smallest models that are."""
    study, rows = found.study, []
    n_models = len(study.folds) * study.n_seeds
    for setting in study.settings:
        pairs = (zip(found.reached(BASELINE, fold), found.reached(setting, fold), strict=True) for fold in study.folds)
        by_fold = [[(one, other) for one, other in of_fold if one and other] for of_fold in pairs]
        both = [pair for of_fold in by_fold for pair in of_fold]
        row = [setting.name, f"{len(both)} of {n_models}"]
        if not both:
            rows.append([*row, *["–"] * 5])
            continue
        for column in ("trees", "nodes", "splits_per_doc"):
            before, after = (float(np.mean([model[column] for model in side])) for side in zip(*both, strict=True))
            row.append(f"{after:,.0f}" + ("" if setting == BASELINE else f" ({_change(after / before)})"))
        values = [
            query_values([pair[side]["test"][SHOWN] for pair in of_fold] for of_fold in by_fold if of_fold)
            for side in (0, 1)
        ]
        compared = Comparison.of(setting, SHOWN, *values)
        row.append(f"{values[1].mean():.4f}")
        row.append("" if setting == BASELINE else
                   f"{compared.difference:+.4f} ({compared.low:+.4f} to {compared.high:+.4f})")  # fmt: skip
        rows.append(row)
    return Table(
        "reached",
        f"The fewest trees that are as good as the baseline on validation data, {study.source.name}",
        ["setting", "models", "trees", "nodes", "splits met", SHOWN, "difference"],
        rows,
        f"The first trees, in steps of {STEP}, whose {WATCHED} on validation data is at least that of the baseline's "
        "model of table 1; the baseline's row has its own. Models: how many ever get there; the others are left out, "
        f"of the baseline too. {SHOWN} is on test data, each query's mean over seeds; the difference with its 95 % "
        "interval, bootstrap over queries.",
    )


def _folds(found: AsadiLinResults) -> Table:
    """Every fold on its own, as figures 1 and 2 of the paper show it."""
    rows = []
    for fold in found.study.folds:
        for setting in found.study.settings:
            shape = found.topology(setting, fold=fold)
            row = [f"{fold}", setting.name, f"{shape['depth']:.1f}", f"{shape['trees']:,.1f}", f"{shape['nodes']:,.0f}"]
            for measure in MEASURES:
                star = "" if setting == BASELINE else found.compare(setting, measure, fold=fold).star
                row.append(f"{np.mean(found.ndcg(setting, measure, fold=fold)):.4f}{star}")
            row += [_time(found.latency(setting, engine, fold=fold)) for engine in ENGINES]
            rows.append(row)
    return Table(
        "folds",
        f"By fold, {found.study.source.name}",
        ["fold", "setting", "d_avg", "T_avg", "n_avg", *(m.removeprefix("nDCG") for m in MEASURES),
         *(f"{SHORT[engine]}, us" for engine in ENGINES)],
        rows,
        "The models of table 1; intervals over seeds where there are three or more. *: differs from the baseline "
        f"(Wilcoxon, p < {SIGNIFICANT}, the fold's test queries, not corrected for the number of comparisons).",
    )  # fmt: skip


def _tests(found: AsadiLinResults) -> Table:
    """Significance of the differences from the baseline, with and without Holm's correction."""
    rows, n_worse, n_all = [], 0, 0
    for size, models in ((BEST, "chosen size"), (EQUAL, f"{found.study.equal_trees:,} trees")):
        for one, adjusted in found.comparisons(size):
            n_worse, n_all = n_worse + (one.difference < 0 and adjusted < SIGNIFICANT), n_all + 1
            if one.measure == SHOWN:
                rows.append([one.setting.name, models, f"{one.difference:+.4f}", interval_text(one.low, one.high),
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


def _gradients(found: AsadiLinResults) -> Table:
    """The baseline with plain gradients and with LightGBM's."""
    study, rows = found.study, []
    names = {False: "plain, as in the papers", True: "LightGBM's: scaled, truncated at 30"}
    for size, models in ((BEST, "chosen size"), (EQUAL, f"{study.equal_trees:,} trees")):
        values, compared = found.other_gradients(SHOWN, size)
        own = float(np.mean(found.values(BASELINE, SHOWN, size)))
        rows.append([names[study.normalize], models, f"{own:.4f}", "", "", ""])
        rows.append([names[not study.normalize], models, f"{np.mean(values):.4f}", f"{compared.difference:+.4f}",
                     interval_text(compared.low, compared.high), p_text(compared.p_value)])  # fmt: skip
    return Table(
        "gradients",
        f"Gradients of the baseline: {SHOWN} on test data, {study.source.name}",
        ["gradients", "models", SHOWN, "difference", "95 % interval", "p"],
        rows,
        "All other tables are of the first kind. Means over test queries of all folds, each query's mean over seeds. "
        "Interval: bootstrap over queries. p: Wilcoxon signed-rank test.",
    )


def _paper() -> Table:
    """The paper's own table 1."""
    rows = []
    for setting, one in PAPER.items():
        row = [setting.name, f"{one.depth:.1f}", f"{one.trees:.1f}", f"{one.path:,.0f}", f"{one.nodes:,.0f}"]
        starred = len(CUTOFFS) - one.n_worse
        row += [f"{value:.3f}{'*' * (number >= starred)}" for number, value in enumerate(one.ndcg)]
        rows.append([*row, f"{one.us:.1f} (±{one.half:.1f})", _change(one.us / PAPER[BASELINE].us)])
    return Table(
        "paper",
        "The paper's table 1: MSLR-WEB10K, five folds, 100 runs each",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES), "us", "change"],
        rows,
        "Latency with generated C; the change is that of the rounded numbers. Compare changes with ours, not the "
        "numbers, unless the data are the same.",
    )


def _differences(found: AsadiLinResults) -> list[str]:
    """What was done otherwise than in the paper."""
    study = found.study
    return [
        "The data are others than the paper's, the five folds of MSLR-WEB10K, unless --data names them.",
        f"{counted(study.n_seeds, 'run')} per fold and setting instead of 100.",
        "The paper does not say when training ends. Here it ends when nDCG of whole lists on validation data has not "
        f"improved for {study.patience:,} trees, or at {study.n_trees:,}, and the model is cut back to its best size. "
        "On small data that size is mostly chance, and with it n_avg and latency; so models of "
        f"{study.equal_trees:,} trees are compared as well.",
        "Samples are of whole queries (30 % per tree) and of features (30 % per split); the paper's minimum of "
        "observations per leaf, 0.5, is read as 0.5 % of the documents.",
        "Trees look at 255 bins of every feature. Of several deepest pairs of leaves the one whose split gained least "
        "is collapsed first; the paper does not say which.",
        "Stars of table 1 come from one test over the test queries of all folds, with each query's mean over runs, and "
        "those of a fold from its own; the paper does not say what its pairs are.",
        "The interval of the features looked at is over models; the paper does not say what its own is over.",
        "Latency is the lower quartile over calls in which generated C scores "
        f"{BATCH[ALONE]:,} test documents one after the other, the address of each depending on the score before; the "
        "paper's is a mean, and how it was clocked is not said. Code is compiled with -O1.",
        *(["Gradients are scaled and truncated as by LightGBM (--normalize); the paper's are plain."]
          if study.normalize else []),
    ]  # fmt: skip


# Figures: quality against latency, topology by setting, and folds (the paper's figures 1 and 2).


COLOURS = {"lambda": "tab:orange", "alpha": "tab:blue", "baseline": "black"}
MARKERS = {"lambda": "s", "alpha": "o", "baseline": "D"}  # of lines
POINTS = {"lambda": "sPXhp", "alpha": "o^v<>d*8", "baseline": "D"}  # of single settings, in order
GREEK = {"lambda": "λ", "alpha": "α"}


def _groups(settings: Sequence[Setting]) -> list[tuple[str, list[Setting]]]:
    """The settings of either way, the baseline as its zero."""
    ways = [(way, [s for s in settings if s.way == way]) for way in ("lambda", "alpha")]
    return [(way, [BASELINE, *members]) for way, members in ways if members]


def _shades(settings: Sequence[Setting]) -> dict[Setting, Any]:
    """A colour for every setting: black for the baseline, and for either way one that darkens with the value."""
    from matplotlib import colormaps

    found: dict[Setting, Any] = {BASELINE: "black"}
    for way, colours in (("lambda", "Oranges"), ("alpha", "Blues")):
        members = [setting for setting in settings if setting.way == way]
        found |= zip(members, colormaps[colours](np.linspace(0.4, 0.95, len(members))), strict=True)
    return found


def _markers(settings: Sequence[Setting]) -> dict[Setting, str]:
    """A marker for every setting, as shades of one colour are hard to tell apart."""
    found: dict[Setting, str] = {BASELINE: POINTS["baseline"]}
    for way in ("lambda", "alpha"):
        members = [setting for setting in settings if setting.way == way]
        found |= zip(members, itertools.cycle(POINTS[way]), strict=False)
    return found


def _label(setting: Setting) -> str:
    return "plain" if setting == BASELINE else f"{GREEK[setting.way]} = {setting.value:g}"


def _tradeoff(found: AsadiLinResults) -> Figure:
    """Quality over latency, of models of the chosen and of equal size, with intervals."""
    engine = found.main_engine
    panels = ((BEST, "size chosen on validation data"), (EQUAL, f"{found.study.equal_trees:,} trees each"))

    def draw(canvas: Any) -> None:
        axes, shades, markers = canvas.subplots(1, 3), _shades(found.study.settings), _markers(found.study.settings)
        for axis, (size, title) in zip(axes[:2], panels, strict=True):
            level = float(np.mean(found.values(BASELINE, SHOWN, size)))
            for setting in found.study.settings:
                latency, quality = found.latency(setting, engine, size), found.compare(setting, SHOWN, size)
                if latency is None:
                    continue
                ends = [[quality.difference - quality.low], [quality.high - quality.difference]]
                axis.errorbar(latency.us, level + quality.difference, ends if setting != BASELINE else None,
                              latency.half, fmt=markers[setting], color=shades[setting], capsize=2,
                              elinewidth=0.9, markersize=6, label=_label(setting))  # fmt: skip
            axis.axhline(level, color="grey", linewidth=0.8, linestyle="--")
            axis.set(xlabel=f"microseconds per document ({SHORT[engine]})", title=title)
        for setting, one in PAPER.items():
            if setting in shades:
                axes[2].errorbar(one.us, one.ndcg[CUTOFFS.index(10)], None, one.half, fmt=markers[setting],
                                 color=shades[setting], markerfacecolor="white", capsize=2, elinewidth=0.9)  # fmt: skip
        axes[2].axhline(PAPER[BASELINE].ndcg[CUTOFFS.index(10)], color="grey", linewidth=0.8, linestyle="--")
        axes[2].set(xlabel="microseconds per document (C)", title="the paper, MSLR-WEB10K")
        for axis in axes:
            axis.set_xlim(0, 1.05 * axis.dataLim.x1)
            axis.grid(alpha=0.3)
        axes[0].set_ylabel(f"{SHOWN}, test data")
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=9, frameon=False)

    return Figure(
        "tradeoff",
        f"Quality against latency, {found.study.source.name}; λ: cost-sensitive growth, α: pruning while boosting. "
        "Bars across: 95 % interval over models; bars up and down: 95 % interval of the difference from the baseline "
        "(dashed), bootstrap over queries. Right: the paper's table 1.",
        draw,
        (13.0, 4.4),
    )


def _topology(found: AsadiLinResults) -> Figure:
    """Depth, nodes of a tree, number of trees and latency of a tree over lambda and alpha."""
    engine = found.main_engine

    def latency_per_tree(setting: Setting) -> float:
        latency = found.latency(setting, engine, EQUAL)
        return float("nan") if latency is None else 1000 * latency.us / found.study.equal_trees

    panels: tuple[tuple[str, Callable[[Setting], float], Callable[[Published], float] | None], ...] = (
        ("maximum depth of a tree, mean", lambda s: found.topology(s, EQUAL)["depth"], lambda p: p.depth),
        (
            "nodes per tree, with leaves",
            lambda s: found.topology(s, EQUAL)["nodes_per_tree"],
            lambda p: p.nodes / p.trees,
        ),
        ("trees, chosen on validation data", lambda s: found.topology(s)["trees"], lambda p: p.trees),
        (f"ns per tree and document ({SHORT[engine]})", latency_per_tree, None),
    )

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(2, 2, sharex=True)
        for axis, (title, ours, theirs) in zip(axes.flat, panels, strict=True):
            for way, settings in _groups(found.study.settings):
                at = [setting.value for setting in settings]
                axis.plot(at, [ours(setting) for setting in settings], marker=MARKERS[way], color=COLOURS[way],
                          label=f"{GREEK[way]}, {found.study.source.name}")  # fmt: skip
                if theirs is not None:
                    known = [setting for setting in settings if setting in PAPER]
                    at, values = [one.value for one in known], [theirs(PAPER[one]) for one in known]
                    axis.plot(at, values, ":", marker=MARKERS[way], markersize=4, markerfacecolor="white",
                              color=COLOURS[way], linewidth=1, label=f"{GREEK[way]}, paper (MSLR-WEB10K)")  # fmt: skip
            axis.set_title(title, fontsize=10)
            axis.set_ylim(0, 1.08 * axis.dataLim.y1)
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
        shades, markers = _shades(found.study.settings), _markers(found.study.settings)
        axes = canvas.subplots(2, max(1, len(groups)), sharex=True, sharey="row", squeeze=False)
        for column, (way, settings) in enumerate(groups):
            for number, setting in enumerate(settings):
                at = np.arange(len(folds)) + 0.6 * ((number + 0.5) / len(settings) - 0.5)
                style = {"fmt": markers[setting], "color": shades[setting], "markersize": 5, "elinewidth": 0.9,
                         "capsize": 2, "label": _label(setting)}  # fmt: skip
                quality = [mean_and_half(found.ndcg(setting, FIGURE1, fold=fold)) for fold in folds]
                latency = [mean_and_half(found.times(setting, engine, fold=fold)) for fold in folds]
                for axis, points in zip(axes[:, column], (quality, latency), strict=True):
                    means, halves = [mean for mean, _ in points], [half or 0.0 for _, half in points]
                    axis.errorbar(at, means, halves, **style)
                for place, fold, (mean, half) in zip(at, folds, quality, strict=True):
                    if setting != BASELINE and found.compare(setting, FIGURE1, fold=fold).star:
                        axes[0, column].annotate("*", (place, mean + (half or 0.0)), (0, 2), ha="center",
                                                 textcoords="offset points", color=shades[setting])  # fmt: skip
            axes[0, column].set_title(
                {"lambda": "(a) cost-sensitive growth", "alpha": "(b) pruning while boosting"}[way]
            )
            axes[0, column].legend(fontsize=8, ncols=6, frameon=False, columnspacing=1.0, handletextpad=0.2,
                                   loc="upper center", bbox_to_anchor=(0.5, -0.02))  # fmt: skip
            axes[1, column].set(xlabel="fold", xticks=range(len(folds)), xticklabels=folds)
        axes[1, 0].set_ylim(0, 1.08 * max(axis.dataLim.y1 for axis in axes[1]))
        axes[0, 0].margins(y=0.1)  # room for stars
        axes[0, 0].set_ylabel(f"{FIGURE1}, test data")
        axes[1, 0].set_ylabel(f"us per document,\n{SHORT[engine]}")
        for axis in axes.flat:
            axis.grid(alpha=0.3, axis="y")

    return Figure(
        "by-fold",
        f"By fold, {found.study.source.name}: {FIGURE1} and latency of the models of table 1, with 95 % intervals over "
        "seeds where there are three or more (figures 1 and 2 of the paper). *: differs from the baseline on the test "
        f"queries of the fold (Wilcoxon, p < {SIGNIFICANT}).",
        draw,
        (11.0, 6.5),
    )
