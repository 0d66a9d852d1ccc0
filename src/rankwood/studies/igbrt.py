"""Boosting that starts from a forest (Mohan et al. 2011): GBRT, forests and iGBRT, by regression and by grades."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankwood.data.binning import BinnedDataset
from rankwood.data.dataset import Dataset
from rankwood.dtypes import FloatArray, OffsetArray
from rankwood.ensemble import Ensemble
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluate import evaluate
from rankwood.evaluation.significance import bootstrap_interval, holm, randomisation_test
from rankwood.experiments.report import Report
from rankwood.experiments.sources import FoldData
from rankwood.experiments.study import Runs, Study
from rankwood.experiments.table import Config, Result
from rankwood.studies import forests
from rankwood.studies.forests import TaskName

ERR, NDCG, RMSE = "ERR", "nDCG@10", "RMSE"
RANKED = (ERR, NDCG)
TASKS: tuple[TaskName, ...] = ("regression", "ordinal")
METHODS = ("GBRT", "RF", "iGBRT")
CURVE_POINTS = 60


@dataclass(frozen=True)
class IgbrtStudy(Study):
    """The three methods with both tasks, on every fold, several times each.

    n_trees          of the forests
    boosted_trees    most rounds of boosting; how many are kept is chosen on validation data, as is the learning rate
    learning_rates   those tried
    initial_trees    sizes of forests to boost from in regression, besides n_trees (table 1)
    """

    name = "igbrt"

    n_seeds: int = 1
    n_trees: int = 1000
    boosted_trees: int = 500
    learning_rates: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5)
    initial_trees: Sequence[int] = (100,)

    def __post_init__(self) -> None:
        if min(self.n_seeds, self.n_trees, self.boosted_trees, *self.initial_trees) < 1 or not self.learning_rates:
            raise RankwoodError("a study needs at least one seed, one tree of each kind and one learning rate")

    def configs(self) -> list[Config]:
        """Runs in an order in which those that share data, and then a forest, follow each other."""
        found: list[Config] = []
        for fold in self.folds:
            for seed in range(self.n_seeds):
                for task in TASKS:
                    sizes = [0, *(self.initial_trees if task == "regression" else ()), self.n_trees]
                    for size in dict.fromkeys(sizes):
                        same = {"study": self.name, **self.source.identify(fold), "seed": seed, "task": task}
                        forest = {**same, "method": "forest", "n_trees": size}
                        boosts = [
                            {
                                **same,
                                "method": "boosting",
                                "initial_trees": size,
                                "n_trees": self.boosted_trees,
                                "learning_rate": rate,
                            }
                            for rate in self.learning_rates
                        ]
                        found += [forest, *boosts] if size else boosts
        return found

    def report(self, runs: Runs) -> Report:
        from rankwood.studies.igbrt_report import make_report

        return make_report(IgbrtResults(self, runs))

    def run(self, config: Config) -> Result:
        """Grow a forest, or boost from one (or from nothing), and measure on validation and test data."""
        fold = self._kept.get("data", config["fold"], lambda: self.source.load(config["fold"]))
        measured = _Measured.on(fold, self.n_threads)
        size = config["n_trees"] if config["method"] == "forest" else config["initial_trees"]
        forest, seconds = self._forest(config, fold, size)
        if config["method"] == "forest":
            assert forest is not None
            return {"seconds": seconds, **measured.whole(self._forest_scores(config, forest, measured))}
        return self._boost(config, fold, forest, measured)

    def _forest(self, config: Config, fold: FoldData, size: int) -> tuple[Ensemble | None, float]:
        if size == 0:
            return None, 0.0
        return self._kept.get(  # type: ignore[no-any-return]
            "forest",
            (config["fold"], config["seed"], config["task"], size),
            lambda: forests.grow(
                fold.train,
                task=config["task"],
                n_trees=size,
                max_features=0.1,
                missing="zero",
                random_state=config["seed"],
                n_jobs=self.n_threads,
            ),
        )

    def _forest_scores(self, config: Config, forest: Ensemble, measured: _Measured) -> Any:
        key = (config["fold"], config["seed"], config["task"], forest.n_trees)
        return self._kept.get("scores", key, lambda: measured.scores(forest))

    def _boost(self, config: Config, fold: FoldData, forest: Ensemble | None, measured: _Measured) -> Result:
        from rankwood.learners.initialized import InitializedMART
        from rankwood.learners.presets import MART

        learner: Any = MART if forest is None else InitializedMART
        ranker = learner(
            n_trees=config["n_trees"],
            n_leaves=16,
            max_depth=4,
            min_docs_per_leaf=1,
            learning_rate=config["learning_rate"],
            task=config["task"],
            missing="zero",
            convention=measured.convention,
            random_state=config["seed"],
            n_jobs=self.n_threads,
            **({} if forest is None else {"forest": forest}),
        )
        make = partial(BinnedDataset.make, fold.train, n_threads=self.n_threads)
        binned = self._kept.get("binned", config["fold"], make)
        start = time.perf_counter()
        ranker.fit(
            binned,
            eval_set=[fold.valid, fold.test],
            eval_names=["valid", "test"],
            eval_metric=[*measured.measures, rmse],
        )
        seconds = time.perf_counter() - start
        n_start = 0 if forest is None else forest.n_trees
        per_round = (ranker.ensemble_.n_trees - n_start) // config["n_trees"]
        boosted = ranker.ensemble_.select(np.arange(n_start, ranker.ensemble_.n_trees))
        if forest is None:
            before: Any = {"valid": 0.0, "test": 0.0}
        else:  # whose scores are the same for all learning rates, and large forests take their time
            before, boosted = self._forest_scores(config, forest, measured), boosted.replace(base=0.0)
        curves = _curves(ranker.evals_result_, None if forest is None else measured.means(before))
        best = {}
        for name in (*RANKED, RMSE):
            values = np.array(curves["valid"][name])
            rounds = int(values.argmin() if name == RMSE else values.argmax()) + (forest is None)
            added = measured.scores(boosted.select(np.arange(rounds * per_round)))
            found = measured.whole({part: before[part] + scores for part, scores in added.items()})
            best[name] = {"rounds": rounds, "valid": found["valid"][name], "test": found["test"][name]}
        at = np.unique(np.rint(np.linspace(0, len(curves["valid"][ERR]) - 1, CURVE_POINTS)).astype(int))
        thinned = {part: {n: [round(v[i], 6) for i in at] for n, v in named.items()} for part, named in curves.items()}
        return {"seconds": seconds, "best": best, "curves": {"rounds": (at + (forest is None)).tolist(), **thinned}}


@dataclass(frozen=True)
class _Measured:
    """Measures on the validation and test data of one fold. ERR counts up to the highest grade of the data."""

    fold: FoldData
    convention: Convention
    n_threads: int | None
    measures: tuple[str, ...] = RANKED

    @classmethod
    def on(cls, fold: FoldData, n_threads: int | None) -> _Measured:
        highest = max(float(part.y.max(initial=1.0)) for part in (fold.train, fold.valid, fold.test))
        return cls(fold, convention_of(highest), n_threads)

    def scores(self, model: Ensemble) -> dict[str, FloatArray]:
        """Scores of validation and test data."""
        return {name: model.score(data.X, n_threads=self.n_threads) for name, data in self._parts()}

    def whole(self, scores: Mapping[str, FloatArray]) -> Result:
        """Means on validation data, values of every query of the test data."""
        return {"valid": self.means(scores)["valid"], "test": self._values(scores["test"], self.fold.test)}

    def means(self, scores: Mapping[str, FloatArray]) -> dict[str, dict[str, float]]:
        """Means on both."""
        return {
            name: {measure: float(np.mean(values)) for measure, values in self._values(scores[name], data).items()}
            for name, data in self._parts()
        }

    def _parts(self) -> list[tuple[str, Dataset]]:
        return [("valid", self.fold.valid), ("test", self.fold.test)]

    def _values(self, scores: FloatArray, data: Dataset) -> dict[str, Any]:
        values = evaluate(scores, data, self.measures, convention=self.convention, n_threads=self.n_threads).per_query
        return {**{name: row.tolist() for name, row in values.items()}, RMSE: rmse(data.y, scores, data.offsets)[1]}


def convention_of(highest_grade: float) -> Convention:
    """Yahoo's convention; ERR's largest grade is that of the data, 4 in the paper."""
    return replace(Convention.get("yahoo"), max_grade=highest_grade)


def rmse(labels: FloatArray, scores: FloatArray, offsets: OffsetArray) -> tuple[str, float, bool]:
    """Root of the mean squared error, in the form that learners take measures in."""
    return RMSE, float(np.sqrt(np.mean((np.asarray(labels) - np.asarray(scores)) ** 2))), False


def _curves(history: Mapping[str, Mapping[str, list[float]]], forest: Mapping[str, Any] | None) -> Any:
    """Measures after every round; the first entry is of the forest alone when there is one."""
    curves = {part: {name: list(history[part][name]) for name in (*RANKED, RMSE)} for part in ("valid", "test")}
    for part, means in (forest or {}).items():
        for name, value in means.items():
            curves[part][name].insert(0, value)
    return curves


@dataclass(frozen=True)
class Finding:
    """Two ways to learn, compared query by query on test data. The paper has `better` above `worse`."""

    better: tuple[str, TaskName]
    worse: tuple[str, TaskName]
    measure: str
    difference: float  # above 0: as in the paper
    interval: tuple[float, float]
    p_value: float  # of the randomisation test
    p_holm: float  # the same, corrected for the number of comparisons

    @property
    def verdict(self) -> str:
        if self.p_holm > 0.05:
            return "undecided"
        return "holds" if self.difference > 0 else "the opposite"


@dataclass(frozen=True)
class IgbrtResults:
    """All runs of a study and what follows from them."""

    study: IgbrtStudy
    runs: Runs

    def select(self, **wanted: Any) -> list[tuple[Config, Mapping[str, Any]]]:
        """The runs whose configuration has these entries."""
        return [run for run in self.runs if all(run[0].get(name) == value for name, value in wanted.items())]

    def chosen(self, fold: int, seed: int, task: str, initial_trees: int, measure: str) -> Mapping[str, Any]:
        """The boosted model whose learning rate is best on validation data: rounds, and values on test data."""
        runs = self.select(fold=fold, seed=seed, task=task, method="boosting", initial_trees=initial_trees)
        sign = -1.0 if measure == RMSE else 1.0
        config, result = max(runs, key=lambda run: sign * run[1]["best"][measure]["valid"])
        return {**result["best"][measure], "learning_rate": config["learning_rate"]}

    def test_values(self, method: str, task: str, measure: str, fold: int, *, initial_trees: int | None = None) -> Any:
        """Values of the test queries of one fold (RMSE: one number), mean over seeds."""
        size = self.study.n_trees if initial_trees is None else initial_trees
        found = []
        for seed in range(self.study.n_seeds):
            if method == "RF":
                ((_, result),) = self.select(fold=fold, seed=seed, task=task, method="forest", n_trees=size)
                found.append(result["test"][measure])
            else:
                start = 0 if method == "GBRT" else size
                found.append(self.chosen(fold, seed, task, start, measure)["test"])
        return np.mean(found, axis=0)

    def fold_mean(self, method: str, task: str, measure: str, fold: int, **more: Any) -> float:
        return float(np.mean(self.test_values(method, task, measure, fold, **more)))

    def mean(self, method: str, task: str, measure: str, **more: Any) -> float:
        """Mean over folds and seeds on test data."""
        return float(np.mean([self.fold_mean(method, task, measure, fold, **more) for fold in self.study.folds]))

    def seconds(self, method: str, task: str) -> float:
        """Training time: mean over folds, seeds and learning rates. That of iGBRT includes its forest."""
        forest = np.mean([r["seconds"] for _, r in self.select(method="forest", task=task, n_trees=self.study.n_trees)])
        if method == "RF":
            return float(forest)
        start = 0 if method == "GBRT" else self.study.n_trees
        boosts = [r["seconds"] for _, r in self.select(method="boosting", task=task, initial_trees=start)]
        return float(np.mean(boosts) + (forest if start else 0.0))

    def findings(self) -> list[Finding]:
        """What the paper says is better than what, tested on the queries of all folds."""
        pairs: list[tuple[tuple[str, TaskName], tuple[str, TaskName]]] = []
        pairs += [((method, "ordinal"), (method, "regression")) for method in METHODS]
        pairs += [(("iGBRT", task), (other, task)) for task in TASKS for other in ("GBRT", "RF")]
        pairs += [(("RF", task), ("GBRT", task)) for task in TASKS]
        compared = []
        for measure in RANKED:
            for better, worse in pairs:
                a, b = (
                    np.concatenate([self.test_values(*one, measure, fold) for fold in self.study.folds])
                    for one in (worse, better)
                )
                test, interval = randomisation_test(a, b), bootstrap_interval(a, b)
                compared.append((better, worse, measure, test, (interval.low, interval.high)))
        adjusted = holm([test.p_value for *_, test, _ in compared])
        return [
            Finding(better, worse, measure, test.mean_difference, interval, test.p_value, float(p))
            for (better, worse, measure, test, interval), p in zip(compared, adjusted, strict=True)
        ]
