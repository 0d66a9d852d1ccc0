"""Pruning of trained ensembles (Lucchese et al. 2016): every strategy on models of several sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwood.data.bins import BinnedDataset
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import holm, randomisation_test
from rankwood.lab.drawing import Figure, legend_below
from rankwood.lab.papers.common import PaperResults, PaperStudy
from rankwood.lab.runs import Config, Result
from rankwood.lab.study import FoldData, Report, Runs, Table, listed, p_text, time_scoring
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.accept import Acceptance, Rule
from rankwood.pruning.cleaver import RATES, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.pruning.pruner import PruningSettings
from rankwood.scoring.timing import BATCH
from rankwood.training.estimators import LambdaMART

# What is compared: ways to prune, on models of several sizes.


MEASURE = "nDCG@10"
Size = int | Literal["full"]  # so many of the first trees, or all
FULL: Literal["full"] = "full"
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
OF_PAPER = (Way("random"), Way("last"), Way("skip"), Way("low-weights"), Way("score-loss"), QUALITY_LOSS)
# Not in the paper: a greedy strategy, victims chosen by validation data, and leaf values fitted anew.
BEYOND = (Way("quality-loss-greedy"), Way("quality-loss", "valid"), Way("quality-loss", "valid", "refit"))
ROADS = ("trained", "line-searched", "pruned")  # three ways to a model of the same size


# The runs: prunings, which save the models that the rules accept, and timings of these.


@dataclass(frozen=True)
class Training:
    """How the full model of a fold is trained: `n_first` trees, then more until validation data stops it."""

    n_first: int
    n_trees: int
    n_leaves: int
    learning_rate: float
    early_stopping: int


@dataclass(frozen=True)
class Pruning:
    """A run: a model of one size pruned in one way, at all rates."""

    fold: int
    training: Training
    size: Size
    way: Way
    rates: tuple[float, ...]
    iterations: int
    seed: int


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

    fold: int
    training: Training
    small: int
    large: int
    iterations: int


@dataclass(frozen=True)
class CleaverStudy(PaperStudy):
    """LambdaMART models of several sizes, pruned in every way.

    Parameters
    ----------
    sizes : sequence of int, default (100, 500)
        Numbers of trees of the smaller models, which are the first trees of the full one.
    n_trees : int, default 1500
        Most trees of the full model.
    n_leaves : int, default 50
        Most leaves of a tree.
    learning_rate : float, default 0.05
    early_stopping : int, default 50
        Trees without improvement on validation data before the training of the full model stops.
    rates : sequence of float
        Shares of the trees that are pruned.
    iterations : int, default 100
        Iterations of a line search.
    n_random : int, default 10
        Runs of the strategy "random", whose results are averaged.
    closing : (int, int), default (100, 500)
        Sizes a and b: a model of a trees is compared with one that is pruned from b to a.
    ways : sequence of Way
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
    ways: Sequence[Way] = (*OF_PAPER, *BEYOND)

    def __post_init__(self) -> None:
        if min(self.n_trees, self.n_random, *self.sizes) < 1 or not self.rates or not self.ways:
            raise RankwoodError("a study needs trees, rates, strategies and at least one run of each")

    @property
    def all_sizes(self) -> list[Size]:
        """The sizes of the models that are pruned, the full one last."""
        return [*self.sizes, FULL]

    @property
    def training(self) -> Training:
        """How the full model is trained: it has the trees of the smaller ones before it may stop."""
        n_first = min(self.n_trees, max(*self.sizes, *self.closing))
        return Training(n_first, self.n_trees, self.n_leaves, self.learning_rate, self.early_stopping)

    def prunings(self, fold: int, size: Size, way: Way) -> list[Pruning]:
        """The runs of one way: one, or several when trees are drawn at random."""
        n_runs = self.n_random if way.strategy == "random" else 1
        same = (fold, self.training, size, way, tuple(map(float, self.rates)), self.iterations)
        return [Pruning(*same, seed) for seed in range(n_runs)]

    def closing_of(self, fold: int) -> Closing:
        """The closing comparison on a fold."""
        return Closing(fold, self.training, *self.closing, self.iterations)

    def plan(self) -> list[Pruning | Closing]:
        found: list[Pruning | Closing] = []
        for fold in self.folds:
            for size in self.all_sizes:
                for way in self.ways:
                    found += self.prunings(fold, size, way)
            found.append(self.closing_of(fold))
        return found

    def timings(self) -> list[TimingRun]:
        """Timings of every pruning."""
        return [TimingRun(run) for run in self.plan() if isinstance(run, Pruning)]

    def report(self, runs: Runs) -> Report:
        return make_report(CleaverResults(self, runs))

    def perform(self, run: Pruning | Closing | TimingRun) -> Result:
        if isinstance(run, TimingRun):
            return self._time(run)
        return self._close(run) if isinstance(run, Closing) else self._prune(run)[0]

    def _full(self, run: Pruning | Closing, *, saved: bool = False) -> Ensemble:
        """The full model of a fold; with `saved` it is read rather than trained again, if it is there."""
        made_by: Config = {**self.source.identify(run.fold), **dataclasses.asdict(run.training)}

        def make() -> Ensemble:
            known = self.saved_models(made_by, [FULL]) if saved else None
            if known is not None:
                return known[FULL]
            model = self._train(run.training, self.fold_data(run.fold))
            self.save_models(made_by, {FULL: model})
            return model

        return self._kept.get("model", run.fold, make)  # type: ignore[no-any-return]

    def _train(self, how: Training, fold: FoldData) -> Ensemble:
        """Train the full model."""
        ranker = LambdaMART(
            n_trees=how.n_first, n_leaves=how.n_leaves, learning_rate=how.learning_rate, n_jobs=self.n_threads
        )
        binned = BinnedDataset.make(fold.train, n_threads=self.n_threads)
        model: Ensemble = ranker.fit(binned).ensemble_
        if how.n_first < how.n_trees:
            ranker.set_params(n_trees=how.n_trees - how.n_first, early_stopping_rounds=how.early_stopping)
            model = ranker.fit(binned, valid=fold.valid, init_model=model).ensemble_
        return model

    def _before(self, run: Pruning, *, saved: bool = False) -> Ensemble:
        """The model that is pruned."""
        full = self._full(run, saved=saved)
        return full if run.size == FULL else _first(full, run.size)

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
            measure=MEASURE,
            strategy=run.way.strategy,
            rates=run.rates,
            variants=run.way.variant,
            settings=PruningSettings(
                victims=run.way.victims,
                search=LineSearch(iterations=run.iterations),
                measure_speed=False,
                seed=run.seed,
            ),
            n_threads=self.n_threads,
        )
        table, models = found.table, [row.ensemble for row in found.rows]
        accepted: dict[str, Ensemble] = {rule: models[pick(table, rule)] for rule in RULES}
        self.save_models(self.config(run), accepted)
        return {"table": table, "values": [self._values(model, fold) for model in models]}, accepted

    def _time(self, run: TimingRun) -> Result:
        """Time the model before and the accepted ones, which are made again unless they were saved."""
        pruning, before = run.pruning, self._before(run.pruning, saved=True)
        accepted = self.saved_models(self.config(pruning), RULES) or self._prune(pruning)[1]
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
        model, fold = self._full(run), self.fold_data(run.fold)
        search = LineSearch(iterations=run.iterations)
        settings = PruningSettings(victims="train", search=search, measure_speed=False)

        def pruned(whole: Ensemble, rate: float) -> Ensemble:
            _, found = cleaver(
                whole, fold.train, fold.valid, judge=None, measure=MEASURE, rates=(rate,), variants="line-search",
                settings=settings, n_threads=self.n_threads,
            ).rows  # fmt: skip
            return found.ensemble

        small, large = _first(model, run.small), _first(model, run.large)
        to_small = max(0.0, 1.0 - run.small / large.n_trees)
        models = dict(zip(ROADS, (small, pruned(small, 0.0), pruned(large, to_small)), strict=True))
        return {road: {"n_trees": m.n_trees, "values": self._values(m, fold)} for road, m in models.items()}

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

    Examples
    --------
    >>> models = ((10, 0.5, None), (5, 0.49, 0.3), (8, 0.51, 0.5))
    >>> rows = [{"n_trees": n, "valid": valid, "p_valid": p} for n, valid, p in models]
    >>> pick(rows, "quality"), pick(rows, "not-significant")
    (2, 1)
    """
    full, acceptance = table[0], Acceptance(rule)
    passed = [acceptance.passes(row["valid"] >= full["valid"], row["p_valid"]) for row in table]
    rows = [i for i, row in enumerate(table) if passed[i] and row["n_trees"] < full["n_trees"]]
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
        tables=[table, loose, _closing(found), *([_statements(found)] if _of_paper(found) else [])],
        figures=[_figure(found)],
        differences=_differences(found),
        facts={"folds": list(found.study.folds), "outcomes": _facts(found)},
    )


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
        f"LambdaMART, {study.n_leaves} leaves, learning rate {study.learning_rate:g}; folds "
        f"{listed(study.folds)}; pruning rates {listed(f'{rate:.0%}' for rate in study.rates)}. "
        f"Convention {Convention.get('rankwood').describe()}. quality-loss: {pruned}. The paper prunes 50 to 70 % of "
        "the trees of its models, which then score 1.6 to 2.6 times as fast, and finds quality-loss best nearly "
        "throughout, random and skip good, and last worst."
    )


def _table(found: CleaverResults, rule: Rule, name: str, title: str) -> Table:
    """Strategies by sizes: trees that stay, test measure, speed-up, and p of the difference."""
    rows = []
    sizes = found.study.all_sizes
    outcomes = {(size, way): found.outcome(size, way, rule) for size in sizes for way in found.study.ways}
    tests = {key: randomisation_test(one.full_values, one.test_values).p_value for key, one in outcomes.items()}
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    first = found.study.ways[0]
    reference = ["reference"]
    for size in sizes:
        reference += [f"{outcomes[size, first].n_full:,.0f}", "", f"{outcomes[size, first].full:.4f}", "1.0x", ""]
    rows.append(reference)
    for way in found.study.ways:
        row = [way.name]
        for size in sizes:
            one, p = outcomes[size, way], adjusted[size, way]
            mark = "" if p > 0.05 else " +" if one.test > one.full else " -"
            row += [
                f"{one.n_trees:,.0f}",
                f"{one.rate:.0%}",
                f"{one.test:.4f}{mark}",
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
        f"{BATCH:,} documents per call, double precision. "
        f"{listed(way.name for way in found.study.ways if way not in OF_PAPER) or 'No strategy'}: not in the paper.",
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
        sizes = found.study.all_sizes
        axes = canvas.subplots(1, len(sizes), squeeze=False)[0]
        for axis, size in zip(axes, sizes, strict=True):
            for way in found.study.ways:
                runs = [result["table"] for fold in found.study.folds for result in found.of(size, way, fold)]
                trees = np.mean([[row["n_trees"] for row in table] for table in runs], axis=0)
                tests = np.mean([[row["test"] for row in table] for table in runs], axis=0)
                axis.plot(trees, tests, label=way.name, marker=".")
            whole = np.mean([table[0]["test"] for table in runs])
            axis.axhline(whole, color="black", linewidth=1, label="the model before")
            n_trees = np.mean([table[0]["n_trees"] for table in runs])
            axis.set(xlabel="trees that stay", title=f"{'all' if size == FULL else 'the first'} {n_trees:,.0f} trees")
            axis.locator_params(axis="x", integer=True)
            axis.grid(alpha=0.3)
        axes[0].set_ylabel(f"{MEASURE} on test data")
        canvas.suptitle(f"Pruned LambdaMART models, {found.study.source.name}")
        legend_below(canvas, axes[0], 5)

    return Figure("figure", f"{MEASURE} on test data by the number of trees that stay.", draw, (12.0, 4.8))


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
        f"The reference models are LambdaMART alone, of up to {study.n_trees:,} trees with {study.n_leaves} leaves; "
        f"the full one ends after {study.early_stopping} trees without a better validation measure. The paper takes "
        "the better one of MART and LambdaMART after a sweep of parameters (737 and 736 trees).",
        "Weights are looked for in the part of the interval that is not negative, so that 0 is among them, and a tree "
        "keeps its weight when no other is better. The radius is twice the mean weight; the paper's weights are 1.",
        "score-loss takes absolute contributions over their sum instead of contributions over the score.",
        "Speed-ups are of the fastest engine here, for each model; the paper's are of one scoring algorithm.",
        "Victims of low-weights, score-loss and quality-loss are chosen by the weights of a line search over all "
        "trees; then the weights are as they were, and the survivors are searched.",
        "The paper's data are MSN-1 and Istella; MSLR's folds can be given with --data.",
    ]
