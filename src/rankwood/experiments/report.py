"""What a study leaves behind: a page in Markdown, tables as CSV and LaTeX, figures as PNG and SVG, all as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankwood.atomic import atomic_write
from rankwood.drawing import Figure, can_draw, write_figure
from rankwood.experiments.printed import Table


@dataclass(frozen=True)
class Report:
    """Tables and figures of a study, the main table first; `differences` is what is not as in its paper, if any."""

    title: str
    summary: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    differences: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(
        self, folder: Path, *, environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]] = ()
    ) -> list[Path]:
        """Write all files into `folder`; their paths, the page first.

        `environment` is what the page is made with, `of_runs` what each run was made with.
        """
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "report.md"]
        for table in self.tables:
            for ending, text in ("csv", table.csv()), ("md", table.markdown() + "\n"), ("tex", table.latex()):
                written.append(folder / f"{table.name}.{ending}")
                _write(written[-1], text)
        for figure in self.figures if can_draw() else ():
            written += write_figure(figure, folder)
        whole = {
            "title": self.title,
            "summary": self.summary,
            "differences": list(self.differences),
            "tables": {table.name: table.as_dict() for table in self.tables},
            "facts": dict(self.facts),
            "environment": dict(environment),
            "made": _made(environment, of_runs),
        }
        written.append(folder / "results.json")
        _write(written[-1], json.dumps(whole, indent=2, allow_nan=False) + "\n")
        _write(written[0], self.markdown(environment, of_runs))
        return written

    def markdown(self, environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]] = ()) -> str:
        parts = [f"# {self.title}", self.summary, *(table.markdown() for table in self.tables)]
        if can_draw():
            parts += [f"![{figure.caption}]({figure.name}.png)\n\n{figure.caption}" for figure in self.figures]
        if self.differences:
            parts.append("## What differs from the paper\n\n" + "\n".join(f"- {line}" for line in self.differences))
        machine = ", ".join(f"{name} {value}" for name, value in environment.items())
        parts.append(
            "## How it was made\n\nEvery run with its parameters, seed, versions and machine is in `runs.jsonl`. "
            f"This page: {machine}." + "".join(f" {sentence}" for sentence in _made(environment, of_runs))
        )
        return "\n\n".join(parts) + "\n"


def _made(environment: Mapping[str, Any], of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on what runs were made with, where that is not what the page says of itself, or differs among them.

    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 1}])
    []
    >>> _made({"cpu": "A"}, [{"cpu": "A", "workers": 2}, {"cpu": "B", "rankwood": "0.1"}])
    ['Runs were made on A (1), and B, rankwood 0.1 (1).', '1 of 2 runs were made several at a time: times measured in \
them are those of a busy machine.']
    """
    made = Counter(map(_machine, of_runs))
    sentences = []
    if made and set(made) != {_machine(environment)}:
        sentences.append(f"Runs were made on {', and '.join(f'{where} ({n:,})' for where, n in made.items())}.")
    n_busy = sum(one.get("workers", 1) > 1 for one in of_runs)
    if n_busy:
        sentences.append(
            f"{n_busy:,} of {len(of_runs):,} runs were made several at a time: times measured in them are those of a "
            "busy machine."
        )
    return sentences


def _machine(environment: Mapping[str, Any]) -> str:
    """What results and times may depend on."""
    named = [("cpu", ""), ("instruction_set", ""), ("rankwood", "rankwood ")]
    known = [f"{word}{environment[name]}" for name, word in named if environment.get(name)]
    return ", ".join(known) or "an unknown machine"


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # the name of a folder may be no UTF-8
