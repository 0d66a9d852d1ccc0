"""Parameters of learners: whether a value fits its annotation, and how a value is read from text."""

from __future__ import annotations

import collections.abc
import copy
import difflib
import inspect
import math
import numbers
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from rankwood.errors import RankwoodError


@dataclass(frozen=True)
class Kind:
    """One kind of value that a parameter may have."""

    words: str  # for messages
    holds: Callable[[Any], bool]  # whether a value is of this kind
    read: Callable[[str], Any] | None = None  # from text; None when it cannot be written as text
    choice: str | None = None  # the text that it is, where only one will do


Learner = TypeVar("Learner")
Rules = TypeVar("Rules")


def checked_parameters(learner: Learner) -> Learner:
    """A copy of the learner whose parameters have the types that their annotations say, numpy's numbers as Python's.

    A parameter of another type is an error. Ranges are checked by the rules that the parameters become.
    """
    checked = copy.copy(learner)
    for name, kinds in parameter_kinds(type(learner)).items():
        value = getattr(learner, name)
        if kinds and not any(kind.holds(value) for kind in kinds):
            raise RankwoodError(f"{name} must be {_words(kinds)}, got {value!r:.80}{_near(kinds, value)}")
        setattr(checked, name, value.item() if isinstance(value, np.generic) else value)
    return checked


def rules_from(kind: type[Rules], learner: Any, **others: Any) -> Rules:
    """An object of the dataclass `kind` whose fields are the learner's parameters of the same names, or `others`.

    Examples
    --------
    >>> from rankwood import LambdaMART
    >>> from rankwood.training.grow import Sampling
    >>> rules_from(Sampling, LambdaMART(query_fraction=0.5), per_split=True)
    Sampling(query_fraction=0.5, feature_fraction=1.0, per_split=True, doc_fraction=1.0)
    """
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return kind(**{name: getattr(learner, name) for name in names}, **others)


def read_parameter(learner: type, text: str) -> tuple[str, Any]:
    """The name and the value of a parameter of a class of learners, from the text `name=value`.

    Examples
    --------
    >>> from rankwood import LambdaMART
    >>> read_parameter(LambdaMART, "max_depth=none"), read_parameter(LambdaMART, "gains=0,1,3.5")
    (('max_depth', None), ('gains', (0, 1, 3.5)))
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise RankwoodError(f"a parameter is written name=value, got {text!r}")
    readable = [kind for kind in kinds_of(learner, name) if kind.read is not None]
    for kind in readable:
        try:
            return name, kind.read(value)  # type: ignore[misc]
        except ValueError:
            continue
    if not readable or [kind.words for kind in readable] == ["None"]:
        raise RankwoodError(f"{name} can be given in Python only, not as text")
    raise RankwoodError(f"{name} must be {_words(readable)}, got {value!r}{_near(readable, value)}")


def check_parameter(learner: type, name: str, value: Any) -> None:
    """Refuse a parameter that a class of learners does not have, and a value of the wrong type.

    Examples
    --------
    >>> from rankwood import LambdaMART
    >>> check_parameter(LambdaMART, "n_leaves", 16)
    """
    kinds = kinds_of(learner, name)
    if kinds and not any(kind.holds(value) for kind in kinds):
        raise RankwoodError(f"{name} must be {_words(kinds)}, got {value!r:.80}{_near(kinds, value)}")


def kinds_of(learner: type, name: str) -> list[Kind]:
    """The kinds of value that one parameter may have; a name that the learner does not have is an error."""
    all_kinds = parameter_kinds(learner)
    if name not in all_kinds:
        near = difflib.get_close_matches(name, all_kinds, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise RankwoodError(f"{learner.__name__} has no parameter {name!r}{hint}: it has {', '.join(all_kinds)}")
    return all_kinds[name]


def parameter_kinds(learner: type) -> dict[str, list[Kind]]:
    """The kinds of value that each parameter may have; an empty list where any value will do."""
    hints = get_type_hints(learner)
    return {field.name: _kinds(hints[field.name]) for field in fields(learner)}


def documented_parameters(docstring: str | None) -> dict[str, str]:
    """What the section "Parameters" of a numpydoc docstring says of each parameter, on one line.

    Examples
    --------
    >>> from rankwood import LambdaMART
    >>> documented_parameters(LambdaMART.__doc__)["n_leaves"]
    'Most leaves of a tree. The leaf whose split gains most is split next.'
    """
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", inspect.cleandoc(docstring or ""), re.M | re.S
    )
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else ():
        if line[:1].strip():
            names = re.split(r", *", line.partition(" : ")[0])
            found.update((name, []) for name in names)
        else:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(filter(None, lines)) for name, lines in found.items()}


def _words(kinds: list[Kind]) -> str:
    *others, last = dict.fromkeys(kind.words for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _near(kinds: list[Kind], value: Any) -> str:
    """The choice that a text is near to, as a question; nothing when there is none."""
    choices = {kind.choice.lower(): kind.choice for kind in kinds if kind.choice is not None}
    near = difflib.get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    return f" (did you mean {choices[near[0]]!r}?)" if near else ""


def _kinds(hint: Any) -> list[Kind]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return []
    if origin in (Union, types.UnionType):
        kinds = [kind for argument in arguments for kind in _kinds(argument)]
        return sorted(kinds, key=lambda kind: kind is NONE)  # None is named last
    if origin is Literal:
        return [_choice(option) for option in arguments]
    if origin is collections.abc.Callable:
        return [Kind("a function", callable)]
    if origin is collections.abc.Sequence:
        return [_sequence(_kinds(arguments[0]))]
    if origin is collections.abc.Mapping:
        return [_mapping(_kinds(arguments[1]))]
    return [SIMPLE[hint] if hint in SIMPLE else Kind(f"a {hint.__name__}", lambda value: isinstance(value, hint))]


def _read_none(text: str) -> None:
    if text.lower() not in ("none", "null", ""):
        raise ValueError


def _read_flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise ValueError


def _read_number(text: str) -> float:
    number = float(text)
    return int(number) if text.lstrip("+-").isdigit() else number


NONE = Kind("None", lambda value: value is None, _read_none)
SIMPLE: dict[Any, Kind] = {
    type(None): NONE,
    bool: Kind("True or False", lambda value: isinstance(value, (bool, np.bool_)), _read_flag),
    int: Kind("a whole number", lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool), int),
    float: Kind(
        "a number",
        lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value),
        _read_number,
    ),
    str: Kind("a text", lambda value: isinstance(value, str), str),
}


def _choice(option: str) -> Kind:
    def read(text: str) -> str:
        if text != option:
            raise ValueError
        return option

    return Kind(repr(option), lambda value: isinstance(value, str) and value == option, read, option)


def _sequence(of: list[Kind]) -> Kind:
    def holds(value: Any) -> bool:
        if isinstance(value, (str, bytes)) or not isinstance(value, (collections.abc.Sequence, np.ndarray)):
            return False
        return len(value) > 0 and all(any(kind.holds(entry) for kind in of) for entry in value)

    def read(text: str) -> tuple[Any, ...]:
        return tuple(_read_first(of, entry) for entry in _entries(text))

    return Kind(f"a sequence, each entry {_words(of)}", holds, read)


def _mapping(of: list[Kind]) -> Kind:
    """By names or numbers of features; as text `name:value,name:value`."""

    def holds(value: Any) -> bool:
        if not isinstance(value, collections.abc.Mapping):
            return False
        return all(any(kind.holds(entry) for kind in of) for entry in value.values())

    def read(text: str) -> dict[str, Any]:
        pairs = [entry.rpartition(":") for entry in _entries(text.strip("{}"))]
        if not all(colon for _, colon, _ in pairs):
            raise ValueError
        return {name.strip(): _read_first(of, value.strip()) for name, _, value in pairs}

    return Kind(f"a dict, each value {_words(of)}", holds, read)


def _read_first(kinds: list[Kind], text: str) -> Any:
    """What the first of some kinds that can reads from a text."""
    for kind in kinds:
        try:
            if kind.read is not None:
                return kind.read(text)
        except ValueError:
            continue
    raise ValueError


def _entries(text: str) -> list[str]:
    """The entries of a list, which may stand in brackets, and may be lists in brackets themselves.

    Examples
    --------
    >>> _entries("1, 2"), _entries("[0,1],[2]"), _entries("[[0,1],[2]]")
    (['1', '2'], ['[0,1]', '[2]'], ['[0,1]', '[2]'])
    """
    text = text.strip()
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            raise ValueError
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise ValueError
    if len(parts) == 1 and text.startswith("["):
        return _entries(text[1:-1])
    return [part.strip() for part in parts]
