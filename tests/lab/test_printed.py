"""Tables whose cells hold what would end a row."""

from __future__ import annotations

import csv

from rankwood.lab.study import Table

TABLE = Table("t", "Two\nlines", ("a\nb", "c"), [("one\n\ntwo", " x\r\ny | z"), (" [1, 2]", "[3]"), ("* 5", "")])


def test_markdown_rows_are_one_line_each():
    assert TABLE.markdown().splitlines() == [
        "**Two lines**", "",
        "| a b | c |", "| :--- | ---: |", r"| one two | x y \| z |", "| [1, 2] | [3] |", "| * 5 |  |",
    ]  # fmt: skip


def test_latex_rows_are_one_line_each_and_give_no_argument_to_the_row_before():
    assert TABLE.latex().splitlines() == [
        r"\begin{table}\caption{Two lines}",
        r"\begin{tabular}{lr}\hline",
        r"a b & c \\ \hline",
        r"one two & x y | z \\",
        r"{[}1, 2] & [3] \\",
        r"{*} 5 &  \\",
        r"\hline\end{tabular}",
        r"\end{table}",
    ]


def test_csv_has_cells_as_they_are():
    assert list(csv.reader(TABLE.csv().splitlines(keepends=True)))[1] == ["one\n\ntwo", " x\r\ny | z"]
