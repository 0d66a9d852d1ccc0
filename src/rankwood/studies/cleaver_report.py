"""Table 1 and the closing comparison of Lucchese et al. (2016), with what the paper says beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.drawing import Figure
from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.significance import holm, randomisation_test
from rankwood.experiments.printed import Table, p_text
from rankwood.experiments.report import Report
from rankwood.studies.cleaver import FULL, MEASURE, STRATEGIES, WAYS, CleaverResults
from rankwood.studies.figures import legend_below

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
        "Holm's correction; + and - mark significant differences (5 %). "
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
