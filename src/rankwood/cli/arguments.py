"""Arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

# Options that take several values: `--data a.txt b.txt` means `--data a.txt --data b.txt`.
MANY_VALUED = ("--data", "--train", "--valid", "--judge", "--test", "--measure", "-m")


def spread_values(arguments: Sequence[str]) -> list[str]:
    """Repeat a many-valued option before each of its values, which is the form typer reads.

    >>> spread_values(["evaluate", "m.rw", "--data", "a", "b", "--json"])
    ['evaluate', 'm.rw', '--data', 'a', '--data', 'b', '--json']
    """
    spread: list[str] = []
    option: str | None = None
    waiting = False  # the option stands there already and its first value comes next
    for number, argument in enumerate(arguments):
        if argument == "--":
            return spread + list(arguments[number:])
        if argument in MANY_VALUED:
            option, waiting = argument, True
        elif argument.startswith("-") and argument != "-":
            option = None
        elif option is not None:
            if not waiting:
                spread.append(option)
            waiting = False
        spread.append(argument)
    return spread


class PrecisionName(str, Enum):
    """What sums of leaf values are held in."""

    single = "single"
    double = "double"


DataFiles = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="FILE...",
        help="Ranking data: SVMlight/LETOR text (also .gz), CSV or Parquet. Several are joined.",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to use; all CPUs unless given.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature ids of SVMlight data start at 0, not at 1.")]
