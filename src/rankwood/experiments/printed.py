"""Tables to print: rows of text as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows of text under columns. `name` is that of its files; `note` says what the numbers are.

    >>> table = Table("t", "Two", ("method", "nDCG"), [("RF", "0.5")], note="On test data.")
    >>> print(table.markdown())
    **Two**
    <BLANKLINE>
    | method | nDCG |
    | :--- | ---: |
    | RF | 0.5 |
    <BLANKLINE>
    On test data.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        lines = [self.columns, [":---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        table = "\n".join(
            f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
        return "\n\n".join(part for part in (f"**{_one_line(self.title)}**", table, self.note) if part)

    def csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return buffer.getvalue()

    def latex(self) -> str:
        body = [
            rf"\begin{{table}}\caption{{{_escape(_one_line(self.title))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}\hline",
            _latex_row(self.columns) + r" \hline",
            *map(_latex_row, self.rows),
            r"\hline\end{tabular}",
        ]
        if self.note:
            body.append(rf"\\ \footnotesize {_escape(self.note)}")
        return "\n".join([*body, r"\end{table}", ""])

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.columns), "rows": [list(r) for r in self.rows],
                "note": self.note}  # fmt: skip


def _one_line(text: str) -> str:
    """Text as a cell can hold it: line breaks would end the row."""
    return " ".join(text.split())


def _latex_row(cells: Sequence[str]) -> str:
    r"""
    >>> print(_latex_row(["[1, 2]", "5 %"]))
    {[}1, 2] & 5 \% \\
    """
    text = " & ".join(_escape(_one_line(cell)) for cell in cells)
    if text.startswith(("[", "*")):  # which the \\ of the row before would take for its own
        text = f"{{{text[0]}}}{text[1:]}"
    return text + r" \\"


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    special |= {"±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$", "<": "$<$", ">": "$>$", "−": "$-$", "–": "--"}
    return "".join(special.get(character, character) for character in text)


def with_spread(mean: float, std: float | None, digits: int = 4) -> str:
    """A mean, and in brackets its standard deviation, as the papers write them.

    >>> with_spread(0.44321, 0.0021), with_spread(0.5, None)
    ('0.4432 (0.0021)', '0.5000')
    """
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ({std:.{digits}f})"


def p_text(p: float) -> str:
    """A p-value.

    >>> p_text(0.03), p_text(0.00009999)
    ('0.030', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
