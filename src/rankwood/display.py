"""What notebooks show: results as HTML that takes its colours from the page, light or dark, and all texts as text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from rankwood.printable import printable

# No colour is set but greys and tints that are half transparent: text has that of the page.
_LINE = "rgba(128,128,128,.45)"
_TINT = "rgba(80,140,190,.55)"
_CELL = f"padding:.2em .55em;border-bottom:1px solid {_LINE};vertical-align:top"


class Column(NamedTuple):
    """A column of a table: its heading, how values are written (as for `format`), and the values; None is empty."""

    heading: str
    form: str
    values: Sequence[Any]


class Share(NamedTuple):
    """A number from 0 to 1 that is shown as a bar, too."""

    value: float


def as_html(title: str, lines: Sequence[str], columns: Sequence[Column] = (), *, bold: int | None = None) -> str:
    """A title, some lines of text and a table, as one block of HTML.

    Parameters
    ----------
    title : str
        What it is.
    lines : sequence of str
        Sentences below the title.
    columns : sequence of Column
        The table, all of the same length; columns without any value are left out.
    bold : int, optional
        Number of the row that stands out.

    Examples
    --------
    >>> "&lt;b&gt;" in as_html("<b>", [])
    True
    """
    parts = [f'<div style="font-weight:600">{_text(title)}</div>']
    parts += [f'<div style="max-width:60em;margin:.25em 0">{_text(line)}</div>' for line in lines]
    shown = [column for column in columns if any(value is not None for value in column.values)]
    if shown:
        parts.append(f'<div style="max-height:28em;overflow:auto">{_table(shown, bold)}</div>')
    return '<div class="rankwood" style="line-height:1.45">' + "".join(parts) + "</div>"


def _table(columns: Sequence[Column], bold: int | None) -> str:
    head = "".join(_cell("th", column, _text(column.heading)) for column in columns)
    rows = [
        ('<tr style="font-weight:600">' if row == bold else "<tr>")
        + "".join(_cell("td", column, _value(column, row)) for column in columns)
        + "</tr>"
        for row in range(len(columns[0].values))
    ]
    style = "border-collapse:collapse;margin:.4em 0;font-size:inherit;font-variant-numeric:tabular-nums"
    body = "".join(rows)
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(tag: str, column: Column, content: str) -> str:
    """A cell; texts stand left and are not folded to less than some words."""
    lengths = [len(value) for value in column.values if isinstance(value, str)]
    side = f"left;min-width:{0.55 * min(max(lengths), 26):.1f}em" if lengths else "right"
    return f'<{tag} style="{_CELL};text-align:{side}">{content}</{tag}>'


def _value(column: Column, row: int) -> str:
    value = column.values[row]
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Share):
        width = 6.0 * min(max(value.value, 0.0), 1.0)
        bar = f'<span style="display:inline-block;height:.7em;width:{width:.2f}em;background:{_TINT}"></span>'
        rest = f'<span style="display:inline-block;width:{6.0 - width:.2f}em"></span>'
        return f"{format(value.value, column.form)} {bar}{rest}"
    return _text(format(value, column.form))


def _text(value: str) -> str:
    return html.escape(printable(value))
