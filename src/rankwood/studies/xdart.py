"""Dropout and pruning in boosting (Lucchese et al. 2017): LambdaMART, DART and X-DART by the number of trees."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.evaluate import evaluate
from rankwood.evaluation.significance import randomisation_test
from rankwood.experiments.report import Report
from rankwood.experiments.sources import FoldData
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result

NDCG = "nDCG@10"
N_PERMUTATIONS = 10_000
SIGNIFICANT = 0.05
FULL = "full"  # LambdaMART at the size that early stopping chooses

# Name in the table, and parameters. The paper tuned LambdaMART to a learning rate of 0.05, DART to 1 with 1.5 %.
METHODS: dict[str, dict[str, Any]] = {
    "LambdaMART": {"learner": "LambdaMART", "learning_rate": 0.05},
    "LambdaMART adaptive": {"learner": "LambdaMART", "learning_rate": 1.0, "learning_rate_schedule": "adaptive"},
    "DART 1.5%": {"learner": "DART", "rate": 0.015},
    **{f"X-DART ratio {p:g}%": {"learner": "XDART", "strategy": "ratio", "rate": p / 100} for p in (1, 1.5, 2, 3)},
    **{f"X-DART fixed {k}": {"learner": "XDART", "strategy": "fixed", "k": k} for k in (1, 2, 3, 4)},
    "X-DART adaptive 5": {"learner": "XDART", "strategy": "adaptive", "upper_bound": 5},
    "X-DART adaptive 10": {"learner": "XDART", "strategy": "adaptive", "upper_bound": 10},
    "X-DART adaptive 1.5%": {"learner": "XDART", "strategy": "adaptive", "upper_bound": 0.015},
}  # fmt: skip
REFERENCE = "DART 1.5%"


@dataclass(frozen=True)
class XdartStudy(Study):
    """All methods on every fold, several times each, measured at five sizes up to `n_trees`.

    full_trees       most trees of LambdaMART, which stops early on validation data
    patience         trees without improvement before it does
    learning_rate    of DART and X-DART
    methods          names of METHODS to run; DART is always among them
    """

    name = "xdart"

    n_seeds: int = 1
    n_trees: int = 500
    full_trees: int = 1500
    patience: int = 100
    n_leaves: int = 50
    learning_rate: float = 1.0
    methods: Sequence[str] = tuple(METHODS)

    def __post_init__(self) -> None:
        if min(self.n_seeds, self.patience) < 1 or self.n_trees < 5 or self.full_trees < self.n_trees:
            raise RankwoodError(
                "a study needs at least one seed, 5 trees, and no fewer for the full LambdaMART than for the others"
            )
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown or REFERENCE not in self.methods:
            raise RankwoodError(f"methods are {', '.join(METHODS)}, and {REFERENCE} must be one: got {self.methods}")

    @property
    def sizes(self) -> list[int]:
        """Five numbers of trees: 100 to 500 in the paper."""
        return [self.n_trees * step // 5 for step in range(1, 6)]

    def configs(self) -> list[Config]:
        """Runs in an order in which those that share data follow each other."""
        found: list[Config] = []
        for fold in self.folds:
            for seed in range(self.n_seeds):
                for method in self.methods:
                    parameters = {"n_leaves": self.n_leaves, **METHODS[method]}
                    if parameters["learner"] == "LambdaMART":
                        parameters |= {"n_trees": self.full_trees, "patience": self.patience}
                    else:
                        parameters |= {"n_trees": self.n_trees, "learning_rate": self.learning_rate}
                    same = {"study": self.name, **self.source.identify(fold), "seed": seed, "method": method}
                    found.append({**same, "sizes": self.sizes, "parameters": parameters})
        return found

    def report(self, runs: Runs) -> Report:
        from rankwood.studies.xdart_report import make_report

        return make_report(XdartResults(self, runs))

    def run(self, config: Config) -> Result:
        """Train one method, and measure the models of all sizes that it reached."""
        fold = self._kept.get("data", config["fold"], lambda: self.source.load(config["fold"]))
        make = partial(BinnedDataset.make, fold.train, n_threads=self.n_threads)
        binned = self._kept.get("binned", config["fold"], make)
        ranker = self._learner(config)
        start = time.perf_counter()
        ranker.fit(binned, valid=fold.valid)
        seconds = time.perf_counter() - start
        models: dict[str, Ensemble]
        if config["parameters"]["learner"] == "LambdaMART":
            within = [size for size in config["sizes"] if size <= ranker.n_trees_]
            models = {str(size): ranker.ensemble_.select(np.arange(size)) for size in within}
            facts: Result = {"iterations": len(ranker.evals_result_["valid"][NDCG]), "removed": 0}
            models[FULL] = ranker.ensemble_
        else:
            models = {str(size): model for size, model in ranker.models_at_.items()}
            removed = sum(len(step.dropped) for step in ranker.log_ if step.removed)
            facts = {"iterations": len(ranker.log_), "removed": removed}
        return {"seconds": seconds, **facts, "models": {at: self._measure(m, fold) for at, m in models.items()}}

    def _learner(self, config: Config) -> Any:
        from rankwood.learners.dart import DART, XDART
        from rankwood.learners.presets import LambdaMART

        given = dict(config["parameters"])
        learner: Any = {"LambdaMART": LambdaMART, "DART": DART, "XDART": XDART}[given.pop("learner")]
        if learner is LambdaMART:
            given["early_stopping_rounds"] = given.pop("patience")
        else:
            given["record_sizes"] = config["sizes"]
        return learner(**given, random_state=config["seed"], n_jobs=self.n_threads)

    def _measure(self, model: Ensemble, fold: FoldData) -> Result:
        """Mean on validation data, values of every query of the test data."""
        valid = evaluate(model, fold.valid, NDCG, n_threads=self.n_threads)
        test = evaluate(model, fold.test, NDCG, n_threads=self.n_threads)
        return {"n_trees": model.n_trees, "valid": valid[NDCG], "test": test.per_query[NDCG].tolist()}


@dataclass(frozen=True)
class Equivalence:
    """A model compared with the reference on the queries of all folds."""

    method: str
    size: int | str
    difference: float  # above 0: better than the reference
    p_value: float

    @property
    def holds(self) -> bool:
        """Not significantly worse: what the paper prints in bold."""
        return self.p_value > SIGNIFICANT or self.difference > 0


@dataclass(frozen=True)
class XdartResults:
    """All runs of a study and what follows from them."""

    study: XdartStudy
    runs: Runs

    def select(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """Results of the runs whose configuration has these entries."""
        return [result for config, result in self.runs if all(config.get(n) == v for n, v in wanted.items())]

    def test_values(self, method: str, size: int | str) -> FloatArray | None:
        """Values of the test queries of all folds, mean over seeds; None unless every run reached the size."""
        folds = []
        for fold in self.study.folds:
            models = [result["models"].get(str(size)) for result in self.select(fold=fold, method=method)]
            if not models or any(model is None for model in models):
                return None
            folds.append(np.mean([model["test"] for model in models], axis=0))
        return np.concatenate(folds)

    def mean(self, method: str, size: int | str, part: str = "test") -> float | None:
        """Mean over folds and seeds on test or validation data."""
        if self.test_values(method, size) is None:
            return None
        found = [float(np.mean(result["models"][str(size)][part])) for result in self.select(method=method)]
        return float(np.mean(found))

    def full_size(self, method: str) -> float:
        """Mean number of trees that early stopping left of LambdaMART."""
        return float(np.mean([result["models"][FULL]["n_trees"] for result in self.select(method=method)]))

    def fact(self, method: str, name: str) -> float:
        """Mean over runs of seconds, iterations or removed trees."""
        return float(np.mean([result[name] for result in self.select(method=method)]))

    def equivalence(
        self, method: str, size: int | str, *, to: str = REFERENCE, at: int | str | None = None
    ) -> Equivalence | None:
        """A model against DART with all trees, or another; None when one of them is not there."""
        ours = self.test_values(method, size)
        theirs = self.test_values(to, self.study.n_trees if at is None else at)
        if ours is None or theirs is None:
            return None
        test = randomisation_test(theirs, ours, n_permutations=N_PERMUTATIONS)
        return Equivalence(method, size, test.mean_difference, test.p_value)

    def smallest(self, method: str, *, to: str = REFERENCE, at: int | str | None = None) -> Equivalence | None:
        """The smallest model of a method that is not significantly worse than the reference; None without one."""
        for size in self.study.sizes:
            found = self.equivalence(method, size, to=to, at=at)
            if found is not None and found.holds:
                return found
        return None
