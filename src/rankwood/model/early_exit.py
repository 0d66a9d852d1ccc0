"""Early exit: where documents may stop before the last tree of a model, as a property of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood import _native
from rankwood.errors import ModelError, one_line

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

SUM_GROUP = 16  # trees whose values are added in float32, in single precision: kSumGroup of native/sums.hpp


@dataclass(frozen=True)
class EarlyExit:
    """The rule by which documents far behind the best of their query stop before the last tree.

    At a checkpoint the documents of a query that are still on their way are compared by the score that the trees so far
    give them. When there are more than `top`, those that are more than `margin` below the `top`-th best of them stop,
    and stand below all who go on. Those who go through all trees have the score that they would have without exit,
    bit for bit. `Ensemble.score` takes the rule when it is told the queries; docs/early-exit.md has every detail.

    Parameters
    ----------
    checkpoints : sequence of int
        Numbers of trees after which documents may stop: rising, multiples of 16 (so that sums in single precision have
        the same bits with and without exit), below the number of trees.
    margins : sequence of float
        One per checkpoint, 0 or more, in units of the score; infinity means that nobody stops there.
    top : int, default 10
        How many of the best documents of a query never stop: the cutoff of the measure that counts.

    Raises
    ------
    ModelError
        A number is none of these.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)] * 16 + [(0, 0.2, 0.0, 1.0)])
    >>> swift = model.replace(exit=rw.EarlyExit([16], [8.0], top=1))
    >>> swift.score([[0.1], [0.3], [0.7]], group=[3]), swift.trees_evaluated([[0.1], [0.3], [0.7]], group=[3])
    (array([16., 16., 33.]), array([16, 16, 17], dtype=int32))
    """

    checkpoints: tuple[int, ...]
    margins: tuple[float, ...]
    top: int = 10

    def __post_init__(self) -> None:
        checkpoints = tuple(_whole(one, "a checkpoint") for one in _listed(self.checkpoints, "checkpoints"))
        margins = tuple(_margin(one) for one in _listed(self.margins, "margins"))
        for name, value in (("checkpoints", checkpoints), ("margins", margins), ("top", _whole(self.top, "top"))):
            object.__setattr__(self, name, value)
        if len(margins) != len(checkpoints):
            raise ModelError(f"{len(checkpoints)} checkpoints need as many margins, got {len(margins)}")
        if list(checkpoints) != sorted(set(checkpoints)):
            raise ModelError(f"checkpoints must rise, got {one_line(list(checkpoints))}")
        odd = [one for one in checkpoints if one % SUM_GROUP]
        if odd:
            raise ModelError(f"a checkpoint must be a multiple of {SUM_GROUP} trees, got {odd[0]}")

    @property
    def never(self) -> bool:
        """Whether nobody ever stops."""
        return all(math.isinf(margin) for margin in self.margins)

    def check(self, model: Ensemble) -> None:
        """Raise an error unless the rule suits a model.

        Parameters
        ----------
        model : Ensemble
            The model that is to have it.
        """
        if self.checkpoints:
            arrays = model.leaf_value, model.node_offsets, model.tree_weights
            try:
                _native.check_exit(*arrays, model.base, self.checkpoints[-1])
            except ValueError as error:
                raise ModelError(str(error)) from None

    def as_dict(self) -> dict[str, Any]:
        """The rule as JSON can hold it: a margin of infinity is None."""
        margins = [None if math.isinf(margin) else margin for margin in self.margins]
        return {"checkpoints": list(self.checkpoints), "margins": margins, "top": self.top}


def _listed(values: Any, name: str) -> list[Any]:
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise ModelError(f"{name} must be a list, got {one_line(repr(values))}")
    return list(values)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not 1 <= value < 2**31:
        raise ModelError(f"{name} must be a whole number of at least 1, got {one_line(repr(value))}")
    return int(value)


def _margin(value: Any) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not value >= 0:
        raise ModelError(f"a margin must be a number of 0 or more, got {one_line(repr(value))}")
    return float(value)
