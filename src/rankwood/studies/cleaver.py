"""Pruning of trained ensembles (Lucchese et al. 2016): every strategy on models of several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluate import evaluate
from rankwood.experiments.report import Report
from rankwood.experiments.sources import FoldData
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result
from rankwood.pruning.cleaver import RATES, cleaver
from rankwood.pruning.line_search import LineSearch

MEASURE = "nDCG@10"
FULL = "full"
STRATEGIES = ("random", "last", "skip", "low-weights", "score-loss", "quality-loss")
# Not in the paper: others, victims chosen by validation data, and leaf values fitted anew.
BEYOND = ("quality-loss-greedy", "quality-loss by validation", "quality-loss by validation + refit")
WAYS = ("trained", "line-searched", "pruned")


@dataclass(frozen=True)
class CleaverStudy(Study):
    """LambdaMART models, the first trees of the largest taken as smaller ones, pruned by every strategy.

    sizes       numbers of trees of the smaller models; the full one has more, and stops early
    n_random    runs of the strategy "random", whose results are averaged
    closing     (a, b): a model of a trees against one that is pruned from b to a
    """

    name = "cleaver"

    sizes: Sequence[int] = (100, 500)
    n_trees: int = 1500
    n_leaves: int = 50
    learning_rate: float = 0.05
    early_stopping: int = 50
    rates: Sequence[float] = RATES
    iterations: int = 100
    n_random: int = 10
    closing: tuple[int, int] = (100, 500)
    strategies: Sequence[str] = (*STRATEGIES, *BEYOND)

    def __post_init__(self) -> None:
        if min(self.n_trees, self.n_random, *self.sizes) < 1 or not self.rates or not self.strategies:
            raise RankwoodError("a study needs trees, rates, strategies and at least one run of each")

    def configs(self) -> list[Config]:
        """Runs in an order in which those of a fold follow each other."""
        found: list[Config] = []
        for fold in self.folds:
            same = {
                "study": self.name,
                **self.source.identify(fold),
                "model": [self._n_first, self.n_trees, self.n_leaves, self.learning_rate, self.early_stopping],
                "iterations": self.iterations,
            }
            for size in (*self.sizes, FULL):
                for strategy in self.strategies:
                    for seed in range(self.n_random if strategy == "random" else 1):
                        rates = {"rates": [float(rate) for rate in self.rates]}
                        found.append({**same, **rates, "size": size, "strategy": strategy, "seed": seed})
            found.append({**same, "closing": list(self.closing)})
        return found

    def report(self, runs: Runs) -> Report:
        from rankwood.studies.cleaver_report import make_report

        return make_report(CleaverResults(self, runs))

    def run(self, config: Config) -> Result:
        fold = self._kept.get("data", config["fold"], lambda: self.source.load(config["fold"]))
        model = self._kept.get("model", config["fold"], lambda: self._train(fold))
        if "closing" in config:
            return self._close(model, fold, *config["closing"])
        if config["size"] != FULL:
            model = model.select(np.arange(min(config["size"], model.n_trees)))
        named, _, extra = config["strategy"].partition(" + ")
        strategy, _, judge = named.partition(" by ")
        result = cleaver(
            model,
            fold.train,
            fold.valid,
            test=fold.test,
            judge=None,
            measure=MEASURE,
            strategy=strategy,
            victims="valid" if judge == "validation" else "train",
            rates=self.rates,
            variants="refit" if extra == "refit" else "line-search",
            search=LineSearch(iterations=self.iterations),
            seed=config["seed"],
            n_threads=self.n_threads,
        )
        return {
            "table": result.table,
            "chosen": result.rows.index(result.chosen),
            "values": [self._values(row.ensemble, fold) for row in result.rows],
        }

    def _close(self, model: Ensemble, fold: FoldData, small: int, large: int) -> Result:
        """Three ways to `small` trees: the first that were trained, these line-searched, and pruned from `large`."""
        first, more = (model.select(np.arange(min(size, model.n_trees))) for size in (small, large))
        how: dict[str, Any] = {"measure": MEASURE, "measure_speed": False, "n_threads": self.n_threads,
                               "judge": None, "victims": "train", "variants": "line-search"}  # fmt: skip
        search = LineSearch(iterations=self.iterations)
        searched = cleaver(first, fold.train, fold.valid, rates=(0.0,), search=search, **how).rows[1].ensemble
        rate = max(0.0, 1.0 - small / more.n_trees)
        pruned = cleaver(more, fold.train, fold.valid, rates=(rate,), search=search, **how).rows[1].ensemble
        models = dict(zip(WAYS, (first, searched, pruned), strict=True))
        return {name: {"n_trees": m.n_trees, "values": self._values(m, fold)} for name, m in models.items()}

    @property
    def _n_first(self) -> int:
        """Trees that the full model has before it may stop: those of the smaller ones."""
        return min(self.n_trees, max(*self.sizes, *self.closing))

    def _train(self, fold: FoldData) -> Ensemble:
        """The full model: as many trees as the largest of the smaller ones, and then on until it is stopped early."""
        from rankwood.data.binning import BinnedDataset
        from rankwood.learners.presets import LambdaMART

        first = self._n_first
        ranker = LambdaMART(
            n_trees=first, n_leaves=self.n_leaves, learning_rate=self.learning_rate, n_jobs=self.n_threads
        )
        binned = BinnedDataset.make(fold.train, n_threads=self.n_threads)
        model: Ensemble = ranker.fit(binned).ensemble_
        if first < self.n_trees:
            ranker.set_params(n_trees=self.n_trees - first, early_stopping_rounds=self.early_stopping)
            model = ranker.fit(binned, valid=fold.valid, init_model=model).ensemble_
        return model

    def _values(self, model: Ensemble, fold: FoldData) -> list[float]:
        values: list[float] = evaluate(model, fold.test, MEASURE, n_threads=self.n_threads).per_query[MEASURE].tolist()
        return values


@dataclass(frozen=True)
class Outcome:
    """A strategy on models of one size: means over folds (and runs of "random"), and test queries of all folds."""

    n_full: float
    n_trees: float
    rate: float
    speed_up: float
    full: float  # on test data
    test: float
    full_values: FloatArray
    test_values: FloatArray  # each query's mean over runs


@dataclass(frozen=True)
class CleaverResults:
    """All runs of a study and what follows from them."""

    study: CleaverStudy
    runs: Runs

    def of(self, size: Any, strategy: str, fold: int) -> list[Mapping[str, Any]]:
        """The runs of one strategy on one model."""
        return [
            result
            for config, result in self.runs
            if (config.get("size"), config.get("strategy"), config["fold"]) == (size, strategy, fold)
        ]

    def outcome(self, size: Any, strategy: str, rule: str = "quality") -> Outcome:
        """What came of a strategy: the smallest models that the rule accepts on validation data."""
        chosen, full_values, test_values = [], [], []
        for fold in self.study.folds:
            found = self.of(size, strategy, fold)
            numbers = [pick(result["table"], rule) for result in found]
            chosen += [(result["table"][0], result["table"][i]) for result, i in zip(found, numbers, strict=True)]
            full_values.append(found[0]["values"][0])
            test_values.append(np.mean([r["values"][i] for r, i in zip(found, numbers, strict=True)], axis=0))

        def mean(which: int, name: str) -> float:
            return float(np.mean([pair[which][name] for pair in chosen]))

        return Outcome(
            n_full=mean(0, "n_trees"),
            n_trees=mean(1, "n_trees"),
            rate=1.0 - float(np.mean([b["n_trees"] / a["n_trees"] for a, b in chosen])),
            speed_up=mean(1, "speed_up"),
            full=mean(0, "test"),
            test=mean(1, "test"),
            full_values=np.concatenate(full_values),
            test_values=np.concatenate(test_values),
        )

    def closing(self) -> dict[str, tuple[float, FloatArray]]:
        """Of each way to the same size: number of trees and values of the test queries of all folds."""
        found = [result for config, result in self.runs if "closing" in config]
        return {
            way: (
                float(np.mean([result[way]["n_trees"] for result in found])),
                np.concatenate([result[way]["values"] for result in found]),
            )
            for way in WAYS
        }


def pick(table: Sequence[Mapping[str, Any]], rule: str) -> int:
    """The row of the smallest model that is as good on validation data; 0, the full model, when there is none.

    >>> models = ((10, 0.5, None), (5, 0.49, 0.3), (8, 0.51, 0.5))
    >>> rows = [{"n_trees": n, "valid": valid, "p_valid": p} for n, valid, p in models]
    >>> pick(rows, "quality"), pick(rows, "not-significant")
    (2, 1)
    """
    full = table[0]

    def good(row: Mapping[str, Any]) -> bool:
        known = row["p_valid"] is not None
        return bool(row["valid"] >= full["valid"] or (rule == "not-significant" and known and row["p_valid"] > 0.05))

    rows = [i for i in range(1, len(table)) if good(table[i]) and table[i]["n_trees"] < full["n_trees"]]
    return min(rows, key=lambda i: (table[i]["n_trees"], -table[i]["valid"]), default=0)
