"""A griffe extension: fields of a keyword-only dataclass that say `kw_only=False` are shown as positional."""

from __future__ import annotations

from typing import Any

import griffe


class PositionalFields(griffe.Extension):
    """Correct the signatures that griffe makes of dataclasses: it takes every field for a keyword."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        griffe.DataclassesExtension().on_package(pkg=pkg, **kwargs)  # ours may come first, and it needs the signatures
        _correct(pkg)


def _correct(obj: Any) -> None:
    """Correct all dataclasses in a module or a class."""
    for member in obj.members.values():
        if member.is_alias:
            continue
        if member.is_class and "__init__" in member.members and "dataclass" in member.labels:
            _let_by_position(member)
        if member.is_module or member.is_class:
            _correct(member)


def _let_by_position(cls: Any) -> None:
    family = [cls, *cls.mro()]
    init = cls.members["__init__"]
    for parameter in init.parameters:
        fields = [each.members[parameter.name] for each in family if parameter.name in each.members]
        if fields and "kw_only=False" in str(getattr(fields[0], "value", "")):
            parameter.kind = griffe.ParameterKind.positional_or_keyword
    by_position = [p for p in init.parameters if p.kind is griffe.ParameterKind.positional_or_keyword]
    others = [p for p in init.parameters if p not in by_position]
    init.parameters = griffe.Parameters(*by_position, *others)
