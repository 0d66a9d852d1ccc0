"""Docstrings are numpydoc: what is public says what it does in one line, and every parameter it takes."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankwood

griffe = pytest.importorskip("griffe", reason="the documentation's packages are absent: pip install '.[docs]'")

SOURCES = Path(rankwood.__file__).parent
WIDTH = 120
COLUMNS = re.compile(r"^[A-Za-z_]\w*(, [A-Za-z_]\w*)* {2,}\S")  # names in a column, what they mean beside them


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, and the public methods and properties that its class or a base of rankwood's own defines."""
    for name in rankwood._HOME_OF:
        thing = getattr(rankwood, name)
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{member}", found) for member, found in sorted(members(thing).items()))


def members(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("rankwood."):
            for name, member in vars(base).items():
                is_field = name in getattr(base, "__dataclass_fields__", ())  # a function may be its default
                if not name.startswith("_") and not is_field and is_documented_kind(member):
                    found.setdefault(name, member)
    return found


def is_documented_kind(member: Any) -> bool:
    kinds = (property, classmethod, staticmethod, functools.cached_property)
    return inspect.isfunction(member) or isinstance(member, kinds)


def plain(member: Any) -> Any:
    """The function behind a method or a property."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return member.func
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def docstring_of(thing: Any) -> str:
    """As `help` and editors show it: a method without one has that of the method it overrides."""
    return inspect.cleandoc(thing.__doc__ or "") if inspect.isclass(thing) else inspect.getdoc(plain(thing)) or ""


def parameters_of(thing: Any) -> list[str]:
    """Names of what a function or a constructor takes, private ones left out."""
    if isinstance(thing, (property, functools.cached_property)):
        return []
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []
    names = inspect.signature(thing if inspect.isclass(thing) else plain(thing)).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def named_in(thing: Any, kind: str) -> list[str]:
    """Names in the sections of a kind."""
    found = griffe.parse_numpy(griffe.Docstring(docstring_of(thing)), warnings=False)
    entries = [one.name for section in found if section.kind.value == kind for one in section.value]
    return [name.lstrip("*") for entry in entries for name in entry.split(", ")]


def told_of(thing: Any) -> set[str]:
    """Parameters that are documented; of a class also those that it shares with another public one, which has them.

    What a class of results holds is an attribute to those who read it, though its constructor takes it.
    """
    if not inspect.isclass(thing):
        return set(named_in(thing, "parameters"))
    told = {name for kind in ("parameters", "attributes") for name in named_in(thing, kind)}
    for base in own_bases(thing):
        relatives = [one for name in rankwood._HOME_OF if is_kind_of(one := getattr(rankwood, name), base)]
        told |= {name for one in (base, *relatives) for name in named_in(one, "parameters")} & fields_of(base)
    return told


def own_bases(cls: type) -> list[type]:
    """Bases that rankwood defines."""
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("rankwood.")]


def fields_of(cls: type) -> set[str]:
    """Parameters that a class or a base of it introduces."""
    return {name for base in (cls, *own_bases(cls)) for name in inspect.get_annotations(base)}


def is_kind_of(thing: Any, base: type) -> bool:
    return inspect.isclass(thing) and issubclass(thing, base)


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one[0]) for one in public()])
def test_what_is_public_is_documented(name, thing):
    text = docstring_of(thing)
    assert text, f"{name} has no docstring"
    first, *rest = text.split("\n")
    assert first.endswith("."), f"{name}: the first line is not a sentence: {first!r}"
    assert len(first) <= WIDTH, f"{name}: the first line has {len(first)} columns"
    assert not rest or rest[0] == "", f"{name}: no blank line follows the first"
    taken, documented = parameters_of(thing), named_in(thing, "parameters")
    missing = [one for one in taken if one not in told_of(thing)]
    assert not missing, f"{name}: `Parameters` says nothing of {', '.join(missing)}"
    unknown = [one for one in documented if one not in taken]
    assert not unknown, f"{name}: `Parameters` tells of {', '.join(unknown)}, which it does not take"
    assert len(set(documented)) == len(documented), f"{name}: a parameter is there twice"


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield getattr(node, "name", path.stem), ast.get_docstring(node) or ""


def lines_in_columns(text: str) -> list[str]:
    """Lines of the layout that numpydoc replaced; what a doctest prints may look like it."""
    found, in_doctest = [], False
    for line in text.split("\n"):
        in_doctest = line.startswith(">>>") or (in_doctest and line != "")
        if not in_doctest and COLUMNS.match(line):
            found.append(line)
    return found


def test_columns_are_found():
    assert lines_in_columns("Do it.\n\na, b   what to add\n       up\n\n>>> show()\nx   1\n\nc   d") == [
        "a, b   what to add",
        "c   d",
    ]
    assert not lines_in_columns(
        "Do it.\n\nParameters\n----------\na, b : int\n    What to add.\n\n::\n\n    left   1 2"
    )


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(SOURCES))) for path in sorted(SOURCES.rglob("*.py"))]
)
def test_no_docstring_has_names_in_a_column(path):
    found = [f"{name}: {line}" for name, text in docstrings(path) for line in lines_in_columns(text)]
    assert not found, "\n".join(["write them as a `Parameters` section:", *found])
