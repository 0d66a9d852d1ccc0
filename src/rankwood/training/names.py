"""Learners by the names that commands and files call them."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, fields
from typing import Any

from rankwood.errors import RankwoodError
from rankwood.training.params import documented_parameters, kinds_of

LEARNERS = {
    "mart": "MART",
    "lambdamart": "LambdaMART",
    "dart": "DART",
    "xdart": "XDART",
    "igbrt": "InitializedMART",
    "forest": "RandomForest",
}


def learner_class(name: str) -> Any:
    """The class of estimators that has this name on the command line.

    Examples
    --------
    >>> learner_class("xdart").__name__
    'XDART'
    """
    if name not in LEARNERS:
        near = difflib.get_close_matches(str(name).lower(), LEARNERS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise RankwoodError(f"there is no learner {name!r}{hint}: they are {', '.join(LEARNERS)}")
    return getattr(importlib.import_module("rankwood"), LEARNERS[name])


@dataclass(frozen=True)
class Described:
    """A parameter of a learner: its name, its default, what it means, and whether it can be written as text."""

    name: str
    default: Any
    meaning: str
    as_text: bool


def described_parameters(name: str) -> list[Described]:
    """The parameters of a learner with what its docstring, or that of the learner it refers to, says of them.

    Examples
    --------
    >>> [one.name for one in described_parameters("xdart")][:2]
    ['n_trees', 'n_leaves']
    """
    kind = learner_class(name)
    said: dict[str, str] = {}
    for source in (learner_class("lambdamart"), *reversed(kind.__mro__)):  # what is said last counts
        said |= documented_parameters(source.__doc__)
    return [
        Described(
            field.name,
            getattr(kind, field.name, None),
            said.get(field.name, ""),
            any(one.read is not None and one.words != "None" for one in kinds_of(kind, field.name)),
        )
        for field in fields(kind)
    ]
