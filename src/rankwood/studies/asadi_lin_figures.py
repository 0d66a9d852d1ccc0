"""Figures of efficient trees: quality against latency, topology by setting, folds (the paper's figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwood.drawing import Figure
from rankwood.studies.asadi_lin import BASELINE, BEST, EQUAL, IN_WORDS, SHOWN, AsadiLinResults, Setting, interval
from rankwood.studies.asadi_lin_paper import PAPER


def make_figures(found: AsadiLinResults) -> list[Figure]:
    return [_tradeoff(found), _topology(found), _by_fold(found)]


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
    engine = found.main_engine
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
            axis.set(xlabel=f"microseconds per document, {IN_WORDS[engine]}", title=title, ylabel=f"{SHOWN}, test data")
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
    engine = found.main_engine

    def latency_per_tree(setting: str) -> float:
        latency = found.latency(setting, engine, EQUAL)
        return float("nan") if latency is None else 1000 * latency.us / found.study.equal_trees

    panels: tuple[tuple[str, Callable[[str], float], int | None], ...] = (
        ("maximum depth of a tree, mean", lambda name: found.topology(name, EQUAL)["depth"], 0),
        ("nodes per tree, with leaves", lambda name: found.topology(name, EQUAL)["nodes_per_tree"], 3),
        ("trees, chosen on validation data", lambda name: found.topology(name)["trees"], 1),
        (f"ns per tree and document, {IN_WORDS[engine]}", latency_per_tree, None),
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
    engine = found.main_engine
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
        axes[1, 0].set_ylabel(f"us per document,\n{IN_WORDS[engine]}")
        for axis in axes.flat:
            axis.grid(alpha=0.3, axis="y")

    return Figure(
        "by-fold",
        f"By fold, {found.study.source.name}: nDCG@3 and latency of the models of table 1, with 95 % intervals over "
        "seeds where there are three or more (figures 1 and 2 of the paper).",
        draw,
        (11.0, 6.5),
    )
