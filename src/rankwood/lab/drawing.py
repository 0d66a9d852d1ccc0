"""Figures for papers, each drawn once and written as PNG and SVG, and the front of what is worth its cost."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.errors import MissingPackageError
from rankwood.lab.extra import need
from rankwood.printable import printable

# What is worth its cost.


def pareto_front(costs: Sequence[float], worths: Sequence[float]) -> list[int]:
    """Places of those that no other is both as cheap and as good as, the cheapest first.

    >>> pareto_front([3.0, 1.0, 2.0, 2.5], [0.9, 0.5, 0.7, 0.6])
    [1, 2, 0]
    """
    front: list[int] = []
    for place in sorted(range(len(costs)), key=lambda i: (costs[i], -worths[i])):
        if not front or worths[place] > worths[front[-1]]:
            front.append(place)
    return front


# Figures for papers: each drawn once with matplotlib, and written as PNG and SVG.


Draw = Callable[[Any], None]  # draws on an empty matplotlib figure


@dataclass(frozen=True)
class Figure:
    """One figure: the name of its files, a caption, its size in inches, and how it is drawn."""

    name: str
    caption: str
    draw: Draw
    size: tuple[float, float] = (9.0, 4.0)


def check_figures() -> None:
    """Refuse work whose figures could not be drawn in the end: an error that names matplotlib."""
    need("matplotlib", "drawing figures")


def can_draw() -> bool:
    """Whether matplotlib is there."""
    try:
        check_figures()
    except MissingPackageError:
        return False
    return True


def label(text: str) -> str:
    r"""Text that stands in a figure as it is: printable but for line ends, and no formula whatever dollars it has.

    >>> print(label("a\x1b $x$"))
    a\x1b \$x\$
    """
    return re.sub(r"(?<!\\)\$", r"\$", "\n".join(map(printable, text.split("\n"))))


def write_figure(figure: Figure, folder: Path) -> list[Path]:
    """Draw a figure, and write it into `folder` as PNG and SVG; their paths."""
    check_figures()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Text

    canvas = Canvas(figsize=figure.size, dpi=150, layout="constrained")
    paths = [folder / f"{figure.name}.png", folder / f"{figure.name}.svg"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names in scripts that no font here has
        figure.draw(canvas)
        for text in canvas.findobj(Text):  # names of data and settings are in titles and legends
            text.set_text(label(text.get_text()))
        with atomic_write(paths[0]) as file:
            FigureCanvasAgg(canvas).print_png(file)  # type: ignore[no-untyped-call]
        with atomic_write(paths[1]) as file:
            FigureCanvasSVG(canvas).print_svg(file, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return paths
