"""Engine `traverse`: a few documents, or trees with thousands of leaves, walked eight paths side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankwood import _native
from rankwood.engines.base import Engine, Kernel, Limits

if TYPE_CHECKING:
    from rankwood.ensemble import Ensemble


def _make_kernel(model: Ensemble) -> Kernel:
    return _native.Traverse(*model._weighted_arrays())


TRAVERSE = Engine(
    "traverse",
    "few documents at once, or large trees: paths are walked side by side, without branches",
    Limits(max_nodes=2_000_000_000),
    _make_kernel,
)
