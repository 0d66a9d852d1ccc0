"""Lists of different lengths in one array, and entries of an array that are set for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwood.dtypes import AnyArray, IndexArray, OffsetArray
from rankwood.model.trees import offsets_of, runs


@dataclass(frozen=True)
class Lists:
    """Lists of whole numbers: list i is `values[offsets[i] : offsets[i + 1]]`.

    Parameters
    ----------
    offsets : array
        Where each list starts, and where the last one ends.
    values : array
        All lists one after the other.

    Examples
    --------
    >>> lists = Lists.of([[5, 6], [], [7]])
    >>> lists[0].tolist(), lists.values[lists.places(np.array([2, 0]))].tolist()
    ([5, 6], [7, 5, 6])
    """

    offsets: OffsetArray
    values: AnyArray

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Lists:
        """Copy lists."""
        kept = [list(one) for one in lists]
        offsets = offsets_of([len(one) for one in kept])
        return cls(offsets, np.fromiter((value for one in kept for value in one), np.int32, int(offsets[-1])))

    def __getitem__(self, which: int) -> AnyArray:
        return self.values[self.offsets[which] : self.offsets[which + 1]]

    def sizes(self, which: IndexArray) -> IndexArray:
        """Return the lengths of some lists."""
        sizes: IndexArray = self.offsets[which + 1] - self.offsets[which]
        return sizes

    def places(self, which: IndexArray) -> IndexArray:
        """Return where the values of some lists are, one list after the other."""
        return runs(self.offsets[which], self.sizes(which))


def first_places(sizes: IndexArray) -> IndexArray:
    """Return where lists of these sizes start when they stand one after the other."""
    return np.cumsum(sizes) - sizes


def unit(vectors: AnyArray) -> AnyArray:
    """Return vectors, the rows of a matrix, scaled to length 1; those of length 0 stay."""
    scaled: AnyArray = vectors / np.maximum(np.sqrt((vectors**2).sum(1, keepdims=True)), 1e-9)
    return scaled


@contextlib.contextmanager
def marked(array: AnyArray, at: Any, values: Any) -> Iterator[AnyArray]:
    """Set entries of an array while the block runs.

    Looking up many numbers in such an array is faster than in a set, and clearing a few entries than a new array.

    Examples
    --------
    >>> place = np.full(5, -1)
    >>> with marked(place, [3, 1], [0, 1]):
    ...     place.tolist()
    [-1, 1, -1, 0, -1]
    >>> place.tolist()
    [-1, -1, -1, -1, -1]
    """
    before = array[at].copy()
    array[at] = values
    try:
        yield array
    finally:
        array[at] = before
