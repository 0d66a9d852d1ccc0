"""Pruning of trained ensembles (Lucchese et al. 2016): every strategy on models of several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.evaluator import evaluate
from rankwood.evaluation.significance import holm, randomisation_test
from rankwood.lab.drawing import Figure
from rankwood.lab.papers.common import legend_below
from rankwood.lab.runs import Config, Result
from rankwood.lab.study import FoldData, Report, Runs, Study, Table, p_text
from rankwood.model.ensemble import Ensemble
from rankwood.pruning.cleaver import RATES, cleaver
from rankwood.pruning.line_search import LineSearch
from rankwood.scoring.timing import BATCH

# Pruning of trained ensembles (Lucchese et al. 2016): every strategy on models of several sizes.


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
        from rankwood.data.bins import BinnedDataset
        from rankwood.training.estimators import LambdaMART

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


# Table 1 and the closing comparison of Lucchese et al. (2016), with what the paper says beside ours.

# With models that are not significantly worse (MSN-1, and Istella for skip).
PAPER_LOOSE = {"quality-loss": "70% of 737 trees, 2.9x as fast", "skip": "60% of 736 trees, 2.1x as fast"}
# The paper's closing comparison: LambdaMART on Istella, 100 trees.
PAPER_CLOSING = {"trained": 0.6923, "line-searched": 0.7085, "pruned": 0.7329}


def make_report(found: CleaverResults) -> Report:
    """The report of a study whose runs are all done."""
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


def _sizes(found: CleaverResults) -> list[Any]:
    return [*found.study.sizes, FULL]


def _of_paper(found: CleaverResults) -> list[str]:
    return [strategy for strategy in STRATEGIES if strategy in found.study.strategies]


def _summary(found: CleaverResults) -> str:
    study = found.study
    best = {size: found.outcome(size, "quality-loss") for size in _sizes(found) if "quality-loss" in study.strategies}
    pruned = "; ".join(
        f"{outcome.n_full:,.0f} trees become {outcome.n_trees:,.0f} ({outcome.rate:.0%} gone, {outcome.speed_up:.1f}x "
        f"as fast), test {MEASURE} {outcome.full:.4f} becomes {outcome.test:.4f}"
        for outcome in best.values()
    )
    return (
        f"LambdaMART, {study.n_leaves} leaves, learning rate {study.learning_rate:g}; folds "
        f"{', '.join(map(str, study.folds))}; pruning rates {', '.join(f'{rate:.0%}' for rate in study.rates)}. "
        f"Convention {Convention.get('rankwood').describe()}. quality-loss: {pruned}. The paper prunes 50 to 70 % of "
        "the trees of its models, which then score 1.6 to 2.6 times as fast, and finds quality-loss best nearly "
        "throughout, random and skip good, and last worst."
    )


def _table(found: CleaverResults, rule: str, name: str, title: str) -> Table:
    """Strategies by sizes: trees kept, test measure, speed-up, p of the difference."""
    rows = []
    sizes = _sizes(found)
    outcomes = {(s, strategy): found.outcome(s, strategy, rule) for s in sizes for strategy in found.study.strategies}
    tests = {key: randomisation_test(one.full_values, one.test_values).p_value for key, one in outcomes.items()}
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    first = found.study.strategies[0]
    reference = ["reference"]
    for size in sizes:
        reference += [f"{outcomes[size, first].n_full:,.0f}", "", f"{outcomes[size, first].full:.4f}", "1.0x", ""]
    rows.append(reference)
    for strategy in found.study.strategies:
        row = [strategy]
        for size in sizes:
            one, p = outcomes[size, strategy], adjusted[size, strategy]
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
        f"{', '.join(s for s in found.study.strategies if s not in STRATEGIES) or 'No strategy'}: not in the paper.",
    )


def _closing(found: CleaverResults) -> Table:
    ways = found.closing()
    small, large = found.study.closing
    trained = ways["trained"][1]
    names = {"trained": f"trained, {small} trees", "line-searched": "the same, line-searched",
             "pruned": f"pruned from {large}, quality-loss"}  # fmt: skip
    rows = []
    for way in WAYS:
        n_trees, values = ways[way]
        p = "" if way == "trained" else p_text(randomisation_test(trained, values).p_value)
        rows.append([names[way], f"{n_trees:,.0f}", f"{np.mean(values):.4f}", p, f"{PAPER_CLOSING[way]:.4f}"])
    return Table(
        "closing",
        f"{small} trees, three ways, {found.study.source.name}",
        ["model", "trees", f"{MEASURE} (test)", "p against trained", "paper (Istella)"],
        rows,
        "Randomisation test over the test queries of all folds.",
    )


def _statements(found: CleaverResults) -> Table:
    """What the paper says of its tables, and what is so here. Its table 1 is not at hand, its text is."""
    study, rows = found.study, []

    def reached(strategy: str, rule: str = "quality") -> str:
        one = found.outcome(FULL, strategy, rule)
        return f"{one.rate:.0%} of {one.n_full:,.0f} trees, {one.speed_up:.1f}x as fast"

    ours = _of_paper(found)
    outcomes = {(size, strategy): found.outcome(size, strategy) for size in _sizes(found) for strategy in ours}
    best = [max((outcomes[size, s] for s in ours), key=lambda one: one.rate) for size in _sizes(found)]
    rates, speeds = [one.rate for one in best], [one.speed_up for one in best]
    span = f"{min(rates):.0%} to {max(rates):.0%}; {min(speeds):.1f}x to {max(speeds):.1f}x"
    rows.append(["pruned by the best strategy of each size; speed-up", "50% to 70%; 1.6x to 2.6x", span])
    for place, word in (0, "most"), (-1, "fewest"):
        order = [sorted(ours, key=lambda s: -outcomes[size, s].rate)[place] for size in _sizes(found)]
        paper = "quality-loss, nearly always" if place == 0 else "last"
        rows.append([f"strategy that takes the {word} trees, by size", paper, ", ".join(order)])
    for strategy, paper in PAPER_LOOSE.items():
        if strategy in study.strategies:
            here = reached(strategy, "not-significant")
            rows.append([f"{strategy}, full model, not significantly worse", paper, here])
    if "quality-loss" in study.strategies:
        one = outcomes[_sizes(found)[0], "quality-loss"]
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
        axes = canvas.subplots(1, len(_sizes(found)), squeeze=False)[0]
        for axis, size in zip(axes, _sizes(found), strict=True):
            for strategy in found.study.strategies:
                runs = [result["table"] for fold in found.study.folds for result in found.of(size, strategy, fold)]
                trees = np.mean([[row["n_trees"] for row in table] for table in runs], axis=0)
                axis.plot(
                    trees, np.mean([[row["test"] for row in t] for t in runs], axis=0), label=strategy, marker="."
                )
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
    return [
        {
            "size": size, "strategy": strategy, "rule": rule, "n_full": one.n_full, "n_trees": one.n_trees,
            "rate": one.rate, "speed_up": one.speed_up, "test_before": one.full, "test_after": one.test,
        }
        for rule in ("quality", "not-significant") for size in _sizes(found) for strategy in found.study.strategies
        for one in [found.outcome(size, strategy, rule)]
    ]  # fmt: skip


def _differences(found: CleaverResults) -> list[str]:
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
