"""Pruning of trained ensembles (Lucchese et al. 2016): every strategy on models of several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import holm, randomisation_test
from rankwood.fitting.outputs import TreeOutputs, signed_weights, unsigned_weights
from rankwood.lab.drawing import Figure, dodged, label_ends, line_style
from rankwood.lab.papers.common import PaperResults, PaperStudy, gradient_parameters
from rankwood.lab.papers.related import bagged, lasso_weights
from rankwood.lab.runs import Result
from rankwood.lab.study import (
    FoldData,
    Report,
    Runs,
    Table,
    half_interval,
    listed,
    p_text,
    query_values,
    time_scoring,
)
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Rule
from rankwood.pruning.cleaver import RATES, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.nodes import collapse_nodes
from rankwood.pruning.pruner import PruningSettings
from rankwood.scoring.timing import BATCH
from rankwood.training.callbacks import early_stopping
from rankwood.training.estimators import MART, LambdaMART
from rankwood.training.random_forest import RandomForest

# What is compared: ways to prune, on models of several sizes.


MEASURE = "nDCG@10"
Size = int | Literal["full"]  # so many of the first trees, or all
FULL: Literal["full"] = "full"
LONGER = "longer"  # the full model, or one whose training went on because the smaller models need more trees
RULES: tuple[Rule, ...] = ("quality", "not-significant")  # which of the pruned models are accepted


@dataclass(frozen=True)
class Way:
    """A way to prune.

    Parameters
    ----------
    strategy : str
        How the trees that go are chosen.
    victims : "train" or "valid", default "train"
        The data that they are chosen by.
    variant : "line-search" or "refit", default "line-search"
        What becomes of the trees that stay: new weights, or leaf values fitted anew.

    Examples
    --------
    >>> Way("skip").name, Way("quality-loss", victims="valid", variant="refit").name
    ('skip', 'quality-loss by validation + refit')
    """

    strategy: str
    victims: Literal["train", "valid"] = "train"
    variant: Literal["line-search", "refit"] = "line-search"

    @property
    def name(self) -> str:
        """Name in tables."""
        by = " by validation" if self.victims == "valid" else ""
        more = f" + {self.variant}" if self.variant != "line-search" else ""
        return f"{self.strategy}{by}{more}"


QUALITY_LOSS = Way("quality-loss")
OF_PAPER = (Way("random"), Way("last"), Way("skip"), Way("low-weights"), Way("signed-score-loss"), QUALITY_LOSS)
# Not in the paper: shares of absolute contributions, a greedy strategy, victims chosen by validation data, and leaf
# values fitted anew.
BEYOND = (
    Way("score-loss"),
    Way("quality-loss-greedy"),
    Way("quality-loss", "valid"),
    Way("quality-loss", "valid", "refit"),
)
ROADS = ("trained", "line-searched", "pruned")  # three ways to a model of the same size
# What the papers compare with in words, beside the reference and the pruned model.
METHODS = (
    "reference",
    "pruned",
    "prefix",
    "Lasso",
    "nodes collapsed",
    "bagged LambdaMART",
    "extremely randomised trees",
)


# The runs: sweeps, which find the models to prune; prunings, which save the models that the rules accept; other ways to
# models as small; and timings.


@dataclass(frozen=True)
class Candidate:
    """A learner and its parameters, one of those that a sweep tries.

    Examples
    --------
    >>> Candidate("MART", 50, 0.05).name
    'MART, 50 leaves, learning rate 0.05'
    """

    learner: Literal["MART", "LambdaMART"]
    n_leaves: int
    learning_rate: float

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.learner}, {self.n_leaves} leaves, learning rate {self.learning_rate:g}"


@dataclass(frozen=True)
class Sweep:
    """A run: all candidates trained on a fold; the best on validation data is the model that is pruned.

    Parameters
    ----------
    fold : int
    candidates : tuple of Candidate
    n_trees : int
        Most trees of a model.
    n_first : int
        Trees that the smaller models need. Where the best model has fewer, its training goes on to as many for them.
    patience : int
        Training ends when so many trees gained too little on validation data.
    min_gain : float
        What they must gain, as a share of the measure.
    normalize : bool
        Whether LambdaMART's gradients are scaled and truncated as LightGBM's.
    """

    fold: int
    candidates: tuple[Candidate, ...]
    n_trees: int
    n_first: int
    patience: int
    min_gain: float
    normalize: bool


@dataclass(frozen=True)
class Pruning:
    """A run: a model of one size pruned in one way, at all rates."""

    sweep: Sweep
    size: Size
    way: Way
    rates: tuple[float, ...]
    iterations: int
    seed: int
    negative: Literal["exclude", "clip"] = "exclude"

    @property
    def fold(self) -> int:
        return self.sweep.fold


@dataclass(frozen=True)
class TimingRun:
    """A run: how many times faster than the model before the accepted models of a pruning score."""

    pruning: Pruning

    @property
    def fold(self) -> int:
        return self.pruning.fold


@dataclass(frozen=True)
class Closing:
    """A run: a model of `small` trees against one that is pruned from `large` to as many."""

    sweep: Sweep
    small: int
    large: int
    iterations: int
    negative: Literal["exclude", "clip"] = "exclude"

    @property
    def fold(self) -> int:
        return self.sweep.fold


@dataclass(frozen=True)
class Related:
    """A run: models of the size that pruning leaves, made in ways that the papers compare with in words.

    Parameters
    ----------
    sweep : Sweep
    rate : float
        Share of the trees of the full model that go, by quality-loss, whether the pruned model is as good or not.
    iterations : int
        Of a line search.
    n_leaves, learning_rate : int, float
        Of the boosted models in the bag.
    n_bags : int
        Number of these.
    """

    sweep: Sweep
    rate: float
    iterations: int
    n_leaves: int
    learning_rate: float
    n_bags: int
    negative: Literal["exclude", "clip"] = "exclude"

    @property
    def fold(self) -> int:
        return self.sweep.fold


@dataclass(frozen=True)
class CleaverStudy(PaperStudy):
    """The best of MART and LambdaMART, at several sizes, pruned in every way.

    Parameters
    ----------
    sizes : sequence of int, default (100, 500)
        Numbers of trees of the smaller models, which are the first trees of the full one.
    n_trees : int, default 1500
        Most trees of the full model.
    learners : sequence of str, default ("MART", "LambdaMART")
    leaves : sequence of int, default (25, 50)
        Most leaves of a tree; the paper tries 5, 10, 25 and 50.
    learning_rates : sequence of float, default (0.05, 0.1)
        The paper on X-DART tries 0.05, 0.1, 0.5 and 1.
    early_stopping : int, default 50
        Training ends when so many trees gained too little on validation data.
    min_gain : float, default 0.0005
        What they must gain, as a share of the measure.
    rates : sequence of float, default (0, 0.1, ..., 0.9)
        Shares of the trees that are pruned; at 0 weights are searched and no tree goes.
    iterations : int, default 100
        Iterations of a line search.
    n_random : int, default 10
        Runs of the strategy "random", whose results are averaged.
    closing : (int, int), default (100, 500)
        Sizes a and b: a model of a trees is compared with one that is pruned from b to a.
    ways : sequence of Way
    related_rate : float, default 0.5
        Share of the trees that are pruned where other methods are compared at the same size.
    n_bags : int, default 5
        Models of the bag among these.
    normalize : bool, default False
        Whether LambdaMART's gradients are scaled and truncated as LightGBM's instead of plain ones.
    """

    name = "cleaver"

    sizes: Sequence[int] = (100, 500)
    n_trees: int = 1500
    learners: Sequence[Literal["MART", "LambdaMART"]] = ("MART", "LambdaMART")
    leaves: Sequence[int] = (25, 50)
    learning_rates: Sequence[float] = (0.05, 0.1)
    early_stopping: int = 50
    min_gain: float = 0.0005
    rates: Sequence[float] = (0.0, *RATES)
    iterations: int = 100
    n_random: int = 10
    closing: tuple[int, int] = (100, 500)
    ways: Sequence[Way] = (*OF_PAPER, *BEYOND)
    related_rate: float = 0.5
    n_bags: int = 5
    normalize: bool = False

    def __post_init__(self) -> None:
        least = min(self.n_trees, self.n_random, self.n_bags, *self.sizes)
        if least < 1 or not self.rates or not self.ways or not 0.0 <= self.related_rate < 1.0:
            raise RankwoodError("a study needs trees, rates, strategies and at least one run of each")
        if not (self.learners and self.leaves and self.learning_rates):
            raise RankwoodError("a sweep needs at least one learner, one number of leaves and one learning rate")

    @property
    def all_sizes(self) -> list[Size]:
        """The sizes of the models that are pruned, the full one last."""
        return [*self.sizes, FULL]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What a sweep tries."""
        return tuple(Candidate(*given) for given in product(self.learners, self.leaves, self.learning_rates))

    def sweep(self, fold: int) -> Sweep:
        """The sweep on a fold."""
        n_first = min(self.n_trees, max(*self.sizes, *self.closing))
        stop = self.early_stopping, self.min_gain
        return Sweep(fold, self.candidates, self.n_trees, n_first, *stop, self.normalize)

    def prunings(self, fold: int, size: Size, way: Way) -> list[Pruning]:
        """The runs of one way: one, or several when trees are drawn at random."""
        n_runs = self.n_random if way.strategy == "random" else 1
        same = (self.sweep(fold), size, way, tuple(map(float, self.rates)), self.iterations)
        return [Pruning(*same, seed) for seed in range(n_runs)]

    def closing_of(self, fold: int) -> Closing:
        """The closing comparison on a fold."""
        return Closing(self.sweep(fold), *self.closing, self.iterations)

    def related_of(self, fold: int) -> Related:
        """Related methods, at the size of the full model pruned by quality-loss."""
        boosted = max(self.leaves), min(self.learning_rates)
        return Related(self.sweep(fold), self.related_rate, self.iterations, *boosted, self.n_bags)

    def plan(self) -> list[Sweep | Pruning | Closing | Related]:
        found: list[Sweep | Pruning | Closing | Related] = []
        for fold in self.folds:
            found.append(self.sweep(fold))
            for size in self.all_sizes:
                for way in self.ways:
                    found += self.prunings(fold, size, way)
            found += [self.closing_of(fold), self.related_of(fold)]
        return found

    def timings(self) -> list[TimingRun]:
        """Timings of every pruning."""
        return [TimingRun(run) for run in self.plan() if isinstance(run, Pruning)]

    def report(self, runs: Runs) -> Report:
        return make_report(CleaverResults(self, runs))

    def perform(self, run: Sweep | Pruning | Closing | Related | TimingRun) -> Result:
        if isinstance(run, Sweep):
            result, models = self._sweep(run)
            self._kept.get("references", run, lambda: models)
            return result
        if isinstance(run, Pruning):
            return self._prune(run)[0]
        if isinstance(run, Closing):
            return self._close(run)
        return self._relate(run) if isinstance(run, Related) else self._time(run)

    def _sweep(self, run: Sweep) -> tuple[Result, dict[str, Ensemble]]:
        """Train all candidates, and save the best as the model to prune, and with more trees if it has too few."""
        fold, models, found = self.fold_data(run.fold), [], []
        for candidate in run.candidates:
            stop = early_stopping(run.patience, True, min_delta=run.min_gain, relative=True)
            model = self._train(run, candidate, run.n_trees, valid=fold.valid, callbacks=[stop])
            valid, test = (evaluate(model, data, MEASURE, n_threads=self.n_threads) for data in (fold.valid, fold.test))
            models.append(model)
            found.append({"n_trees": model.n_trees, "n_leaves": model.n_leaves, "valid": valid[MEASURE],
                          "test": test[MEASURE]})  # fmt: skip
        best = max(range(len(found)), key=lambda i: found[i]["valid"])
        full = models[best]
        enough = full.n_trees >= run.n_first
        longer = full if enough else self._train(run, run.candidates[best], run.n_first)
        references = {FULL: full, LONGER: longer}
        self.save_models(self.config(run), references)
        return {"candidates": found, "best": best}, references

    def _train(self, run: Sweep, how: Candidate, n_trees: int, **fit: Any) -> Ensemble:
        """The model of a candidate."""
        ranker: Any = MART() if how.learner == "MART" else LambdaMART(**gradient_parameters(run.normalize))
        given = {"n_trees": n_trees, "n_leaves": how.n_leaves, "learning_rate": how.learning_rate}
        ranker.set_params(**given, n_jobs=self.n_threads)
        model: Ensemble = ranker.fit(self.binned_train(run.fold), **fit).ensemble_
        return model

    def _reference(self, run: Sweep, which: str) -> Ensemble:
        """A model of a sweep, which is done again unless its models were saved."""

        def make() -> dict[str, Ensemble]:
            return self.saved_models(self.config(run), (FULL, LONGER)) or self._sweep(run)[1]

        models: dict[str, Ensemble] = self._kept.get("references", run, make)
        return models[which]

    def _before(self, run: Pruning) -> Ensemble:
        """The model that is pruned."""
        if run.size == FULL:
            return self._reference(run.sweep, FULL)
        return _first(self._reference(run.sweep, LONGER), run.size)

    def _prune(self, run: Pruning) -> tuple[Result, dict[str, Ensemble]]:
        """Prune, and save the models that the rules accept for their timing.

        Returns
        -------
        result : dict
            The table of pruned models, the model before first, and for each the values of the test queries.
        accepted : dict of Ensemble
            The model that each rule accepts, by the rule; the model before where it accepts none.
        """
        fold = self.fold_data(run.fold)
        found = cleaver(
            self._before(run),
            fold.train,
            fold.valid,
            test=fold.test,
            judge=None,
            accept="quality",
            measure=MEASURE,
            strategy=run.way.strategy,
            rates=run.rates,
            variants=run.way.variant,
            settings=PruningSettings(
                victims=run.way.victims,
                search=LineSearch(iterations=run.iterations, negative=run.negative),
                measure_speed=False,
                seed=run.seed,
            ),
            n_threads=self.n_threads,
        )
        table, models = found.table, [row.ensemble for row in found.rows]
        accepted: dict[str, Ensemble] = {rule: models[pick(table, rule)] for rule in RULES}
        self.save_models(self.config(run), accepted)
        return {"table": table, "values": [self._values(model, fold) for model in models]}, accepted

    def _accepted(self, run: Pruning) -> dict[str, Ensemble]:
        """The models that the rules accept, which are made again unless they were saved."""
        return self.saved_models(self.config(run), RULES) or self._prune(run)[1]

    def _relate(self, run: Related) -> Result:
        """Models by other methods, of as many trees as the pruned model has, or as many leaves."""
        fold, full = self.fold_data(run.fold), self._reference(run.sweep, FULL)
        pruned = self._pruned(run, full, run.rate)
        outputs = TreeOutputs.of(full, fold.train, n_threads=self.n_threads)
        weights = lasso_weights(outputs, outputs.scores(unsigned_weights(full)), pruned.n_trees)
        sizes = np.diff(full.leaf_offsets)
        covers = [np.bincount(codes, minlength=size) for codes, size in zip(outputs.codes, sizes, strict=True)]
        n_bags = min(run.n_bags, pruned.n_trees)
        gradients = gradient_parameters(run.sweep.normalize)
        boosted = LambdaMART(n_leaves=run.n_leaves, learning_rate=run.learning_rate, n_jobs=self.n_threads, **gradients)
        forest = RandomForest(
            pruned.n_trees, thresholds="random", docs_per_tree=1.0, replace=False, n_jobs=self.n_threads
        )
        models = (
            full,
            pruned,
            _first(full, pruned.n_trees),
            full.reweigh(signed_weights(full, weights)).select(np.flatnonzero(weights)),
            collapse_nodes(full, np.concatenate(covers).astype(np.float64), pruned.n_leaves),
            bagged(boosted, fold.train, n_bags, n_trees=pruned.n_trees),
            forest.fit(fold.train).ensemble_,
        )
        return {
            method: {"n_trees": model.n_trees, "n_leaves": model.n_leaves, "values": self._values(model, fold)}
            for method, model in zip(METHODS, models, strict=True)
        }

    def _time(self, run: TimingRun) -> Result:
        """Time the model before and the accepted ones."""
        before, accepted = self._before(run.pruning), self._accepted(run.pruning)
        # Both rules may accept the same model, or none: a model has one time.
        models = {"before": before}
        name_of = {}
        for rule, model in accepted.items():
            name_of[rule] = next((name for name, known in models.items() if known == model), rule)
            models[name_of[rule]] = model
        times, conditions = time_scoring(models, self.fold_data(run.fold).test)
        return {"speed_up": {rule: times["before"] / times[name_of[rule]] for rule in RULES}, "timing": conditions}

    def _close(self, run: Closing) -> Result:
        """Three ways to `small` trees: the first that were trained, these line-searched, and pruned from `large`."""
        model, fold = self._reference(run.sweep, LONGER), self.fold_data(run.fold)
        small, large = _first(model, run.small), _first(model, run.large)
        to_small = max(0.0, 1.0 - run.small / large.n_trees)
        found = small, self._pruned(run, small, 0.0), self._pruned(run, large, to_small)
        models = dict(zip(ROADS, found, strict=True))
        return {road: {"n_trees": m.n_trees, "values": self._values(m, fold)} for road, m in models.items()}

    def _pruned(self, run: Closing | Related, model: Ensemble, rate: float) -> Ensemble:
        """The model pruned at one rate by quality-loss, as good or not."""
        fold, search = self.fold_data(run.fold), LineSearch(iterations=run.iterations, negative=run.negative)
        _, found = cleaver(
            model, fold.train, fold.valid, judge=None, accept="quality", measure=MEASURE, rates=(rate,),
            variants="line-search", settings=PruningSettings(victims="train", search=search, measure_speed=False),
            n_threads=self.n_threads,
        ).rows  # fmt: skip
        pruned: Ensemble = found.ensemble
        return pruned

    def _values(self, model: Ensemble, fold: FoldData) -> list[float]:
        """The measure of every test query."""
        values: list[float] = evaluate(model, fold.test, MEASURE, n_threads=self.n_threads).per_query[MEASURE].tolist()
        return values


def _first(model: Ensemble, n_trees: int) -> Ensemble:
    """The model's first trees; all of them when it has no more."""
    return model.select(np.arange(min(n_trees, model.n_trees)))


# What follows from the runs.


@dataclass(frozen=True)
class Outcome:
    """What a way to prune does to models of one size, on test data: means over folds (and runs of "random").

    Parameters
    ----------
    n_full, n_trees : float
        Trees before and after.
    rate : float
        Share of the trees that were pruned.
    speed_up : float
        Time of scoring before, over that after.
    full, test : float
        The measure before and after.
    full_values, test_values : array
        The same of every query of all folds, the latter the query's mean over runs.
    """

    n_full: float
    n_trees: float
    rate: float
    speed_up: float
    full: float
    test: float
    full_values: FloatArray
    test_values: FloatArray


@dataclass(frozen=True)
class CleaverResults(PaperResults):
    """The results of all runs, and what follows from them."""

    study: CleaverStudy

    def of(self, size: Size, way: Way, fold: int) -> list[Mapping[str, Any]]:
        """The results of one way on one model."""
        return [self.result(run) for run in self.study.prunings(fold, size, way)]

    def outcome(self, size: Size, way: Way, rule: Rule = "quality") -> Outcome:
        """The outcome of a way to prune, with the smallest models that the rule accepts on validation data."""
        chosen, full_values, test_values, speed_ups = [], [], [], []
        for fold in self.study.folds:
            timed = [self.result(TimingRun(run)) for run in self.study.prunings(fold, size, way)]
            speed_ups += [result["speed_up"][rule] for result in timed]
            found = self.of(size, way, fold)
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
            speed_up=float(np.mean(speed_ups)),
            full=mean(0, "test"),
            test=mean(1, "test"),
            full_values=np.concatenate(full_values),
            test_values=np.concatenate(test_values),
        )

    def searched(self, size: Size) -> tuple[float, float, FloatArray] | None:
        """Trees, share of the trees that got weight 0, and test values of line search alone; None without rate 0."""
        way = next((way for way in self.study.ways if way.variant == "line-search"), None)
        if way is None or 0.0 not in self.study.rates:
            return None
        found = [self.of(size, way, fold)[0] for fold in self.study.folds]
        numbers = [[i for i, row in enumerate(one["table"]) if row["rate"] == 0.0][1] for one in found]  # 0: the input
        trees = [
            (one["table"][0]["n_trees"], one["table"][i]["n_trees"]) for one, i in zip(found, numbers, strict=True)
        ]
        return (
            float(np.mean([after for _, after in trees])),
            1.0 - float(np.mean([after / before for before, after in trees])),
            np.concatenate([one["values"][i] for one, i in zip(found, numbers, strict=True)]),
        )

    def chosen(self, fold: int) -> Candidate:
        """The best candidate of a fold."""
        best: int = self.result(self.study.sweep(fold))["best"]
        return self.study.candidates[best]

    def related(self) -> dict[str, tuple[float, float, FloatArray]]:
        """Mean numbers of trees and leaves, and the values of the test queries of all folds, by method."""
        found = [self.result(self.study.related_of(fold)) for fold in self.study.folds]
        return {
            method: (
                float(np.mean([result[method]["n_trees"] for result in found])),
                float(np.mean([result[method]["n_leaves"] for result in found])),
                np.concatenate([result[method]["values"] for result in found]),
            )
            for method in METHODS
        }

    def closing(self) -> dict[str, tuple[float, FloatArray]]:
        """The number of trees and the values of the test queries of all folds, by the three ways of `ROADS`."""
        found = [self.result(self.study.closing_of(fold)) for fold in self.study.folds]
        return {
            road: (
                float(np.mean([result[road]["n_trees"] for result in found])),
                np.concatenate([result[road]["values"] for result in found]),
            )
            for road in ROADS
        }


def pick(table: Sequence[Mapping[str, Any]], rule: Rule) -> int:
    """Return the row of the smallest model that the rule accepts; 0, the model before, when there is none.

    A model of as many trees counts when it is better, as line search alone may make it.

    Examples
    --------
    >>> models = ((10, 0.5, None), (5, 0.49, 0.3), (8, 0.51, 0.5))
    >>> rows = [{"n_trees": n, "valid": valid, "p_valid": p} for n, valid, p in models]
    >>> pick(rows, "quality"), pick(rows, "not-significant")
    (2, 1)
    """
    full, acceptance = table[0], Acceptance(rule)
    passed = [acceptance.passes(row["valid"] >= full["valid"], row["p_valid"]) for row in table]
    gains = [row["n_trees"] < full["n_trees"] or row["valid"] > full["valid"] for row in table]
    rows = [i for i in range(1, len(table)) if passed[i] and gains[i]]
    return min(rows, key=lambda i: (table[i]["n_trees"], -table[i]["valid"]), default=0)


# Table 1 and the closing comparison of the paper, its numbers beside ours.


# With models that are not significantly worse (MSN-1, and Istella for skip).
PAPER_LOOSE = {QUALITY_LOSS: "70% of 737 trees, 2.9x as fast", Way("skip"): "60% of 736 trees, 2.1x as fast"}
# The paper's closing comparison: LambdaMART on Istella, 100 trees.
PAPER_CLOSING = {"trained": 0.6923, "line-searched": 0.7085, "pruned": 0.7329}


def make_report(found: CleaverResults) -> Report:
    """Make tables and figures of a study whose runs are all done."""
    table = _table(found, "quality", "table1", "Table 1: the smallest models that are as good on validation data")
    loose = _table(found, "not-significant", "table1b", "The smallest models that are not significantly worse there")
    return Report(
        title=f"Pruning of trained ensembles: {found.study.source.name}",
        summary=_summary(found),
        tables=[
            table, loose, _closing(found), _related(found), _sweep(found),
            *([_statements(found)] if _of_paper(found) else []),
        ],
        figures=[_figure(found)],
        differences=_differences(found),
        facts={
            "folds": list(found.study.folds),
            "references": {str(fold): found.chosen(fold).name for fold in found.study.folds},
            "outcomes": _facts(found),
        },
    )  # fmt: skip


def _of_paper(found: CleaverResults) -> list[Way]:
    """The ways of the paper that the study has."""
    return [way for way in OF_PAPER if way in found.study.ways]


def _summary(found: CleaverResults) -> str:
    """The outcome in a few sentences."""
    study = found.study
    best = [found.outcome(size, QUALITY_LOSS) for size in study.all_sizes if QUALITY_LOSS in study.ways]
    pruned = "; ".join(
        f"{outcome.n_full:,.0f} trees become {outcome.n_trees:,.0f} ({outcome.rate:.0%} gone, {outcome.speed_up:.1f}x "
        f"as fast), test {MEASURE} {outcome.full:.4f} becomes {outcome.test:.4f}"
        for outcome in best
    )
    return (
        f"Reference: the best on validation data of {listed(study.learners)} with {listed(study.leaves)} leaves and "
        f"learning rates {listed(study.learning_rates)} ({_chosen(found)}); pruning rates "
        f"{listed(f'{rate:.0%}' for rate in study.rates)}. "
        f"Convention {Convention.get('rankwood').describe()}. quality-loss: {pruned}. The paper prunes 50 to 70 % of "
        "the trees of its models, which then score 1.6 to 2.6 times as fast, and finds quality-loss best nearly "
        "throughout, random and skip good, and last worst."
    )


def _chosen(found: CleaverResults) -> str:
    """The best candidates, each with its folds."""
    folds: dict[str, list[int]] = {}
    for fold in found.study.folds:
        folds.setdefault(found.chosen(fold).name, []).append(fold)
    return "; ".join(f"{name}: fold{'s' * (len(of) > 1)} {listed(of)}" for name, of in folds.items())


def _table(found: CleaverResults, rule: Rule, name: str, title: str) -> Table:
    """Strategies by sizes: trees that stay, test measure, speed-up, and p of the difference."""
    rows = []
    sizes = found.study.all_sizes
    outcomes = {(size, way): found.outcome(size, way, rule) for size in sizes for way in found.study.ways}
    first = found.study.ways[0]
    searched = {size: alone for size in sizes if (alone := found.searched(size)) is not None}
    pairs: dict[tuple[Size, Way | None], tuple[FloatArray, FloatArray]] = {
        key: (one.full_values, one.test_values) for key, one in outcomes.items()
    }
    pairs |= {(size, None): (outcomes[size, first].full_values, values) for size, (_, _, values) in searched.items()}
    tests = {key: randomisation_test(*pair).p_value for key, pair in pairs.items()}
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    reference = ["reference"]
    for size in sizes:
        reference += [f"{outcomes[size, first].n_full:,.0f}", "", f"{outcomes[size, first].full:.4f}", "1.0x", ""]
    rows.append(reference)
    if searched:
        row = ["line search alone (0 %)"]
        for size, (n_trees, rate, values) in searched.items():
            row += [
                f"{n_trees:,.0f}",
                f"{rate:.0%}",
                _marked(float(np.mean(values)), outcomes[size, first].full, adjusted[size, None]),
                "–",
                p_text(adjusted[size, None]),
            ]
        rows.append(row)
    for way in found.study.ways:
        row = [way.name]
        for size in sizes:
            one, p = outcomes[size, way], adjusted[size, way]
            row += [
                f"{one.n_trees:,.0f}",
                f"{one.rate:.0%}",
                _marked(one.test, one.full, p),
                f"{one.speed_up:.1f}x",
                p_text(p),
            ]
        rows.append(row)
    columns = ["strategy"]
    for size in sizes:
        columns += [f"trees ({size})", "pruned", MEASURE, "speed-up", "p"]
    return Table(
        name,
        f"{title}, {found.study.source.name}",
        columns,
        rows,
        "Means over folds, on test data; random is the mean of "
        f"{found.study.n_random} runs. p: randomisation test against the reference over the test queries of all folds, "
        "Holm's correction; + and - mark significant differences (5 %). speed-up: of scoring, one thread, up to "
        f"{BATCH:,} documents per call, double precision. Line search alone: rate 0, every strategy alike; trees go "
        "when their weight becomes 0. "
        f"{listed(way.name for way in found.study.ways if way not in OF_PAPER) or 'No strategy'}: not in the paper.",
    )


def _marked(value: float, before: float, p: float) -> str:
    """A value with a mark where it differs significantly from that before."""
    return f"{value:.4f}" + ("" if p > 0.05 else " +" if value > before else " -")


def _related(found: CleaverResults) -> Table:
    """Other ways to models of the pruned one's size, against the reference."""
    study, related, rows = found.study, found.related(), []
    reference = related["reference"][2]
    for method, (n_trees, n_leaves, values) in related.items():
        difference, p = "", ""
        if method != "reference":
            test = randomisation_test(reference, values)
            difference, p = f"{test.mean_difference:+.4f}", p_text(test.p_value)
        name = f"pruned by {study.related_rate:.0%}, quality-loss" if method == "pruned" else method
        rows.append([name, f"{n_trees:,.0f}", f"{n_leaves:,.0f}", f"{np.mean(values):.4f}", difference, p])
    return Table(
        "related",
        f"Other methods at the size of the pruned model, {study.source.name}",
        ["method", "trees", "leaves", f"{MEASURE} (test)", "difference", "p"],
        rows,
        "The full model, pruned whether the result is as good or not. Prefix: its first trees, weights as they were. "
        "Lasso: its trees re-weighed so that few of them give its scores. Nodes collapsed: sibling leaves merged, "
        f"those that change scores least first, until as many leaves are left. Bag: the mean of {study.n_bags} models "
        "on bootstrap samples of queries, "
        f"{max(study.leaves)} leaves, learning rate {min(study.learning_rates):g}, as many trees together. Means over "
        "folds; p: randomisation test over the test queries of all folds, not corrected.",
    )


def _sweep(found: CleaverResults) -> Table:
    """What the sweep found."""
    study = found.study
    results = [found.result(study.sweep(fold)) for fold in study.folds]
    rows = []
    for number, candidate in enumerate(study.candidates):
        of = [result["candidates"][number] for result in results]
        means = {name: float(np.mean([one[name] for one in of])) for name in ("n_trees", "valid", "test")}
        n_best = sum(result["best"] == number for result in results)
        rows.append([candidate.name, f"{means['n_trees']:,.0f}", f"{means['valid']:.4f}", f"{means['test']:.4f}",
                     f"{n_best}"])  # fmt: skip
    return Table(
        "sweep",
        f"The sweep for the reference models, {study.source.name}",
        ["learner", "trees", f"{MEASURE} (validation)", f"{MEASURE} (test)", "best in folds"],
        rows,
        f"Means over folds. Training ends when {study.early_stopping} trees gained less than {study.min_gain:.2%} of "
        f"the validation measure, or at {study.n_trees:,} trees.",
    )


def _closing(found: CleaverResults) -> Table:
    """Three models of the same size: trained so, line-searched, and pruned from a larger one."""
    roads = found.closing()
    small, large = found.study.closing
    trained = roads["trained"][1]
    names = {"trained": f"trained, {small} trees", "line-searched": "the same, line-searched",
             "pruned": f"pruned from {large}, quality-loss"}  # fmt: skip
    rows = []
    for road in ROADS:
        n_trees, values = roads[road]
        p = "" if road == "trained" else p_text(randomisation_test(trained, values).p_value)
        rows.append([names[road], f"{n_trees:,.0f}", f"{np.mean(values):.4f}", p, f"{PAPER_CLOSING[road]:.4f}"])
    return Table(
        "closing",
        f"{small} trees, three ways, {found.study.source.name}",
        ["model", "trees", f"{MEASURE} (test)", "p against trained", "paper (Istella)"],
        rows,
        "Randomisation test over the test queries of all folds.",
    )


def _statements(found: CleaverResults) -> Table:
    """Statements of the paper's text, and what holds here; the numbers of its table 1 are not at hand."""
    study, rows = found.study, []
    ways, sizes = _of_paper(found), found.study.all_sizes
    outcomes = {(size, way): found.outcome(size, way) for size in sizes for way in ways}
    best = [max((outcomes[size, way] for way in ways), key=lambda one: one.rate) for size in sizes]
    rates, speeds = [one.rate for one in best], [one.speed_up for one in best]
    span = f"{min(rates):.0%} to {max(rates):.0%}; {min(speeds):.1f}x to {max(speeds):.1f}x"
    rows.append(["pruned by the best strategy of each size; speed-up", "50% to 70%; 1.6x to 2.6x", span])
    for place, word in (0, "most"), (-1, "fewest"):
        order = [sorted(ways, key=lambda way: -outcomes[size, way].rate)[place].name for size in sizes]
        paper = "quality-loss, nearly always" if place == 0 else "last"
        rows.append([f"strategy that takes the {word} trees, by size", paper, listed(order)])
    for way, paper in PAPER_LOOSE.items():
        if way in ways:
            one = found.outcome(FULL, way, "not-significant")
            here = f"{one.rate:.0%} of {one.n_full:,.0f} trees, {one.speed_up:.1f}x as fast"
            rows.append([f"{way.name}, full model, not significantly worse", paper, here])
    if QUALITY_LOSS in ways:
        one = outcomes[sizes[0], QUALITY_LOSS]
        p = randomisation_test(one.full_values, one.test_values).p_value
        here = f"{one.test - one.full:+.4f}, p {p_text(p)}"
        what = f"quality-loss, the first {one.n_full:,.0f} trees, test {MEASURE}"
        rows.append([what, "better, p < 0.05 (100 trees)", here])
    return Table(
        "paper",
        f"What the paper says, and {study.source.name}",
        ["statement", "paper", "here"],
        rows,
        "Sizes in the order of table 1. The paper's data are MSN-1 and Istella. p: randomisation test, not corrected.",
    )


def _figure(found: CleaverResults) -> Figure:
    """Test measure over the number of trees, one line per strategy, one panel per size."""

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(len(sizes), 1, squeeze=False)[:, 0]
        for axis, size in zip(axes, sizes, strict=True):
            ends = []
            for number, way in enumerate(found.study.ways):
                trees, tests, halves = _course(found, size, way)
                how, at = line_style(number, len(found.study.ways)), dodged(trees, number, len(found.study.ways))
                axis.errorbar(at, tests, halves, elinewidth=0.6, **how)
                ends.append((at[-1], tests[-1], way.name, how["color"]))
            tables = [found.of(size, way, fold)[0]["table"] for fold in found.study.folds]
            whole, n_trees = (float(np.mean([table[0][name] for table in tables])) for name in ("test", "n_trees"))
            axis.axhline(whole, color="black", linewidth=1, linestyle="--", zorder=2)
            axis.set(title=f"{'all' if size == FULL else 'the first'} {n_trees:,.0f} trees", ylabel=MEASURE)
            axis.locator_params(axis="x", integer=True)
            axis.invert_xaxis()
            axis.grid(alpha=0.3)
            label_ends(axis, [*ends, (axis.get_xlim()[1], whole, "the model before", "black")], 3.0)
        axes[-1].set_xlabel("trees that stay")
        canvas.suptitle(f"Pruned models, {found.study.source.name}, test data")

    sizes = found.study.all_sizes
    return Figure(
        "figure",
        f"{MEASURE} on test data by the number of trees that stay. Bars: 95 % interval of the difference from the "
        "model before, over queries.",
        draw,
        (9.5, 0.8 + 3.6 * len(sizes)),
    )


def _course(found: CleaverResults, size: Size, way: Way) -> tuple[FloatArray, FloatArray, list[float]]:
    """Trees that stay, test measure, and half of the interval of its difference from the model before, by rate."""
    first = 1 if 0.0 in found.study.rates else 0  # the model before is a line of its own
    by_fold = [found.of(size, way, fold) for fold in found.study.folds]
    tables = [result["table"][first:] for results in by_fold for result in results]
    trees, tests = (np.mean([[row[name] for row in table] for table in tables], axis=0) for name in ("n_trees", "test"))
    before = query_values([[result["values"][0] for result in results] for results in by_fold])
    halves = [
        half_interval(before, query_values([[result["values"][row] for result in results] for results in by_fold]))
        for row in range(first, first + len(trees))
    ]
    return trees, tests, halves


def _facts(found: CleaverResults) -> list[dict[str, Any]]:
    """Every outcome, for `results.json`."""
    return [
        {
            "size": size, "strategy": way.name, "rule": rule, "n_full": one.n_full, "n_trees": one.n_trees,
            "rate": one.rate, "speed_up": one.speed_up, "test_before": one.full, "test_after": one.test,
        }
        for rule in RULES for size in found.study.all_sizes for way in found.study.ways
        for one in [found.outcome(size, way, rule)]
    ]  # fmt: skip


def _differences(found: CleaverResults) -> list[str]:
    """What was done otherwise than in the paper."""
    study = found.study
    return [
        f"The reference models are the best of {listed(study.learners)} with {listed(study.leaves)} leaves and "
        f"learning rates {listed(study.learning_rates)}; the paper tries 5, 10, 25 and 50 leaves. Trees have at least "
        "20 documents per leaf and look at 255 bins of every feature, which the paper does not say.",
        "A model whose training stopped is cut back to the last tree that gained enough. Where it then has fewer trees "
        "than the smaller models need, the training of the same learner goes on to as many for these.",
        "A tree keeps its weight when no other is better. The radius is twice the mean weight; the paper's weights are "
        f"1. A search ends after 20 iterations without a better validation measure, or {study.iterations:,}.",
        *(["Gradients are scaled and truncated as by LightGBM (--normalize); the paper's are LambdaMART's plain ones."]
          if study.normalize else []),
        "Speed-ups are of the fastest engine here, for each model; the paper's are of one scoring algorithm.",
        "Victims of low-weights, score-loss and quality-loss are chosen by the weights of a line search over all "
        "trees; then the weights are as they were, and the survivors are searched.",
        "The paper's data are MSN-1 and Istella; MSLR's folds can be given with --data.",
        "The related methods are not in the paper's tables: it, and Asadi & Lin (2013), speak of them.",
    ]  # fmt: skip
