"""Which instruction set the kernels use. The environment variable RANKWOOD_ISA forces one."""

from __future__ import annotations

from rankwood import _native
from rankwood.errors import RankwoodError


def active_isa() -> str:
    """Name of the instruction set in use: the widest that this CPU has, or what RANKWOOD_ISA names."""
    try:
        return _native.active_isa()
    except ValueError as error:
        raise RankwoodError(str(error)) from None


def available_isas() -> list[str]:
    """Instruction sets of this build that this CPU can run, widest first.

    >>> available_isas()[-1]
    'baseline'
    """
    return _native.available_isas()
