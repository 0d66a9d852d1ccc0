"""Which engines there are, which can score a model, and which one `engine="auto"` takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rankwood.engines.base import Engine
from rankwood.engines.bitslice import BITSLICE
from rankwood.engines.ifelse import IFELSE
from rankwood.engines.reference import REFERENCE
from rankwood.engines.traverse import TRAVERSE
from rankwood.errors import RankwoodError
from rankwood.isa import active_isa

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (REFERENCE, BITSLICE, TRAVERSE, IFELSE)}


def get_engine(name: str) -> Engine:
    """The engine of that name.

    >>> get_engine("reference").limits.max_leaves is None
    True
    """
    if name == "auto":
        raise RankwoodError(f"'auto' is a choice of model.score, not an engine: name one of {', '.join(ENGINES)}")
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


# The smallest batch for which bitslice was faster than traverse, by leaves per tree (mean) up to the number given, on
# each instruction set (AVX-512: not measured, taken from AVX2). For larger trees traverse is faster whatever the batch.
# Measured with `rankwood bench` on LightGBM models of 60 to 1,000 trees and 136 features.
BITSLICE_FROM: dict[str, tuple[tuple[int, int], ...]] = {
    "avx512": ((16, 5), (32, 8), (64, 11), (128, 20), (256, 28), (512, 90)),
    "avx2": ((16, 5), (32, 8), (64, 11), (128, 20), (256, 28), (512, 90)),
    "baseline": ((8, 8), (16, 10), (32, 14), (64, 36)),
}


def choose_engine(model: Ensemble, n_rows: int) -> str:
    """The engine that `engine="auto"` takes for a batch of `n_rows`."""
    smallest = model._packed.get("auto")
    if smallest is None:
        smallest = model._packed["auto"] = _smallest_bitslice_batch(model)
    return "bitslice" if n_rows >= smallest else "traverse"


def _smallest_bitslice_batch(model: Ensemble) -> float:
    if BITSLICE.obstacle(model) is None:
        for leaves, n_rows in BITSLICE_FROM[active_isa()]:
            if model.n_leaves <= leaves * model.n_trees:
                return n_rows
    return math.inf
