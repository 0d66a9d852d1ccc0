"""Greedy line search for the weights of trees (Lucchese et al. 2016, "Tree Weighting with Line Search")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwood.dtypes import FloatArray, IndexArray
from rankwood.errors import RankwoodError
from rankwood.fitting.measured import Part
from rankwood.pruning.notebook import Trail

OnIteration = Callable[[int, int], None]  # (iterations done, iterations at most)


@dataclass(frozen=True)
class LineSearch:
    """Settings of the line search for tree weights; the defaults are the paper's.

    Parameters
    ----------
    radius : float or None, default None
        Half the width of the interval around a tree's weight in which its new weight is looked for, in the first
        iteration. None: twice the mean weight.
    samples : int, default 20
        Weights tried in that interval, and points tried on the way to the new weights of all trees.
    shrink : float, default 0.95
        Factor of the radius after every iteration.
    iterations : int, default 100
        Iterations at most.
    patience : int, default 20
        Iterations in a row without a better validation measure after which the search ends.
    negative : {"clip", "exclude"}, default "clip"
        What becomes of the part of the interval that is below 0: it is cut off before the samples are spread evenly,
        or its samples are left out of those spread over the whole interval, as the paper has it.

    Examples
    --------
    >>> import rankwood as rw
    >>> rw.PruningSettings(search=rw.LineSearch(iterations=10)).search.iterations
    10
    """

    radius: float | None = None
    samples: int = 20
    shrink: float = 0.95
    iterations: int = 100
    patience: int = 20
    negative: Literal["clip", "exclude"] = "clip"

    def __post_init__(self) -> None:
        if self.radius is not None and not 0.0 < self.radius < math.inf:
            raise RankwoodError(f"radius must be a positive number, or None for twice the mean weight: {self.radius}")
        for name, least in (("samples", 2), ("iterations", 0), ("patience", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise RankwoodError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if self.negative not in ("clip", "exclude"):
            raise RankwoodError(f"negative must be 'clip' or 'exclude', got {self.negative!r}")
        if not 0.0 < self.shrink <= 1.0:
            raise RankwoodError(f"shrink must be above 0 and at most 1, got {self.shrink}")

    def first_radius(self, weights: FloatArray) -> float:
        """Radius of the first iteration.

        Parameters
        ----------
        weights : array of shape (n_trees,)
            Weights of the trees that are searched.
        """
        if self.radius is not None:
            return self.radius
        return 2.0 * float(np.mean(weights)) if weights.any() else 1.0


@dataclass(frozen=True)
class Searched:
    """The weights with the best validation measure that a line search found.

    Parameters
    ----------
    weights : array of shape (n_trees,)
        The weights.
    train, valid : float
        Training and validation measure with these weights.
    train_before, valid_before : float
        The same with the weights that the search started from.
    n_iterations : int
        Iterations done.
    history : tuple of (float, float)
        Training and validation measure after each iteration.
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
    trail: Trail | None = None,
) -> Searched:
    """Search non-negative weights that raise the training measure, and take the best by the validation measure.

    An iteration finds, for every tree on its own, the best of some weights around its present one. These together give
    a direction; the search moves to the best point on the way there, if that has a higher training measure. The result
    may be the weights that the search started from, so its validation measure is never lower than theirs.

    Parameters
    ----------
    train, valid : Part
        Data that weights are searched on, and data that the best iteration is chosen by.
    weights : array of shape (n_trees,)
        Weights to start from.
    trees : array of int or None, default None
        Trees whose weights may change; None: all of them.
    settings : LineSearch or None, default None
        How to search.
    on_iteration : callable or None, default None
        Called after every iteration with the number done and the most there can be.
    trail : Trail or None, default None
        Trail of a search with the same training data, start, trees and settings, as far as that came; or an empty one.
        It is followed and lengthened; the result is the same with any.
    """
    how = LineSearch() if settings is None else settings
    trees = np.arange(len(weights)) if trees is None else trees
    trail = Trail(trees) if trail is None else trail
    point: Point | None = None  # the end of the trail, once that is reached
    if not trail.weights:
        point = Point.at(train, np.array(weights, dtype=np.float64))
        trail.add(point.weights, point.quality)
    best, best_valid = 0, valid.quality(trail.weights[0])  # `best` is a number of iterations
    radius, failures, history = how.first_radius(trail.weights[0][trees]), 0, list[tuple[float, float]]()
    valid_before = value = best_valid
    for iteration in range(how.iterations):
        if len(trail.weights) == iteration + 1:
            point = Point.at(train, trail.weights[-1]) if point is None else point
            moved = best_on_segment(train, point, promising_weights(train, point, trees, radius, how), how.samples)
            point = moved if moved.quality > point.quality else point
            trail.add(point.weights, point.quality)
        quality = trail.qualities[iteration + 1]
        failures += 1
        if quality > trail.qualities[iteration]:
            value = valid.quality(trail.weights[iteration + 1])
            if value > best_valid:
                best, best_valid, failures = iteration + 1, value, 0
        history.append((quality, value))
        radius *= how.shrink
        if on_iteration is not None:
            on_iteration(iteration + 1, how.iterations)
        if failures >= how.patience:
            break
    found = trail.weights[best], trail.qualities[best], best_valid, trail.qualities[0], valid_before
    return Searched(*found, len(history), tuple(history))


@dataclass(frozen=True)
class Point:
    """Weights, the exact scores (scores and rests) that they give training documents, and the training measure."""

    weights: FloatArray
    scores: FloatArray
    rests: FloatArray
    quality: float

    @classmethod
    def at(cls, train: Part, weights: FloatArray) -> Point:
        """The point of the given weights."""
        scores, rests = train.outputs.exact_scores(weights)
        return cls(weights, scores, rests, train.queries.quality(scores))


def promising_weights(train: Part, point: Point, trees: IndexArray, radius: float, how: LineSearch) -> FloatArray:
    """The best weight of every tree of `trees` while all others keep theirs.

    Of each tree some weights are tried, equally spaced within `radius` of the present one and not negative. A tree
    keeps its weight unless another is better; of equally good weights it takes the nearest.
    """
    now = point.weights[trees]
    low = np.maximum(now - radius, 0.0) if how.negative == "clip" else now - radius
    tried = np.linspace(low, now + radius, how.samples, axis=1)
    tried = np.where(tried < 0.0, now[:, None], tried)
    exact = point.scores, point.rests
    found, standing_still = train.queries.reweighed(train.outputs, point.weights, exact, trees, tried)
    best = found.max(axis=1)
    nearest = np.where(found == best[:, None], np.abs(tried - now[:, None]), np.inf).argmin(axis=1)
    promising: FloatArray = point.weights.copy()
    promising[trees] = np.where(best > standing_still, tried[np.arange(len(trees)), nearest], now)
    return promising


def best_on_segment(train: Part, point: Point, end: FloatArray, samples: int) -> Point:
    """The best of `samples` equally spaced points on the way from `point` to the weights `end`, which is one of them.

    Points are compared by interpolated scores; the one taken is then measured by its own. Interpolation starts at the
    end, where weights may be 0, because documents that are ties there must stay ties.
    """
    if np.array_equal(point.weights, end):
        return point
    scores = train.outputs.scores(end)
    direction = train.outputs.as_tree(scores - point.scores)
    steps = np.arange(1, samples + 1) / samples
    found, _ = train.queries.along(direction, scores, np.zeros(1, np.int64), steps[None] - 1.0)
    step = steps[int(np.argmax(found[0]))]
    return Point.at(train, end if step == 1.0 else point.weights + step * (end - point.weights))
