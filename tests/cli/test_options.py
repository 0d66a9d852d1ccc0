"""A command whose options are the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from rankwood.cli.options import takes_options


class Colour(str, Enum):
    red = "red"
    green = "green"


@dataclass(frozen=True)
class PaintOptions:
    target: Annotated[Path, typer.Argument(metavar="WALL", help="What to paint.")]
    colour: Annotated[Colour, typer.Option(help="In which colour.")] = Colour.red
    coats: Annotated[int, typer.Option("--coats", "-n", min=1, help="How often.")] = 2
    others: Annotated[list[Path] | None, typer.Option("--also", help="What else to paint.")] = None
    dry: Annotated[bool, typer.Option("--dry/--wet", help="Wait in between.")] = True


@pytest.fixture
def run():
    """Run the command; the result has the options it was called with as `options`, None if it was not."""
    called = []

    @takes_options
    def paint(options: PaintOptions) -> None:
        """Paint a wall.

        More than once.
        """
        called.append(options)

    app = typer.Typer()
    app.command()(paint)

    def run(*arguments):
        called.clear()
        outcome = CliRunner().invoke(app, arguments)
        outcome.options = called[0] if called else None
        return outcome

    return run


def test_defaults_and_values_arrive_in_the_dataclass(run):
    assert run("wall").options == PaintOptions(Path("wall"))
    given = run("wall", "-n", "3", "--colour", "green", "--also", "a", "--also", "b", "--wet").options
    assert given == PaintOptions(Path("wall"), Colour.green, 3, [Path("a"), Path("b")], dry=False)


@pytest.mark.parametrize("wrong", [(), ("wall", "--coats", "0"), ("wall", "--colour", "blue"), ("wall", "--clean")])
def test_typer_refuses_what_the_annotations_refuse(run, wrong):
    outcome = run(*wrong)
    assert outcome.exit_code == 2
    assert outcome.options is None


def test_help_has_the_docstring_and_the_options_in_the_order_of_the_fields(run):
    text = run("--help").output
    assert text.index("Paint a wall.") < text.index("More than once.")
    places = [text.index(option) for option in ("What to paint.", "--colour", "--coats", "--also", "--dry")]
    assert places == sorted(places)


def test_the_function_must_take_options_alone():
    with pytest.raises(ValueError, match="unpack"):
        takes_options(lambda one, two: None)
