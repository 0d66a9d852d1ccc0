"""What a study leaves behind: a page in Markdown, tables as CSV and LaTeX, figures as PNG and SVG, all as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.drawing import Figure as Figure
from rankwood.drawing import check_figures as check_figures
from rankwood.drawing import write_figure as _draw
from rankwood.studies.tables import Table


@dataclass(frozen=True)
class Report:
    """Tables and figures of a study, the main table first; `differences` is what is not as in the paper."""

    title: str
    summary: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    differences: Sequence[str]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path, *, environment: Mapping[str, Any]) -> list[Path]:
        """Write all files into `folder`; their paths, the page first."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "report.md"]
        for table in self.tables:
            for ending, text in ("csv", table.csv()), ("tex", table.latex()):
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
        parts.append("## What differs from the paper\n\n" + "\n".join(f"- {line}" for line in self.differences))
        machine = ", ".join(f"{name} {value}" for name, value in environment.items())
        parts.append(f"## How it was made\n\nEvery run with its parameters and seed is in `runs.jsonl`. {machine}.")
        return "\n\n".join(parts) + "\n"


def _write(path: Path, text: str) -> None:
    with atomic_write(path, "w") as file:
        file.write(text)
