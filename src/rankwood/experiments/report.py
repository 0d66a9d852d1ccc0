"""What a study leaves behind: a page in Markdown, tables as CSV and LaTeX, figures as PNG and SVG, all as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.errors import RankwoodError
from rankwood.experiments.printed import Table

NO_FIGURES = "figures need matplotlib: install it with pip install 'rankwood[report]'"
Draw = Callable[[Any], None]  # draws on an empty matplotlib figure


@dataclass(frozen=True)
class Figure:
    """One figure: the name of its files, a caption, its size in inches, and how it is drawn."""

    name: str
    caption: str
    draw: Draw
    size: tuple[float, float] = (9.0, 4.0)


@dataclass(frozen=True)
class Report:
    """Tables and figures of a study, the main table first; `differences` is what is not as in its paper, if any."""

    title: str
    summary: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    differences: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path, *, environment: Mapping[str, Any]) -> list[Path]:
        """Write all files into `folder`; their paths, the page first."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "report.md"]
        for table in self.tables:
            for ending, text in ("csv", table.csv()), ("md", table.markdown() + "\n"), ("tex", table.latex()):
                written.append(folder / f"{table.name}.{ending}")
                _write(written[-1], text)
        for figure in self.figures:
            written += _draw(figure, folder)
        whole = {
            "title": self.title,
            "summary": self.summary,
            "differences": list(self.differences),
            "tables": {table.name: table.as_dict() for table in self.tables},
            "facts": dict(self.facts),
            "environment": dict(environment),
        }
        written.append(folder / "results.json")
        _write(written[-1], json.dumps(whole, indent=2, allow_nan=False) + "\n")
        _write(written[0], self.markdown(environment))
        return written

    def markdown(self, environment: Mapping[str, Any]) -> str:
        parts = [f"# {self.title}", self.summary, *(table.markdown() for table in self.tables)]
        parts += [f"![{figure.caption}]({figure.name}.png)\n\n{figure.caption}" for figure in self.figures]
        if self.differences:
            parts.append("## What differs from the paper\n\n" + "\n".join(f"- {line}" for line in self.differences))
        machine = ", ".join(f"{name} {value}" for name, value in environment.items())
        parts.append(
            "## How it was made\n\nEvery run with its parameters, seed, versions and machine is in `runs.jsonl`. "
            f"This page: {machine}."
        )
        return "\n\n".join(parts) + "\n"


def _draw(figure: Figure, folder: Path) -> list[Path]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError:
        raise RankwoodError(NO_FIGURES) from None
    canvas = Canvas(figsize=figure.size, dpi=150, layout="constrained")
    figure.draw(canvas)
    paths = [folder / f"{figure.name}.png", folder / f"{figure.name}.svg"]
    with atomic_write(paths[0]) as file:
        FigureCanvasAgg(canvas).print_png(file)  # type: ignore[no-untyped-call]
    with atomic_write(paths[1]) as file:
        FigureCanvasSVG(canvas).print_svg(file, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return paths


def _write(path: Path, text: str) -> None:
    with atomic_write(path, "w") as file:
        file.write(text)


def check_figures() -> None:
    """Refuse work whose figures could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise RankwoodError(NO_FIGURES) from None
