"""One tree as a drawing: SVG that any browser or notebook shows, in light and dark."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.atomic import atomic_write
from rankwood.dtypes import FloatArray
from rankwood.errors import RankwoodError
from rankwood.explaining.conditions import Place, TreeNotes, condition, short, tree_number, walk
from rankwood.printable import printable

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

# In pixels. The root stands to the left, leaves in a column of rows to the right of their nodes.
ROW, COLUMN, BOX_WIDTH, BOX_HEIGHT = 40, 230, 180, 34
BAR_WIDTH, TEXT_WIDTH, MARGIN, TITLE = 70, 150, 16, 30
LONGEST = 24  # characters of a line in a box
THINNEST, THICKEST = 1.0, 7.0  # edges, by the share of the data that takes them

STYLE = """
  .tree { --ink: #1c2530; --soft: #5c6b7a; --line: #9fb0bf; --box: #ffffff; --edge: #7f93a5; --page: #f7f9fb;
          --up: #0f766e; --down: #b45309; }
  @media (prefers-color-scheme: dark) {
    .tree { --ink: #e6edf3; --soft: #9aa9b8; --line: #5a6b7c; --box: #1b2530; --edge: #71879b; --page: #10161d;
            --up: #2dd4bf; --down: #fbbf24; } }
  .tree text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); }
  .tree .soft { fill: var(--soft); font-size: 11px; }
  .tree .name { font-weight: 600; }
  .tree .page { fill: var(--page); }
  .tree rect.box { fill: var(--box); stroke: var(--edge); }
  .tree path { fill: none; stroke: var(--line); }
  .tree .up { fill: var(--up); } .tree .down { fill: var(--down); } .tree .axis { stroke: var(--line); }
"""


@dataclass(frozen=True)
class TreeDrawing:
    """A drawing of a tree: what `plot_tree` returns. Notebooks show it.

    Attributes
    ----------
    svg : str
        The drawing as SVG.
    """

    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file; its name ends in `.svg`.
        """
        if Path(path).suffix.lower() not in (".svg", ""):
            raise RankwoodError(
                f"{os.fspath(path)}: a drawing is SVG, so give a name that ends in .svg; browsers and tools like "
                "rsvg-convert or Inkscape make other formats of it"
            )
        with atomic_write(path) as file:
            file.write(self.svg.encode())

    def _repr_svg_(self) -> str:
        return self.svg


def plot_tree(model: Any, tree: int = 0, *, max_depth: int | None = None) -> TreeDrawing:
    """One tree of a model as a drawing, the root to the left.

    Documents that meet the condition of a node go up, others down; a ring marks where missing values go. Lines are as
    thick as the share of training data that takes them, where the model knows; bars show what leaves add to the score.

    Parameters
    ----------
    model : Ensemble or fitted learner
    tree : int, default 0
        Counted from 0, or from the end when negative.
    max_depth : int, optional
        Splits below each other that are drawn; what is deeper shows as its number of leaves.

    Returns
    -------
    TreeDrawing
        It has the SVG as `svg`, and `save(path)`.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (1, 2.0, 2.0, 3.0))], feature_names=["bm25", "clicks"])
    >>> rw.plot_tree(model).svg[:4]
    '<svg'
    """
    model = getattr(model, "ensemble_", model)
    return TreeDrawing(_Sheet(model, tree_number(model, tree), max_depth).svg())


class _Sheet:
    """Where everything stands, and the SVG of it."""

    def __init__(self, model: Ensemble, tree: int, max_depth: int | None) -> None:
        self.model, self.tree, self.notes = model, tree, TreeNotes(model)
        self.first_node, self.first_leaf = model.trees.nodes_of(tree).start, model.trees.leaves_of(tree).start
        places = list(walk(model, tree))
        limit = np.inf if max_depth is None else max_depth
        self.hidden = _leaves_below(places)  # by place; drawn as a number where the limit cuts
        self.places = [(number, place) for number, place in enumerate(places) if place.depth <= limit]
        self.is_end = [place.is_leaf or place.depth == limit for _, place in self.places]
        self.y = self._rows()
        self.inner = {
            place.number: at for at, (_, place) in enumerate(self.places) if not place.is_leaf and not self.is_end[at]
        }
        values: FloatArray = self.notes.values[model.trees.leaves_of(tree)]
        self.largest = float(np.abs(values).max()) or 1.0

    def _rows(self) -> list[float]:
        """Height of every place: ends one below the other, nodes between their children."""
        y, rows = [0.0] * len(self.places), 0
        sums: dict[int, list[float]] = {}
        for at, (_, _place) in enumerate(self.places):
            if self.is_end[at]:
                y[at] = rows * ROW
                rows += 1
        for at in range(len(self.places) - 1, -1, -1):
            place = self.places[at][1]
            if not self.is_end[at]:
                y[at] = sum(sums[place.number]) / 2
            if place.parent >= 0:
                sums.setdefault(place.parent, []).append(y[at])
        return y

    def svg(self) -> str:
        n_ends = sum(self.is_end)
        depth = max(place.depth for _, place in self.places)
        width = 2 * MARGIN + depth * COLUMN + max(BOX_WIDTH, BAR_WIDTH + TEXT_WIDTH)
        height = TITLE + MARGIN + n_ends * ROW
        lines, boxes = [], []
        for at, (number, place) in enumerate(self.places):
            if place.parent >= 0:
                lines.append(self._line(at, place))
            if place.is_leaf:
                boxes.append(self._leaf(at, place))
            elif self.is_end[at]:
                boxes.append(self._cut(at, self.hidden[number], place))
            else:
                boxes.append(self._box(at, place))
        weight = short(self.model.tree_weights[self.tree])
        title = f"tree {self.tree}: {self.hidden[0]:,} leaves, weight {weight}; up: yes, down: no, ring: missing values"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">\n<style>{STYLE}</style>\n'
            f'<rect class="page" width="{width}" height="{height}"/>\n'
            f'<text class="soft" x="{MARGIN}" y="20">{escape(title)}</text>\n'
            + "\n".join([*lines, *boxes])
            + "\n</svg>\n"
        )

    def _at(self, at: int) -> tuple[float, float]:
        """The left end of a place, in the middle of its height."""
        return MARGIN + self.places[at][1].depth * COLUMN, TITLE + self.y[at] + ROW / 2

    def _line(self, at: int, place: Place) -> str:
        above = self.inner[place.parent]
        (x0, y0), (x1, y1) = self._at(above), self._at(at)
        x0 += BOX_WIDTH
        middle, share = (x0 + x1) / 2, self._share(place)
        thick = THINNEST + (THICKEST - THINNEST) * share
        ring = ""
        if bool(self.model.missing_left[self.first_node + place.parent]) == place.is_left:
            ring = f'<circle class="axis" cx="{x1 - 8:.1f}" cy="{y1:.1f}" r="3.5" fill="var(--page)"/>'
        return (
            f'<path d="M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}" '
            f'stroke-width="{thick:.2f}"/>{ring}'
        )

    def _share(self, place: Place) -> float:
        """Share of the tree's data that comes to a place; 0 where it is not known."""
        cover, whole = self._cover(place), self._cover(self.places[0][1])
        return cover / whole if cover is not None and whole else 0.0

    def _cover(self, place: Place) -> float | None:
        covers = self.notes.leaf_cover if place.is_leaf else self.notes.node_cover
        if covers is None:
            return None
        return float(covers[(self.first_leaf if place.is_leaf else self.first_node) + place.number])

    def _box(self, at: int, place: Place) -> str:
        x, y = self._at(at)
        node = self.first_node + place.number
        name = self.notes.names[self.model.feature[node]]
        text = condition(self.model, node, self.notes.categories)
        cover = self._cover(place)
        count = "" if cover is None else f", n = {short(cover)}"
        whole = f"{name} {text}{count}"
        return (
            f'<g><title>{_text(whole)}</title><rect class="box" x="{x}" y="{y - BOX_HEIGHT / 2:.1f}" rx="5" '
            f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/><text class="name" x="{x + 8}" y="{y - 3:.1f}">'
            f'{_text(name, LONGEST)}</text><text class="soft" x="{x + 8}" y="{y + 11:.1f}">'
            f"{_text(text + count, LONGEST + 4)}</text></g>"
        )

    def _leaf(self, at: int, place: Place) -> str:
        x, y = self._at(at)
        value, cover = float(self.notes.values[self.first_leaf + place.number]), self._cover(place)
        length = BAR_WIDTH / 2 * abs(value) / self.largest
        zero = x + BAR_WIDTH / 2
        kind, start = ("up", zero) if value >= 0 else ("down", zero - length)
        count = "" if cover is None else f'<tspan class="soft" dx="6">n = {short(cover)}</tspan>'
        return (
            f'<g><title>leaf {place.number}: {short(value)}</title><rect class="{kind}" x="{start:.1f}" '
            f'y="{y - 7:.1f}" width="{max(length, 0.5):.1f}" height="14"/>'
            f'<line class="axis" x1="{zero}" x2="{zero}" y1="{y - 11:.1f}" y2="{y + 11:.1f}"/>'
            f'<text x="{x + BAR_WIDTH + 8}" y="{y + 4:.1f}">{short(value)}{count}</text></g>'
        )

    def _cut(self, at: int, n_leaves: int, place: Place) -> str:
        x, y = self._at(at)
        cover = self._cover(place)
        count = "" if cover is None else f", n = {short(cover)}"
        return f'<text class="soft" x="{x + 4}" y="{y + 4:.1f}">{n_leaves:,} leaves{_text(count)}</text>'


def _leaves_below(places: list[Place]) -> list[int]:
    """Number of leaves at and below each place of a walk."""
    below, waiting = [0] * len(places), dict[int, int]()
    for at in range(len(places) - 1, -1, -1):
        place = places[at]
        below[at] = 1 if place.is_leaf else waiting[place.number]
        if place.parent >= 0:
            waiting[place.parent] = waiting.get(place.parent, 0) + below[at]
    return below


def _text(text: str, longest: int = 10**6) -> str:
    """Text as SVG may hold it, cut where it is too long."""
    shown = printable(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")
