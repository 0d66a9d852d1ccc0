"""Forests on small samples of queries (Ibrahim & Carman 2014): quality and time by the queries that a tree sees."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.diagnostics import tree_correlation, tree_strength
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import bootstrap_interval, paired_t_test, randomisation_test
from rankwood.lab.datasets.catalogue import find_entry
from rankwood.lab.drawing import SMOOTHED_FROM, Figure, label_ends, legend_below, line_style, log_axis, smooth
from rankwood.lab.papers.common import PARTS, Describing, PaperResults, PaperStudy, data_table
from rankwood.lab.runs import Result
from rankwood.lab.study import (
    PartialFolds,
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
    with_spread,
)
from rankwood.lazily import cached_property
from rankwood.model.ensemble import Ensemble
from rankwood.training.estimators import LambdaMART
from rankwood.training.random_forest import RandomForest

# What is compared: how many queries, or documents of every query, a tree sees.


NDCG, MAP = "nDCG@10", "AP"
MEASURES = (NDCG, MAP)
CONVENTION = "letor"


@dataclass(frozen=True)
class Sample:
    """How many queries a tree sees: a number of them, or with `percent` a share of all.

    With `what` "documents" it sees so many, or such a share, of the documents of every query instead.

    Examples
    --------
    >>> Sample.parse("21").of(471), Sample.parse("63%").of(63), Sample.parse("0.5%").of(63)
    (21, 40, 1)
    >>> Sample(63, percent=True).name
    '63%'
    """

    number: float
    percent: bool = False
    what: Literal["queries", "documents"] = "queries"

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


STEPS = {"OHSUMED": 3, "MQ2008": 20, "MQ2007": 50}  # of the paper


def paper_grid(name: str, n_queries: int) -> list[Sample]:
    """Return the samples of the paper: one query, then steps of 3, 20 or 50 queries, and all queries in the end.

    Data that the paper does not have gets steps that make about 25 samples, too.

    Examples
    --------
    >>> [len(paper_grid(name, n)) for name, n in (("OHSUMED", 63), ("MQ2008", 470), ("MQ2007", 1015))]
    [22, 25, 22]
    >>> [sample.name for sample in paper_grid("OHSUMED", 63)][-3:]
    ['58', '61', '100%']
    """
    step = STEPS.get(name.split()[0], max(1, round(n_queries / 24)))
    return [*(Sample(count) for count in range(1, n_queries, step)), Sample(100, percent=True)]


def nearest_to_bootstrap(grid: Sequence[Sample], n_queries: int) -> Sample:
    """Return the sample that is nearest to 63 % of the queries, which is what the paper's grid is compared with.

    Examples
    --------
    >>> [nearest_to_bootstrap(paper_grid(name, n), n).name for name, n in (("MQ2008", 470), ("MQ2007", 1015))]
    ['301', '651']
    """
    return min(grid, key=lambda sample: abs(sample.of(n_queries) - 0.63 * n_queries))


# Shares of the documents of every query: the setting that the paper argues against in section 4.
DOCUMENTS = tuple(Sample(share, percent=True, what="documents") for share in (2, 5, 10, 20, 40, 63))


# The runs of the study.


@dataclass(frozen=True)
class Growing:
    """A run: a forest is grown."""

    fold: int
    sample: Sample
    n_trees: int
    criterion: Literal["entropy", "variance"]
    max_features: float | Literal["sqrt", "ceil-sqrt"] | None
    redraw: bool
    seed: int


@dataclass(frozen=True)
class Boosting:
    """A run: LambdaMART is trained, with the settings of the paper's footnote 11."""

    fold: int
    n_trees: int
    n_leaves: int = 7
    learning_rate: float = 0.5


@dataclass(frozen=True)
class SubsamplingStudy(PaperStudy):
    """Forests with different numbers of queries per tree, on every fold, several times each, and LambdaMART.

    Parameters
    ----------
    sweep : sequence of Sample
        Numbers of queries per tree, which must include the baseline.
    n_seeds : int, default 5
        Runs of each sample on each fold.
    n_trees : int, default 1000
        Trees of a forest.
    criterion : "entropy" or "variance", default "entropy"
        What splits lower.
    max_features : float, "sqrt", "ceil-sqrt" or None, default "ceil-sqrt"
        Features that are tried at a node; None tries all. The paper's loop draws as long as they are fewer than the
        square root of their number.
    redraw : bool, default True
        Whether more are drawn as long as no split gains (the paper's section 6.1), and not only as long as the features
        drawn are constant.
    baseline : Sample, default 63 % of the queries
        What the others are compared with.
    documents : sequence of Sample, optional
        Shares of the documents of every query that a tree sees instead.
    boosted_trees : int, default 1000
        Trees of LambdaMART.
    """

    name = "subsampling"

    sweep: Sequence[Sample]
    n_seeds: int = 5
    n_trees: int = 1000
    criterion: Literal["entropy", "variance"] = "entropy"
    max_features: float | Literal["sqrt", "ceil-sqrt"] | None = "ceil-sqrt"
    redraw: bool = True
    baseline: Sample = BASELINE
    documents: Sequence[Sample] = DOCUMENTS
    boosted_trees: int = 1000

    def __post_init__(self) -> None:
        if self.baseline not in self.sweep:
            raise RankwoodError(f"the sweep is compared with {_words(self.baseline)}: it must be part of it")
        if len(set(self.sweep)) < len(self.sweep) or len(self.sweep) < 2:
            raise RankwoodError("a sweep needs two different settings at least, each given once")
        if min(self.n_seeds, self.n_trees, self.boosted_trees) < 1:
            raise RankwoodError("a study needs at least one seed and one tree")

    def growing(self, fold: int, sample: Sample) -> list[Growing]:
        """The runs of a sample on a fold, by seed."""
        same = (fold, sample, self.n_trees, self.criterion, self.max_features, self.redraw)
        return [Growing(*same, seed) for seed in range(self.n_seeds)]

    def boosting(self, fold: int) -> Boosting:
        """The run of LambdaMART on a fold, which draws nothing at random."""
        return Boosting(fold, self.boosted_trees)

    def plan(self) -> list[Describing | Growing | Boosting]:
        found: list[Describing | Growing | Boosting] = []
        for fold in self.folds:
            found += [Describing(fold), self.boosting(fold)]
            found += [run for sample in (*self.sweep, *self.documents) for run in self.growing(fold, sample)]
        return found

    def report(self, runs: Runs) -> Report:
        return make_report(SubsamplingResults(self, runs))

    def perform(self, run: Describing | Growing | Boosting) -> Result:
        """Count the data, train LambdaMART, or grow a forest; measure on validation and test data."""
        if isinstance(run, Describing):
            return self.describe(run)
        return self._boost(run) if isinstance(run, Boosting) else self._grow(run)

    def _boost(self, run: Boosting) -> Result:
        """LambdaMART with all its trees, and with as many of them as are best on validation data."""
        fold = self.fold_data(run.fold)
        ranker = LambdaMART(
            n_trees=run.n_trees, n_leaves=run.n_leaves, learning_rate=run.learning_rate, convention=CONVENTION,
            n_jobs=self.n_threads,
        )  # fmt: skip
        model, seconds = cpu_timed(lambda: ranker.fit(self.binned_train(run.fold), valid=fold.valid).ensemble_)
        n_best = int(np.argmax(ranker.evals_result_["valid"][NDCG])) + 1
        return {
            "seconds": seconds,
            "n_best": n_best,
            "all": self._per_query(model, fold.test),
            "best": self._per_query(model.select(np.arange(n_best)), fold.test),
        }

    def _grow(self, run: Growing) -> Result:
        """A forest, and for the first seed also its single trees."""
        fold = self.fold_data(run.fold)
        sample, n_queries = run.sample, fold.train.n_queries
        if sample.what == "documents":
            share: float = sample.number / 100 if sample.percent else int(sample.number)
            drawn: dict[str, Any] = {"docs_per_query": share}
        else:
            n_queries = sample.of(n_queries)
            drawn = {"queries_per_tree": n_queries}
        forest = RandomForest(
            n_trees=run.n_trees,
            **drawn,
            replace=False,
            criterion=run.criterion,
            max_features=run.max_features,
            redraw=run.redraw,
            random_state=run.seed,
            n_jobs=self.n_threads,
        )
        model, seconds = cpu_timed(lambda: forest.fit(fold.train).ensemble_)
        return {
            "n_queries": n_queries,
            "n_train_queries": fold.train.n_queries,
            "share_of_docs": _docs_per_tree(model) / fold.train.n_docs,
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


def _docs_per_tree(model: Ensemble) -> float:
    """Mean number of documents that a tree was grown on; trees without a split are left out."""
    roots = model.node_offsets[:-1][np.diff(model.node_offsets) > 0]
    assert model.node_count is not None
    return float(model.node_count[roots].mean()) if len(roots) else 0.0


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
        return self.mean_of(self.study.baseline, "seconds") / self.mean_of(sample, "seconds")

    @cached_property
    def best(self) -> Sample:
        """The sample with the highest nDCG@10 on validation data."""
        return max(self.study.sweep, key=lambda sample: self.mean_and_std(sample, "valid", NDCG)[0])

    def contrast(self, sample: Sample, measure: str, part: str = "test") -> Contrast:
        """Compare a sample with the baseline, with significance."""
        base, other = (self._query_values(one, part, measure) for one in (self.study.baseline, sample))
        test = randomisation_test(base, other, n_threads=self.study.n_threads)
        interval = bootstrap_interval(base, other)
        p_t = paired_t_test(base, other).p_value if not np.array_equal(base, other) else 1.0
        return Contrast(measure, test.mean_difference, (interval.low, interval.high), test.p_value, p_t, test.n_queries)

    def boosted(self, size: str, measure: str) -> float:
        """LambdaMART on test data, mean over folds, with all its trees or the best number of them (`size`)."""
        results = [self.result(self.study.boosting(fold)) for fold in self.study.folds]
        return float(np.mean([np.mean(result[size][measure]) for result in results]))

    def n_boosted(self) -> list[int]:
        """Numbers of trees of LambdaMART that are best on validation data, by fold."""
        return [self.result(self.study.boosting(fold))["n_best"] for fold in self.study.folds]

    def _query_values(self, sample: Sample, part: str, measure: str) -> FloatArray:
        """Value of every query of every fold, mean over runs."""
        return query_values([result[part][measure] for result in self.of(sample, fold)] for fold in self.study.folds)


# Tables 1 to 4 and figures 1 to 3 of the paper, its numbers beside ours.


SHOWN = {NDCG: "nDCG@10", MAP: "MAP"}
MOST_TICKS = 12  # more shares than these have no tick each
TOLERANCE = 0.005  # a larger difference from the paper is pointed out


@dataclass(frozen=True)
class Published:
    """The paper's numbers for one data set.

    Parameters
    ----------
    speed_ups : dict
        The reduced samples that it compares with the baseline, and how many times faster these train.
    values : dict
        (mean, standard deviation) by part of the data, sample and measure.
    others : dict
        nDCG@10 and MAP of other algorithms on test data (table 4).
    """

    speed_ups: dict[Sample, int]
    values: dict[tuple[str, Sample, str], tuple[float, float]]
    others: dict[str, tuple[float, float]]

    def value(self, study: SubsamplingStudy, part: str, sample: Sample, measure: str) -> tuple[float, float] | None:
        """What the paper has for a sample of ours; None when it has nothing."""
        return self.values.get((part, BASELINE if sample == study.baseline else sample, measure))


def _published(speed_ups: dict[int, int], numbers: list[float], others: list[float]) -> Published:
    """Return the paper's numbers from lists in the order in which its tables print them.

    Parameters
    ----------
    speed_ups : dict
        The reduced samples and their speed-ups.
    numbers : list of float
        Tables 2 and 3, each the means and deviations of the reduced samples and the baseline, of nDCG, then of MAP.
    others : list of float
        Table 4: nDCG@10 of seven algorithms, then their MAP.
    """
    samples = {Sample(queries): speed_up for queries, speed_up in speed_ups.items()}
    keys = [(p, s, m) for p in ("valid", "test") for m in (NDCG, MAP) for s in (*samples, BASELINE)]
    values = dict(zip(keys, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    names = ("ListNet", "AdaRank-MAP", "AdaRank-NDCG", "RankBoost", "RankSVM-Primal", "RankSVM-Struct", "LambdaMART")
    others_by_name = dict(zip(names, zip(others[:7], others[7:], strict=True), strict=True))
    return Published(samples, values, others_by_name)


PAPER = {
    "OHSUMED": _published(
        {1: 29},
        [0.4427, 0.0024, 0.4187, 0.0039, 0.4490, 0.0015, 0.4221, 0.0016,
         0.4443, 0.0022, 0.4317, 0.0033, 0.4473, 0.0009, 0.4221, 0.0013],
        [0.4410, 0.4429, 0.4496, 0.4302, 0.4504, 0.4523, 0.4367,
         0.4457, 0.4487, 0.4498, 0.4411, 0.4446, 0.4478, 0.4173],
    ),
    "MQ2008": _published(
        {21: 17},
        [0.2290, 0.0009, 0.2233, 0.0085, 0.4745, 0.0013, 0.4703, 0.0098,
         0.2292, 0.0008, 0.2238, 0.0011, 0.4736, 0.0016, 0.4701, 0.0012],
        [0.2303, 0.2288, 0.2307, 0.2255, 0.2279, 0.2309, 0.2302,
         0.4775, 0.4764, 0.4824, 0.4775, 0.4744, 0.4696, 0.4751],
    ),
    "MQ2007": _published(
        {51: 17, 101: 9},
        [0.4453, 0.0016, 0.4453, 0.0012, 0.4353, 0.0005, 0.4619, 0.0011, 0.4619, 0.0011, 0.4539, 0.0006,
         0.4447, 0.0013, 0.4453, 0.0016, 0.4363, 0.0010, 0.4619, 0.0012, 0.4624, 0.0004, 0.4533, 0.0004],
        [0.4440, 0.4335, 0.4369, 0.4464, 0.4436, 0.4439, 0.4484,
         0.4652, 0.4577, 0.4602, 0.4662, 0.4659, 0.4644, 0.4675],
    ),
}  # fmt: skip


# Table 1: queries, documents, features, labels, documents and relevant documents per query.
PAPER_DATA = [
    ["paper: OHSUMED", "106", "16,000", "45", "3", "152", "46", "–", "–"],
    ["paper: MQ2008", "784", "15,000", "46", "3", "19", "5", "–", "–"],
    ["paper: MQ2007", "1,692", "69,000", "46", "3", "41", "12", "–", "–"],
]


def make_report(found: SubsamplingResults) -> Report:
    """Make tables and figures of a study whose runs are all done."""
    study, name = found.study, found.study.source.name
    paper = PAPER.get(name.split()[0])
    contrasts = {measure: found.contrast(found.best, measure) for measure in (NDCG, MAP)}
    tables = [
        _beside(found, "test", paper),
        _significance(found, paper),
        _beside(found, "valid", paper),
        _sweep(found),
        *([_documents(found)] if study.documents else []),
        _others(found, paper),
        data_table(found, PAPER_DATA, "The paper's rows: its table 1."),
    ]
    return Report(
        title=f"Forests on small samples of queries: {name}",
        summary=_summary(found, contrasts),
        tables=tables,
        figures=[
            *(_quality(found, measure) for measure in (NDCG, MAP)),
            _time(found),
            _trees(found),
            *([_kinds(found)] if study.documents else []),
        ],
        differences=_differences(found, paper),
        facts={
            "best": found.best.name,
            "baseline": study.baseline.name,
            "n_seeds": study.n_seeds,
            "folds": list(study.folds),
            "contrasts": [dataclasses.asdict(contrast) for contrast in contrasts.values()],
        },
    )


def _lacks(found: SubsamplingResults) -> str:
    """What is missing of a data set that is not complete, in a few sentences; empty when it is."""
    study = found.study
    if not isinstance(study.source, PartialFolds):
        return ""
    parts = found.result(Describing(study.folds[0]))
    n_docs, n_queries = (sum(parts[part][name] for part in PARTS) for name in ("n_docs", "n_queries"))
    whole, name = "", study.source.name.split()[0]
    if name in PAPER:
        entry = find_entry(name)
        whole = f" of its {entry.rows:,} documents and {n_queries:,} of its {entry.queries:,} queries"
    return (
        f"The data are not complete: {study.source.n_folds} of five parts, {n_docs:,}{whole or ' documents'}. A fold "
        "trains on all of these parts but one, whose queries are halved into validation and test data; the paper's "
        "numbers are of all of the data, so compare differences, not values."
    )


def _summary(found: SubsamplingResults, contrasts: dict[str, Contrast]) -> str:
    """The outcome in a few sentences."""
    study, best = found.study, found.best
    text = (
        f"{study.n_trees:,} trees a forest, criterion {study.criterion}, folds {listed(study.folds)}, "
        f"{counted(study.n_seeds, 'run')} each. Convention {Convention.get(CONVENTION).describe()}. On validation data "
        f"{_words(best)} is best"
    )
    if best == study.baseline:
        return f"{text}: small samples do not help here. {_lacks(found)}".rstrip()
    parts = [
        f"{SHOWN[measure]} {c.difference:+.4f} (95 % interval {interval_text(*c.interval)}, "
        f"randomisation test p {_is(c.p_randomisation)}, paired t p {_is(c.p_t)})"
        for measure, c in contrasts.items()
    ]
    return (
        f"{text}; on the {contrasts[NDCG].n_queries} test queries it is against {_words(study.baseline)}: "
        f"{' and '.join(parts)}; training is {found.speed_up(best):.1f} times as fast. {_lacks(found)}".rstrip()
    )


def _beside(found: SubsamplingResults, part: str, paper: Published | None) -> Table:
    """Table 2 (validation data) or 3 (test data), the paper's numbers beside ours."""
    rows, baseline = [], found.study.baseline
    for sample in [*_looked_at(found, paper), baseline]:
        row = [_setting(found, sample), f"{found.mean_of(sample, 'seconds'):.2f}", f"{found.speed_up(sample):.1f}"]
        if paper is not None:
            row.append(str({**paper.speed_ups, baseline: 1}.get(sample, "–")))
        for measure in (NDCG, MAP):
            ours = found.mean_and_std(sample, part, measure)
            row.append(with_spread(*ours))
            if paper is not None:
                theirs = paper.value(found.study, part, sample, measure)
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
        f"the best on validation data. Seconds are CPU time of all threads together; speed-up is over "
        f"{_words(baseline)}. Convention {CONVENTION}. {_lacks(found)}".rstrip(),
    )


def _looked_at(found: SubsamplingResults, paper: Published | None) -> list[Sample]:
    """The best sample, and the paper's."""
    theirs = [] if paper is None else [sample for sample in paper.speed_ups if sample in found.study.sweep]
    return [sample for sample in dict.fromkeys([found.best, *theirs]) if sample != found.study.baseline]


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
        f"Against {_words(found.study.baseline)} on test data, {found.study.source.name}",
        ["queries per tree", "measure", "difference", "95 % interval", "p, randomisation", "p, paired t"],
        rows,
        "On the values of all test queries, each the mean over runs: whether other queries would tell the same.",
    )


SWEPT = ("valid nDCG@10", "valid MAP", "test nDCG@10", "test MAP", "training s per fold", "leaves", "correlation",
         "strength nDCG@10", "strength MAP")  # fmt: skip


def _swept(found: SubsamplingResults, sample: Sample) -> list[str]:
    """The cells of a sample: quality, time, leaves, and correlation and strength of the trees."""
    values = [
        with_spread(*found.mean_and_std(sample, part, measure)) for part in ("valid", "test") for measure in (NDCG, MAP)
    ]
    facts = [f"{found.mean_of(sample, 'seconds'):.2f}", f"{found.mean_of(sample, 'n_leaves'):,.0f}"]
    return [
        *values,
        *facts,
        _number(found.correlation(sample)),
        *(_number(found.strength(sample, m)) for m in MEASURES),
    ]


def _sweep(found: SubsamplingResults) -> Table:
    """Every sample of queries."""
    return Table(
        "sweep",
        f"All settings, {found.study.source.name}",
        ["queries per tree", *SWEPT],
        [[_setting(found, sample), *_swept(found, sample)] for sample in found.study.sweep],
        "Correlation: mean over pairs of trees, of their outputs on validation data; strength: mean over trees of the "
        "measure of the tree alone, equal scores counting as the mean over their orders. Both of the first run. "
        "Seconds are CPU time of all threads together.",
    )


def _documents(found: SubsamplingResults) -> Table:
    """Section 4: documents of every query instead of queries, each beside the sample of queries nearest in size."""
    rows = []
    for sample in found.study.documents:
        size = found.mean_of(sample, "share_of_docs")
        near = min(found.study.sweep, key=lambda one: abs(math.log(found.mean_of(one, "share_of_docs") / size)))
        for name, one in (
            (f"documents, {sample.name} of each query", sample),
            (f"queries, {_setting(found, near)}", near),
        ):
            rows.append([name, f"{100 * found.mean_of(one, 'share_of_docs'):.1f} %", *_swept(found, one)])
    return Table(
        "documents",
        f"Samples of documents of every query (section 4), {found.study.source.name}",
        ["a tree sees", "of all documents", *SWEPT],
        rows,
        "The paper argues that trees which see some documents of all queries stay alike, and does not try it. Below "
        "each such sample: that of whole queries whose number of documents is nearest. Columns as in the table of all "
        "settings. A query is never without documents, so shares of short queries are larger than asked for.",
    )


def _others(found: SubsamplingResults, paper: Published | None) -> Table:
    """Table 4: other algorithms as the paper quotes them, and LambdaMART and forests as run here."""
    study, rows = found.study, []
    if paper is not None:
        rows += [[name, f"{ndcg:.4f}", f"{ap:.4f}", "paper"] for name, (ndcg, ap) in paper.others.items()]
        for name, sample in ("forest, 63%", BASELINE), *((f"forest, {one.name}", one) for one in paper.speed_ups):
            values = [paper.values["test", sample, measure] for measure in (NDCG, MAP)]
            rows.append([name, *(f"{mean:.4f}" for mean, _ in values), "paper"])
    sizes = sorted(found.n_boosted())
    span = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    for size, name in ("all", f"{study.boosted_trees:,} trees"), ("best", f"best on validation data: {span} trees"):
        reached = [found.boosted(size, measure) for measure in (NDCG, MAP)]
        rows.append([f"LambdaMART, {name}", *(f"{value:.4f}" for value in reached), "ours"])
    for sample in dict.fromkeys((study.baseline, found.best)):
        ours = [found.mean_and_std(sample, "test", measure)[0] for measure in (NDCG, MAP)]
        rows.append([f"forest, {sample.name}", *(f"{value:.4f}" for value in ours), "ours"])
    note = (
        f"LambdaMART: 7 leaves, learning rate 0.5, as in footnote 11; other parameters are rankwood's. {_lacks(found)}"
    )
    return Table("table4", f"Table 4: other algorithms on test data, {study.source.name}",
                 ["algorithm", "nDCG@10", "MAP", "source"], rows, note)  # fmt: skip


def _differences(found: SubsamplingResults, paper: Published | None) -> list[str]:
    """What was done otherwise than in the paper."""
    study = found.study
    lines = [
        "The paper extends Weka; here every distinct value is a possible threshold. Its algorithm 3 makes a leaf when "
        "none of the features drawn gains, its section 6.1 when no split at all does; here features are drawn at every "
        "node, as many as the square root of their number rounded up, and more as long as none gains, which is the "
        "latter.",
        f"{study.n_seeds} runs of each setting (the paper has 10), {len(study.sweep)} settings (the paper 22 to 25; "
        f"--grid paper has these), {study.n_trees:,} trees (the paper 1,000). The paper fits an R smoothing spline "
        "with parameter 0.01; ours is a cubic smoothing spline whose penalty generalised cross-validation chooses.",
        "Deviations are of the mean over folds, between runs. Training times are CPU time on this machine.",
        "Correlation and strength are argued from in the paper, not reported; nor does it try samples of the documents "
        "of every query.",
        "LambdaMART is run with the paper's three settings; what else jforests was told, the paper does not say. The "
        "other algorithms of table 4 are those that LETOR's web site lists, and are quoted.",
    ]
    if _lacks(found):
        lines.append(_lacks(found))
    if paper is None:
        lines.append(f"The paper has no figures for this data ({study.source.name}).")
        return lines
    if len(study.folds) < study.source.n_folds:
        lines.append(f"The paper's figures are means over all folds, ours over {listed(study.folds)} only.")
    lines += [
        f"The paper's setting of {sample.name} queries is not part of the sweep."
        for sample in paper.speed_ups
        if sample not in study.sweep
    ]
    for (part, theirs_of, measure), (theirs, _) in paper.values.items():
        sample = study.baseline if theirs_of == BASELINE else theirs_of
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
        curve = smooth(shares, [runs.mean() for runs in values], log=len(shares) <= MOST_TICKS)
        left.plot(*curve, color="black", label=means)
        _log_shares(left, shares)
        left.set(ylabel=f"{name} on validation data", title=f"{name}, {found.study.source.name}")
        legend_below(canvas, left)
        right.bar(range(len(shares)), deviations, color="tab:gray")
        step = -(-len(shares) // MOST_TICKS)
        labels = [f"{share:.3g}" for share in shares[::step]]
        right.set_xticks(range(0, len(shares), step), labels, rotation=45, fontsize=8)
        right.set(
            xlabel="queries per tree, %",
            ylabel="standard deviation",
            title=f"between {counted(found.study.n_seeds, 'run')}",
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
        ends = []
        for number, (measure, name) in enumerate(SHOWN.items()):
            strengths = [found.strength(sample, measure) for sample in found.study.sweep]
            how = line_style(number, len(SHOWN))
            right.plot(shares, strengths, **how)
            ends.append((shares[-1], strengths[-1], name, how["color"]))
        right.set(ylabel="mean over single trees", title="How strong they are alone")
        for axes in (left, right):
            _log_shares(axes, shares)
        label_ends(right, ends, 2.8)

    return Figure("trees", "Correlation and strength of the trees, on validation data.", draw)


def _kinds(found: SubsamplingResults) -> Figure:
    """Quality, correlation and strength over the share of documents that a tree sees, by what is drawn."""
    kinds = {"whole queries": found.study.sweep, "documents of every query": found.study.documents}

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(1, 3)
        panels: dict[str, Callable[[Sample], float]] = {
            "nDCG@10 of the forest": lambda sample: found.mean_and_std(sample, "valid", NDCG)[0],
            "mean correlation between trees": found.correlation,
            "mean nDCG@10 of single trees": lambda sample: found.strength(sample, NDCG),
        }
        for axis, (title, value) in zip(axes, panels.items(), strict=True):
            ends = []
            for number, (name, samples) in enumerate(kinds.items()):
                shares = [100 * found.mean_of(sample, "share_of_docs") for sample in samples]
                values, how = [value(sample) for sample in samples], line_style(number, len(kinds))
                halves = [mean_and_half(found.run_means(sample, "valid", NDCG))[1] or 0.0 for sample in samples]
                axis.errorbar(shares, values, halves if axis is axes[0] else None, elinewidth=0.8, capsize=2, **how)
                if shares:
                    ends.append((shares[-1], values[-1], name.replace(" of ", "\nof "), how["color"]))
            log_axis(axis)
            axis.set(title=title, xlabel="documents that a tree sees, %")
            axis.grid(alpha=0.3)
            label_ends(axis, ends, 1.5)  # of names in two lines
        axes[0].set_ylabel("validation data")
        canvas.suptitle(f"Whole queries, or documents of every query, {found.study.source.name}")

    caption = "Whole queries, or documents of every query (section 4)."
    bars = "Bars: 95 % interval over runs, where there are three or more."
    return Figure("kinds", f"{caption} {bars}", draw, (13.0, 4.2))


def _log_shares(axes: Any, shares: list[float]) -> None:
    """Make the x axis logarithmic, with a tick at every share; plain, as in the paper, for a grid of many shares."""
    if len(shares) <= MOST_TICKS:
        axes.set_xscale("log")
        axes.set_xticks(shares, [f"{share:.3g}" for share in shares])
        axes.set_xticks([], minor=True)
    axes.set_xlabel("queries per tree, %" + " (logarithmic)" * (len(shares) <= MOST_TICKS))
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
