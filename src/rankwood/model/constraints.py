"""What the trees of a model keep to, as its notes say: directions of features, features on one path, their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwood import _native
from rankwood.dtypes import LEAF_VALUE, FloatArray
from rankwood.errors import ModelError
from rankwood.model.trees import Tree, Trees

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

NOTE = "constraints"  # entry of the metadata


@dataclass(frozen=True)
class Constraints:
    """Constraints on the trees of a model; features are numbers.

    Parameters
    ----------
    monotone : tuple of (int, int)
        Features and their directions: 1 where scores never fall as the feature rises, -1 where they never rise. Nothing
        is said of missing values.
    groups : tuple of tuples of int
        Features that may be met on one path: all features of a path are in one of the groups. None: all may.
    max_features : int or None
        Most different features of all trees together.
    costs : tuple of (int, float)
        What a feature costs when a split is the first one to use it; known to training alone.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 2.0, 1.0)])
    >>> Constraints(monotone=((0, 1),)).projected(model).leaf_value.tolist()
    [1.5, 1.5]
    """

    monotone: tuple[tuple[int, int], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    max_features: int | None = None
    costs: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(cls, model: Ensemble) -> Constraints:
        """The constraints that the notes of a model tell of; none where there are no such notes."""
        note = model.metadata.get(NOTE)
        if not isinstance(note, dict):
            return cls()
        return cls(
            tuple((int(feature), int(direction)) for feature, direction in note.get("monotone", ())),
            tuple(tuple(int(feature) for feature in group) for group in note.get("groups", ())),
            note.get("max_features"),
        )

    def notes(self) -> dict[str, Any]:
        """What the metadata of a model that keeps to the constraints has, by the name of the entry."""
        parts = {"monotone": self.monotone, "groups": self.groups, "max_features": self.max_features}
        told = {name: part for name, part in parts.items() if part not in ((), None)}
        return {NOTE: told} if told else {}

    @property
    def all_features_are_free(self) -> bool:
        """Whether features cost nothing and any number of them may be used."""
        return self.max_features is None and not self.costs

    @property
    def negated(self) -> Constraints:
        """The constraints on trees of negative weight."""
        return replace(self, monotone=tuple((feature, -direction) for feature, direction in self.monotone))

    def directions(self, n_features: int) -> NDArray[np.int8] | None:
        """Direction of every feature, 0 for those without; None when none has one."""
        if not self.monotone:
            return None
        found: NDArray[np.int8] = np.zeros(n_features, np.int8)
        for feature, direction in self.monotone:
            found[feature] = direction
        return found

    def projection(self, trees: Trees, n_features: int) -> Projection | None:
        """What moves leaf values of these trees so that they keep their directions; None when none has one."""
        directions = self.directions(n_features)
        if directions is None:
            return None
        wrong = trees.feature[trees.set_nodes]
        wrong = wrong[directions[wrong] != 0]
        if len(wrong):
            raise ModelError(
                f"feature {wrong[0]} has a monotone constraint and splits on sets of its values, which have no order: "
                "leave it out of monotone_constraints"
            )
        return Projection(trees, n_features, directions)

    def projected(self, model: Ensemble) -> Ensemble:
        """The model with leaf values moved as little as needed for all trees to keep their directions."""
        projection = self.projection(model.trees, model.n_features)
        if projection is None:
            return model
        signs = np.repeat(np.where(model.tree_weights < 0.0, -1.0, 1.0), np.diff(model.leaf_offsets))
        weights = np.ones(model.n_leaves) if model.leaf_cover is None else model.leaf_cover
        values = signs * projection(signs * model.leaf_value, weights)
        return model if np.array_equal(values, model.leaf_value) else model.replace(leaf_value=values)

    def check(self, model: Ensemble, what: str) -> None:
        """Refuse a model whose trees do not keep to the constraints; `what` names it."""
        if self.projected(model) is not model:
            raise ModelError(f"{what} has trees that break monotone_constraints: train it with the same ones")
        for number in range(model.n_trees if self.groups else 0):
            path = path_outside(model.tree(number), self.groups)
            if path is not None:
                raise ModelError(
                    f"tree {number} of {what} has features {', '.join(map(str, path))} on one path, which "
                    "interaction_constraints do not allow: train it with the same ones"
                )
        n_used = len(np.unique(model.feature))
        if self.max_features is not None and n_used > self.max_features:
            raise ModelError(f"{what} uses {n_used} features, and max_features_used is {self.max_features}")


NO_CONSTRAINTS = Constraints()


@dataclass(frozen=True)
class Projection:
    """Moves leaf values of some trees so that scores keep their directions, at little cost in least squares.

    At every split on a feature with a direction, from the leaves up, one value parts the two sides: values of the lower
    side above it, and of the upper side below it, become that value.

    Parameters
    ----------
    trees : Trees
        The trees; their own values are not looked at.
    n_features : int
        Number of features.
    directions : array of int8
        1, -1 or 0 per feature.
    """

    trees: Trees
    n_features: int
    directions: NDArray[np.int8]

    def __call__(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """New values of all leaves.

        Parameters
        ----------
        values : array of shape (n_leaves,)
            Values, in trees whose weights are not negative.
        weights : array of shape (n_leaves,)
            What the squared change of each counts.
        """
        moved: FloatArray = np.array(values, LEAF_VALUE)
        counts = np.ascontiguousarray(weights, np.float64)
        _native.project_monotone(*self.trees.native(), self.n_features, counts, self.directions, moved)
        return moved


def path_outside(tree: Tree, groups: Sequence[Sequence[int]]) -> list[int] | None:
    """The features of a path that are in no group together, in rising order; None when there is no such path."""
    sets = [frozenset(group) for group in groups]
    stack: list[tuple[int, frozenset[int]]] = [(0, frozenset())] if len(tree.feature) else []
    while stack:
        node, above = stack.pop()
        path = above | {int(tree.feature[node])}
        if not any(path <= group for group in sets):
            return sorted(path)
        stack += [(int(child), path) for child in (tree.left[node], tree.right[node]) if child >= 0]
    return None
