"""Figures, each drawn once with matplotlib and written as PNG and SVG, and what several of them need."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.dtypes import FloatArray
from rankwood.errors import MissingPackageError
from rankwood.lab.extra import need
from rankwood.printable import printable

Draw = Callable[[Any], None]  # draws on an empty matplotlib figure

KINDS = (".png", ".svg")
# Colours as far apart as a search could put them, for colour-blind people, too; none is grey, and the page of a report
# has the same. Every one goes with a marker of its own.
COLOURS = ("#0072b2", "#d45500", "#00946b", "#940ef4", "#5f3a14", "#8c0364", "#502dae", "#f14cea", "#b179a1", "#93974f")
MARKERS = ("o", "s", "^", "D", "v", "*", "P", "X", ">", "<")
DASHES = ("-", "--", ":", "-.")  # another one when colours repeat
THINNEST, STEP = 1.3, 0.2  # points: width of the line that is drawn last, and how much wider each before it is
DODGE = 0.008  # of the width, between the bars of neighbouring lines
LABELS = 8  # points, of names at the ends of lines
SMOOTHED_FROM = 5  # points that a smoothing spline needs


@dataclass(frozen=True)
class Figure:
    """A figure that can be drawn.

    Parameters
    ----------
    name : str
        Name of its files, without ending.
    caption : str
    draw : callable
        Draws it on an empty matplotlib figure.
    size : (float, float), default (9.0, 4.0)
        Width and height in inches.
    """

    name: str
    caption: str
    draw: Draw
    size: tuple[float, float] = (9.0, 4.0)


def check_figures() -> None:
    """Raise an error that names matplotlib when it is missing, before work whose figures could not be drawn."""
    need("matplotlib", "drawing figures")


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        check_figures()
    except MissingPackageError:
        return False
    return True


def write_figure(figure: Figure, folder: Path) -> list[Path]:
    """Draw a figure, write it into a folder as PNG and SVG, and return the two paths."""
    paths = [folder / f"{figure.name}{kind}" for kind in KINDS]
    _write(figure, paths)
    return paths


def write_one(figure: Figure, path: Path) -> None:
    """Draw a figure and write it to a file, whose name ends as one of `KINDS`."""
    _write(figure, [path])


def _write(figure: Figure, paths: Sequence[Path]) -> None:
    check_figures()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Text

    canvas = Canvas(figsize=figure.size, dpi=150, layout="constrained")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names in scripts that no font here has
        figure.draw(canvas)
        for text in canvas.findobj(Text):  # names of data and settings are in titles and legends
            text.set_text(label(text.get_text()))
        for path in paths:
            with atomic_write(path) as file:
                if path.suffix.lower() == ".png":
                    FigureCanvasAgg(canvas).print_png(file)  # type: ignore[no-untyped-call]
                else:
                    FigureCanvasSVG(canvas).print_svg(file, metadata={"Date": None})  # type: ignore[no-untyped-call]


def label(text: str) -> str:
    r"""Return text that matplotlib shows as it is: control characters and dollar signs, its formulas, are escaped.

    Examples
    --------
    >>> print(label("a\x1b $x$"))
    a\x1b \$x\$
    """
    return re.sub(r"(?<!\\)\$", r"\$", "\n".join(map(printable, text.split("\n"))))


def style(number: int) -> dict[str, Any]:
    """Colour and marker of what has a number.

    Examples
    --------
    >>> style(1) == style(11), style(1) == style(2)
    (True, False)
    """
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def dashes(number: int) -> str:
    """Dashes of the line that has a number: solid until colours repeat.

    Examples
    --------
    >>> dashes(9), dashes(10)
    ('-', '--')
    """
    return DASHES[number // len(COLOURS) % len(DASHES)]


def line_style(number: int, n_lines: int) -> dict[str, Any]:
    """Style of one of several lines: each thinner than those before, which it is drawn upon, so that it hides none.

    Examples
    --------
    >>> [line_style(number, 3)["linewidth"] for number in range(3)]
    [1.7, 1.5, 1.3]
    """
    width = THINNEST + STEP * max(0, n_lines - 1 - number)
    return {
        **style(number),
        "linestyle": dashes(number),
        "linewidth": round(width, 3),
        "markersize": round(2.0 + 2.0 * width, 3),
        "zorder": 3 + number,
    }


def dodged(x: Sequence[float] | FloatArray, number: int, n_lines: int) -> FloatArray:
    """Return x of one of several lines, moved a little, so that bars stand beside each other.

    Examples
    --------
    >>> [dodged([0.0, 100.0], number, 3).round(2).tolist() for number in range(3)]
    [[-0.8, 99.2], [0.0, 100.0], [0.8, 100.8]]
    """
    at = np.asarray(x, dtype=np.float64)
    moved: FloatArray = at + (number - (n_lines - 1) / 2) * DODGE * (np.ptp(at) if len(at) else 0.0)
    return moved


def label_ends(axes: Any, ends: Sequence[tuple[float, float, str, Any]], height: float) -> None:
    """Write names at the ends of lines, to the right of the axes, none upon another; call it when all lines are drawn.

    Parameters
    ----------
    axes : matplotlib axes
        Its limits are fixed by this.
    ends : sequence of (x, y, name, colour)
        Where every line ends.
    height : float
        About how high the axes are, in inches.
    """
    low, high = axes.get_ylim()
    axes.set(xlim=axes.get_xlim(), ylim=(low, high))
    order = sorted(range(len(ends)), key=lambda number: ends[number][1])
    at = spread([(ends[number][1] - low) / (high - low) for number in order], 1.35 * LABELS / 72 / height)
    for number, place in zip(order, at, strict=True):
        x, y, name, colour = ends[number]
        axes.annotate(
            name,
            (x, y),
            (1.04, place),
            textcoords="axes fraction",
            va="center",
            fontsize=LABELS,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 1,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Return increasing values between 0 and 1, moved as little as it takes for neighbours to be `gap` apart.

    When there is no room for that, they are as far apart as can be.

    Examples
    --------
    >>> [round(value, 3) for value in spread([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    n = len(values)
    gap = min(gap, 1.0 / max(1, n - 1))
    blocks: list[list[float]] = []  # values less their gaps, neighbours that are out of order joined (least squares)
    for number, value in enumerate(values):
        blocks.append([value - number * gap])
        while len(blocks) > 1 and np.mean(blocks[-2]) >= np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    level = [float(np.mean(block)) for block in blocks for _ in block]
    return [min(max(one, 0.0), 1.0 - (n - 1) * gap) + number * gap for number, one in enumerate(level)]


def legend_below(canvas: Any, axes: Any, n_columns: int = 4) -> None:
    """Draw one legend for all panels of a figure below them, where it hides nothing."""
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=n_columns, fontsize=8)


def log_axis(axes: Any, number_format: str = "g") -> None:
    """Make the x axis logarithmic, with plain numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:{number_format}}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def pareto_front(costs: Sequence[float], qualities: Sequence[float]) -> list[int]:
    """Indices of the Pareto-optimal points, cheapest first: no other point is at least as good for less.

    Examples
    --------
    >>> pareto_front([3.0, 1.0, 2.0, 2.5], [0.9, 0.5, 0.7, 0.6])
    [1, 2, 0]
    """
    front: list[int] = []
    for place in sorted(range(len(costs)), key=lambda i: (costs[i], -qualities[i])):
        if not front or qualities[place] > qualities[front[-1]]:
            front.append(place)
    return front


def smooth(x: Sequence[float], y: Sequence[float], *, log: bool = True) -> tuple[FloatArray, FloatArray]:
    """Return a smooth curve through points, over the logarithm of x; straight lines through fewer than five points.

    The curve is a cubic smoothing spline, its penalty chosen by generalised cross-validation. Without `log` it is one
    over x itself.

    Examples
    --------
    >>> curve_x, curve_y = smooth([1, 10, 100], [0.0, 1.0, 0.0])
    >>> curve_y.max().round(2).item(), len(curve_x) == len(curve_y)
    (1.0, True)
    """
    order = np.argsort(x, kind="stable")
    at, values = np.asarray(x, dtype=np.float64)[order], np.asarray(y, dtype=np.float64)[order]
    at, back = (np.log(at), np.exp) if log else (at, np.asarray)
    at, first = np.unique(at, return_index=True)
    values = values[first]
    dense = np.linspace(at[0], at[-1], 201)
    if len(at) < SMOOTHED_FROM:
        return back(dense), np.interp(dense, at, values)
    from scipy.interpolate import make_smoothing_spline

    return back(dense), make_smoothing_spline(at, values)(dense)
