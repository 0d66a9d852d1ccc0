"""Greedy line search for the weights of trees (Lucchese et al. 2016, "Tree Weighting with Line Search")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.pruning.outputs import Part

OnIteration = Callable[[int, int], None]  # (iterations done, iterations at most)


@dataclass(frozen=True)
class LineSearch:
    """How to search; the defaults are the paper's.

    radius      how far around its weight a tree's new weight is looked for; None: twice the mean weight
    samples     weights tried in that interval, and points tried on the way to the new weights
    shrink      the radius is multiplied by it after every iteration
    iterations  at most
    patience    iterations in a row without a better validation measure after which the search ends
    """

    radius: float | None = None
    samples: int = 20
    shrink: float = 0.95
    iterations: int = 100
    patience: int = 20

    def __post_init__(self) -> None:
        if self.radius is not None and not 0.0 < self.radius < math.inf:
            raise RankwoodError(f"radius must be a positive number, or None for twice the mean weight: {self.radius}")
        for name, least in (("samples", 2), ("iterations", 0), ("patience", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise RankwoodError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if not 0.0 < self.shrink <= 1.0:
            raise RankwoodError(f"shrink must be above 0 and at most 1, got {self.shrink}")

    def first_radius(self, weights: FloatArray) -> float:
        """The radius to start with, for trees of these weights."""
        if self.radius is not None:
            return self.radius
        return 2.0 * float(np.mean(weights)) if weights.any() else 1.0


@dataclass(frozen=True)
class Searched:
    """What a search found: `weights` were accepted, and no others had a better validation measure.

    train, valid   the measure with these weights, and with those the search started from
    n_iterations   done; `history` has the training and validation measure after each
    """

    weights: FloatArray
    train: float
    valid: float
    train_before: float
    valid_before: float
    n_iterations: int
    history: tuple[tuple[float, float], ...]


def line_search(
    train: Part,
    valid: Part,
    weights: FloatArray,
    trees: IndexArray | None = None,
    *,
    settings: LineSearch | None = None,
    on_iteration: OnIteration | None = None,
) -> Searched:
    """Weights, never negative, that raise the measure on training data, chosen by validation data.

    An iteration finds, for every tree on its own, the best of some weights around its present one; these together give
    a direction, and the best point on the way there is moved to if it is better on training data. The weights with
    the best validation measure are returned, which may be those the search started from: it is never worse there.
    `trees`: those whose weights may change, all unless given.
    """
    how = LineSearch() if settings is None else settings
    trees = np.arange(len(weights)) if trees is None else trees
    start = current = best = Point.at(train, np.array(weights, dtype=np.float64))
    best_valid = valid_before = valid.quality(current.weights)
    radius, failures, history = how.first_radius(current.weights[trees]), 0, list[tuple[float, float]]()
    for iteration in range(how.iterations):
        promising = promising_weights(train, current, trees, radius, how.samples)
        moved = best_on_segment(train, current, promising, how.samples)
        failures += 1
        value = history[-1][1] if history else valid_before
        if moved.quality > current.quality:
            current = moved
            value = valid.quality(current.weights)
            if value > best_valid:
                best, best_valid, failures = current, value, 0
        history.append((current.quality, value))
        radius *= how.shrink
        if on_iteration is not None:
            on_iteration(iteration + 1, how.iterations)
        if failures >= how.patience:
            break
    return Searched(best.weights, best.quality, best_valid, start.quality, valid_before, len(history), tuple(history))


@dataclass(frozen=True)
class Point:
    """Weights, the scores they give training documents, what these were rounded by, and their measure."""

    weights: FloatArray
    scores: FloatArray
    rests: FloatArray
    quality: float

    @classmethod
    def at(cls, train: Part, weights: FloatArray) -> Point:
        scores, rests = train.outputs.exact_scores(weights)
        return cls(weights, scores, rests, train.queries.quality(scores))


def promising_weights(train: Part, point: Point, trees: IndexArray, radius: float, samples: int) -> FloatArray:
    """For every tree, all others held, the best of `samples` weights within `radius`, equally spaced and not negative.

    A tree keeps its weight unless another is better; of equally good ones it takes the nearest.
    """
    now = point.weights[trees]
    tried = np.linspace(np.maximum(now - radius, 0.0), now + radius, samples, axis=1)
    exact = point.scores, point.rests
    found, standing_still = train.queries.reweighed(train.outputs, point.weights, exact, trees, tried)
    best = found.max(axis=1)
    nearest = np.where(found == best[:, None], np.abs(tried - now[:, None]), np.inf).argmin(axis=1)
    promising: FloatArray = point.weights.copy()
    promising[trees] = np.where(best > standing_still, tried[np.arange(len(trees)), nearest], now)
    return promising


def best_on_segment(train: Part, point: Point, end: FloatArray, samples: int) -> Point:
    """The best of `samples` points on the way from `point` to the weights `end`, these included.

    They are compared by scores that are interpolated, backwards from the end, where weights may be 0 and documents
    equal; the one taken is measured by its own.
    """
    if np.array_equal(point.weights, end):
        return point
    scores = train.outputs.scores(end)
    direction = train.outputs.as_tree(scores - point.scores)
    steps = np.arange(1, samples + 1) / samples
    found, _ = train.queries.along(direction, scores, np.zeros(1, np.int64), steps[None] - 1.0)
    step = steps[int(np.argmax(found[0]))]
    return Point.at(train, end if step == 1.0 else point.weights + step * (end - point.weights))
