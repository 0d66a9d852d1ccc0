"""Which engines there are, which can score a model, and which one `engine="auto"` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankwood.engines.base import Engine
from rankwood.engines.bitslice import BITSLICE
from rankwood.engines.ifelse import IFELSE
from rankwood.engines.reference import REFERENCE
from rankwood.engines.traverse import TRAVERSE
from rankwood.errors import RankwoodError

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (REFERENCE, BITSLICE, TRAVERSE, IFELSE)}


def get_engine(name: str) -> Engine:
    """The engine of that name.

    >>> get_engine("reference").limits.max_leaves is None
    True
    """
    if name not in ENGINES:
        raise RankwoodError(f"there is no engine {name!r}; choose one of: auto, {', '.join(ENGINES)}")
    return ENGINES[name]


def available_engines(model: Ensemble) -> list[str]:
    """Names of the engines that can score `model` on this machine.

    >>> from rankwood import Ensemble
    >>> "reference" in available_engines(Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    True
    """
    return [name for name, engine in ENGINES.items() if engine.obstacle(model) is None]


def choose_engine(model: Ensemble, n_rows: int) -> str:
    """The engine that `engine="auto"` takes for a batch of `n_rows`."""
    return "reference"
