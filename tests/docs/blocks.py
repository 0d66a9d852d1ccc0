"""Fenced blocks of README and docs, with where they stand and whether they are marked as not to be run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)[^`]*$")
MARK = re.compile(r"<!--\s*not run:\s*(?P<reason>.+?)\s*-->")


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is that of its first line of text, counted from 1; `not_run` says why it is left out."""

    path: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(ROOT)}, line {self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page. `<!-- not run: reason -->` above one, blank lines aside, takes it out."""
    mark: str | None = None
    lines = path.read_text(encoding="utf-8").split("\n")
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if opening is None:
            found = MARK.search(lines[number])
            if found or lines[number].strip():
                mark = found["reason"] if found else None
            number += 1
            continue
        indent, first = len(opening["indent"]), number + 1
        number = next((n for n in range(first, len(lines)) if lines[n].strip() == "```"), len(lines))
        text = "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines[first:number])
        yield Block(path, first + 1, opening["language"], text, mark)
        mark, number = None, number + 1
