"""The `rankwood` command: each sub-command parses its arguments, calls the library and prints."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import typer.core

from rankwood import startup
from rankwood.atomic import NO_ROOM
from rankwood.cli import datasets, reproduce
from rankwood.cli.bench import bench
from rankwood.cli.console import Told, escape_what_cannot_be_encoded, fail, full_place, print_line
from rankwood.cli.convert import compile, convert
from rankwood.cli.demo import demo
from rankwood.cli.evaluate import evaluate
from rankwood.cli.explain import explain
from rankwood.cli.grow_and_prune import grow_and_prune
from rankwood.cli.inspect import inspect
from rankwood.cli.models import models_first, spread_values
from rankwood.cli.prune import prune
from rankwood.cli.refit import refit
from rankwood.cli.report import report
from rankwood.cli.runtime import runtime
from rankwood.cli.score import score
from rankwood.cli.serve import serve
from rankwood.cli.shrink import shrink
from rankwood.cli.sweep import sweep
from rankwood.cli.train import TrainCommand, train
from rankwood.cli.tune import tune
from rankwood.cli.verify import verify
from rankwood.errors import RankwoodError
from rankwood.printable import printable
from rankwood.system import active_isa, available_isas


class Commands(typer.core.TyperGroup):
    """Group of all commands; one that does not handle Ctrl-C itself ends with a line that says so."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _printable_usage_errors():
            return super().make_context(*arguments, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return name, command, rest
        kinds = {param.name: param for param in command.params if param.param_type_name == "argument"}
        model = kinds.get("model") or kinds.get("models")
        if model is not None:
            valued = [name for param in command.params if not getattr(param, "is_flag", False) for name in param.opts]
            rest = models_first(rest, valued, several=model.nargs == -1)
        return name, command, spread_values(rest)

    def invoke(self, ctx: Any) -> Any:
        startup.ready()
        try:
            with _printable_usage_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("interrupted", 130)


@contextmanager
def _printable_usage_errors() -> Iterator[None]:
    """Make messages of typer's own errors printable: they repeat arguments, which may be names of files.

    A file that may not be read is no wrong use, and told as readers tell it.
    """
    try:
        yield
    except Exception as error:
        unreadable = re.fullmatch(r"\w+ '(.*)' is not readable\.", str(getattr(error, "message", "")), re.S)
        if unreadable:
            raise RankwoodError(f"{unreadable[1]}: no permission to read it") from None
        if hasattr(error, "format_message") and isinstance(getattr(error, "message", None), str):
            error.message = printable(_with_hint(error.message))  # type: ignore[attr-defined]
        raise


def _with_hint(message: str) -> str:
    """Message of typer about a value that is none of its choices, with the choice that may have been meant.

    Examples
    --------
    >>> _with_hint("'lambdamrt' is not one of 'mart', 'lambdamart'.")
    "'lambdamrt' is not one of 'mart', 'lambdamart' (did you mean lambdamart?)."
    """
    found = re.search(r"'([^']*)' is not one of ('.*')", message)
    near = difflib.get_close_matches(found[1], re.findall(r"'([^']*)'", found[2]), n=1) if found else []
    return f"{message.removesuffix('.')} (did you mean {near[0]}?)." if near else message


app = typer.Typer(
    name="rankwood",
    cls=Commands,
    help="Tree rankers that are small, fast and provably as good.\n\n"
    "To begin: `rankwood demo --quick` shows what it does in some seconds. Then `rankwood train` or, for a model of "
    "LightGBM, XGBoost, CatBoost or RankLib, `rankwood shrink`. Every command explains itself with --help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo)
app.command("train", cls=TrainCommand)(train)
app.command("evaluate")(evaluate)
app.command("score")(score)
app.command("serve")(serve)
app.command("shrink")(shrink)
app.command("prune")(prune)
app.command("refit")(refit)
app.command("grow-and-prune")(grow_and_prune)
app.command("tune")(tune)
app.command("explain")(explain)
app.command("inspect")(inspect)
app.command("bench")(bench)
app.command("compile")(compile)
app.command("convert")(convert)
app.command("runtime")(runtime)
app.command("verify")(verify)
app.command("report")(report)
app.command("sweep")(sweep)
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(datasets.app, name="datasets")


def version_text() -> str:
    """Text of --version: versions, and the instruction sets that the kernels use and could use."""
    import platform

    import numpy as np

    from rankwood._version import __version__

    return (
        f"rankwood {__version__}\n"
        f"instruction set: {active_isa()} (this CPU can run: {', '.join(available_isas())})\n"
        f"python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"
    )


def _show_version(wanted: bool) -> None:
    if wanted:
        for line in version_text().splitlines():
            print_line(line)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and the CPU features in use."
        ),
    ] = False,
) -> None:
    active_isa()  # raises for a RANKWOOD_ISA that this CPU cannot run, before any work


def main() -> None:
    """Run the command of `sys.argv` and exit with its status.

    The status is 0 when it is done, 1 when a check says no, 2 for wrong use or bad input, and 130 when interrupted.
    """
    escape_what_cannot_be_encoded()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = Told()
            app(args=sys.argv[1:])
    except RankwoodError as error:
        fail(str(error))
    except MemoryError:
        fail("out of memory: use fewer rows, or a machine with more memory")
    except OSError as error:
        name = error.filename or (full_place() if error.errno in NO_ROOM else None)
        fail(f"{name}: {error.strerror or error}" if name else str(error.strerror or error))
