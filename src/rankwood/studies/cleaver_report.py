"""Table 1 and the closing comparison of Lucchese et al. (2016), with what the paper says beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwood.evaluation.conventions import Convention
from rankwood.evaluation.significance import holm, randomisation_test
from rankwood.experiments.printed import Table, p_text
from rankwood.experiments.report import Figure, Report
from rankwood.studies.cleaver import FULL, MEASURE, STRATEGIES, WAYS, CleaverResults

# The paper's closing comparison: LambdaMART on Istella, 100 trees.
PAPER_CLOSING = {"trained": 0.6923, "line-searched": 0.7085, "pruned": 0.7329}


def make_report(found: CleaverResults) -> Report:
    """The report of a study whose runs are all done."""
    table = _table(found, "quality", "table1", "Table 1: the smallest models that are as good on validation data")
    loose = _table(found, "not-significant", "table1b", "The smallest models that are not significantly worse there")
    return Report(
        title=f"Pruning of trained ensembles: {found.study.source.name}",
        summary=_summary(found),
        tables=[table, loose, _closing(found)],
        figures=[_figure(found)],
        differences=_differences(found),
        facts={"folds": list(found.study.folds), "outcomes": _facts(found)},
    )


def _sizes(found: CleaverResults) -> list[Any]:
    return [*found.study.sizes, FULL]


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
            axis.axhline(np.mean([table[0]["test"] for table in runs]), color="black", linewidth=1)
            axis.set(xlabel="trees", title=f"model: {size}")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel(f"{MEASURE} on test data")
        axes[-1].legend(fontsize=7)

    return Figure("figure", f"{MEASURE} on test data by the number of trees that stay.", draw, (12.0, 4.0))


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
