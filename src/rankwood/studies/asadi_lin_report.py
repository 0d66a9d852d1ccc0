"""Table 1 and figures 1 and 2 of Asadi & Lin (2013), with the paper's numbers beside ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwood.experiments.printed import Table, p_text
from rankwood.experiments.report import Figure, Report
from rankwood.studies.asadi_lin import (
    AUTO,
    BASELINE,
    BATCH,
    BEST,
    EQUAL,
    IFELSE,
    MEASURES,
    SIGNIFICANT,
    AsadiLinResults,
    Latency,
    Setting,
    interval,
)

# Table 1 of the paper, MSLR-WEB10K: d_avg, T_avg, p_avg, n_avg, NDCG@1, 3, 5, 10, 20, latency and half its interval.
PAPER: dict[str, tuple[float, ...]] = {
    "baseline": (17.8, 321.2, 5716, 44115, 0.471, 0.456, 0.461, 0.480, 0.511, 42.2, 1.5),
    "lambda 0.4": (15.7, 327.1, 5178, 45462, 0.471, 0.457, 0.461, 0.480, 0.511, 42.7, 1.5),
    "lambda 0.8": (12.3, 317.8, 3945, 44173, 0.471, 0.457, 0.461, 0.480, 0.511, 41.7, 1.4),
    "lambda 0.95": (11.7, 325.8, 3796, 44421, 0.472, 0.457, 0.461, 0.480, 0.511, 41.6, 1.4),
    "alpha 0.05": (9.1, 395.3, 3592, 30554, 0.471, 0.457, 0.461, 0.479, 0.510, 32.4, 1.1),
    "alpha 0.1": (7.8, 432.2, 3211, 26228, 0.472, 0.456, 0.460, 0.479, 0.510, 28.8, 1.1),
    "alpha 0.2": (6.4, 474.0, 3005, 22372, 0.471, 0.456, 0.460, 0.478, 0.509, 25.7, 0.8),
    "alpha 0.4": (4.8, 567.2, 2706, 17524, 0.469, 0.454, 0.458, 0.476, 0.507, 22.5, 0.7),
    "alpha 0.6": (3.6, 675.8, 2483, 13660, 0.467, 0.452, 0.456, 0.474, 0.505, 18.5, 0.5),
}
# Of NDCG@1, 3, 5, 10, 20: the last so many are significantly below the baseline.
PAPER_STARS = {"alpha 0.05": 1, "alpha 0.1": 1, "alpha 0.2": 2, "alpha 0.4": 5, "alpha 0.6": 5}
PAPER_TOUCHED = 0.956  # share of the features that scoring an instance looks at, plain LambdaMART
SHAPE = ("d_avg", "T_avg", "p_avg", "n_avg")
NAMES = {IFELSE: "generated C", AUTO: "our engine"}
SHOWN = "nDCG@10"


def make_report(found: AsadiLinResults) -> Report:
    """The report of a study whose runs are all done."""
    study = found.study
    best = "Table 1: models of the size that validation data chooses"
    equal = f"Models of {study.equal_trees:,} trees each"
    tables = [
        _rows(found, BEST, "table1", best),
        _rows(found, EQUAL, "equal", equal),
        _beside(found),
        _visits(found),
        _folds(found),
        _tests(found),
        _paper(),
    ]
    compared = [(of, one, adjusted) for of in (BEST, EQUAL) for one, adjusted in found.comparisons(of)]
    return Report(
        title=f"Efficient trees by cost-sensitive growth and pruning while boosting: {study.source.name}",
        summary=_summary(found),
        tables=tables,
        figures=[_tradeoff(found), _topology(found), _by_fold(found)],
        differences=_differences(found),
        facts={
            "folds": list(study.folds),
            "n_seeds": study.n_seeds,
            "timing": study.timing,
            "engines_of_auto": found.chosen_engines(),
            "no_generated_c": found.obstacle(),
            "topology": {s.name: {of: found.topology(s.name, of) for of in (BEST, EQUAL)} for s in study.settings},
            "comparisons": [{"of": of, **dataclasses.asdict(one), "p_holm": p} for of, one, p in compared],
        },
    )


def _summary(found: AsadiLinResults) -> str:
    study, base = found.study, found.topology(BASELINE.name)
    text = (
        f"LambdaMART of up to {study.n_trees:,} trees with {study.n_leaves} leaves, learning rate "
        f"{study.learning_rate:g}, stopped after {study.patience:,} trees without a better validation nDCG; folds "
        f"{', '.join(map(str, study.folds))}, {study.n_seeds} run{'s' * (study.n_seeds > 1)} each. Scoring a document "
        f"with the plain models looks at {base['features_touched']:.1%} of the features (paper: {PAPER_TOUCHED:.1%})."
    )
    best = next((s for s in study.settings if s == Setting("alpha", 0.2)), study.settings[-1])
    engine = IFELSE if found.latency(best.name, IFELSE, EQUAL) else AUTO
    time, quality = found.latency(best.name, engine, EQUAL), found.compare(best.name, SHOWN, EQUAL)
    if time is not None and best != BASELINE:
        text += (
            f" {best.name} against the baseline, {study.equal_trees:,} trees each: latency "
            f"{_change(1 / time.speed_up)} with {_engine(engine)}, {SHOWN} {quality.difference:+.4f} "
            f"(p {p_text(quality.p_value)}); the paper's choice is alpha 0.2, with -39.1% and -0.002."
        )
    return text


def _engine(engine: str) -> str:
    return "the generated C" if engine == IFELSE else NAMES[engine]


def _change(ratio: float) -> str:
    """A relative change as the paper prints it.

    >>> _change(0.609), _change(1.012), _change(1.0)
    ('-39.1%', '+1.2%', '+0.0%')
    """
    return f"{100 * (ratio - 1):+.1f}%"


def _time(latency: Latency | None) -> str:
    if latency is None:
        return "–"
    return f"{latency.us:.3g}" + ("" if latency.half is None else f" (±{latency.half:.2g})")


def _rows(found: AsadiLinResults, of: str, name: str, title: str) -> Table:
    """The paper's table 1: topology, quality, latency; a row per setting."""
    rows = []
    for setting in (s.name for s in found.study.settings):
        shape = found.topology(setting, of)
        row = [
            setting,
            f"{shape['depth']:.1f}",
            f"{shape['trees']:,.1f}",
            f"{shape['path']:,.0f}",
            f"{shape['nodes']:,.0f}",
        ]
        for measure in MEASURES:
            star = "" if setting == BASELINE.name else found.compare(setting, measure, of).star
            row.append(f"{np.mean(found.ndcg(setting, measure, of)):.4f}{star}")
        for engine in (IFELSE, AUTO):
            latency = found.latency(setting, engine, of)
            row += [_time(latency), "–" if latency is None else f"{latency.speed_up:.2f}x"]
        rows.append(row)
    engines = ", ".join(found.chosen_engines())
    obstacle = found.obstacle()
    return Table(
        name,
        f"{title}, {found.study.source.name}",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES),
         "C, us/doc", "speed-up", "engine, us/doc", "speed-up"],
        rows,
        "d_avg: mean of the trees' maximum depths; T_avg: trees; p_avg: sum of the depths; n_avg: nodes of the model, "
        f"leaves too. @k: nDCG@k on test data; *: differs from the baseline (Wilcoxon, p < {SIGNIFICANT}, test queries "
        "of all folds, not corrected for the number of comparisons). us/doc: microseconds per document, one thread, "
        f"in batches of {BATCH[IFELSE]:,} with the generated C (ifelse), of {BATCH[AUTO]:,} with the engine that "
        f"rankwood chooses ({engines}); "
        "mean of "
        + ("all models" if of == BEST else "the models of the first seed")
        + " and its 95 % interval over models."
        + (f" No generated C: {obstacle}." if obstacle else ""),
    )  # fmt: skip


def _beside(found: AsadiLinResults) -> Table:
    """Changes against the baseline, ours and the paper's in turn."""
    rows = []
    base, paper_base = found.topology(BASELINE.name), PAPER["baseline"]
    shapes = ("depth", "trees", "path", "nodes")
    for setting in (s.name for s in found.study.settings if s != BASELINE):
        shape, paper, row = found.topology(setting), PAPER.get(setting), [setting]
        for number, name in enumerate(shapes):
            theirs = "–" if paper is None else _change(paper[number] / paper_base[number])
            row.append(f"{_change(shape[name] / base[name])} / {theirs}")
        theirs = "–" if paper is None else f"{paper[7] - paper_base[7]:+.3f}"
        row.append(f"{found.compare(setting, SHOWN).difference:+.4f} / {theirs}")
        theirs = "–" if paper is None else _change(paper[9] / paper_base[9])
        for of in (BEST, EQUAL):
            latency = found.latency(setting, IFELSE, of)
            ours = "–" if latency is None else _change(1 / latency.speed_up)
            row.append(f"{ours} / {theirs}" if of == BEST else ours)
        rows.append(row)
    return Table(
        "beside",
        f"Changes against the baseline: ours on {found.study.source.name} / the paper's on MSLR-WEB10K",
        ["setting", *SHAPE, f"{SHOWN}, difference", "latency, generated C",
         f"the same, {found.study.equal_trees:,} trees"],
        rows,
        "The last column is ours alone: with as many trees in every model, the choice of their number plays no part.",
    )  # fmt: skip


def _visits(found: AsadiLinResults) -> Table:
    """What documents meet of models of equal size, and what their latency goes with."""
    engine = IFELSE if found.times(BASELINE.name, IFELSE) else AUTO
    names, rows = [setting.name for setting in found.study.settings], []
    shapes = {name: found.topology(name, EQUAL) for name in names}
    times = {name: found.latency(name, engine, EQUAL) for name in names}
    for name in names:
        shape, latency = shapes[name], times[name]
        rows.append([name, f"{shape['path']:,.0f}", f"{shape['splits_per_doc']:,.0f}", f"{shape['nodes']:,.0f}",
                     f"{shape['features_touched']:.1%}", "–" if latency is None else f"{latency.us:.3g}"])  # fmt: skip
    columns = {"p_avg": "path", "splits met": "splits_per_doc", "n_avg": "nodes"}
    us = [latency.us for latency in times.values() if latency is not None]
    goes_with = [
        f"{title} {np.corrcoef(us, [shapes[name][column] for name in names])[0, 1]:.3f}"
        for title, column in columns.items()
        if len(us) == len(names) > 2
    ]
    return Table(
        "visits",
        f"What a document meets in {found.study.equal_trees:,} trees, {found.study.source.name}",
        ["setting", "p_avg", "splits met", "n_avg", "features looked at", "us/doc"],
        rows,
        "p_avg: the most splits that a document can meet; splits met: how many it does, on average over test documents. "
        f"us/doc: with {_engine(engine)}."
        + (f" Correlation with us/doc over settings: {', '.join(goes_with)}." if goes_with else ""),
    )


def _folds(found: AsadiLinResults) -> Table:
    """Every fold on its own, as figures 1 and 2 of the paper show it."""
    rows = []
    for fold in found.study.folds:
        for setting in (s.name for s in found.study.settings):
            shape = found.topology(setting, fold=fold)
            row = [f"{fold}", setting, f"{shape['depth']:.1f}", f"{shape['trees']:,.1f}", f"{shape['nodes']:,.0f}"]
            row += [f"{np.mean(found.ndcg(setting, measure, fold=fold)):.4f}" for measure in MEASURES]
            row += [_time(found.latency(setting, engine, fold=fold)) for engine in (IFELSE, AUTO)]
            rows.append(row)
    return Table(
        "folds",
        f"By fold, {found.study.source.name}",
        ["fold", "setting", "d_avg", "T_avg", "n_avg", *(m.removeprefix("nDCG") for m in MEASURES),
         "C, us/doc", "engine, us/doc"],
        rows,
        "The models of table 1; intervals over seeds where there are three or more.",
    )  # fmt: skip


def _tests(found: AsadiLinResults) -> Table:
    rows = []
    for of, models in ((BEST, "chosen size"), (EQUAL, f"{found.study.equal_trees:,} trees")):
        for one, adjusted in found.comparisons(of):
            if one.measure == SHOWN:
                rows.append([one.setting, models, f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}",
                             p_text(one.p_value), p_text(adjusted)])  # fmt: skip
    return Table(
        "tests",
        f"{SHOWN} against the baseline, {found.study.source.name}",
        ["setting", "models", "difference", "95 % interval", "p", "p, Holm"],
        rows,
        "Test queries of all folds, each query's mean over seeds. Interval: bootstrap over queries. p: Wilcoxon "
        "signed-rank test; Holm's correction is for all settings and cutoffs of the kind of models.",
    )


def _paper() -> Table:
    rows = []
    for setting, values in PAPER.items():
        stars = PAPER_STARS.get(setting, 0)
        row = [setting, f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[2]:,.0f}", f"{values[3]:,.0f}"]
        row += [f"{value:.3f}{'*' * (number >= 5 - stars)}" for number, value in enumerate(values[4:9])]
        rows.append([*row, f"{values[9]:.1f} (±{values[10]:.1f})", _change(values[9] / PAPER["baseline"][9])])
    return Table(
        "paper",
        "The paper's table 1: MSLR-WEB10K, five folds, 100 runs each",
        ["setting", *SHAPE, *(measure.removeprefix("nDCG") for measure in MEASURES), "us", "change"],
        rows,
        "Latency with generated C. Compare changes with ours, not the numbers, unless the data are the same.",
    )


def _groups(settings: Sequence[Setting]) -> list[tuple[str, list[Setting]]]:
    """The settings of either way, the baseline as its zero."""
    ways = [(way, [s for s in settings if s.way == way]) for way in ("lambda", "alpha")]
    return [(way, [BASELINE, *members]) for way, members in ways if members]


COLOURS = {"lambda": "tab:orange", "alpha": "tab:blue", "baseline": "black"}
MARKERS = {"lambda": "s", "alpha": "o", "baseline": "D"}
GREEK = {"lambda": "λ", "alpha": "α"}


def _shades(settings: Sequence[Setting]) -> dict[Setting, Any]:
    """A colour for every setting: black, and for either way one that darkens with the value."""
    from matplotlib import colormaps

    found: dict[Setting, Any] = {BASELINE: "black"}
    for way, colours in (("lambda", "Oranges"), ("alpha", "Blues")):
        members = [setting for setting in settings if setting.way == way]
        found |= zip(members, colormaps[colours](np.linspace(0.4, 0.95, len(members))), strict=True)
    return found


def _label(setting: Setting) -> str:
    return "plain" if setting == BASELINE else f"{GREEK[setting.way]} = {setting.value:g}"


def _tradeoff(found: AsadiLinResults) -> Figure:
    """Quality over latency at equal size and at the chosen one, with intervals."""
    engine = IFELSE if found.times(BASELINE.name, IFELSE) else AUTO
    panels = ((BEST, "size chosen on validation data"), (EQUAL, f"{found.study.equal_trees:,} trees each"))

    def draw(canvas: Any) -> None:
        axes, shades = canvas.subplots(1, 2), _shades(found.study.settings)
        for axis, (of, title) in zip(axes, panels, strict=True):
            level = float(np.mean(found.values(BASELINE.name, SHOWN, of)))
            for setting in found.study.settings:
                latency, quality = found.latency(setting.name, engine, of), found.compare(setting.name, SHOWN, of)
                if latency is None:
                    continue
                ends = [[quality.difference - quality.low], [quality.high - quality.difference]]
                axis.errorbar(latency.us, level + quality.difference, ends if setting != BASELINE else None,
                              latency.half, fmt=MARKERS[setting.way], color=shades[setting], capsize=2,
                              elinewidth=0.9, markersize=6, label=_label(setting))  # fmt: skip
            axis.axhline(level, color="grey", linewidth=0.8, linestyle="--")
            axis.set(xlabel=f"microseconds per document, {_engine(engine)}", title=title, ylabel=f"{SHOWN}, test data")
            axis.set_xlim(left=0)
            axis.grid(alpha=0.3)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=9, frameon=False)

    return Figure(
        "tradeoff",
        f"Quality against latency, {found.study.source.name}; λ: cost-sensitive growth, α: pruning while boosting. "
        "Bars across: 95 % interval over models; bars up and down: 95 % interval of the difference from the baseline "
        "(dashed), bootstrap over queries.",
        draw,
        (11.0, 4.6),
    )


def _topology(found: AsadiLinResults) -> Figure:
    """Depth, nodes of a tree, number of trees and latency of a tree over lambda and alpha."""
    engine = IFELSE if found.times(BASELINE.name, IFELSE) else AUTO

    def latency_per_tree(setting: str) -> float:
        latency = found.latency(setting, engine, EQUAL)
        return float("nan") if latency is None else 1000 * latency.us / found.study.equal_trees

    panels: tuple[tuple[str, Callable[[str], float], int | None], ...] = (
        ("maximum depth of a tree, mean", lambda name: found.topology(name, EQUAL)["depth"], 0),
        ("nodes per tree, with leaves", lambda name: found.topology(name, EQUAL)["nodes_per_tree"], 3),
        ("trees, chosen on validation data", lambda name: found.topology(name)["trees"], 1),
        (f"ns per tree and document, {_engine(engine)}", latency_per_tree, None),
    )

    def draw(canvas: Any) -> None:
        axes = canvas.subplots(2, 2, sharex=True)
        for axis, (title, value, column) in zip(axes.flat, panels, strict=True):
            for way, settings in _groups(found.study.settings):
                at = [setting.value for setting in settings]
                axis.plot(at, [value(s.name) for s in settings], marker=MARKERS[way], color=COLOURS[way],
                          label=f"{GREEK[way]}, {found.study.source.name}")  # fmt: skip
                if column is not None:
                    known = [(s.value, PAPER[s.name]) for s in settings if s.name in PAPER]
                    theirs = [row[column] / (row[1] if column == 3 else 1) for _, row in known]
                    axis.plot([x for x, _ in known], theirs, ":", marker=MARKERS[way], markersize=4,
                              markerfacecolor="white", color=COLOURS[way], linewidth=1,
                              label=f"{GREEK[way]}, paper (MSLR-WEB10K)")  # fmt: skip
            axis.set_title(title, fontsize=10)
            axis.margins(y=0.08)
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
        for axis in axes[-1]:
            axis.set_xlabel("λ or α (0: plain LambdaMART)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)

    return Figure(
        "topology",
        f"Topology by λ and α, {found.study.source.name}: depth, nodes and time of the first "
        f"{found.study.equal_trees:,} trees, and the number of trees that validation data chooses.",
        draw,
        (9.0, 6.0),
    )


def _by_fold(found: AsadiLinResults) -> Figure:
    """Figures 1 and 2 of the paper: NDCG@3 and latency of every fold."""
    engine = IFELSE if found.times(BASELINE.name, IFELSE) else AUTO
    groups, folds = _groups(found.study.settings), list(found.study.folds)

    def draw(canvas: Any) -> None:
        shades = _shades(found.study.settings)
        axes = canvas.subplots(2, max(1, len(groups)), sharex=True, sharey="row", squeeze=False)
        for column, (way, settings) in enumerate(groups):
            for number, setting in enumerate(settings):
                at = np.arange(len(folds)) + 0.6 * ((number + 0.5) / len(settings) - 0.5)
                style = {"fmt": MARKERS[setting.way], "color": shades[setting], "markersize": 5, "elinewidth": 0.9,
                         "capsize": 2, "label": _label(setting)}  # fmt: skip
                quality = [interval(found.ndcg(setting.name, "nDCG@3", fold=fold)) for fold in folds]
                latency = [interval(found.times(setting.name, engine, fold=fold)) for fold in folds]
                for axis, points in zip(axes[:, column], (quality, latency), strict=True):
                    means, halves = [mean for mean, _ in points], [half or 0.0 for _, half in points]
                    axis.errorbar(at, means, halves, **style)
            axes[0, column].set_title(
                {"lambda": "(a) cost-sensitive growth", "alpha": "(b) pruning while boosting"}[way]
            )
            axes[0, column].legend(fontsize=8, ncols=6, frameon=False, columnspacing=1.0, handletextpad=0.2,
                                   loc="upper center", bbox_to_anchor=(0.5, -0.02))  # fmt: skip
            axes[1, column].set(xlabel="fold", xticks=range(len(folds)), xticklabels=folds, ylim=(0, None))
        axes[0, 0].set_ylabel("nDCG@3, test data")
        axes[1, 0].set_ylabel(f"us per document,\n{_engine(engine)}")
        for axis in axes.flat:
            axis.grid(alpha=0.3, axis="y")

    return Figure(
        "by-fold",
        f"By fold, {found.study.source.name}: nDCG@3 and latency of the models of table 1, with 95 % intervals over "
        "seeds where there are three or more (figures 1 and 2 of the paper).",
        draw,
        (11.0, 6.5),
    )


def _differences(found: AsadiLinResults) -> list[str]:
    study = found.study
    return [
        "The data are others than the paper's, the five folds of MSLR-WEB10K, unless --data names them.",
        f"{study.n_seeds} run{'s' * (study.n_seeds > 1)} per fold and setting instead of 100.",
        "The paper does not say when training ends. Here it ends when nDCG of whole lists on validation data has not "
        f"improved for {study.patience:,} trees, or at {study.n_trees:,}, and the model is cut back to its best size. "
        "On small data that size is mostly chance, and with it n_avg and latency; so models of "
        f"{study.equal_trees:,} trees are compared as well.",
        "Samples are of whole queries (30 % per tree) and of features (30 % per split); the paper's minimum of "
        "observations per leaf, 0.5, is read as 0.5 % of the documents.",
        "Trees look at 255 bins of every feature. Of several deepest pairs of leaves the one whose split gained least "
        "is collapsed first; the paper does not say which.",
        "Stars come from one test over the test queries of all folds, with each query's mean over runs; the paper does "
        "not say what its pairs are.",
        f"Latency is the median of calls with {BATCH[IFELSE]:,} test documents each (our engine: {BATCH[AUTO]:,}), as "
        "Python sees it; the paper's is of single instances in a C program. Code is compiled with -O1.",
    ]  # fmt: skip
