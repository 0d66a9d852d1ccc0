"""Splits in words, and trees as nodes in the order of a walk: what tables, texts and drawings of trees are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwood.coding import value_in_words
from rankwood.dtypes import FloatArray
from rankwood.errors import ModelError
from rankwood.formats.writing import categories_of, names_of, node_sums

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

SHOWN_MEMBERS = 6  # of a set, in words


@dataclass(frozen=True)
class Place:
    """A node or leaf of a tree, as a walk meets it: parents before children, left before right.

    Attributes
    ----------
    depth : int
        Splits above it.
    number : int
        Of the inner node or of the leaf, inside its tree.
    is_leaf : bool
    parent : int
        Number of the inner node above it; -1 for the root.
    is_left : bool
        Whether it is the left child.
    """

    depth: int
    number: int
    is_leaf: bool
    parent: int
    is_left: bool


def tree_number(model: Ensemble, tree: int) -> int:
    """Number of a tree, from 0, which may be counted from the end; an error when there is none."""
    if isinstance(tree, bool) or not isinstance(tree, (int, np.integer)) or not -model.n_trees <= tree < model.n_trees:
        raise ModelError(f"there is no tree {tree}: the model has {model.n_trees}")
    return int(tree) % model.n_trees


def walk(model: Ensemble, tree: int) -> Iterator[Place]:
    """Nodes and leaves of a tree; trees may be of any depth."""
    nodes = model.trees.nodes_of(tree)
    left, right = model.left[nodes].tolist(), model.right[nodes].tolist()
    pending = [(0 if left else -1, 0, -1, True)]
    while pending:
        child, depth, parent, is_left = pending.pop()
        yield Place(depth, ~child if child < 0 else child, child < 0, parent, is_left)
        if child >= 0:
            pending += [(right[child], depth + 1, child, False), (left[child], depth + 1, child, True)]


def condition(model: Ensemble, node: int, categories: Mapping[int, Sequence[Any]] | None = None) -> str:
    """What a value must meet to go left at an inner node, numbered over all trees, without the feature's name.

    Categories are named where they are known by number of the feature, as `Coding.by_feature` has them.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0), (0, [-1.5, 1.5], 1.0, 2.0)])
    >>> condition(model, 0), condition(model, 1)
    ('<= 0.5', 'outside (-1.5, 1.5]')
    >>> colour = rw.Ensemble.from_trees([(0, np.nextafter([1.0, 2.0], 0).tolist(), 1.0, 2.0)])
    >>> condition(colour, 0), condition(colour, 0, {0: ["blue", "red"]})
    ('not in {1}', 'not in {red}')
    """
    thresholds = model.trees.thresholds_of(node)
    if len(thresholds) == 1:
        return f"<= {short(thresholds[0])}"
    members = categories_of(thresholds)
    if members is not None:
        known = (categories or {}).get(int(model.feature[node]), ())
        return f"not in {{{_few([value_in_words(member, known) for member in members.tolist()])}}}"
    ends = [short(threshold) for threshold in thresholds]
    ends += ["inf"] * (len(ends) % 2)
    return f"outside {_few([f'({low}, {high}]' for low, high in zip(ends[::2], ends[1::2], strict=True)])}"


def short(value: float) -> str:
    """A number in six digits."""
    return f"{value:.6g}"


def _few(texts: list[str]) -> str:
    more = len(texts) - SHOWN_MEMBERS
    return ", ".join(texts if more <= 1 else [*texts[:SHOWN_MEMBERS], f"{more} more"])


class TreeNotes:
    """Names, values and covers of the nodes of a model, as tables and drawings show them.

    Attributes
    ----------
    names : list of str
        Of the features.
    categories : dict
        Those of a feature, in the order of their codes, by its number.
    values : array of float
        What each leaf adds to a score: its value times the weight of its tree.
    leaf_cover, node_cover : array of float or None
        How much training data each leaf and each inner node holds, where the model knows.
    """

    names: list[str]
    categories: dict[int, tuple[Any, ...]]
    values: FloatArray
    leaf_cover: FloatArray | None
    node_cover: FloatArray | None

    def __init__(self, model: Ensemble) -> None:
        self.names = names_of(model)
        coding = model.coding
        self.categories = {} if coding is None else coding.by_feature()
        self.values = model.leaf_value * model.tree_weights[model.trees.tree_of_leaf]
        self.leaf_cover = model.leaf_cover
        if model.leaf_cover is not None:
            self.node_cover = node_sums(model, model.leaf_cover)
        else:
            self.node_cover = None if model.node_count is None else model.node_count.astype(np.float64)
