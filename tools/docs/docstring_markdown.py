"""Docstrings as Markdown, and signatures as they are, for the API reference: a griffe extension.

Docstrings here are written to be read in a terminal: names in a column with what they mean beside them, and examples as
doctests. In Markdown the former would run together and the latter become quotations; so the one becomes a table, the
other a block of code. The sources stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>[A-Za-z_][\w.]*(?:, [A-Za-z_][\w.]*)*) {2,}(?P<text>\S.*)$")


class DocstringMarkdown(griffe.Extension):
    """Rewrite every docstring as it is collected."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Signatures of dataclasses are made here, so that fields with `kw_only=False` can be put right."""
        griffe.DataclassesExtension().on_package(pkg=pkg, **kwargs)
        _correct(pkg)


def _correct(obj: Any) -> None:
    """All dataclasses in a module or a class."""
    for member in obj.members.values():
        if member.is_alias:
            continue
        if member.is_class and "__init__" in member.members and "dataclass" in member.labels:
            _let_by_position(member)
        if member.is_module or member.is_class:
            _correct(member)


def _let_by_position(cls: Any) -> None:
    """griffe takes every field of a `kw_only` dataclass for a keyword, also those that say otherwise."""
    family = [cls, *cls.mro()]
    init = cls.members["__init__"]
    for parameter in init.parameters:
        fields = [each.members[parameter.name] for each in family if parameter.name in each.members]
        if fields and "kw_only=False" in str(getattr(fields[0], "value", "")):
            parameter.kind = griffe.ParameterKind.positional_or_keyword
    by_position = [p for p in init.parameters if p.kind is griffe.ParameterKind.positional_or_keyword]
    others = [p for p in init.parameters if p not in by_position]
    init.parameters = griffe.Parameters(*by_position, *others)


def as_markdown(text: str) -> str:
    """A docstring with tables for columns and fences around doctests.

    >>> print(as_markdown("Add.\\n\\na, b   what to add\\n       up\\n\\n>>> add(1, 2)\\n3"))
    Add.
    <BLANKLINE>
    | | |
    | --- | --- |
    | `a`, `b` | what to add up |
    <BLANKLINE>
    ```pycon
    >>> add(1, 2)
    3
    ```
    """
    return "\n\n".join(_paragraph(part) for part in _paragraphs(text))


def _paragraphs(text: str) -> list[str]:
    """Parts between blank lines; a doctest keeps those after which it goes on."""
    parts: list[str] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if parts and parts[-1].startswith(">>>") and part.startswith(">>>"):
            parts[-1] += "\n" + part
        else:
            parts.append(part)
    return parts


def _paragraph(part: str) -> str:
    if part.startswith(">>>"):
        return f"```pycon\n{part}\n```"
    lines = part.split("\n")
    if (match := ENTRY.match(lines[0])) is None:
        return part
    return _table(lines, match.start("text"))


def _table(lines: list[str], column: int) -> str:
    """Rows `names   text`, continued by indented lines. A long list of names may push its text beyond the column."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith(" "):
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        elif (match := ENTRY.match(line)) is not None:
            rows.append((match["names"], match["text"]))
        else:  # names that fill the column: a single blank before the text
            rows.append((line[:column].strip(), line[column:].strip()))
    body = [f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {_cell(text)} |" for names, text in rows]
    return "\n".join(["| | |", "| --- | --- |", *body])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("][", "]\\[")  # the latter would be a link
