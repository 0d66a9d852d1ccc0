"""Forests on small samples of queries (Ibrahim & Carman 2014): quality and time by the queries that a tree sees."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.diagnostics import tree_correlation, tree_strength
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import bootstrap_interval, paired_t_test, randomisation_test
from rankwood.lab.drawing import SMOOTHED_FROM, Figure, smooth
from rankwood.lab.papers.common import PaperResults, PaperStudy
from rankwood.lab.runs import Result
from rankwood.lab.study import (
    Report,
    Runs,
    Table,
    cpu_timed,
    interval_text,
    listed,
    p_text,
    query_values,
    with_spread,
)
from rankwood.model.ensemble import Ensemble
from rankwood.training.estimators import RandomForest

# What is compared: how many queries a tree sees.


NDCG, MAP = "nDCG@10", "AP"
MEASURES = (NDCG, MAP)
CONVENTION = "letor"


@dataclass(frozen=True)
class Sample:
    """How many queries a tree sees: a number of them, or with `percent` a share of all.

    Examples
    --------
    >>> Sample.parse("21").of(471), Sample.parse("63%").of(63), Sample.parse("0.5%").of(63)
    (21, 40, 1)
    >>> Sample(63, percent=True).name
    '63%'
    """

    number: float
    percent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", float(self.number))  # 63 and 63.0 are the same sample, and the same run

    @classmethod
    def parse(cls, text: str) -> Sample:
        """Return the sample of a name such as 21 or 63%."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)%|(\d+)", text.strip())
        if match is None or float(match[1] or match[2]) == 0:
            raise RankwoodError(f"a setting is a number of queries (21) or a share of them (63%), got {text!r}")
        return cls(float(match[1] or match[2]), percent=match[1] is not None)

    @property
    def name(self) -> str:
        """Name in tables and on the command line."""
        return f"{self.number:g}%" if self.percent else f"{self.number:.0f}"

    def of(self, n_queries: int) -> int:
        """Return how many of `n_queries` queries that is."""
        count = max(1, round(self.number / 100 * n_queries)) if self.percent else int(self.number)
        if count > n_queries:
            raise RankwoodError(f"a tree cannot see {self.name} queries: there are {n_queries} to learn from")
        return count


BASELINE = Sample(63, percent=True)  # the share of distinct queries in a bootstrap sample
COUNTS = (1, 2, 5, 10, 21, 40, 80, 160, 320)


def default_sweep(n_queries: int) -> list[Sample]:
    """Return samples from a single query up to 63 % of all.

    Examples
    --------
    >>> [sample.name for sample in default_sweep(63)]
    ['1', '2', '5', '10', '21', '63%']
    """
    limit = BASELINE.of(n_queries)
    return [Sample(count) for count in COUNTS if count <= 0.75 * limit] + [BASELINE]


# The runs of the study.


@dataclass(frozen=True)
class Growing:
    """A run: a forest is grown."""

    fold: int
    sample: Sample
    n_trees: int
    criterion: Literal["entropy", "variance"]
    max_features: float | Literal["sqrt"] | None
    seed: int


@dataclass(frozen=True)
class SubsamplingStudy(PaperStudy):
    """Forests with different numbers of queries per tree, on every fold, several times each.

    Parameters
    ----------
    sweep : sequence of Sample
        Numbers of queries per tree, which must include 63 % of all.
    n_seeds : int, default 5
        Runs of each sample on each fold.
    n_trees : int, default 1000
        Trees of a forest.
    criterion : "entropy" or "variance", default "entropy"
        What splits lower.
    max_features : float, "sqrt" or None, default "sqrt"
        Features that are tried at a node; None tries all.
    """

    name = "subsampling"

    sweep: Sequence[Sample]
    n_seeds: int = 5
    n_trees: int = 1000
    criterion: Literal["entropy", "variance"] = "entropy"
    max_features: float | Literal["sqrt"] | None = "sqrt"

    def __post_init__(self) -> None:
        if BASELINE not in self.sweep:
            raise RankwoodError(f"the sweep is compared with {BASELINE.name} of the queries: it must be part of it")
        if len(set(self.sweep)) < len(self.sweep) or len(self.sweep) < 2:
            raise RankwoodError("a sweep needs two different settings at least, each given once")
        if self.n_seeds < 1 or self.n_trees < 1:
            raise RankwoodError("a study needs at least one seed and one tree")

    def growing(self, fold: int, sample: Sample) -> list[Growing]:
        """The runs of a sample on a fold, by seed."""
        same = (fold, sample, self.n_trees, self.criterion, self.max_features)
        return [Growing(*same, seed) for seed in range(self.n_seeds)]

    def plan(self) -> list[Growing]:
        return [run for fold in self.folds for sample in self.sweep for run in self.growing(fold, sample)]

    def report(self, runs: Runs) -> Report:
        return make_report(SubsamplingResults(self, runs))

    def perform(self, run: Growing) -> Result:
        """Grow a forest; measure it on validation and test data, and for the first seed also its single trees."""
        fold = self.fold_data(run.fold)
        n_queries = run.sample.of(fold.train.n_queries)
        forest = RandomForest(
            n_trees=run.n_trees,
            queries_per_tree=n_queries,
            replace=False,
            criterion=run.criterion,
            max_features=run.max_features,
            random_state=run.seed,
            n_jobs=self.n_threads,
        )
        model, seconds = cpu_timed(lambda: forest.fit(fold.train).ensemble_)
        return {
            "n_queries": n_queries,
            "n_train_queries": fold.train.n_queries,
            "seconds": seconds,
            "n_leaves": model.n_leaves,
            "valid": self._per_query(model, fold.valid),
            "test": self._per_query(model, fold.test),
            **(self._trees(model, fold.valid) if run.seed == 0 else {}),
        }

    def _per_query(self, model: Ensemble, data: Dataset) -> dict[str, list[float]]:
        """Values of every query, by measure."""
        values = evaluate(model, data, MEASURES, convention=CONVENTION, n_threads=self.n_threads).per_query
        return {name: row.tolist() for name, row in values.items()}

    def _trees(self, model: Ensemble, data: Dataset) -> Result:
        """How alike the outputs of the trees are, and the measures of single trees."""
        correlation = tree_correlation(model, data, n_threads=self.n_threads).mean
        strength = tree_strength(model, data, MEASURES, convention=CONVENTION, n_threads=self.n_threads)
        return {
            "correlation": None if math.isnan(correlation) else correlation,
            "strength": {name: float(values.mean()) for name, values in strength.items()},
        }


# What follows from the runs.


@dataclass(frozen=True)
class Contrast:
    """A sample against the baseline, query by query over all folds, each query's mean over the runs."""

    measure: str
    difference: float
    interval: tuple[float, float]
    p_randomisation: float
    p_t: float
    n_queries: int


@dataclass(frozen=True)
class SubsamplingResults(PaperResults):
    """The results of all runs, and what follows from them."""

    study: SubsamplingStudy

    def of(self, sample: Sample, fold: int | None = None) -> list[Mapping[str, Any]]:
        """The results of a sample, by seed on one fold, or fold after fold."""
        folds = self.study.folds if fold is None else [fold]
        return [self.result(run) for one in folds for run in self.study.growing(one, sample)]

    def run_means(self, sample: Sample, part: str, measure: str) -> FloatArray:
        """One value per seed: the mean over folds of the mean over queries, as the papers report it."""
        by_fold = [[np.mean(result[part][measure]) for result in self.of(sample, fold)] for fold in self.study.folds]
        means: FloatArray = np.ascontiguousarray(np.transpose(by_fold)).mean(axis=1)
        return means

    def mean_and_std(self, sample: Sample, part: str, measure: str) -> tuple[float, float | None]:
        """Mean and standard deviation over runs; None instead of the latter when there is one run."""
        values = self.run_means(sample, part, measure)
        return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None

    def mean_of(self, sample: Sample, name: str) -> float:
        """Mean over folds and runs of one of the numbers in their results."""
        return float(np.mean([result[name] for result in self.of(sample)]))

    def share(self, sample: Sample) -> float:
        """Share of the training queries that a tree sees."""
        return float(np.mean([result["n_queries"] / result["n_train_queries"] for result in self.of(sample)]))

    def correlation(self, sample: Sample) -> float:
        """Mean correlation between trees; NaN when unknown."""
        found = [result["correlation"] for result in self.of(sample) if result.get("correlation") is not None]
        return float(np.mean(found)) if found else math.nan

    def strength(self, sample: Sample, measure: str) -> float:
        """Mean over trees of the measure that a tree reaches alone."""
        return float(np.mean([result["strength"][measure] for result in self.of(sample) if "strength" in result]))

    def speed_up(self, sample: Sample) -> float:
        """How many times faster than the baseline forests are grown."""
        return self.mean_of(BASELINE, "seconds") / self.mean_of(sample, "seconds")

    @cached_property
    def best(self) -> Sample:
        """The sample with the highest nDCG@10 on validation data."""
        return max(self.study.sweep, key=lambda sample: self.mean_and_std(sample, "valid", NDCG)[0])

    def contrast(self, sample: Sample, measure: str, part: str = "test") -> Contrast:
        """Compare a sample with the baseline, with significance."""
        base, other = (self._query_values(one, part, measure) for one in (BASELINE, sample))
        test = randomisation_test(base, other, n_threads=self.study.n_threads)
        interval = bootstrap_interval(base, other)
        p_t = paired_t_test(base, other).p_value if not np.array_equal(base, other) else 1.0
        return Contrast(measure, test.mean_difference, (interval.low, interval.high), test.p_value, p_t, test.n_queries)

    def _query_values(self, sample: Sample, part: str, measure: str) -> FloatArray:
        """Value of every query of every fold, mean over runs."""
        return query_values([result[part][measure] for result in self.of(sample, fold)] for fold in self.study.folds)


# Tables 2 to 4 and figures 1 to 3 of the paper, its numbers beside ours.


SHOWN = {NDCG: "nDCG@10", MAP: "MAP"}
TOLERANCE = 0.005  # a larger difference from the paper is pointed out


@dataclass(frozen=True)
class Published:
    """The paper's numbers for one data set.

    Parameters
    ----------
    sample : Sample
        The reduced sample that it compares with the baseline.
    speed_up : int
        How many times faster that trains.
    values : dict
        (mean, standard deviation) by part of the data, sample and measure.
    others : dict
        nDCG@10 and MAP of other algorithms on test data (table 4).
    """

    sample: Sample
    speed_up: int
    values: dict[tuple[str, Sample, str], tuple[float, float]]
    others: dict[str, tuple[float, float]]


def _published(queries: int, speed_up: int, numbers: list[float], others: list[float]) -> Published:
    """Return the paper's numbers from lists in the order in which its tables print them.

    Parameters
    ----------
    queries, speed_up : int
        The reduced sample and its speed-up.
    numbers : list of float
        Tables 2 and 3, each the mean and deviation of the reduced and the baseline nDCG, then of both MAPs.
    others : list of float
        Table 4: nDCG@10 of seven algorithms, then their MAP.
    """
    keys = [(p, s, m) for p in ("valid", "test") for m in (NDCG, MAP) for s in (Sample(queries), BASELINE)]
    values = dict(zip(keys, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    names = ("ListNet", "AdaRank-MAP", "AdaRank-NDCG", "RankBoost", "RankSVM-Primal", "RankSVM-Struct", "LambdaMART")
    others_by_name = dict(zip(names, zip(others[:7], others[7:], strict=True), strict=True))
    return Published(Sample(queries), speed_up, values, others_by_name)


PAPER = {
    "OHSUMED": _published(
        1, 29,
        [0.4427, 0.0024, 0.4187, 0.0039, 0.4490, 0.0015, 0.4221, 0.0016,
         0.4443, 0.0022, 0.4317, 0.0033, 0.4473, 0.0009, 0.4221, 0.0013],
        [0.4410, 0.4429, 0.4496, 0.4302, 0.4504, 0.4523, 0.4367,
         0.4457, 0.4487, 0.4498, 0.4411, 0.4446, 0.4478, 0.4173],
    ),
    "MQ2008": _published(
        21, 17,
        [0.2290, 0.0009, 0.2233, 0.0085, 0.4745, 0.0013, 0.4703, 0.0098,
         0.2292, 0.0008, 0.2238, 0.0011, 0.4736, 0.0016, 0.4701, 0.0012],
        [0.2303, 0.2288, 0.2307, 0.2255, 0.2279, 0.2309, 0.2302,
         0.4775, 0.4764, 0.4824, 0.4775, 0.4744, 0.4696, 0.4751],
    ),
    "MQ2007": _published(
        51, 17,
        [0.4453, 0.0016, 0.4353, 0.0005, 0.4619, 0.0011, 0.4539, 0.0006,
         0.4447, 0.0013, 0.4363, 0.0010, 0.4619, 0.0012, 0.4533, 0.0004],
        [0.4440, 0.4335, 0.4369, 0.4464, 0.4436, 0.4439, 0.4484,
         0.4652, 0.4577, 0.4602, 0.4662, 0.4659, 0.4644, 0.4675],
    ),
}  # fmt: skip


def make_report(found: SubsamplingResults) -> Report:
    """Make tables and figures of a study whose runs are all done."""
    study, name = found.study, found.study.source.name
    paper = PAPER.get(name)
    contrasts = {measure: found.contrast(found.best, measure) for measure in (NDCG, MAP)}
    tables = [_beside(found, "test", paper), _significance(found, paper), _beside(found, "valid", paper), _sweep(found)]
    if paper is not None:
        tables.append(_others(found, paper))
    return Report(
        title=f"Forests on small samples of queries: {name}",
        summary=_summary(found, contrasts),
        tables=tables,
        figures=[
            *(_quality(found, measure) for measure in (NDCG, MAP)),
            _time(found),
            _trees(found),
        ],
        differences=_differences(found, paper),
        facts={
            "best": found.best.name,
            "n_seeds": study.n_seeds,
            "folds": list(study.folds),
            "contrasts": [dataclasses.asdict(contrast) for contrast in contrasts.values()],
        },
    )


def _summary(found: SubsamplingResults, contrasts: dict[str, Contrast]) -> str:
    """The outcome in a few sentences."""
    study, best = found.study, found.best
    text = (
        f"{study.n_trees:,} trees a forest, criterion {study.criterion}, folds {listed(study.folds)}, {study.n_seeds} "
        f"runs each. Convention {Convention.get(CONVENTION).describe()}. On validation data {_words(best)} is best"
    )
    if best == BASELINE:
        return f"{text}: small samples do not help here."
    parts = [
        f"{SHOWN[measure]} {c.difference:+.4f} (95 % interval {interval_text(*c.interval)}, "
        f"randomisation test p {_is(c.p_randomisation)}, paired t p {_is(c.p_t)})"
        for measure, c in contrasts.items()
    ]
    return (
        f"{text}; on the {contrasts[NDCG].n_queries} test queries it is against {BASELINE.name} of the queries: "
        f"{' and '.join(parts)}; training is {found.speed_up(best):.1f} times as fast."
    )


def _beside(found: SubsamplingResults, part: str, paper: Published | None) -> Table:
    """Table 2 (validation data) or 3 (test data), the paper's numbers beside ours."""
    rows = []
    for sample in [*_looked_at(found, paper), BASELINE]:
        row = [_setting(found, sample), f"{found.mean_of(sample, 'seconds'):.2f}", f"{found.speed_up(sample):.1f}"]
        if paper is not None:
            row.append({paper.sample: f"{paper.speed_up}", BASELINE: "1"}.get(sample, "–"))
        for measure in (NDCG, MAP):
            ours = found.mean_and_std(sample, part, measure)
            row.append(with_spread(*ours))
            if paper is not None:
                theirs = paper.values.get((part, sample, measure))
                row += ["–", "–"] if theirs is None else [with_spread(*theirs), f"{ours[0] - theirs[0]:+.4f}"]
        rows.append(row)
    beside = ["paper"] if paper else []
    by_measure = [column for name in SHOWN.values() for column in (name, *(("paper", "difference") if paper else ()))]
    number, where = ("3", "test") if part == "test" else ("2", "validation")
    return Table(
        f"table{number}",
        f"Table {number}: {where} data, {found.study.source.name}",
        ["queries per tree", "training s per fold", "speed-up", *beside, *by_measure],
        rows,
        f"Mean over folds and runs; in brackets the standard deviation between runs ({found.study.n_seeds}). First: "
        f"the best on validation data. Seconds are CPU time of all threads together; speed-up is over {BASELINE.name} "
        f"of the queries. Convention {CONVENTION}.",
    )


def _looked_at(found: SubsamplingResults, paper: Published | None) -> list[Sample]:
    """The best sample, and the paper's."""
    theirs = [paper.sample] if paper is not None and paper.sample in found.study.sweep else []
    return [sample for sample in dict.fromkeys([found.best, *theirs]) if sample != BASELINE]


def _significance(found: SubsamplingResults, paper: Published | None) -> Table:
    """Differences from the baseline, with intervals and p-values."""
    rows = []
    for sample in _looked_at(found, paper):
        for measure in (NDCG, MAP):
            c = found.contrast(sample, measure)
            tests = [interval_text(*c.interval), p_text(c.p_randomisation), p_text(c.p_t)]
            rows.append([_setting(found, sample), SHOWN[measure], f"{c.difference:+.4f}", *tests])
    return Table(
        "significance",
        f"Against {BASELINE.name} of the queries on test data, {found.study.source.name}",
        ["queries per tree", "measure", "difference", "95 % interval", "p, randomisation", "p, paired t"],
        rows,
        "On the values of all test queries, each the mean over runs: whether other queries would tell the same.",
    )


def _sweep(found: SubsamplingResults) -> Table:
    """Every sample: quality, time, leaves, and correlation and strength of the trees."""
    rows = []
    for sample in found.study.sweep:
        values = [
            with_spread(*found.mean_and_std(sample, part, measure))
            for part in ("valid", "test")
            for measure in (NDCG, MAP)
        ]
        facts = [f"{found.mean_of(sample, 'seconds'):.2f}", f"{found.mean_of(sample, 'n_leaves'):,.0f}"]
        trees = [_number(found.correlation(sample)), *(_number(found.strength(sample, m)) for m in (NDCG, MAP))]
        rows.append([_setting(found, sample), *values, *facts, *trees])
    return Table(
        "sweep",
        f"All settings, {found.study.source.name}",
        ["queries per tree", "valid nDCG@10", "valid MAP", "test nDCG@10", "test MAP", "training s per fold", "leaves",
         "correlation", "strength nDCG@10", "strength MAP"],
        rows,
        "Correlation: mean over pairs of trees, of their outputs on validation data; strength: mean over trees of the "
        "measure of the tree alone, equal scores counting as the mean over their orders. Both of the first run. "
        "Seconds are CPU time of all threads together.",
    )  # fmt: skip


def _others(found: SubsamplingResults, paper: Published) -> Table:
    """Table 4: other algorithms, as the paper quotes them."""
    rows = [[name, f"{ndcg:.4f}", f"{ap:.4f}", "paper"] for name, (ndcg, ap) in paper.others.items()]
    for name, sample in ("forest, 63%", BASELINE), (f"forest, {paper.sample.name}", paper.sample):
        values = [paper.values["test", sample, measure] for measure in (NDCG, MAP)]
        rows.append([name, *(f"{mean:.4f}" for mean, _ in values), "paper"])
    for sample in dict.fromkeys((BASELINE, found.best)):
        ours = [found.mean_and_std(sample, "test", measure)[0] for measure in (NDCG, MAP)]
        rows.append([f"forest, {sample.name}", *(f"{value:.4f}" for value in ours), "ours"])
    return Table("table4", f"Table 4: other algorithms on test data, {found.study.source.name}",
                 ["algorithm", "nDCG@10", "MAP", "source"], rows)  # fmt: skip


def _differences(found: SubsamplingResults, paper: Published | None) -> list[str]:
    """What was done otherwise than in the paper."""
    study = found.study
    lines = [
        "The paper extends Weka; here every distinct value is a possible threshold, features are drawn anew at every "
        "node, and more are drawn as long as all those drawn are constant in it.",
        f"{study.n_seeds} runs of each setting (the paper has 10), {len(study.sweep)} settings (the paper about 25), "
        f"{study.n_trees:,} trees (the paper 1,000). The paper fits an R smoothing spline with parameter 0.01; ours is "
        "a cubic smoothing spline whose penalty is chosen by generalised cross-validation.",
        "Deviations are of the mean over folds, between runs. Training times are CPU time on this machine.",
        "Correlation and strength are argued from in the paper, not reported.",
    ]
    if paper is None:
        lines.append(f"The paper has no figures for this data ({study.source.name}).")
        return lines
    if len(study.folds) < study.source.n_folds:
        lines.append(f"The paper's figures are means over all folds, ours over {listed(study.folds)} only.")
    if paper.sample not in study.sweep:
        lines.append(f"The paper's setting of {paper.sample.name} queries is not part of the sweep.")
    for (part, sample, measure), (theirs, _) in paper.values.items():
        if sample in study.sweep:
            ours = found.mean_and_std(sample, part, measure)[0]
            if abs(ours - theirs) > TOLERANCE:
                lines.append(
                    f"{SHOWN[measure]} with {_words(sample)} on {part} data is {ours:.4f}, {ours - theirs:+.4f} from "
                    "the paper's: more than 0.005."
                )
    return lines


def _quality(found: SubsamplingResults, measure: str) -> Figure:
    """Figures 1 and 2: every run on validation data with a smooth curve, and the deviation between runs."""
    shares = [100 * found.share(sample) for sample in found.study.sweep]
    values = [found.run_means(sample, "valid", measure) for sample in found.study.sweep]
    deviations = [found.mean_and_std(sample, "valid", measure)[1] or 0.0 for sample in found.study.sweep]
    name = SHOWN[measure]

    def draw(canvas: Any) -> None:
        left, right = canvas.subplots(1, 2, width_ratios=[2, 1])
        x = np.repeat(shares, [len(runs) for runs in values])
        left.scatter(x, np.concatenate(values), s=14, alpha=0.6, color="tab:blue", label="one run")
        means = "smoothing spline of the means" if len(shares) >= SMOOTHED_FROM else "means"
        left.plot(*smooth(shares, [runs.mean() for runs in values]), color="black", label=means)
        _log_shares(left, shares)
        left.set(ylabel=f"{name} on validation data", title=f"{name}, {found.study.source.name}")
        left.legend(fontsize=8)
        right.bar(range(len(shares)), deviations, color="tab:gray")
        right.set_xticks(range(len(shares)), [f"{share:.3g}" for share in shares], rotation=45, fontsize=8)
        right.set(
            xlabel="queries per tree, %", ylabel="standard deviation", title=f"between {found.study.n_seeds} runs"
        )

    number = 1 if measure == NDCG else 2
    return Figure(f"figure{number}", f"Figure {number}: {name} over the share of queries that a tree sees.", draw)


def _time(found: SubsamplingResults) -> Figure:
    """Figure 3: training time over the share of queries that a tree sees."""
    shares = [100 * found.share(sample) for sample in found.study.sweep]
    seconds = [found.mean_of(sample, "seconds") for sample in found.study.sweep]

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.plot(shares, seconds, marker="o")
        axes.set(xlabel="queries per tree, %", ylabel="training, CPU s per fold", xlim=(0, None), ylim=(0, None),
                 title=f"{found.study.n_trees:,} trees, {found.study.source.name}")  # fmt: skip

    return Figure("figure3", "Figure 3: training time over the share of queries that a tree sees.", draw, (5.5, 4.0))


def _trees(found: SubsamplingResults) -> Figure:
    """Correlation and strength of trees over the share of queries that a tree sees."""
    shares = [100 * found.share(sample) for sample in found.study.sweep]

    def draw(canvas: Any) -> None:
        left, right = canvas.subplots(1, 2)
        left.plot(shares, [found.correlation(sample) for sample in found.study.sweep], marker="o", color="tab:red")
        left.set(ylabel="mean correlation between trees", title="How alike trees are")
        for measure, name in SHOWN.items():
            strengths = [found.strength(sample, measure) for sample in found.study.sweep]
            right.plot(shares, strengths, marker="o", label=name)
        right.set(ylabel="mean over single trees", title="How strong they are alone")
        right.legend(fontsize=8)
        for axes in (left, right):
            _log_shares(axes, shares)

    return Figure("trees", "Correlation and strength of the trees, on validation data.", draw)


def _log_shares(axes: Any, shares: list[float]) -> None:
    """Make the x axis logarithmic, with a tick at every share."""
    axes.set_xscale("log")
    axes.set_xticks(shares, [f"{share:.3g}" for share in shares])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("queries per tree, % (logarithmic)")
    axes.grid(alpha=0.3)


def _setting(found: SubsamplingResults, sample: Sample) -> str:
    """A sample in tables: its queries in the folds at hand, and their share."""
    counts = sorted({result["n_queries"] for result in found.of(sample)})
    text = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    return f"{text} ({100 * found.share(sample):.1f}%)"


def _words(sample: Sample) -> str:
    """A sample in a sentence."""
    if sample.percent:
        return f"{sample.name} of the queries"
    return f"{sample.name} quer{'y' if sample.number == 1 else 'ies'} per tree"


def _is(p: float) -> str:
    """A p-value with its relation, as a sentence needs it."""
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"


def _number(value: float) -> str:
    """Four decimals, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.4f}"
