"""The reference of the command line, from what the commands themselves declare."""

from __future__ import annotations

import re
from typing import Any

INTRO = """# Commands

Every command prints this with `--help`. Data files are SVMlight/LETOR text (also `.gz`), CSV or Parquet; MODEL is a
file of any [format that can be read](../formats.md). Options that take files or measures take several of them:
`--data a.txt b.txt`. Exit status: 0 done, 1 a check says no, 2 wrong use or bad input, 130 interrupted."""

KINDS = {"path": "PATH", "str": "TEXT", "int range": "N", "int": "N", "float range": "X", "float": "X"}  # as shown


def root() -> Any:
    """The `rankwood` command, as typer makes it of its parts."""
    import typer.main

    from rankwood.cli import app

    return typer.main.get_command(app)


def page() -> str:
    return "\n\n".join([INTRO, *_sections(root(), "rankwood", 1)]) + "\n"


def _sections(command: Any, path: str, level: int) -> list[str]:
    """A command and those below it."""
    parts = [] if level == 1 else [_section(command, path, level)]
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            parts += _sections(below, f"{path} {name}", level + 1)
    return parts


def _section(command: Any, path: str, level: int) -> str:
    import typer

    context = typer.Context(command, info_name=path)
    heading = f"{'#' * level} {path.removeprefix('rankwood ')} {{ #{path.replace(' ', '-')} }}"
    parts = [heading, *_help(command.help or "")]
    if getattr(command, "commands", None):
        return "\n\n".join(parts)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([path, *(_argument(p, context) for p in arguments), "[OPTIONS]"])
    parts.append(f"```text\n{usage}\n```")
    rows = [_row(record) for p in command.params if (record := p.get_help_record(context)) is not None]
    if rows:
        parts.append("\n".join(["| | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def _help(text: str) -> list[str]:
    """Paragraphs of a help text; an example on the command line is set as code."""
    shown = []
    for part in re.split(r"\n\s*\n", text.strip()):
        line = " ".join(part.split())
        line = re.sub(r"\brankwood [a-z]+ [^,]*?-o \S+|\brankwood convert \S+ \S+(?: --to \w+)?", r"`\g<0>`", line)
        shown.append(line)
    return shown


def _argument(parameter: Any, context: Any) -> str:
    name = (parameter.metavar or parameter.name).rstrip(".").upper()
    return f"{name}..." if parameter.nargs == -1 else name


def _row(record: tuple[str, str]) -> str:
    """Names and what is expected in the first column, the help in the second."""
    names, text = record
    words = names.split(" ")
    split = next((i for i, word in enumerate(words) if i and not words[i - 1].endswith((",", "/")) and word != "/"), 0)
    name, kind = (" ".join(words[:split]), " ".join(words[split:])) if split else (names, "")
    kind = re.sub(r"^<|>$", "", kind).replace("list[Path]", "PATH...").replace("list[str]", "TEXT...")
    kind = KINDS.get(kind, kind)
    kind = kind.replace("|", " \\| ") if kind else ""
    shown = f"`{name}`" + (f"<br><small>{_escape(kind)}</small>" if kind else "")
    text = _escape(" ".join(text.split())).replace("|", "\\|")
    return f"| {shown} | {text} |"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
