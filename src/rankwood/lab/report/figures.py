"""The figures of a report, drawn with matplotlib for papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankwood.lab.drawing import Figure, dashes, label, label_ends, log_axis, pareto_front, style
from rankwood.lab.report.facts import ALPHA, Bins, Estimate, ModelFacts, Pair, ReportFacts
from rankwood.lab.report.page import p_or_dash
from rankwood.printable import printable

BETTER, WORSE, GREY = "#2f3b48", "#8a95a1", "#55606d"  # no colour of a model
LONGEST_NAME = 28
MOST_PANELS = 9  # pairs of one figure
TOP_FEATURES = 15


def report_figures(facts: ReportFacts) -> list[Figure]:
    """Return every figure for which the report has data."""
    n_models, n_measures = len(facts.models), len(facts.measures)
    rows = 0.32 * n_models
    figures = [
        Figure(
            "tradeoff",
            "Quality against latency: 95 % intervals, Pareto front",
            partial(_draw_tradeoff, facts),
            (max(6.0, 4.6 * n_measures), 4.4 + 0.12 * n_models),
        )
    ]
    if any(model.curves for model in facts.models):
        figures.append(Figure("curves", "Learning curves", partial(_draw_curves, facts), (8.0, 4.2)))
    if any(model.n_trees for model in facts.models):
        figures.append(Figure("shapes", "Depth and leaves of trees", partial(_draw_shapes, facts), (9.0, 1.6 + rows)))
        figures.append(Figure("trees", "Weights and output ranges by tree", partial(_draw_trees, facts), (9.0, 3.8)))
    if any(any(model.anatomy.splits) for model in facts.models):
        size = (3.2 + 1.1 * n_models, 1.6 + 0.3 * min(TOP_FEATURES, len(facts.features)))
        splits = [model.anatomy.splits for model in facts.models]
        drawn = partial(_draw_features, facts, splits, "share of splits, %")
        figures.append(Figure("features", "Share of splits by feature", drawn, size))
        effects = [model.effects.shares for model in facts.models if model.effects is not None]
        if len(effects) == len(facts.models):
            drawn = partial(_draw_features, facts, effects, "share of mean |SHAP|, %")
            figures.append(Figure("effects", "What moves scores: share of mean |SHAP|", drawn, size))
    against = _against_baseline(facts)
    if against:
        columns = min(3, len(against))
        size = (3.9 * columns + 0.6, 2.9 * math.ceil(len(against) / columns) + 0.5)
        figures.append(
            Figure(
                "queries", "Differences from the baseline, query by query", partial(_draw_queries, facts, against), size
            )
        )
        size = (3.0 + 0.95 * n_models, 1.9 + 0.6 * n_models)
        figures.append(Figure("significance", "p-values of all pairs", partial(_draw_significance, facts), size))
    return [replace(figure, draw=partial(_draw_titled, figure)) for figure in figures]


def _draw_titled(figure: Figure, canvas: Any) -> None:
    """Draw a figure with its caption as its title."""
    figure.draw(canvas)
    canvas.suptitle(figure.caption, fontsize=10)


def _name(text: str, most: int = LONGEST_NAME) -> str:
    """Return a name on one line, shortened in the middle, that matplotlib shows as it is."""
    text, head = printable(text), (most - 1) // 2
    return label(text if len(text) <= most else f"{text[:head]}…{text[-(most - 1 - head) :]}")


def _tidy(ax: Any) -> None:
    """Draw a light grid, and no frame above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e4e7eb", linewidth=0.8)
    ax.set_axisbelow(True)


def _reach(estimate: Estimate) -> list[list[float]] | None:
    """Return the lengths of an error bar down and up, as matplotlib wants them."""
    if estimate.low is None or estimate.high is None:
        return None
    return [[max(0.0, estimate.value - estimate.low)], [max(0.0, estimate.high - estimate.value)]]


def _draw_tradeoff(facts: ReportFacts, figure: Any) -> None:
    """Quality over latency with the Pareto front, a panel per measure."""
    axes = figure.subplots(1, len(facts.measures), squeeze=False)[0]
    for ax, measure in zip(axes, facts.measures, strict=True):
        for number, model in enumerate(facts.models):
            us, quality = model.timing, model.quality[measure]
            cost = Estimate(us.us_per_doc, us.low, us.high)
            label = _name(model.name) if ax is axes[0] else None
            bars = {"xerr": _reach(cost), "yerr": _reach(quality), "elinewidth": 1.0, "capsize": 2.5}
            ax.errorbar(cost.value, quality.value, **bars, **style(number), markersize=8, linestyle="none", label=label)
        points = [(m.timing.us_per_doc, m.quality[measure].value) for m in facts.models]
        front = [points[place] for place in pareto_front(*zip(*points, strict=True))]
        right = ax.get_xlim()[1]
        x, y = [p[0] for p in front] + [right], [p[1] for p in front] + [front[-1][1]]
        ax.step(x, y, where="post", color=GREY, linestyle="--", linewidth=1.2, zorder=1)
        ax.set_xlim(right=right)
        _cost_axis(ax, [model.timing.us_per_doc for model in facts.models])
        ax.set_ylabel(measure)
        _tidy(ax)
    figure.legend(loc="outside lower center", ncols=min(5, len(facts.models)), frameon=False)


def _cost_axis(ax: Any, costs: list[float]) -> None:
    """Label the axis of latency, and make it logarithmic when costs differ by more than four times."""
    is_log = min(costs) > 0 and max(costs) > 4 * min(costs)
    if is_log:
        log_axis(ax)
    ax.set_xlabel("µs per document" + (" (log scale)" if is_log else ""))


def _draw_curves(facts: ReportFacts, figure: Any) -> None:
    """Learning curves of all models under one measure, dotted on training data."""
    ax = figure.subplots()
    measure, ends = _curve_measure(facts), []
    for number, model in enumerate(facts.models):
        for name, by_measure in model.curves.items():
            curve = by_measure.get(measure)
            if curve is None:
                continue
            values = [math.nan if value is None else value for value in curve.values]
            is_training = name in ("train", "training")
            ax.plot(
                curve.iterations,
                values,
                **style(number),
                markevery=max(1, len(values) // 8),
                markersize=3 if is_training else 5,
                linestyle=":" if is_training else dashes(number),
                linewidth=1.2 if is_training else 1.7,
            )
            known = [place for place, value in enumerate(values) if not math.isnan(value)]
            if known:
                last = known[-1]
                end = curve.iterations[last], values[last], f"{_name(model.name)}, {_name(name)}"
                ends.append((*end, style(number)["color"]))
    ax.set_xlabel("iteration")
    ax.set_ylabel(measure)
    _tidy(ax)
    label_ends(ax, ends, 3.0)


def _curve_measure(facts: ReportFacts) -> str:
    """Return the first measure of the report that has curves, or else the first that any curve has."""
    known = [m for model in facts.models for by_measure in model.curves.values() for m in by_measure]
    return next((measure for measure in facts.measures if measure in known), known[0])


def _draw_shapes(facts: ReportFacts, figure: Any) -> None:
    """Histograms of the depth and the leaves of trees, a row per model."""
    left, right = figure.subplots(1, 2, sharey=True)
    panels: tuple[tuple[Any, str, Bins, Callable[[ModelFacts], Any]], ...] = (
        (left, "longest path of a tree, in splits", facts.depth_bins, lambda model: model.anatomy.depths),
        (right, "leaves of a tree", facts.leaf_bins, lambda model: model.anatomy.leaves),
    )
    for ax, title, bins, counts_of in panels:
        for number, model in enumerate(facts.models):
            counts = np.asarray(counts_of(model), dtype=float)
            heights = 0.82 * counts / max(counts.max(initial=0.0), 1.0)
            starts = bins.first + bins.width * np.arange(len(counts)) - (0.5 if bins.width == 1 else 0.0)
            ax.bar(
                starts,
                heights,
                width=0.9 * bins.width,
                align="edge",
                bottom=-number - 0.4,
                color=style(number)["color"],
            )
        ax.set_xlabel(title)
        ax.set_yticks([-number for number in range(len(facts.models))], [_name(m.name) for m in facts.models])
        ax.set_ylim(-len(facts.models) + 0.45, 0.55)
        ax.xaxis.get_major_locator().set_params(integer=True)
        _tidy(ax)
        ax.grid(axis="y", visible=False)


def _draw_trees(facts: ReportFacts, figure: Any) -> None:
    """Weight and range of output of every tree."""
    left, right = figure.subplots(1, 2)
    for number, model in enumerate(facts.models):
        anatomy, label = model.anatomy, _name(model.name)
        for ax, values in ((left, anatomy.weights), (right, anatomy.ranges)):
            ax.plot(
                anatomy.trees,
                values,
                color=style(number)["color"],
                linestyle=dashes(number),
                linewidth=1.2,
                label=label if ax is left else None,
            )
    for ax, title in ((left, "weight"), (right, "range of output")):
        ax.set_xlabel("tree")
        ax.set_ylabel(title)
        _tidy(ax)
    figure.legend(loc="outside lower center", ncols=min(5, len(facts.models)), frameon=False)


def _draw_features(facts: ReportFacts, of_models: Sequence[Sequence[float]], label: str, figure: Any) -> None:
    """Shares of the features that have the largest ones, a column per model."""
    shares = np.array(of_models)  # models x features
    top = np.argsort(-shares.mean(axis=0), kind="stable")[:TOP_FEATURES]
    shown = 100 * shares[:, top].T
    ax = figure.subplots()
    image = ax.imshow(shown, cmap="Blues", aspect="auto", vmin=0.0, vmax=1.5 * max(float(shown.max()), 1e-9))
    for (row, column), value in np.ndenumerate(shown):
        ax.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=8)
    _label_matrix(ax, [_name(facts.features[f]) for f in top], [_name(m.name, 16) for m in facts.models])
    figure.colorbar(image, ax=ax, label=label, shrink=0.8)


def _label_matrix(ax: Any, rows: list[str], columns: list[str]) -> None:
    """Name the rows and columns of a matrix, and draw no frame."""
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _against_baseline(facts: ReportFacts) -> list[tuple[ModelFacts, Pair, int]]:
    """Return the other models with their pairs with the baseline, by the first measure, and the sign of the pair.

    The sign is 1 where the baseline is the first of the pair, and -1 where it is the second.
    """
    found: list[tuple[ModelFacts, Pair, int]] = []
    for pair in facts.pairs:
        if pair.measure == facts.measures[0] and facts.baseline in (pair.first, pair.second) and pair.differences:
            is_first = pair.first == facts.baseline
            found.append((facts.models[pair.second if is_first else pair.first], pair, 1 if is_first else -1))
    return found[:MOST_PANELS]


def _draw_queries(facts: ReportFacts, against: list[tuple[ModelFacts, Pair, int]], figure: Any) -> None:
    """Sorted differences of queries from the baseline, a panel per model."""
    columns = min(3, len(against))
    axes = figure.subplots(math.ceil(len(against) / columns), columns, squeeze=False, sharey=True).ravel()
    for ax, (model, pair, sign) in zip(axes, against, strict=False):
        values = np.sort(sign * np.asarray(pair.differences))[::-1]
        colours = np.where(values > 0, BETTER, np.where(values < 0, WORSE, GREY))
        ax.bar(np.arange(len(values)), values, width=1.0, color=colours)
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        wins, losses = (pair.wins, pair.losses) if sign > 0 else (pair.losses, pair.wins)
        ax.set_title(f"{_name(model.name)}\n{wins} wins, {pair.ties} ties, {losses} losses", fontsize=9)
        ax.set_xticks([])
        _tidy(ax)
    for ax in axes[len(against) :]:
        ax.set_visible(False)
    figure.supylabel(f"{facts.measures[0]} minus that of {_name(facts.base.name)}", fontsize=9)
    figure.supxlabel("queries, sorted by difference", fontsize=9)


def _draw_significance(facts: ReportFacts, figure: Any) -> None:
    """Corrected p-values and differences of all pairs, as a matrix."""
    n = len(facts.models)
    colours, ax = np.zeros((n, n)), figure.subplots()
    texts: dict[tuple[int, int], str] = {}
    for pair in facts.pairs:
        if pair.measure != facts.measures[0]:
            continue
        difference = pair.difference or 0.0
        for row, column, sign in ((pair.second, pair.first, 1.0), (pair.first, pair.second, -1.0)):
            is_sure = pair.p is not None and pair.p < ALPHA
            colours[row, column] = math.copysign(1.0, sign * difference) if is_sure else 0.0
            mark = {1.0: " ▲", -1.0: " ▼"}.get(colours[row, column], "")
            texts[row, column] = f"{p_or_dash(pair.p)}{mark}\n{sign * difference:+.4f}".replace("-", "−")
    from matplotlib.colors import ListedColormap

    ax.imshow(colours, cmap=ListedColormap(["#eceff2", "#ffffff", "#cfd6dd"]), vmin=-1, vmax=1, aspect="auto")
    for (row, column), text in texts.items():
        ax.text(column, row, text, ha="center", va="center", fontsize=8)
    names = [_name(model.name, 18) for model in facts.models]
    _label_matrix(ax, names, names)
    ax.set_title(f"{facts.measures[0]}: corrected p, and row minus column", fontsize=9)
    ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="#d8dde3", linewidth=0.8)
    ax.tick_params(which="minor", length=0)
