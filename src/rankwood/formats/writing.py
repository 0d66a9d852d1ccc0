"""Shared by all writers of model files: weights in leaves, float32, sets, names, nesting, thresholds, covers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwood.dtypes import AnyArray, FloatArray, IndexArray, OffsetArray
from rankwood.errors import ModelError
from rankwood.model.ensemble import Ensemble
from rankwood.model.trees import Tree, runs
from rankwood.model.unfold import without_sets
from rankwood.scoring.agreement import adversarial_rows
from rankwood.scoring.c_source import round_down

LARGEST_DOUBLE = float(np.finfo(np.float64).max)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
MEASURED_ROWS = 2000  # rows on which a deviation is measured

# What a format does with a missing value: sends it where the split says; takes it for 0 unless the file tells it to go
# where splits say; always right; takes it for 0.
MissingRule: TypeAlias = Literal["any", "told", "right", "zero"]


class ConversionWarning(UserWarning):
    """Warning that a converted model scores a little differently in its new format; it says where and by how much."""


class GrowthWarning(ConversionWarning):
    """Warning that a converted model has more leaves, `n_leaves`, as it splits on sets that the format lacks."""

    def __init__(self, message: str, n_leaves: int) -> None:
        super().__init__(message)
        self.n_leaves = n_leaves


def warn(message: str | ConversionWarning, level: int = 5) -> None:
    """Issue a `ConversionWarning`, for the caller of save_as: from an exporter's function that is at level 5."""
    warnings.warn(message, None if isinstance(message, Warning) else ConversionWarning, stacklevel=level)


def plain(model: Ensemble) -> Ensemble:
    """Model with the same scores, bit for bit, but with weights of 1, a base of 0 and at least one tree.

    Weights are multiplied into the leaves. The base is added to the leaves of the first tree: sums start there anyway.

    Examples
    --------
    >>> import rankwood as rw
    >>> plain(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)], tree_weights=[0.5], base=10.0)).leaf_value
    array([10.5, 11. ])
    """
    if model.n_trees == 0:
        constant = Tree.from_nested(model.base)
        return Ensemble.from_trees([constant], n_features=model.n_features, feature_names=model.feature_names)
    values = model.tree_weights[model.trees.tree_of_leaf] * model.leaf_value
    first = model.trees.leaves_of(0)
    values[first] = model.base + values[first]
    return model.replace(leaf_value=values, tree_weights=np.ones(model.n_trees), base=0.0)


def single_leaves(model: Ensemble, target: str) -> NDArray[np.float32]:
    """Leaf values of a `plain` model in float32, for a target that sums them in float32.

    A warning tells how much this changes scores, as measured on rows at the model's thresholds. A model whose scores
    may exceed the range of float32 is refused.
    """
    with np.errstate(over="ignore", under="ignore"):
        values = model.leaf_value.astype(np.float32)
    largest = sum(float(np.abs(model.leaf_value[model.trees.leaves_of(tree)]).max()) for tree in range(model.n_trees))
    if largest > np.finfo(np.float32).max:
        raise ModelError(
            f"{target} sums in float32, and scores of this model may reach {largest:.3g}, which is too large"
        )
    X = adversarial_rows(model, max_rows=MEASURED_ROWS).single
    exact = model.score(X)
    sums = np.zeros(len(X), dtype=np.float32)
    reached = model.leaves(X)
    with np.errstate(under="ignore"):
        for tree, first in enumerate(model.leaf_offsets[:-1].tolist()):
            sums += values[first + reached[:, tree].astype(np.int64)]
    deviation = float(np.abs(sums - exact).max(initial=0.0))
    if deviation > 0:
        scale = float(np.abs(exact).max())
        warn(
            f"{target} sums leaf values in float32: scores differ by up to {deviation:.2g} "
            f"(largest score {scale:.3g}; measured on {len(X)} rows)"
        )
    return values


def check_missing(model: Ensemble, target: str, rule: MissingRule, missing: str) -> bool:
    """Refuse a model that sends missing values where the target cannot, unless `missing` is "ignore".

    Returns
    -------
    bool
        Whether they may go where 0 goes: because all do so, or because they are ignored.
    """
    if missing not in ("refuse", "ignore"):
        raise ModelError(f"missing must be 'refuse' or 'ignore', got {missing!r}")
    with_zero = missing == "ignore" or not not_with_zero(model).any()
    if missing == "ignore" or rule in ("any", "told"):
        return with_zero
    wrong = model.missing_left if rule == "right" else not_with_zero(model)
    if not wrong.any():
        return with_zero
    node = int(np.argmax(wrong))
    tree = int(model.trees.tree_of_node[node])
    does = "sends a missing value right" if rule == "right" else "reads a missing value as 0"
    raise ModelError(
        f"{target} {does} at every split, and {int(wrong.sum())} of {model.n_nodes} splits send it elsewhere (the "
        f"first is node {node - model.trees.nodes_of(tree).start} of tree {tree}): "
        "convert with missing='ignore' (--missing ignore) if no value is ever missing"
    )


def not_with_zero(model: Ensemble) -> NDArray[np.bool_]:
    """For each split, whether it sends a missing value elsewhere than 0."""
    elsewhere: NDArray[np.bool_] = model.missing_left != zero_left(model)
    return elsewhere


def zero_left(model: Ensemble) -> NDArray[np.bool_]:
    """For each split, whether it sends 0 left."""
    left: NDArray[np.bool_] = model.threshold >= 0.0
    for node in model.trees.set_nodes.tolist():
        left[node] = model.trees.goes_left(node, 0.0)
    return left


def missing_with_zero(model: Ensemble) -> Ensemble:
    """The model with missing values sent where 0 goes."""
    return model.replace(missing_left=zero_left(model))


def without_exit(model: Ensemble, target: str) -> Ensemble:
    """The model without early exit, which only rankwood's own file holds; a warning says that it goes."""
    if model.exit is None:
        return model
    if not model.exit.never:
        warn(cannot_hold_exit(target), 4)
    return model.replace(exit=None)


def cannot_hold_exit(target: str) -> str:
    return f"{target} cannot hold early exit: the model is written without, so every document goes through all trees"


# Splits on sets, which few tools hold.

MAX_CATEGORY = 2**20  # no set with larger numbers is written: tools hold sets as bits


def on_thresholds(model: Ensemble, target: str, keep: Any = None, *, level: int = 4) -> Ensemble:
    """The model without splits on sets, but for nodes in the mask `keep`; a warning says by how much it grows.

    Parameters
    ----------
    model : Ensemble
        The model.
    target : str
        What cannot hold its sets.
    keep : array of bool, optional
        Inner nodes that may stay splits on sets.
    level : int, default 4
        As for `warn`.
    """
    grown = without_sets(model, keep)
    if grown is not model:
        n_sets = len(model.trees.set_nodes) - (
            0 if keep is None else int(np.asarray(keep)[model.trees.set_nodes].sum())
        )
        message = (
            f"{target} cannot hold {n_sets:,} of the splits on sets (categories and the like): as single thresholds "
            f"they make {grown.n_leaves:,} leaves of {model.n_leaves:,}"
        )
        warn(GrowthWarning(message, grown.n_leaves), level)
    return grown


def categories_of(thresholds: FloatArray) -> IndexArray | None:
    """The categories of a set that goes right, if it has all values whose whole part is among them; else None.

    A value next below a whole number, or between -1 and 0, may count as either: tools differ there.

    Examples
    --------
    >>> categories_of(np.nextafter([1.0, 3.0, 7.0, 8.0], 0))
    array([1, 2, 7])
    >>> categories_of(np.array([0.5, 2.0])) is None
    True
    """
    if len(thresholds) % 2 or not (thresholds[0] >= -1.0 and thresholds[-1] < MAX_CATEGORY):
        return None
    ends = np.floor(thresholds) + 1.0
    if not (_just_below(thresholds) | (ends == 0.0)).all() or (np.diff(ends) <= 0).any():
        return None
    begin, end = ends.astype(np.int64).reshape(-1, 2).T
    return runs(begin, end - begin)


def whole_members(thresholds: FloatArray) -> IndexArray | None:
    """The whole numbers of a set that goes right, if it tells them alone apart, whatever lies between; else None.

    Unlike those of `categories_of`, values above a whole number may be in the set or not: ONNX compares for equality.

    Examples
    --------
    >>> whole_members(np.array([np.nextafter(1.0, 0), 1.0, np.nextafter(3.0, 0), np.nextafter(5.0, 0)]))
    array([1, 3, 4])
    >>> whole_members(np.array([-1e-35, 1e-35])) is None
    True
    """
    if len(thresholds) % 2 or not (thresholds[0] >= -1.0 and thresholds[-1] < MAX_CATEGORY):
        return None
    begin, end = thresholds[::2], thresholds[1::2]
    with np.errstate(under="ignore"):
        on = end <= np.nextafter(np.floor(end).astype(np.float32), np.float32(np.inf))
    first, stop = np.floor(begin).astype(np.int64) + 1, np.floor(end).astype(np.int64) + 1
    if not (_just_below(begin) | (first == 0)).all() or not (_just_below(end) | on).all() or (stop <= first).any():
        return None
    return runs(first, stop - first)


def _just_below(values: FloatArray) -> NDArray[np.bool_]:
    """Whether each value is less than a whole number by one step of float32 at most."""
    with np.errstate(under="ignore"):
        least = np.nextafter((np.floor(values) + 1.0).astype(np.float32), np.float32(-np.inf))
        near: NDArray[np.bool_] = round_down(values) >= least
    return near


def tell_fractions(target: str, n_sets: int, n_inexact: int) -> None:
    """Warn of sets of categories that differ a little in the target."""
    if n_inexact:
        warn(
            f"{target} takes other values for the categories of {n_inexact:,} of {n_sets:,} splits: values that are no "
            "whole numbers, next below one or between -1 and 0, may go the other way",
            6,
        )


def names_of(model: Ensemble, default: str = "f{}") -> list[str]:
    """Names of the features; made of their numbers by `default` when the model has none."""
    if model.feature_names is not None:
        return list(model.feature_names)
    return [default.format(number) for number in range(model.n_features)]


OTHER_NAMES = "give other names (rankwood convert --rename OLD=NEW, in Python feature_names=[...])"


def refuse_names(names: list[str], target: str, forbidden: str, *, spaces: bool = False) -> None:
    """Refuse names that are empty or hold forbidden or control characters, or `spaces` where the format has none."""
    for name in names:
        bad = next((c for c in name if c in forbidden or not c.isprintable() or (spaces and c.isspace())), None)
        if bad is not None:
            raise ModelError(f"{target} cannot hold the feature name {name!r} because of {bad!r}: {OTHER_NAMES}")
        if not name:
            raise ModelError(f"{target} cannot hold a feature name that is empty: {OTHER_NAMES}")


def finite(thresholds: AnyArray, largest: float, target: str) -> AnyArray:
    """Thresholds clipped to `largest` for a format without infinities, with a warning if that changes any."""
    beyond = ~(np.abs(thresholds) <= largest)
    if not beyond.any():
        return thresholds
    warn(
        f"{target} cannot hold infinite thresholds: {int(beyond.sum())} splits compare with {largest:.8g} instead, "
        "so infinities and values of that size may go the other way"
    )
    return np.clip(thresholds, -largest, largest)


def nested(
    model: Ensemble, tree: int, opening: Callable[[int], str], leaf: Callable[[int], str], middle: str, closing: str
) -> Iterator[str]:
    """Text of one tree in pieces: `opening` of a node, its left child, `middle`, its right child, `closing`.

    `opening` and `leaf` get numbers that count through the whole model. Not recursive, so trees may be of any depth.
    """
    nodes, leaves = model.trees.nodes_of(tree), model.trees.leaves_of(tree)
    left, right = model.left[nodes].tolist(), model.right[nodes].tolist()
    pending: list[int | str] = [0 if left else -1]
    while pending:
        at = pending.pop()
        if isinstance(at, str):
            yield at
        elif at < 0:
            yield leaf(leaves.start + ~at)
        else:
            yield opening(nodes.start + at)
            pending += [closing, right[at], middle, left[at]]


def check_objective(objective: str, known: Iterable[str]) -> None:
    """Refuse an objective that is not among those with which the tool leaves scores as they are."""
    if objective not in known:
        raise ModelError(f"objective must leave scores as they are: {', '.join(known)}; got {objective!r}")


def java_float(value: np.float32) -> str:
    """Text of a number, as Java's Float.parseFloat reads it.

    Examples
    --------
    >>> java_float(np.float32(0.5)), java_float(np.float32(-np.inf))
    ('0.5', '-Infinity')
    """
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


# Thresholds for tools that compare otherwise.
#
# Here a value goes left when `x <= t`, in float64. Each function gives the thresholds with which another comparison
# sends the same values left. For `x <= t` with x and t in float32 that function is `round_down`.


def below_single(thresholds: FloatArray) -> NDArray[np.float32]:
    """Thresholds for `x < t` with x and t in float32.

    From the largest float32 on they are infinite, so that infinity itself goes right, even at an infinite threshold.

    Examples
    --------
    >>> below_single(np.array([1.0, 0.1, -0.0, 1e300, -np.inf])).tolist()
    [1.0000001192092896, 0.10000000149011612, 1.401298464324817e-45, inf, -3.4028234663852886e+38]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: NDArray[np.float32] = np.nextafter(round_down(thresholds), np.float32(np.inf))
    return above


def below_double(thresholds: FloatArray) -> FloatArray:
    """Thresholds for `x < t` with x and t in float64.

    Examples
    --------
    >>> below_double(np.array([1.0, 0.0])).tolist()
    [1.0000000000000002, 5e-324]
    """
    with np.errstate(over="ignore", under="ignore"):
        above: FloatArray = np.nextafter(thresholds, np.inf)
    return above


# Covers: how much training data each node and leaf holds, by which tools explain scores (SHAP).
#
# A model knows the covers of its leaves when its source did. Otherwise they follow from the counts of inner nodes, or
# every leaf counts alike. No cover is zero, since tools divide by it.

LEAST = 1e-6  # cover of a leaf without data, relative to the mean of the tree's leaves
PARTS = 10**9  # whole of a tree's data, where it is not counted in documents


def leaf_covers(model: Ensemble) -> FloatArray:
    """Cover of each leaf, in documents or their weight: positive, and within the range of float32.

    Examples
    --------
    >>> import rankwood as rw
    >>> leaf_covers(rw.Ensemble.from_trees([(0, 0.5, 1.0, 2.0)]))
    array([1., 1.])
    """
    covers = _known(model)
    starts, sizes = model.leaf_offsets[:-1], model.trees.sizes + 1
    largest = np.maximum.reduceat(covers, starts)
    odd = (largest > 1e30) | (largest < 1e-20)
    if odd.any():  # within a tree only the ratios of covers matter
        covers = covers / np.repeat(np.where(odd & (largest > 0), largest, 1.0), sizes)
    means = np.repeat(np.add.reduceat(covers, starts) / sizes, sizes)
    least = np.where(means > 0, LEAST * means, 1.0)
    return np.maximum(covers, least)


def whole_covers(model: Ensemble) -> tuple[IndexArray, IndexArray]:
    """Covers of the leaves and of the inner nodes as whole numbers below 2**31; a node has the sum of its leaves.

    They count documents where every leaf of a tree has a whole number of them, else parts of a billion.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 3.0))])
    >>> whole_covers(model.replace(leaf_cover=[10, 4, 5]))
    (array([10,  4,  5]), array([19,  9]))
    """
    known = _known(model)
    starts, sizes = model.leaf_offsets[:-1], model.trees.sizes + 1
    is_count = (known == np.rint(known)) & (known >= 1) & (known < 2**31)
    counted = np.logical_and.reduceat(is_count, starts)
    counted &= np.add.reduceat(np.where(is_count, known, 0.0), starts) < 2**31
    covers = leaf_covers(model)
    parts = np.maximum(1, np.rint(covers * np.repeat(PARTS / np.add.reduceat(covers, starts), sizes)))
    leaves = np.where(np.repeat(counted, sizes), known, parts).astype(np.int64)
    return leaves, node_sums(model, leaves).astype(np.int64)


def node_sums(model: Ensemble, leaves: NDArray[np.int64] | FloatArray) -> FloatArray:
    """Sum of the values of the leaves below each inner node.

    Examples
    --------
    >>> import rankwood as rw
    >>> model = rw.Ensemble.from_trees([(0, 0.5, 1.0, (0, 1.5, 2.0, 3.0))])
    >>> node_sums(model, np.array([10.0, 4.0, 5.0]))
    array([19.,  9.])
    """
    first, first_leaf = _starts(model)
    below = [np.where(side >= 0, first + side, -1) for side in (model.left, model.right)]
    levels = [model.node_offsets[:-1][model.trees.sizes > 0]]
    while len(levels[-1]):
        children = np.concatenate([side[levels[-1]] for side in below])
        levels.append(children[children >= 0])
    sums = np.zeros(model.n_nodes)
    for nodes in reversed(levels):
        for side, inner in zip((model.left, model.right), below, strict=True):
            child, is_leaf = inner[nodes], inner[nodes] < 0
            sums[nodes] += np.where(
                is_leaf, leaves[first_leaf[nodes] + np.where(is_leaf, ~side[nodes], 0)], sums[child]
            )
    return sums


def _known(model: Ensemble) -> FloatArray:
    """Covers that the model has, or that follow from the counts of its nodes, or 1 for every leaf."""
    if model.leaf_cover is not None:
        return model.leaf_cover
    covers = np.ones(model.n_leaves)
    if model.node_count is None:
        return covers
    first, first_leaf = _starts(model)
    counts = model.node_count
    for side, other in ((model.left, model.right), (model.right, model.left)):
        leaf, alone = side < 0, (side < 0) & (other >= 0)
        half = counts // 2 if side is model.left else counts - counts // 2  # two leaves halve their node's
        rest = np.where(alone, counts - counts[first + np.where(alone, other, 0)], half)
        covers[(first_leaf + ~side)[leaf]] = np.maximum(rest[leaf], 1)
    return covers


def _starts(model: Ensemble) -> tuple[OffsetArray, OffsetArray]:
    """Number of the first inner node and of the first leaf of each inner node's tree."""
    tree = model.trees.tree_of_node
    return model.node_offsets[tree], model.leaf_offsets[tree]
