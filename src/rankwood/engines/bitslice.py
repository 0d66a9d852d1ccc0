"""Engine `bitslice`: blocks of documents go through a tree together, a byte per document and feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankwood import _native
from rankwood.engines.base import Engine, Kernel, Limits

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble


def _make_kernel(model: Ensemble) -> Kernel:
    return _native.Bitslice(*model._weighted_arrays())


BITSLICE = Engine(
    "bitslice",
    "many documents at once: every node is decided for a block of documents, without branches",
    Limits(max_leaves=8192),
    _make_kernel,
)
