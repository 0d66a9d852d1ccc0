"""Trees as flat arrays: what the columns are, how they are checked, cut and joined; one tree by itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import (
    LEAF_VALUE,
    NODE,
    OFFSET,
    THRESHOLD,
    AnyArray,
    FloatArray,
    IndexArray,
    NodeArray,
    OffsetArray,
)
from rankwood.errors import ModelError, one_line

# What the parts of a model must be, and how its arrays are cut and joined.


MAX_FEATURES = 2**24  # no ranker comes near; a damaged file shall not ask for gigabytes

# The arrays of a tree: one entry per inner node, or per leaf; some need not be there.
TYPE_OF: dict[str, Any] = {
    "feature": NODE,
    "threshold": THRESHOLD,
    "left": NODE,
    "right": NODE,
    "leaf_value": LEAF_VALUE,
    "missing_left": np.bool_,
    "split_gain": np.float64,
    "node_count": np.int64,
    "leaf_cover": np.float64,
}
PER_LEAF = ("leaf_value", "leaf_cover")
OPTIONAL = ("split_gain", "node_count", "leaf_cover")


def as_entries(values: Any, dtype: Any, name: str) -> AnyArray:
    """A read-only one-dimensional copy of `values` in type `dtype`, or a ModelError where that would change a value.

    An array that is so already, and owns its data, is not copied: a forest may have gigabytes.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ModelError(f"{name} must be a list of numbers: {error}") from None
    if array.ndim != 1:
        raise ModelError(f"{name} must have one dimension, got shape {array.shape}")
    if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ModelError(f"{name} must hold {np.dtype(dtype).name} values, got {array.dtype}")
    if array.dtype == dtype and array.base is None and array.flags.c_contiguous and not array.flags.writeable:
        return array
    entries = array.astype(dtype, order="C", copy=True)
    if entries.dtype.kind == "i" and not np.array_equal(entries, array):
        raise ModelError(f"{name} holds numbers too large for {entries.dtype}")
    entries.flags.writeable = False
    return entries


def offsets_of(sizes: Any) -> OffsetArray:
    """Where runs of these sizes start, and where the last one ends."""
    offsets: OffsetArray = np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)
    return offsets


def runs(starts: IndexArray, sizes: IndexArray) -> IndexArray:
    """Concatenated ranges: starts[0], starts[0] + 1, ... (sizes[0] of them), starts[1], ..."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    positions: IndexArray = np.arange(total, dtype=OFFSET) + np.repeat(starts - (ends - sizes), sizes)
    return positions


def join(parts: list[AnyArray | None], dtype: Any) -> AnyArray | None:
    """The parts one after another, not copied if only one has entries; None unless all are there."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return None
    filled = [part for part in there if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate([np.zeros(0, dtype), *filled])


def as_feature_count(n_features: Any) -> int:
    """A number of features that a model can have."""
    if isinstance(n_features, (bool, np.bool_)) or not isinstance(n_features, (int, np.integer)):
        raise ModelError(f"n_features must be a whole number, got {one_line(repr(n_features))}")
    if not 0 <= n_features <= MAX_FEATURES:
        raise ModelError(f"n_features must lie between 0 and {MAX_FEATURES}, got {one_line(n_features)}")
    return int(n_features)


def as_float(value: Any, name: str) -> float:
    """A number as float; whether it is finite is checked with the sums."""
    try:
        if isinstance(value, (str, bytes)):  # float() would read it
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{name} must be a finite number, got {one_line(repr(value))}") from None


def as_names(names: Sequence[str], n_features: int) -> tuple[str, ...]:
    """One name per feature, no name twice."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ModelError("feature_names must be strings, one per feature")
    if len(names) != n_features:
        raise ModelError(f"feature_names must have one name per feature ({n_features}), got {len(names)}")
    if len(set(names)) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ModelError(f"two features have the name {one_line(twice)!r}")
    return tuple(str(name) for name in names)


def to_json(metadata: Any) -> str:
    """Metadata as JSON text, numpy's numbers included."""
    if not isinstance(metadata, dict):
        raise ModelError(f"metadata must be a dict, got {type(metadata).__name__}")
    try:
        return json.dumps(metadata, sort_keys=True, allow_nan=False, default=_plain_number)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"metadata must be what JSON can hold: {error}") from None


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def check_training_facts(name: str, values: AnyArray | None, n_nodes: int, n_leaves: int) -> None:
    """Refuse gains and covers that are not finite, counts and covers that are negative, and too many or too few."""
    if values is None:
        return
    expected, long, short = (n_leaves, "leaf", "leaf") if name in PER_LEAF else (n_nodes, "inner node", "node")
    if len(values) != expected:
        raise ModelError(f"{name} must have one entry per {long} ({expected}), got {len(values)}")
    bad = np.flatnonzero(~np.isfinite(values) if name == "split_gain" else ~((values >= 0) & np.isfinite(values)))
    if len(bad):
        raise ModelError(f"{name} of {short} {bad[0]} is {values[bad[0]]}")


def as_tree_numbers(trees: Any, n_trees: int) -> IndexArray:
    """Trees by number (negative: from the end) or boolean mask, in the order given, none twice."""
    numbers = np.asarray(trees)
    if numbers.dtype == bool:
        if numbers.shape != (n_trees,):
            raise ModelError(f"a mask of trees must have {n_trees} entries, got shape {numbers.shape}")
        return np.flatnonzero(numbers).astype(OFFSET)
    if numbers.size == 0:
        return np.zeros(0, dtype=OFFSET)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise ModelError("trees must be whole numbers or a boolean mask")
    if numbers.min() < -n_trees or numbers.max() >= n_trees:
        raise ModelError(f"trees must lie between 0 and {n_trees - 1}, got {numbers.min()} to {numbers.max()}")
    numbers = np.where(numbers < 0, numbers + n_trees, numbers).astype(OFFSET)
    if len(np.unique(numbers)) != len(numbers):
        twice = np.flatnonzero(np.bincount(numbers) > 1)[0]
        raise ModelError(f"tree {twice} is chosen twice; change its weight instead")
    return numbers


# One tree as arrays: what importers and learners hand to an ensemble, and what exporters get back from it.


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree. Node 0 is the root; a child c >= 0 is inner node c, c < 0 is leaf ~c; no inner node: leaf 0 alone.

    >>> tree = Tree.from_nested((0, 0.5, 1.0, (1, 2.0, 2.0, 3.0)))
    >>> tree.feature, tree.left, tree.right, tree.leaf_value
    (array([0, 1], dtype=int32), array([-1, -2], dtype=int32), array([ 1, -3], dtype=int32), array([1., 2., 3.]))
    """

    feature: NodeArray
    threshold: FloatArray
    left: NodeArray
    right: NodeArray
    leaf_value: FloatArray
    missing_left: NDArray[np.bool_] | None = None
    split_gain: FloatArray | None = None
    node_count: IndexArray | None = None
    leaf_cover: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, dtype in TYPE_OF.items():
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, as_entries(values, dtype, name))
        n_nodes = len(self.feature)
        for name in TYPE_OF:
            values, expected = getattr(self, name), n_nodes + (name in PER_LEAF)
            if values is not None and len(values) != expected:
                raise ModelError(f"a tree of {n_nodes} inner nodes needs {expected} {name} entries, got {len(values)}")

    @classmethod
    def from_nested(cls, nested: Any) -> Tree:
        """From nested tuples `(feature, threshold, left, right)` or `(feature, threshold, left, right, missing_left)`,
        where a leaf is a number. Nodes and leaves are numbered in preorder, left before right."""
        nodes: list[list[Any]] = []  # feature, threshold, left, right, missing_left
        leaves: list[float] = []
        pending: list[tuple[Any, int, int]] = [(nested, -1, 0)]  # subtree, its parent, where the parent notes it
        while pending:
            subtree, parent, place = pending.pop()
            is_leaf = not isinstance(subtree, (tuple, list))
            number = ~len(leaves) if is_leaf else len(nodes)
            if parent >= 0:
                nodes[parent][place] = number
            if is_leaf:
                leaves.append(subtree)
                continue
            if len(subtree) not in (4, 5):
                raise ModelError(f"a node must be (feature, threshold, left, right[, missing_left]), got {subtree!r}")
            nodes.append([subtree[0], subtree[1], 0, 0, subtree[4] if len(subtree) == 5 else False])
            pending += [(subtree[3], number, 3), (subtree[2], number, 2)]
        columns: list[Any] = list(zip(*nodes, strict=True)) if nodes else [()] * 5
        feature, threshold, left, right, missing_left = columns
        return cls(feature, threshold, left, right, leaf_value=np.array(leaves), missing_left=missing_left)
