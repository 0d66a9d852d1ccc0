"""Which engines there are, which can score a model, and which one `engine="auto"` takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rankwood.errors import RankwoodError
from rankwood.scoring.engines import BITSLICE, REFERENCE, TRAVERSE, Engine, Kept, Kernel, Limits, PreparedModel
from rankwood.system import active_isa

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble


# Engine `ifelse`: the model as nested if-else in C, compiled by the system's compiler into a cached library.
#
# This is how Asadi and Lin (ECIR 2013, section 3) run their ensembles: the whole model is machine code.


MAX_COMPILED_NODES = 1_000_000  # a compiler takes about five minutes for so many on one CPU


def _ifelse_kernel(model: Ensemble) -> Kernel:
    from rankwood.scoring.c_library import IfElseKernel  # who does not compile shall not wait for these imports

    return IfElseKernel(model)


def _no_compiler() -> str | None:
    """What keeps models from being compiled here, and which engines do not mind."""
    from rankwood.scoring.c_library import Compiler, find_compiler

    compiler = find_compiler()
    if isinstance(compiler, Compiler):
        return None
    others = [repr(engine.name) for engine in ENGINES.values() if not engine.limits.needs_compiler]
    return f"{compiler}; {', '.join(others)} {'needs' if len(others) == 1 else 'need'} none"


IFELSE = Engine(
    "ifelse",
    "nested if-else in C, compiled once and cached",
    Limits(needs_compiler=True, max_nodes=MAX_COMPILED_NODES),
    _ifelse_kernel,
    _no_compiler,
)


# Which engines there are, which can score a model, and which one `engine="auto"` takes.


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


_SMALLEST: Kept[float] = Kept()  # of trees: the smallest batch for which bitslice is taken
_PREPARED: Kept[PreparedModel] = Kept()  # of models, by name of the engine


def choose_engine(model: Ensemble, n_rows: int) -> str:
    """The engine that `engine="auto"` takes for a batch of `n_rows`."""
    kept = _SMALLEST.of(model.trees)
    smallest = kept.get("batch")
    if smallest is None:
        smallest = kept["batch"] = _smallest_bitslice_batch(model)
    return "bitslice" if n_rows >= smallest else "traverse"


def prepared(model: Ensemble, engine: str, n_rows: int) -> PreparedModel:
    """The model, ready to score `n_rows` rows with an engine or with "auto"; prepared once for as long as it lives."""
    name = choose_engine(model, n_rows) if engine == "auto" else engine
    kept = _PREPARED.of(model)
    found = kept.get(name)
    if found is None:
        found = kept[name] = get_engine(name).prepare(model)
    return found


def _smallest_bitslice_batch(model: Ensemble) -> float:
    if BITSLICE.obstacle(model) is None:
        for leaves, n_rows in BITSLICE_FROM[active_isa()]:
            if model.n_leaves <= leaves * model.n_trees:
                return n_rows
    return math.inf
