"""Results of studies in docs/papers and docs/benchmarks.md: tables and figures between markers, made of what
`rankwood reproduce` and `rankwood sweep` wrote.

A page says what goes where:

    <!-- results of xdart-mq2008: summary, table1, +saved, figure1 -->
    <!-- end of results -->

`summary`, the names of tables and those of figures; a plus folds a table away. Numbers come from
docs/papers/results/NAME.json, figures from docs/papers/figures/NAME-FIGURE.png; `take` puts both there from the folder
that a study wrote. What was not run yet is said in a sentence. The first measure of several sweeps, side by side:

    <!-- comparison of benchmark-mq2008, benchmark-ohsumed -->
    <!-- end of comparison -->
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAPERS = Path(__file__).resolve().parents[2] / "docs" / "papers"
MARKED = re.compile(r"(<!-- results of (?P<name>[\w-]+): (?P<parts>[^>]*?) -->\n).*?(?=<!-- end of results -->)", re.S)
COMPARED = re.compile(r"(<!-- comparison of (?P<names>[\w, -]+?) -->\n).*?(?=<!-- end of comparison -->)", re.S)
KEPT = ("title", "summary", "tables", "figures", "environment")
LARGEST_FIGURE = 150_000  # bytes


def take(study: Path, papers: Path = PAPERS) -> list[Path]:
    """Copy tables and figures of a finished study, a folder that is named after it and its data, like xdart-mq2008."""
    found = json.loads((study / "results.json").read_text(encoding="utf-8"))
    found["figures"] = _captions(study)
    kept = papers / "results" / f"{study.name}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({name: found[name] for name in KEPT if name in found}, indent=1, ensure_ascii=False)
    kept.write_text(text + "\n", encoding="utf-8")
    wanted = _wanted(study.name, papers)
    return [kept, *(_copy(study / f"{name}.png", papers, study.name) for name in found["figures"] if name in wanted)]


def pages(papers: Path = PAPERS) -> list[Path]:
    """The pages that have results."""
    return [*sorted(papers.glob("*.md")), papers.parent / "benchmarks.md"]


def _wanted(study: str, papers: Path) -> set[str]:
    """What pages show of a study."""
    pages = "".join(page.read_text(encoding="utf-8") for page in papers.glob("*.md"))
    shown = [match["parts"] for match in MARKED.finditer(pages) if match["name"] == study]
    return {part.strip().removeprefix("+") for parts in shown for part in parts.split(",")}


def _captions(study: Path) -> dict[str, str]:
    """Figures by name, with their captions, as the study's own page has them."""
    page = (study / "report.md").read_text(encoding="utf-8")
    return {name: caption for caption, name in re.findall(r"^!\[(.*?)\]\((.+?)\.png\)$", page, re.M)}


def _copy(figure: Path, papers: Path, study: str) -> Path:
    copy = papers / "figures" / f"{study}-{figure.name}"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(figure.read_bytes())
    if copy.stat().st_size > LARGEST_FIGURE:
        from PIL import Image  # comes with matplotlib

        Image.open(figure).convert("RGB").quantize(64).save(copy, optimize=True)
    return copy


def filled(page: str, papers: Path = PAPERS) -> str:
    """The text of a page with its results put in anew."""
    page = MARKED.sub(lambda match: match[1] + _results(match["name"], match["parts"], papers), page)
    return COMPARED.sub(lambda match: match[1] + _comparison(re.split(r",\s*", match["names"]), papers), page)


def _comparison(sweeps: list[str], papers: Path) -> str:
    """The first measure of every configuration, of those sweeps that were run."""
    sources = [papers / "results" / f"{name}.json" for name in sweeps]
    found = [json.loads(source.read_text(encoding="utf-8")) for source in sources if source.exists()]
    if not found:
        return "\n*Nothing has been run yet.*\n\n"
    tables = [one["tables"]["sweep"] for one in found]
    # Rows of long tables are numbered, which is for their figure.
    columns = [{re.sub(r"^\d+\. ", "", row[0]): row[1] for row in table["rows"]} for table in tables]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    heads = [f"{table['columns'][1]}, {table['title'].rpartition(', ')[2]}" for table in tables]
    return "\n" + _table({"columns": ["configuration", *heads], "rows": rows, "note": ""}) + "\n\n"


def _results(name: str, parts: str, papers: Path) -> str:
    source = papers / "results" / f"{name}.json"
    if not source.exists():
        return f"\n*{name} has not been run yet.*\n\n"
    found = json.loads(source.read_text(encoding="utf-8"))
    shown = [_part(part.strip(), name, found) for part in parts.split(",")]
    return "\n" + "\n\n".join(shown) + "\n\n"


def _part(part: str, name: str, found: dict[str, Any]) -> str:
    folded, key = part.startswith("+"), part.removeprefix("+")
    if key == "summary":
        return _text(found["summary"])
    if key == "machine":
        return "Made with " + ", ".join(f"{key} {value}" for key, value in found["environment"].items()) + "."
    if key in found["figures"]:
        return f"![{found['figures'][key]}](figures/{name}-{key}.png)"
    table = found["tables"][key]
    if not folded:
        return f"**{table['title']}**\n\n{_table(table)}"
    return f'<details markdown="1"><summary>{table["title"]}</summary>\n\n{_table(table)}\n\n</details>'


def _table(table: dict[str, Any]) -> str:
    lines = [table["columns"], [":---", *["---:"] * (len(table["columns"]) - 1)], *table["rows"]]
    rows = "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)
    return "\n\n".join(part for part in (rows, _text(table["note"])) if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _text(text: str) -> str:
    """Plain text as Markdown: stars stay what they are."""
    return text.replace("*", "\\*")
