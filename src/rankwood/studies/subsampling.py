"""Forests on small samples of queries (Ibrahim & Carman 2014): how many queries should a tree see?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluate import evaluate
from rankwood.evaluation.forest_diagnostics import tree_correlation, tree_strength
from rankwood.evaluation.significance import bootstrap_interval, paired_t_test, randomisation_test
from rankwood.experiments.report import Report
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result
from rankwood.studies import forests

NDCG, MAP = "nDCG@10", "AP"
MEASURES = (NDCG, MAP)
CONVENTION = "letor"
BASELINE = "63%"  # the share of distinct queries in a bootstrap sample
COUNTS = (1, 2, 5, 10, 21, 40, 80, 160, 320)


@dataclass(frozen=True)
class SubsamplingStudy(Study):
    """Forests with different numbers of queries per tree, on every fold, several times each.

    sweep       settings of queries_per_tree: counts ("21") and shares ("63%"), which must include "63%"
    n_seeds     runs of each setting
    """

    name = "subsampling"

    sweep: Sequence[str]
    n_seeds: int = 5
    n_trees: int = 1000
    criterion: Literal["entropy", "variance"] = "entropy"
    max_features: float | Literal["sqrt"] | None = "sqrt"

    def __post_init__(self) -> None:
        if BASELINE not in self.sweep:
            raise RankwoodError(f"the sweep is compared with {BASELINE} of the queries: it must be part of it")
        if len(set(self.sweep)) < len(self.sweep) or len(self.sweep) < 2:
            raise RankwoodError("a sweep needs two different settings at least, each given once")
        if self.n_seeds < 1 or self.n_trees < 1:
            raise RankwoodError("a study needs at least one seed and one tree")

    def configs(self) -> list[Config]:
        """One per fold, setting and seed."""
        return [
            {
                "study": self.name,
                **self.source.identify(fold),
                "queries_per_tree": setting,
                "n_trees": self.n_trees,
                "criterion": self.criterion,
                "max_features": self.max_features,
                "seed": seed,
            }
            for fold in self.folds
            for setting in self.sweep
            for seed in range(self.n_seeds)
        ]

    def run(self, config: Config) -> Result:
        """Train one forest; measure it on validation and test data, and for the first seed also its trees."""
        fold = self.source.load(config["fold"])
        n_queries = queries_of(config["queries_per_tree"], fold.train.n_queries)
        model, seconds = forests.grow(
            fold.train,
            n_trees=config["n_trees"],
            queries_per_tree=n_queries,
            replace=False,
            criterion=config["criterion"],
            max_features=config["max_features"],
            random_state=config["seed"],
            n_jobs=self.n_threads,
        )
        return {
            "n_queries": n_queries,
            "n_train_queries": fold.train.n_queries,
            "seconds": seconds,
            "n_leaves": model.n_leaves,
            "valid": self._per_query(model, fold.valid),
            "test": self._per_query(model, fold.test),
            **(self._trees(model, fold.valid) if config["seed"] == 0 else {}),
        }

    def report(self, runs: Runs) -> Report:
        from rankwood.studies.subsampling_report import make_report

        return make_report(SubsamplingResults(self, runs))

    def _per_query(self, model: Ensemble, data: Dataset) -> dict[str, list[float]]:
        values = evaluate(model, data, MEASURES, convention=CONVENTION, n_threads=self.n_threads).per_query
        return {name: row.tolist() for name, row in values.items()}

    def _trees(self, model: Ensemble, data: Dataset) -> Result:
        correlation = tree_correlation(model, data, n_threads=self.n_threads).mean
        strength = tree_strength(model, data, MEASURES, convention=CONVENTION, n_threads=self.n_threads)
        return {
            "correlation": None if math.isnan(correlation) else correlation,
            "strength": {name: float(values.mean()) for name, values in strength.items()},
        }


@dataclass(frozen=True)
class Contrast:
    """One setting against the baseline, query by query over all folds, each query's mean over the runs."""

    measure: str
    difference: float
    interval: tuple[float, float]
    p_randomisation: float
    p_t: float
    n_queries: int


@dataclass(frozen=True)
class SubsamplingResults:
    """All runs of a study and what follows from them."""

    study: SubsamplingStudy
    runs: Runs

    def of(self, setting: str) -> list[tuple[Config, Mapping[str, Any]]]:
        return [(config, result) for config, result in self.runs if config["queries_per_tree"] == setting]

    def run_means(self, setting: str, part: str, measure: str) -> FloatArray:
        """One value per seed: the mean over folds of the mean over queries, as the papers report it."""
        table = np.full((self.study.n_seeds, len(self.study.folds)), np.nan)
        for config, result in self.of(setting):
            table[config["seed"], list(self.study.folds).index(config["fold"])] = np.mean(result[part][measure])
        means: FloatArray = table.mean(axis=1)
        return means

    def mean_and_std(self, setting: str, part: str, measure: str) -> tuple[float, float | None]:
        """Mean and standard deviation over runs; None instead of the latter when there is one run."""
        values = self.run_means(setting, part, measure)
        return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None

    def mean_of(self, setting: str, name: str) -> float:
        """Mean over folds and runs of a number that runs noted."""
        return float(np.mean([result[name] for _, result in self.of(setting)]))

    def share(self, setting: str) -> float:
        """Share of the training queries that a tree sees."""
        return float(np.mean([result["n_queries"] / result["n_train_queries"] for _, result in self.of(setting)]))

    def correlation(self, setting: str) -> float:
        """Mean correlation between trees, NaN when unknown."""
        found = [result["correlation"] for _, result in self.of(setting) if result.get("correlation") is not None]
        return float(np.mean(found)) if found else math.nan

    def strength(self, setting: str, measure: str) -> float:
        """Mean of the measure over trees that stand alone."""
        return float(np.mean([result["strength"][measure] for _, result in self.of(setting) if "strength" in result]))

    def speed_up(self, setting: str) -> float:
        """How many times faster than the baseline it trains."""
        return self.mean_of(BASELINE, "seconds") / self.mean_of(setting, "seconds")

    @cached_property
    def best(self) -> str:
        """The setting with the highest nDCG@10 on validation data."""
        return max(self.study.sweep, key=lambda setting: self.mean_and_std(setting, "valid", NDCG)[0])

    def contrast(self, setting: str, measure: str, part: str = "test") -> Contrast:
        """A setting against the baseline, with significance."""
        base, other = (self._query_values(one, part, measure) for one in (BASELINE, setting))
        test = randomisation_test(base, other, n_threads=self.study.n_threads)
        interval = bootstrap_interval(base, other)
        p_t = paired_t_test(base, other).p_value if not np.array_equal(base, other) else 1.0
        return Contrast(measure, test.mean_difference, (interval.low, interval.high), test.p_value, p_t, test.n_queries)

    def _query_values(self, setting: str, part: str, measure: str) -> FloatArray:
        """Value of every query of every fold, mean over runs."""
        by_fold = [
            np.mean([result[part][measure] for config, result in self.of(setting) if config["fold"] == fold], axis=0)
            for fold in self.study.folds
        ]
        return np.concatenate(by_fold)


def queries_of(setting: str, n_queries: int) -> int:
    """Number of queries that a setting means when there are `n_queries`.

    >>> queries_of("21", 471), queries_of("63%", 63), queries_of("0.5%", 63)
    (21, 40, 1)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%|(\d+)", setting)
    if match is None or float(match[1] or match[2]) == 0:
        raise RankwoodError(f"a setting is a number of queries (21) or a share of them (63%), got {setting!r}")
    count = max(1, round(float(match[1]) / 100 * n_queries)) if match[1] else int(match[2])
    if count > n_queries:
        raise RankwoodError(f"a tree cannot see {setting} queries: there are {n_queries} to learn from")
    return count


def default_sweep(n_queries: int) -> list[str]:
    """Few queries up to 63 % of them.

    >>> default_sweep(63)
    ['1', '2', '5', '10', '21', '63%']
    """
    limit = queries_of(BASELINE, n_queries)
    return [str(count) for count in COUNTS if count <= 0.75 * limit] + [BASELINE]
