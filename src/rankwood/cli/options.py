"""Commands with many options: their options are the fields of one frozen dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

Options = TypeVar("Options")


def takes_options(command: Callable[[Options], None]) -> Callable[..., None]:
    """Make a typer command of a function whose only parameter is a dataclass of arguments and options.

    Typer reads the signature of a function. The command returned has one keyword for each field, in the order of the
    fields, with the field's annotation and default; when called it builds the dataclass and passes it on.

    Parameters
    ----------
    command : callable
        Function of one parameter, annotated with a dataclass whose fields are annotated as typer wants parameters:
        `Annotated[type, typer.Option(...)]`. Its docstring is the help text.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Greeting:
    ...     name: str
    ...     times: int = 1
    >>> @takes_options
    ... def greet(options: Greeting) -> None:
    ...     print(" ".join([f"hello {options.name}"] * options.times))
    >>> inspect.signature(greet)
    <Signature (*, name: str, times: int = 1) -> None>
    >>> greet(name="trees", times=2)
    hello trees hello trees
    """
    (parameter,) = inspect.signature(command).parameters
    kind = get_type_hints(command)[parameter]
    hints = get_type_hints(kind, include_extras=True)

    @wraps(command)
    def of_fields(**options: Any) -> None:
        command(kind(**options))

    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
    of_fields.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    of_fields.__annotations__ = {**hints, "return": None}
    return of_fields
