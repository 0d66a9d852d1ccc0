"""The notebook of a pruning: what finished steps found, and how far searches came, to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rankwood.dtypes import AnyArray, FloatArray, IndexArray

Arrays = dict[str, AnyArray]  # what a step found, by name

EVERY = 5.0  # seconds between two savings
TRAIL = "trail of "  # steps that are searches on their way


@dataclass
class Trail:
    """Weights after each iteration of a search and their training measure: what no validation data has a part in.

    A search that starts from the same weights follows the trail as far as it leads, and then goes on and lengthens it.
    So searches that differ in validation data alone share it, and one that was stopped goes on where it was.

    Parameters
    ----------
    trees : array of int
        Trees whose weights change.
    weights : list of arrays of shape (n_trees,)
        The weights at the start, and after each iteration.
    qualities : list of float
        Training measure with each of them.
    """

    trees: IndexArray
    weights: list[FloatArray] = field(default_factory=list)
    qualities: list[float] = field(default_factory=list)

    def is_of(self, start: FloatArray, trees: IndexArray) -> bool:
        """Whether it is the trail of a search that starts from these weights and changes those of these trees."""
        return bool(self.weights) and np.array_equal(self.weights[0], start) and np.array_equal(self.trees, trees)

    def add(self, weights: FloatArray, quality: float) -> None:
        """Lengthen the trail."""
        self.weights.append(weights)
        self.qualities.append(quality)

    def as_arrays(self) -> Arrays:
        """The trail as arrays."""
        return {"trees": self.trees, "weights": np.stack(self.weights), "qualities": np.array(self.qualities)}

    @classmethod
    def of_arrays(cls, found: Arrays) -> Trail:
        """The inverse of `as_arrays`."""
        return cls(found["trees"], list(found["weights"]), found["qualities"].tolist())


class Notebook:
    """Finished steps by name and the trails of searches, saved now and then.

    Parameters
    ----------
    keep : callable or None, default None
        Saves all steps. None: nothing is saved.
    known : mapping from str to Arrays, default {}
        What was saved before.
    """

    def __init__(
        self, keep: Callable[[dict[str, Arrays]], None] | None = None, known: Mapping[str, Arrays] | None = None
    ) -> None:
        self._keep = keep
        found = {} if known is None else known
        self._steps = {name: step for name, step in found.items() if not name.startswith(TRAIL)}
        self._trails = {
            name.removeprefix(TRAIL): Trail.of_arrays(step) for name, step in found.items() if name not in self._steps
        }
        self._saved_at, self._is_new = time.monotonic(), False

    def __contains__(self, name: str) -> bool:
        return name in self._steps

    def step(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """What a step found: as noted, or else as `make` finds it."""
        if name not in self._steps:
            self.note(name, make())
        return self._steps[name]

    def note(self, name: str, found: Arrays) -> None:
        """Note what a step found."""
        self._steps[name] = found
        self._is_new = True

    def forget(self, start: str) -> None:
        """Drop the steps whose names begin so."""
        for name in [name for name in self._steps if name.startswith(start)]:
            del self._steps[name]

    def trail(self, kind: str, start: FloatArray, trees: IndexArray) -> Trail:
        """The trail to follow from some weights: that of the last search of the kind if it fits, else an empty one."""
        found = self._trails.get(kind)
        if found is None or not found.is_of(start, trees):
            found = self._trails[kind] = Trail(trees)
        return found

    def save_if_due(self) -> None:
        """Save, unless that was done a short while ago."""
        if time.monotonic() - self._saved_at >= EVERY:
            self._is_new = True  # a search may have gone on
            self.save()

    def save(self) -> None:
        """Save what is new."""
        if self._keep is not None and self._is_new:
            trails = {f"{TRAIL}{kind}": one.as_arrays() for kind, one in self._trails.items() if one.weights}
            self._keep({**self._steps, **trails})
            self._saved_at, self._is_new = time.monotonic(), False
