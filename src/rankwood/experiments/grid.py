"""Configurations from a grid or a list, and each of them on every fold with every seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankwood.errors import RankwoodError


def expand(
    grid: Mapping[str, Sequence[Any]] | None = None, listed: Sequence[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Every listed setting with every point of the grid; the last name of the grid varies fastest.

    >>> expand({"n_leaves": [8, 16], "balance": [0.0, 0.5]}, [{"n_trees": 10}])[:2]
    [{'n_trees': 10, 'n_leaves': 8, 'balance': 0.0}, {'n_trees': 10, 'n_leaves': 8, 'balance': 0.5}]
    >>> expand(listed=[{"seed": 1}, {"seed": 2}])
    [{'seed': 1}, {'seed': 2}]
    >>> expand()
    [{}]
    """
    names = list(grid or ())
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(grid or {}).values())]
    settings = [dict(one) for one in (listed or [{}])]
    for setting in settings:
        both = [name for name in setting if name in names]
        if both:
            raise RankwoodError(f"{both[0]} is part of the grid and of a configuration of the list: give it in one")
    found = [{**setting, **point} for setting in settings for point in points]
    for number, setting in enumerate(found):
        if setting in found[:number]:
            raise RankwoodError(f"the configuration {setting} is there twice")
    return found


def cross(
    settings: Iterable[Mapping[str, Any]], folds: Sequence[int], seeds: Sequence[int]
) -> list[tuple[int, dict[str, Any], int]]:
    """(fold, setting, seed) of every run, those of a fold after each other, because they share its data.

    >>> cross([{"k": 1}, {"k": 2}], [1], [0, 1])
    [(1, {'k': 1}, 0), (1, {'k': 1}, 1), (1, {'k': 2}, 0), (1, {'k': 2}, 1)]
    """
    return [(fold, dict(setting), seed) for fold, setting, seed in itertools.product(folds, list(settings), seeds)]
