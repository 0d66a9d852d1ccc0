"""The figure of a path of shrinking: what is lost, and what is shown of it, size by size."""

from __future__ import annotations

from typing import Any

from rankwood.lab.drawing import Figure, log_axis
from rankwood.shrinking.result import ShrinkResult, ShrinkRow

SHOWN, FAILED, CHOSEN = "#1f6f8b", "#9aa5ab", "#c8553d"


def path_figure(result: ShrinkResult, name: str) -> Figure:
    """Difference of the measure with its one-sided bound against leaves, the margin, and the chosen model.

    Parameters
    ----------
    result : ShrinkResult
        Result of `shrink`.
    name : str
        Name of the model, for the title.
    """
    margin, level = result.rule.margin or 0.0, f"{100 * (1 - result.rule.alpha):g} %"

    def draw(canvas: Any) -> None:
        axes = canvas.add_subplot()
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.axhline(-margin, color=CHOSEN, linestyle="--", linewidth=1.0, label=f"margin {margin:g}")
        for row in result.rows:
            if row.proof is not None and row.proof.difference is not None:
                _draw_row(axes, row, row is result.chosen)
        _draw_test(axes, result)
        axes.plot([result.rows[0].n_leaves], [0.0], "s", color="black", label=f"input{_us(result.rows[0])}")
        log_axis(axes, ",.0f")
        axes.set_xlabel("leaves")
        axes.set_ylabel(f"{result.measure} less the input's")
        axes.set_title(f"{name}: bars reach down to the one-sided {level} bound", fontsize=10)
        axes.grid(alpha=0.25)
        axes.margins(y=0.12)  # room for labels
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # one of each
        canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8)

    return Figure("shrinking", "Loss along the path, with one-sided bounds", draw, size=(8.0, 4.5))


def _draw_row(axes: Any, row: ShrinkRow, is_chosen: bool) -> None:
    """The difference of one model, the range down to its bound, and its scoring time."""
    assert row.proof is not None
    assert row.proof.difference is not None
    colour, label = (SHOWN, "shown to lose less") if row.accepted else (FAILED, "not shown")
    lower = row.proof.difference if row.proof.lower is None else row.proof.lower
    axes.vlines(row.n_leaves, lower, row.proof.difference, color=colour, linewidth=2.0)
    axes.plot([row.n_leaves], [lower], "_", color=colour, markersize=9)
    axes.plot([row.n_leaves], [row.proof.difference], "o", color=colour, markersize=6, label=label)
    if is_chosen:
        axes.plot([row.n_leaves], [row.proof.difference], "o", markersize=13, markerfacecolor="none",
                  markeredgecolor=CHOSEN, markeredgewidth=1.8, label="chosen")  # fmt: skip
    if row.us_per_doc is not None:
        axes.annotate(f"{row.us_per_doc:.2f} µs", (row.n_leaves, row.proof.difference), xytext=(0, 9),
                      textcoords="offset points", ha="center", fontsize=7)  # fmt: skip


def _draw_test(axes: Any, result: ShrinkResult) -> None:
    tested = [row for row in result.rows if row.proof is not None and row.test_difference is not None]
    if tested:
        axes.plot([row.n_leaves for row in tested], [row.test_difference for row in tested], "x", color="black",
                  markersize=5, label="test data")  # fmt: skip


def _us(row: ShrinkRow) -> str:
    return "" if row.us_per_doc is None else f" ({row.us_per_doc:.2f} µs per document)"
