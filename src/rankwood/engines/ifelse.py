"""Engine `ifelse`: the model as nested if-else in C, compiled by the system's compiler into a cached library.

This is how Asadi and Lin (ECIR 2013, section 3) run their ensembles: the whole model is machine code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankwood.engines.base import Engine, Kernel, Limits

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble

MAX_NODES = 1_000_000  # a compiler takes about five minutes for so many on one CPU


def make_kernel(model: Ensemble) -> Kernel:
    from rankwood.engines.compiled import IfElseKernel  # who does not compile shall not wait for these imports

    return IfElseKernel(model)


def find_obstacle() -> str | None:
    """What keeps models from being compiled here, and which engines do not mind."""
    from rankwood.engines.c_compiler import Compiler, find_compiler
    from rankwood.engines.registry import ENGINES

    compiler = find_compiler()
    if isinstance(compiler, Compiler):
        return None
    others = [repr(engine.name) for engine in ENGINES.values() if not engine.limits.needs_compiler]
    return f"{compiler}; {', '.join(others)} {'needs' if len(others) == 1 else 'need'} none"


IFELSE = Engine(
    "ifelse",
    "nested if-else in C, compiled once and cached",
    Limits(needs_compiler=True, max_nodes=MAX_NODES),
    make_kernel,
    find_obstacle,
)
