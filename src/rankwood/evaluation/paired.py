"""Two arrays of per-query values as pairs: what every test of significance starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import DataError

_TIE_BITS = 44  # differences are multiples of 2**-44 of the largest value: well above rounding errors


@dataclass(frozen=True)
class Pairs:
    """Differences b - a, also in fixed point: `fixed * 2**exponent`, rounded."""

    differences: FloatArray
    fixed: IndexArray
    exponent: int
    largest: float  # of the values compared: what rounding errors are relative to

    @classmethod
    def of(cls, a: Any, b: Any) -> Pairs:
        a, b = _values(a, "a"), _values(b, "b")
        if len(a) != len(b):
            raise DataError(f"a has {len(a)} values and b has {len(b)}: give one per query, in the same order")
        both = ~(np.isnan(a) | np.isnan(b))
        a, b = a[both], b[both]
        if len(a) < 2:
            raise DataError(f"a comparison needs at least 2 queries with a value in both a and b, there are {len(a)}")
        return cls.from_differences(b - a, float(max(np.abs(a).max(), np.abs(b).max())))

    @classmethod
    def from_differences(cls, differences: FloatArray, largest: float) -> Pairs:
        n = len(differences)
        # n times the largest difference (at most 3 * largest) stays below 2**61, as the kernels ask
        exponent = math.frexp(largest)[1] - _TIE_BITS + max(0, (n - 1).bit_length() - 15)
        fixed = np.rint(np.ldexp(differences, -exponent)).astype(np.int64)
        return cls(differences, fixed, exponent, largest)

    @property
    def n(self) -> int:
        return len(self.differences)

    @property
    def mean(self) -> float:
        return math.fsum(self.differences) / self.n  # the same in any order

    def plus(self, shift: float) -> Pairs:
        return Pairs.from_differences(self.differences + shift, max(self.largest, shift))

    def swapped(self) -> Pairs:
        return Pairs(-self.differences, -self.fixed, self.exponent, self.largest)


def _values(values: Any, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold one number per query: {error}") from None
    if array.ndim != 1:
        raise DataError(f"{name} must have one value per query, got shape {array.shape}")
    too_large = np.flatnonzero(np.abs(array) > 1e150)  # squares of differences must stay finite
    if len(too_large):
        raise DataError(
            f"{name} of query {too_large[0]} is {array[too_large[0]]}: it must be a finite number of at most 1e150"
        )
    return array
