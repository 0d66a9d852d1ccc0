"""Every `rankwood` command line in README and docs parses: the command and all its options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from blocks import Block, blocks, page_id, pages

from rankwood.cli import app
from rankwood.cli.models import spread_values

SHELLS = ("", "sh", "bash", "shell", "console")
INLINE = re.compile(r"`(rankwood [a-z][^`]*)`")
ROOT_COMMAND = typer.main.get_command(app)


def command_lines(block: Block) -> list[tuple[int, str]]:
    """Commands of a block with their line numbers; in a console block those after a prompt, else every line."""
    found: list[tuple[int, str]] = []
    prompted = any(line.startswith("$ ") for line in block.text.split("\n"))
    text = re.sub(r"\\\n", "\x00", block.text)  # a command that goes on
    number = block.line
    for line in text.split("\n"):
        if not prompted or line.startswith("$ "):
            for part in re.split(r"&&|\|(?!\w)|;", line.removeprefix("$ ").replace("\x00", " ")):
                if part.strip().startswith("rankwood "):
                    found.append((number, part.strip()))
        number += 1 + line.count("\x00")
    return found


def find(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and what follows."""
    command, rest = ROOT_COMMAND, list(words)
    while getattr(command, "commands", None) and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"no command {rest[0]!r}"
        command = command.commands[rest.pop(0)]
    return command, rest


def check_options(text: str) -> None:
    """The command exists, and so do all options that are named: of text that is no complete command line."""
    words = text.replace("|", " ").split()[1:]
    start = next((n for n, word in enumerate(words) if not re.fullmatch(r"[a-z-]+", word)), len(words))
    named = words[: max(start, 1)]
    command, _ = find([w for w in named if w in getattr(ROOT_COMMAND, "commands", {})][:1] or named)
    for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
        assert name in options(command), f"{text!r}: no option {name}"


def parse(line: str) -> None:
    if re.search(r"[\[{]", line):  # a synopsis
        check_options(line)
        return
    words = shlex.split(line, comments=True)[1:]
    words = words[: words.index(">")] if ">" in words else words
    command, rest = find(words)
    if rest[:1] in (["--version"], ["--help"], ["--install-completion"]) or (not rest and hasattr(command, "commands")):
        return
    command.make_context(command.name, spread_values(rest))


def options(command: Any) -> set[str]:
    names = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    for below in getattr(command, "commands", {}).values():
        names |= options(below)
    return names | {"--help", "--version", "--install-completion"}


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_commands_in_blocks_parse(path: Path):
    for block in blocks(path):
        if block.language in SHELLS and block.not_run is None:
            for number, line in command_lines(block):
                try:
                    parse(line)
                except Exception as error:
                    where = f"{path.name}, line {number}"
                    raise AssertionError(f"{where}: {line}\n{type(error).__name__}: {error}") from error


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_options_named_in_the_text_exist(path: Path):
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        for found in INLINE.findall(line):
            try:
                check_options(found)
            except AssertionError as error:
                raise AssertionError(f"{path.name}, line {number}: {error}") from None


def test_a_wrong_option_is_found():
    with pytest.raises(Exception, match="nope"):
        parse("rankwood score model.rw --data x --nope 1")
    with pytest.raises(AssertionError, match="nope"):
        parse("rankwood score MODEL [--nope]")
    with pytest.raises(AssertionError, match="no command"):
        parse("rankwood scroe model.rw")
